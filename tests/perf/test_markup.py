"""Hostile names in pages, pictures, graphs and traces: they change text only, and nothing of them runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.each import together
from tests.perf.browser import browser, opened
from tests.perf.schedule import simulate
from tests.perf.test_explorer import kernel_view
from tests.perf.test_memory_view import life, made
from tests.perf.test_timeline import _LOOP, program, timed

from pto.cli import ptoas
from pto.cli.main import main
from pto.compat.report_page import page as report
from pto.diag import Diagnostic, Source, visible
from pto.explore import page as explore
from pto.explore.stages import Sheet, Stages
from pto.perf import messages, swimlane_json, task_graph, trace
from pto.perf.explorer import kernel, memory, tasks
from pto.perf.explorer.kernel import Cpp, Recorded
from pto.perf.explorer.page import _SCRIPTS, scripts
from pto.perf.files import packaged
from pto.perf.markup import document, escaped, script_json
from pto.perf.records import Records
from pto.perf.tables import table
from pto.perf.timeline.export import written
from pto.trials import FAILED, TIMED, Outcome
from pto.tune import picture
from pto.tune.space import Space

__all__ = ["browser"]  # a fixture

PLAIN = "name"
HOSTILE = (
    "<script>alert(1)</script>\"><img src=x onerror=alert(2)>' onload=alert(3) x='&amp;&</script></style></title>"
    "]]><!--\n\x00\x1b[31m\x07\x9b\u202e\u2028\ufeff\udcff{}${x}`\\"
)
#: The part of it that a file or a quoted symbol can have.
NAMED = HOSTILE.translate(dict.fromkeys(map(ord, "/\x00")))


class Parsed(HTMLParser):
    """The elements of a page, with their attributes and content."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shapes: set[tuple[str, ...]] = set()
        self.texts: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.policy = ""
        self.links: set[str | None] = set()
        self._script = ""
        text.encode()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs) and not any(name.startswith("on") for name in found)
        self.shapes.add((tag, *sorted(found)))
        self.links |= {found[name] for name in ("href", "src", "action", "data") if name in found}
        if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            assert "script" not in {shape[0] for shape in self.shapes}, "the policy comes first"
            self.policy = found["content"] or ""
        if tag == "script":
            self.scripts.append((found.get("type"), ""))

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts and not self.scripts[-1][1]:
            self.scripts[-1] = self.scripts[-1][0], data
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def spoiled(data: Any, name: str, key: str = "") -> Any:
    """A dataset whose texts end in a name, but for those that are packed columns or chosen from a list."""
    if isinstance(data, str):
        packed = key in ("unit", "format") or re.fullmatch(r"eA[A-Za-z0-9+/]+=*", data)
        return data if packed else data + name
    if isinstance(data, list):
        return [spoiled(v, name) for v in data]
    if isinstance(data, dict):
        named = key in ("sources", "titles", "capacity")
        return {k + name if named else k: spoiled(v, name, k) for k, v in data.items()}
    return data


def records(name: str) -> Records:
    found = simulate(60, clusters=2).records
    found.names = {n: text + name for n, text in found.names.items()}
    found.sites = [site + name for site in found.sites] or [name]
    found.stats |= {name: name, "durations": name, "more": {name: name}}
    return found


def memory_page(name: str) -> str:
    map = made()
    life(map, name, 0, 1024, (0, 5), core=name).shape = name
    life(map, "clash" + name, 512, 1 << 20, (2, 9), core=name).uses[name, 3, True] = 2
    map.steps[name] = map.steps.pop("AIV0")
    for step in map.steps[name]:
        step.name = step.pipe = name
    map.steps[name][0].name = name
    return memory.html(map, name, name, {name: name})


def kernel_page(name: str) -> str:
    one = timed(program(_LOOP.format("barrier V")))
    other = spoiled(json.loads(json.dumps(kernel.dataset(one, "k"))), name)
    return kernel.html(one, name, other, Recorded(cpp=Cpp(name, [(name, 1)], name)))


def program_page(name: str) -> str:
    found = Diagnostic("PTO-E0101" + name, name, Source(name, name).at(1), "error", name, name, name)
    seen = Stages((Sheet(name, name, (1,), note=name), Sheet("C++", name, (1,))), [found])
    return explore.page(
        name,
        {**explore.staged(seen, name), "launch": {"page": kernel_page(name), "note": name, "findings": []}},
    )


