// The table of tasks: sorted by its titles, searched, a hundred rows at a time.
const STEP = 100;
const scores = data.scores;
const folded = data.tasks.map((name) => name.toLocaleLowerCase());
const collator = new Intl.Collator(undefined, { numeric: true });
let shownRows = STEP;
let sorting = { column: 0, falling: false };

function gain(task, name) {
  const own = scores.errors.model[task];
  const other = scores.errors[name][task];
  return own === null || other === null || other === 0 ? null : 1 - own / other;
}

function gainCell(task, name) {
  const value = gain(task, name);
  const sign = scores.signs[name][task];
  const cell = make("td", undefined, sign > 0 ? "up" : sign < 0 ? "down" : "");
  if (value === null) cell.textContent = "–";
  else {
    const mark = sign > 0 ? "▲ " : sign < 0 ? "▼ " : "";
    const text = `${(100 * Math.abs(value)).toFixed(1)} %`;
    cell.textContent = mark + (value < 0 ? "−" : "") + text;
  }
  if (sign) cell.title = sign > 0 ? "significantly better" : "significantly worse";
  return cell;
}

const columns = [
  { title: "Task", value: (task) => data.tasks[task] },
  { title: "Cluster", value: (task) => data.taskClusters[task], cell: (v) => String(v) },
];
if (scores) {
  columns.push({ title: "Rows", value: (task) => scores.rows[task], cell: (v) => (v === null ? "–" : v.toLocaleString("en")) });
  for (const [name, title] of [["model", "model"], ["separate", "separate"], ["pooled", "pooled"]]) {
    columns.push({ title: `${scores.metric}, ${title}`, value: (task) => scores.errors[name][task] });
  }
  for (const name of ["separate", "pooled"]) {
    columns.push({ title: `Gain over ${name}`, value: (task) => gain(task, name), whole: (task) => gainCell(task, name) });
  }
}

function before(a, b) {
  const value = columns[sorting.column].value;
  const [x, y] = [value(a), value(b)];
  // What is not known comes last either way.
  if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1;
  const order = sorting.column === 0 ? collator.compare(x, y) : x - y;
  return (sorting.falling ? -order : order) || a - b;
}

function wanted() {
  const text = byId("search").value.trim().toLocaleLowerCase();
  const which = byId("which").value;
  const sign = which === "gain" ? 1 : which === "loss" ? -1 : 0;
  return data.tasks
    .map((_, task) => task)
    .filter((task) => folded[task].includes(text) && (!sign || scores.signs.separate[task] === sign));
}

function row(task) {
  const line = make("tr");
  line.dataset.task = task;
  line.className = task === chosen ? "chosen" : "";
  const first = make("th");
  first.scope = "row";
  const name = make("button", data.tasks[task] || "(no name)", "name");
  name.type = "button";
  first.append(name);
  line.append(first);
  for (const column of columns.slice(1)) {
    const value = column.value(task);
    line.append(column.whole ? column.whole(task) : make("td", (column.cell || number)(value)));
  }
  return line;
}

function showTable() {
  const tasks = wanted().sort(before);
  const part = tasks.slice(0, shownRows);
  byId("task-table").tBodies[0].replaceChildren(...part.map(row));
  const all = data.tasks.length.toLocaleString("en");
  byId("found").textContent = `${tasks.length.toLocaleString("en")} of ${all} ${data.tasks.length === 1 ? "task" : "tasks"}`;
  const rest = tasks.length - part.length;
  byId("more").hidden = rest <= 0;
  byId("more").textContent = `Show ${Math.min(rest, STEP)} more of ${rest.toLocaleString("en")}`;
  titles.forEach((title, place) => {
    const state = sorting.falling ? "descending" : "ascending";
    title.setAttribute("aria-sort", place === sorting.column ? state : "none");
  });
}

const titles = columns.map((column, place) => {
  const title = make("th");
  title.scope = "col";
  const button = make("button", column.title);
  button.type = "button";
  button.addEventListener("click", () => {
    const again = sorting.column === place;
    // Numbers begin with the largest, names with the first.
    sorting = { column: place, falling: again ? !sorting.falling : place > 1 };
    showTable();
  });
  title.append(button);
  return title;
});
byId("task-table").tHead.rows[0].append(...titles);
byId("search").addEventListener("input", () => { shownRows = STEP; showTable(); });
byId("which").addEventListener("change", () => { shownRows = STEP; showTable(); });
byId("which-part").hidden = !scores;
byId("more").addEventListener("click", () => { shownRows += STEP; showTable(); });
byId("task-table").tBodies[0].addEventListener("click", (event) => {
  const line = event.target.closest("tr");
  if (!line) return;
  choose(Number(line.dataset.task));
  if (event.target.closest("button")) byId("task").scrollIntoView();
});
followers.push((task) => {
  for (const line of byId("task-table").tBodies[0].rows) {
    line.className = Number(line.dataset.task) === task ? "chosen" : "";
  }
});
showTable();
