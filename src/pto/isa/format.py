"""Format language in which rows define their text, for the parser and the printer.

    $name            an operand, attribute, region or successor of that name
    $name...         a comma-separated list (variadic operand or result)
    type($name)      the type of an operand or result; `type($name...)` for a list
    attr-dict        the remaining attributes as an optional `{k = v, ...}`
    [ ... ]          optional group, present if its first variable is
    [ ... ]*         group repeated once per tuple of the variadic operands in it
    '['  ']'         literal brackets
    anything else    a literal keyword or punctuation

Example: `$ptr '[' $offset ']' attr-dict : type($ptr) -> type($value)`.
"""

from __future__ import annotations

import re

from .record import Record


class Lit(Record):
    text: str


class Var(Record):
    name: str
    many: bool = False


class TypeOf(Record):
    name: str
    many: bool = False


class AttrDict(Record):
    pass


class FormatGroup(Record):
    items: tuple[Item, ...]
    repeat: bool = False


Item = Lit | Var | TypeOf | AttrDict | FormatGroup

_TOKEN = re.compile(
    r"\s*(?:(?P<lit>'[^']+')|(?P<type>type\(\$(?P<tn>\w+)(?P<tm>\.\.\.)?\))|(?P<var>\$(?P<vn>\w+)(?P<vm>\.\.\.)?)"
    r"|(?P<dict>attr-dict)|(?P<close>\]\*?)|(?P<punct>->|[\[(){}<>,:=])|(?P<word>[\w.\"@#]+))"
)


def parse_format(text: str) -> tuple[Item, ...]:
    """Parse a format; raise `ValueError` with the reason if it is malformed."""
    stack: list[list[Item]] = [[]]
    at = 0
    text = text.strip()
    while at < len(text):
        m = _TOKEN.match(text, at)
        if not m:
            raise ValueError(f"bad format at {text[at : at + 20]!r}")
        at = m.end()
        if m["lit"]:
            stack[-1].append(Lit(m["lit"][1:-1]))
        elif m["type"]:
            stack[-1].append(TypeOf(m["tn"], bool(m["tm"])))
        elif m["var"]:
            stack[-1].append(Var(m["vn"], bool(m["vm"])))
        elif m["dict"]:
            stack[-1].append(AttrDict())
        elif m["close"]:
            if len(stack) == 1:
                raise ValueError(f"unbalanced ']' in format {text!r}")
            items = tuple(stack.pop())
            stack[-1].append(FormatGroup(items, m["close"].endswith("*")))
        elif m["punct"] == "[":
            stack.append([])
        else:
            stack[-1].append(Lit(m["punct"] or m["word"]))
    if len(stack) != 1:
        raise ValueError(f"unbalanced '[' in format {text!r}")
    return tuple(stack[0])


def variables(items: tuple[Item, ...]) -> list[str]:
    """Return the names in a format, in order, without duplicates."""
    out: dict[str, None] = {}
    for item in items:
        if isinstance(item, Var | TypeOf):
            out[item.name] = None
        elif isinstance(item, FormatGroup):
            for name in variables(item.items):
                out[name] = None
    return list(out)
