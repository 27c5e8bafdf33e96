"""Loops. A loop carries the names that its body may read before setting them; its results are the names that
it sets and that are read later."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...diag import Diagnostic
from ..control import ControlRegion, Loop, While
from ..dtypes import INDEX
from ..ir import IN, Block, Op, ScalarType, Value, index, is_memory, is_scalar, is_shaped, scalar_type
from ..operators.core import OPERATORS
from ..problems import MERGE, SYNTAX, TYPE, Problem, fail
from ..types import UNSET
from . import liveness
from .body import read_body, stays
from .carry import (
    agree,
    carries,
    dims_in,
    held,
    inside,
    is_task,
    mismatch,
    set_at,
    shown,
    substitute,
    type_of,
    typed,
    written_into,
)
from .expressions import condition, value_of
from .frame import POISON, Frame, Unbound
from .jumps import JUMPS, Jumps, Structured, assign, placed
from .regions import region_loop
from .yields import is_yield, yield_names, yield_target


def read_for(f: Frame, node: ast.For) -> None:
    stays(f, node.body)
    if node.orelse:
        fail(SYNTAX, "unsupported else of a loop", f.span(node.orelse[0]))
    over = value_of(f, node.iter)
    if isinstance(over, range):
        over = Loop("range", over.start, over.stop, over.step)
    if isinstance(over, While):
        _while_form(f, node, over)
        return
    if isinstance(over, ControlRegion):
        region_loop(f, node, over)
        return
    if not isinstance(over, Loop):
        known = not isinstance(over, Value) and hasattr(over, "__iter__")
        fail(SYNTAX, "expected pl.range or another loop of the language", f.span(node.iter),
             got=type(over).__name__ if known else shown(over),
             help="for i in pl.unroll(len(values)), and values[i]" if known
             else "for i in pl.range(x.shape[0]), and x[i]" if is_shaped(over) else "")  # fmt: skip
    for bound in (over.start, over.stop, over.step):
        if not is_scalar(bound) or not getattr(scalar_type(bound), "is_int", False):
            fail(TYPE, "expected integers as the bounds of a loop", f.span(node.iter), got=shown(bound))
    explicit = over.init_values is not None
    if not isinstance(over.step, Value) and over.step == 0 and f.unit.exact is None:
        fail(TYPE, "expected a step other than 0", f.span(node.iter))
    jumps = Jumps(node.body)
    if jumps.first is not None:
        if over.kind != "range":
            fail(SYNTAX, f"unsupported jump in pl.{over.kind}", f.span(jumps.first), help=JUMPS)
        if explicit:
            _jumping(f, node, *_loop_names(f, node.target, True), over)
            return
        plain = _without_jumps(f, node, over, jumps)
        if isinstance(plain, ast.While):
            read_while(f, plain)
            return
        node = plain
    if over.kind == "unroll" or (
        f.is_host and f.unit.exact is None and not explicit and None not in map(index.known, over.bounds)
    ):
        _unrolled(f, node, over)
        return
    name, inner = _loop_names(f, node.target, explicit)
    carried = _explicit(f, node, inner, over.init_values or ()) if explicit else _carried(f, node.body)
    bounds = {
        "start": f.build.as_index(over.start),
        "stop": f.build.as_index(over.stop),
        "step": f.build.as_index(over.step),
    }
    op = Op(
        "for", {"kind": over.kind, **bounds, "init_values": [], "stage": over.stage}, [], f.span(node.iter)
    )
    block = op.add_block([(ScalarType(INDEX), name)])
    _loop_body(f, node, op, block, carried, explicit, lambda: f.names.__setitem__(name, block.args[0]))


def _jumping(f: Frame, node: ast.For, counter: str, names: list[str], over: Loop) -> None:
    """Read a loop with init_values and jumps as a loop that carries names implicitly: a jump hands on their
    current values."""
    over = over.replace(init_values=tuple(v for _, v in _explicit(f, node, names, over.init_values or ())))
    body, after = _named(f, node, names, over.init_values or ())
    f.names[_BOUNDS] = over.replace(init_values=None)
    target = ast.Name(counter, ast.Store())
    with _read_later(f, names):
        read_for(f, placed(ast.For(target, ast.Name(_BOUNDS, ast.Load()), body, []), node))
    read_body(f, after, f.live)


_BOUNDS = "bounds "  # not a valid name of a program


@contextmanager
def _read_later(f: Frame, names: Sequence[str]) -> Iterator[None]:
    before, f.live = f.live, f.live | {*names}
    try:
        yield
    finally:
        f.live = before


def _named(
    f: Frame, node: ast.For, names: list[str], values: Sequence[object]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the body of a loop whose names are set, with an assignment of the yielded values; and the
    assignments of its results after the loop."""
    last = node.body[-1]
    call, target = getattr(last, "value", None), yield_target(node.body)
    if not isinstance(call, ast.Call) or not is_yield(call) or (names and target is None):
        fail(SYNTAX, "missing pl.yield_ at the end of a loop with init_values", f.span(node))
    f.names.update(zip(names, values, strict=True))
    stores: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
    together: ast.expr = ast.Tuple(stores, ast.Store())
    hands = [ast.Assign([together], ast.Tuple(call.args, ast.Load()))] if names else []
    results = target.elts if isinstance(target, ast.Tuple) else [target] if target is not None else []
    after = [
        assign(r.id, ast.Name(n, ast.Load()), last)
        for r, n in zip(results, names, strict=False)
        if isinstance(r, ast.Name) and r.id != n
    ]
    return [*node.body[:-1], *(placed(h, last) for h in hands)], [*after]


