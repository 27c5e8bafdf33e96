// The page of a program. All text is set as text; only the page of a launch, which the server escaped, is markup.
const $ = id => document.getElementById(id), root = document.documentElement;
const trusted = window.trustedTypes?.createPolicy("pto", {createHTML: text => text}) ?? {createHTML: text => text};
const edit = $("edit"), panes = {left: $("left").firstElementChild, right: $("right").firstElementChild};
const LINE = 20;
let seen = JSON.parse($("data").textContent), chosen = "", lit = 0;

function make(tag, name, text = "") {
  const made = document.createElement(tag);
  made.className = name, made.textContent = text;
  return made;
}
// Draws the lines that differ from those of the pane.
function draw(pane, sheet) {
  const added = new Set(sheet.new), old = pane.keys ?? [], rows = [...pane.children];
  const keys = pane.keys = sheet.lines.map((words, n) => [sheet.places[n], added.has(n), ...words].join("\0"));
  let from = 0, rest = 0;
  while (from < keys.length && keys[from] === old[from]) from++;
  while (old.length === keys.length && rest < keys.length - from && keys.at(-1 - rest) === old.at(-1 - rest)) rest++;
  for (const row of rows.slice(from, rows.length - rest)) row.remove();
  const made = sheet.lines.slice(from, keys.length - rest).map((words, k) => {
    const n = from + k, row = make("div", added.has(n) ? "l new" : "l"), text = make("span", "t");
    row.dataset.of = sheet.places[n] ?? 0;
    for (let i = 0; i < words.length; i += 2) text.append(words[i] ? make("span", "k-" + words[i], words[i + 1]) : words[i + 1]);
    row.append(make("span", "n", n + 1), text);
    return row;
  });
  if (from) pane.children[from - 1].after(...made); else pane.prepend(...made);
}
const textOf = words => words.filter((_, i) => i % 2).join("");
function show(title) {
  const sheets = seen.sheets.slice(1), sheet = sheets.find(s => s.title === title) ?? sheets.at(-1);
  $("tabs").replaceChildren(...sheets.map(s => {
    const b = make("button", "", s.title);
    b.role = "tab", b.ariaSelected = s === sheet, b.onclick = () => { chosen = s.title, show(chosen), top(), light(lit); };
    return b;
  }));
  $("right").classList.toggle("stale", !sheet);  // what the program was before its errors
  if (sheet) draw(panes.right, sheet);
  $("about").textContent = sheet ? sheet.note : "the program has errors";
}
function top() {  // helper functions are less interesting than the program
  const first = panes.right.querySelector('.l[data-of]:not([data-of="0"])');
  $("right").scrollTop = first ? first.offsetTop - LINE : 0;
}
function draws() {
  draw(panes.left, seen.sheets[0]), show(chosen || "C++");
  for (const row of panes.left.children) row.classList.remove("error", "warning"), row.title = "";
  const found = [...seen.findings, ...(seen.launch?.findings ?? [])];
  $("findings").replaceChildren(...found.map(f => {
    const lineOf = at => at.file === seen.name ? at.line : 0, line = lineOf(f), at = line ? `line ${line}: ` : "";
    const b = make("button", "finding " + f.severity, at);
    b.append(make("b", "", f.severity + (f.code ? ` ${f.code}` : "")), ": " + f.message);
    for (const name of ["expected", "got", "help"]) if (f[name]) b.append("\n", make("span", "soft", name + ": "), f[name]);
    for (const n of f.notes ?? []) b.append("\n", make("span", "soft", lineOf(n) ? `line ${lineOf(n)}: ` : "note: "), n.message);
    b.onclick = () => go(line);
    const row = panes.left.children[line - 1];
    if (row && f.severity !== "advice") row.classList.add(f.severity), row.title = f.message;
    return b;
  }));
  light(lit);
}
function drawLaunch() {
  const {page = "", note = ""} = seen.launch ?? {}, frame = $("launch");
  $("note").textContent = note, frame.hidden = !page;
  if (page) frame.srcdoc = trusted.createHTML(page);
}
// Marks a line of the source, and the lines that stand for it.
function light(line) {
  lit = line;
  for (const pane of Object.values(panes)) for (const row of pane.children) row.classList.toggle("lit", line > 0 && +row.dataset.of === line);
}
function reveal(row) {
  if (!row) return;
  const box = row.closest(".pane"), at = row.offsetTop - box.scrollTop;
  if (at < 0 || at > box.clientHeight - 2 * LINE) box.scrollTop = row.offsetTop - box.clientHeight / 3;
}
function go(line, told = true) {
  if (!line) return;
  light(line);
  for (const pane of Object.values(panes)) reveal(pane.querySelector(".lit"));
  if (told) $("launch").contentWindow?.postMessage({line}, "*");
}
const lineAt = ev => Math.min(panes.left.children.length, Math.floor((ev.clientY - panes.left.getBoundingClientRect().top) / LINE) + 1);
const lineOf = ev => +(ev.target.closest?.(".l")?.dataset.of ?? 0);
for (const [pane, at] of [[$("left"), ev => edit ? lineAt(ev) : lineOf(ev)], [$("right"), lineOf]]) {
  pane.onmousemove = ev => { const line = at(ev); if (line !== lit) light(line); };
  pane.onclick = ev => { if (!String(getSelection())) go(at(ev)); };
}
addEventListener("message", ev => { if (ev.source === $("launch").contentWindow) ev.data.ready ? theme() : go(ev.data.line, false); });

const theme = () => $("launch").contentWindow?.postMessage({inside: true, theme: root.dataset.theme}, "*");
$("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark", theme();
};

// -- edits: a text goes to the server when the last one is answered, and is launched after a pause ------------------
let timer = 0, version = 0, busy = false;
async function ask(what, text) {
  const answer = await fetch(what, {method: "POST", body: text, headers: {"Content-Type": "text/plain"}});
  if (!answer.ok) throw new Error(await answer.text() || answer.statusText);
  return answer.json();
}
async function edited() {
  const text = edit.value, now = version, since = performance.now(), fails = e => { if (now === version) $("state").textContent = e.message; };
  busy = true;
  await ask("stages", text).then(found => {
    if (now !== version) return;
    seen = {...found, launch: undefined}, draws();
    $("state").textContent = `${Math.round(performance.now() - since)} ms`;
    timer = setTimeout(() => ask("launch", text).then(launch => {
      if (now === version) seen.launch = launch, draws(), drawLaunch();
    }).catch(fails), 400);
  }).catch(fails);
  busy = false;
  if (now !== version) edited();
}
if (edit) {
  edit.value = seen.sheets[0].lines.map(textOf).join("\n");
  edit.oninput = () => {
    const known = new Map(seen.sheets[0].lines.map(words => [textOf(words), words]));
    const lines = edit.value.split("\n").map(text => known.get(text) ?? ["", text]);
    draw(panes.left, {lines, places: lines.map((_, n) => n + 1), new: []});
    clearTimeout(timer), ++version;
    if (!busy) edited();
  };
}
draws(), top(), drawLaunch();
root.dataset.ready = "yes";
