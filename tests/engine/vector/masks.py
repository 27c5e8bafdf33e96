"""Masks in tests: instances of a row at any granularity, and 256-bit images as Python integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.asm.type_text import parse_type
from pto.engine.registers import WIDTH
from pto.witness.plan import Plan, violated

from .cases import VectorCase, plans_of

GRANULARITIES = ("b8", "b16", "b32")
SIZES = {"b8": 1, "b16": 2, "b32": 4}


def typed(plan: Plan, **types: str) -> Plan:
    """The plan with other types of operands and results; an empty one leaves the value out. It is legal."""
    operands, results = dict(plan.operands), dict(plan.results)
    for name, text in types.items():
        among = results if any(d.name == name for d in plan.row.results) else operands
        if text:
            among[name] = (parse_type(text),)
        else:
            among.pop(name, None)
    made = plan.replace(
        operands={d.name: operands[d.name] for d in plan.row.operands if d.name in operands},
        results={d.name: results[d.name] for d in plan.row.results if d.name in results},
    )
    assert not violated(made), made
    return made


def at(name: str, granularity: str, column: str = "a5", **other: str) -> Plan:
    """An instance of a row whose masks all have one granularity."""
    plan = plans_of(name, column)[0]
    masks = [d.name for d in (*plan.row.operands, *plan.row.results) if "mask" in d.kinds]
    present = [n for n in masks if n in plan.operands or n in plan.results]
    return typed(plan, **{n: f"!pto.mask<{granularity}>" for n in present} | other)


def number(image: Any) -> int:
    """An image as an integer: bit k of the mask is bit k of the number."""
    return sum(1 << k for k, bit in enumerate(np.asarray(image).tolist()) if bit)


def set_image(case: VectorCase, mask: str, value: int) -> None:
    case.args[mask].buffer.data[:] = [value >> k & 1 for k in range(WIDTH)]


def some_image(case: VectorCase, mask: str) -> int:
    """Random bits for a mask, the upper ones of its lanes too; as an integer."""
    value = int.from_bytes(case.rng.bytes(WIDTH // 8), "little")
    set_image(case, mask, value)
    return value


def found(case: VectorCase, mask: str) -> int:
    image = case.image(mask)
    assert set(image.tolist()) <= {0, 1}
    return number(image)


def lanes_of(value: int, granularity: str) -> list[int]:
    """The lanes of an image as 0 and 1."""
    size = SIZES[granularity]
    return [value >> (n * size) & 1 for n in range(WIDTH // size)]


def image_of(lanes: list[int], granularity: str) -> int:
    """The image a producer makes of lanes."""
    return sum(lane << (n * SIZES[granularity]) for n, lane in enumerate(lanes))
