"""Changes of the text that the help of a diagnostic suggests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..diag import Diagnostic
from ..verifier.apply import applied
from .document import Document


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class Fix(NamedTuple):
    title: str
    edits: list[Edit]


_QUOTED = re.compile(r"'([^']*)'")
_MEANT = re.compile(r"did you mean ('[^']*'(?: or '[^']*')*)\?")
_CONSTANT = re.compile(r"use arith\.constant: (%[\w$.\-]+) = (arith\.constant .+)\Z")
_INTO = re.compile(r"(?:put it into|wrap the vector code in) (pto\.[\w.]+) \{ \.\.\. \}")
_TARGET = re.compile(r'set the module attribute pto\.target_arch = "(\w+)"')
_WORD = re.compile(r"[\w$.%@^!#\-]*")


def fixes(document: Document, d: Diagnostic) -> list[Fix]:
    """Return the changes that a diagnostic suggests."""
    return list(_fixes(document, d)) if d.help else []


def _fixes(document: Document, d: Diagnostic) -> Iterator[Fix]:
    text, help = document.text, d.help
    changed = applied(text, help)
    if changed is not None:
        yield Fix(
            "insert " + " and ".join(f"'{q}'" for q in _QUOTED.findall(help)), difference(text, changed)
        )
    m = _TARGET.search(help)
    if m is not None:
        yield from _target(text, m[1])
    span = d.span
    if span is None or span.source is not document.source:
        return
    m = _MEANT.search(help)
    wrong = [w for w in _QUOTED.findall(f"{d.message} '{d.got}'") if w]
    for meant in _QUOTED.findall(m[1]) if m is not None else ():
        for at, end, old in _spelled(text, span.start, span.end, wrong):
            bare = "." in meant and "." not in old and text[at:end] == old  # `tmulls` for `pto.tmuls`
            yield Fix(f"change to '{meant}'", [Edit(at, end, meant.removeprefix("pto.") if bare else meant)])
            break
    begin, end = _statement(document, span.start)
    indent = text[text.rfind("\n", 0, begin) + 1 : begin]
    m = _CONSTANT.search(help)
    if m is not None and not indent.strip():
        known = m[1] in document.names.visible(begin)
        new = [] if known else [Edit(begin, begin, f"{m[1]} = {m[2]}\n{indent}")]
        number = re.compile(r"-?[\w.]+").match(text, span.start)
        if number is not None:
            yield Fix(f"use {m[1]} = {m[2]}", [*new, Edit(number.start(), number.end(), m[1])])
    m = _INTO.search(help)
    if m is not None and not indent.strip():
        inner = text[begin:end].replace("\n", "\n  ")
        yield Fix(f"put it into {m[1]}", [Edit(begin, end, f"{m[1]} {{\n{indent}  {inner}\n{indent}}}")])
    if help == "remove it" and not indent.strip():
        stop = text.find("\n", end) + 1 or len(text)
        if not text[end:stop].strip():
            yield Fix("remove it", [Edit(begin - len(indent), stop, "")])


def _spelled(text: str, start: int, end: int, wrong: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the places in a range where a wrong name is written as a word."""
    for old in wrong:
        at = text.find(old, start, end)
        while at >= 0:
            if not text[at + len(old) : at + len(old) + 1].isalnum():
                yield at, at + len(old), old
            at = text.find(old, at + 1, end)


def _statement(document: Document, offset: int) -> tuple[int, int]:
    """Return the range of the innermost statement at an offset, or that of its line."""
    found: tuple[int, int] | None = None
    module = document.checked.module
    for op in module.walk() if module is not None else ():
        if op.source is document.source and op.start <= offset < op.end and op.name != "builtin.module":
            found = op.start, op.end
    if found is not None:
        return found
    start = document.text.rfind("\n", 0, offset) + 1
    end = document.text.find("\n", offset)
    end = len(document.text) if end < 0 else end
    return start + len(document.text[start:end]) - len(document.text[start:end].lstrip()), end


def _target(text: str, name: str) -> Iterator[Fix]:
    m = re.search(r'pto\.target_arch\s*=\s*"([^"\n]*)"', text)
    if m is not None:
        yield Fix(f"set the target to {name}", [Edit(*m.span(1), name)])
    elif (m := re.search(r"^module(?= *\{)", text, re.MULTILINE)) is not None:
        yield Fix(
            f"set the target to {name}",
            [Edit(m.end(), m.end(), f' attributes {{pto.target_arch = "{name}"}}')],
        )


def difference(old: str, new: str) -> list[Edit]:
    """Return edits of whole lines that turn one text into another."""
    import difflib

    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0  # the usual text has few changes, and the search is slow
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle, wanted = before[head : len(before) - tail], after[head : len(after) - tail]
    starts = [sum(map(len, before[:head]))]
    for line in middle:
        starts.append(starts[-1] + len(line))
    if len(middle) > 2000:
        return [Edit(starts[0], starts[-1], "".join(wanted))]
    found = difflib.SequenceMatcher(None, middle, wanted, autojunk=False).get_opcodes()
    return [Edit(starts[a], starts[b], "".join(wanted[c:d])) for kind, a, b, c, d in found if kind != "equal"]
