"""Completion: instructions, values, types, enumeration values, attributes and functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..asm.type_text import TYPE_NAMES
from ..isa import describe, rows
from ..isa.dtypes import DTYPES
from ..isa.enums import ENUMS
from ..isa.profiles import ALIASES, LOCATIONS
from ..isa.row import Attr, Row
from .document import Document
from .pages import snippet, statement_row

#: Characters that start a completion, besides letters.
TRIGGERS = ("%", "!", "#", "@", "^", ".", "<", '"')


class Proposal(NamedTuple):
    label: str
    kind: str  # a member of CompletionItemKind
    detail: str = ""
    insert: str = ""  # a snippet, if it differs from the label
    page: str = ""  # the instruction whose page documents the item


class Completion(NamedTuple):
    start: int  # offset of the typed part that an item replaces
    items: list[Proposal]


_LONGEST = 500
_WORD = re.compile(r"[%!#@^]?[\w.$\-]*\Z")
_ENUM = re.compile(r"#pto(?:\.(\w+)<|<(\w+) )(\w*)\Z")
_TYPE = re.compile(r"!pto\.\w+<[^<>]*?(\w*)\Z")
_TARGET = re.compile(r'pto\.target_arch\s*=\s*"(\w*)\Z')
_VALUE = re.compile(r"([\w.]+)\s*=\s*(\"?[\w#.]*)\Z")
_NAME = re.compile(r"[{,]\s*([\w.]*)\Z")
_BARE = re.compile(r"<(\w*)\Z")


def complete(document: Document, offset: int) -> Completion:
    """Return what may be typed at an offset."""
    line = document.before(offset)[-_LONGEST:]  # the time of the patterns grows with the square of the length
    for pattern, answer in (
        (_TARGET, lambda m: _words(ALIASES, "Value")),
        (_ENUM, lambda m: _enum(m[1] or m[2])),
        (
            _TYPE,
            lambda m: _words(
                (*LOCATIONS, *DTYPES, "gm", "ub", "valid=", "blayout=", "slayout=", "pad="), "Value"
            ),
        ),
    ):
        m = pattern.search(line)
        if m is not None and (items := list(answer(m))):
            return _typed(offset, m[m.lastindex or 0], items)
    m = _WORD.search(line)
    word = m[0] if m is not None else ""
    if word[:1] in ("%", "!", "#", "@", "^") and word:
        return _typed(offset, word, list(_named(document, word[0], offset)))
    at = statement_row(document, offset - len(word)) if not _starts(document, line, offset, word) else None
    if at is not None:
        return _typed(*_attribute(document, at[0], line, offset))
    isa = document.profile.isa
    return _typed(
        offset,
        word,
        [i for i in _instructions(isa) if i.label.startswith(word) or i.label.startswith(f"pto.{word}")],
    )


def _typed(offset: int, word: str, items: list[Proposal]) -> Completion:
    return Completion(offset - len(word), items)


def _starts(document: Document, line: str, offset: int, word: str) -> bool:
    """Return True if a word at an offset is the first of a statement."""
    rest = line.removesuffix(word).strip()
    if re.fullmatch(r"(?:%[\w$.\-]+(?::\d+)?\s*,?\s*)+=", rest):
        return True
    if rest:
        return False
    ahead = document.text[: offset - len(line)].rstrip()
    return not ahead.endswith((",", "(", "[", "=", ":", "->", "ins", "outs"))


def _words(words: Iterable[str], kind: str) -> Iterator[Proposal]:
    return (Proposal(word, kind) for word in words)


def _enum(name: str) -> Iterator[Proposal]:
    return _words(ENUMS[name].values, "EnumMember") if name in ENUMS else iter(())


def _named(document: Document, kind: str, offset: int) -> Iterator[Proposal]:
    """Yield names that begin with a character."""
    if kind == "%":
        for name, value in document.names.visible(offset).items():
            yield Proposal(name, "Variable", str(value.type) if value is not None else "")
        return
    known = {o.name for o in document.names.all if o.name[0] == kind and not o.start <= offset <= o.end}
    for name in sorted(known):
        yield Proposal(name, {"!": "Struct", "@": "Function"}.get(kind, "Constant"))
    if kind == "!":
        yield from (Proposal(f"!pto.{name}", "Struct") for name in TYPE_NAMES)
    if kind == "#":
        at = statement_row(document, offset)
        wanted = [a.kind for a in at[0].attrs if a.kind in ENUMS] if at is not None else []
        for name in dict.fromkeys(wanted or ENUMS):
            yield from (
                Proposal(ENUMS[name].text(v), "EnumMember", name)
                for v in (ENUMS[name].values if wanted else ())
            )
            if not wanted:
                yield Proposal(f"#pto.{name}", "Enum", ENUMS[name].doc)


def _attribute(document: Document, row: Row, line: str, offset: int) -> tuple[int, str, list[Proposal]]:
    """Return values or names of attributes of a statement."""
    m = _VALUE.search(line)
    attr = row.attr_index.get(m[1]) if m is not None else None
    if m is not None and attr is not None:
        return offset, m[2], [Proposal(text, "Value", attr.name) for text in _values(attr)]
    m = _BARE.search(line)
    if m is not None:
        kinds = dict.fromkeys(a.kind for a in row.attrs if a.kind in ENUMS)
        return offset, m[1], [item for kind in kinds for item in _enum(kind)]
    m = _NAME.search(line)
    if m is not None and line[: m.end()].count("{") > line[: m.end()].count("}"):
        return (
            offset,
            m[1],
            [
                Proposal(
                    a.name, "Property", describe.attribute_values(a), a.name + " = " * (a.kind != "unit")
                )
                for a in row.attrs
            ],
        )
    return offset, "", []


def _values(attr: Attr) -> list[str]:
    if attr.kind in ENUMS:
        return [ENUMS[attr.kind].text(str(v)) for v in attr.domain]
    if attr.kind == "str" and not attr.keyword:
        return [f'"{v}"' for v in attr.domain]
    return [str(v).lower() if isinstance(v, bool) else str(v) for v in attr.domain]


@cache
def _instructions(isa: str) -> tuple[Proposal, ...]:
    """Return the instructions of a target, in the order of the table."""
    return tuple(
        Proposal(r.full_name, "Function", r.doc, snippet(r.full_name), r.full_name)
        for r in rows()
        if r.dialect != "pto" or isa in r.isas
    )
