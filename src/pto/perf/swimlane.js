// Draws the lanes. `view` is what is seen and marked; `draw()` paints it anew at the next frame. The lanes are
// kept as a picture while the window stays, so that hovering only adds frames and arrows. Only what lies in the
// window is walked; where it is dense, every pixel gets the mixed colour of what ran in it, by its share of the
// time. `swimlane_input.js` changes the view.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent), T = data.tasks;
const root = document.documentElement, COUNT = T.task_id.length, LEFT = 118, RIGHT = 12, MONO = '"DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace';
const over = document.getElementById("over"), canvas = document.getElementById("lanes");
const view = {from: 0, to: data.end, group: "cluster", mark: "path", arrows: "one", idle: true, hover: -1, chosen: -1, func: -1, found: null, drag: null, at: null};
const paint = {}, mix = {}; // colours of the theme: as the canvas understands them, and as numbers
const still = document.createElement("canvas"), strip = document.createElement("canvas");
let rows = [], width = 800, wanted = false, kept = "", changes = 0; // changes: of the theme, of the search

const rowOf = new Int32Array(COUNT).fill(-1); // task -> its row on the picture, for arrows
const succs = Array.from({length: COUNT}, () => []), preds = Array.from({length: COUNT}, () => []);
for (let e = 0; e < data.links.pred.length; e++) succs[data.links.pred[e]].push(e), preds[data.links.succ[e]].push(e);
const blocks = new Map(); // the blocks of one task share what waits for it
for (let n = 0; n < COUNT; n++) if (T.block[n] >= 0) {
  const known = blocks.get(T.task_id[n]);
  known ? (known.push(...succs[n]), succs[n] = known) : blocks.set(T.task_id[n], succs[n]);
}
const order = {path: data.path.map(s => s[0]), chain: data.chain, none: []};

// Times as they are drawn: what was not recorded is taken from its neighbour.
const start = T.start, end = T.end.map((t, n) => t >= 0 ? t : Math.max(data.end, start[n]));
const dispatch = T.dispatch.map((t, n) => t >= 0 ? Math.min(t, start[n]) : start[n]);
const finish = T.finish.map((t, n) => Math.max(t, end[n]));

const byCore = new Map(data.cores.map(c => [c[0], []]));
for (let n = 0; n < COUNT; n++) if (start[n] >= 0) byCore.get(T.core[n])?.push(n);
for (const list of byCore.values()) list.sort((a, b) => start[a] - start[b]);
const byActor = new Map();
data.phases.actor.forEach((actor, n) => byActor.has(actor) ? byActor.get(actor).push(n) : byActor.set(actor, [n]));

function time(ns, digits) {
  const a = Math.abs(ns);
  if (a < 1e3) return Math.round(ns) + " ns";
  if (a < 1e6) return (ns / 1e3).toFixed(digits ?? 3) + " us";
  return a < 1e9 ? (ns / 1e6).toFixed(digits ?? 3) + " ms" : (ns / 1e9).toFixed(digits ?? 3) + " s";
}
const short = n => n >= 1 << 20 ? +(n / (1 << 20)).toFixed(1) + " Mi" : n >= 1 << 14 ? +(n / 1024).toFixed(1) + " Ki" : String(n);
const label = n => `${data.funcs[T.func[n]]}(${T.task_id[n]})${T.block[n] >= 0 ? `[${T.block[n]}]` : ""}`;
const x = t => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT - RIGHT);
const timeAt = px => view.from + (px - LEFT) / (width - LEFT - RIGHT) * (view.to - view.from);

