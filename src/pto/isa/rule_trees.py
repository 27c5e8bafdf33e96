"""Rules as syntax trees: allowed expressions, their names, and their messages.

This module is separate from `rules`, because the assembler does not need it for legal programs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .rules import CONSTANTS, FACTS, FUNCTIONS, Unknown, evaluate


class _RuleLowering(ast.NodeTransformer):
    """Transformer that replaces `x.fact` by `_get(x, 'fact')`, and refuses everything except plain
    expressions."""

    _allowed = (
        ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add,
        ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
        ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Call, ast.Name, ast.Load,
        ast.Constant, ast.Attribute, ast.Tuple, ast.IfExp, ast.Subscript, ast.keyword, ast.GeneratorExp,
        ast.comprehension, ast.Store,
    )  # fmt: skip

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, self._allowed):
            raise SyntaxError(f"unexpected {type(node).__name__} in a rule")
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
    """Return the expression in its evaluated form; raise `SyntaxError` if it is malformed."""
    return ast.fix_missing_locations(_RuleLowering().visit(ast.parse(text, mode="eval")))


@cache
def names_in(text: str) -> frozenset[str]:
    """Return the operand and attribute names in an expression."""
    tree = ast.parse(text, mode="eval")
    bound = {
        n.id for c in ast.walk(tree) if isinstance(c, ast.comprehension)
        for n in ast.walk(c.target) if isinstance(n, ast.Name)
    }  # fmt: skip
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset(used - bound - set(FUNCTIONS) - set(CONSTANTS))


#: Pattern of a rule that requires or forbids an operand or attribute, and of a rule about a layout.
ASKS, LAYOUT = re.compile(r"(not )?has\((\w+)\)$"), re.compile(r"\w+\.layout == (\w+)$")


def explain(text: str, env: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (message, expected, got) for a violated expression."""
    node = _tree(text)
    got = ", ".join(dict.fromkeys(_values(text, env)))
    clause = _clause(node)
    asked = ASKS.match(text)
    if asked is not None:
        there, absent = asked[2], f"no {asked[2]}"
        return f"expects {clause}", clause, there if asked[1] else absent
    return f"expects {clause}", _expected(node, env) or clause, got


def _expected(node: ast.expr, env: Mapping[str, Any]) -> str:
    """Return the expectation in few words, or an empty text if the message has it."""
    match node:
        case ast.Call(ast.Name("valid_eq")):
            return "equal valid shapes"
        case ast.Compare(ast.Attribute(_, fact), [ast.Eq()], [ast.Attribute(_, other)]) if fact == other:
            return f"the same {FACTS[fact]}"
        case ast.Compare(ast.Attribute(), [op], [right]) if listed := choices(right):
            if isinstance(op, ast.Eq | ast.In):
                return "/".join(listed)
            return f"not {'/'.join(listed)}" if isinstance(op, ast.NotEq | ast.NotIn) else ""
        case ast.Compare(left, [op], [right]) if any(isinstance(n, ast.Call) for n in ast.walk(right)):
            try:  # show the number instead of the formula
                return f"{_term(left)} {_SIGNS[type(op)]} {_show(evaluate(ast.unparse(right), env))}"
            except (Unknown, SyntaxError, NameError, KeyError):
                return ""
        case _:
            return ""


_SIGNS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Add: "+",
    ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%", ast.Pow: "to the power of",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


def _clause(node: ast.expr) -> str:
    """Return a condition as text that follows "expects"."""
    match node:
        case ast.BoolOp(op, parts):
            joint = "and" if isinstance(op, ast.And) else "or"
            said = [f"({_clause(p)})" if isinstance(p, ast.BoolOp) else _clause(p) for p in parts]
            comma = "," * any(f" {word} " in one for word in ("and", "or") for one in said)
            return f"{comma} {joint} ".join(said)
        case ast.Call(ast.Name("has"), [ast.Name(name)]):
            return name
        case ast.UnaryOp(ast.Not(), ast.Call(ast.Name("has"), [ast.Name(name)])):
            return f"no {name}"
        case ast.UnaryOp(ast.Not(), inner):
            return f"not ({_clause(inner)})"
        case ast.Call(ast.Name("valid_eq"), [a, b]):
            return f"{_term(a)} and {_term(b)} to have the same valid_shape"
        case ast.Call(ast.Name("valid_le"), [a, b]):
            return f"the valid region of {_term(a)} not to exceed that of {_term(b)}"
        case ast.Call(ast.Name("all"), [ast.GeneratorExp(each, [ast.comprehension(target, of)])]):
            return f"{_clause(each)} for every {_term(target)} of {_term(of)}"
        case ast.Compare(left, [op], [right]):
            return _comparison(left, op, right)
        case ast.Compare(left, ops, rights):
            return _term(left) + "".join(
                f" {_SIGNS[type(o)]} {_term(r)}" for o, r in zip(ops, rights, strict=True)
            )
        case _:
            return _term(node)


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
    alike, other = isinstance(op, ast.Eq | ast.In), isinstance(op, ast.NotEq | ast.NotIn)
    match left, right:
        case ast.Call(ast.Name("has"), [ast.Name(a)]), ast.Call(ast.Name("has"), [ast.Name(b)]):
            return f"{a} and {b} together or neither" if alike else f"either {a} or {b}"
        case ast.Compare(), ast.Compare() if other:
            return f"either {_clause(left)} or {_clause(right)}"
        case ast.Attribute(a, fact), ast.Attribute(b, same) if fact == same and isinstance(op, ast.Eq):
            return f"{_term(a)} and {_term(b)} to have the same {FACTS[fact]}"
        case ast.Constant(), ast.Tuple(facts) if isinstance(op, ast.In):
            return f"{' or '.join(map(_term, facts))} to be {_term(left)}"
        case ast.Tuple(), ast.Tuple(pairs) if isinstance(op, ast.In | ast.NotIn):
            words = "to" if alike else "not to"
            return f"{_term(left)} {words} be one of {', '.join(map(_term, pairs))}"
        case _:
            pass
    listed = "/".join(choices(right))
    if listed and (alike or other) and _names_a_choice(left, right):
        words = "to" if alike else "not to"
        if isinstance(left, ast.Attribute) and left.attr == "loc" and alike:
            return f"{_term(left.value)} to be in the {listed} address space"
        if isinstance(left, ast.Attribute) and left.attr in ("blayout", "slayout", "layout") and alike:
            return f"{_term(left.value)} to use the {listed} {FACTS[left.attr]}"
        return f"{_term(left)} {words} be {listed}"
    return f"{_term(left)} {_SIGNS[type(op)]} {_term(right)}"


