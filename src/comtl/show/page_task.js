// The chosen task: its largest weights, and the tasks that are most like it.
const FEW = 15;
const topFeature = unpack(data.top.feature, Uint32Array);
const topValue = unpack(data.top.value, Float32Array);
const nearTask = unpack(data.near.task, Uint32Array);
const nearCosine = unpack(data.near.cosine, Float32Array);
let allWeights = false;
let chosenLine = 0;

function option(text, value) {
  const element = make("option", text || "(no name)");
  element.value = value;
  return element;
}

function weightRow(feature, value, most) {
  const line = make("tr");
  const name = make("th", data.features[feature]);
  name.scope = "row";
  const holder = make("td");
  const effect = make("div", undefined, "effect");
  const bar = make("i", undefined, value < 0 ? "minus" : "");
  const share = most > 0 ? (50 * Math.abs(value)) / most : 0;
  bar.style.width = `${share}%`;
  bar.style.left = value < 0 ? `${50 - share}%` : "50%";
  effect.append(bar);
  holder.append(effect);
  line.append(name, holder, make("td", number(value, 3)), make("td", number(value / spread[feature], 3)));
  return line;
}

function showWeights() {
  const count = data.top.count;
  const start = chosenLine * count;
  const most = Math.abs(topValue[start]);
  const rows = [];
  for (let i = start; i < start + (allWeights ? count : Math.min(FEW, count)); i++) {
    rows.push(weightRow(topFeature[i], topValue[i], most));
  }
  byId("weights").tBodies[0].replaceChildren(...rows);
  const button = byId("all-weights");
  button.hidden = count <= FEW;
  button.textContent = allWeights ? `Show ${FEW}` : `Show ${count} of ${data.features.length.toLocaleString("en")} features`;
}

function showNearest(task) {
  const count = data.near.count;
  const items = [];
  for (let i = task * count; i < (task + 1) * count; i++) {
    const item = make("li");
    const name = make("button", data.tasks[nearTask[i]] || "(no name)", "name");
    name.type = "button";
    name.dataset.task = nearTask[i];
    const cosine = nearCosine[i].toFixed(2).replace("-", "−");
    item.append(name, make("span", `  ${cosine}`));
    items.push(item);
  }
  if (!items.length) items.push(make("li", "There is no other task."));
  byId("nearest").replaceChildren(...items);
}

function showClasses(task, line) {
  if (!data.classes.length) return;
  byId("class-part").hidden = false;
  const options = linesOf[task].map((one) => option(data.classes[lineClass[one]], one));
  byId("class-choice").replaceChildren(...options);
  byId("class-choice").value = line;
}

followers.push((task, line) => {
  chosenLine = line;
  byId("task-name").textContent = data.tasks[task] || "(no name)";
  byId("task-choice").value = task;
  showClasses(task, line);
  showWeights();
  showNearest(task);
});

const byName = data.tasks.map((_, task) => task);
byName.sort((a, b) => collator.compare(data.tasks[a], data.tasks[b]) || a - b);
byId("task-choice").append(...byName.map((task) => option(data.tasks[task], task)));
byId("task-choice").addEventListener("change", (event) => choose(Number(event.target.value)));
byId("class-choice").addEventListener("change", (event) => choose(chosen, Number(event.target.value)));
byId("all-weights").addEventListener("click", () => { allWeights = !allWeights; showWeights(); });
byId("nearest").addEventListener("click", (event) => {
  const name = event.target.closest("button");
  if (!name) return;
  choose(Number(name.dataset.task));
  // The list was made anew; who came by keyboard goes on from its first entry.
  const first = byId("nearest").querySelector("button");
  if (first) first.focus({ preventScroll: true });
});
