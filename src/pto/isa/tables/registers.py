"""CTRL, the control register of a core: access to the whole register, and to the fields for atomic updates.

`isa/ctrl.py` describes its bits. Instructions that were already issued keep the value from their issue.
"""

from __future__ import annotations

from ..ctrl import OPERATION_FIELD, OPERATIONS, TYPE_FIELD, TYPES
from ..row import Family, Row
from ..rules import R

register = Family("control-register", "scalar", also="micro", effect="config", pipe="S")
#: Words with one bit changed; these do not access a register.
bit = Family(
    "control-register", "scalar", also="micro", effect="pure", repeatable=True, scope="any",
    operands="value=i64 bit=i64", results="result=i64", infer={"result": "i64"},
    format="$value, $bit attr-dict : type($value), type($bit) -> type($result)",
    rules=R("0 <= bit.const < 64", msg="expects bit to be 0..63"),
    notes=("of the number of a bit the low six bits count",), types={"value": "i64", "bit": "i64"},
)  # fmt: skip
_UPDATED = (
    "obeyed by mte_ub_gm, copy_ubuf_to_gm and mte_l0c_gm; tile instructions have attributes instead",
    "an element type and an operation are both needed: without a type stores are plain",
)


def _type(word: str, opcode: int) -> Row:
    first, _ = TYPE_FIELD
    what = "Later stores to global memory are plain again." if word == "none" else (
        f"Later stores to global memory update elements of {word}."
    )  # fmt: skip
    return register(
        f"set_atomic_{word}", opcode=opcode, algorithm=f"atomic updates: {word}", doc=what,
        meaning=f"CTRL[8:6] = {TYPES[word]}: bits {first} to 8 of the register.", notes=_UPDATED,
        cpp=f"set_atomic_{word}()",
    )  # fmt: skip


def _operation(word: str, opcode: int) -> Row:
    first, _ = OPERATION_FIELD
    become = {"add": "old + new", "max": "the larger one", "min": "the smaller one"}[word]
    return register(
        f"set_atomic_{word}", opcode=opcode, algorithm=f"atomic updates: {word}",
        doc=f"Later updates of global memory leave {become}.",
        meaning=f"CTRL[10:9] = {OPERATIONS[word]}: bits {first} and 10 of the register.", notes=_UPDATED,
        cpp=f"set_atomic_{word}()",
    )  # fmt: skip


ROWS = (
    register(
        "get_ctrl", opcode=0x12B0, algorithm="control register: get", results="result=i64", infer={"result": "i64"},
        format="attr-dict : type($result)", doc="Read the control register.", meaning="result = CTRL.",
        notes=("a core starts with bit 60 set and all others clear",), cpp="get_ctrl()",
    ),
    register(
        "set_ctrl", opcode=0x12B1, algorithm="control register: set", operands="value=i64",
        format="$value attr-dict : type($value)", doc="Write the control register.", meaning="CTRL = value.",
        notes=(
            "bits 8..6 and 10..9: updates of global memory, see set_atomic_*; 46 and 47: TF32 operands of products, "
            "rounded away at ties; 48 and 50: saturation; 60: whether conversions obey the register",
            "an instruction that says itself how it rounds or saturates does so whatever the register holds; "
            "conversions in a vecscope always do",
        ),
        cpp="set_ctrl($value)", types={"value": "i64"},
    ),
    bit("sbitset0", opcode=0x12B2, expr="value & ~(1 << (bit & 63))", doc="A word with one bit cleared.",
        cpp="sbitset0($value, $bit)"),
    bit("sbitset1", opcode=0x12B3, expr="value | (1 << (bit & 63))", doc="A word with one bit set.",
        cpp="sbitset1($value, $bit)"),
    *(_operation(word, 0x12B4 + n) for n, word in enumerate(("add", "max", "min"))),
    *(_type(word, 0x12B7 + n) for n, word in enumerate(("none", "f32", "f16", "bf16", "s32", "s16", "s8"))),
)  # fmt: skip
