"""Timelines: kernels with one planted stall each, properties of every schedule, advice that keeps its promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.perf.kernels import attention, gemm
from tests.sampling import examples

import pto
from pto.isa.costs import Charge
from pto.isa.timing import MACHINES, Machine
from pto.perf.timeline import simulate as sim
from pto.perf.timeline import trace as of
from pto.perf.timeline.advice import advise, one_buffer_more
from pto.perf.timeline.simulate import simulate
from pto.perf.timeline.timeline import Timeline
from pto.perf.timeline.trace import CoreInfo, Trace, TraceSite

_MACHINE = MACHINES["a2a3"]

_HEAD = """\
!tile = !pto.tile_buf<vec, 64x128xf32>
!view = !pto.tensor_view<1024x128xf32>
!window = !pto.partition_tensor_view<64x128xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c1024 = arith.constant 1024 : index
    %vx = pto.make_tensor_view %x, shape = [%c1024, %c128], strides = [%c128, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%c1024, %c128], strides = [%c128, %c1] : !view
    %at0 = arith.constant 0 : i64
    %at1 = arith.constant 32768 : i64
    %at2 = arith.constant 65536 : i64
    %at3 = arith.constant 98304 : i64
    %a = pto.alloc_tile addr = %at0 : !tile
    %b = pto.alloc_tile addr = %at1 : !tile
    %c = pto.alloc_tile addr = %at2 : !tile
    %d = pto.alloc_tile addr = %at3 : !tile
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c64, %c128] : !view -> !window
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c64, %c128] : !view -> !window
"""
_WORDS = {
    "load": "pto.tload ins(%px : !window) outs(%{} : !tile)",
    "store": "pto.tstore ins(%{} : !tile) outs(%py : !window)",
    "add": "pto.tadd ins(%{0}, %{0} : !tile, !tile) outs(%{1} : !tile)",
    "exp": "pto.texp ins(%{} : !tile) outs(%{} : !tile)",
    "set": "pto.set_flag[<PIPE_{}>, <PIPE_{}>, <EVENT_ID{}>]",
    "wait": "pto.wait_flag[<PIPE_{}>, <PIPE_{}>, <EVENT_ID{}>]",
    "barrier": "pto.barrier <PIPE_{}>",
    "take": "pto.get_buf[PIPE_{}, {}]",
    "free": "pto.rls_buf[PIPE_{}, {}]",
    "loop": "scf.for %i = %c0 to %c1024 step %c64 {{",
    "end": "}}",
}


def program(script: str) -> str:
    """A kernel of the words above, a line each."""
    lines: list[str] = []
    for line in script.strip().splitlines():
        word, *rest = line.split()
        lines.append("    " + _WORDS[word].format(*rest))
    return _HEAD + "\n".join(lines) + "\n    return\n  }\n}\n"


def line_of(text: str, part: str, nth: int = 0) -> int:
    found = [n for n, line in enumerate(text.splitlines(), 1) if part in line]
    return found[nth]


def timed(text: str, blocks: int = 1, machine: object = True, **options: object) -> Timeline:
    x, y = np.zeros((1024, 128), np.float32), np.zeros((1024, 128), np.float32)
    kernel = pto.kernel(pto.parse(text), engine="reference")
    return kernel(x, y, blocks=blocks, timeline=machine, dry=True, **options).timeline


def product(double: bool, blocks: int = 1, size: int = 512) -> Timeline:
    text = gemm(size, size, 256 * blocks, grid=(1, blocks), double=double)
    a, b = np.zeros((size, size), np.float16), np.zeros((size, 256 * blocks), np.float16)
    c = np.zeros((size, 256 * blocks), np.float32)
    return pto.kernel(pto.parse(text))(a, b, c, blocks=blocks, timeline=True, dry=True).timeline


def heads(overlap: bool) -> Timeline:
    s = 1024
    text = attention(128, s, overlap=overlap)
    kv, o = np.zeros((s, 128), np.float16), np.zeros((128, 128), np.float32)
    scores, partial = np.zeros(5 * 128 * 256, np.float32), np.zeros(5 * 128 * 128, np.float32)
    args = kv[:128], kv, kv, o, scores, scores.astype(np.float16), partial, 1.0
    return pto.kernel(pto.parse(text))(*args, timeline=True, dry=True).timeline


# -- planted stalls ----------------------------------------------------------------------------------------


def main_stall(timeline: Timeline, pipe: str) -> tuple[str, int, int]:
    """Reason of the longest stall of a pipe, the line that waits and the line it waits for."""
    found = next(s for s in timeline.stalls() if s.pipe == pipe)
    return found.reason, found.site.line, found.of.line if found.of is not None else 0


def test_a_flag_that_comes_late():
    text = program("""
        load a
        set MTE2 V 0
        wait MTE2 V 0
        add a b
    """)
    assert main_stall(timed(text), "V") == ("flag", line_of(text, "tadd"), line_of(text, "set_flag"))


@pytest.mark.parametrize("pipe", ["V", "ALL"])
def test_a_barrier(pipe: str):
    text = program(f"""
        load a
        set MTE2 V 0
        wait MTE2 V 0
        exp a b
        barrier {pipe}
        exp b c
    """)
    slow = {"barrier": 400.0}
    reason, line, _ = main_stall(timed(text).what_if(machine=slow), "V")
    found = [s for s in timed(text).what_if(machine=slow).stalls() if s.reason == "barrier"]
    assert found and found[0].site.line == line_of(text, "texp", 1), (reason, line)


def test_barriers_alone_are_an_order_where_they_order_all():
    script = "load a\nbarrier ALL\nadd a b\nbarrier ALL\nstore b"
    ordered, lacking = (
        timed(program(script)),
        timed(program(script.replace("\nbarrier ALL\nstore", "\nstore"))),
    )
    flags = timed(program(script + "\nset MTE2 V 7\nwait MTE2 V 7"))
    assert not ordered.trace.in_order and ordered.cycles == pytest.approx(flags.cycles, abs=30)
    assert sim.BARRIER_ in ordered.by_reason and sim.ORDER not in ordered.by_reason
    assert lacking.trace.in_order and "barriers do not order all conflicting accesses" in lacking.text()
    assert "no flag or barrier orders its pipes" in timed(program("load a\nadd a b\nstore b")).text()


def test_no_kernel_does_more_than_its_roofline():
    """In and out at the same time, and several cores."""
    turn = "load a\nset MTE2 V 0\nwait MTE2 V 0\nadd a b\nset V MTE3 0\nwait V MTE3 0\nstore b\n"
    twice = turn + turn.replace(" a", " c").replace(" b", " d").replace(" 0", " 1")
    for found in (timed(program(twice * 8)), timed(program(turn), blocks=48), product(True), heads(True)):
        roof, done = found.roofline
        assert 0 < done <= roof


def test_blocks_beyond_the_cores_run_in_waves():
    text = program("load a\nset MTE2 V 0\nwait MTE2 V 0\nexp a b")
    one, two = timed(text, blocks=48), timed(text, blocks=49)
    assert (one.waves, two.waves) == (1, 2)
    block = two.machine.block
    assert two.cycles == pytest.approx(2 * one.cycles - one.machine.launch + block, rel=0.1)
    few = timed(text, blocks=4).what_if(machine={"aiv": 1.0, "aic": 1.0})
    assert few.waves == 4


def test_ranks_are_devices_of_their_own():
    text = program("load a\nload b\nload c\nset MTE2 V 0\nwait MTE2 V 0")
    many = timed(text, blocks=48).trace
    apart = many.copy()
    apart.cores = [c._replace(rank=n % 2) for n, c in enumerate(many.cores)]
    assert Timeline(apart, _MACHINE).kernel_cycles < 0.75 * Timeline(many, _MACHINE).kernel_cycles
    assert Timeline(apart, _MACHINE).waves == 1


def test_a_launch_that_fails_has_none():
    text = program("load a\nwait V MTE3 3\nset MTE2 V 0\nwait MTE2 V 0")
    found = pto.kernel(pto.parse(text), check=False, engine="reference").run(
        np.zeros((1024, 128), np.float32), np.zeros((1024, 128), np.float32), timeline=True
    )
    assert not found.ok and found.timeline is None


# -- overlap -----------------------------------------------------------------------------------------------


def test_two_buffers_overlap_and_one_does_not():
    one, two = product(double=False), product(double=True)
    assert two.cycles < 0.75 * one.cycles
    assert one.overlap("M", "MTE1") == 0
    assert two.overlap("M", "MTE1") > 0.6
    assert two.overlap("M", "MTE2") > 0.6


def test_attention_overlaps_cube_and_vector():
    one, two = heads(overlap=False), heads(overlap=True)
    assert two.cycles < 0.8 * one.cycles
    assert two.share["V"] + two.share["FIX"] > 1.2 * (one.share["V"] + one.share["FIX"])


# -- properties --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def common() -> list[Timeline]:
    waits = timed(program("load a\nset MTE2 V 0\nwait MTE2 V 0\nadd a b"))
    return [waits, product(True), heads(True)]


def test_the_total_is_its_critical_path(common: list[Timeline]):
    for timeline in common:
        steps = timeline.critical_path()
        assert steps[-1].end == timeline.cycles
        for before, after in pairwise(steps):
            assert before.end == after.begin
        assert steps[0].begin <= timeline.machine.launch + 20 * timeline.machine.issue
        assert timeline.cycles >= timeline.lower_bound


def test_the_same_trace_gives_the_same_times(common: list[Timeline]):
    for timeline in common:
        again = simulate(timeline.trace, timeline.machine)
        times = timeline.times
        assert (again.start, again.done, again.why) == (times.start, times.done, times.why)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Events of two cores with three pipes; flags go from an event to a later one."""
    trace = Trace()
    trace.pipes = ["S", "MTE2", "V", "MTE3"]
    trace.sites = [TraceSite("work", 1, "", "")]
    paths = ["", "", "gm_ub", "ub_gm"]
    trace.charges += [
        Charge(float(busy), float(after), "derived", path, 64.0 * busy if path else 0.0)
        for busy, after, path in draw(
            st.lists(
                st.tuples(st.integers(1, 500), st.integers(0, 300), st.sampled_from(paths)),
                min_size=2,
                max_size=6,
            )
        )
    ]
    cores = draw(st.integers(1, 4))
    trace.cores = [CoreInfo(n, "", "vector") for n in range(cores)]
    given: dict[int, list[int]] = {}
    for _ in range(draw(st.integers(3, 40))):
        core, pipe = draw(st.integers(0, cores - 1)), draw(st.integers(1, 3))
        kind = draw(st.sampled_from([of.WORK, of.WORK, of.WORK, of.GIVE, of.TAKE, of.BARRIER, of.DRAIN]))
        e = len(trace.core)
        if kind == of.TAKE:
            giver = draw(st.integers(0, cores - 1))
            waiting = given.get(giver, [])
            if not waiting:
                continue
            trace.waits[e] = [(waiting.pop(0), "flag" if giver == core else "semaphore")]
        if kind == of.GIVE:
            given.setdefault(core, []).append(e)
        trace.core.append(core)
        trace.pipe.append(0 if kind == of.DRAIN else pipe)
        trace.site.append(0)
        trace.kind.append(kind)
        trace.charge.append(draw(st.integers(1, len(trace.charges) - 1)) if kind == of.WORK else 0)
    return trace


