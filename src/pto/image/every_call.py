"""The calls that a pack has functions for. As a program, write the sources of a pack:

    python -m pto.image.every_call FOLDER PARTS             every legal form of every instruction
    python -m pto.image.every_call FOLDER PARTS PROGRAMS    the calls of the programs in a folder, and all
                                                            that no executor can perform

Sizes, targets and numbers are not part of a call, so all calls are some thousands. A program may make other
calls: moves between layouts that no witness has, or combined attributes.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from ..asm import parse
from ..codegen.cpp import program
from ..codegen.cpp.unit import Unit
from ..diag import DiagnosticError
from ..driver import lowered
from ..ir.core import Module, Operation
from ..ir.kinds import kind_matches
from ..ir.types import MaskType, PtrType, ScalarType, TileBufType, Type, VRegType
from ..isa import profile, rows
from ..isa.profiles import ISAS, Profile
from ..isa.row import Attr, Row
from ..isa.tile import LAYOUTS
from ..witness.plan import Plan, make_attribute, plans, violated
from ..witness.programs import build
from . import pack
from .calls import NoCall, OpenTypes, printer, recorder
from .generic import always_compiled
from .lower import is_call

#: Instructions that move tiles from one memory or layout to another.
_MOVES = ("tload", "tstore", "tmov", "textract", "tinsert", "ttrans", "tpush", "tpop")
#: Instructions whose attributes are rarely used, and would double the work of the compiler.
_AS_USUAL = frozenset((
    "tmov", "tmov.fp", "textract", "textract_fp", "tinsert", "tinsert_fp", "tstore_fp", "timg2col", "mgather",
    "mscatter", "treduce", "tbroadcast", "comm.tgather", "comm.tscatter", "tput", "tput_async", "tget_async",
))  # fmt: skip
#: The usual elements of tiles of moves; tiles of other types are only moved from their usual memory.
_USUAL = ("f32", "f16", "bf16", "i8", "i32", "ui64")
#: A column-major tile of the vector core: mostly one column.
_COLUMN = re.compile(r"TileType::Vec, \w+, BLayout::ColMajor, SLayout::NoneBox")
#: Instructions whose functions take the compiler several times as long as others, and the factor.
_HEAVY = {"tcvt": 6}


def calls(of: Iterable[Row] = ()) -> dict[str, str]:
    """Return every call of some instructions, or of all, with its instruction."""
    found: dict[str, str] = {}
    for row in of or rows():
        if not is_call(row):
            continue
        for isa in ISAS:
            # cpu accepts all types; other targets have the types that are used
            if isa == "cpu" and row.name in _HEAVY:
                continue
            for made in _scalars(row, isa) if row.dialect in ("arith", "math") else _planned(row, isa):
                module = build(made)
                for name in calls_of(module, row, isa):
                    found.setdefault(name, row.name)
    types = OpenTypes(profile("a5"), "int64_t")
    found.update((printer(types.scalar(t)), "print") for t in _ANY)
    return found


def usual(programs: Path) -> dict[str, str]:
    """Return the calls of the legal programs below a folder, for each target, and all calls that need
    compiled functions, with their instructions."""
    found = calls([row for row in rows() if always_compiled(row)])
    for path in sorted(programs.rglob("*.pto")):
        try:
            module = parse(path.read_text(encoding="utf-8"))
        except DiagnosticError:  # an example of an error
            continue
        for target in (None, "a3", "a5"):
            try:
                done = lowered(module, target)
            except DiagnosticError:  # an example of an error, or a program for the other target
                continue
            found.update(_recorded(done.module, done.profile, (op for op in done.module.walk() if op.row)))
    return found


def _recorded(module: Module, target: Profile, ops: Iterable[Operation]) -> Iterator[tuple[str, str]]:
    """Yield the calls of operations of a module, with their instructions."""
    program.load(module)
    record = recorder(Unit(module, target, index_type="int64_t", checked=True))
    for op in ops:
        if op.row is not None and is_call(op.row):
            try:
                yield record.call(op).name, op.row.name
            except NoCall:
                continue


def calls_of(module: Module, row: Row, isa: str) -> Iterator[str]:
    """Yield the calls of an instruction in a module for a target."""
    for name, _ in _recorded(module, profile(isa), (op for op in module.walk() if op.row is row)):
        yield name
        if row.name == "tload" and "TileType::Mat" in name and not name.count("NoneBox"):
            yield name.replace("pto::Layout::ND", "pto::Layout::DN")  # the call for a column-major matrix
        if row.name in ("tload", "tstore") and _COLUMN.search(name):
            yield name.replace("pto::Layout::ND", "pto::Layout::DN")  # the call for a column


def _planned(row: Row, isa: str) -> Iterator[Plan]:
    """Yield every legal form with every choice of element types; for moves also other memories and
    layouts."""
    yield from _with_attributes(row, isa)
    for made in plans(row, isa):
        if row.name in ("load_scalar", "store_scalar"):
            yield made.replace(operands={
                n: tuple(t.replace(space="ub") if isinstance(t, PtrType) else t for t in types)
                for n, types in made.operands.items()
            })  # fmt: skip
        if row.name == "vbitcast":
            for t in {t for other in plans(row, isa) for types in other.operands.values() for t in types}:
                yield made.replace(results={n: (t,) for n in made.results})
        if row.name in _MOVES and isa != "cpu":
            spelled = [a for a in row.attrs if a.name in ("split", "layout")]
            for other in _moved(made):
                yield from (other, *_legal(*(_other(other, a, word) for a in spelled for word in a.domain)))


def _moved(made: Plan) -> Iterator[Plan]:
    tiles = [t for types in made.operands.values() for t in types if isinstance(t, TileBufType)]
    if any(str(t.elem) not in _USUAL for t in tiles):
        return
    names = [n for n, types in made.operands.items() if len(types) == 1]
    for choice in itertools.product(*(_places(made.operands[n][0]) for n in names)):
        other = {n: (t,) for n, t in zip(names, choice, strict=True)}
        yield from _legal(made.replace(operands={**made.operands, **other}))


def _places(type: Type) -> tuple[Type, ...]:
    """Return a tile in the layouts of its memory: all layouts in L1, the flat ones in UB. A tile of UB may
    lie in L1, a tile of L0A in L0B.
    """
    if not isinstance(type, TileBufType):
        return (type,)
    if type.loc == "left":
        return (type, type.replace(loc="right", blayout="row_major", slayout="col_major"))
    if type.loc not in ("vec", "mat") or (type.boxed and type.loc == "vec"):
        return (type,)
    flat = [type.replace(blayout=outer, slayout="none_box") for outer in ("row_major", "col_major")]
    boxed = [type.replace(loc="mat", blayout=o, slayout=i) for (o, i) in LAYOUTS if i != "none_box"]
    return (*flat, *boxed)


_INTEGERS = tuple(ScalarType(name) for name in ("i1", "i8", "i16", "i32", "i64", "index"))
_FLOATS = tuple(ScalarType(name) for name in ("f16", "bf16", "f32", "f64"))
_ANY = (*_INTEGERS, *_FLOATS)
_SCALAR_KINDS = ("int", "float", "scalar")


def _scalars(row: Row, isa: str) -> Iterator[Plan]:
    """Yield a row of arith or math with every choice of types: one type for all operands, and one for the
    result.
    """
    for made in _with_attributes(row, isa):
        open_ = [o for o in row.operands if o.kinds[0] in _SCALAR_KINDS]
        own = [r for r in row.results if not row.infer.get(r.name) and r.kinds[0] in _SCALAR_KINDS]
        for given in [t for t in _ANY if open_ and all(kind_matches(o, t) for o in open_)]:
            operands = {**made.operands, **{o.name: (given,) for o in open_}}
            inferred = {r.name: (given,) for r in row.results if row.infer.get(r.name, "").startswith("$")}
            for result in [t for t in _ANY if all(kind_matches(r, t) for r in own)] if own else (given,):
                results = {**made.results, **inferred, **{r.name: (result,) for r in own}}
                trial = made.replace(operands=operands, results=results)
                if not violated(trial):
                    yield trial


def _with_attributes(row: Row, isa: str) -> Iterator[Plan]:
    """Yield every legal form, also with optional operands added or removed, or with another value of one
    attribute."""
    optional = sorted(o.name for o in (*row.operands, *row.results) if o.optional)
    for made in plans(row, isa):
        given = [n for n in optional if n in made.operands or n in made.results]
        for base in (made, *_with_others(row, made), *_without(made, {*given}, *({n} for n in given))):
            others = (_other(base, attr, word) for attr in row.attrs for word in _words(row, attr))
            yield from _legal(base, *others)


def _legal(*found: Plan) -> Iterator[Plan]:
    return (made for made in found if not violated(made))


def _other(made: Plan, attr: Attr, word: Any) -> Plan:
    return made.replace(attrs={**made.attrs, attr.name: make_attribute(attr, word)})


def _words(row: Row, attr: Attr) -> Iterable[Any]:
    """Return the values of an attribute that calls may spell: all values of its domain; for signals their
    numbers."""
    if attr.inert or attr.hint or row.name in _AS_USUAL:
        return ()
    return range(16) if row.order and attr.kind == "int" else attr.domain


def _without(made: Plan, *left_out: set[str]) -> Iterator[Plan]:
    for names in left_out if len(left_out) > 2 else left_out[:1]:
        trial = made.replace(
            operands={n: t for n, t in made.operands.items() if n not in names},
            results={n: t for n, t in made.results.items() if n not in names},
        )
        if names:
            yield trial


def _with_others(row: Row, made: Plan) -> Iterator[Plan]:
    """Yield forms with an optional tile, mask or advanced pointer."""
    like: dict[str, tuple[Type, ...]] = {
        "tile": made.operands.get("dst", ())[:1],
        "ptr": made.operands.get("base", ())[:1],
        "mask": tuple(MaskType(f"b{t.bits}") for t in made.results.get("r", ()) if isinstance(t, VRegType)),
    }
    for absent in [o for o in row.operands if o.optional and o.name not in made.operands]:
        if like.get(absent.kinds[0]):
            yield made.replace(operands={**made.operands, absent.name: like[absent.kinds[0]]})
    for absent in [r for r in row.results if r.optional and r.name not in made.results]:
        if like.get(absent.kinds[0]):
            yield made.replace(results={**made.results, absent.name: like[absent.kinds[0]]})


def pieces(found: dict[str, str], parts: int) -> list[list[str]]:
    """Divide calls into pieces with about the same time of compilation. Calls of an instruction share
    templates, so they stay together."""
    names = sorted(found, key=lambda name: (found[name], name))
    weights = [_HEAVY.get(found[name], 1) for name in names]
    out: list[list[str]] = [[] for _ in range(parts)]
    before, whole = 0, sum(weights)
    for name, weight in zip(names, weights, strict=True):
        out[before * parts // whole].append(name)
        before += weight
    return out


def _some(names: list[str]) -> dict[str, str]:
    return calls([row for row in rows() if row.full_name in names])


def _every() -> dict[str, str]:
    names = [row.full_name for row in rows()]
    found: dict[str, str] = {}
    with ProcessPoolExecutor() as pool:
        for some in pool.map(_some, [names[n : n + 16] for n in range(0, len(names), 16)]):
            found = {**some, **found}  # a call that two instructions share counts for the first
    return found


def main(folder: str, parts: str, programs: str = "") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    found = usual(Path(programs)) if programs else _every()
    for name, text in pack.files(pieces(found, int(parts))):
        path = Path(folder, name)
        if (
            not path.exists() or path.read_text(encoding="utf-8") != text
        ):  # an unchanged file is not compiled again
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
