// Hovering, choosing, searching, zooming and moving: everything here changes `view` and calls `draw()`.
const tip = document.getElementById("tip"), detail = document.getElementById("detail"), search = document.getElementById("search");
const all = what => document.querySelectorAll(what);

function show(from, to) {
  const least = Math.min(20, data.end), length = Math.max(least, Math.min(data.end, to - from));
  view.from = Math.max(0, Math.min(data.end - length, from)), view.to = view.from + length;
  draw();
}
function zoom(factor, at = (view.from + view.to) / 2) {
  show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}
const move = part => show(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));

// -- what is under the pointer ----------------------------------------------------------------------------

function rowAt(y) {
  return rows.find(r => r.kind !== "cluster" && r.kind !== "title" && y >= r.y && y < r.y + r.height);
}

// The bar of a list, sorted by start, at a time; one that is narrow counts within three pixels.
function barAt(list, starts, ends, t) {
  const low = before(list, starts, t + 1);
  const near = 3 * (view.to - view.from) / (width - LEFT - RIGHT);
  let best = -1, distance = near;
  for (let k = Math.max(0, low - 3); k < Math.min(list.length, low + 2); k++) {
    const n = list[k], away = t < starts[n] ? starts[n] - t : t > ends[n] ? t - ends[n] : 0;
    if (away < distance || (away === 0 && best < 0)) best = n, distance = away;
  }
  return best;
}

const TIMES = [["submit", "submitted"], ["ready", "ready"], ["dispatch", "dispatched"], ["start", "started"], ["end", "ended"], ["finish", "finish seen"]];
const WAITS = {ready: "dependency wait", dispatch: "queue wait", start: "head overhead", end: "execution", finish: "tail overhead"};

function cells(pairs) {
  const table = document.createElement("table");
  for (const row of pairs) {
    const line = table.insertRow();
    for (const words of row) line.insertCell().textContent = words;
  }
  return table;
}
function element(kind, words, className = "") {
  const out = document.createElement(kind);
  out.textContent = words, out.className = className;
  return out;
}

function facts(n) {
  let last = -1;
  const lines = TIMES.map(([field, words]) => {
    const t = T[field][n], waited = t >= 0 && last >= 0 && WAITS[field] ? `${WAITS[field]} ${time(t - last)}` : "";
    if (t >= 0) last = t;
    return [words, t >= 0 ? time(t) : "not recorded", waited];
  });
  return cells(lines);
}
function whereabouts(n) {
  const core = data.cores.find(c => c[0] === T.core[n]);
  const cluster = T.core[n] < data.blocks ? T.core[n] : Math.floor((T.core[n] - data.blocks) / 2);
  const words = [`${core ? core[4] : "core " + T.core[n]} of cluster ${cluster}`];
  for (const [field, what] of [["thread", "host thread"], ["scheduler", "scheduler"], ["scope", "scope"], ["cluster", "group"], ["block", "block"]])
    if (T[field][n] >= 0) words.push(`${what} ${T[field][n]}`);
  return words.join(", ");
}
const site = n => data.sites[T.site[n]] ?? "";

function hint(e, box) {
  const r = rowAt(e.clientY - box.top), t = timeAt(e.clientX - box.left);
  tip.replaceChildren();
  view.hover = -1;
  if (r && r.kind === "core") {
    const n = view.hover = barAt(r.list, start, end, t);
    if (n >= 0) {
      tip.append(element("b", label(n)), element("div", whereabouts(n)), facts(n));
      tip.append(element("div", `waits for ${preds[n].length}, ${succs[n].length} wait for it${site(n) ? ", submitted at " + site(n) : ""}`, "soft"));
      if (T.end[n] < 0) tip.append(element("div", "did not end"));
    }
  } else if (r && r.kind === "phase") {
    const n = barAt(r.list, data.phases.start, data.phases.end, t), p = data.phases;
    if (n >= 0) tip.append(element("b", `${r.name}: ${data.phase_names[p.phase[n]]}`),
      element("div", `${time(p.start[n])} … ${time(p.end[n])}, ${time(p.end[n] - p.start[n])}; ${p.actor[n] < 0 ? "submit" : "tasks"} ${p.count[n]}`),
      ...(data.stretch ? [element("div", `short phases are added up over ${time(data.stretch)}`, "soft")] : []));
  } else if (r && r.kind === "counter") {
    const c = r.counter;
    let k = c.time.findIndex(at => at > t);
    k = (k < 0 ? c.time.length : k) - 1;
    tip.append(element("b", c.name), element("div", `${k < 0 ? 0 : c.value[k]}${c.limit ? " of " + c.limit : ""} at ${time(t)}`));
  } else if (r && r.kind === "path") {
    for (const [n, since, ...parts] of data.path) {
      let at = since;
      for (let k = 0; k < parts.length; at += parts[k++]) if (t >= at && t < at + parts[k])
        tip.replaceChildren(element("b", label(n)), element("div", `${data.parts[k]} ${time(parts[k])}`));
    }
  }
  const there = tip.childNodes.length > 0;
  tip.style.visibility = there ? "visible" : "hidden";
  if (!there) return;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.min(e.clientX + 16, innerWidth - w - 8) + "px";
  tip.style.top = (e.clientY + 18 + h > innerHeight ? Math.max(4, e.clientY - h - 12) : e.clientY + 18) + "px";
}

