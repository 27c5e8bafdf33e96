"""Run one vector, predicate or cube micro-instruction on given data: the bench of the tests of this folder.

    case = VectorCase(plan)                     # a legal instance of a row, see `plans_of`
    case.set("lhs", codes)                      # 1-D unsigned codes of a register
    case.on("mask", lanes)                      # which lanes of a mask are on, at its own granularity
    case.args["scalar"] = 3
    out = case.run()                            # the scalar results, if any
    case.get("r"), case.lanes("carry")          # codes of a register, lanes of a mask afterwards
    case.memory[64:128] = ...                   # the unified buffer as bytes; pointers start at `case.base`

Without a program: nothing is parsed or verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from pto import isa
from pto.engine import elements
from pto.engine.memory import Pointer
from pto.engine.reference.instr import Instr
from pto.engine.reference.registry import find
from pto.engine.reference.semantics import SEMANTICS
from pto.engine.registers import GRANULES, WIDTH, is_register, maker
from pto.ir.attrs import Attribute
from pto.ir.types import MaskType, PtrType, Type
from pto.isa.dtypes import DTYPES
from pto.isa.machine import LOCATION_OF
from pto.isa.row import Row
from pto.witness.plan import Plan, _legal_dtypes, make_attribute, plans, violated

from ..rows import Case, random_codes, sample, special_codes

Array = np.ndarray[Any, Any]


class VectorCase(Case):
    """One instance of an instruction with registers for its operands and results."""

    base = 4096
    capacity = 1 << 20

    def __init__(self, plan: Plan, seed: int = 0, semantics: str = "hw") -> None:
        super().__init__(plan, seed)
        self.core.semantics = SEMANTICS[semantics]
        self.core.grid = SimpleNamespace(
            tracks=False, blocks=1, ranks=1, span=lambda op: None, semantics=self.core.semantics
        )
        self.memory: Array = self.core.buffers["vec"].data
        for declared in self.row.results:
            for type in plan.results.get(declared.name, ())[:1]:
                if is_register(type):
                    self.args[declared.name] = maker(type, declared.name)()

    def _value(self, name: str, at: int, type: Type) -> Any:
        if is_register(type):
            return maker(type, name)()
        if isinstance(type, PtrType) and type.space != "gm":
            return Pointer(self.core.buffers[LOCATION_OF[type.space]], self.base, type.elem.counted, name)
        return super()._value(name, at, type)

    def set(self, name: str, codes: Array, valid: tuple[int, int] | None = None) -> None:
        if codes.ndim == 2:
            super().set(name, codes, valid)
        else:
            place = self.args[name]
            place.array = np.ascontiguousarray(codes).astype(elements.code_dtype(place.dtype))

    def get(self, name: str, shape: tuple[int, int] | None = None) -> Array:
        place = self.args[name]
        if shape is not None or not hasattr(place, "lanes"):
            return super().get(name, shape)
        return place.array.view(elements.code_dtype(place.dtype)).copy()

    def granule(self, mask: str) -> int:
        """Bytes that one lane of a mask covers."""
        types = self.plan.operands.get(mask) or self.plan.results[mask]
        assert isinstance(types[0], MaskType)
        return GRANULES[types[0].gran or "b8"]

    def on(self, mask: str, lanes: Array | bool, size: int | None = None) -> Array:
        """Turn lanes of a mask on, at its own granularity or that of elements of `size` bytes; as lanes."""
        size = size or self.granule(mask)
        image = np.zeros(WIDTH, np.uint8)
        image[::size] = lanes
        self.args[mask].array = image
        return image[::size] != 0

    def image(self, mask: str) -> Array:
        """The 256 bits of a mask."""
        return self.args[mask].array.copy()

    def lanes(self, mask: str, size: int | None = None) -> Array:
        return self.image(mask)[:: size or self.granule(mask)] != 0

    def fill(self, name: str, share: float = 0.4) -> Array:
        """Random contents of a register: modest numbers, special values and any bits; its codes."""
        dtype, lanes = self.args[name].dtype, self.args[name].lanes
        codes = random_codes(self.rng, dtype, (1, lanes))[0]
        special = np.array(special_codes(dtype), np.uint64).astype(codes.dtype)
        some = self.rng.random(lanes)
        codes = np.where(some < share / 2, self.rng.choice(special, lanes), codes)
        codes = np.where(some > 1 - share / 2, random_codes(self.rng, dtype, (1, lanes), True)[0], codes)
        self.set(name, codes)
        return codes

    def some_lanes(self, mask: str, size: int | None = None) -> Array:
        """Turn random lanes of a mask on."""
        size = size or self.granule(mask)
        return self.on(mask, self.rng.random(WIDTH // size) < 0.6, size)

    def execute(self) -> Any:
        """Run it; return the scalar results."""
        execute = find(self.row)
        assert execute is not None, f"{self.row.name} has no executor"
        with np.errstate(all="ignore"):  # as the core runs it
            return self.core.execute(Instr(self.op, self.args, self.core, "V"), execute)


@cache
def plans_of(name: str, column: str | None = None) -> list[Plan]:
    """Every legal plan of a row in a column, or some of all columns: forms x element types, attributes at their first
    choice."""
    row = isa.row(name)
    assert row is not None
    columns = [c for c in row.isas if column in (None, c)]
    found = [made for c in columns for made in plans(row, c)]
    return found if column else sample(found)


def with_attrs(plan: Plan, **values: Any) -> Plan | None:
    """The plan with other attributes; None where that is not legal."""
    attrs: dict[str, Attribute] = dict(plan.attrs)
    for name, value in values.items():
        declared = next(a for a in plan.row.attrs if a.name == name)
        attrs[name] = make_attribute(declared, value)
    made = plan.replace(attrs=attrs)
    return made if not violated(made) and _legal_dtypes(made) else None


def over(plan: Plan, **choices: Any) -> Iterator[Plan]:
    """The plan with every combination of attribute values that is legal."""
    names = list(choices)
    if not names:
        yield plan
        return
    for value in choices[names[0]]:
        made = with_attrs(plan, **{names[0]: value})
        if made is not None:
            yield from over(made, **{n: choices[n] for n in names[1:]})


def rows_of(*families: str, set: str = "vector") -> tuple[str, ...]:
    """Names of the rows of some families."""
    return tuple(r.name for r in isa.rows() if r.set == set and r.family in families)


def width(dtype: str) -> int:
    """Bytes of a lane: elements of 4 bits come in pairs."""
    return max(8, DTYPES[dtype].bits) // 8


def counted(dtype: str) -> str:
    """Return the element type that a pointer counts."""
    return "u8" if DTYPES[dtype].bits == 4 else dtype


def shown(plan: Plan) -> str:
    """A short name of a plan, for test ids."""
    types = [
        str(getattr(t, "dtype", "")) for ts in (*plan.operands.values(), *plan.results.values()) for t in ts
    ]
    attrs = [str(a.value) for a in plan.attrs.values()]
    return "-".join([plan.row.name, plan.isa, *dict.fromkeys(t for t in types if t), *attrs])


__all__ = ["Row", "VectorCase", "over", "plans_of", "rows_of", "shown", "width", "with_attrs"]
