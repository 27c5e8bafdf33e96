"""No attribute and no operand is lost: each changes the C++, or the emitter refuses it with a code.

The table is walked: every instruction with attributes, in every form its witness has, with every legal value
of every attribute. Two values that give the same text are an error unless they mean the same; such cases are
listed here with the reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.each import together

from pto import isa
from pto.codegen.cpp import emit
from pto.diag import DiagnosticError
from pto.ir.attrs import IntAttr, TypeAttr
from pto.ir.core import Module, Operation
from pto.ir.types import ScalarType, TokenType
from pto.isa.enums import SYNC_OP_PIPE
from pto.isa.profiles import ISAS, PROFILES
from pto.isa.row import Attr, Row
from pto.witness.plan import Plan, make_attribute, violated
from pto.witness.programs import build

from .shapes import emit as emit_text
from .shapes import witnesses

#: What is meant where an attribute is left out.
_ABSENT = {
    "relu_mode": "no_relu",
    "cmpMode": "eq",
    "nosplit": False,
    "layout": "nd",
    "ffts_mode": 2,
    "accToVecMode": "SingleModeVec0",
    "sat_mode": None,
    "event_id": None,
}

#: Attributes a target has no place for: the instruction they belong to works without them there.
_NO_PLACE = {
    ("sync.wait", "pipe"): ("cpu", "a2a3"),  # wait_flag_dev stalls the whole core
    ("sync.set", "ffts_mode"): ("a5",),  # set_intra_block has one mode
    ("reserve_buffer", "auto"): ISAS,  # the memory planner has read it
}

#: Rows that stand for other rows, or whose text the passes replace.
_LOWERED = ("aic_initialize_pipe", "aiv_initialize_pipe", "tpush_to_aiv", "tpush_to_aic", "tpop_from_aic",
            "tpop_from_aiv", "tfree_from_aic", "tfree_from_aiv", "import_reserved_buffer")  # fmt: skip


def _rows() -> list[Row]:
    return [
        r
        for r in isa.rows()
        if r.set not in ("vector", "predicate")
        and r.scope != "vec"
        and not r.regions
        and r.name not in _LOWERED
    ]


ROWS = _rows()


def _meaning(attr: Attr, value: Any, made: Plan) -> Any:
    """Values with the same meaning need not differ in C++."""
    if value is None:
        value = attr.default if attr.default is not None else _ABSENT.get(attr.name)
        value = "nz2nz" if attr.choices and "nz2nz" in attr.choices else value  # the layout of L0C itself
    if attr.kind in ("pipe_event_type", "sync_op_type"):
        return SYNC_OP_PIPE[str(value)]
    if attr.kind == "round_mode":
        return str(value).removeprefix("CAST_")
    if attr.name == "coalesce" and value == "auto":  # by the shapes of the index and of the data
        idx, tile = made.operands["idx"][0], (made.operands.get("dst") or made.operands["src"])[0]
        return "elem" if str(idx).partition("x")[2][:2] == str(tile).partition("x")[2][:2] else "row"
    return value


def _values(attr: Attr) -> tuple[Any, ...]:
    """Values to try: all of them, or some numbers and words."""
    if attr.domain:
        return attr.domain
    return {"int": (0, 1, 2, 3, 7), "unit": (True,)}.get(attr.kind, ())


def _used(made: Plan) -> Module:
    """The witness, with the FIFO it takes and with its result returned, so that nothing is left out as unused."""
    module = build(made)
    func = module.functions[-1]
    block = func.regions[0].blocks[0]
    target = next((op for op in func.walk() if op.row is made.row), None)
    signature = func.attrs["function_type"].value
    handles = [a for a in block.args if isinstance(a.type, TokenType) and a.type.name == "pipe"]
    for handle in handles:
        address = Operation("arith.constant", isa.row("arith.constant"), [], [ScalarType("i32")])
        address.attrs = {"value": IntAttr(0, ScalarType("i32"))}
        fifo = Operation(
            "pto.initialize_l2l_pipe", isa.row("initialize_l2l_pipe"), [address.result], [handle.type],
            {n: IntAttr(v) for n, v in (("dir_mask", 1), ("slot_size", 4096), ("slot_num", 8))},
            segments=(1, 0),
        )  # fmt: skip
        for op in func.walk():
            op.operands = [fifo.result if v is handle else v for v in op.operands]
        for at, op in enumerate((address, fifo)):
            op.parent = block
            block.ops.insert(at, op)
        block.args.remove(handle)
        signature = signature.replace(inputs=tuple(a.type for a in block.args))
    back = block.ops[-1]
    if target is not None and target.results and target.parent is block and not back.operands:
        back.operands, back.segments = [target.results[0]], (1,)
        signature = signature.replace(results=(target.results[0].type,))
    func.attrs["function_type"] = TypeAttr(signature)
    return module


def _text(made: Plan) -> str | None:
    """The C++ of a plan; None where the emitter refuses it, which takes a code."""
    try:
        return emit(_used(made), PROFILES[made.isa])
    except DiagnosticError as e:
        assert {d.code for d in e.diagnostics} <= {"PTO-E1301", "PTO-E1302"}, str(e)
        return None


@cache
def _forms(name: str) -> tuple[Plan, ...]:
    """The witness in each form, once per set of operands and attributes."""
    row = isa.row(name)
    assert row is not None
    return tuple(_distinct(row))


def _distinct(row: Row) -> Iterator[Plan]:
    for column in [c for c in row.isas if c != "cpu"] or row.isas:
        seen: set[Any] = set()
        for made in witnesses(row, column):
            key = frozenset(made.operands), frozenset(made.attrs)
            if key not in seen:
                seen.add(key)
                yield made


@together("row", [r for r in ROWS if r.attrs])
def test_every_attribute_is_spelled_or_refused(row: Row) -> None:
    for made in _forms(row.name):
        for attr in row.attrs:
            if attr.hint or made.isa in _NO_PLACE.get((row.name, attr.name), ()):
                continue
            found: dict[str, set[Any]] = defaultdict(set)
            given = [None] if attr.name not in made.attrs else []
            for value in (*given, *_values(attr)):
                attrs = {
                    **made.attrs,
                    **({attr.name: make_attribute(attr, value)} if value is not None else {}),
                }
                changed = made.replace(attrs=attrs)
                if violated(changed):
                    continue
                text = _text(changed)
                if text is not None:
                    found[text].add(_meaning(attr, value, made))
            for text, meanings in found.items():
                assert len(meanings) == 1, (
                    f"{row.name} on {made.isa}: {attr.name} is lost\n{meanings}\n{text}"
                )


#: Rows that give a number the type of their operand has, and one that only the planner looks at.
_NOT_NAMED = ("get_tensor_view_dim", "memref.dim", "memref.dealloc")


@together("row", [r for r in ROWS if r.operands and r.name not in _NOT_NAMED])
def test_every_operand_is_spelled_or_refused(row: Row) -> None:
    """The parameters of the witness are its operands: each is named in the body."""
    for made in _forms(row.name):
        text = _text(made)
        if text is None:
            continue
        head = re.search(r"^[\w ,*:&<>-]*\bexample\((.*)\) \{(?:  //.*)?$", text, re.MULTILINE)
        assert head is not None, text
        body = text[head.end() :]
        plain = head[1]
        while plain != (plain := re.sub(r"<[^<>]*>", "", plain)):
            pass
        names = [re.split(r"\W", p)[-1] for p in plain.split(", ")]
        lost = [n for n in names if not re.search(rf"\b{n}\b", body)]
        assert not lost, f"{row.name} on {made.isa}: {lost}\n{text[head.start() :]}"


ACC = "!pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT = "!pto.tile_buf<mat, 32x32xi8, blayout=col_major, slayout=row_major>"
VEC = "!pto.tile_buf<vec, 32x32xf32>"
FP = "!pto.tile_buf<scaling, 1x32xui64>"
RELU = ("no_relu", "normal_relu")
MODES = ("single_mode_vec0", "single_mode_vec1", "dual_mode_split_m", "dual_mode_split_n")


def _program(instruction: str) -> str:
    return f"""\
