"""Emit orchestrations as C++ over the PTO2 API, for folders of the task runtime.

    void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int)

The arguments are tensors, then extents that a call decides. Each operation becomes one or a few statements,
as in `orchestrate.py` for Python. Tensors are descriptors; a window is a view, and a kernel gets the address
of its first element. Integers have 64 bits, other numbers are f32. The body of a loop or a branch is a scope
of its own, unless a tensor that it makes is used after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ...isa.dtypes import DTYPES
from ...isa.record import Record
from ..dtypes import TASK_ID, DataType
from ..graphs.graph import ordered
from ..graphs.orchestrate import untracked
from ..ir import ArrayType, Block, Function, Number, Op, TensorType, Value, values_in
from ..ir.writer import BEFORE, BETWEEN
from ..problems import UNSUPPORTED, fail
from .orchestration_words import HELPERS, KEYWORDS

#: Element types by their name in the runtime; types that it lacks use another of their width.
DATA_TYPES = {
    **{d.name: "UINT8" for d in DTYPES.values() if d.bits == 8},
    "f32": "FLOAT32", "f16": "FLOAT16", "bf16": "BFLOAT16", "i64": "INT64", "u64": "UINT64", "index": "INT64",
    "i32": "INT32", "u32": "INT32", "i16": "INT16", "u16": "INT16", "i8": "INT8", "u8": "UINT8",
    "i1": "UINT8",
}  # fmt: skip
#: Element types that an orchestration can read and write.
_ELEMENTS = {
    "f32": "float", "i64": "int64_t", "index": "int64_t", "u64": "uint64_t", "i32": "int32_t",
    "u32": "uint32_t",
    "i16": "int16_t", "u16": "uint16_t", "i8": "int8_t", "u8": "uint8_t", "i1": "uint8_t",
}  # fmt: skip
_COMPARES = {"==": "EQ", "!=": "NE", ">": "GT", "<": "LT", ">=": "GE", "<=": "LE"}
_WORDS = {**BETWEEN, "and": "&&", "or": "||", "bitand": "&", "bitor": "|", "bitxor": "^"}
_CALLED = {"floordiv": "floor_div", "mod": "floor_mod", "min": "least", "max": "most", "abs": "absolute"}


class TaskKernel(Record):
    """The kernels of a function's tasks: their numbers on the AIC and the AIVs of a cluster; -1: none."""

    aic: int = -1
    aiv0: int = -1
    aiv1: int = -1


def orchestration_cpp(function: Function, kernels: dict[str, TaskKernel]) -> str:
    """Return the text of the file."""
    w = _Writer(function, kernels)
    body = w.function()
    source = function.loc.source.name if function.loc is not None else function.name
    names = [f"  {_constant(n)} = {k}," for n, k in w.numbers.items()]
    called = set(re.findall(r"\b(\w+)(?:<\w+>)?\(", "\n".join(body)))
    helpers = [text for word, text in HELPERS.items() if word in called]
    return "\n".join([
        f"// The orchestration of {function.name}, written from Python. Arguments: {w.arguments}.",
        "#include <array>", "#include <cstring>", "", '#include "pto_orchestration_api.h"', "",
        f"static const char* const kSource = {json.dumps(source)};", "",
        *(["enum Kernel : int32_t {", *names, "};", ""] if names else []), *helpers,
        'extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) '
        f"{{ return {{{w.count}}}; }}", "",
        'extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {',
        *(f"  {line}" if line else "" for line in body), "}", "",
    ])  # fmt: skip


def _constant(name: str) -> str:
    return f"k_{name}"