def report_page(name: str) -> str:
    row = {
        "file": name, "test": name, "outcome": name, "reason": name, "seconds": 1.5, "cpu": 1.0, "phases": {name: 1.0}, "parsed": True, "lowered": False,
        "run": False, "findings": [{"text": name}, {"text": ""}],
    }  # fmt: skip
    return report({"count": {name: 2}, "programs": [row, {**row, "test": ""}], "trees": [name], "seconds": 1, "sanitize": name,
                   "platform": name})  # fmt: skip


def search(name: str, several: int) -> tuple[str, Space, list[Outcome]]:
    space = Space({"A": [name, 2], "B": [1, 2], "C": [1, name][:several]})
    found = [
        Outcome(p, TIMED if p["B"] == 1 else FAILED + name, 2.5, name, 0.5, code=name, why=name)
        for p in space.points
    ]
    return name, Space({n: v for n, v in space.params.items() if n != "C" or several > 1}), found


PAGES: dict[str, Callable[[str], str]] = {
    "memory": memory_page,
    "kernel": kernel_page,
    "program": program_page,
    "tasks": lambda name: tasks.html(records(name), name),
    "tasks with words": lambda name: tasks.html(records(name), name, name),
    "report": report_page,
    "tune, grid": lambda name: picture.html(*search(name, 1)),
    "tune, bars": lambda name: picture.html(*search(name, 2)),
    "document": lambda name: document(name, escaped(name), "", "", name),
}
PICTURES: dict[str, Callable[[str], str]] = {
    "messages": lambda name: messages.svg([messages.Message(k, 0, n % 2, name, n) for n, k in enumerate((messages.DATA, messages.SIGNAL,
                                                                                                   messages.WAIT))], 2, name),
    "tune, grid": lambda name: picture.svg(*search(name, 1)),
    "tune, bars": lambda name: picture.svg(*search(name, 2)),
}  # fmt: skip


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def check_page(hostile: str, plain: str) -> None:
    """A page has the elements and attributes that it has with harmless names, and its policy is in force."""
    found, usual = Parsed(hostile), Parsed(plain)
    assert found.shapes == usual.shapes
    assert found.links == usual.links <= {"#task"}
    assert visible(HOSTILE[:60]) in found.text, "names are shown as they are"
    assert not [c for c in hostile if not c.isprintable() and c not in "\n\t"]
    rules = dict(rule.split(" ", 1) for rule in found.policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert set(rules) - {"script-src", "require-trusted-types-for", "trusted-types"} == {
        "default-src", "base-uri", "form-action", "style-src"}  # fmt: skip
    run = [text for kind, text in found.scripts if kind not in ("application/json", "text/plain")]
    hashes = [_digest(text) for text in run]
    allowed = rules.get("script-src", "").split()
    assert allowed[: len(hashes)] == hashes and len(hashes) <= 1
    assert set(allowed[len(hashes) :]) <= {_digest(scripts())}, "of the pages inside the page"
    assert rules.get("require-trusted-types-for") == ("'script'" if run else None)
    for kind, text in found.scripts:
        if kind == "application/json":
            json.loads(text)
    assert [kind for kind, _ in found.scripts] == [kind for kind, _ in usual.scripts]


@together("name", PAGES)
def test_pages_have_the_same_elements_whatever_the_names(name: str) -> None:
    check_page(PAGES[name](HOSTILE), PAGES[name](PLAIN))


@together("name", PICTURES)
def test_pictures_are_xml_whatever_the_names(name: str) -> None:
    def shapes(text: str) -> set[tuple[str, ...]]:
        return {(e.tag, *sorted(e.keys())) for e in ElementTree.fromstring(text.encode()).iter()}

    hostile = PICTURES[name](HOSTILE)
    assert shapes(hostile) == shapes(PICTURES[name](PLAIN))
    texts = [e.text or "" for e in ElementTree.fromstring(hostile.encode()).iter()]
    assert any(visible(HOSTILE, layout=True) in text for text in texts)
    assert not any("script" in shape[0] for shape in shapes(hostile))


def test_scripts_have_one_way_to_make_elements() -> None:
    """`fill`, with markup that `html` has made; a browser with trusted types forbids the others, too."""
    text = "".join(packaged(f"explorer/{name}.js") for name in _SCRIPTS)
    assert len(re.findall(r"\.innerHTML\b", text)) == 1
    assert not re.search(
        r"outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bFunction\(|setAttribute\(\"on|\bhref\b|</script|<!--",
        text,
    )


def test_data_of_a_script() -> None:
    text = script_json({HOSTILE: [HOSTILE, "\\u202e", "\\\u202e", "größe 😀"]})
    assert text.isascii() and "<" not in text
    ((key, (value, *others)),) = json.loads(text).items()
    assert (
        key == value == HOSTILE.translate({ord(c): visible(c) for c in "\x00\x1b\x07\x9b\u202e\u2028\ufeff"})
    )
    assert others == ["\\u202e", r"\\u202e", "größe 😀"]


def test_graphs_say_names_as_they_are() -> None:
    task = table("tasks", {"task_id": [0]})
    one = Records(task, names={0: HOSTILE})
    text = task_graph.dot(one)
    label = re.search(r'label="((?:[^"\\]|\\.)*)"', text)
    shown = visible(HOSTILE) + "(0)"
    assert label and label[1].replace("&amp;", "&").replace('\\"', '"').replace("\\\\", "\\") == shown
    assert len(text.splitlines()) == len(task_graph.dot(Records(task)).splitlines())
    if shutil.which("dot"):
        drawn = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True).stdout
        assert shown in [e.text for e in ElementTree.fromstring(drawn).iter()]
    (line,) = (s for s in task_graph.mermaid(one).splitlines() if "Task0[" in s)
    words = re.sub(
        r"#(\d+);", lambda m: chr(int(m[1])), line.strip().removeprefix('Task0["').removesuffix('"]')
    )
    assert words == shown and not re.search(r"[<>&`\"]", line.strip()[7:-2])


