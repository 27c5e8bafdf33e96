"""The fix-pipe of pointers against one number at a time: every mode, activation, layout and conversion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

from pto import isa
from pto.engine.memory import Pointer
from pto.engine.reference.core import Core, RunError
from pto.engine.reference.grid import Cluster
from pto.ir.types import PtrType
from pto.isa.dtypes import DTYPES
from pto.isa.encoding import decode, encode, round_integral
from pto.isa.profiles import profile
from pto.witness.plan import Plan, _legal_dtypes, make_attribute, read_type, violated, with_element

from ..rows import Array, Doubles, assert_codes, mixed_codes, random_codes
from ..test_matmul import f32
from .cases import plans_of, shown
from .fractals import Bench, Place, element, read, write

ROWS = ("mte_l0c_l1", "mte_l0c_gm", "mte_l0c_ub")
TARGETS = (
    "f32", "f16", "bf16", "i32", "u32", "i16", "u16", "i8", "u8", "s4", "hif8", "f8e4m3", "f8e5m2",
)  # fmt: skip
MODES: tuple[str, ...] = next(a for a in isa.row("mte_l0c_l1").attrs if a.name == "quant_mode").choices  # type: ignore[union-attr]
PLAIN = ("f32_f16", "f32_bf16", "f322f16", "f322bf16")
FB = "!pto.ptr<{0}, fb>"


def build(
    row: str, column: str, src: str, dst: str, types: dict[str, str] | None = None, **attrs: Any
) -> Plan | None:
    """An instance with these element types, further operands and attributes; None where that is not legal."""
    base = next(p for p in plans_of(row, column) if element(p, "src") == src)
    operands = dict(base.operands)
    target = operands["dst"][0]
    assert isinstance(target, PtrType)
    operands["dst"] = (with_element(target, dst),)
    operands |= {name: (read_type(text, column),) for name, text in (types or {}).items()}
    declared = {a.name: a for a in base.row.attrs}
    made = {k: make_attribute(declared[k], v) for k, v in attrs.items() if v is not None}
    plan = base.replace(operands=operands, attrs=base.attrs | made)
    return plan if not violated(plan) and _legal_dtypes(plan) else None


class Store(Bench):
    """A write-back of an m x n matrix; `expected` gives the elements one at a time."""

    def __init__(
        self, plan: Plan, m: Any = 5, n: Any = 35, seed: Any = 0, special: Any = True, **args: Any
    ) -> None:
        super().__init__(plan, seed, m=m, n=n, src_stride=m + 3, dst_stride=n + 5, sid=0, l2_cache_ctrl=0)
        self.args.update(args)
        for name in ("sid", "l2_cache_ctrl"):
            if name not in {d.name for d in self.row.operands}:
                del self.args[name]
        self.m, self.n = m, n
        dtype = self.pointer("src").dtype
        make = mixed_codes if special else random_codes
        self.codes = make(self.rng, dtype, (m, n))
        if dtype == "f32" and special:  # around the limits of narrow types
            some = self.rng.random((m, n)) < 0.3
            big = self.rng.uniform(-1, 1, (m, n)) * self.rng.choice([300.0, 7e4, 1e5, 4e4, 500.0], (m, n))
            self.codes = np.where(some, big.astype(np.float32).view(np.uint32), self.codes)
        write(self.pointer("src"), self.source(), self.codes)
        self.words: list[int] = [0] * n
        self.slopes: list[float] = [0.0] * n
        self.parameters()

    def source(self, step: int = 1) -> Place:
        stride = self.args["src_stride"]
        return lambda r, c: (c // 16 * stride + r * step) * 16 + c % 16

    def parameters(self) -> None:
        payload = self.args.get("quant_payload")
        if isinstance(payload, Pointer):
            for j in range(self.n):
                scale = float(np.float32(self.rng.uniform(-2, 2) * self.rng.choice([1, 0.01, 300])))
                code = encode(payload.dtype, scale)
                upper = int(self.rng.integers(0, 1 << 31))
                self.words[j] = upper << 32 | code
            words = np.array([self.words], np.uint64)
            write(Pointer(payload.buffer, payload.offset, "u64"), lambda r, c: c, words)
        slope = self.args.get("relu_payload")
        if isinstance(slope, Pointer):
            codes = random_codes(self.rng, slope.dtype, (1, self.n))
            step = 32 // DTYPES[slope.dtype].bits
            write(slope, lambda r, c: c * step, codes)
            self.slopes = [float(decode(slope.dtype, int(code))) for code in codes[0]]
        elif slope is not None:
            self.slopes = [float(slope)] * self.n

    # -- one number ------------------------------------------------------------------------------------------

    def scale(self, j: int) -> tuple[float, int, int, bool]:
        """Scale, offset, shift and sign for a column."""
        payload = self.args["quant_payload"]
        if not isinstance(payload, Pointer):
            return f32(float(payload)), 0, 0, self.pointer("dst").dtype == "i8"
        word = self.words[j]
        low = word & 0xFFFFFFFF
        if payload.dtype != "f32":
            low = encode("f32", decode(payload.dtype, word & 0xFFFF))
        return (
            float(decode("f32", low >> 13 << 13)),
            word >> 37 & 0x1FF,
            word >> 32 & 15,
            bool(word >> 46 & 1),
        )

    def quantised(self, x: Any, j: int) -> Any:
        mode = self.op.attr("quant_mode")
        if mode is None or mode in PLAIN:
            return x
        scale, offset, shift, signed = self.scale(j)
        dtype = self.pointer("dst").dtype
        if mode.startswith("shifts322s16"):
            low = x >> shift + 1 & 0xFFFF
            return low - (1 << 16) if low >> 15 else low
        y = f32(f32(Fraction(x) if isinstance(x, int) else x) * scale)
        if DTYPES[dtype].is_float:
            return y
        z = f32(y + offset)
        if math.isnan(z):
            return 0
        low, high = DTYPES[dtype].int_range
        if dtype in ("i8", "u8") and not mode.startswith("deqs32_int"):
            low, high = (-128, 127) if signed else (0, 255)
        if math.isinf(z):
            return high if z > 0 else low
        return max(low, min(high, round_integral(z, "RINT")))

    def rectified(self, x: Any, j: int) -> Any:
        mode = self.op.attr("relu_mode")
        if mode in (None, "no_relu"):
            return x
        if mode == "normal_relu":
            return x if x > 0 else type(x)(0)
        if x >= 0:
            return x
        return f32(x * self.slopes[j]) if isinstance(x, float) else float(x) * self.slopes[j]

    def number(self, r: int, c: int) -> Any:
        x = self.rectified(self.quantised(decode(self.pointer("src").dtype, int(self.codes[r, c])), c), c)
        if "clip" in self.args and not (isinstance(x, float) and math.isnan(x)):
            x = min(x, self.args["clip"])
        return x

    def expected(self, r: int, c: int) -> int:
        x, dtype = self.number(r, c), self.pointer("dst").dtype
        d = DTYPES[dtype]
        if d.is_int:
            if isinstance(x, float):
                low, high = (-128, 255) if d.bits == 8 else d.int_range
                x = (
                    0
                    if math.isnan(x)
                    else low
                    if x < low
                    else high
                    if x > high
                    else round_integral(x, "RINT")
                )
            return encode(dtype, int(x))
        x = float(x)
        mode, sat = self.op.attr("quant_mode"), self.op.attr("sat_mode")
        top = d.max_finite
        if dtype == "f32" or sat == "nosat":
            return encode(dtype, x)
        control = bool(self.core.registers.get("CTRL", 0) >> 48 & 1) and dtype in ("f16", "bf16")
        if sat == "sat" or control:
            if math.isnan(x):
                return encode(dtype, x if sat and self.op.attr("preserve_nan") and d.nan else 0.0)
            return encode(dtype, max(-top, min(top, x)))
        clamps = mode is not None and (math.isfinite(x) or mode.startswith("deqf16"))
        return encode(dtype, max(-top, min(top, x)) if clamps and not math.isnan(x) else x)

    def matrix(self) -> Array:
        codes = [[self.expected(r, c) for c in range(self.n)] for r in range(self.m)]
        return np.array(codes, np.uint64).astype(f"u{max(8, DTYPES[self.pointer('dst').dtype].bits) // 8}")

    def check(self, place: Place | None = None, pointer: Pointer | None = None) -> None:
        """Run it; the destination, by rows where no place is given, holds the elements and nothing else."""
        stride = self.args["dst_stride"]
        place = place or (lambda r, c: r * stride + c)
        dst = pointer or self.pointer("dst")
        old = read(dst, place, self.m, self.n)
        before = dst.buffer.data.copy()
        self.execute()
        assert_codes(dst.dtype, read(dst, place, self.m, self.n), self.matrix(), shown(self.plan))
        write(dst, place, old)
        assert (dst.buffer.data == before).all(), f"{shown(self.plan)} wrote beside its matrix"


# -- quantisation --------------------------------------------------------------------------------------------


@cache
def quant_plans(column: str) -> list[Plan]:
    """Every mode with every type of payload and every destination type it may have."""
    return list(_quant_plans(column))


def _quant_plans(column: str) -> Iterator[Plan]:
    for mode in MODES:
        vector = mode.endswith("_vec")
        payloads = [FB.format(t) if vector else t for t in ("f32", "f16", "bf16")]
        if mode in ("f322f16", "f322bf16"):
            payloads = [""]
        for src in ("f32", "i32"):
            for dst in TARGETS:
                for payload in payloads:
                    types = {"quant_payload": payload} if payload else {}
                    plan = build("mte_l0c_l1", column, src, dst, types, quant_mode=mode, layout="nz2nd")
                    if plan is not None:
                        yield plan


@pytest.mark.parametrize("column", ["cpu", "a2a3", "a5"])
def test_quantisation(column: str) -> None:
    seen = set()
    for n, plan in enumerate(some(quant_plans(column), 3, by=lambda p: p.attrs["quant_mode"])):
        seen.add(plan.attrs["quant_mode"].value)  # type: ignore[attr-defined]
        args: dict[str, Any] = {}
        if "quant_payload" in plan.operands and not isinstance(plan.operands["quant_payload"][0], PtrType):
            args["quant_payload"] = [0.5, -1.5, 0.0078125, 300.0][n % 4]
        Store(plan, 3, 19, seed=n, **args).check()
    small = {m for m in MODES if "hif8" in m or "fp8" in m}
    assert set(MODES) - seen == (small if column == "a2a3" else set())


@pytest.mark.parametrize("control", [1 << 60, 1 << 60 | 1 << 48])
def test_plain_conversions(control: int) -> None:
    """Without a mode: the same type as it is, or a narrower float; CTRL may saturate."""
    for column in ("cpu", "a2a3", "a5"):
        for src, dst in (("f32", "f32"), ("i32", "i32"), ("f32", "f16"), ("f32", "bf16")):
            plan = build("mte_l0c_l1", column, src, dst, layout="nz2nd")
            assert plan is not None
            case = Store(plan, seed=control & 1)
            case.core.registers["CTRL"] = control
            case.check()
        for mode in ("f322f16", "qf322bf16_pre_scalar"):
            dst = "f16" if mode.endswith("f16") and "bf16" not in mode else "bf16"
            types = {"quant_payload": "f32"} if "pre" in mode else {}
            plan = build("mte_l0c_l1", column, "f32", dst, types, layout="nz2nd", quant_mode=mode)
            assert plan is not None
            case = Store(plan, seed=5, **({"quant_payload": 1e30} if types else {}))
            case.core.registers["CTRL"] = control
            case.check()


def test_deqf16_has_no_infinity() -> None:
    """Its results stay in the range of f16 even where the scaled number is beyond f32."""
    plan = build(
        "mte_l0c_l1", "a5", "i32", "f16", {"quant_payload": "f32"}, quant_mode="deqf16_scalar", layout="nz2nd"
    )
    assert plan is not None
    case = Store(plan, quant_payload=3e38)
    case.check()
    assert set(np.abs(case.matrix().view(np.float16)).ravel().tolist()) <= {0.0, 65504.0}


def test_unsupported_pairs() -> None:
    assert build("mte_l0c_l1", "a5", "f32", "i8", layout="nz2nd") is None
    assert build("mte_l0c_l1", "a5", "i32", "f16", layout="nz2nd") is None


@pytest.mark.parametrize("sat", ["sat", "nosat", "preserve_nan"])
def test_saturation(sat: str) -> None:
    attrs = (
        {"sat_mode": "sat", "preserve_nan": "preserve_nan"} if sat == "preserve_nan" else {"sat_mode": sat}
    )
    modes = {"f32": "qf322f32_pre_scalar", "f16": "qf322f16_pre_scalar", "bf16": "qf322bf16_pre_scalar",
             "hif8": "qf322hif8_pre_scalar", "f8e4m3": "qf322fp8_pre_scalar", "f8e5m2": "qf322fp8_pre_scalar",
             "i8": "qf322b8_pre_scalar", "u8": "qf322b8_pre_scalar"}  # fmt: skip
    for dst, mode in modes.items():
        types = {"quant_payload": "f32"}
        plan = build("mte_l0c_l1", "a5", "f32", dst, types, quant_mode=mode, layout="nz2nd", **attrs)
        assert plan is not None
        Store(plan, quant_payload=2.0, seed=9).check()
    plan = build("mte_l0c_l1", "a5", "f32", "f16", None, layout="nz2nd", **attrs)
    assert plan is not None
    Store(plan, seed=10).check()


# -- activation ----------------------------------------------------------------------------------------------

DESTINATIONS = (
    ("f32", "f32", None), ("f32", "f16", "qf322f16_pre_scalar"), ("f32", "bf16", None), ("i32", "i32", None),
    ("f32", "i8", "qf322b8_pre_scalar"), ("f32", "u8", "qf322b8_pre_scalar"), ("i32", "i16", "deqs16_scalar"),
)  # fmt: skip


@pytest.mark.parametrize("mode", ["no_relu", "normal_relu", "scalar_relu", "vector_relu"])
def test_relu(mode: str) -> None:
    payloads = {
        "scalar_relu": ("f32", "f16", "bf16"),
        "vector_relu": tuple(FB.format(t) for t in ("f32", "f16", "bf16")),
    }
    for column in ("cpu", "a2a3", "a5"):
        for src, dst, quant in DESTINATIONS:
            for payload in payloads.get(mode, ("",)):
                types = {"quant_payload": "f32"} if quant else {}
                types |= {"relu_payload": payload} if payload else {}
                attrs = {"quant_mode": quant, "relu_mode": mode, "layout": "nz2nd"}
                plan = build("mte_l0c_l1", column, src, dst, types, **attrs)
                assert plan is not None, (column, src, dst, mode)
                args = {"quant_payload": 0.5} if quant else {}
                if mode == "scalar_relu":
                    args["relu_payload"] = 0.25
                Store(plan, 4, 19, seed=11, special=src == "f32", **args).check()


def test_clip() -> None:
    cases = (("f16", "f16", "qf322f16_pre_scalar", 2.5), ("u8", "i16", "qf322b8_pre_scalar", 100),
             ("i8", "i16", "qf322b8_pre_scalar", 3), ("i16", "i16", "deqs16_scalar", -7))  # fmt: skip
    for column in ("cpu", "a5"):
        for dst, clip, quant, value in cases:
            for relu in ("normal_relu", "no_relu"):
                types = {"quant_payload": "f32", "clip": clip}
                src = "i32" if quant.startswith("deqs") else "f32"
                plan = build(
                    "mte_l0c_l1", column, src, dst, types, quant_mode=quant, relu_mode=relu, layout="nz2nd"
                )
                assert plan is not None, dst
                Store(plan, quant_payload=1.5, clip=value, seed=12).check()


# -- places --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_layouts(name: str) -> None:
    for column in isa.row(name).isas:  # type: ignore[union-attr]
        types = {"sub_blockid": "i64"} if name == "mte_l0c_ub" else {}
        args = {"sub_blockid": 0} if types else {}
        by_rows = build(name, column, "f32", "f16", types, layout="nz2nd")
        blocks = build(name, column, "f32", "f16", types)
        columns = build(name, column, "f32", "f16", types | {"layout_arg": "i64"}, layout="nz2dn")
        assert by_rows is not None and blocks is not None and columns is not None
        Store(by_rows, **args).check()
        Store(by_rows, 20, 33, **args, src_stride=32, dst_stride=33).check()
        Store(blocks, 20, 33, **args, dst_stride=400).check(lambda r, c: c // 16 * 400 + r * 16 + c % 16)
        Store(columns, 7, 20, **args, layout_arg=1, dst_stride=9).check(lambda r, c: c * 9 + r)
        # Every third row of the source.
        case = Store(columns, 7, 20, **args, layout_arg=3, src_stride=40, dst_stride=9)
        write(case.pointer("src"), case.source(3), case.codes)
        case.check(lambda r, c: c * 9 + r)


@pytest.mark.parametrize(
    ("dst", "mode", "width"),
    [("i8", "qf322b8_pre_scalar", 32), ("f32", None, 16), ("s4", "qf322s4_pre_scalar", 64)],
)
def test_blocks_of_other_types(dst: str, mode: str | None, width: int) -> None:
    """Blocks of 16 columns at least, of 32 bytes for narrow types."""
    types = {"quant_payload": "f32"} if mode else {}
    plan = build("mte_l0c_l1", "cpu", "f32", dst, types, quant_mode=mode)
    assert plan is not None
    args = {"quant_payload": 0.5} if mode else {}
    Store(plan, 6, 70, dst_stride=448, **args).check(lambda r, c: c // width * 448 + r * width + c % width)


def test_split_channels() -> None:
    """nz2nz keeps blocks of 16 columns, or halves them."""
    plan = build("mte_l0c_l1", "a5", "f32", "f32", layout="nz2nz")
    split = build("mte_l0c_l1", "a5", "f32", "f32", {"layout_arg": "i64"}, layout="nz2nz")
    assert plan is not None and split is not None
    Store(plan, 6, 35, dst_stride=100).check(lambda r, c: c // 16 * 100 + r * 16 + c % 16)
    Store(split, 6, 35, dst_stride=50, layout_arg=1).check(lambda r, c: c // 8 * 50 + r * 8 + c % 8)
    Store(split, 6, 35, dst_stride=100, layout_arg=0).check(lambda r, c: c // 16 * 100 + r * 16 + c % 16)


def test_loop3() -> None:
    loops = {name: "i64" for name in ("loop3_count", "loop3_src_stride", "loop3_dst_stride")}
    plan = build("mte_l0c_gm", "a5", "f32", "f16", loops, layout="nz2nd")
    assert plan is not None
    for count in (0, 1, 3):
        case = Store(plan, 4, 18, loop3_count=count, loop3_src_stride=20, loop3_dst_stride=150, special=False)
        src, dst = case.pointer("src"), case.pointer("dst")
        before = read(dst, lambda r, c: c, 1, 700)
        want = before.copy()
        for t in range(count):
            place = case.source()
            codes = read(src, lambda r, c, t=t, place=place: t * 320 + place(r, c), 4, 18)
            for (r, c), code in np.ndenumerate(codes):
                want[0, t * 150 + r * 23 + c] = encode("f16", decode("f32", int(code)))
        case.execute()
        assert_codes("f16", read(dst, lambda r, c: c, 1, 700), want, count)


# -- atomic updates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["add", "max", "min"])
def test_atomic(how: str) -> None:
    cases = (("f32", "f32", "f32", None), ("f32", "f16", "f16", None), ("f32", "bf16", "bf16", None),
             ("i32", "i32", "s32", None), ("i32", "i16", "s16", "deqs16_scalar"), ("i32", "i8", "s8", "req8_scalar"))  # fmt: skip
    for src, dst, kind, quant in cases:
        types = {"quant_payload": "f32"} if quant else {}
        attrs = {"atomic_type": kind, "atomic_op": how, "quant_mode": quant, "layout": "nz2nd"}
        plan = build("mte_l0c_gm", "a5", src, dst, types, **attrs)
        assert plan is not None
        case = Store(plan, 3, 18, special=False, **({"quant_payload": 0.5} if quant else {}))
        place: Place = lambda r, c: r * 23 + c  # noqa: E731
        old = random_codes(case.rng, dst, (3, 18))
        write(case.pointer("dst"), place, old)
        new = case.matrix()
        want = np.zeros_like(new)
        for at, code in np.ndenumerate(new):
            x, y = decode(dst, int(old[at])), decode(dst, int(code))
            total = {"add": x + y, "max": max(x, y), "min": min(x, y)}[how]
            want[at] = encode(dst, f32(total) if isinstance(total, float) else total)
        case.execute()
        assert_codes(dst, read(case.pointer("dst"), place, 3, 18), want, (dst, how))


# -- vector cores --------------------------------------------------------------------------------------------


def clustered(case: Bench) -> list[Core]:
    case.core.kind = "cube"
    case.core.cluster = Cluster(0)
    vectors = [Core(profile(case.isa), kind="vector", sub=n) for n in (0, 1)]
    case.core.cluster.cores = [case.core, *vectors]
    return vectors


def test_one_vector_core() -> None:
    plan = build("mte_l0c_ub", "a5", "f32", "f16", {"sub_blockid": "i64"}, layout="nz2nd")
    assert plan is not None
    for sub in (0, 1):
        case = Store(plan, sub_blockid=sub)
        vectors = clustered(case)
        case.check(pointer=Pointer(vectors[sub].buffers["vec"], case.base, "f16"))
        assert not vectors[1 - sub].buffers["vec"].data.any()
    case = Store(plan, sub_blockid=2)
    with pytest.raises(RunError, match=r"expects sub_blockid to be 0..1, got 2"):
        case.execute()


@pytest.mark.parametrize("layout", ["nz2nd", None])
@pytest.mark.parametrize(("split", "m", "n"), [("split_m", 10, 20), ("split_n", 5, 64)])
def test_split(split: str, m: int, n: int, layout: str | None) -> None:
    base = next(
        p
        for p in plans_of("mte_l0c_ub", "a5")
        if element(p, "src") == "f32" and str(getattr(p.attrs.get("dst_mode"), "value", "")) == split
    )
    declared = next(a for a in base.row.attrs if a.name == "layout")
    plan = base.replace(attrs=base.attrs | ({"layout": make_attribute(declared, layout)} if layout else {}))
    assert not violated(plan)
    case = Store(plan, m, n, dst_stride=200 if layout is None else n)
    vectors = clustered(case)
    case.execute()
    whole = case.matrix()
    rows, cols = (m // 2, n) if split == "split_m" else (m, n // 2)
    parts = np.split(whole, 2, axis=0 if split == "split_m" else 1)
    for core, part in zip(vectors, parts, strict=True):
        place: Place = (lambda r, c: r * n + c) if layout else (lambda r, c: c // 16 * 200 + r * 16 + c % 16)
        got = read(Pointer(core.buffers["vec"], case.base, "f32"), place, rows, cols)
        assert_codes("f32", got, part, split)
    case = Store(plan, m + 1, n + 1)
    with pytest.raises(RunError, match=r"expects an even m|expects n to be a multiple of 32"):
        case.execute()


# -- errors and watching -------------------------------------------------------------------------------------


def refuses(case: Bench, text: str) -> None:
    with pytest.raises(RunError, match=text):
        case.execute()


def test_refused() -> None:
    plan = build("mte_l0c_l1", "a5", "f32", "f32", layout="nz2nd")
    assert plan is not None
    for name in ("m", "n"):
        case = Store(plan)
        case.args[name] = 0
        refuses(case, f"mte_l0c_l1: expects {name} to be at least 1, got 0")
        case.args[name] = 1 << 40
        refuses(case, f"mte_l0c_l1: expects {name} to fit 16 bits, got {1 << 40}")
    case = Store(plan)
    case.pointer("dst").offset += 16
    refuses(case, "expects dst to be a multiple of 32 bytes, got address 4112")
    case = Store(plan)
    case.pointer("src").offset += 32
    refuses(case, "expects src to be a multiple of 64 bytes, got address 4128")
    case = Store(plan)
    case.args["src_stride"] = 1 << 14
    refuses(case, "of L0C, which has 262144 bytes")
    case = Store(plan)
    case.args["dst_stride"] = 1 << 20
    refuses(case, "of L1, which has 524288 bytes")
    for clause, unit in (("quant", 128), ("relu", 64)):
        attrs = {"quant_mode": "qf322f16_pre_vec"} if clause == "quant" else {"relu_mode": "vector_relu"}
        plan = build(
            "mte_l0c_l1", "a5", "f32", "f16", {f"{clause}_payload": FB.format("f32")}, layout="nz2nd", **attrs
        )
        assert plan is not None
        case = Store(plan)
        case.pointer(f"{clause}_payload").offset += 32
        refuses(case, f"expects {clause}_payload to be a multiple of {unit} bytes, got address 288")
    plan = build("mte_l0c_gm", "a5", "f32", "f32", layout="nz2nd", atomic_type="f16", atomic_op="add")
    assert plan is not None
    refuses(Store(plan), "expects an atomic type of 32 bits for f32, got f16")


def test_unit_flag_changes_no_value() -> None:
    for flag in ("check_only", "check_and_clear"):
        plan = build("mte_l0c_l1", "a5", "f32", "f16", layout="nz2nd", unit_flag=flag)
        assert plan is not None
        Store(plan).check()


def test_shadow_run() -> None:
    """In a float64 shadow run only stores round."""
    for plan in some(quant_plans("a5"), 3, by=lambda p: p.attrs["quant_mode"]):
        args: dict[str, Any] = {}
        if "quant_payload" in plan.operands and not isinstance(plan.operands["quant_payload"][0], PtrType):
            args["quant_payload"] = 0.5
        plain, shadow = (Store(plan, 2, 5, special=False, **args) for _ in range(2))
        shadow.core.port = Doubles()
        plain.execute()
        shadow.execute()
        dtype = element(plan, "dst")
        got, want = (
            [
                float(decode(dtype, int(v)))
                for v in read(c.pointer("dst"), lambda r, c: r * 10 + c, 2, 5).ravel()
            ]
            for c in (shadow, plain)
        )
        step = {"bf16": 0.01, "f8e4m3": 0.07, "f8e5m2": 0.13, "hif8": 0.13}.get(dtype, 1e-3)
        np.testing.assert_allclose(got, want, rtol=step, atol=1.01 if DTYPES[dtype].is_int else 1e-3)
