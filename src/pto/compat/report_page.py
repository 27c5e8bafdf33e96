"""The page of a report: what became of programs, to filter and to sort by reason."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: 2px 8px; border-bottom: 1px solid #ddd; vertical-align: top }
.passed { color: #1a7f37 } .failed, .crashed { color: #cf222e } .timeout, .refused { color: #9a6700 }
.skipped, .no { color: #888 } td.n { text-align: right } input { font: inherit; padding: 3px; width: 30em }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818 }
  td, th { border-color: #444 }
}
"""
_SCRIPT = """
const rows = [...document.querySelectorAll('tbody.programs tr')];
document.querySelector('input').oninput = e => {
  const words = e.target.value.toLowerCase().split(/\\s+/);
  for (const r of rows) r.hidden = !words.every(w => r.textContent.toLowerCase().includes(w));
};
"""


def page(data: dict[str, Any]) -> str:
    count = ", ".join(f"<span class={o}>{n} {o}</span>" for o, n in data["count"].items() if n)
    reasons = Counter(
        (p["outcome"], p["reason"]) for p in data["programs"] if p["outcome"] not in ("passed", "skipped")
    )
    table = "".join(
        f"<tr><td class=n>{n}<td class={o}>{o}<td>{escape(why)}" for (o, why), n in reasons.most_common()
    )
    rows = "".join(_row(p) for p in data["programs"])
    return f"""<!doctype html><meta charset=utf-8><title>Python programs</title><style>{_STYLE}</style>
<h1>Python programs</h1>
<p>{escape(", ".join(data["trees"]))}: {len(data["programs"])} programs in {data["seconds"]} s; {count}.
Sanitizers: {escape(data["sanitize"])}; tests for {escape(data["platform"])}.</p>
<h2>Reasons</h2><table><tr><th>programs<th>outcome<th>reason</tr>{table}</table>
<h2>Programs</h2><p><input placeholder="words to look for: failed matmul"></p>
<table><thead><tr><th>program<th>outcome<th>parsed<th>lowered<th>run<th>findings<th>seconds<th>reason</tr></thead>
<tbody class=programs>{rows}</tbody></table><script>{_SCRIPT}</script>
"""


def _row(p: dict[str, Any]) -> str:
    name = p["file"] + (f" :: {p['test'].rpartition('::')[2]}" if p["test"] else "")
    marks = "".join(
        f"<td>{'yes' if p[k] else '<span class=no>no</span>'}" for k in ("parsed", "lowered", "run")
    )
    found = "<br>".join(escape(f["text"].splitlines()[0]) for f in p["findings"])
    return (
        f"<tr><td>{escape(name)}<td class={p['outcome']}>{p['outcome']}{marks}<td>{found}"
        f"<td class=n>{p['seconds']}<td>{escape(p['reason'])}</tr>"
    )
