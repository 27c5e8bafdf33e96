"""Cut matrix products into products that the cube can do: of two matrices that fit its memories.

    c = pl.matmul(a, b, b_trans=True)      # a: [256, 512], b: [256, 512]
    pl.store(c, [0, 0], out)

    for all blocks of 128 rows and 256 columns, k ascending:
        a0 = pl.tile.extract(a, 0, k, [128, 32], Left)
        b0 = pl.tile.extract(pl.tile.transpose_view(b), k, 0, [32, 256], Right)
        c0 = pl.matmul_acc(c0, a0, b0)
    pl.store(c0, [0, 0], out)

- Stacks of matrices are multiplied one by one; a row or a column is a matrix.
- A transposed operand is another view of its tile in Mat.
- Operands that exceed Left, Right or Mat, and results that exceed Acc, are cut into blocks, with k ascending,
  so that sums are formed in the same order. An operand that is loaded for a product only is loaded block by
  block if Mat is too small.

The blocks of a result are stored one by one; for other uses, the result is assembled in one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from ...isa.profiles import Profile
from ..enums import AtomicType, MemorySpace
from ..ir import WRITTEN, Dim, Dims, Function, Op, Program, TileType, Value, index, root
from ..operators.cube import PRODUCTS, transposed
from ..problems import UNSUPPORTED, fail
from .clean import is_window
from .rewrite import Rewriter, each_function
from .sums import Piece, Sum, Sums, alike, find_sums

_BOX = 16  # rows of a box of 512 bytes


def matmul(program: Program) -> Program:
    return each_function(
        program, lambda f: f if f.kind == "orchestration" else Products(f, program.profile).function(f)
    )


class Factor:
    """A factor of a product: a matrix, or a stack of them. `turned`: the product takes its transpose."""

    def __init__(self, value: Value, turned: bool) -> None:
        while value.op is not None and value.op.name == "tile.transpose_view":
            value, turned = value.op.args["x"], not turned
        self.value = value
        self.turned = turned and value.type.rank > 1
        self.load = value.op if value.op is not None and value.op.name == "load" else None

    @property
    def stack(self) -> Sequence[int]:
        return self.value.type.shape[:-2]

    def two(self, dims: Sequence[object]) -> tuple[Any, Any]:
        """Return rows and columns in the order of the product."""
        r, c = (1, *dims)[-2:]
        return (c, r) if self.turned else (r, c)

    @property
    def shape(self) -> tuple[int, int]:
        return self.two(self.value.type.shape)

    @property
    def extent(self) -> tuple[Dim, Dim]:
        return self.two(self.value.type.extent)

    @property
    def bytes(self) -> int:
        total = self.value.type.dtype.bits // 8 or 1
        for n in (*self.stack, *(-(-n // _BOX) * _BOX for n in self.shape)):
            total *= n
        return total


class Slab:
    """A run of rows or columns. `valid` is its valid extent; if dynamic, a pair of the valid extent of all
    rows or columns and the start of the run."""

    def __init__(self, start: int, size: int, valid: Dim | tuple[Dim, int], whole: bool = False) -> None:
        self.start, self.size, self.valid, self.whole = start, size, valid, whole


class Products(Sums, Rewriter):
    def __init__(self, function: Function, profile: Profile) -> None:
        super().__init__()
        self.profile = profile
        self.users: dict[Value, list[Op]] = {}
        for op in function.walk():
            for v in set(op.operands()):
                self.users.setdefault(v, []).append(op)
        self.later: dict[Value, Op] = {}  # products that are computed at their store
        self.narrowed: set[Op] = set()  # casts that are part of the move from Acc to Mat
        self.block_of: dict[Op, tuple[int, int]] = {}  # block sizes of the products of a sum
        self.waiting: dict[Op, Sum] = {}  # stores of sums that are computed there
        self.sums = find_sums(function, self)

    def op(self, op: Op) -> None:
        if op in self.sums:
            self.sum_op(op)
        elif "lhs_scale" in op.args:
            self._scaled(op)
        elif op.name in PRODUCTS:
            before, self.build.place = self.build.place, op.loc
            self._product(op)
            self.build.place = before
        else:
            super().op(op)

    def op_store(self, op: Op) -> None:
        made = self.later.pop(op.args["tile"], None)
        if op in self.waiting:
            self.sum_blocks(self.waiting[op], lambda piece: self._store(op, piece))
            return
        if made is None:
            self.copy(op)
            return
        self._pieces(made, lambda piece: self._store(op, piece))

    def _store(self, op: Op, piece: Piece) -> None:
        offsets = self.of(op.args["offsets"])
        at = [0] * (len(offsets) - len(piece.at)) + piece.at[-len(offsets) :]
        places = [self.build.scalar("add", o, n) for o, n in zip(offsets, at, strict=True)]
        self.build.append("store", [], {
            "tile": piece.value, "offsets": places,
            "output_tensor": self.of(op.args["output_tensor"]), "atomic": op.args["atomic"],
        })  # fmt: skip

    # ---- products ----

    def _product(self, op: Op) -> None:
        if not self._is_cut(op):
            self.map(op.result, self._whole(op))
            return
        if op.name.endswith("_acc") and len(list(self._blocks(op, parts="mn"))) > 1:
            self._added(op)
            return
        if len(list(self._blocks(op, parts="mn"))) > 1:
            users = self.users.get(op.result, [])
            if len(users) == 1 and users[0].name == "store" and self._may_wait(op, users[0]):
                self.later[op.result] = op
                return
            narrow = users[0] if len(users) == 1 and self._is_narrowing(users[0]) else None
            self._assembled(op, narrow)
            return
        self._pieces(op, lambda piece: self.map(op.result, piece.value))

    def _scaled(self, op: Op) -> None:
        """Emit a product with scales, which is not cut."""
        if len(list(self._blocks(op))) > 1:
            fail(UNSUPPORTED, f"operands of {op.name} exceed the memories of the cube", op.loc,
                 got=f"{op.args['lhs'].type} and {op.args['rhs'].type}",
                 help="compute it block by block with pl.matmul_mx_acc")  # fmt: skip
        self.copy(op)

    def _added(self, op: Op) -> None:
        """Emit a sum outside of an accumulator: the product, added by the vector core."""
        args = {k: v for k, v in op.args.items() if k not in ("acc", "init_cond")}
        plain = Op(op.name.removesuffix("_acc"), args, [op.result.type], op.loc)
        plain.parent = op.parent
        self._assembled(plain, None)
        product, acc, anew = (
            self.values[plain.result],
            self.of(op.args["acc"]),
            self.of(op.args.get("init_cond")),
        )
        if anew is None or anew is False:
            made = self.build.op("add", [product.type.replace(space="vec")], lhs=acc, rhs=product)
        elif anew is True:
            made = product
        else:
            made = self._either(anew, product, acc)
        self.map(op.result, made)

    def _either(self, anew: Value, product: Value, acc: Value) -> Value:
        """Select the product, or its sum with the accumulator, at run time."""
        made = Op("if", {"cond": anew}, [product.type.replace(space="")], self.build.place)
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": [product]})
        with self.build.into(made.add_block()):
            total = self.build.op("add", [product.type.replace(space="vec")], lhs=acc, rhs=product)
            self.build.append("yield", [], {"values": [total]})
        self.build.block.append(made)
        return made.result

    def cut_alike(self, sum: Sum) -> bool:
        """Return True if a sum is to be cut, with the same blocks for all of its products."""
        if all(len(list(self._blocks(p, "mn"))) == 1 for p in sum.products):
            return False
        sizes = [self._sizes(p)[:2] for p in sum.products]
        self.block_of.update(
            dict.fromkeys(sum.products, (min(r for r, _ in sizes), min(c for _, c in sizes)))
        )
        where = [alike(list(self._blocks(p, "mn"))) for p in sum.products]
        if where[0] is None or any(w != where[0] for w in where):
            for p in sum.products:
                del self.block_of[p]
            return False
        return True

    def _operands(self, op: Op) -> tuple[Factor, Factor]:
        a = op.args
        lhs, rhs = Factor(a["lhs"], a.get("a_trans", False)), Factor(a["rhs"], a.get("b_trans", False))
        if rhs.value.type.rank == 1:  # the column of a product is the row of the transposed product
            return Factor(rhs.value, False), Factor(lhs.value, not lhs.turned)
        return lhs, rhs

    def _is_cut(self, op: Op) -> bool:
        return len(list(self._blocks(op))) > 1 or self._too_large(op)

    def _too_large(self, op: Op) -> bool:
        """Return True if both operands do not fit into Mat with room for those of other products."""
        lhs, rhs = self._operands(op)
        return lhs.bytes + rhs.bytes > self.profile.capacity["mat"]

    def _sizes(self, op: Op) -> tuple[int, int, int]:
        """Return rows, columns and terms of a block."""
        lhs, rhs = self._operands(op)
        (m, k), (_, n) = lhs.shape, rhs.shape
        width = max(1, lhs.value.type.dtype.bits // 8)
        step = max(_BOX, 32 // width)
        rows, cols, terms = (-(-d // g) * g for d, g in ((m, _BOX), (n, _BOX), (k, step)))
        rows, cols = self.block_of.get(op, (rows, cols))
        capacity = self.profile.capacity

        def fitting() -> int:
            most = min(capacity["left"] // (rows * width), capacity["right"] // (cols * width))
            return most // step * step

        bias = capacity["bias"] // 4 if op.name.endswith("_bias") else cols
        while rows * cols * 4 > capacity["acc"] or fitting() < step or cols > bias:
            if rows >= cols and cols <= bias:
                rows = _half(rows)
            else:
                cols = _half(cols)
        most = fitting()
        if terms > most:
            parts = -(-terms // most)
            terms = min(most, _up(-(-terms // parts), step))
        return rows, cols, terms

    def _blocks(self, op: Op, parts: str = "mnk") -> Iterator[tuple[Any, ...]]:
        """Yield every block: its index in the stack, and its rows, columns and terms."""
        lhs, rhs = self._operands(op)
        sizes = self._sizes(op)
        (m, k), (_, n) = lhs.shape, rhs.shape
        (vm, vk), (_, vn) = lhs.extent, rhs.extent
        spans = [self._spans(*x) for x in zip((m, n, k), sizes, (vm, vn, vk), strict=True)]
        stack = op.result.type.shape[: max(len(lhs.stack), len(rhs.stack))]
        for at in product(*(range(index.known(d) or 1) for d in stack)):
            for rows, cols in product(spans[0], spans[1]):
                if parts == "mn":
                    yield at, rows, cols
                else:
                    for terms in spans[2]:
                        yield at, rows, cols, terms

    def _spans(self, whole: int, size: int, valid: Dim) -> list[Slab]:
        if size >= whole:
            return [Slab(0, whole, valid, True)]
        known = index.known(valid)
        out: list[Slab] = []
        for start in range(0, whole, size):
            n = min(size, whole - start)
            if known is None:
                out.append(Slab(start, n, valid if start == 0 else (valid, start)))
            elif known > start:
                out.append(Slab(start, n, min(n, known - start)))
        return out

    # ---- blocks ----

    def _whole(self, op: Op) -> Value:
        """Emit a product that is not cut, with its operands in the cube's memories."""
        lhs, rhs = self._operands(op)
        return self._chosen(
            op, lambda name: self._op(op, name, self._turned(lhs), self._turned(rhs), None, op.result.type)
        )

    def _turned(self, operand: Factor) -> Value:
        value = self.of(operand.value)
        return self._view(value) if operand.turned else value

    def _view(self, value: Value) -> Value:
        made = self.build.op("tile.transpose_view", [transposed(value.type)], x=value)
        made.name = f"{value.name}_t"
        return made

    def _chosen(self, op: Op, make: Callable[[str], Value]) -> Value:
        """Emit a product; with `init_cond`, select one of two."""
        cond = self.of(op.args.get("init_cond"))
        plain = op.name.removesuffix("_acc").removesuffix("_bias")
        if cond is None or not isinstance(cond, Value):
            return make(op.name if not cond else f"{op.name} anew" if is_window(op) else plain)
        made = Op("if", {"cond": cond}, [self.type_of(op.result.type)], op.loc)
        for name in (f"{op.name} anew" if is_window(op) else plain, op.name):
            with self.build.into(made.add_block()):
                self.build.append("yield", [], {"values": [make(name)]})
        self.build.block.append(made)
        return made.result

    def _op(
        self,
        op: Op,
        name: str,
        lhs: Value,
        rhs: Value,
        acc: Value | None,
        type: TileType,
        cols: Slab | None = None,
    ) -> Value:
        args: dict[str, object] = {}
        name, _, anew = name.partition(" ")
        if name.endswith("_acc"):
            args["acc"] = acc if acc is not None else self.of(op.args["acc"])
        args |= {"lhs": lhs, "rhs": rhs}
        if name.endswith("_bias"):
            args["bias"] = self.of(op.args["bias"]) if cols is None or cols.whole else self._bias(op, cols)
        if name == "matmul":
            args |= {"out_dtype": op.args.get("out_dtype"), "a_trans": False, "b_trans": False}
        elif name == "matmul_acc":
            args |= {"a_trans": False, "b_trans": False, "init_cond": bool(anew) or None}
        made = self.build.op(name, [self.type_of(type)], **args)
        made.name = op.result.name
        return made

    def _bias(self, op: Op, cols: Slab) -> Value:
        """Return the part of a bias row for some columns."""
        bias = op.args["bias"]
        if bias.op is not None and bias.op.name == "move":
            bias = bias.op.args["tile"]
        operand = Factor(bias, False)
        rows = Slab(0, 1, 1, True)
        at = (0,) * len(operand.stack)
        if operand.load is not None:
            return self._loaded(operand, at, rows, cols)
        value = self.of(bias)
        shape = [*(1 for _ in value.type.shape[:-1]), cols.size]
        offset = [*(0 for _ in value.type.shape[:-1]), cols.start]
        type = value.type.replace(shape=tuple(shape), valid=None)
        return self.build.op(
            "slice", [type], x=value, shape=shape, offset=offset, valid_shape=None, drop_dims=None
        )

    def _pieces(self, op: Op, take: Callable[[Piece], object]) -> None:
        lhs, rhs = self._operands(op)
        k = lhs.shape[1]
        for at, rows, cols in self._blocks(op, "mn"):
            with self._where(rows), self._where(cols):
                take(Piece(self._place(op, at, rows, cols), self._sum(op, lhs, rhs, at, rows, cols, k)))

    def _place(self, op: Op, at: tuple[int, ...], rows: Slab, cols: Slab) -> list[int]:
        rank = op.result.type.rank
        return ([*at, rows.start, cols.start])[-rank:] if rank > 1 else [cols.start]

    def _sum(
        self, op: Op, lhs: Factor, rhs: Factor, at: tuple[int, ...], rows: Slab, cols: Slab, k: int
    ) -> Value:
        """Compute a block of the result; terms are added in ascending order."""
        shape, valid = self._dims(op, rows, cols)
        type = TileType(op.result.type.dtype, shape, valid, "acc")
        terms = self._spans(k, self._sizes(op)[2], lhs.extent[1])

        def all_terms(name: str) -> Value:
            acc: Value | None = None
            for i, part in enumerate(terms):

                def one(acc: Value | None = acc, i: int = i, part: Slab = part) -> Value:
                    x = self._part(lhs, at, rows, part, MemorySpace.Left)
                    y = self._part(rhs, at, part, cols, MemorySpace.Right)
                    base = name.partition(" ")[0].removesuffix("_acc").removesuffix("_bias")
                    return self._op(op, name if i == 0 else f"{base}_acc", x, y, acc, type, cols)

                acc = (
                    one()
                    if i == 0 or not isinstance(part.valid, tuple)
                    else self._unless_empty(part, acc, type, one)
                )
            assert acc is not None
            return acc

        return self._chosen(op, all_terms)

    def _dims(self, op: Op, rows: Slab, cols: Slab) -> tuple[tuple[int, ...], Dims | None]:
        lead = (1,) * (op.result.type.rank - 2)
        flat = op.result.type.rank == 1
        shape = (cols.size,) if flat else (*lead, rows.size, cols.size)
        v = [self._valid(rows), self._valid(cols)]
        valid = (v[1],) if flat else (*lead, *v)
        return shape, None if index.same_dims(shape, valid) else valid

    def _valid(self, span: Slab) -> Any:
        """Return the valid extent of a run, computed at run time if dynamic."""
        if isinstance(span.valid, tuple):
            whole, start = self.of(span.valid[0]), span.valid[1]
            return self.build.scalar("min", self.build.scalar("sub", whole, start), span.size)
        if span.whole or index.known(span.valid) is not None:
            return self.of(span.valid)
        return self.build.scalar("min", self.of(span.valid), span.size)

    @contextmanager
    def _where(self, span: Slab) -> Iterator[None]:
        """Build inside an if that tests that a run has data."""
        if not isinstance(span.valid, tuple):
            yield
            return
        made = Op(
            "if",
            {"cond": self.build.scalar("gt", self.of(span.valid[0]), span.valid[1])},
            [],
            self.build.place,
        )
        with self.build.into(made.add_block()):
            yield
            self.build.append("yield", [], {"values": []})
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": []})
        self.build.block.append(made)

    def _unless_empty(self, part: Slab, acc: Value | None, type: TileType, one: Callable[[], Value]) -> Value:
        assert isinstance(part.valid, tuple)
        cond = self.build.scalar("gt", self.of(part.valid[0]), part.valid[1])
        made = Op("if", {"cond": cond}, [type], self.build.place)
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": [one()]})
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": [acc]})
        self.build.block.append(made)
        return made.result

    def _part(
        self, operand: Factor, at: tuple[int, ...], rows: Slab, cols: Slab, space: MemorySpace
    ) -> Value:
        """Return a block of an operand."""
        if operand.load is not None and (operand.stack or self._by_blocks(operand)):
            return self._loaded(operand, at, rows, cols)
        value = self.of(operand.value)
        if any(index.known(d) != 1 for d in operand.stack):
            value = self._one_of(operand, value, at)
        if operand.turned:
            value = self._view(value)
        if (rows.size, cols.size) == operand.shape:
            return value
        valid = (self._valid(rows), self._valid(cols))
        shape = (rows.size, cols.size)
        type = TileType(value.type.dtype, shape, None if index.same_dims(valid, shape) else valid, space.isa)
        made = self.build.op("tile.extract", [type], x=value, index_row=rows.start, index_col=cols.start,
                             shape=list(shape), target_memory=space)  # fmt: skip
        made.name = operand.value.name
        return made

    def _by_blocks(self, operand: Factor) -> bool:
        """Return True if a loaded operand and another of its size do not fit into Mat."""
        return operand.bytes > self.profile.capacity["mat"] // 4

    def _one_of(self, operand: Factor, value: Value, at: tuple[int, ...]) -> Value:
        t = value.type
        where = self._stacked(operand, at)
        shape = (*(1 for _ in where), *t.shape[-2:])
        valid = None if t.valid is None else (*(1 for _ in where), *t.valid[-2:])
        made = self.build.op("slice", [t.replace(shape=shape, valid=valid)], x=value, shape=list(shape),
                             offset=[*where, 0, 0], valid_shape=None if valid is None else list(valid),
                             drop_dims=None)  # fmt: skip
        made.name = operand.value.name
        return made

    def _stacked(self, operand: Factor, at: tuple[int, ...]) -> list[int]:
        """Return the index in an operand's own stack; an extent of 1 matches any."""
        n = len(operand.stack)
        return [
            0 if index.known(d) == 1 else i for d, i in zip(operand.stack, at[len(at) - n :], strict=True)
        ]

    def _loaded(self, operand: Factor, at: tuple[int, ...], rows: Slab, cols: Slab) -> Value:
        """Load a block of an operand where it is needed."""
        assert operand.load is not None
        a = operand.load.args
        two = operand.two((rows, cols)) if operand.value.type.rank > 1 else (rows, cols)
        first, second = two
        lead = self._stacked(operand, at)
        starts = [*lead, first.start, second.start][-operand.value.type.rank :]
        shape = [*(1 for _ in lead), first.size, second.size][-operand.value.type.rank :]
        valid = [*(1 for _ in lead), self._valid(first), self._valid(second)][-operand.value.type.rank :]
        partial = not index.same_dims(valid, shape)
        offsets = [self.build.scalar("add", o, n) for o, n in zip(self.of(a["offsets"]), starts, strict=True)]
        type = TileType(operand.value.type.dtype, tuple(shape), tuple(valid) if partial else None, "mat")
        made = self.build.op("load", [type], tensor=self.of(a["tensor"]), offsets=offsets, shapes=shape,
                             valid_shape=valid if partial else None,
                             target_memory=MemorySpace.Mat)  # fmt: skip
        made.name = operand.value.name
        return self._view(made) if operand.turned else made

    # ---- results ----

    def _is_narrowing(self, op: Op) -> bool:
        """Return True for a cast that only products use, to the type to which Acc is rounded on its way to
        Mat.
        """
        users = self.users.get(op.result, []) if op.name == "cast" else []
        narrow = bool(users) and op.args.get("mode") == "rint" and op.result.type.dtype.isa in ("f16", "bf16")
        return narrow and all(u.name in PRODUCTS or u.name == "tile.transpose_view" for u in users)

    def op_cast(self, op: Op) -> None:
        if op not in self.narrowed:
            self.copy(op)

    def _assembled(self, op: Op, narrow: Op | None) -> None:
        """Assemble all blocks of a result in one tile."""
        t = self.type_of(op.result.type)
        if narrow is not None:
            t = t.replace(dtype=narrow.result.type.dtype)
            self.narrowed.add(narrow)
        whole = self.build.op(
            "create_tile", [t.replace(space="")], shape=list(t.shape), dtype=t.dtype, target_memory=None
        )

        self._pieces(op, lambda piece: self._put(whole, piece))
        self.map(op.result if narrow is None else narrow.result, whole)

    def _put(self, whole: Value, piece: Piece) -> None:
        self.build.append("assemble", [], {"target": whole, "source": piece.value, "offset": piece.at,
                                           "atomic": AtomicType.None_})  # fmt: skip

    def _may_wait(self, op: Op, store: Op) -> bool:
        """Return True if a product may be computed at its store: its operands and their sources are not
        written in between."""
        block = op.parent
        if block is None or store.parent is not block:
            return False
        lhs, rhs = self._operands(op)
        loads = [o.load for o in (lhs, rhs) if o.load is not None]
        tensors = {root(load.args["tensor"]) for load in loads} | {root(o.value) for o in (lhs, rhs)}
        begin = min((block.ops.index(o) for o in loads if o.parent is block), default=block.ops.index(op))
        between = block.ops[begin : block.ops.index(store)]
        return not any(
            written in tensors for o in between for w in o.walk() if (written := _target(w)) is not None
        )


def _target(op: Op) -> Value | None:
    name = WRITTEN.get(op.name)
    return root(op.args[name]) if name is not None else None


def _half(n: int) -> int:
    return max(_BOX, _up(-(-n // 2), _BOX))


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


__all__ = ["matmul"]
