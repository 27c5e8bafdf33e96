"""Run one instruction on given data, outside any program: the bench of the executor tests.

    case = Case(plan)                          # a legal instance of a row, see pto.witness
    case.tile("src0").v_row = 3                # change descriptors before the run
    case.set("src0", codes)                    # codes of the whole physical tile
    case.run()
    case.get("dst")                            # codes of the whole physical tile afterwards

Without a program: nothing is parsed or verified.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from tests.sampling import some

from pto import isa
from pto.engine import elements
from pto.engine.memory import ConvTile, Pointer, Tile, View
from pto.engine.reference.core import Core
from pto.engine.reference.instr import Instr, Place, Port
from pto.engine.reference.registry import find
from pto.engine.region import Region
from pto.ir.core import Operation
from pto.ir.facts import left_layout
from pto.ir.types import ConvTileType, MemRefType, PtrType, ScalarType, TileBufType, Type, ViewType
from pto.isa import encoding
from pto.isa import tile as tiles
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import Profile, profile
from pto.isa.row import Row
from pto.witness.plan import Plan, _legal_dtypes, plans, violated
from pto.witness.programs import build

Array = np.ndarray[Any, Any]
#: Bytes around every operand in its buffer, checked to be untouched.
GUARD = 64
FILL = 0xA5


@cache
def _machine(isa: str, most: int) -> Profile:
    whole = profile(isa)
    return whole.override({loc: min(size, most) for loc, size in whole.capacity.items()})


class Case:
    """One instance of an instruction with storage for its operands."""

    #: Bytes of a buffer of the core, at most: whole ones take most of the time of a test.
    capacity = 1 << 16

    def __init__(self, plan: Plan, seed: int = 0) -> None:
        self.plan = plan
        self.row: Row = plan.row
        self.isa = plan.isa
        self.rng = np.random.default_rng(seed)
        self.out = io.StringIO()
        self.core = Core(_machine(plan.isa, self.capacity), out=self.out)
        self.op = _operation(plan)
        self.args: dict[str, Any] = {}
        self._next: dict[str, int] = {}
        for declared in self.row.operands:
            types = plan.operands.get(declared.name)
            if types is None:
                continue
            made = [self._value(declared.name, i, t) for i, t in enumerate(types)]
            self.args[declared.name] = made if declared.variadic else made[0]

    def _value(self, name: str, at: int, type: Type) -> Any:
        if (name, at) in self.plan.constants:
            return self.plan.constants[name, at]
        if isinstance(type, TileBufType):
            layout = type.layout
            if type.loc == "left":
                layout = left_layout(type, self.core.profile, "layout") or layout
            made = Tile(
                type,
                self.core.buffers[type.loc],
                0,
                (type.v_row or type.rows, type.v_col or type.cols),
                name,
                layout,
            )
            made.address = self._place(type.loc, made.size)
            return made
        if isinstance(type, ConvTileType):
            conv = ConvTile(type, self.core.buffers[type.loc], 0, name)
            conv.address = self._place(type.loc, conv.size)
            return conv
        if isinstance(type, ViewType | MemRefType):
            dims = tuple(d or 16 for d in type.dims)
            strides = [1]
            for d in reversed(dims[1:]):
                strides.insert(0, strides[0] * d)
            return self.view(
                name, dims, tuple(strides[: len(dims)]), str(type.dtype), self.plan.layouts.get(name)
            )
        if isinstance(type, PtrType):
            return Pointer(self.core.gm.add(name, np.full(1 << 16, FILL, np.uint8)), 0, str(type.dtype), name)
        if isinstance(type, ScalarType):
            return 1.0 if type.is_float else 0
        return None

    def _place(self, loc: str, size: int) -> int:
        """The next free address, with a guard before it; the buffer grows, capacities are not the point."""
        buffer = self.core.buffers[loc]
        at = self._next.get(loc, 0) + GUARD
        self._next[loc] = -(-(at + size) // 32) * 32
        end = self._next[loc] + GUARD
        old = buffer.data.size
        buffer.grow(end)
        buffer.limit = buffer.data.size
        if old < buffer.data.size or at == GUARD:
            buffer.data[:] = FILL
        return at

    def used(self, loc: str) -> int:
        """Bytes of a buffer that operands take, with the guard behind them."""
        return self._next.get(loc, 0) + GUARD

    def view(
        self,
        name: str,
        dims: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: str,
        layout: str | None = None,
    ) -> View:
        """A view over a fresh array that holds it exactly."""
        extent = 1 + sum((d - 1) * s for d, s in zip(dims, strides, strict=True))
        size = max(0, -(-extent * DTYPES[dtype].bits // 8))
        return View(
            self.core.gm.add(name, np.full(size, FILL, np.uint8)),
            0,
            dims,
            strides,
            dtype,
            layout and layout.upper(),
            name,
        )

    # -- data -------------------------------------------------------------------------------------------

    def tile(self, name: str) -> Any:
        return self.args[name]

    def set(self, name: str, codes: Array, valid: tuple[int, int] | None = None) -> None:
        """Contents of an operand (unsigned codes), the physical tile or dense view from element (0, 0) on;
        `valid` also sets the valid region."""
        place = self.args[name]
        if valid is not None:
            place.v_row, place.v_col = valid
        codes = np.ascontiguousarray(codes).astype(elements.code_dtype(place.dtype))
        place.region(*codes.shape).store(place.buffer.data, codes)

    def random(self, name: str, codes: bool = False) -> Array:
        """Fill a whole tile with random elements; small numbers, or any bit pattern if `codes`."""
        place = self.args[name]
        made = random_codes(self.rng, place.dtype, place.shape, codes)
        self.set(name, made)
        return made

    def get(self, name: str, shape: tuple[int, int] | None = None) -> Array:
        """Codes of the whole physical tile, or of the first `shape` elements."""
        place = self.args[name]
        region = place.region(*(shape or place.shape))
        return region.load(place.buffer.data, elements.code_dtype(place.dtype)).copy()

    def run(self) -> None:
        execute = find(self.row)
        assert execute is not None, f"{self.row.name} has no executor"
        with np.errstate(all="ignore"):  # as the core runs it
            execute(Instr(self.op, self.args, self.core, "V"))


def random_codes(
    rng: np.random.Generator, dtype: str, shape: tuple[int, int], any_bits: bool = False
) -> Array:
    """Random codes of a type: every bit pattern, or values of modest size."""
    d = DTYPES[dtype]
    if any_bits or d.bits <= 8:
        return (
            rng.integers(0, 1 << d.bits, shape, np.uint64, endpoint=False).astype(elements.code_dtype(dtype))
            if d.bits < 64
            else rng.integers(0, 2**64 - 1, shape, np.uint64)
        )
    if d.is_float:
        return elements.encode(
            dtype, (rng.standard_normal(shape) * 4).astype(np.float32 if d.bits < 64 else np.float64)
        )
    low = -100 if d.kind == "i" else 0
    return rng.integers(low, 100, shape).astype(np.int64).astype(elements.code_dtype(dtype))


def _operation(plan: Plan) -> Operation:
    for op in build(plan).walk():
        if op.row is not None and op.row.name == plan.row.name:
            return op
    raise AssertionError(plan.row.name)


@cache
def column_plans(name: str, column: str) -> list[Plan]:
    """Every legal plan of a row in one column, in the first layout."""
    found = isa.row(name)
    assert found is not None
    return list(plans(found, column))


def sample(plans: list[Plan]) -> list[Plan]:
    """Some plans of each combination of element types, and of each form, column and combination of locations."""

    def of(plan: Plan, fact: str) -> tuple[Any, ...]:
        every = {**plan.operands, **plan.results}
        return tuple((n, str(getattr(t, fact, ""))) for n, types in every.items() for t in types[:1])

    chosen = [
        *some(plans, 4, by=lambda p: of(p, "dtype")),
        *some(plans, 8, by=lambda p: (p.isa, of(p, "loc"))),
    ]
    kept = set(map(id, chosen))
    return [plan for plan in plans if id(plan) in kept]


def every_plan(name: str, layouts: bool = True) -> Iterator[Plan]:
    """Every legal plan of a row: columns x forms x element types, and the layouts its rules allow."""
    found = isa.row(name)
    assert found is not None
    for column in found.isas:
        for plan in column_plans(name, column):
            yield plan
            if layouts:
                yield from filter(is_legal, layout_variants(plan))


def layout_variants(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with its tiles in other layouts, legal or not: one tile changed, or all of them
    equally."""
    names = [n for n, types in plan.operands.items() if any(isinstance(t, TileBufType) for t in types)]
    for blayout, slayout in tiles.LAYOUTS:
        for group in [*([n] for n in names), *([names] if len(names) > 1 else [])]:
            changed = dict(plan.operands)
            for n in group:
                changed[n] = tuple(
                    t.replace(blayout=blayout, slayout=slayout) if isinstance(t, TileBufType) else t
                    for t in plan.operands[n]
                )
            if changed != plan.operands:
                yield plan.replace(operands=changed)


