"""Statements: assignments, loops, arms and regions, in SSA form from the start.

A loop carries the names that its body may read before it sets them; names that it sets and that are read
later are what it gives. Arms and regions give the names that they set and that are read later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ...diag import Diagnostic
from .. import index
from ..dtypes import BOOL, FP32, INDEX, TASK_ID
from ..forms import Loop, Region, While
from ..ir import (
    ArrayType,
    Block,
    Op,
    ScalarType,
    ShapedType,
    TensorType,
    Type,
    Value,
    is_memory,
    is_scalar,
    is_shaped,
    scalar_type,
)
from ..operators.core import OPERATORS
from ..operators.cube import leaving
from ..operators.memory import in_core
from ..operators.tasks import copy as copy_of_array
from ..operators.tasks import element
from ..problems import MERGE, PLACE, SYNTAX, TYPE, Problem, fail
from ..types import UNSET, annotation, written_type
from . import liveness
from .expressions import binary, exactly, value_of, window
from .frame import POISON, Frame, Quiet, Unbound
from .hoist import raised
from .jumps import Jumps, Structured, assign, placed
from .tasks import task_options


def read_body(f: Frame, statements: Sequence[ast.stmt], live: set[str]) -> None:
    """Read statements after which the names in `live` are needed."""
    after: list[set[str]] = []
    needed = set(live)
    for node in reversed(statements):
        after.append(set(needed))
        needed |= liveness.read([node])
    for node, later in zip(statements, reversed(after), strict=True):
        if f.returned is not None:  # nothing comes after a return
            break
        before, f.live = f.live, later
        try:
            _statement(f, node)
        except Problem as problem:
            f.unit.report(problem)
            _give_up(f, node)
        except Quiet:
            _give_up(f, node)
        finally:
            f.live = before


def _give_up(f: Frame, node: ast.stmt) -> None:
    for name in liveness.assigned([node]):
        f.names[name] = POISON


def _statement(f: Frame, node: ast.stmt) -> None:
    reader = _READERS.get(type(node))
    if reader is None:
        fail(SYNTAX, f"{type(node).__name__} is not in the language", f.span(node))
    f.build.place = f.span(node)
    f.build.said = annotation(value_of(f, node.annotation)) if isinstance(node, ast.AnnAssign) else None
    reader(f, node)


# ---- assignments ----


def _assign(f: Frame, node: ast.Assign) -> None:
    value = _assigned_value(f, node.value, node.targets[0])
    if isinstance(node.value, ast.Name) and isinstance(value, Value) and isinstance(value.type, ArrayType):
        value = copy_of_array(
            f.build, value
        )  # arrays are values: what happens to one is not seen in the other
    for target in node.targets:
        bind(f, target, value)


def _annotated(f: Frame, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    value = _assigned_value(f, node.value, node.target)
    said = annotation(value_of(f, node.annotation))
    if f.unit.exact is not None and said is not None and said.dtype is not None and isinstance(value, Value):
        value.type = written_type(said)
        bind(f, node.target, value)
        return
    if said is not None and said.kind == "scalar" and said.dtype is not None and is_scalar(value):
        if isinstance(value, Value) and value.type.dtype != said.dtype:
            value = OPERATORS["cast"].function(f.build, value, said.dtype)
        elif not isinstance(value, Value) and said.dtype not in (INDEX, FP32, BOOL):
            value = OPERATORS["const"].function(f.build, value, said.dtype)
    if said is not None and is_shaped(value) and said.shape is not None:
        _check_annotation(f, node, value, said)
    bind(f, node.target, value)


def _check_annotation(f: Frame, node: ast.AnnAssign, value: Value, said: Any) -> None:
    wrong = said.dtype is not None and said.dtype != value.type.dtype
    known = [(index.known(a), b) for a, b in zip(value.type.shape, said.shape, strict=False)]
    wrong |= len(said.shape) != value.type.rank or any(
        a is not None and isinstance(b, int) and a != b for a, b in known
    )
    if wrong:
        fail(TYPE, "the value is of another type than it says", f.span(node.annotation), got=value.type)


def bind(f: Frame, target: ast.expr, value: Any) -> None:
    """Give a name, several, or a window of an array what stands to the right."""
    if isinstance(target, ast.Name):
        if isinstance(value, Value) and not value.name:
            value.name = target.id
        f.rebound(target, value)
        f.names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values = list(value) if isinstance(value, tuple | list) else None
        if values is None or len(values) != len(target.elts):
            got = f"{len(values)} values" if values is not None else _shown(value)
            fail(TYPE, f"{len(target.elts)} names", f.span(target), got=got)
        for part, item in zip(target.elts, values, strict=True):
            bind(f, part, item)
    elif isinstance(target, ast.Subscript):
        _write_window(f, target, value)
    else:
        fail(SYNTAX, f"nothing is assigned to {type(target).__name__}", f.span(target))


def _shown(value: Any) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def _write_window(f: Frame, target: ast.Subscript, value: Any) -> None:
    owner = value_of(f, target.value)
    f.build.place = f.span(target)
    if isinstance(owner, Value) and not is_shaped(owner) and hasattr(owner.type, "extent"):
        at = value_of(f, target.slice)
        value = element(f.build, owner, value, "value")
        f.build.append("array.write", [], {"x": owner, "offset": f.build.as_index(at), "value": value})
        return
    if not is_shaped(owner):
        fail(TYPE, "only arrays have elements", f.span(target), got=_shown(owner))
    if not is_scalar(value):
        in_core(f.build, f"`{ast.unparse(target)} = ..`")
    offsets, sizes, dropped = window(f, target, owner)
    f.build.place = f.span(target)
    if is_scalar(value):
        if len(dropped) != owner.type.rank:
            fail(
                TYPE,
                "a number into a window",
                f.span(target),
                help="pl.full(shape, dtype, value) is an array",
            )
        OPERATORS["write"].function(f.build, owner, offsets, value)
        return
    if len(dropped) == owner.type.rank:
        fail(TYPE, "an array into one element", f.span(target), help="a window is written `x[i:i + n]`")
    if not is_shaped(value):
        fail(TYPE, "an array is assigned to a window", f.span(target), got=_shown(value))
    if not index.same_dims(value.type.shape, [n for i, n in enumerate(sizes) if i not in dropped]):
        _reach(f, target, value, sizes)
    OPERATORS["assemble"].function(f.build, owner, value, offsets)


def _reach(f: Frame, target: ast.AST, value: Value, sizes: list[Any]) -> None:
    """Refuse an array whose data does not fill the window it is assigned to, as far as that can be told."""
    if any(index.known(n) not in (None, 1) for n in sizes[: max(0, len(sizes) - value.type.rank)]):
        fail(TYPE, "the window has another shape", f.span(target), expected=_dims(sizes), got=value.type)
    for have, want in zip(value.type.extent[::-1], sizes[::-1], strict=False):
        if index.known_difference(have, want) not in (None, 0):
            fail(TYPE, "the window has another shape", f.span(target), expected=_dims(sizes), got=value.type)


def _dims(dims: Sequence[Any]) -> str:
    return "[" + ", ".join(str(d) if isinstance(d, int) else d.name or "?" for d in dims) + "]"


def _augmented(f: Frame, node: ast.AugAssign) -> None:
    from .expressions import _BINARY

    load = (
        ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        if isinstance(node.target, ast.Name)
        else None
    )
    if load is None:
        fail(SYNTAX, "only names are updated in place", f.span(node))
    value = binary(f, node, _BINARY[type(node.op)], value_of(f, load), value_of(f, node.value))
    bind(f, node.target, value)


def _expression(f: Frame, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return  # a docstring
    if _for_those_who_execute(f, node.value):
        return
    if is_yield(node.value):
        values = _yielded(f, node.value)
        if values:
            fail(
                SYNTAX,
                "what is yielded gets a name",
                f.span(node),
                help="x = pl.yield_(..); read x after the loop",
            )
        return
    value = value_of(f, node.value)
    if f.unit.exact is not None:
        task = value[-1] if isinstance(value, tuple) and value else value
        if not isinstance(task, Value) or task.type.dtype != TASK_ID:
            return
        if task.op is not None and task.op.name == "call":  # submitted, and never asked for
            task.op.results.remove(task)


def _for_those_who_execute(f: Frame, node: ast.expr) -> bool:
    """`print` and `breakpoint` are for a body that is executed (interpret.py); programs have neither."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name in ("print", "breakpoint") and name not in f.names


