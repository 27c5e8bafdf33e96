// The explorer of timelines. Lanes are columns of numbers, sorted by time: what is visible is found by bisection and
// drawn event by event, or, where a pixel holds many, as the share of it that was at work (sums up to every event are
// kept). So the cost of a frame is that of its pixels, not of its events.
(async () => {
  "use strict";
  const $ = id => document.getElementById(id), root = document.documentElement;
  const runs = JSON.parse($("data").textContent), REASONS = JSON.parse($("reasons").textContent);
  const FINE = 8, LEFT = 128, HEAD = 17;

  const unpack = async text => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Int32Array(await new Response(stream).arrayBuffer());
  };
  const columns = async table => Object.fromEntries(await Promise.all(
    Object.entries(table).map(async ([name, text]) => [name, await unpack(text)])));

  // -- data: all runs, then their lanes as one list -------------------------------------------------------------
  const rows = [];  // what is drawn below each other: headings of cores, and lanes
  let end = 0, begin = Infinity;
  for (const [r, run] of runs.entries()) {
    run.ev = await columns(run.events), run.gap = await columns(run.gaps);
    run.us = t => t / FINE / run.mhz;
    const {lane, start, free, done} = run.ev, n = lane.length;
    run.sum = new Float64Array(n + 1);  // busy time up to an event, lane after lane
    const first = new Int32Array(run.lanes.length + 1).fill(-1);
    let last = -1, until = 0;
    for (let i = 0; i < n; i++) {
      if (lane[i] !== last) last = lane[i], until = 0, first[last] = i;
      const from = Math.max(start[i], until);
      run.sum[i + 1] = run.sum[i] + Math.max(0, done[i] - from);
      until = Math.max(until, done[i]);
    }
    first[run.lanes.length] = n;
    for (let l = run.lanes.length - 1; l >= 0; l--) if (first[l] < 0) first[l] = first[l + 1];
    run.first = first;
    const g = run.gap.lane.length, gfirst = new Int32Array(run.lanes.length + 1).fill(-1);
    for (let i = g - 1; i >= 0; i--) gfirst[run.gap.lane[i]] = i;
    gfirst[run.lanes.length] = g;
    for (let l = run.lanes.length - 1; l >= 0; l--) if (gfirst[l] < 0) gfirst[l] = gfirst[l + 1];
    run.gfirst = gfirst;
    run.onpath = new Uint8Array(n);
    for (const e of run.ev.path) run.onpath[e] = 1;
    run.letter = runs.length > 1 ? String.fromCharCode(65 + r) + ": " : "";
    let core = -1;
    run.lanes.forEach((l, i) => {
      if (l.core !== core) rows.push({run, head: run.letter + (run.cores[l.core] || "core"), core: l.core}), core = l.core;
      rows.push({run, lane: i, core: l.core, pipe: l.pipe});
    });
    end = Math.max(end, run.total * FINE), begin = Math.min(begin, run.launch * FINE);
  }
  // few lanes are high ones
  let height = 0, LANE = 17;
  const layout = () => {
    const room = $("scroll").clientHeight - 30, heads = rows.filter(r => r.head).length;
    LANE = Math.max(17, Math.min(36, Math.floor((room - heads * HEAD) / Math.max(1, rows.length - heads))));
    height = 0;
    for (const row of rows) row.y = height, row.h = row.head ? HEAD : LANE, height += row.h;
  };
  const all = [Math.max(0, begin - (end - begin) * 0.01), end + (end - begin) * 0.01];
  let [from, to] = all, range = null, picked = null, hover = null, lit = null, showPath = false, core = 0, ofRun = runs[0];

  // -- colours and canvases -------------------------------------------------------------------------------------
  const css = {};
  const colour = name => css[name] ??= (() => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name}, var(--pipe-other))`, document.body.append(probe);
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
  const short = v => v >= 1000 ? (v / 1000).toFixed(2) + " ms" : v >= 1 ? v.toFixed(2) + " us" : (v * 1000).toFixed(1) + " ns";
  const amount = v => v >= 1e9 ? (v / 1e9).toFixed(2) + " G" : v >= 1e6 ? (v / 1e6).toFixed(2) + " M" : v >= 1e3 ? (v / 1e3).toFixed(1) + " k" : v + " ";
  const text = s => String(s).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

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
    const per = (to - from) / FINE / runs[0].mhz / Math.max(2, span(w) / 110);
    const step = [1, 2, 5].map(k => k * 10 ** Math.floor(Math.log10(per))).find(s => s >= per) ?? 10 ** Math.ceil(Math.log10(per));
    c.fillStyle = colour("--soft"), c.strokeStyle = colour("--faint"), c.lineWidth = 1;
    for (let u = Math.ceil(from / FINE / runs[0].mhz / step) * step; ; u += step) {
      const x = px(u * FINE * runs[0].mhz, w);
      if (x > w - 8) break;
      c.beginPath(), c.moveTo(x, top), c.lineTo(x, h), c.stroke();
      if (top) c.fillText(+u.toFixed(4) + " us", x + 3, top - 7);
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
      if (row.head) { c.fillStyle = colour("--text"), c.font = "600 11px system-ui, sans-serif", c.fillText(row.head, 8, y + 8), c.font = "11px system-ui, sans-serif"; continue; }
      drawLane(c, row, y, w);
    }
    if (picked) arrow(c, w, top);
    c.restore();
  }

  function drawLane(c, row, y, w) {
    const {run, lane} = row, {start, free, done, site} = run.ev, a = run.first[lane], b = run.first[lane + 1];
    c.fillStyle = colour("--soft"), c.fillText(row.pipe, 20, y + LANE / 2);
    const share = (busyUntil(run, lane, to) - busyUntil(run, lane, from)) / (to - from);
    c.fillText(Math.round(share * 100) + " %", 82, y + LANE / 2);
    c.fillStyle = colour("--faint"), c.fillRect(LEFT, y + LANE - 3, span(w), 1);
    const low = Math.max(a, bisect(start, from, a, b) - 1), high = bisect(start, to, a, b), base = colour("--pipe-" + row.pipe);
    // stalls: below what is at work
    const {from: gf, to: gt, why} = run.gap, ga = run.gfirst[lane], gb = run.gfirst[lane + 1];
    const glow = Math.max(ga, bisect(gf, from, ga, gb) - 1), ghigh = bisect(gf, to, ga, gb);
    let covered = -1;
    c.globalAlpha = 0.75;
    if (ghigh - glow > 0.7 * span(w)) {  // many: what is in the middle of a column of pixels
      let g = glow;
      runsOf(span(w), x => {
        const t = at(LEFT + x + 0.5, w);
        g = Math.max(glow, bisect(gf, t, g, ghigh) - 1);
        return gf[g] <= t && gt[g] >= t ? why[g] : -1;
      }, (a, b, reason) => { if (reason >= 0) c.fillStyle = colour("--why-" + reason), c.fillRect(LEFT + a, y + LANE - 6, b - a, 3); });
    } else for (let i = glow; i < ghigh; i++) {
      const x = Math.max(LEFT, px(gf[i], w)), x1 = Math.min(w - 8, px(gt[i], w));
      if (x1 - x < 0.3 && x1 < covered) continue;
      c.fillStyle = colour("--why-" + why[i]), c.fillRect(x, y + LANE - 6, Math.max(0.7, x1 - x), 3), covered = Math.max(covered, x1);
    }
    c.globalAlpha = 1;
    if (high - low > 0.7 * span(w) && lit === null && !showPath || high - low > 6 * span(w)) {  // a column of pixels is the share of it that was at work
      shares(c, row, base, from, to, w, y + 1, LANE - 7);
      return;
    }
    covered = -1;
    for (let i = low; i < high; i++) {
      const x = Math.max(LEFT, px(start[i], w)), x1 = Math.min(w - 8, px(done[i], w)), f = Math.min(w - 8, px(free[i], w));
      if (x1 < LEFT || (x1 < covered && x1 - x < 0.5)) continue;
      const mark = lit !== null && lit.run === run && lit.sites.has(site[i]);
      const dim = (lit !== null && !mark) || (showPath && !run.onpath[i]);
      c.fillStyle = base, c.globalAlpha = dim ? 0.25 : 1, c.fillRect(x, y + 1, Math.max(0.8, f - x), LANE - 7);
      if (x1 > f) c.globalAlpha *= 0.45, c.fillRect(Math.max(f, LEFT), y + 1, x1 - Math.max(f, LEFT), LANE - 7);  // under way, the pipe is free
      c.globalAlpha = 1, covered = Math.max(covered, x1);
      if (showPath && run.onpath[i]) c.strokeStyle = colour("--bad"), c.strokeRect(x + 0.5, y + 1.5, Math.max(1, x1 - x - 1), LANE - 8);
      if (picked && picked.run === run && picked.e === i || hover && hover.run === run && hover.e === i)
        c.strokeStyle = colour("--text"), c.lineWidth = 1.5, c.strokeRect(x, y + 1, Math.max(1.5, x1 - x), LANE - 7), c.lineWidth = 1;
      const name = run.sites[site[i]][0];
      if (x1 - x > name.length * 6.2 + 4 && !dim) c.fillStyle = colour("--text"), c.fillText(name, x + 3, y + (LANE - 5) / 2);
    }
  }

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
    const [c, w, h] = sized($("over")), full = t => LEFT + (t - all[0]) / (all[1] - all[0]) * span(w);
    const mine = rows.filter(r => !r.head && r.run === ofRun && r.core === core), each = Math.min(8, (h - 10) / Math.max(1, mine.length));
    c.fillStyle = colour("--soft"), c.fillText(ofRun.letter + ofRun.cores[core].slice(0, 18), 8, h / 2);
    const keep = [from, to];
    mine.forEach((row, n) => {
      shares(c, row, colour("--pipe-" + row.pipe), all[0], all[1], w, 5 + n * each, Math.max(1, each - 1));
    });
    c.globalAlpha = 0.5, c.fillStyle = colour("--page");
    c.fillRect(LEFT, 0, full(keep[0]) - LEFT, h), c.fillRect(full(keep[1]), 0, w - full(keep[1]), h);
    c.globalAlpha = 1, c.strokeStyle = colour("--accent"), c.strokeRect(full(keep[0]) + 0.5, 0.5, Math.max(2, full(keep[1]) - full(keep[0])), h - 1);
  }

  // On-chip memory of a core: who writes (filled) and reads (hatched) which bytes when, and for how long they matter.
  const lives = new Map();
  function livesOf(run, wanted) {
    const key = run.letter + wanted;
    if (lives.has(key)) return lives.get(key);
    const events = [], open = new Map(), out = [];
    run.lanes.forEach((l, i) => { if (l.core === wanted) for (let e = run.first[i]; e < run.first[i + 1]; e++) if (run.ev.touched[e]) events.push(e); });
    events.sort((a, b) => run.ev.start[a] - run.ev.start[b]);
    for (const e of events) for (const [space, low, high, write, name] of run.ranges[run.ev.touched[e]]) {
      if (space.startsWith("gm")) continue;
      const key = space + low + "-" + high;
      if (write) {
        const life = {space, low, high, name, from: run.ev.start[e], to: run.ev.done[e], e};
        open.set(key, life), out.push(life);
      } else {
        const life = open.get(key) ?? [...open.values()].reverse().find(o => o.space === space && o.low < high && low < o.high);
        if (life) life.to = Math.max(life.to, run.ev.done[e]);
      }
    }
    // by space, in the order of time: how high it is, and how long anything lives there
    const spaces = [...new Set(out.map(l => l.space))].map(space => {
      const mine = out.filter(l => l.space === space);
      let most = run.capacity[space] ?? 0, longest = 0;
      for (const l of mine) most = Math.max(most, l.high), longest = Math.max(longest, l.to - l.from);
      return {space, most, longest, lives: mine, from: Float64Array.from(mine, l => l.from)};
    });
    lives.set(key, spaces);
    return spaces;
  }
  function drawMemory() {
    const [c, w, h] = sized($("memory")), spaces = livesOf(ofRun, core);
    ticks(c, w, h, 0);
    if (!spaces.length) { c.fillStyle = colour("--soft"), c.fillText("no tiles in on-chip memory", LEFT + 8, h / 2); return; }
    const each = (h - 6) / spaces.length;
    spaces.forEach(({space, most, longest, lives, from: begins}, n) => {
      const y0 = 3 + n * each, covered = new Map();
      c.fillStyle = colour("--soft"), c.fillText(space, 8, y0 + each / 2), c.fillText(Math.round(most / 1024) + " KiB", 60, y0 + each / 2);
      c.fillStyle = colour("--faint"), c.fillRect(LEFT, y0 + each - 1, span(w), 1);
      for (let i = bisect(begins, from - longest, 0, lives.length); i < lives.length && begins[i] <= to; i++) {
        const l = lives[i];
        if (l.to < from || px(l.to, w) < (covered.get(l.low) ?? -1)) continue;
        covered.set(l.low, Math.max(px(l.to, w), px(l.from, w) + 0.8));
        const x = Math.max(LEFT, px(l.from, w)), x1 = Math.min(w - 8, px(l.to, w)), y = y0 + l.low / most * (each - 2), hh = Math.max(1.5, (l.high - l.low) / most * (each - 2) - 0.5);
        const chosen = picked && picked.run === ofRun && picked.e === l.e;
        c.fillStyle = colour(`--c${hash(l.name) % 8}`), c.globalAlpha = chosen ? 1 : 0.8, c.fillRect(x, y, Math.max(0.8, x1 - x), hh);
        if (chosen) c.strokeStyle = colour("--text"), c.strokeRect(x, y, Math.max(1.5, x1 - x), hh);
        c.globalAlpha = 1;
        if (hh > 10 && x1 - x > l.name.length * 6.5 + 4) c.fillStyle = colour("--text"), c.fillText(l.name, x + 3, y + hh / 2);
      }
    });
  }
  const hash = s => { let h = 7; for (const ch of s) h = h * 31 + ch.charCodeAt(0) >>> 0; return h; };

  // -- the source -----------------------------------------------------------------------------------------------
  const lineDivs = new Map();
  function drawSource() {
    const holder = $("source");
    for (const run of runs) for (const [file, source] of Object.entries(run.sources)) {
      if (lineDivs.has(run.letter + file)) continue;
      const times = new Map(run.lines.filter(l => l[0] === file).map(l => [l[1], l])), most = Math.max(1e-9, ...[...times.values()].map(l => l[3]));
      const title = document.createElement("h3"), divs = [];
      title.textContent = run.letter + file.split("/").pop() + " — us on the critical path", holder.append(title);
      source.split("\n").forEach((line, n) => {
        const div = document.createElement("div"), found = times.get(n + 1);
        div.className = found ? "l hot" : "l";
        const part = found ? found[3] / most : 0;
        div.innerHTML = `<span class="n">${n + 1}</span><span class="t">${found ? (found[3] >= 0.005 ? found[3].toFixed(2) : "·") : ""}</span><span>${text(line) || " "}</span>`;
        if (part > 0.01) div.children[1].style.background = `linear-gradient(to left, color-mix(in srgb, var(--bad) 45%, transparent) ${Math.round(part * 100)}%, transparent 0)`;
        if (found) div.title = `at work ${short(found[2])} of all cores, waits ${short(found[4])}, ${found[5]} times`, div.onclick = () => choose(run, file, n + 1);
        holder.append(div), divs.push(div);
      });
      lineDivs.set(run.letter + file, divs);
    }
  }
  const sitesAt = (run, file, line) => new Set(run.sites.flatMap((s, i) => s[1] === line && s[2] === file ? [i] : []));
  function choose(run, file, line, jump = true) {
    const sites = sitesAt(run, file, line);
    if (lit && lit.run === run && lit.line === line && jump) { lit = null, light(); draw(); return; }
    lit = {run, sites, line, file};
    light();
    if (jump) {
      const e = run.ev.site.findIndex((s, i) => sites.has(s) && run.ev.start[i] >= from);
      const found = e >= 0 ? e : run.ev.site.findIndex(s => sites.has(s));
      if (found >= 0) pick(run, found, true);
    }
    draw();
  }
  function light() {
    for (const divs of lineDivs.values()) for (const d of divs) d.classList.remove("lit");
    const div = lit && lineDivs.get(lit.run.letter + lit.file)?.[lit.line - 1];
    if (div) div.classList.add("lit"), div.scrollIntoView({block: "nearest"});
  }

  // -- one event, a range ---------------------------------------------------------------------------------------
  function pick(run, e, show = false) {
    picked = {run, e};
    const [name, line, file] = run.sites[run.ev.site[e]], lane = run.lanes[run.ev.lane[e]], [, , bytes, flops, path, evidence] = run.charges[run.ev.charge[e]];
    core = lane.core, ofRun = run;
    const gap = gapOf(run, e), stretch = run.gap.event.findIndex((x, i) => x === e && REASONS[run.gap.why[i]] === "bandwidth");
    const parts = [["core", run.letter + run.cores[lane.core]], ["pipe", lane.pipe], ["begins", short(run.us(run.ev.start[e]))],
      ["takes", short(run.us(run.ev.done[e] - run.ev.start[e])) + (run.ev.done[e] > run.ev.free[e] ? `, the pipe ${short(run.us(run.ev.free[e] - run.ev.start[e]))}` : "")],
      ["cost", evidence + (evidence === "guessed" ? ": no evidence" : "")]];
    if (bytes) parts.push(["moves", amount(bytes) + "B " + path.replaceAll("_", " to ")]);
    if (flops) parts.push(["computes", amount(flops) + (lane.pipe === "M" ? "FLOP" : "elements")]);
    for (const [space, low, high, write, tile] of run.ranges[run.ev.touched[e]]) parts.push([write ? "writes" : "reads", `${tile ? "%" + tile + " " : ""}${space}${space.startsWith("gm") ? "" : ` ${low}..${high}`}`]);
    let waits = "";
    if (gap !== null) {
      const of = run.gap.of[gap], giver = of >= 0 ? run.sites[run.ev.site[of]] : null;
      waits = `<tr><th>waited</th><td>${short(run.us(run.gap.to[gap] - run.gap.from[gap]))}: ${text(REASONS[run.gap.why[gap]])}` + (giver ? `, <a data-e="${of}">${text(giver[0])} of line ${giver[1]}</a>` : "") + "</td></tr>";
    }
    if (stretch >= 0) waits += `<tr><th>lost</th><td>${short(run.us(run.gap.to[stretch] - run.gap.from[stretch]))} to transfers of other cores</td></tr>`;
    const d = $("detail");
    d.hidden = false;
    d.innerHTML = `<button class="close" title="close (Esc)">×</button><h3>${text(name)}</h3> <a data-line="${line}">line ${line}</a><table>` + parts.map(([k, v]) => `<tr><th>${k}</th><td>${text(v)}</td></tr>`).join("") + waits + "</table>";
    d.querySelector(".close").onclick = () => { d.hidden = true, picked = null, draw(); };
    for (const a of d.querySelectorAll("[data-e]")) a.onclick = () => pick(run, +a.dataset.e, true);
    for (const a of d.querySelectorAll("[data-line]")) a.onclick = () => choose(run, file, line, false);
    lit = {run, sites: sitesAt(run, file, line), line, file}, light();
    if (show) {
      const s = run.ev.start[e], f = run.ev.done[e];
      if (s < from || f > to) { const half = Math.max((to - from) / 2, (f - s) * 4); from = (s + f) / 2 - half, to = (s + f) / 2 + half, clamp(); }
      const row = rows.find(r => r.run === run && r.lane === run.ev.lane[e]), scroll = $("scroll");
      if (row && (row.y < scroll.scrollTop || row.y > scroll.scrollTop + scroll.clientHeight - 60)) scroll.scrollTop = Math.max(0, row.y - scroll.clientHeight / 2);
    }
    draw();
  }

  function totals() {
    const holder = $("range"), [a, b] = range ?? all, what = range ? "Selected range" : "Whole run";
    let out = `<h2>${what} <span class="soft">${short((b - a) / FINE / runs[0].mhz)}</span></h2><table><tr><th></th>${runs.map(r => `<th class="r">${text(r.letter || "busy")}</th>`).join("")}</tr>`;
    const pipes = [...new Set(runs.flatMap(r => r.lanes.map(l => l.pipe)))];
    const per = runs.map(run => {
      const found = {busy: {}, lanes: {}, why: {}, bytes: {}, flops: 0};
      run.lanes.forEach((l, i) => {
        found.busy[l.pipe] = (found.busy[l.pipe] ?? 0) + busyUntil(run, i, b) - busyUntil(run, i, a), found.lanes[l.pipe] = (found.lanes[l.pipe] ?? 0) + 1;
        const low = Math.max(run.first[i], bisect(run.ev.start, a, run.first[i], run.first[i + 1]) - 1), high = bisect(run.ev.start, b, run.first[i], run.first[i + 1]);
        for (let e = low; e < high; e++) {
          const whole = Math.max(1, run.ev.done[e] - run.ev.start[e]), part = Math.max(0, Math.min(b, run.ev.done[e]) - Math.max(a, run.ev.start[e])) / whole;
          const [, , bytes, flops, path] = run.charges[run.ev.charge[e]];
          if (path) found.bytes[path] = (found.bytes[path] ?? 0) + bytes * part;
          if (l.pipe === "M") found.flops += flops * part;
        }
      });
      for (let i = 0; i < run.gap.from.length; i++) {
        const t = Math.min(b, run.gap.to[i]) - Math.max(a, run.gap.from[i]);
        if (t > 0) found.why[run.gap.why[i]] = (found.why[run.gap.why[i]] ?? 0) + t;
      }
      return found;
    });
    for (const p of pipes) out += `<tr><td><i class="dot"></i>${p}</td>${per.map(f => `<td class="r">${f.lanes[p] ? (100 * f.busy[p] / f.lanes[p] / (b - a)).toFixed(1) + " %" : ""}</td>`).join("")}</tr>`;
    for (const path of new Set(per.flatMap(f => Object.keys(f.bytes)))) out += `<tr><td>${path.replaceAll("_", " to ")}</td>${per.map(f => `<td class="r">${amount(Math.round(f.bytes[path] ?? 0))}B</td>`).join("")}</tr>`;
    if (per.some(f => f.flops)) out += `<tr><td>cube</td>${per.map(f => `<td class="r">${amount(Math.round(f.flops))}FLOP</td>`).join("")}</tr>`;
    out += `<tr><th>stalls, of all pipes</th></tr>`;
    for (const w of [...new Set(per.flatMap(f => Object.keys(f.why)))].sort((x, y) => (per[0].why[y] ?? 0) - (per[0].why[x] ?? 0)))
      out += `<tr><td>${text(REASONS[w])}</td>${per.map((f, n) => `<td class="r">${short(runs[n].us(f.why[w] ?? 0))}</td>`).join("")}</tr>`;
    holder.innerHTML = out + "</table>";
  }

  // -- what is beside: cards, key, stalls, differences ----------------------------------------------------------
  $("cards").innerHTML = runs.map(r => r.cards.slice(0, runs.length > 1 ? 3 : 6).map(([a, b]) => `<div class="card"><b>${r.letter}${text(a)}</b><small>${text(b)}</small></div>`).join("")).join("");
  const present = new Set(runs.flatMap(r => [...new Set(r.gap.why)]));
  $("key").innerHTML = [...new Set(runs.flatMap(r => r.lanes.map(l => l.pipe)))].map(p => `<span><i style="background:var(--pipe-${p}, var(--pipe-other))"></i>${p}</span>`).join("") +
    "<span class='soft'>below: waits for</span>" + REASONS.map((r, n) => present.has(n) ? `<span><i style="background:var(--why-${n});height:4px;vertical-align:3px"></i>${text(r)}</span>` : "").join("");
  $("stalls").innerHTML = runs.map(r => `<h2>${r.letter}Stalls <span class="soft">us of the core that waits longest</span></h2><table>` + r.stalls.slice(0, 14).map(s => `<tr class="hot" data-line="${s[3]}"><td class="r">${s[4].toFixed(2)}</td><td>${text(s[1])}</td><td>${text(s[0])}</td><td class="soft">at ${text(s[2])}</td></tr>`).join("") + "</table>").join("");
  [...$("stalls").querySelectorAll("table")].forEach((t, n) => { for (const row of t.querySelectorAll("[data-line]")) row.onclick = () => { const site = runs[n].sites.find(s => s[1] === +row.dataset.line); if (site) lit = null, choose(runs[n], site[2], +row.dataset.line); }; });
  if (runs.length > 1) {
    const [a, b] = runs, by = new Map();
    for (const [n, run] of runs.entries()) for (const l of run.lines) { const name = run.sites.find(s => s[1] === l[1] && s[2] === l[0])?.[0] ?? ""; const key = name; const cell = by.get(key) ?? [0, 0]; cell[n] += l[3], by.set(key, cell); }
    const total = [a, b].map(r => r.us(r.total * FINE));
    $("compare").innerHTML = `<h2>A against B <span class="soft">${short(total[0])}, ${short(total[1])}: ${((total[1] / total[0] - 1) * 100).toFixed(1)} %</span></h2><table><tr><th>on the critical path</th><th class="r">A us</th><th class="r">B us</th><th class="r">B − A</th></tr>` +
      [...by].sort((x, y) => Math.abs(y[1][1] - y[1][0]) - Math.abs(x[1][1] - x[1][0])).slice(0, 16).map(([k, [x, y]]) => `<tr><td>${text(k)}</td><td class="r">${x.toFixed(2)}</td><td class="r">${y.toFixed(2)}</td><td class="r">${(y - x).toFixed(2)}</td></tr>`).join("") + "</table>";
  }
  drawSource();

  // -- input ----------------------------------------------------------------------------------------------------
  function clamp() {
    const least = 24 * FINE, width = Math.min(all[1] - all[0], Math.max(least, to - from));
    from = Math.max(all[0], Math.min(from, all[1] - width)), to = from + width;
  }
  const zoom = (factor, t = (from + to) / 2) => { from = t - (t - from) * factor, to = t + (to - t) * factor, clamp(), draw(); };
  const pan = part => { const d = (to - from) * part; from += d, to += d, clamp(), draw(); };
  const lanes = $("lanes"), over = $("over");
  const hit = ev => {
    const box = lanes.getBoundingClientRect(), x = ev.clientX - box.left, y = ev.clientY - box.top - 20 + $("scroll").scrollTop, t = at(x, box.width);
    const row = rows.find(r => y >= r.y && y < r.y + r.h);
    if (!row || x < LEFT) return {t, row, x};
    if (row.head) return {t, row, x};
    const {run, lane} = row, a = run.first[lane], b = run.first[lane + 1], near = 2 * (to - from) / span(box.width);
    const i = bisect(run.ev.start, t + near, a, b) - 1;
    const e = i >= a && run.ev.done[i] >= t - near ? i : -1;
    let gap = -1;
    if (e < 0) { const g = bisect(run.gap.from, t, run.gfirst[lane], run.gfirst[lane + 1]) - 1; if (g >= run.gfirst[lane] && run.gap.to[g] >= t) gap = g; }
    return {t, row, e, gap, x};
  };
  let drag = null;
  lanes.onpointerdown = ev => { const h = hit(ev); drag = {x: ev.clientX, t: h.t, h, moved: false}, lanes.setPointerCapture(ev.pointerId), lanes.focus({preventScroll: true}); };
  lanes.onpointermove = ev => {
    if (drag && Math.abs(ev.clientX - drag.x) > 4) { drag.moved = true; const t = hit(ev).t; range = [Math.min(t, drag.t), Math.max(t, drag.t)], $("tip").hidden = true, draw(); return; }
    const h = hit(ev), tip = $("tip");
    if (h.e >= 0 && h.row.run) {
      const run = h.row.run, [name, line] = run.sites[run.ev.site[h.e]];
      tip.innerHTML = `<b>${text(name)}</b> line ${line}, ${short(run.us(run.ev.done[h.e] - run.ev.start[h.e]))}`, hover = {run, e: h.e};
    } else if (h.gap >= 0) {
      const run = h.row.run, of = run.gap.of[h.gap], giver = of >= 0 ? run.sites[run.ev.site[of]] : null;
      tip.innerHTML = `waits ${short(run.us(run.gap.to[h.gap] - run.gap.from[h.gap]))}: ${text(REASONS[run.gap.why[h.gap]])}${giver ? ` (${text(giver[0])}, line ${giver[1]})` : ""}`, hover = null;
    } else { tip.hidden = true; if (hover) hover = null, draw(); return; }
    tip.hidden = false, tip.style.left = Math.min(ev.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px", tip.style.top = Math.min(ev.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
    draw();
  };
  lanes.onpointerup = ev => {
    if (!drag) return;
    if (drag.moved) totals();
    else {
      const h = drag.h;
      range = null, totals();
      if (h.row) core = h.row.core, ofRun = h.row.run;
      if (h.e >= 0) pick(h.row.run, h.e); else if (h.gap >= 0) pick(h.row.run, h.row.run.gap.event[h.gap]); else lit = null, light(), draw();
    }
    drag = null, draw();
  };
  lanes.onpointerleave = () => { $("tip").hidden = true, hover = null; };
  lanes.ondblclick = () => { if (range) [from, to] = range, range = null, clamp(), totals(), draw(); };
  const wheel = ev => {
    if (ev.shiftKey || Math.abs(ev.deltaX) > Math.abs(ev.deltaY)) { pan((ev.deltaX || ev.deltaY) / 800), ev.preventDefault(); return; }
    if (ev.ctrlKey || ev.metaKey || ev.altKey || height + 22 <= $("scroll").clientHeight) { const box = lanes.getBoundingClientRect(); zoom(Math.exp(ev.deltaY / 400), at(ev.clientX - box.left, box.width)), ev.preventDefault(); }
  };
  $("scroll").addEventListener("wheel", wheel, {passive: false}), $("memory").addEventListener("wheel", wheel, {passive: false}), over.addEventListener("wheel", wheel, {passive: false});
  $("scroll").onscroll = draw;
  let overDrag = false;
  const overAt = ev => { const box = over.getBoundingClientRect(), t = all[0] + (ev.clientX - box.left - LEFT) / span(box.width) * (all[1] - all[0]), half = (to - from) / 2; from = t - half, to = t + half, clamp(), draw(); };
  over.onpointerdown = ev => { overDrag = true, over.setPointerCapture(ev.pointerId), overAt(ev); };
  over.onpointermove = ev => { if (overDrag) overAt(ev); };
  over.onpointerup = () => { overDrag = false; };
  $("memory").onclick = ev => {
    const box = $("memory").getBoundingClientRect(), t = at(ev.clientX - box.left, box.width), spaces = livesOf(ofRun, core);
    if (!spaces.length) return;
    const each = (box.height - 6) / spaces.length, n = Math.floor((ev.clientY - box.top - 3) / each), {most, lives: mine} = spaces[Math.max(0, Math.min(spaces.length - 1, n))];
    const byte = (ev.clientY - box.top - 3 - n * each) / (each - 2) * most;
    const l = mine.findLast(l => l.from <= t && t <= l.to && l.low <= byte && byte < l.high);
    if (l) pick(ofRun, l.e);
  };
  const step = by => {
    if (!picked) { const row = rows.find(r => !r.head); if (row) pick(row.run, row.run.first[row.lane], true); return; }
    const {run, e} = picked, lane = run.ev.lane[e], n = e + by;
    if (n >= run.first[lane] && n < run.first[lane + 1]) pick(run, n, true);
  };
  const KEYS = {"+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "0": () => { [from, to] = all, range = null, totals(), draw(); },
    n: () => step(1), p: () => step(-1), z: () => { if (range) [from, to] = range, range = null, clamp(), totals(), draw(); else if (picked) { const {run, e} = picked, w = run.ev.done[e] - run.ev.start[e]; from = run.ev.start[e] - w, to = run.ev.done[e] + w, clamp(), draw(); } },
    c: () => $("path").click(), t: () => $("theme").click(), "?": () => $("keys").click(), "/": () => $("search").focus(),
    Escape: () => { range = null, picked = null, lit = null, $("detail").hidden = true, light(), totals(), draw(); }};
  document.addEventListener("keydown", ev => {
    if (ev.target.tagName === "INPUT" || ev.ctrlKey || ev.metaKey) return;
    const does = KEYS[ev.key];
    if (does) does(), ev.preventDefault();
  });
  $("help").innerHTML = "<h3>Keyboard and mouse</h3><table>" + [["+ − or ctrl-wheel", "zoom"], ["← → or shift-wheel", "move in time"], ["0", "all of the time"], ["drag", "select a range: its totals are below"], ["z or double click", "zoom to the range, or to the picked instruction"],
    ["click", "an instruction: its line, bytes, whom it waited for"], ["n p", "next, previous of the lane"], ["c", "critical path"], ["/", "search"], ["t", "light or dark"], ["Esc", "nothing picked"]].map(([k, v]) => `<tr><td><b>${k}</b></td><td>${v}</td></tr>`).join("") + "</table><form method='dialog'><button>Close</button></form>";
  $("keys").onclick = () => $("help").showModal();
  $("path").onclick = () => { showPath = !showPath, $("path").setAttribute("aria-pressed", showPath), draw(); };
  $("whole").onclick = KEYS["0"];
  $("theme").onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    for (const k of Object.keys(css)) delete css[k];
    draw();
  };
  $("search").oninput = () => {
    const word = $("search").value.trim().toLowerCase();
    if (!word) { lit = null, $("found").textContent = "", light(), draw(); return; }
    const run = runs[0], sites = new Set(run.sites.flatMap((s, i) => s[0].includes(word) || String(s[1]) === word ? [i] : []));
    let count = 0;
    for (const s of run.ev.site) if (sites.has(s)) count++;
    lit = {run, sites, line: 0, file: ""}, $("found").textContent = count + " found", light(), draw();
  };
  $("search").onkeydown = ev => { if (ev.key === "Enter") { const run = runs[0], e = run.ev.site.findIndex((s, i) => lit?.sites.has(s) && run.ev.start[i] > (picked ? run.ev.start[picked.e] : -1)); if (e >= 0) pick(run, e, true); } };
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const k of Object.keys(css)) delete css[k]; draw(); });
  totals(), draw();
  root.dataset.ready = "yes";
  window.explorer = {runs, rows, state: () => ({from, to, range, picked, core}), pick, zoom, busyUntil};  // for tests
})();
