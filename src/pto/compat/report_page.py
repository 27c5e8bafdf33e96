"""The page of a report: the outcomes of programs, with a filter and counts by reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..perf.markup import document, escaped

_STYLE = """\
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: 2px 8px; border-bottom: 1px solid #ddd; vertical-align: top }
.passed { color: #1a7f37 } .failed, .crashed { color: #cf222e } .timeout, .refused { color: #9a6700 }
.skipped, .no { color: #888 } td.n { text-align: right } input { font: inherit; padding: 3px; width: 30em }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818 }
  td, th { border-color: #444 }
}"""
_SCRIPT = """
const rows = [...document.querySelectorAll('tbody.programs tr')];
document.querySelector('input').oninput = e => {
  const words = e.target.value.toLowerCase().split(/\\s+/);
  for (const r of rows) r.hidden = !words.every(w => r.textContent.toLowerCase().includes(w));
};
"""
_STAGES = ("parsed", "lowered", "run")
_COLUMNS = ("program", "outcome", *_STAGES, "findings", "seconds", "CPU s", "of which", "reason")


def page(data: dict[str, Any]) -> str:
    count = ", ".join(_outcome("span", o, f"{n} {o}") for o, n in data["count"].items() if n)
    reasons = Counter(
        (p["outcome"], p["reason"]) for p in data["programs"] if p["outcome"] not in ("passed", "skipped")
    )
    table = "".join(
        f'<tr><td class="n">{n}</td>{_outcome("td", o, o)}<td>{escaped(why)}</td></tr>'
        for (o, why), n in reasons.most_common()
    )
    rows = "".join(_row(p) for p in data["programs"])
    body = f"""\
<h1>Python programs</h1>
<p>{escaped(", ".join(data["trees"]))}: {len(data["programs"])} programs in {data["seconds"]} s; {count}.
Sanitizers: {escaped(data["sanitize"])}; tests for {escaped(data["platform"])}.</p>
<h2>Reasons</h2><table>{_head("programs", "outcome", "reason")}{table}</table>
<h2>Programs</h2><p><input placeholder="words to look for: failed matmul"/></p>
<table><thead>{_head(*_COLUMNS)}</thead>
<tbody class="programs">{rows}</tbody></table>"""
    return document("Python programs", body, _STYLE, _SCRIPT)


def _row(p: dict[str, Any]) -> str:
    name = p["file"] + (f" :: {p['test'].rpartition('::')[2]}" if p["test"] else "")
    marks = "".join("<td>yes</td>" if p[k] else '<td><span class="no">no</span></td>' for k in _STAGES)
    spent = ", ".join(f"{phase} {seconds}" for phase, seconds in p["phases"].items())
    found = "<br/>".join(escaped(f["text"].partition("\n")[0]) for f in p["findings"])
    return (
        f"<tr><td>{escaped(name)}</td>{_outcome('td', p['outcome'], p['outcome'])}{marks}<td>{found}</td>"
        f'<td class="n">{p["seconds"]}</td><td class="n">{p["cpu"]}</td>'
        f"<td>{escaped(spent)}</td><td>{escaped(p['reason'])}</td></tr>"
    )


def _head(*names: str) -> str:
    return f"<tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"


def _outcome(element: str, outcome: str, text: str) -> str:
    return f'<{element} class="{escaped(outcome)}">{escaped(text)}</{element}>'