class _Writer:
    def __init__(self, function: Function, kernels: dict[str, TaskKernel]) -> None:
        self.entry = function
        self.kernels = kernels
        self.lines: list[str] = []
        self.depth = 0
        self.auto_scope = function.attrs.get("auto_scope", True)
        self.cluster = ""
        self.names: dict[Value, str] = {}
        self.taken = {"rt", "args", "kSource"}
        # for a window with dropped dimensions: the dimensions of the descriptor that it has
        self.axes: dict[Value, list[int]] = {}
        self.ranks: dict[Value, int] = {}  # and the rank of the descriptor
        # declared at the top, because they are used after the block that sets them
        self.hoisted: dict[Value, None] = {}
        self.numbers: dict[str, int] = {}
        self.arguments = ""
        self.count = 0
        self.ordered = ordered(function)

    # ---- text ----

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, wanted: str) -> str:
        name, n = wanted, 0
        while name in self.taken or name in KEYWORDS:
            name, n = f"{wanted}_{n}", n + 1
        self.taken.add(name)
        return name

    def name(self, value: Value) -> str:
        known = self.names.get(value)
        if known is None:
            wanted = value.name if value.name.isidentifier() and value.name.isascii() else "v"
            known = self.names[value] = self.fresh(wanted.strip("_") or "v")
        return known

    def arg(self, arg: object) -> str:
        """Return a number, a task or an array as text."""
        if isinstance(arg, Value):
            return self.name(arg)
        if arg is None:
            return "PTO2TaskId::invalid()"
        if isinstance(arg, bool):
            return "true" if arg else "false"
        if isinstance(arg, float):
            return _float(arg)
        return str(arg)

    def index(self, arg: Any) -> str:
        return self.arg(arg) if isinstance(arg, Value) else str(int(arg))

    def type(self, type: Any) -> str:
        if isinstance(type, TensorType):
            return "Tensor"
        if isinstance(type, ArrayType):
            return f"std::array<{_scalar(type.dtype)}, {type.extent}>"
        return _scalar(type.dtype)

    def set(self, value: Value, text: str) -> None:
        """Bind a value to its name."""
        declared = "" if value in self.hoisted else f"{self.type(value.type)} "
        self.line(f"{declared}{self.name(value)} = {text};")

    def declare(self, value: Value, text: str = "") -> None:
        declared = "" if value in self.hoisted else f"{self.type(value.type)} "
        if declared or text:
            self.line(f"{declared}{self.name(value)}{f' = {text}' if text else ''};")

    def given(self, arg: Any, type: Any) -> str:
        """Return the initial value of a loop, or a value that a block hands on."""
        if isinstance(type, TensorType):
            return self.plain(arg) if arg is not None else "Tensor()"
        if isinstance(type, ArrayType):
            return self.arg(arg) if arg is not None else f"{self.type(type)}{{}}"
        if arg is None and type.dtype != TASK_ID:
            return "0"
        if isinstance(arg, int) and type.dtype.is_float:
            return _float(float(arg))
        return self.arg(arg)

    def braced(self, items: Iterable[object]) -> str:
        return "{" + ", ".join(map(self.index, items)) + "}"

    def site(self, op: Op) -> str:
        return f"kSource, {op.loc.line if op.loc is not None else 0}"

    # ---- the function ----

    def function(self) -> list[str]:
        entry = self.entry
        tensors = [v for v in entry.body.args if isinstance(v.type, TensorType)]
        others = [v for v in entry.body.args if not isinstance(v.type, TensorType)]
        self.arguments = ", ".join(v.name for v in (*tensors, *others))
        self.count = len(entry.body.args)
        self.line("pto2_rt_init_tensor_pool(rt);")
        for n, value in enumerate(others):
            word = f"args[{len(tensors) + n}]"
            if value.type.dtype.is_float:
                name = self.name(value)
                self.line(f"float {name};  // the low half of its word")
                self.line(f"std::memcpy(&{name}, &{word}, sizeof {name});")
            else:
                self.line(f"const int64_t {self.name(value)} = static_cast<int64_t>({word});")
        for n, value in enumerate(tensors):
            t = value.type
            shape = f"{{{', '.join(f'static_cast<uint64_t>({self.index(d)})' for d in t.shape)}}}"
            name = self.name(value)
            self.line(f"const uint64_t {name}_shape[] = {shape};")
            self.line(
                f"const Tensor {name} = make_tensor_external(reinterpret_cast<void*>(args[{n}]), "
                f"{name}_shape, {t.rank}, {self.data_type(t.dtype)});"
            )
        self._find_hoisted(entry.body)
        for value in self.hoisted:
            self.line(f"{self.type(value.type)} {self.name(value)};")
        self.block(entry.body)
        return self.lines

    def data_type(self, dtype: DataType) -> str:
        if dtype.isa not in DATA_TYPES:
            fail(
                UNSUPPORTED,
                f"unsupported element type of a tensor in the task runtime: {dtype.name}",
                self.entry.loc,
            )
        return f"DataType::{DATA_TYPES[dtype.isa]}"

    def _find_hoisted(self, block: Block) -> None:
        """Find values that are used after the block that sets them; C++ must declare them earlier."""
        homes: dict[Value, Block] = {}
        inside: dict[Block, list[Block]] = {}

        def visit(block: Block, around: list[Block]) -> None:
            here = [*around, block]
            inside[block] = here
            for value in block.args:
                homes[value] = block
            for op in block.ops:
                for inner in op.blocks:
                    visit(inner, here)
                for value in op.results:
                    homes[value] = block

        visit(block, [])
        for op in block.walk():
            if op.parent is None:
                continue
            for value in values_in(op.args):
                home = homes.get(value)
                if home is not None and home not in inside[op.parent]:
                    self.hoisted[value] = None

    # ---- blocks and scopes ----

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def body(self, block: Block) -> None:
        """Emit the body of a loop or a branch, in a scope of its own if possible."""
        tasks = any(o.name in ("call", "create_tensor") for o in block.walk())
        if not (self.auto_scope and tasks) or self._keeps(block):
            self.block(block)
            return
        self.line("PTO2_SCOPE() {")
        self.depth += 1
        self.block(block)
        self.depth -= 1
        self.line("}")

    def _keeps(self, block: Block) -> bool:
        """Return True if tensors of a block are used after the block."""
        handed = any(isinstance(v, Value) and isinstance(v.type, TensorType) for v in block.yielded)
        return handed or any(r in self.hoisted for o in block.walk() for r in o.results)

    # ---- operations ----

    def op(self, op: Op) -> None:
        special = getattr(self, f"_{op.name.replace('.', '_')}", None)
        if special is not None:
            special(op)
        elif op.name.startswith("scalar."):
            self.set(op.result, self.expression(op))
        else:
            fail(UNSUPPORTED, f"unsupported operation {op.name} in a C++ orchestration", op.loc)

    def expression(self, op: Op) -> str:
        name = op.name.removeprefix("scalar.")
        args = [self.arg(a) for k, a in op.args.items() if k != "dtype"]
        if name == "cast":
            return f"static_cast<{_scalar(op.args['dtype'])}>({args[0]})"
        if name == "truediv":
            return f"static_cast<float>(static_cast<double>({args[0]}) / static_cast<double>({args[1]}))"
        if name in _CALLED:
            kind = _scalar(op.result.type.dtype)
            return f"{_CALLED[name]}<{kind}>({', '.join(args)})"
        if name in _WORDS:
            return f"{args[0]} {_WORDS[name]} {args[1]}"
        if name in BEFORE:
            return f"{'!' if name == 'not' else BEFORE[name]}{args[0]}"
        fail(UNSUPPORTED, f"unsupported operation {name} on numbers in a C++ orchestration", op.loc)

    def _const(self, op: Op) -> None:
        value = op.args["value"]
        self.set(op.result, _float(float(value)) if op.result.type.dtype.is_float else str(int(value)))

    # tensors

    def at(self, x: Value, places: list[Any], dropped: object) -> list[Any]:
        """Return one entry per dimension of a tensor's descriptor."""
        axes = self.axes.get(x)
        if axes is None:
            return places
        out: list[Any] = [dropped] * self.ranks[x]
        for axis, place in zip(axes, places, strict=True):
            out[axis] = place
        return out

    def plain(self, x: Value) -> str:
        """Return a tensor whose descriptor has exactly its dimensions."""
        if x not in self.axes:
            return self.name(x)
        return f"reshaped({self.name(x)}, {self.braced(x.type.shape)})"

    def _create_tensor(self, op: Op) -> None:
        a, t = op.args, op.result.type
        if t.rank > 5:
            fail(UNSUPPORTED, "too many dimensions for the task runtime: at most 5", op.loc, got=t)
        more = ", true" if a.get("manual_dep") else ""
        if a.get("init_value") is not None:
            more = f"{more or ', false'}, {_bits(a['init_value'], t.dtype)}, true"
        self.set(op.result, f"create({self.data_type(t.dtype)}, {self.braced(t.shape)}{more})")

    def _slice(self, op: Op) -> None:
        a, x = op.args, op.args["x"]
        shape, offset = self.at(x, list(a["shape"]), 1), self.at(x, list(a["offset"]), 0)
        self.set(op.result, f"window({self.name(x)}, {self.braced(shape)}, {self.braced(offset)})")
        axes = self.axes.get(x, list(range(x.type.rank)))
        dropped = a.get("drop_dims") or ()
        if x in self.axes or dropped:
            self.axes[op.result] = [axis for i, axis in enumerate(axes) if i not in dropped]
            self.ranks[op.result] = self.ranks[x] if x in self.ranks else x.type.rank

    def _reshape(self, op: Op) -> None:
        x, t = op.args["x"], op.result.type
        self.set(op.result, f"reshaped({self.name(x)}, {self.braced(t.shape)})")

    def _transpose(self, op: Op) -> None:
        a, x = op.args, op.args["x"]
        axes = self.axes.get(x, list(range(x.type.rank)))
        self.set(op.result, f"{self.name(x)}.transpose({axes[a['axis1']]}, {axes[a['axis2']]})")
        if x in self.axes:
            self.axes[op.result], self.ranks[op.result] = axes, self.ranks[x]

    def element(self, op: Op) -> tuple[str, str, int, str]:
        """Return the type, the tensor, the number of dimensions and the offset of an element."""
        x, at = op.args["x"], list(op.args["offset"])
        dtype = x.type.dtype
        if dtype.isa not in _ELEMENTS:
            fail(
                UNSUPPORTED,
                f"unsupported element type of a read or write in a C++ orchestration: {dtype.name}",
                op.loc,
            )
        tensor = self.name(x)
        if len(at) == 1 and x.type.rank > 1:
            tensor = f"reshaped({tensor}, {{static_cast<int64_t>({tensor}.numel())}})"
        else:
            at = self.at(x, at, 0)
        return _ELEMENTS[dtype.isa], tensor, len(at), self.braced(at)

    def _read(self, op: Op) -> None:
        kind, tensor, _, at = self.element(op)
        self.set(op.result, f"element<{kind}>({tensor}, {at}, {self.site(op)})")

    def _write(self, op: Op) -> None:
        kind, tensor, _, at = self.element(op)
        value = op.args["value"]
        self.line(f"set_element<{kind}>({tensor}, {at}, {self.arg(value)}, {self.site(op)});")

    # tasks

    def deps(self, deps: list[Any]) -> tuple[int, list[str]]:
        """Return the largest possible number of dependencies, and their texts."""
        count, texts = 0, []
        for d in deps:
            if isinstance(d, Value) and isinstance(d.type, ArrayType):
                texts += [f"{self.name(d)}[{i}]" for i in range(d.type.extent)]
                count += d.type.extent
            elif d is not None:
                texts.append(self.name(d))
                count += 1
        return count, texts

    def _call(self, op: Op) -> None:
        a = op.args
        callee: Function = a["callee"]
        free = untracked(a)
        if self.cluster and not a.get("core_num") and _mixed(self.kernels[callee.name]) is None:
            self._clustered(op, callee)
            return
        task = op.results[-1] if op.results else None
        if task is not None:
            self.declare(task, "PTO2TaskId::invalid()")
        self.line("{")
        self.depth += 1
        count, deps = self.deps(a.get("deps") or [])
        self.line(f"CoreTaskArgsWithDeps<{count}> task;" if count else "CoreTaskArgs task;")
        for i, (value, param) in enumerate(zip(a["args"], callee.body.args, strict=True)):
            if isinstance(param.type, TensorType):
                word = "no_dep" if i in free else self._direction(op, i, callee)
                self.line(f"task.add_{word}({self.name(value)});")
            else:
                self.line(f"task.add_scalar({self.number(value, param.type.dtype)});")
        for d in deps:
            self.line(f"task.add_dep({d});")
        if a.get("core_num"):
            self.line(f"task.launch_spec.set_block_num(static_cast<int16_t>({self.index(a['core_num'])}));")
        if a.get("sync_start"):
            self.line("task.launch_spec.set_require_sync_start(true);")
        if a.get("predicate"):
            self._predicate(a["predicate"])
        given = f"{self.name(task)} = " if task is not None else ""
        suffix = ".task_id()" if task is not None else ""
        self.line(f"{given}{self.submit(callee)}, task, {self.site(op)}){suffix};")
        self.depth -= 1
        self.line("}")

    def _direction(self, op: Op, at: int, callee: Function) -> str:
        """Return the direction of an argument where its task is submitted."""
        value = callee.body.args[at]
        said = next((p.direction for p in callee.params if p.value is value), "inout")
        return "inout" if at in self.ordered[op] else _DIRECTIONS[said]

    def number(self, value: Number, dtype: DataType) -> str:
        """Return a number in the form in which a task takes it."""
        if dtype.is_float:
            if dtype.isa != "f32":
                fail(UNSUPPORTED, f"unsupported type of a number for a task: {dtype.name}", self.entry.loc)
            return f"static_cast<float>({self.arg(value)})"
        return f"static_cast<int64_t>({self.arg(value)})"

    def submit(self, callee: Function) -> str:
        kernel = self.kernels[callee.name]
        mixed = _mixed(kernel)
        if mixed is not None:
            self.numbers[f"{callee.name}_aic"], self.numbers[f"{callee.name}_aiv"] = kernel.aic, kernel.aiv0
            aic, aiv = _constant(f"{callee.name}_aic"), _constant(f"{callee.name}_aiv")
            other = aiv if kernel.aiv1 >= 0 else "INVALID_KERNEL_ID"
            return f"rt_submit_task(MixedKernels{{{aic}, {aiv}, {other}}}"
        self.numbers[callee.name] = max(kernel.aic, kernel.aiv0)
        return f"rt_submit_{'aic' if kernel.aic >= 0 else 'aiv'}_task({_constant(callee.name)}"

    def _predicate(self, predicate: Any) -> None:
        tensor, index, word, number = predicate
        flat = len(index) == 1 and tensor.type.rank > 1
        source = self.name(tensor)
        if flat:
            self.line(f"const Tensor asked = reshaped({source}, {{static_cast<int64_t>({source}.numel())}});")
            source = "asked"
        places = index if flat else self.at(tensor, list(index), 0)
        self.line("CoreTaskPredicate runs_if;")
        self.line(f"runs_if.operand.tensor = &{source};")
        self.line(f"runs_if.operand.ndims = {len(places)};")
        for i, place in enumerate(places):
            self.line(f"runs_if.operand.indices[{i}] = static_cast<uint32_t>({self.index(place)});")
        self.line(f"runs_if.op = PredicateOp::{_COMPARES[word]};")
        self.line(f"runs_if.target = {number};")
        self.line("task.set_predicate(runs_if);")

    def _clustered(self, op: Op, callee: Function) -> None:
        """Submit a task on the cores of the current cluster."""
        if op.results or op.args.get("deps") or op.args.get("predicate"):
            fail(UNSUPPORTED, "unsupported name, deps or predicate of a task of a cluster in C++", op.loc)
        kernel = self.kernels[callee.name]
        self.submit(callee)
        params: list[str] = []
        for i, (value, param) in enumerate(zip(op.args["args"], callee.body.args, strict=True)):
            if isinstance(param.type, TensorType):
                params.append(f"make_{self._direction(op, i, callee)}_param({self.name(value)})")
            else:
                params.append(f"number({self.number(value, param.type.dtype)})")
        worker = "PTO2_WORKER_CUBE" if kernel.aic >= 0 else "PTO2_WORKER_VECTOR"
        self.line("{")
        self.line(f"  PTOParam params[] = {{{', '.join(params)}}};")
        self.line(
            f"  pto2_rt_submit_task_clustered(rt, {_constant(callee.name)}, {worker}, params, {len(params)}, "
            f"{self.cluster}, {self.site(op)});"
        )
        self.line("}")

    def _task_dummy(self, op: Op) -> None:
        _, deps = self.deps(op.args["deps"])
        self.set(op.result, f"join({{{', '.join(deps)}}}, {self.site(op)})" if deps else
                 f"rt_submit_dummy_task(CoreTaskArgs(), {self.site(op)}).task_id()")  # fmt: skip

    def _task_invalid(self, op: Op) -> None:
        self.set(op.result, "PTO2TaskId::invalid()")

    # arrays

    def _array_create(self, op: Op) -> None:
        self.declare(op.result, "" if op.result.type.dtype == TASK_ID else f"{self.type(op.result.type)}{{}}")
        if op.result.type.dtype == TASK_ID:
            self.line(f"{self.name(op.result)}.fill(PTO2TaskId::invalid());")

    def _array_copy(self, op: Op) -> None:
        self.set(op.result, self.name(op.args["array"]))

    def _array_read(self, op: Op) -> None:
        self.set(op.result, f"{self.name(op.args['x'])}.at({self.index(op.args['offset'])})")

    def _array_write(self, op: Op) -> None:
        a = op.args
        self.line(f"{self.name(a['x'])}.at({self.index(a['offset'])}) = {self.arg(a['value'])};")

    # control flow

    def _yield(self, op: Op) -> None:
        outer = op.parent.outer if op.parent is not None else None
        if isinstance(outer, Op):
            for result, value in zip(outer.results, op.args["values"], strict=False):
                self.line(f"{self.name(result)} = {self.given(value, result.type)};")

    def _carried(self, op: Op) -> None:
        for result, value in zip(op.results, op.args["init_values"], strict=True):
            empty = value is None and isinstance(result.type, ArrayType)
            self.declare(result, "" if empty else self.given(value, result.type))

    def _for(self, op: Op) -> None:
        a, block = op.args, op.blocks[0]
        self._carried(op)
        i = self.name(block.args[0])
        start, stop, step = (self.index(a[k]) for k in ("start", "stop", "step"))
        test = f"{i} {'>' if step.startswith('-') else '<'} {stop}"
        if isinstance(a["step"], Value):
            test = f"({step} > 0 ? {i} < {stop} : {i} > {stop})"
        self.line(f"for (int64_t {i} = {start}; {test}; {i} += {step}) {{")
        self.depth += 1
        for arg, result in zip(block.args[1:], op.results, strict=True):
            self.set(arg, self.name(result))
        self.body(block)
        self.depth -= 1
        self.line("}")

    def _while(self, op: Op) -> None:
        test, body = op.blocks
        self._carried(op)
        self.line("while (true) {")
        self.depth += 1
        for arg, result in zip(test.args, op.results, strict=True):
            self.set(arg, self.name(result))
        for o in test.ops[:-1]:
            self.op(o)
        self.line(f"if (!({self.arg(test.yielded[0])})) break;")
        for arg, result in zip(body.args, op.results, strict=True):
            self.set(arg, self.name(result))
        self.body(body)
        self.depth -= 1
        self.line("}")

    def _if(self, op: Op) -> None:
        for result in op.results:
            self.declare(result, "" if isinstance(result.type, TensorType | ArrayType)
                         else self.given(None, result.type))  # fmt: skip
        self.line(f"if ({self.arg(op.args['cond'])}) {{")
        for n, block in enumerate(op.blocks):
            if n and len(block.ops) <= 1 and not block.yielded:
                break
            if n:
                self.line("} else {")
            self.depth += 1
            self.body(block)
            self.depth -= 1
        self.line("}")

    def _region(self, op: Op) -> None:
        kind, block = op.args["kind"], op.blocks[0]
        for result in op.results:
            self.declare(result)
        if kind == "cluster":
            self._cluster(block)
            return
        manual = getattr(op.args.get("mode"), "name", "") == "MANUAL"
        if self._keeps(block) and not manual:
            self.line("{")
        else:
            self.line(f"PTO2_SCOPE({'PTO2ScopeMode::MANUAL' if manual else ''}) {{")
        before, self.auto_scope = self.auto_scope, self.auto_scope and not manual
        self.depth += 1
        self.block(block)
        self.depth -= 1
        self.auto_scope = before
        self.line("}")

    def _cluster(self, block: Block) -> None:
        """Allocate a cluster for tasks; tasks of several blocks have clusters of their own."""
        calls = [o for o in block.walk() if o.name == "call" and not o.args.get("core_num")]
        needed = any(_mixed(self.kernels[o.args["callee"].name]) is None for o in calls)
        self.line("{")
        self.depth += 1
        if needed:
            self.cluster = self.fresh("cluster")
            self.line(f"const int32_t {self.cluster} = pto2_rt_allocate_cluster(rt);")
        self.block(block)
        if needed:
            self.line(f"pto2_rt_free_cluster(rt, {self.cluster});")
            self.cluster = ""
        self.depth -= 1
        self.line("}")


def _mixed(kernel: TaskKernel) -> TaskKernel | None:
    return kernel if kernel.aic >= 0 and kernel.aiv0 >= 0 else None


#: Directions of parameters by their name where a task is submitted.
_DIRECTIONS = {"in": "input", "out": "output", "inout": "inout"}


def _scalar(dtype: DataType) -> str:
    if dtype == TASK_ID:
        return "PTO2TaskId"
    return "float" if dtype.is_float else "bool" if dtype.isa == "i1" else "int64_t"


def _float(value: float) -> str:
    if value != value:
        return '__builtin_nanf("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    return f"{value!r}f" if "." in repr(value) or "e" in repr(value) else f"{value!r}.0f"


def _bits(value: float, dtype: DataType) -> str:
    """Return the fill value of a tensor as the bits of an element."""
    import numpy as np

    from ...engine.elements import ARRAY_DTYPES

    array = np.zeros(1, ARRAY_DTYPES[dtype.isa])
    array[:] = value
    return f"uint64_t{{0x{int.from_bytes(array.tobytes(), 'little'):x}}}"
