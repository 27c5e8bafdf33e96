// -- input ----------------------------------------------------------------------------------------------------
function clamp() {
  const least = Math.min(all[1] - all[0], UNIT === "step" ? 4 : ticksOf(VIEW === "tasks" ? 0.02 : 0.013)), width = Math.min(all[1] - all[0], Math.max(least, to - from));
  from = Math.max(all[0], Math.min(from, all[1] - width)), to = from + width;
}
const zoom = (factor, t = (from + to) / 2) => { from = t - (t - from) * factor, to = t + (to - t) * factor, clamp(), draw(); };
const pan = part => { const d = (to - from) * part; from += d, to += d, clamp(), draw(); };
const lanes = $("lanes"), over = $("over");
const hit = ev => {
  const box = lanes.getBoundingClientRect(), x = ev.clientX - box.left, y = ev.clientY - box.top - 20 + $("scroll").scrollTop, t = at(x, box.width);
  const row = rows.find(r => y >= r.y && y < r.y + r.h);
  if (!row || x < LEFT) return {t, row, x};
  if (row.lane === undefined) return {t, row, x};
  const {run, lane} = row, a = run.first[lane], b = run.first[lane + 1], near = 2 * (to - from) / span(box.width);
  const i = bisect(run.ev.start, t + near, a, b) - 1;
  const e = i >= a && run.ev.done[i] >= t - near ? i : -1;
  let gap = -1;
  if (e < 0) { const g = bisect(run.gap.from, t, run.gfirst[lane], run.gfirst[lane + 1]) - 1; if (g >= run.gfirst[lane] && run.gap.to[g] >= t) gap = g; }
  return {t, row, e, gap, x};
};
const hint = (run, e) => VIEW === "tasks" ? hintTask(run, e) : null;  // what a view says where the pointer is
function showTip(ev, words) {  // right of the pointer, or above it: never over the card on the left
  const tip = $("tip");
  fill(tip, words), tip.hidden = false;
  tip.style.left = Math.max($("time").getBoundingClientRect().left, Math.min(ev.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (ev.clientY + 18 + tip.offsetHeight > innerHeight ? ev.clientY - tip.offsetHeight - 12 : ev.clientY + 18) + "px";
}
let drag = null;
lanes.onpointerdown = ev => { const h = hit(ev); drag = {x: ev.clientX, t: h.t, h, moved: false}, lanes.setPointerCapture(ev.pointerId), lanes.focus({preventScroll: true}); };
lanes.onpointermove = ev => {
  if (drag && Math.abs(ev.clientX - drag.x) > 4) { drag.moved = true; const t = hit(ev).t; range = [Math.min(t, drag.t), Math.max(t, drag.t)], $("tip").hidden = true, draw(); return; }
  const h = hit(ev), tip = $("tip");
  if (h.e >= 0 && h.row.run) {
    const run = h.row.run, [name, line] = run.sites[run.ev.site[h.e]];
    hover = {run, e: h.e}, showTip(ev, hint(run, h.e) ?? html`<b>${name}</b> line ${line}, ${short(us(run.ev.done[h.e] - run.ev.start[h.e]))}`);
  } else if (h.gap >= 0) {
    const run = h.row.run, of = run.gap.of[h.gap], giver = of >= 0 ? run.sites[run.ev.site[of]] : null;
    hover = null, showTip(ev, html`${VIEW === "tasks" ? "" : "waits "}${short(us(run.gap.to[h.gap] - run.gap.from[h.gap]))}: ${REASONS[run.gap.why[h.gap]]}${giver ? ` (${giver[0]}, line ${giver[1]})` : ""}`);
  } else { tip.hidden = true; if (hover) hover = null, draw(); return; }
  draw();
};
lanes.onpointerup = ev => {
  if (!drag) return;
  if (drag.moved) totals();
  else {
    const h = drag.h;
    range = null, totals();
    if (h.row?.run && h.row.core >= 0) core = h.row.core, ofRun = h.row.run;
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
$("scroll").addEventListener("wheel", wheel, {passive: false}), $("memory").parentElement.addEventListener("wheel", wheel, {passive: false}), over.addEventListener("wheel", wheel, {passive: false});
$("scroll").onscroll = draw;
let overDrag = false;
const overAt = ev => { const box = over.getBoundingClientRect(), t = all[0] + (ev.clientX - box.left - LEFT) / span(box.width) * (all[1] - all[0]), half = (to - from) / 2; from = t - half, to = t + half, clamp(), draw(); };
over.onpointerdown = ev => { overDrag = true, over.setPointerCapture(ev.pointerId), overAt(ev); };
over.onpointermove = ev => { if (overDrag) overAt(ev); };
over.onpointerup = () => { overDrag = false; };
const memory = $("memory");
memory.onclick = ev => { const found = memoryAt(ev); if (found) tellLife(found); else chosenLife = null, draw(); };
memory.onpointermove = ev => {
  const found = memoryAt(ev);
  if (!found) { $("tip").hidden = true; return; }
  const {run, life, i} = found, e = i >= 0 ? life.events[i] : -1, by = e >= 0 ? run.sites[run.ev.site[e]] : null;
  showTip(ev, html`<b>${named(run, life.name)}</b> ${life.shape}, bytes ${life.low}..${life.high}<br/>${i >= 0 ? `value ${i + 1} of ${life.from.length}, alive ${short(us(life.to[i] - life.from[i]))}` : "holds nothing that is read later"}${by ? `, of ${by[0]} line ${by[1]}` : ""}`);
};
memory.onpointerleave = () => { $("tip").hidden = true; };
let gripped = null;
$("grip").onpointerdown = ev => { gripped = [ev.clientY, $("memory").parentElement.clientHeight], $("grip").setPointerCapture(ev.pointerId); };
$("grip").onpointermove = ev => { if (gripped) ownRoom = Math.max(40, gripped[1] + gripped[0] - ev.clientY), draw(); };
$("grip").onpointerup = () => { gripped = null; };
const step = by => {
  if (!picked) { const row = rows.find(r => r.lane !== undefined); if (row) pick(row.run, row.run.first[row.lane], true); return; }
  const {run, e} = picked, lane = run.ev.lane[e], n = e + by;
  if (n >= run.first[lane] && n < run.first[lane + 1]) pick(run, n, true);
};
const KEYS = {"+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "0": () => { [from, to] = all, range = null, totals(), draw(); },
  n: () => step(1), p: () => step(-1), z: () => { if (range) [from, to] = range, range = null, clamp(), totals(), draw(); else if (picked) { const {run, e} = picked, w = run.ev.done[e] - run.ev.start[e]; from = run.ev.start[e] - w, to = run.ev.done[e] + w, clamp(), draw(); } },
  c: () => $("path")?.click(), m: () => { if (VIEW !== "tasks") setMemory(!memoryOpen); }, t: () => $("theme").click(), "?": () => $("keys").click(), "/": () => $("search").focus(),
  Escape: () => { range = null, picked = null, lit = null, chosenLife = null, $("detail").hidden = true, light(), totals(), draw(); }};
document.addEventListener("keydown", ev => {
  if (ev.target.tagName === "INPUT" || ev.ctrlKey || ev.metaKey) return;
  const does = KEYS[ev.key];
  if (does) does(), ev.preventDefault();
});
fill($("help"), html`<h3>Keyboard and mouse</h3><table>${[["+ − or ctrl-wheel", "zoom"], ["← → or shift-wheel", "move in time"], ["0", "all of the time"], ["drag", "select a range: its totals are below"], ["z or double click", "zoom to the range, or to the picked instruction"],
  ["click", "an instruction: its line, bytes, whom it waited for"], ["n p", "next, previous of the lane"], ["c", "critical path"], ["m", "memory: more room, or less"], ["/", "search"], ["t", "light or dark"], ["Esc", "nothing picked"]].map(([k, v]) => html`<tr><td><b>${k}</b></td><td>${v}</td></tr>`)}</table><form method="dialog"><button>Close</button></form>`);
$("keys").onclick = () => $("help").showModal();
if (VIEW !== "tasks") {
  fill($("buttons"), html`${UNIT === "us" ? html`<button id="path" aria-pressed="false" title="what the total consists of (c)">Critical path</button> ` : ""
    }<button id="memory-button" aria-pressed="${memoryOpen}" title="more room for memory (m)">Memory</button> <span class="switch" id="scales" role="group" aria-label="Address scale"${memoryOpen ? "" : " hidden"}>${
    [["fit", "Fit", "every tile legible, free space squeezed"], ["used", "Used", "true to scale, up to the highest tile"], ["full", "Full", "true to scale, up to the capacity"]].map(([v, t, tip]) => html`<button data-scale="${v}" aria-pressed="${v === scaleMode}" title="${tip}">${t}</button>`)}</span>`);
  if ($("path")) $("path").onclick = () => { showPath = !showPath, $("path").setAttribute("aria-pressed", showPath), draw(); };
  $("memory-button").onclick = () => setMemory(!memoryOpen);
  for (const b of $("scales").children) b.onclick = () => { scaleMode = b.dataset.scale; for (const o of $("scales").children) o.setAttribute("aria-pressed", o === b); draw(); };
}
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
  const run = runs[0], sites = new Set(run.sites.flatMap((s, i) => s[0].toLowerCase().includes(word) || String(s[1]) === word ? [i] : []));
  let count = 0;
  if (VIEW === "tasks") {  // by its number, its name or where it was submitted
    const id = /^#?\d+$/.test(word) ? +word.replace("#", "") : null, events = new Set();
    for (let e = 0; e < run.ev.task.length; e++) { const n = run.ev.task[e]; if (n >= 0 && (id !== null ? run.ids[n] === id : labelOf(n).toLowerCase().includes(word) || atPlace(n).toLowerCase().includes(word))) events.add(e); }
    lit = {run, events, line: 0, file: ""}, $("found").textContent = events.size + " found", draw();
    return;
  }
  for (const s of run.ev.site) if (sites.has(s)) count++;
  lit = {run, sites, line: 0, file: ""}, $("found").textContent = count + " found", light(), draw();
};
$("search").onkeydown = ev => { if (ev.key === "Enter") { const run = runs[0], e = run.ev.site.findIndex((s, i) => (lit?.sites?.has(s) || lit?.events?.has(i)) && run.ev.start[i] > (picked ? run.ev.start[picked.e] : -1)); if (e >= 0) pick(run, e, true); } };
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const k of Object.keys(css)) delete css[k]; draw(); });
arrange();
if (VIEW === "tasks") taskPage();
drawSource();
if (VIEW !== "tasks") beside(), totals();
setMemory(memoryOpen);
if (parent !== window) {  // perhaps inside the page of `pto explore`, which says so, and has the source and the theme
  addEventListener("message", ev => {
    if (ev.source !== parent) return;
    if (ev.data.inside) root.dataset.inside = "yes", draw();
    if (ev.data.theme && root.dataset.theme !== ev.data.theme) $("theme").click();
    if (ev.data.line && lit?.line !== ev.data.line) choose(runs[0], Object.keys(runs[0].sources)[0], ev.data.line);
  });
  parent.postMessage({ready: true}, "*");
}
root.dataset.ready = "yes";
window.explorer = {runs, rows, state: () => ({from, to, range, picked, core}), pick, zoom, busyUntil, us, spacesOf, memoryRows: () => memoryRows, px, show: (a, b) => { from = ticksOf(a), to = ticksOf(b), clamp(), draw(); }};  // for tests
