"""Run all commands and programs of the README and the docs, and compare their output.

Fenced blocks of one page run in order, in one fresh folder that has `examples/` in it:

    console              each `$ command`; its output, standard error included, follows it. A line `...`
                         stands for any lines, and a time such as `0.012 s` for any time. A command whose output
                         shows an error must fail with status 1.
    mlir                 must parse and verify; with `title="NAME"` it is also saved as NAME for later
                         commands. `wrong` after mlir: saved, not checked.
    python               runs in one namespace per page; every `# -> text` comment is a line it must print.
    any other            with `title="NAME"`: saved as NAME for later blocks.

`python -m tests.docs.test_snippets --rebase [PAGE...]` rewrites the outputs of console blocks.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.tools import tools

import pto
from pto.engine.native import packs

ROOT = Path(__file__).parents[2]
#: Pages that show compiled C++; the examples of the others work without a compiler.
COMPILE = (
    "cpp.md",
    "debugger.md",
    "objects.md",
    "ranks.md",
    "runtime.md",
    "runtime-checks.md",
    "runtime-time.md",
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_TIME = re.compile(r"\b\d+\.\d{3} s\b")


@dataclass(frozen=True)
class Block:
    language: str
    info: str
    text: str
    line: int

    @property
    def title(self) -> str:
        m = _TITLE.search(self.info)
        return m[1] if m else ""


def blocks(page: str) -> Iterator[Block]:
    for m in _BLOCK.finditer(page):
        yield Block(m[1], m[2], m[3], page.count("\n", 0, m.start()) + 2)


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """(command, lines it prints) of a console block."""
    out: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        else:
            assert out, f"line {block.line}: a console block starts with a `$ command`"
            out[-1][1].append(line)
    return out


class Shell:
    """A folder with the examples, and the tools of this interpreter on PATH."""

    def __init__(self, folder: Path, tool_folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        shutil.copytree(ROOT / "examples", self.folder / "examples")
        path = os.pathsep.join((str(tool_folder), str(Path(sys.executable).parent), os.environ["PATH"]))
        self.environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}

    def run(self, command: str) -> tuple[list[str], int]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, timeout=600,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else [], done.returncode


def matches(expected: list[str], got: list[str]) -> bool:
    """Compare line by line; `...` stands for any number of lines. All times are equal."""
    pattern = "".join("(?:.*\n)*?" if e == "..." else re.escape(_TIME.sub("T", e)) + "\n" for e in expected)
    return re.fullmatch(pattern, "".join(_TIME.sub("T", g) + "\n" for g in got)) is not None


def check_console(block: Block, shell: Shell) -> None:
    for command, expected in commands(block):
        if command.startswith("make "):  # far too slow to run here; the target must exist
            assert f"\n{command.split()[1]}:" in (ROOT / "Makefile").read_text(), (
                f"line {block.line}: {command}"
            )
            continue
        got, status = shell.run(command)
        assert matches(expected, got), f"line {block.line}: $ {command}\n" + "\n".join(got)
        assert status == any(re.search(r"\berror\[", g) for g in got), (
            f"line {block.line}: $ {command}: {status}"
        )


def check_program(block: Block, shell: Shell) -> None:
    if block.title:
        (shell.folder / block.title).write_text(block.text)
    if "wrong" not in block.info.split():
        problems = pto.verify(pto.parse(block.text))
        assert not problems, f"line {block.line}: {pto.DiagnosticError(problems)}"


def execute(block: Block, page: str, namespace: dict[str, object]) -> None:
    """Its text can be read: functions of the language are."""
    name = f"<{page}, line {block.line}>"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(True), name)
    exec(compile(block.text, name, "exec"), namespace)


def check_python(block: Block, page: str, namespace: dict[str, object]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        execute(block, page, namespace)
    expected = [line.partition("# -> ")[2] for line in block.text.splitlines() if "# -> " in line]
    assert printed.getvalue().splitlines() == expected, f"line {block.line}"


def test_a_core_is_named_in_deterministic_runs_only() -> None:
    """The core of a task is the schedulers' choice, unless there is a seed."""
    named = [b for page in PAGES for b in blocks(page.read_text()) if re.search(r"\bAI[CV] \d", b.text)]
    assert named and all("seed" in b.text for b in named), [b.text for b in named if "seed" not in b.text]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path, tool_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = {"objects.md": "llvmlite", "prove.md": "z3"}.get(page.name)
    if needed is not None:
        pytest.importorskip(needed)
    if page.name not in COMPILE and packs.of_package() is not None:
        monkeypatch.setenv("PTO_CXX", "/bin/false")
    shell = Shell(tmp_path, tool_folder)
    monkeypatch.chdir(shell.folder)
    namespace: dict[str, object] = {}
    for block in blocks(page.read_text()):
        if block.language == "console":
            check_console(block, shell)
        elif block.language == "mlir":
            check_program(block, shell)
        elif block.language == "python":
            check_python(block, page.name, namespace)
        elif block.title:
            (shell.folder / block.title).write_text(block.text)


