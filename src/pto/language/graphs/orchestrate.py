"""Orchestrations as Python functions over a task runtime, which a call executes without a compiler.

The text of the function has one statement per operation of the program, and Python compiles it. The function
takes a `Tasks`, kernels by name, and the tensors and extents of the call.
"""

from __future__ import annotations

import ctypes
import linecache
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any

from ...diag import DiagnosticError, Span
from ..ir import FIFO_SLOTS, VIEWS, ArrayType, Block, Function, Op, Value, is_tensor, root
from ..ir.writer import BEFORE, BETWEEN, Writer
from ..problems import PLACE, TO_A_CORE, UNSUPPORTED, Problem, fail
from ..ranks.split import Apart, apart
from .graph import ordered


def orchestration_text(function: Function) -> tuple[str, list[Span | None]]:
    """Return the text of the function, and the source locations that it names by number."""
    w = _CallWriter(function)
    parts = apart(function)
    if parts is None:
        w.block(function.body)
    else:
        w.in_turns(parts)
    params = ", ".join(["rt", "kernels", *(w.name(v) for v in function.body.args)])
    body = "\n".join(f"    {line}" for line in w.lines or ["pass"])
    return f"def {_name(function)}({params}):\n{body}\n", w.places


def _name(function: Function) -> str:
    """Return the name of the function in the text: its own if Python allows it."""
    name = function.name
    return name if name.isidentifier() and not iskeyword(name) else "orchestration"


def orchestration(function: Function) -> tuple[Callable[..., None], list[Span | None]]:
    """Return the function and its source locations. Its text is visible in tracebacks and debuggers."""
    try:
        text, places = orchestration_text(function)
    except Problem as problem:
        raise DiagnosticError([problem.diagnostic]) from None
    name = f"<orchestration {function.name}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"f32": lambda x: ctypes.c_float(x).value}
    # Safe to compile: names are identifiers (`_name`, `Writer.name`), and all other text comes from tables in
    # this file or from `repr`.
    exec(compile(text, name, "exec"), names)
    return names[_name(function)], places


