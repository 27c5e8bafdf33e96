"""Texts about things under the cursor: pages of instructions, values, types and enumerations; signatures."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from typing import NamedTuple

from ..asm.blocks import SHORT_NAMES
from ..ir.core import Operation, Value, constant_of
from ..ir.types import TileBufType
from ..isa import describe, dtype, row
from ..isa.enums import ENUMS
from ..isa.row import Row
from .document import Document
from .hints import addresses

_ENUM = re.compile(r"#pto(?:\.(\w+)\s*<|\s*<\s*(\w+) )")


def statement_row(document: Document, offset: int) -> tuple[Row, int] | None:
    """Return the instruction of the statement around an offset, and the index of its token."""
    tokens = document.tokens
    index = bisect_left(tokens.starts, offset) - 1
    last = min(index, len(tokens.texts) - 2)
    for i in range(last, max(-1, last - 300), -1):
        text = tokens.texts[i]
        if text in ("{", "}") and i != last and _opens_line(document, i + 1):
            return None
        found = row_of(document, i)
        if found is not None:
            return found, i
        if text[:1] == "%" and tokens.texts[i + 1] == "=" and _opens_line(document, i):
            return None
    return None


def row_of(document: Document, index: int) -> Row | None:
    """Return the row that a token names as the instruction of a statement."""
    text = document.tokens.texts[index]
    if text[:1] == '"' and "." in text:
        text = text[1:-1]
    if not text[:1].isalpha():
        return None
    if (
        "." not in text
        and index
        and document.tokens.texts[index - 1] != "="
        and not _opens_line(document, index)
    ):
        return None
    return row(SHORT_NAMES.get(text, text))


def _opens_line(document: Document, index: int) -> bool:
    start = document.tokens.starts[index]
    return not document.before(start).strip()


def hover(document: Document, offset: int) -> tuple[str, int, int] | None:
    """Return Markdown about the token at an offset, and the range of the token."""
    index = document.token_at(offset)
    if index is None:
        return None
    text, start = document.tokens.texts[index], document.tokens.starts[index]
    end = start + len(text)
    found = document.names.at(offset)
    if found is not None and found.name[0] in "%!#@":
        said = _about_name(document, found.value, found.name, found.key)
        return (said, found.start, found.end) if said else None
    instruction = row_of(document, index)
    if instruction is not None:
        return instruction_page(instruction.full_name), start, end
    m = _ENUM.match(text)
    if m and (m[1] or m[2]) in ENUMS:
        return enum_page(m[1] or m[2]), start, end
    at = statement_row(document, offset)
    if at is not None and text in at[0].attr_index:
        attr = at[0].attr_index[text]
        default = "" if attr.default is None else f", default {str(attr.default).lower()}"
        return f"`{attr.name}`: {describe.attribute_values(attr)}{default}. {attr.doc}", start, end
    try:
        element = dtype(text)
    except KeyError:
        return None
    return f"`{element.mlir}`: element type of {element.bits} bits", start, end


def _about_name(document: Document, value: Value | None, name: str, key: object) -> str:
    if value is not None:
        return _about_value(document, value, name)
    defined = document.names.definition(key)
    if defined is None:
        return ""
    line = document.text[document.text.rfind("\n", 0, defined.start) + 1 :].partition("\n")[0]
    return fence([line.strip()])


def _about_value(document: Document, value: Value, name: str) -> str:
    out = [f"{name} : {value.type}"]
    op = value.op
    if isinstance(value.type, TileBufType) and op is not None and (note := addresses(document).get(op.start)):
        out.append(f"// {note}")
    number = constant_of(value)
    if number is not None:
        out.append(f"// = {number}")
    where = op if op is not None else value.owner.outer  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(where, Operation) and where.source is document.source:
        what = "result" if op is not None else "argument"
        out.append(f"// {what} of {where.name}, line {document.place(where.start)[0] + 1}")
    return fence(out)


# -- pages -------------------------------------------------------------------------------------------------


def fence(lines: list[str]) -> str:
    return "\n".join(("```pto", *lines, "```"))


@cache
def instruction_page(name: str) -> str:
    """Return the page of an instruction, as `pto isa` shows it, as Markdown."""
    found = row(name)
    assert found is not None
    page = describe.page(found)
    out = [f"**{page.name}**: {_plain(page.doc)}", "", fence(list(dict.fromkeys(page.syntax["pto"])))]
    for section in page.sections:
        out += ["", f"**{section.title}**", ""]
        out += [_plain(text) for text in section.text]
        if section.code:
            out.append(fence(list(section.code)))
        if section.table is not None:
            head, rows = section.table.head, section.table.rows
            out += ["", _cells(head), "|" + " --- |" * len(head), *map(_cells, rows)]
    out += ["", "**Facts**", "", *(f"- {label}: {_plain(value)}" for label, value in page.facts)]
    return "\n".join(out)


def _cells(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_plain(c) for c in cells) + " |"


def _plain(text: str) -> str:
    return re.sub(r"[|*_`<>\[\]\\]", lambda m: f"\\{m[0]}", text)


@cache
def enum_page(name: str) -> str:
    found = ENUMS[name]
    values = ", ".join(f"`{value}`" for value in found.values)
    return f"**{name}**: {found.doc}\n\n{fence([found.text(next(iter(found.values)))])}\n\n{values}"


# -- signatures --------------------------------------------------------------------------------------------


class StatementSyntax(NamedTuple):
    label: str
    doc: str
    parameters: list[str]
    active: int  # index of the parameter, -1 for none


def signature(document: Document, offset: int) -> StatementSyntax | None:
    """Return the signature of the statement around an offset."""
    at = statement_row(document, offset)
    if at is None or document.tokens.starts[at[1]] + len(document.tokens.texts[at[1]]) >= offset:
        return None
    found, index = at
    label = describe.syntax(found)["pto"][0]
    names = [o.name for o in found.operands if f"%{o.name}" in label]
    group, place = _where(document, index, offset)
    within = {"ins": found.ins, "outs": found.outs}.get(group, found.operands)
    shown = [o.name for o in within if o.name in names]
    active = names.index(shown[place]) if place < len(shown) else -1
    return StatementSyntax(label, found.doc, [f"%{n}" for n in names], active)


def _where(document: Document, index: int, offset: int) -> tuple[str, int]:
    """Return the word before the innermost parenthesis at an offset, and the operand there."""
    tokens = document.tokens
    stack: list[tuple[str, int]] = [("", 0)]
    for i in range(index + 1, len(tokens.texts) - 1):
        if tokens.starts[i] >= offset:
            break
        text = tokens.texts[i]
        if text in ("(", "[", "{", "<"):
            stack.append((tokens.texts[i - 1], 0))
        elif text in (")", "]", "}", ">") and len(stack) > 1:
            stack.pop()
        elif text == ",":
            stack[-1] = (stack[-1][0], stack[-1][1] + 1)
        elif text == ":":  # types follow, in the order of the operands
            stack[-1] = (stack[-1][0], 0)
    return stack[-1]


@cache
def snippet(name: str) -> str:
    """Return a statement with places to fill in, in the syntax of snippets, without optional parts."""
    found = row(name)
    assert found is not None
    text = describe.syntax(found)["pto"][0]
    while "]?" in text or "]*" in text:  # the innermost optional part
        shorter = re.sub(r"\[(?:[^\[\]]|\[[^\[\]]*\](?![?*]))*\][?*]", "", text)
        if shorter == text:
            break
        text = shorter
    text = re.sub(r"\s+", " ", text).strip()
    count = 0

    def place(m: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"${{{count}:{'type' if m[1] else m[0]}}}"

    text = text.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")
    return re.sub(r"type\(%(\w+)\)|%\w+|<\w+>|\.\.", place, text)
