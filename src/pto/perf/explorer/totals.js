// -- a range, and what stands beside the lanes: cards, key, stalls, differences, tiles -----------------------------
if (VIEW !== "tasks") $("below").innerHTML = '<section id="range"></section><section id="stalls"></section><section id="compare"></section><section id="tiles"></section>';
function totals() {
  if (UNIT === "step" || VIEW === "tasks") return;
  const holder = $("range"), [a, b] = range ?? all, what = range ? "Selected range" : "Whole run";
  let out = `<h2>${what} <span class="soft">${short(us(b - a))}</span></h2><table><tr><th></th>${runs.map(r => `<th class="r">${text(r.letter || "busy")}</th>`).join("")}</tr>`;
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
  for (const p of pipes) out += `<tr><td><i class="dot" style="background:var(--pipe-${p}, var(--pipe-other))"></i>${p}</td>${per.map(f => `<td class="r">${f.lanes[p] ? (100 * f.busy[p] / f.lanes[p] / (b - a)).toFixed(1) + " %" : ""}</td>`).join("")}</tr>`;
  for (const path of new Set(per.flatMap(f => Object.keys(f.bytes)))) out += `<tr><td>${path.replaceAll("_", " to ")}</td>${per.map(f => `<td class="r">${amount(Math.round(f.bytes[path] ?? 0))}B</td>`).join("")}</tr>`;
  if (per.some(f => f.flops)) out += `<tr><td>cube</td>${per.map(f => `<td class="r">${amount(Math.round(f.flops))}FLOP</td>`).join("")}</tr>`;
  out += `<tr><th>stalls, of all pipes</th></tr>`;
  for (const w of [...new Set(per.flatMap(f => Object.keys(f.why)))].sort((x, y) => (per[0].why[y] ?? 0) - (per[0].why[x] ?? 0)))
    out += `<tr><td><i class="dot" style="background:var(--why-${w})"></i>${text(REASONS[w])}</td>${per.map((f, n) => `<td class="r">${short(us(f.why[w] ?? 0))}</td>`).join("")}</tr>`;
  holder.innerHTML = out + "</table>";
}


const card = ([head, words, share, kind, label], letter) => `<div class="card${kind ? " " + kind : ""}">${label ? `<small>${text(label)}</small>` : ""}<b>${letter}${text(head)}</b>${share === undefined || share === null ? "" : `<div class="meter"><i style="width:${Math.min(100, 100 * share).toFixed(1)}%"></i></div>`}<small>${text(words)}</small></div>`;
// By buffer how much of it is alive at most: what the curve below says, so that both are one number.
const memoryCards = run => Object.keys(run.maps ?? {}).flatMap(n => spacesOf(run, +n).map(s => {
  const {peak} = s.alive, name = [s.title, run.cores[n] && run.cores[n] !== "core" ? run.cores[n] : ""].filter(Boolean).join(" "), clashes = s.overlaps.length;
  const share = s.capacity ? `${Math.round(100 * peak / s.capacity)}%` : s.loose ? size(peak) : "there is no such buffer";
  return [`${name} ${share}`, [s.loose ? `${s.lives.length} tiles without an address` : `${size(peak)} of ${size(s.capacity)} alive at most, addresses up to ${s.top}`, clashes ? `${clashes} overlap${clashes > 1 ? "s" : ""}` : ""].filter(Boolean).join("; "), s.capacity ? peak / s.capacity : null, clashes ? "bad" : ""];
}));
$("cards").innerHTML = runs.map(r => (VIEW === "memory" ? [...r.cards.slice(0, 1), ...memoryCards(r)] : r.cards).slice(0, runs.length > 1 ? 3 : 9).map(c => card(c, r.letter)).join("")).join("");
const problems = runs.flatMap(r => [...(r.problems ?? []), ...Object.values(r.maps ?? {}).flatMap(m => m.spaces.flatMap(s => s.problems))]);
if (problems.length) $("cards").insertAdjacentHTML("afterend", `<ul class="clashes">${problems.slice(0, 5).map(p => `<li>${text(p)}</li>`).join("")}${problems.length > 5 ? `<li>and ${problems.length - 5} more</li>` : ""}</ul>`);
const present = new Set(runs.flatMap(r => [...new Set(r.gap.why)]));
if (VIEW !== "tasks") $("key").innerHTML = [...new Set(runs.flatMap(r => r.lanes.map(l => l.pipe)))].map(p => `<span><i style="background:var(--pipe-${p}, var(--pipe-other))"></i>${p}</span>`).join("") +
  (present.size ? "<span class='soft'>below: waits for</span>" : "") + REASONS.map((r, n) => present.has(n) ? `<span><i style="background:var(--why-${n});height:4px;vertical-align:3px"></i>${text(r)}</span>` : "").join("");

