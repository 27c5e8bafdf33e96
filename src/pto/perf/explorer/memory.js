// -- on-chip memory of a core: which tile holds a value in which bytes, and when ----------------------------------
// A tile is pale from its first to its last use, and solid while it holds a value: from the instruction that writes
// it to the last one that reads it. A recorded map says which; otherwise it follows from what instructions touch.
let scaleMode = "fit", memoryOpen = VIEW === "memory";
for (const run of runs) for (const map of Object.values(run.maps ?? {})) {
  if (map.steps) map.steps = await unpack(map.steps);
  for (const space of map.spaces) for (const l of space.lives) l.values = await unpack(l.values);
}
const spacesKnown = new Map();
function spacesOf(run, wanted) {
  const key = run.letter + wanted;
  if (!spacesKnown.has(key)) {
    const found = run.maps?.[wanted] ? mapped(run, run.maps[wanted]) : touching(run, wanted), hues = new Map();
    const order = Object.keys(run.titles ?? {});
    found.sort((a, b) => order.indexOf(a.space) - order.indexOf(b.space));
    for (const s of found) {
      for (const l of s.lives) l.hue = hues.get(l.name) ?? hues.set(l.name, hues.size % 8).get(l.name), l.of = s, l.longest = l.to.reduce((most, t, i) => Math.max(most, t - l.from[i]), 1);
      s.edges = [...new Set(s.lives.flatMap(l => [l.low, l.high]))].sort((a, b) => a - b);
      s.alive = aliveOver(s);
    }
    spacesKnown.set(key, found);
  }
  return spacesKnown.get(key);
}
// Tiles that the program did not place lie below each other, apart from the others.
function apart(spaces) {
  return spaces.flatMap(s => {
    const placed = s.lives.filter(l => l.placed !== false), loose = s.lives.filter(l => l.placed === false);
    let at = 0;
    for (const l of loose) l.size = l.high - l.low, l.low = at, l.high = at += l.size;
    const rest = loose.length ? [{...s, title: s.title + ", not placed", lives: loose, overlaps: [], problems: [], top: at, capacity: 0, loose: true}] : [];
    return placed.length ? [{...s, lives: placed}, ...rest] : rest;
  });
}
function mapped(run, map) {
  const {start, done} = run.ev;
  const first = code => UNIT === "step" ? code : start[map.steps[code >> 1]] ?? 0, last = code => UNIT === "step" ? code + 1 : done[map.steps[code >> 1]] ?? 0;
  for (const s of map.spaces) for (const l of s.lives) {
    const n = l.values.length / 2;
    l.from = new Float64Array(n), l.to = new Float64Array(n), l.events = new Int32Array(n).fill(-1);
    for (let i = 0; i < n; i++) {
      l.from[i] = first(l.values[2 * i]), l.to[i] = Math.max(last(l.values[2 * i + 1]), l.from[i] + 1);
      l.events[i] = map.steps[l.values[2 * i] >> 1] ?? -1;
    }
  }
  const spaces = map.spaces.map(s => ({...s, overlaps: s.overlaps.map(([a, b, low, high, spans]) => ({a: s.lives[a], b: s.lives[b], low, high, from: spans.filter((_, i) => !(i % 2)), to: spans.filter((_, i) => i % 2)}))}));
  for (const s of spaces) for (const o of s.overlaps) {  // steps as times: the middle of one is when it has read and will write
    if (UNIT === "step") { o.from = o.from.map(t => 2 * t), o.to = o.to.map(t => 2 * t); continue; }
    const pairs = [];  // what both hold at the same time on the machine
    for (let i = 0; i < o.a.from.length && pairs.length < 500; i++) for (let k = Math.max(0, bisect(o.b.to, o.a.from[i], 0, o.b.to.length) - 1); k < o.b.from.length && o.b.from[k] < o.a.to[i]; k++)
      if (o.b.to[k] > o.a.from[i]) pairs.push([Math.max(o.a.from[i], o.b.from[k]), Math.min(o.a.to[i], o.b.to[k])]);
    o.from = pairs.map(p => p[0]), o.to = pairs.map(p => p[1]);
  }
  return apart(spaces);
}
function touching(run, wanted) {
  const events = [], found = new Map();
  run.lanes.forEach((l, i) => { if (l.core === wanted) for (let e = run.first[i]; e < run.first[i + 1]; e++) if (run.ev.touched[e]) events.push(e); });
  events.sort((a, b) => run.ev.start[a] - run.ev.start[b]);
  for (const e of events) {
    const ranges = run.ranges[run.ev.touched[e]].filter(r => !r[0].startsWith("gm")), [start, done] = [run.ev.start[e], run.ev.done[e]];
    const [op, line] = run.sites[run.ev.site[e]];
    for (const [space, low, high, write, name] of ranges) {
      const key = `${space} ${low} ${high}`;
      let l = found.get(key);
      if (!l) found.set(key, l = {space, name, shape: `${high - low} bytes`, low, high, view: [], line, writes: 0, reads: 0, count: new Map(), spans: [], written: -1});
      const use = `${op}\0${line}\0${write}`;
      l.count.set(use, (l.count.get(use) ?? 0) + 1), write ? l.writes++ : l.reads++;
      const inPlace = ranges.some(r => !r[3] && r[0] === space && r[1] === low && r[2] === high), last = l.spans[l.spans.length - 1];
      if (write && !(inPlace && last)) l.spans.push([start, done, e]);
      else if (last) last[1] = Math.max(last[1], done);
      if (write) l.written = start;
      else if (!last) {  // other bytes that hold it: it is a view of them
        const source = [...found.values()].filter(o => o !== l && o.space === space && o.low < high && low < o.high && o.spans.length).sort((a, b) => b.written - a.written)[0];
        if (source) source.spans[source.spans.length - 1][1] = Math.max(source.spans[source.spans.length - 1][1], done), l.view.push(source.name);
        l.spans.push([start, done, e]);
      }
    }
  }
  const spaces = new Map();
  for (const l of found.values()) {
    l.from = Float64Array.from(l.spans, s => s[0]), l.to = Float64Array.from(l.spans, s => s[1]), l.events = Int32Array.from(l.spans, s => s[2]);
    l.uses = [...l.count].slice(0, 12).map(([k, n]) => { const [op, line, write] = k.split("\0"); return [op, +line, +write, n]; }), l.more = Math.max(0, l.count.size - 12);
    const capacity = run.capacity[l.space] ?? 0;
    if (!spaces.has(l.space)) spaces.set(l.space, {space: l.space, title: run.titles?.[l.space] ?? l.space, capacity, top: 0, lives: [], overlaps: [], problems: []});
    const s = spaces.get(l.space);
    l.placed = !capacity || l.low < capacity, s.lives.push(l), s.top = Math.max(s.top, l.high);
  }
  return apart([...spaces.values()]);
}
// Bytes that hold a value over time, those of several tiles once: [times, bytes].
function aliveOver(s) {
  const marks = [], {edges} = s, live = new Int32Array(edges.length), place = new Map(edges.map((e, i) => [e, i]));
  // a step that ends one value and begins another holds both
  const low = t => UNIT === "step" ? t - t % 2 : t, high = t => UNIT === "step" ? t + t % 2 : t;
  for (const l of s.lives) if (!l.view.length) for (let i = 0; i < l.from.length; i++) marks.push([low(l.from[i]), 1, l], [high(l.to[i]), -1, l]);
  marks.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const times = [], bytes = [];
  let now = 0;
  for (const [t, by, l] of marks) {
    for (let i = place.get(l.low); i < place.get(l.high); i++) {
      const was = live[i] > 0;
      live[i] += by;
      if (was !== live[i] > 0) now += (live[i] > 0 ? 1 : -1) * (edges[i + 1] - edges[i]);
    }
    if (times[times.length - 1] === t) bytes[bytes.length - 1] = now; else times.push(t), bytes.push(now);
  }
  return {times: Float64Array.from(times), bytes, peak: bytes.reduce((a, b) => Math.max(a, b), 0)};
}
const size = b => b < 1024 ? b + " B" : +(b / 1024).toFixed(1) + " KiB";

