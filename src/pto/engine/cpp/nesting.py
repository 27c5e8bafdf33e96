"""The blocks around a location in C++, and the parts of a file for one kind of core."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ...diag import Source, Span
from ...ir.nesting import BlockStatement
from .handwritten import without_comments

_TOKEN = re.compile(
    r"^[ \t]*#[ \t]*(?P<word>if|ifdef|ifndef|elif|else|endif)\b(?P<condition>(?:[^\n]*\\\n)*[^\n]*)|[{}]",
    re.MULTILINE,
)
_ONLY = re.compile(r"^\s*(?:defined\s*\(?\s*)?__DAV_(VEC|CUBE)__\s*\)?\s*$")
_SECTIONS = {"VEC": "pto.section.vector", "CUBE": "pto.section.cube"}
_HEAD = re.compile(r"(?:\b(?P<word>if(?:\s+constexpr)?|for|while|switch)\s*)$")
_BARE = re.compile(r"\b(?P<word>do|else)\s*$")
_LOOPS = ("for", "while", "do")


class _Block(NamedTuple):
    """A block in braces, or between `#if` and `#endif`; its statement goes from `start` to `end`."""

    open: int
    close: int
    start: int
    end: int
    word: str
    section: str = ""


def blocks_around(span: Span, own: Source) -> list[BlockStatement]:
    """Return the statements around a call up to its function, innermost first, itself included."""
    around = [b for b in _blocks(span.source) if b.open < span.start < b.close]
    around.sort(key=lambda b: b.open)
    functions = [n for n, b in enumerate(around) if b.word == "function"]
    if not functions:
        return []
    around = around[functions[-1] :]  # the innermost function may be a lambda
    found: list[BlockStatement] = []
    source = span.source
    for block, inner in zip(reversed(around), (None, *reversed(around)), strict=False):
        start, end = (span.start, span.end) if inner is None else (inner.start, inner.end)
        first, last = (_line(source, at, own) for at in (start, max(start, end - 1)))
        loop = inner is not None and inner.word in _LOOPS
        section = inner.section if inner is not None else ""
        found.append(BlockStatement((source.name, block.open), start, first, last, loop, section))
    return found


def _line(source: Source, at: int, own: Source) -> str:
    number = source.place(at)[0]
    return f"{number}" if source is own else f"{number} of {source.name}"


@lru_cache(maxsize=64)
def _blocks(source: Source) -> tuple[_Block, ...]:
    """Return the blocks of a file, with those parts of `#if` that are for one kind of core."""
    text = without_comments(source.text)
    found: list[_Block] = []
    braces: list[int] = []
    guards: list[tuple[int, int, str]] = []
    closed: dict[int, _Block] = {}  # blocks by their ends
    for m in _TOKEN.finditer(text):
        if m[0] == "{":
            braces.append(m.start())
        elif m[0] == "}":
            if braces:
                block = _of_braces(text, braces.pop(), m.start(), closed)
                closed[block.close] = block
                found.append(block)
        elif m["word"].startswith("if"):
            only = _ONLY.match(m["condition"]) if m["word"] != "ifndef" else None
            guards.append((m.start(), m.end(), _SECTIONS[only[1]] if only else ""))
        elif guards:
            start, opens, section = guards.pop()
            if section:
                found.append(_Block(opens, m.start(), start, m.end(), "if", section))
            if m["word"] != "endif":
                guards.append((m.start(), m.end(), ""))
    return tuple(_whole(found))


def _of_braces(text: str, at: int, close: int, closed: dict[int, _Block]) -> _Block:
    """Return the block that opens at a brace, with the kind of its statement."""
    head = at
    while head and text[head - 1].isspace():
        head -= 1
    word = ""
    start = at
    if (m := _BARE.search(text, max(0, head - 8), head)) is not None:
        word, start = m["word"], m.start()
    elif head and text[head - 1] == "]":
        word = "function"
    elif head and text[head - 1] == ")":
        opens = _opening(text, head - 1)
        if (m := _HEAD.search(text, max(0, opens - 24), opens)) is not None:
            word, start = m["word"].split()[0], m.start()
            if (e := re.search(r"\belse\s*$", text[max(0, start - 12) : start])) is not None:
                start -= len(e[0])
                word = "else"
        else:
            word = "function"
    elif re.search(r"\b(?:namespace\b[\w: ]*|extern\s*\"[^\"]*\")$", text[max(0, head - 200) : head]):
        word = "namespace"
    if word == "else":  # it belongs to the statement of the `if` before it
        before = start
        while before and text[before - 1].isspace():
            before -= 1
        if (other := closed.get(before - 1)) is not None:
            start = other.start
    end = close + 1
    if word == "do":
        tail = re.compile(r"\s*while\s*\([^;]*\)\s*;").match(text, end)
        end = tail.end() if tail is not None else end
    return _Block(at, close, start, end, word)


def _whole(blocks: list[_Block]) -> list[_Block]:
    """Make the blocks of `if` and `else` parts of one statement: each gets the end of the last one."""
    last: dict[int, int] = {}
    for b in blocks:
        last[b.start] = max(last.get(b.start, 0), b.end)
    return [
        b._replace(end=last[b.start]) if b.word in ("if", "else") and not b.section else b for b in blocks
    ]


def _opening(text: str, at: int) -> int:
    """Return the offset of the opening parenthesis for a closing one."""
    depth = 0
    for n in range(at, -1, -1):
        depth += (text[n] == ")") - (text[n] == "(")
        if not depth:
            return n
    return 0
