"""Legality rules: one expression per rule, from which the check, the message and the documentation follow.

A rule is a Python-like expression over the operands and attributes of an instruction:

    R("src0.dtype == dst.dtype")
    R("tmp.v_row >= dst.v_row", on="a2a3")
    R("dst.loc in (VEC, MAT)", code="SA-0032")
    R("src.cols * src.bytes % 32 == 0", when="src.loc == MAT")

Upper-case names are constants (locations, layouts, dtypes). If a fact is not known statically (a `?` valid
dimension, a run-time scalar, an absent optional operand), the whole rule passes; the engines check it when
the fact is known. Expressions are compiled at first use, and can access only these names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import Any

from .dtypes import DTYPES
from .enums import MASK_PATTERNS
from .profiles import LOCATIONS
from .record import Record
from .tile import LAYOUT_PARTS


class Unknown(Exception):
    """A rule needs a fact that is not known statically."""


class Rule(Record):
    expr: str
    on: tuple[str, ...] = ()  # legality columns of the rule; empty = all
    code: str = ""  # diagnostic code; empty = the code of its class
    msg: str = ""  # message; empty = derived from the expression
    when: str = ""  # guard: the rule applies only if this holds
    written: bool = False  # checked only on program text; runs accept a violation
    text: bool = False  # checked only for programs; C++ headers accept a violation


@cache
def R(  # noqa: N802
    expr: str,
    on: str = "",
    code: str = "",
    msg: str = "",
    when: str = "",
    written: bool = False,
    text: bool = False,
) -> Rule:
    return Rule(expr, tuple(on.split()), code, msg, when, written, text)


CONSTANTS: dict[str, Any] = {
    **{name.upper(): name for name in LOCATIONS},
    **{name.upper(): name for name in DTYPES},
    **{name: name for name in LAYOUT_PARTS},
    "ROW": "row_major",
    "COL": "col_major",
    "NONE_BOX": "none_box",
    "GM": "gm", "UB": "ub", "L1": "l1", "L0A": "l0a", "L0B": "l0b", "L0C": "l0c", "BT": "bt", "FB": "fb",
    "True": True, "False": False,
}  # fmt: skip

#: Fact of an operand -> its noun in messages.
FACTS: dict[str, str] = {
    "dtype": "element type",
    "bits": "element bits",
    "bytes": "element bytes",
    "loc": "location",
    "rows": "rows",
    "cols": "columns",
    "shape": "shape",
    "v_row": "valid rows",
    "v_col": "valid columns",
    "valid": "valid_shape",
    "dyn_row": "dynamic valid rows",
    "dyn_col": "dynamic valid columns",
    "blayout": "blayout",
    "slayout": "slayout",
    "layout": "layout",
    "fractal": "fractal size",
    "pad": "pad value",
    "compact": "compact mode",
    "size": "size in bytes",
    "row_bytes": "row size in bytes",
    "boxed": "boxed layout",
    "kind": "kind of type",
    "type": "type",
    "rank": "rank",
    "dims": "dimensions",
    "elems": "element count",
    "space": "address space",
    "lanes": "lane count",
    "gran": "mask granularity",
    "const": "value",
    "count": "operand count",
}


def _get(obj: Any, fact: str) -> Any:
    if obj is None:
        raise Unknown
    value = getattr(obj, fact, None)
    if value is None:
        raise Unknown
    return value


def _item(obj: Any, index: int) -> Any:
    if obj is None or obj[index] is None:
        raise Unknown  # an absent operand or a dynamic dimension
    return obj[index]


def _has(obj: Any) -> bool:
    return obj is not None


def _valid_pairs(a: Any, b: Any) -> list[tuple[int | None, int | None]]:
    if not hasattr(a, "v_row") or not hasattr(b, "v_row"):
        raise Unknown
    return [(a.v_row, b.v_row), (a.v_col, b.v_col)]


def _valid_eq(a: Any, b: Any) -> bool:
    """Return True if the valid shapes are equal in all static dimensions."""
    return all(x is None or y is None or x == y for x, y in _valid_pairs(a, b))


def _valid_le(a: Any, b: Any) -> bool:
    """Return True if the valid shape of `a` fits in the valid shape of `b` in all static dimensions."""
    return all(x is None or y is None or x <= y for x, y in _valid_pairs(a, b))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _selected(pattern: str | None, size: int) -> int:
    """Return the number of positions that a mask pattern selects out of `size`; all without a pattern."""
    period, first = MASK_PATTERNS[pattern or "P1111"]
    return len(range(first, size, period))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "has": _has,
    "valid_eq": _valid_eq,
    "valid_le": _valid_le,
    "ceil": _ceil,
    "selected": _selected,
    "min": min,
    "max": max,
    "abs": abs,
    "len": len,
    "all": all,
    "any": any,
}


#: A name followed by facts and constant indices.
_CHAIN = re.compile(r"\b([A-Za-z_]\w*)((?:\.[a-z_]+|\[-?\d+\])+)")
_LINK = re.compile(r"\.([a-z_]+)|\[(-?\d+)\]")


def _chain(m: re.Match[str]) -> str:
    made = m[1]
    for fact, index in _LINK.findall(m[2]):
        made = f"_get({made}, '{fact}')" if fact else f"_item({made}, {index})"
    return made


def lowered_text(text: str) -> str:
    """Return the same as `rule_trees.lowered` as text, without its checks, because building trees would slow
    down the start of tools. A test compares both for every rule of the table."""
    return _CHAIN.sub(_chain, text)


_cache: dict[str, tuple[CodeType, bool]] = {}


def compile_expr(text: str) -> tuple[CodeType, bool]:
    """Compile a rule expression.

    The second value is True if the expression has a generator, which can access only global names.
    """
    found = _cache.get(text)
    if found is None:
        # Only rules, pipes and costs of the tables are compiled here. Programs and machine files provide
        # values, never texts.
        found = _cache[text] = compile(lowered_text(text), "<rule>", "eval"), " for " in text
    return found


_GLOBALS: dict[str, Any] = {"__builtins__": {}, "_get": _get, "_item": _item, **FUNCTIONS, **CONSTANTS}


def evaluate(text: str, env: Mapping[str, Any]) -> Any:
    """Return the value of an expression under `env`; raise `Unknown` if a fact is missing."""
    try:
        code, loops = compile_expr(text)  # the text is from the tables, see compile_expr
        if loops:
            return eval(code, {**_GLOBALS, **env})
        return eval(code, _GLOBALS, env)
    except (TypeError, ZeroDivisionError, IndexError) as error:
        raise Unknown from error


def holds(text: str, env: Mapping[str, Any]) -> bool:
    """Return True if a condition is known to hold."""
    try:
        return bool(evaluate(text, env))
    except Unknown:
        return False


def broken(rule: Rule, env: Mapping[str, Any]) -> bool:
    """Return True if a rule is known to be violated."""
    try:
        return not ((rule.when and not evaluate(rule.when, env)) or evaluate(rule.expr, env))
    except Unknown:
        return False


_NAMED_FACT = re.compile(r"\.([a-z_]+)")


def facts_in(text: str) -> set[str]:
    """Return the fact names (`dtype`, `v_row`, ...) in an expression."""
    found = set(_NAMED_FACT.findall(text))
    if "valid_eq" in text or "valid_le" in text:
        found |= {"v_row", "v_col"}
    return found


_TYPE = frozenset({"dtype", "bits", "bytes", "type", "kind", "gran"})
_SHAPE = frozenset({"rows", "cols", "shape", "v_row", "v_col", "dyn_row", "dyn_col", "valid", "size",
                    "row_bytes", "elems", "dims", "rank", "count", "const", "lanes"})  # fmt: skip
_LAYOUT = frozenset({"loc", "blayout", "slayout", "layout", "fractal", "boxed", "pad", "compact", "space"})

#: Default code of a rule by the class of its facts, in the order of reports.
_CLASSES = (
    ("PTO-E0116", frozenset[str]()),  # attributes, and presence of operands
    ("PTO-E0301", _TYPE),
    ("PTO-E0401", _SHAPE),
    ("PTO-E0501", _LAYOUT),
)


@cache
def class_of(rule: Rule) -> int:
    """Return the class of a rule's facts, as a number in the order of reports."""
    facts = facts_in(rule.expr)
    return next((i for i, (_, group) in enumerate(_CLASSES) if facts & group), 0)


def stage_of(rule: Rule) -> int:
    """Return the stage of a rule. Only the first stage with violations is reported. Attributes and types are
    one stage."""
    return max(class_of(rule), 1)


def code_of(rule: Rule) -> str:
    """Return the diagnostic code of a violation."""
    return rule.code or _CLASSES[class_of(rule)][0]
