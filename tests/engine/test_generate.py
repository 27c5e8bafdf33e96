"""Counting, masks, random words and histograms against loops over single elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto.ir.attrs import BoolAttr, IntAttr
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import decode, encode
from pto.witness.plan import Plan

from .rows import Array, Case, Doubles, element_type, outcome, random_codes, same, some_plans

ROWS = ("tci", "ttri", "trandom", "thistogram")

VALID = [(16, 64), (7, 13), (1, 64), (16, 1), (1, 1), (0, 5), (3, 0)]


def filled(case: Case, rng: np.random.Generator, valid: tuple[int, int]) -> Array:
    """Any bits in dst, and its valid region."""
    tile = case.tile("dst")
    codes = random_codes(rng, tile.dtype, tile.shape, True)
    case.set("dst", codes, valid)
    return codes.copy()


# -- tci --------------------------------------------------------------------------------------------------


def starts(dtype: str) -> list[float]:
    d = DTYPES[dtype]
    if d.is_float:
        return [0.0, -3.5, 2048.0, 1e4, decode(dtype, encode(dtype, 0.1))]
    low, high = d.int_range
    return [0, 7, low, high, high - 3, -1 if low < 0 else 2]


@pytest.mark.parametrize("down", [False, True])
def test_counting(down: bool) -> None:
    rng = np.random.default_rng(1)
    for plan in some_plans("tci"):
        case = Case(plan.replace(attrs={**plan.attrs, "descending": BoolAttr(down)}))
        dtype = case.tile("dst").dtype
        for start in starts(dtype):
            for cols in (64, 13, 1, 0):
                case.args["S"] = start
                want = filled(case, rng, (1, cols))
                want[0, :cols] = [encode(dtype, start - j if down else start + j) for j in range(cols)]
                (got,) = outcome(case, "dst")
                assert same(dtype, got, want), (dtype, start, cols)


def test_counting_ignores_the_valid_rows() -> None:
    plan = next(p for p in some_plans("tci") if p.isa == "a5")
    type_ = plan.operands["dst"][0].replace(rows=4, v_row=None)
    case = Case(plan.replace(operands={**plan.operands, "dst": (type_,)}))
    for v_row in (0, 1, 4):
        want = filled(case, np.random.default_rng(2), (v_row, 5))
        want[0, :5] = range(5)
        assert (outcome(case, "dst")[0] == want).all()


def test_an_unsigned_start_may_be_given_as_a_negative_number() -> None:
    case = Case(next(p for p in some_plans("tci") if element_type(p, "dst") == "u32"))
    case.args["S"] = -2
    assert outcome(case, "dst")[0][0, :4].tolist() == [2**32 - 2, 2**32 - 1, 0, 1]


# -- ttri -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [0, 1, -1, 5, -30, 30, 100, -100, 2**31 - 1, -(2**31)])
def test_triangles(upper: int, diagonal: int) -> None:
    rng = np.random.default_rng(3)
    for k, plan in enumerate(some_plans("ttri")):
        case = Case(plan.replace(attrs={**plan.attrs, "upperOrLower": IntAttr(upper)}))
        case.args["diagonal"] = diagonal
        dtype = case.tile("dst").dtype
        for rows, cols in (VALID[k % len(VALID)], (7, 13)):
            want = filled(case, rng, (rows, cols))
            one, zero = encode(dtype, 1), encode(dtype, 0)
            for i in range(rows):
                for j in range(cols):
                    inside = j >= i + diagonal if upper else j <= i + diagonal
                    want[i, j] = one if inside else zero
            (got,) = outcome(case, "dst")
            assert (got == want).all(), (dtype, rows, cols)


# -- trandom ----------------------------------------------------------------------------------------------


def philox(counter: int, key: tuple[int, int], rounds: int) -> list[int]:
    c = [counter >> (32 * k) & 0xFFFFFFFF for k in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def test_the_generator_is_philox() -> None:
    """Known answers of Philox4x32-10 (Random123)."""
    ones = 0xFFFFFFFF
    assert philox(0, (0, 0), 10) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(2**128 - 1, (ones, ones), 10) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    case = random_case(some_plans("trandom")[0], 10, 0, (0, 0))
    (got,) = outcome(case, "dst")
    assert got[0, 0] == 0x6627E8D5


def random_case(plan: Plan, rounds: int, counter: int, key: tuple[int, int], cols: int = 64) -> Case:
    type_ = plan.operands["dst"][0].replace(cols=cols, v_col=None)
    made = plan.replace(
        attrs={**plan.attrs, "rounds": IntAttr(rounds)}, operands={**plan.operands, "dst": (type_,)}
    )
    case = Case(made)
    for k in range(4):
        word = counter >> (32 * k) & 0xFFFFFFFF
        case.args[f"counter{k}"] = word - (word >> 31 << 32)  # as a signed i32
    case.args["key0"], case.args["key1"] = key
    return case


def check_random(
    plan: Plan, rounds: int, counter: int, key: tuple[int, int], cols: int, valid: tuple[int, int]
) -> None:
    case = random_case(plan, rounds, counter, key, cols)
    want = filled(case, np.random.default_rng(4), valid)
    at = counter
    loops = -(-valid[1] // 256)
    for row in range(valid[0]):
        for loop in range(loops):
            for lane in range(64):
                words = philox((at + lane) % 2**128, (key[0] % 2**32, key[1] % 2**32), rounds)
                for rep in range(4):
                    column = loop * 256 + (rep * 64 + lane if plan.isa == "cpu" else lane * 4 + rep)
                    if column < valid[1]:
                        want[row, column] = words[rep]
            if plan.isa == "cpu":
                at += cols // 4
            else:
                at += 64 if loop < loops - 1 else (valid[1] - 1) % 64 + 1
    (got,) = outcome(case, "dst")
    assert (got == want).all(), (rounds, counter, valid)


@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize(
    ("cols", "valid"),
    [
        (64, (16, 64)),
        (64, (3, 13)),
        (64, (16, 1)),
        (64, (0, 5)),
        (64, (3, 0)),
        (512, (2, 512)),
        (320, (3, 257)),
    ],
)
def test_random_words(rounds: int, cols: int, valid: tuple[int, int]) -> None:
    for plan in some_plans("trandom"):
        check_random(plan, rounds, 0x0123456789ABCDEF_FEDCBA9876543210, (-5, 0x7654321), cols, valid)


@examples(25)
@given(
    st.integers(0, 2**128 - 1) | st.integers(2**128 - 40, 2**128 - 1) | st.integers(2**64 - 40, 2**64 + 5),
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.integers(0, 3), st.integers(0, 64)),
)
def test_counters_carry(counter: int, key: tuple[int, int], valid: tuple[int, int]) -> None:
    check_random(some_plans("trandom")[0], 10, counter, key, 64, valid)


# -- thistogram -------------------------------------------------------------------------------------------


def histogram_plans() -> list[Plan]:
    found: dict[tuple[str, str], Plan] = {}
    for plan in some_plans("thistogram"):
        found.setdefault((plan.isa, element_type(plan, "src")), plan)
    return list(found.values())


def check_histogram(plan: Plan, byte: int, valid: tuple[int, int], rng: np.random.Generator) -> None:
    case = Case(plan.replace(attrs={"hist_byte": IntAttr(byte)}))
    src, idx = case.tile("src"), case.tile("idx")
    # Few different bytes, or no filter would let anything through.
    codes = rng.choice(np.array([0, 1, 7, 254, 255], np.uint8), (*src.shape, src.bits // 8))
    codes = np.ascontiguousarray(codes).view(f"u{src.bits // 8}")[:, :, 0]
    case.set("src", codes, valid)
    filters = rng.choice(np.array([0, 1, 7, 254, 255], np.uint8), idx.shape)
    case.set("idx", filters)
    want = filled(case, rng, (valid[0], 256))
    top = src.bits // 8 - 1
    for r in range(valid[0]):
        counts = [0] * 256
        for code in codes[r, : valid[1]].tolist():
            digits = list(code.to_bytes(top + 1, "little"))
            if src.bits == 16:
                passes = byte == 1 or digits[1] == filters[r, 0]
            else:
                passes = all(digits[3 - k] == filters[k, 0] for k in range(3 - byte))
            counts[digits[byte]] += passes
        for b in range(256):
            want[r, b] = sum(counts[: b + 1])
    (got,) = outcome(case, "dst")
    assert (got == want).all(), (src.dtype, byte, valid)


@pytest.mark.parametrize("valid", [(32, 64), (7, 13), (1, 64), (32, 1), (0, 5), (3, 0)])
def test_histograms(valid: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    for plan in histogram_plans():
        for byte in range(DTYPES[element_type(plan, "src")].bits // 8):
            check_histogram(plan, byte, valid, rng)


@examples(15)
@given(st.integers(0, 3), st.tuples(st.integers(0, 4), st.integers(0, 64)), st.integers(0, 2**32))
def test_any_histogram(byte: int, valid: tuple[int, int], seed: int) -> None:
    for plan in histogram_plans()[:2]:
        if byte < DTYPES[element_type(plan, "src")].bits // 8:
            check_histogram(plan, byte, valid, np.random.default_rng(seed))


@pytest.mark.parametrize(("attrs", "byte"), [({}, 1), ({"isMSB": True}, 1), ({"isMSB": False}, 0)])
def test_the_byte_of_a_histogram(attrs: dict[str, bool], byte: int) -> None:
    plan = next(p for p in histogram_plans() if element_type(p, "src") == "u16")
    case = Case(plan.replace(attrs={k: BoolAttr(v) for k, v in attrs.items()}))
    case.set("src", np.full((1, 1), 0x0305), (1, 1))
    case.set("idx", np.full((1, 1), 3))
    (got,) = outcome(case, "dst")
    value = (5, 3)[byte]
    assert got[0, : value + 1].tolist() == [0] * value + [1]


def test_a_shadow_run() -> None:
    for name in ("tci", "ttri"):
        case = Case(next(p for p in some_plans(name) if element_type(p, "dst") == "f16"))
        case.core.port = Doubles()
        if name == "tci":
            case.args["S"] = 2.0
        want = [2.0, 3.0, 4.0] if name == "tci" else [1.0, 0.0, 0.0]
        got = outcome(case, "dst")[0][0, :3].tolist()
        assert [decode("f16", c) for c in got] == want