def _names_a_choice(left: ast.expr, right: ast.expr) -> bool:
    """Return True if a fact or an attribute is compared with words or a list. A number compared with a
    formula is not a choice."""
    words = isinstance(right, ast.Tuple) or any(not w.lstrip("-").isdigit() for w in choices(right))
    return isinstance(left, ast.Attribute) or (isinstance(left, ast.Name) and words)


def _term(node: ast.expr) -> str:
    """Return a value as text: `t.rows` is `t rows`, `n.const` is `n`."""
    match node:
        case ast.Attribute(of, "const"):
            return _term(of)
        case ast.Attribute(of, fact):
            return _noun(_term(of), fact)
        case ast.Name(name):
            return str(CONSTANTS.get(name, name))
        case ast.Constant(value):
            return str(value)
        case ast.Subscript(of, index):
            return f"{_term(of)}[{_term(index)}]"
        case ast.Tuple(parts):
            return f"({', '.join(map(_term, parts))})"
        case ast.BinOp(ast.Constant(int(a)), ast.Pow(), ast.Constant(int(b))):
            return str(a**b)
        case ast.BinOp(left, op, right):
            return f"{_factor(left, op)} {_SIGNS[type(op)]} {_factor(right, op, True)}"
        case ast.UnaryOp(ast.USub(), of):
            return f"-{_term(of)}"
        case ast.IfExp(condition, then, otherwise):
            return f"({_term(then)} where {_stated(condition)}, else {_term(otherwise)})"
        case ast.Call(ast.Name("ceil"), [a, b]):
            return f"ceil({_factor(a, ast.Div())} / {_factor(b, ast.Div(), True)})"
        case ast.Call(ast.Name("selected"), [mask, of]):
            return f"what {_term(mask)} selects of {_term(of)}"
        case ast.Call(ast.Name(name), args):
            return f"{name}({', '.join(map(_term, args))})"
        case ast.BoolOp() | ast.Compare():
            return f"({_clause(node)})"
        case _:
            return ast.unparse(node)


def _stated(condition: ast.expr) -> str:
    """Return a condition as a statement; a number holds if it is not 0."""
    if not isinstance(condition, ast.Compare | ast.BoolOp | ast.Call):
        return f"{_term(condition)} != 0"
    said = _clause(condition)
    return said.replace(" not to be ", " is not ").replace(" to be ", " is ").replace(" to use ", " uses ")


def _factor(node: ast.expr, op: ast.operator, right: bool = False) -> str:
    """Return an operand of an operation, in parentheses if its precedence requires them."""
    inner = node.op if isinstance(node, ast.BinOp) else None
    sums = ast.Add | ast.Sub
    loose = inner is not None and (
        (isinstance(inner, sums) and not isinstance(op, sums))
        or (right and isinstance(inner, sums) == isinstance(op, sums) and not isinstance(op, ast.Add))
    )
    return f"({_term(node)})" if loose else _term(node)


def _noun(who: str, fact: str) -> str:
    noun = FACTS.get(fact, fact)
    return noun if noun.startswith(f"{who} ") else f"{who} {noun}"


def choices(node: ast.expr) -> list[str]:
    """Return the constants that an expression lists, as text, or an empty list for any other expression."""
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
    """Yield the values of the parts of an expression under `env`, as text."""
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
    """Return the facts and names of an expression, and the operands whose valid regions it compares, each as
    (kind, text, description)."""
    found: list[tuple[str, str, str]] = []
    for sub in ast.walk(_tree(text)):
        match sub:
            case ast.Attribute() | ast.Name():
                shown = ast.unparse(sub)
                found.append(("fact" if isinstance(sub, ast.Attribute) else "name", shown, _term(sub)))
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