func.func @k() attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %p = pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 4096, slot_num = 8, flag_base = 0}} (%g : !pto.ptr<f32>, %z : i32) -> !pto.pipe
  %acc = pto.alloc_tile : {ACC}
  %mat = pto.alloc_tile : {MAT}
  %vec = pto.alloc_tile : {VEC}
  %fp = pto.alloc_tile : {FP}
  {instruction}
  return
}}
""".replace("@k()", "@k(%g: !pto.ptr<f32>)")


#: Forms that no witness has: an instruction, the attribute and its values.
_MORE = [
    (f"pto.textract ins(%acc, %c0, %c0 : {ACC}, index, index) outs(%vec : {VEC}) {{accToVecMode = #pto<acc_to_vec_mode @>}}", MODES),
    (f"pto.tmov ins(%acc : {ACC}) outs(%vec : {VEC}) {{accToVecMode = #pto<acc_to_vec_mode @>}}", MODES),
    (f"pto.tmov ins(%acc : {ACC}) outs(%vec : {VEC}) {{accToVecMode = #pto<acc_to_vec_mode single_mode_vec1>, st_phase = #pto<st_phase @>}}", ("unspecified", "partial", "final")),
    (f"pto.tmov.fp ins(%acc, %fp : {ACC}, {FP}) outs(%mat : {MAT}) {{reluPreMode = #pto<relu_pre_mode @>}}", RELU),
    (f"pto.tmov.fp ins(%acc, %fp : {ACC}, {FP}) outs(%mat : {MAT}) {{st_phase = #pto<st_phase @>}}", ("unspecified", "partial", "final")),
    (f"pto.textract_fp ins(%acc, %fp, %c0, %c0 : {ACC}, {FP}, index, index) outs(%mat : {MAT}) {{reluPreMode = #pto<relu_pre_mode @>}}", RELU),
    (f"pto.tinsert_fp ins(%acc, %fp, %c0, %c0 : {ACC}, {FP}, index, index) outs(%mat : {MAT}) {{reluPreMode = #pto<relu_pre_mode @>}}", RELU),
    (f"pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = 0}} {{reluPreMode = #pto<relu_pre_mode @>}}", RELU),
    (f'pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = 0}} {{quant_mode = "@"}}', ("NoQuant", "F322F16", "F322BF16", "QF322B8_PRE")),
    (f'pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = 0}} {{layout_mode = "@"}}', ("NZ2ND", "NZ2DN", "NZ2NZ")),
    (f"pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = 0}} {{stPhase = #pto<st_phase @>}}", ("unspecified", "partial", "final")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("instruction", "values"), _MORE, ids=lambda v: v.partition("(")[0] if isinstance(v, str) else ""
)
def test_attributes_of_the_fix_pipe_are_spelled(instruction: str, values: tuple[str, ...]) -> None:
    texts = {emit_text(_program(instruction.replace("@", v)), "a5") for v in values}
    assert len(texts) == len(values)
