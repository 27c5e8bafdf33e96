"""A fault planted in a program of the Python language is found by every way to run it, at the same lines; where a
way reports it elsewhere or not at all, `DIFFERS` says why. The programs are in language/, which says how to
write one."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.each import each
from tests.sampling import EVERY, some

import pto.language as pl
from pto import knobs
from pto.cli.main import main
from pto.diag import Diagnostic, DiagnosticError
from pto.engine import journal

HERE = Path(__file__).parent / "language"
FILES = ("kernels", "graphs", "ranks")
Place = tuple[str, int]  # code, and line of the Python file or of extern.cpp

_FOUND = re.compile(r"(?:#|//) FOUND ((?:PTO-E\d{4} ?)+)$")
#: The place of the later task of a hazard.
_TASK = re.compile(r"task \d+ \([\w ]+\) at (\S+?):(\d+)")
#: Of programs whose fault stands in the C++ that they submit.
_ELSEWHERE = {"race_in_cpp": "extern.cpp"}

_CLAIMS = "checks of the language itself (pl.parallel, Out) are made by .run and PTO_SANITIZE"
_BLOCKS = "blocks of a task are not checked against each other, and Run.unchecked says so"
_FIRST = "the run ends at the access outside, before a sanitizer judges the task"
_RANKS = "ranks are not checked against each other, and Run.unchecked says so"
_STUCK = "the graph is stuck: PTO-E2624, which has no line"
_WINDOWS = "a folder does not say which parameters are windows of ranks: PTO-E2611 at the tasks"
#: By door: programs whose fault is reported in another way, the reason, and the codes that are reported.
_TASKS: dict[str, tuple[str, set[str]]] = {
    "output_half_written": (_CLAIMS, set()),
    "blocks_overlap": (_BLOCKS, set()),
    "last_rows_are_missing": (_FIRST, {"PTO-E2101"}),
    "iterations_overlap": (_CLAIMS, {"PTO-E2611"}),
    "race": (_RANKS, set()),
    "stuck": (_STUCK, {"PTO-E2624"}),
}
_SAVED = {
    **_TASKS,
    "race": (_WINDOWS, {"PTO-E2611"}),
}
DIFFERS: dict[str, dict[str, tuple[str, set[str]]]] = {
    "run": {}, "PTO_SANITIZE": {}, "task runtime": _TASKS, "saved": _SAVED, "pto runtime run": _SAVED,
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A program with a fault."""

    file: str
    name: str

    @property
    def function(self) -> Any:
        return getattr(_module(self.file), self.name)

    @property
    def values(self) -> tuple[Any, ...]:
        return _module(self.file).CALLS[self.name]()

    @property
    def config(self) -> dict[str, Any]:
        return getattr(_module(self.file), "CONFIG", {})

    @property
    def compiled(self) -> Any:
        return self.function.compile(*self.values, **self.config)

    @property
    def found(self) -> set[Place]:
        if self.name in _ELSEWHERE:
            return set(_annotated((HERE / _ELSEWHERE[self.name]).read_text(encoding="utf-8")))
        module = _module(self.file)
        names = [self.function, *(getattr(module, n) for n in _HELPERS.get(self.name, ()))]
        found: set[Place] = set()
        for function in names:
            lines, first = inspect.getsourcelines(function.declared.function)
            found |= {(code, first + line - 1) for code, line in _annotated("".join(lines))}
        return found


#: Functions of a program in which its fault stands.
_HELPERS = {
    "race": ("reads_before_the_barrier",),
    "stuck": ("waits_for_two",),
    "undefined": ("stores_nothing",),
    "never_written": ("reads_all",),
    "window_beyond_rows": ("doubled_rows",),
}


@cache
def _module(file: str) -> Any:
    return importlib.import_module(f"tests.sanitize.language.{file}")


def _annotated(text: str) -> Iterable[Place]:
    for number, line in enumerate(text.splitlines(), 1):
        if m := _FOUND.search(line):
            yield from ((code, number) for code in m[1].split())


ALL = [Planted(file, name) for file in FILES for name in _module(file).CALLS]


def place(code: str, line: int | None, message: str) -> Place:
    m = _TASK.search(message) if code == "PTO-E2611" else None
    return code, int(m[2]) if m else line or 0


def places(found: Iterable[Diagnostic]) -> set[Place]:
    return {place(d.code, d.span.line if d.span is not None else 0, d.message) for d in found}


