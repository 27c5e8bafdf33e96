"""Sorting and merging of records against Python's own sort and a merge that looks at one head at a time."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples, some

from pto.engine.reference.instr import IllegalInstruction
from pto.ir.attrs import BoolAttr
from pto.isa.encoding import decode, encode
from pto.witness.plan import Plan

from .rows import Array, Case, Doubles, element_type, outcome, random_codes, some_plans, special_codes

ROWS = ("tsort32", "tmrgsort")

SORT_TYPES = ("f32", "f16", "bf16", "i32", "i16")


def finite_or_inf(rng: np.random.Generator, dtype: str, shape: tuple[int, int], few: bool = False) -> Array:
    """Any codes but NaN; with `few` only the special ones, so that many are equal."""
    codes = random_codes(rng, dtype, shape, True)
    special = [c for c in special_codes(dtype) if decode(dtype, c) == decode(dtype, c)]
    chosen = rng.choice(np.array(special, np.uint64), shape).astype(codes.dtype)
    nan = np.array([[decode(dtype, int(c)) != decode(dtype, int(c)) for c in row] for row in codes], bool)
    return np.where(nan.reshape(shape) | few | (rng.random(shape) < 0.2), chosen, codes)


def record(dtype: str, code: int, index: int) -> bytes:
    size = 4 if dtype in ("f32", "i32") else 2
    return code.to_bytes(size, "little").ljust(4, b"\0") + struct.pack("<I", index)


def sorted_row(dtype: str, codes: list[int], indices: list[int]) -> bytes:
    out = b""
    for j in range(0, len(codes), 32):
        pairs = zip(codes[j : j + 32], indices[j : j + 32], strict=True)
        for code, index in sorted(pairs, key=lambda p: (-decode(dtype, p[0]), p[1])):
            out += record(dtype, code, index)
    return out


def check_sort(
    case: Case, rng: np.random.Generator, valid: tuple[int, int], few: bool = False, one_row: bool = False
) -> None:
    src, dst = case.tile("src"), case.tile("dst")
    rows, cols = valid
    codes = finite_or_inf(rng, src.dtype, src.shape, few)
    # Large indices too: they are unsigned. Few different ones make them equal where values are.
    indices = rng.integers(0, 4 if few else 2**32, src.shape, np.uint64).astype(np.uint32)
    if few:
        indices |= rng.integers(0, 2, src.shape).astype(np.uint32) << np.uint32(31)
    case.set("src", codes, valid)
    case.set("idx", indices, (1, cols) if one_row else valid)
    want = random_codes(rng, dst.dtype, dst.shape, True)
    case.set("dst", want)
    for r in range(rows):
        line = sorted_row(src.dtype, codes[r, :cols].tolist(), indices[0 if one_row else r, :cols].tolist())
        if case.isa != "cpu":  # hardware fills the last block
            line += record(src.dtype, 0xFFC00000 if src.bits == 32 else 0xFE00, 0) * (-cols % 32)
        elements = np.frombuffer(line, want.dtype)[: dst.cols]
        want[r, : len(elements)] = elements
    (got,) = outcome(case, "dst")
    assert (got == want).all(), (case.plan.isa, src.dtype, valid)


@pytest.mark.parametrize("valid", [(16, 64), (3, 40), (5, 7), (1, 33), (16, 1), (2, 32), (0, 5), (3, 0)])
def test_sort(valid: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    for k, plan in enumerate(some_plans("tsort32")):
        check_sort(Case(plan), rng, valid, few=k % 2 == 0)


def test_every_type_is_there() -> None:
    assert {element_type(p, "src") for p in some_plans("tsort32")} == set(SORT_TYPES)


@examples(40)
@given(st.data())
def test_any_sort(data: st.DataObject) -> None:
    case = Case(data.draw(st.sampled_from([p for p in some_plans("tsort32") if p.isa == "cpu"])))
    valid = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 64)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    check_sort(case, rng, valid, data.draw(st.booleans()))


def test_one_row_of_indices_serves_all() -> None:
    for plan in some_plans("tsort32"):
        check_sort(Case(plan), np.random.default_rng(2), (5, 64), one_row=True)


def test_zeros_are_equal_and_keep_their_order() -> None:
    case = sort_case("f32")
    case.set("src", np.array([[0, 1 << 31, 1 << 31, 0]]), (1, 4))
    case.set("idx", np.array([[5, 5, 2, 5]]), (1, 4))
    (got,) = outcome(case, "dst")
    assert got[0, :8].tolist() == [1 << 31, 2, 0, 5, 1 << 31, 5, 0, 5]


def sort_case(dtype: str) -> Case:
    return Case(next(p for p in some_plans("tsort32") if element_type(p, "src") == dtype))


def test_nan_comes_last() -> None:
    """The ISA leaves the order of NaN open; no record may be lost, and the others are sorted."""
    case = sort_case("f32")
    values = np.array([[1.0, np.nan, -np.inf, 3.0, -np.nan, 2.0]], np.float32)
    case.set("src", values.view(np.uint32), (1, 6))
    case.set("idx", np.arange(6)[None, :], (1, 6))
    (got,) = outcome(case, "dst")
    assert got[0, 1:12:2].tolist()[:3] == [3, 5, 0]
    assert sorted(got[0, 1:12:2].tolist()) == list(range(6))
    assert got[0, 0:12:2].tolist() == [values.view(np.uint32)[0, k] for k in got[0, 1:12:2]]


def test_records_beyond_a_narrow_dst_are_dropped() -> None:
    plan = some_plans("tsort32")[0]
    narrow = plan.operands["dst"][0].replace(cols=64)
    case = Case(plan.replace(operands={**plan.operands, "dst": (narrow,)}))
    check_sort(case, np.random.default_rng(3), (4, 64))


# -- merge ------------------------------------------------------------------------------------------------


def merged(
    dtype: str, lists: list[list[bytes]], room: int, exhausted: bool = False
) -> tuple[list[bytes], list[int]]:
    """Records in the order in which they leave the lists, and how many left each."""
    taken = [0] * len(lists)
    out: list[bytes] = []

    def value(k: int) -> Any:
        head = lists[k][taken[k]]
        return decode(dtype, int.from_bytes(head[: 4 if dtype in ("f32", "i32") else 2], "little"))

    while len(out) < room:
        heads = [k for k in range(len(lists)) if taken[k] < len(lists[k])]
        if not heads:
            break
        best = heads[0]
        for k in heads[1:]:
            if value(k) > value(best):
                best = k
        out.append(lists[best][taken[best]])
        taken[best] += 1
        if exhausted and taken[best] == len(lists[best]):
            break
    return out, taken + [0] * (4 - len(lists))


def some_list(
    rng: np.random.Generator, dtype: str, count: int, in_order: bool = True, few: bool = False
) -> list[bytes]:
    """Records, sorted as tsort32 leaves them or not."""
    codes = finite_or_inf(rng, dtype, (1, count), few)[0].tolist()
    if in_order:
        codes.sort(key=lambda c: -decode(dtype, c))
    return [record(dtype, c, int(rng.integers(0, 2**32, dtype=np.uint64))) for c in codes]


def as_codes(records: list[bytes], dtype: Any) -> Array:
    return np.frombuffer(b"".join(records), dtype)[None, :]


def single_plans() -> list[Plan]:
    return [p for p in some_plans("tmrgsort") if "blockLen" in p.operands]


def list_plans() -> list[Plan]:
    return [p for p in some_plans("tmrgsort") if "src1" in p.operands]


@pytest.mark.parametrize(
    ("v_col", "block"), some(itertools.product((1024, 1023, 600, 256, 100, 0), (64, 32, 4, 128)), 3)
)
def test_merge_of_blocks(block: int, v_col: int) -> None:
    rng = np.random.default_rng(4)
    for k, plan in enumerate(single_plans()):
        case = Case(plan)
        dtype, src, dst = case.tile("src").dtype, case.tile("src"), case.tile("dst")
        each = 64 // src.bits
        case.args["blockLen"] = block
        old = random_codes(rng, dtype, dst.shape, True)
        blocks = [some_list(rng, dtype, block // each, k % 2 == 0, k % 3 == 0) for _ in range(1024 // block)]
        case.set("src", as_codes([r for b in blocks for r in b], old.dtype), (1, 1024))
        case.set("dst", old, (1, v_col))
        want = old.copy()
        for g in range(0, v_col - 4 * block + 1, 4 * block):
            group, _ = merged(dtype, blocks[g // block : g // block + 4], 4 * block)
            want[:, g : g + 4 * block] = as_codes(group, old.dtype)
        (got,) = outcome(case, "dst")
        assert (got == want).all(), (plan.isa, dtype)


@pytest.mark.parametrize("block", [0, -4, 1, 3])
def test_a_bad_block_length_does_nothing(block: int) -> None:
    case = Case(single_plans()[0])
    case.random("src")
    old = case.random("dst")
    case.args["blockLen"] = block
    assert (outcome(case, "dst")[0] == old).all()


def test_blocks_beyond_the_source_are_refused() -> None:
    plan = single_plans()[0]
    short = plan.operands["src"][0].replace(cols=512, v_col=None)
    case = Case(plan.replace(operands={**plan.operands, "src": (short,)}))
    case.args["blockLen"] = 64
    with pytest.raises(IllegalInstruction, match="src"):
        case.run()


def check_lists(
    plan: Plan, rng: np.random.Generator, counts: list[int], room: int, exhausted: bool,
    in_order: bool = True, few: bool = False,
) -> None:  # fmt: skip
    case = Case(plan.replace(attrs={**plan.attrs, "exhausted": BoolAttr(exhausted)}))
    dtype, dst = case.tile("dst").dtype, case.tile("dst")
    each = 64 // dst.bits
    names = [n for n in ("src", "src1", "src2", "src3") if n in case.args]
    lists = [some_list(rng, dtype, n, in_order, few) for n in counts[: len(names)]]
    old = random_codes(rng, dtype, dst.shape, True)
    for n, made in zip(names, lists, strict=True):
        case.random(n, codes=True)
        case.set(n, as_codes(made, old.dtype), (1, len(made) * each))
    case.set("dst", old, (1, room * each))
    case.args["excuted"] = np.full(4, 99, np.int16)
    records, taken = merged(dtype, lists, room, exhausted)
    want = old.copy()
    want[:, : len(records) * each] = as_codes(records, old.dtype)
    (got,) = outcome(case, "dst")
    assert (got == want).all(), (plan.isa, dtype, counts, room, exhausted)
    assert case.args["excuted"].tolist() == taken


@pytest.mark.parametrize("exhausted", [False, True])
@pytest.mark.parametrize(
    ("counts", "room"),
    [
        ([64, 64, 64, 64], 256), ([64, 64, 64, 64], 17), ([3, 50, 7, 1], 256), ([10, 0, 5, 2], 30),
        ([0, 0, 0, 0], 9), ([1, 1, 1, 1], 0), ([0, 4, 4, 4], 12),
    ],
)  # fmt: skip
def test_merge_of_lists(counts: list[int], room: int, exhausted: bool) -> None:
    rng = np.random.default_rng(5)
    for k, plan in enumerate(list_plans()):
        check_lists(plan, rng, counts, room, exhausted, few=k % 2 == 0)


@examples(60)
@given(st.data())
def test_any_lists(data: st.DataObject) -> None:
    """Also lists that are not sorted: the merge only ever sees their heads."""
    plan = data.draw(st.sampled_from(list_plans()))
    counts = data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4))
    room = data.draw(st.integers(0, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    flags = [data.draw(st.booleans()) for _ in range(3)]
    check_lists(plan, rng, counts, room, *flags)


def test_three_lists() -> None:
    plan = next(p for p in list_plans() if "src3" in p.operands)
    three = plan.replace(operands={n: t for n, t in plan.operands.items() if n != "src3"})
    check_lists(three, np.random.default_rng(6), [20, 30, 40], 100, False)


def test_in_place() -> None:
    case = Case(single_plans()[0])
    case.tile("dst").address = case.tile("src").address
    case.args["blockLen"] = 64
    blocks = [some_list(np.random.default_rng(k), "f32", 32) for k in range(4)]
    case.set("src", as_codes([r for b in blocks for r in b], np.uint32), (1, 256))
    case.tile("dst").v_col = 256
    (got,) = outcome(case, "dst")
    assert (got[:, :256] == as_codes(merged("f32", blocks, 999)[0], np.uint32)).all()


def test_a_shadow_run_moves_records() -> None:
    """Values keep their float64; the index beside them keeps its bits."""
    for dtype, each in (("f32", 2), ("f16", 4)):
        case = sort_case(dtype)
        case.core.port = Doubles()
        values = [encode(dtype, v) for v in (1.0, 3.0, 2.0)]
        case.set("src", np.array([values]), (1, 3))
        case.set("idx", np.array([[7, 70000, 9]]), (1, 3))
        (got,) = outcome(case, "dst")
        want = [record(dtype, values[k], i) for k, i in ((1, 70000), (2, 9), (0, 7))]
        assert got[0, : 3 * each].tobytes() == b"".join(want)
