// Reads the numbers of the page, and holds what its parts share.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function unpack(text, Kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}

// Text is only ever set as text, so that names can hold anything.
function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text = value.toPrecision(digits);
  if (size >= 1e6 || size < 1e-3) text = value.toExponential(2);
  else if (size >= 1e3) text = Math.round(value).toLocaleString("en");
  return text.replace(/^-/, "−");
}

const lineTask = unpack(data.lineTask, Uint32Array);
const lineClass = unpack(data.lineClass, Uint32Array);
const spread = unpack(data.spread, Float32Array);
const linesOf = data.tasks.map(() => []);
lineTask.forEach((task, line) => linesOf[task].push(line));

function lineName(line) {
  const task = data.tasks[lineTask[line]];
  return data.classes.length ? `${task} · ${data.classes[lineClass[line]]}` : task;
}

// Parts of the page that follow the chosen task.
const followers = [];
let chosen = 0;
function choose(task, line) {
  chosen = task;
  for (const follow of followers) follow(task, line === undefined ? linesOf[task][0] : line);
}

for (const part of document.querySelectorAll("main > section")) {
  const link = make("a", part.querySelector("h2").firstChild.textContent.replace(/: *$/, ""));
  link.href = `#${part.id}`;
  const item = make("li");
  item.append(link);
  byId("contents").append(item);
}
