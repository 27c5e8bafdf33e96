"""Vector registers in C++: scopes, places of calls, and rows whose call depends on more than types.

    pto.vecscope { .. }                        __VEC_SCOPE__ { .. }
    %v = pto.vlds %p[%i] : ..                  vector_f32 v1;
                                               vlds(v1, v2, v3, NORM);

A value of a register type is a variable. Further results of an instruction (an advanced pointer, a count) are
variables that begin as copies of the operand and that the call updates; the state of an unaligned stream is
one variable for the whole stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.core import Block, Operation, Value, constant_of
from ...ir.types import MaskType, PtrType, VRegType
from ...isa.dtypes import DTYPES
from ...isa.micro_tags import TAGS, spelled, with_width
from .control import is_align
from .function import CAST, PLACES, CppFunction, handles
from .spelling import QUALIFIER, register
from .template import template
from .unit import Unit

_POST = "POST_UPDATE"


def dtype_of(value: Value) -> str:
    return str(value.type.dtype)  # type: ignore[attr-defined]


def bits_of(value: Value) -> int:
    """Return the bits of a lane, or of the unit of a pointer, which is a pair of 4-bit elements."""
    return int(value.type.bits)  # type: ignore[attr-defined]


# -- places of templates ------------------------------------------------------------------------------------


def seen_as(f: CppFunction, value: Value, dtype: str) -> str:
    """Return a register, cast to another element type if that differs."""
    text = f.declare_result(value) if value.op is not None and value not in f.known else f.text(value)
    return text if dtype_of(value) == dtype else f"({register(dtype)}&) {text}"


def _named(f: CppFunction, op: Operation, name: str) -> Value:
    row = op.row
    assert row is not None
    if name in row.operand_index:
        return op.group(name)[0]
    return next(v for d, v in zip(row.results, op.results, strict=False) if d.name == name)


def _as_integers(kind: str) -> Callable[[CppFunction, Operation, str, dict[str, str]], str]:
    def place(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
        value = _named(f, op, name)
        return seen_as(f, value, f"{kind}{bits_of(value)}")

    return place


def _as_words(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
    return seen_as(f, _named(f, op, name), "u32")


def _begins(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
    """Emit a result that begins as a copy of an operand."""
    result, operand = (_named(f, op, part) for part in name.split(":"))
    return f.declare(result, f.types(result.type), f.text(operand))


def _temporary(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
    """Return a register of the call itself, declared at its first use."""
    if name not in own:
        type = name.partition(":")[2]
        first = next(v for v in (*op.results, *op.operands) if isinstance(v.type, VRegType))
        spelled_type = (
            "vector_bool" if type == "mask" else register(type) if type else f.types(first.type)
        )  # fmt: skip
        own[name] = f.token()
        f.line(f"{spelled_type} {own[name]};")
    return own[name]


def _constant(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
    found = constant_of(op.group(name)[0])
    if found is None:
        f.unit.no_spelling(op, f"with a '{name}' that is known at run time only")
        return "0"
    return str(found)


def _half(f: CppFunction, op: Operation, name: str, own: dict[str, str]) -> str:
    return "HIGHER" if _constant(f, op, name, own) == "1" else "LOWER"


PLACES |= {
    "signed": _as_integers("i"),
    "bits": _as_integers("u"),
    "words": _as_words,
    "begins": _begins,
    "temporary": _temporary,
    "constant": _constant,
    "half": _half,
}


# -- scopes -------------------------------------------------------------------------------------------------


@handles("pto.vecscope", "pto.strict_vecscope")
def _vecscope(f: CppFunction, op: Operation) -> None:
    """Emit a vecscope. Conversions keep their own modes only if CTRL does not saturate all of them."""
    if f.unit.profile.isa == "a2a3" and not f.unit.checked:
        f.unit.no_registers(op)
        return
    block = op.regions[0].blocks[0]
    for argument, value in zip(block.args, op.operands, strict=True):
        f.name(argument, f.atom(value))
    control = obeys_tags(f.unit, block)
    before = ""
    if control:
        before = f.token()
        f.line(f"uint64_t {before} = get_ctrl();")
        f.line(f"set_ctrl(sbitset0({before}, 60));")
    f.line("__VEC_SCOPE__ {")
    f.nested(block)
    f.line("}")
    if control:
        f.line(f"set_ctrl({before});")


def obeys_tags(unit: Unit, block: Block) -> bool:
    """Return True if an operation of a block has its own saturation."""
    for top in block.ops:
        for op in top.walk():
            if op.row is None or op.row.set != "vector" or "RS_" not in op.row.cpp:
                continue
            chosen, _ = template(op.row, unit.profile.isa).choose(op)
            if chosen is not None and "RS_" in chosen.text:
                return True
    return False


@handles("pto.init_align")
def _init_align(f: CppFunction, op: Operation) -> None:
    f.declare(op.results[0], "vector_align")


# -- other names --------------------------------------------------------------------------------------------


@handles("pto.pbitcast")
def _pbitcast(f: CppFunction, op: Operation) -> None:
    f.name(op.results[0], *f.known[op.operands[0]])


@handles("pto.vbitcast")
def _vbitcast(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    to = f.types(result.type)
    if to == f.types(source.type):
        f.name(result, *f.known[source])
    else:
        f.declare(result, to, f"({to}) {f.text(source)}")


# -- masks --------------------------------------------------------------------------------------------------

_WIDTHS = (8, 16, 32)


@handles(*(f"pto.{name}_b{width}" for name in ("pset", "pge") for width in _WIDTHS))
def _pattern(f: CppFunction, op: Operation) -> None:
    """Emit a pattern; a count without a pattern becomes a tail mask."""
    name = op.name.removeprefix("pto.")
    pattern = op.attr("pattern")
    if pattern in TAGS["Pat"].words:
        f.declare(op.results[0], "vector_bool", f"{name}({pattern})")
        return
    if pattern is None and not op.group("rem"):
        f.unit.no_spelling(op, "without 'pattern'")
        return
    if pattern is None:
        count = f.atom(op.group("rem")[0])
        init = f"{count} < 0 ? 0 : {count}"
    else:
        init = str(pattern).removeprefix("PAT_VL")
    variable = f.token()
    f.line(f"uint32_t {variable} = {init};")
    f.declare(op.results[0], "vector_bool", f"plt_{name.partition('_')[2]}({variable}, {_POST})")


@handles(*(f"pto.plt_b{width}" for width in _WIDTHS))
def _tail(f: CppFunction, op: Operation) -> None:
    """Emit a count as a variable, which the call decreases."""
    mask, rest = op.results
    variable = f.token()
    f.line(f"uint32_t {variable} = (uint32_t) {f.unary(op.operands[0])};")
    f.declare(mask, "vector_bool", f"{op.name.removeprefix('pto.')}({variable}, {_POST})")
    f.name(rest, f"({f.types(rest.type)}) {variable}", CAST)


def _pointer(f: CppFunction, value: Value, dtype: str, offset: str = "") -> str:
    """Return a pointer to elements of a type, moved by elements of its own type."""
    text = f.text(value)
    if offset and offset != "0":
        text = f"{f.operand(value)} + {offset}"
    if dtype_of(value) == dtype:
        return text
    cast = f"({_pointer_type(value, dtype)}) "
    return cast + (f"({text})" if offset and offset != "0" else f.unary(value))


def _pointer_type(value: Value, dtype: str) -> str:
    assert isinstance(value.type, PtrType)
    return f"{QUALIFIER[value.type.space]} {DTYPES[dtype].cpp}*"


def _moving(f: CppFunction, source: Value, result: Value, dtype: str) -> str:
    """Return a pointer variable that a call updates; the result is its value afterwards."""
    variable = f.token()
    type = _pointer_type(source, dtype)
    f.line(f"{type} {variable} = {_pointer(f, source, dtype)};")
    if dtype_of(source) == dtype:
        f.name(result, variable)
    else:
        f.name(result, f"({f.types(result.type)}) {variable}", CAST)
    return variable


def _optional(op: Operation, name: str) -> Value | None:
    found = op.group(name)
    return found[0] if found else None


_UNITS = {"NORM": 32, "DS": 32, "US": 16, "PK": 16}


def _mask_offset(f: CppFunction, op: Operation) -> str:
    """Return the offset of a mask access, in bytes."""
    dist = str(op.attr("dist"))
    for name in ("areg", "imm", "offset"):
        found = _optional(op, name) if name in op.row.operand_index else None  # type: ignore[union-attr]
        if found is not None:
            bytes = name == "offset" and op.name in ("pto.plds", "pto.psts")
            unit = 1 if bytes else _UNITS[dist] if name == "offset" else 8
            return f.text(found) if unit == 1 else f"{f.operand(found)} * {unit}"
    return "0"


@handles("pto.plds", "pto.pld", "pto.pldi")
def _load_mask(f: CppFunction, op: Operation) -> None:
    offset, dist = _mask_offset(f, op), op.attr("dist")
    mask = f.declare(op.results[0], "vector_bool")
    source = op.group("source")[0]
    if len(op.results) > 1:
        f.line(f"plds({mask}, {_moving(f, source, op.results[1], 'u32')}, {offset}, {dist}, {_POST});")
    else:
        f.line(f"plds({mask}, {_pointer(f, source, 'u32')}, {offset}, {dist});")


@handles("pto.psts", "pto.pst", "pto.psti")
def _store_mask(f: CppFunction, op: Operation) -> None:
    offset, dist = _mask_offset(f, op), op.attr("dist")
    mask, dest = f.text(op.group("mask")[0]), op.group("dest")[0]
    if op.results:
        f.line(f"psts({mask}, {_moving(f, dest, op.results[0], 'u32')}, {offset}, {dist}, {_POST});")
    else:
        f.line(f"psts({mask}, {_pointer(f, dest, 'u32')}, {offset}, {dist});")


@handles("pto.pstu")
def _append_mask(f: CppFunction, op: Operation) -> None:
    state, mask, base = op.operands
    f.name(op.results[0], *f.known[state])
    pointer = _moving(f, base, op.results[1], f"u{bits_of(base)}")
    f.line(f"pstu({f.text(state)}, {f.text(mask)}, {pointer});")


# -- loads and stores ---------------------------------------------------------------------------------------

#: Words of loads with the same meaning as others.
_SAME = {"UNPK4": "UNPK4_B8", "BRC_BLK": "BLK", "SPLT4CHN": "SPLT4CHN_B8"}


def _plain(dtype: str) -> str:
    """Return the element type of public calls for a type: hif8, and pairs, go as bytes."""
    return "u8" if dtype == "hif8" or DTYPES[dtype].bits == 4 else dtype


def _width(word: str) -> int:
    """Return the bits of items of a distribution; 0 if its name has none."""
    digits = word.rpartition("_B")[2]
    return int(digits) if digits.isdigit() else 0


def _item_type(dtype: str, width: int) -> str:
    """Return the element type of a call for items of a width: integers if the elements have another width."""
    return _plain(dtype) if width in (0, DTYPES[_plain(dtype)].bits) else f"u{width}"


@handles("pto.vlds")
def _vlds(f: CppFunction, op: Operation) -> None:
    r, source = op.results[0], op.group("source")[0]
    word = with_width(str(op.attr("dist")), bits_of(r))
    word = _SAME.get(word, word)
    dtype = _item_type(dtype_of(source), _width(word))
    registers = [seen_as(f, r, dtype)]
    if word == "DINTLV_B32":
        other = f.token()
        f.line(f"{register(dtype)} {other};")
        registers.append(other)
    _load(f, op, registers, source, dtype, spelled("Dist", word), op.results[1:])


@handles("pto.vldsx2")
def _vldsx2(f: CppFunction, op: Operation) -> None:
    source, word = op.group("source")[0], str(op.attr("dist"))
    dtype = _item_type(dtype_of(source), _width(word))
    registers = [seen_as(f, r, dtype) for r in op.results[:2]]
    _load(f, op, registers, source, dtype, spelled("Dist", word), op.results[2:])


def _load(
    f: CppFunction,
    op: Operation,
    registers: list[str],
    source: Value,
    dtype: str,
    word: str,
    base: Sequence[Value],
) -> None:
    offset, into = f.text(op.group("offset")[0]), ", ".join(registers)
    same = DTYPES[dtype].bits == bits_of(source)
    if not base and same:
        f.line(f"vlds({into}, {_pointer(f, source, dtype)}, {offset}, {word});")
    elif not base:
        f.line(f"vlds({into}, {_pointer(f, source, dtype, f.operand(op.group('offset')[0]))}, 0, {word});")
    elif same:
        f.line(f"vlds({into}, {_moving(f, source, base[0], dtype)}, {offset}, {word}, {_POST});")
    else:
        f.line(f"vlds({into}, {_pointer(f, source, dtype)}, 0, {word});")
        f.declare(base[0], f.types(base[0].type), f"{f.operand(source)} + {f.operand(op.group('offset')[0])}")


def _mask(f: CppFunction, op: Operation, width: int) -> str:
    given = _optional(op, "mask")
    return f.text(given) if given is not None else f"pset_b{width}(PAT_ALL)"


@handles("pto.vsts")
def _vsts(f: CppFunction, op: Operation) -> None:
    value, dest = op.group("value")[0], op.group("dest")[0]
    word = str(op.attr("dist")).replace("1PT", "ONEPT")
    if word in ("NORM", "ONEPT"):
        word = f"{word}_B{min(bits_of(value), 32)}"
    slot = 8 * int(word[3]) if word.startswith("MRG") else _width(word)
    dtype = _item_type(dtype_of(dest), _width(word) if word.startswith(("NORM", "ONEPT")) else 0)
    stored, mask = seen_as(f, value, dtype), _mask(f, op, min(slot, 32))
    offset = op.group("offset")[0]
    same, word = DTYPES[dtype].bits == bits_of(dest), spelled("DistVST", word)
    if op.results and same:
        to = f"{_moving(f, dest, op.results[0], dtype)}, {f.text(offset)}"
        f.line(f"vsts({stored}, {to}, {word}, {mask}, {_POST});")
    elif same:
        f.line(f"vsts({stored}, {_pointer(f, dest, dtype)}, {f.text(offset)}, {word}, {mask});")
    else:
        further = "" if op.results else f.operand(offset)
        f.line(f"vsts({stored}, {_pointer(f, dest, dtype, further)}, 0, {word}, {mask});")
        if op.results:
            f.declare(op.results[0], f.types(op.results[0].type), f"{f.operand(dest)} + {f.operand(offset)}")


@handles("pto.vstsx2")
def _vstsx2(f: CppFunction, op: Operation) -> None:
    low, high, dest = (op.group(name)[0] for name in ("low", "high", "dest"))
    word, offset = str(op.attr("dist")), op.group("offset")[0]
    dtype = _item_type(dtype_of(dest), _width(word))
    dtype = "u32" if dtype == "f32" else dtype
    to = f"{_pointer(f, dest, dtype)}, {f.text(offset)}"
    if DTYPES[dtype].bits != bits_of(dest):
        to = f"{_pointer(f, dest, dtype, f.operand(offset))}, 0"
    registers = f"{seen_as(f, low, dtype)}, {seen_as(f, high, dtype)}"
    f.line(f"vsts({registers}, {to}, {word}, {f.text(op.group('mask')[0])});")


@handles("pto.vsldb", "pto.vsstb")
def _blocks(f: CppFunction, op: Operation) -> None:
    loads = op.name == "pto.vsldb"
    pointer = op.group("source" if loads else "dest")[0]
    value = op.results[0] if loads else op.group("value")[0]
    dtype = _stream_type(dtype_of(pointer))
    ctl, repeat = f.text(op.group("ctl")[0]), _optional(op, "repeat_stride")
    if repeat is not None:
        ctl = f"(int32_t) (({f.operand(op.group('ctl')[0])} & 0xFFFF) << 16 | ({f.operand(repeat)} & 0xFFFF))"
    base = op.results[1:] if loads else op.results
    name, mask, lanes = op.name.removeprefix("pto."), f.text(op.group("mask")[0]), seen_as(f, value, dtype)
    if base:
        f.line(f"{name}({lanes}, {_moving(f, pointer, base[0], dtype)}, {ctl}, {mask}, {_POST});")
    else:
        f.line(f"{name}({lanes}, {_pointer(f, pointer, dtype)}, {ctl}, {mask});")


def _requests(f: CppFunction, op: Operation, width: int) -> str:
    """Return the mask of a gather or scatter; a number stands for the first lanes."""
    given = op.group("mask")[0]
    if isinstance(given.type, MaskType):
        return f.text(given)
    variable, mask = f.token(), f.token()
    f.line(f"uint32_t {variable} = (uint32_t) {f.unary(given)};")
    f.line(f"vector_bool {mask} = plt_b{width}({variable}, {_POST});")
    return mask


@handles("pto.vgather2")
def _vgather2(f: CppFunction, op: Operation) -> None:
    source, offsets, r = op.group("source")[0], op.group("offsets")[0], op.results[0]
    dtype = dtype_of(source)
    if DTYPES[dtype].bits == 8:  # bytes are passed as unsigned
        dtype = "u8"
    result = seen_as(f, r, "u16" if dtype == "u8" else dtype)
    mask, index = _requests(f, op, bits_of(r)), seen_as(f, offsets, f"u{bits_of(offsets)}")
    f.line(f"vgather2({result}, {_pointer(f, source, dtype)}, {index}, {mask});")


@handles("pto.vgatherb")
def _vgatherb(f: CppFunction, op: Operation) -> None:
    source, offsets = op.group("source")[0], op.group("offsets")[0]
    dtype = _plain(dtype_of(source))
    result, mask = seen_as(f, op.results[0], dtype), _requests(f, op, 32)
    f.line(f"vgatherb({result}, {_pointer(f, source, dtype)}, {seen_as(f, offsets, 'u32')}, {mask});")


@handles("pto.vscatter")
def _vscatter(f: CppFunction, op: Operation) -> None:
    value, dest, offsets = (op.group(name)[0] for name in ("value", "dest", "offsets"))
    dtype = dtype_of(dest)
    if DTYPES[dtype].is_float and DTYPES[dtype].bits == 8:
        dtype = "u8"
    mask, index = _requests(f, op, bits_of(offsets)), seen_as(f, offsets, f"u{bits_of(offsets)}")
    f.line(f"vscatter({seen_as(f, value, dtype)}, {_pointer(f, dest, dtype)}, {index}, {mask});")


@handles("pto.vsld", "pto.vsst")
def _strided(f: CppFunction, op: Operation) -> None:
    """Emit a gather or scatter with computed offsets: items of w bits, k items apart; 64-bit items are
    halved.
    """
    loads = op.name == "pto.vsld"
    pointer = op.group("source" if loads else "dest")[0]
    value = op.results[0] if loads else op.group("value")[0]
    step, bits = (int(part[1:]) for part in str(op.attr("stride")).split("_")[-2:])
    width = min(bits, 32)
    index, all = f.token(), f"pset_b{width}(PAT_ALL)"
    f.line(f"vector_s{width} {index};")
    f.line(f"vci({index}, 0, INC_ORDER);")
    if bits == 64:
        pair = f.token()
        f.line(f"vector_s32 {pair};")
        f.line(f"vshrs({pair}, {index}, 1, {all}, MODE_ZEROING);")
        f.line(f"vmuls({pair}, {pair}, {2 * step - 2}, {all}, MODE_ZEROING);")
        f.line(f"vadd({index}, {index}, {pair}, {all}, MODE_ZEROING);")
    else:
        f.line(f"vmuls({index}, {index}, {step}, {all}, MODE_ZEROING);")
    dtype = dtype_of(pointer) if bits_of(pointer) == width else f"u{width}"
    at = _pointer(f, pointer, dtype, f.operand(op.group("offset")[0]))
    call = "vgather2" if loads else "vscatter"
    f.line(f"{call}({seen_as(f, value, dtype)}, {at}, (vector_u{width}&) {index}, {all});")


# -- unaligned streams --------------------------------------------------------------------------------------


def _stream_type(dtype: str) -> str:
    return "i64" if dtype == "u64" else _plain(dtype)


def _continued(f: CppFunction, op: Operation, state: str = "state") -> str:
    """Return the variable of a stream, which is also the new state of the instruction."""
    given = op.group(state)[0]
    for result in op.results:
        if is_align(result.type):
            f.name(result, *f.known[given])
    return f.text(given)


@handles("pto.vldas")
def _vldas(f: CppFunction, op: Operation) -> None:
    source = op.operands[0]
    state = f.declare(op.results[0], "vector_align")
    f.line(f"vldas({state}, {_pointer(f, source, _stream_type(dtype_of(source)))});")


@handles("pto.vldus")
def _vldus(f: CppFunction, op: Operation) -> None:
    source, r = op.group("source")[0], op.results[0]
    dtype, state = _stream_type(dtype_of(source)), _continued(f, op)
    lanes = seen_as(f, r, dtype)
    if len(op.results) > 2:
        given = _optional(op, "increment")
        count = f.text(given) if given is not None else str(2048 // bits_of(r))
        base = _moving(f, source, op.results[2], dtype)
        f.line(f"vldus({lanes}, {state}, {base}, {count}, {_POST});")
    else:
        f.line(f"vldus({lanes}, {state}, {_pointer(f, source, dtype)});")


@handles("pto.vsta", "pto.vstas")
def _flush(f: CppFunction, op: Operation) -> None:
    dest, offset = op.group("dest")[0], f.text(op.group("offset")[0])
    dtype, state = _stream_type(dtype_of(dest)), f.text(op.group("state")[0])
    if op.results:
        f.line(f"vstas({state}, {_moving(f, dest, op.results[0], dtype)}, {offset}, {_POST});")
    else:
        f.line(f"vstas({state}, {_pointer(f, dest, dtype)}, {offset});")


@handles("pto.vstar")
def _vstar(f: CppFunction, op: Operation) -> None:
    dest = op.group("dest")[0]
    pointer = _pointer(f, dest, _stream_type(dtype_of(dest)))
    f.line(f"vstar({f.text(op.group('state')[0])}, {pointer});")


@handles("pto.vstus")
def _vstus(f: CppFunction, op: Operation) -> None:
    value, base = op.group("value")[0], op.group("base")[0]
    dtype, state, count = _stream_type(dtype_of(base)), _continued(f, op), f.text(op.group("count")[0])
    stored, at = seen_as(f, value, dtype), _optional(op, "position") or base
    head = f"vstus({state}, {count}, {stored}"
    moved = op.results[1:]
    if moved and op.attr("mode") != "NO_POST_UPDATE":
        f.line(f"{head}, {_moving(f, at, moved[0], dtype)}, {_POST});")
        return
    f.line(f"{head}, {_pointer(f, at, dtype)});")
    if moved:
        f.name(moved[0], *f.known[at])


@handles("pto.vstu")
def _vstu(f: CppFunction, op: Operation) -> None:
    """Emit an append of all lanes; the position is a number or a pointer."""
    value, base, position = (op.group(name)[0] for name in ("value", "base", "position"))
    given = _optional(op, "mode_value")
    mode = op.attr("mode") == _POST if given is None else constant_of(given)
    if mode is None:
        f.unit.no_spelling(op, "with a 'mode_value' that is known at run time only")
        return
    dtype, lanes, state = _stream_type(dtype_of(base)), 2048 // bits_of(value), _continued(f, op)
    pointer = isinstance(position.type, PtrType)
    at = _pointer(f, position, dtype) if pointer else _pointer(f, base, dtype, f.operand(position))
    f.line(f"vstus({state}, {lanes}, {seen_as(f, value, dtype)}, {at});")
    if mode:
        f.declare(op.results[1], f.types(op.results[1].type), f"{f.operand(position)} + {lanes}")
    else:
        f.name(op.results[1], *f.known[position])


@handles("pto.vstur")
def _vstur(f: CppFunction, op: Operation) -> None:
    value, base = op.group("value")[0], op.group("base")[0]
    dtype, state = _stream_type(dtype_of(base)), _continued(f, op)
    pointer, mode = _pointer(f, base, dtype), spelled("Post", str(op.attr("mode")))
    f.line(f"vstur({state}, {seen_as(f, value, dtype)}, {pointer}, {mode});")


@handles("pto.vsqz")
def _vsqz(f: CppFunction, op: Operation) -> None:
    """Emit a squeeze with its count if a squeezed store needs the count."""
    stored = "MODE_STORED" if _feeds_squeezed_store(f, op.results[0]) else "MODE_NO_STORED"
    src, mask = (f.text(op.group(name)[0]) for name in ("src", "mask"))
    f.line(f"vsqz({f.declare_result(op.results[0])}, {src}, {mask}, {stored});")


def _feeds_squeezed_store(f: CppFunction, value: Value) -> bool:
    """Return True if vstur stores a value, or a value computed from it."""
    known = {value}
    for op in f.op.walk():  # values come before their uses, except around a loop
        if known & set(op.operands):
            if op.name == "pto.vstur":
                return True
            known |= set(op.results)
    return False


@handles("pto.sprsts", "pto.sprsti")
def _sprsts(f: CppFunction, op: Operation) -> None:
    dest, offset = op.group("dest")[0], op.group("offset")[0]
    bytes = f.text(offset) if op.name == "pto.sprsts" else f"{f.operand(offset)} * 4"
    pointer = _pointer(f, dest, "u32")
    f.line(f"sprsts(SPR_AR, {pointer}, {'0' if op.results else bytes});")
    if op.results:
        type = f.types(op.results[0].type)
        f.declare(op.results[0], type, f"({type}) (({QUALIFIER['ub']} uint8_t*) {f.unary(dest)} + {bytes})")


# -- registers from scalars, copies -------------------------------------------------------------------------


@handles("pto.vdup")
def _vdup(f: CppFunction, op: Operation) -> None:
    source, r = op.group("input")[0], op.results[0]
    mask = _mask(f, op, min(bits_of(r), 32))
    if isinstance(source.type, VRegType):
        row = op.row
        assert row is not None
        position = str(op.attr("position"))
        position = row.attr_index["position"].words.get(position, position)
        lanes = seen_as(f, source, dtype_of(r))
        f.line(f"vdup({f.declare_result(r)}, {lanes}, {mask}, {position}, MODE_ZEROING);")
    else:
        f.line(f"vdup({f.declare_result(r)}, {f.text(source)}, {mask}, MODE_ZEROING);")


@handles("pto.vmov")
def _vmov(f: CppFunction, op: Operation) -> None:
    """Emit a masked copy. The call keeps lanes that are off; our instruction sets them to zero."""
    source, mask = f.text(op.group("input")[0]), _optional(op, "mask")
    r = f.declare_result(op.results[0])
    if mask is None:
        f.line(f"vmov({r}, {source});")
        return
    zero = f.token()
    f.line(f"{f.types(op.results[0].type)} {zero};")
    f.line(f"vbr({zero}, 0);")
    f.line(f"vsel({r}, {source}, {zero}, {f.text(mask)});")


@handles("pto.vusqz")
def _vusqz(f: CppFunction, op: Operation) -> None:
    f.line(f"vusqz({f.declare_result(op.results[0])}, {f.text(op.group('mask')[0])});")


# -- from buffer to buffer ----------------------------------------------------------------------------------


@handles("pto.vtranspose")
def _vtranspose(f: CppFunction, op: Operation) -> None:
    dest, src = op.operands[:2]
    dtype = dtype_of(dest) if dtype_of(dest) in ("i16", "u16") else "u16"
    f.line(f"vtranspose({_pointer(f, dest, dtype)}, {_pointer(f, src, dtype)});")


@handles("pto.vbitsort")
def _vbitsort(f: CppFunction, op: Operation) -> None:
    dest, src, indices, repeat = op.operands
    dtype = dtype_of(src)
    pointers = f"{_pointer(f, dest, dtype)}, {_pointer(f, src, dtype)}, {_pointer(f, indices, 'u32')}"
    f.line(f"vbitsort({pointers}, {f.text(repeat)});")


@handles("pto.vmrgsort4")
def _vmrgsort4(f: CppFunction, op: Operation) -> None:
    dest, *lists, count, config = op.operands
    array = f.token()
    f.line(f"{f.types(dest.type)} {array}[4] = {{{', '.join(f.text(v) for v in lists)}}};")
    f.line(f"vmrgsort4({f.text(dest)}, {array}, {f.text(count)}, {f.text(config)});")


@handles("pto.get_vms4_sr")
def _get_vms4_sr(f: CppFunction, op: Operation) -> None:
    word = f.token()
    f.line(f"int64_t {word} = get_vms4_sr();")
    for k, result in enumerate(op.results):
        f.declare(result, f.types(result.type), f"({f.types(result.type)}) ({word} >> {16 * k})")
