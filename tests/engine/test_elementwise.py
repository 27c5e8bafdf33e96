"""Element-wise instructions against plain Python arithmetic, one element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import isa
from pto.engine.memory import Tile
from pto.engine.reference.meaning import compiled
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from .rows import VALID, Case, Doubles, assert_codes, mixed_codes, numbers, sampled_plans, special_codes

Number = float | int


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def single(v: float) -> float:
    return float(np.float32(v))


class Arith:
    """Arithmetic on one element type: `step` is the result of one operation, `element` a stored element."""

    def __init__(self, dtype: str, isa: str, dst: str = "") -> None:
        self.dst = dst or dtype
        self.d = DTYPES[dtype]
        self.dtype = dtype
        self.isa = isa

    def step(self, v: Number) -> Number:
        if isinstance(v, float):
            return single(v)
        return _wrapped(v, max(32, self.d.bits), self.d.kind == "i" or self.d.bits < 32)

    def element(self, v: Number) -> Number:
        if isinstance(v, float):
            if self.dtype == "bf16":
                return encoding.decode(self.d, encoding.encode(self.d, v))
            return float(np.float16(v)) if self.dtype == "f16" else single(v)
        return _wrapped(v, self.d.bits, self.d.kind == "i")

    def first(self, v: Number) -> Number:
        """The product of taxpy: f16 alone rounds it, and only where dst is f16."""
        return self.element(self.step(v)) if self.dtype == "f16" and self.dst == "f16" else self.step(v)

    def between(self, v: Number) -> Number:
        """The end of an instruction that is only the first half of one here."""
        return self.step(v) if self.isa == "cpu" else self.element(self.step(v))


def _wrapped(v: int, bits: int, signed: bool) -> int:
    v &= (1 << bits) - 1
    return v - (1 << bits) if signed and v >> (bits - 1) else v


def relu(v: Number) -> Number:
    return v if v > 0 else type(v)(0)


def quotient(x: Number, y: Number) -> Number:
    if isinstance(x, int):
        return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    if y == 0:
        same_sign = math.copysign(1, x) == math.copysign(1, y)
        return math.nan if x == 0 or math.isnan(x) else math.inf if same_sign else -math.inf
    return x / y


def truncated(x: Number, y: Number) -> Number:
    """C's remainder."""
    if isinstance(x, int):
        return 0 if y == 0 else x - y * quotient(x, y)
    return math.nan if math.isinf(x) or y == 0 else math.fmod(x, y)


def floored(a: Arith, x: Number, y: Number) -> Number:
    if isinstance(x, int):
        return 0 if y == 0 else x % y
    r = truncated(x, y)
    return single(a.element(r) + y) if (x >= 0) != (y >= 0) and r != 0 else r


