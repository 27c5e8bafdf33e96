"""Unaligned streams against a model of bytes: the memory after every step, and the waiting bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sampling import examples

import pto
from pto.engine.memory import Pointer
from pto.engine.reference.core import RunError
from pto.engine.registers import Align
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from .cases import VectorCase, counted, plans_of, shown, width, with_attrs
from .test_memory import changed, returning, run

ROWS = (
    "vldas", "vldus", "vsta", "vstas", "vstar", "vstu", "vstus", "vstur", "sprclr", "sprsti", "sprsts",
    "init_align",
)  # fmt: skip

TYPES = sorted(DTYPES[str(p.operands["base"][0].dtype)].name for p in plans_of("vstus"))  # type: ignore[attr-defined]


def plan_of(name: str, dtype: str, column: str = "a5", pointer: str = "") -> Plan:
    """The plan of a row for an element type, with the form that returns the operand `pointer` advanced."""
    for plan in plans_of(name, column):
        types = [t for ts in (*plan.operands.values(), *plan.results.values()) for t in ts]
        if any(str(getattr(t, "dtype", None)) == dtype for t in types):
            break
    else:
        raise AssertionError((name, dtype))
    return returning(plan, plan.row.results[-1].name, pointer) if pointer else plan


class Bench:
    """Instructions one after another on the core of the first."""

    def __init__(self, seed: int = 0, column: str = "a5") -> None:
        self.case = VectorCase(plans_of("init_align", column)[0], seed)
        self.core, self.rng = self.case.core, self.case.rng
        self.memory = self.case.memory
        self.memory[:] = self.rng.integers(0, 256, self.memory.size, np.uint8)

    def at(self, offset: int, dtype: str) -> Pointer:
        return Pointer(self.core.buffers["vec"], offset, counted(dtype), "p")

    def step(self, plan: Plan, **args: Any) -> tuple[dict[str, Any], Any]:
        """Operands and results of one instruction, and its scalar results."""
        case = VectorCase(plan, int(self.rng.integers(1 << 30)))
        case.core = self.core
        case.args.update(args)
        if "value" in case.args and "value" not in args:
            case.fill("value")
        return case.args, case.execute()

    def empty(self) -> Align:
        return self.step(plans_of("init_align", "a5")[0])[0]["result"]

    def special(self, name: str, value: int) -> None:
        self.core.special_register(name, "i64").buffer.data.view(np.int64)[0] = value

    def register(self, name: str) -> int:
        return int(self.core.special_register(name, "i64").buffer.data.view(np.int64)[0])


# -- loads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_load_streams(column: str) -> None:
    """Three vectors in a row, at every alignment of the elements."""
    for plan in plans_of("vldus", column):
        dtype = str(plan.operands["source"][0].dtype)  # type: ignore[attr-defined]
        size = width(dtype)
        step = {"increment": 256 // size} if "increment" in plan.operands else {}
        for returns in (False, True)[len(step) :]:
            for shift in {0, size, 3 * size % 32, 32 - size}:
                bench = Bench(shift, column)
                data = bench.memory.tobytes()
                p = bench.at(4096 + shift, dtype)
                args, _ = bench.step(plan_of("vldas", dtype, column), source=p)
                state = args["state"]
                for n in range(3):
                    made = returning(plan, "base", "source") if returns else plan
                    args, further = bench.step(made, source=p, state=state, **step)
                    at = 4096 + shift + 256 * n
                    assert args["r"].buffer.data.tobytes() == data[at : at + 256], (shown(plan), shift)
                    if returns:
                        assert (further.offset, further.dtype) == (at + 256, counted(dtype))
                    p, state = p.moved(256 // size), args["state_out"]
                assert bench.memory.tobytes() == data


def test_a_load_state_holds_the_bytes_of_its_block() -> None:
    """Stores there after the state was primed are not seen, stores after the block are."""
    bench = Bench(1)
    data = bench.memory.tobytes()
    p = bench.at(4096 + 12, "f32")
    args, _ = bench.step(plan_of("vldas", "f32"), source=p)
    bench.memory[4096:4400] = 0
    args, _ = bench.step(plan_of("vldus", "f32"), source=p, state=args["state"])
    assert args["r"].buffer.data.tobytes() == data[4108:4128] + bytes(236)


def test_a_load_stream_goes_on_in_its_own_block_only() -> None:
    bench = Bench()
    prime, load = plan_of("vldas", "f32"), plan_of("vldus", "f32")
    state = bench.step(prime, source=bench.at(4096 + 12, "f32"))[0]["state"]
    bench.step(load, source=bench.at(4096 + 20, "f32"), state=state)  # another element of the same block
    for wrong in (4096 + 32, 4096 - 4, 4096 + 268):
        with pytest.raises(RunError, match=rf"primed for, 4096\.\.4128, got {wrong}; prime a new state"):
            bench.step(load, source=bench.at(wrong, "f32"), state=state)
    state = bench.step(load, source=bench.at(4096 + 12, "f32"), state=state)[0]["state_out"]
    with pytest.raises(RunError, match=r"4352\.\.4384, got 4108"):
        bench.step(load, source=bench.at(4096 + 12, "f32"), state=state)
    with pytest.raises(RunError, match="a state that vldas gave, got an empty one"):
        bench.step(load, source=bench.at(4096, "f32"), state=bench.empty())
    stored = bench.step(plan_of("vstus", "f32"), state=bench.empty(), count=3, base=bench.at(64, "f32"))[0]
    with pytest.raises(RunError, match="a state that vldas gave, got that of a store stream"):
        bench.step(load, source=bench.at(64, "f32"), state=stored["state_out"])


def test_a_load_advances_its_pointer_by_any_increment() -> None:
    """The state goes on behind the vector, whatever the pointer does."""
    bench = Bench()
    load = changed(plan_of("vldus", "f32"), increment="index", base="!pto.ptr<f32, ub>")
    assert load is not None
    assert changed(plan_of("vldus", "f32"), increment="index", base=None) is None
    p = bench.at(4096 + 12, "f32")
    state = bench.step(plan_of("vldas", "f32"), source=p)[0]["state"]
    args, further = bench.step(load, source=p, state=state, increment=-3)
    assert args["r"].buffer.data.tobytes() == bench.memory[4108:4364].tobytes()
    assert (further.offset, further.dtype) == (4096, "f32")
    with pytest.raises(RunError, match=r"primed for, 4352\.\.4384, got 4096; prime a new state"):
        bench.step(load, source=further, state=args["state_out"], increment=64)


def test_a_load_stream_touches_whole_blocks() -> None:
    """The last block counts as far as it goes; an aligned access does not touch the next block."""
    bench = Bench()
    prime, load = plan_of("vldas", "f32"), plan_of("vldus", "f32")
    end = bench.memory.size
    for start, legal in ((end - 256, True), (end - 260, True), (end - 252, False), (end - 288, True)):
        p = bench.at(start, "f32")
        state = bench.step(prime, source=p)[0]["state"]
        if legal:
            args, _ = bench.step(load, source=p, state=state)
            assert args["r"].buffer.data.tobytes() == bench.memory[start : start + 256].tobytes()
        else:
            with pytest.raises(RunError):
                bench.step(load, source=p, state=state)
    with pytest.raises(RunError):
        bench.step(prime, source=bench.at(end, "f32"))


def test_an_aligned_step_leaves_the_next_block_for_later() -> None:
    bench = Bench(2)
    prime, load = plan_of("vldas", "f32"), plan_of("vldus", "f32")
    state = bench.step(prime, source=bench.at(4096, "f32"))[0]["state"]
    state = bench.step(load, source=bench.at(4096, "f32"), state=state)[0]["state_out"]
    args, _ = bench.step(load, source=bench.at(4096 + 264, "f32"), state=state)
    assert args["r"].buffer.data.tobytes() == bench.memory[4096 + 264 :][:256].tobytes()


# -- stores ------------------------------------------------------------------------------------------------


class Model:
    """A store stream in words: bytes appended and where, those of whole blocks being in memory."""

    def __init__(self, memory: bytes, start: int) -> None:
        self.memory = bytearray(memory)
        self.position = start
        self.waiting: list[tuple[int, int]] = []

    def append(self, data: bytes) -> None:
        self.waiting += [(self.position + n, b) for n, b in enumerate(data)]
        self.position += len(data)
        whole = self.position - self.position % 32
        for at, b in self.waiting:
            if at < whole:
                self.memory[at] = b
        self.waiting = [(at, b) for at, b in self.waiting if at >= whole]

    def flush(self) -> None:
        for at, b in self.waiting:
            self.memory[at] = b


@examples(150)
@given(
    dtype=st.sampled_from(TYPES),
    start=st.integers(0, 64),
    steps=st.lists(st.tuples(st.sampled_from("vstus vstus_form vstu vstu_pointer".split()), st.integers(0, 256)), max_size=6),
    end=st.sampled_from(("vsta", "vstas", "vstar")),
    seed=st.integers(0, 1000),
)  # fmt: skip
@example(dtype="f16", start=5, steps=[("vstus", 3), ("vstus", 0), ("vstus", 4)], end="vsta", seed=0)
def test_store_streams(dtype: str, start: int, steps: list[tuple[str, int]], end: str, seed: int) -> None:
    bench, size = Bench(seed), width(dtype)
    lanes = 256 // size
    base = bench.at(4096, dtype)
    p = base.moved(start)
    model = Model(bench.memory.tobytes(), p.offset)
    state = bench.empty()
    for name, count in steps:
        count = min(count, lanes)
        if name == "vstus":
            args, further = bench.step(
                plan_of("vstus", dtype, pointer="base"), state=state, count=count, base=p
            )
        elif name == "vstus_form":
            plan = changed(
                plan_of("vstus", dtype, pointer="base"), position=f"!pto.ptr<{element(dtype)}, ub>"
            )
            assert plan is not None
            args, further = bench.step(plan, state=state, count=count, position=p, base=base)
        else:
            plan = next(p for p in plans_of("vstu") if str(p.operands["base"][0].dtype) == dtype  # type: ignore[attr-defined]
                        and (p.operands["position"][0].kind == "ptr") == (name == "vstu_pointer"))  # fmt: skip
            plan = post_updating(plan)
            count = lanes
            if name == "vstu_pointer":
                args, further = bench.step(plan, state=state, position=p, base=base)
            else:
                at = (p.offset - base.offset) // size
                args, found = bench.step(plan, state=state, position=at, base=base)
                assert found == at + lanes
                further = base.moved(found)
        model.append(args["value"].buffer.data.tobytes()[: count * size])
        assert bench.memory.tobytes() == bytes(model.memory)
        assert further.offset == model.position
        state, p = args["state_out"], further
        assert (state.pending, state.kind) == (len(model.waiting), "store")
    distance = (p.offset - base.offset) // size
    if end == "vstar":
        bench.special("AR", p.offset - base.offset)
        bench.step(plan_of(end, dtype), state=state, dest=base)
    else:
        bench.step(plan_of(end, dtype), state=state, dest=base, offset=distance)
    model.flush()
    assert bench.memory.tobytes() == bytes(model.memory)


def element(dtype: str) -> str:
    """An element type as pointers spell it."""
    return str(plan_of("vstus", dtype).operands["base"][0]).removeprefix("!pto.ptr<").partition(",")[0]


def post_updating(plan: Plan) -> Plan:
    made = with_attrs(plan, mode="POST_UPDATE")
    assert made is not None
    return made


def test_modes_that_do_not_advance() -> None:
    bench = Bench()
    p = bench.at(4096, "f32")
    plan = with_attrs(plan_of("vstus", "f32", pointer="base"), mode="NO_POST_UPDATE")
    assert plan is not None
    assert bench.step(plan, state=bench.empty(), count=5, base=p)[1].offset == 4096
    assert bench.step(plan_of("vstus", "f32"), state=bench.empty(), count=5, base=p)[1] is None
    plan = plan_of("vstu", "f32")  # NO_POST_UPDATE by default
    assert bench.step(plan, state=bench.empty(), position=7, base=p)[1] == 7
    numbered = changed(plan, mode_value="index")
    assert numbered is not None
    for mode, want in ((0, 7), (1, 71)):
        assert bench.step(numbered, state=bench.empty(), position=7, base=p, mode_value=mode)[1] == want
    with pytest.raises(RunError, match="expects mode 0 or 1, got 2"):
        bench.step(numbered, state=bench.empty(), position=7, base=p, mode_value=2)


def test_a_store_stream_goes_on_and_ends_where_it_is() -> None:
    bench = Bench()
    store, flush = plan_of("vstus", "f32"), plan_of("vstas", "f32")
    state = bench.step(store, state=bench.empty(), count=10, base=bench.at(4096, "f32"))[0]["state_out"]
    before = bench.memory.tobytes()
    for wrong in (4096, 4132, 4140):
        with pytest.raises(
            RunError, match=f"the stream to go on at byte 4136, where 8 bytes are pending, got {wrong}"
        ):
            bench.step(store, state=state, count=1, base=bench.at(wrong, "f32"))
        with pytest.raises(
            RunError, match=f"a flush at the end of its stream, at byte 4136, .*, got {wrong}"
        ):
            bench.step(flush, state=state, dest=bench.at(wrong, "f32"), offset=0)
    assert bench.memory.tobytes() == before
    bench.step(flush, state=state, dest=bench.at(4096, "f32"), offset=10)  # counted in elements
    # nothing pending: the place does not matter
    state = bench.step(store, state=bench.empty(), count=8, base=bench.at(4096, "f32"))[0]["state_out"]
    before = bench.memory.tobytes()
    bench.step(flush, state=state, dest=bench.at(64, "f32"), offset=0)
    bench.step(flush, state=bench.empty(), dest=bench.at(64, "f32"), offset=0)
    assert bench.memory.tobytes() == before
    bench.step(store, state=state, count=8, base=bench.at(8192, "f32"))


def test_a_flush_that_returns_a_pointer_is_at_the_pointer_it_got() -> None:
    bench = Bench()
    store, flush = plan_of("vstus", "f32"), plan_of("vstas", "f32", pointer="dest")
    args, _ = bench.step(store, state=bench.empty(), count=10, base=bench.at(4096, "f32"))
    state = args["state_out"]
    with pytest.raises(RunError, match="at byte 4136, where 8 bytes are pending, got 4096"):
        bench.step(flush, state=state, dest=bench.at(4096, "f32"), offset=10)
    _, further = bench.step(flush, state=state, dest=bench.at(4136, "f32"), offset=-3)
    assert (further.offset, further.dtype) == (4124, "f32")
    assert bench.memory[4096:4136].tobytes() == args["value"].buffer.data.tobytes()[:40]


def test_load_and_store_streams_do_not_mix() -> None:
    bench = Bench()
    p = bench.at(4096, "f32")
    state = bench.step(plan_of("vldas", "f32"), source=p)[0]["state"]
    for name, args in (("vstus", {"count": 1, "base": p}), ("vstu", {"position": 0, "base": p}), ("vstur", {"base": p}),
                       ("vsta", {"dest": p, "offset": 0}), ("vstas", {"dest": p, "offset": 0}), ("vstar", {"dest": p})):  # fmt: skip
        with pytest.raises(RunError, match="the state of a store stream, got that of a load stream"):
            bench.step(plan_of(name, "f32"), state=state, **args)


def test_counts_and_addresses_are_checked() -> None:
    bench = Bench()
    for wrong in (-1, 65):
        with pytest.raises(RunError, match=rf"count in 0\.\.64, got {wrong}"):
            bench.step(plan_of("vstus", "f32"), state=bench.empty(), count=wrong, base=bench.at(64, "f32"))
    for name, args in (("vldas", {"source": bench.at(4098, "f32")}),
                       ("vstus", {"state": bench.empty(), "count": 1, "base": bench.at(4098, "f32")}),
                       ("vstu", {"state": bench.empty(), "position": 0, "base": bench.at(4098, "f32")})):  # fmt: skip
        with pytest.raises(RunError, match="multiple of 4 bytes, got 4098"):
            bench.step(plan_of(name, "f32"), **args)
    end = bench.memory.size
    state = bench.step(
        plan_of("vstus", "f32"), state=bench.empty(), count=12, base=bench.at(end - 32, "f32")
    )[0]
    with pytest.raises(RunError):
        bench.step(
            plan_of("vstas", "f32"), state=state["state_out"], dest=bench.at(end + 16, "f32"), offset=0
        )


# -- the special register ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_squeezed_streams(dtype: str) -> None:
    """AR leads from append to append; SQZN may have been counted in elements of another width."""
    bench = Bench(3)
    base = bench.at(4096 + width(dtype), dtype)
    model = Model(bench.memory.tobytes(), base.offset)
    bench.special("AR", 77)
    bench.step(plans_of("sprclr")[0])
    assert bench.register("AR") == 0
    state, total = bench.empty(), 0
    for squeezed in (40, 8, 0, 256, 24, 3):
        bench.special("SQZN", squeezed)
        args, _ = bench.step(post_updating(plan_of("vstur", dtype)), state=state, base=base)
        model.append(args["value"].buffer.data.tobytes()[:squeezed])
        assert bench.memory.tobytes() == bytes(model.memory)
        total, state = total + squeezed, args["state_out"]
        assert bench.register("AR") == total
    bench.step(plan_of("vstar", dtype), state=state, dest=base)
    model.flush()
    assert bench.memory.tobytes() == bytes(model.memory)


def test_squeezed_stream_without_update_keeps_its_register() -> None:
    bench = Bench()
    bench.special("AR", 32)
    bench.special("SQZN", 12)
    p = bench.at(4096, "f32")
    state = bench.step(plan_of("vstur", "f32"), state=bench.empty(), base=p)[0]["state_out"]
    assert bench.register("AR") == 32
    with pytest.raises(RunError, match="at byte 4140, where 12 bytes are pending, got 4128"):
        bench.step(plan_of("vstar", "f32"), state=state, dest=p)


@pytest.mark.parametrize(("name", "unit"), [("sprsti", 4), ("sprsts", 1)])
def test_the_register_in_memory(name: str, unit: int) -> None:
    for plan in plans_of(name):
        bench = Bench(4)
        before = bytearray(bench.memory.tobytes())
        bench.special("AR", 0x1_2345_6789)
        dtype = str(plan.operands["dest"][0].dtype)  # type: ignore[attr-defined]
        _, further = bench.step(plan, dest=bench.at(4096, dtype), offset=-12 // unit)
        at = 4084
        if plan.results.get("base"):  # stored where the pointer was
            assert (further.offset, further.dtype) == (at, dtype)
            at = 4096
        before[at : at + 4] = (0x2345_6789).to_bytes(4, "little")
        assert bench.memory.tobytes() == bytes(before)
        with pytest.raises(RunError, match="multiple of 4 bytes, got 4098"):
            bench.step(plan, dest=bench.at(4098, dtype), offset=0)


# -- whole programs ----------------------------------------------------------------------------------------

_SHIFT = """
      %one_i = arith.constant 1 : index
      %two = arith.constant 2 : index
      %three = arith.constant 3 : index
      %five = arith.constant 5 : index
      %n = arith.constant 50 : i32
      %c0 = arith.constant 0 : i32
      %p0 = pto.addptr %ux, %three : <f32, ub> -> <f32, ub>
      %q0 = pto.addptr %uy, %five : <f32, ub> -> <f32, ub>
      %l0 = pto.vldas %p0 : !pto.ptr<f32, ub> -> !pto.align
      %s0 = pto.init_align : !pto.align
      %l, %s, %q, %p = scf.for %i = %at to %two step %one_i iter_args(%la = %l0, %sa = %s0, %qa = %q0, %pa = %p0)
          -> (!pto.align, !pto.align, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>) {{
        %v, %lb, %pb = pto.vldus %pa, %la : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align, !pto.ptr<f32, ub>
        %sb, %qb = pto.vstus %sa, %n, %v, %qa, "POST_UPDATE" : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align, !pto.ptr<f32, ub>
        scf.yield %lb, %sb, %qb, %pb : !pto.align, !pto.align, !pto.ptr<f32, ub>, !pto.ptr<f32, ub>
      }}
      {flush}