# ---- yields ----


def is_yield(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "yield_"
    )


def _yielded(f: Frame, node: Any) -> tuple[Any, ...]:
    values = [value_of(f, part) for part in node.args]
    f.names["yield "] = values  # no name that a program can have
    return tuple(values)


def _assigned_value(f: Frame, node: ast.expr, target: ast.expr) -> Any:
    """What stands to the right; of a yield of one value, that value."""
    if not is_yield(node):
        return value_of(f, node) if f.unit.exact is None else exactly(f, node)
    values = _yielded(f, node)
    return values[0] if len(values) == 1 and isinstance(target, ast.Name) else values


# ---- loops ----


def _stays(f: Frame, body: list[ast.stmt]) -> None:
    """Refuse a return from within a loop, or an arm that a run chooses."""
    for found in (n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Return)):
        fail(SYNTAX, "a function is left at its end only", f.span(found),
             help="let arms and turns set names, and return them after all of it")  # fmt: skip


def _for(f: Frame, node: ast.For) -> None:
    _stays(f, node.body)
    if node.orelse:
        fail(SYNTAX, "a loop has no else", f.span(node.orelse[0]))
    over = value_of(f, node.iter)
    if isinstance(over, range):
        over = Loop("range", over.start, over.stop, over.step)
    if isinstance(over, While):
        _while_form(f, node, over)
        return
    if isinstance(over, Region):
        _region_loop(f, node, over)
        return
    if not isinstance(over, Loop):
        fail(SYNTAX, "a loop goes over pl.range and its kin", f.span(node.iter), got=_shown(over))
    for bound in (over.start, over.stop, over.step):
        if not is_scalar(bound) or not getattr(scalar_type(bound), "is_int", False):
            fail(TYPE, "a loop has integer bounds", f.span(node.iter), got=_shown(bound))
    explicit = over.init_values is not None
    if not isinstance(over.step, Value) and over.step == 0:
        fail(TYPE, "a loop with step 0 never ends", f.span(node.iter))
    jumps = Jumps(node.body)
    if jumps.first is not None:
        if over.kind != "range" or explicit:
            what = "a loop with init_values" if explicit else f"pl.{over.kind}"
            fail(SYNTAX, f"nothing jumps in {what}", f.span(jumps.first), help=_JUMPS)
        plain = _without_jumps(f, node, over, jumps)
        if isinstance(plain, ast.While):
            _while(f, plain)
            return
        node = plain
    if over.kind == "unroll":
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


