"""Reads and writes of tiles by instructions: checks for the properties `undef` and `overlap`.

The parts that an instruction reads and writes are those of its executor, where a row alone does not say them.
An algorithm that is not listed here reads whole tiles and writes nothing for certain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ir.core import Operation
from ..ir.facts import in_global
from ..ir.types import ScalarType
from ..isa.enums import MASK_PATTERNS
from ..isa.row import Row
from ..symbolic.terms import Truth, both, either, floordiv, is_int, least, negated
from ..verifier.overlap import handed_on
from .contents import Contents, Filled, Size, region
from .context import WalkedCore
from .extents import PLAIN, moved
from .state import State
from .values import MEMORY, StorageTerm, TermPlace, TileTerm, ViewTerm, meet

#: Further algorithms whose undefined operands only make their results undefined.
_PASSING = ("load", "move", "window", "insertion", "transposition", "matrix product",
            "load lanes", "load two registers")  # fmt: skip
_RECORD = 64  # bits of a value with its index


def follow(walk: WalkedCore, op: Operation, s: State, args: dict[str, Any]) -> None:
    """Check what an instruction reads of tiles, and note what it writes."""
    row = op.row
    assert row is not None
    contents: Contents = s.contents
    tiles = ((d, v, x) for d, v in op.named() if isinstance(x := s.env[v], TileTerm))
    operands = [(d, v, x) for d, v, x in tiles if x.low is not None]
    when: Truth = True  # the condition under which all operands are defined
    for declared, value, x in operands:
        if declared.reads:
            read = region(x, _size_read(row, declared.name, x, args))
            when = both(when, defined(walk, op, s, value.name, read))
    for declared, _, x in operands:
        if not declared.writes:
            continue
        if x.storage is not None:
            for other, _, y in operands:
                if other.reads and y.storage is not None:
                    _read_too(walk, op, s, x, y)
            twins = contents.twins(x.storage) - {contents.name_of(x.storage)}
            if len(twins) == 1 and handed_on(op, x.storage.op, next(iter(twins)).op):
                contents.united[contents.name_of(x.storage)] = twins.pop()
        scratch = declared.role == "tmp" or declared.name in row.scratch
        size = None if scratch else _size_written(walk, op, declared.name, x, args)
        new = region(x, size) if size is not None else None
        written(walk, s, x.place, x.storage, new, when, scratch or _leaves_undefined(row))


def _has_effect(op: Operation) -> bool:
    """Return whether undefined operands of an instruction may have an effect other than undefined tiles."""
    row = op.row
    assert row is not None
    kind = row.algorithm.partition(":")[0]
    outside = any(d.writes and in_global(v.type) for d, v in op.named() if isinstance(v.type, MEMORY))
    numbers = any(isinstance(r.type, ScalarType) for r in op.results)
    return numbers or outside or not (row.expr or kind in PLAIN or kind in _PASSING)


def defined(walk: WalkedCore, op: Operation, s: State, name: str, read: Filled) -> Truth:
    """Check a read; return the condition under which the elements are defined."""
    contents: Contents = s.contents
    violated = walk.context.violated
    facts = [*s.here, *(n > 0 for n in read.size)]
    covered = either(*(f.defines(read) for f in contents.filled), *(n <= 0 for n in read.size))
    if covered is not True and _has_effect(op):
        violated("undef", op, [*facts, negated(covered)], f"%{name} may have parts that were never written")
        covered = True
    elif walk.holds(s)(covered):
        covered = True
    storage = read.storage
    if storage is None:
        return covered
    if not contents.has(storage):
        twins = contents.twins(storage)
        if len(twins) == 1:  # written under another name only
            contents.united[storage] = twins.pop()
        if len(twins) < 2:
            return covered
    mine = contents.name_of(storage)
    kept = (f for f in contents.filled if f.storage is not None and contents.name_of(f.storage) == mine)
    own = either(*(f.covers(read) for f in kept))
    for other, condition in contents.rivals(storage, read.place) if own is not True else ():
        why = f"%{name} may be read after %{other.name} has overwritten part of it"
        violated("overlap", op, [*facts, negated(own), condition], why, other.op)
    return covered


def _read_too(walk: WalkedCore, op: Operation, s: State, dst: TileTerm, src: TileTerm) -> None:
    """Compare a destination with a source of the same instruction: an update in place unites their names."""
    contents, row = s.contents, op.row
    assert row is not None and dst.storage is not None and src.storage is not None
    if contents.name_of(dst.storage) == contents.name_of(src.storage) or dst.storage.views(src.storage):
        return
    shared = meet(dst.place, src.place)
    if shared is False or dst.storage.root != src.storage.root:
        return
    alike = (dst.at, dst.valid, dst.pitch) == (src.at, src.valid, src.pitch)
    if row.in_place not in ("", "none") and alike and dst.storage.twin_of(src.storage):
        contents.united[contents.name_of(dst.storage)] = contents.name_of(src.storage)
        return
    why = f"writes %{dst.storage.name} over a part of %{src.storage.name} that it reads"
    walk.context.violated("overlap", op, [*s.here, shared], why)


def written(
    walk: WalkedCore, s: State, place: TermPlace, storage: StorageTerm | None, new: Filled | None,
    when: Truth, undefines: bool = False,
) -> None:  # fmt: skip
    """Note a write to a place; `new` are the elements that it certainly writes."""
    contents: Contents = s.contents
    kept: list[Filled] = []
    for f in contents.filled:
        own = f.storage == storage and not undefines
        if new is not None and own and new.covers(f) is True:
            continue
        shared = meet(f.place, place)
        if shared is False or not walk.solver.possible([*s.here, shared]):
            kept.append(f)
        elif own:
            kept.append(replace(f, when=both(f.when, when)))
    contents.filled = (*kept, *([replace(new, when=when)] if new is not None else []))
    if storage is not None:
        contents.wrote[storage, place] = None


def _size_read(row: Row, name: str, x: TileTerm, args: dict[str, Any]) -> Size | None:
    """Return the elements that an instruction reads of an operand; None if it may be all of them."""
    dst, kind = args.get("dst"), row.algorithm.partition(":")[0]
    if kind in ("merge", "gather", "sort blocks"):
        return _sort_reads(kind, name, x, args)
    if kind == "store" or row.over.startswith("fold") or kind in ("transposition", "fill padding"):
        return x.valid if name == "src" else None
    if kind == "matrix product":
        a = args.get("lhs", args.get("a"))
        if name in ("lhs", "a") or not isinstance(a, TileTerm) or not isinstance(dst, TileTerm):
            return x.valid if name in ("lhs", "a") else None
        b = args.get("rhs", args.get("b"))
        columns = b.valid[1] if isinstance(b, TileTerm) else dst.valid[1]
        sizes = {"rhs": (a.valid[1], columns), "acc_in": (a.valid[0], columns), "bias": (1, columns)}
        return sizes.get({"b": "rhs", "c_in": "acc_in"}.get(name, name))
    if not isinstance(dst, TileTerm):
        return None
    if kind == "convert" or (kind == "move" and dst.type.dtype == x.type.dtype and "tmp" not in args):
        return dst.valid if name == "src" else None
    if not row.expr or row.packed or name in row.single.split():
        return None
    rows, cols = dst.valid
    first = next(o.name for o in row.operands if o.reads)
    sizes = {"": dst.valid, "row 0": (1, cols), "column 0": (rows, 1)}
    sizes |= {"row": dst.valid if name == first else (1, cols), "columns": (rows, x.valid[1])}
    return sizes.get(row.over)


def _size_written(
    walk: WalkedCore, op: Operation, name: str, x: TileTerm, args: dict[str, Any]
) -> Size | None:
    """Return the elements that an instruction certainly writes, from the first one of an operand on."""
    row = op.row
    assert row is not None
    kind, src = row.algorithm.partition(":")[0], args.get("src")
    if row.skip or name in row.packed.split() or name != "dst":
        return None
    if row.over.startswith("fold"):
        if not isinstance(src, TileTerm) or src.valid[0] == 0 or src.valid[1] == 0:
            return None
        return (x.valid[0], 1) if row.over == "fold columns" else (1, x.valid[1])
    if row.expr:
        return x.valid if row.writes == "valid" else None
    if kind == "load" and isinstance(src, ViewTerm):
        return moved(walk, op, x, src)
    if kind == "matrix product":
        a, b = args.get("lhs", args.get("a")), args.get("rhs", args.get("b"))
        followed = isinstance(a, TileTerm) and isinstance(b, TileTerm)
        return (a.valid[0], b.valid[1]) if followed else None  # type: ignore[union-attr]
    if kind in ("merge", "gather", "sort blocks") and isinstance(src, TileTerm):
        return _sort_writes(op, kind, walk.profile.isa, x, src, args)
    if kind == "transposition" and isinstance(src, TileTerm):
        return src.valid[1], src.valid[0]
    if kind in ("convert", "count", "window", "fill padding") or (kind == "move" and "tmp" not in args):
        return x.valid if "dst1" not in args else None
    return None


def _sort_reads(kind: str, name: str, x: TileTerm, args: dict[str, Any]) -> Size | None:
    src = args.get("src")
    if kind == "gather":
        return x.valid if name == "src" and not {"indices", "cdst"} & args.keys() else None
    if kind == "merge" and "src1" not in args:
        return _merged(args, args["dst"]) if name == "src" else None
    if name == "idx" and isinstance(src, TileTerm):
        return 1 if x.valid[0] == 1 else src.valid[0], src.valid[1]
    return x.valid if name.startswith("src") else None


def _merged(args: dict[str, Any], dst: object) -> Size | None:
    """Return the elements of the groups of four lists that a merge combines."""
    length: Any = args.get("blockLen")
    if not isinstance(dst, TileTerm) or not is_int(length) or length <= 0 or length % (_RECORD // dst.bits):
        return None
    rows = dst.valid[0]
    return (1, floordiv(dst.valid[1], 4 * length) * 4 * length) if is_int(rows) and rows > 0 else None  # type: ignore[operator]


def _sort_writes(
    op: Operation, kind: str, isa: str, x: TileTerm, src: TileTerm, args: dict[str, Any]
) -> Size | None:
    each = _RECORD // x.bits
    rows, cols = src.valid
    if kind == "sort blocks":  # hardware fills the last block
        filled = cols if isa == "cpu" else -floordiv(-cols, 32) * 32
        return rows, least(filled * each, x.shape[1])
    if kind == "gather":  # one run in the order of storage
        if {"indices", "cdst"} & args.keys() or op.attr("gather_axis") == "col" or not x.plain:
            return None
        period, first = MASK_PATTERNS[str(op.attr("maskPattern") or "P1111")]
        count = rows * -floordiv(first - cols, period)
        return (1, count) if x.shape[0] == 1 else (floordiv(count, x.shape[1]), x.shape[1])
    if "src1" not in args:
        return _merged(args, x)
    lists = [args[n] for n in ("src", "src1", "src2", "src3") if n in args]
    if op.attr("exhausted") is not False or not all(isinstance(t, TileTerm) for t in lists):
        return None
    if not all(is_int(t.valid[0]) and t.valid[0] > 0 for t in (*lists, x)):
        return None
    total = sum((floordiv(t.valid[1], each) for t in lists), 0)
    return 1, least(total, floordiv(x.valid[1], each)) * each


def _leaves_undefined(row: Row) -> bool:
    """Return whether an instruction may leave bytes of its destination undefined that it does not write."""
    return row.over == "parts" or row.algorithm.partition(":")[0] in ("load", "gather", "merge")
