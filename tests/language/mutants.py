"""Wrong programs: random programs with expressions and statements replaced by others."""

from __future__ import annotations

import ast
from random import Random
from typing import Any

EXPRESSIONS = """
None | 1 | -1 | 0 | 2.5 | 'x' | True | [] | () | [1, 2] | a | r | pl | pl.add | pl.load(a, [0, 0], [8, 64]) | pl.nothing
lambda x: x | (x := 1) | [i for i in range(3)] | [i for i in a] | {1: 2} | {a: 1} | {1} | a.shape | a.shape[0] | a.dtype
a[0] | a[0, 0] | a[:, None] | a[...] | a[0:8] | a[::2] | a['x'] | a[9, 9, 9] | not a | -a | a < b | 1 < r < 3 | r if r else 1
f'{a}' | a @ b | a and b | r and 1 | pl.FP32 | pl.Tile[[8, 8], pl.FP32] | pl.range(3) | pl.at() | abs(a) | min(a, 1) | len(a)
print | open('x') | 1 // 0 | r // 0 | 10 ** 40 | a + 'x' | pl.exp(1) | pl.exp() | pl.exp(a, a, a) | pl.create_tile([8, r], pl.FP32)
pl.full([8, 64], pl.FP32, a) | pl.cast(a, 'x') | pl.cast(r, pl.FP32) | pl.cast(a, pl.INT8) | pl.slice(a, [8], [0]) | mixed(a)
pl.reshape(a, [3, 3]) | pl.reshape(a, 3) | pl.load(a, 0, [8, 64]) | pl.load(a, [r, 0], [8, 64], valid_shape=[r]) | pl.UNSET
pl.const('x', pl.INT32) | pl.const(1, 2) | pl.const(2.5, pl.INT32) | pl.read(a, [0, 0]) | pl.read(a, 'x') | mixed(a, a)[0]
pl.matmul(a, a) | pl.matmul(1, 2) | pl.row_sum(a) | pl.min(a, 1) | pl.dim(a, 7) | pl.dim(a, 0) | pl.get_block_idx() | __import__('os')
pl.load(*a) | pl.load(**{1: 2}) | pl.load(a, **{'x': 1}) | range(3) | range(a) | pl.submit(mixed, a, a) | pl.submit() | kernel(a, b, c, d)
pl.set_validshape(a, 1, 2) | pl.transpose(a, 0, 1) | pl.write(a, [0, 0], a) | pl.spmd(2) | pl.dynamic('Q') | Ellipsis | a.T | b''
"""
STATEMENTS = r"""
pass | break | continue | return | return a | return a, 1 | raise ValueError | assert a | del a | global zz | import os | x: int = 1
from os import path | a += 1 | r += 1 | a[0] = 1 | a[:] = 1 | a[:] = b | a.b = 1 | (x, y) = a | x, *y = a | x = y = a | yield a | x = yield
pl.yield_(a) | x = pl.yield_(1, 2) | pl.cond(a) | pl.cond(r) | pl.static_assert(a) | pl.func_attr(1) | x: pl.Scalar[pl.INT32] = 1 | x: 3 = 1
try:\n x = 1\nexcept: pass | class X: pass | def g(): pass | async def g(): pass | with open('x'): pass | with pl.at(): pass
with pl.at() as t: pass | with pl.at(), pl.at(): pass | for x in a: pass | while a: pass | while True: pass | while r < 3: pass
for x in pl.range(a): pass | for x in pl.range(3, init_values=(a,)): pass | for x, (y,) in pl.range(3, init_values=(a,)): z = pl.yield_(y)
for x, (y,) in pl.range(3, init_values=(1, 2)): z = pl.yield_(y) | for x in pl.unroll(r): pass | for x in pl.unroll(2): break
for x in pl.range(3):\n if x == 1: break\nelse: pass | match a:\n case 1: pass | with pl.spmd(2) as t: pass | if a: x = 1 | if r: x = 1
if r:\n x = 1\nelse:\n x = a | if r:\n x = a\nelse:\n x = pl.exp(a) | for x in pl.spmd(a): pass | for x in pl.range(3, 0, r): break
for (y,) in pl.while_(init_values=(1,)): pass | for (y,) in pl.while_(init_values=(1,)):\n pl.cond(y < 3)\n z = pl.yield_(a) | pl = 1 | a = 1
while r < 3:\n r = r + a | while True:\n x = 1\n continue | for x in pl.range(0): y = a | pl.store(a, [0, 0], b) | pl.store(1, 2, 3) | nonlocal a
lambda: 0 | print(a) | print(nothing) | pl.range(3) | pl.at | self.f(a) | a[0, 0] = r | c[0:8] = pl.exp(a) | n = 'x' | r = 2.5 | n = a | a, b = b, a
"""


def _pool(text: str) -> list[str]:
    return [p.strip().replace("\\n", "\n") for line in text.strip().splitlines() for p in line.split(" | ")]


_EXPRESSIONS, _STATEMENTS = _pool(EXPRESSIONS), _pool(STATEMENTS)


def mutant(text: str, r: Random) -> str:
    """The text of a module whose last function was changed here and there."""
    tree = ast.parse(text)
    function: Any = tree.body[-1]
    for _ in range(r.randint(1, 3)):
        bodies = [n for n in ast.walk(function) if isinstance(getattr(n, "body", None), list)]
        body: list[Any] = r.choice(bodies).body
        kind = r.choice(["expression", "expression", "statement", "delete", "twice", "argument"])
        if kind == "statement":
            made: Any = ast.parse(_wrapped(r.choice(_STATEMENTS))).body[0]
            body.insert(r.randint(0, len(body)), made.body[0])
        elif kind == "delete" and len(body) > 1:
            body.pop(r.randrange(len(body)))
        elif kind == "twice":
            body.insert(0, r.choice(body))
        else:
            _expression(function, kind, r)
    return ast.unparse(ast.fix_missing_locations(tree))


def _wrapped(statement: str) -> str:
    return "async def f():\n" + "\n".join(f"    {line}" for line in statement.splitlines())


def _expression(function: ast.AST, kind: str, r: Random) -> None:
    if kind == "argument":
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
        call = r.choice(calls) if calls else None
        if call is not None and call.args and r.random() < 0.5:
            call.args.pop(r.randrange(len(call.args)))
        elif call is not None:
            call.keywords.append(ast.keyword(r.choice(["x", "mode", "shape"]), ast.Constant(1)))
        return
    places = [(n, name, i) for n in ast.walk(function) if not isinstance(n, ast.arguments | ast.arg)
              for name, value in ast.iter_fields(n) if name not in ("decorator_list", "returns", "target", "targets")
              for i, v in (enumerate(value) if isinstance(value, list) else [(-1, value)])
              if isinstance(v, ast.expr) and isinstance(getattr(v, "ctx", ast.Load()), ast.Load)]  # fmt: skip
    node, name, i = r.choice(places)
    made = ast.parse(f"({r.choice(_EXPRESSIONS)})", mode="eval").body
    if i < 0:
        setattr(node, name, made)
    else:
        getattr(node, name)[i] = made
