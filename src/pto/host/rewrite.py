"""Rewrite launches in the sources of a program: `kernel<T><<<blocks, nullptr, stream>>>(arguments)`.

Host compilers do not accept this syntax, so every launch becomes a call of a function in pto_host.hpp. All
other text stays at its position, so line numbers are those of the file.

A kernel is mixed if it tests for both kinds of core (`__DAV_CUBE__`, `__DAV_VEC__`), itself or in a function
that it calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from ..codegen.cpp.spelling import string
from ..diag import Diagnostic, DiagnosticError, Source, Span
from ..engine.cpp.handwritten import without_comments
from ..engine.cpp.places import functions_in
from ..isa.machine import SUBBLOCKS

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_HEADER = '#include "pto_host.hpp"\n'


def has_launches(text: str) -> bool:
    return "<<<" in without_comments(text)


#: Macros that test for a kind of core, and the constants that many programs derive from them.
_KINDS = [re.compile(rf"(?:__|\b)DAV_(?:\w+_)?{kind}(?:__|\b)") for kind in ("CUBE", "VEC")]


def rewritten(source: Source, mixed: Collection[str] = ()) -> str:
    """Return a file with its launches as calls; raise `DiagnosticError` for an invalid launch. `mixed` are
    names of kernels."""
    text, bare = source.text, without_comments(source.text)
    parts: list[str] = []
    at = 0
    while (begin := bare.find("<<<", at)) >= 0:
        callee = _callee(bare, begin)
        end = bare.find(">>>", begin)
        open = _skip(bare, end + 3) if end >= 0 else len(bare)
        if callee is None or end < 0 or bare[open : open + 1] != "(":
            raise DiagnosticError([
                Diagnostic("PTO-E2421", "cannot parse this launch", Span(source, begin, begin + 3),
                           expected="kernel<<<blocks, nullptr, stream>>>(arguments)",
                           help="write the name of a kernel before <<<, with its template arguments")
            ])  # fmt: skip
        parts.append(text[at:callee])
        called = text[callee:begin]
        name = re.findall(r"\w+", called.partition("<")[0])[-1]
        about = f"{string(' '.join(called.split()))}, {SUBBLOCKS if name in mixed else 0}"
        call = f"[](auto... pto_a) {{ {called}(pto_a...); }}"
        parts.append(f"::pto::host::kernel<struct pto_at_{begin}>({about}, {call})")
        parts.append(f"({text[begin + 3 : end]}){text[end + 3 : open]}")
        at = open
    parts.append(text[at:])
    return "".join(parts)


def _callee(bare: str, end: int) -> int | None:
    """Return the start of the name that a launch calls, including namespaces and template arguments; None
    without a name."""
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


def sources_of(source: Source) -> list[tuple[str, Source]]:
    """Return a source and the files that it includes by relative names, each with the name in the include."""
    path = os.path.abspath(source.name)
    found = [(os.path.basename(path), Source(path, source.text))]
    seen = {path}
    for _, file in found:  # the list grows in the loop
        for relative in INCLUDE.findall(file.text):
            inner = os.path.realpath(os.path.join(os.path.dirname(file.name), relative))
            if inner in seen or not os.path.isfile(inner) or len(seen) > 500:
                continue
            seen.add(inner)
            with open(inner, encoding="utf-8", errors="replace") as f:
                found.append((relative, Source(inner, f.read())))
    return found


def mixed_kernels(sources: Collection[Source]) -> set[str]:
    """Return the functions that test for both kinds of core, themselves or in functions that they call."""
    words: dict[str, set[str]] = {}
    kinds: dict[str, set[int]] = {}
    for source in sources:
        text = without_comments(source.text)
        for f in functions_in(source):
            body = text[f.start : f.end]
            words.setdefault(f.name, set()).update(re.findall(r"[A-Za-z_]\w*", body))
            asked = {n for n, kind in enumerate(_KINDS) if kind.search(body)}
            kinds.setdefault(f.name, set()).update(asked)
    calls = {name: (found & words.keys()) - {name} for name, found in words.items()}
    changed = True
    while changed:
        changed = False
        for name, called in calls.items():
            more = set().union(*(kinds[n] for n in called)) - kinds[name]
            kinds[name] |= more
            changed |= bool(more)
    return {name for name, asked in kinds.items() if len(asked) == len(_KINDS)}


def units(source: Source, mixed: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield name and text of a source, and of the files with launches that it includes by relative names. The
    first is the source; without launches, its text only includes the file."""
    (name, whole), *others = sources_of(source)
    begins = f'{_HEADER}#line 1 "{whole.name}"\n'
    yield (
        name,
        (begins + rewritten(source, mixed) if has_launches(source.text) else f'#include "{whole.name}"\n'),
    )
    for relative, inner in others:
        if has_launches(inner.text) and not relative.startswith(("/", "..")):
            yield relative, f'#line 1 "{inner.name}"\n' + rewritten(inner, mixed)
