// Search by name, and tables that can be filtered. Works on pages that are opened as files.
"use strict";

// ---- search: records are [address, title, kind, names, text], see docs/search.py

const KINDS = ["instruction", "diagnostic", "operator", "option", "command", "variable", "name", "enumeration", "type", "page", "section"];

const LOWERED = new WeakMap();
const spaced = text => text.replace(/[^a-z0-9]+/g, " ").trim();

/** Return true if a word of a text, or of a name such as row_max, begins with w. */
function begins(text, w) {
  const part = /[a-z0-9]+/.exec(w);
  return part ? text.includes(part[0]) && ` ${spaced(text)}`.includes(` ${spaced(w)}`) : text.includes(w);
}

/** Return the names, the title and all text of a record in lower case. */
function lowered(record) {
  let found = LOWERED.get(record);
  if (!found) {
    const [, title, , names, text] = record;
    const [lower, head] = [names.map(n => n.toLowerCase()), title.toLowerCase()];
    found = [lower, head, `${head} ${lower.join(" ")} ${text.toLowerCase()}`];
    LOWERED.set(record, found);
  }
  return found;
}

/** Return the score of a record for a query: its own name first, then titles, then text; 0 without a match. */
function score(record, query, typed, words) {
  const [, , kind, names, text] = record;
  const [lower, head, all] = lowered(record);
  const rank = (KINDS.length - KINDS.indexOf(kind)) / KINDS.length;
  if (names.includes(typed)) return 1100 + rank - names.indexOf(typed) / 100;
  if (lower.includes(query)) return 1000 + rank - lower.indexOf(query) / 100;
  const start = lower.filter(n => n.startsWith(query)).map(n => query.length / n.length);
  if (start.length) return 500 + 100 * Math.max(...start) + rank;
  if (lower.some(n => begins(n, query))) return 400 + rank;
  const code = kind === "diagnostic" ? 1 : 0; // whose titles have the words of everything
  if (words.every(w => begins(head, w))) return 300 - 170 * code + rank + words.length / (head.length + 1);
  if (!words.every(w => all.includes(w))) // "tmatmul element types": a page that one of the words names
    return lower.some(n => words.includes(n)) ? 50 + 30 * rank + 15 * words.filter(w => all.includes(w)).length / words.length : 0;
  const titled = words.filter(w => begins(head, w)).length;
  const whole = words.filter(w => begins(all, w)).length / words.length;
  const brief = 10 / Math.log2(8 + text.length);
  return 100 + 20 * titled + 20 * whole + (all.includes(query) ? 15 : 0) + brief - 25 * code + rank;
}

/** Return the best records, best first. */
function find(index, text, limit = 12) {
  const typed = text.trim().replace(/\s+/g, " ");
  const query = typed.toLowerCase();
  if (!query) return [];
  const words = query.split(" ");
  const scored = index.map(record => [score(record, query, typed, words), record]).filter(([points]) => points > 0);
  scored.sort((a, b) => b[0] - a[0]);
  return scored.slice(0, limit).map(([, record]) => record);
}

/** Return the words around the first match, with the matches marked. */
function excerpt(text, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const lower = text.toLowerCase();
  const first = Math.min(...words.map(w => lower.indexOf(w)).filter(at => at >= 0), text.length);
  const from = first < text.length ? Math.max(0, first - 40) : 0;
  const span = document.createElement("span");
  const shown = (from ? "… " : "") + text.slice(from, from + 140);
  const pattern = new RegExp(`(${words.map(w => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "i");
  shown.split(pattern).forEach((part, n) => {
    const child = n % 2 ? document.createElement("mark") : document.createTextNode("");
    child.textContent = part;
    span.append(child);
  });
  return span;
}

function addSearch(base) {
  const header = document.querySelector(".md-header__inner");
  if (!header) return;
  const box = document.createElement("form");
  box.className = "pto-search";
  box.setAttribute("role", "search");
  box.innerHTML = '<input type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off" spellcheck="false"><ol hidden></ol>';
  header.append(box);
  const [input, list] = box.children;
  let loading = null;
  let chosen = 0;
  const load = () => loading ||= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `${base}assets/search-index.js`;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  const choose = n => {
    chosen = Math.max(0, Math.min(n, list.children.length - 1));
    [...list.children].forEach((item, i) => item.classList.toggle("chosen", i === chosen));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const show = async () => {
    await load();
    const found = find(window.ptoIndex, input.value);
    list.replaceChildren(...found.map(([address, title, kind, , text]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = base + address;
      link.innerHTML = "<b></b> <i></i><br>";
      link.children[0].textContent = title;
      link.children[1].textContent = kind;
      link.append(excerpt(text, input.value));
      item.append(link);
      return item;
    }));
    if (!found.length && input.value.trim()) list.innerHTML = "<li>no results</li>";
    list.hidden = !input.value.trim();
    choose(0);
  };
  const close = () => { list.hidden = true; };
  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  input.addEventListener("keydown", event => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") { close(); input.blur(); }
    else return;
    event.preventDefault();
  });
  box.addEventListener("submit", async event => {
    event.preventDefault();
    if (list.hidden) await show();
    list.children[chosen]?.querySelector("a")?.click();
    close();
  });
  list.addEventListener("click", close);
  document.addEventListener("click", event => { if (!box.contains(event.target)) close(); });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /INPUT|TEXTAREA|SELECT/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    input.focus();
  });
}

// ---- tables

/** Add a field and a menu for each column of data-choices; rows stay that match all of them. */
function addFilter(part) {
  const table = part.querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const bar = document.createElement("div");
  bar.className = "filter";
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "filter";
  field.setAttribute("aria-label", "filter");
  const count = document.createElement("output");
  const menus = part.dataset.choices.split(",").map(name => {
    const column = heads.indexOf(name);
    const values = cell => { // links, a family, or words
      const links = [...cell.querySelectorAll("a")].map(link => link.textContent);
      const text = cell.textContent.trim();
      return links.length ? links : name === "family" ? [text] : text.split(/\s+/);
    };
    const menu = document.createElement("select");
    menu.setAttribute("aria-label", name);
    const words = new Set(rows.flatMap(row => values(row.cells[column])));
    words.delete("");
    menu.append(new Option(`${name}: any`, ""), ...[...words].sort().map(word => new Option(word, word)));
    return { menu, matches: row => !menu.value || values(row.cells[column]).includes(menu.value) };
  });
  const texts = rows.map(row => row.textContent.toLowerCase());
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let shown = 0;
    rows.forEach((row, n) => {
      row.hidden = !(words.every(word => texts[n].includes(word)) && menus.every(menu => menu.matches(row)));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = `${shown} of ${rows.length}`;
  };
  bar.append(field, ...menus.map(({ menu }) => menu), count);
  bar.addEventListener("input", apply);
  part.prepend(bar);
  apply();
}

if (typeof document === "undefined") {
  module.exports = { find };
} else {
  const base = new URL("..", document.currentScript.src).href;
  document.addEventListener("DOMContentLoaded", () => {
    addSearch(base);
    document.querySelectorAll(".filtered").forEach(addFilter);
  });
}