function colours() {
  const probe = document.body.appendChild(document.createElement("span"));
  const names = ["page", "panel", "plot", "line", "faint", "text", "soft", "accent", "bad", "raw", "waw", "war", "explicit",
    "work", "load", "save", "other", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", ...data.parts.map(p => "part-" + p), ...data.funcs.map((_, n) => "f" + n)];
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    paint[name] = getComputedStyle(probe).color;
    mix[name] = paint[name].match(/[\d.]+/g).map(Number);
  }
  probe.remove(), changes++;
}
const PHASE = {0: "work", 1: "load", 2: "other", 3: "faint", 16: "c7", 17: "bad", 18: "c1", 19: "c0", 20: "c2", 21: "c4", 22: "c3", 23: "c5", 24: "c6"};
const KIND = ["raw", "waw", "war", "explicit"], DASH = [[], [6, 4], [2, 3], []];

// The rows of the picture from top to bottom.
function layout() {
  rows = [];
  let y = 6;
  const add = (row, height, gap = 0) => (rows.push({...row, y, height}), y += height + gap);
  if (data.path.length && view.mark === "path") add({kind: "path", name: "critical path"}, 18, 6);
  for (const actor of [...byActor.keys()].sort((a, b) => a - b))
    add({kind: "phase", name: actor < 0 ? "Orchestrator" : "Sched_" + actor, list: byActor.get(actor)}, 15, 2);
  if (byActor.size) y += 6;
  const cores = data.cores.filter(c => view.idle || c[2]);
  const high = cores.length <= 12 ? 25 : cores.length <= 36 ? 18 : 13;
  const core = c => ({kind: "core", name: c[4], list: byCore.get(c[0]), busy: c[3], core: c[0]});
  if (view.group === "type") {
    for (const type of [0, 1]) {
      const mine = cores.filter(c => c[1] === type);
      if (mine.length) add({kind: "title", name: ["AIC", "AIV"][type] + " cores"}, 17);
      for (const c of mine) add(core(c), high);
      y += 5;
    }
  } else {
    const cluster = c => c[0] < data.blocks ? c[0] : Math.floor((c[0] - data.blocks) / 2);
    const groups = new Map();
    for (const c of cores) groups.has(cluster(c)) ? groups.get(cluster(c)).push(c) : groups.set(cluster(c), [c]);
    for (const k of [...groups.keys()].sort((a, b) => a - b)) {
      const top = y;
      for (const c of groups.get(k)) add(core(c), high);
      rows.push({kind: "cluster", name: String(k), y: top, height: y - top});
      y += 4;
    }
  }
  for (const c of data.counters) y += 4, add({kind: "counter", name: c.name, counter: c}, Math.max(...c.value) ? 40 : 16);
  rowOf.fill(-1);
  rows.forEach((r, n) => r.kind === "core" && r.list.forEach(task => rowOf[task] = n));
  canvas.style.height = y + 6 + "px";
  fit();
}

function fit() {
  width = canvas.clientWidth;
  for (const c of [over, canvas, still]) {
    const ratio = devicePixelRatio || 1, as = c === still ? canvas : c;
    c.width = Math.round(as.clientWidth * ratio), c.height = Math.round(as.clientHeight * ratio);
    c.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  kept = "";
  draw();
}

const draw = () => wanted || (wanted = true, requestAnimationFrame(() => (wanted = false, paintLanes())));

function ticks() {
  const least = (view.to - view.from) * 90 / Math.max(90, width - LEFT - RIGHT);
  let step = 1;
  for (let n = 0; step < least; n++) step *= n % 3 === 1 ? 2.5 : 2;
  const out = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) out.push(t);
  return [out, step];
}