"""
_FLUSH = "pto.vstas %s, %q, %c0 : !pto.align, !pto.ptr<f32, ub>, i32"


@pytest.mark.parametrize(
    "options", [{}, {"sanitize": "all"}, {"shadow": "f64"}], ids=["plain", "watched", "shadow"]
)
def test_program_that_copies_from_one_alignment_to_another(options: dict[str, Any]) -> None:
    x, before, y, _ = run(_SHIFT.format(flush=_FLUSH), **options)
    want = before.copy()
    want[5:55], want[55:105] = x[3:53], x[67:117]
    assert (y == want).all()


@pytest.mark.parametrize(
    "options", [{}, {"sanitize": "all"}, {"shadow": "f64"}], ids=["plain", "watched", "shadow"]
)
def test_program_with_the_pointers_of_every_step(options: dict[str, Any]) -> None:
    """Loads, stores, the flush and the special register all give the pointer that the next step takes."""
    body = """
      %c64 = arith.constant 64 : index
      %three = arith.constant 3 : index
      %n = arith.constant 5 : i32
      %two = arith.constant 2 : i32
      %eight = arith.constant 8 : i32
      %p0 = pto.addptr %ux, %three : <f32, ub> -> <f32, ub>
      %l0 = pto.vldas %p0 : !pto.ptr<f32, ub> -> !pto.align
      %v0, %l1, %p1 = pto.vldus %p0, %l0, %c64 : !pto.ptr<f32, ub>, !pto.align, index -> !pto.vreg<64xf32>, !pto.align, !pto.ptr<f32, ub>
      %v1, %l2 = pto.vldus %p1, %l1 : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align
      %s0 = pto.init_align : !pto.align
      %s1, %q1 = pto.vstus %s0, %n, %v0, %uy : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align, !pto.ptr<f32, ub>
      %s2, %q2 = pto.vstus %s1, %n, %v1, %q1 : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align, !pto.ptr<f32, ub>
      %q3 = pto.vstas %s2, %q2, %two : !pto.align, !pto.ptr<f32, ub>, i32 -> !pto.ptr<f32, ub>
      %w0 = pto.castptr %q3 : !pto.ptr<f32, ub> -> !pto.ptr<ui32, ub>
      pto.sprclr "AR"
      %w1 = pto.sprsti "AR", %w0[%two] : !pto.ptr<ui32, ub>, i32 -> !pto.ptr<ui32, ub>
      %w2 = pto.sprsts "AR", %w1[%eight] : !pto.ptr<ui32, ub>, i32 -> !pto.ptr<ui32, ub>
      pto.sprsts "AR", %w2[%eight] : !pto.ptr<ui32, ub>, i32
    """
    x, before, y, _ = run(body, **options)
    want = before.copy()
    want[:5], want[5:10] = x[3:8], x[67:72]
    want[[12, 14, 18]] = 0
    np.testing.assert_array_equal(y, want)


def test_program_without_a_flush_loses_the_tail() -> None:
    """The stream ends at element 105; element 104 begins the block that never filled."""
    x, before, y, _ = run(_SHIFT.format(flush=""))
    want = before.copy()
    want[5:55], want[55:104] = x[3:53], x[67:116]
    assert (y == want).all()
    *_, said = run(_SHIFT.format(flush=""), ok=False, sanitize="all")
    assert "4 bytes that are not in memory" in said


def test_program_that_squeezes() -> None:
    body = """
      %c0 = arith.constant 0.0 : f32
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      pto.sprclr "AR"
      %s0 = pto.init_align : !pto.align
      %s = scf.for %i = %at to %c128 step %c64 iter_args(%sa = %s0) -> (!pto.align) {
        %v = pto.vlds %ux[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %m = pto.vcmps %v, %c0, %all, "gt" : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.mask<b32>
        %z = pto.vsqz %v, %m : !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
        %sb = pto.vstur %sa, %z, %uy, "POST_UPDATE" : !pto.align, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align
        scf.yield %sb : !pto.align
      }
      pto.vstar %s, %uy : !pto.align, !pto.ptr<f32, ub>
    """
    for sanitize in ("", "all"):
        x, before, y, _ = run(body, sanitize=sanitize or ())
        kept = x[:128][x[:128] > 0]
        assert (y[: kept.size] == kept).all()
        assert (y[kept.size :] == before[kept.size :]).all()


def test_undefined_bytes_travel_through_streams() -> None:
    """The source lies in an unwritten part of the buffer."""
    body = _SHIFT.format(flush=_FLUSH).replace("%p0 = pto.addptr %ux, %three", "%p0 = pto.addptr %ux, %far_i")
    body = "%far_i = arith.constant 3001 : index\n" + body
    *_, said = run(body, ok=False, sanitize="undef")
    assert "stores undefined data" in said and "100 of 256 elements, the first at (0, 5)" in said, said


def test_an_undefined_count_is_reported_once_and_the_stream_goes_on() -> None:
    """State left by a run with other counts does not reach the program."""
    body = """
      %off = arith.constant 3001 : index
      %c0 = arith.constant 0 : i32
      %ui = pto.castptr %zero : i64 -> !pto.ptr<i32, ub>
      %n = pto.load_scalar %ui[%off] : !pto.ptr<i32, ub> -> i32
      %v = pto.vlds %ux[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %s0 = pto.init_align : !pto.align
      %s, %q = pto.vstus %s0, %n, %v, %uy, "POST_UPDATE" : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align, !pto.ptr<f32, ub>
      pto.vstas %s, %uy, %c0 : !pto.align, !pto.ptr<f32, ub>, i32
    """
    _, before, y, said = run(body, ok=False, sanitize="undef")
    assert "vstus: an address depends on undefined data" in said
    assert said.count(": error[") == 1, said
    assert (y == before).all()


def test_streams_of_stores_are_for_a5() -> None:
    text = """
module attributes {pto.target_arch = "a3"} {
  func.func @f() {
    %zero = arith.constant 0 : i64
    %u = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    pto.vecscope {
      %n = arith.constant 5 : i32
      %f = arith.constant 0.0 : f32
      %v = pto.vbr %f : f32 -> !pto.vreg<64xf32>
      %s = pto.init_align : !pto.align
      %t = pto.vstus %s, %n, %v, %u : !pto.align, i32, !pto.vreg<64xf32>, !pto.ptr<f32, ub> -> !pto.align
    }
    return
  }
}
"""
    with pytest.raises(pto.DiagnosticError, match="vstus"):
        pto.kernel(pto.parse(text), engine="reference").run()
