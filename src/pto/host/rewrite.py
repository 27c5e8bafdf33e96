"""Launches as C++: `kernel<T><<<blocks, nullptr, stream>>>(arguments)` in the sources of a program.

No compiler of ours reads that, so every such launch becomes a call that pto_host.hpp has. What stands before,
between and behind stays where it was, so lines are those of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ..diag import Diagnostic, DiagnosticError, Source, Span
from ..engine.cpp.handwritten import without_comments

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_HEADER = '#include "pto_host.hpp"\n'


def has_launches(text: str) -> bool:
    return "<<<" in without_comments(text)


def rewritten(source: Source) -> str:
    """A file whose launches are calls; raises where one cannot be read."""
    text, bare = source.text, without_comments(source.text)
    parts: list[str] = []
    at = 0
    while (begin := bare.find("<<<", at)) >= 0:
        callee = _callee(bare, begin)
        end = bare.find(">>>", begin)
        open = _skip(bare, end + 3) if end >= 0 else len(bare)
        if callee is None or end < 0 or bare[open : open + 1] != "(":
            raise DiagnosticError([
                Diagnostic("PTO-E2421", "a launch that cannot be read", Span(source, begin, begin + 3),
                           expected="kernel<<<blocks, nullptr, stream>>>(arguments)",
                           help="write the name of a kernel before it, with its template arguments")
            ])  # fmt: skip
        parts.append(text[at:callee])
        parts.append(f"::pto::host::kernel([](auto... pto_a) {{ {text[callee:begin]}(pto_a...); }})")
        parts.append(f"({text[begin + 3 : end]}){text[end + 3 : open]}")
        at = open
    parts.append(text[at:])
    return "".join(parts)


def _callee(bare: str, end: int) -> int | None:
    """Where the name begins that a launch calls, with its template arguments and namespaces."""
    at = end
    while at > 0 and bare[at - 1].isspace():
        at -= 1
    if bare[at - 1 : at] == ">":
        angles = parentheses = 0
        while at > 0:
            at -= 1
            parentheses += {")": 1, "(": -1}.get(bare[at], 0)
            angles += {">": 1, "<": -1}.get(bare[at], 0) if not parentheses else 0
            if angles == 0 and not parentheses:
                break
    m = re.search(r"(?:::\s*)?(?:\b\w+\s*::\s*(?:template\s+)?)*\b[A-Za-z_]\w*\s*$", bare[:at])
    return m.start() if m is not None else None


def _skip(bare: str, at: int) -> int:
    while at < len(bare) and bare[at].isspace():
        at += 1
    return at


def units(source: Source) -> Iterator[tuple[str, str]]:
    """Name and text of a source and of the files that it includes by relative names, as far as they have
    launches; the first is the source itself, as it is where it has none."""
    path = os.path.abspath(source.name)
    name = os.path.basename(path)
    begins = f'{_HEADER}#line 1 "{path}"\n'
    yield name, (begins + rewritten(source) if has_launches(source.text) else f'#include "{path}"\n')
    waiting = [(source.text, os.path.dirname(path))]
    seen = {path}
    while waiting:
        text, folder = waiting.pop()
        for relative in _INCLUDE.findall(text):
            found = os.path.realpath(os.path.join(folder, relative))
            if found in seen or not os.path.isfile(found) or len(seen) > 500:
                continue
            seen.add(found)
            with open(found, encoding="utf-8", errors="replace") as f:
                inner = f.read()
            waiting.append((inner, os.path.dirname(found)))
            if has_launches(inner) and not relative.startswith(("/", "..")):
                yield relative, f'#line 1 "{found}"\n' + rewritten(Source(found, inner))
