"""Graph of a run as text: Graphviz DOT, and mermaid in Markdown.

A node is a task, and an arrow stands for all dependencies between two tasks. Tasks that were submitted to a
cluster of cores are drawn inside the cluster. Graphs include tasks that never ran, because dependencies are
recorded at submission.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ..diag import visible
from .analysis import Analysis
from .records import Records
from .tables import CORE_TYPES, KINDS, as_dicts, core_name

#: Fill colors of nodes by core type, as in the tools of simpler.
COLOURS = ("#66A3FF", "#FFB366")
_CRITICAL = "#C81E2C"
#: Line of an arrow, by its strongest kind of dependency.
_LINES = {"RAW": "solid", "WAW": "dashed", "WAR": "dotted", "explicit": "bold"}


class Arrow(NamedTuple):
    pred: int
    succ: int
    kinds: tuple[str, ...]


def dot(records: Records, critical: bool = True, kinds: bool = True) -> str:
    """Return the graph for Graphviz. The critical path is red, and `kinds` labels the arrows."""
    path = [int(records.tasks["task_id"][step.row]) for step in Analysis(records).path] if critical else []
    on_path, steps = set(path), set(pairwise(path))
    facts = _tasks(records)

    def node(task_id: int) -> str:
        task = facts[task_id]
        said = [f"task {task_id}", core_name(task["core"], task["core_type"])] if task["core"] >= 0 else []
        said += (
            [f"{(task['end'] - task['start']) / 1000:.3f} us"] if task["end"] >= 0 <= task["start"] else []
        )
        said += [records.site(task)] if records.site(task) else []
        more = f', color="{_CRITICAL}", penwidth=2.5' if task_id in on_path else ""
        fill = COLOURS[task["core_type"] == 1]
        label, tip = _quoted(_label(records, task)), _quoted(", ".join(said))
        return f"t{_id(task_id)} [label={label}, fillcolor={_quoted(fill)}, tooltip={tip}{more}];"

    lines = [
        "digraph tasks {",
        '  graph [rankdir=TB, fontname="Helvetica"];',
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9, color="#5B6877"];',
        *_nested(
            records,
            node,
            lambda c: [f"subgraph cluster_{c} {{", f'  label="cluster {c}"; style=rounded; color="#93A1B1";'],
            "}",
        ),
    ]
    for arrow in arrows(records):
        facts_ = [f"style={_LINES.get(arrow.kinds[0], 'solid')}"]
        facts_ += [f"label={_quoted(', '.join(arrow.kinds))}"] if kinds else []
        facts_ += [f'color="{_CRITICAL}"', "penwidth=2.5"] if arrow[:2] in steps else []
        lines.append(f"  t{_id(arrow.pred)} -> t{_id(arrow.succ)} [{', '.join(facts_)}];")
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(records: Records, style: str = "detailed", direction: str = "TD") -> str:
    """Return the graph as a mermaid flowchart in Markdown. With style `compact`, tasks are labeled only by
    number."""
    if style not in ("detailed", "compact") or direction not in ("TD", "LR"):
        raise ValueError("expected style 'detailed' or 'compact', and direction 'TD' or 'LR'")
    facts = _tasks(records)

    def node(task_id: int) -> str:
        words = f"T{task_id}" if style == "compact" else _label(records, facts[task_id])
        return f'Task{task_id}["{_entities(words)}"]'

    lines = ["```mermaid", f"flowchart {direction}", ""]
    lines += _nested(records, node, lambda c: [f'subgraph Cluster{c}["cluster {c}"]'], "end", indent=2)
    lines.append("")
    for arrow in arrows(records):
        line = "-->" if arrow.kinds[0] in ("RAW", "explicit") else "-.->"
        lines.append(f"    Task{arrow.pred} {line} Task{arrow.succ}")
    lines += ["", "    %% Styling by core type"]
    for number, kind in enumerate(CORE_TYPES):
        mine = [f"Task{task_id}" for task_id, task in facts.items() if task["core_type"] == number]
        if mine:
            lines.append(
                f"    classDef {kind}Style fill:{COLOURS[number]},stroke:#333,stroke-width:2px,color:#000"
            )
            lines.append(f"    class {','.join(mine)} {kind}Style")
    return "\n".join([*lines, "```"]) + "\n"


def arrows(records: Records) -> list[Arrow]:
    """Return the dependencies between recorded tasks, one arrow for each pair, in the order of their
    records."""
    found: dict[tuple[int, int], dict[int, None]] = {}
    pred, succ, edge = records.links()
    ids = records.tasks["task_id"]
    kinds = records.edges["kind"][edge].tolist()
    for a, b, kind in zip(ids[pred].tolist(), ids[succ].tolist(), kinds, strict=True):
        found.setdefault((a, b), {})[kind] = None
    return [
        Arrow(a, b, tuple(KINDS[k] if 0 <= k < len(KINDS) else str(k) for k in sorted(some)))
        for (a, b), some in found.items()
    ]


def _nested(
    records: Records,
    node: Callable[[int], str],
    begin: Callable[[int], Iterable[str]],
    end: str,
    indent: int = 1,
) -> Iterator[str]:
    """Yield the nodes; nodes of a cluster of cores are inside a subgraph."""
    groups: dict[int, list[int]] = {}
    tasks = _tasks(records).values()
    for task in tasks:
        groups.setdefault(task["cluster"], []).append(task["task_id"])
    space = "  " * indent
    for cluster in sorted(groups):
        if cluster < 0:
            yield from (space + node(task_id) for task_id in groups[cluster])
        else:
            yield from (space + line for line in begin(cluster))
            yield from (f"{space}  {node(task_id)}" for task_id in groups[cluster])
            yield space + end


def _tasks(records: Records) -> dict[int, dict[str, int]]:
    """Return each task once, with the number of its blocks."""
    out: dict[int, dict[str, int]] = {}
    for task in as_dicts(records.tasks):
        known = out.setdefault(task["task_id"], {**task, "blocks": 0})
        known["blocks"] += 1
    return out


def _label(records: Records, task: dict[str, int]) -> str:
    one = records.label(task)
    return f"{one.partition('[')[0]} x{task['blocks']}" if task["blocks"] > 1 else one


def _entities(text: str) -> str:
    """Return a mermaid label. Characters with a meaning in mermaid, Markdown or HTML become numeric
    entities."""
    return re.sub(r"[^\w .,:()\[\]/+=%@-]", lambda m: f"#{ord(m[0])};", visible(text))


def _id(task_id: int) -> str:
    return str(task_id) if task_id >= 0 else f"m{-task_id}"


def _quoted(text: str) -> str:
    """Return a DOT string. Escapes and entities in the text are not interpreted."""
    plain = visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{plain}"'
