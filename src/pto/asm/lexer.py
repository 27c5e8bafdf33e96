"""Text to tokens. A token is its text; its kind is its first character:

    %value  @symbol  ^block  !type<...>  #attr<...>  "string"  123  -> and punctuation  word.with.dots

A dialect type or attribute with its whole `<...>` is one token, as are `memref<...>`, `array<...>` and the
like, so that a type that occurs a thousand times is parsed once. Comments and white space are dropped.
"""

from __future__ import annotations

import re
from array import array
from itertools import accumulate, pairwise
from operator import sub

from ..diag import Diagnostic, Source, Span

# The inside of `<...>`, which has no `%`. The '>' of '->', and a '>' in a string or comment, do not close the
# bracket.
_PLAIN = r'[^<>"/%]*'
_INNER = rf'{_PLAIN}(?:(?:(?<=-)>|"(?:[^"\\\n]|\\.)*"|//[^\n]*\n|/(?!/)){_PLAIN})*'


def _angle(depth: int) -> str:
    """Return the pattern of `<...>`, which may contain further `<...>`, nested up to `depth` deep."""
    inner = rf"(?:{_angle(depth - 1)}{_INNER})*" if depth else ""
    return rf"<{_INNER}{inner}(?<!-)>"


_STRING = r'"(?:[^"\\\n]|\\.)*"'
_ID = r"[A-Za-z_][\w$.]*"
_BUILTIN = (
    "memref|vector|tensor|tuple|complex|affine_map|affine_set|dense|dense_resource|array|strided|opaque"
)

_NESTED = frozenset(_BUILTIN.split("|"))


def _pattern(depth: int) -> re.Pattern[str]:
    """Comments and tokens, each with the white space before it; types nested up to `depth` deep."""
    return re.compile(
        rf"""
        [ \t\r\n]* (?:
        [,(){{}}=\[\]]
        | %[\w$.\-]+(?:\#\d+)?
        | (?:[!\#]{_ID} | (?:{_BUILTIN})(?=<)) (?:{_angle(depth)})?  # once: it is most of the cost
        | {_ID}
        | 0[xX][0-9a-fA-F]+ | \d+(?:\.\d*)?(?:[eE][+-]?\d+)?
        | {_STRING} | @(?:{_ID}|{_STRING}) | \^[\w$.\-]+
        | //[^\n]* | -> | :: | [<>:?*+\-/|;.]
        | "[^\n]* | [^ \t\r\n] )                                 # anything else is an error
        """,
        re.VERBOSE | re.DOTALL,
    )


#: The usual types. A pattern for others, up to five deep, takes longer to compile than a short program to
#: parse.
_TOKEN = _pattern(1)
_DEEPEST = 4
_BLANK = " \t\r\n"
_PUNCTUATION = frozenset("()[]{}<>,:=?*+-/|;._")

EOF = ""

#: A line with only `# words` is a comment, as in the examples of the documents. MLIR has no such lines, and
#: an attribute has no space after its `#`.
_HASH_LINE = re.compile(r"^[ \t]*#(?:[ \t#][^\n]*)?$", re.MULTILINE)


class Tokens:
    """Token texts and their start offsets, ended by an EOF token."""

    __slots__ = ("source", "starts", "texts")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.texts: list[str] = []
        self.starts = array("Q")

    def span(self, index: int) -> Span:
        index = min(index, len(self.texts) - 1)
        start = self.starts[index]
        return Span(self.source, start, start + max(1, len(self.texts[index])))


def tokenize(source: Source) -> tuple[Tokens, list[Diagnostic]]:
    """Return all tokens of a text and the lexical errors in it."""
    out = Tokens(source)
    code = source.text.rstrip(_BLANK)
    if "#" in code:  # blanked, so that all offsets stay
        code = _HASH_LINE.sub(lambda m: " " * len(m[0]), code).rstrip(_BLANK)
    starts, texts = _split(_TOKEN, code)
    if any(_is_longer(code, starts[i], texts[i]) for i in open_types(texts)):
        starts, texts = _split(_pattern(_DEEPEST), code)
    seen: dict[str, str] = {}
    texts = list(map(seen.setdefault, texts, texts))
    errors: list[Diagnostic] = []
    bad = {text for text in seen if _is_error(text)}
    if bad or "//" in source.text:
        remark = _remarks(code, starts, texts) if "#" in bad else ()
        looked_at = [i for i in range(len(texts)) if i not in remark] if remark else range(len(texts))
        errors = [_bad_character(source, starts[i], texts[i]) for i in looked_at if texts[i] in bad]
        kept = [i for i in looked_at if texts[i][:2] != "//" and texts[i] not in bad]
        texts, starts = [texts[i] for i in kept], [starts[i] for i in kept]
    texts.append(EOF)
    starts.append(len(source.text))
    out.texts, out.starts = texts, array("Q", starts)
    return out, _merge(errors)


