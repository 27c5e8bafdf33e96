"""Legality rules: one expression per rule, from which the check, the message and the documentation follow.

A rule is a Python-like expression over the operands and attributes of an instruction:

    R("src0.dtype == dst.dtype")
    R("tmp.v_row >= dst.v_row", on="a2a3")
    R("dst.loc in (VEC, MAT)", code="SA-0032")
    R("src.cols * src.bytes % 32 == 0", when="src.loc == MAT")

Upper-case names are constants (locations, layouts, dtypes). A fact that is not known statically (a `?`
valid dimension, a run-time scalar, an absent optional operand) makes the whole rule pass: the engines
check it when it is known. Expressions are compiled on first use and never see anything but these names.
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
    """A rule asked for a fact that is not known statically."""


class Rule(Record):
    expr: str
    on: tuple[str, ...] = ()  # legality columns it applies to; empty = all
    code: str = ""  # diagnostic code; empty = by class
    msg: str = ""  # message; empty = derived from the expression
    when: str = ""  # guard: the rule applies only where this holds
    written: bool = False  # of what the program says only: a run goes on with what it meets
    text: bool = False  # of programs only: the headers of devices take it, and so do ours


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

#: Fact names a rule may ask of an operand, with the noun used in messages.
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
        raise Unknown  # an absent operand, or a dynamic dimension
    return obj[index]


def _has(obj: Any) -> bool:
    return obj is not None


def _valid_pairs(a: Any, b: Any) -> list[tuple[int | None, int | None]]:
    if not hasattr(a, "v_row") or not hasattr(b, "v_row"):
        raise Unknown
    return [(a.v_row, b.v_row), (a.v_col, b.v_col)]


def _valid_eq(a: Any, b: Any) -> bool:
    """Equal valid shapes as far as both are static."""
    return all(x is None or y is None or x == y for x, y in _valid_pairs(a, b))


def _valid_le(a: Any, b: Any) -> bool:
    """Valid shape of `a` fits in the valid shape of `b`, as far as both are static."""
    return all(x is None or y is None or x <= y for x, y in _valid_pairs(a, b))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _selected(pattern: str | None, size: int) -> int:
    """How many of `size` positions a mask pattern takes; all of them where there is none."""
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


#: A name with the facts and constant indices asked of it.
_CHAIN = re.compile(r"\b([A-Za-z_]\w*)((?:\.[a-z_]+|\[-?\d+\])+)")
_LINK = re.compile(r"\.([a-z_]+)|\[(-?\d+)\]")


def _chain(m: re.Match[str]) -> str:
    made = m[1]
    for fact, index in _LINK.findall(m[2]):
        made = f"_get({made}, '{fact}')" if fact else f"_item({made}, {index})"
    return made


def lowered_text(text: str) -> str:
    """What `rule_trees.lowered` does, without its checks: a tool that starts has no time to build trees.

    A test compares the two on every rule of the table.
    """
    return _CHAIN.sub(_chain, text)


_cache: dict[str, tuple[CodeType, bool]] = {}


def compile_expr(text: str) -> tuple[CodeType, bool]:
    """Compile a rule expression.

    The second value says that it holds a generator, which sees global names only.
    """
    found = _cache.get(text)
    if found is None:
        # Rules, pipes and costs of the tables alone: programs and files of machines give values, never texts.
        found = _cache[text] = compile(lowered_text(text), "<rule>", "eval"), " for " in text
    return found


_GLOBALS: dict[str, Any] = {"__builtins__": {}, "_get": _get, "_item": _item, **FUNCTIONS, **CONSTANTS}


def evaluate(text: str, env: Mapping[str, Any]) -> Any:
    """Value of an expression under `env`; raises `Unknown` where a fact is missing."""
    try:
        code, loops = compile_expr(text)  # see there: the text is of the tables
        if loops:
            return eval(code, {**_GLOBALS, **env})
        return eval(code, _GLOBALS, env)
    except (TypeError, ZeroDivisionError, IndexError) as error:
        raise Unknown from error


def holds(text: str, env: Mapping[str, Any]) -> bool:
    """Whether a condition is known to hold."""
    try:
        return bool(evaluate(text, env))
    except Unknown:
        return False


def broken(rule: Rule, env: Mapping[str, Any]) -> bool:
    """Whether a rule is known not to hold."""
    try:
        return not ((rule.when and not evaluate(rule.when, env)) or evaluate(rule.expr, env))
    except Unknown:
        return False


_NAMED_FACT = re.compile(r"\.([a-z_]+)")


def facts_in(text: str) -> set[str]:
    """Fact names (`dtype`, `v_row`, ...) an expression refers to."""
    found = set(_NAMED_FACT.findall(text))
    if "valid_eq" in text or "valid_le" in text:
        found |= {"v_row", "v_col"}
    return found


_TYPE = frozenset({"dtype", "bits", "bytes", "type", "kind", "gran"})
_SHAPE = frozenset({"rows", "cols", "shape", "v_row", "v_col", "dyn_row", "dyn_col", "valid", "size",
                    "row_bytes", "elems", "dims", "rank", "count", "const", "lanes"})  # fmt: skip
_LAYOUT = frozenset({"loc", "blayout", "slayout", "layout", "fractal", "boxed", "pad", "compact", "space"})

#: Default code of a rule by the class of facts it speaks of, and the order in which classes are reported.
_CLASSES = (
    ("PTO-E0116", frozenset[str]()),  # attributes, and which operands are there
    ("PTO-E0301", _TYPE),
    ("PTO-E0401", _SHAPE),
    ("PTO-E0501", _LAYOUT),
)


@cache
def class_of(rule: Rule) -> int:
    """The class of facts a rule speaks of, as a number in the order of reports."""
    facts = facts_in(rule.expr)
    return next((i for i, (_, group) in enumerate(_CLASSES) if facts & group), 0)


def stage_of(rule: Rule) -> int:
    """When a rule is reported: the first stage that fails is. Attributes and types are one."""
    return max(class_of(rule), 1)


def code_of(rule: Rule) -> str:
    """The diagnostic code of a violation."""
    return rule.code or _CLASSES[class_of(rule)][0]
