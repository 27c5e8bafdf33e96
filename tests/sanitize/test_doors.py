"""A planted fault is found by every way to run its program, at the same lines. Where a door cannot report a
fault, or reports it elsewhere, `DIFFERS` says why.

The doors of whole programs (`pto ranks`) are in tests/host/test_programs.py, of folders of C++ in
tests/runtime/test_watched.py, of the language in tests/language.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.sampling import some

import pto
from pto import knobs, runtime
from pto.cli.main import main
from pto.diag import DiagnosticError
from pto.engine import journal
from pto.engine.sanitize import NAMES as SANITIZERS
from pto.engine.sanitize import summary

from . import test_cpp
from .corpus import NAMES, PROGRAMS, Program, _value, load
from .test_emitted import KNOWN

Place = tuple[str, int]  # code and line

_FIRST = "the task itself fails before a sanitizer judges it"
_APART = "blocks of a task are not checked against each other, and Run.unchecked says so"
_EARLIER = "engine native refuses the flags before the launch"
#: By door: programs whose fault is reported elsewhere or not at all, and why.
DIFFERS: dict[str, dict[str, str]] = {
    "pto run": {},
    "PTO_SANITIZE": dict.fromkeys(
        ("not_primed", "set_twice", "set_twice_dynamic", "wait_for_other_id", "wait_without_set"), _EARLIER
    ),
    "task": {
        **{name.removesuffix(".bad"): why for name, why in KNOWN.items()},
        **dict.fromkeys(("unbound_tile", "valid_shape_too_large"), _FIRST),
        **dict.fromkeys(
            ("barrier_not_met", "barrier_of_other_cores", "signal_never_comes"), "the graph is stuck: PTO-E2624"
        ),
        **dict.fromkeys(
            (
                "blocks_accumulate", "blocks_overlap_by_a_row", "blocks_read_neighbour", "blocks_read_sum",
                "blocks_same_bytes", "blocks_signal", "blocks_write_after_read",
            ),
            _APART,
        ),
    },
}  # fmt: skip
_CORES = {"vector": "aiv", "cube": "aic", "mix": "aiv"}


def places(found: Any) -> list[Place]:
    return sorted({(d.code, d.span.place[0] if d.span else 0) for d in found if d.severity == "error"})


def command_finds(path: Path, arguments: Sequence[str], options: Mapping[str, Any]) -> list[Place]:
    """What `pto run --sanitize all` reports, with the numbers of the corpus in files."""
    ranks, rng = options.get("ranks", 1), np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        words: list[str] = []
        for n, text in enumerate(arguments):
            made = [_value(text, rng) if text[0] in "bfiu" else None for _ in range(ranks)]
            for rank, value in enumerate(made):
                if isinstance(value, np.ndarray):
                    np.save(f"{folder}/{n}-{rank}.npy", value)
            saved = f"@{folder}/{n}-{'{rank}' if 'ranks' in options else 0}.npy"
            words.append(saved if isinstance(made[0], np.ndarray) else text)
        more = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            main(["run", "--sanitize", "all", "--diagnostics", "json", *more, str(path), "--", *words])
    found = json.loads(err.getvalue() or "[]")
    return sorted({(d["code"], d.get("line", 0)) for d in found if d["severity"] == "error"})


def by_command(program: Program) -> list[Place]:
    return command_finds(PROGRAMS / f"{program.name}.pto", program.arguments, program.options)


def by_environment(program: Program) -> list[Place]:
    """Reports reach a listener, as that of `pto python`, although nothing looks at the result."""
    found: list[Any] = []
    with knobs.override(PTO_SANITIZE="all"), journal.listening(lambda event: found.extend(event.diagnostics)):
        try:
            program.launch(pto.kernel(PROGRAMS / f"{program.name}.pto"))
        except DiagnosticError as e:
            return places(e.diagnostics)
    return places(found)


def by_task(program: Program) -> list[Place] | str:
    """A kernel of a graph of one task."""
    if "ranks" in program.options:
        return "a graph is that of one rank"
    if len(program.kernel.roles) > 1:
        return "tasks of two halves are not watched"  # and Run.unchecked says so: see below
    given = program.values()
    words = [
        "inout" if isinstance(v, np.ndarray) else "float" if isinstance(v, float) else "scalar" for v in given
    ]
    core = _CORES[program.kernel.roles[0][0]]
    kernel = runtime.kernel(PROGRAMS / f"{program.name}.pto", " ".join(words), core=core)
    blocks = program.options.get("blocks", 0)
    try:
        run = runtime.run(lambda rt: rt.submit(kernel, *given, blocks=blocks), sanitize="all", block_dim=4)
    except DiagnosticError as e:
        return places(e.diagnostics)
    apart = {kernel.name: "blocks against each other"} if blocks > 1 else {}
    assert run.checked == set(SANITIZERS) and run.unchecked == apart
    return places(run.diagnostics)


DOORS: dict[str, Callable[[Program], list[Place] | str]] = {
    "pto run": by_command,
    "PTO_SANITIZE": by_environment,
    "task": by_task,
}
#: The door of tasks compiles C++: `make test` samples it.
OPENED = [(door, name) for door in DOORS for name in (some(NAMES, 30) if door == "task" else NAMES)]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("group", range(4))
def test_the_bug_is_found(door: str, group: int) -> None:
    def check(name: str) -> None:
        bad = load(f"{name}.bad")
        found = DOORS[door](bad)
        if isinstance(found, str):
            return
        same = found == sorted({(c.code, c.line) for c in bad.checks})
        why = DIFFERS[door].get(name)
        assert same == (why is None), f"{found}: {why or 'no reason'}"
        if why in (_FIRST, _EARLIER):
            assert found, why

    each(check, [name for at, name in OPENED if at == door][group::4])


@pytest.mark.parametrize("file", test_cpp.FILES)
@pytest.mark.usefixtures("quick")
def test_the_bug_in_a_library_is_found(file: str) -> None:
    """C++, by `pto run` and by PTO_SANITIZE."""
    path = test_cpp.library(file)

    def check(name: str) -> None:
        written = test_cpp.kernels(file)[name]
        by_command = command_finds(path, written.arguments, {"entry": name, **written.options})
        assert by_command == sorted(written.found), "pto run"
        rng, found = np.random.default_rng(7), []
        values = [_value(text, rng) for text in written.arguments]
        with knobs.override(PTO_SANITIZE="all"), journal.listening(lambda e: found.extend(e.diagnostics)):
            pto.kernel(path, name).run(*values, **written.options)
        assert places(found) == sorted(written.found), "PTO_SANITIZE"

    each(check, list(test_cpp.kernels(file)))


def test_what_is_not_watched_is_said() -> None:
    """No door is silent about kernels that it does not check."""
    look = runtime.kernel(lambda *values: None, "inout", name="look")
    run = runtime.run(lambda rt: rt.submit(look, np.zeros(8, np.float32)), sanitize="race")
    assert (run.ok, run.checked, run.unchecked) == (True, {"race"}, {"look": "a Python function"})
    bad = load("fifo_full.bad")
    words = " ".join("inout" if isinstance(v, np.ndarray) else "scalar" for v in bad.values())
    mixed = runtime.kernel(PROGRAMS / "fifo_full.good.pto", words, core="mixed")
    run = runtime.run(lambda rt: rt.submit(mixed, *bad.values()), sanitize="race")
    assert run.unchecked == {"k": "a program of two halves in one task"}
    assert summary(run.checked, run.unchecked).startswith("checked for race but not k (a program of two")


def test_a_task_without_parameters() -> None:
    nothing = "func.func @nothing() attributes {pto.entry} {\n  return\n}\n"
    kernel = runtime.kernel(nothing, "", name="nothing")
    run = runtime.run(lambda rt: rt.submit(kernel), sanitize="all")
    assert run.ok and not run.unchecked


def test_a_program_that_changes_between_runs(tmp_path: Path) -> None:
    """Its parameters are those of the file as it is now."""
    path = tmp_path / "k.pto"
    kernel = None
    for dtype, sanitize in (("f32", ()), ("i32", "all")):
        path.write_text(f"func.func @k(%x: !pto.ptr<{dtype}>) attributes {{pto.entry}} {{\n  return\n}}\n")
        kernel = kernel or runtime.kernel(path, "in")
        array = np.zeros(8, dtype.replace("f", "float").replace("i", "int"))
        assert runtime.run(lambda rt, k=kernel, x=array: rt.submit(k, x), sanitize=sanitize).ok


def test_an_option_goes_before_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a listener reports go to stderr, once."""
    bad = load("raw_mte2_v.bad")
    with knobs.override(PTO_SANITIZE="all"):
        kernel = pto.kernel(PROGRAMS / "raw_mte2_v.bad.pto")
        assert kernel.run(*bad.values(), sanitize=()).ok and capsys.readouterr().err == ""
        for _ in range(2):
            assert not kernel.run(*bad.values()).ok
        assert capsys.readouterr().err.count("error[PTO-E2201]") == 1
        with pytest.raises(DiagnosticError):
            kernel(*bad.values())
    assert pto.kernel(PROGRAMS / "raw_mte2_v.bad.pto").run(*bad.values()).ok
