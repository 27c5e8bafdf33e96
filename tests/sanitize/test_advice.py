"""Advice that can be inserted holds: `pto fix` follows it, and the program is then clean and the same under schedules.

The programs are those of the corpora, every correct one without one of the lines that order it, C++, and the C++
that graphs and programs of the Python language submit. `UNADVISED` names those without such advice.
"""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.sampling import EVERY, some
from tests.verify.test_illegal_programs import PAIRS

import pto
from pto.cli.fix import FixOutcome, FixStep, fixed
from pto.diag import Diagnostic, DiagnosticError, Source, render
from pto.verifier.apply import applied

from . import graph_doors as graphs
from . import test_cpp as cpp
from .corpus import NAMES, Program, load
from .language_doors import Planted

#: Schedules of a program that has nothing more to report.
SCHEDULES = 8 if EVERY else 2

#: A line that orders something.
_ORDERS = re.compile(
    r"^\s*pto\.(?:set_flag|wait_flag|barrier|sync\.set|sync\.wait|set_intra_block|wait_intra_core|mem_bar|"
    r"set_flag_dyn|wait_flag_dyn|get_buf|rls_buf|record_event|wait_event)\b"
)

#: Programs that advice does not mend, and why: the advice is none that can be inserted.
KNOWN = {
    "crossed_waits.good": "two pipes wait for each other",
    "double_buffer_no_reverse.good": "its ids are computed",
    "semaphore_overflow.good": "a semaphore that nothing waits for is raised 16 times",
    "set_on_one_path.good": "another path sets the flag",
}

#: What no single line mends.
_OPEN = {
    "PTO-E0805": "cross-core semaphore",  # which pipe should wait is not to be seen
    "PTO-E2104": "cross-core semaphore",  # nor which one raises it
    "PTO-E2202": "between blocks",
}


#: Reports of which no line to insert is known, by code: the correction is another value, window, tile or operand.
_VALUES = frozenset(
    "PTO-E2101 PTO-E2102 PTO-E2103 PTO-E2202 PTO-E2203 PTO-E2204 PTO-E2208 PTO-E2209 PTO-E2210 PTO-E2211 "
    "PTO-E2212 PTO-E2216 PTO-E2217 PTO-E2218 PTO-E2302 SA-0353 SA-0354".split()
)
#: Programs with other reports that have no advice that can be inserted, and the reason. All programs of the Python
#: language but race_in_cpp are without: the tools insert their flags.
UNADVISED = {
    **dict.fromkeys(
        (
            "barrier_not_met", "barrier_of_other_cores", "cores_wait_for_each_other", "crossed_waits",
            "cube_waits_for_ended_vector", "fifo_full", "fifo_pop_without_push", "rank_both_wait", "rank_circle",
            "rank_equal_overtaken", "rank_leaves_early", "rank_signals_itself", "scalar_waits", "set_on_one_path",
            "signal_never_comes",
        ),
        "the missing part is on another core, rank or path",
    ),
    **dict.fromkeys(
        ("rank_transfer_not_awaited", "rank_transfer_source_reused"), "a wait needs the event of the transfer"
    ),
    "cross_core_reuse": "a loop around a call",
    "vector_cores_together": "no flag orders two vector cores",
    "semaphore_left_raised": "the pipe that should wait is not known",
    "semaphore_overflow": "one of 16 lines is to be removed",
    **dict.fromkeys(("C++ pop_without_push", "C++ signal_never_comes"), "the missing part is on another core"),
    **dict.fromkeys(("C++ ids_out_of_step", "C++ set_twice"), "another id, or a wait in an unknown place"),
    "C++ three_buffers_two_ids": "another path waits",
    "C++ both_write_the_first_half": "no flag orders two vector cores",
    "C++ handshake_not_taken": "the id is not visible at the wait",
    **dict.fromkeys(("outside", "undefined", "nan", "never_stored"), "graphs: values, as _VALUES"),
}  # fmt: skip


def launched(program: Program, text: str, **options: Any) -> tuple[FixOutcome, list[bytes]]:
    """One launch of a text with the arguments of a program."""
    try:
        kernel = pto.kernel(pto.parse(text), engine="reference")
        result, arrays = program.launch(kernel, **options)
    except DiagnosticError as e:
        return FixOutcome(False, e.diagnostics), []
    return FixOutcome(True, result.diagnostics), arrays


