"""Kind of core of each function: `ctx.kinds`, function name -> "cube", "vector" or "mix".

The attribute `pto.kernel_kind` and sections declare it. Otherwise instructions of a single kind of core
decide, in the function and its callees. A function without such instructions takes the kind of its callers if
they agree. All other functions are "mix": they need both kinds of core, or run on either kind.

The pass does not change the program: a function without the attribute is emitted without a guard, so that
code of both kinds can call it.
"""

from __future__ import annotations

from ..ir.core import Operation
from ..isa.machine import SECTIONS
from .edit import function_name
from .pipeline import PassContext

_KINDS = ("cube", "vector")

Call = tuple[str, Operation, str]  # callee, the call, kind of the section around it


def run(ctx: PassContext) -> None:
    functions = {function_name(f): f for f in ctx.module.functions}
    given: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    calls: dict[str, list[Call]] = {}
    for name, func in functions.items():
        kind = func.attr("pto.kernel_kind")
        if kind in _KINDS:
            given[name] = str(kind)
        found[name], calls[name] = _evidence(func)
    for name in _callees_first(calls):
        for callee, _, section in calls[name]:
            if not section and callee in functions:
                found[name] |= {given[callee]} if callee in given else found[callee]
    kinds = {
        name: given.get(name) or (next(iter(seen)) if len(seen) == 1 else "mix")
        for name, seen in found.items()
    }
    _inherit(kinds, found, given, calls)
    ctx.kinds = kinds
    for name in functions:
        for callee, call, section in calls[name]:
            core = section or given.get(name)
            if core and callee not in given and found.get(callee, set()) and core not in found[callee]:
                _wrong_core(ctx, call, functions[callee], core)


def _evidence(func: Operation) -> tuple[set[str], list[Call]]:
    """Return the kinds of core that instructions and sections of a function imply, and its calls."""
    found: set[str] = set()
    calls: list[Call] = []
    stack: list[tuple[Operation, str]] = [(func, "")]
    while stack:
        op, section = stack.pop()
        row = op.row
        if row is not None and row.core and not section:
            found.add(row.core)
        if op.name == "func.call":
            calls.append((str(op.attr("callee")), op, section))
        inner = SECTIONS.get(op.name, section)
        for region in op.regions:
            for block in region.blocks:
                stack.extend((child, inner) for child in block.ops)
    return found, calls


def _callees_first(calls: dict[str, list[Call]]) -> list[str]:
    """Return the functions, callees before callers; a legal program has no recursion."""
    order: list[str] = []
    seen: set[str] = set()
    for root in calls:
        stack = [(root, False)]
        while stack:
            name, done = stack.pop()
            if done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack.extend((callee, False) for callee, _, _ in calls[name] if callee in calls)
    return order


def _inherit(
    kinds: dict[str, str], found: dict[str, set[str]], given: dict[str, str], calls: dict[str, list[Call]]
) -> None:
    """Give a function without evidence the kind of its callers, if that is one kind."""
    callers: dict[str, set[str]] = {}
    for name in reversed(_callees_first(calls)):
        if name not in given and not found[name] and len(callers.get(name, ())) == 1:
            kinds[name] = next(iter(callers[name]))
        for callee, _, section in calls[name]:
            callers.setdefault(callee, set()).add(section or kinds[name])


def _wrong_core(ctx: PassContext, call: Operation, callee: Operation, core: str) -> None:
    name = function_name(callee)
    other = "vector" if core == "cube" else "cube"
    d = ctx.report(
        call,
        "PTO-E1003",
        f"cannot call '@{name}' in {core} code: it runs on a {other} core",
        at=f"@{name}",
        expected=f"instructions of a {core} core",
        got=f"instructions of a {other} core",
        help=f"call it from {other} code, or give it pto.kernel_kind = #pto.kernel_kind<{other}>",
    )
    d.notes.append(("defined here", ctx.span(callee)))
