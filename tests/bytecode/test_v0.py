"""The derived v0 table against the published one, and files byte for byte."""

from __future__ import annotations

from pathlib import Path

from tests.each import together

import pto
from pto.bytecode import format
from pto.bytecode.file import read_file, read_module

#: Our names of operations that the published table calls otherwise.
RENAMED = {
    "pto.tset_img2col_padding": "pto.set_img2col_padding", "pto.tset_img2col_rpt": "pto.set_img2col_rpt",
    "pto.tsetfmatrix": "pto.setfmatrix", "pto.tsethf32mode": "pto.sethf32mode", "pto.tsettf32mode": "pto.settf32mode",
    "pto.tstore.fp": "pto.tstore_fp",
}  # fmt: skip

EMPTY = bytes.fromhex("""
50 54 4f 42 43 00 00 00 00 00 7e 00 00 00 01 4d 00 00 00 05 09 66 75 6e 63 2e 66 75 6e 63 0b 66
75 6e 63 2e 72 65 74 75 72 6e 01 66 08 28 29 20 2d 3e 20 28 29 2a 7b 66 75 6e 63 74 69 6f 6e 5f
74 79 70 65 20 3d 20 28 29 20 2d 3e 20 28 29 2c 20 73 79 6d 5f 6e 61 6d 65 20 3d 20 22 66 22 7d
02 04 00 00 00 01 00 01 03 03 04 00 00 00 01 00 01 04 04 01 00 00 00 00 06 0f 00 00 00 00 40 00
00 01 02 01 00 01 01 00 01 01 60 00
""")