def mended(program: Program, text: str) -> tuple[str, FixOutcome, list[FixStep]]:
    """Follow the advice of sanitizers, and check that every step holds."""
    text, left, steps = fixed(text, lambda new: launched(program, new, sanitize="all")[0])
    said = "\n".join(f"{step.found.code}: {step.found.help}" for step in steps)
    assert all(step.kept for step in steps), f"this does not help:\n{said}\n{text}\n{render(left.found)}"
    assert not [d for d in left.errors if applied(text, d.help)], f"{said}\n{text}\n{render(left.found)}"
    return text, left, steps


def same_under_schedules(program: Program, text: str, wanted: list[bytes] | None = None) -> None:
    _, expected = launched(program, text)
    assert wanted is None or expected == wanted, text
    for seed in range(SCHEDULES):
        outcome, found = launched(program, text, schedule=seed)
        assert not outcome.errors, f"{text}\n{render(outcome.found)}"
        assert found == expected, f"seed {seed}:\n{text}"


def advised(name: str) -> bool:
    """Check whether the reports of a program are known to have advice: those of races and of orders."""
    return any(
        c.code in ("PTO-E2201", "PTO-E2206", "PTO-E2104") or c.code[:-1] == "PTO-E080"
        for c in load(name).checks
    )


@pytest.mark.parametrize("part", range(4))
def test_of_the_corpus(part: int) -> None:
    """Reports that have other causes, as reads of undefined data, are the same as before."""

    def check(name: str) -> None:
        bad = load(f"{name}.bad")
        text, left, steps = mended(bad, bad.text)
        if steps and not left.errors:
            same_under_schedules(bad, text)
        mended_codes = {step.found.code for step in steps}
        assert {d.code for d in left.errors} <= {c.code for c in bad.checks} | {"PTO-E2202"}, render(
            left.found
        )
        assert not (mended_codes & {d.code for d in left.errors}) or left.errors, name

    each(check, some([n for n in NAMES if advised(f"{n}.bad")], 3)[part::4])


def test_which_programs_have_advice() -> None:
    def check(name: str, codes: set[str], advice: bool) -> None:
        assert advice == (not codes <= _VALUES and name not in UNADVISED), name

    def of_program(name: str) -> None:
        bad = load(f"{name}.bad")
        found = launched(bad, bad.text, sanitize="all")[0].errors
        check(name, {c.code for c in bad.checks}, any(applied(bad.text, d.help) for d in found))

    def of_kernel(written: cpp.Written) -> None:
        result, _ = cpp.run(written, "bad", sanitize="all")
        advice = first_step(cpp.text_of(written.file, "bad"), result)
        check(f"C++ {written.name}", {code for code, _ in written.found}, bool(advice))

    each(of_program, some(NAMES, 8))
    files = cpp.FILES if EVERY else ["events"]
    each(of_kernel, [(written,) for file in files for written in cpp.kernels(file).values()])


def lines_that_order(text: str) -> list[int]:
    return [n for n, line in enumerate(text.split("\n")) if _ORDERS.match(line)]


REMOVED = [(f"{name}.good", n) for name in NAMES for n in lines_that_order(load(f"{name}.good").text)]


def without(name: str, line: int) -> None:
    """Mend a correct program that lacks a line: it does again what it did."""
    good = load(name)
    lines = good.text.split("\n")
    dynamic = "_dyn" in lines[line] or "%" in lines[line]
    lines[line] = ""
    text, left, steps = mended(good, "\n".join(lines))
    if not left.errors:
        if steps:
            same_under_schedules(good, text, good.run()[1])
    elif name not in KNOWN and not dynamic:
        open_ = all(_OPEN.get(d.code, "-") in d.message for d in left.errors)
        assert open_, f"no advice for line {line + 1}: {render(left.found)}\n{text}"


@pytest.mark.parametrize("part", range(8))
def test_of_a_line_that_is_removed(part: int) -> None:
    each(without, some(REMOVED, 40)[part::8])


def test_of_the_verifier() -> None:
    """A line that the verifier suggests ends its report, and starts no other."""
    tried = 0
    for pair in PAIRS:
        text = pair.program("-")
        before = problems(text, pair)
        for d in before:
            new = applied(text, d.help)
            if new is None:
                continue
            tried += 1
            after = problems(new, pair)
            assert len(after) < len(before), f"{pair.name}: {d.help}\n{new}\n{render(after)}"
            assert {e.code for e in after} <= {e.code for e in before}, (
                f"{pair.name}: {d.help}\n{render(after)}"
            )
    assert tried >= 4