_JUMPS = "break and continue are for pl.range and while, which carry names by themselves"


def _without_jumps(f: Frame, node: ast.For, over: Loop, jumps: Jumps) -> ast.For | ast.While:
    """A loop that goes on counting past `continue`; one that may be left early asks at each iteration."""
    f.unit.loops += 1
    number = f.unit.loops
    left, skipped = f"left_{number}_", f"skipped_{number}_"
    body = Structured(left, skipped).body(node.body, jumps)
    if not jumps.breaks:
        return ast.copy_location(ast.For(node.target, node.iter, body, []), node)
    step = index.known(over.step)
    if step is None or not isinstance(node.target, ast.Name):
        fail(SYNTAX, "a loop that may be left has a step that is known, and one name", f.span(node.iter))
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
    """The name of the counter, and those of carried values."""
    if isinstance(target, ast.Name) and not explicit:
        return target.id, []
    if explicit and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        counter, inner = target.elts
        if isinstance(counter, ast.Name) and isinstance(inner, ast.Tuple | ast.Name):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if all(isinstance(p, ast.Name) for p in parts):
                return counter.id, [p.id for p in parts if isinstance(p, ast.Name)]
    wanted = "for i, (a, b) in pl.range(n, init_values=(x, y))" if explicit else "for i in pl.range(n)"
    fail(SYNTAX, "not the names of a loop", f.span(target), expected=wanted)


def _carried(f: Frame, body: list[ast.stmt]) -> list[tuple[str, Any]]:
    """Names with what they are before the loop, that its body changes and reads in the next iteration."""
    sets, needs = liveness.assigned(body), liveness.exposed(body)
    return [
        (n, f.names[n]) for n in sets if n in f.names and (n in needs or n in f.live) and _carries(f.names[n])
    ]


def _explicit(f: Frame, node: ast.For, names: list[str], values: Sequence[Any]) -> list[tuple[str, Any]]:
    """What `init_values` gives to the names of a loop."""
    if len(names) != len(values):
        fail(SYNTAX, f"{len(values)} initial values", f.span(node.target), got=f"{len(names)} names")
    for name, value in zip(names, values, strict=True):
        if not _carries(value) and value is not UNSET:
            fail(TYPE, f"a loop does not carry this as '{name}'", f.span(node.iter), got=_shown(value),
                 expected="a number, a tile or a tensor")  # fmt: skip
    return list(zip(names, values, strict=True))


def _carries(value: Any) -> bool:
    """None is no task, which a task may follow."""
    return value is None or is_scalar(value) or isinstance(value, Value)


def _type_of(f: Frame, value: Any) -> Type:
    if isinstance(value, Value):
        return value.type
    dtype = TASK_ID if value is None else scalar_type(value)
    assert dtype is not None
    return ScalarType(dtype)