def _without_jumps(f: Frame, node: ast.For, over: Loop, jumps: Jumps) -> ast.For | ast.While:
    """Return a loop without jumps: a counting loop for `continue`, a while loop for `break`."""
    f.unit.loops += 1
    number = f.unit.loops
    left, skipped = f"left_{number}_", f"skipped_{number}_"
    body = Structured(left, skipped).body(node.body, jumps)
    if not jumps.breaks:
        return ast.copy_location(ast.For(node.target, node.iter, body, []), node)
    step = index.known(over.step)
    if step is None or not isinstance(node.target, ast.Name):
        fail(SYNTAX, "expected a constant step and one name in a loop with break", f.span(node.iter))
    at, stop = f"{node.target.id}_{number}_", f"stop_{number}_"
    f.names[left], f.names[at], f.names[stop] = (
        False,
        f.build.as_index(over.start),
        f.build.as_index(over.stop),
    )

    def name(which: str) -> ast.Name:
        return ast.Name(which, ast.Load())

    more = ast.Compare(name(at), [ast.Lt() if step > 0 else ast.Gt()], [name(stop)])
    test = ast.BoolOp(ast.And(), [more, ast.UnaryOp(ast.Not(), name(left))])
    body = [
        assign(node.target.id, name(at), node.target),
        *body,
        assign(at, ast.BinOp(name(at), ast.Add(), ast.Constant(step)), node.iter),
    ]
    return placed(ast.While(test, body, []), node.iter)


def _loop_names(f: Frame, target: ast.expr, explicit: bool) -> tuple[str, list[str]]:
    """Return the name of the counter, and those of carried values."""
    if isinstance(target, ast.Name) and not explicit:
        return target.id, []
    if explicit and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        counter, inner = target.elts
        if isinstance(counter, ast.Name) and isinstance(inner, ast.Tuple | ast.Name):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if all(isinstance(p, ast.Name) for p in parts):
                return counter.id, [p.id for p in parts if isinstance(p, ast.Name)]
    wanted = "for i, (a, b) in pl.range(n, init_values=(x, y))" if explicit else "for i in pl.range(n)"
    fail(SYNTAX, "unexpected target of a loop", f.span(target), expected=wanted)


def _carried(f: Frame, body: list[ast.stmt]) -> list[tuple[str, Any]]:
    """Return names with their values before the loop that the body sets and that are read in the next
    iteration."""
    sets, needs = liveness.assigned(body), liveness.exposed(body)
    return [
        (n, f.names[n]) for n in sets if n in f.names and (n in needs or n in f.live) and carries(f.names[n])
    ]


def _explicit(
    f: Frame, node: ast.For, names: list[str], values: Sequence[object]
) -> list[tuple[str, object]]:
    """Return the names of a loop with their `init_values`."""
    if len(names) != len(values):
        fail(
            SYNTAX,
            f"expected {len(values)} names for the initial values",
            f.span(node.target),
            got=f"{len(names)} names",
        )
    for name, value in zip(names, values, strict=True):
        if not carries(value) and value is not UNSET:
            fail(TYPE, f"cannot carry this value as '{name}'", f.span(node.iter), got=shown(value),
                 expected="a number, a tile or a tensor")  # fmt: skip
    return list(zip(names, values, strict=True))


