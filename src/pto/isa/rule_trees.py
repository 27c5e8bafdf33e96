"""Rules as syntax trees: what an expression may hold, what it names, and its message in words.

Apart from `rules`, because the assembler needs none of it to find that a program is legal.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .rules import CONSTANTS, FACTS, FUNCTIONS, Unknown, evaluate


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


@cache
def names_in(text: str) -> frozenset[str]:
    """Operand and attribute names an expression refers to."""
    tree = ast.parse(text, mode="eval")
    bound = {
        n.id for c in ast.walk(tree) if isinstance(c, ast.comprehension)
        for n in ast.walk(c.target) if isinstance(n, ast.Name)
    }  # fmt: skip
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset(used - bound - set(FUNCTIONS) - set(CONSTANTS))


#: A rule that asks for an operand or attribute, or for none; one that asks for a layout.
ASKS, LAYOUT = re.compile(r"(not )?has\((\w+)\)$"), re.compile(r"\w+\.layout == (\w+)$")


def explain(text: str, env: Mapping[str, Any]) -> tuple[str, str, str]:
    """(message, expected, got) for a violated expression."""
    node = _tree(text)
    got = ", ".join(dict.fromkeys(_values(text, env)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "valid_eq":
        a, b = (ast.unparse(x) for x in node.args)
        return f"expects {a} and {b} to have the same valid_shape", "equal valid shapes", got
    asked = ASKS.match(text)
    if asked is not None:
        there, absent = asked[2], f"no {asked[2]}"
        return (f"expects {absent}", absent, there) if asked[1] else (f"expects {there}", there, absent)
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


def _values(text: str, env: Mapping[str, Any]) -> Iterator[str]:
    """What the parts of an expression are under `env`, in words."""
    for kind, shown, spelled in _parts(text):
        if kind == "valid":
            obj: Any = env.get(shown)
            if obj is not None and hasattr(obj, "v_row"):
                dims = "x".join("?" if d is None else str(d) for d in (obj.v_row, obj.v_col))
                yield f"{shown} valid = {dims}"
        elif kind == "fact" or (shown in env and not _is_operand(env[shown])):
            try:
                yield f"{spelled} = {_show(evaluate(shown, env))}"
            except (Unknown, SyntaxError, NameError):
                continue


@cache
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@cache
def _parts(text: str) -> list[tuple[str, str, str]]:
    """The facts and names of an expression and the operands whose valid regions it compares, each as
    (kind, text, words)."""
    found: list[tuple[str, str, str]] = []
    for sub in ast.walk(_tree(text)):
        match sub:
            case ast.Attribute() | ast.Name():
                shown = ast.unparse(sub)
                found.append(("fact" if isinstance(sub, ast.Attribute) else "name", shown, _spelled(shown)))
            case ast.Call(ast.Name("valid_eq" | "valid_le"), args):
                found += [("valid", ast.unparse(arg), "") for arg in args]
            case _:
                pass
    return found


def _is_operand(value: Any) -> bool:
    return value is None or hasattr(value, "kind")


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(str(v) for v in value)  # type: ignore[reportUnknownVariableType]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
