"""Reading tokens: position, types, attributes and names for all statement parsers.

`Fail` is a recoverable mismatch (another form may fit); `Report` is a definite error of the user's text.
"""

from __future__ import annotations

import math
import re
from typing import NoReturn

from ..diag import Diagnostic, Source, Span, did_you_mean
from ..ir.attrs import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    DenseArrayAttr,
    DictAttr,
    EnumAttr,
    FloatAttr,
    IntAttr,
    OpaqueAttr,
    StrAttr,
    SymbolAttr,
    TypeAttr,
    UnitAttr,
)
from ..ir.core import Block, Operation, Value
from ..ir.types import ERROR, I64, FunctionType, MaskType, ScalarType, Type, VRegType
from ..isa.enums import ENUMS, WORDS, same_enum
from ..isa.row import Attr
from .affine_text import AffineTextError, parse_affine_map
from .lexer import EOF, Tokens, tokenize, unquote
from .type_text import TypeTextError, is_type_start, parse_type

_HINTS = 50  # names for which similar names are searched
MAX_ERRORS = 1000  # errors that may be shown
MAX_DEPTH = 100  # nesting of regions, attributes and types
_INT_LIMIT = 3400  # digits, decimal or hexadecimal: CPython refuses to print more than 4300 decimal digits


class Fail(Exception):
    """Mismatch with this form at token `at`; `reach` is the furthest token that was read."""

    def __init__(self, at: int, message: str, help: str = "", code: str = "", expected: str = "") -> None:
        self.at, self.message, self.help, self.code, self.expected = at, message, help, code, expected
        self.reach = at


