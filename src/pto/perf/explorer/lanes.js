// Lanes are columns of numbers, sorted by time: what is visible is found by bisection and drawn event by event, or,
// where a pixel holds many, as the share of it that was at work (sums up to every event are kept). So the cost of a
// frame is that of its pixels, not of its events.
// -- colours and canvases -------------------------------------------------------------------------------------
const css = {};
const colour = name => css[name] ??= (() => {
  const probe = document.createElement("i");
  probe.style.color = variable(name), document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
})();
const sized = canvas => {
  const box = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
  const w = Math.round(box.width * ratio), h = Math.round(box.height * ratio);
  if (canvas.width !== w || canvas.height !== h) canvas.width = w, canvas.height = h;
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0), c.clearRect(0, 0, box.width, box.height);
  c.font = "11px system-ui, sans-serif", c.textBaseline = "middle";
  return [c, box.width, box.height];
};
const bisect = (column, value, low, high) => {  // the first in low..high that is above value
  while (low < high) { const m = (low + high) >> 1; if (column[m] > value) high = m; else low = m + 1; }
  return low;
};
const short = v => UNIT === "step" ? `${+v.toFixed(1)} step${v === 1 ? "" : "s"}` : v >= 1e6 ? (v / 1e6).toFixed(2) + " s" : v >= 1000 ? (v / 1000).toFixed(2) + " ms" : v >= 1 ? v.toFixed(2) + " us" : (v * 1000).toFixed(1) + " ns";
const amount = v => v >= 1e9 ? (v / 1e9).toFixed(2) + " G" : v >= 1e6 ? (v / 1e6).toFixed(2) + " M" : v >= 1e3 ? (v / 1e3).toFixed(1) + " k" : v + " ";

// Names as the source spells them.
const named = (run, name) => (run.spelled ??= Object.keys(run.sources).some(f => /\.(cpp|cc|cxx|h|hpp|cce)$/.test(f)) ? "C++" : "program") === "C++" ? name.replace(/^%/, "") : name.startsWith("%") ? name : "%" + name;

// Busy time of a lane up to a moment.
const busyUntil = (run, lane, t) => {
  const a = run.first[lane], b = run.first[lane + 1], i = bisect(run.ev.start, t, a, b);
  if (i === a) return 0;
  const before = run.sum[i] - run.sum[a];
  return before - Math.max(0, run.ev.done[i - 1] - Math.max(t, run.ev.start[i - 1]));
};

let asked = false;
const draw = () => { if (!asked) asked = true, requestAnimationFrame(() => { asked = false, drawOver(), drawLanes(), drawMemory(); }); };
const span = w => w - LEFT - 8, px = (t, w) => LEFT + (t - from) / (to - from) * span(w), at = (x, w) => from + (x - LEFT) / span(w) * (to - from);

function ticks(c, w, h, top) {
  const per = us(to - from) / Math.max(2, span(w) / 110);
  let step = [1, 2, 5].map(k => k * 10 ** Math.floor(Math.log10(per))).find(s => s >= per) ?? 10 ** Math.ceil(Math.log10(per));
  if (UNIT === "step") step = Math.max(1, step);
  c.fillStyle = colour("--soft"), c.strokeStyle = colour("--faint"), c.lineWidth = 1;
  const [scale, unit] = UNIT === "step" ? [1, ""] : us(to) > 2e6 ? [1e6, " s"] : us(to) > 2e3 ? [1e3, " ms"] : [1, " us"];
  for (let u = Math.ceil(us(from) / step) * step; ; u += step) {
    const x = px(ticksOf(u), w);
    if (x > w - 8) break;
    c.beginPath(), c.moveTo(x, top), c.lineTo(x, h), c.stroke();
    if (top && x < w - 44) c.fillText(+(u / scale).toFixed(4) + unit, x + 3, top - 7);
  }
}

function drawLanes() {
  const scroll = $("scroll"), canvas = $("lanes");
  layout();
  canvas.style.height = scroll.clientHeight + "px";
  $("spacer").style.height = Math.max(height + 22, scroll.clientHeight) + "px";
  const [c, w, h] = sized(canvas), top = scroll.scrollTop;
  ticks(c, w, h, 18);
  if (range) {
    c.fillStyle = colour("--accent"), c.globalAlpha = 0.12;
    c.fillRect(px(range[0], w), 18, px(range[1], w) - px(range[0], w), h), c.globalAlpha = 1;
  }
  c.save(), c.beginPath(), c.rect(0, 18, w, h), c.clip();
  for (const row of rows) {
    const y = row.y - top + 20;
    if (y + row.h < 18 || y > h) continue;
    if (row.curve) { drawCurve(c, row, y, w); continue; }
    if (row.lane === undefined && !row.head) continue;  // a little room
    if (row.head) { c.fillStyle = colour("--text"), c.font = "600 11px system-ui, sans-serif", c.fillText(row.head, 8, y + 8), c.font = "11px system-ui, sans-serif"; continue; }
    drawLane(c, row, y, w);
  }
  if (VIEW === "tasks") drawLinks(c, w, top);
  else if (picked) arrow(c, w, top);
  c.restore();
}