// Above: how many tasks execute at once over the whole run, with the window; and the time scale.
function paintOver() {
  const g = over.getContext("2d"), plot = 38, total = data.end, wide = width - LEFT - RIGHT;
  g.clearRect(0, 0, width, 70);
  g.font = "10.5px " + MONO, g.textBaseline = "alphabetic";
  const [times, levels] = data.profile, top = Math.max(1, ...levels);
  g.fillStyle = paint.plot, g.fillRect(LEFT, 6, wide, plot - 6);
  g.beginPath(), g.moveTo(LEFT, plot);
  times.forEach((t, n) => {
    const px = LEFT + t / total * wide;
    g.lineTo(px, plot - (n ? levels[n - 1] : 0) / top * 30), g.lineTo(px, plot - levels[n] / top * 30);
  });
  g.lineTo(LEFT + wide, plot), g.closePath();
  g.globalAlpha = .3, g.fillStyle = paint.accent, g.fill();
  g.globalAlpha = 1, g.strokeStyle = paint.accent, g.stroke();
  g.fillStyle = paint.soft, g.textAlign = "right";
  g.fillText("running", LEFT - 8, 22), g.fillText("max " + top, LEFT - 8, 36);
  const a = LEFT + view.from / total * wide, b = LEFT + view.to / total * wide;
  g.globalAlpha = .55, g.fillStyle = paint.panel;
  g.fillRect(LEFT, 5, a - LEFT, plot - 4), g.fillRect(b, 5, LEFT + wide - b, plot - 4);
  g.globalAlpha = 1, g.strokeStyle = paint.text, g.strokeRect(a + .5, 5.5, Math.max(2, b - a - 1), plot - 5);
  const [marks, step] = ticks();
  g.fillStyle = paint.soft, g.strokeStyle = paint.line, g.textAlign = "center";
  const unit = view.to > 2e6 ? ["ms", 1e6] : view.to > 2e3 ? ["us", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit[1]) + (step / unit[1] % 1 ? .3 : 0)));
  for (const t of marks) {
    const px = Math.round(x(t)) + .5;
    g.beginPath(), g.moveTo(px, 58), g.lineTo(px, 66), g.stroke();
    if (px < width - RIGHT - 20) g.fillText((t / unit[1]).toFixed(Math.min(3, digits)), px, 55);
  }
  g.textAlign = "right", g.fillText(unit[0], LEFT - 22, 55);
}

function paintLanes() {
  const g = canvas.getContext("2d"), height = canvas.clientHeight;
  const state = [view.from, view.to, view.func, changes, view.mark].join();
  if (state !== kept) paintOver(), paintStill(still.getContext("2d"), height), kept = state;
  g.clearRect(0, 0, width, height);
  g.drawImage(still, 0, 0, width, height);
  g.textBaseline = "middle";
  g.save();
  g.beginPath(), g.rect(LEFT, 0, width - LEFT - RIGHT, height), g.clip();
  paintArrows(g);
  if (view.at !== null && !view.drag) {
    g.globalAlpha = .45, g.strokeStyle = paint.text, g.beginPath();
    g.moveTo(view.at + .5, 0), g.lineTo(view.at + .5, height), g.stroke(), g.globalAlpha = 1;
  }
  if (view.drag && view.drag.kind === "zoom") {
    const [a, b] = [view.drag.x0, view.drag.x1].sort((p, q) => p - q);
    g.globalAlpha = .15, g.fillStyle = paint.accent, g.fillRect(a, 0, b - a, height);
    g.globalAlpha = 1, g.strokeStyle = paint.accent, g.strokeRect(a + .5, .5, b - a, height - 1);
    g.fillStyle = paint.text, g.font = "11px " + MONO, g.textAlign = "center";
    g.fillText(time(timeAt(b) - timeAt(a), 2), (a + b) / 2, view.drag.y - 12);
  }
  g.restore();
}

// Everything that stays while the pointer moves.
function paintStill(g, height) {
  g.clearRect(0, 0, width, height);
  g.textBaseline = "middle";
  const [marks] = ticks();
  for (const r of rows) paintGutter(g, r);
  g.save();
  g.beginPath(), g.rect(LEFT, 0, width - LEFT - RIGHT, height), g.clip();
  for (const r of rows) if (r.kind === "core" || r.kind === "phase" || r.kind === "path") {
    g.fillStyle = paint.plot, g.fillRect(LEFT, r.y, width - LEFT - RIGHT, r.height - 1);
  }
  g.strokeStyle = paint.faint, g.beginPath();
  for (const t of marks) g.moveTo(Math.round(x(t)) + .5, 0), g.lineTo(Math.round(x(t)) + .5, height);
  g.stroke();
  for (const r of rows) {
    if (r.kind === "core") paintCore(g, r);
    else if (r.kind === "phase") bars(g, r, r.list, data.phases.start, data.phases.end, n => PHASE[data.phases.phase[n]] ?? "other", n => [data.phase_names[data.phases.phase[n]]]);
    else if (r.kind === "path") paintPath(g, r);
    else if (r.kind === "counter") paintCounter(g, r);
  }
  paintMarks(g);
  g.restore();
}

