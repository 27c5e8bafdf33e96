"""The diagnostic for an access outside the arrays of a launch, at the operation that made it.

The launch returns the touched addresses, and the mark of the core (a number of `Module.mark`). The operands
of the operation with this mark are followed back to arguments, so that the diagnostic names one of them, as
in the reference engine. An address alone does not identify the intended array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ...diag import Diagnostic, Span
from ...ir.core import Operation, Value
from ...ir.facts import function_of, in_global, provenance, storage_source, touches_global
from ..entry import Launchable
from .library import LaunchOutcome

_HELP = "check offsets, strides and sizes; the array given to the launch may be too small"
#: An address at most this many bytes away from an array counts as an access to that array.
_NEAR = 1 << 40
_CORE = re.compile(r" \([^()]*\)$")

#: Name, address and size of the array of each argument.
Spans = Sequence[tuple[str, int, int] | None]


def problem(
    kernel: Launchable, done: LaunchOutcome, message: str, spans: Mapping[str, Spans], whole: Span | None
) -> Diagnostic:
    """Return the diagnostic; `message` is from the launch, `spans` are the arrays by function, `whole` is the
    location of the function, used if the operation is not known."""
    what, _, text = message.partition(": ")
    core = _CORE.search(message)
    module = kernel.module
    found = [op for f in module.functions for op in f.walk() if module.mark(op) == done.mark]
    found = [op for op in found if touches_global(op)]
    if not found or done.mark < 0:
        return Diagnostic("PTO-E2101", message, whole, help=_HELP)
    op = found[0]
    name = op.row.name if op.row else what
    span = op.loc
    arrays = list(dict.fromkeys(_arrays(op, spans)))
    for array, start, size in arrays:
        low, high = done.touched[0] - start, done.touched[-1] + 1 - start
        near = -_NEAR < low <= size + _NEAR if len(arrays) == 1 else -size < low <= size
        if (low < 0 or high > size) and near:
            text = f"touches bytes {low}..{high} of {array}, which has {size} bytes{core[0] if core else ''}"
            d = Diagnostic(
                "PTO-E2101", f"{name}: {text}", span, expected=f"addresses below {size}",
                got=f"up to {high}", help=_HELP,
            )  # fmt: skip
            made = [step for value in op.operands if in_global(value.type) for step in provenance(value)]
            d.notes.extend((text, step.loc) for text, step in made if step.loc != span)
            return d
    return Diagnostic("PTO-E2101", f"{name}: {text}", span, help=_HELP)


def _arrays(op: Operation, spans: Mapping[str, Spans]) -> Iterator[tuple[str, int, int]]:
    """Yield the arrays of an operation whose operands come directly from arguments."""
    function = function_of(op)
    if function is None:
        return
    known = spans.get(str(function.attr("sym_name")))
    if not known:  # a called function: its arguments are not known
        return
    block = function.regions[0].blocks[0]
    for value in op.operands:
        origin = _origin(value)
        if origin.op is None and origin in block.args:
            array = known[block.args.index(origin)]
            if array is not None:
                yield array


def _origin(value: Value) -> Value:
    """Return the value that a view or pointer was made from."""
    while value.op is not None and (source := storage_source(value.op)) is not None:
        value = source
    return value