function beside() {
  if (UNIT === "us") {
    $("stalls").innerHTML = runs.map(r => `<h2>${r.letter}Stalls <span class="soft">us of the core that waits longest</span></h2><table>` + r.stalls.slice(0, 14).map(s => `<tr class="hot" data-line="${s[3]}" data-file="${text(s[5] ?? "")}"><td class="r">${s[4].toFixed(2)}</td><td>${text(s[1])}</td><td>${text(s[0])}</td><td class="soft">at ${text(s[2])}</td></tr>`).join("") + "</table>").join("");
    [...$("stalls").querySelectorAll("table")].forEach((t, n) => { for (const row of t.querySelectorAll("[data-line]")) row.onclick = () => { lit = null, choose(runs[n], row.dataset.file, +row.dataset.line); }; });
  }
  if (runs.length > 1) {
    const by = new Map();
    for (const [n, run] of runs.entries()) for (const l of run.lines) { const name = run.sites.find(s => s[1] === l[1] && s[2] === l[0])?.[0] ?? "", cell = by.get(name) ?? [0, 0]; cell[n] += l[3], by.set(name, cell); }
    const [a, b] = runs.map(r => r.total);
    $("compare").innerHTML = `<h2>A against B <span class="soft">${short(a)}, ${short(b)}: ${((b / a - 1) * 100).toFixed(1)} %</span></h2><table><tr><th>on the critical path</th><th class="r">A us</th><th class="r">B us</th><th class="r">B − A</th></tr>` +
      [...by].sort((x, y) => Math.abs(y[1][1] - y[1][0]) - Math.abs(x[1][1] - x[1][0])).slice(0, 16).map(([k, [x, y]]) => `<tr><td>${text(k)}</td><td class="r">${x.toFixed(2)}</td><td class="r">${y.toFixed(2)}</td><td class="r">${(y - x).toFixed(2)}</td></tr>`).join("") + "</table>";
  }
}
function tiles() {  // of the first core
  const run = runs[0], spaces = spacesOf(run, 0);
  $("tiles").innerHTML = "";
  if (!memoryOpen || !spaces.length) return;
  $("tiles").innerHTML = `<h2>Tiles <span class="soft">of ${text(run.cores[0] || "the core")}</span></h2><table><tr><th>tile</th><th>shape</th><th></th><th class="r">from byte</th><th class="r">to byte</th><th class="r">values</th><th class="r">writes</th><th class="r">reads</th></tr>` +
    spaces.flatMap((s, k) => s.lives.map((l, n) => `<tr class="hot" data-life="${k} ${n}"><td><code>${text(named(run, l.name))}</code></td><td>${text(l.shape)}</td><td class="soft">${s.title}</td><td class="r">${s.loose ? "" : l.low}</td><td class="r">${s.loose ? "" : l.high}</td><td class="r">${l.from.length}</td><td class="r">${l.writes}</td><td class="r">${l.reads}</td></tr>`)).join("") + "</table>";
  for (const row of $("tiles").querySelectorAll("[data-life]")) row.onclick = () => { const [k, n] = row.dataset.life.split(" "); core = 0, ofRun = run, tellLife({run, life: spaces[+k].lives[+n], i: 0}); };
}
