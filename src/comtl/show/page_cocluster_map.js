// The map of weights: drawn once into a small picture, which is scaled to the page.
const plan = data.map;
const STRIP = 8;
const GAP = 3;
const CLUSTERS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#F0E442"];
const LIGHT = { zero: [244, 245, 246], plus: [[143, 195, 230], [0, 90, 148]], minus: [[243, 185, 140], [178, 74, 0]], line: "#1c2430", mark: "#000000" };
const DARK = { zero: [30, 37, 46], plus: [[31, 99, 145], [99, 193, 251]], minus: [[138, 74, 28], [255, 157, 82]], line: "#c7d0da", mark: "#ffffff" };
const entries = unpack(plan.entries, Int16Array);
const axes = [plan.rows, plan.columns].map((axis) => ({
  count: axis.count,
  order: unpack(axis.order, Uint32Array),
  edges: unpack(axis.edges, Uint32Array),
  clusters: unpack(axis.clusters, Uint32Array),
}));
const [down, across] = axes;
const canvas = byId("map-canvas");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let place = null;
let picture = null;
let printing = false;

function shade(palette, value) {
  const size = Math.min(1, Math.abs(value) / (plan.shown || 1));
  const [half, full] = value < 0 ? palette.minus : palette.plus;
  const [from, to, share] = size < 0.5 ? [palette.zero, half, 2 * size] : [half, full, 2 * size - 1];
  return from.map((start, i) => start + share * (to[i] - start));
}

function paint(palette) {
  // Colours of a few hundred levels, so that no field needs arithmetic of its own.
  const levels = 256;
  const table = [];
  for (let i = -levels; i <= levels; i++) table.push(shade(palette, (i / levels) * plan.shown));
  const image = new ImageData(across.count, down.count);
  const factor = (levels * plan.most) / 32767 / (plan.shown || 1);
  for (let i = 0; i < entries.length; i++) {
    const level = Math.max(-levels, Math.min(levels, Math.round(entries[i] * factor)));
    const colour = table[level + levels];
    image.data.set([colour[0], colour[1], colour[2], 255], 4 * i);
  }
  picture = document.createElement("canvas");
  picture.width = across.count;
  picture.height = down.count;
  picture.getContext("2d").putImageData(image, 0, 0);
}

// Where the fields lie; names stand beside them where there is room to read them.
function size() {
  const full = canvas.clientWidth;
  const tall = Math.max(120, Math.min(620, 18 * down.count));
  const names = tall / down.count >= 12 ? Math.min(150, 0.26 * full) : 0;
  const left = names + STRIP + GAP;
  const below = (full - left) / across.count >= 13 ? 84 : 0;
  const top = STRIP + GAP;
  return { names, left, top, below, width: full, height: top + tall, whole: top + tall + below };
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}

function write(pen, palette, { names, left, top, below, height }, wide, tall) {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = palette.line;
  pen.textBaseline = "middle";
  for (let i = 0; names && i < down.count; i++) {
    pen.textAlign = "right";
    pen.fillText(fitted(pen, members(down, i, lineName), names - 6), names - 4, top + (i + 0.5) * tall);
  }
  for (let j = 0; below && j < across.count; j++) {
    pen.save();
    pen.translate(left + (j + 0.5) * wide, height + 5);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "right";
    pen.fillText(fitted(pen, members(across, j, (feature) => data.features[feature]), below - 8), 0, 0);
    pen.restore();
  }
}

