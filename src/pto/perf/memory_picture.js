// Hover details, the address scale, zooming in time. Everything is drawn without it, at full length and in the
// first scale.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip"), body = document.body, root = document.documentElement;
  const {left, width, glyph} = data, SVG = "http://www.w3.org/2000/svg";

  for (const b of document.querySelectorAll("[data-set]")) b.onclick = () => {
    body.dataset.mode = b.dataset.set;
    for (const o of document.querySelectorAll("[data-set]")) o.setAttribute("aria-pressed", o === b);
  };
  document.getElementById("theme").onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };

  const all = (where, what) => where.querySelectorAll(what);

  for (const section of all(document, "section")) {
    const core = data.cores[section.dataset.core], total = Math.max(1, core.steps.length);
    let from = 0, to = total, drag = null, lit = null;
    const x = t => left + (t - from) / (to - from) * width;
    const time = (svg, e) => {
      const box = svg.getBoundingClientRect();
      const at = (e.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return at < left || at > left + width ? null : from + (at - left) / width * (to - from);
    };

    function zoom(a, b) {
      [from, to] = [Math.max(0, Math.floor(a)), Math.min(total, Math.ceil(b))];
      if (to - from < 2) to = Math.min(total, from + 2), from = Math.max(0, to - 2);
      for (const r of all(section, "rect[data-a]")) {
        const a = Math.max(left, x(+r.dataset.a)), b = Math.min(left + width, x(+r.dataset.b));
        r.style.display = b > a ? "" : "none";
        r.setAttribute("x", a), r.setAttribute("width", Math.max(0, b - a));
      }
      for (const p of all(section, "path.area"))
        p.setAttribute("transform", `translate(${x(0)} 0) scale(${(x(1) - x(0))} 1)`);
      fine(to - from <= data.most);
      for (const t of all(section, "text.time")) t.remove();
      for (const svg of all(section, "svg.map, svg.foot")) labels(svg);
      for (const svg of all(section, "svg.foot")) rule(svg);
      section.classList.toggle("zoomed", from > 0 || to < total);
    }

    // What is drawn coarsely because there is much of it is drawn again, one by one, when only a part is seen.
    function fine(wanted) {
      for (const old of all(section, ".fine")) old.remove();
      const mark = (after, a, b, box, kind, tile) => {
        if (b <= from || a >= to) return;
        const r = document.createElementNS(SVG, "rect"), x0 = Math.max(left, x(a));
        const facts = {class: kind + " fine", x: x0, width: Math.min(left + width, x(b)) - x0, y: box[0], height: box[1]};
        for (const k in facts) r.setAttribute(k, facts[k]);
        if (tile !== undefined) r.dataset.tile = tile;
        after.before(r);
      };
      for (const r of all(section, ".many")) if (wanted) r.style.display = "none";
      if (!wanted) return;
      for (const svg of all(section, "svg.map")) {
        const seen = new Set();
        for (const r of all(svg, ".many")) {
          const tile = r.dataset.tile, spans = core.fine[r.dataset.fine];
          if (seen.has(spans)) continue;
          seen.add(spans);
          const box = [r.getAttribute("y"), r.getAttribute("height")], kind = r.getAttribute("class").replace(" many", "");
          for (let n = 0; n < spans.length; n += 2) mark(r, spans[n], spans[n + 1], box, kind, tile);
        }
      }
      for (const svg of all(section, "svg.foot")) {
        const [top, high] = svg.dataset.ruler.split(" "), last = svg.querySelector(".cell.many"), next = last && last.nextSibling;
        for (let n = from; last && n < to; n++) mark(next, n, n + 1, [top, high], "cell " + core.kinds[core.steps[n]]);
        for (const p of all(svg, "path[data-fine]")) {
          const curve = core.fine[p.dataset.fine], d = [p.getAttribute("d").split("H")[0]];
          for (let n = 0; n < curve.length; n += 2) d.push(`H${curve[n]}V${curve[n + 1]}`);
          p.setAttribute("d", d.join("") + `H${total}V${d[0].split(" ")[1]}Z`);
        }
      }
    }

    // Labels go where there is room, the first come first.
    function labels(svg) {
      const taken = Array.from(all(svg, ".limit"), t => +t.getAttribute("y")).map(y => [left, y - 9, left + 150, y + 3]);
      for (const r of all(svg, ".outside")) {
        const [x0, y, w, h] = ["x", "y", "width", "height"].map(n => +r.getAttribute(n));
        taken.push([x0, y, x0 + w, y + h]);
      }
      for (const t of all(svg, "text[data-a]")) {
        const a = Math.max(left, x(+t.dataset.a)), b = Math.min(left + width, x(+t.dataset.b));
        const y = +t.getAttribute("y"), pad = t.classList.contains("op") ? 2 : 5;
        const size = t.classList.contains("op") ? glyph * 9.5 / 11 : glyph;
        const words = t.dataset.words.split("|").find(w => w.length * size + 2 * pad <= b - a);
        const box = words && [a, y - 9, a + words.length * size + pad, y + 3];
        const free = box && !taken.some(o => o[0] < box[2] && box[0] < o[2] && o[1] < box[3] && box[1] < o[3]);
        t.style.display = free ? "" : "none";
        if (!free) continue;
        taken.push(box);
        t.textContent = words;
        t.setAttribute("x", a + pad);
      }
    }

    function rule(svg) {
      let step = 1;
      for (let n = 0; (to - from) / step > 16; n++) step *= n % 3 === 1 ? 2.5 : 2;
      for (let t = Math.ceil(from / step) * step; t < to; t += step) {
        const label = document.createElementNS(SVG, "text");
        label.setAttribute("class", "tick time"), label.setAttribute("text-anchor", "middle");
        label.setAttribute("x", x(t + 0.5)), label.setAttribute("y", svg.dataset.ruler.split(" ")[2]);
        label.textContent = t;
        svg.append(label);
      }
    }

    function details(tile, step) {
      tip.replaceChildren();
      const add = (text, kind) => {
        const line = document.createElement(kind === "b" ? "b" : "div");
        if (kind === "soft") line.className = "soft";
        line.textContent = text;
        tip.append(line);
      };
      if (tile) {
        add(tile.title, "b");
        tile.lines.forEach(l => add(l));
      }
      const op = step !== null && core.ops[core.steps[Math.floor(step)]];
      if (op) add(`step ${Math.floor(step)}: ${op[0]}, line ${op[1]}, PIPE_${op[2]}`, tile ? "soft" : "");
      return tile || op;
    }

    section.addEventListener("pointermove", e => {
      const svg = e.target.closest("svg.map, svg.foot");
      if (lit) all(section, `[data-tile="${lit}"]`).forEach(n => n.classList.remove("lit"));
      lit = svg ? e.target.dataset.tile : null;
      if (lit) all(svg, `.stay[data-tile="${lit}"], .view[data-tile="${lit}"]`).forEach(n => n.classList.add("lit"));
      const at = svg ? time(svg, e) : null;
      for (const c of all(section, ".cursor")) {
        c.style.visibility = at === null ? "hidden" : "visible";
        if (at !== null) c.setAttribute("x1", x(at)), c.setAttribute("x2", x(at));
      }
      if (drag && at !== null) for (const c of all(section, ".chosen")) {
        const [a, b] = [Math.min(drag, at), Math.max(drag, at)];
        c.style.visibility = "visible";
        c.setAttribute("x", x(a)), c.setAttribute("width", x(b) - x(a));
      }
      if (svg && details(lit ? core.tiles[lit] : null, at)) {
        const box = tip.getBoundingClientRect();
        tip.style.left = Math.max(4, Math.min(e.clientX + 16, innerWidth - box.width - 8)) + "px";
        tip.style.top = (e.clientY + 18 + box.height > innerHeight ? e.clientY - box.height - 12 : e.clientY + 18) + "px";
        tip.style.visibility = "visible";
      } else tip.style.visibility = "hidden";
    });
    section.addEventListener("pointerleave", () => {
      tip.style.visibility = "hidden", drag = null;
      for (const c of all(section, ".cursor, .chosen")) c.style.visibility = "hidden";
    });
    section.addEventListener("pointerdown", e => {
      const svg = e.target.closest("svg.map, svg.foot");
      drag = svg && e.button === 0 ? time(svg, e) : null;
    });
    section.addEventListener("pointerup", e => {
      const svg = e.target.closest("svg.map, svg.foot"), at = svg && drag !== null ? time(svg, e) : null;
      if (at !== null && Math.abs(x(at) - x(drag)) > 6) zoom(Math.min(at, drag), Math.max(at, drag));
      drag = null;
      for (const c of all(section, ".chosen")) c.style.visibility = "hidden";
    });
    section.addEventListener("dblclick", e => e.target.closest("svg.map, svg.foot") && zoom(0, total));
  }
})();
