"""Damaged and hostile files: always a diagnostic with code and byte offset, never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.each import together

import pto
from pto.asm import to_text
from pto.bytecode import format
from pto.bytecode.leb import write_uleb

from ..counting import calls, memory_limit, no_hang

_EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.pto"))


def uleb(value: int) -> bytes:
    out = bytearray()
    write_uleb(out, value)
    return bytes(out)


def counted(items: list[bytes]) -> bytes:
    return uleb(len(items)) + b"".join(items)


def container(sections: list[tuple[int, bytes]], header: bytes = bytes(4)) -> bytes:
    payload = b"".join(bytes([id]) + len(data).to_bytes(4, "little") + data for id, data in sections)
    return format.MAGIC + header + len(payload).to_bytes(4, "little") + payload


def make(
    ops: bytes = b"\x01\x60\x00", count: int = 1, strings: tuple[str | bytes, ...] = (), types: bytes = b"",
    attrs: bytes = b"", consts: bytes = b"\0", module: bytes | None = None, blocks: bytes | None = None,
    type_count: int = 0, attr_count: int = 0,
) -> bytes:  # fmt: skip
    """A file with one function `f` of type `() -> ()` whose body is `ops`; further strings begin at id 2."""
    texts = [s if isinstance(s, bytes) else s.encode() for s in ("f", "() -> ()", *strings)]
    blocks = blocks if blocks is not None else b"\x01\x00" + uleb(count) + ops
    module = module if module is not None else b"\x00\x40\x00\x00\x01\x00\x01\x00\x00" + blocks
    return container([
        (format.STRINGS, counted([uleb(len(t)) + t for t in texts])),
        (format.TYPES, uleb(1 + type_count) + b"\0\1\1" + types),
        (format.ATTRS, uleb(attr_count) + attrs),
        (format.CONSTS, consts),
        (format.MODULE, module),
    ])  # fmt: skip


def refused(data: bytes, code: str, message: str = "", at: int | None = None) -> None:
    with pytest.raises(pto.DiagnosticError) as caught:
        pto.from_bytecode(data, "bad.ptobc")
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert message in found.message
    assert found.span is not None and f"byte {found.span.start} " in found.message
    assert at is None or found.span.start == at


RETURN = b"\x01\x60\x00"


def generic(
    name: int, results: bytes = b"\0", operands: bytes = b"\0", regions: bytes = b"\0", attrs: int = 0
) -> bytes:
    return b"\xff\xff" + uleb(attrs) + uleb(name) + results + operands + regions


def test_the_maker_makes_files() -> None:
    assert to_text(pto.from_bytecode(make())) == "module {\n  func.func @f() {\n    return\n  }\n}\n"


def test_e1201_not_bytecode() -> None:
    for data in (b"", b"PTOB", b"module {\n}\n", b"PTOBD\0" + make()[6:]):
        refused(data, "PTO-E1201", at=0)


def test_e1202_version() -> None:
    refused(container([], b"\x01\0\0\0"), "PTO-E1202", at=6)
    refused(container([], b"\0\0\x01\0"), "PTO-E1202", at=6)
    refused(make(module=b"\x01\x40\x00\x00\x00"), "PTO-E1202", "module")
    refused(make(module=b"\x00\x20\x00\x00\x00"), "PTO-E1202", "module")


def test_e1203_payload_length() -> None:
    refused(make() + b"\0", "PTO-E1203", at=10)
    refused(make()[:-1], "PTO-E1203", at=10)


def test_e1204_sections() -> None:
    empty = (
        (format.STRINGS, b"\0"),
        (format.TYPES, b"\0"),
        (format.ATTRS, b"\0"),
        (format.CONSTS, b"\0"),
        (format.MODULE, b"\0\x40\0\0\0"),
    )
    pto.from_bytecode(container(list(empty)))
    refused(container([]), "PTO-E1204", "0x01 STRINGS")
    refused(container([empty[1]]), "PTO-E1204", "0x01 STRINGS", at=14)
    refused(container(list(empty[:4])), "PTO-E1204", "0x06 MODULE")
    refused(container([empty[0], empty[0]]), "PTO-E1204", "out of order", at=20)
    refused(container([*empty[:4], (0x05, b""), empty[4]]), "PTO-E1204", "unknown section")
    longer = container(list(empty))
    refused(longer[:15] + b"\xff\xff\0\0" + longer[19:], "PTO-E1204", "longer than the file", at=14)


def test_e1205_truncated() -> None:
    refused(format.MAGIC + bytes(4), "PTO-E1205")
    refused(make(module=b"\x00"), "PTO-E1205", "MODULE ends here")
    refused(make(consts=b"\x01\x02"), "PTO-E1209")
    refused(make(ops=b"\x01\x60\x00\x01\x60", count=2), "PTO-E1209")
    refused(make(ops=b"\x07\x10\x00"), "PTO-E1205", "MODULE ends here")


def test_e1206_leb() -> None:
    refused(make(ops=RETURN[:2] + b"\xff" * 9 + b"\x7f"), "PTO-E1206", "longer than 64 bits")
    refused(make(ops=RETURN[:2] + b"\xff" * 10 + b"\x01"), "PTO-E1206", "longer than 64 bits")
    refused(make(ops=RETURN[:2] + b"\x80\x00"), "PTO-E1206", "shortest")
    signed = b"\x01\x01\x01"
    for padded in (b"\xff\x7f", b"\x80\x00", b"\xc0\x80\x00"):
        refused(make(consts=signed + padded), "PTO-E1206", "shortest")
    for fine in (b"\x80\x7f", b"\xc0\x00", b"\x3f", b"\x40"):
        refused(make(consts=signed + fine, ops=b"\x03\x20\x00\x00\x01" + RETURN, count=2), "PTO-E1213")


def test_e1207_utf8() -> None:
    refused(make(strings=(b"ab\xff",)), "PTO-E1207", at=14 + 5 + 1 + 2 + 9 + 1 + 2)


def test_e1208_ids() -> None:
    refused(make(types=b"\0\1\x09", type_count=1), "PTO-E1208", "string id 9")
    refused(make(ops=b"\x01\x60\x01"), "PTO-E1208", "attribute id 1")
    refused(make(ops=b"\x03\x20\x00\x00\x01"), "PTO-E1208", "constant id 0")
    refused(make(ops=b"\x06\x10\x00\x00\x01" + RETURN, count=2), "PTO-E1208", "value id 0")
    refused(make(blocks=b"\x01\x01\x00\x00"), "PTO-E1208", "type id 0")
    inner = b"\x01\x01\x01\x01" + b"\x02\x40\x00\x00"  # one block, one argument, a yield
    hidden = generic(2, regions=b"\x01" + inner) + b"\x02\x40\x00\x01\x00"
    refused(make(ops=hidden, count=2, strings=("my.scope",)), "PTO-E1208", "not visible")


def test_e1209_counts() -> None:
    huge = uleb((1 << 64) - 1)
    refused(make(blocks=huge), "PTO-E1209", "blocks")
    refused(make(blocks=b"\x01" + huge), "PTO-E1209", "block arguments")
    refused(make(blocks=b"\x01\x00" + huge), "PTO-E1209", "operations")
    refused(make(consts=huge), "PTO-E1209", "constants")
    refused(make(ops=b"\x02\x40\x00" + huge), "PTO-E1209", "operands")
    refused(make(ops=generic(0, results=huge), strings=()), "PTO-E1211")
    refused(
        container([(format.STRINGS, huge)] + [(s, b"\0") for s in format.REQUIRED[1:]]),
        "PTO-E1209",
        "strings",
    )


def test_e1210_left_over() -> None:
    refused(make(consts=b"\0\0"), "PTO-E1210", "CONSTPOOL")
    refused(make(ops=RETURN * 2), "PTO-E1210", "unexpected 3 bytes at the end of MODULE")


def test_e1211_unknown() -> None:
    refused(make(ops=b"\x7e\x10\x00"), "PTO-E1211", "unknown opcode 0x107E")
    refused(make(ops=b"\x00\x60\x00"), "PTO-E1211", "unknown opcode 0x6000")
    refused(make(ops=b"\x06\x00\x00\x02\x00"), "PTO-E1211", "variant 2")
    refused(make(ops=b"\x02\x20\x00\x06\x00\x00\x01"), "PTO-E1211", "immediate 6")
    refused(make(ops=b"\x05\x10\x00\xff\x00\x00" + RETURN, count=2), "PTO-E1211", "src_op has no value 255")
    refused(make(ops=b"\x04\x00\x00\x01\x00\x00\x00\x01"), "PTO-E1211", "list mode")
    refused(make(ops=b"\x01\x10\x00\x04\x01"), "PTO-E1211", "immediate 4")
    refused(make(ops=generic(2), strings=("pto.tad",)), "PTO-E1211", "unknown operation 'pto.tad'")
    refused(make(ops=generic(2), strings=('my."op',)), "PTO-E1211", "expected the name of an operation")
    refused(make(module=b"\x00\x40\x00\x01\x00"), "PTO-E1211", "globals")


def test_e1212_texts() -> None:
    refused(make(types=b"\1\1\0", type_count=1), "PTO-E1212", "expected type 2 as text")
    argument = b"\x01\x01\x02\x01" + RETURN
    for text in ("", "!pto.tile_buf<", "!pto.nothing", "i32 i32", "(i32", "\0", "i32\n}", "%x"):
        refused(
            make(types=b"\0\1\2", type_count=1, strings=(text,), blocks=argument), "PTO-E1212", "bad type"
        )
    for text in ("", "{", "{a = }", "{a = 1} x", "{a = 1, a = 2}", '{"a}', "{a = #pto.pipe<NO>}", "[1]"):
        data = make(attrs=b"\0\1\2", attr_count=1, strings=(text,), ops=b"\x01\x60\x01")
        refused(data, "PTO-E1212", "bad attributes")


def test_numbers_too_long_to_print() -> None:
    data = make(
        attrs=b"\0\1\2", attr_count=1, strings=(f"{{a = 0x{'F' * 4190} : i20000}}",), ops=b"\x01\x60\x01"
    )
    refused(data, "PTO-E1212", "bad attributes")


@pytest.mark.parametrize(
    "text", ["{{a = #pto.pipe<a{}b>}}", "{{a = array<i32: 1{}2>}}", "{{a = #pto<cmp eq{}x>}}"]
)
def test_long_runs_of_spaces(text: str) -> None:
    data = make(attrs=b"\0\1\2", attr_count=1, strings=(text.format(" " * 200_000),), ops=b"\x01\x60\x01")
    with no_hang(20):
        refused(data, "PTO-E1212", "bad attributes")


def constant(entry: bytes, type: str) -> bytes:
    return make(
        ops=b"\x03\x20\x00\x00\x02" + RETURN,
        count=2,
        consts=b"\1" + entry,
        types=b"\0\1\2",
        type_count=1,
        strings=(type,),
    )


def test_e1213_constants() -> None:
    assert "arith.constant 5 : i8" in to_text(pto.from_bytecode(constant(b"\x01\x02\x05", "i8")))
    refused(constant(b"\x01\x02" + uleb(200), "i8"), "PTO-E1213", "does not fit")
    refused(constant(b"\x01\x02\x05", "f32"), "PTO-E1213", "cannot have type f32")
    refused(constant(b"\x01\x02\x05", "!pto.ptr<f32>"), "PTO-E1213", "cannot have type")
    refused(constant(b"\x02\x02\x02\0\0", "f32"), "PTO-E1213", "expected 4 bytes")
    refused(constant(b"\x02\x02\x04\0\0\0\0", "i32"), "PTO-E1213")
    refused(constant(b"\x04\x02\x04\0\0\0\0", "i32"), "PTO-E1213")
    refused(constant(b"\x04\x02\x01\0", "i5000"), "PTO-E1213")
    refused(constant(b"\x03\x01\x05", "i32"), "PTO-E1213", "index vector")
    refused(make(consts=b"\x01\x09\x01"), "PTO-E1213", "unknown tag 9")


MALFORMED: dict[str, tuple[str, str]] = {
    "scf.if": ("", "takes 1 operands"), "scf.for": ("", "unexpected number of operands: 0"),
    "arith.constant": ("", "results"), "cf.br": ("", "successors"), "func.call": ("", "callee"),
    "pto.section.cube": ("", "1 regions"), "func.func": ("", "1 regions"), "pto.tadd": ("", "operands"),
    "scf.index_switch": ("", "operands"), "affine.apply": ("", "results"), "memref.subview": ("", "operands"),
    "cf.cond_br": ("{ptobc.successors = array<i64: 9, 9>}", "invalid branch targets"),
    "pto.barrier": ("{pipe = 3}", "cannot be 3"), "scf.execute_region": ("", "regions"),
    "scf.yield": ("{operandSegmentSizes = array<i32: 1>}", "into groups"),
    "pto.tsync": ("{operandSegmentSizes = array<i32: -1>}", "into groups"),
}  # fmt: skip


@together("name", MALFORMED)
def test_e1214_shape(name: str) -> None:
    text, why = MALFORMED[name]
    data = make(
        ops=generic(2, attrs=bool(text)) + RETURN,
        count=2,
        strings=(name, text),
        attrs=b"\0\1\3",
        attr_count=1,
    )
    refused(data, "PTO-E1214", why)


def test_e1214_constant_of_another_type() -> None:
    data = constant(b"\x01\x02\x05", "i8").replace(b"\x03\x20\x00\x00\x02", b"\x03\x20\x00\x00\x01")
    refused(data, "PTO-E1214", "a value of type i8 cannot be a constant of type () -> ()")


def test_e1214_function_of_another_type() -> None:
    data = make(blocks=b"\x01\x01\x02\x01" + RETURN, types=b"\0\1\2", type_count=1, strings=("i32",))
    refused(data, "PTO-E1214", "differ from those of")


def test_e1215_long_texts_named_often() -> None:
    long = "!my.type<" + "x" * 50_000 + ">"
    op = generic(3, results=b"\x01\x02")
    data = make(ops=op * 5000, count=5000, strings=(long, "my.op"), types=b"\0\1\2", type_count=1)
    with no_hang(60), memory_limit(200 << 20):
        refused(data, "PTO-E1215")
    keys = "{" + ", ".join(f"k{i}" for i in range(20_000)) + "}"
    data = make(
        ops=generic(3, attrs=1) * 5000, count=5000, strings=(keys, "my.op"), attrs=b"\0\1\2", attr_count=1
    )
    refused(data, "PTO-E1215")


def test_deep_nesting() -> None:
    ops = RETURN
    for _ in range(3000):
        ops = b"\x06\x00\x00\x00\x01\x00\x01" + ops
    refused(make(ops=ops), "PTO-E0105")


@pytest.mark.parametrize("what", ["blocks", "names", "strings"])
def test_work_is_linear(what: str) -> None:
    """Four times as many equal entries are four times the work."""

    def work(n: int) -> int:
        data = many_equal(what, n)
        return calls(lambda: to_text(pto.from_bytecode(data)))

    work(1)  # the first one loads modules
    assert work(1200) < 5 * work(300)


def many_equal(what: str, n: int) -> bytes:
    if what == "blocks":
        return make(blocks=uleb(n) + (b"\x00\x01" + RETURN) * n)
    if what == "strings":
        return make(strings=("x",) * n)
    op = generic(2, results=b"\x01\x01")
    data = make(ops=op * n, count=n, strings=("my.op",))
    debug = b"\0" + uleb(n) + b"".join(b"\0" + uleb(i) + b"\0" for i in range(n)) + b"\0\0"
    data += b"\x07" + len(debug).to_bytes(4, "little") + debug
    return data[:10] + (len(data) - 14).to_bytes(4, "little") + data[14:]