class _CallWriter(Writer):
    def __init__(self, function: Function) -> None:
        super().__init__({"rt", "kernels", "min", "max", "abs", "range", "f32", "list", "float", "int"})
        self.places: list[Span | None] = []
        self.auto_scope = function.attrs.get("auto_scope", True)
        self.windows = _windows(function)
        self.ordered = ordered(function)
        self.asks = False  # True if the driver reads elements for this part

    def in_turns(self, parts: Apart) -> None:
        """Write the parts of the ranks as generators. A generator yields a request for an element, and its
        driver resumes it.
        """
        for op in parts.first:
            self.op(op)
        self.asks = True
        names = {rank: f"rank_{rank}" for rank in parts.ranks}
        self.taken |= set(names.values())
        for rank, ops in parts.ranks.items():
            self.line(f"def {names[rank]}():")
            self.depth += 1
            self.line("yield from ()")
            for op in ops:
                self.op(op)
            self.depth -= 1
        self.line(f"rt.together({', '.join(f'{name}()' for name in names.values())})")

    def place(self, op: Op) -> int:
        """Return the number of an operation's source location."""
        self.places.append(op.loc)
        return len(self.places) - 1

    def arg(self, arg: object) -> str:
        if isinstance(arg, Value):
            return self.name(arg)
        if isinstance(arg, list | tuple):
            return "[" + ", ".join(map(self.arg, arg)) + "]"
        return repr(arg)

    def copied(self, arg: object) -> str:
        """Return the text of an assigned value; an array is copied, so that later changes stay separate."""
        array = isinstance(arg, Value) and isinstance(arg.type, ArrayType)
        return f"list({self.arg(arg)})" if array else self.arg(arg)

    def scoped(self, block: Block) -> None:
        """Write a body in its own scope if it submits tasks and the function does not manage its scopes."""
        if self.auto_scope and any(o.name == "call" for o in block.walk()):
            self.line("with rt.scope():")
            self.inner(block)
        else:
            self.block(block)
            self.line("pass")

    def other(self, op: Op) -> None:
        if op.name.startswith("scalar."):
            rounded = op.result.type.dtype.is_float  # round as numbers of a program do, not as Python does
            text = f"f32({self.expression(op)})" if rounded else self.expression(op)
            self.line(f"{self.name(op.result)} = {text}")
        elif op.name in VIEWS:
            fail(
                UNSUPPORTED,
                f"unsupported operation {op.name} in an orchestration",
                op.loc,
                help="do it on a core",
            )
        else:
            fail(
                PLACE, f"cannot use {op.name} in an orchestration: it runs on a core", op.loc, help=TO_A_CORE
            )

    def expression(self, op: Op) -> str:
        name = op.name.removeprefix("scalar.")
        args = [self.arg(a) for k, a in op.args.items() if k != "dtype"]
        if name in BETWEEN:
            return f"{args[0]} {BETWEEN[name]} {args[1]}"
        if name in BEFORE:
            return BEFORE[name] + args[0]
        if name == "cast":
            return f"{'float' if op.args['dtype'].is_float else 'int'}({args[0]})"
        return f"{name}({', '.join(args)})"

    def _const(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = {self.arg(op.args['value'])}")

    def _create_tensor(self, op: Op) -> None:
        a = op.args
        init = "" if a.get("init_value") is None else f", init={self.arg(a['init_value'])}"
        manual = ", manual_dep=True" if a.get("manual_dep") else ""
        name = (
            "" if op.result.name == FIFO_SLOTS else f", name={op.result.name!r}"
        )  # the contents of FIFOs are tracked by the FIFOs
        window = ", window=True" if op.result in self.windows else ""
        more = f"{init}{manual}{name}{window}"
        self.line(f"{self.name(op.result)} = rt.tensor({self.arg(a['shape'])}, {a['dtype'].isa!r}{more})")

    def _slice(self, op: Op) -> None:
        a = op.args
        drop = f", drop={a['drop_dims']}" if a.get("drop_dims") else ""
        self.line(
            f"{self.name(op.result)} = rt.view({self.arg(a['x'])}, {self.arg(a['shape'])}, "
            f"{self.arg(a['offset'])}, {self.place(op)}, {root(a['x']).name!r}{drop})"
        )

    def _reshape(self, op: Op) -> None:
        self.line(
            f"{self.name(op.result)} = rt.reshape({self.arg(op.args['x'])}, {self.arg(op.args['shape'])})"
        )

    def _transpose(self, op: Op) -> None:
        a = op.args
        self.line(f"{self.name(op.result)} = rt.transpose({self.arg(a['x'])}, {a['axis1']}, {a['axis2']})")

    def _read(self, op: Op) -> None:
        a = op.args
        at = f"{self.arg(a['x'])}, {self.arg(a['offset'])}, {self.place(op)}"
        self.line(f"{self.name(op.result)} = {f'yield {at}' if self.asks else f'rt.read({at})'}")

    def _write(self, op: Op) -> None:
        a = op.args
        self.line(f"rt.write({self.arg(a['x'])}, {self.arg(a['offset'])}, {self.arg(a['value'])})")

    def _call(self, op: Op) -> None:
        a = op.args
        more = "".join(f", {w}={self.arg(a[k])}" for k, w in _OPTIONS.items() if a.get(k))
        if a.get("dispatch"):
            more += f", dispatch={a['dispatch']}"
        if a.get("no_dep_args"):
            more += f", no_dep={untracked(a)}"
        if self.ordered[op]:
            more += f", ordered={self.ordered[op]}"
        more += f", at={self.place(op)}"
        args = "".join(f", {self.arg(v)}" for v in a["args"])
        target = f"{self.name(op.results[-1])} = " if op.results else ""
        self.line(f"{target}rt.submit(kernels[{a['callee'].name!r}]{args}{more})")

    def _yield(self, op: Op) -> None:
        outer = op.parent.outer if op.parent is not None else None
        values = op.args["values"]
        if isinstance(outer, Op) and values:
            names = [self.name(r) for r in outer.results][: len(values)]
            self.line(f"{', '.join(names)} = {', '.join(map(self.copied, values))}")

    def _for(self, op: Op) -> None:
        a, block = op.args, op.blocks[0]
        carried = block.args[1:]
        if carried:
            names = ", ".join(self.name(r) for r in op.results)
            self.line(f"{names} = {', '.join(map(self.copied, a['init_values']))}")
        bounds = ", ".join(self.arg(a[k]) for k in ("start", "stop", "step"))
        over = f"rt.parallel({bounds}, {self.place(op)})" if a["kind"] == "parallel" else f"range({bounds})"
        self.line(f"for {self.name(block.args[0])} in {over}:")
        self.depth += 1
        if carried:
            self.line(f"{', '.join(map(self.name, carried))} = {', '.join(map(self.copied, op.results))}")
        self.scoped(block)
        self.depth -= 1

    def _while(self, op: Op) -> None:
        test, body = op.blocks
        names = ", ".join(self.name(r) for r in op.results)
        if names:
            self.line(f"{names} = {', '.join(map(self.copied, op.args['init_values']))}")
        self.line("while True:")
        self.depth += 1
        for block in (test, body):
            if names:
                self.line(f"{', '.join(map(self.name, block.args))} = {names}")
            for o in block.ops:
                if block is test and o.name == "yield":
                    self.line(f"if not ({self.arg(o.args['values'][0])}): break")
                else:
                    self.op(o)
        self.depth -= 1

    def _if(self, op: Op) -> None:
        self.line(f"if {self.arg(op.args['cond'])}:")
        self.inner(op.blocks[0])
        self.line("else:")
        self.inner(op.blocks[1])

    def _region(self, op: Op) -> None:
        kind = op.args["kind"]
        manual = kind == "scope" and getattr(op.args.get("mode"), "name", "") == "MANUAL"
        word = "manual_scope" if manual else kind
        self.line(f"with rt.{word}():")
        before, self.auto_scope = self.auto_scope, self.auto_scope and not manual
        self.inner(op.blocks[0])  # a manual scope has no nested scopes
        self.auto_scope = before

    def _array_create(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = [None] * {op.result.type.extent}")

    def _array_copy(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = list({self.arg(op.args['array'])})")

    def _task_dummy(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = rt.task_dummy({self.arg(op.args['deps'])})")

    def _task_invalid(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = None")

    def _array_read(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = {self.arg(op.args['x'])}[{self.arg(op.args['offset'])}]")

    def _array_write(self, op: Op) -> None:
        self.line(f"{self.arg(op.args['x'])}[{self.arg(op.args['offset'])}] = {self.arg(op.args['value'])}")


def _windows(function: Function) -> set[Value]:
    """Return the tensors with the windows of all ranks."""
    calls = (op.args for op in function.walk() if op.name == "call")
    return {
        root(value)
        for a in calls
        for param, value in zip(a["callee"].params, a["args"], strict=False)
        if param.name in a["callee"].attrs.get("windows", ())
    }


def untracked(args: Mapping[str, Any]) -> list[int]:
    """Return the arguments of a task that add no dependencies: those that the task names, and windows of
    them.
    """
    given = args["args"]
    found: set[int] = set()
    for named in args.get("no_dep_args") or ():
        exact = [i for i, v in enumerate(given) if v is named]
        found.update(exact or [i for i, v in enumerate(given) if is_tensor(v) and root(v) is root(named)])
    return sorted(found)


#: Options of a task besides its arguments, as `Tasks.submit` spells them.
_OPTIONS = {
    "deps": "deps",
    "core_num": "blocks",
    "sync_start": "sync_start",
    "predicate": "predicate",
}
