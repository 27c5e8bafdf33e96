"""Functions that run together, and the two ends of a FIFO.

The ends of a FIFO share a buffer: one function reserves it, the other imports it by name. An end of both
directions has two buffers, and may share either of them with its peer. Ends without such a buffer belong
together if they have the same `flag_base`, or the same `id` of the frontend instruction, in functions of one
kernel.
"""

from __future__ import annotations

from ..ir.core import Module, Operation, Value, uses
from ..ir.facts import fifo_use, halves, makes_fifo
from ..isa.machine import BOTH, C2V, V2C
from ..isa.record import Record
from .edit import function_name, operations
from .pipeline import PassContext

Key = tuple[str, str, int]


class Groups:
    """Disjoint sets of names."""

    def __init__(self) -> None:
        self._up: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the representative of a set."""
        up = self._up
        while (above := up.get(name, name)) != name:
            up[name] = up.get(above, above)
            name = above
        return name

    def join(self, a: str, b: str) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            self._up[b] = a


def called_together(module: Module) -> Groups:
    """Return functions that call each other: on one core they use its memory together."""
    groups = Groups()
    for func in module.functions:
        for op in operations(func.regions[0]):
            if op.name == "func.call":
                groups.join(function_name(func), str(op.attr("callee")))
    return groups


def kernels(module: Module) -> Groups:
    """Return functions of one launch: functions that call each other, share a reserved buffer, or are the two
    halves of a kernel."""
    groups = called_together(module)
    for cube, vector in halves({function_name(f): f for f in module.functions}).values():
        groups.join(function_name(cube), function_name(vector))
    for func in module.functions:
        name = function_name(func)
        for op in operations(func.regions[0]):
            if op.name == "pto.import_reserved_buffer":
                groups.join(name, str(op.attr("peer_func")))
    return groups


class PipeEnd(Record):
    """One initialisation, its function, and the instructions that use its handle."""

    function: str
    init: Operation
    users: tuple[Operation, ...]
    keys: tuple[Key, ...]  # keys that the peer has, too

    @property
    def splits(self) -> set[bool]:
        """Return the kinds of entries of its users: split, whole, or both if they disagree."""
        return {bool(op.attr("split")) for op in self.users}


class LogicalPipe:
    """A logical pipe."""

    def __init__(self, ends: list[PipeEnd]) -> None:
        self.ends = ends

    @property
    def functions(self) -> set[str]:
        return {end.function for end in self.ends}

    @property
    def flags(self) -> int:
        """Return the number of flag ids: ready and free, per direction."""
        return 4 if any(end.init.attr("dir_mask") == BOTH for end in self.ends) else 2


def pipes(ctx: PassContext) -> list[LogicalPipe]:
    """Return the logical pipes of a module, in the order of their first initialisation."""
    ends: list[PipeEnd] = []
    groups: Groups | None = None
    for func in ctx.module.functions:
        inits = [op for op in operations(func.regions[0]) if makes_fifo(op)]
        if not inits:
            continue
        groups = groups or kernels(ctx.module)
        handles = uses(func.regions[0])
        name = function_name(func)
        for init in inits:
            users = tuple(op for op, _ in handles.get(init.result, ()) if fifo_use(op))
            ends.append(PipeEnd(name, init, users, _keys(ctx, name, groups.find(name), init)))
    joined = Groups()
    for at, end in enumerate(ends):
        for key in end.keys:
            joined.join(str(key), str(at))
    found: dict[str, list[PipeEnd]] = {}
    for at, end in enumerate(ends):
        found.setdefault(joined.find(str(at)), []).append(end)
    return [LogicalPipe(group) for group in found.values()]


def places(init: Operation) -> list[tuple[Value, int]]:
    """Return the buffers of an initialisation, with their direction."""
    mask = init.attr("dir_mask")
    given = ((init.get("local_addr"), V2C if mask == V2C else C2V), (init.get("peer_local_addr"), V2C))
    return [(value, bit) for value, bit in given if value is not None]


def _keys(ctx: PassContext, func: str, kernel: str, init: Operation) -> tuple[Key, ...]:
    found = tuple(
        (*buffer, bit) for value, bit in places(init) if (buffer := reserved(func, value)) is not None
    )
    if not found and init.attr("flag_base") is not None:
        return ((kernel, "flag base", int(init.attr("flag_base"))),)
    if not found and init in ctx.pipe_ids:
        return ((kernel, "id", ctx.pipe_ids[init]),)
    return found


def reserved(func: str, value: Value) -> tuple[str, str] | None:
    """Return function and name of the reserved buffer with this address."""
    made = value.op
    if made is not None and made.name == "pto.reserve_buffer":
        return func, str(made.attr("name"))
    if made is not None and made.name == "pto.import_reserved_buffer":
        return str(made.attr("peer_func")), str(made.attr("name"))
    return None