function paintGutter(g, r) {
  const middle = r.y + r.height / 2;
  g.font = `${Math.min(11, r.height - 1.5)}px ${MONO}`, g.textAlign = "right", g.fillStyle = paint.soft;
  if (r.kind === "cluster") {
    g.strokeStyle = paint.line, g.beginPath(), g.moveTo(26.5, r.y + 1), g.lineTo(23.5, r.y + 1), g.lineTo(23.5, r.y + r.height - 2), g.lineTo(26.5, r.y + r.height - 2), g.stroke();
    g.font = "11px " + MONO, g.fillText(r.name, 20, middle);
  } else if (r.kind === "title") {
    g.font = "600 12px system-ui, sans-serif", g.textAlign = "left", g.fillStyle = paint.text, g.fillText(r.name, 10, middle);
  } else if (r.kind === "core") {
    g.fillStyle = paint.faint, g.fillRect(LEFT - 39, r.y + 1, 34, r.height - 3);
    g.globalAlpha = .3, g.fillStyle = paint.accent, g.fillRect(LEFT - 39, r.y + 1, 34 * Math.min(1, r.busy), r.height - 3), g.globalAlpha = 1;
    g.fillStyle = paint.soft, g.fillText(Math.round(100 * r.busy) + "%", LEFT - 8, middle);
    g.fillStyle = paint.text, g.fillText(r.name, LEFT - 44, middle);
  } else if (r.kind === "counter") {
    const c = r.counter, top = Math.max(...c.value);
    g.fillStyle = paint.text, g.font = "11px " + MONO, g.fillText(r.name.replace(" entries", ""), LEFT - 8, r.y + 11);
    if (r.height < 40) return;
    g.fillStyle = paint.soft, g.font = "10px " + MONO, g.fillText("max " + short(top), LEFT - 8, r.y + 25);
    if (c.limit) g.fillText("of " + short(c.limit), LEFT - 8, r.y + 36);
  } else {
    g.fillStyle = paint.text, g.fillText(r.name, LEFT - 8, middle);
  }
}

const faded = n => (view.func >= 0 && T.func[n] !== view.func) || (view.found && !view.found.has(n));

// How many of a list, sorted by start, start before a time; the first that may be seen, and the one after the last.
function before(list, starts, t) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    starts[list[middle]] < t ? low = middle + 1 : high = middle;
  }
  return low;
}
const first = (list, starts) => Math.max(0, before(list, starts, view.from) - 1);
const after = (list, starts) => before(list, starts, view.to + 1);

function bars(g, r, list, starts, ends, colour, words, fade) {
  const y = r.y + .5, h = r.height - 2, begin = first(list, starts), seen = after(list, starts) - begin;
  if (seen * 4 > width - LEFT) return dense(g, y, h, list, begin, starts, ends, colour, fade);
  g.font = `${Math.min(10.5, h - 1)}px ${MONO}`, g.textAlign = "left";
  for (let k = begin; k < begin + seen; k++) {
    const n = list[k], a = Math.max(LEFT - 2, x(starts[n])), b = Math.min(width, x(ends[n])), dim = fade && fade(n);
    if (b < LEFT) continue;
    g.globalAlpha = dim ? .18 : 1, g.fillStyle = paint[colour(n)];
    g.fillRect(a, y, Math.max(.7, b - a - (b - a > 4 ? .6 : 0)), h);
    if (b - a > 26 && h >= 9) {
      const room = Math.floor((b - Math.max(a, LEFT) - 6) / 6.4), text = words(n).find(w => w.length <= room);
      if (text) g.globalAlpha = dim ? .4 : 1, g.fillStyle = paint.text, g.fillText(text, Math.max(a, LEFT) + 3, y + h / 2 + .5);
    }
  }
  g.globalAlpha = 1;
}