function draw(palette) {
  const { width, height, whole, names, left, top } = size();
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${whole}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(whole * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const [wide, tall] = [(width - left) / across.count, (height - top) / down.count];
  pen.imageSmoothingEnabled = wide * ratio < 1 || tall * ratio < 1;
  pen.drawImage(picture, left, top, width - left, height - top);
  pen.strokeStyle = palette.line;
  const edges = (axis, each) => {
    let start = 0;
    for (let i = 1; i <= axis.count; i++) {
      if (i === axis.count || axis.clusters[i] !== axis.clusters[start]) {
        each(start, i, CLUSTERS[axis.clusters[start] % CLUSTERS.length]);
        start = i;
      }
    }
  };
  const line = (...ends) => { pen.beginPath(); pen.moveTo(ends[0], ends[1]); pen.lineTo(ends[2], ends[3]); pen.stroke(); };
  pen.lineWidth = 1;
  edges(down, (start, stop, colour) => {
    pen.fillStyle = colour;
    pen.fillRect(names, top + start * tall, STRIP, (stop - start) * tall);
    if (stop < down.count) line(names, top + stop * tall, width, top + stop * tall);
  });
  edges(across, (start, stop, colour) => {
    pen.fillStyle = colour;
    pen.fillRect(left + start * wide, 0, (stop - start) * wide, STRIP);
    if (stop < across.count) line(left + stop * wide, 0, left + stop * wide, height);
  });
  write(pen, palette, size(), wide, tall);
  if (place) {
    const box = [left + place[1] * wide, top + place[0] * tall, Math.max(wide, 5), Math.max(tall, 5)];
    pen.lineWidth = 2;
    pen.strokeStyle = palette.mark;
    pen.strokeRect(box[0], box[1], box[2], box[3]);
  }
}

// Paper is white, whatever the screen.
const palette = () => (dark.matches && !printing ? DARK : LIGHT);

function redraw() {
  draw(palette());
}

function refresh() {
  paint(palette());
  redraw();
}

function members(axis, bin, name) {
  const [start, stop] = [axis.edges[bin], axis.edges[bin + 1]];
  const first = name(axis.order[start]);
  if (stop - start === 1) return first;
  return `${first} … ${name(axis.order[stop - 1])} (${stop - start})`;
}

function showValue() {
  const [i, j] = place;
  const value = (entries[i * across.count + j] / 32767) * plan.most;
  const one = down.edges[i + 1] - down.edges[i] === 1 && across.edges[j + 1] - across.edges[j] === 1;
  const task = members(down, i, lineName);
  const feature = members(across, j, (feature) => data.features[feature]);
  byId("map-value").textContent =
    `Task ${task} (cluster ${down.clusters[i]}), feature ${feature} (cluster ${across.clusters[j]}): ` +
    `${one ? "weight" : "mean weight"} ${number(value)}`;
}

function moveTo(i, j) {
  const next = [Math.max(0, Math.min(down.count - 1, i)), Math.max(0, Math.min(across.count - 1, j))];
  if (place && place[0] === next[0] && place[1] === next[1]) return;
  place = next;
  redraw();
  showValue();
}

function point(event) {
  const box = canvas.getBoundingClientRect();
  const { width, height, left, top } = size();
  const j = Math.floor(((event.clientX - box.left - left) / (width - left)) * across.count);
  const i = Math.floor(((event.clientY - box.top - top) / (height - top)) * down.count);
  moveTo(i, j);
}

function chooseHere() {
  if (!place) return;
  const line = down.order[down.edges[place[0]]];
  choose(lineTask[line], line);
}

canvas.addEventListener("pointermove", point);
canvas.addEventListener("pointerdown", point);
canvas.addEventListener("click", chooseHere);
canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key === "Enter") chooseHere();
  else if (event.key === "Home") moveTo(place ? place[0] : 0, 0);
  else if (event.key === "End") moveTo(place ? place[0] : 0, across.count - 1);
  else if (event.key in steps) {
    const far = event.shiftKey ? 10 : 1;
    const [i, j] = steps[event.key];
    if (place) moveTo(place[0] + far * i, place[1] + far * j);
    else moveTo(0, 0);
  } else return;
  event.preventDefault();
});
dark.addEventListener("change", refresh);
window.addEventListener("resize", redraw);
window.addEventListener("beforeprint", () => {
  printing = true;
  for (const part of document.querySelectorAll("details")) part.open = true;
  refresh();
});
window.addEventListener("afterprint", () => { printing = false; refresh(); });

const together = down.count < plan.lines || across.count < plan.features;
byId("map-size").textContent = together
  ? `${plan.lines.toLocaleString("en")} × ${plan.features.toLocaleString("en")} weights; neighbours are averaged.`
  : "";
const beyond = plan.most > plan.shown ? " and beyond" : "";
byId("map-low").textContent = number(-plan.shown, 3);
byId("map-high").textContent = number(plan.shown, 3) + beyond;
refresh();
choose(0);
document.documentElement.dataset.ready = "yes";
