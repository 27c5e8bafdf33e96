"""The calls of every legal form of every instruction, as the witnesses have them: a pack of all.

Sizes, targets and numbers are no part of a call, so these are some thousands. Programs may make others: of
moves between layouts that no witness has, or with attributes that go together; those are compiled when they
are met.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from ..codegen.cpp import program
from ..codegen.cpp.unit import Unit
from ..ir.core import Module
from ..ir.types import PtrType, ScalarType, TileBufType, Type
from ..isa import profile, rows
from ..isa.enums import ENUMS
from ..isa.profiles import ISAS
from ..isa.row import Row
from ..witness.plan import Plan, make_attribute, plans, violated
from ..witness.programs import build
from .calls import NoCall, OpenTypes, by_region, printer, recorder

#: Families of instructions that bring elements from one layout to another.
_MOVES = ("layout-and-rearrangement", "memory-and-data-movement")
_SKIPPED = ("func", "builtin", "scf", "cf", "memref", "affine")


def calls(of: Iterable[Row] = ()) -> dict[str, str]:
    """Every call of some instructions, or of all, with the instruction that makes it."""
    found: dict[str, str] = {}
    for row in of or rows():
        if row.dialect in _SKIPPED or row.regions:
            continue
        for isa in ISAS:
            for made in _scalars(row, isa) if row.dialect in ("arith", "math") else _planned(row, isa):
                module = build(made)
                for name in _calls_of(module, row, isa):
                    found.setdefault(name, row.name)
    types = OpenTypes(profile("a5"), "int64_t")
    found.update((printer(types.scalar(t)), "print") for t in (*_INTEGERS, *_FLOATS))
    return found


def _calls_of(module: Module, row: Row, isa: str) -> Iterator[str]:
    program.load(module)
    record = recorder(Unit(module, profile(isa), index_type="int64_t", checked=True))
    for op in module.walk():
        if op.row is not row:
            continue
        try:
            yield record.call(op).name
        except NoCall:
            continue


def _planned(row: Row, isa: str) -> Iterator[Plan]:
    """Every legal form with every choice of element types; of moves also for the other flat layouts."""
    yield from _with_attributes(row, isa)
    for made in plans(row, isa):
        if row.name in ("load_scalar", "store_scalar"):
            yield made.replace(operands={
                n: tuple(t.replace(space="ub") if isinstance(t, PtrType) else t for t in types)
                for n, types in made.operands.items()
            })  # fmt: skip
        names = [n for n, types in made.operands.items() if any(_flat(t) for t in types)]
        if row.family not in _MOVES or by_region(row) or not names:
            continue
        for choice in itertools.product((False, True), repeat=len(names)):
            turned = {n for n, other in zip(names, choice, strict=True) if other}
            trial = made.replace(operands={
                n: tuple(_turned(t) if n in turned else t for t in types)
                for n, types in made.operands.items()
            })  # fmt: skip
            if turned and not violated(trial):
                yield trial


_INTEGERS = tuple(ScalarType(name) for name in ("i1", "i8", "i16", "i32", "i64", "index"))
_FLOATS = tuple(ScalarType(name) for name in ("f16", "bf16", "f32", "f64"))
_SCALARS = {"int": _INTEGERS, "float": _FLOATS, "scalar": (*_INTEGERS, *_FLOATS)}


def _scalars(row: Row, isa: str) -> Iterator[Plan]:
    """A row of arith or math with every choice of types: one for all operands, one for its result."""
    for made in _with_attributes(row, isa):
        open_ = [o for o in row.operands if o.kinds[0] in _SCALARS]
        own = [r for r in row.results if not row.infer.get(r.name) and r.kinds[0] in _SCALARS]
        for given in _SCALARS[open_[0].kinds[0]] if open_ else ():
            operands = {**made.operands, **{o.name: (given,) for o in open_}}
            inferred = {r.name: (given,) for r in row.results if row.infer.get(r.name, "").startswith("$")}
            for result in _SCALARS[own[0].kinds[0]] if own else (given,):
                results = {**made.results, **inferred, **{r.name: (result,) for r in own}}
                trial = made.replace(operands=operands, results=results)
                if not violated(trial):
                    yield trial


def _with_attributes(row: Row, isa: str) -> Iterator[Plan]:
    """Every legal form, also with a tile that may be left out, or another value of one of its attributes."""
    for made in plans(row, isa):
        yield made
        for absent in [o for o in row.operands if o.optional and o.kinds[0] == "tile"]:
            like = made.operands.get("dst", ())[:1]
            if absent.name not in made.operands and isinstance(like[0] if like else None, TileBufType):
                trial = made.replace(operands={**made.operands, absent.name: like})
                if not violated(trial):
                    yield trial
        for attr in row.attrs:
            words = ENUMS[attr.kind].values if attr.kind in ENUMS else attr.domain
            for word in words:
                value = make_attribute(attr, word)
                if made.attrs.get(attr.name) != value:
                    trial = made.replace(attrs={**made.attrs, attr.name: value})
                    if not violated(trial):
                        yield trial


def _flat(type: Type) -> bool:
    return isinstance(type, TileBufType) and not type.boxed


def _turned(type: Type) -> Type:
    """A tile of the other flat layout."""
    if not isinstance(type, TileBufType):
        return type
    return type.replace(blayout="col_major" if type.blayout == "row_major" else "row_major")