function drawLane(c, row, y, w) {
  const {run, lane} = row, {start, free, done, site} = run.ev, a = run.first[lane], b = run.first[lane + 1];
  const share = (busyUntil(run, lane, to) - busyUntil(run, lane, from)) / (to - from), small = LANE < 15;
  if (small) c.font = "10px system-ui, sans-serif";
  c.fillStyle = colour("--soft"), c.fillText(row.pipe, VIEW === "tasks" ? 8 : 20, y + LANE / 2), c.textAlign = "right";
  if (row.core >= 0) c.fillText(Math.round(share * 100) + " %", LEFT - 22, y + LANE / 2);
  c.textAlign = "left";
  c.fillStyle = colour("--faint"), c.fillRect(LEFT, y + LANE - 3, span(w), 1);
  const low = Math.max(a, bisect(start, from, a, b) - 1), high = bisect(start, to, a, b), base = colour("--pipe-" + row.pipe), tasks = VIEW === "tasks", bar = LANE - (tasks ? 3 : 7);
  // stalls: below what is at work
  const {from: gf, to: gt, why} = run.gap, ga = run.gfirst[lane], gb = run.gfirst[lane + 1];
  const glow = Math.max(ga, bisect(gf, from, ga, gb) - 1), ghigh = bisect(gf, to, ga, gb);
  let covered = -1;
  const under = tasks ? y + LANE / 2 - 2 : y + LANE - 6;
  c.globalAlpha = 0.75;
  if (ghigh - glow > 0.7 * span(w)) {  // many: what is in the middle of a column of pixels
    let g = glow;
    runsOf(span(w), x => {
      const t = at(LEFT + x + 0.5, w);
      g = Math.max(glow, bisect(gf, t, g, ghigh) - 1);
      return gf[g] <= t && gt[g] >= t ? why[g] : -1;
    }, (a, b, reason) => { if (reason >= 0) c.fillStyle = colour("--why-" + reason), c.fillRect(LEFT + a, under, b - a, 3); });
  } else for (let i = glow; i < ghigh; i++) {
    const x = Math.max(LEFT, px(gf[i], w)), x1 = Math.min(w - 8, px(gt[i], w));
    if (x1 - x < 0.3 && x1 < covered) continue;
    c.fillStyle = colour("--why-" + why[i]), c.fillRect(x, under, Math.max(0.7, x1 - x), 3), covered = Math.max(covered, x1);
  }
  c.globalAlpha = 1;
  if (tasks && high - low > span(w) / 4) { mixed(c, row, w, y + 1, bar); return; }
  if (high - low > 0.7 * span(w) && !lit?.sites && !showPath || high - low > 6 * span(w)) {  // a column of pixels is the share of it that was at work
    shares(c, row, base, from, to, w, y + 1, LANE - 7);
    return;
  }
  covered = -1;
  for (let i = low; i < high; i++) {
    const x = Math.max(LEFT, px(start[i], w)), x1 = Math.min(w - 8, px(done[i], w)), f = Math.min(w - 8, px(free[i], w));
    if (x1 < LEFT || (x1 < covered && x1 - x < 0.5)) continue;
    const dim = dimmed(run, i) || (showPath && !run.onpath[i]);
    c.fillStyle = tasks ? colour(run.sites[site[i]][3]) : base, c.globalAlpha = dim ? 0.22 : 1, c.fillRect(x, y + 1, Math.max(0.8, f - x - (tasks && f - x > 4 ? 0.6 : 0)), bar);
    if (x1 > f) c.globalAlpha *= 0.45, c.fillRect(Math.max(f, LEFT), y + 1, x1 - Math.max(f, LEFT), bar);  // under way, the pipe is free
    c.globalAlpha = 1, covered = Math.max(covered, x1);
    if (showPath && run.onpath[i]) c.strokeStyle = colour("--bad"), c.strokeRect(x + 0.5, y + 1.5, Math.max(1, x1 - x - 1), bar - 1);
    if (picked && picked.run === run && picked.e === i || hover && hover.run === run && hover.e === i)
      c.strokeStyle = colour("--text"), c.lineWidth = tasks && picked?.e === i ? 2.5 : 1.5, c.strokeRect(x, y + 1, Math.max(1.5, x1 - x), bar), c.lineWidth = 1;
    if (x1 - x < 20 || dim || LANE < 12) continue;
    const name = run.sites[site[i]][0], words = tasks && run.ev.task[i] >= 0 ? [labelOf(run.ev.task[i]), "#" + run.ids[run.ev.task[i]]] : [name], room = (i + 1 < b ? Math.min(x1, px(start[i + 1], w)) : x1) - x - 5;
    const fits = words.find(t => t.length * (small ? 5.6 : 6.2) < room);
    if (fits) c.fillStyle = colour("--text"), c.fillText(fits, x + 3, y + (tasks ? bar + 2 : LANE - 5) / 2);
  }
  c.font = "11px system-ui, sans-serif";
}
const dimmed = (run, i) => lit !== null && (lit.sites && !(lit.run === run && lit.sites.has(run.ev.site[i])) || lit.events && !lit.events.has(i));

