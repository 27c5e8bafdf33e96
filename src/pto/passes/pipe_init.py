"""Make the two ends of a FIFO agree on split entries: every initialisation gets `nosplit`.

An explicit `nosplit` has priority; otherwise `nosplit` is true if every user, at both ends, has `split = 0`.
Reserved buffers are prepared for placement: fixed ones are checked, and one that is smaller than its slots is
enlarged, so that no tile is placed where a FIFO writes.
"""

from __future__ import annotations

from ..ir.attrs import BoolAttr, IntAttr
from ..ir.core import Operation
from ..isa.machine import RESERVED_ALIGN
from ..isa.profiles import LOCATIONS
from .edit import operations
from .peers import LogicalPipe, pipes, places, reserved
from .pipeline import PassContext


def run(ctx: PassContext) -> None:
    for func in ctx.module.functions:
        for op in operations(func.regions[0]):
            if op.name == "pto.reserve_buffer" and op.attr("base") is not None:
                _check_base(ctx, op)
    found = pipes(ctx)
    for pipe in found:
        if _sound(ctx, pipe):
            _settle(pipe)
    _make_room(found)


def _check_base(ctx: PassContext, op: Operation) -> None:
    """Check a base that the program sets."""
    base, size, loc = int(op.attr("base")), int(op.attr("size")), str(op.attr("location"))
    capacity = ctx.profile.capacity[loc]
    align = ctx.profile.align if ctx.manual else RESERVED_ALIGN
    if op.attr("auto") and not ctx.manual:
        ctx.report(
            op,
            "PTO-E1108",
            "expects 'base' to be absent when 'auto' is true",
            at="base",
            help="drop the base, or write auto = false",
        )
    elif base % align:
        ctx.report(
            op,
            "PTO-E1108",
            "expects 'base' to satisfy the address-space alignment",
            at="base",
            expected=f"a multiple of {align}",
            got=str(base),
            help=f"nearest legal base: {round(base / align) * align}",
        )
    elif base + size > capacity:
        ctx.report(
            op,
            "PTO-E1108",
            "exceeds available local memory capacity",
            at="base",
            expected=f"base + size <= {capacity}",
            got=f"{base} + {size}",
            help=f"{loc} ({LOCATIONS[loc]}) holds {capacity} bytes",
        )


def _make_room(found: list[LogicalPipe]) -> None:
    """Enlarge a buffer without address to all the slots of its FIFO."""
    needed: dict[tuple[str, str], int] = {}
    here: dict[tuple[str, str], Operation] = {}
    for pipe in found:
        for end in pipe.ends:
            slots = end.init.attr("local_slot_num") or end.init.attr("slot_num")
            for value, _ in places(end.init):
                name = reserved(end.function, value)
                if name is not None and value.op is not None:
                    needed[name] = max(needed.get(name, 0), int(slots) * int(end.init.attr("slot_size")))
                    if value.op.name == "pto.reserve_buffer":
                        here[name] = value.op
    for name, op in here.items():
        if op.attr("base") is None and needed[name] > int(op.attr("size")):
            op.set_attr("size", IntAttr(needed[name]))


def _settle(pipe: LogicalPipe) -> None:
    given = [bool(end.init.attrs["nosplit"].value) for end in pipe.ends if "nosplit" in end.init.attrs]
    splits = {split for end in pipe.ends for split in end.splits}
    nosplit = given[0] if given else splits == {False}
    for end in pipe.ends:
        if "nosplit" not in end.init.attrs:
            end.init.set_attr("nosplit", BoolAttr(nosplit))


def _sound(ctx: PassContext, pipe: LogicalPipe) -> bool:
    for end in pipe.ends:
        if len(end.splits) > 1:
            odd = next(
                op for op in end.users if bool(op.attr("split")) is not bool(end.users[0].attr("split"))
            )
            d = ctx.report(
                odd,
                "PTO-E1106",
                "cannot mix 'split = 0' with 'split = 1' or 'split = 2' on the same logical pipe",
                at="split",
            )
            d.notes.append(("different here", ctx.span(end.users[0])))
            return False
    said = [end for end in pipe.ends if "nosplit" in end.init.attrs]
    for end in said[1:]:
        if bool(end.init.attr("nosplit")) is not bool(said[0].init.attr("nosplit")):
            d = ctx.report(
                end.init,
                "PTO-E1106",
                "conflicting explicit 'nosplit' across peer pipe init ops",
                at="nosplit",
            )
            d.notes.append(("the other end", ctx.span(said[0].init)))
            return False
    used = [end for end in pipe.ends if end.splits]
    if said and used:
        nosplit = bool(said[0].init.attr("nosplit"))
        against = next((end for end in used if nosplit in end.splits), None)
        if against is not None:
            wanted = "split = 1 or split = 2" if nosplit else "split = 0"
            d = ctx.report(
                said[0].init,
                "PTO-E1106",
                f"explicit 'nosplit = {str(nosplit).lower()}' conflicts with downstream users that require "
                f"{wanted}",
                at="nosplit",
            )
            d.notes.append(("used here", ctx.span(against.users[0])))
            return False
    for end in used[1:]:
        if end.splits != used[0].splits:
            d = ctx.report(end.init, "PTO-E1106", "conflicting pipe split usage across peer pipe init ops")
            d.notes.append(("the other end", ctx.span(used[0].init)))
            return False
    return True