def test_readme_and_tutorial_have_snippets() -> None:
    for name, least in (("README.md", 3), ("docs/tutorial.md", 15)):
        run = [b for b in blocks((ROOT / name).read_text()) if b.language in ("console", "mlir", "python")]
        assert len(run) >= least, name


def test_pages_agree_about_auto_mode() -> None:
    """Flags are inserted if `ptoas` has the option for them; without, it reports that there are none. As
    every command is run, a page that shows C++ of a program in auto mode shows one or the other, and one page
    shows both."""
    told = {}
    for page in PAGES:
        for block in blocks(page.read_text()):
            for command, output in commands(block) if block.language == "console" else []:
                if re.match(r"ptoas .*01_vec_add.*\.cpp", command):
                    inserts = "--enable-insert-sync" in command
                    assert any("PTO-E0810" in line for line in output) != inserts, (page.name, command)
                    told.setdefault(inserts, []).append(page.name)
    assert told[True] and told[False] == ["sync-insertion.md"]


def test_matches_is_strict() -> None:
    assert matches(["a", "...", "c"], ["a", "b", "b", "c"])
    assert matches(["a", "...", "c"], ["a", "c"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a.c"], ["abc"])
    assert not matches([], ["a"])
    assert matches(["ok (0.012 s)"], ["ok (1.300 s)"]) and not matches(["ok (0.012 s)"], ["ok (0.012 m)"])


def rebase(page: Path) -> None:
    """Write the present outputs into the console blocks of a page; those that still match stay as they are."""
    with tempfile.TemporaryDirectory() as folder, tools(Path(folder)) as tool_folder:
        shell = Shell(Path(folder), tool_folder)
        namespace: dict[str, object] = {}
        os.chdir(shell.folder)

        def rewrite(m: re.Match[str]) -> str:
            block = Block(m[1], m[2], m[3], m.start())
            if block.title:
                (shell.folder / block.title).write_text(block.text)
            if block.language == "python":  # for the files it makes
                with contextlib.redirect_stdout(io.StringIO()):
                    execute(block, page.name, namespace)
            if block.language != "console":
                return m[0]
            lines: list[str] = []
            for command, expected in commands(block):
                made = expected if command.startswith("make ") else shell.run(command)[0]
                kept = "..." in expected or matches(expected, made)
                lines += [f"$ {command}", *(expected if kept else made)]
            return f"```{m[1]}{m[2]}\n" + "".join(line + "\n" for line in lines) + "```"

        page.write_text(_BLOCK.sub(rewrite, page.read_text()))
        os.chdir(ROOT)


if __name__ == "__main__" and sys.argv[1:2] == ["--rebase"]:
    for each in [Path(p).resolve() for p in sys.argv[2:]] or PAGES:
        rebase(each)
