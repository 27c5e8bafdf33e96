"""Pass tasks the windows of tensors that they use, so that tasks on different parts of a tensor run in any
order.

    for r in pl.parallel(0, 64, 16):            for r in pl.parallel(0, 64, 16):
        with pl.at():                               w = y[r : r + 16, :]
            t = pl.load(x, [r, 0], ..)              with pl.at():
            pl.store(t, [r, 0], y)                      ..
                                                        pl.store(t, [0, 0], w)

A window is the least box that holds everything that a region loads, stores and slices of a tensor. The box
must follow from numbers outside of the region, from loops of constant length in it, and from the block number
if the number of blocks is constant; in other dimensions it covers the whole tensor. A tensor that a region
uses in other ways is passed whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dtypes import INDEX
from ..ir import Dim, Number, Op, Program, ScalarType, TensorType, Value, index, values_in
from ..operators.memory import dense_strides
from .copies import lies_without_gaps
from .rewrite import Rewriter, each_function

#: Operations that use a part of a tensor: the tensor, and the offset of the part.
_PARTS = {
    "load": ("tensor", "offsets"),
    "store": ("output_tensor", "offsets"),
    "assemble": ("target", "offset"),
    "slice": ("x", "offset"),
    "read": ("x", "offset"),
    "write": ("x", "offset"),
}
#: A number as a sum: its constant term, and the coefficient of each value.
Terms = tuple[int, dict[Value, int]]


def windows(program: Program) -> Program:
    return each_function(program, lambda f: _Windows().function(f) if f.kind == "orchestration" else f)


class WindowAxis:
    """One dimension of a window: its offset and its length. `cut`: it ends with the tensor."""

    def __init__(self, start: Terms, size: Dim, cut: bool) -> None:
        self.start = start
        self.size = size
        self.cut = cut


class _Windows(Rewriter):
    def op_region(self, op: Op) -> None:
        if op.args["kind"] not in ("at", "spmd"):
            self.copy(op)
            return
        inner = _Region(self, op)
        inner.copy(op)
        for result in op.results:
            self.map(result, inner.values[result])

    def window(self, tensor: Value, axes: list[WindowAxis]) -> Value:
        """Return a window of a tensor, made before the region."""
        b, whole = self.build, self.of(tensor)
        starts = [self.number(a.start) for a in axes]
        sizes = [
            b.scalar("min", a.size, b.scalar("sub", d, s)) if a.cut else self.of(a.size)
            for a, d, s in zip(axes, whole.type.shape, starts, strict=True)
        ]
        type = whole.type.replace(shape=tuple(sizes), valid=None)
        if not lies_without_gaps(type, whole.type):
            type = type.replace(strides=whole.type.strides or dense_strides(b, whole.type.shape))
        while whole.op is not None and whole.op.name == "slice" and not whole.op.args.get("drop_dims"):
            starts = [b.scalar("add", o, s) for o, s in zip(whole.op.args["offset"], starts, strict=True)]
            whole = whole.op.args["x"]
        made = b.op("slice", [type], x=whole, shape=sizes, offset=starts, valid_shape=None, drop_dims=None)
        made.name = tensor.name
        return made

    def number(self, terms: Terms) -> Number:
        """Return a sum as a number of the orchestrator."""
        total: Number = terms[0]
        for value, times in terms[1].items():
            total = self.build.scalar("add", self.build.scalar("mul", self.hoisted(value), times), total)
        return total

    def hoisted(self, value: Value) -> Value:
        """Return a value outside of the region; compute it there if it was computed inside."""
        if value not in self.values:
            assert value.op is not None
            for v in values_in(value.op.args):
                self.hoisted(v)
            self.copy(value.op)
        return self.of(value)


class _Region(Rewriter):
    """Copies a region, with windows for tensors."""

    def __init__(self, outer: _Windows, region: Op) -> None:
        super().__init__()
        self.build = outer.build
        self.values = outer.values
        self.windows: dict[Value, tuple[Value, list[WindowAxis]]] = {}
        inside, loops = _inside(region), {**_loops(region), **_blocks(region)}
        # windows of all ranks add no dependencies and are passed whole
        kept = region.args.get("windows") or ()
        for tensor, uses in _uses(region, inside).items():
            axes = _box(tensor, uses, loops, inside) if tensor not in kept else None
            if axes is not None:
                self.windows[tensor] = outer.window(tensor, axes), axes
        for value in inside:  # numbers computed before the region are computed in it, too
            self.values.pop(value, None)

    def copy(self, op: Op) -> Op:
        part = _PARTS.get(op.name)
        tensor = op.args.get(part[0]) if part is not None else None
        if part is None or tensor not in self.windows:
            return super().copy(op)
        window, axes = self.windows[tensor]
        offsets = [self._less(o, a.start) for o, a in zip(op.args[part[1]], axes, strict=True)]
        return self.rebuilt(op, {**self.of(op.args), part[0]: window, part[1]: offsets})

    def _less(self, offset: Dim, start: Terms) -> Number:
        constant, terms = _terms(offset)
        total = constant - start[0]
        for value, times in {**dict.fromkeys(start[1], 0), **terms}.items():
            times -= start[1].get(value, 0)
            if times:
                total = self.build.scalar("add", self.build.scalar("mul", self.of(value), times), total)
        return total


# ---- uses of a region ----


def _inside(region: Op) -> set[Value]:
    found: set[Value] = set()
    for op in region.walk():
        found.update(op.results)
        for block in op.blocks:
            found.update(block.args)
    return found


def _uses(region: Op, inside: set[Value]) -> dict[Value, list[tuple[Op, str]]]:
    """Return the operations that use tensors from outside of a region, with the parameter name."""
    found: dict[Value, list[tuple[Op, str]]] = {}
    for op in region.walk():
        for name, arg in op.args.items() if op is not region else ():
            for value in values_in(arg):
                if isinstance(value.type, TensorType) and value not in inside:
                    found.setdefault(value, []).append((op, name))
    return found


def _box(
    tensor: Value, uses: list[tuple[Op, str]], loops: dict[Value, Steps], inside: set[Value]
) -> list[WindowAxis] | None:
    """Return the window of a tensor that a region uses; None if it is the whole tensor or unknown."""
    if tensor.type.layout != "ND":
        return None
    parts: list[tuple[Sequence[Dim], list[int], list[bool], dict[Value, Steps]]] = []
    for op, name in uses:
        part = _PARTS.get(op.name)
        if part is None or name != part[0] or len(op.args[part[1]]) != tensor.type.rank:
            return None
        sure = loops if not _is_guarded(op) else {v: s for v, s in loops.items() if s.bounded}
        parts.append((op.args[part[1]], *_extents(op, tensor.type.rank), sure))
    axes = [
        _axis(tensor.type, d, [(o[d], n[d], cut[d], sure) for o, n, cut, sure in parts], inside)
        for d in range(tensor.type.rank)
    ]
    if all(index.same(a.size, d) for a, d in zip(axes, tensor.type.shape, strict=True)):
        return None
    sizes = TensorType(tensor.type.dtype, tuple(a.size for a in axes))
    last = index.known(axes[-1].size)
    if tensor.type.strides is None and last == 1 and not lies_without_gaps(sizes, tensor.type):
        return None  # columns are strided
    return axes


def _extents(op: Op, rank: int) -> tuple[list[int], list[bool]]:
    """Return upper bounds of a part's extents, and whether each may be smaller."""
    if op.name in ("read", "write"):
        return [1] * rank, [False] * rank
    if op.name in ("load", "slice"):
        shape = list(op.args["shapes" if op.name == "load" else "shape"])
        extent = op.args.get("valid_shape") or shape
    else:
        source = op.args["tile" if op.name == "store" else "source"].type
        shape, extent = (([1] * rank + list(d))[-rank:] for d in (source.shape, source.extent))
    sizes = [n if index.known(n) is not None else m for m, n in zip(shape, extent, strict=True)]
    return sizes, [index.known(n) is None for n in extent]