def is_legal(plan: Plan) -> bool:
    return _sound(plan) and not violated(plan) and _legal_dtypes(plan)


def _sound(plan: Plan) -> bool:
    """Return True if every tile type could exist: whole boxes, 32-byte rows or columns."""
    for types in plan.operands.values():
        for t in types:
            if isinstance(t, TileBufType):
                ir, ic = t.box
                line = t.cols if t.blayout == "row_major" else t.rows
                if t.rows % ir or t.cols % ic or (not t.boxed and line * (t.bits or 8) % 256):
                    return False
    return True


# -- shared by the family tests ---------------------------------------------------------------------------


@cache
def some_plans(name: str) -> list[Plan]:
    """The plans of a row that show something new: a column, a form, element types, attributes, or a layout
    of one operand."""
    found: list[Plan] = []
    seen: set[tuple[Any, ...]] = set()
    row = isa.row(name)
    assert row is not None
    for first in (p for column in row.isas for p in column_plans(name, column)):
        for plan in (first, *layout_variants(first)):
            tiles_ = {n: t[0] for n, t in plan.operands.items() if t and isinstance(t[0], TileBufType)}
            shown: set[tuple[Any, ...]] = {
                ("column", plan.isa), ("form", *plan.operands), ("types", *(str(t.dtype) for t in tiles_.values())),
                ("attrs", *(f"{k}={v}" for k, v in sorted(plan.attrs.items(), key=lambda item: item[0]))),
                *((n, t.layout) for n, t in tiles_.items()),
            }  # fmt: skip
            if not shown <= seen and (plan is first or is_legal(plan)):
                seen |= shown
                found.append(plan)
    return sample(found)