def test_traces_are_json_whatever_the_names(tmp_path: Path) -> None:
    found, path = records(HOSTILE), tmp_path / "t.json"
    for write in (trace.write, swimlane_json.write, Records.save):
        write(found, path)
        json.loads(path.read_bytes())
    assert Records.load(path).names == found.names
    text = written(timed(program(_LOOP.format("barrier V"))), "t.json", HOSTILE)
    assert json.loads(text)["otherData"]["view"]["name"] == HOSTILE


def test_sources_of_other_files_stay_out(tmp_path: Path) -> None:
    """Places in records may name any file of the machine."""
    program, secret = tmp_path / "k.py", tmp_path / "secret"
    for file in (program, secret):
        file.write_text("for your eyes only\n")
    found = tasks._sources([[str(file), 1] for file in (program, secret, Path("/dev/zero"), tmp_path)])
    assert list(found) == [str(program)]
    assert [tasks._place(site)[1] for site in ("k.py:12", "k.py:²", "k.py:" + "9" * 5000)] == [12, 0, 0]


def test_tools_write_the_same_pages_whatever_the_names(tmp_path: Path) -> None:
    """A program in a file of such a name, with such a kernel: every file that `pto run` and `ptoas` draw."""
    quoted = "".join(
        c if c.isalnum() else "".join(f"\\{b:02X}" for b in c.encode("utf-8", "replace")) for c in NAMED
    )
    for name, symbol in (("plain", "plain"), (NAMED, f'"{quoted}"')):
        folder = tmp_path / str(symbol == "plain")
        folder.mkdir()
        file = folder / f"{name}.pto"
        hello = Path("examples/ranks/01_hello.pto").read_text()
        before, after = re.split(r"(?<=func\.func )@\w+", hello)
        file.write_text(f"{before}@{symbol}{after}")
        ranks = ["--ranks", "2", "-q", "--engine", "reference"]
        files = [
            "--messages",
            f"{folder}/m.svg",
            "--view",
            f"{folder}/v.html",
            "--timeline",
            f"{folder}/t.json",
        ]
        arguments = ["--", "window:i32:1x8", "window:i32:1", "context", "i32:1x8"]
        assert main(["run", str(file), *ranks, *files, *arguments]) == 0
        assert main(["run", str(file), *ranks, "--memory-map", f"{folder}/m.html", *arguments]) == 0
        assert ptoas.main([str(file), f"--explain-memory={folder}/e.html", "-o", f"{folder}/k.cpp"]) == 0
        json.loads((folder / "t.json").read_bytes())
        ElementTree.parse(folder / "m.svg")
    for page in ("v.html", "m.html", "e.html"):
        found, usual = (Parsed((tmp_path / which / page).read_text("utf-8")) for which in ("False", "True"))
        assert found.shapes == usual.shapes and found.links <= {"#task"} and found.policy


# -- in a browser ------------------------------------------------------------------------------------------


