// -- the view of tasks: lanes are cores and threads of the runtime, events are tasks, arrows what they wait for ---
const view = {group: "cluster", mark: "path", arrows: "one", idle: true};
let marked = [];  // events with a frame, one after another
if (VIEW === "tasks") {
  const run = runs[0];
  run.t = await columns(run.tasks), run.link = await columns(run.links);
  const count = run.ids.length;
  run.preds = Array.from({length: count}, () => []), run.succs = Array.from({length: count}, () => []);
  run.link.pred.forEach((p, e) => { run.succs[p].push(e), run.preds[run.link.succ[e]].push(e); });
  const blocks = new Map();  // the blocks of one task share what waits for it
  for (let n = 0; n < count; n++) if (run.t.block[n] >= 0) {
    const known = blocks.get(run.ids[n]);
    known ? (known.push(...run.succs[n]), run.succs[n] = known) : blocks.set(run.ids[n], run.succs[n]);
  }
}
const labelOf = n => `${runs[0].sites[runs[0].ev.site[runs[0].t.event[n]]]?.[0] ?? "task"}(${runs[0].ids[n]})${runs[0].t.block[n] >= 0 ? `[${runs[0].t.block[n]}]` : ""}`;
const placeOf = n => runs[0].places[runs[0].t.site[n]] ?? ["", 0];
const atPlace = n => { const [file, line] = placeOf(n); return file ? `${file.split("/").pop()}${line ? ":" + line : ""}` : ""; };

if (VIEW === "tasks") arrange = () => {
  const run = runs[0];
  rows.length = 0;
  const lane = (l, i) => rows.push({run, lane: i, core: l.core, pipe: l.pipe, busy: l.busy}), own = run.lanes.flatMap((l, i) => l.core < 0 ? [[l, i]] : []);
  for (const [l, i] of own) if (l.pipe !== "critical path" || view.mark === "path") lane(l, i);
  if (own.length) rows.push({high: 5});
  const cores = run.lanes.flatMap((l, i) => l.core >= 0 && (view.idle || l.tasks) ? [[l, i]] : []);
  if (view.group === "type") for (const type of [0, 1]) {
    const mine = cores.filter(([l]) => l.type === type);
    if (mine.length) rows.push({run, head: ["AIC", "AIV"][type] + " cores", core: -1});
    for (const [l, i] of mine) lane(l, i);
  } else {
    let last = null;
    for (const [l, i] of [...cores].sort((a, b) => a[0].cluster - b[0].cluster)) {
      if (last !== null && last !== l.cluster) rows.push({high: 3});
      lane(l, i), last = l.cluster;
    }
  }
  for (const c of run.counters) rows.push({high: 4}), rows.push({run, curve: c, high: c.peak ? 38 : 16});
  marked = view.mark === "path" ? [...run.ev.path] : view.mark === "chain" ? run.chain : [];
};