#: Without caps, so that no transfer is faster because another one comes later; and with caps that two transfers meet.
_UNSHARED = _MACHINE.with_values({"read_cap": 1e9, "write_cap": 1e9})
_CROWDED = _MACHINE.with_values({"read_cap": 96.0, "write_cap": 80.0})


@examples(60)
@given(traces(), st.sampled_from([_MACHINE, _CROWDED]))
def test_no_schedule_beats_its_bounds(trace: Trace, machine: Machine):
    """The busiest pipe, bytes by what memory gives, and the longest path, which the total is."""
    timeline = Timeline(trace, machine)
    assert timeline.cycles >= timeline.lower_bound - 1e-6
    steps = timeline.critical_path()
    if steps:
        assert steps[-1].end == timeline.cycles
        assert all(a.end == b.begin for a, b in pairwise(steps))
    for e in range(len(trace)):
        assert timeline.times.done[e] >= timeline.times.start[e] >= timeline.times.issue[e] >= 0
    again = simulate(trace, machine)
    assert (again.start, again.done, again.why) == (
        timeline.times.start, timeline.times.done, timeline.times.why,
    )  # fmt: skip


def with_barrier(trace: Trace, at: int, core: int, pipe: int, kind: int) -> Trace:
    """A trace with one event more."""
    new = trace.copy()
    event = {"core": core, "pipe": 0 if kind == of.DRAIN else pipe, "site": 0, "charge": 0, "kind": kind}
    for column, value in event.items():
        getattr(new, column).insert(at, value)
    new.waits = {
        e + (e >= at): [(giver + (giver >= at), what) for giver, what in waits]
        for e, waits in trace.waits.items()
    }
    return new