// -- a chosen task ----------------------------------------------------------------------------------------

function choose(n, go = false) {
  view.chosen = n;
  detail.hidden = n < 0;
  if (n >= 0) describe(n);
  if (n >= 0 && go) reveal(n);
  draw();
}
function reveal(n) {
  const length = Math.max(end[n] - start[n], 20), seen = view.to - view.from;
  if (start[n] < view.from || end[n] > view.to || length / seen < .01) {
    const window_ = Math.min(seen, length * 25);
    show((start[n] + end[n] - window_) / 2, (start[n] + end[n] + window_) / 2);
  }
  const r = place(n);
  if (r) {
    const top = canvas.getBoundingClientRect().top + r.y;
    if (top < 90 || top > innerHeight - 60) scrollBy({top: top - innerHeight / 3, behavior: "smooth"});
  }
}
function describe(n) {
  const close = element("button", "×", "close"), near = element("button", "Zoom", "zoom");
  close.title = "close", close.onclick = () => choose(-1);
  near.title = "zoom to it", near.onclick = () => (show(start[n] - 2 * (end[n] - start[n]), end[n] + 2 * (end[n] - start[n])), reveal(n));
  const list = (title, links, other) => {
    const out = [element("h4", `${title} ${links.length}`)], ul = document.createElement("ul");
    for (const e of links.slice(0, 40)) {
      const m = data.links[other][e], li = document.createElement("li"), a = element("a", label(m));
      a.href = "#task=" + T.task_id[m], a.onclick = event => (event.preventDefault(), choose(m, true));
      li.append(a, element("i", ` ${data.kinds[data.links.kind[e]] ?? "?"}${data.links.arg[e] >= 0 ? " by argument " + data.links.arg[e] : ""}${other === "pred" && T.by[n] === m ? ", the last" : ""}`));
      ul.append(li);
    }
    if (links.length > 40) ul.append(element("li", `and ${links.length - 40} more`, "soft"));
    return [...out, ul];
  };
  const words = element("div", whereabouts(n) + (site(n) ? `, submitted at ${site(n)}` : ""), "soft");
  detail.replaceChildren(close, near, element("h3", label(n)), words, facts(n), ...list("Waits for", preds[n], "pred"), ...list("Waited for by", succs[n], "succ"));
}

// -- pointer, wheel and keys --------------------------------------------------------------------------------

canvas.onpointerdown = e => {
  const at = e.clientX - canvas.getBoundingClientRect().left;
  if (e.button > 1 || at < LEFT) return;
  view.drag = {kind: e.shiftKey || e.button === 1 ? "move" : "zoom", x0: at, x1: at, y: e.clientY - canvas.getBoundingClientRect().top, from: view.from, to: view.to};
  canvas.setPointerCapture(e.pointerId);
};
canvas.onpointermove = e => {
  const box = canvas.getBoundingClientRect(), at = e.clientX - box.left, d = view.drag;
  view.at = at > LEFT ? at : null;
  if (!d) return hint(e, box), draw();
  d.x1 = Math.max(LEFT, Math.min(width - RIGHT, at)), d.y = e.clientY - box.top;
  if (d.kind === "move") {
    const by = (d.x0 - d.x1) / (width - LEFT - RIGHT) * (d.to - d.from);
    show(d.from + by, d.to + by);
  }
  tip.style.visibility = "hidden";
  draw();
};
canvas.onpointerup = e => {
  const d = view.drag;
  view.drag = null;
  if (d && d.kind === "zoom" && Math.abs(d.x1 - d.x0) > 4) {
    const [a, b] = [timeAt(d.x0), timeAt(d.x1)].sort((p, q) => p - q);
    show(a, b);
  } else if (d && Math.abs(d.x1 - d.x0) <= 4) {
    hint(e, canvas.getBoundingClientRect());
    choose(view.hover);
  }
  draw();
};
canvas.onpointerleave = () => (tip.style.visibility = "hidden", view.hover = -1, view.at = null, draw());
canvas.ondblclick = over.ondblclick = () => show(0, data.end);
canvas.addEventListener("wheel", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) {
    e.preventDefault();
    zoom(Math.exp(e.deltaY / 300), timeAt(e.clientX - canvas.getBoundingClientRect().left));
  } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    e.preventDefault();
    move((e.deltaX || e.deltaY) / (width - LEFT));
  }
}, {passive: false});