def _joined(f: Frame, op: Op, block: Block, arg: Value, init: object, now: object) -> Any:
    """Return the task that a parallel loop hands on. Its iterations do not wait for each other: each begins
    with the initial value of the loop, and a wait for the result waits for all iterations.
    """
    if op.args.get("kind") != "parallel" or not is_task(arg.type) or f.unit.exact is not None:
        return now  # a printed program already has the operation
    substitute(block, arg, init)
    with f.build.into(block):
        return OPERATORS["system.task_dummy"].function(f.build, [arg, init if now is arg else now])


def _loop_body(
    f: Frame, node: ast.For | ast.While, op: Op, block: Block, carried: list[tuple[str, Any]], explicit: bool,
    begin: Callable[[], None],
) -> None:  # fmt: skip
    """Read a body with its arguments, then decide its results. If a name is a window of a tensor before the
    loop and a value after an iteration, read the body again with the window loaded."""
    before, told = dict(f.names), len(f.unit.diagnostics)
    given, read = list(block.args), list(block.ops)
    handed: set[str] = set()  # memory that an exact text hands on
    for _ in range(2 * len(carried) + 1):  # a change of one name may change another
        try:
            _loop_body_once(f, node, op, block, carried, explicit, begin, handed)
            return
        except _WindowNames as windows:
            handed.update(windows.moved)
            f.names.clear()
            f.names.update(before)
            del f.unit.diagnostics[told:]
            block.args[:], block.ops[:] = given, read
            carried = [(n, held(f, f.build.block, v) if n in windows.names else v) for n, v in carried]


class _WindowNames(Exception):
    """Raised for names that are windows of tensors before a loop, and values after an iteration."""

    def __init__(self, names: list[str], moved: list[str]) -> None:
        self.names = names
        self.moved = moved  # of an exact text: names that refer to other memory


def _loop_body_once(
    f: Frame, node: ast.For | ast.While, op: Op, block: Block, carried: list[tuple[str, object]],
    explicit: bool, begin: Callable[[], None], handed: set[str],
) -> None:  # fmt: skip
    before = dict(f.names)
    stays_put = f.build.in_core and not (explicit and f.unit.exact is not None)
    args: list[tuple[str, Any, Value | None]] = []
    unset: list[Value] = []
    for name, value in carried:
        if value is UNSET:
            f.names[name] = Unbound("is first set in the loop", f.span(node))
            unset.append(block.add_arg(ScalarType(INDEX), name))
            args.append((name, None, unset[-1]))
        elif stays_put and name not in handed and isinstance(value, Value) and is_memory(value):
            f.names[name] = value  # memory is not carried
            args.append((name, value, None))
        else:
            arg = block.add_arg(type_of(f, value), name)
            arg.begins = value if isinstance(value, Value) else None
            f.names[name] = arg
            args.append((name, value, arg))
    begin()
    needs = liveness.exposed(node.body)
    with f.build.into(block):
        read_body(f, node.body, f.live | needs)
    yielded = f.names.pop("yield ", None) if explicit else None
    if explicit and yielded is None and all(n in f.names for n in yield_names(node.body)):
        yielded = [f.names[n] for n in yield_names(node.body)] or None
    if explicit and yielded is None and carried and f.unit.exact is not None:
        yielded = [value if arg is None else arg for _, value, arg in args]  # hand on the current values
    if explicit and yielded is None and carried:
        fail(SYNTAX, "missing pl.yield_ at the end of a loop with init_values", f.span(node))
    moved = _moved(f, args) if f.unit.exact is not None and not explicit else []
    windows = [n for n in _changed_windows(f, args, yielded) if n not in moved]
    if windows or moved:
        raise _WindowNames(windows, moved)
    results: list[tuple[list[str], Value | None]] = []  # names after the loop
    inits: list[object] = []
    outs: list[object] = []
    kept: list[Value] = block.args[: len(block.args) - sum(a is not None for _, _, a in args)]
    for i, (name, value, arg) in enumerate(args):
        now = (yielded[i] if i < len(yielded) else POISON) if yielded is not None else f.names.get(name)
        if now is POISON or isinstance(now, Unbound):
            f.names[name] = POISON
            continue
        if arg is None:
            if now is not value and is_shaped(now):
                _not_the_same_memory(f, node, name)
            f.names[name] = value
            continue
        if value is None and arg not in unset and isinstance(now, Value) and not is_task(now.type):
            continue  # it had no value before
        if now is arg and f.unit.exact is None:  # unchanged
            substitute(block, arg, value)
            f.names[name] = value
            continue
        if arg in unset:
            arg.type = type_of(f, now)
        agree(f, node, name, arg, now)
        inits.append(value)
        now = _joined(f, op, block, arg, value, now)
        outs.append(typed(f, block, now, arg.type))
        kept.append(arg)
        results.append(([name], arg))
    fresh = [] if explicit else _fresh(f, node, before, args)
    for name, now in fresh:
        kept_type = now.type
        if any(inside(v, block) for v in dims_in(kept_type)):
            f.names[name] = Unbound("is a tile whose extent depends on the loop", f.span(node))
            continue
        inits.append(None)
        arg = block.add_arg(kept_type, name)
        outs.append(_joined(f, op, block, arg, None, now))
        kept.append(arg)
        results.append(([name], arg))
    block.args = kept
    for i, arg in enumerate(block.args):
        arg.index = i
    with f.build.into(block):
        f.build.append("yield", [], {"values": outs})
    op.args["init_values"] = inits
    op.results = [
        Value(arg.type, names[0], op, i) for i, (names, arg) in enumerate(results) if arg is not None
    ]
    f.build.block.append(op)
    changed = {names[0]: op.results[i] for i, (names, _) in enumerate(results)}
    _after_loop(f, node, before, changed, explicit, args, yielded)