def real_power(x: float, y: float) -> float:
    """C's pow."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


def cast_power(a: Arith, x: Number, y: Number) -> float:
    """Return C's pow as a number to cast; to u8 that goes through i32, with its minimum for numbers out of
    range."""
    if isinstance(x, int) and x and -20 <= y <= 20:
        found = float(Fraction(float(x)) ** int(y))  # C's may err where it lies halfway between two doubles
    else:
        found = real_power(float(x), float(y))
    return 0.0 if a.dtype == "u8" and not abs(found) < 2**31 else found


def power(a: Arith, x: Number, y: Number) -> Number:
    if isinstance(x, int):
        if y < 0:
            return 1 if x == 1 else (1 if y % 2 == 0 else -1) if x == -1 else 0
        return pow(x, y, 1 << 64)
    return single(real_power(x, y)) if a.dtype == "f16" else real_power(x, y)


def exponential(a: Arith, x: float) -> float:
    v = math.inf if x > 700 else math.exp(x)
    return single(v) if a.dtype == "f16" else v


def logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.nan if x < 0 else math.log(x)


def root(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def bigger(x: Number, y: Number) -> Number:
    return y if x < y else x


def smaller(x: Number, y: Number) -> Number:
    return y if y < x else x


def leaky(a: Arith, x: Number, slope: Number) -> Number:
    return x if x > 0 else a.step(x * slope)


#: What each row computes, from the specification: x, y, z are tiles in order, s the scalar, d the old dst.
WANT: dict[str, Callable[..., Number]] = {
    "tadd": lambda a, x, y: a.step(x + y),
    "tsub": lambda a, x, y: a.step(x - y),
    "tmul": lambda a, x, y: a.step(x * y),
    "tdiv": lambda a, x, y: a.step(quotient(x, y)),
    "tmax": lambda a, x, y: bigger(x, y),
    "tmin": lambda a, x, y: smaller(x, y),
    "tand": lambda a, x, y: x & y,
    "tor": lambda a, x, y: x | y,
    "txor": lambda a, x, y: x ^ y,
    "tshl": lambda a, x, y: x << y,
    "tshr": lambda a, x, y: x >> y,
    "tprelu": leaky,
    "trem": floored,
    "tfmod": lambda a, x, y: truncated(x, y),
    "tsubrelu": lambda a, x, y: relu(a.step(x - y)),
    "tabs": lambda a, x: -x if x < 0 else x,
    "texp": exponential,
    "tlog": lambda a, x: logarithm(x),
    "tsqrt": lambda a, x: root(x),
    "trsqrt": lambda a, x: quotient(1.0, root(x)),
    "trecip": lambda a, x: a.step(quotient(1.0, x)),
    "tnot": lambda a, x: ~x,
    "trelu": lambda a, x: type(x)(0) if x < 0 else x,
    "tneg": lambda a, x: -x,
    "taddc": lambda a, x, y, z: a.step(a.between(x + y) + z),
    "tsubc": lambda a, x, y, z: a.step(a.between(x - y) + z),
    "tfusedmuladd": lambda a, x, y, d: a.step(a.step(x * d) + y),
    "tfusedmuladdrelu": lambda a, x, y, d: relu(a.element(a.step(a.element(a.step(x * d)) + y))),
    "tmuladddst": lambda a, x, y, d: a.step(a.element(a.step(x * y)) + d),
    "tpow": power,
    "tadds": lambda a, x, s: a.step(x + s),
    "tsubs": lambda a, x, s: a.step(x - s),
    "tmuls": lambda a, x, s: a.step(x * s),
    "tdivs": lambda a, x, s: a.step(quotient(x, s)),
    "tmaxs": lambda a, x, s: bigger(x, s),
    "tmins": lambda a, x, s: smaller(x, s),
    "tlrelu": leaky,
    "tands": lambda a, x, s: x & s,
    "tors": lambda a, x, s: x | s,
    "txors": lambda a, x, s: x ^ s,
    "tshls": lambda a, x, s: x << s,
    "tshrs": lambda a, x, s: x >> s,
    "trems": floored,
    "tfmods": lambda a, x, s: truncated(x, s),
    "tpows": lambda a, x, s: cast_power(a, x, s),
    "taddsc": lambda a, x, s, y: a.step(a.between(x + s) + y),
    "tsubsc": lambda a, x, s, y: a.step(a.between(x - s) + y),
    "taxpy": lambda a, x, s, d: a.step(a.first(s * x) + d),
}  # fmt: skip
NARROW = ("taddreluconv", "tsubreluconv", "tadddeqrelu")
ROWS = (*WANT, *NARROW, "texpands")
SHIFTS = ("tshl", "tshr", "tshls", "tshrs")


def tiles_of(case: Case) -> Iterator[tuple[str, Tile]]:
    return ((n, t) for n, t in case.args.items() if isinstance(t, Tile))


def prepare(case: Case, valid: tuple[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    """Fill every tile and set the valid regions; the codes by operand."""
    rows, cols = valid
    codes: dict[str, np.ndarray[Any, Any]] = {}
    for name, t in tiles_of(case):
        codes[name] = mixed_codes(case.rng, t.dtype, t.shape)
        if case.row.name in SHIFTS and name == "src1":
            codes[name] %= t.bits
        case.set(name, codes[name])
        if name != "tmp":
            t.v_row, t.v_col = rows, cols
    return codes


def scalar_for(case: Case, dtype: str) -> Number:
    """A scalar of the element type, special values among them."""
    d = DTYPES[dtype]
    if case.row.name in SHIFTS:
        return int(case.rng.integers(0, d.bits))
    code = int(case.rng.choice(np.array(special_codes(dtype), np.uint64)))
    value = encoding.decode(
        d, code if case.rng.integers(2) else encoding.encode(d, case.rng.integers(1, 9) * 0.5)
    )
    return 3 if value == 0 and case.row.name in ("trems", "tfmods") else value


def finish(
    case: Case, before: dict[str, np.ndarray[Any, Any]], out: np.ndarray[Any, Any], what: object
) -> None:
    """Run; dst is as wanted inside its valid region and nothing else has changed."""
    case.run()
    for name, t in tiles_of(case):
        want = before[name].copy()
        if name == "dst":
            want[: out.shape[0], : out.shape[1]] = out
        assert_codes(t.dtype, case.get(name), want, what)


def encoded(dtype: str, values: list[Number], shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    d = DTYPES[dtype]
    if dtype in ("f32", "f16"):
        made = np.array(values, np.float64).astype(np.float32 if dtype == "f32" else np.float16)
        return made.view(f"u{d.bits // 8}").reshape(shape)
    codes = [encoding.encode(d, v) for v in values]
    return np.array(codes, np.uint64).astype(f"u{d.bits // 8}").reshape(shape)


def check(
    case: Case, valid: tuple[int, int], scalar: Number | None = None, what: object = "", **given: Any
) -> None:  # fmt: skip
    """`given` are values for the first elements of the sources."""
    name, dst = case.row.name, case.args["dst"]
    sources = [o.name for o in case.row.operands if o.role in ("in", "inout")]
    before = prepare(case, valid)
    for source, values in given.items():
        before[source][: valid[0], : valid[1]] = encoded(case.args[source].dtype, values, valid)
        case.set(source, before[source])
    dtype = next(t.dtype for n, t in tiles_of(case) if n in sources)
    columns: list[list[Number]] = []
    for source in sources:
        if isinstance(case.args[source], Tile):
            codes = before[source][: valid[0], : valid[1]]
            columns.append(numbers(case.args[source].dtype, codes))
        else:
            case.args[source] = scalar_for(case, dtype) if scalar is None else scalar
            columns.append([case.args[source]] * (valid[0] * valid[1]))
    want = WANT[name]
    arith = Arith(dtype, case.isa, dst.dtype)
    out = [want(arith, *xs) for xs in zip(*columns, strict=True)]
    finish(case, before, encoded(dst.dtype, out, valid), (name, case.isa, valid, what))


@pytest.mark.parametrize("name", [n for n in WANT if n != "tpows"])
def test_rows(name: str) -> None:
    for k, plan in enumerate(sampled_plans(name)):
        check(Case(plan, k), VALID[k % len(VALID)])
        if k % 4 == 0:
            check(Case(plan, k + 1000), (5, 37))


def test_scalar_power() -> None:
    for k, plan in enumerate(sampled_plans("tpows")):
        check(Case(plan, k), VALID[k % 5])
        for exponent in (2, 0, 1):
            check(Case(plan, k), (3, 9), exponent, exponent)


@pytest.mark.parametrize(
    "dtype,base,exponent,want",
    [("i32", 0, -1, -(1 << 31)), ("i32", 2, -1, 0), ("i32", -3, 3, -27), ("i32", 10, 10, -(1 << 31)),
     ("u8", 5, 13, 5**13 % 256), ("u8", 5, 22, 0), ("u8", 255, 200, 0)],
)  # fmt: skip
def test_integer_scalar_power_is_a_cast(dtype: str, base: int, exponent: int, want: int) -> None:
    plan = next(p for p in sampled_plans("tpows") if str(p.operands["dst"][0].dtype) == dtype)  # type: ignore[attr-defined]
    case = Case(plan)
    case.set("base", np.full((16, 64), base & 0xFFFFFFFF, np.uint32))
    case.args["exp"] = exponent
    case.run()
    got = case.get("dst")
    assert set(got.view(np.int32 if dtype == "i32" else np.uint8).ravel().tolist()) == {want}


@pytest.mark.parametrize("name", ["taddreluconv", "tsubreluconv"])
def test_narrowing(name: str) -> None:
    """f32 and f16 sums round in the source type; i16 sums are exact."""
    for k, plan in enumerate(sampled_plans(name)):
        case, valid = Case(plan, k), VALID[k % 5]
        before = prepare(case, valid)
        if k % 3 == 0:  # sums in the range of i8, where the two roundings show
            for n in ("src0", "src1"):
                t = case.args[n]
                near = case.rng.integers(-64 << 5, 64 << 5, t.shape) / 32.0
                before[n] = encoded(t.dtype, [float(v) for v in near.ravel()], t.shape)
                case.set(n, before[n])
        dtype = case.args["src0"].dtype
        x, y = (numbers(dtype, before[n][: valid[0], : valid[1]]) for n in ("src0", "src1"))
        out: list[int] = []
        for p, q in zip(x, y, strict=True):
            v = p + q if name == "taddreluconv" else p - q
            v = Arith(dtype, "cpu").element(v) if isinstance(v, float) else v
            out.append(encoding.encode(case.args["dst"].dtype, relu(v), "RINT", saturate=True))
        codes = np.array(out, np.uint64).reshape(valid).astype(before["dst"].dtype)
        finish(case, before, codes, (name, dtype, valid))


@pytest.mark.parametrize("scale", [0.0009765625, 3.7e-5, -0.5, 1e30])
def test_add_dequantise_relu(scale: float) -> None:
    f = np.float32
    for k, plan in enumerate(sampled_plans("tadddeqrelu")):
        case, valid = Case(plan, k), VALID[k % 4 + 1]
        before = prepare(case, valid)
        case.args["deqScale"] = single(scale)
        x, y = (numbers("i32", before[n][: valid[0], : valid[1]]) for n in ("src0", "src1"))
        out: list[int] = []
        for p, q in zip(x, y, strict=True):
            total = f(_wrapped(p + q, 32, True))
            if case.isa == "cpu":
                half = encoding.decode("f16", encoding.encode("f16", float(total * f(scale))))
                out.append(encoding.encode("f16", float(relu(half))))
            else:
                v = total * f(2.0**-17) * f(scale) * f(2.0**17)
                out.append(encoding.encode("f16", float(relu(v)), "RINT", saturate=True))
        finish(case, before, np.array(out, np.uint16).reshape(valid), (case.isa, scale))


def test_fill() -> None:
    for k, plan in enumerate(sampled_plans("texpands")):
        case, valid = Case(plan, k), VALID[k % len(VALID)]
        before = prepare(case, valid)
        dtype = case.args["dst"].dtype
        case.args["scalar"] = scalar_for(case, dtype)
        finish(case, before, np.full(valid, encoding.encode(dtype, case.args["scalar"])), (dtype, valid))


@pytest.mark.parametrize(
    "type_text", ["!pto.tile_buf<mat, 32x64xf16, valid=3x5>", "!pto.conv_tile<mat, 1x4x8x8x16xf16, NC1HWC0>"]
)
def test_fill_outside_vec(type_text: str) -> None:
    """A mat tile and a convolution tile are filled as a whole."""
    from pto.asm.type_text import parse_type

    plan = next(p for p in sampled_plans("texpands") if str(p.operands["dst"][0].dtype) == "f16")  # type: ignore[attr-defined]
    case = Case(plan.replace(operands={**plan.operands, "dst": (parse_type(type_text),)}))
    case.args["scalar"] = -2.5
    case.run()
    dst = case.args["dst"]
    rows = dst.rows if isinstance(dst, Tile) else math.prod(dst.dims[:-1])
    cols = dst.cols if isinstance(dst, Tile) else dst.dims[-1]
    assert (case.get("dst", (rows, cols)) == encoding.encode("f16", -2.5)).all()


def test_scalar_takes_the_element_type() -> None:
    """An f32 slope is rounded to f16, an i32 mask keeps the low bits of an i8."""
    for name, dtype, operand, given_, used in (
        ("tlrelu", "f16", "slope", 0.1, float(np.float16(0.1))), ("tands", "i8", "scalar", 0x1F3, -13),
    ):  # fmt: skip
        plan = next(p for p in sampled_plans(name) if str(p.operands["dst"][0].dtype) == dtype)  # type: ignore[attr-defined]
        results: list[Any] = []
        for value in (given_, used):
            case = Case(plan, 5)
            case.random("src")
            case.args[operand] = value
            case.run()
            results.append(case.get("dst"))
        assert (results[0] == results[1]).all(), name


@pytest.mark.parametrize("name", ["trems", "tfmods"])
def test_zero_scalar_writes_nothing(name: str) -> None:
    for plan in sampled_plans(name)[:12]:
        case = Case(plan)
        before = prepare(case, (5, 37))
        case.args["scalar"] = 0 if DTYPES[case.args["dst"].dtype].is_int else 0.0
        finish(case, before, before["dst"][:0, :0], name)


@pytest.mark.parametrize("name", ["trem", "tfmod", "trems", "tfmods"])
@pytest.mark.parametrize("count", [8, 2**20, 2**29, 2**45])
def test_remainders(name: str, count: int) -> None:
    """Exact multiples of either sign, and quotients from small to more than f32 has digits."""
    for dtype in ("f32", "f16", "bf16"):
        plan = next(p for p in sampled_plans(name) if str(p.operands["dst"][0].dtype) == dtype)  # type: ignore[attr-defined]
        case = Case(plan, count)
        a = Arith(dtype, "cpu")
        y = [float(a.element(v)) for v in case.rng.choice([0.5, -1.5, 3.0, 0.875, -0.37], 256)]
        factors = case.rng.integers(-count, count, 256) * case.rng.choice([1.0, 1.1], 256)
        x = [
            v if math.isfinite(v) else 1.0
            for v in (a.element(float(f * v)) for f, v in zip(factors, y, strict=True))
        ]
        if name in ("trem", "tfmod"):
            check(case, (16, 16), None, dtype, src0=x, src1=y)
        else:
            check(case, (16, 16), y[0], dtype, src=x)


def test_f16_exp_and_pow_round_twice() -> None:
    """Numbers whose exponential or power lies so near the middle between two f16 that f32 decides."""
    for name, values in (
        ("texp", {"src": 0.007297515869140625}),
        ("tpow", {"base": 2.880859375, "exp": 0.7041015625}),
    ):
        plan = next(p for p in sampled_plans(name) if str(p.operands["dst"][0].dtype) == "f16")  # type: ignore[attr-defined]
        exact = math.exp(values["src"]) if name == "texp" else math.pow(values["base"], values["exp"])
        assert np.float16(exact) != np.float16(np.float32(exact))
        check(Case(plan), (1, 1), None, name, **{n: [v] for n, v in values.items()})


def test_reversed_division() -> None:
    forms = {isinstance(Case(p).args["src"], Tile) for p in sampled_plans("tdivs")}
    assert forms == {True, False}


def test_difference_of_small_integers_is_not_wrapped_before_relu() -> None:
    """u8 0 - 1 is 0; i16 21878 - (-17940) keeps its low bits."""
    for dtype, x, y, want in (("u8", 0, 1, 0), ("i16", 21878, -17940, -25718), ("i32", 2**31 - 1, -1, 0)):
        plan = next(p for p in sampled_plans("tsubrelu") if str(p.operands["dst"][0].dtype) == dtype)  # type: ignore[attr-defined]
        case = Case(plan)
        for name, value in (("src0", x), ("src1", y)):
            case.set(name, np.full((16, 64), encoding.encode(dtype, value), np.uint64))
        case.run()
        assert encoding.decode(dtype, int(case.get("dst")[0, 0])) == want


def test_in_place() -> None:
    """The destination may be any source."""
    for name in ("tadd", "tmul", "taddc", "tadds"):
        plan = sampled_plans(name)[0]
        for source in [o.name for o in plan.row.operands if o.role == "in" and "tile" in o.kinds]:
            apart, joined = Case(plan, 3), Case(plan, 3)
            for case in (apart, joined):
                for n, _ in tiles_of(case):
                    case.random(n)
            joined.args["dst"] = joined.args[source]
            apart.run()
            joined.run()
            assert (apart.get("dst") == joined.get("dst")).all()


@pytest.mark.parametrize("name", ROWS)
def test_shadow_run(name: str) -> None:
    """In float64, rounded only at the end, the results are close to those of the element type."""
    for plan in {str(p.operands["dst"][0]): p for p in sampled_plans(name)}.values():
        case, shadow = Case(plan, 4), Case(plan, 4)
        dtype = case.args["dst"].dtype
        shadow.core.port = Doubles()
        for made in (case, shadow):
            for n, _ in tiles_of(made):
                made.random(n)
            made.args.update((n, 0.75) for n, v in made.args.items() if isinstance(v, float))
            made.run()
        if not DTYPES[dtype].is_float:
            assert (case.get("dst") == shadow.get("dst")).all() or name in NARROW
            continue
        got, want = (np.array(numbers(dtype, c.get("dst"))) for c in (shadow, case))
        known = np.isfinite(got) & np.isfinite(want)
        if name not in ("trem", "trems", "tfmod", "tfmods"):
            size = np.maximum(np.abs(want), 16.0)[known]  # sums of numbers of size 16 cancel
            assert (np.abs(got - want)[known] <= 2.0 ** (2 - DTYPES[dtype].man) * size).all(), (name, dtype)


EXACT = [n for n in WANT if n not in ("texp", "tlog", "tpow", "tpows", "tsqrt", "trsqrt")]


@examples(100)
@given(st.data())
def test_any_codes(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(EXACT))
    plan = data.draw(st.sampled_from(sampled_plans(name)))
    valid = data.draw(st.tuples(st.integers(0, 16), st.integers(0, 20)))
    check(Case(plan, data.draw(st.integers(0, 2**32))), valid)


def test_every_meaning_of_the_families_is_tested() -> None:
    regular = {
        r.name for r in isa.rows() if r.family in ("elementwise-tile-tile", "tile-scalar-and-immediate")
    } - {"tcmp", "tcmps", "tsel", "tsels", "tcvt"}  # fmt: skip
    assert regular == set(ROWS)


def test_equal_parts_are_computed_once() -> None:
    assert len(compiled("where(fmod(x, y) != 0, fmod(x, y) + y, fmod(x, y))")._steps) == 4
