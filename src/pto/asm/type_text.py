"""Type text to types. Each distinct text is parsed once per parser; errors point inside the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from ..diag import did_you_mean
from ..ir.types import (
    INDEX,
    SLOTS,
    ConvTileType,
    Dims,
    EventIdArrayType,
    LocalArrayType,
    MaskType,
    MemRefType,
    MultiTileBufType,
    OpaqueType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
    in_pairs,
)
from ..isa.dtypes import SPELLINGS
from ..isa.enums import ENUMS
from ..isa.machine import MEMORIES, POINTER_SPACES
from ..isa.profiles import LOCATIONS
from ..isa.tile import COMPACT_MODES, DEFAULT_CONFIG, LAYOUT_PARTS
from .affine_text import AffineTextError, parse_affine_map


class TypeTextError(Exception):
    """A bad type text: code, message, the offending part (start, end in the text), and help."""

    def __init__(self, message: str, part: tuple[int, int], help: str = "", code: str = "PTO-E0110",
                 expected: str = "", got: str = "") -> None:  # fmt: skip
        super().__init__(message)
        self.message, self.part, self.help, self.code = message, part, help, code
        self.expected, self.got = expected, got


_INT = re.compile(r"[su]?i([1-9][0-9]{0,7})$")
_SCALAR = re.compile(r"(?:index|[su]?i[0-9]{1,8}|f[0-9]+(?:E[0-9]+M[0-9]+\w*)?|bf16|hif8|hifloat8)$")
_COMMENT = re.compile(r"//[^\n]*")
_HEAD = re.compile(r"!?([A-Za-z_][\w$.]*)\s*(?:<(.*)>)?$", re.DOTALL)
_DIM = re.compile(r"\s*([0-9]+|\?)\s*x")

#: Largest number of elements of an array on the stack of a core.
MAX_LOCAL_ARRAY = 4096

#: Token types without parameters.
_TOKENS = {
    "align": "", "pipe": "*", "tpipe": "*", "event": "*", "record_event": "*", "async_session": "",
    "async_event": "", "group": "*", "prefetch_async_context": "",
}  # fmt: skip

#: Types of the dialect `pto`.
TYPE_NAMES = (
    "tile_buf", "tile", "tensor_view", "partition_tensor_view", "ptr", "vreg", "mask", "memref",
    "eventid_array", "local_array", "conv_tile", "multi_tile_buf", *_TOKENS,
)  # fmt: skip


@lru_cache(4096)  # programs of one batch have most types in common
def parse_type(text: str) -> Type:
    """Return the type of a text; raise `TypeTextError`."""
    m = _HEAD.match(text)
    if not m:
        raise TypeTextError(f"malformed type '{_short(text)}'", (0, len(text)))
    name, body = m[1], m[2]
    at = m.start(2) if body is not None else len(text)
    if body is not None and "//" in body:
        body = _COMMENT.sub(lambda c: " " * len(c[0]), body)
    if text[0] != "!":
        return _builtin(text, name, body, at)
    if not name.startswith("pto."):
        if "." not in name:
            raise TypeTextError(f"unknown type alias '!{name}'", (0, 1 + len(name)), code="PTO-E0109")
        return OpaqueType(text)
    short = name[4:]
    parse = _PARSERS.get(short)
    if parse is not None:
        return parse(_Body(text, body, at))
    if short in _TOKENS:
        if body is not None and not _TOKENS[short]:
            raise TypeTextError(f"!pto.{short} takes no parameters", (at, at + len(body)))
        return TokenType(short, " ".join(body.split()) if body else "")
    if short.lower() in SPELLINGS or short.endswith("x2"):
        return _scalar(text, (0, len(text)))
    help = did_you_mean(short, TYPE_NAMES) or f"known types: {', '.join('!pto.' + k for k in TYPE_NAMES)}"
    if short == "tile_view":
        help = "!pto.tile_view was renamed: write !pto.partition_tensor_view"
    raise TypeTextError(f"unknown type '!{name}'", (0, 1 + len(name)), help, code="PTO-E0109")


def is_type_start(token: str) -> bool:
    """Return True if a token can begin a type."""
    c = token[:1]
    if c == "!" or c == "(":
        return True
    return bool(_SCALAR.match(token)) or token.partition("<")[0] in _BUILTINS


class _Body:
    """The text between `<` and `>`, split at top-level commas, with positions."""

    def __init__(self, text: str, body: str | None, at: int) -> None:
        self.text = text
        self.at = at
        self.parts: list[tuple[str, int]] = []
        if body is None:
            return
        depth, start, quoted = 0, 0, False
        for i, c in enumerate(body + ","):
            if c == '"':
                quoted = not quoted
            if quoted:
                continue
            if c in "<[({":
                depth += 1
            elif c in ">])}" and not (c == ">" and body[i - 1 : i] == "-"):
                depth -= 1
            elif c == "," and depth <= 0:
                raw = body[start:i]
                lead = len(raw) - len(raw.lstrip())
                self.parts.append((raw.strip(), at + start + lead))
                start = i + 1
        if start <= len(body):  # brackets do not match: take the rest as one part, which is not a valid type
            self.parts.append((body[start:].strip(), at + start))
        if len(self.parts) == 1 and not self.parts[0][0]:
            self.parts = []

    def error(self, message: str, index: int | None = None, help: str = "", **more: str) -> TypeTextError:
        if index is None or index >= len(self.parts):
            return TypeTextError(message, (0, len(self.text)), help, **more)
        part, at = self.parts[index]
        return TypeTextError(message, (at, at + max(1, len(part))), help, **more)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _builtin(text: str, name: str, body: str | None, at: int) -> Type:
    if body is None:
        return _scalar(text, (0, len(text)))
    parse = _BUILTINS.get(name)
    if parse is None:
        raise TypeTextError(f"unknown type '{_short(text)}'", (0, len(name)), code="PTO-E0109")
    return parse(_Body(text, body, at))


def _scalar(text: str, part: tuple[int, int], pairs: bool = False) -> ScalarType:
    """Return an element type. With `pairs`, the suffix `x2` of a 4-bit float gives the type of a pair in one
    byte."""
    if text == "index":
        return INDEX
    name = text.removeprefix("!pto.")
    if name.endswith("x2") and name[:-2].lower() in SPELLINGS:
        name, pairs = name[:-2], pairs and text != name
    else:
        pairs = False
    info = SPELLINGS.get(name.lower())
    if info is not None and pairs and info.is_float:
        return in_pairs(info)
    if info is not None:
        return ScalarType(name if name[:2] == "si" else info.mlir)
    if name == "predicate":
        return ScalarType("ui8")
    m = _INT.match(name)
    if m and int(m[1]) <= 1 << 24:
        return ScalarType(name)
    help = did_you_mean(name, SPELLINGS) or "element types: " + ", ".join(
        sorted({d.mlir for d in SPELLINGS.values()})
    )
    raise TypeTextError(f"unknown element type '{_short(text)}'", part, help, code="PTO-E0109")


def _shape(body: _Body, index: int, pairs: bool = False) -> tuple[Dims, ScalarType]:
    """Read `16x?xf32`; return dims and element."""
    text, at = body.parts[index]
    dims: list[int | None] = []
    pos = 0
    while True:
        m = _DIM.match(text, pos)
        if not m:
            break
        dims.append(None if m[1] == "?" else _int(m[1], (at + m.start(1), at + m.end(1))))
        pos = m.end()
    elem = text[pos:].strip()
    if not elem:
        raise body.error("expected an element type after the shape", index)
    start = at + len(text) - len(text[pos:].lstrip())
    return tuple(dims), _scalar(elem, (start, start + len(elem)), pairs)


def _int(text: str, part: tuple[int, int]) -> int:
    if len(text) > 19:
        raise TypeTextError(f"number {text[:12]}... is too large", part, code="PTO-E0104")
    if not text.isascii():  # a digit of another script, or superscript
        raise TypeTextError(
            f"expected a number, got '{text}'", part, "write it with the digits 0 to 9", code="PTO-E0104"
        )
    return int(text)


def _view(name: str) -> Callable[[_Body], Type]:
    def parse(body: _Body) -> Type:
        if len(body.parts) != 1:
            raise body.error(f"expected one shape in !pto.{name}", help=f"write !pto.{name}<16x16xf32>")
        dims, elem = _shape(body, 0)
        return ViewType(elem, dims, name)

    return parse


#: Names of the spaces of a pointer: `ub`, or the location of tiles in this space: `vec`.
_SPACES = (*POINTER_SPACES, *(loc for loc, memory in MEMORIES.items() if memory.space))


def _ptr(body: _Body) -> Type:
    if not 1 <= len(body.parts) <= 2:
        raise body.error(
            "expected an element type and an optional space in !pto.ptr", help="write !pto.ptr<f32, ub>"
        )
    text, at = body.parts[0]
    elem = _scalar(text, (at, at + len(text)), pairs=True)
    space = "gm"
    if len(body.parts) == 2:
        raw = body.parts[1][0]
        m = re.match(r"#pto\.address_space<\s*(\w+)\s*>$", raw)
        space = m[1] if m else raw
        if space not in _SPACES:
            raise body.error(
                f"unknown address space '{raw}'",
                1,
                did_you_mean(raw, _SPACES),
                expected=", ".join(POINTER_SPACES),
            )
        space = MEMORIES[space].space if space in MEMORIES else space
    return PtrType(elem, space)


def _vreg(body: _Body) -> Type:
    if len(body.parts) != 1:
        raise body.error("expected lanes and an element type in !pto.vreg", help="write !pto.vreg<64xf32>")
    dims, elem = _shape(body, 0, pairs=True)
    if len(dims) != 1 or dims[0] is None:
        raise body.error("expected one static lane count in !pto.vreg", 0, "write !pto.vreg<64xf32>")
    if elem.bits == 4 and elem.info is not None and elem.info.is_float:
        pair = in_pairs(elem.info)
        raise body.error(
            "cannot hold single 4-bit elements in a vector register", 0,
            f"write !pto.vreg<256x{pair}>", code="PTO-E0402",
            expected=f"256 lanes of {pair}", got=f"{dims[0]} lanes of {elem}",
        )  # fmt: skip
    lanes, bits = dims[0], elem.bits or 0
    if lanes * bits != 2048:
        want = 2048 // bits if bits else 0
        raise body.error(
            f"expected 256 bytes in a vector register, got {lanes * bits / 8:g}", 0,
            f"write !pto.vreg<{want}x{elem}>" if bits else "", code="PTO-E0402",
            expected=f"{want} lanes of {elem}", got=f"{lanes} lanes",
        )  # fmt: skip
    return VRegType(elem, lanes)


def _mask(body: _Body) -> Type:
    if not body.parts:
        return MaskType()
    gran = body.parts[0][0].strip('"').lower()
    if len(body.parts) != 1 or gran not in ("b8", "b16", "b32", "g"):
        raise body.error(
            "expected mask granularity b8, b16 or b32", 0, did_you_mean(gran, ("b8", "b16", "b32"))
        )
    return MaskType(None if gran == "g" else gran)


def _eventid_array(body: _Body) -> Type:
    text = body.parts[0][0] if len(body.parts) == 1 else ""
    if not text.isdigit() or not 0 < int(text[:6]) <= 4096 or len(text) > 4:
        raise body.error("expected a positive count in !pto.eventid_array", 0, "write !pto.eventid_array<4>")
    return EventIdArrayType(int(text))


def _local_array(body: _Body) -> Type:
    given, elem = _shape(body, 0) if len(body.parts) == 1 else ((), INDEX)
    dims = tuple(n for n in given if n)
    if not dims or len(dims) < len(given) or prod(dims) > MAX_LOCAL_ARRAY:
        raise body.error(
            "expected one static shape in !pto.local_array", 0, "write !pto.local_array<4xi32>",
            expected=f"1 to {MAX_LOCAL_ARRAY} elements",
        )  # fmt: skip
    return LocalArrayType(elem, dims)


def _doc_memref(body: _Body) -> Type:
    """Parse `!pto.memref<f32, 1x16x16>` of the ISA documents: a strided view of global memory."""
    if not body.parts:
        raise body.error("expected an element type and a shape in !pto.memref")
    if len(body.parts) == 1 and "x" in body.parts[0][0]:
        shape, elem = _shape(body, 0)
        return ViewType(elem, shape, "tensor_view")
    text, at = body.parts[0]
    elem = _scalar(text, (at, at + len(text)))
    dims: list[int | None] = []
    for i, (part, where) in enumerate(body.parts[1:], 1):
        for d in part.split("x"):
            if d != "?" and not d.isdigit():
                raise body.error(f"bad dimension '{d}'", i)
            dims.append(None if d == "?" else _int(d, (where, where + len(part))))
    return ViewType(elem, tuple(dims) or (1,), "tensor_view")


# ---------------------------------------------------------------------------------------------- tile_buf

_LONG_KEYS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")
_SHORT_KEYS = ("valid", "blayout", "slayout", "fractal", "pad", "compact")
_LOC_ALIAS = {
    "ub": "vec",
    "l1": "mat",
    "l0a": "left",
    "l0b": "right",
    "l0c": "acc",
    "scaleleft": "scale_left",
    "scaleright": "scale_right",
}


def _tile(body: _Body) -> Type:
    """Parse `!pto.tile_buf` in its long, short and document forms; `!pto.tile` likewise."""
    parts = body.parts
    if not parts:
        raise body.error("expected a location and a shape in !pto.tile_buf", help=_TILE_HELP)
    keyed = [_key(p) for p, _ in parts]
    if keyed[0] and keyed[0][0] == "loc" and len(parts) > 1 and keyed[1] and keyed[1][0] == "dtype":
        fields = _long_form(body, keyed)
    elif len(parts) > 1 and not keyed[1] and "x" in parts[1][0] and _DIM.match(parts[1][0]):
        fields = _short_form(body, keyed)
    elif len(parts) == 1 and _DIM.match(parts[0][0]):
        dims, elem = _shape(body, 0)
        fields = {"loc": "vec", "elem": elem, **_two(body, 0, dims)}
    elif _is_positional(keyed, parts):
        fields = _document_form(body, keyed)
    elif keyed[0] and keyed[0][0] == "loc":
        raise body.error(
            "expected 'dtype'", 1, "the long form is " + ", ".join(f"{k}=.." for k in _LONG_KEYS)
        )
    else:
        raise body.error("expected a location, then a shape such as 16x64xf32", 0, _TILE_HELP)
    return TileBufType(
        fields["elem"], _memory(fields), fields["rows"], fields["cols"],
        fields.get("v_row", fields["rows"]), fields.get("v_col", fields["cols"]),
        fields.get("blayout", "row_major"), fields.get("slayout", "none_box"),
        fields.get("fractal", 512), fields.get("pad", 0), fields.get("compact", "null"),
    )  # fmt: skip


def _memory(fields: dict[str, Any]) -> str:
    """Return the location of a tile. Newer assemblers write `scaling` for both scales of an mx product,
    although left and right scales have separate memories. The layout then tells which one is meant."""
    if fields["loc"] == "scaling" and str(fields["elem"]) == "f8E8M0FNU":
        layout = fields.get("blayout", "row_major"), fields.get("slayout", "none_box")
        scales = ("scale_left", "scale_right")
        return next((loc for loc in scales if DEFAULT_CONFIG[loc][:2] == layout), "scaling")
    return fields["loc"]


def _multi_tile(body: _Body) -> Type:
    """Parse `!pto.multi_tile_buf<vec, 16x64xf32, count=2>`, or with a tile type in place of its parts."""
    help = "write !pto.multi_tile_buf<vec, 16x64xf32, count=2>"
    last = max(len(body.parts) - 1, 0)
    keyed = _key(body.parts[last][0]) if last else None
    if keyed is None or keyed[0] != "count" or not keyed[1].isdigit():
        raise body.error("expected a tile and a count in !pto.multi_tile_buf", last, help)
    count = _nat(body, last, keyed[1], "count")
    if not SLOTS[0] <= count <= SLOTS[1]:
        raise body.error(
            "count of slots is out of range", last, help,
            expected=f"a count of {SLOTS[0]} to {SLOTS[1]}", got=str(count),
        )  # fmt: skip
    inner = body.parts[0][0]
    if last == 1 and inner.startswith("!"):
        slot = parse_type(inner)
    else:
        body.parts.pop()
        slot = _tile(body)
    if not isinstance(slot, TileBufType) or slot.compact != "null":
        raise body.error("expected tiles without gaps as slots of !pto.multi_tile_buf", 0, help,
                         expected="a tile_buf without compact mode", got=str(slot))  # fmt: skip
    return MultiTileBufType(slot, count)


_TILE_HELP = "write !pto.tile_buf<vec, 16x64xf32> or the long form with loc=, dtype=, rows=, cols=, ..."


def _key(part: str) -> tuple[str, str] | None:
    m = re.match(r"([A-Za-z_]\w*)\s*=\s*(.*)$", part, re.DOTALL)
    return (m[1], m[2].strip().strip('"')) if m else None


def _word(body: _Body, index: int, value: str, what: str, allowed: tuple[str, ...]) -> str:
    if value in allowed:
        return value
    canonical = ENUMS[what].canonical(value) if what in ENUMS else None
    if canonical is not None and canonical in allowed:
        return canonical
    raise body.error(
        f"unknown {what}: {value}",
        index,
        did_you_mean(value, allowed),
        expected=", ".join(allowed),
        got=value,
        code="PTO-E0112",
    )


def _loc(body: _Body, index: int, value: str) -> str:
    value = _LOC_ALIAS.get(value.lower(), value)
    if value.lower() in LOCATIONS:
        return value.lower()
    return _word(body, index, value, "loc", tuple(LOCATIONS))


def _nat(body: _Body, index: int, value: str, what: str) -> int:
    if not value.isdigit():
        raise body.error(f"{what} must be a non-negative integer", index, got=value)
    part, at = body.parts[index]
    return _int(value, (at, at + len(part)))


def _valid_dim(body: _Body, index: int, value: str, what: str) -> int | None:
    if value in ("?", "-1"):
        return None
    if not value.isdigit():
        raise body.error(f"{what} must be '?', -1, or a non-negative integer", index, got=value)
    part, at = body.parts[index]
    return _int(value, (at, at + len(part)))


def _layout_field(body: _Body, index: int, key: str, value: str) -> Any:
    if key == "blayout":
        return _word(body, index, value, "blayout", ("row_major", "col_major"))
    if key == "slayout":
        return _word(body, index, value, "slayout", ("none_box", "row_major", "col_major"))
    if key == "compact":
        if value in COMPACT_MODES:
            return value
        number = _nat(body, index, value, "compact")
        if number >= len(COMPACT_MODES):
            raise body.error(f"unknown compact: {value}", index, expected="0, 1 or 2", got=value)
        return COMPACT_MODES[number]
    if key == "pad":
        named = {"null": 0, "zero": 1, "max": 2, "min": 3}
        if value.lower() in named:
            return named[value.lower()]
        number = _nat(body, index, value, "pad")
        if 3 < number < 1 << 32 or number >= 1 << 33:
            raise body.error(
                f"unknown pad: {value}", index, "write a custom pad as 0x100000000 plus its bits",
                expected="0 null, 1 zero, 2 max, 3 min", got=value,
            )  # fmt: skip
        return number
    return _nat(body, index, value, key)


def _long_form(body: _Body, keyed: list[tuple[str, str] | None]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    order = (*_LONG_KEYS, "compact")
    for i in range(len(body.parts)):
        pair = keyed[i]
        want = order[i] if i < len(order) else ""
        if pair is None or pair[0] != want:
            got = pair[0] if pair else body.parts[i][0]
            if pair and pair[0] in fields:
                raise body.error(f"duplicate {got} in tile_buf", i)
            if not want:
                raise body.error(f"unexpected '{got}' after the last key of tile_buf", i)
            raise body.error(f"expected '{want}'", i, did_you_mean(got, order), got=got)
        key, value = pair
        if key == "loc":
            fields["loc"] = _loc(body, i, value)
        elif key == "dtype":
            at = body.parts[i][1] + body.parts[i][0].index("=") + 1
            fields["elem"] = _scalar(value, (at, at + len(value)))
        elif key in ("v_row", "v_col"):
            fields[key] = _valid_dim(body, i, value, key)
        else:
            fields[key] = _layout_field(body, i, key, value)
    if len(body.parts) < len(_LONG_KEYS):
        raise body.error(
            f"expected '{_LONG_KEYS[len(body.parts)]}'", help="the long form needs every key up to pad"
        )
    return fields


def _two(body: _Body, index: int, dims: Dims) -> dict[str, Any]:
    if len(dims) != 2:
        raise body.error("expected two shape dims in tile_buf compact syntax", index, got=f"{len(dims)} dims")
    if None in dims:
        raise body.error("expected static shape", index, "write a dynamic extent in valid=?x?")
    return {"rows": dims[0], "cols": dims[1]}


def _short_form(body: _Body, keyed: list[tuple[str, str] | None]) -> dict[str, Any]:
    loc = keyed[0][1] if keyed[0] and keyed[0][0] == "loc" else body.parts[0][0].strip('"')
    fields: dict[str, Any] = {"loc": _loc(body, 0, loc)}
    dims, elem = _shape(body, 1)
    fields.update(elem=elem, **_two(body, 1, dims))
    seen: set[str] = set()
    for i in range(2, len(body.parts)):
        pair = keyed[i]
        if pair is None or pair[0] not in _SHORT_KEYS:
            got = pair[0] if pair else body.parts[i][0]
            raise body.error(
                f"unknown key in tile_buf compact syntax: {got}", i, did_you_mean(got, _SHORT_KEYS),
                expected=", ".join(_SHORT_KEYS), got=got,
            )  # fmt: skip
        key, value = pair
        if key in seen:
            raise body.error(f"duplicate {key} in tile_buf compact syntax", i)
        seen.add(key)
        if key == "valid":
            dims_text = [d.strip() for d in value.split("x")]
            if len(dims_text) != 2:
                raise body.error(
                    "expected two dims for valid of tile_buf", i, "write valid=8x64 or valid=?x?"
                )
            fields["v_row"] = _valid_dim(body, i, dims_text[0], "valid rows")
            fields["v_col"] = _valid_dim(body, i, dims_text[1], "valid cols")
        else:
            fields[key] = _layout_field(body, i, key, value)
    return fields


def _is_positional(keyed: list[tuple[str, str] | None], parts: list[tuple[str, int]]) -> bool:
    words = [p for (p, _), k in zip(parts, keyed, strict=True) if not (k and k[0] == "loc")]
    return (
        len(words) >= 3 and (words[0].lower() in SPELLINGS or words[0] == "predicate") and words[1].isdigit()
    )


#: Names of fractal layouts in the documents. NZ and ZN each stand for a pair of blayout and slayout. FR and
#: RN are undefined.
_FRACTAL_WORDS = ("none", "nz", "zn", "fr", "rn")


def _fractal_word(body: _Body, index: int, word: str, fields: dict[str, Any]) -> None:
    """Refuse a layout word that contradicts the layouts before it."""
    wanted = LAYOUT_PARTS.get(word.upper())
    if word.lower() == "none" or wanted == (fields["blayout"], fields["slayout"]):
        return
    if wanted is None:
        help = "write None, NZ or ZN, and the layout as blayout and slayout"
        raise body.error(f"no layout is defined for {word}", index, help, code="PTO-E0112")
    name = next(
        (n for n, parts in LAYOUT_PARTS.items() if parts == (fields["blayout"], fields["slayout"])), ""
    )
    raise body.error(
        f"{word} contradicts blayout and slayout", index,
        f"write {_camel(wanted[0])}, {_camel(wanted[1])}, {word}, or None", code="PTO-E0112",
        expected=f"blayout {wanted[0]}, slayout {wanted[1]}",
        got=f"blayout {fields['blayout']}, slayout {fields['slayout']}" + (f" ({name})" if name else ""),
    )  # fmt: skip


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


def _document_form(body: _Body, keyed: list[tuple[str, str] | None]) -> dict[str, Any]:
    """Parse `<loc=vec, f32, 16, 16, RowMajor, NoneBox, None, Zero>`: positional after the location."""
    first = 1 if keyed[0] and keyed[0][0] == "loc" else 0
    fields: dict[str, Any] = {"loc": _loc(body, 0, keyed[0][1]) if first and keyed[0] else "vec"}
    names = ("elem", "rows", "cols", "blayout", "slayout", "fractal", "pad")
    if len(body.parts) - first > len(names):
        raise body.error("too many parameters for a tile type", first + len(names))
    blayout, slayout, fractal = DEFAULT_CONFIG[str(fields["loc"])]
    fields.update(blayout=blayout, slayout=slayout, fractal=fractal)
    for i, name in enumerate(names[: len(body.parts) - first], first):
        text, at = body.parts[i]
        if name == "elem":
            fields[name] = _scalar(text, (at, at + len(text)))
        elif name == "fractal" and text.lower() in _FRACTAL_WORDS:
            _fractal_word(body, i, text, fields)
        elif name == "pad" and text.lower() == "invalid":
            fields[name] = 0
        else:
            fields[name] = _layout_field(body, i, name, text)
    if body.parts[first][0] == "predicate":  # a bit per element, in rows of 32 bytes
        bits = fields["cols"]
        fields.update(v_row=fields["rows"], v_col=-(-bits // 8), cols=-(-bits // 256) * 32)
    return fields


_CONV_LAYOUTS = ("NCHW", "NC1HWC0", "GNCHW", "GNC1HWC0", "NCDHW", "NDC1HWC0", "FRACTAL_Z", "FRACTAL_Z_3D")


def _conv_tile(body: _Body) -> Type:
    """Parse `!pto.conv_tile<mat, 1x4x8x8x16xf16, NC1HWC0>`."""
    if len(body.parts) != 3:
        raise body.error("expected a location, a shape and a layout in !pto.conv_tile",
                         help="write !pto.conv_tile<mat, 1x4x8x8x16xf16, NC1HWC0>")  # fmt: skip
    dims, elem = _shape(body, 1)
    return ConvTileType(
        elem, _loc(body, 0, body.parts[0][0]), dims, _word(body, 2, body.parts[2][0], "layout", _CONV_LAYOUTS)
    )


# ------------------------------------------------------------------------------------------ builtin types


_LAYOUT = (
    r"strided<\s*\[([-?0-9,\s]*)\]\s*(?:,\s*offset\s*:\s*(?:\?|-?[0-9]{1,19})\s*)?>"
    r"|#[\w.$]+(?:<[^<>]*>)?"
)


def _memref(body: _Body) -> Type:
    if not body.parts:
        raise body.error("expected a shape and an element type in memref")
    dims, elem = _shape(body, 0)
    layout, space = "", ""
    for i, (part, _) in enumerate(body.parts[1:], 1):
        m = re.match(r"#pto\.address_space<\s*(\w+)\s*>$", part)
        if m:
            canonical = ENUMS["address_space"].canonical(m[1])
            if canonical is None:
                raise body.error(
                    f"unknown address space '{m[1]}'", i, did_you_mean(m[1], ENUMS["address_space"].values)
                )
            space = canonical
        elif part.isdigit():
            continue  # numeric memory spaces have no effect here
        elif part.startswith("affine_map<") and not layout:
            layout = _affine_layout(body, i, len(dims))
        elif layout or (m := re.fullmatch(_LAYOUT, part)) is None:
            raise body.error("expected a layout such as strided<[64, 1], offset: ?>, or an address space", i)
        else:
            if m[1] is not None:
                _check_strides(body, i, m[1], len(dims))
            layout = " ".join(part.split())
    return MemRefType(elem, dims, layout, space)


def _check_strides(body: _Body, index: int, text: str, rank: int) -> None:
    strides = text.split(",") if text.strip() else []
    if not all(re.fullmatch(r"\?|-?[0-9]{1,19}", s.strip()) for s in strides):
        raise body.error("expected numbers or '?' as strides", index)
    if len(strides) != rank:
        raise body.error(f"expected {rank} strides, one per dimension, got {len(strides)}", index)


def _affine_layout(body: _Body, index: int, rank: int) -> str:
    part, at = body.parts[index]
    try:
        found = parse_affine_map(part)
    except AffineTextError as e:
        raise TypeTextError(e.message, (at + e.part[0], at + e.part[1]), code=e.code) from None
    if found.dims != rank:
        raise body.error(f"expected a map of {rank} dimensions as the layout, got {found.dims}", index)
    return str(found)


def _shaped(name: str) -> Callable[[_Body], Type]:
    def parse(body: _Body) -> Type:
        if not body.parts:
            raise body.error(f"expected a shape and an element type in {name}")
        dims, elem = _shape(body, 0)
        return ShapedType(elem, dims, name)

    return parse


_PARSERS: dict[str, Callable[[_Body], Type]] = {
    "tile_buf": _tile,
    "tile": _tile,
    "tensor_view": _view("tensor_view"),
    "partition_tensor_view": _view("partition_tensor_view"),
    "ptr": _ptr,
    "vreg": _vreg,
    "mask": _mask,
    "memref": _doc_memref,
    "eventid_array": _eventid_array,
    "local_array": _local_array,
    "conv_tile": _conv_tile,
    "multi_tile_buf": _multi_tile,
}
_BUILTINS: dict[str, Callable[[_Body], Type]] = {
    "memref": _memref,
    "vector": _shaped("vector"),
    "tensor": _shaped("tensor"),
}
