"""Programs of the language as Python text, from which the reader makes the same program (text.py).

Every function becomes a method of a class, every operation a statement; control flow has its explicit form,
with `init_values` and `pl.yield_`. Values have type annotations, except in concise text.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from ..control import CrossCoreSlot, Split
from ..dtypes import DataType
from ..enums import MemorySpace, NotifyOp, ReduceOp, WaitCmp
from ..operators.core import OPERATORS, Operator
from ..programs.extern import sources_of
from . import (
    FOREIGN,
    IN,
    OUT,
    ArrayType,
    DistributedTensorType,
    Function,
    HandleType,
    MaskType,
    Op,
    Program,
    ScalarType,
    TensorType,
    TileType,
    Type,
    Value,
    VectorType,
    dims_of,
    values_in,
)
from .writer import BEFORE, BETWEEN, Writer

_KINDS = {"orchestration": "Orchestration", "incore": "InCore", "aic": "AIC", "aiv": "AIV", "group": "Group"}
_SPACES = {m.isa: m for m in MemorySpace}
#: Facts of functions that the text does not express with `pl.func_attr`.
_UNTOLD = ("symbols", "hidden", "func_attr", "auto_scope", "undeclared", "source", "unsaid", "host", "python",
           "body", "results")  # fmt: skip
#: Words that only `pto.language.distributed` has.
_OF_RANKS = (NotifyOp, ReduceOp, WaitCmp)
WIDTH = 100


def program_text(program: Program, concise: bool = False) -> str:
    """Return a class with a method per function."""
    dynamic: dict[str, None] = {}
    methods: list[str] = []
    for function in program.functions.values():
        lines = function_lines(function, concise, dynamic)
        methods += ["", *(f"    {line}" if line else "" for line in lines)]
    head = ["import pto.language as pl", ""]
    if any("pld." in line for line in methods):
        head.insert(1, "import pto.language.distributed as pld")
    if dynamic:
        head += [*(f'{n} = pl.dynamic("{n}")' for n in sorted(dynamic)), ""]
    head += ["", "@pl.program", f"class {_identifier(program.name)}:"]
    return "\n".join([*head, *methods[1:]]).rstrip() + "\n"


def function_lines(
    function: Function, concise: bool = False, dynamic: dict[str, None] | None = None
) -> list[str]:
    """Return a method. Names of extents of its parameters are added to `dynamic`."""
    p = _Printer(function, concise)
    dynamic = {} if dynamic is None else dynamic
    directions = {param.value: param.direction for param in function.params}
    symbols = {*function.attrs.get("symbols", ()), *function.attrs.get("unsaid", ())}
    params = ["self"]
    for value in function.body.args:
        if value in directions or value.name not in symbols:
            text = p.type(value.type)
            if directions.get(value, IN) != IN:
                text = f"pl.{'Out' if directions[value] == OUT else 'InOut'}[{text}]"
            params.append(f"{p.name(value)}: {text}")
        else:
            dynamic[p.name(value)] = None
        dynamic.update(dict.fromkeys(p.name(v) for v in values_in(dims_of(value.type))))
    kind = f"type=pl.FunctionType.{_KINDS[function.kind]}" if function.kind in _KINDS else ""
    told = {k: v for k, v in {**function.attrs, **function.attrs.get("func_attr", {})}.items() if _told(k, v)}
    if function.kind not in _KINDS:
        told["kind"] = function.kind
    if told:
        p.line(f"pl.func_attr({p.arg(told)})")
    p.block(function.body)
    p.lines += function.attrs.get("body") or ()
    if function.returns:
        p.line("return " + ", ".join(p.arg(v) for v in function.returns))
    if not p.lines:
        p.line("pass")
    if function.kind == "extern":
        core, path = next(iter(sources_of(function).items()))
        kind = f"type=pl.FunctionType.{core.upper()}, external_source={path!r}"
    if function.attrs.get("host"):
        role = "SubWorker" if "body" in function.attrs else "Orchestrator"
        kind = f"level=pl.Level.HOST, role=pl.Role.{role}"
    if function.attrs.get("auto_scope") is False:
        kind += f"{', ' if kind else ''}auto_scope=False"
    said = [p.type(t) for t in function.attrs.get("results") or ()]
    gives = f" -> pl.Tuple[{', '.join(said)}]" if len(said) > 1 else f" -> {said[0]}" if said else ""
    head = broken(f"def {function.name}({', '.join(params)}){gives}:", WIDTH - 4)
    return [f"@pl.function({kind})", *head, *(f"    {line}" if line else "" for line in p.lines)]


def _told(name: str, value: object) -> bool:
    return name not in _UNTOLD and value not in (None, [], {}, False, "") and _writable(value)


def _writable(value: object) -> bool:
    """Return True if text can express a value: facts of functions include locations."""
    if isinstance(value, list | tuple):
        return all(map(_writable, value))
    if isinstance(value, dict):
        return all(map(_writable, value.values()))
    return isinstance(value, int | float | str | enum.Enum | DataType | Split | CrossCoreSlot | Value | None)


def _is_task(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.dtype.isa == "task"


def _identifier(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] or "_" for part in name.split("_"))


class _Printer(Writer):
    def __init__(self, function: Function, concise: bool) -> None:
        super().__init__({"self", "pl", "pld", "_", "float", "abs"})
        self.function = function
        self.concise = concise
        for value in function.body.args:
            self.name(value)

    def line(self, text: str) -> None:
        indent = "    " * self.depth
        self.lines += [indent + part for part in broken(text, WIDTH - 8 - len(indent))]

    def stem(self, wanted: str) -> str:
        return _stem(wanted)

    def arg(self, arg: object) -> str:
        if isinstance(arg, Value):
            return self.name(arg)
        if isinstance(arg, list):
            return "[" + ", ".join(map(self.arg, arg)) + "]"
        if isinstance(arg, tuple):
            return "(" + ", ".join(map(self.arg, arg)) + ("," if len(arg) == 1 else "") + ")"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.arg(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, enum.Enum):
            word = "Mem" if isinstance(arg, MemorySpace) else type(arg).__name__
            return f"{'pld' if isinstance(arg, _OF_RANKS) else 'pl'}.{word}.{arg.name}"
        if isinstance(arg, DataType):
            return f"pl.{arg.name}"
        if isinstance(arg, Split):
            slots = f", slot_num={arg.slot_num}" if arg.slot_num is not None else ""
            return f"pl.split({self.arg(arg.mode)}{slots})"
        if isinstance(arg, CrossCoreSlot):
            return f"pl.cross_core_slot(slot_num={arg.slot_num})"
        if isinstance(arg, Function):
            return f"self.{arg.name}"
        if isinstance(arg, float) and not math.isfinite(arg):
            return f"float({str(arg)!r})"
        return repr(arg)

    def type(self, type: Type) -> str:
        if isinstance(type, ScalarType):
            return f"pl.Scalar[pl.{type.dtype.name}]"
        if isinstance(type, ArrayType):
            return f"pl.Array[{type.extent}, pl.{type.dtype.name}]"
        if isinstance(type, HandleType):
            return type.word
        assert isinstance(type, TensorType | TileType)
        tile = isinstance(type, TileType)
        word = "pld.DistributedTensor" if isinstance(type, DistributedTensorType) else "pl.Tensor"
        parts = [self.arg(list(type.shape)), f"pl.{type.dtype.name}"]
        view: list[str] = []
        if type.valid is not None:
            view.append(f"valid_shape={self.arg(list(type.valid))}")
        if isinstance(type, TileType):
            if type.space:
                parts.append(self.arg(_SPACES[type.space]))
            view += [f"{n}={getattr(type, n)!r}" for n in type._fields[4:] if getattr(type, n)]
        elif isinstance(type, TensorType):
            if type.strides is not None:
                view.append(f"stride={self.arg(list(type.strides))}")
            if type.layout != "ND":
                view.append(f"layout=pl.TensorLayout.{type.layout}")
        if view:
            parts.append(f"pl.{'Tile' if tile else 'Tensor'}View({', '.join(view)})")
        return f"{'pl.Tile' if tile else word}[{', '.join(parts)}]"

    # ---- statements ----

    def other(self, op: Op) -> None:
        self.bind(op, self.expression(op) if op.name.startswith("scalar.") else self.call(op))

    def bind(self, op: Op, text: str) -> None:
        """Bind the results of an operation to names; a single result gets its type, if this has a name."""
        names = ", ".join(self.name(r) for r in op.results)
        named = len(op.results) == 1 and not isinstance(op.result.type, VectorType | MaskType)
        if named and (not self.concise or _surprising(op)):
            names += f": {self.type(op.result.type)}"
        self.line(f"{names} = {text}" if names else text)

    def call(self, op: Op) -> str:
        """Return the call of an operation: required arguments by position, the others by name."""
        found = _operator(op.name)
        if found is None:
            types = ", ".join(self.type(r.type) for r in op.results)
            args = "".join(f", {k}={self.arg(v)}" for k, v in op.args.items())
            return f"pl.operation({op.name!r}, [{types}]{args})"
        params = found.signature.parameters
        if not all(k in params for k in op.args):
            args = [self.arg(v) for v in op.args.values() if v is not None]
            return f"{found.full_name}({', '.join(args)})"
        shown: list[str] = []
        by_name = False
        for k, p in params.items():
            if k not in op.args:
                by_name = True
                continue
            value = op.args[k]
            if p.default is not p.empty and (value is None or self.concise) and _same(value, p.default):
                by_name = True
                continue
            by_name = by_name or p.default is not p.empty or p.kind is p.KEYWORD_ONLY
            shown.append(f"{k}={self.arg(value)}" if by_name else self.arg(value))
        return f"{found.full_name}({', '.join(shown)})"

    def expression(self, op: Op) -> str:
        name = op.name.removeprefix("scalar.")
        args = [self.arg(a) for k, a in op.args.items() if k != "dtype"]
        if name in BETWEEN:
            return f"{args[0]} {BETWEEN[name]} {args[1]}"
        if name in BEFORE:
            return BEFORE[name] + args[0]
        if name == "cast":
            return f"pl.cast({args[0]}, pl.{op.args['dtype'].name})"
        return f"{'' if name == 'abs' else 'pl.'}{name}({', '.join(args)})"

    def _const(self, op: Op) -> None:
        self.bind(op, f"pl.const({self.arg(op.args['value'])}, pl.{op.args['dtype'].name})")

    def _yield(self, op: Op) -> None:
        outer: object = op.parent.outer if op.parent is not None else None
        values = op.args["values"]
        if isinstance(outer, Op) and values:
            names = [self.name(r) for r in outer.results[: len(values)]]
            self.line(f"{', '.join(names)} = pl.yield_({', '.join(map(self.arg, values))})")

    def _for(self, op: Op) -> None:
        a = op.args
        bounds = [self.arg(a[k]) for k in ("start", "stop", "step")]
        if self.concise:
            bounds = bounds[: 2 if bounds[2] == "1" else 3]
            bounds = bounds[1:] if len(bounds) == 2 and bounds[0] == "0" else bounds
        block = op.blocks[0]
        target = self.name(block.args[0])
        if block.args[1:]:
            target += f", ({', '.join(self.name(v) for v in block.args[1:])},)"
            bounds.append(f"init_values=({', '.join(map(self.initial, a['init_values'], op.results))},)")
        if a["kind"] == "pipeline":
            bounds.append(f"stage={a['stage']}")
        self.line(f"for {target} in pl.{a['kind']}({', '.join(bounds)}):")
        self.inner(block)

    def initial(self, value: object, result: Value) -> str:
        """Return an initial value of a loop; `pl.UNSET` for a name that it sets before it reads it, None for
        no task."""
        return "pl.UNSET" if value is None and not _is_task(result) else self.arg(value)

    def _while(self, op: Op) -> None:
        test, body = op.blocks
        names = ", ".join(self.name(v) for v in body.args)
        inits = ", ".join(map(self.initial, op.args["init_values"], op.results))
        names, inits = (f"({text}{',' if text else ''})" for text in (names, inits))
        self.line(f"for {names} in pl.while_(init_values={inits}):")
        for inner, outer in zip(test.args, body.args, strict=True):
            self.names[inner] = self.name(outer)
        self.depth += 1
        for o in test.ops[:-1]:
            self.op(o)
        self.line(f"pl.cond({self.arg(test.yielded[0])})")
        self.block(body)
        self.depth -= 1

    def _if(self, op: Op) -> None:
        self.line(f"if {self.arg(op.args['cond'])}:")
        self.inner(op.blocks[0])
        if len(op.blocks[1].ops) > 1 or op.blocks[1].yielded:
            self.line("else:")
            self.inner(op.blocks[1])

    def _region(self, op: Op) -> None:
        kind = op.args["kind"]
        shown = {
            k: v
            for k, v in op.args.items()
            if k not in ("kind", "dispatch") and v not in (None, [], "", False)
        }
        task = next((r for r in op.results if r.type.dtype.isa == "task"), None)
        suffix = f" as {self.name(task)}" if task is not None else ""
        self.line(f"with pl.{kind}({', '.join(f'{k}={self.said(k, v)}' for k, v in shown.items())}){suffix}:")
        self.inner(op.blocks[0])

    def _call(self, op: Op) -> None:
        """Emit a task. A task with a name, or with more than its arguments, is submitted."""
        a = op.args
        callee: Function = a["callee"]
        args = [self.arg(v) for v in a["args"]]
        more = {
            k: v for k, v in a.items() if k not in ("callee", "args", "dispatch") and (v or k == "device")
        }
        params = {p.value for p in callee.params}
        own = sum(v not in params for v in values_in(callee.returns))
        task = op.results[own] if len(op.results) > own else None
        made = iter(op.results[:own])

        def target(v: object) -> str:
            if isinstance(v, tuple | list):
                return f"({''.join(f'{target(part)}, ' for part in v).rstrip()})"
            return "_" if not isinstance(v, Value) or v in params else self.name(next(made))

        targets = [target(v) for v in callee.returns]
        if task is None and not more.keys() - {"device", "sync_start"}:
            if more.pop("sync_start", None):
                more["attrs"] = {"sync_start": True}
            targets = targets if any(t != "_" for t in targets) else []
            args += [f"{k}={self.arg(v)}" for k, v in more.items()]
            self.line(f"{', '.join(targets)}{' = ' if targets else ''}self.{callee.name}({', '.join(args)})")
            return
        written = sum(p.direction != IN for p in callee.params)
        if not targets and (written == 1 or callee.kind in FOREIGN):
            targets = ["_"] * written  # the tensors that it writes
        args += [f"{k}={self.said(k, v)}" for k, v in more.items()]
        targets.append(self.name(task) if task is not None else "_")
        word = "spmd_submit" if "core_num" in more else "submit"
        given = f"{', '.join(targets)} = " if any(t != "_" for t in targets) else ""
        self.line(f"{given}pl.{word}({', '.join((f'self.{callee.name}', *args))})")

    def said(self, word: str, arg: Any) -> str:
        """Return a declared property of a task."""
        if word != "predicate":
            return self.arg(arg)
        tensor, index, compares, number = arg
        return f"({self.arg(tensor)}[{', '.join(map(self.arg, index))}] {compares} {number})"

    def _array_create(self, op: Op) -> None:
        self.bind(op, f"pl.array.create({op.result.type.extent}, pl.{op.result.type.dtype.name})")

    def _array_copy(self, op: Op) -> None:
        self.bind(op, self.arg(op.args["array"]))

    def _task_dummy(self, op: Op) -> None:
        self.bind(op, f"pl.system.task_dummy(deps={self.arg(op.args['deps'])})")

    def _task_invalid(self, op: Op) -> None:
        self.bind(op, "pl.system.task_invalid()")

    def _array_write(self, op: Op) -> None:
        self.line(f"{self.arg(op.args['x'])}[{self.arg(op.args['offset'])}] = {self.arg(op.args['value'])}")

    def _array_read(self, op: Op) -> None:
        self.bind(op, f"{self.arg(op.args['x'])}[{self.arg(op.args['offset'])}]")


def _surprising(op: Op) -> bool:
    """Return True if a result has elements that its arguments neither have nor name, for example, after a
    narrowing move.
    """
    given = [v.type.dtype for v in values_in(op.args)] + [
        a for a in op.args.values() if isinstance(a, DataType)
    ]
    return op.result.told or (op.name in ("move", "tile.extract") and op.result.type.dtype not in given)


def _stem(name: str) -> str:
    """Return a name without its distinguishing number: `x_1` becomes `x_2`, not `x_1_0`."""
    stem, _, number = name.rpartition("_")
    return stem if stem and number.isdigit() else name


def _operator(name: str) -> Operator | None:
    """Return the operator of an operation."""
    found = OPERATORS.get(name)
    levels = ("tile", "tensor", "array", "system")
    return found or next((OPERATORS[f"{n}.{name}"] for n in levels if f"{n}.{name}" in OPERATORS), None)


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and not isinstance(a, Value) and a == b


# ---- lines ----


def broken(text: str, width: int) -> list[str]:
    """Break a statement into lines: if it is too long, the contents of its widest brackets have their own
    lines."""
    if len(text) <= width:
        return [text]
    start, end, parts = _widest(text)
    if len(parts) < 2:
        return [text]
    lines = [text[: start + 1]]
    row = ""
    for i, part in enumerate(parts):
        item = part + ("," if i < len(parts) - 1 else "")
        if row and len(row) + 1 + len(item) > width - 4:
            lines += _indented(row, width)
            row = ""
        row = f"{row} {item}" if row else item
    return [*lines, *_indented(row, width), text[end:]]


def _indented(row: str, width: int) -> list[str]:
    return [f"    {line}" for line in (broken(row, width - 4) if len(row) > width - 4 else [row])]


def _widest(text: str) -> tuple[int, int, list[str]]:
    """Return the position of the widest outermost brackets, and their items."""
    best: tuple[int, int, list[str]] = (0, 0, [])
    depth, quote, start, last = 0, "", 0, 0
    parts: list[str] = []
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            if depth == 0:
                start, last, parts = i, i + 1, []
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0 and i - start > best[1] - best[0]:
                best = (start, i, [*parts, text[last:i].strip()])
        elif c == "," and depth == 1:
            parts.append(text[last:i].strip())
            last = i + 1
    return best


__all__ = ["function_lines", "program_text"]