def _split(pattern: re.Pattern[str], code: str) -> tuple[list[int], list[str]]:
    """Return the start and text of each token and comment."""
    pieces = pattern.findall(code)
    texts = [piece.lstrip(_BLANK) for piece in pieces]
    return list(map(sub, accumulate(map(len, pieces)), map(len, texts))), texts


def open_types(texts: list[str]) -> list[int]:
    """Return the indices of types before a single `<`: they nest deeper, or are not closed."""
    if "<" not in texts:
        return []
    pairs = enumerate(pairwise(texts))
    return [i for i, (a, b) in pairs if b == "<" and (a[0] in "!#" or a in _NESTED)]


def _is_longer(code: str, at: int, text: str) -> bool:
    found = _pattern(_DEEPEST).match(code, at)
    return found is not None and found.end() > at + len(text)


def _is_error(text: str) -> bool:
    """Return True for text that is not a token."""
    first = text[0]
    if first == '"':
        plain = len(text) > 1 and text[-1] == '"' and text.count('"') == 2 and "\\" not in text
        return not plain and re.fullmatch(_STRING, text, re.DOTALL) is None
    if len(text) > 1 or first in _PUNCTUATION:
        return False
    return not (first.isdecimal() or (first.isascii() and first.isalpha()))


def _remarks(code: str, starts: list[int], texts: list[str]) -> set[int]:
    """Return tokens after a `#` that was meant to begin a comment; the parser skips them."""
    out: set[int] = set()
    end = 0
    for i, (at, text) in enumerate(zip(starts, texts, strict=True)):
        if at < end:
            out.add(i)
        elif text == "#" and code[at + 1 : at + 2] in (" ", "\t"):
            newline = code.find("\n", at)
            end = newline if newline >= 0 else len(code)
    return out


_COMMENTS = "comments begin with //; a line of its own may also begin with '# '"


def _bad_character(source: Source, at: int, char: str) -> Diagnostic:
    span = Span(source, at, at + 1)
    if char[0] == '"':
        return Diagnostic("PTO-E0102", "unclosed string", span, help='add the closing "')
    if char == "#" and source.text[at + 1 : at + 2] in (" ", "\t"):
        return Diagnostic("PTO-E0101", "unexpected '#' after a statement", span, help=_COMMENTS)
    if char in "%@^!#":
        what = {"%": "value", "@": "symbol", "^": "block", "!": "type", "#": "attribute"}[char]
        article = "an" if what[0] in "aeiou" else "a"
        return Diagnostic("PTO-E0101", f"expected {article} {what} name after '{char}'", span)
    shown = repr(char) if char.isprintable() else f"U+{ord(char):04X}"
    return Diagnostic("PTO-E0101", f"unexpected character {shown}", span)


_MOST = 20


def _merge(errors: list[Diagnostic]) -> list[Diagnostic]:
    """Merge neighboring bad characters into one error, and limit the number of errors."""
    merged: list[Diagnostic] = []
    for d in errors:
        last = merged[-1].span if merged else None
        assert d.span is not None
        if last is not None and last.end == d.span.start and merged[-1].code == d.code:
            merged[-1].span = Span(last.source, last.start, d.span.end)
            merged[-1].message = "unexpected characters"
            continue
        merged.append(d)
    return merged[:_MOST]


def unquote(text: str) -> str:
    """Return the value of a string token."""
    body = text[1:-1]
    if "\\" not in body:
        return body
    raw = bytearray()
    i = 0
    data = body
    while i < len(data):
        c = data[i]
        if c != "\\":
            raw += c.encode("utf-8", "surrogateescape")
            i += 1
            continue
        nxt = data[i + 1 : i + 2]
        pair = data[i + 1 : i + 3]
        if nxt in ("n", "t", '"', "\\"):
            raw += {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}[nxt]
            i += 2
        elif len(pair) == 2 and all(h in "0123456789abcdefABCDEF" for h in pair):
            raw.append(int(pair, 16))
            i += 3
        else:
            raw += nxt.encode()
            i += 2
    return raw.decode("utf-8", "surrogateescape")