// What is drawn of a lane that is dense: every pixel gets the mixed colour of what ran in it, by its share of the time.
function mixed(c, row, w, y, h) {
  const {run, lane} = row, {start, done, site} = run.ev, wide = Math.floor(span(w)), scale = wide / (to - from), ink = new Float32Array(wide * 4), rgb = {};
  const back = colour("--plot").match(/[\d.]+/g).map(Number), b = run.first[lane + 1];
  for (let i = Math.max(run.first[lane], bisect(start, from, run.first[lane], b) - 1); i < b && start[i] <= to; i++) {
    const a = Math.max(0, (start[i] - from) * scale), z = Math.min(wide, (done[i] - from) * scale), hue = rgb[site[i]] ??= colour(run.sites[site[i]][3]).match(/[\d.]+/g).map(Number), strong = dimmed(run, i) ? 0.18 : 1;
    for (let p = Math.floor(a); p < Math.min(wide, Math.max(z, Math.floor(a) + 1)); p++) {
      const part = strong * Math.max(0.02, Math.min(z, p + 1) - Math.max(a, p));
      for (let k = 0; k < 3; k++) ink[4 * p + k] += part * hue[k];
      ink[4 * p + 3] += part;
    }
  }
  const strip = document.createElement("canvas"), image = new ImageData(wide, 1);
  for (let p = 0; p < wide; p++) {
    const sum = ink[4 * p + 3], part = sum ? Math.max(0.15, Math.min(1, sum)) : 0;
    for (let k = 0; k < 3; k++) image.data[4 * p + k] = (sum ? ink[4 * p + k] / sum * part : 0) + (1 - part) * back[k];
    image.data[4 * p + 3] = 255;
  }
  strip.width = wide, strip.height = 1, strip.getContext("2d").putImageData(image, 0, 0);
  c.imageSmoothingEnabled = false, c.drawImage(strip, LEFT, y, wide, h), c.imageSmoothingEnabled = true;
}
function drawCurve(c, row, y, w) {
  const {name, time, value, limit, peak: most} = row.curve, top = Math.max(1, limit && limit < 4 * most ? limit : most), base = y + row.h - 2, up = v => base - v / top * (row.h - 7), right = w - 8;
  const few = v => v >= 1 << 30 ? +(v / (1 << 30)).toFixed(1) + " Gi" : v >= 1 << 20 ? +(v / (1 << 20)).toFixed(1) + " Mi" : v >= 1 << 14 ? +(v / 1024).toFixed(1) + " Ki" : String(v);
  c.fillStyle = colour("--text"), c.fillText(name.replace(" entries", ""), 8, y + 9);
  if (row.h > 20) c.fillStyle = colour("--soft"), c.fillText(`peak ${few(most)}${limit ? ` of ${few(limit)}` : ""}`, 8, y + 24);
  c.beginPath(), c.moveTo(LEFT, base);
  let k = Math.max(0, bisect(time, from, 0, time.length) - 1), last = 0;
  for (; k < time.length && time[k] <= to; k++) { const x = Math.max(LEFT, px(time[k], w)); c.lineTo(x, up(last)), c.lineTo(x, up(value[k])), last = value[k]; }
  const stop = k < time.length ? right : Math.min(right, px(time[time.length - 1], w));
  c.lineTo(stop, up(last)), c.lineTo(stop, base), c.closePath();
  c.globalAlpha = 0.25, c.fillStyle = colour("--accent"), c.fill(), c.globalAlpha = 1, c.strokeStyle = colour("--accent"), c.stroke();
  if (limit && top === limit) c.fillStyle = colour("--bad"), c.fillRect(LEFT, up(limit), right - LEFT, 1);
}
function drawRunning() {  // how many tasks execute at once, over the whole run
  const [c, w, h] = sized($("over")), [times, levels] = runs[0].profile, top = Math.max(1, ...levels), full = t => LEFT + (t - all[0]) / (all[1] - all[0]) * span(w);
  c.fillStyle = colour("--text"), c.fillText("running", 8, 13), c.fillStyle = colour("--soft"), c.fillText("max " + top, 8, 27);
  c.beginPath(), c.moveTo(LEFT, h - 3);
  times.forEach((t, n) => { c.lineTo(full(t), h - 3 - (n ? levels[n - 1] : 0) / top * (h - 8)), c.lineTo(full(t), h - 3 - levels[n] / top * (h - 8)); });
  c.lineTo(w - 8, h - 3), c.closePath(), c.globalAlpha = 0.3, c.fillStyle = colour("--accent"), c.fill(), c.globalAlpha = 1, c.strokeStyle = colour("--accent"), c.stroke();
  windowOver(c, w, h, full);
}
const LINK = [["--raw", []], ["--waw", [6, 4]], ["--war", [2, 3]], ["--explicit", []]];
function link(c, w, top, e, strong) {
  const run = runs[0], a = run.t.event[run.link.pred[e]], b = run.t.event[run.link.succ[e]];
  const p = a >= 0 && place(run, a, w, top), q = b >= 0 && place(run, b, w, top);
  if (!p || !q || Math.max(p[2], q[0]) < LEFT - 400 || Math.min(p[2], q[0]) > w + 400) return;
  const bend = Math.max(14, Math.min(90, Math.abs(q[0] - p[2]) / 2)), [name, dash] = LINK[run.link.kind[e]] ?? ["--soft", []];
  c.strokeStyle = c.fillStyle = colour(name), c.globalAlpha = strong ? 1 : 0.35, c.lineWidth = strong ? 1.6 : 1, c.setLineDash(dash);
  c.beginPath(), c.moveTo(p[2], p[1]), c.bezierCurveTo(p[2] + bend, p[1], q[0] - bend, q[1], q[0], q[1]), c.stroke(), c.setLineDash([]);
  if (strong) c.beginPath(), c.moveTo(q[0], q[1]), c.lineTo(q[0] - 7, q[1] - 3.5), c.lineTo(q[0] - 7, q[1] + 3.5), c.fill();
  c.globalAlpha = 1, c.lineWidth = 1;
}
function drawLinks(c, w, top) {
  const run = runs[0], {start, done} = run.ev;
  c.save(), c.beginPath(), c.rect(LEFT, 18, w - LEFT - 8, 1e5), c.clip();
  c.strokeStyle = colour("--bad");
  let last = null;
  const room = span(w) / Math.max(1, marked.length);
  for (const e of marked) {  // frames, and lines from one to the next
    const p = place(run, e, w, top);
    if (!p) { last = null; continue; }
    if (last && p[0] > LEFT && last[0] < w) c.globalAlpha = room > 6 || p[0] - last[0] > 6 ? 0.75 : 0.25, c.beginPath(), c.moveTo(last[0], last[1]), c.lineTo(p[0], p[1]), c.stroke();
    c.globalAlpha = 1, c.lineWidth = p[2] - p[0] > 4 ? 2 : 1.4, c.strokeRect(p[0] + 0.5, p[1] - LANE / 2 + 1, Math.max(2, p[2] - p[0] - 1), LANE - 4), c.lineWidth = 1;
    last = [Math.max(p[2], p[0] + 2), p[1]];
  }
  if (view.arrows === "all") for (let e = 0, drawn = 0; e < run.link.pred.length && drawn < 4000; e++) {
    const a = run.t.event[run.link.pred[e]], b = run.t.event[run.link.succ[e]];
    if (a >= 0 && b >= 0 && done[a] <= to && start[b] >= from) link(c, w, top, e, false), drawn++;
  }
  for (const at of new Set([picked?.e ?? -1, hover?.e ?? -1])) {
    const n = at >= 0 ? run.ev.task[at] : -1;
    if (n >= 0) for (const e of [...run.preds[n], ...run.succs[n]].slice(0, 600)) link(c, w, top, e, true);
  }
  c.restore();
}

