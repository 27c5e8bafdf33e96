"""Ways to spoil a program: small edits of its bytes, tokens, numbers and nesting. Pure functions of a `Random`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random

from pto.asm import FORMS, parse, to_text

from . import fragments

CORPUS = Path(__file__).parent / "corpus"

TOKEN = re.compile(r"\s+|[\w.$]+|[%@^!#][\w.$#-]+|\"[^\"\n]*\"?|->|.", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:x\d+)*(?:\.\d+)?(?:[eE][-+]?\d+)?")

_NESTS = (
    "(",
    "[",
    "{",
    "<",
    "!pto.ptr<",
    "({",
    "[[",
    "scf.execute_region {\n",
    "module {\n",
    '"a.b"() ({\n',
    "loc(fused[",
)
_ODD = (
    "\0", "\t", "\r", "\r\n", "\v", "\u00a0", "\u200b", "\u202e", "\ufeff", "é", "漢", "🙂", "\ud7ff", "\u2028", "\\", "'", "`", "~",
    "//", "/*", '"', "#", "##", "%", "%%", "@", "^", "!", "->", "::", ":", ",", ";", "=", "ins(", "outs(", "loc(", "{-#", "#-}",
)  # fmt: skip
_WORDS = (
    "module", "func.func", "return", "ins", "outs", "attributes", "private", "true", "unit", "index", "f32", "vec", "dense<1>",
    "affine_map<(d0) -> (d0)>", "array<i32: 1>", "!pto.pipe", "!pto.ptr<f32>", "#pto.pipe<PIPE_V>", "tadd", "pto.tadd", "scf.yield",
    "cf.br", "^bb0", "%0", "%0#1", "%x:2", "@f", "default", "else", "do", "step", "iter_args(", "valid=?x?", ".func @f", ".end", ".const",
)  # fmt: skip


@cache
def programs() -> tuple[bytes, ...]:
    """The corpus, each program also printed in the other text forms, in a fixed order."""
    found = [path.read_bytes() for path in sorted(CORPUS.glob("*.pto"))]
    printed = (to_text(parse(data.decode()), form).encode() for data in found for form in FORMS)
    return tuple(dict.fromkeys((*found, *printed)))


def _text(edit: Callable[[str, Random], str]) -> Callable[[bytes, Random], bytes]:
    """Return an edit of text as one of bytes; bytes that are not text pass through it unchanged."""

    def run(data: bytes, r: Random) -> bytes:
        return edit(data.decode("utf-8", "surrogateescape"), r).encode("utf-8", "surrogateescape")

    return run


def flip_byte(data: bytes, r: Random) -> bytes:
    if not data:
        return b"\xff"
    at = r.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << r.randrange(8))]) + data[at + 1 :]


def any_byte(data: bytes, r: Random) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + bytes([r.randrange(256)]) + data[at + r.randrange(2) :]


def truncate(data: bytes, r: Random) -> bytes:
    return data[: r.randrange(len(data) + 1)]


def behead(data: bytes, r: Random) -> bytes:
    return data[r.randrange(len(data) + 1) :]


def _tokens(edit: Callable[[list[str], Random], None]) -> Callable[[bytes, Random], bytes]:
    def run(text: str, r: Random) -> str:
        tokens = TOKEN.findall(text)
        if tokens:
            edit(tokens, r)
        return "".join(tokens)

    return _text(run)


def _delete(tokens: list[str], r: Random) -> None:
    at = r.randrange(len(tokens))
    del tokens[at : at + r.choice((1, 1, 1, 2, 5, 20))]


def _duplicate(tokens: list[str], r: Random) -> None:
    at = r.randrange(len(tokens))
    count = r.choice((1, 1, 2, 5, 30))
    tokens[at:at] = tokens[at : at + count] * r.choice((1, 1, 1, 3, 50))


def _swap(tokens: list[str], r: Random) -> None:
    a, b = r.randrange(len(tokens)), r.randrange(len(tokens))
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _replace(tokens: list[str], r: Random) -> None:
    tokens[r.randrange(len(tokens))] = r.choice(tokens) if r.random() < 0.6 else r.choice(_WORDS)


def _alike(tokens: list[str], r: Random) -> None:
    """A name, number, type or word for another of its kind, so that the text often still parses."""
    at = r.randrange(len(tokens))
    kind = tokens[at][:1]
    same = [
        t
        for t in tokens
        if t[:1] == kind or (kind.isalnum() and t[:1].isalnum() and kind.isdigit() == t[:1].isdigit())
    ]
    tokens[at] = r.choice(same)


def _insert(tokens: list[str], r: Random) -> None:
    tokens.insert(r.randrange(len(tokens) + 1), r.choice(_ODD if r.random() < 0.5 else _WORDS))


def _swap_lines(text: str, r: Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    a, b = r.randrange(len(lines)), r.randrange(len(lines))
    kind = r.randrange(3)
    if kind == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 1:
        lines.insert(a, lines[b])
    else:
        del lines[a]
    return "".join(lines)


def _number(text: str, r: Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    m = r.choice(found)
    return text[: m.start()] + r.choice(fragments.NUMBERS) + text[m.end() :]


def _literal(text: str, r: Random) -> str:
    """A number where a value is used."""
    found = list(re.finditer(r"%[\w.$#-]+", text))
    if not found:
        return text
    m = r.choice(found)
    return text[: m.start()] + r.choice(("", "-")) + r.choice(fragments.NUMBERS) + text[m.end() :]


#: How a piece of a kind looks in a text, and what makes another one.
_PIECES = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (r'"(?:[^"\\\n]|\\.)*"', fragments.string), (r"@[\w.$]+", fragments.symbol), (r"affine_map<.*?\)>", fragments.affine_map),
        (r"![\w.]+(?:<[^<>]*>)?|memref<[^<>]*>", fragments.type), (r"\{[^{}]*=[^{}]*\}", fragments.dictionary),
        (r"(?<== )[^\s,{}()]+", fragments.attribute), (r"loc\(.*\)|$", lambda r: " " + fragments.location(r)),
        (r"(?m)^ *%\w+ = .*$", fragments.statement),
    )
)  # fmt: skip


def _fragment(text: str, r: Random) -> str:
    """A hostile piece of text in place of one of its kind."""
    pattern, make = r.choice(_PIECES)
    found = list(pattern.finditer(text))
    if not found:
        return text
    m = r.choice(found)
    return text[: m.start()] + make(r) + text[m.end() :]


def _nest(text: str, r: Random) -> str:
    at = r.randrange(len(text) + 1)
    return text[:at] + r.choice(_NESTS) * r.choice((1, 3, 99, 101, 5000)) + text[at:]


def _unicode(text: str, r: Random) -> str:
    at = r.randrange(len(text) + 1)
    odd = "".join(
        chr(r.choice((r.randrange(0x20), r.randrange(0x300), r.randrange(0xD800))))
        for _ in range(r.randrange(1, 8))
    )
    return text[:at] + odd + text[at:]


def splice(data: bytes, r: Random) -> bytes:
    """A piece of another program."""
    other = r.choice(programs())
    a, b = sorted((r.randrange(len(other) + 1), r.randrange(len(other) + 1)))
    at = r.randrange(len(data) + 1)
    return data[:at] + other[a:b] + data[at:]


MUTATIONS: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip_byte": flip_byte,
    "any_byte": any_byte,
    "truncate": truncate,
    "behead": behead,
    "delete": _tokens(_delete),
    "duplicate": _tokens(_duplicate),
    "swap": _tokens(_swap),
    "replace": _tokens(_replace),
    "alike": _tokens(_alike),
    "insert": _tokens(_insert),
    "lines": _text(_swap_lines),
    "number": _text(_number),
    "literal": _text(_literal),
    "fragment": _text(_fragment),
    "nest": _text(_nest),
    "unicode": _text(_unicode),
    "splice": splice,
}


#: Mutations after which a program often still parses, so that verifier and printers see it too.
GENTLE = ("alike", "lines", "number", "literal", "delete", "replace", "fragment", "fragment")


def mutant(data: bytes, r: Random) -> bytes:
    """A program with one to four mutations; every other one is gentle."""
    gentle = r.random() < 0.5
    for _ in range(r.choice((1, 1, 2)) if gentle else r.randint(1, 4)):
        data = MUTATIONS[r.choice(GENTLE if gentle else tuple(MUTATIONS))](data, r)
    return data


@cache
def _words() -> tuple[str, ...]:
    return tuple(sorted({word for program in programs() for word in program.decode().split()}))


def text(data: bytes, r: Random, others: Sequence[bytes] = ()) -> bytes:
    """A mutant; now and then a program of hostile pieces, words in any order, or anything at all."""
    kind = r.random()
    if kind < 0.7:
        return mutant(data, r)
    if kind < 0.9:
        return fragments.program(r).encode("utf-8", "surrogatepass")
    if kind < 0.95:
        return " ".join(r.choice(_words()) for _ in range(r.randrange(25))).encode()
    return r.randbytes(r.randrange(60)) if kind < 0.98 else _unicode("", r).encode("utf-8", "surrogatepass")
