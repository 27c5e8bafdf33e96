// -- one event: its card -----------------------------------------------------------------------------------------
const MORE = {};  // what views tell of an event or do when one is picked, by view
function pick(run, e, show = false) {
  picked = {run, e};
  const task = run.ev.task?.[e] ?? -1, [file, line] = task >= 0 ? placeOf(task) : [run.sites[run.ev.site[e]][2], run.sites[run.ev.site[e]][1]], lane = run.lanes[run.ev.lane[e]];
  if (lane.core >= 0) core = lane.core;
  ofRun = run;
  const d = $("detail");
  d.hidden = false;
  const told = MORE[VIEW]?.(run, e);
  fill(d, html`<button class="close" title="close (Esc)">×</button>${told ?? instruction(run, e)}<div class="values"></div>`);
  d.scrollTop = 0, d.classList.toggle("tall", operandsOf(run, e).length > 0);
  d.querySelector(".close").onclick = () => { d.hidden = true, picked = null, lit = null, light(), draw(); };
  for (const a of d.querySelectorAll("[data-e]")) a.onclick = () => pick(run, +a.dataset.e, true);
  for (const a of d.querySelectorAll("[data-line]")) a.onclick = () => choose(run, a.dataset.file ?? file, +a.dataset.line, false);
  for (const a of d.querySelectorAll("[data-life]")) a.onclick = () => { const l = lifeAt(run, core, a.dataset.life, e); if (l) tellLife(l); };
  chosenLife = null;
  lit = lit?.events ? lit : line ? {run, line, file, sites: lit?.line === line && lit?.file === file ? lit.sites : null} : null;
  light();
  if (!told) valuesInto(d.querySelector(".values"), run, e);
  if (show) reveal(run, e);
  draw();
}
function reveal(run, e) {
  const s = run.ev.start[e], f = run.ev.done[e];
  if (s < from || f > to || (VIEW === "tasks" && (f - s) / (to - from) < 0.005)) {
    const half = VIEW === "tasks" ? Math.min((to - from) / 2, Math.max(f - s, 1) * 12) : Math.max((to - from) / 2, (f - s) * 4);
    from = (s + f) / 2 - half, to = (s + f) / 2 + half, clamp();
  }
  const row = rows.find(r => r.run === run && r.lane === run.ev.lane[e]), scroll = $("scroll");
  if (row && (row.y < scroll.scrollTop || row.y > scroll.scrollTop + scroll.clientHeight - 60)) scroll.scrollTop = Math.max(0, row.y - scroll.clientHeight / 2);
}
const cells = parts => html`<table>${parts.map(([k, v]) => html`<tr><th>${k}</th><td>${v}</td></tr>`)}</table>`;
function instruction(run, e) {
  const [name, line] = run.sites[run.ev.site[e]], lane = run.lanes[run.ev.lane[e]], [bytes, flops, path, evidence] = run.charges[run.ev.charge[e]];
  const gap = gapOf(run, e), stretch = run.gap.event.findIndex((x, i) => x === e && REASONS[run.gap.why[i]] === "bandwidth");
  const {start, free, done} = run.ev, head = html`<h3>${name}</h3> ${line ? html`<a data-line="${line}">line ${line}</a>` : ""} <span class="soft">${run.letter + run.cores[lane.core]}, ${lane.pipe}</span>`;
  if (UNIT === "step") return html`${head}${cells([["step", us(start[e])]])}`;
  const parts = [["begins", short(us(start[e]))], ["takes", html`${short(us(done[e] - start[e]))}${done[e] > free[e] ? `, the pipe ${short(us(free[e] - start[e]))}` : ""} <span class="soft">${evidence === "guessed" ? "guessed: no evidence" : evidence}</span>`]];
  if (bytes) parts.push(["moves", amount(bytes) + "B " + path.replaceAll("_", " to ")]);
  if (flops) parts.push(["computes", amount(flops) + (lane.pipe === "M" ? "FLOP" : "elements")]);
  for (const [wanted, word] of [[0, "reads"], [1, "writes"]]) {
    const mine = run.ranges[run.ev.touched[e]].filter((r, n, list) => r[3] === wanted && list.findIndex(o => o.join() === r.join()) === n);
    if (mine.length) parts.push([word, listed(mine.map(([space, low, high, , tile]) => space.startsWith("gm") ? html`${tile ? named(run, tile) : space} <span class="soft">${space}</span>` : html`<a data-life="${space} ${low} ${high}">${tile ? named(run, tile) : "bytes"}</a> <span class="soft">${run.titles?.[space] ?? space} ${low}..${high}</span>`))]);
  }
  if (gap !== null) {
    const of = run.gap.of[gap], giver = of >= 0 ? run.sites[run.ev.site[of]] : null;
    parts.push(["waited", html`<i class="dot" style="background:${variable("--why-" + run.gap.why[gap])}"></i>${short(us(run.gap.to[gap] - run.gap.from[gap]))}: ${REASONS[run.gap.why[gap]]}${giver ? html`, <a data-e="${of}">${giver[0]} of line ${giver[1]}</a>` : ""}`]);
  }
  if (stretch >= 0) parts.push(["lost", `${short(us(run.gap.to[stretch] - run.gap.from[stretch]))} to transfers of other cores`]);
  return html`${head}${cells(parts)}`;
}
