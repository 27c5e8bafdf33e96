"""Affine maps of one result, `affine_map<(d0)[s0] -> (d0 floordiv 4 + s0)>`, as functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

_MAP = re.compile(r"affine_map<\s*\(([^)]*)\)\s*(?:\[([^\]]*)\])?\s*->\s*\((.*)\)\s*>", re.DOTALL)
_CEILDIV = re.compile(r"(\w+|\([^()]*\))\s+ceildiv\s+(\w+|\([^()]*\))")
_ARITHMETIC = re.compile(r"(?:[ds]\d+|\d+|[-+*/%()\s])+")


@cache
def affine_map(text: str) -> Callable[..., int]:
    """A function of the dimensions and then the symbols; `SyntaxError` for anything else."""
    m = _MAP.fullmatch(text.strip())
    if m is None:
        raise SyntaxError(text)
    names = ", ".join(part.strip() for part in (m[1], m[2] or "") if part.strip())
    body = re.sub(r"\bfloordiv\b", "//", re.sub(r"\bmod\b", "%", m[3]))
    while "ceildiv" in body:
        body, count = _CEILDIV.subn(r"(-(-(\1) // (\2)))", body, count=1)
        if not count:
            raise SyntaxError(text)
    if not _ARITHMETIC.fullmatch(body):
        raise SyntaxError(text)
    return eval(f"lambda {names}: {body}", {"__builtins__": {}})