def by_run(p: Planted) -> set[Place]:
    return places(p.function.run(*p.values, **p.config, sanitize="all").diagnostics)


@contextlib.contextmanager
def environment(found: list[Any]) -> Any:
    with knobs.override(PTO_SANITIZE="all"), journal.listening(lambda e: found.extend(e.diagnostics)):
        yield


def by_environment(p: Planted) -> set[Place]:
    found: list[Any] = []
    with environment(found):
        p.function(*p.values, **p.config)
    return places(found)


def by_task_runtime(p: Planted) -> set[Place]:
    try:
        run = p.compiled.execute(list(p.values), sanitize="all")
    except DiagnosticError as e:
        return places(e.diagnostics)
    why, _ = _TASKS.get(p.name, ("", None))
    assert bool(run.unchecked) == (why in (_BLOCKS, _RANKS) or p.file == "ranks"), run.unchecked
    return places(run.diagnostics)


def by_load(p: Planted) -> set[Place]:
    """A program that was saved and loaded, by PTO_SANITIZE."""
    found: list[Any] = []
    with TemporaryDirectory() as folder, environment(found):
        p.compiled.save(folder, dumps=False)
        try:
            pl.Compiled.load(folder)(*p.values)
        except DiagnosticError as e:
            found += e.diagnostics
    return places(found)


def by_command(p: Planted) -> set[Place]:
    """A program that was saved, by `pto runtime run`."""
    err = io.StringIO()
    with TemporaryDirectory() as folder:
        try:
            p.compiled.save(folder, *p.values)  # runs it, for the results that it is to have
        except DiagnosticError as e:
            return places(e.diagnostics)
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            status = main(["runtime", "run", folder, "--sanitize", "all", "--diagnostics", "json"])
    found = json.loads(err.getvalue() or "[]")
    assert status == any(d["severity"] == "error" for d in found)
    # what undefined data makes of the results is another matter
    return {place(d["code"], d.get("line"), d["message"]) for d in found} - {("PTO-E2606", 0)}


DOORS: dict[str, Callable[[Planted], set[Place]]] = {
    "run": by_run,
    "PTO_SANITIZE": by_environment,
    "task runtime": by_task_runtime,
    "saved": by_load,
    "pto runtime run": by_command,
}
#: Doors that compile an orchestration for each program, with the share of programs that `make test` takes.
_COMPILING = {"saved": 6, "pto runtime run": 6}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.filterwarnings("ignore::pto.language.problems.LanguageWarning")
def test_the_fault_is_found(door: str) -> None:
    def check(p: Planted) -> None:
        expected = p.found
        assert expected, "nothing is said to be wrong with it"
        found = DOORS[door](p)
        why, codes = DIFFERS[door].get(p.name, ("", None))
        if codes is not None:
            assert {code for code, _ in found} == codes, (why, found)
        elif door in _COMPILING and p.name not in _ELSEWHERE:  # lines are those of the files in the folder
            assert {code for code, _ in found} == {code for code, _ in expected}, found
        else:
            assert found == expected

    each(check, some(ALL, _COMPILING.get(door, 1)))


@pytest.mark.parametrize("how", ["pto python", "PTO_SANITIZE"])
@pytest.mark.parametrize("file", FILES if EVERY else FILES[:1])
def test_the_fault_is_found_in_a_script(file: str, how: str) -> None:
    """Every program of a file, one after the other, with the reports on stderr."""
    script = [str(HERE / f"{file}.py")]
    command = [sys.executable, "-m", "pto.cli.main", "python", "--sanitize", "all", *script]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    if how == "PTO_SANITIZE":
        command, env["PTO_SANITIZE"] = [sys.executable, *script], "all"
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == (how == "pto python"), done.stderr
    begin = (
        r"^(?:(\S+\.(?:py|cpp)):(\d+):\d+: |\w+: )?"  # `pto python` names the program, where there is no line
    )
    report = re.compile(begin + r"(?:error|warning)\[(PTO-E\d{4})\](.*)", re.MULTILINE)
    found = {place(code, int(line or 0), text) for _, line, code, text in report.findall(done.stderr)}
    expected = set[Place]().union(*(p.found for p in ALL if p.file == file))
    assert found - {(code, line) for code, line in found if code == "PTO-E3015"} == expected, done.stderr


def test_programs_are_what_the_table_says() -> None:
    names = {p.name for p in ALL}
    assert len(names) == len(ALL)
    for door, rows in DIFFERS.items():
        assert door in DOORS and set(rows) <= names
