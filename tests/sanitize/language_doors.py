"""Programs of the Python language with a planted fault, by every way to run them. They are in language/; its
kernels.py says how to write one."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pto.language as pl
from pto import knobs
from pto.cli.main import main
from pto.diag import DiagnosticError
from pto.engine import journal

from .doors import Corpus, Door, Found, differing, of_json, of_text, places, scripted
from .kernel_doors import printed

_FOUND = re.compile(r"(?:#|//) FOUND ((?:PTO-E\d{4} ?)+)$")
_ALL = "error warning"


@cache
def _module(file: str) -> Any:
    return importlib.import_module(f"tests.sanitize.language.{file}")


#: The modules of the programs.
_FILES = {name: _module(file) for file in ("kernels", "graphs", "ranks") for name in _module(file).CALLS}
#: Functions of a program in which its fault stands.
_HELPERS = {
    "race": ("reads_before_the_barrier",),
    "stuck": ("waits_for_two",),
    "undefined": ("stores_nothing",),
    "never_written": ("reads_all",),
    "window_beyond_rows": ("doubled_rows",),
}
#: Programs whose fault stands in the C++ that they submit.
_ELSEWHERE = {"race_in_cpp": "extern.cpp"}


class Planted:
    """A program with a fault, and a call of it."""

    def __init__(self, name: str) -> None:
        module = _FILES[name]
        self.function = getattr(module, name)
        self.values = module.CALLS[name]()
        self.config = getattr(module, "CONFIG", {})

    @property
    def compiled(self) -> Any:
        return self.function.compile(*self.values, **self.config)


def expected(name: str) -> Found:
    module = _FILES[name]
    if name in _ELSEWHERE:
        text = Path(module.__file__).with_name(_ELSEWHERE[name]).read_text(encoding="utf-8")
        return set(_annotated(text.splitlines(), 1))
    names = [name, *_HELPERS.get(name, ())]
    return {
        f for n in names for f in _annotated(*inspect.getsourcelines(getattr(module, n).declared.function))
    }


def _annotated(lines: Iterable[str], first: int) -> Iterable[tuple[str, int]]:
    for number, line in enumerate(lines, first):
        if m := _FOUND.search(line.rstrip()):
            yield from ((code, number) for code in m[1].split())


def by_run(name: str) -> Found:
    p = Planted(name)
    return places(p.function.run(*p.values, **p.config, sanitize="all").diagnostics, _ALL)


_SCRIPT = """
import sys
from tests.sanitize.language_doors import Planted
for name in sys.argv[1:]:
    print("==", name, file=sys.stderr, flush=True)
    p = Planted(name)
    p.function(*p.values, **p.config)
"""


def by_script(names: Sequence[str], environment: bool = False) -> dict[str, Found]:
    found = scripted(_SCRIPT, *names, environment=environment)
    return {name: of_text(text, _ALL) for name, text in found.items()}


def by_task_runtime(name: str) -> Found:
    p = Planted(name)
    try:
        run = p.compiled.execute(list(p.values), sanitize="all")
    except DiagnosticError as e:
        return places(e.diagnostics, _ALL)
    assert bool(run.unchecked) == (name == "blocks_overlap" or bool(p.config)), run.unchecked
    return places(run.diagnostics, _ALL)


def by_load(name: str) -> Found:
    """A program that was saved and loaded, by PTO_SANITIZE."""
    p, found = Planted(name), list[Any]()
    with (
        TemporaryDirectory() as folder,
        knobs.override(PTO_SANITIZE="all"),
        journal.listening(lambda event: found.extend(event.diagnostics)),
    ):
        p.compiled.save(folder, dumps=False)
        try:
            pl.Compiled.load(folder)(*p.values)
        except DiagnosticError as e:
            found += e.diagnostics
    return places(found, _ALL)


def by_command(name: str) -> Found:
    """A program that was saved, by `pto runtime run`."""
    p = Planted(name)
    with TemporaryDirectory() as folder:
        try:
            p.compiled.save(folder, *p.values)  # runs it, for the results that it is to have
        except DiagnosticError as e:
            return places(e.diagnostics, _ALL)
        with printed() as err:
            main(["runtime", "run", folder, "--sanitize", "all", "--diagnostics", "json"])
    return of_json(err.getvalue(), _ALL) - {("PTO-E2606", 0)}  # results of undefined data are another matter


_CLAIMS = "checks of the language itself (pl.parallel, Out) are made by .run and PTO_SANITIZE"
_TASKS = {
    **differing(_CLAIMS, ["output_half_written"]),
    **differing(_CLAIMS, ["iterations_overlap"], "PTO-E2611"),
    **differing("blocks of a task are not checked against each other, and Run.unchecked says so", ["blocks_overlap"]),
    **differing("the run ends at the access outside, before a sanitizer judges the task",
                ["last_rows_are_missing"], "PTO-E2101"),
    **differing("ranks are not checked against each other, and Run.unchecked says so", ["race"]),
    **differing("the graph is stuck, which has no line", ["stuck"], "PTO-E2624"),
}  # fmt: skip
_SAVED = {
    **_TASKS,
    **differing("a folder has no windows of ranks: a hazard of the tasks", ["race"], "PTO-E2611"),
}
_KERNELS_ONLY = "runs one kernel; that of a program is a .pto, as in the corpus of kernels"
_OTHER_RUNTIME = "programs are orchestrations of tensormap_and_ringbuffer"

PYTHON = Corpus("programs of the Python language", list(_FILES), expected, {
    ".run": Door(by_run),
    "PTO_SANITIZE": Door(lambda names: by_script(names, environment=True), share=4, at_once=True),
    "pto python": Door(by_script, share=4, at_once=True),
    "pto run": _KERNELS_ONLY,
    "pto debug": _KERNELS_ONLY,
    "runtime.run": Door(by_task_runtime, _TASKS, share=4),
    "host_build_graph": _OTHER_RUNTIME,
    "aicpu_build_graph": _OTHER_RUNTIME,
    "Compiled.load": Door(by_load, _SAVED, share=8, lines=False),
    "pto runtime run": Door(by_command, _SAVED, share=8, lines=False),
    "pto ranks": "starts C++ with a main",
})  # fmt: skip
