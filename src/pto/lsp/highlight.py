"""Semantic tokens and symbols of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..asm.comments import COMMENT
from ..asm.lexer import EOF
from ..ir.core import Operation
from .document import Document
from .pages import row_of

#: Kinds of tokens, in the order of their numbers in the protocol.
KINDS = (
    "comment", "keyword", "function", "method", "parameter", "variable", "type", "enumMember", "property",
    "string", "number", "label",
)  # fmt: skip
_WORDS = frozenset(
    ("ins", "outs", "attributes", "iter_args", "to", "step", "else", "do", "true", "false", "loc", "tmp")
)
_CONTROL = ("func", "scf", "cf", "builtin")


class ColoredWord(NamedTuple):
    start: int
    end: int
    kind: str
    defines: bool = False


def words(document: Document) -> Iterator[ColoredWord]:
    """Yield the tokens of a text with their kinds; each is on one line."""
    tokens, text = document.tokens, document.text
    names = {o.start: o for o in document.names.all}
    behind = 0
    for i, (word, start) in enumerate(zip(tokens.texts, tokens.starts, strict=True)):
        for m in COMMENT.finditer(text, behind, start) if word == EOF or start - behind > 1 else ():
            yield ColoredWord(*m.span(), "comment")
        behind = start + len(word)
        if word == EOF:
            break
        kind, defines = _kind(document, i, word), False
        found = names.get(start)
        if found is not None and word[:1] in "%@^":
            defines = found.defines
            if found.value is not None and found.value.op is None:
                kind = "parameter"
        if kind:
            yield from _lines(text, start, behind, kind, defines)


def _lines(text: str, start: int, end: int, kind: str, defines: bool) -> Iterator[ColoredWord]:
    """Yield a token in parts without line breaks."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if text[start:stop].strip():
            yield ColoredWord(start, stop, kind, defines)
        start = stop + 1


def _kind(document: Document, index: int, text: str) -> str:
    head = text[0]
    if head in "%@^!":
        return {"%": "variable", "@": "function", "^": "label", "!": "type"}[head]
    if head == "#":
        return "enumMember"
    if head == '"':
        return "function" if row_of(document, index) is not None else "string"
    if head.isdigit():
        return "number"
    if not head.isalpha() and head != "_":
        return ""
    row = row_of(document, index)
    if row is not None:
        return "keyword" if row.dialect in _CONTROL else "method"
    if text in _WORDS:
        return "keyword"
    after = document.tokens.texts[index + 1]
    if after == "=":
        return "property"
    return "enumMember" if after == ">" else "type" if "<" in text or _is_element(text) else "property"


def _is_element(text: str) -> bool:
    from ..asm.type_text import is_type_start

    return is_type_start(text)


class OutlineItem(NamedTuple):
    name: str
    kind: str  # a member of SymbolKind
    detail: str
    start: int
    end: int
    head: tuple[int, int]  # range of the name of the symbol
    children: list[OutlineItem]


def symbols(document: Document) -> list[OutlineItem]:
    """Return the functions of a text with their loops, sections and tiles."""
    module = document.checked.module
    return _symbols(document, module.op) if module is not None else []


def _symbols(document: Document, outer: Operation) -> list[OutlineItem]:
    out: list[OutlineItem] = []
    for region in outer.regions:
        for block in region.blocks:
            for op in block.ops:
                start, end = document.checked.ranges.get(
                    op, (op.start, op.end) if op.source is document.source else (-1, -1)
                )
                if start < 0:
                    continue
                inner = _symbols(document, op) if op.regions else []
                short = op.name.partition(".")[2]
                head = (start, min(end, start + len(op.name)))
                if op.name == "func.func":
                    out.append(
                        OutlineItem(f"@{op.attr('sym_name')}", "Function", "", start, end, head, inner)
                    )
                elif op.name == "builtin.module":
                    out += inner
                elif op.regions:
                    out.append(OutlineItem(short, "Namespace", "", start, end, head, inner))
                elif op.results and op.row is not None and op.row.effect == "alloc":
                    value = op.results[0]
                    out.append(
                        OutlineItem(f"%{value.name}", "Variable", str(value.type), start, end, head, [])
                    )
    return out
