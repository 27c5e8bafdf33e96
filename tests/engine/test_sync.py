"""Flags, barriers, tokens and semaphores: the cores that go on, the cores that wait, and the report of a
stuck program.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling import some

from .programs import CONSTANTS, codes, program, run
from .test_handles import load, store, tile, view

ROWS = (
    "set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn", "barrier", "barrier_sync", "record_event", "wait_event",
    "get_buf", "rls_buf", "tsync", "set_cross_core", "wait_flag_dev", "set_intra_block", "wait_intra_core", "sync.set",
    "sync.wait", "syncall", "twait", "tnotify",
)  # fmt: skip

TILE = tile(4, 16, "f32")
VIEW = "4x16xf32"


def flag(kind: str, source: str, target: str, number: int = 0) -> str:
    return f"pto.{kind}[#pto.pipe<PIPE_{source}>, #pto.pipe<PIPE_{target}>, #pto.event<EVENT_ID{number}>]"


def pipeline(before_exp: str, before_store: str) -> str:
    """load, exp, store; what orders them is given."""
    return program(
        f"""{CONSTANTS}
    {view("in", "x", 4, 16, "f32")}
    {view("out", "y", 4, 16, "f32")}
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 256 : i64
    %t = pto.alloc_tile addr = %a0 : {TILE}
    %u = pto.alloc_tile addr = %a1 : {TILE}
    {load("in", VIEW, "t", TILE)}
    {before_exp}
    pto.texp ins(%t : {TILE}) outs(%u : {TILE})
    {before_store}
    {store("u", TILE, "out", VIEW)}
    pto.barrier #pto.pipe<PIPE_ALL>""",
        "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>",
    )


def both(first: str, second: str) -> tuple[str, str]:
    return first, second


ORDERED = {
    "flags": (
        flag("set_flag", "MTE2", "V") + "\n" + flag("wait_flag", "MTE2", "V"),
        flag("set_flag", "V", "MTE3") + "\n" + flag("wait_flag", "V", "MTE3"),
    ),
    "dynamic flags": (
        "pto.set_flag_dyn[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, %c3]\n"
        "pto.wait_flag_dyn[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, %c3]",
        "pto.set_flag_dyn[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_MTE3>, %c3]\n"
        "pto.wait_flag_dyn[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_MTE3>, %c3]",
    ),
    "events": (
        "pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]\n"
        "pto.wait_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
        "pto.record_event[#pto.pipe_event_type<TVEC>, #pto.pipe_event_type<TSTORE_VEC>, #pto.event<EVENT_ID0>]\n"
        "pto.wait_event[#pto.pipe_event_type<TVEC>, #pto.pipe_event_type<TSTORE_VEC>, #pto.event<EVENT_ID0>]",
    ),
    "barriers": ("pto.barrier #pto.pipe<PIPE_ALL>", "pto.barrier #pto.pipe<PIPE_ALL>"),
    "through the scalar unit": (
        flag("set_flag", "MTE2", "S") + "\n" + flag("wait_flag", "MTE2", "S"),
        flag("set_flag", "V", "S") + "\n" + flag("wait_flag", "V", "S"),
    ),
}


@pytest.mark.parametrize("how", ORDERED)
def test_every_way_to_order_pipes_works_under_every_schedule(how: str) -> None:
    text = pipeline(*ORDERED[how])
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    expected = np.zeros_like(x)
    result = run(text, x, expected, sanitize="all")
    assert result.ok, result.diagnostics
    assert np.allclose(expected, np.exp(x))
    for seed in some(range(60), 4):
        y = np.zeros_like(x)
        assert run(text, x, y, schedule=seed).ok
        assert np.array_equal(y, expected)


@pytest.mark.parametrize("how", ["flags", "events", "barriers", "through the scalar unit"])
@pytest.mark.parametrize("missing", [0, 1])
def test_without_one_of_them_there_is_a_race_and_some_schedule_shows_it(how: str, missing: int) -> None:
    ways = list(ORDERED[how])
    ways[missing] = ""
    text = pipeline(ways[0], ways[1])
    x = np.ones((4, 16), np.float32)
    y = np.zeros_like(x)
    assert "PTO-E2201" in codes(run(text, x, y, sanitize="race"))
    wrong = 0
    for seed in some(range(60), 4):
        y[:] = 0
        run(text, x, y, schedule=seed)
        wrong += not np.allclose(y, np.e)
    assert wrong


