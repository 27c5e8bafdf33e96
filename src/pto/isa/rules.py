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

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import Any

from .dtypes import DTYPES
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


@cache
def R(expr: str, on: str = "", code: str = "", msg: str = "", when: str = "") -> Rule:  # noqa: N802
    return Rule(expr, tuple(on.split()), code, msg, when)


class Violation(Record):
    rule: Rule
    message: str
    expected: str
    got: str


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "has": _has,
    "valid_eq": _valid_eq,
    "valid_le": _valid_le,
    "ceil": _ceil,
    "min": min,
    "max": max,
    "abs": abs,
    "len": len,
    "all": all,
    "any": any,
}


class _Lower(ast.NodeTransformer):
    """`x.fact` becomes `_get(x, 'fact')`; anything but plain expressions is refused."""

    _allowed = (
        ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add,
        ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
        ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Call, ast.Name, ast.Load,
        ast.Constant, ast.Attribute, ast.Tuple, ast.IfExp, ast.Subscript, ast.keyword, ast.GeneratorExp,
        ast.comprehension, ast.Store,
    )  # fmt: skip

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, self._allowed):
            raise SyntaxError(f"{type(node).__name__} is not allowed in a rule")
        return super().generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr not in FACTS:
            raise SyntaxError(f"unknown fact '.{node.attr}' in a rule")
        self.generic_visit(node)
        return ast.Call(ast.Name("_get", ast.Load()), [node.value, ast.Constant(node.attr)], [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(ast.Name("_item", ast.Load()), [node.value, node.slice], [])


def lowered(text: str) -> ast.Expression:
    """The expression as it is evaluated; `SyntaxError` says what is wrong with it."""
    return ast.fix_missing_locations(_Lower().visit(ast.parse(text, mode="eval")))


#: A name with the facts and constant indices asked of it.
_CHAIN = re.compile(r"\b([A-Za-z_]\w*)((?:\.[a-z_]+|\[-?\d+\])+)")
_LINK = re.compile(r"\.([a-z_]+)|\[(-?\d+)\]")


def _chain(m: re.Match[str]) -> str:
    made = m[1]
    for fact, index in _LINK.findall(m[2]):
        made = f"_get({made}, '{fact}')" if fact else f"_item({made}, {index})"
    return made


def lowered_text(text: str) -> str:
    """What `lowered` does, without its checks: a tool that starts has no time to build trees of its rules.

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
        found = _cache[text] = compile(lowered_text(text), "<rule>", "eval"), " for " in text
    return found


_GLOBALS: dict[str, Any] = {"__builtins__": {}, "_get": _get, "_item": _item, **FUNCTIONS, **CONSTANTS}


def evaluate(text: str, env: Mapping[str, Any]) -> Any:
    """Value of an expression under `env`; raises `Unknown` where a fact is missing."""
    try:
        code, loops = compile_expr(text)
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


def check(rule: Rule, env: Mapping[str, Any]) -> Violation | None:
    """The violation of one rule, or None where it holds or cannot be decided statically."""
    try:
        if rule.when and not evaluate(rule.when, env):
            return None
        if evaluate(rule.expr, env):
            return None
    except Unknown:
        return None
    message, expected, got = explain(rule.expr, env)
    return Violation(rule, rule.msg or message, expected, got)


def names_in(text: str) -> set[str]:
    """Operand and attribute names an expression refers to."""
    tree = ast.parse(text, mode="eval")
    bound = {
        n.id for c in ast.walk(tree) if isinstance(c, ast.comprehension)
        for n in ast.walk(c.target) if isinstance(n, ast.Name)
    }  # fmt: skip
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return used - bound - set(FUNCTIONS) - set(CONSTANTS)


_NAMED_FACT = re.compile(r"\.([a-z_]+)")


def facts_in(text: str) -> set[str]:
    """Fact names (`dtype`, `v_row`, ...) an expression refers to."""
    found = set(_NAMED_FACT.findall(text))
    if "valid_eq" in text or "valid_le" in text:
        found |= {"v_row", "v_col"}
    return found


def explain(text: str, env: Mapping[str, Any]) -> tuple[str, str, str]:
    """(message, expected, got) for a violated expression."""
    node = ast.parse(text, mode="eval").body
    got = ", ".join(_values(node, env))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "valid_eq":
        a, b = (ast.unparse(x) for x in node.args)
        return f"expects {a} and {b} to have the same valid_shape", "equal valid shapes", got
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(left, ast.Attribute):
            who, noun = ast.unparse(left.value), FACTS[left.attr]
            if isinstance(right, ast.Attribute) and right.attr == left.attr and isinstance(op, ast.Eq):
                other = ast.unparse(right.value)
                return f"expects {who} and {other} to have the same {noun}", f"the same {noun}", got
            listed = choices(right)
            if listed and isinstance(op, ast.Eq | ast.In):
                wanted = "/".join(listed)
                if left.attr == "loc":
                    return f"expects {who} to be in the {wanted} address space", wanted, got
                if left.attr in ("blayout", "slayout", "layout"):
                    return f"expects {who} to use the {wanted} {noun}", wanted, got
                return f"expects {_noun(who, left.attr)} to be {wanted}", wanted, got
            if listed and isinstance(op, ast.NotEq | ast.NotIn):
                unwanted = "/".join(listed)
                return f"expects {_noun(who, left.attr)} not to be {unwanted}", f"not {unwanted}", got
    shown = _spelled(text)
    return f"expects {shown}", shown, got


_FACT = re.compile(r"\b([A-Za-z_]\w*(?:\[-?\d+\])?)\.([a-z_]+)\b")


def _spelled(text: str) -> str:
    """An expression with its facts in words: `valid_row.const <= t.rows` is `valid_row <= t rows`."""

    def words(m: re.Match[str]) -> str:
        return m[1] if m[2] == "const" else _noun(m[1], m[2])

    return _FACT.sub(words, text)


def _noun(who: str, fact: str) -> str:
    noun = FACTS.get(fact, fact)
    return noun if noun.startswith(f"{who} ") else f"{who} {noun}"


def choices(node: ast.expr) -> list[str]:
    """The constants an expression lists, as text; empty if it is anything else."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    out: list[str] = []
    for part in parts:
        if isinstance(part, ast.Constant):
            out.append(str(part.value))
        elif isinstance(part, ast.Name) and part.id in CONSTANTS:
            out.append(str(CONSTANTS[part.id]))
        else:
            return []
    return out


def _values(node: ast.AST, env: Mapping[str, Any]) -> list[str]:
    seen: dict[str, None] = {}
    for sub in ast.walk(node):
        if isinstance(sub, ast.Attribute) or (
            isinstance(sub, ast.Name) and sub.id in env and not _is_operand(env[sub.id])
        ):
            shown = ast.unparse(sub)
            try:
                value = evaluate(shown, env)
            except (Unknown, SyntaxError, NameError):
                continue
            seen[f"{_spelled(shown)} = {_show(value)}"] = None
        elif (
            isinstance(sub, ast.Call) and isinstance(sub.func, ast.Name) and sub.func.id.startswith("valid_")
        ):
            for arg in sub.args:
                obj: Any = env.get(ast.unparse(arg))
                if obj is not None and hasattr(obj, "v_row"):
                    dims = "x".join("?" if d is None else str(d) for d in (obj.v_row, obj.v_col))
                    seen[f"{ast.unparse(arg)} valid = {dims}"] = None
    return list(seen)


def _is_operand(value: Any) -> bool:
    return value is None or hasattr(value, "kind")


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(str(v) for v in value)  # type: ignore[reportUnknownVariableType]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
