"""Cross-core FIFOs: rules about pipe initialization that span a whole function or module."""

from __future__ import annotations

from ..ir.context import Context
from ..ir.core import Operation, Value, uses
from ..ir.facts import fifo_end, fifo_use, is_manual
from ..isa.machine import C2V, DIRECTIONS, V2C
from ..isa.record import Record

#: Instructions on entries; the others act on a FIFO.
_USES = ("push", "pop", "free")
_FROM = "pto.reserve_buffer or pto.import_reserved_buffer"
_LOCAL_ALLOCS = ("pto.alloc_tile", "memref.alloc")

Key = tuple[str, str, int]  # function that owns the buffer, its name, direction bit


class End(Record):
    """One end of a pipe: its initialization, its buffers and its users."""

    func: Operation
    init: Operation
    keys: list[Key]
    users: list[Operation]

    @property
    def splits(self) -> set[bool]:
        return {bool(op.attr("split")) for op in self.users}

    @property
    def nosplit(self) -> bool | None:
        found = self.init.attrs.get("nosplit")
        return None if found is None else bool(found.value)


def check_fifos(context: Context) -> None:
    names = {f.attr("sym_name") for f in context.module.functions}
    reserved: dict[tuple[str, str], Operation] = {}
    for func in context.module.functions:
        for op in func.walk():
            if op.name == "pto.reserve_buffer":
                key = (str(func.attr("sym_name")), str(op.attr("name")))
                if key in reserved:
                    context.report(
                        op, "PTO-E1102", f"buffer '{key[1]}' is reserved twice in this function", at="name"
                    )
                reserved[key] = op
    manual = is_manual(context.module, context.level)
    for func in context.module.functions:
        _function(context, func)
        for op in func.walk():
            if op.name == "pto.import_reserved_buffer":
                peer, name = str(op.attr("peer_func")), str(op.attr("name"))
                if peer not in names:
                    context.report(op, "PTO-E0204", f"undefined function '@{peer}'", at=f"@{peer}")
                elif (peer, name) not in reserved:
                    context.report(
                        op,
                        "PTO-E1103",
                        f"unknown buffer '{name}' in '@{peer}'",
                        help="add pto.reserve_buffer there, with this name",
                    )
        if not manual:
            _fixed_buffers(context, func)
    _peers(context, [end for func in context.module.functions for end in _ends(func)])


def _fixed_buffers(context: Context, func: Operation) -> None:
    ops = list(func.walk())
    planned = next((op for op in ops if op.name in _LOCAL_ALLOCS), None)
    for op in ops:
        if op.name == "pto.reserve_buffer" and op.attr("auto") is False and planned is not None:
            d = context.report(
                op,
                "PTO-E0905",
                "with auto = false cannot be used while local tiles still have to be placed",
                at="auto",
                help="use auto = true, or give every tile an address",
            )
            d.notes.append(("this tile has no address", context.span(planned)))


# ----------------------------------------------------------------------------------------------- peer ends


def _ends(func: Operation) -> list[End]:
    ops = list(func.walk())
    name = str(func.attr("sym_name"))
    handles = uses(func.regions[0]) if func.regions else {}
    found: list[End] = []
    for op in ops:
        mask = op.attr("dir_mask")
        if fifo_use(op) != "open":
            continue
        if fifo_end(op):
            buffers = [("c2v_consumer_buf", C2V), ("v2c_consumer_buf", V2C)]
            keys = [
                k
                for b, bit in buffers
                if isinstance(mask, int) and mask & bit and (k := _key(name, op.get(b), bit))
            ]
            found.append(End(func, op, keys, [u for u in ops if _is_user(u) and _id(u) == _id(op)]))
        else:
            places = [("local_addr", V2C if mask == V2C else C2V), ("peer_local_addr", V2C)]
            keys = [k for b, bit in places if (k := _key(name, op.get(b), bit))]
            users = [u for u, _ in handles.get(op.result, []) if fifo_use(u) in _USES]
            found.append(End(func, op, keys, users))
    return found


def _key(func: str, buffer: Value | None, direction: int) -> Key | None:
    made = buffer.op if buffer is not None else None
    if made is None:
        return None
    if made.name == "pto.reserve_buffer":
        return func, str(made.attr("name")), direction
    if made.name == "pto.import_reserved_buffer":
        return str(made.attr("peer_func")), str(made.attr("name")), direction
    return None