// A lane as one row of pixels, stretched to its height.
function dense(g, y, h, list, begin, starts, ends, colour, fade) {
  const wide = Math.round((width - LEFT - RIGHT) * (devicePixelRatio || 1)), scale = wide / (view.to - view.from), back = mix.plot;
  const ink = new Float32Array(wide * 4); // red, green, blue, share
  for (let k = begin; k < list.length && starts[list[k]] <= view.to; k++) {
    const n = list[k], a = Math.max(0, (starts[n] - view.from) * scale), b = Math.min(wide, (ends[n] - view.from) * scale), c = mix[colour(n)], strong = fade && fade(n) ? .18 : 1;
    for (let p = Math.floor(a); p < Math.min(wide, Math.max(b, Math.floor(a) + 1)); p++) {
      const part = strong * Math.max(.02, Math.min(b, p + 1) - Math.max(a, p));
      ink[4 * p] += part * c[0], ink[4 * p + 1] += part * c[1], ink[4 * p + 2] += part * c[2], ink[4 * p + 3] += part;
    }
  }
  const image = new ImageData(wide, 1);
  for (let p = 0; p < wide; p++) {
    const all = ink[4 * p + 3], part = all ? Math.max(.15, Math.min(1, all)) : 0;
    for (let k = 0; k < 3; k++) image.data[4 * p + k] = (all ? ink[4 * p + k] / all * part : 0) + (1 - part) * back[k];
    image.data[4 * p + 3] = 255;
  }
  strip.width = wide, strip.height = 1, strip.getContext("2d").putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false, g.drawImage(strip, LEFT, y, width - LEFT - RIGHT, h), g.imageSmoothingEnabled = true;
}

function paintCore(g, r) {
  const list = r.list, middle = r.y + r.height / 2 - 2;
  g.fillStyle = paint.soft, g.globalAlpha = .45;
  if ((view.to - view.from) / (width - LEFT) < 400) for (let k = first(list, start); k < list.length && start[list[k]] <= view.to; k++) {
    const n = list[k], a = x(dispatch[n]), b = x(start[n]), c = x(end[n]), d = x(finish[n]);
    if (b - a > .7) g.fillRect(a, middle, b - a, 3);
    if (d - c > .7) g.fillRect(c, middle, d - c, 3);
  }
  g.globalAlpha = 1;
  bars(g, r, list, start, end, n => "f" + T.func[n], n => [label(n), "#" + T.task_id[n]], view.func >= 0 || view.found ? faded : null);
}

function paintPath(g, r) {
  for (const [n, since, ...parts] of data.path) {
    let at = since;
    parts.forEach((length, k) => {
      const a = x(at), b = x(at + length);
      if (length && b > LEFT && a < width) g.fillStyle = paint["part-" + data.parts[k]], g.fillRect(a, r.y + 1, Math.max(.6, b - a), r.height - 3);
      if (data.parts[k] === "execution" && b - a > 26) {
        g.fillStyle = paint.text, g.font = "10.5px " + MONO, g.textAlign = "left";
        const room = Math.floor((b - Math.max(a, LEFT) - 6) / 6.4), text = [label(n), "#" + T.task_id[n]].find(w => w.length <= room);
        if (text) g.fillText(text, Math.max(a, LEFT) + 3, r.y + r.height / 2);
      }
      at += length;
    });
  }
}