def element_type(plan: Plan, name: str) -> str:
    """Element type of a tile operand."""
    found = plan.operands[name][0]
    assert isinstance(found, TileBufType)
    return str(found.dtype)


def sprinkled_codes(
    rng: np.random.Generator, dtype: str, shape: tuple[int, int], share: float = 0.1
) -> Array:
    """Numbers of modest size with few special ones among them; every third row has none."""
    codes = random_codes(rng, dtype, shape)
    special = np.array(special_codes(dtype), np.uint64).astype(codes.dtype)
    chosen = (rng.random(shape) < share) & (np.arange(shape[0]) % 3 != 2)[:, None]
    return np.where(chosen, rng.choice(special, shape), codes)


def same(dtype: str, got: Array, want: Array) -> bool:
    """Return True if codes are equal, any NaN being equal to any other."""
    if got.shape != want.shape:
        return False
    if not DTYPES[dtype].is_float:
        return bool((got == want).all())
    nan = np.isnan(elements.decode(dtype, got)) & np.isnan(elements.decode(dtype, want))
    return bool(((got == want) | nan).all())


def outcome(case: Case, *names: str) -> list[Array]:
    """Run a case and give the codes of the named tiles; nothing else in the buffers may have changed."""
    old = {n: case.get(n) for n in names}
    buffers = [case.core.buffers[loc] for loc in case._next]
    memory = [b.data.copy() for b in buffers]
    with np.errstate(all="ignore"):
        case.run()
    got = [case.get(n) for n in names]
    for n in names:
        case.set(n, old[n])
    for b, before in zip(buffers, memory, strict=True):
        assert (b.data == before).all(), f"{case.row.name} wrote outside {names} in {b.name}"
    for n, codes in zip(names, got, strict=True):
        case.set(n, codes)
    return got


class Doubles(Port):
    """A shadow run in small: floats are read as float64 and rounded only where they are written."""

    exact = False

    def load(self, i: Instr, place: Place, region: Region, dtype: Any) -> Array:
        return _doubled(place, super().load(i, place, region, dtype))

    def load_at(self, i: Instr, place: Place, at: Array, dtype: Any) -> Array:
        return _doubled(place, super().load_at(i, place, at, dtype))

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        super().store(i, place, region, _undoubled(place, codes))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        super().store_at(i, place, at, _undoubled(place, codes))