def _is_task(type: Type) -> bool:
    return isinstance(type, ScalarType) and type.dtype == TASK_ID


def _joined(f: Frame, op: Op, block: Block, arg: Value, init: Any, now: Any) -> Any:
    """Iterations of a parallel loop do not wait for each other: each begins with what the loop began with,
    and who waits for what the loop gives waits for all of them."""
    if op.args.get("kind") != "parallel" or not _is_task(arg.type):
        return now
    _substitute(block, arg, init)
    with f.build.into(block):
        return OPERATORS["system.task_dummy"].function(f.build, [arg, init if now is arg else now])


def _loop_body(
    f: Frame, node: ast.For | ast.While, op: Op, block: Block, carried: list[tuple[str, Any]], explicit: bool,
    begin: Callable[[], None],
) -> None:  # fmt: skip
    """Read a body whose block has what it is given; then decide what it hands on. Where a name is a window of
    a tensor before, and something else after an iteration, the body is read again with what the window holds.
    """
    before, told = dict(f.names), len(f.unit.diagnostics)
    given, read = list(block.args), list(block.ops)
    try:
        _loop_body_once(f, node, op, block, carried, explicit, begin)
    except _Windows as windows:
        f.names.clear()
        f.names.update(before)
        del f.unit.diagnostics[told:]
        block.args[:], block.ops[:] = given, read
        held = [(n, _held(f, f.build.block, v) if n in windows.names else v) for n, v in carried]
        _loop_body_once(f, node, op, block, held, explicit, begin)