def published() -> dict[int, tuple[str, dict[str, int]]]:
    found: dict[int, tuple[str, dict[str, int]]] = {}
    text = (Path(__file__).parent / "v0_opcodes.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            opcode, name, *columns = line.split()
            found[int(opcode, 16)] = name, {c[0]: int(c[1:] or 1) for c in columns}
    return found


def test_worked_example() -> None:
    module = pto.parse("module { func.func @f() { return } }")
    assert pto.to_bytecode(module) == EMPTY
    assert pto.to_bytecode(module, strict=True) == EMPTY
    assert pto.to_text(pto.from_bytecode(EMPTY)) == "module {\n  func.func @f() {\n    return\n  }\n}\n"


def test_derived_table_has_the_published_operations() -> None:
    wanted = {opcode for opcode, (name, _) in published().items() if name != "func.func"}
    assert {opcode for opcode, _ in format.table()} == wanted


@together("opcode", [o for o, (name, _) in published().items() if name != "func.func"])
def test_derived_row_is_the_published_one(opcode: int) -> None:
    name, columns = published()[opcode]
    ops = {variant: op for (code, variant), op in format.table().items() if code == opcode}
    assert (None in ops) == ("V" not in columns)
    for op in ops.values():
        assert op.mode == columns.get("O", 0)
        assert op.immediate == columns.get("I", 0)
        assert op.results == columns.get("r", 0) == columns.get("R", 0)
        assert len(op.row.regions) == columns.get("g", 0)
        if op.mode in (format.FIXED, format.SEGMENTED):
            assert op.count == columns.get("n", 0)
        assert op.row.full_name.startswith(RENAMED.get(name, name))


@together(
    ("name", "opcode", "variant", "operands"),
    [
        ("pto.section.cube", 0x0006, 0, 0), ("pto.section.vector", 0x0006, 1, 0),
        ("pto.tgemv", 0x102A, 0, 3), ("pto.tgemv.acc", 0x102A, 1, 4), ("pto.tgemv.bias", 0x102A, 2, 4),
        ("pto.tgemv.mx", 0x102A, 3, 5), ("pto.tgemv.mx.acc", 0x102A, 4, 6), ("pto.tgemv.mx.bias", 0x102A, 5, 6),
        ("pto.tmatmul", 0x1032, 0, 3), ("pto.tmatmul.acc", 0x1032, 1, 4), ("pto.tmatmul.bias", 0x1032, 2, 4),
        ("pto.tmatmul.mx", 0x1033, 0, 5), ("pto.tmatmul.mx.acc", 0x1033, 1, 6), ("pto.tmatmul.mx.bias", 0x1033, 2, 6),
    ],
)  # fmt: skip
def test_variants(name: str, opcode: int, variant: int, operands: int) -> None:
    op = format.by_name()[name]
    assert (op.row.opcode, op.row.variant, op.count) == (opcode, variant, operands)


def stream(body: str, arguments: str = "") -> str:
    """Hex of the function body of a one-function program."""
    data = pto.to_bytecode(
        pto.parse(f"module {{\nfunc.func @f({arguments}) {{\n{body}\nreturn\n}}\n}}"), strict=True
    )
    file = read_file(data, "t")
    at, end = file.sections[format.MODULE]
    module = read_module(file)
    first = module.functions[0].body[0].ops[0].at
    assert at < first < end
    return data[first : end - 3].hex(" ")  # without the return


TILE = "!pto.tile_buf<vec, 16x16xf32>"


def test_constants_are_pooled_and_deduplicated() -> None:
    body = "%0 = arith.constant 4 : index\n%1 = arith.constant 4 : index\n%2 = arith.constant true\n%3 = arith.constant 1.0 : f32"
    assert stream(body) == "03 20 00 00 02 03 20 00 00 02 03 20 00 01 03 03 20 00 02 04"
    data = pto.to_bytecode(pto.parse(f"func.func @f() {{\n{body}\nreturn\n}}"))
    file = read_file(data, "t")
    at, end = file.sections[format.CONSTS]
    assert data[at:end].hex(" ") == "03 01 02 04 01 03 7f 02 04 04 00 00 80 3f"


def test_variant_byte_and_operands() -> None:
    body = "pto.section.cube {\n}\npto.section.vector {\n}"
    assert stream(body) == "06 00 00 00 01 00 00 06 00 00 01 01 00 00"


def test_event_triple() -> None:
    body = "pto.record_event [#pto.sync_op_type<TLOAD>, #pto.sync_op_type<TVEC>, #pto.event<EVENT_ID3>]"
    assert stream(body) == "05 10 02 00 09 03"


def test_alloc_tile_mask() -> None:
    dynamic = "!pto.tile_buf<vec, 16x16xf32, valid=?x16>"
    body = f"%t = pto.alloc_tile valid_row = %n : {dynamic}\n%u = pto.alloc_tile : {TILE}"
    assert stream(body, "%n: index") == "01 10 02 01 00 03 01 10 03 00 04"


def test_counted_operands_and_implied_attributes() -> None:
    view = "!pto.partition_tensor_view<16x16xf32>"
    body = f"pto.tstore ins(%t : {TILE}) outs(%v : {view})"
    arguments = f"%t: {TILE}, %v: {view}"
    assert stream(body, arguments) == "65 10 02 02 00 01"
    data = pto.to_bytecode(pto.parse(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}"))
    assert read_file(data, "t").attr_text(2) == (
        "{atomicType = #pto<atomic_type atomic_none>, reluPreMode = #pto<relu_pre_mode no_relu>, "
        "stPhase = #pto<st_phase unspecified>}"
    )


def test_attribute_texts_are_those_of_the_field() -> None:
    body = (
        "%0 = arith.addi %n, %n : index\n%1 = arith.cmpi sge, %n, %n : index\n"
        f"pto.tmov ins(%t : {TILE}) outs(%t : {TILE})\n"
        f"pto.tcvt ins(%t : {TILE}) outs(%t : {TILE})"
    )
    data = pto.to_bytecode(
        pto.parse(f"func.func @f(%n: index, %t: {TILE}) {{\n{body}\nreturn\n}}"), strict=True
    )
    file = read_file(data, "t")
    assert [file.attr_text(k) for k in range(2, len(file.attrs) + 1)] == [
        "{overflowFlags = #arith.overflow<none>}",
        "{predicate = 5 : i64}",
        "{operandSegmentSizes = array<i32: 1, 1, 0, 0>, reluPreMode = #pto<relu_pre_mode no_relu>}",
        "{rmode = #pto<round_mode CAST_RINT>}",
    ]


def test_a_reader_of_v0_skips_a_foreign_extra_section() -> None:
    data = EMPTY + b"\x7f\x03\x00\x00\x00abc"
    data = data[:10] + (len(data) - 14).to_bytes(4, "little") + data[14:]
    assert pto.to_bytecode(pto.from_bytecode(data)) == EMPTY
