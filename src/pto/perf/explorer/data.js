// What the page is made of: runs as columns of numbers, and their lanes as one list of rows.
const $ = id => document.getElementById(id), root = document.documentElement, VIEW = root.dataset.view;
const runs = JSON.parse($("data").textContent);
const REASONS = runs[0].reasons, TICK = runs[0].tick, UNIT = runs[0].unit ?? "us";
const LEFT = VIEW === "tasks" ? 142 : 128, HEAD = 17;

// `html` escapes every value that is not itself made by `html` (or a list of such), and only `fill` parses markup: the
// Content Security Policy of the page forbids every other way. So no name of a program is parsed as markup.
class Markup {
  constructor(text) { this.text = text; }
  toString() { throw new TypeError("expected text, got markup"); }
}
const trusted = window.trustedTypes?.createPolicy("pto", {createHTML: text => text}) ?? {createHTML: text => text};
const ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
const piece = v => v instanceof Markup ? v.text : Array.isArray(v) ? v.map(piece).join("") : String(v ?? "").replace(/[&<>"']/g, c => ENTITIES[c]);
const html = (words, ...values) => new Markup(words.reduce((out, w, n) => out + piece(values[n - 1]) + w));
const listed = list => list.map((m, n) => n ? html`, ${m}` : m);
const fill = (element, markup) => {
  if (!(markup instanceof Markup)) throw new TypeError("expected markup");
  element.innerHTML = trusted.createHTML(markup.text);
};
const variable = name => /^--[\w-]+$/.test(name) ? `var(${name}, var(--pipe-other))` : "var(--pipe-other)";

const inflated = async text => {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};
const unpack = async text => {
  const column = new Int32Array(await inflated(text));
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
  return column;
};
const columns = async table => Object.fromEntries(await Promise.all(
  Object.entries(table).map(async ([name, text]) => [name, await unpack(text)])));
const us = t => t * TICK / 1000, ticksOf = v => v * 1000 / TICK;

// The first entry of each lane in a column of lanes that is sorted.
const firsts = (lane, count) => {
  const first = new Int32Array(count + 1).fill(-1);
  for (let i = lane.length - 1; i >= 0; i--) first[lane[i]] = i;
  first[count] = lane.length;
  for (let l = count - 1; l >= 0; l--) if (first[l] < 0) first[l] = first[l + 1];
  return first;
};

const rows = [];  // what is drawn below each other: headings, lanes, curves
let end = 0, begin = Infinity;
for (const [r, run] of runs.entries()) {
  run.ev = await columns(run.events), run.gap = await columns(run.gaps);
  if (run.tick !== TICK)  // of another machine, or much longer
    for (const [of, name] of [["ev", "start"], ["ev", "free"], ["ev", "done"], ["gap", "from"], ["gap", "to"]])
      run[of][name] = Float64Array.from(run[of][name], t => t * run.tick / TICK);
  const {lane, start, done} = run.ev, n = lane.length;
  run.sum = new Float64Array(n + 1);  // busy time up to an event, lane after lane
  for (let i = 0, last = -1, until = 0; i < n; i++) {
    if (lane[i] !== last) last = lane[i], until = 0;
    run.sum[i + 1] = run.sum[i] + Math.max(0, done[i] - Math.max(start[i], until));
    until = Math.max(until, done[i]);
  }
  run.first = firsts(lane, run.lanes.length), run.gfirst = firsts(run.gap.lane, run.lanes.length);
  run.onpath = new Uint8Array(n);
  for (const e of run.ev.path) run.onpath[e] = 1;
  run.letter = runs.length > 1 ? String.fromCharCode(65 + r) + ": " : "";
  end = Math.max(end, ticksOf(run.total)), begin = Math.min(begin, ticksOf(run.begin));
}
let arrange = () => {  // those of other views do it their way
  rows.length = 0;
  for (const run of runs) {
    let core = -1;
    run.lanes.forEach((l, i) => {
      if (l.core !== core) rows.push({run, head: run.letter + (run.cores[l.core] || "core"), core: l.core}), core = l.core;
      rows.push({run, lane: i, core: l.core, pipe: l.pipe});
    });
  }
};
// Few lanes are high ones; what they leave is for memory.
let height = 0, LANE = 17, ownRoom = 0;
const layout = () => {
  const fixed = rows.filter(r => r.head || r.high), taken = fixed.reduce((sum, r) => sum + (r.high ?? HEAD), 0), lanes = Math.max(1, rows.length - fixed.length);
  const most = memoryOpen ? 20 : 34, least = VIEW === "tasks" ? 13 : 17;
  if (VIEW !== "tasks") {
    const whole = $("scroll").clientHeight + $("store").clientHeight, left = whole - taken - lanes * most - 34;
    const room = ownRoom || (memoryOpen ? Math.max(0.62 * whole, left) : Math.max(0.25 * whole, Math.min(0.5 * whole, left)));
    $("store").style.height = Math.min(whole - 90, room) + "px";
  }
  LANE = Math.max(least, Math.min(most, Math.floor(($("scroll").clientHeight - 30 - taken) / lanes)));
  height = 0;
  for (const row of rows) row.y = height, row.h = row.high ?? (row.head ? HEAD : LANE), height += row.h;
};
end = Math.max(end, begin + ticksOf(0.1));  // a kernel that does nothing has an axis, too
const margin = VIEW === "kernel" ? (end - begin) * 0.01 : 0, all = [Math.max(0, begin - margin), end + margin];
let [from, to] = all, range = null, picked = null, hover = null, lit = null, showPath = false, core = 0, ofRun = runs[0];