// From addresses to heights: fitted gives every tile room for its name and squeezes what is free; the others are
// true to scale, up to the highest tile or to the capacity.
function scaleOf(s, mode, room) {
  const limit = Math.max(mode === "full" || mode === "fit" ? s.capacity : 0, s.top, ...s.lives.map(l => l.high), 1);
  if (mode !== "fit") return {height: room, y: a => room - Math.min(a, limit) / limit * room, limit, ticks: [0, limit], gaps: []};
  const edges = [...new Set([0, limit, ...s.edges])].sort((a, b) => a - b), pieces = [];
  const used = s.lives.reduce((sum, l) => sum + l.high - l.low, 0) || 1;
  for (let i = 0; i + 1 < edges.length; i++) {
    const here = s.lives.filter(l => l.low <= edges[i] && edges[i + 1] <= l.high).length;
    pieces.push([edges[i], edges[i + 1], here ? Math.max(here > 1 ? 26 : 17, 60 * (edges[i + 1] - edges[i]) / used) : edges[i + 1] === limit ? 16 : 9, here]);
  }
  const natural = pieces.reduce((sum, p) => sum + p[2], 0), factor = memoryOpen ? Math.max(1, Math.min(4, room / natural)) : room / natural, heights = pieces.map(p => p[2] * factor);
  const total = heights.reduce((a, b) => a + b, 0), tops = [total];
  heights.forEach(h => tops.push(tops[tops.length - 1] - h));
  const y = a => { const i = Math.max(0, Math.min(pieces.length - 1, bisect(edges, a, 0, edges.length) - 1)); return tops[i] - (Math.min(a, limit) - edges[i]) / (edges[i + 1] - edges[i]) * heights[i]; };
  return {height: total, y, limit, ticks: edges, gaps: pieces.filter(p => !p[3])};
}