// The overview: drag the window, or draw a new one.
const overTime = e => (e.clientX - over.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT) * data.end;
let grip = null;
over.onpointerdown = e => {
  const t = overTime(e), inside = t > view.from && t < view.to && view.to - view.from < .98 * data.end;
  grip = {t, from: view.from, inside}, over.setPointerCapture(e.pointerId);
};
over.onpointermove = e => {
  if (!grip) return;
  const t = overTime(e);
  if (grip.inside) show(grip.from + t - grip.t, grip.from + t - grip.t + view.to - view.from);
  else if (Math.abs(t - grip.t) > data.end / 400) show(Math.min(t, grip.t), Math.max(t, grip.t));
};
over.onpointerup = () => grip = null;

const KEYS = {ArrowLeft: () => move(-.2), a: () => move(-.2), ArrowRight: () => move(.2), d: () => move(.2), "+": () => zoom(.6), "=": () => zoom(.6), w: () => zoom(.6),
  "-": () => zoom(1 / .6), s: () => zoom(1 / .6), 0: () => show(0, data.end), Home: () => show(0, data.end), f: () => view.chosen >= 0 && reveal(view.chosen),
  Escape: () => (search.value = "", look(), choose(-1)), "/": () => search.focus()};
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || (e.target === search && e.key !== "Escape")) return;
  if (KEYS[e.key]) e.preventDefault(), KEYS[e.key]();
});

// -- search, switches, links --------------------------------------------------------------------------------

let matches = [], current = -1;
function look() {
  const words = search.value.trim().toLowerCase(), number = /^#?\d+$/.test(words) ? +words.replace("#", "") : null;
  matches = [], current = -1;
  if (words) for (let n = 0; n < COUNT; n++)
    if (number !== null ? T.task_id[n] === number : label(n).toLowerCase().includes(words) || site(n).toLowerCase().includes(words)) matches.push(n);
  view.found = words ? new Set(matches) : null, changes++;
  document.getElementById("found").textContent = words ? `${matches.length} found` : "";
  draw();
}
search.oninput = look;
search.onkeydown = e => {
  if (e.key !== "Enter" || !matches.length) return;
  current = (current + (e.shiftKey ? matches.length - 1 : 1)) % matches.length;
  document.getElementById("found").textContent = `${current + 1} of ${matches.length}`;
  choose(matches[current], true);
};

function press(name, value) {
  view[name] = value;
  for (const b of all(`[data-${name}]`)) b.setAttribute("aria-pressed", b.dataset[name] === value);
  layout();
}
for (const name of ["group", "mark", "arrows"]) for (const b of all(`[data-${name}]`)) b.onclick = () => press(name, b.dataset[name]);
for (const b of all("[data-func]")) b.onclick = () => {
  view.func = view.func === +b.dataset.func ? -1 : +b.dataset.func;
  for (const o of all("[data-func]")) o.setAttribute("aria-pressed", +o.dataset.func === view.func);
  draw();
};
for (const a of all("a[data-task]")) a.onclick = e => (e.preventDefault(), choose(+a.dataset.task, true));
const cores = document.getElementById("cores");
function idle(shown) {
  view.idle = shown;
  cores.setAttribute("aria-pressed", shown);
  layout();
}
cores.onclick = () => idle(!view.idle);
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  colours(), draw();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (colours(), draw()));
addEventListener("resize", fit);

function open_() {
  const said = new URLSearchParams(location.hash.slice(1));
  if (said.has("theme")) root.dataset.theme = said.get("theme");
  colours();
  for (const name of ["group", "mark", "arrows"]) if (said.has(name)) press(name, said.get(name));
  if (said.has("search")) search.value = said.get("search"), look();
  const used = data.cores.filter(c => c[2]).length;
  idle(data.cores.length <= 12 || used * 3 >= data.cores.length);
  if (said.has("from") || said.has("to")) show(+(said.get("from") ?? 0), +(said.get("to") ?? data.end));
  if (said.has("task")) choose(T.task_id.indexOf(+said.get("task")), true);
}
open_();