#: All that can be done with a page: every kind of card, tip and table. Returns the elements that there were, with
#: their attributes, links and properties of style.
_USED = """async () => {
  const seen = new Set(), run = explorer.runs[0], count = run.ev.lane.length, states = ["hidden", "style", "open"];
  const note = (among = "*") => { for (const e of document.querySelectorAll(among))
    seen.add([e.tagName, ...e.getAttributeNames().filter(n => !states.includes(n)).sort(), e.getAttribute("href"), ...e.style].join(" ")); };
  const frame = () => new Promise(done => requestAnimationFrame(done));
  note();
  for (let e = 0; e < count; e += Math.ceil(count / 10)) {
    explorer.pick(run, e, true), note("#detail *");
    for (const b of document.querySelectorAll("#detail .operands button")) b.click(), await frame(), note("#detail *");
  }
  for (const where of ["#tabs button", "#detail a", "#stalls tr.hot", "#tiles tr.hot", "#key button", "#buttons button", "#source .l.hot"])
    for (const e of [...document.querySelectorAll(where)].slice(0, 2)) e.click(), note("#detail *, .lit");
  for (const canvas of [document.getElementById("lanes"), document.getElementById("memory")]) {
    const box = canvas.getBoundingClientRect();
    for (let x = box.left + 130; x < box.right; x += 37) for (let y = box.top + 5; y < Math.min(box.bottom, 900); y += 11)
      canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: y, bubbles: true})), note("#tip *");
    if (canvas.onclick) for (const r of explorer.memoryRows()) canvas.dispatchEvent(new MouseEvent("click",
      {clientX: box.left + 400, clientY: box.top + (r.top + r.bottom) / 2})), note("#detail *");
  }
  note();
  return [...seen];
}"""


def used(page: Any) -> set[str]:
    found = set(page.evaluate(_USED))
    for key in ("m", "c", "n", "p", "z", "0", "+", "t", "Escape"):
        page.keyboard.press(key)
    page.fill("#search", "a")
    page.locator("#keys").click()
    page.locator("#help button").click()
    assert not page.locator("#help").is_visible()
    return found | set(page.evaluate(_USED))


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A page of each view, with all that it can have."""
    path = tmp_path_factory.mktemp("views") / "v.html"
    kernel_view(path)
    compared = timed(program(_LOOP.format("barrier V")))
    map = path.with_name("m.html")
    tiles = ["f32:64x128"] * 3
    assert main(["run", "examples/15_overlap.pto", "-q", "--memory-map", str(map), "--", *tiles]) == 0
    return {
        "kernel": path.read_text("utf-8"),
        "compared": kernel.html(compared, "k", kernel.dataset(compared, "k")),
        "memory": map.read_text("utf-8"),
        "steps": memory_page("x"),
        "tasks": tasks.html(simulate(60, clusters=2).records, "k"),
    }


@pytest.mark.parametrize("view", ["kernel", "compared", "memory", "steps", "tasks"])
def test_scripts_make_the_same_elements_whatever_the_names(
    browser: Any, views: dict[str, str], view: str, tmp_path: Path
) -> None:
    seen: list[set[str]] = []
    for name in (PLAIN, HOSTILE):
        before, data, after = re.split(
            r'(?<=<script id="data" type="application/json">)(.*?)(?=</script>)', views[view], flags=re.S
        )
        text = script_json(spoiled(json.loads(data), name))
        page = opened(browser, tmp_path / "p.html", before + text + after)
        asked: list[str] = []
        page.on("dialog", lambda d, asked=asked: (asked.append(d.message), d.dismiss()))
        page.on("request", lambda r, asked=asked: asked.append(r.url))
        seen.append(used(page))
        assert asked == [] and page.errors == []
        page.close()
    assert not seen[1] - seen[0], "elements that names have made"
    assert len(seen[1]) > 0.9 * len(seen[0])


def test_the_policy_is_in_force(browser: Any, views: dict[str, str], tmp_path: Path) -> None:
    """Had a name got through: it would not run, load, or become elements."""
    got = "<script>document.title = 'ran'</script><img src='x.png' onerror='document.title = 1'/><base href='x'/>"
    (tmp_path / "p.html").write_text(views["kernel"].replace('<div id="fold">', f'<div id="fold">{got}'))
    page = opened(browser, tmp_path / "p.html")
    assert page.title().startswith("@") and page.evaluate("document.baseURI").endswith("p.html")
    assert len([e for e in page.errors if "Content Security Policy" in e]) >= 3
    for sink in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
    ):
        with pytest.raises(Exception, match="TrustedHTML"):
            page.evaluate(f"() => {{ {sink} }}")
    page.close()