function stripes(c) {
  const tile = document.createElement("canvas"), g = tile.getContext("2d");
  tile.width = tile.height = 8;
  g.strokeStyle = colour("--bad"), g.lineWidth = 2;
  for (const x of [-8, 0, 8]) g.beginPath(), g.moveTo(x, 8), g.lineTo(x + 8, 0), g.stroke();
  return c.createPattern(tile, "repeat");
}
let memoryRows = [];
function drawMemory() {
  const spaces = spacesOf(ofRun, core), holder = $("memory").parentElement, canvas = $("memory");
  const band = memoryOpen ? 30 : 0, room = holder.clientHeight - 4;
  if (!spaces.length) {
    canvas.style.height = room + "px";
    const [c] = sized(canvas);
    memoryRows = [], c.fillStyle = colour("--soft"), c.fillText("no tile was touched", LEFT + 8, room / 2);
    return;
  }
  const each = Math.max(memoryOpen ? 60 : 22, Math.floor(room / spaces.length) - band - (memoryOpen ? 12 : 4));
  const scales = spaces.map(s => scaleOf(s, memoryOpen ? scaleMode : "fit", each));
  canvas.style.height = Math.max(room, scales.reduce((sum, s) => sum + s.height + band + (memoryOpen ? 12 : 4), 0)) + "px";
  const [c, w, h] = sized(canvas);
  ticks(c, w, h, 0);
  memoryRows = [];
  let top = 3;
  spaces.forEach((s, n) => {
    const scale = scales[n];
    drawSpace(c, w, s, scale, top, band);
    memoryRows.push({s, scale, top, bottom: top + scale.height}), top += scale.height + band + (memoryOpen ? 12 : 4);
  });
}
function drawSpace(c, w, s, scale, top, band) {
  const right = w - 8, wide = right - LEFT, y = a => top + scale.y(a);
  c.fillStyle = colour("--panel"), c.fillRect(LEFT, top, wide, scale.height);
  if (memoryOpen) for (const [low, high] of scale.gaps) {
    c.fillStyle = colour("--plot"), c.fillRect(LEFT, y(high), wide, y(low) - y(high));
    if (y(low) - y(high) > 11) c.fillStyle = colour("--soft"), c.textAlign = "right", c.fillText(size(high - low) + " free", right - 6, (y(low) + y(high)) / 2), c.textAlign = "left";
  }
  c.save(), c.beginPath(), c.rect(LEFT, top, wide, scale.height), c.clip();
  const order = [...s.lives].sort((a, b) => a.view.length - b.view.length || (b.high - b.low) - (a.high - a.low)), labels = [];
  for (const l of order) {
    const x = Math.max(LEFT, px(l.from[0], w)), x1 = Math.min(right, px(Math.max(...l.to.slice(-3)), w)), a = y(l.high), hh = Math.max(1.5, y(l.low) - a - 1);
    if (x1 > x && !l.view.length) c.globalAlpha = 0.2, c.fillStyle = colour("--c" + l.hue), c.fillRect(x, a, x1 - x, hh), c.globalAlpha = 1;
  }
  for (const l of order) {
    const a = y(l.high), hh = Math.max(1.5, y(l.low) - a - 1), view = l.view.length > 0, mine = chosenLife?.life === l;
    let covered = -1, widest = null;
    for (let i = Math.max(0, bisect(l.from, from - l.longest, 0, l.from.length)); i < l.from.length && l.from[i] <= to; i++) {
      const x = Math.max(LEFT, px(l.from[i], w)), x1 = Math.min(right, Math.max(px(l.to[i], w), x + 0.8));
      if (l.to[i] < from || x1 < covered) continue;
      covered = x1;
      const chosen = mine && chosenLife.i === i || picked && picked.run === ofRun && l.events[i] >= 0 && picked.e === l.events[i];
      if (view) c.setLineDash([3, 2]), c.strokeStyle = colour("--text"), c.globalAlpha = 0.6, c.strokeRect(x + 1.5, a + 1.5, Math.max(1, x1 - x - 3), Math.max(1, hh - 3)), c.setLineDash([]), c.globalAlpha = 1;
      else c.fillStyle = colour("--c" + l.hue), c.globalAlpha = 0.92, c.fillRect(x, a, Math.max(0.8, x1 - x - (x1 - x > 3 ? 0.7 : 0)), hh), c.globalAlpha = 1;
      if (chosen) c.strokeStyle = colour("--text"), c.lineWidth = 1.5, c.strokeRect(x + 0.5, a + 0.5, Math.max(1.5, x1 - x - 1), hh - 1), c.lineWidth = 1;
      if (!widest || x1 - x > 1.2 * (widest[1] - widest[0])) widest = [x, x1];
    }
    if (!widest || hh < 9) continue;
    const words = [`${named(ofRun, l.name)} ${l.shape}`, named(ofRun, l.name)].find(t => t.length * 6.1 + 8 < widest[1] - widest[0]);
    const whole = [Math.max(LEFT, px(l.from[0], w)), Math.min(right, px(l.to[l.to.length - 1], w))];
    const place = words ? [widest[0], words] : named(ofRun, l.name).length * 6.1 + 8 < whole[1] - whole[0] && s.lives.every(o => o === l || o.high <= l.low || l.high <= o.low) ? [whole[0], named(ofRun, l.name)] : null;
    if (place) labels.push([place[0] + 4, view ? a + hh - 7 : hh > 30 ? a + 9 : a + hh / 2, place[1]]);
  }
  for (const o of s.overlaps) {
    const a = y(o.high), hh = Math.max(2, y(o.low) - a);
    c.fillStyle = stripes(c), c.strokeStyle = colour("--bad");
    o.from.forEach((t, i) => {
      const x = px(t, w), x1 = Math.max(x + 1.5, px(o.to[i], w));
      if (x1 < LEFT || x > right) return;
      c.fillRect(x, a, x1 - x, hh), c.strokeRect(x + 0.5, a + 0.5, x1 - x - 1, hh - 1);
    });
  }
  if (s.capacity && s.top > s.capacity) {
    c.fillStyle = colour("--bad"), c.globalAlpha = 0.25, c.fillRect(LEFT, y(s.top), wide, y(s.capacity) - y(s.top)), c.globalAlpha = 1, c.fillRect(LEFT, y(s.capacity), wide, 1.5);
    c.fillText(`capacity ${s.capacity}`, LEFT + 6, y(s.capacity) + 9);
  }
  c.fillStyle = colour("--text");
  const taken = [];
  for (const [x, yy, words] of labels.sort((a, b) => a[0] - b[0])) {
    const box = [x, yy - 6, x + words.length * 6.1, yy + 6];
    if (box[2] > right || taken.some(o => o[0] < box[2] && box[0] < o[2] && o[1] < box[3] && box[1] < o[3])) continue;
    taken.push(box), c.fillText(words, x, yy);
  }
  c.restore();
  // the gutter: name, capacity, addresses
  c.fillStyle = colour("--text"), c.font = "600 11px system-ui, sans-serif", c.fillText(s.title, 8, top + (scale.height > 26 ? 8 : scale.height / 2)), c.font = "11px system-ui, sans-serif";
  c.fillStyle = colour("--soft");
  if (s.capacity && scale.height > 26) c.fillText(size(s.capacity), 8, top + 22);
  if (memoryOpen && !s.loose) {
    let last = Infinity;
    c.textAlign = "right", c.font = "10px system-ui, sans-serif";
    for (const t of scale.ticks) { const at = Math.min(y(t), top + scale.height - 4); if (last - at >= 11 && at > top + (s.title.length > 6 ? 12 : -1)) c.fillText(t, LEFT - 5, Math.max(at, top + 5)), last = at; }
    c.textAlign = "left", c.font = "11px system-ui, sans-serif";
  }
  c.fillStyle = colour("--faint"), c.fillRect(LEFT, top + scale.height, wide, 1);
  if (!band) return;
  const base = top + scale.height + band - 2, {times, bytes, peak} = s.alive;
  c.fillStyle = colour("--soft"), c.fillText("alive", 8, base - 17), c.fillText(`peak ${size(peak)}`, 8, base - 5);
  c.beginPath(), c.moveTo(LEFT, base);
  const up = b => base - b / (peak || 1) * (band - 8);
  let i = Math.max(0, bisect(times, from, 0, times.length) - 1), level = 0;
  while (i < times.length && times[i] <= to) {  // the highest of every pixel
    const x = Math.max(LEFT, px(times[i], w));
    let most = bytes[i];
    for (i++; i < times.length && px(times[i], w) < x + 0.7; i++) most = Math.max(most, bytes[i]);
    c.lineTo(x, up(level)), c.lineTo(x, up(most)), level = bytes[i - 1];
  }
  c.lineTo(right, up(level)), c.lineTo(right, base), c.closePath();
  c.globalAlpha = 0.25, c.fillStyle = colour("--accent"), c.fill(), c.globalAlpha = 1, c.strokeStyle = colour("--accent"), c.stroke();
}