// -- what is told of a task -----------------------------------------------------------------------------------------
const TIMES = [["submit", "submitted"], ["ready", "ready"], ["dispatch", "dispatched"], ["start", "started"], ["end", "ended"], ["finish", "finish seen"]];
const WAITED = {ready: "dependency wait", dispatch: "queue wait", start: "head overhead", end: "execution", finish: "tail overhead"};
const exact = t => { const v = us(t), a = Math.abs(v); return a < 1 ? Math.round(v * 1000) + " ns" : a < 1e3 ? v.toFixed(3) + " us" : a < 1e6 ? (v / 1e3).toFixed(3) + " ms" : (v / 1e6).toFixed(3) + " s"; };
const timesOf = n => {
  let last = -1;
  return html`<table>${TIMES.map(([field, words]) => {
    const t = runs[0].t[field][n], waited = t >= 0 && last >= 0 && WAITED[field] ? `${WAITED[field]} ${exact(t - last)}` : "";
    if (t >= 0) last = t;
    return html`<tr><th>${words}</th><td class="r">${t >= 0 ? exact(t) : "not recorded"}</td><td class="soft">${waited}</td></tr>`;
  })}</table>`;
};
const whereabouts = (run, e, n) => {
  const l = run.lanes[run.ev.lane[e]], words = [`${l.pipe} of cluster ${l.cluster}`];
  for (const [field, what] of [["thread", "host thread"], ["scheduler", "scheduler"], ["scope", "scope"], ["cluster", "group"], ["block", "block"]]) if (run.t[field][n] >= 0) words.push(`${what} ${run.t[field][n]}`);
  return words.join(", ");
};
MORE.tasks = (run, e) => {
  const n = run.ev.task[e];
  if (n < 0) return html`<h3>${run.sites[run.ev.site[e]][0]}</h3> <span class="soft">${run.lanes[run.ev.lane[e]].pipe}</span>${cells([["from", exact(run.ev.start[e])], ["takes", exact(run.ev.done[e] - run.ev.start[e])]])}`;
  const [file, line] = placeOf(n), list = (title, links, other) => html`<h4>${title} ${links.length}</h4><ul>${links.slice(0, 40).map(k => {
    const m = run.link[other][k], at = run.t.event[m];
    return html`<li>${at >= 0 ? html`<a data-e="${at}">${labelOf(m)}</a>` : labelOf(m)} <span class="soft">${run.kinds[run.link.kind[k]] ?? "?"}${run.link.arg[k] >= 0 ? " by argument " + run.link.arg[k] : ""}${other === "pred" && run.t.by[n] === m ? ", the last" : ""}</span></li>`;
  })}${links.length > 40 ? html`<li class="soft">and ${links.length - 40} more</li>` : ""}</ul>`;
  return html`<h3>${labelOf(n)}</h3> <span class="soft">${whereabouts(run, e, n)}${file ? html`, submitted at <a data-line="${line}" data-file="${file}">${atPlace(n)}</a>` : ""}${run.t.end[n] < 0 ? html`, <b class="bad">did not end</b>` : ""}</span>${timesOf(n)}${list("Waits for", run.preds[n], "pred")}${list("Waited for by", run.succs[n], "succ")}`;
};
function hintTask(run, e) {
  const n = run.ev.task[e], lane = run.lanes[run.ev.lane[e]];
  if (n < 0) return html`<b>${run.sites[run.ev.site[e]][0]}</b> ${lane.pipe}, ${exact(run.ev.done[e] - run.ev.start[e])}${run.stretch && lane.pipe !== "critical path" ? html`<br/><span class="soft">short phases are added up over ${short(run.stretch)}</span>` : ""}`;
  return html`<b>${labelOf(n)}</b> ${exact(run.ev.done[e] - run.ev.start[e])}<br/><span class="soft">waits for ${run.preds[n].length}, ${run.succs[n].length} wait for it; click for more</span>`;
}