def _peers(context: Context, ends: list[End]) -> None:
    groups: dict[Key, list[End]] = {}
    for end in ends:
        for key in end.keys:
            groups.setdefault(key, []).append(end)
        if not fifo_end(end.init) and not end.keys and end.init.attr("flag_base") is None:
            context.report(
                end.init,
                "PTO-E1107",
                f"requires local_addr to come from {_FROM} when 'flag_base' is not explicit",
                at=end.init.get("local_addr"),
            )
        _own_split(context, end)
    for key, group in groups.items():
        if len(group) != 2 or group[0].func is group[1].func:
            context.report(
                group[0].init,
                "PTO-E1107",
                f"requires a complete peer init pair when local_addr comes from {_FROM}",
                expected=f"two functions that initialise a pipe on '{key[1]}'",
                got=str(len(group)),
            )
            continue
        a, b = group
        if a.nosplit is not None and b.nosplit is not None and a.nosplit != b.nosplit:
            context.report(
                b.init, "PTO-E1106", "conflicting explicit 'nosplit' across peer pipe init ops", at="nosplit"
            )
        elif len(a.splits) == 1 and len(b.splits) == 1 and a.splits != b.splits:
            d = context.report(b.init, "PTO-E1106", "conflicting pipe split usage across peer pipe init ops")
            d.notes.append(("the other end", context.span(a.init)))


def _own_split(context: Context, end: End) -> None:
    if end.nosplit is True and True in end.splits:
        context.report(
            end.init,
            "PTO-E1106",
            "explicit 'nosplit = true' conflicts with downstream users that require split = 1 or split = 2",
            at="nosplit",
        )
    elif end.nosplit is False and False in end.splits:
        context.report(
            end.init,
            "PTO-E1106",
            "explicit 'nosplit = false' conflicts with downstream users that require split = 0",
            at="nosplit",
        )


def _function(context: Context, func: Operation) -> None:
    ops = list(func.walk())
    inits = [op for op in ops if _is_init(op)]
    if len({op.name for op in inits}) > 1:
        context.report(
            next(op for op in inits if op.name != inits[0].name),
            "PTO-E1101",
            "cannot mix pto.aic_initialize_pipe and pto.aiv_initialize_pipe in one function",
        )
    by_id: dict[int, Operation] = {}
    for op in inits:
        if by_id.setdefault(_id(op), op) is not op and op.name == by_id[_id(op)].name:
            d = context.report(
                op,
                "PTO-E1101",
                f"requires at most one {op.name} in a function"
                + (f" with id = {_id(op)}" if "id" in op.attrs else ""),
                help="give every pipe an id of its own",
            )
            d.notes.append(("first initialized here", context.span(by_id[_id(op)])))
    users: dict[int, list[Operation]] = {}
    begun: set[int] = set()
    for op in ops:
        if _is_init(op):
            begun.add(_id(op))
        elif _is_user(op):
            users.setdefault(_id(op), []).append(op)
            if _id(op) in by_id and _id(op) not in begun:
                d = context.report(
                    op,
                    "PTO-E1104",
                    "requires a dominating frontend initialize_pipe op",
                    help="initialise the pipe first",
                )
                d.notes.append(("initialised here", context.span(by_id[_id(op)])))
                begun.add(_id(op))  # the other instructions have the same problem
    for number, mine in users.items():
        init = by_id.get(number)
        if init is not None:
            _users(context, init, mine)
            continue
        missing = f" with id = {number}" if inits else ""
        context.report(
            mine[0],
            "PTO-E1104",
            f"requires a frontend initialize_pipe op in the same function{missing}",
            help=f"add pto.aic_initialize_pipe or pto.aiv_initialize_pipe{missing} before it",
        )


def _is_init(op: Operation) -> bool:
    """Return True if a frontend instruction initializes an end."""
    return bool(fifo_end(op)) and fifo_use(op) == "open"


def _is_user(op: Operation) -> bool:
    """Return True if a frontend instruction handles entries."""
    return bool(fifo_end(op)) and fifo_use(op) in _USES


def _id(op: Operation) -> int:
    found = op.attr("id")
    return found if isinstance(found, int) else 0


def _users(context: Context, init: Operation, users: list[Operation]) -> None:
    """Check the frontend instructions of one pipe of a function."""
    mask = init.attr("dir_mask")
    for op in users:
        assert op.row is not None
        core, bit = op.row.core, op.row.fifo_direction
        if fifo_end(init) != core:
            context.report(
                op,
                "PTO-E1105",
                f"belongs into a {core} function",
                help=f"this function initialises the {fifo_end(init)} side",
            )
        elif isinstance(mask, int) and not mask & bit:
            context.report(
                op,
                "PTO-E1105",
                f"requires the dominating initialize_pipe op to enable {DIRECTIONS[bit]}",
                help=f"set dir_mask = {mask | bit}",
            )
    if len({bool(op.attr("split")) for op in users}) > 1:
        context.report(
            users[-1],
            "PTO-E1106",
            "cannot mix 'split = 0' with 'split = 1' or 'split = 2' on the same logical pipe",
        )