function paintCounter(g, r) {
  const {time: times, value, limit} = r.counter, top = Math.max(1, limit && limit < 4 * Math.max(...value) ? limit : Math.max(...value)), base = r.y + r.height - 3;
  const y = v => base - v / top * (r.height - 8);
  let k = Math.max(0, times.findIndex(t => t >= view.from) - 1);
  g.fillStyle = paint.plot, g.fillRect(LEFT, r.y, width - LEFT - RIGHT, r.height - 2);
  g.beginPath(), g.moveTo(x(times[k]), base);
  for (let last = 0; k < times.length; k++) {
    const px = x(times[k]);
    g.lineTo(px, y(last)), g.lineTo(px, y(value[k])), last = value[k];
    if (times[k] > view.to) break;
  }
  g.lineTo(Math.min(x(times[Math.min(k, times.length - 1)]), width), base), g.closePath();
  g.globalAlpha = .25, g.fillStyle = paint.accent, g.fill(), g.globalAlpha = 1, g.strokeStyle = paint.accent, g.lineWidth = 1, g.stroke();
  if (limit && top === limit) g.strokeStyle = paint.bad, g.beginPath(), g.moveTo(LEFT, y(limit) + .5), g.lineTo(width, y(limit) + .5), g.stroke();
}

const place = n => rowOf[n] < 0 ? null : rows[rowOf[n]];

// Frames around marked tasks, and lines from one to the next.
function paintMarks(g) {
  const list = order[view.mark];
  g.strokeStyle = paint.bad, g.lineWidth = 1;
  let last = null;
  const room = (width - LEFT) / Math.max(1, list.length);
  for (const n of list) {
    const r = place(n);
    if (!r) { last = null; continue; }
    const a = x(start[n]), b = Math.max(a + 2, x(end[n])), y = r.y + r.height / 2;
    if (last && a > LEFT && last[0] < width) {
      g.globalAlpha = room > 6 || a - last[0] > 6 ? .75 : .25, g.beginPath(), g.moveTo(last[0], last[1]), g.lineTo(a, y), g.stroke();
    }
    if (b > LEFT && a < width) g.globalAlpha = 1, g.lineWidth = b - a > 4 ? 2 : 1.5, g.strokeRect(a + .5, r.y, b - a - 1, r.height - 1), g.lineWidth = 1;
    last = [b, y];
  }
  g.globalAlpha = 1;
}

function arrow(g, e, strong) {
  const a = data.links.pred[e], b = data.links.succ[e], from = place(a), to = place(b);
  if (!from || !to) return;
  const x0 = x(end[a]), x1 = x(start[b]), y0 = from.y + from.height / 2, y1 = to.y + to.height / 2, kind = data.links.kind[e];
  if (Math.max(x0, x1) < LEFT - 400 || Math.min(x0, x1) > width + 400) return;
  const bend = Math.max(14, Math.min(90, Math.abs(x1 - x0) / 2));
  g.strokeStyle = g.fillStyle = paint[KIND[kind] ?? "soft"], g.globalAlpha = strong ? 1 : .35, g.lineWidth = strong ? 1.6 : 1;
  g.setLineDash(DASH[kind] ?? []);
  g.beginPath(), g.moveTo(x0, y0), g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1), g.stroke();
  g.setLineDash([]);
  if (strong) g.beginPath(), g.moveTo(x1, y1), g.lineTo(x1 - 7, y1 - 3.5), g.lineTo(x1 - 7, y1 + 3.5), g.fill();
  g.globalAlpha = 1, g.lineWidth = 1;
}

function paintArrows(g) {
  if (view.arrows === "all") {
    let drawn = 0;
    for (let e = 0; e < data.links.pred.length && drawn < 4000; e++)
      if (end[data.links.pred[e]] <= view.to && start[data.links.succ[e]] >= view.from) arrow(g, e, false), drawn++;
  }
  for (const n of new Set([view.chosen, view.hover])) {
    const r = n >= 0 && place(n);
    if (!r) continue;
    for (const e of [...preds[n], ...succs[n]].slice(0, 600)) arrow(g, e, true);
    g.strokeStyle = paint.text, g.lineWidth = n === view.chosen ? 2.5 : 1.5;
    g.strokeRect(x(start[n]) - .5, r.y - .5, Math.max(3, x(end[n]) - x(start[n])) + 1, r.height), g.lineWidth = 1;
  }
}
