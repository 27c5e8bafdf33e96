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
function draw(pane, sheet) {
  const added = new Set(sheet.new);
  pane.replaceChildren(...sheet.lines.map((words, n) => {
    const row = make("div", added.has(n) ? "l new" : "l"), text = make("span", "t");
    row.dataset.of = sheet.places[n] ?? 0;
    for (let i = 0; i < words.length; i += 2) text.append(words[i] ? make("span", "k-" + words[i], words[i + 1]) : words[i + 1]);
    row.append(make("span", "n", n + 1), text);
    return row;
  }));
}
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
  const found = [...seen.findings, ...(seen.launch?.findings ?? [])];
  $("findings").replaceChildren(...found.map(f => {
    const b = make("button", "finding " + f.severity, f.line ? `line ${f.line}: ` : "");
    b.append(make("b", "", f.severity + (f.code ? ` ${f.code}` : "")), ": " + f.message);
    for (const [name, text] of f.parts) b.append("\n", make("span", "soft", name + ": "), text);
    for (const [text, line] of f.notes) b.append("\n", make("span", "soft", line ? `line ${line}: ` : "note: "), text);
    b.onclick = () => go(f.line);
    const row = panes.left.children[f.line - 1];
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

// -- edits: the text goes to the server after a short pause, and is launched after a longer one ----------------------
let timer = 0, version = 0;
async function ask(what, text) {
  const answer = await fetch(what, {method: "POST", body: text, headers: {"Content-Type": "text/plain"}});
  if (!answer.ok) throw new Error(await answer.text() || answer.statusText);
  return answer.json();
}
async function edited(now) {
  const text = edit.value, since = performance.now();
  try {
    const found = await ask("stages", text);
    if (now !== version) return;
    seen = {...found, launch: undefined}, draws();
    $("state").textContent = `${Math.round(performance.now() - since)} ms`;
    timer = setTimeout(async () => {
      try {
        const launch = await ask("launch", text);
        if (now === version) seen.launch = launch, draws(), drawLaunch();
      } catch (e) { $("state").textContent = e.message; }
    }, 400);
  } catch (e) { if (now === version) $("state").textContent = e.message; }
}
if (edit) {
  edit.value = seen.sheets[0].lines.map(words => words.filter((_, i) => i % 2).join("")).join("\n");
  edit.oninput = () => {
    const lines = edit.value.split("\n");
    draw(panes.left, {lines: lines.map(text => ["", text]), places: lines.map((_, n) => n + 1), new: []});
    clearTimeout(timer);
    const now = ++version;
    timer = setTimeout(() => edited(now), 60);
  };
}
draws(), top(), drawLaunch();
root.dataset.ready = "yes";
