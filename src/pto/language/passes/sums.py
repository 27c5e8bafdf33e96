"""Compute sums that exceed Acc, or sums of stacks, block by block, each from its first product to its last.

    acc = pl.create_tile([272, 144], ..)        for both halves of the rows:
    for k in ..:                                    part = pl.create_tile([144, 144], ..)
        acc = pl.matmul_acc(acc, a, b)              for k in ..:
    pl.store(acc, [0, 0], out)                          part = pl.matmul_acc(part, rows of a, b)
                                                    pl.store(part, ..)

Other work of loops and branches around the products is done once, separately. A sum that does not fit this
pattern is added up by the vector core (`matmul.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..ir import WRITTEN, Block, Function, Op, TileType, Value, index, root, values_in
from ..operators.cube import PRODUCTS
from .clean import EFFECTS, is_window
from .rewrite import handed_on

#: Operations that produce members of a sum.
_MAKERS = (*PRODUCTS, "create_tile", "for", "if")


class Piece:
    """A block of a product: its position, and its value."""

    def __init__(self, at: Sequence[int], value: Value) -> None:
        self.at = list(at)
        self.value = value


class Sum:
    """A sum. `members`: values that share an accumulator. `tops`: the operations of its block that produce
    them, in order; `final` is the value that other operations use, and `users` are those operations."""

    def __init__(self, members: set[Value], tops: list[Op], final: Value, users: list[Op]) -> None:
        self.members = members
        self.tops = tops
        self.final = final
        self.users = users
        self.products = [o for top in tops for o in top.walk() if o.name in PRODUCTS and o.result in members]

    def loaded(self) -> set[Value]:
        """Return the storage that its operations read."""
        ops = [o for top in self.tops for o in top.walk()]
        found = {root(o.args["tensor"]) for o in ops if o.name == "load"}
        for p in self.products:
            for name in PRODUCTS[p.name]:
                value = p.args[name]
                found.add(root(value))
                if value.op is not None and value.op.name == "load":
                    found.add(root(value.op.args["tensor"]))
        return found


def find_sums(function: Function, products: Any) -> dict[Op, Sum]:
    """Return sums to compute by blocks, by each of their operations."""
    ops = list(function.walk())
    groups = _groups(ops)
    found: dict[Op, Sum] = {}
    for members in groups:
        made = _sum(members, ops)
        if made is not None and products.cut_alike(made):
            found.update(dict.fromkeys(made.tops, made))
    return found


def _groups(ops: list[Op]) -> list[set[Value]]:
    """Return the values of each sum: the tiles that its operations hand on."""
    group: dict[Value, set[Value]] = {}

    def join(values: Sequence[object]) -> None:
        tiles = [v for v in values if isinstance(v, Value) and isinstance(v.type, TileType)]
        whole: set[Value] = set(tiles).union(*(group.get(v, ()) for v in tiles))
        for v in whole:
            group[v] = whole

    for op in ops:
        for same in handed_on(op):
            join(same)
        if op.name.endswith("_acc") and op.name in PRODUCTS and not is_window(op):
            join([op.result, op.args["acc"]])
    sums = [group[op.result] for op in ops if op.name.endswith("_acc") and op.results and op.result in group]
    return list({id(g): g for g in sums}.values())


def _sum(members: set[Value], ops: list[Op]) -> Sum | None:
    makers = [v.op for v in members if v.op is not None]
    if any(m.name not in _MAKERS for m in makers):
        return None
    users = [(o, v) for o in ops for v in values_in(o.args) if v in members and not _hands_on(o, v, members)]
    finals = {v for _, v in users}
    if len(finals) != 1:
        return None
    final = finals.pop()
    block = final.op.parent if final.op is not None else None
    if block is None:
        return None
    tops = {id(top): top for m in makers if (top := _within(m, block)) is not None}
    if any(_within(m, block) is None for m in makers):
        return None
    ordered = sorted(tops.values(), key=block.ops.index)
    ends = [_within(o, block) for o, _ in users]
    last = block.ops.index(ordered[-1])
    if any(e is None or block.ops.index(e) <= last for e in ends):
        return None
    return Sum(members, ordered, final, [o for o, _ in users])


def _hands_on(op: Op, value: Value, members: set[Value]) -> bool:
    if op.name in ("yield", "for"):
        return True
    return op.name in PRODUCTS and op.result in members and op.args.get("acc") is value


def _within(op: Op, block: Block) -> Op | None:
    """Return the operation of a block that is, or contains, an operation."""
    at = op
    while isinstance(at, Op):
        if at.parent is block:
            return at
        at = at.parent.outer if at.parent is not None else None
    return None


class Sums:
    """Mixin methods of `Products` (matmul.py), which defines the other members."""

    sums: dict[Op, Sum]
    values: dict[Value, Any]
    build: Any

    def sum_op(self: Any, op: Op) -> None:
        """Emit an operation of a sum: its other work; and with the last operation the sum, unless it is
        stored by blocks later."""
        sum = self.sums[op]
        if op.name in ("for", "if") and not _is_pure(op, sum):
            self.values.update(dict.fromkeys(sum.members, None))
            self._beside(op, sum)
        if op is not sum.tops[-1]:
            return
        store = sum.users[0]
        if len(sum.users) == 1 and store.name == "store" and self._stored_later(sum, store):
            self.waiting[store] = sum
            return
        t = self.type_of(sum.final.type)
        whole = self.build.op(
            "create_tile", [t.replace(space="")], shape=list(t.shape), dtype=t.dtype, target_memory=None
        )
        self.sum_blocks(sum, lambda piece: self._put(whole, piece))
        self.map(sum.final, whole)

    def _stored_later(self: object, sum: Sum, store: Op) -> bool:
        """Return True if a sum may be computed at its store: its inputs are not written in between."""
        block = sum.tops[0].parent
        if block is None or store.parent is not block:
            return False
        between = block.ops[block.ops.index(sum.tops[0]) : block.ops.index(store)]
        names = ((o, WRITTEN[o.name]) for top in between for o in top.walk() if o.name in WRITTEN)
        return not {root(o.args[n]) for o, n in names} & sum.loaded()

    def sum_blocks(self: Any, sum: Sum, take: Callable[[Piece], object]) -> None:
        """Compute a sum block by block."""
        before = dict(self.values)
        for at, rows, cols in self._blocks(sum.products[0], "mn"):
            with self._where(rows), self._where(cols):
                for op in sum.tops:
                    self._of_block(op, sum, at, rows, cols)
                take(Piece(self._place(sum.products[0], at, rows, cols), self.values[sum.final]))
            self.values = dict(before)

    def _of_block(self: Any, op: Op, sum: Sum, at: object, rows: object, cols: object) -> None:
        """Emit an operation of a sum for one block."""
        before, self.build.place = self.build.place, op.loc
        shape, valid = self._dims(sum.products[0], rows, cols)
        type = TileType(sum.final.type.dtype, shape, valid, "acc")
        mine = [i for i, r in enumerate(op.results) if r in sum.members]
        if op.name in PRODUCTS and mine:
            lhs, rhs = self._operands(op)
            self.map(op.result, self._sum(op, lhs, rhs, at, rows, cols, lhs.shape[1]))
        elif op.name == "create_tile" and mine:
            made = self.build.op("create_tile", [type.replace(space="")], shape=list(shape), dtype=type.dtype,
                                 target_memory=None)  # fmt: skip
            self.map(op.result, made)
        elif op.name in ("for", "if") and mine:
            self._copied(op, mine, type, lambda o: self._of_block(o, sum, at, rows, cols))
        elif op.name == "yield":
            outer: Any = op.parent.outer  # type: ignore[union-attr]
            kept = [i for i, r in enumerate(outer.results) if r in sum.members]
            self.build.append("yield", [], {"values": [self.of(op.args["values"][i]) for i in kept]})
        elif op.name not in EFFECTS or (op.blocks and not any(_effects(op))):
            self.op(op)
        self.build.place = before

    def _beside(self: Any, op: Op, sum: Sum) -> None:
        """Emit the parts of a loop or if that do not belong to a sum."""
        rest = [i for i, r in enumerate(op.results) if r not in sum.members]

        def one(o: Op) -> None:
            if o.name == "yield":
                self.build.append("yield", [], {"values": [self.of(o.args["values"][i]) for i in rest]})
            elif o.name in ("for", "if") and any(r in sum.members for r in o.results):
                self._beside(o, sum)
            elif not any(r in sum.members for r in o.results):
                self.op(o)

        self._copied(op, rest, None, one)

    def _copied(
        self: Any, op: Op, kept: list[int], type: TileType | None, each: Callable[[Op], None]
    ) -> None:
        """Emit a loop or if that hands on some of its values; `type` is their new type."""
        args = {**op.args}
        if op.name == "for":
            args["init_values"] = [op.args["init_values"][i] for i in kept]
        types = [type or self.type_of(op.results[i].type) for i in kept]
        made = Op(op.name, self.of(args), types, op.loc)
        first = 1 if op.name == "for" else 0
        for block in op.blocks:
            copy = made.add_block()
            for n, arg in enumerate(block.args):
                if n < first or n - first in kept:
                    own = self.type_of(arg.type) if n < first or type is None else type
                    self.map(arg, copy.add_arg(own, arg.name))
            with self.build.into(copy):
                for o in block.ops:
                    each(o)
        self.build.block.append(made)
        for i, new in zip(kept, made.results, strict=True):
            self.map(op.results[i], new)


def _effects(op: Op) -> Iterator[bool]:
    """Yield True for each nested operation with effects besides its results."""
    for o in op.walk():
        yield (o.name in EFFECTS or o.name.startswith("system.")) and o.name not in ("yield", "for", "if")


def _is_pure(op: Op, sum: Sum) -> bool:
    """Return True if a loop or if only computes its sum."""
    return all(r in sum.members for r in op.results) and not any(_effects(op))


def alike(spans: list[Any]) -> Any:
    """Return the positions of blocks, if they are constants."""
    found = []
    for at, rows, cols in spans:
        for span in (rows, cols):
            if isinstance(span.valid, tuple) or index.known(span.valid) is None:
                return None
        found.append((at, *((s.start, s.size, index.known(s.valid)) for s in (rows, cols))))
    return found
