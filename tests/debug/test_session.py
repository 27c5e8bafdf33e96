"""A launch that stops: where, with what; stepping, going back, leaving; and that nothing else changes."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.debug.kernels import CASES, EXAMPLES, Case, loop, loop_args
from tests.each import each
from tests.sanitize.corpus import load

import pto
from pto.diag import render
from pto.engine.debug import state
from pto.engine.debug.expressions import ExpressionError
from pto.engine.debug.points import Breakpoint, PointError, Watchpoint
from pto.engine.debug.session import DebugSession
from pto.engine.reference.kernel import ReferenceKernel


def session(kernel: Any, args: list[Any], *breaks: str, **options: Any) -> DebugSession:
    made = DebugSession(kernel, args, options)
    for text in breaks:
        made.points.add(Breakpoint.parsed(text, made.places))
    return made


def lines(stops: Any) -> list[int]:
    return [stop.line for stop in stops]


# -- breakpoints -------------------------------------------------------------------------------------------


def test_breakpoints() -> None:
    k = loop()

    def check(breaks: Any, expected: list[int]) -> None:
        assert lines(k.debug(*loop_args(), breaks=breaks)) == expected

    each(check, [
        (4, [4, 4, 4]),  # in a function that is called
        ("4:2", [4]), ([19, "20:3"], [19, 19, 19, 20]),  # lines of scalars, of control flow
        ("18", [18]),  # a loop is come to once
        ("19 if %i == 1", [19]), ("19 if %i > 0 and %t[0, 1] == 2", [19]),
        ("@twice:3", [4]), ("25", [25]), ("4 if $core == 0", [4, 4, 4]),
        ("6", [8]),  # a brace: the next line that has an operation
    ])  # fmt: skip


def test_the_nth_execution_counts_what_the_condition_lets_through() -> None:
    found = [stop.read("%i") for stop in loop().debug(*loop_args(9), breaks="20:2 if %odd == 2 or %i > 5")]
    assert found == [5]


def test_a_stop_knows_where_it_is() -> None:
    stops = iter(loop().debug(*loop_args(), breaks="4:2"))
    stop = next(stops)
    assert (stop.reason, stop.name, stop.pipe, stop.core, stop.block, stop.rank) == (
        "breakpoint",
        "tadd",
        "V",
        "core 0",
        0,
        0,
    )
    assert stop.source_line.strip().startswith("pto.tadd") and stop.place.endswith(":4")
    assert [f.code.name for f in stop.frames] == ["twice", "k"]
    assert [(name, value, bound) for name, value, bound, _ in stop.loops] == [("i", 1, 3)]
    stops.close()
    assert (
        stop.line == 4
        and repr(stop) == "<Stop Breakpoint 1 (hit 2): core 0, PIPE_V before tadd at <text>:4 (%i = 1)>"
    )
    with pytest.raises(ExpressionError, match="the launch has gone on"):
        stop.read("%i")


def test_operands_and_values() -> None:
    for stop in loop().debug(*loop_args(), breaks="4:2"):
        assert set(stop.operands) == {"src0", "src1", "dst"}
        assert np.array_equal(stop.operands["src0"][:3, :10], 2 * loop_args()[0])
        assert stop.read("%u[0, 3]") == 6 and stop.read("%i") == 1  # %i is the caller's
        assert np.array_equal(
            stop.read("%p[1:3, 0:2]"), [[10, 11], [20, 21]]
        )  # global memory, still as it was
        assert stop.read("%x").shape == (30,)
        assert stop.read("%i * 2 + 1") == 3
        assert (
            stop.read("$src0[0, 3]") == stop.read("'u'[0, 3]") == 6
        )  # an operand by its role; a name in quotes
        with pytest.raises(ExpressionError, match="no value %q"):
            stop.read("%q")
        with pytest.raises(ExpressionError, match=r"row 4 is outside 0\.\.3"):
            stop.read("%u[4, 0]")


def test_arrays_hold_what_was_written_so_far() -> None:
    x, n = loop_args()
    before = x.copy()
    for stop in loop().debug(x, n, breaks=[24, 25]):
        assert np.array_equal(x, before if stop.line == 24 else 8 * before)


def test_wrong_places_are_refused() -> None:
    k = loop()

    def check(text: str, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            k.debug(*loop_args(), breaks=text)

    each(check, [
        ("99", "no operation at line 99"), ("other.pto:4", "no operation comes from 'other.pto'"),
        ("@twise", "did you mean 'twice'"), ("x y", "cannot stop at"), ("4:0", "number of executions"),
        ("4 if (", "condition"), ("4 if ", "cannot stop|missing"), ("", "cannot stop at"),
    ])  # fmt: skip
    with pytest.raises(ValueError, match="expected a name"):
        k.debug(*loop_args(), watch="%t + 1")
    with pytest.raises(ValueError, match="no value %od in the program; did you mean 'odd'"):
        k.debug(*loop_args(), watch="%od")


# -- watchpoints -------------------------------------------------------------------------------------------


def test_writes_of_an_element() -> None:
    found = [
        (stop.line, w.old, w.new, stop.after)
        for stop in loop().debug(*loop_args(), watch="%t[1, 2]")
        for w in stop.writes
    ]
    assert found == [(16, 0, 12, True), (4, 12, 24, True), (4, 24, 48, True), (4, 48, 96, True)]


def test_writes_beside_it_do_not_count() -> None:
    assert not list(loop().debug(*loop_args(), watch="%t[3, 0]"))  # not valid: never written


def test_writes_of_global_memory_through_any_view() -> None:
    (stop,) = loop().debug(*loop_args(), watch="%x[11]")
    assert (stop.line, stop.writes[0].what, stop.writes[0].new) == (24, "%x[11]", 88)


def test_a_part_of_a_tile() -> None:
    first, *_ = loop().debug(*loop_args(), watch="%t[0:2, 0:3]")
    (write,) = first.writes
    assert (write.what, write.old, write.new, write.more) == ("%t[0, 1]", 0, 1, 4)


def test_a_scalar() -> None:
    found = [(s.line, w.old, w.new) for s in loop().debug(*loop_args(), watch="%odd") for w in s.writes]
    assert found == [(20, 0, 1), (20, 1, 2)]


def test_a_watchpoint_that_comes_later() -> None:
    """The launch must be one that reports stores: another one goes to the same place."""
    with session(loop(), loop_args(), "4:2") as s:
        s.start()
        s.points.add(Watchpoint("%t[1, 2]"))
        again = s.changed()
        assert again is not None and (again.reason, again.line, again.read("%i")) == ("breakpoint", 4, 1)
        stop = s.go(s.order("continue"))
        assert stop.writes[0].new == 48


# -- stepping ----------------------------------------------------------------------------------------------


def walked(kernel: Any, args: list[Any], kind: str, **options: Any) -> list[tuple[int, str, int]]:
    """Every stop of a launch, a step at a time: moment, core, line."""
    with session(kernel, args, **options) as s:
        found = []
        stop = s.start(entry=True)
        while stop is not None and not stop.over:
            found.append((stop.moment, stop.core, stop.line))
            stop = s.go(s.order(kind))
        return found


def test_step_next_and_finish() -> None:
    k = loop()
    assert [line for *_, line in walked(k, loop_args(2), "step")] == [
        8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, *[19, 20, 4, 5, 21] * 2, 23, 24, 25,
    ]  # fmt: skip
    over = [line for *_, line in walked(k, loop_args(2), "next")]
    assert over == [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 23, 24, 25]
    with session(k, loop_args(), "4") as s:
        s.start()
        assert s.go(s.order("finish")).line == 21  # behind the call
        assert s.go(s.order("next")).line == 19
        assert s.go(s.order("next")).line == 20
        s.points.breaks.clear()
        s.changed()
        assert s.go(s.order("next")).line == 21  # over the call
        assert s.go(s.order("finish")).line == 23  # out of the loop
        assert s.go(s.order("finish")).reason == "end"


def test_cores_take_turns() -> None:
    case = CASES["mixed"]
    k = pto.kernel(pto.parse(case.path))
    found = [(s.core, s.line) for s in k.debug(*case.arrays, breaks=[47, 67])]
    assert found == [("AIC", 47), ("AIV0", 67), ("AIV1", 67)]
    with session(k.other({"debug": True}), list(case.arrays), "67") as s:
        stop = s.start()
        assert stop is not None and stop.core == "AIV0"
        assert s.go(s.order("step")).line == 68  # of the same core
        other = next(c for c in stop.grid.active if c.name == "AIV1")
        assert (stop.on(other).core, stop.on(other).line) == ("AIV1", 20)
        found = s.go(s.order("step", other))
        assert (found.core, found.line) == ("AIV1", 20)


def test_blocks_and_ranks() -> None:
    k = loop()
    x, n = loop_args(1)
    found = [(s.core, s.line) for s in k.debug(x, n, breaks="4 if $block == 2", blocks=4)]
    assert found == [("block 2", 4)]
    hello = pto.kernel(pto.parse(EXAMPLES / "ranks/01_hello.pto"))
    world = pto.ranks(2, window_bytes=1 << 12)
    window, signal = world.window((1, 8), "i32"), world.window(1, "i32")
    args = [[window, signal, world.context, np.zeros((1, 8), np.int32)] for _ in range(2)]
    for stop in hello.debug(*args, ranks=world, breaks="@distance if $rank == 1"):
        assert (stop.core, stop.rank, stop.read("%own")) == ("rank 1", 1, 1)
        break
    else:
        pytest.fail("it does not stop")


def test_vecscopes() -> None:
    k = pto.kernel(pto.parse(EXAMPLES / "08_vector_micro.pto"))
    v = np.arange(100, dtype=np.float32)
    for stop in k.debug(v, v, np.zeros_like(v), 100, breaks="32:2"):
        assert (stop.pipe, stop.loops[0][:3]) == ("V", ("i", 64, 100))
        assert np.array_equal(stop.read("%x[0:3]"), [[64, 65, 66]])
        assert stop.read("%m").sum() == 36 and stop.read("%m").shape == (64,)
        assert stop.read("%rest") == 36
    with session(k.other({"debug": True}), [v, v, np.zeros_like(v), 100], "27") as s:
        s.start()
        assert s.go(s.order("next")).line == 37  # over the vecscope
        s.restart()
        s.start()
        assert s.go(s.order("step")).line == 28  # into it


# -- going back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [None, 5])
def test_back_is_the_way_forward_backwards(schedule: int | None) -> None:
    k = loop()
    forward = walked(k, loop_args(2), "step", schedule=schedule)
    with session(k, loop_args(2), schedule=schedule) as s:
        stop = s.start()
        assert stop is not None and stop.reason == "end"
        found = []
        for _ in forward:
            stop = s.back()
            found.append((stop.moment, stop.core, stop.line))
        assert found == forward[::-1]
        assert s.back().note and s.stop is not None and s.stop.moment == forward[0][0]
        assert [s.go(s.order("step")).line for _ in range(3)] == [line for *_, line in forward[1:4]]


def test_back_to_breakpoints_and_writes() -> None:
    with session(loop(), loop_args(), "4:2", "20") as s:
        s.points.add(Watchpoint("%t[0, 1]"))
        s.start()
        forward = []
        while s.stop is not None and not s.stop.over:
            forward.append((s.stop.moment, s.stop.reason, s.stop.line, [b.hits for b in s.stop.breakpoints]))
            s.go(s.order("continue"))
        back = []
        for _ in forward:
            stop = s.back("continue")
            back.append((stop.moment, stop.reason, stop.line, [b.hits for b in stop.breakpoints]))
        assert back == forward[::-1] and len(forward) == 8
        assert s.back("continue").moment == 1


def test_back_takes_as_long_as_the_way_there() -> None:
    """One launch up to the moment for a step, two for a breakpoint; no record grows."""
    with session(loop(), loop_args(400), "21:400", "19:350") as s:
        launches: list[Any] = []
        begin = s.kernel.begin
        s.kernel = SimpleNamespace(begin=lambda *a, **o: launches.append(made := begin(*a, **o)) or made)  # type: ignore[assignment]
        s.start()
        stop = s.go(s.order("continue"))
        assert len(launches) == 1 and stop.moment > 2000
        back = s.back()
        assert len(launches) == 2 and s.now == back.moment < stop.moment
        again = s.back("continue")
        assert len(launches) == 4 and s.now == again.moment and again.line == 19
        run = s._run
        assert run is not None and len(run.follower.last) == 1 and len(run.follower._stays) == 1


def test_cores_that_have_ended_are_forgotten() -> None:
    """Each has all its on-chip memory."""
    with session(loop(), loop_args(1), blocks=40) as s:
        s.points.add(Watchpoint("%t[0, 1]"))
        s.points.add(Watchpoint("%odd"))
        kept = 0
        stop = s.start()
        while stop is not None and not stop.over:
            follower = s._run.follower  # type: ignore[union-attr]
            sizes = (follower.last, follower._stays, follower._numbers, follower._homes)
            kept = max(kept, *map(len, sizes))
            stop = s.go(s.order("continue"))
        assert 0 < kept <= 3


def test_plain_runs_do_nothing_more() -> None:
    """Reports of scalars are only in programs of sessions that need them: other programs have no cost."""
    k = loop()
    plain = k.program(False)
    for _ in k.debug(*loop_args(1)):
        pass
    assert k.program(False) is plain
    assert not {"tell", "arrive"} & {step.__name__ for step in plain.code("k").steps}
    assert {"tell", "arrive"} <= {step.__name__ for step in k.program(False, True).code("k").steps}


def test_back_over_calls() -> None:
    with session(loop(), loop_args(), "21:2") as s:
        s.start()
        assert s.back("next").line == 20
        assert s.back().line == 19


def test_arrays_are_as_they_were() -> None:
    x, n = loop_args()
    before = x.copy()
    with session(loop(), [x, n]) as s:
        s.start()
        assert np.array_equal(x, 8 * before)
        s.back()  # return
        assert np.array_equal(x, 8 * before)
        s.back()  # the store
        assert np.array_equal(x, before)


def test_what_was_printed_is_not_printed_again() -> None:
    import io

    text = (
        (EXAMPLES / "02_manual_flags.pto")
        .read_text()
        .replace("    return\n", "    pto.tprint ins(%tc : !tile)\n    return\n")
    )
    k = pto.kernel(pto.parse(text), engine="reference")
    a = np.ones((64, 128), np.float32)
    out = io.StringIO()
    assert isinstance(k, ReferenceKernel)
    with DebugSession(k, [a, a, np.zeros_like(a)], {}, out) as s:
        s.start()
        whole = out.getvalue()
        assert whole.startswith("TPRINT 64x128")
        for _ in range(3):
            s.back()
        s.go(s.order("continue"))
        assert out.getvalue() == whole


def test_others_who_watch_see_a_launch_once() -> None:
    with session(loop(), loop_args(), "4", watchers=[pto.Watcher()]) as s:
        s.start()
        with pytest.raises(PointError, match="no way back: Watcher"):
            s.back()
        assert s.go(s.order("continue")).line == 4  # it goes on all the same


# -- bad programs ------------------------------------------------------------------------------------------


def test_findings_stop() -> None:
    a = np.ones((64, 128), np.float32)
    k = pto.kernel(pto.parse(EXAMPLES / "12_race.pto"))
    stops = k.debug(a, a, np.zeros_like(a), sanitize="race")
    (stop,) = stops
    assert stop.reason == "finding" and stop.diagnostic is not None and stop.diagnostic.code == "PTO-E2201"
    assert (stop.line, stop.after) == (34, True)
    assert stops.result is not None and [d.code for d in stops.result.diagnostics] == ["PTO-E2201"]


def test_faults_stop() -> None:
    small = np.zeros((2, 10), np.float32)
    stops = loop().debug(small, 1)
    (stop,) = stops
    assert (stop.reason, stop.name, stop.line) == ("fault", "tload", 16)
    assert stop.diagnostic is not None and stop.diagnostic.code == "PTO-E2101"
    assert stops.result is not None and not stops.result.ok
    with session(loop(), [small, 1]) as s:
        s.start()
        assert s.back().line == 16 and s.back().line == 15


def test_deadlocks_stop() -> None:
    program = load("crossed_waits.bad")
    for stop in program.kernel.debug(*program.values()):
        assert (stop.reason, stop.name, stop.line) == ("stuck", "wait_flag", 16)
        assert "PTO-E2104" in stop.text()
        assert [text.partition(":")[0] for text in state.waits(stop)] == [
            f"core 0, PIPE_{pipe}" for pipe in ("V", "MTE2", "MTE3")
        ]


def test_rules_that_a_run_breaks_stop() -> None:
    program = load("outside_valid_region.bad")
    stops = list(program.kernel.debug(*program.values()))
    assert [s.reason for s in stops] == ["finding"]
    assert stops[0].diagnostic is not None and stops[0].diagnostic.code == "PTO-E0401"


# -- a launch is the same without the debugger -------------------------------------------------------------


def test_leaving_ends_the_launch() -> None:
    before = threading.active_count()
    for stop in loop().debug(*loop_args(), breaks=4):
        assert stop.line == 4
        break
    stops = loop().debug(*loop_args(), breaks=4)
    iterator = iter(stops)
    next(iterator)
    stops.close()
    assert lines(stops) == [4, 4, 4]  # a launch of its own, on the content of the arrays
    assert threading.active_count() == before
    k = loop()
    with pytest.raises(pto.DiagnosticError, match="expected 2 arguments"):
        list(k.debug(1))
    assert threading.active_count() == before


def test_options_of_the_loop() -> None:
    stops = loop().debug(*loop_args(), breaks="20:2")
    found = []
    for stop in stops:
        found.append(stop.line)
        if len(found) == 1:
            stops.step()
        elif len(found) == 2:
            stops.finish()
        elif len(found) == 3:
            stops.back()
        elif len(found) == 4:
            stops.watch("%t[0, 1]")
    assert found == [20, 4, 21, 5, 4]


def test_engines_without_are_refused() -> None:
    k = pto.kernel(pto.parse(EXAMPLES / "02_manual_flags.pto"), engine="native")
    with pytest.raises(pto.DiagnosticError, match="engine native has no debug"):
        k.debug()


@pytest.mark.parametrize("options", [{}, {"schedule": 3}, {"sanitize": "all"}], ids=str)
def test_programs_run_as_without(options: dict[str, Any]) -> None:
    """The same reports, the same bytes: also under a schedule, which counts steps."""

    def check(name: str) -> None:
        program = load(name)
        plain, arrays = program.run(watchers=[pto.Watcher()], **options)
        values = program.values()
        kernel = program.kernel
        stops = kernel.debug(*values, **program.options, **options)
        for _ in stops:
            pass
        assert stops.result is not None
        assert render(stops.result.diagnostics) == render(plain.diagnostics)
        assert [v.tobytes() for v in values if isinstance(v, np.ndarray)] == arrays

    each(check, [
        "crossed_waits.bad", "called_function.bad", "blocks_signal.good", "cross_core_a5.good",
        "accumulator.good", "branch_without_wait.bad", "cores_wait_for_each_other.bad", "chain.good",
    ])  # fmt: skip


def test_time_at_a_stop_does_not_count() -> None:
    assert lines(loop().debug(*loop_args(), breaks=4, timeout=1e-9)) == [4, 4, 4]


def test_limits_count_as_without() -> None:
    plain = loop().run(*loop_args(50), max_steps=60)
    stops = loop().debug(*loop_args(50), max_steps=60)
    (stop,) = stops
    assert stops.result is not None and render(stops.result.diagnostics) == render(plain.diagnostics)
    assert stop.reason == "fault"


# -- whatever a kernel is written in -----------------------------------------------------------------------


def _case(name: str) -> Case:
    case = CASES[name]
    if not case.runs:
        pytest.skip("the reference engine takes no such files")
    return case


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_kernel(name: str) -> None:
    case = _case(name)
    k = pto.kernel(pto.parse(case.path) if case.path.suffix == ".pto" else case.path)
    stops = k.debug(*case.arrays, breaks=case.line, watch=case.target)
    found = [(s.reason, s.line) for s in stops]
    assert found[:2] == [("breakpoint", case.line), ("watchpoint", case.line)]
    assert stops.result is not None and stops.result.ok