class Report(Exception):
    """A definite error; the parser skips the statement."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def literal_help(text: str, kind: str = "") -> str:
    """Return help for a number in place of a value; `kind` is that of the operand."""
    number = text.removeprefix("-")
    if (not number[:1].isdigit() and text not in ("true", "false")) or len(number) > 40:
        return ""
    if text[:1].isalpha():
        return f"use arith.constant: %{text} = arith.constant {text}"
    hexadecimal = number[:2].lower() == "0x"
    whole = hexadecimal or number.isdigit()
    type = kind if kind in ("i32", "i64") else "f32" if not whole else "i32" if kind else "index"
    digits = str(int(number, 16 if hexadecimal else 10)) if whole else ""
    name = ("%cm" if text != number else "%c") + digits
    return f"use arith.constant: {name} = arith.constant {text} : {type}"


_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})")
_DECIMAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,2})?")
_DENSE = re.compile(r"array<\s*(\w+)\s*(?::(.*))?>$", re.DOTALL)
_ALIAS = re.compile(r"(?<=.)!([A-Za-z_]\w*)(?![\w.])")
_ENUM_DOT = re.compile(r"#pto\.(\w+)\s*<(.*)>$", re.DOTALL)
_ENUM_SPACE = re.compile(r"#pto\s*<\s*(\w+)\s(.*)>$", re.DOTALL)


class Cursor:
    """Tokens with a position, plus the name scopes of the program being read."""

    def __init__(self, source: Source, tokens: Tokens | None = None) -> None:
        self.source = source
        self.tokens, self.diagnostics = tokenize(source) if tokens is None else (tokens, [])
        self.t = self.tokens.texts
        self.i = 0
        self.depth = 0
        self.type_aliases: dict[str, Type] = {}
        self.attr_aliases: dict[str, Attribute] = {}
        self._types: dict[str, Type] = {}
        self._enums: dict[str, Attribute] = {}
        self.values: dict[str, Value] = {}
        self._scopes: list[list[str]] = []
        self._ended: dict[str, Value] = {}  # values of scopes that have ended
        self._hints = _HINTS
        self._forward: dict[str, tuple[Value, int, int]] = {}  # name -> placeholder, token, scope depth
        #: Named locations, and operations with the tokens of their locations.
        self.places: dict[str, range] = {}
        self.located: list[tuple[Operation, range]] = []

    # ------------------------------------------------------------------------------------------- tokens

    def span(self, start: int, end: int | None = None) -> Span:
        """Return the source range of tokens start..end (exclusive)."""
        first = self.tokens.span(start)
        if end is None or end <= start + 1:
            return first
        return Span(self.source, first.start, self.tokens.span(end - 1).end)

    def error(
        self,
        code: str,
        message: str,
        at: int | None = None,
        *,
        help: str = "",
        expected: str = "",
        got: str = "",
        end: int | None = None,
    ) -> Diagnostic:
        where = self.i if at is None else at
        d = Diagnostic(code, message, self.span(where, end), expected=expected, got=got, help=help)
        self.diagnostics.append(d)
        return d

    def report(self, code: str, message: str, at: int | None = None, **more: str) -> NoReturn:
        where = self.i if at is None else at
        raise Report(Diagnostic(code, message, self.span(where), **more))  # type: ignore[arg-type]

    def shown(self, at: int | None = None) -> str:
        text = self.t[self.i if at is None else at]
        if text == EOF:
            return "end of file"
        return f"'{text if len(text) <= 40 else text[:37] + '...'}'"

    def begins_line(self, at: int) -> bool:
        """Return True for the first token of a line."""
        if at == 0:
            return True
        return "\n" in self.source.text[self.tokens.span(at - 1).end : self.tokens.starts[at]]

    def eat(self, text: str) -> None:
        if self.t[self.i] != text:
            raise Fail(self.i, f"expected '{text}', got {self.shown()}")
        self.i += 1

    def accept(self, text: str) -> bool:
        if self.t[self.i] == text:
            self.i += 1
            return True
        return False

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.report("PTO-E0105", f"nesting is deeper than {MAX_DEPTH} levels")

    # -------------------------------------------------------------------------------------------- types

    def type(self) -> Type:
        text = self.t[self.i]
        found = self._types.get(text)
        if found is not None:
            self.i += 1
            return found
        if text == "(":
            return self.function_type()
        if text[:1] == "!" and text[1:] in self.type_aliases:
            self.i += 1
            return self.type_aliases[text[1:]]
        if not is_type_start(text):
            raise Fail(self.i, f"expected a type, got {self.shown()}")
        found = self.parse_type_text(text, self.tokens.starts[self.i])
        self._types[text] = found
        self.i += 1
        return found

    def known_type(self, text: str) -> Type | None:
        """Return the type of a token that was read before, written out in full."""
        return self._types.get(text)

    def parse_type_text(self, text: str, offset: int) -> Type:
        if text[:1] == "!" and text[1:] in self.type_aliases:
            return self.type_aliases[text[1:]]
        if self.type_aliases and "!" in text[1:]:
            text = _ALIAS.sub(self._element_alias, text)
        try:
            return parse_type(text)
        except TypeTextError as e:
            if text[:1] == "!" and "." not in text:
                help = (
                    did_you_mean(text[1:], self.type_aliases)
                    or "define the alias before its use: !name = !pto..."
                )
                raise Report(
                    Diagnostic(
                        "PTO-E0109",
                        f"unknown type alias '{text}'",
                        Span(self.source, offset, offset + len(text)),
                        help=help,
                    )
                ) from None
            span = Span(self.source, offset + e.part[0], offset + max(e.part[1], e.part[0] + 1))
            d = Diagnostic(e.code, e.message, span, help=e.help, expected=e.expected, got=e.got)
            raise Report(d) from None

    def _element_alias(self, m: re.Match[str]) -> str:
        """Expand an alias of an element type inside another type."""
        found = self.type_aliases.get(m[1])
        return str(found) if isinstance(found, ScalarType) else m[0]

    def function_type(self) -> FunctionType:
        inputs = self.type_list()
        self.eat("->")
        results = self.type_list() if self.t[self.i] == "(" else [self.type()]
        return FunctionType(tuple(inputs), tuple(results))

    def type_list(self) -> list[Type]:
        """Read `(T, T)`, possibly empty."""
        self.eat("(")
        out: list[Type] = []
        self.deeper()
        while self.t[self.i] != ")":
            out.append(self.type())
            if not self.accept(","):
                break
        self.depth -= 1
        self.eat(")")
        return out

    # --------------------------------------------------------------------------------------- attributes

    def number(self) -> tuple[int | float, bool, bool]:
        """Read an optionally signed number; return (value, is float, is hexadecimal)."""
        negative = self.accept("-")
        text = self.t[self.i]
        if not text[:1].isdigit():
            raise Fail(self.i, f"expected a number, got {self.shown()}")
        if len(text) > _INT_LIMIT:
            self.report("PTO-E0104", f"number with {len(text)} digits is too large")
        self.i += 1
        if text[:2] in ("0x", "0X"):
            value: int | float = int(text, 16)
            return (-value if negative else value), False, True
        if text.isdigit():
            value = int(text)
            return (-value if negative else value), False, False
        value = float(text)
        if math.isinf(value):
            self.report("PTO-E0104", "number is too large for a double", self.i - 1, got=text)
        return (-value if negative else value), True, False

    def typed_number(self) -> Attribute:
        at = self.i
        value, is_float, is_hex = self.number()
        type: ScalarType | None = None
        if self.t[self.i] == ":":
            self.i += 1
            found = self.parse_type_text(self.t[self.i], self.tokens.starts[self.i])
            self.i += 1
            if not isinstance(found, ScalarType):
                self.report("PTO-E0112", f"expected an element type for a number, got {found}", at)
            type = found
        return self.make_number(value, is_float, is_hex, type, at)

    def make_number(
        self, value: int | float, is_float: bool, is_hex: bool, type: ScalarType | None, at: int
    ) -> Attribute:
        if type is not None and type.is_float:
            if is_hex:
                if not 0 <= value < 1 << (type.bits or 64):
                    self.report("PTO-E0104", f"number does not fit in the bits of {type}", at)
                return FloatAttr(_decode_bits(int(value), type), type, int(value))
            if isinstance(value, int) and abs(value) > 1 << 1023:
                self.report("PTO-E0104", "number does not fit its type", at, got=f"{type}")
            return FloatAttr(float(value), type)
        if is_float:
            if type is not None:
                self.report(
                    "PTO-E0112",
                    f"expected a float type for a floating-point number, got {type}",
                    at,
                    help="write an integer",
                )
            return FloatAttr(float(value), ScalarType("f64"))
        integer = int(value)
        type = type or I64
        bits = 64 if type.text == "index" else type.bits or 64
        low, high = -(1 << (bits - 1)), (1 << bits) - 1  # signless: read as either
        if type.text.startswith("ui"):
            low = 0
        elif type.text.startswith("si"):
            high = (1 << (bits - 1)) - 1
        if not low <= integer <= high:
            self.report(
                "PTO-E0104", f"number does not fit in {type}", at,
                expected=f"{low} .. {high}" if bits <= 64 else f"{bits} bits",
                got=str(integer) if abs(integer) < 1 << 80 else f"a number of {integer.bit_length()} bits",
            )  # fmt: skip
        return IntAttr(integer, type)

    def attribute(self) -> Attribute:
        """Read any attribute."""
        text = self.t[self.i]
        head = text[:1]
        if head == '"':
            self.i += 1
            return StrAttr(unquote(text))
        if head == "#":
            self.i += 1
            return self.dialect_attr(text, self.i - 1)
        if head.isdigit() or head == "-":
            return self.typed_number()
        if text in ("true", "false"):
            self.i += 1
            return BoolAttr(text == "true")
        if text == "unit":
            self.i += 1
            return UnitAttr()
        if head == "[":
            return self.array()
        if head == "{":
            return DictAttr(self.dictionary())
        if head == "@":
            return SymbolAttr(self.symbol())
        if text.startswith("array<"):
            self.i += 1
            return self._dense_array(text, self.i - 1)
        if text.startswith("affine_map<"):
            self.i += 1
            return self._affine_map(text, self.i - 1)
        if text.startswith(("dense<", "affine_set<", "dense_resource<", "opaque<", "strided<")):
            self.i += 1
            out = " ".join(text.split())
            if self.t[self.i] == ":" and is_type_start(self.t[self.i + 1]):
                self.i += 1
                out += f" : {self.type()}"
            return OpaqueAttr(out)
        if is_type_start(text) or head == "!":
            return TypeAttr(self.type())
        if text == "loc":
            self.location()
            return UnitAttr()
        raise Fail(self.i, f"expected an attribute value, got {self.shown()}")

    def _affine_map(self, text: str, at: int) -> Attribute:
        try:
            return parse_affine_map(text)
        except AffineTextError as e:
            start = self.tokens.starts[at]
            span = Span(self.source, start + e.part[0], start + max(e.part[1], e.part[0] + 1))
            raise Report(Diagnostic(e.code, e.message, span)) from None

    def array(self) -> ArrayAttr:
        self.eat("[")
        self.deeper()
        items: list[Attribute] = []
        while self.t[self.i] != "]":
            items.append(self.attribute())
            if not self.accept(","):
                break
        self.depth -= 1
        self.eat("]")
        return ArrayAttr(tuple(items))

    def dictionary(self) -> dict[str, Attribute]:
        """Read `{a = 1, b}`; a key alone is a unit attribute."""
        self.eat("{")
        self.deeper()
        out: dict[str, Attribute] = {}
        while self.t[self.i] != "}":
            text = self.t[self.i]
            if text[:1] == '"' and text != '""':
                key = unquote(text)
            elif text[:1].isalpha() or text[:1] == "_":
                key = text
            else:
                raise Fail(self.i, f"expected an attribute name, got {self.shown()}")
            if key in out:
                self.report("PTO-E0114", f"attribute '{key}' is given twice", help="remove one of them")
            self.i += 1
            out[key] = self.attribute() if self.accept("=") else UnitAttr()
            if not self.accept(","):
                break
        self.depth -= 1
        self.eat("}")
        return out

    def dialect_attr(self, text: str, at: int) -> Attribute:
        found = self._enums.get(text)
        if found is not None:
            return found
        alias = self.attr_aliases.get(text[1:])
        if alias is not None:
            return alias
        m = _ENUM_DOT.match(text) or _ENUM_SPACE.match(text)
        if m and m[1] in ENUMS:
            found = self.enum_value(m[1], m[2].strip().strip('"'), at)
        elif m and m[1] in WORDS:
            found = StrAttr(m[2].strip().strip('"'))
        elif m and m[1] == "tile_buf_config":
            found = OpaqueAttr(" ".join(text.split()))
        elif text.startswith("#pto"):
            name = m[1] if m else text[1:].removeprefix("pto.").partition("<")[0]
            self.report("PTO-E0111", f"unknown attribute '#pto.{name}'", at, help=did_you_mean(name, ENUMS))
        elif "." not in text and "<" not in text:
            help = (
                did_you_mean(text[1:], self.attr_aliases)
                or "define the alias before its use: #name = #pto..."
            )
            self.report("PTO-E0111", f"unknown attribute alias '{text}'", at, help=help)
        else:
            found = OpaqueAttr(" ".join(text.split()))
        self._enums[text] = found
        return found

    def enum_value(self, enum: str, text: str, at: int) -> EnumAttr:
        value = ENUMS[enum].canonical(text)
        if value is None:
            known = ENUMS[enum].values
            self.report(
                "PTO-E0112", f"unknown {enum} '{text}'", at, help=did_you_mean(text, known),
                expected=", ".join(known), got=text,
            )  # fmt: skip
        return EnumAttr(enum, value)

    def declared_attr(self, attr: Attr) -> Attribute:
        """Read the value of a declared attribute at its place in the format."""
        text = self.t[self.i]
        if attr.kind in ENUMS:
            return self._enum_position(attr, text)
        if attr.many:
            return self._word_list(attr)
        if attr.keyword or (attr.choices and attr.kind == "str"):
            word = unquote(text) if text[:1] == '"' else _enum_word(text)
            if not attr.choices and (word[:1].isalpha() or word[:1] == "_"):
                self.i += 1
                return StrAttr(word)
            if word not in attr.choices:
                lowered = {str(c).lower(): c for c in attr.choices}
                if word.lower() not in lowered or attr.keyword:
                    choices = [str(c) for c in attr.choices]
                    message = f"expected a value of {attr.name}, got {self.shown()}"
                    code = "PTO-E0112" if text[:1] == '"' else ""
                    raise Fail(self.i, message, did_you_mean(word, choices), code, _few(choices))
                word = str(lowered[word.lower()])
            self.i += 1
            return StrAttr(word)
        if attr.kind == "symbol":
            return SymbolAttr(self.symbol())
        if attr.kind in ("ints", "any") and text == "[":
            return self.array()
        value = self.attribute()
        if attr.kind == "bool" and isinstance(value, IntAttr):
            return BoolAttr(bool(value.value))
        return value

    def _word_list(self, attr: Attr) -> Attribute:
        """Read `nsw, nuw`"""
        words: list[str] = []
        while True:
            word = self.t[self.i]
            if word not in attr.choices:
                raise Fail(
                    self.i,
                    f"expected a value of {attr.name}, got {self.shown()}",
                    expected=", ".join(attr.choices),
                )
            words.append(word)
            self.i += 1
            if not self.accept(","):
                return StrAttr(", ".join(words))

    def _enum_position(self, attr: Attr, text: str) -> Attribute:
        at = self.i
        if text[:1] == "#":
            self.i += 1
            found = self.dialect_attr(text, at)
            if isinstance(found, EnumAttr) and not same_enum(found.enum, attr.kind):
                message = f"{attr.name} takes #pto.{attr.kind}, not #pto.{found.enum}"
                raise Fail(at, message, code="PTO-E0112")  # another format may take it
            return found
        stripped = self.accept("<")
        text = self.t[self.i]
        if text[:1] == '"':
            word = unquote(text)
        elif text[:1].isalpha() or text[:1] == "_":
            word = text
        else:
            raise Fail(self.i, f"expected a value of {attr.kind}, got {self.shown()}")
        values = ENUMS[attr.kind].values
        value = ENUMS[attr.kind].canonical(word)
        if value is None:
            message = f"unknown {attr.kind} '{word}'"
            raise Fail(self.i, message, did_you_mean(word, values), "PTO-E0112", ", ".join(values))
        found = EnumAttr(attr.kind, value)
        self.i += 1
        if stripped:
            self.eat(">")
        return found

    def _dense_array(self, text: str, at: int) -> Attribute:
        m = _DENSE.match(text)
        if not m:
            self.report("PTO-E0112", "malformed array attribute", at, help="write array<i32: 1, 2>")
        items: list[int | float] = []
        for part in filter(None, (p.strip() for p in (m[2] or "").split(","))):
            if part in ("true", "false"):
                items.append(int(part == "true"))
                continue
            if _INTEGER.fullmatch(part):
                items.append(int(part, 0) if "x" in part else int(part))
            elif m[1].startswith(("f", "bf")) and _DECIMAL.fullmatch(part) and math.isfinite(float(part)):
                items.append(float(part))
            else:
                self.report("PTO-E0112", f"expected a number of type {m[1][:20]}, got '{part[:20]}'", at)
        return DenseArrayAttr(m[1], tuple(items))

    def symbol(self) -> str:
        text = self.t[self.i]
        if text[:1] != "@":
            raise Fail(self.i, f"expected a symbol such as @name, got {self.shown()}")
        self.i += 1
        name = unquote(text[1:]) if text[1:2] == '"' else text[1:]
        while self.t[self.i] == "::" and self.t[self.i + 1][:1] == "@":
            name += "::" + self.t[self.i + 1]
            self.i += 2
        return name

    def location(self) -> range:
        """Read `loc(...)`; return the tokens between the parentheses, for `locations.py`."""
        self.eat("loc")
        self.eat("(")
        first, depth = self.i, 1
        while depth:
            text = self.t[self.i]
            if text == EOF:
                raise Fail(self.i, "expected ')' to close loc(")
            depth += (text == "(") - (text == ")")
            self.i += 1
        return range(first, self.i - 1)

    def trailing_location(self) -> range | None:
        return self.location() if self.t[self.i] == "loc" and self.t[self.i + 1] == "(" else None

    # -------------------------------------------------------------------------------------------- names

    def open_scope(self) -> None:
        self._scopes.append([])
        self.deeper()

    def close_scope(self) -> None:
        for name in self._scopes.pop():
            gone = self.values.pop(name, None)
            if gone is not None:
                self._ended[name] = gone
        self.depth -= 1
        inner = len(self._scopes) + 1
        for name, (value, at, depth) in list(self._forward.items()):
            if depth == inner:
                self._forward[name] = (value, at, depth - 1)

    def define(self, name: str, value: Value, at: int) -> None:
        """Bind `%name`; a value used before its definition replaces the new one."""
        old = self.values.get(name)
        if old is not None:
            d = self.error("PTO-E0202", f"value '{name}' is defined twice", at, help="rename one of them")
            where = old.owner
            if isinstance(where, Operation) and where.loc is not None:
                d.notes.append(("first defined here", where.loc))
            return
        pending = self._forward.get(name)
        if pending is not None and pending[2] >= len(self._scopes):
            placeholder, _, _ = self._forward.pop(name)
            if placeholder.type is not ERROR and value.type is not ERROR and placeholder.type != value.type:
                self._type_differs(name, value.type, placeholder.type, at)
            _adopt(placeholder, value)
            value = placeholder
        value.name = name[1:]
        self.values[name] = value
        if self._scopes:
            self._scopes[-1].append(name)

    def forget_uses(self, begin: int) -> None:
        """Drop names first used from a token on, because the text was read by a wrong form."""
        for name in [n for n, (_, at, _) in self._forward.items() if at >= begin]:
            del self._forward[name]

    def use(self, name: str, at: int) -> Value:
        """Return the value of `%name`, or a placeholder before its definition."""
        value = self.values.get(name)
        if value is not None:
            return value
        if name in self._forward:
            return self._forward[name][0]
        value = Value(ERROR, _NOWHERE, 0, name[1:])
        self._forward[name] = (value, at, len(self._scopes))
        return value

    def check_type(self, value: Value, declared: Type, at: int) -> None:
        """Check that the type at a use is the type of the definition."""
        have = value.type
        if have is declared or have == declared:
            return
        if have is ERROR:
            if value.owner is _NOWHERE and f"%{value.name}" in self._forward:
                value.type = declared
            return
        self._type_differs(f"%{value.name}", have, declared, at, value)

    def _type_differs(
        self, name: str, have: Type, declared: Type, at: int, value: Value | None = None
    ) -> None:
        d = self.error(
            "PTO-E0207", f"mismatched type of '{name}'", at,
            expected=str(have), got=str(declared), help=_mismatch_help(name, have, declared),
        )  # fmt: skip
        owner = value.owner if value is not None else None
        if isinstance(owner, Operation) and owner.loc is not None:
            d.notes.append(("defined here", owner.loc))

    @property
    def unresolved(self) -> bool:
        """Return True if a name was used that has no definition yet."""
        return bool(self._forward)

    def undefined(self, keep: int) -> None:
        """Report names that still have no definition at the end of scopes deeper than `keep`."""
        for name, (_, at, depth) in list(self._forward.items()):
            if depth < keep:
                continue
            del self._forward[name]
            ended = self._ended.get(name)
            where = ended.op.loc if ended is not None and ended.op is not None else None
            if where is not None and where.start < self.tokens.starts[at]:
                help = "define it outside, or return it as a result of the region"
                if ended is not None and isinstance(ended.type, VRegType | MaskType):
                    help = (
                        "return it as a result of its loop or branch; out of a vecscope, store it to memory "
                        "and load it again"
                    )
                d = self.error(
                    "PTO-E0201", f"cannot use '{name}' outside the region that defines it", at, help=help
                )
                d.notes.append(("defined here", where))
                continue
            self._hints -= 1  # limit the costly search: a user reads only the first suggestions
            hint = did_you_mean(name, (*self.values, *self._ended)) if self._hints > 0 else ""
            self.error("PTO-E0201", f"undefined value '{name}'", at, help=hint or "define it before this use")
        self._ended.clear()


_NOWHERE = Block()


def _adopt(placeholder: Value, value: Value) -> None:
    placeholder.type, placeholder.owner, placeholder.index = value.type, value.owner, value.index
    owner = value.owner
    if isinstance(owner, Operation):
        assert isinstance(owner.results, list)
        owner.results[value.index] = placeholder
    else:
        owner.args[value.index] = placeholder


def _decode_bits(bits: int, type: ScalarType) -> float:
    """Return the value of a float bit pattern."""
    import struct

    name = type.text
    if name == "f32":
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    if name == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    if name == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    if name == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    from ..isa.encoding import decode

    return decode(type.info.name if type.info else "f32", bits)


#: Integers that `arith.index_cast` converts to index and back.
_INTEGERS = ("i8", "i16", "i32", "i64")


def _mismatch_help(name: str, have: Type, declared: Type) -> str:
    pair = {str(have), str(declared)}
    if "index" in pair and pair & set(_INTEGERS):
        return f"convert it: %x = arith.index_cast {name} : {have} to {declared}"
    return "write the type of the definition"


def _enum_word(text: str) -> str:
    """Return the word of `#pto.membar<VST_VLD>`, a vendor enum whose values are words here; else the text."""
    m = _ENUM_DOT.match(text) or _ENUM_SPACE.match(text) if text[:1] == "#" else None
    return m[2].strip().strip('"') if m and m[1] in WORDS else text


def _few(words: list[str], most: int = 24) -> str:
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")