class Steps:
    """The values of a number in a region: from `start` to `start + last`. `bounded`: they follow from numbers
    in the program that keep every part within its tensor, even in branches that are not taken."""

    def __init__(self, start: Terms, last: int, bounded: bool) -> None:
        self.start = start
        self.last = last
        self.bounded = bounded


def _loops(region: Op) -> dict[Value, Steps]:
    """Return the loops of a region that are sure to run, with their range."""
    found: dict[Value, Steps] = {}
    for op in region.walk():
        if op.name != "for":
            continue
        start, stop, step = (op.args[k] for k in ("start", "stop", "step"))
        length, step = index.known_difference(stop, start), index.known(step)
        if length is not None and step and range(0, length, step):
            begin = _terms(start)
            found[op.blocks[0].args[0]] = Steps(begin, range(0, length, step)[-1], not begin[1])
    return found


def _blocks(region: Op) -> dict[Value, Steps]:
    """Return block numbers with their range, if the number of blocks is constant."""
    count = index.known(region.args.get("core_num") or 1)
    numbers = (op.result for op in region.walk() if op.name == "get_block_idx")
    return {} if not count else {v: Steps((0, {}), count - 1, False) for v in numbers}


def _is_guarded(op: Op) -> bool:
    """Return True if an operation of a region is in a branch, which may not be taken."""
    outer = op.parent.outer if op.parent is not None else None
    while isinstance(outer, Op) and outer.name != "region":
        if outer.name == "if":
            return True
        outer = outer.parent.outer if outer.parent is not None else None
    return False


