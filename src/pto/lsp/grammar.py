"""Grammars for editors, from the instruction table: TextMate, Vim and Pygments.

    textmate()     JSON for VS Code and others
    vim()          a syntax file
    colored(text)  the words of a text with their kinds; `pygments_lexer` uses them

A grammar colors a text without the server. Semantic tokens of the server are more precise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache

from ..asm.assembly import DIRECTIVES
from ..asm.blocks import SHORT_NAMES
from ..asm.type_text import TYPE_NAMES
from ..isa import rows
from ..isa.dtypes import SPELLINGS
from ..isa.profiles import LOCATIONS

#: Dialects whose operations are keywords.
CONTROL = ("func", "scf", "cf", "builtin")
#: Words of the formats, besides those of attributes.
WORDS = (
    "ins", "outs", "attributes", "iter_args", "to", "step", "else", "do", "true", "false", "loc",
    "unit", "private",
)  # fmt: skip

#: Kind -> scope of TextMate, group of Vim.
KINDS: dict[str, tuple[str, str]] = {
    "comment": ("comment.line.double-slash", "Comment"),
    "string": ("string.quoted.double", "String"),
    "value": ("variable.other", "Identifier"),
    "symbol": ("entity.name.function", "Function"),
    "label": ("entity.name.label", "Label"),
    "type": ("entity.name.type", "Type"),
    "attribute": ("constant.other.enum", "Constant"),
    "keyword": ("keyword.control", "Keyword"),
    "instruction": ("support.function", "Statement"),
    "element": ("storage.type", "StorageClass"),
    "location": ("constant.language", "Constant"),
    "number": ("constant.numeric", "Number"),
    "word": ("", ""),
}


def _any(words: Iterable[str]) -> str:
    """Return a pattern for one of the words; a longer word comes before its beginning."""
    return "(?:" + "|".join(re.escape(w) for w in sorted(set(words), key=lambda w: (-len(w), w))) + ")"


@cache
def names() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return control operations, and all other instructions, with their dialects."""
    control: list[str] = []
    other: list[str] = []
    for r in rows():
        found = (r.full_name, *(f"{r.dialect}.{a}" for a in r.aliases))
        (control if r.dialect in CONTROL else other).extend(found)
    return tuple(control), tuple(other)


@cache
def rules() -> tuple[tuple[str, str], ...]:
    """Return (kind, pattern); the first pattern that matches at a place counts."""
    control, instructions = names()
    bare = [n.removeprefix("pto.") for n in instructions if n.startswith("pto.")]
    end = r"(?![\w$.\-])"
    return (
        ("comment", r"//[^\n]*|^[ \t]*#(?=[ \t#]|$)[^\n]*"),
        ("string", r'"(?:[^"\\\n]|\\.)*"'),
        ("value", r"%[\w$.\-]+(?:#\d+)?"),
        ("symbol", r"@[\w$.]+"),
        ("label", r"\^[\w$.\-]+"),
        ("type", rf"!pto\.{_any(TYPE_NAMES)}\b|![A-Za-z_]\w*(?![\w.])|\b(?:memref|vector|tensor)(?=<)"),
        ("attribute", r"#[A-Za-z_][\w.]*"),
        ("keyword", rf"\b{_any([*control, *SHORT_NAMES])}{end}|{_any(DIRECTIVES)}\b"),
        ("instruction", rf"\b{_any(instructions)}{end}|\b{_any(bare)}(?=[ \t]+[%{{:])"),
        (
            "number",
            r"\b(?:(?:\d+|\?)x)+(?=[A-Za-z])|\b0[xX][0-9a-fA-F]+\b|\b\d+(?:\.\d*)?(?:[eE][+\-]?\d+)?(?![\w.])",
        ),
        ("element", rf"{_any(SPELLINGS)}{end}"),
        ("keyword", rf"\b{_any(WORDS)}{end}"),
        ("location", rf"\b{_any([*LOCATIONS, 'gm', 'ub'])}{end}"),
        ("word", r"[A-Za-z_][\w$.]*"),
    )


@cache
def _scanner() -> re.Pattern[str]:
    parts = (f"(?P<k{n}>{pattern})" for n, (_, pattern) in enumerate(rules()))
    return re.compile("|".join(parts), re.MULTILINE)


def colored(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of the words of a text."""
    kinds = [kind for kind, _ in rules()]
    for m in _scanner().finditer(text):
        yield m.start(), m.end(), kinds[int((m.lastgroup or "k0")[1:])]


def textmate() -> str:
    """Return the TextMate grammar."""
    patterns = [
        {"match": pattern, **({"name": f"{KINDS[kind][0]}.pto"} if KINDS[kind][0] else {})}
        for kind, pattern in rules()
    ]
    grammar = {"name": "PTO", "scopeName": "source.pto", "fileTypes": ["pto"], "patterns": patterns}
    return json.dumps(grammar, indent=1) + "\n"


def vim() -> str:
    """Return the syntax file of Vim."""
    control, instructions = names()
    words = {
        "Keyword": [*control, *SHORT_NAMES, *WORDS],
        "Instruction": [*instructions, *(n.removeprefix("pto.") for n in instructions)],
        "Element": [*SPELLINGS],
        "Location": [*LOCATIONS, "gm", "ub"],
    }
    out = [
        '" Syntax of PTO programs, made by `pto lsp --grammar vim`.',
        'if exists("b:current_syntax")',
        "  finish",
        "endif",
    ]
    out.append("syn iskeyword @,48-57,_,.,$")
    out += [f"syn keyword pto{kind} {' '.join(dict.fromkeys(found))}" for kind, found in words.items()]
    elements = r"\|".join(sorted(SPELLINGS, key=lambda w: (-len(w), w)))
    for kind, pattern in (
        ("Keyword", r"\.\(" + r"\|".join(d[1:] for d in DIRECTIVES) + r"\)\>"),
        ("Number", r"\<\(0[xX]\x\+\|\d\+\(\.\d*\)\?\([eE][+-]\?\d\+\)\?\)\>"),
        ("Number", r"\<\(\(\d\+\|?\)x\)\+\ze\a"),
        ("Element", rf"x\@1<=\({elements}\)\>"),
        ("Type", r"![A-Za-z_][A-Za-z0-9_.]*"),
        ("Attribute", r"#[A-Za-z_][A-Za-z0-9_.]*"),
        ("Value", r"%[A-Za-z0-9_$.-]\+\(#\d\+\)\?"),
        ("Symbol", r"@[A-Za-z0-9_$.]\+"),
        ("Label", r"\^[A-Za-z0-9_$.-]\+"),
        ("String", r'"\([^"\\]\|\\.\)*"'),
        ("Comment", r"\/\/.*$"),
        ("Comment", r"^\s*#\([ \t#].*\)\?$"),
    ):
        out.append(f"syn match pto{kind} /{pattern}/")
    out += [f"hi def link pto{kind.title()} {group}" for kind, (_, group) in KINDS.items() if group]
    return "\n".join([*out, 'let b:current_syntax = "pto"', ""])


GRAMMARS = {"textmate": textmate, "vim": vim}