def _doubled(place: Place, found: Array) -> Array:
    if not DTYPES[place.dtype].is_float or (found.dtype.kind == "u" and place.dtype in elements.ARRAY_DTYPES):
        return found
    codes = np.ascontiguousarray(found).view(elements.code_dtype(place.dtype))
    return elements.decode(place.dtype, codes, np.float64)


def _undoubled(place: Place, codes: Array) -> Array:
    if codes.dtype.kind == "u" or not DTYPES[place.dtype].is_float:
        return codes
    assert codes.dtype == np.float64, f"a shadow run stored {codes.dtype}"
    return elements.encode(place.dtype, codes)


#: Valid regions of a 16x64 tile that tests go through: full, ragged, one row, one column, empty.
VALID = ((16, 64), (5, 37), (1, 64), (16, 1), (13, 7), (0, 64), (16, 0))


@cache
def sampled_plans(name: str) -> list[Plan]:
    """Every column, form and element type in the first layout, and every combination of layouts once."""
    by_layout: dict[Any, list[Plan]] = {}
    for made in every_plan(name):
        tiled = [(n, t) for n, types in made.operands.items() for t in types if isinstance(t, TileBufType)]
        by_layout.setdefault(tuple((n, t.loc, t.layout) for n, t in tiled), []).append(made)
    first, *others = by_layout.values()
    found = [*first, *(plans[7 * i % len(plans)] for i, plans in enumerate(others))]
    return sample(found)


def special_codes(dtype: str) -> list[int]:
    """Codes worth meeting: zeros, ones, extremes, denormals, the least normal number, infinities, NaN; as counts
    of shifts those around the width."""
    d = DTYPES[dtype]
    top = 1 << (d.bits - 1)
    if d.is_int:
        width = [d.bits - 1, d.bits] if d.bits > 4 else []
        return [0, 1, 2, 3, *width, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2]
    one = encoding.encode(d, 1.0)
    inf = encoding.INF_CODES.get(dtype, top - 1)
    halves = [
        0,
        1,
        inf & -inf,
        one,
        one + 1,
        encoding.encode(d, 2.5),
        encoding.encode(d, 1.5),
        encoding.encode(d, 0.5),
        inf - 1,
        inf,
    ]
    return [c for h in halves for c in (h, h | top)] + [encoding.NAN_CODES.get(dtype, 0)]


def mixed_codes(rng: np.random.Generator, dtype: str, shape: tuple[int, int]) -> Array:
    """A third special values, a third modest ones, a third any bits."""
    kind = rng.integers(0, 3, shape)
    special = rng.choice(np.array(special_codes(dtype), np.uint64), shape).astype(elements.code_dtype(dtype))
    modest, any_bits = random_codes(rng, dtype, shape), random_codes(rng, dtype, shape, True)
    return np.where(kind == 0, special, np.where(kind == 1, modest, any_bits))


def numbers(dtype: str, codes: Array) -> list[Any]:
    """The values of codes as Python numbers, exact, in row order."""
    if dtype in elements.ARRAY_DTYPES:
        kind = np.int64 if DTYPES[dtype].kind == "i" else np.uint64 if DTYPES[dtype].is_int else np.float64
        with np.errstate(invalid="ignore"):
            return (
                np.ascontiguousarray(codes).view(elements.ARRAY_DTYPES[dtype]).astype(kind).ravel().tolist()
            )
    return [encoding.decode(dtype, int(c)) for c in codes.ravel()]


def assert_codes(dtype: str, got: Array, want: Array, what: object = "") -> None:
    """Equal codes, where any NaN is as good as another."""
    differ = got != want
    if DTYPES[dtype].nan and differ.any():
        both = [np.isnan(elements.decode(dtype, codes)) for codes in (got, want)]
        differ &= ~(both[0] & both[1])
    if differ.any():
        r, c = (int(k) for k in np.argwhere(differ)[0])
        pair = [encoding.decode(dtype, int(codes[r, c])) for codes in (got, want)]
        raise AssertionError(
            f"{what}: {dtype} [{r}, {c}] is {pair[0]!r}, expected {pair[1]!r}; {differ.sum()} differ"
        )
