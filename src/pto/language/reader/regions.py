"""Regions: `with pl.at()`, `for i in pl.spmd(n)`. The results of a region are
the names that it sets and that are read later."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...diag import Span
from ..control import ControlRegion
from ..dtypes import TASK_ID
from ..enums import Level, ScopeMode
from ..ir import Block, Op, ScalarType, ShapedType, TensorType, Value, index
from ..operators.core import OPERATORS
from ..operators.cube import leaving
from ..problems import ARGUMENTS, PLACE, SYNTAX, fail
from . import liveness
from .assign import bind
from .body import read_body
from .carry import inside, shown
from .expressions import value_of
from .frame import Frame, Unbound
from .tasks import check_predicate, in_manual_scope, of_a_cluster, task_options
from .yields import yield_names


def read_with(f: Frame, node: ast.With) -> None:
    if len(node.items) != 1:
        fail(SYNTAX, "expected one region per with statement", f.span(node))
    item = node.items[0]
    region = value_of(f, item.context_expr)
    if not isinstance(region, ControlRegion):
        got = f"write pl.{region.__name__} without a call" if callable(region) else shown(region)
        fail(SYNTAX, "expected a region of the language", f.span(item.context_expr), got=got,
             help="pl.at(), pl.spmd(n), pl.cluster(), pl.scope(), pl.manual_scope()")  # fmt: skip
    _read_region(f, node, region, node.body, item.optional_vars)


def region_loop(f: Frame, node: ast.For, region: ControlRegion) -> None:
    """Read `for i in pl.spmd(n)`, where `i` is the number of the block."""
    if region.kind not in ("spmd", "split_aiv") or not isinstance(node.target, ast.Name):
        fail(
            SYNTAX,
            "cannot iterate over this region",
            f.span(node.iter),
            help="pl.range, pl.spmd, pl.split_aiv",
        )
    _read_region(f, node, region, node.body, None, node.target.id)


_CORES = ("at", "spmd")


def _check_place(f: Frame, region: ControlRegion, task: ast.expr | None, place: Span) -> None:
    """Reject a region in the wrong place, or with a name that it cannot have."""
    if region.kind == "split_aiv" and f.build.split is not None:
        fail(PLACE, "cannot nest pl.split_aiv", place, help="both vector cores have their halves")
    if region.options.get("role") is not None and region.options["level"] is Level.CORE_GROUP:
        fail(ARGUMENTS, "unexpected role of a core", place, expected="level= of a host, as in pl.Level.HOST",
             got=f"role={region.options['role']}", help="leave role= out")  # fmt: skip
    if region.kind == "scope" and region.options["mode"] is ScopeMode.AUTO and in_manual_scope(f):
        fail(PLACE, "cannot nest pl.scope() in pl.manual_scope()", place,
             help="leave out pl.scope(): in a manual scope only deps= orders tasks")  # fmt: skip
    if task is not None and region.kind not in _CORES:
        fail(SYNTAX, f"cannot name pl.{region.kind}: it is not a task", f.span(task),
             help="with pl.at(..) as task, or pl.spmd(n) as task")  # fmt: skip
    if task is not None and of_a_cluster(f):
        fail(PLACE, "cannot name a task of a cluster", f.span(task),
             help="take it out of pl.cluster(), or leave the name out")  # fmt: skip


def _check_blocks(f: Frame, region: ControlRegion, block: Block, place: Span) -> None:
    """Reject blocks that all do the same work: neither the body nor its callees query the block number."""
    if f.unit.exact is not None or region.kind != "spmd" or index.known(region.options["core_num"]) == 1:
        return
    if not any(o.name in ("get_block_idx", "call") for o in block.walk()):
        fail(PLACE, "every block does the same work", place,
             help="`for i in pl.spmd(n)` names the block, or use i = pl.get_block_idx()")  # fmt: skip


def _dispatches(f: Frame, body: list[ast.stmt]) -> bool:
    """Return True if a region is one call of a core's function: a task of several blocks."""
    last = body[-1]
    call = getattr(last, "value", None)
    if len(body) != 1 or not isinstance(call, ast.Call):
        return False
    declared = getattr(value_of(f, call.func), "declared", None)
    return declared is not None and declared.kind not in ("inline",)


def _read_region(
    f: Frame,
    node: ast.With | ast.For,
    region: ControlRegion,
    body: list[ast.stmt],
    task: ast.expr | None,
    counter: str = "",
) -> None:
    place = f.span(node.items[0].context_expr if isinstance(node, ast.With) else node.iter)
    _check_place(f, region, task, place)
    above = region.kind == "at" and region.options["level"].value > Level.CORE_GROUP.value
    if above and f.unit.exact is None:
        read_body(f, body, f.live)  # there is only one orchestrator
        return
    core = region.kind in _CORES and not above
    if region.kind in _CORES:
        region = region.replace(options={**region.options, **task_options(f, region.options, place)})
    if core and f.build.in_core and f.unit.exact is None:
        fail(
            PLACE,
            f"cannot nest pl.{region.kind} in a region of a core",
            place,
            help="move it out of the other region",
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
    op, touched = Op("region", {"kind": region.kind, **region.options}, [], place), len(f.build.touched)
    if f.build.dispatch is not None:
        op.args["dispatch"] = f.build.dispatch
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
                outs = list(zip(yield_names(body), given, strict=False))
            else:
                outs = [(n, f.names[n]) for n in liveness.assigned(body) if _leaves(f, n, before, block)]
            f.build.append("yield", [], {"values": [v for _, v in outs]})
    finally:
        f.build.in_core = was
        f.build.split = split
    if not counter:
        _check_blocks(f, region, block, place)
    check_predicate(f, region.options, (v for o in block.walk() for v in o.operands()), place)
    if core:  # windows are not ordered by tasks, but by signals
        wholes = {r.whole for r in f.build.ranks.values()}
        taken = dict.fromkeys(v for o in block.walk() for v in o.operands() if isinstance(v.type, TensorType))
        used = [v for v in taken if v in wholes]
        op.args["no_dep_args"] = [*(op.args.get("no_dep_args") or ()), *used]
        shared = [v for v in taken if v in wholes or v in f.build.ranks]
        told = op.args.get("windows") or ()
        op.args["windows"] = [*dict.fromkeys([*told, *shared, *f.build.touched[touched:]])]
    op.results = [Value(v.type, n, op, i) for i, (n, v) in enumerate(outs)]
    for name, value in outs:
        if core and not isinstance(value.type, ShapedType):
            why = "is a number of a core and cannot leave its region"
            help = f"compute it in each region, or keep it in a tensor: t[0, 0] = {name}, then t[0, 0]"
            f.names[name] = Unbound(why, f.span(node), help)
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


def _leaves(f: Frame, name: str, before: Mapping[str, object], block: Block) -> bool:
    """Return True if the value of a name is made in a region and read after it."""
    value = f.names.get(name)
    made = isinstance(value, Value) and value is not before.get(name) and inside(value, block)
    return made and name in f.live