class _Windows(Exception):
    """Names that are windows of tensors before a loop, and not after an iteration."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


def _loop_body_once(
    f: Frame, node: ast.For | ast.While, op: Op, block: Block, carried: list[tuple[str, Any]], explicit: bool,
    begin: Callable[[], None],
) -> None:  # fmt: skip
    before = dict(f.names)
    args: list[tuple[str, Any, Value | None]] = []
    unset: list[Value] = []
    for name, value in carried:
        if value is UNSET:
            f.names[name] = Unbound("is set in the loop first", f.span(node))
            unset.append(block.add_arg(ScalarType(INDEX), name))
            args.append((name, None, unset[-1]))
        elif f.build.in_core and isinstance(value, Value) and is_memory(value):
            f.names[name] = value  # memory stays where it is
            args.append((name, value, None))
        else:
            arg = block.add_arg(_type_of(f, value), name)
            arg.begins = value if isinstance(value, Value) else None
            f.names[name] = arg
            args.append((name, value, arg))
    begin()
    needs = liveness.exposed(node.body)
    with f.build.into(block):
        read_body(f, node.body, f.live | needs)
    yielded = f.names.pop("yield ", None) if explicit else None
    if explicit and yielded is None:
        fail(SYNTAX, "a loop with init_values ends with pl.yield_", f.span(node))
    windows = [] if yielded is not None else _changed_windows(f, args)
    if windows:
        raise _Windows(windows)
    results: list[tuple[list[str], Value | None]] = []  # names after the loop
    inits: list[Any] = []
    outs: list[Any] = []
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
        if value is None and arg not in unset and isinstance(now, Value) and not _is_task(now.type):
            continue  # it was nothing before
        if now is arg and f.unit.exact is None:  # not changed
            _substitute(block, arg, value)
            f.names[name] = value
            continue
        if arg in unset:
            arg.type = _type_of(f, now)
        _agree(f, node, name, arg, now)
        inits.append(value)
        now = _joined(f, op, block, arg, value, now)
        outs.append(_typed(f, block, now, arg.type))
        kept.append(arg)
        results.append(([name], arg))
    fresh = [] if explicit else _fresh(f, node, before, args)
    for name, now in fresh:
        kept_type = now.type
        if any(_inside(v, block) for v in _dims_in(kept_type)):
            f.names[name] = Unbound("is a tile whose extent only the loop knows", f.span(node))
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


def _changed_windows(f: Frame, args: list[tuple[str, Any, Value | None]]) -> list[str]:
    found: list[str] = []
    for name, value, arg in args:
        now = f.names.get(name)
        if arg is None and value is not None and now is not value and is_shaped(now) and not is_memory(now):
            if all(index.known(d) is not None for d in value.type.shape):
                found.append(name)
    return found


def _after_loop(
    f: Frame, node: ast.For | ast.While, before: dict[str, Any], changed: dict[str, Value], explicit: bool,
    args: list[tuple[str, Any, Value | None]], yielded: list[Any] | None,
) -> None:  # fmt: skip
    """Names after a loop: what it gives; names that it sets and does not give are not read again."""
    inside = dict(f.names)
    f.names.clear()
    f.names.update(before)
    f.names.update(changed)
    if explicit:
        names = _yield_names(node.body)
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
            f.names[name] = Unbound("is set in the loop, and not after it", f.span(node))


def yield_target(body: Sequence[ast.stmt]) -> ast.expr | None:
    """What stands on the left of the yield that ends a body."""
    for node in reversed(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.expr) and is_yield(getattr(node, "value", None)):
            return target
    return None


def _yield_names(body: Sequence[ast.stmt]) -> list[str]:
    """Names on the left of the yield that ends a body."""
    target = yield_target(body)
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [p.id for p in parts if isinstance(p, ast.Name)]


def _fresh(
    f: Frame, node: ast.For | ast.While, before: dict[str, Any], args: list[tuple[str, Any, Value | None]]
) -> list[tuple[str, Value]]:
    """Names that a loop sets first, and that are read after it: they are what the last iteration made
    them."""
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


def _is_task_now(value: Any) -> bool:
    return value is None or (isinstance(value, Value) and _is_task(value.type))


def _dims_in(type: Type) -> list[Value]:
    from ..ir import dims_of, values_in

    return list(values_in(dims_of(type)))


def _inside(value: Value, block: Block) -> bool:
    owner: Any = (
        value.owner if isinstance(value.owner, Block) else value.owner.parent if value.owner else None
    )
    while owner is not None:
        if owner is block:
            return True
        outer = owner.outer
        owner = outer.parent if isinstance(outer, Op) else None
    return False


def _not_the_same_memory(f: Frame, node: ast.AST, name: str) -> None:
    f.unit.report(Problem(Diagnostic(
        MERGE, f"'{name}' is another tensor after an iteration than before", f.span(node),
        help="write into it: x[...] = y, pl.assemble(x, y, offset)",
    )))  # fmt: skip


def _substitute(block: Block, old: Value, new: Any) -> None:
    """Use another value in a block."""
    from ..ir import replaced, retyped

    def of(v: Value) -> Any:
        return new if v is old else v

    for op in block.walk():
        op.args = replaced(op.args, of)
        for result in op.results:
            result.type = retyped(result.type, of)


def _typed(f: Frame, block: Block, value: Any, type: Type) -> Any:
    """A literal as a number of the type that it meets."""
    if isinstance(value, Value) or not isinstance(type, ScalarType) or type.dtype in (INDEX, FP32, BOOL):
        return value
    with f.build.into(block):
        return OPERATORS["const"].function(f.build, value, type.dtype)


def _agree(f: Frame, node: ast.AST, name: str, arg: Value, now: Any) -> None:
    """What a name is after an iteration has to be what it was before, of another value."""
    problem = mismatch(arg.type, now)
    if (
        problem
        and isinstance(arg.type, ScalarType)
        and isinstance(now, Value)
        and isinstance(now.type, ScalarType)
    ):
        if arg.type.dtype in (INDEX, FP32) and arg.type.dtype.is_float == now.type.dtype.is_float:
            arg.type = now.type  # it began with a literal
            return
    if problem and _begins_empty(arg, now):
        assert arg.begins is not None
        arg.begins.type = arg.begins.type.replace(valid=now.type.valid)
        arg.type = arg.type.replace(valid=now.type.valid)
        return
    if problem:
        fail(
            MERGE, f"'{name}' changes its type in the loop", f.span(node), expected=arg.type, got=_shown(now)
        )


def _begins_empty(arg: Value, now: Any) -> bool:
    """Whether what is handed on began as memory that holds nothing yet, of the same shape: it is as valid as
    what an iteration makes of it."""
    made = arg.begins.owner if arg.begins is not None else None
    assert isinstance(arg.owner, Block)
    if not isinstance(made, Op) or made.name not in _EMPTY or made.args.get("init_value") is not None:
        return False
    if not isinstance(now, Value) or not isinstance(now.type, ShapedType) or now.type.dtype != arg.type.dtype:
        return False
    same = index.same_dims(arg.type.shape, now.type.shape)
    return same and all(raised(d, made, arg.owner) for d in now.type.extent if isinstance(d, Value))


#: Operations that make memory with nothing in it.
_EMPTY = ("create_tensor", "create_tile")


def mismatch(type: Type, value: Any) -> bool:
    """Whether a value cannot stand where one of a type did."""
    if isinstance(type, ArrayType):
        return not isinstance(value, Value) or value.type != type
    if value is None:
        return not _is_task(type)
    if not isinstance(value, Value):
        dtype = scalar_type(value)
        if not isinstance(type, ScalarType) or dtype is None:
            return True
        return dtype.is_float and not type.dtype.is_float
    other = value.type
    if isinstance(type, ShapedType):
        if not isinstance(other, ShapedType) or other.dtype != type.dtype:
            return True
        if isinstance(type, TensorType) != isinstance(other, TensorType) and is_memory(value):
            return True
        return not (index.same_dims(type.shape, other.shape) and index.same_dims(type.extent, other.extent))
    return other != type


def _unrolled(f: Frame, node: ast.For, over: Loop) -> None:
    bounds = [index.known(b) for b in (over.start, over.stop, over.step)]
    if any(b is None for b in bounds) or not isinstance(node.target, ast.Name):
        fail(SYNTAX, "a loop that is written out has known bounds and one name", f.span(node.iter))
    body_needs = liveness.exposed(node.body)
    for i in range(*[b for b in bounds if b is not None]):
        f.names[node.target.id] = i
        read_body(f, node.body, f.live | body_needs)


def _while(f: Frame, node: ast.While) -> None:
    _stays(f, node.body)
    if node.orelse:
        fail(SYNTAX, "a loop has no else", f.span(node.orelse[0]))
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
        if n in needs and n in f.names and n not in known and _carries(f.names[n])
    ]
    op = Op("while", {"init_values": []}, [], f.span(node.test))
    test, body = op.add_block(), op.add_block()
    _loop_body(f, node, op, body, carried, False, lambda: None)
    outer = dict(f.names)
    for arg in body.args:
        f.names[arg.name] = test.add_arg(arg.type, arg.name)
    with f.build.into(test):
        cond = value_of(f, node.test)
        f.build.append("yield", [], {"values": [cond]})
    f.names.clear()
    f.names.update(outer)


def _while_form(f: Frame, node: ast.For, over: While) -> None:
    """`for (x,) in pl.while_(init_values=(x0,)):` with `pl.cond(..)` first: as `while`."""
    at = next((i for i, part in enumerate(node.body) if _is_cond(part)), None)
    if at is None:
        fail(SYNTAX, "pl.while_ begins with pl.cond(..)", f.span(node))
    call: Any = node.body[at].value  # type: ignore[attr-defined]
    parts = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    names = [p.id for p in parts if isinstance(p, ast.Name)]
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
        f.build.append("yield", [], {"values": [value_of(f, call.args[0])]})
    f.names.clear()
    f.names.update(outer)


def _is_cond(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and len(call.args) == 1
        and ast.unparse(call.func).rpartition(".")[2] == "cond"
    )


# ---- arms ----


def _if(f: Frame, node: ast.If) -> None:
    test = value_of(f, node.test)
    if not isinstance(test, Value):
        read_body(f, node.body if test else node.orelse, f.live)
        return
    if not isinstance(test.type, ScalarType):
        fail(TYPE, "a condition is a truth value", f.span(node.test), got=test.type)
    _stays(f, [*node.body, *node.orelse])
    op = Op("if", {"cond": test}, [], f.span(node.test))
    ends: list[dict[str, Any]] = []
    before = dict(f.names)
    for body in (node.body, node.orelse):
        f.names.clear()
        f.names.update(before)
        with f.build.into(op.add_block()):
            read_body(f, body, f.live)
        ends.append(dict(f.names))
    f.names.clear()
    f.names.update(before)
    _merge(f, node, op, ends)


def _merge(f: Frame, node: ast.If, op: Op, ends: list[dict[str, Any]]) -> None:
    """What the arms give: what they yield; names that differ after them, and that are read later."""
    given = [end.pop("yield ", None) for end in ends]
    yields = (
        _yield_names(node.body) if all(given) and _yield_names(node.body) == _yield_names(node.orelse) else []
    )
    for end, values in zip(ends, given, strict=True):
        end.update(zip(yields, values or [], strict=False))
    outs: tuple[list[Any], list[Any]] = ([], [])
    names: list[str] = []
    types: list[Type] = []
    cut: list[tuple[str, Any, int]] = []  # arrays that are valid as far as only a run can tell
    for name in dict.fromkeys([*yields, *liveness.assigned(node.body), *liveness.assigned(node.orelse)]):
        one: Any = ends[0].get(name)
        two: Any = ends[1].get(name)
        missing = [end for end in ends if name not in end]
        if (one is two and name not in yields) or missing:
            if one is two and one is not None:
                f.names[name] = one
            elif missing:
                there = two if name not in ends[0] else one
                known = isinstance(there, Value) and is_memory(there)  # memory is there on every way
                f.names[name] = there if known else Unbound("is set in one arm only", f.span(node))
            continue
        if one is POISON or two is POISON:
            f.names[name] = POISON
            continue
        if name not in f.live and name not in yields:
            f.names[name] = Unbound("is not the same after both arms", f.span(node))
            continue
        one, two = _both_held(f, op.blocks, one, two)
        if _only_extents_differ(one, two):
            cut.append((name, one.type.replace(valid=None), len(types)))
            for axis, sizes in enumerate(zip(one.type.extent, two.type.extent, strict=True)):
                for out, size in zip(outs, sizes, strict=True):
                    out.append(size)
                names.append(f"{name}_{axis}")
                types.append(ScalarType(INDEX))
            one, two = (_all_valid(f, block, v) for block, v in zip(op.blocks, (one, two), strict=True))
        type = _merged(f, node, name, one, two)
        for out, value, block in zip(outs, (one, two), op.blocks, strict=True):
            out.append(_typed(f, block, value, type))
        names.append(name)
        types.append(type)
    op.results = [Value(t, n, op, i) for i, (t, n) in enumerate(zip(types, names, strict=True))]
    for out, block in zip(outs, op.blocks, strict=True):
        with f.build.into(block):
            f.build.append("yield", [], {"values": out})
    f.build.block.append(op)
    f.names.update(zip(names, op.results, strict=True))
    for name, type, first in cut:
        rank = type.rank
        extent = list(op.results[first : first + rank])
        f.names[name] = OPERATORS["set_validshape"].function(f.build, f.names[name], *extent[-2:])
        f.names[name].name = name


def _both_held(f: Frame, blocks: list[Block], one: Any, two: Any) -> tuple[Any, Any]:
    """A window of a tensor that is a value in the other arm is one, too: what it holds is loaded."""
    if not f.build.in_core or not (is_shaped(one) and is_shaped(two)) or is_memory(one) == is_memory(two):
        return one, two
    first, second = (_held(f, b, v) if is_memory(v) else v for b, v in zip(blocks, (one, two), strict=True))
    return first, second


def _held(f: Frame, block: Block, x: Value) -> Value:
    """What a tensor holds now, on chip; itself where its extents are not known."""
    if any(index.known(d) is None for d in x.type.shape):
        return x
    with f.build.into(block):
        return OPERATORS["load"].function(
            f.build, x, [0] * x.type.rank, [index.known(d) for d in x.type.shape]
        )


def _only_extents_differ(one: Any, two: Any) -> bool:
    """Whether two arrays are alike but for how far their data goes, in the last two dimensions."""
    if not is_shaped(one) or not is_shaped(two) or is_memory(one) or is_memory(two) or one.type.rank != 2:
        return False
    a, b = one.type, two.type
    alike = type(a) is type(b) and a.dtype == b.dtype and index.same_dims(a.shape, b.shape)
    return alike and not index.same_dims(a.extent, b.extent)


def _all_valid(f: Frame, block: Block, x: Value) -> Value:
    """The same storage, all of it."""
    if x.type.valid is None:
        return x
    with f.build.into(block):
        return OPERATORS["set_validshape"].function(f.build, x, *x.type.shape[-2:])


def _merged(f: Frame, node: ast.If, name: str, one: Any, two: Any) -> Type:
    for a, b in ((one, two), (two, one)):
        if isinstance(a, Value) and not mismatch(a.type, b):
            if isinstance(a.type, TensorType) and (is_memory(a) or is_memory(b)):
                fail(MERGE, f"'{name}' is one tensor or another", f.span(node),
                     help="write into one of them in both arms")  # fmt: skip
            return a.type
    if is_scalar(one) and is_scalar(two) and not isinstance(one, Value) and not isinstance(two, Value):
        if isinstance(one, bool) and isinstance(two, bool):
            return ScalarType(BOOL)
        return ScalarType(FP32 if isinstance(one, float) or isinstance(two, float) else INDEX)
    fail(
        MERGE, f"'{name}' is of another type in each arm", f.span(node), expected=_shown(one), got=_shown(two)
    )


# ---- regions ----


def _with(f: Frame, node: ast.With) -> None:
    if len(node.items) != 1:
        fail(SYNTAX, "one region at a time", f.span(node))
    item = node.items[0]
    region = value_of(f, item.context_expr)
    if not isinstance(region, Region):
        got = f"pl.{region.__name__}, without a call" if callable(region) else _shown(region)
        fail(SYNTAX, "not a region of the language", f.span(item.context_expr), got=got,
             help="pl.at(), pl.spmd(n), pl.cluster(), pl.scope(), pl.manual_scope()")  # fmt: skip
    _read_region(f, node, region, node.body, item.optional_vars)


def _region_loop(f: Frame, node: ast.For, region: Region) -> None:
    """`for i in pl.spmd(n)`: the number of the block is the name."""
    if region.kind not in ("spmd", "split_aiv") or not isinstance(node.target, ast.Name):
        fail(SYNTAX, "no loop goes over this", f.span(node.iter), help="pl.range, pl.spmd, pl.split_aiv")
    _read_region(f, node, region, node.body, None, node.target.id)


_CORES = ("at", "spmd")


def _dispatches(f: Frame, body: list[ast.stmt]) -> bool:
    """Whether a region is one call of a function of a core: a task of several blocks."""
    last = body[-1]
    call = getattr(last, "value", None)
    if len(body) != 1 or not isinstance(call, ast.Call):
        return False
    declared = getattr(value_of(f, call.func), "declared", None)
    return declared is not None and declared.kind not in ("inline",)


def _read_region(
    f: Frame,
    node: ast.With | ast.For,
    region: Region,
    body: list[ast.stmt],
    task: ast.expr | None,
    counter: str = "",
) -> None:
    place = f.span(node.items[0].context_expr if isinstance(node, ast.With) else node.iter)
    core = region.kind in _CORES
    if core:
        region = region.replace(options={**region.options, **task_options(f, region.options, place)})
    if core and f.build.in_core:
        fail(
            PLACE,
            f"pl.{region.kind} within a region of a core",
            place,
            help="take it out of the other region",
        )
    if region.kind == "spmd" and not counter and _dispatches(f, body):
        f.task = region.options
        try:
            read_body(f, body, f.live)
        finally:
            f.task = None
        if task is not None:
            bind(f, task, f.build.block.ops[-1].results[-1])
        return
    op = Op("region", {"kind": region.kind, **region.options}, [], place)
    block = op.add_block()
    before = dict(f.names)
    was, f.build.in_core = f.build.in_core, f.build.in_core or core
    split, f.build.split = (
        f.build.split,
        region.options.get("mode") if region.kind == "split_aiv" else f.build.split,
    )
    try:
        with f.build.into(block):
            if counter:
                f.build.place = place
                name = "get_block_idx" if region.kind == "spmd" else "get_subblock_idx"
                f.names[counter] = OPERATORS[name].function(f.build)
                f.names[counter].name = counter
            read_body(f, body, f.live)
            given = f.names.pop("yield ", None if f.unit.exact is None else ())
            if given is not None:
                outs = list(zip(_yield_names(body), given, strict=False))
            else:
                outs = [(n, f.names[n]) for n in liveness.assigned(body) if _leaves(f, n, before, block)]
            f.build.append("yield", [], {"values": [v for _, v in outs]})
    finally:
        f.build.in_core = was
        f.build.split = split
    op.results = [Value(v.type, n, op, i) for i, (n, v) in enumerate(outs)]
    for name, value in outs:
        if core and not isinstance(value.type, ShapedType):
            f.names[name] = Unbound("is a number of a core, and does not leave its region", f.span(node))
    f.build.block.append(op)
    for (name, value), result in zip(outs, op.results, strict=True):
        if core and isinstance(value.type, ShapedType):
            result.type = TensorType(leaving(value), value.type.shape, value.type.valid)
        if not isinstance(f.names[name], Unbound):
            f.names[name] = result
    if task is not None:
        tid = Value(ScalarType(TASK_ID), "", op, len(op.results))
        op.results.append(tid)
        bind(f, task, tid)


def _leaves(f: Frame, name: str, before: dict[str, Any], block: Block) -> bool:
    """Whether a name that a region sets is read after it, and made in it."""
    value = f.names.get(name)
    made = isinstance(value, Value) and value is not before.get(name) and _inside(value, block)
    return made and name in f.live


def _return(f: Frame, node: ast.Return) -> None:
    value = None if node.value is None else value_of(f, node.value)
    f.returned = [] if value is None else list(value) if isinstance(value, tuple) else [value]


def _jump(f: Frame, node: ast.stmt) -> None:
    """One that no loop around it has taken."""
    word = type(node).__name__.lower()
    fail(SYNTAX, f"{word} does not leave a region or a written-out loop", f.span(node), help=_JUMPS)


def _pass(f: Frame, node: ast.stmt) -> None:
    pass


_READERS: dict[type, Callable[[Frame, Any], None]] = {
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.Expr: _expression,
    ast.For: _for, ast.While: _while, ast.If: _if, ast.With: _with, ast.Return: _return, ast.Pass: _pass,
    ast.Break: _jump, ast.Continue: _jump,
}  # fmt: skip
