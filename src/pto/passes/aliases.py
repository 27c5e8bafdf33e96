"""Alias analysis of on-chip storage: allocations, and every value that names them.

A tile gets further names by views (`subview`, `treshape`, `bitcast`, ..), by pointers taken from it, by loops
and branches that carry it, and by calls that pass it or return it. A storage belongs to the operation that
allocates it: each execution of that operation yields the same bytes. Functions that call each other are
analysed together, so a callee's argument stands for the callers' tiles.

Liveness uses this analysis. `Aliases.of(value)` is a set of storages as the bits of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.core import Block, Operation, Value
from ..ir.types import ConvTileType, MemRefType, ScalarType, TileBufType
from ..isa.machine import LOCATION_OF, MEMORIES, RESERVED_ALIGN
from ..isa.profiles import Profile
from ..isa.tile import size_bytes


class AllocatedStorage:
    """Bytes that one operation allocates: a tile, a local memref or a reserved buffer."""

    __slots__ = (
        "align", "below", "bit", "function", "loc", "op", "partial", "size", "spans", "value", "viewed",
    )  # fmt: skip

    def __init__(self, op: Operation, function: Operation, bit: int, loc: str, size: int, align: int) -> None:
        self.op = op
        self.value = op.results[0]
        self.function = function
        self.bit = bit
        self.loc = loc
        self.size = size
        self.align = align
        self.viewed = False  # True if a view or pointer names a part of the storage
        self.partial = False  # True if a write of the whole tile may leave old content
        #: Steps at which other storages may not overwrite the storage: runs (first, last), in order; see
        #: liveness.
        self.spans: list[tuple[int, int]] = []
        #: Steps of functions that are called while the storage is live. Only storages of these functions have
        #: to stay clear of it.
        self.below: list[tuple[int, int]] = []

    @property
    def reserved(self) -> bool:
        return self.op.name == "pto.reserve_buffer"

    @property
    def footprint(self) -> int:
        """The bytes that it takes, rounded up to its alignment."""
        return -(-self.size // self.align) * self.align

    def __repr__(self) -> str:
        return f"<Storage %{self.value.name} {self.loc} {self.size} bytes>"


def allocates(op: Operation) -> bool:
    """Return True if an operation allocates on-chip storage without an address."""
    name = op.name
    if name == "pto.alloc_tile":
        return op.get("addr") is None
    if name in ("memref.alloc", "memref.alloca"):
        type = op.results[0].type
        return isinstance(type, MemRefType) and type.local
    return name == "pto.reserve_buffer" and bool(op.attr("auto")) and op.attr("base") is None


def location(op: Operation) -> str:
    if op.name == "pto.reserve_buffer":
        return LOCATION_OF[str(op.attr("location"))]
    type = op.results[0].type
    found = type.space if isinstance(type, MemRefType) else getattr(type, "loc", "vec")
    return LOCATION_OF.get(found, "vec")


def storage_bytes(op: Operation) -> int | None:
    """Return the bytes of an allocation; None if its size is dynamic."""
    if op.name == "pto.reserve_buffer":
        return int(op.attr("size"))
    type = op.results[0].type
    if isinstance(type, TileBufType):
        if type.compact == "row_plus_one":  # one more row between blocks, or one more element between rows
            rows = -(-type.rows // 16) * 16 + 1
            return size_bytes(rows, type.cols + 1, type.bits or 8)
        if type.compact == "normal":
            return size_bytes(
                -(-type.rows // 16) * 16 if type.boxed else type.rows, type.cols, type.bits or 8
            )
        return type.size
    assert isinstance(type, ConvTileType | MemRefType)
    total = 1
    for d in type.dims:
        if d is None:
            return None
        total *= d
    return size_bytes(1, total, type.bits or 8)


class Aliases:
    """The storages of some functions, and the values that name them."""

    def __init__(
        self, functions: list[Operation], callees: dict[Operation, Operation], profile: Profile
    ) -> None:
        self.functions = functions
        #: Function definition of each call.
        self.callees = callees
        self.storages: list[AllocatedStorage] = []
        self.unsized: list[Operation] = []
        #: Storages that a loop, branch or return passes on, so that their content outlives the allocation.
        self.carried = 0
        self.profile = profile
        #: The storages that a value names; values without storage are left out.
        self.names: dict[Value, int] = {}
        self._flow: dict[Value, list[Value]] = {}
        self._addresses: set[Value] = set()  # numbers that are addresses of tiles
        self._handed: list[Value] = []
        self._partial: list[Value] = []
        for function in functions:
            for block in function.regions[0].blocks:
                for op in block.ops:
                    self._collect(op, function)
        self._spread()

    def of(self, value: Value) -> int:
        return self.names.get(value, 0)

    def members(self, mask: int) -> Iterator[AllocatedStorage]:
        """Yield the storages of a set, in order."""
        while mask:
            low = mask & -mask
            yield self.storages[low.bit_length() - 1]
            mask ^= low

    # -- collecting ------------------------------------------------------------------------------------

    def _collect(self, op: Operation, function: Operation) -> None:
        name = op.name
        if op.regions:
            self._control(op)
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.ops:
                        self._collect(inner, function)
        elif op.successors:
            for successor in op.successors:
                self._copy(successor.args, successor.block.args)
                self._handed.extend(successor.args)
        elif name == "func.call":
            self._call(op)
        elif name == "pto.talias":
            self._copy(op.operands[:1], op.operands[1:2])
            if _untouched(op.operands[1], op):
                self.names.pop(op.operands[1], None)
        elif name == "pto.tget_scale_addr":  # data and its scales have related addresses
            self._copy(op.operands[:1], op.operands[1:2])
            self._partial.append(op.operands[0])
        elif name == "pto.set_validshape":
            self._partial.append(op.operands[0])
        elif op.results:
            if allocates(op):
                self._add(op, function)
            elif op.operands:
                self._derive(op)

    def _add(self, op: Operation, function: Operation) -> None:
        size, loc = storage_bytes(op), location(op)
        if size is None:
            self.unsized.append(op)
            return
        align = (
            RESERVED_ALIGN
            if op.name == "pto.reserve_buffer"
            else max(MEMORIES[loc].align, self.profile.align)
        )
        storage = AllocatedStorage(op, function, len(self.storages), loc, size, align)
        self.storages.append(storage)
        self.names[storage.value] = 1 << storage.bit

    def _derive(self, op: Operation) -> None:
        """Let results name the storages of the operands. A number does so only if it is a cast address."""
        addresses = self._addresses
        cast = op.name == "builtin.unrealized_conversion_cast"
        sums = op.row is not None and op.row.dialect == "arith" and bool(addresses)
        for result in op.results:
            if isinstance(result.type, ScalarType):
                if not cast and not (sums and any(v in addresses for v in op.operands)):
                    continue
                addresses.add(result)
            for operand in op.operands:
                self._copy((operand,), (result,))

    def _control(self, op: Operation) -> None:
        """Follow values that a structured operation carries into, around and out of its regions."""
        results = list(op.results)
        ends = [block.ops[-1] for region in op.regions for block in region.blocks if block.ops]
        if op.name == "scf.for":
            carried = op.regions[0].blocks[0].args[1:]
            self._copy(op.operands[3:], carried)
            self._copy(carried, results)
            for end in ends:
                self._copy(end.operands, carried)
        elif op.name == "scf.while":
            before, after = (_args(region.blocks) for region in op.regions)
            self._copy(op.operands, before)
            for end in ends:
                if end.name == "scf.condition":
                    self._copy(end.operands[1:], after)
                    self._copy(end.operands[1:], results)
                elif end.name == "scf.yield":
                    self._copy(end.operands, before)
        else:
            for region in op.regions:
                args = _args(region.blocks)
                if op.operands and args:
                    for arg in args:
                        self._copy(op.operands, [arg] * len(op.operands))
            for end in ends:
                if results and not end.successors:
                    if len(end.operands) == len(results):
                        self._copy(end.operands, results)
                    else:  # an unknown operation
                        for r in results:
                            self._copy(end.operands, [r] * len(end.operands))
        for end in ends:
            self._handed.extend(end.operands)

    def _call(self, op: Operation) -> None:
        callee = self.callees.get(op)
        if callee is None or not callee.regions or not callee.regions[0].blocks:
            for r in op.results:
                self._copy(op.operands, [r] * len(op.operands))
            return
        blocks = callee.regions[0].blocks
        self._copy(op.operands, blocks[0].args)
        for block in blocks:
            if block.ops and block.ops[-1].name == "func.return":
                self._copy(block.ops[-1].operands, op.results)
                self._handed.extend(block.ops[-1].operands)

    def _copy(self, sources: Iterable[Value], targets: Iterable[Value]) -> None:
        for source, target in zip(sources, targets, strict=False):
            if isinstance(source.type, ScalarType):
                if source not in self._addresses:
                    continue
                self._addresses.add(target)
            self._flow.setdefault(source, []).append(target)

    # -- names -----------------------------------------------------------------------------------------

    def _spread(self) -> None:
        """Propagate names along the flow of values, up to the fixpoint."""
        names, flow = self.names, self._flow
        waiting = list(names)
        while waiting:
            source = waiting.pop()
            mask = names[source]
            for target in flow.get(source, ()):
                old = names.get(target, 0)
                if mask & ~old:
                    names[target] = old | mask
                    waiting.append(target)
        for value in self._handed:
            self.carried |= names.get(value, 0)
        for value in self._partial:
            for storage in self.members(names.get(value, 0)):
                storage.partial = True
        for value, mask in names.items():
            op = value.op
            if (
                op is not None
                and op.row is not None
                and op.row.effect in ("alias", "pure")
                and op.regions == ()
            ):
                if op.name != "arith.select":
                    for storage in self.members(mask):
                        storage.viewed = True


def _untouched(value: Value, until: Operation) -> bool:
    """Return True if a tile is not used between its allocation and an operation of the same block."""
    made = value.op
    if made is None or made.parent is not until.parent or until.parent is None:
        return False
    ops = until.parent.ops
    between = ops[ops.index(made) + 1 : ops.index(until)]
    return not any(value in op.operands for top in between for op in top.walk())


def _args(blocks: list[Block]) -> list[Value]:
    return blocks[0].args if blocks else []