// Neighbours of the same value, together.
function runsOf(count, value, does) {
  let began = 0, last = value(0);
  for (let x = 1; x < count; x++) { const now = value(x); if (now !== last) does(began, x, last), began = x, last = now; }
  does(began, count, last);
}
// The share of every column of pixels in which a lane was at work, in twelve steps.
function shares(c, row, base, a, b, w, y, h) {
  c.fillStyle = base;
  let before = busyUntil(row.run, row.lane, a);
  const per = (b - a) / span(w);
  runsOf(Math.floor(span(w)), x => {
    const now = busyUntil(row.run, row.lane, a + (x + 1) * per), part = (now - before) / per;
    before = now;
    return part > 0.01 ? Math.max(1, Math.round(Math.min(1, part) * 12)) : 0;
  }, (x, x1, part) => { if (part) c.globalAlpha = 0.12 + 0.88 * part / 12, c.fillRect(LEFT + x, y, x1 - x, h); });
  c.globalAlpha = 1;
}

const place = (run, e, w, top) => {
  const row = rows.find(r => r.run === run && r.lane === run.ev.lane[e]);
  return row && [px(run.ev.start[e], w), row.y - top + 20 + LANE / 2, px(run.ev.done[e], w)];
};
function arrow(c, w, top) {  // from whom the picked one waited for
  const {run, e} = picked, gap = gapOf(run, e);
  if (gap === null || run.gap.of[gap] < 0) return;
  const a = place(run, run.gap.of[gap], w, top), b = place(run, e, w, top);
  if (!a || !b) return;
  c.strokeStyle = colour("--why-" + run.gap.why[gap]), c.lineWidth = 1.5, c.beginPath(), c.moveTo(a[2], a[1]);
  c.bezierCurveTo(a[2] + 20, a[1], b[0] - 20, b[1], b[0], b[1]), c.stroke();
  c.beginPath(), c.moveTo(b[0], b[1]), c.lineTo(b[0] - 6, b[1] - 3), c.lineTo(b[0] - 6, b[1] + 3), c.fillStyle = c.strokeStyle, c.fill(), c.lineWidth = 1;
}
const gapOf = (run, e) => {
  const lane = run.ev.lane[e], a = run.gfirst[lane], b = run.gfirst[lane + 1];
  for (let i = bisect(run.gap.from, run.ev.start[e], a, b) - 1; i >= a && i >= 0; i--) {
    if (run.gap.event[i] === e && run.gap.why[i] !== REASONS.indexOf("bandwidth")) return i;
    if (run.gap.to[i] < run.ev.start[e] - 1) break;
  }
  return null;
};

function drawOver() {  // pipes of the chosen core, over all of the time
  if (VIEW === "tasks") { drawRunning(); return; }
  const [c, w, h] = sized($("over")), full = t => LEFT + (t - all[0]) / (all[1] - all[0]) * span(w);
  const mine = rows.filter(r => !r.head && r.run === ofRun && r.core === core), each = Math.min(8, (h - 10) / Math.max(1, mine.length));
  c.fillStyle = colour("--soft"), c.fillText(ofRun.letter + ofRun.cores[core].slice(0, 18), 8, h / 2);
  mine.forEach((row, n) => {
    shares(c, row, colour("--pipe-" + row.pipe), all[0], all[1], w, 5 + n * each, Math.max(1, each - 1));
  });
  windowOver(c, w, h, full);
}
function windowOver(c, w, h, full) {
  c.globalAlpha = 0.5, c.fillStyle = colour("--page"), c.fillRect(LEFT, 0, full(from) - LEFT, h), c.fillRect(full(to), 0, w - full(to), h);
  c.globalAlpha = 1, c.strokeStyle = colour("--accent"), c.strokeRect(full(from) + 0.5, 0.5, Math.max(2, full(to) - full(from)), h - 1);
}
