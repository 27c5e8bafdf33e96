"""Gather and scatter against scalar loops written from their definition."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.engine.memory import MemoryFault
from pto.engine.reference.instr import IllegalInstruction
from pto.ir.attrs import EnumAttr, IntAttr, StrAttr
from pto.isa import tile as tiles
from pto.isa.encoding import convert, decode, encode
from pto.witness.plan import Plan

from .rows import Array, Case, Doubles, every_plan, outcome, random_codes, same, some_plans, special_codes

ROWS = ("tgather", "tgatherb", "tscatter")

#: Which positions of a period a pattern takes, written as its digits read from the right.
PATTERNS = {
    p: [k for k, digit in enumerate(reversed(p[1:])) if digit == "1"]
    for p in ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")
}
VALID = ((16, 64), (5, 37), (1, 64), (16, 1), (3, 2), (0, 64), (16, 0))


def picked(pattern: str, size: int) -> list[int]:
    return [k for k in range(size) if k % 4 in PATTERNS[pattern]]


def with_pattern(plan: Plan, pattern: str, **words: str) -> Plan:
    attrs = {**plan.attrs, "maskPattern": EnumAttr("mask_pattern", pattern)}
    return plan.replace(attrs={**attrs, **{k: StrAttr(v) for k, v in words.items()}})


def valid(case: Case, name: str, rows: int, cols: int) -> None:
    case.tile(name).v_row, case.tile(name).v_col = rows, cols


def form(plan: Plan) -> str:
    if "cdst" in plan.operands:
        return "compare"
    return "index" if "indices" in plan.operands or "indexes" in plan.operands else "mask"


@cache
def plans(name: str) -> list[Plan]:
    return list(some_plans(name))


def plans_of(name: str, kind: str) -> list[Plan]:
    """Plans of one form that show every column, element type and layout."""
    return [p for p in plans(name) if form(p) == kind]


def storage(case: Case, name: str) -> Array:
    """The codes of a whole tile in storage order."""
    tile = case.tile(name)
    flat = np.zeros(tile.rows * tile.cols, np.uint64)
    flat[offsets(tile.layout, tile.shape, tile.box)] = case.get(name)
    return flat


@cache
def offsets(layout: str, shape: tuple[int, int], box: tuple[int, int]) -> Array:
    """Storage offset of every element."""
    rows, cols = (range(n) for n in shape)
    return np.array([[tiles.offset(layout, *shape, box, r, c) for c in cols] for r in rows])


# -- tgather, by index --------------------------------------------------------------------------------------


def check_index(case: Case, index: Array) -> None:
    src, before = case.random("src", codes=True), case.random("dst", codes=True)
    case.set("indices", index)
    want = before.copy()
    cols = case.tile("src").cols
    numbers = [[decode(case.tile("indices").dtype, int(k)) for k in row] for row in case.get("indices")]
    for r in range(case.tile("dst").v_row):
        for c in range(case.tile("dst").v_col):
            k = int(numbers[r][c])
            want[r, c] = src[k // cols, k % cols] if 0 <= k < src.size else 0
    (got,) = outcome(case, "dst")
    assert (got == want).all(), case.plan


def test_gather_by_index() -> None:
    found = plans_of("tgather", "index")
    assert len(found) > 10
    for at, plan in enumerate(found):
        case = Case(plan, at)
        valid(case, "dst", *VALID[at % len(VALID)])
        size, shape = 16 * 64, case.tile("indices").shape
        index = case.rng.integers(0, size, shape)
        if at % 2:  # some beyond either end
            index = case.rng.integers(-5, size + 5, shape)
        check_index(case, index & ((1 << case.tile("indices").bits) - 1))


@examples(40)
@given(st.integers(0, 16), st.integers(0, 64), st.integers(0, 2**32 - 1))
def test_gather_any_index(rows: int, cols: int, seed: int) -> None:
    case = Case(plans_of("tgather", "index")[0], seed)
    valid(case, "dst", rows, cols)
    special = case.rng.choice(np.array([0, 1023, 1024, 2**31 - 1, 2**31, 2**32 - 1]), (16, 64))
    check_index(
        case, np.where(case.rng.random((16, 64)) < 0.1, special, case.rng.integers(0, 1024, (16, 64)))
    )


def test_gather_from_a_part_of_a_tile() -> None:
    """Elements are counted over the columns of the tile, not of the storage it lies in."""
    case = Case(plans_of("tgather", "index")[0])
    case.random("src")
    part = case.tile("src")
    part.rows, part.cols = 8, 16
    part.v_row, part.v_col = 8, 16
    codes = case.get("src", (8, 16))
    case.set("indices", np.arange(16 * 64).reshape(16, 64))
    (got,) = outcome(case, "dst")
    assert (got.ravel()[:128] == codes.ravel()).all()
    assert (got.ravel()[128:] == 0).all()


# -- tgather, by mask ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["row", "col"])
def test_gather_by_mask(axis: str) -> None:
    found = plans_of("tgather", "mask")
    assert len(found) > 5
    for at, plan in enumerate(found):
        for which, pattern in enumerate(PATTERNS):
            case = Case(with_pattern(plan, pattern, gather_axis=axis), at)
            rows, cols = VALID[(at + which) % len(VALID)]
            valid(case, "src", rows, cols)
            src, dst = case.random("src", codes=True), case.random("dst", codes=True)
            (got,) = outcome(case, "dst")
            if axis == "row":
                run = [src[r, c] for r in range(rows) for c in picked(pattern, cols)]
                case.set("dst", dst)
                want = storage(case, "dst")
                want[: len(run)] = run
                case.set("dst", got)
                assert (storage(case, "dst") == want).all(), case.plan
            else:
                want = dst.copy()
                for at_row, r in enumerate(picked(pattern, rows)):
                    want[at_row, :cols] = src[r, :cols]
                assert (got == want).all(), case.plan


def test_gather_between_types_of_one_size() -> None:
    """A bit copy, NaN payloads included."""
    plan = plans_of("tgather", "mask")[0]
    case = Case(plan)
    assert case.tile("src").dtype == "f32"
    case.tile("dst").dtype = "i32"
    src = case.rng.choice(np.array(special_codes("f32"), np.uint32), case.tile("src").shape)
    case.set("src", src)
    (got,) = outcome(case, "dst")
    assert (got == src).all()


def test_more_than_fits() -> None:
    plan = plans_of("tgather", "mask")[0]
    for axis in ("row", "col"):
        case = Case(with_pattern(plan, "P1111", gather_axis=axis))
        case.tile("dst").rows = 15
        with pytest.raises(IllegalInstruction):
            case.run()


# -- tgather, by comparison ---------------------------------------------------------------------------------


def test_gather_by_comparison() -> None:
    found = plans_of("tgather", "compare")
    assert {"kTile" in p.operands for p in found} == {True, False}
    for at, plan in enumerate(found):
        for mode in ("eq", "gt"):
            offset = (0, 1000, -7)[at % 3]
            plan = plan.replace(
                attrs={**plan.attrs, "cmpMode": EnumAttr("cmp", mode), "offset": IntAttr(offset)}
            )
            case = Case(plan, at)
            check_comparison(case, mode, offset, *VALID[at % len(VALID)])


def check_comparison(case: Case, mode: str, offset: int, rows: int, cols: int) -> None:
    dtype = case.tile("src").dtype
    shape = case.tile("src").shape
    valid(case, "src", rows, cols)
    few = [encode(dtype, k) for k in (0, 1, 2, 3)] + (
        [encode(dtype, np.nan), encode(dtype, 1.5)] if dtype[0] == "f" else []
    )
    src = case.rng.choice(np.array(few, np.uint64), shape)
    case.set("src", src)
    if "kTile" in case.args:
        case.set("kTile", case.rng.integers(0, 4, case.tile("kTile").shape))
        flat = storage(case, "kTile")
        limits = [decode(dtype, convert(int(k), case.tile("kTile").dtype, dtype)) for k in flat[:rows]]
    else:
        case.args["kValue"] = 2.0 if dtype[0] == "f" else 2
        limits = [2] * rows
    dst, cdst = case.random("dst", codes=True), case.random("cdst", codes=True)
    case.set("cdst", cdst)
    counts = storage(case, "cdst")
    for r in range(rows):
        x = [decode(dtype, int(k)) for k in src[r, :cols]]
        hits = [c for c in range(cols) if (x[c] > limits[r] if mode == "gt" else x[c] == limits[r])]
        counts[r] = len(hits)
        for q, c in enumerate(hits[: dst.shape[1]]):
            dst[r, q] = (offset + r * shape[1] + c) % 2**32
    got, got_counts = outcome(case, "dst", "cdst")
    assert (got == dst).all(), case.plan
    case.set("cdst", got_counts)
    assert (storage(case, "cdst") == counts).all(), case.plan


# -- tgatherb -----------------------------------------------------------------------------------------------


def check_blocks(case: Case, rows: int, cols: int, offsets: Array) -> None:
    item = case.tile("dst").bits // 8
    count = 32 // item
    valid(case, "dst", rows, cols)
    case.random("src", codes=True)
    want = case.random("dst", codes=True)
    case.set("offsets", offsets)
    src = case.tile("src")
    memory = bytes(src.buffer.data[src.address : src.address + src.size])
    for r in range(rows):
        for b in range(cols // count):
            at = int(offsets[r, b])
            if at + 32 <= len(memory):
                block = np.frombuffer(memory[at : at + 32], want.dtype)
                want[r, b * count : (b + 1) * count] = block
    (got,) = outcome(case, "dst")
    assert (got == want).all(), case.plan


def test_gather_blocks() -> None:
    for at, plan in enumerate(some_plans("tgatherb")):
        case = Case(plan, at)
        size, shape = case.tile("src").size, case.tile("offsets").shape
        blocks = case.rng.integers(0, size // 32, shape) * 32
        rows, cols = ((16, 64), (5, 32), (1, 64), (0, 64), (16, 0))[at % 5]
        offsets = (
            blocks if at % 3 else case.rng.integers(0, size + 8, shape)
        )  # at % 3 == 0: any byte, some beyond
        check_blocks(case, rows, cols, offsets)


@examples(40)
@given(st.integers(0, 16), st.integers(0, 8), st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 32]))
def test_gather_any_blocks(rows: int, blocks: int, seed: int, step: int) -> None:
    case = Case(next(every_plan("tgatherb")), seed)
    offsets = case.rng.integers(0, 4200, (16, 8)) // step * step
    offsets[0, 0] = 2**32 - 16
    check_blocks(case, rows, 8 * blocks, offsets)


# -- tscatter -----------------------------------------------------------------------------------------------


def check_scatter(case: Case, rows: int, cols: int, index: Array) -> None:
    valid(case, "indexes", rows, cols)
    src = case.random("src", codes=True)
    case.random("dst", codes=True)
    case.set("indexes", index)
    want = storage(case, "dst")
    if case.isa != "cpu":  # hardware clears dst first
        want[:] = 0
    for r in range(rows):
        for c in range(cols):
            want[index[r, c]] = src[r, c]
    (got,) = outcome(case, "dst")
    case.set("dst", got)
    assert (storage(case, "dst") == want).all(), case.plan


def test_scatter_by_index() -> None:
    found = plans_of("tscatter", "index")
    assert len(found) > 10
    for at, plan in enumerate(found):
        case = Case(plan, at)
        check_scatter(case, *VALID[at % len(VALID)], case.rng.integers(0, (1024, 9)[at % 2], (16, 64)))


@examples(40)
@given(
    st.integers(0, 16), st.integers(0, 64), st.integers(1, 1024), st.integers(0, 2**32 - 1), st.integers(0, 5)
)
def test_last_writer_stays(rows: int, cols: int, span: int, seed: int, layout: int) -> None:
    case = Case(plans_of("tscatter", "index")[layout], seed)
    check_scatter(case, rows, cols, case.rng.integers(0, span, (16, 64)))


def test_last_writer_is_row_major_in_every_layout() -> None:
    """The order is that of rows and columns, not of the storage."""
    every = [p for p in every_plan("tscatter") if form(p) == "index"]
    alike = [p for p in every if len({t[0].layout for t in p.operands.values()}) == 1]
    seen = {p.operands["dst"][0].layout: p for p in alike}
    assert {"ND", "DN"} <= set(seen)
    for plan in seen.values():
        case = Case(plan)
        check_scatter(case, 16, 64, case.rng.integers(0, 9, (16, 64)))


@pytest.mark.parametrize("index", [-1, 2**30])
def test_scatter_outside_of_memory(index: int) -> None:
    case = Case(plans_of("tscatter", "index")[0])
    case.set("indexes", np.full((16, 64), index % 2**32))
    with pytest.raises(MemoryFault):
        case.run()


@pytest.mark.parametrize("axis", ["row", "col"])
def test_scatter_by_mask(axis: str) -> None:
    found = plans_of("tscatter", "mask")
    assert len(found) > 5
    for at, plan in enumerate(found):
        for which, pattern in enumerate(PATTERNS):
            case = Case(with_pattern(plan, pattern, scatter_axis=axis), at)
            rows, cols = VALID[(at + which) % len(VALID)]
            valid(case, "dst", rows, cols)
            by_row = axis == "row"
            chosen = picked(pattern, cols if by_row else rows)
            valid(case, "src", *((rows, len(chosen)) if by_row else (len(chosen), cols)))
            src, want = case.random("src", codes=True), case.random("dst", codes=True)
            want[:rows, :cols] = 0
            if plan.isa != "cpu" and pattern != "P1111":
                want[:] = 0
            for at_src, k in enumerate(chosen):
                if by_row:
                    want[:rows, k] = src[:rows, at_src]
                else:
                    want[k, :cols] = src[at_src, :cols]
            (got,) = outcome(case, "dst")
            assert (got == want).all(), case.plan


def test_scatter_of_another_size() -> None:
    plan = plans_of("tscatter", "mask")[0]
    case = Case(with_pattern(plan, "P0101"))
    with pytest.raises(IllegalInstruction):  # src still has as many columns as dst
        case.run()


# -- shadows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    """Moves keep values, so a shadow run gives the same elements."""
    done: set[str] = set()
    for plan in every_plan(name, layouts=False):
        if form(plan) in done or form(plan) == "compare":
            continue
        done.add(form(plan))
        cases = [Case(plan), Case(plan)]
        cases[1].core.port = Doubles()
        got: list[Array] = []
        for case in cases:
            for operand, tile in case.args.items():
                if operand in ("indices", "indexes"):
                    case.set(
                        operand, case.rng.integers(0, 1030 if operand == "indices" else 1024, tile.shape)
                    )
                elif operand == "offsets":
                    case.set(operand, case.rng.integers(0, 4096, tile.shape) // 4 * 4)
                else:
                    case.set(operand, random_codes(case.rng, tile.dtype, tile.shape))
            got.append(outcome(case, "dst")[0])
        assert same(cases[0].tile("dst").dtype, *got), plan