// -- functions on the left, tables below, switches ---------------------------------------------------------------------
function only(site) {  // the tasks of one function
  lit = lit?.sites?.has(site) && lit.sites.size === 1 ? null : {run: runs[0], sites: new Set([site]), line: 0, file: ""};
  for (const b of document.querySelectorAll("[data-func]")) b.setAttribute("aria-pressed", lit !== null && +b.dataset.func === site);
  draw();
}
function taskPage() {
  const run = runs[0], panel = document.createElement("div"), sites = new Map();
  panel.className = "sheet functions", panel.hidden = true;
  fill(panel, html`<table><tr><th>function</th><th class="r">tasks</th><th class="r">mean</th><th class="r">total</th><th class="r">share</th></tr>${run.functions.map(([n, name, count, mean, total, share]) => html`<tr class="hot" data-func="${n}"><td><i class="dot" style="background:${variable("--f" + n)}"></i>${name}</td><td class="r">${count}</td><td class="r">${mean}</td><td class="r">${total}</td><td class="r">${share}</td></tr>`)}</table>`);
  $("source").append(panel), sheets.unshift({run, file: "", title: "Functions", cpp: false, panel, divs: []});
  const few = run.functions.slice(0, 10);
  fill($("key"), html`${few.map(([n, name, count]) => html`<button class="func" data-func="${n}" aria-pressed="false" title="these alone"><i style="background:${variable("--f" + n)}"></i>${name} <span class="soft">${count}</span></button>`)}${
    run.functions.length > few.length ? html`<span class="soft">and ${run.functions.length - few.length} more on the left</span>` : ""
    }<span><i class="mark"></i>critical path, or longest chain</span>${REASONS.map((r, n) => html`<span><i style="background:${variable("--why-" + n)};height:4px;vertical-align:3px"></i>${r}</span>`)}${
    run.kinds.map((k, n) => run.link.kind.includes(n) ? html`<span><i class="link ${k.toLowerCase()}"></i>${k}</span>` : "")}`);
  for (const b of document.querySelectorAll("[data-func]")) b.onclick = () => only(+b.dataset.func);
  for (const a of document.querySelectorAll("#tables a[data-task]")) a.onclick = ev => { ev.preventDefault(); const e = run.t.event[+a.dataset.task]; if (e >= 0) pick(run, e, true), scrollTo({top: 0, behavior: "smooth"}); };
  const switches = (name, label, choices) => html`<span class="switch" role="group" aria-label="${label}">${choices.map(([value, words]) => html`<button data-${name}="${value}" aria-pressed="${view[name] === value}">${words}</button>`)}</span>`;
  fill($("buttons"), html`${switches("group", "Lanes", [["cluster", "By cluster"], ["type", "By type"]])}${switches("mark", "Marked", [["path", "Critical path"], ["chain", "Longest chain"], ["none", "None"]])}${
    switches("arrows", "Arrows", [["one", "Arrows of one"], ["all", "All"]])}<button id="idle" aria-pressed="${view.idle}" title="show cores that had nothing to do">Idle cores</button>`);
  const press = (name, value) => {
    view[name] = value;
    for (const b of document.querySelectorAll(`[data-${name}]`)) b.setAttribute("aria-pressed", b.dataset[name] === value);
    $("idle").setAttribute("aria-pressed", view.idle), arrange(), draw();
  };
  for (const name of ["group", "mark", "arrows"]) for (const b of document.querySelectorAll(`[data-${name}]`)) b.onclick = () => press(name, b.dataset[name]);
  $("idle").onclick = () => press("idle", !view.idle);
  $("search").placeholder = "function or task id";
  // where the address says
  const said = new URLSearchParams(location.hash.slice(1)), cores = run.lanes.filter(l => l.core >= 0);
  if (said.has("theme")) root.dataset.theme = said.get("theme");
  press("idle", cores.length <= 12 || cores.filter(l => l.tasks).length * 3 >= cores.length);
  for (const name of ["group", "mark", "arrows"]) if (said.has(name)) press(name, said.get(name));
  if (said.has("search")) $("search").value = said.get("search"), $("search").oninput();
  if (said.has("from") || said.has("to")) from = ticksOf(+(said.get("from") ?? 0)), to = said.has("to") ? ticksOf(+said.get("to")) : all[1], clamp();
  if (said.has("task")) { const n = run.ids.indexOf(+said.get("task")), e = n >= 0 ? run.t.event[n] : -1; if (e >= 0) layout(), pick(run, e, true); }
}
