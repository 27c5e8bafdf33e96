"""Packed predicates, bit by bit."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.asm.type_text import parse_type
from pto.engine.memory import Tile
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan, make_attribute

from .rows import VALID, Case, Doubles, assert_codes, mixed_codes, numbers, sampled_plans, special_codes

ROWS = ("tcmp", "tcmps", "tsel", "tsels")
MODES = {m: getattr(operator, m) for m in ("eq", "ne", "lt", "le", "gt", "ge")}
#: Types a predicate tile may have, by the row and column that allow them.
WORDS = {
    ("tcmp", "a2a3"): ("u8", "i8"), ("tcmp", "cpu"): ("u8", "i8", "u32", "i32"),
    ("tcmp", "a5"): ("u8", "i8", "u32", "i32"),
}  # fmt: skip
ANY_WORD = ("u8", "i8", "u16", "i16", "u32", "i32")


def with_word(plan: Plan, operand: str, dtype: str) -> Plan:
    """The plan with another type of predicate words, in a tile of the same layout."""
    old: Any = plan.operands[operand][0]
    new: Any = parse_type(f"!pto.tile_buf<vec, 16x64x{DTYPES[dtype].mlir}>")
    made = new.replace(blayout=old.blayout, slayout=old.slayout)
    return plan.replace(operands={**plan.operands, operand: (made,)})


def with_mode(plan: Plan, mode: str) -> Plan:
    attr = plan.row.attr_index["cmpMode"]
    return plan.replace(attrs={**plan.attrs, "cmpMode": make_attribute(attr, mode)} if mode else plan.attrs)


def fill(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """Every tile; a second source equals the first in half of its elements."""
    codes = {n: mixed_codes(case.rng, t.dtype, t.shape) for n, t in case.args.items() if isinstance(t, Tile)}
    if case.row.name == "tcmp":
        again = case.rng.integers(0, 2, codes["src0"].shape) == 1
        codes["src1"][again] = codes["src0"][again]
    for name, made in codes.items():
        case.set(name, made)
    return codes


def check_compare(case: Case, valid: tuple[int, int], mode: str, words: int | None = None) -> None:
    first = "src0" if case.row.name == "tcmp" else "src"
    codes = fill(case)
    src, dst = case.args[first], case.args["dst"]
    for name, t in case.args.items():
        if isinstance(t, Tile):
            t.v_row, t.v_col = (valid[0], -(-valid[1] // dst.bits)) if name == "dst" else valid
    if words is not None:
        dst.v_col = words
    x = numbers(src.dtype, codes[first])
    if case.row.name == "tcmp":
        y = numbers(src.dtype, codes["src1"])
    elif "scalar" in codes:
        y = numbers(src.dtype, codes["scalar"])[:1] * len(x)
    else:
        pick = codes[first].ravel().tolist()[:3] + special_codes(src.dtype)
        case.args["scalar"] = encoding.decode(src.dtype, int(case.rng.choice(np.array(pick, np.uint64))))
        y = [case.args["scalar"]] * len(x)
    holds = MODES["eq" if not mode or (case.isa == "a2a3" and src.dtype == "i32") else mode]
    stream = case.isa in case.row.stream_on
    want = codes["dst"].astype(np.uint64)
    want[: dst.v_row, : dst.v_col] = 0
    if case.isa != "cpu":  # hardware does not look at the valid columns of dst
        want[: valid[0], : -(-valid[1] // dst.bits)] = 0
    for r in range(valid[0]):
        for c in range(valid[1]):
            row, (at, bit) = r, divmod(c, dst.bits)
            if stream:  # bytes, as many for a row as the storage of src has columns for
                byte, bit = divmod(r * src.cols + c, 8)
                row, at = divmod(byte, dst.v_col)
            inside = row < dst.v_row and (case.isa != "cpu" or at < dst.v_col)
            if inside and holds(x[r * src.cols + c], y[r * src.cols + c]):
                want[row, at] |= np.uint64(1 << bit)
    case.run()
    assert_codes(dst.dtype, case.get("dst"), want.astype(codes["dst"].dtype), (case.row.name, mode, valid))
    for name in codes:
        assert name == "dst" or (case.get(name) == codes[name]).all()


@pytest.mark.parametrize("mode", ["", *MODES])
@pytest.mark.parametrize("name", ["tcmp", "tcmps"])
def test_compare(name: str, mode: str) -> None:
    for k, plan in enumerate(sampled_plans(name)):
        words = WORDS.get((name, plan.isa), ANY_WORD)
        made = with_mode(with_word(plan, "dst", words[k % len(words)]), mode)
        check_compare(Case(made, k), VALID[k % len(VALID)], mode)


def test_a_narrow_destination_takes_what_fits() -> None:
    for words in (0, 1, 3):
        check_compare(Case(with_mode(sampled_plans("tcmp")[0], "lt"), 1), (16, 64), "lt", words)


def test_a_tile_as_scalar_gives_its_first_element() -> None:
    plan = next(p for p in sampled_plans("tcmps") if p.isa == "cpu")
    made = plan.replace(operands={**plan.operands, "scalar": plan.operands["src"]})
    for k, mode in enumerate(MODES):
        case = Case(with_mode(made, mode), k)
        assert isinstance(case.args["scalar"], Tile)
        check_compare(case, (5, 37), mode)


def test_equality_is_exact() -> None:
    """Infinities are equal to themselves, close numbers are not equal."""
    case = Case(with_mode(next(p for p in sampled_plans("tcmps") if p.isa == "cpu"), "eq"))
    values = np.full((16, 64), np.inf, np.float32)
    values[0, 1] = 1.0
    case.set("src", values.view(np.uint32))
    case.args["scalar"] = float("inf")
    case.run()
    assert case.get("dst")[0, 0] == 0xFD


def check_select(case: Case, valid: tuple[int, int]) -> None:
    codes = fill(case)
    mask, dst = case.args["mask"], case.args["dst"]
    stream = case.isa in case.row.stream_on  # of bytes, an element each
    for name, t in case.args.items():
        if isinstance(t, Tile) and name != "tmp":
            words = -(-valid[1] // (8 if stream else mask.bits))
            t.v_row, t.v_col = (valid[0], words) if name == "mask" else valid
    if case.row.name == "tsels":
        code = int(case.rng.choice(np.array(special_codes(dst.dtype), np.uint64)))
        case.args["scalar"] = encoding.decode(dst.dtype, code)
        if DTYPES[dst.dtype].is_float and case.args["scalar"] != case.args["scalar"]:
            code = encoding.NAN_CODES[dst.dtype]
        taken = (codes["src"], np.full(dst.shape, code, codes["dst"].dtype))
    else:
        taken = (codes["src0"], codes["src1"])
    want = codes["dst"].copy()
    for r in range(valid[0]):
        for c in range(valid[1]):
            row, (at, bit) = r, divmod(c, mask.bits)
            if stream:  # a bit for every valid element of dst
                byte, bit = divmod(r * valid[1] + c, 8)
                row, at = divmod(byte, mask.v_col)
            want[r, c] = taken[0 if int(codes["mask"][row, at]) >> bit & 1 else 1][r, c]
    case.run()
    assert (case.get("dst") == want).all(), (case.row.name, case.isa, dst.dtype, mask.dtype, valid)
    for name in codes:
        assert name == "dst" or (case.get(name) == codes[name]).all()


@pytest.mark.parametrize("name", ["tsel", "tsels"])
def test_select(name: str) -> None:
    """Bit patterns pass unchanged, those of NaN too."""
    for k, plan in enumerate(sampled_plans(name)):
        check_select(Case(with_word(plan, "mask", ANY_WORD[k % 6]), k), VALID[k % len(VALID)])


def test_select_undoes_compare() -> None:
    """max(x, y) as a selection by a comparison, word by word across odd widths; on cpu, with which a mask is a
    stream, only where rows are whole bytes."""
    less = with_mode(with_word(sampled_plans("tcmp")[0], "dst", "u8"), "lt")
    assert less.isa == "cpu"
    for cols, column in ((1, "a5"), (7, "a5"), (8, "a5"), (9, "a5"), (63, "a5"), (8, "cpu"), (64, "cpu")):
        compare = Case(less.replace(isa=column))
        compare.random("src0"), compare.random("src1")
        for name in ("src0", "src1"):
            compare.tile(name).v_col = cols
        compare.run()
        select = Case(with_word(sampled_plans("tsel")[0], "mask", "u8").replace(isa=column))
        x, y = compare.get("src0"), compare.get("src1")
        select.set("src0", y), select.set("src1", x), select.set("mask", compare.get("dst"))
        select.tile("dst").v_col = cols
        select.tile("mask").v_col = -(-cols // 8)
        select.run()
        want = np.maximum(x.view(np.float32), y.view(np.float32))[:, :cols]
        assert (select.get("dst").view(np.float32)[:, :cols] == want).all()


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    for plan in sampled_plans(name):
        cases = Case(plan, 4), Case(plan, 4)
        cases[1].core.port = Doubles()
        for case in cases:
            for n, t in case.args.items():
                if isinstance(t, Tile):
                    case.random(n)
            case.run()
        assert (cases[0].get("dst") == cases[1].get("dst")).all()


@examples(80)
@given(st.data())
def test_any_codes(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ROWS))
    plan = data.draw(st.sampled_from(sampled_plans(name)))
    valid = data.draw(st.tuples(st.integers(0, 16), st.integers(0, 64)))
    seed = data.draw(st.integers(0, 2**32))
    if name.startswith("tcmp"):
        word = data.draw(st.sampled_from(WORDS.get((name, plan.isa), ANY_WORD)))
        mode = data.draw(st.sampled_from(list(MODES)))
        check_compare(Case(with_mode(with_word(plan, "dst", word), mode), seed), valid, mode)
    else:
        word = data.draw(st.sampled_from(ANY_WORD))
        check_select(Case(with_word(plan, "mask", word), seed), valid)
