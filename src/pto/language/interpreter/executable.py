"""Rewrite functions for `interpret` where the semantics of Python differ from those of a program.

- A number that a loop carries, or that an if sets in both branches, has a type from there on, as in the
  program.
- `x: pl.Scalar[pl.INT32] = 5` gives it a type, too.
- After a loop with `init_values`, the names of its `pl.yield_` hold the final values, even after no
  iteration.
- `pl.cond(..)` ends a `pl.while_`; the body of `with pl.spmd(n)` runs once per block.

Functions without any of these run unchanged. Others are compiled again from their tree with the same line
numbers, so that breakpoints, `pdb` and tracebacks work.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Mapping
from typing import Any

from ..declare import Declared
from ..programs.arguments import dynamic_names
from ..reader import liveness
from ..reader.source import file_of
from .current import interpreter

_PREFIX = "__pto_"


def executable(declared: Declared, symbols: Mapping[str, Any]) -> Callable[..., object]:
    """Return the function to call. `symbols` holds the extents of its dynamic names."""
    function = declared.function
    tree = _changed(declared)
    extents = dynamic_names(declared, symbols)
    names = {**_HELPERS, **{n: symbols[v.base] * v.times + v.plus for n, v in extents.items()}}
    if tree is not None:
        return _compiled(declared, tree, names)
    if len(names) == len(_HELPERS):
        return function
    code = function.__code__
    cells = tuple(types.CellType(names[n]) if n in names else c
                  for n, c in zip(code.co_freevars, function.__closure__ or (), strict=True))  # fmt: skip
    return types.FunctionType(code, {**function.__globals__, **names}, function.__name__,
                              function.__defaults__, cells)  # fmt: skip


def _changed(declared: Declared) -> ast.FunctionDef | None:
    """Return the rewritten tree; None if nothing changes."""
    kept = declared.executable
    if kept is None:
        _, node = file_of(declared.function)
        changer = _Changer()
        tree = changer.visit(copy.deepcopy(node))
        kept = declared.executable = (tree if changer.changes else None,)
    return kept[0]


def _compiled(declared: Declared, tree: ast.FunctionDef, names: Mapping[str, object]) -> Callable[..., Any]:
    function = declared.function
    code = function.__code__
    tree = copy.copy(tree)
    tree.decorator_list, tree.returns = [], None
    tree.args = copy.deepcopy(tree.args)
    for arg in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
        arg.annotation = None
    tree.args.defaults = []
    tree.args.kw_defaults = [None for _ in tree.args.kwonlyargs]
    inner = ast.Module([tree], [])
    compiled = compile(ast.fix_missing_locations(inner), code.co_filename, "exec", dont_inherit=True)
    scope: dict[str, Any] = {**function.__globals__, **declared.enclosing}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            pass
    scope.update(names)
    exec(compiled, scope)  # the tree comes from the user's Python file, which has been executed already
    made = scope[tree.name]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


# ---- helpers of rewritten functions ----


def _carried(value: object) -> object:
    return interpreter("a loop").typed(value)


def _merged(test: object, value: object) -> object:
    return interpreter("if").typed(value) if hasattr(test, "dtype") else value


def _not(value: object) -> object:
    from .handles import Truth

    return Truth(not value) if hasattr(value, "dtype") else not value


def _annotated(said: object, value: object) -> object:
    return interpreter("an annotation").annotated(said, value)


def _results() -> object:
    return interpreter("pl.yield_").results()


def _blocks(region: object) -> object:
    return interpreter("pl.spmd").blocks(region)


_HELPERS = {
    f"{_PREFIX}{f.__name__.strip('_')}": f for f in (_carried, _merged, _not, _annotated, _results, _blocks)
}


def _call(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    func = ast.copy_location(ast.Name(f"{_PREFIX}{name}", ast.Load()), at)
    return ast.copy_location(ast.Call(func, list(args), []), at)


def _name(name: str, context: ast.expr_context, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, context), at)


class _Changer(ast.NodeTransformer):
    def __init__(self) -> None:
        self.changes = 0
        self.count = 0
        self.known: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.known = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        node.body = self._body(node.body)
        return node

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            found = self.visit(statement)
            self.known.update(liveness.assigned([statement]))
            out.extend(found if isinstance(found, list) else [found])
        return out

    def _typed(self, names: list[str], at: ast.AST, call: Callable[[ast.expr], ast.expr]) -> list[ast.stmt]:
        """Return `x = helper(x)` for names that may hold a number."""
        self.changes += bool(names)
        made: list[ast.stmt] = []
        for name in names:
            assign = ast.Assign([_name(name, ast.Store(), at)], call(_name(name, ast.Load(), at)))
            missing = ast.ExceptHandler(_name("NameError", ast.Load(), at), None, [ast.Pass()])
            made.append(ast.Try([assign], [missing], [], []))
        for statement in made:
            for part in ast.walk(statement):
                if isinstance(part, ast.stmt | ast.expr | ast.excepthandler) and not hasattr(part, "lineno"):
                    ast.copy_location(part, at)
        return made

    # ---- statements ----

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        self.changes += 1
        value = _call("annotated", node, node.annotation, self.visit(node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            return node
        self.changes += 1
        return _call("not", node, node.operand)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        node.test = self.visit(node.test)
        before = set(self.known)
        node.body = self._body(node.body)
        self.known = set(before)
        node.orelse = self._body(node.orelse)
        self.known = before
        names = _numbers([*node.body, *node.orelse])
        if not names:
            return node
        self.count += 1
        test = f"{_PREFIX}test{self.count}"
        keep = ast.copy_location(ast.Assign([_name(test, ast.Store(), node)], node.test), node)
        node.test = _name(test, ast.Load(), node)
        after = self._typed(names, node, lambda x: _call("merged", node, _name(test, ast.Load(), node), x))
        return [keep, node, *after]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        before = self._typed([n for n in _numbers(node.body) if n in self.known], node,
                             lambda x: _call("carried", node, x))  # fmt: skip
        node.test = self.visit(node.test)
        node.body = self._body(node.body)
        return [*before, node]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        word = _word(node.iter)
        before: list[ast.stmt] = []
        if word != "unroll":
            before = self._typed([n for n in _numbers(node.body) if n in self.known], node,
                                 lambda x: _call("carried", node, x))  # fmt: skip
        node.iter = self.visit(node.iter)
        self.known |= liveness.assigned_names(node.target)
        if word == "while_":
            _conditional(node)
            self.changes += 1
        node.body = self._body(node.body)
        explicit = isinstance(node.iter, ast.Call) and any(k.arg == "init_values" for k in node.iter.keywords)
        if not explicit:
            return [*before, node]
        return [*before, node, *self._after(node)]

    def _after(self, node: ast.For) -> list[ast.stmt]:
        """Assign the names of the yield after the loop."""
        from ..reader.yields import yield_target

        target = yield_target(node.body)
        if target is None:
            return []
        self.changes += 1
        target = copy.deepcopy(target)
        if not isinstance(target, ast.Tuple):
            target = ast.copy_location(ast.Tuple([target], ast.Store()), target)
        return [ast.copy_location(ast.Assign([target], _call("results", node)), node)]

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        node.items = [self.visit(item) for item in node.items]
        node.body = self._body(node.body)
        if len(node.items) != 1 or _word(node.items[0].context_expr) != "spmd":
            return node
        self.changes += 1
        item = node.items[0]
        target = item.optional_vars or _name(f"{_PREFIX}task", ast.Store(), node)
        if item.optional_vars is None:
            over = _call("blocks", node, item.context_expr)
            return ast.copy_location(ast.For(target, over, node.body, []), node)
        # If a predicate does not hold, no block runs, but the task still exists.
        region = _name(f"{_PREFIX}region", ast.Store(), node)
        begin = ast.copy_location(ast.Assign([region], item.context_expr), node)
        nobody = ast.copy_location(ast.Constant(None), node)
        task = ast.copy_location(ast.Assign([copy.deepcopy(target)], nobody), node)
        over = _call("blocks", node, _name(f"{_PREFIX}region", ast.Load(), node))
        return [begin, task, ast.copy_location(ast.For(target, over, node.body, []), node)]


def _word(node: ast.expr) -> str:
    """Return the last part of a called name."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _conditional(node: ast.For) -> None:
    """Turn `pl.cond(..)` into a break if the condition is false."""
    for i, first in enumerate(node.body):
        if isinstance(first, ast.Expr) and _word(first.value) == "cond":
            test = ast.copy_location(ast.UnaryOp(ast.Not(), first.value), first)
            leave: list[ast.stmt] = [ast.copy_location(ast.Break(), first)]
            node.body[i] = ast.copy_location(ast.If(test, leave, []), first)


def _numbers(body: list[ast.stmt]) -> list[str]:
    """Return names that statements may set to a number, except results of operators."""
    found: dict[str, None] = {}
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, ast.Assign):
                for target in part.targets:
                    _pairs(target, part.value, found)
            elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                found[part.target.id] = None
    return [n for n in found if not n.startswith(_PREFIX)]


def _pairs(target: ast.expr, value: ast.expr, found: dict[str, None]) -> None:
    if isinstance(target, ast.Name):
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
            found[target.id] = None
    elif isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for a, b in zip(target.elts, value.elts, strict=True):
                _pairs(a, b, found)
        elif not (isinstance(value, ast.Call) and _word(value) == "yield_"):
            found.update(dict.fromkeys(n.id for n in ast.walk(target) if isinstance(n, ast.Name)))
