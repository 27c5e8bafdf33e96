// -- the source, file by file, and the C++ that was emitted for it -----------------------------------------------
const sheets = [];  // {run, file, title, cpp, divs, panel}
const marker = (part, colour) => `linear-gradient(to left, color-mix(in srgb, var(${colour}) 45%, transparent) ${Math.round(part * 100)}%, transparent 0)`;
function sheet(run, file, title, head, lines, found, cpp = false) {
  const panel = document.createElement("div"), most = Math.max(1e-9, ...[...found.values()].map(l => l?.[3] ?? 0));
  panel.className = VIEW === "tasks" || UNIT === "step" ? "sheet plain" : "sheet", panel.hidden = true;
  fill(panel, html`<h3>${head}</h3>${lines.map((line, n) => {
    const l = found.get(n + 1), part = l ? l[3] / most : 0, time = l && VIEW !== "tasks" && UNIT === "us" ? (l[3] >= 0.005 ? l[3].toFixed(2) : "·") : "";
    const tip = l ? html` title="at work ${short(l[2])} of all cores, waits ${short(l[4])}, ${l[5]} times"` : "";
    return html`<div class="l${found.has(n + 1) ? " hot" : ""}" data-n="${n + 1}"${tip}><span class="n">${n + 1}</span><span class="t"${part > 0.01 ? html` style="background:${marker(part, "--bad")}"` : ""}>${time}</span><span>${line || " "}</span></div>`;
  })}`);
  $("source").append(panel);
  const made = {run, file, title, cpp, panel, divs: panel.querySelectorAll(".l")};
  panel.onclick = ev => {
    const div = ev.target.closest(".l.hot");
    if (!div || getSelection().toString()) return;
    if (!cpp) choose(run, file, +div.dataset.n);
    else { const place = run.cpp.places[+div.dataset.n - 1]; if (place) choose(run, place[0], place[1]); }
  };
  sheets.push(made);
}
function drawSource() {
  for (const run of runs) {
    for (const [file, source] of Object.entries(run.sources)) {
      if (sheets.some(s => s.run.letter === run.letter && s.file === file)) continue;
      const found = new Map(run.lines.filter(l => l[0] === file).map(l => [l[1], l]));
      for (const [line, at] of VIEW === "tasks" ? run.places.map(p => [p[1], p[0]]) : run.sites.map(s => [s[1], s[2]])) if (at === file && line && !found.has(line)) found.set(line, null);
      const what = VIEW === "tasks" ? "submissions" : UNIT === "us" ? "us on the critical path" : "";
      sheet(run, file, run.letter + file.split("/").pop(), run.letter + file.split("/").pop() + (what && ` — ${what}`), source.split("\n"), found);
    }
    if (!run.cpp) continue;
    const written = run.cpp.text.split("\n"), at = new Map();  // lines of C++ with the times of what they stand for, once
    run.cpp.places.forEach((place, n) => {
      if (!place || !run.sites.some(s => s[1] === place[1] && s[2] === place[0])) return;
      const l = run.lines.find(l => l[0] === place[0] && l[1] === place[1]);
      at.set(n + 1, l && /^\s*[A-Za-z_:]+(<.*>)?\(/.test(written[n]) ? l : null);
    });
    const lines = run.cpp.problem ? run.cpp.problem.split("\n") : written;
    sheet(run, "", run.letter + "C++", run.cpp.problem ? "no C++ for it" : "C++ that ptoas writes for it — us on the critical path", lines, at, true);
  }
  fill($("tabs"), html`${sheets.map((s, n) => html`<button role="tab" data-n="${n}" aria-selected="false">${s.title}</button>`)}`);
  for (const b of $("tabs").children) b.onclick = () => { showSheet(sheets[+b.dataset.n]), light(); };
  $("tabs").hidden = sheets.length < 2;
  if (sheets.length) showSheet(sheets[0]); else $("source").hidden = VIEW !== "tasks", fill($("source"), html`<p class="soft none">The source is not known.</p>`);
}
function showSheet(which) {
  for (const [n, s] of sheets.entries()) s.panel.hidden = s !== which, $("tabs").children[n].setAttribute("aria-selected", s === which);
}
const sitesAt = (run, file, line) => new Set(run.sites.flatMap((s, i) => s[1] === line && s[2] === file ? [i] : []));
function choose(run, file, line, jump = true) {
  if (VIEW === "tasks") {  // the tasks that are submitted there
    const events = new Set();
    run.ev.task.forEach((n, e) => { if (n >= 0 && placeOf(n)[0] === file && placeOf(n)[1] === line) events.add(e); });
    lit = lit?.line === line && lit.events ? null : {run, events, line, file}, $("found").textContent = lit ? events.size + " found" : "", light(), draw();
    return;
  }
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
// Marks the line, and the lines of C++ that stand for it; the open sheet stays where it shows one of them.
function light() {
  for (const s of sheets) for (const d of s.panel.querySelectorAll(".lit")) d.classList.remove("lit");
  if (!lit) return;
  if (root.dataset.inside && lit.line) parent.postMessage({line: lit.line}, "*");
  const marked = new Map();
  for (const s of sheets) if (s.run === lit.run) {
    const numbers = s.cpp ? s.run.cpp.places.flatMap((p, n) => p && p[0] === lit.file && p[1] === lit.line ? [n + 1] : []) : s.file === lit.file && lit.line ? [lit.line] : [];
    for (const n of numbers) s.divs[n - 1]?.classList.add("lit");
    if (numbers.length) marked.set(s, s.divs[numbers[numbers.length - 1] - 1]);
  }
  const open = sheets.find(s => !s.panel.hidden), shown = marked.has(open) ? open : marked.keys().next().value;
  if (!shown) return;
  if (shown !== open) showSheet(shown);
  const div = marked.get(shown), box = $("source").getBoundingClientRect(), at = div?.getBoundingClientRect();
  if (at && (at.top < box.top + 30 || at.bottom > box.bottom)) $("source").scrollTop += at.top - box.top - box.height / 2;
}
