"""Predicate generation and algebra against loops over lanes and against 256-bit integers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples, some

from pto import isa
from pto.asm import parse
from pto.engine.registers import WIDTH
from pto.verifier import verify
from pto.witness.plan import make_attribute

from .cases import VectorCase, plans_of, with_attrs
from .masks import GRANULARITIES, SIZES, at, found, image_of, lanes_of, set_image, some_image, typed

ROWS = tuple(r.name for r in isa.rows() if r.set == "predicate" and r.family != "predicate-load-store")

BOTH = pytest.mark.parametrize("semantics", ["hw", "doc"])
EACH = pytest.mark.parametrize("gran", GRANULARITIES)
IMAGES = st.integers(0, 2**WIDTH - 1)


def run(plan: Any, semantics: str = "hw", **masks: int) -> VectorCase:
    """Execute on images, one per mask operand."""
    case = VectorCase(plan, semantics=semantics)
    for name, value in masks.items():
        set_image(case, name, value)
    case.execute()
    return case


def every_column(name: str) -> list[str]:
    row = isa.row(name)
    assert row is not None
    return list(row.isas)


# -- generation --------------------------------------------------------------------------------------------


def pattern_lanes(pattern: str, lanes: int, semantics: str) -> list[int]:
    """Lane by lane from the words of the manual (doc) or of the hardware."""
    if pattern == "PAT_ALL":
        return [1] * lanes
    if pattern == "PAT_ALLF":
        return [0] * lanes
    if pattern in ("PAT_H", "PAT_Q"):
        part = lanes // (2 if pattern == "PAT_H" else 4)
        return [int(n >= lanes - part if semantics == "doc" else n < part) for n in range(lanes)]
    if pattern.startswith("PAT_M"):
        return [int(n % int(pattern[-1]) == 0) for n in range(lanes)]
    return [int(n < int(pattern[6:])) for n in range(lanes)]


@BOTH
@EACH
@pytest.mark.parametrize("stem", ["pset", "pge"])
def test_patterns(stem: str, gran: str, semantics: str) -> None:
    name = f"{stem}_{gran}"
    row = isa.row(name)
    assert row is not None
    choices = next(a for a in row.attrs if a.name == "pattern").choices
    lanes = WIDTH // SIZES[gran]
    assert len(choices) == 6 + lanes
    images = {p: image_of(pattern_lanes(p, lanes, semantics), gran) for p in choices}
    for column in every_column(name):
        case = VectorCase(plans_of(name, column)[0], semantics=semantics)
        for pattern, want in images.items():
            case.op.set_attr("pattern", make_attribute(row.attr_index["pattern"], pattern))
            case.execute()
            assert found(case, "mask") == want, (name, pattern)


#: Counts of lanes: all that a register can have, and more.
COUNTS = (*range(2 * WIDTH + 2), 1000, 2**31 - 1, -1, -2, -64, -(2**31))


@EACH
@pytest.mark.parametrize("stem", ["pset", "pge"])
def test_patterns_without_an_encoding_are_warned_about(stem: str, gran: str) -> None:
    encoded = {f"PAT_VL{n}" for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)}
    lengths = [f"PAT_VL{n}" for n in range(1, WIDTH // SIZES[gran] + 1)]
    for pattern in ("PAT_ALL", "PAT_Q", *some(lengths, 4, by=lambda p: p in encoded)):
        text = (
            'module attributes {pto.target_arch = "a5"} { func.func @f() { pto.vecscope {\n'
            f'%m = pto.{stem}_{gran} "{pattern}" : !pto.mask<{gran}>\n'
            "}\nreturn } }"
        )
        got, again = ([(d.code, d.severity) for d in verify(parse(text))] for _ in range(2))
        assert again == got, f"{pattern}: the second time it is told otherwise"
        odd = pattern.startswith("PAT_VL") and pattern not in encoded
        assert got == ([("PTO-E0112", "warning")] if odd else []), pattern


@EACH
def test_pge_by_count(gran: str) -> None:
    """The older form: a count of lanes, none where it is not positive, and no rest."""
    name = f"pge_{gran}"
    lanes = WIDTH // SIZES[gran]
    plan = typed(plans_of(name, "a5")[0].replace(attrs={}), rem="i32")
    case = VectorCase(plan)
    for rem in COUNTS:
        case.args["rem"] = rem
        assert case.execute() is None
        assert found(case, "mask") == image_of([int(n < rem) for n in range(lanes)], gran)


@EACH
def test_plt(gran: str) -> None:
    name = f"plt_{gran}"
    lanes = WIDTH // SIZES[gran]
    for column in every_column(name):
        case = VectorCase(plans_of(name, column)[0])
        for count in COUNTS if column == "a5" else COUNTS[::7]:
            case.args["scalar"] = count
            rest = case.execute()
            unsigned = count % 2**32
            assert found(case, "mask") == image_of([int(n < unsigned) for n in range(lanes)], gran)
            assert rest % 2**32 == (0 if unsigned < lanes else unsigned - lanes)
            assert -(2**31) <= rest < 2**31


@examples(40)
@given(st.integers(0, 3000), st.sampled_from(GRANULARITIES))
def test_plt_chain_counts_every_element_once(total: int, gran: str) -> None:
    """Passing the rest on covers `total` elements, in order, and stays at 0."""
    lanes = WIDTH // SIZES[gran]
    rest, covered = total, 0
    for _ in range(-(-total // lanes) + 1):
        case = VectorCase(plans_of(f"plt_{gran}", "a5")[0])
        case.args["scalar"] = rest
        rest = case.execute()
        on = sum(lanes_of(found(case, "mask"), gran))
        assert on == min(lanes, total - covered)
        covered += on
    assert (covered, rest) == (total, 0)


# -- algebra -----------------------------------------------------------------------------------------------

ALGEBRA = {"pand": operator.and_, "por": operator.or_, "pxor": operator.xor}


def turned(operands: int) -> Iterator[list[int]]:
    """Images in which every bit of the operands, one after the other, meets all combinations of their values."""
    every = list(itertools.product((0, 1), repeat=operands))
    for turn in range(len(every)):
        chosen = [every[(turn + 5 * bit) % len(every)] for bit in range(WIDTH)]
        yield [sum(bits[k] << n for n, bits in enumerate(chosen)) for k in range(operands)]


@BOTH
@EACH
@pytest.mark.parametrize("name", ["pand", "por", "pxor", "pnot"])
def test_algebra(name: str, gran: str, semantics: str) -> None:
    """Lanes are their lowest bits, whatever else their slots hold; results have clean slots."""
    for x, y, governing in (*turned(3), (2**WIDTH - 1, 0, 2**WIDTH - 1), (2**WIDTH - 1, 0, 0)):
        operands = {"src": x} if name == "pnot" else {"src0": x, "src1": y}
        xs, ys, gs = (lanes_of(v, gran) for v in (x, y, governing))
        want = [
            (1 - a if name == "pnot" else ALGEBRA[name](a, b)) * (1 if semantics == "doc" else g)
            for a, b, g in zip(xs, ys, gs, strict=True)
        ]
        case = run(at(name, gran), semantics, **operands, mask=governing)
        assert found(case, "dst") == image_of(want, gran)


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("name", ["pand", "por", "pxor", "pnot"])
def test_algebra_in_every_column(name: str, column: str) -> None:
    case = VectorCase(at(name, "b8", column), 3)
    x = some_image(case, "src" if name == "pnot" else "src0")
    y = 0 if name == "pnot" else some_image(case, "src1")
    governing = some_image(case, "mask")
    case.execute()
    want = ~x if name == "pnot" else ALGEBRA[name](x, y)
    assert found(case, "dst") == want & governing


@EACH
@pytest.mark.parametrize("fourth", [True, False])
def test_psel(gran: str, fourth: bool) -> None:
    plan = at("psel", gran, **{"mask": f"!pto.mask<{gran}>" if fourth else ""})
    for x, y, sel, other in turned(4):
        masks = {"src0": x, "src1": y, "sel": sel} | ({"mask": other} if fourth else {})
        case = run(plan, "hw", **masks)
        lanes = zip(lanes_of(sel, gran), lanes_of(x, gran), lanes_of(y, gran), strict=True)
        assert found(case, "dst") == image_of([a if s else b for s, a, b in lanes], gran)


@pytest.mark.parametrize("x", [0, 2**WIDTH - 1, int("a50f" * 16, 16)])
def test_algebra_on_masks_without_granularity(x: int) -> None:
    """An untyped mask is a mask of bytes: every bit is a lane."""
    case = run(
        typed(at("pnot", "b8"), src="!pto.mask", mask="!pto.mask", dst="!pto.mask"), src=x, mask=2**WIDTH - 1
    )
    assert found(case, "dst") == 2**WIDTH - 1 - x


# -- packing and views -------------------------------------------------------------------------------------

PAIRS = [(a, b) for a in GRANULARITIES for b in GRANULARITIES]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
@examples(12)
@given(x=IMAGES)
def test_ppack_and_punpack_of_bits(source: str, target: str, part: str, x: int) -> None:
    """On hardware they move the bits of the image; types do not matter."""
    shift = 0 if part == "LOWER" else 128
    types = {"src": f"!pto.mask<{source}>", "dst": f"!pto.mask<{target}>"}
    pack, unpack = (with_attrs(typed(plans_of(n, "a5")[0], **types), part=part) for n in ("ppack", "punpack"))
    packed = sum((x >> 2 * j & 1) << (j + shift) for j in range(128))
    spread = sum((x >> (j + shift) & 1) << 2 * j for j in range(128))
    assert found(run(pack, src=x), "dst") == packed
    assert found(run(unpack, src=x), "dst") == spread
    # one undoes the other on the selected half
    assert found(run(unpack, src=packed), "dst") == sum((x >> 2 * j & 1) << 2 * j for j in range(128))
    half = (x >> shift & (2**128 - 1)) << shift
    assert found(run(pack, src=spread), "dst") == half


@EACH
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
@examples(12)
@given(x=IMAGES)
def test_ppack_and_punpack_of_lanes(gran: str, part: str, x: int) -> None:
    """In the manual they place one half of the lanes."""
    types = {"src": f"!pto.mask<{gran}>", "dst": f"!pto.mask<{gran}>"}
    pack, unpack = (with_attrs(typed(plans_of(n, "a5")[0], **types), part=part) for n in ("ppack", "punpack"))
    lanes = lanes_of(x, gran)
    half = len(lanes) // 2
    nothing = [0] * half
    packed = lanes[:half] + nothing if part == "LOWER" else nothing + lanes[:half]
    chosen = lanes[:half] if part == "LOWER" else lanes[half:]
    assert found(run(pack, "doc", src=x), "dst") == image_of(packed, gran)
    assert found(run(unpack, "doc", src=x), "dst") == image_of(chosen + nothing, gran)


@pytest.mark.parametrize(("wide", "narrow"), [("b32", "b16"), ("b16", "b8")])
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
@examples(12)
@given(x=IMAGES)
def test_packing_to_half_the_width_is_one_in_both(wide: str, narrow: str, part: str, x: int) -> None:
    """All lanes of the wider mask in one half of the narrower, and back: the presets agree."""
    x = image_of(lanes_of(x, wide), wide)
    pack = with_attrs(
        typed(plans_of("ppack")[0], src=f"!pto.mask<{wide}>", dst=f"!pto.mask<{narrow}>"), part=part
    )
    unpack = with_attrs(
        typed(plans_of("punpack")[0], src=f"!pto.mask<{narrow}>", dst=f"!pto.mask<{wide}>"), part=part
    )
    lanes, nothing = lanes_of(x, wide), [0] * (WIDTH // SIZES[wide])
    want = image_of(lanes + nothing if part == "LOWER" else nothing + lanes, narrow)
    for semantics in ("hw", "doc"):
        assert found(run(pack, semantics, src=x), "dst") == want
        assert found(run(unpack, semantics, src=want), "dst") == x


@pytest.mark.parametrize(("source", "target"), PAIRS)
@examples(12)
@given(x=IMAGES)
def test_pbitcast_keeps_the_image(source: str, target: str, x: int) -> None:
    for column in ("cpu", "a2a3", "a5"):
        plan = typed(
            plans_of("pbitcast", column)[0], input=f"!pto.mask<{source}>", result=f"!pto.mask<{target}>"
        )
        assert found(run(plan, input=x), "result") == x


@EACH
@examples(20)
@given(x=IMAGES, y=IMAGES)
def test_interleave(gran: str, x: int, y: int) -> None:
    """All bits of a lane move together."""
    size = SIZES[gran]
    lanes = WIDTH // size
    xs, ys = ([v >> (n * size) & (2**size - 1) for n in range(lanes)] for v in (x, y))
    for column in ("cpu", "a2a3", "a5"):
        case = run(plans_of(f"pintlv_{gran}", column)[0], src0=x, src1=y)
        mixed = [v for pair in zip(xs, ys, strict=True) for v in pair]
        whole = sum(v << (n * size) for n, v in enumerate(mixed))
        assert found(case, "low") == whole % 2**WIDTH
        assert found(case, "high") == whole >> WIDTH
        case = run(plans_of(f"pdintlv_{gran}", column)[0], src0=x, src1=y)
        joined = xs + ys
        assert found(case, "low") == sum(v << (n * size) for n, v in enumerate(joined[0::2]))
        assert found(case, "high") == sum(v << (n * size) for n, v in enumerate(joined[1::2]))


# -- identities of the model -------------------------------------------------------------------------------


@examples(25)
@given(x=IMAGES, y=IMAGES)
def test_two_masks_of_words_make_one_of_halves(x: int, y: int) -> None:
    """The masks of two f32 registers as one mask of the f16 register that holds both."""
    m0, m1 = (image_of(lanes_of(v, "b32"), "b32") for v in (x, y))
    case = run(plans_of("pdintlv_b8", "a5")[0], src0=m0, src1=m1)
    assert found(case, "low") == image_of(lanes_of(m0, "b32") + lanes_of(m1, "b32"), "b16")
    assert found(case, "high") == 0
    back = run(plans_of("pintlv_b8", "a5")[0], src0=found(case, "low"), src1=0)
    assert (found(back, "low"), found(back, "high")) == (m0, m1)


@examples(25)
@given(x=IMAGES)
def test_packing_twice_makes_one_bit_per_word(x: int) -> None:
    """One dense bit per 32-bit lane, in the first 64 bits of the image."""
    pack = with_attrs(plans_of("ppack", "a5")[0], part="LOWER")
    once = found(run(pack, src=x), "dst")
    twice = found(run(pack, src=once), "dst") % 2**64
    assert twice == sum(lane << n for n, lane in enumerate(lanes_of(x, "b32")))


@examples(25)
@given(x=IMAGES)
def test_spreading_reaches_both_halves(x: int) -> None:
    """Two masks of words from one of halves: by punpack, or by interleaving with nothing."""
    lanes = lanes_of(x, "b16")
    x = image_of(lanes, "b16")
    lower, upper = image_of(lanes[:64], "b32"), image_of(lanes[64:], "b32")
    unpack = typed(plans_of("punpack", "a5")[0], src="!pto.mask<b16>", dst="!pto.mask<b32>")
    assert found(run(with_attrs(unpack, part="LOWER"), src=x), "dst") == lower
    assert found(run(with_attrs(unpack, part="HIGHER"), src=x), "dst") == upper
    case = run(plans_of("pintlv_b16", "a5")[0], src0=x, src1=0)
    assert (found(case, "low"), found(case, "high")) == (lower, upper)