@st.composite
def barriers(draw: st.DrawFn) -> tuple[Trace, Trace]:
    """A trace without and with one barrier more, anywhere."""
    trace = draw(traces())
    core, pipe = draw(st.integers(0, len(trace.cores) - 1)), draw(st.integers(1, 3))
    kind = draw(st.sampled_from([of.BARRIER, of.DRAIN]))
    return trace, with_barrier(trace, draw(st.integers(0, len(trace))), core, pipe, kind)


@examples(150)
@given(barriers())
def test_a_barrier_more_never_shortens_and_one_less_never_lengthens(both: tuple[Trace, Trace]):
    without, barrier = (Timeline(trace, _UNSHARED) for trace in both)
    assert barrier.cycles >= without.cycles - 1e-6


@examples(150)
@given(barriers())
def test_what_a_barrier_shortens_is_what_sharing_cost(both: tuple[Trace, Trace]):
    """With shared memory, a later transfer may let another one go ahead, and the total may be shorter: so it
    is with every machine that shares. But sharing makes no transfer faster, and without it none gets
    shorter."""
    without, barrier = (Timeline(trace, _CROWDED) for trace in both)
    alone = Timeline(both[0], _UNSHARED).cycles
    assert without.cycles >= alone - 1e-6
    assert barrier.cycles >= alone - 1e-6
    if not without.times.stretched and not barrier.times.stretched:
        assert barrier.cycles >= without.cycles - 1e-6


