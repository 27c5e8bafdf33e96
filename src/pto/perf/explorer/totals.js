// -- a range, and what stands beside the lanes: cards, key, stalls, differences, tiles -----------------------------
if (VIEW !== "tasks") fill($("below"), html`<section id="range"></section><section id="stalls"></section><section id="compare"></section><section id="tiles"></section>`);
function totals() {
  if (UNIT === "step" || VIEW === "tasks") return;
  const holder = $("range"), [a, b] = range ?? all, what = range ? "Selected range" : "Whole run";
  const each = (head, cell) => html`<tr><td>${head}</td>${per.map(f => html`<td class="r">${cell(f)}</td>`)}</tr>`, lines = [];
  const pipes = [...new Set(runs.flatMap(r => r.lanes.map(l => l.pipe)))];
  const per = runs.map(run => {
    const found = {busy: {}, lanes: {}, why: {}, bytes: {}, flops: 0};
    run.lanes.forEach((l, i) => {
      found.busy[l.pipe] = (found.busy[l.pipe] ?? 0) + busyUntil(run, i, b) - busyUntil(run, i, a), found.lanes[l.pipe] = (found.lanes[l.pipe] ?? 0) + 1;
      const low = Math.max(run.first[i], bisect(run.ev.start, a, run.first[i], run.first[i + 1]) - 1), high = bisect(run.ev.start, b, run.first[i], run.first[i + 1]);
      for (let e = low; e < high; e++) {
        const whole = Math.max(1, run.ev.done[e] - run.ev.start[e]), part = Math.max(0, Math.min(b, run.ev.done[e]) - Math.max(a, run.ev.start[e])) / whole;
        const [bytes, flops, path] = run.charges[run.ev.charge[e]];
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
  for (const p of pipes) lines.push(each(html`<i class="dot" style="background:${variable("--pipe-" + p)}"></i>${p}`, f => f.lanes[p] ? (100 * f.busy[p] / f.lanes[p] / (b - a)).toFixed(1) + " %" : ""));
  for (const path of new Set(per.flatMap(f => Object.keys(f.bytes)))) lines.push(each(path.replaceAll("_", " to "), f => amount(Math.round(f.bytes[path] ?? 0)) + "B"));
  if (per.some(f => f.flops)) lines.push(each("cube", f => amount(Math.round(f.flops)) + "FLOP"));
  lines.push(html`<tr><th>stalls, of all pipes</th></tr>`);
  for (const w of [...new Set(per.flatMap(f => Object.keys(f.why)))].sort((x, y) => (per[0].why[y] ?? 0) - (per[0].why[x] ?? 0)))
    lines.push(each(html`<i class="dot" style="background:${variable("--why-" + w)}"></i>${REASONS[w]}`, f => short(us(f.why[w] ?? 0))));
  fill(holder, html`<h2>${what} <span class="soft">${short(us(b - a))}</span></h2><table><tr><th></th>${runs.map(r => html`<th class="r">${r.letter || "busy"}</th>`)}</tr>${lines}</table>`);
}

const card = ([head, words, share, kind, label], letter) => html`<div class="card${kind ? " " + kind : ""}">${label ? html`<small>${label}</small>` : ""}<b>${letter}${head}</b>${share === undefined || share === null ? "" : html`<div class="meter"><i style="width:${Math.min(100, 100 * share).toFixed(1)}%"></i></div>`}<small>${words}</small></div>`;
// By buffer how much of it is alive at most: what the curve below says, so that both are one number.
const memoryCards = run => Object.keys(run.maps ?? {}).flatMap(n => spacesOf(run, +n).map(s => {
  const {peak} = s.alive, name = [s.title, run.cores[n] && run.cores[n] !== "core" ? run.cores[n] : ""].filter(Boolean).join(" "), clashes = s.overlaps.length;
  const share = s.capacity ? `${Math.round(100 * peak / s.capacity)}%` : s.loose ? size(peak) : "there is no such buffer";
  return [`${name} ${share}`, [s.loose ? `${s.lives.length} tiles without an address` : `${size(peak)} of ${size(s.capacity)} alive at most, addresses up to ${s.top}`, clashes ? `${clashes} overlap${clashes > 1 ? "s" : ""}` : ""].filter(Boolean).join("; "), s.capacity ? peak / s.capacity : null, clashes ? "bad" : ""];
}));
fill($("cards"), html`${runs.map(r => (VIEW === "memory" ? [...r.cards.slice(0, 1), ...memoryCards(r)] : r.cards).slice(0, runs.length > 1 ? 3 : 9).map(c => card(c, r.letter)))}`);
const problems = runs.flatMap(r => [...(r.problems ?? []), ...Object.values(r.maps ?? {}).flatMap(m => m.spaces.flatMap(s => s.problems))]);
if (problems.length) {
  const list = document.createElement("ul");
  list.className = "clashes", $("cards").after(list);
  fill(list, html`${problems.slice(0, 5).map(p => html`<li>${p}</li>`)}${problems.length > 5 ? html`<li>and ${problems.length - 5} more</li>` : ""}`);
}
const present = new Set(runs.flatMap(r => [...new Set(r.gap.why)]));
if (VIEW !== "tasks") fill($("key"), html`${[...new Set(runs.flatMap(r => r.lanes.map(l => l.pipe)))].map(p => html`<span><i style="background:${variable("--pipe-" + p)}"></i>${p}</span>`)}${
  present.size ? html`<span class="soft">below: waits for</span>` : ""}${REASONS.map((r, n) => present.has(n) ? html`<span><i style="background:${variable("--why-" + n)};height:4px;vertical-align:3px"></i>${r}</span>` : "")}`);

function beside() {
  if (UNIT === "us") {
    fill($("stalls"), html`${runs.map(r => html`<h2>${r.letter}Stalls <span class="soft">us of the core that waits longest</span></h2><table>${r.stalls.slice(0, 14).map(s => html`<tr class="hot" data-line="${s[3]}" data-file="${s[5]}"><td class="r">${s[4].toFixed(2)}</td><td>${s[1]}</td><td>${s[0]}</td><td class="soft">at ${s[2]}</td></tr>`)}</table>`)}`);
    [...$("stalls").querySelectorAll("table")].forEach((t, n) => { for (const row of t.querySelectorAll("[data-line]")) row.onclick = () => { lit = null, choose(runs[n], row.dataset.file, +row.dataset.line); }; });
  }
  if (runs.length > 1) {
    const by = new Map();
    for (const [n, run] of runs.entries()) for (const l of run.lines) { const name = run.sites.find(s => s[1] === l[1] && s[2] === l[0])?.[0] ?? "", cell = by.get(name) ?? [0, 0]; cell[n] += l[3], by.set(name, cell); }
    const [a, b] = runs.map(r => r.total);
    fill($("compare"), html`<h2>A against B <span class="soft">${short(a)}, ${short(b)}: ${((b / a - 1) * 100).toFixed(1)} %</span></h2><table><tr><th>on the critical path</th><th class="r">A us</th><th class="r">B us</th><th class="r">B − A</th></tr>${
      [...by].sort((x, y) => Math.abs(y[1][1] - y[1][0]) - Math.abs(x[1][1] - x[1][0])).slice(0, 16).map(([k, [x, y]]) => html`<tr><td>${k}</td><td class="r">${x.toFixed(2)}</td><td class="r">${y.toFixed(2)}</td><td class="r">${(y - x).toFixed(2)}</td></tr>`)}</table>`);
  }
}
function tiles() {  // of the first core
  const run = runs[0], spaces = spacesOf(run, 0);
  $("tiles").replaceChildren();
  if (!memoryOpen || !spaces.length) return;
  fill($("tiles"), html`<h2>Tiles <span class="soft">of ${run.cores[0] || "the core"}</span></h2><table><tr><th>tile</th><th>shape</th><th></th><th class="r">from byte</th><th class="r">to byte</th><th class="r">values</th><th class="r">writes</th><th class="r">reads</th></tr>${
    spaces.flatMap((s, k) => s.lives.map((l, n) => html`<tr class="hot" data-life="${k} ${n}"><td><code>${named(run, l.name)}</code></td><td>${l.shape}</td><td class="soft">${s.title}</td><td class="r">${s.loose ? "" : l.low}</td><td class="r">${s.loose ? "" : l.high}</td><td class="r">${l.from.length}</td><td class="r">${l.writes}</td><td class="r">${l.reads}</td></tr>`))}</table>`);
  for (const row of $("tiles").querySelectorAll("[data-life]")) row.onclick = () => { const [k, n] = row.dataset.life.split(" "); core = 0, ofRun = run, tellLife({run, life: spaces[+k].lives[+n], i: 0}); };
}
