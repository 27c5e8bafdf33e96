"""Programs of the language as Python text, which reads back as the same program.

Every function becomes a method of a class, every operation a statement; control flow has its explicit form, with
`init_values` and `pl.yield_`.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from .dtypes import FP32, INDEX, DataType
from .forms import CrossCoreSlot, Split
from .ir import (
    IN,
    OUT,
    ArrayType,
    Block,
    Function,
    Op,
    Program,
    ScalarType,
    TensorType,
    TileType,
    Type,
    Value,
)

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or",
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "not ", "invert": "~"}
#: Operators that return their argument.
_IN_PLACE = {"store": "output_tensor", "assemble": "target", "write": "x"}


def program_text(program: Program, concise: bool = False) -> str:
    """A class with a method per function."""
    lines = ["import pto.language as pl", ""]
    symbols = sorted({n for f in program.functions.values() for n in f.attrs.get("symbols", ())})
    lines += [f"{n} = pl.dynamic({n!r})" for n in symbols]
    lines += ["", "", "@pl.program", f"class {_identifier(program.name)}:"]
    for function in program.functions.values():
        lines += [f"    {line}" if line else "" for line in function_lines(function)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_KINDS = {
    "orchestration": "Orchestration",
    "incore": "InCore",
    "aic": "AIC",
    "aiv": "AIV",
    "group": "Group",
    "mixed": "Group",
}


def function_lines(function: Function) -> list[str]:
    """A method."""
    p = _Printer(function)
    params = ["self"]
    for param in function.params:
        text = p.type(param.value.type)
        if param.direction != IN:
            text = f"pl.{'Out' if param.direction == OUT else 'InOut'}[{text}]"
        params.append(f"{p.name(param.value)}: {text}")
    known = {param.value for param in function.params}
    symbols = function.attrs.get("symbols", {})
    for value in function.body.args:
        if value not in known and value.name not in symbols:
            params.append(f"{p.name(value)}: pl.Scalar[pl.INDEX]")
    head = f"def {function.name}({', '.join(params)}):"
    p.block(function.body)
    if function.returns:
        p.line("return " + ", ".join(p.arg(v) for v in function.returns))
    if not p.lines:
        p.line("pass")
    kind = f"pl.FunctionType.{_KINDS.get(function.kind, 'Opaque')}"
    if function.kind == "extern":
        from .extern import sources_of

        core, path = next(iter(sources_of(function).items()))
        kind = f"pl.FunctionType.{core.upper()}, external_source={path!r}"
    return [f"@pl.function(type={kind})", head, *(f"    {line}" for line in p.lines)]


def _is_task(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.dtype.isa == "task"


def _identifier(name: str) -> str:
    return "".join(part.capitalize() or "_" for part in name.split("_"))


class _Printer:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[Value, str] = {}
        self.taken: set[str] = {"self", "pl"}
        for value in function.body.args:
            self.name(value)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, value: Value) -> str:
        """Its name in the text; every value has one of its own."""
        known = self.names.get(value)
        if known is None:
            wanted = value.name if value.name.isidentifier() else "v"
            known, n = wanted, 0
            while known in self.taken:
                known = f"{wanted}_{n}"
                n += 1
            self.taken.add(known)
            self.names[value] = known
        return known

    def arg(self, arg: Any) -> str:
        if isinstance(arg, Value):
            return self.name(arg)
        if isinstance(arg, list):
            return "[" + ", ".join(map(self.arg, arg)) + "]"
        if isinstance(arg, tuple):
            return "(" + ", ".join(map(self.arg, arg)) + ("," if len(arg) == 1 else "") + ")"
        if isinstance(arg, enum.Enum):
            return f"pl.{type(arg).__name__}.{arg.name}"
        if isinstance(arg, DataType):
            return f"pl.{arg.name}"
        if isinstance(arg, Split):
            return f"pl.split({self.arg(arg.mode)})"
        if isinstance(arg, CrossCoreSlot):
            return f"pl.cross_core_slot(slot_num={arg.slot_num})"
        if isinstance(arg, float) and not math.isfinite(arg):
            return f"float({str(arg)!r})"
        return repr(arg)

    def type(self, type: Type) -> str:
        if isinstance(type, ScalarType):
            return f"pl.Scalar[pl.{type.dtype.name}]"
        if isinstance(type, ArrayType):
            return f"pl.Array[{type.extent}, pl.{type.dtype.name}]"
        assert isinstance(type, TensorType | TileType)
        word = "Tile" if isinstance(type, TileType) else "Tensor"
        return f"pl.{word}[{self.arg(list(type.shape))}, pl.{type.dtype.name}]"

    # ---- statements ----

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def inner(self, block: Block) -> None:
        self.depth += 1
        start = len(self.lines)
        self.block(block)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def op(self, op: Op) -> None:
        special = getattr(self, f"_{op.name.replace('.', '_')}", None)
        if special is not None:
            special(op)
        elif op.name.startswith("scalar."):
            self.line(f"{self.name(op.result)} = {self.expression(op)}")
        else:
            self.bind(op, self.call(op))

    def bind(self, op: Op, text: str) -> None:
        names = ", ".join(self.name(r) for r in op.results)
        self.line(f"{names} = {text}" if names else text)

    def call(self, op: Op) -> str:
        args = [f"{k}={self.arg(v)}" for k, v in op.args.items() if v is not None]
        return f"pl.{op.name}({', '.join(args)})"

    def expression(self, op: Op) -> str:
        name = op.name.removeprefix("scalar.")
        args = [self.arg(a) for k, a in op.args.items() if k != "dtype"]
        if name in _OPERATORS:
            return f"{args[0]} {_OPERATORS[name]} {args[1]}"
        if name in _PREFIX:
            return _PREFIX[name] + args[0]
        if name == "cast":
            return f"pl.cast({args[0]}, pl.{op.args['dtype'].name})"
        return f"pl.{name}({', '.join(args)})"

    def _const(self, op: Op) -> None:
        self.bind(op, f"pl.const({self.arg(op.args['value'])}, pl.{op.args['dtype'].name})")

    def _yield(self, op: Op) -> None:
        outer: Any = op.parent.outer if op.parent is not None else None
        values = op.args["values"]
        if not isinstance(outer, Op) or not values:
            return
        if outer.name == "for" or outer.name == "while":
            names = [self.name(r) for r in outer.results]
            self.line(f"{', '.join(names)} = pl.yield_({', '.join(map(self.arg, values))})")
            return
        for result, value in zip(outer.results, values, strict=False):
            self.line(f"{self.name(result)} = {self.arg(value)}")

    def _for(self, op: Op) -> None:
        a = op.args
        bounds = [self.arg(a[k]) for k in ("start", "stop", "step")]
        block = op.blocks[0]
        target = self.name(block.args[0])
        more = ""
        if block.args[1:]:
            inits = [
                self.arg(v) if v is not None else self.undefined(r.type)
                for v, r in zip(a["init_values"], op.results, strict=True)
            ]
            target += f", ({', '.join(self.name(v) for v in block.args[1:])},)"
            more = f", init_values=({', '.join(inits)},)"
        if a["kind"] == "pipeline":
            more += f", stage={a['stage']}"
        self.line(f"for {target} in pl.{a['kind']}({', '.join(bounds)}{more}):")
        self.inner(block)

    def undefined(self, type: Type) -> str:
        """What a name is before a loop sets it."""
        if isinstance(type, ArrayType):
            return f"pl.array.create({type.extent}, pl.{type.dtype.name})"
        if type.dtype.isa == "task":
            return "pl.system.task_invalid()"
        if isinstance(type, TileType):
            return f"pl.create_tile({self.arg(list(type.shape))}, pl.{type.dtype.name})"
        if isinstance(type, TensorType):
            return f"pl.create_tensor({self.arg(list(type.shape))}, pl.{type.dtype.name})"
        if type.dtype in (INDEX, FP32):
            return "0" if type.dtype == INDEX else "0.0"
        return f"pl.const(0, pl.{type.dtype.name})"

    def _while(self, op: Op) -> None:
        test, body = op.blocks
        names = ", ".join(self.name(v) for v in body.args)
        inits = ", ".join(self.arg(v) for v in op.args["init_values"])
        self.line(f"for ({names},) in pl.while_(init_values=({inits},)):")
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
        shown = {k: v for k, v in op.args.items() if k != "kind" and v not in (None, [], "", False)}
        task = next((r for r in op.results if isinstance(r.type, ScalarType)), None)
        suffix = f" as {self.name(task)}" if task is not None else ""
        self.line(f"with pl.{kind}({', '.join(f'{k}={self.said(k, v)}' for k, v in shown.items())}){suffix}:")
        self.inner(op.blocks[0])

    def _call(self, op: Op) -> None:
        a = op.args
        args = [f"self.{a['callee'].name}", *(self.arg(v) for v in a["args"])]
        said = {k: v for k, v in a.items() if k not in ("callee", "args") and v}
        if not said and not any(_is_task(r) for r in op.results):
            self.bind(op, f"{args[0]}({', '.join(args[1:])})")
            return
        word = "spmd_submit" if "core_num" in said else "submit"
        text = f"pl.{word}({', '.join([*args, *(f'{k}={self.said(k, v)}' for k, v in said.items())])})"
        callee: Function = a["callee"]
        written = [p for p in callee.params if p.direction != IN]
        gives = bool(callee.returns) or len(written) == 1 or (callee.kind == "extern" and bool(written))
        self.bind(op, f"{text}[-1]" if len(op.results) == 1 and gives else text)

    def said(self, word: str, arg: Any) -> str:
        """What a task says of itself."""
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