def _moved(f: Frame, args: list[tuple[str, Any, Value | None]]) -> list[str]:
    """Return names of memory that refer to other tensors of the same type after an iteration."""
    return [
        name
        for name, value, arg in args
        if arg is None and is_shaped(now := f.names.get(name)) and now is not value
        and value is not None and not mismatch(value.type, now)
    ]  # fmt: skip


def _changed_windows(
    f: Frame, args: list[tuple[str, Any, Value | None]], yielded: Sequence[object] | None
) -> list[str]:
    """Return names that were windows of memory and are values now, except outputs, which are written in
    place."""
    found: list[str] = []
    outputs = [p.value for p in f.function.params if p.direction != IN]
    for i, (name, value, arg) in enumerate(args):
        now = f.names.get(name) if yielded is None else yielded[i] if i < len(yielded) else None
        if arg is not None or value is None or now is value or not isinstance(now, Value) or value in outputs:
            continue
        if is_shaped(now) and not is_memory(now):
            if all(index.known(d) is not None for d in value.type.shape):
                found.append(name)
    return found


def _after_loop(
    f: Frame, node: ast.For | ast.While, before: Mapping[str, object], changed: dict[str, Value],
    explicit: bool, args: list[tuple[str, object, Value | None]], yielded: Sequence[object] | None,
) -> None:  # fmt: skip
    """Set the names after a loop: its results; other names that it sets cannot be read."""
    inside = dict(f.names)
    f.names.clear()
    f.names.update(before)
    f.names.update(changed)
    if explicit:
        names = yield_names(node.body)
        for i, (name, value, arg) in enumerate(args):
            result = changed.get(name, inside.get(name, value) if arg is None else value)
            f.names.pop(name, None)
            if name in before:
                f.names[name] = before[name]
            if i < len(names):
                f.names[names[i]] = result
    for name in liveness.assigned(node.body):
        if name in changed or name in f.names:
            continue
        value = inside.get(name)
        if value is POISON or isinstance(value, Unbound):
            f.names[name] = value
        elif isinstance(value, Value) and is_memory(value):
            f.names[name] = value
        elif not (explicit and name in f.names):
            f.names[name] = Unbound("is set only in the loop", f.span(node))


def _fresh(
    f: Frame,
    node: ast.For | ast.While,
    before: Mapping[str, object],
    args: list[tuple[str, object, Value | None]],
) -> list[tuple[str, Value]]:
    """Return names that have no value before a loop and are read after it, with their values in the last
    iteration.
    """
    carried = {name for name, value, _ in args if value is not None or _is_task_now(f.names.get(name))}
    found: list[tuple[str, Value]] = []
    for name in liveness.assigned(node.body):
        value = f.names.get(name)
        if name in carried or name not in f.live or not isinstance(value, Value):
            continue
        if is_memory(value) or value is before.get(name):
            continue
        found.append((name, value))
    return found