def test_a_wait_may_be_issued_before_its_set() -> None:
    """A pipe waits in its queue while the scalar unit goes on and issues the set."""
    text = program(
        f"""{CONSTANTS}
    {view("in", "x", 4, 16, "f32")}
    {view("out", "y", 4, 16, "f32")}
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 : {TILE}
    {flag("wait_flag", "MTE2", "MTE3")}
    {store("t", TILE, "out", VIEW)}
    {load("in", VIEW, "t", TILE)}
    {flag("set_flag", "MTE2", "MTE3")}""",
        "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>",
    )
    import pto

    x, y = np.ones((4, 16), np.float32), np.zeros((4, 16), np.float32)
    result = pto.kernel(pto.parse(text), check=False, engine="reference").run(x, y, sanitize="all")
    assert result.ok, result.diagnostics
    assert np.array_equal(x, y)


def test_tokens_are_granted_in_program_order() -> None:
    def token(kind: str, pipe: str) -> str:
        return f"pto.{kind}[#pto.pipe_event_type<{pipe}>, 0]"

    def held(pipe: str, what: str) -> str:
        return f"{token('get_buf', pipe)}\n{what}\n{token('rls_buf', pipe)}"

    body = f"""{CONSTANTS}
    {view("in", "x", 4, 16, "f32")}
    {view("out", "y", 4, 16, "f32")}
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 : {TILE}
    {held("TLOAD", load("in", VIEW, "t", TILE))}
    {held("TVEC", f"pto.texp ins(%t : {TILE}) outs(%t : {TILE})")}
    {held("TSTORE_VEC", store("t", TILE, "out", VIEW))}
    {held("TLOAD", load("in", VIEW, "t", TILE))}"""
    text = program(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>", arch="a5")
    x = np.ones((4, 16), np.float32)
    y = np.zeros_like(x)
    result = run(text, x, y, sanitize="all")
    assert result.ok, result.diagnostics
    for seed in some(range(60), 4):
        y[:] = 0
        assert run(text, x, y, schedule=seed).ok
        assert np.allclose(y, np.e)


A3_PAIR = """%c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i64
    %i3 = arith.constant 3 : i64
    %one = arith.constant 1 : i64
    pto.section.cube {{
      pto.store_scalar %one, %out[%c0] : !pto.ptr<i64>, i64
      {signal}
    }}
    pto.section.vector {{
      {wait}
      %s = pto.get_subblock_idx
      %n = arith.index_cast %s : i64 to index
      %c1 = arith.constant 1 : index
      %at = arith.addi %n, %c1 : index
      %v = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
      pto.store_scalar %v, %out[%at] : !pto.ptr<i64>, i64
    }}"""

#: Signals of the cube core and waits of the vector cores. On A5 the cube core names AIV1 by ids 16 higher,
#: and so may AIV1 itself; sync.set on the fix-pipe signals both, unless the program tells them apart.
CROSS = {
    "a3": ("pto.set_cross_core %i0, %i3 : i64, i64", "pto.wait_flag_dev %i0, %i3 : i64, i64"),
    "a5": (
        "pto.set_intra_block #pto.pipe<PIPE_S>, 3\n      pto.set_intra_block #pto.pipe<PIPE_S>, 19",
        "pto.wait_intra_core #pto.pipe<PIPE_S>, 3",
    ),
    "a5 own ids": (
        "pto.set_intra_block #pto.pipe<PIPE_S>, 3\n      pto.set_intra_block #pto.pipe<PIPE_S>, 19",
        """%own = pto.get_subblock_idx
      %i16 = arith.constant 16 : i64
      %far = arith.muli %own, %i16 : i64
      %id64 = arith.addi %far, %i3 : i64
      %id = arith.index_cast %id64 : i64 to index
      pto.wait_intra_core #pto.pipe<PIPE_S>, %id""",
    ),
    "a5 both": (
        "pto.barrier #pto.pipe<PIPE_ALL>\n      pto.sync.set #pto.pipe<PIPE_FIX>, 3",
        "pto.sync.wait #pto.pipe<PIPE_MTE2>, 3\n      pto.barrier #pto.pipe<PIPE_ALL>",
    ),
    "a5 one by one": (
        "pto.barrier #pto.pipe<PIPE_ALL>\n      pto.sync.set #pto.pipe<PIPE_FIX>, 3\n      "
        "pto.sync.set #pto.pipe<PIPE_FIX>, 19",
        "pto.sync.wait #pto.pipe<PIPE_MTE2>, 3\n      pto.barrier #pto.pipe<PIPE_ALL>",
    ),
}


@pytest.mark.parametrize("how", CROSS)
def test_a_cube_core_signals_its_vector_cores(how: str) -> None:
    (signal, wait), arch = CROSS[how], how[:2]
    text = program(A3_PAIR.format(signal=signal, wait=wait), arch=arch)
    out = np.zeros(3, np.int64)
    result = run(text, out, sanitize="race,sync")
    assert result.ok, result.diagnostics
    assert out.tolist() == [1, 1, 1]
    for seed in some(range(30), 4):
        out[:] = 0
        assert run(text, out, schedule=seed).ok
        assert out.tolist() == [1, 1, 1]
    unordered = program(A3_PAIR.format(signal="pto.barrier #pto.pipe<PIPE_ALL>", wait=""), arch=arch)
    assert "PTO-E2201" in codes(run(unordered, out, sanitize="race"))


def test_a_core_that_waits_for_nobody_is_reported_with_its_wait() -> None:
    text = program(A3_PAIR.format(signal="", wait=CROSS["a3"][1]))
    result = run(text, np.zeros(3, np.int64))
    (problem,) = result.diagnostics
    assert problem.code == "PTO-E2104"
    assert "semaphore 3" in problem.message and "AIV0" in problem.message
    assert any("AIV1" in note for note, _ in problem.notes)


SYNCALL = f"""{CONSTANTS}
    %b = pto.get_block_idx
    %i = arith.index_cast %b : i64 to index
    %one = arith.constant 1 : i64
    %v = arith.addi %b, %one : i64
    pto.store_scalar %v, %out[%i] : !pto.ptr<i64>, i64
    {{barrier}}
    %n = pto.get_block_num
    %m = arith.index_cast %n : i64 to index
    %sum = scf.for %k = %c0 to %m step %c1 iter_args(%s = %b) -> (i64) {{{{
      %x = pto.load_scalar %out[%k] : !pto.ptr<i64> -> i64
      %t = arith.addi %s, %x : i64
      scf.yield %t : i64
    }}}}
    %at = arith.addi %i, %m : index
    pto.store_scalar %sum, %out[%at] : !pto.ptr<i64>, i64"""


def test_blocks_meet_at_a_grid_barrier() -> None:
    meet = "pto.syncall {mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>}"
    text = program(SYNCALL.format(barrier=meet))
    out = np.zeros(8, np.int64)
    result = run(text, out, blocks=4, sanitize="all")
    assert result.ok, result.diagnostics
    assert out.tolist() == [1, 2, 3, 4, 10, 11, 12, 13]
    apart = program(SYNCALL.format(barrier=""))
    assert "PTO-E2202" in codes(run(apart, out, blocks=4, sanitize="race"))


def test_a_block_that_never_comes_is_missed() -> None:
    body = f"""{CONSTANTS}
    %b = pto.get_block_idx
    %i = arith.index_cast %b : i64 to index
    %go = arith.cmpi slt, %i, %c2 : index
    scf.if %go {{
      pto.syncall {{core_type = #pto.sync_core_type<aiv_only>}}
    }}"""
    result = run(program(body), np.zeros(1, np.int64), blocks=3)
    assert codes(result) == ["PTO-E2104"]
    assert "2 of 3 cores" in result.diagnostics[0].message


def test_signals_in_memory_order_blocks() -> None:
    body = f"""{CONSTANTS}
    %b = pto.get_block_idx
    %i = arith.index_cast %b : i64 to index
    %v = pto.make_tensor_view %sig, shape = [%c1, %c1], strides = [%c1, %c1] : !pto.tensor_view<?x?xi32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c1] : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<1x1xi32>
    %is0 = arith.cmpi eq, %i, %c0 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    scf.if %is0 {{
      pto.comm.twait(%p, %two : !pto.partition_tensor_view<1x1xi32>, i32) {{cmp = #pto<wait_cmp ge>}}
      %seven = arith.constant 7 : i64
      pto.store_scalar %seven, %out[%c0] : !pto.ptr<i64>, i64
    }} else {{
      pto.comm.tnotify(%p, %one : !pto.partition_tensor_view<1x1xi32>, i32) {{notifyOp = #pto.notify_op<AtomicAdd>}}
    }}"""
    text = program(body, "%sig: !pto.ptr<i32>, %out: !pto.ptr<i64>")
    signal, out = np.zeros(1, np.int32), np.zeros(1, np.int64)
    result = run(text, signal, out, blocks=3)
    assert result.ok, result.diagnostics
    assert out[0] == 7 and signal[0] == 2
    result = run(text, np.zeros(1, np.int32), out, blocks=2)
    assert codes(result) == ["PTO-E2104"] and "signal" in result.diagnostics[0].message


def test_a_cube_core_waits_for_both_vector_cores() -> None:
    """One count of each lane: with only one of them signalling, the cube core is stuck."""
    body = """%c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i64
    %i3 = arith.constant 3 : i64
    pto.section.vector {{
      %s = pto.get_subblock_idx
      %n = arith.index_cast %s : i64 to index
      %first = arith.cmpi eq, %n, %c0 : index
      {signal}
    }}
    pto.section.cube {{
      pto.wait_flag_dev %i0, %i3 : i64, i64
    }}"""
    both = "pto.set_cross_core %i0, %i3 : i64, i64"
    assert run(program(body.format(signal=both)), np.zeros(1, np.int64)).ok
    one = f"scf.if %first {{\n{both}\n}}"
    result = run(program(body.format(signal=one)), np.zeros(1, np.int64))
    assert codes(result) == ["PTO-E2104"] and "AIV1" in result.diagnostics[0].message


def like_cores(mode: int, signals: str = "") -> str:
    """Every vector core writes its number, signals, waits and reads that of the last core of its group."""
    return program(
        f"""%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %i0 = arith.constant 0 : i64
    %i3 = arith.constant 3 : i64
    %i2 = arith.constant 2 : i64
    %one = arith.constant 1 : i64
    pto.section.vector {{
      %b = pto.get_block_idx
      %bn = pto.get_block_num
      %s = pto.get_subblock_idx
      %b2 = arith.muli %b, %i2 : i64
      %me = arith.addi %b2, %s : i64
      %my = arith.index_cast %me : i64 to index
      %n = arith.addi %me, %one : i64
      pto.store_scalar %n, %x[%my] : !pto.ptr<i64>, i64
      {signals or f"pto.set_cross_core %i0, %i3 {{mode = {mode} : i32}} : i64, i64"}
      pto.wait_flag_dev %i0, %i3 : i64, i64
      %last = {"arith.muli %bn, %i2" if mode == 0 else "arith.addi %b2, %i2"} : i64
      %l1 = arith.subi %last, %one : i64
      %at = arith.index_cast %l1 : i64 to index
      %v = pto.load_scalar %x[%at] : !pto.ptr<i64> -> i64
      pto.store_scalar %v, %out[%my] : !pto.ptr<i64>, i64
    }}
    pto.section.cube {{
    }}""",
        "%x: !pto.ptr<i64>, %out: !pto.ptr<i64>",
    )


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("engine", ["reference", "cpp"])
def test_like_cores_meet_at_a_signal_of_mode(mode: int, engine: str) -> None:
    """Mode 1: the vector cores of a block; mode 0: those of all blocks. Nobody goes on before the last one."""
    import pto

    blocks = 3
    kernel = pto.kernel(pto.parse(like_cores(mode)), engine=engine)
    want = [6] * 6 if mode == 0 else [2, 2, 4, 4, 6, 6]
    for seed in range(12 if engine == "reference" else 1):
        x, out = np.zeros(6, np.int64), np.zeros(6, np.int64)
        options = {"schedule": seed} if engine == "reference" else {}
        result = kernel.run(x, out, blocks=blocks, **options)
        assert result.ok, result.diagnostics
        assert out.tolist() == want


def test_signals_of_like_cores_order_what_they_wrote() -> None:
    x, out = np.zeros(6, np.int64), np.zeros(6, np.int64)
    result = run(like_cores(0), x, out, blocks=3, sanitize="race,sync")
    assert result.ok, result.diagnostics
    # Without a signal from the second vector core no core goes on.
    some = """%first = arith.cmpi eq, %s, %i0 : i64
      scf.if %first {
        pto.set_cross_core %i0, %i3 {mode = 1 : i32} : i64, i64
      }"""
    assert codes(run(like_cores(1, some), x, out)) == ["PTO-E2104"]
