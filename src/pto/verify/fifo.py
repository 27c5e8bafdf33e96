"""Cross-core FIFOs: rules about pipe initialisation that span a whole function or module."""

from __future__ import annotations

from ..ir.core import Operation
from .context import Context

_INITS = {"pto.aic_initialize_pipe": "cube", "pto.aiv_initialize_pipe": "vector"}
_USERS = {
    "pto.tpush_to_aiv": ("cube", 1), "pto.tpop_from_aic": ("vector", 1), "pto.tfree_from_aic": ("vector", 1),
    "pto.tpush_to_aic": ("vector", 2), "pto.tpop_from_aiv": ("cube", 2), "pto.tfree_from_aiv": ("cube", 2),
}  # fmt: skip
_DIRECTION = {1: "C2V", 2: "V2C"}


def check_fifos(context: Context) -> None:
    names = {f.attr("sym_name") for f in context.module.functions}
    reserved: dict[tuple[str, str], Operation] = {}
    for func in context.module.functions:
        for op in func.walk():
            if op.name == "pto.reserve_buffer":
                key = (str(func.attr("sym_name")), str(op.attr("name")))
                if key in reserved:
                    context.report(op, "PTO-E1102", f"buffer '{key[1]}' is reserved twice in this function", at="name")
                reserved[key] = op
    for func in context.module.functions:
        _function(context, func)
        for op in func.walk():
            if op.name == "pto.import_reserved_buffer":
                peer, name = str(op.attr("peer_func")), str(op.attr("name"))
                if peer not in names:
                    context.report(op, "PTO-E0204", f"undefined function '@{peer}'", at=f"@{peer}")
                elif (peer, name) not in reserved:
                    context.report(op, "PTO-E1103", f"'@{peer}' reserves no buffer '{name}'", help="add pto.reserve_buffer there, with this name")


def _function(context: Context, func: Operation) -> None:
    ops = list(func.walk())
    inits = [op for op in ops if op.name in _INITS]
    kinds = {op.name for op in inits}
    if len(kinds) > 1:
        context.report(inits[1], "PTO-E1101", "cannot mix pto.aic_initialize_pipe and pto.aiv_initialize_pipe in one function")
    for name in kinds:
        same = [op for op in inits if op.name == name]
        if len(same) > 1:
            context.report(same[1], "PTO-E1101", f"requires at most one {name} in a function")
    users = [op for op in ops if op.name in _USERS]
    if not users:
        return
    if not inits:
        context.report(
            users[0], "PTO-E1104", "requires a frontend initialize_pipe op in the same function",
            help="add pto.aic_initialize_pipe or pto.aiv_initialize_pipe before it",
        )  # fmt: skip
        return
    mask = inits[0].attr("dir_mask")
    for op in users:
        core, bit = _USERS[op.name]
        if _INITS[inits[0].name] != core:
            context.report(op, "PTO-E1105", f"belongs into a {core} function", help=f"this function initialises the {_INITS[inits[0].name]} side")
        elif isinstance(mask, int) and not mask & bit:
            context.report(op, "PTO-E1105", f"requires the dominating initialize_pipe op to enable {_DIRECTION[bit]}", help=f"set dir_mask = {mask | bit}")
    kinds_of_split = {bool(op.attr("split")) for op in users}
    if len(kinds_of_split) > 1:
        context.report(users[-1], "PTO-E1106", "cannot mix 'split = 0' with 'split = 1' or 'split = 2' on the same logical pipe")


__all__ = ["check_fifos"]
