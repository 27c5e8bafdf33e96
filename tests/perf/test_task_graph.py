"""DOT and mermaid, read back by small readers of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise

import pytest

from pto.perf import task_graph
from pto.perf.analysis import Analysis
from pto.perf.records import Records
from pto.perf.tables import table

from .schedule import simulate


def _pairs(records: Records) -> set[tuple[int, int]]:
    return {(int(e["pred"]), int(e["succ"])) for e in records.edges}


def _read_dot(text: str) -> tuple[dict[int, tuple[str, int]], dict[tuple[int, int], str]]:
    """Nodes with their label and subgraph (-1: none), edges with their attributes."""
    nodes: dict[int, tuple[str, int]] = {}
    edges: dict[tuple[int, int], str] = {}
    inside = -1
    for line in text.splitlines():
        line = line.strip()
        if group := re.fullmatch(r"subgraph cluster_(\d+) \{", line):
            inside = int(group[1])
        elif line == "}":
            inside = -1
        elif edge := re.fullmatch(r"t(\d+) -> t(\d+) \[(.*)\];", line):
            edges[int(edge[1]), int(edge[2])] = edge[3]
        elif node := re.match(r't(\d+) \[label="((?:[^"\\]|\\.)*)"', line):
            nodes[int(node[1])] = (node[2], inside)
    return nodes, edges


@pytest.mark.parametrize("clusters", [0, 3])
def test_dot_has_every_task_and_dependency(clusters: int) -> None:
    records = simulate(50, clusters=clusters).records
    nodes, edges = _read_dot(task_graph.dot(records))
    assert set(edges) == _pairs(records)
    for task in records.tasks:
        assert nodes[int(task["task_id"])] == (records.label(task), int(task["cluster"]))
    assert max(c for _, c in nodes.values()) == clusters - 1


def test_the_critical_path_is_drawn_so() -> None:
    records = simulate(60).records
    text = task_graph.dot(records)
    path = [int(records.tasks["task_id"][s.row]) for s in Analysis(records).path]
    _, edges = _read_dot(text)
    assert {pair for pair, facts in edges.items() if "C81E2C" in facts} == set(pairwise(path))
    red = {int(m[1]) for m in re.finditer(r"^ *t(\d+) \[.*C81E2C.*\];$", text, re.M)}
    assert red == set(path)
    assert "C81E2C" not in task_graph.dot(records, critical=False)


def test_several_dependencies_share_an_arrow() -> None:
    edges = table("edges", {"pred": [0, 0, 0, 9], "succ": [1, 1, 1, 1], "kind": [1, 0, 1, 0]})
    records = Records(table("tasks", {"task_id": [0, 1]}), edges)
    assert task_graph.arrows(records) == [(0, 1, ("RAW", "WAW"))]
    assert task_graph.dot(records).count("->") == 1
    assert 'label="RAW, WAW"' in task_graph.dot(records)
    assert "RAW" not in task_graph.dot(records, kinds=False)


def test_blocks_of_one_task_are_one_node() -> None:
    tasks = table("tasks", {"task_id": [0, 0, 0, 1], "block": [0, 1, 2, -1]})
    records = Records(tasks, table("edges", {"pred": [0], "succ": [1]}), names={0: "f"})
    nodes, edges = _read_dot(task_graph.dot(records))
    assert {n: words for n, (words, _) in nodes.items()} == {0: "f(0) x3", 1: "f(1)"} and set(edges) == {
        (0, 1)
    }
    assert task_graph.mermaid(records).count("Task0[") == 1


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz")
def test_graphviz_reads_it() -> None:
    text = task_graph.dot(simulate(40, clusters=2).records)
    done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True)
    assert sum(line.startswith("node ") for line in done.stdout.splitlines()) == 40


@pytest.mark.parametrize("direction", ["TD", "LR"])
def test_mermaid(direction: str) -> None:
    """Section 8: nodes `Task<id>["Func(id)"]`, arrows from the fan-out, classes aicStyle #66A3FF, aivStyle #FFB366."""
    records = simulate(30, clusters=1).records
    text = task_graph.mermaid(records, direction=direction)
    lines = text.splitlines()
    assert lines[0] == "```mermaid" and lines[1] == f"flowchart {direction}" and lines[-1] == "```"
    for task in records.tasks:
        assert f'Task{task["task_id"]}["{records.label(task)}"]' in text
    arrows = {(int(m[1]), int(m[2])) for m in re.finditer(r"Task(\d+) -\.?-> Task(\d+)", text)}
    assert arrows == _pairs(records)
    assert "classDef aicStyle fill:#66A3FF" in text and "classDef aivStyle fill:#FFB366" in text
    for kind, name in enumerate(("aic", "aiv")):
        (styled,) = (line for line in lines if line.endswith(f" {name}Style") and "class " in line)
        mine = records.tasks["task_id"][records.tasks["core_type"] == kind].tolist()
        assert styled.split()[1] == ",".join(f"Task{t}" for t in mine)
    inside = text[text.index("subgraph Cluster0") : text.index("    end")]
    assert re.findall(r"Task(\d+)\[", inside) == [
        str(t["task_id"]) for t in records.tasks if t["cluster"] == 0
    ]


def test_mermaid_compact() -> None:
    records = simulate(3).records
    assert 'Task2["T2"]' in task_graph.mermaid(records, style="compact")
    with pytest.raises(ValueError, match="style"):
        task_graph.mermaid(records, style="tiny")


def test_nothing() -> None:
    assert task_graph.dot(Records()).startswith("digraph")
    assert task_graph.mermaid(Records()).startswith("```mermaid")