def _is_task_now(value: object) -> bool:
    return value is None or (isinstance(value, Value) and is_task(value.type))


def _not_the_same_memory(f: Frame, node: ast.AST, name: str) -> None:
    f.unit.report(Problem(Diagnostic(
        MERGE, f"cannot carry '{name}': another tensor after an iteration", set_at(f, node, name),
        help=written_into(name),
    )))  # fmt: skip


def _unrolled(f: Frame, node: ast.For, over: Loop) -> None:
    bounds = [index.known(b) for b in over.bounds]
    if any(b is None for b in bounds) or not isinstance(node.target, ast.Name):
        fail(SYNTAX, "expected constant bounds and one name in pl.unroll", f.span(node.iter))
    body_needs = liveness.exposed(node.body)
    for i in range(*[b for b in bounds if b is not None]):
        f.names[node.target.id] = i
        read_body(f, node.body, f.live | body_needs)


def read_while(f: Frame, node: ast.While) -> None:
    stays(f, node.body)
    if node.orelse:
        fail(SYNTAX, "unsupported else of a loop", f.span(node.orelse[0]))
    jumps = Jumps(node.body)
    if jumps.first is not None:
        f.unit.loops += 1
        left, skipped = f"left_{f.unit.loops}_", f"skipped_{f.unit.loops}_"
        body = Structured(left, skipped).body(node.body, jumps)
        test = node.test
        if jumps.breaks:
            f.names[left] = False
            test = ast.BoolOp(ast.And(), [test, ast.UnaryOp(ast.Not(), ast.Name(left, ast.Load()))])
        node = placed(ast.While(test, body, []), node.test)
    carried = _carried(f, [*node.body])
    needs = liveness.read([node.test])
    known = dict(carried)
    carried += [
        (n, f.names[n])
        for n in liveness.assigned(node.body)
        if n in needs and n in f.names and n not in known and carries(f.names[n])
    ]
    op = Op("while", {"init_values": []}, [], f.span(node.test))
    test, body = op.add_block(), op.add_block()
    _loop_body(f, node, op, body, carried, False, lambda: None)
    outer = dict(f.names)
    for arg in body.args:
        f.names[arg.name] = test.add_arg(arg.type, arg.name)
    with f.build.into(test):
        f.build.append("yield", [], {"values": [condition(f, node.test)]})
    f.names.clear()
    f.names.update(outer)


def _while_form(f: Frame, node: ast.For, over: While) -> None:
    """Read `for (x,) in pl.while_(init_values=(x0,)):`, which starts with `pl.cond(..)`, as a `while`."""
    at = next((i for i, part in enumerate(node.body) if _is_cond(part)), None)
    if at is None:
        fail(SYNTAX, "expected pl.cond(..) as the first statement of pl.while_", f.span(node))
    call = node.body[at].value  # type: ignore[attr-defined]
    parts = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    names = [p.id for p in parts if isinstance(p, ast.Name)]
    if at == 0 and Jumps(node.body).first is not None:
        values = [v for _, v in _explicit(f, node, names, over.init_values)]
        body, after = _named(f, node, names, values)
        with _read_later(f, names):
            read_while(f, placed(ast.While(call.args[0], body[1:], []), node))
        read_body(f, after, f.live)
        return
    carried = _explicit(f, node, names, over.init_values)
    op = Op("while", {"init_values": []}, [], f.span(node.iter))
    test, body = op.add_block(), op.add_block()
    rest = ast.copy_location(ast.For(node.target, node.iter, node.body[at + 1 :], []), node)
    _loop_body(f, rest, op, body, carried, True, lambda: None)
    outer = dict(f.names)
    for arg in body.args:
        f.names[arg.name] = test.add_arg(arg.type, arg.name)
    with f.build.into(test):
        read_body(f, node.body[:at], liveness.read([call]))
        f.build.append("yield", [], {"values": [condition(f, call.args[0])]})
    f.names.clear()
    f.names.update(outer)


def _is_cond(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and len(call.args) == 1
        and ast.unparse(call.func).rpartition(".")[2] == "cond"
    )