def _axis(t: TensorType, d: int, parts: list[tuple[Dim, int, bool, dict[Value, Steps]]],
          inside: set[Value]) -> WindowAxis:  # fmt: skip
    """Return the part of a dimension that holds all parts."""
    whole = WindowAxis((0, {}), t.shape[d], False)
    base: dict[Value, int] | None = None
    low = high = 0
    cut = False
    for offset, size, may_end, loops in parts:
        length = index.known(size)
        if length is None:
            return whole
        first, last, fixed = _range(_terms(offset), loops)
        if base is not None and fixed != base:
            return whole
        if base is None:
            if not all(_is_free(v, inside) for v in fixed):
                return whole
            base, low, high = fixed, first, last + length
        low, high, cut = min(low, first), max(high, last + length), cut or may_end
    assert base is not None
    known = index.known(t.shape[d])
    if not base and known is not None:
        low, high, cut = max(low, 0), min(high, known), False
    return WindowAxis((low, base), high - low, cut)


def _range(number: Terms, loops: dict[Value, Steps]) -> tuple[int, int, dict[Value, int]]:
    """Return the least and the greatest value of a number in loops, and the terms that are equal in all
    iterations.
    """
    low, terms = number
    high = low
    while True:
        value = next((v for v in terms if v in loops), None)
        if value is None:
            return low, high, terms
        times, steps = terms[value], loops[value]
        ends = (0, times * steps.last)
        begin, more = steps.start
        low, high = low + times * begin + min(ends), high + times * begin + max(ends)
        rest = {v: n for v, n in terms.items() if v is not value}
        terms = {v: rest.get(v, 0) + times * more.get(v, 0) for v in {**rest, **more}}
        terms = {v: n for v, n in terms.items() if n}


def _is_free(value: Value, inside: set[Value]) -> bool:
    """Return True if the orchestrator has the number or can compute it."""
    if value not in inside:
        return True
    op = value.op
    return (
        op is not None
        and op.name.startswith("scalar.")
        and all(_is_free(v, inside) for v in values_in(op.args))
    )


def _terms(number: Dim) -> Terms:
    """Return a number as a sum of multiples of values."""
    if not isinstance(number, Value):
        return int(number), {}
    op = number.op
    name = op.name.removeprefix("scalar.") if op is not None and op.name.startswith("scalar.") else ""
    if op is None or number.type != ScalarType(INDEX):
        return 0, {number: 1}
    args = list(op.args.values())
    if name in ("add", "sub"):
        a, b = _terms(args[0]), _terms(args[1])
        sign = 1 if name == "add" else -1
        terms = {v: a[1].get(v, 0) + sign * b[1].get(v, 0) for v in _keys(a, b)}
        return a[0] + sign * b[0], {v: n for v, n in terms.items() if n}
    if name == "mul":
        for one, other in (args, args[::-1]):
            if not isinstance(one, Value):
                constant, terms = _terms(other)
                return one * constant, {v: n * one for v, n in terms.items() if one}
    return 0, {number: 1}


def _keys(a: Terms, b: Terms) -> Iterator[Value]:
    return iter({**a[1], **b[1]})
