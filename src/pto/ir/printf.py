"""Formats of `pto.print`: the conversions of C's printf in a text."""

from __future__ import annotations

import re
from functools import cache

from .core import Operation
from .types import ScalarType


@cache
def conversion() -> re.Pattern[str]:
    """Return a pattern for `%%`, or a conversion; fields wider than four digits are text."""
    return re.compile(
        r"%(?:%|(?P<flags>[-+ #0]*)(?P<width>[0-9]{0,4})(?P<precision>\.[0-9]{0,3})?"
        r"(?P<length>hh|h|ll|[lLjzt])?(?P<kind>[diouxXeEfFgGaAcsp]))"
    )


def print_format(op: Operation) -> str:
    """Return the format of a `pto.print` for any printf: the first conversion takes the scalar and fits its
    type, every other `%` is text. With other formats, a program could make printf read or write through
    missing arguments.
    """
    text, type = str(op.attr("format") or "%f"), op.operands[0].type
    is_float = isinstance(type, ScalarType) and type.is_float
    taken = False
    out: list[str] = []
    at = 0
    while (start := text.find("%", at)) >= 0:
        out.append(text[at:start])
        found = conversion().match(text, start)
        if found is None or (taken and found[0] != "%%"):
            out.append("%%")
            at = start + 1
            continue
        at = found.end()
        taken = taken or found[0] != "%%"
        if found[0] != "%%" and is_float and found["kind"] not in "eEfFgG":
            out.append(f"%{found['flags']}{found['width']}f")
        elif found[0] != "%%" and found["kind"] in "sp":
            out.append(f"%{found['flags'].replace('0', '')}{found['width']}d")
        else:
            out.append(found[0])
    return "".join((*out, text[at:]))