def problems(text: str, pair: Any) -> list[Diagnostic]:
    try:
        return pto.verify(pto.parse(text), pair.target, **pair.options)
    except DiagnosticError as e:
        return e.diagnostics


# -- C++ ---------------------------------------------------------------------------------------------------


def built(file: str, text: str, folder: Path) -> dict[str, cpp.TracedKernel]:
    """The kernels of a file with another text."""
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    path = place / f"{file}.cpp"
    path.write_text(text)
    source = Source(str(path), text)
    entries, _ = cpp.handwritten.entries(source, None)
    target = cpp.profile(cpp.handwritten.target_of(text) or "a2a3")
    library = cpp.handwritten.library(source, entries, target, False, False, str(place), traced=True)
    assert library.ok, f"advice does not compile:\n{library.output}"
    return {e.name: cpp.TracedKernel(library.path, e.name) for e in entries}


@pytest.mark.parametrize("file", cpp.FILES if EVERY else ["events"])
def test_of_cpp(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels of a file are mended at once, a step of each at a time: building is what takes long."""
    text = cpp.text_of(file, "bad")
    for _ in range(5):
        made = built(file, text, tmp_path)
        monkeypatch.setattr(cpp, "kernel", lambda file, name, kind, made=made: made[name])
        found = {name: cpp.run(w, "bad", sanitize="all")[0] for name, w in cpp.kernels(file).items()}
        steps = [step for result in found.values() if (step := first_step(text, result))]
        if not steps:
            break
        text = applied(text, "\n".join(steps)) or ""
    else:
        pytest.fail(f"it does not end: {steps}")

    def check(name: str) -> None:
        codes = {code for code, _ in cpp.errors(found[name])}
        written = cpp.kernels(file)[name]
        assert codes <= {code for code, _ in written.found}, render(found[name].diagnostics)
        if not codes:
            _, expected = cpp.run(written, "bad")
            for seed in range(SCHEDULES):
                assert cpp.run(written, "bad", schedule=seed)[1] == expected, f"seed {seed}"

    each(check, list(found))


def first_step(text: str, result: Any) -> str:
    """The first advice of a run that can be inserted, with lines of this text."""
    for d in result.diagnostics:
        help = re.sub(r" of \S+\.cpp", "", d.help)
        if d.severity == "error" and applied(text, help) is not None:
            return help
    return ""


# -- kernels in C++ that graphs submit ---------------------------------------------------------------------------


def follow(file: Path, found: Callable[[], list[Diagnostic]]) -> int:
    """Insert the suggestions for a file until none is left; return the number of steps."""
    for step in range(5):
        text = file.read_text(encoding="utf-8")
        helps = (d.help.replace(f" of {file}", "") for d in found() if d.severity == "error")
        new = next((new for help in helps if (new := applied(text, help)) is not None), None)
        if new is None:
            return step
        file.write_text(new, encoding="utf-8")
    pytest.fail(f"it does not end:\n{file.read_text(encoding='utf-8')}")


def test_of_a_graph(tmp_path: Path) -> None:
    def check(name: str) -> None:
        fault = graphs.FAULTS[name]
        folder = graphs.written(str(tmp_path / name), fault)
        steps = follow(folder / "kernels/aiv" / fault.file, lambda: graphs.found(folder))
        assert bool(steps) == (name not in UNADVISED)
        if steps:
            assert not graphs.found(folder)
            results = np.zeros((1 + SCHEDULES, 640), np.float32)
            for n, f in enumerate(results):
                graphs.run(folder, f, seed=n)
            assert (results == results[0]).all() and results.any()

    each(check, graphs.FAULTS if EVERY else ["race"])


def test_of_the_language(tmp_path: Path) -> None:
    """Kernels of the language get their flags from the tools; only C++ that a program submits has such advice."""
    shutil.copytree(Path(__file__).parent / "language", tmp_path / "language")
    path, file = tmp_path / "language/graphs.py", tmp_path / "language/extern.cpp"

    def program() -> Any:
        return runpy.run_path(str(path))["race_in_cpp"]

    def found() -> list[Diagnostic]:
        return program().run(Planted("race_in_cpp").values[0], sanitize="all").diagnostics

    assert follow(file, found) and not found()
    results = [Planted("race_in_cpp").values[0] for _ in range(1 + SCHEDULES)]
    for seed, x in enumerate(results):
        program().run(x, schedule=seed)
    assert all((x == results[0]).all() for x in results)
