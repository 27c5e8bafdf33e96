"""Vector arithmetic on bytes: every pair of operands, or every operand, in all columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.each import together

from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from .cases import VectorCase, plans_of, rows_of

Array = np.ndarray[Any, Any]

#: Of numbers as 64-bit integers; results keep their low bits. Shifts count as far as all bits.
MEANING: dict[str, Callable[..., Array]] = {
    "vabs": np.abs, "vneg": np.negative, "vnot": np.invert, "vmov": np.array,
    "vrelu": lambda x: np.maximum(x, 0), "vbcnt": lambda x: np.array([f"{v & 255:b}".count("1") for v in x]),
    "vcls": lambda x: np.array([7 - (~v if v < 0 else v).bit_length() for v in x.tolist()]),
    "vadd": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmax": np.maximum, "vmin": np.minimum,
    "vand": np.bitwise_and, "vor": np.bitwise_or, "vxor": np.bitwise_xor, "vshl": np.left_shift,
    "vshr": np.right_shift,
}  # fmt: skip


def of_bytes() -> list[Plan]:
    found = [p for name in rows_of("unary", "binary", "vec-scalar") for p in plans_of(name)]
    return [p for p in found if _types(p) <= {"i8", "u8"}]


def _types(plan: Plan) -> set[str]:
    every = [t for types in (*plan.operands.values(), *plan.results.values()) for t in types]
    return {str(t.dtype) for t in every if hasattr(t, "lanes")}  # type: ignore[union-attr]


@together("plan", of_bytes())
def test_every_pair(plan: Plan) -> None:
    case = VectorCase(plan)
    d, name = DTYPES[case.args["r"].dtype], plan.row.name
    meaning = MEANING[name if name in MEANING else name.removesuffix("s")]
    first, *others = [o.name for o in plan.row.operands if "mask" not in o.kinds]
    codes = np.arange(256, dtype=np.uint8)
    x = codes.view(np.int8 if d.kind == "i" else np.uint8).astype(np.int64)
    case.set(first, codes)
    if "mask" in case.args:
        case.on("mask", True, 1)
    if not others:
        case.execute()
        assert case.get("r").tolist() == meaning(x).astype(np.uint8).tolist()
        return
    for y in x[:8] if "sh" in name else x:
        if hasattr(case.args[others[0]], "lanes"):
            case.set(others[0], np.full(256, y & 255))
        else:
            case.args[others[0]] = int(y)
        case.execute()
        assert case.get("r").tolist() == meaning(x, y).astype(np.uint8).tolist(), y