# -- advice ------------------------------------------------------------------------------------------------

_LOOP = """
    set V MTE2 0
    set MTE3 V 0
    loop
    wait V MTE2 0
    load a
    set MTE2 V 0
    wait MTE2 V 0
    wait MTE3 V 0
    add a b
    {}
    set V MTE2 0
    set V MTE3 0
    wait V MTE3 0
    store b
    set MTE3 V 0
    end
    wait V MTE2 0
    wait MTE3 V 0
"""


def test_a_barrier_that_is_not_needed():
    text = program(_LOOP.format("barrier ALL"))
    before = timed(text)
    advice = next(a for a in advise(before) if a.kind == "barrier")
    line = line_of(text, "barrier")
    assert advice.lines == (line,)
    lines = text.splitlines(keepends=True)
    applied = timed("".join(lines[: line - 1] + lines[line:]))
    assert before.cycles - applied.cycles == pytest.approx(advice.gain, rel=0.02)


def test_a_barrier_that_is_needed_stays():
    text = program("load a\nset MTE2 V 0\nwait MTE2 V 0\nexp a b\nbarrier V\nexp b c\nbarrier V\nexp c d")
    assert not [a for a in advise(timed(text)) if a.kind == "barrier"]


LATE = """
    exp c d
    set V MTE3 1
    wait V MTE3 1
    store d
    set MTE3 V 1
    load a
    set MTE2 V 0
    wait MTE2 V 0
    exp c c
    exp c c
    exp c c
    add a b
"""


def test_a_wait_that_could_come_later():
    text = program(LATE)
    before = timed(text)
    advice = next(a for a in advise(before) if a.kind == "wait")
    assert advice.lines == (line_of(text, "wait_flag[<PIPE_MTE2>"), line_of(text, "texp", 3))
    lines = text.splitlines(keepends=True)
    wait = lines.pop(advice.lines[0] - 1)
    lines.insert(advice.lines[1] - 1, wait)
    assert before.cycles - timed("".join(lines)).cycles == pytest.approx(advice.gain, rel=0.02)


def test_one_more_buffer():
    before = timed(program(_LOOP.format("exp b b")))
    found = {a.kind: a for a in advise(before)}
    assert "%a" in found["buffer"].text
    assert found["buffer"].gain > 0.02 * before.cycles
    # a buffer that does not fit is not advised
    before.trace.capacity = {"vec": 70_000}
    assert "buffer" not in {a.kind for a in advise(before)}


def test_a_second_buffer_saves_what_was_promised():
    def rounds(buffers: str) -> str:
        """Ten times load, compute and store, with one input buffer or two alternating ones."""
        count = len(buffers)
        free = [f"set V MTE2 {n}" for n in range(count)]
        body: list[str] = []
        for i in range(10):
            n, tile = i % count, buffers[i % count]
            body += [
                f"wait V MTE2 {n}",
                f"load {tile}",
                f"set MTE2 V {n}",
                f"wait MTE2 V {n}",
                f"exp {tile} b",
            ]
            body += [f"set V MTE2 {n}", "barrier V", "exp b d", "barrier V"]
        last = [f"wait V MTE2 {n}" for n in range(count)]
        return program("\n".join([*free, *body, *last]))

    before = timed(rounds("a"))
    loads = before.trace.pipes.index("MTE2")
    shifted = [e for e in before.trace.waits if before.trace.pipe[e] == loads]

    # these waits stand on lines of their own, so that the change is made for all of them by hand
    promised = before.cycles - before.what_if(one_buffer_more(sorted(shifted))).cycles
    assert promised > 0.05 * before.cycles
    assert before.cycles - timed(rounds("ac")).cycles == pytest.approx(promised, rel=0.01)