// The value under the pointer: the smallest tile there.
function memoryAt(ev) {
  const box = $("memory").getBoundingClientRect(), t = at(ev.clientX - box.left, box.width), y = ev.clientY - box.top, near = 2 * (to - from) / span(box.width);
  const row = memoryRows.find(r => y >= r.top && y < r.bottom);
  if (!row || ev.clientX - box.left < LEFT) return null;
  const found = row.s.lives.filter(l => row.top + row.scale.y(l.high) <= y && y < row.top + row.scale.y(l.low)).sort((a, b) => (a.high - a.low) - (b.high - b.low));
  for (const life of found) {
    const i = bisect(life.from, t + near, 0, life.from.length) - 1;
    if (i >= 0 && life.to[i] >= t - near) return {run: ofRun, life, i};
  }
  const life = found.find(l => l.from[0] <= t && t <= l.to[l.to.length - 1]);
  return life ? {run: ofRun, life, i: -1} : null;
}
const lifeAt = (run, wanted, key, e) => {
  const [space, low, high] = key.split(" ");
  for (const s of spacesOf(run, wanted)) for (const life of s.lives) if (s.space === space && life.low === +low && life.high === +high)
    return {run, life, i: Math.max(0, bisect(life.from, run.ev.start[e], 0, life.from.length) - 1)};
  return null;
};
let chosenLife = null;
function tellLife(found) {
  chosenLife = found;
  const {run, life, i} = found, d = $("detail"), e = i >= 0 ? life.events[i] : -1, s = life.of;
  const where = s.loose ? `${size(life.high - life.low)}, not placed by the program` : `bytes ${life.low}..${life.high}, ${size(life.high - life.low)}`;
  const parts = [[s.title.split(",")[0], where], ["values", `${life.from.length}${i >= 0 ? `; this is ${i + 1}, alive ${short(us(life.to[i] - life.from[i]))}` : ""}`]];
  if (e >= 0) { const [name, line] = run.sites[run.ev.site[e]]; parts.push(["made by", html`<a data-e="${e}">${name} of line ${line}</a>, at ${short(us(run.ev.start[e]))}`]); }
  const file = run.sites.find(t => t[1] === life.line)?.[2] ?? "";
  life.uses.forEach(([name, line, write, n]) => parts.push([write ? "written" : "read", html`${name} in <a data-line="${line}" data-file="${file}">line ${line}</a>${n > 1 ? `, ${n} times` : ""}`]));
  if (life.more) parts.push(["", `and ${life.more} more`]);
  if (life.view.length) parts.push(["a view of", life.view.map(v => named(run, v)).join(", ")]);
  for (const o of s.overlaps) if (o.a === life || o.b === life) parts.push(["overlaps", html`<b class="bad">${named(run, (o.a === life ? o.b : o.a).name)}</b> in bytes ${o.low}..${o.high}`]);
  d.classList.toggle("tall", e >= 0 && operandsOf(run, e).length > 0);
  d.hidden = false, fill(d, html`<button class="close" title="close (Esc)">×</button><h3>${named(run, life.name)}</h3> <span class="soft">${life.shape}</span>${cells(parts)}<div class="values"></div>`);
  d.querySelector(".close").onclick = () => { d.hidden = true, chosenLife = null, draw(); };
  for (const a of d.querySelectorAll("[data-e]")) a.onclick = () => { chosenLife = null, pick(run, +a.dataset.e, true); };
  for (const a of d.querySelectorAll("[data-line]")) a.onclick = () => choose(run, a.dataset.file, +a.dataset.line, false);
  const site = e >= 0 ? run.sites[run.ev.site[e]] : [null, life.line, file];
  lit = {run, sites: null, line: site[1], file: site[2]}, picked = e >= 0 ? {run, e} : null, light();
  if (e >= 0) {  // what it holds: what its writer left there
    const o = operandsOf(run, e).find(o => o.role === 1 && o.label === "%" + life.name);
    if (o) { const holder = d.querySelector(".values"); fill(holder, html`<div class="value"></div>`), valueInto(holder.firstChild, run, o); }
  }
  draw();
}
function setMemory(open) {
  memoryOpen = open, document.body.classList.toggle("memory", open);
  $("memory-button")?.setAttribute("aria-pressed", open);
  if ($("scales")) $("scales").hidden = !open;
  if (VIEW !== "tasks") tiles();
  draw();
}
