"""The IR above tiles: functions over tensors, tiles, scalars, arrays and task ids, as a tree in SSA form.

An operation keeps the arguments of its call by parameter name: numbers, words and lists of them, with
`Value`s at any depth. So the program prints after every stage as Python that reads back as the same program
(`printer.py`). Control flow is structured: `for`, `while`, `if` and regions hold blocks, and the last
operation of a block, `yield`, hands values on.

Memory is not in SSA form. A tile, and a tensor that is a parameter or was created by an orchestration, name
storage. `store`, `assemble` and `write` change the storage and return the same value again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeGuard, TypeVar, overload

from ...diag import Span
from ...isa.profiles import Profile
from ...isa.record import Record
from ..dtypes import BOOL, INDEX, INT64, DataType
from ..enums import FunctionType

#: An extent or an offset: a number, or an INDEX scalar.
Dim: TypeAlias = "int | Value"
Dims: TypeAlias = tuple[Dim, ...]
#: A number of a program: a constant, or a scalar.
Number: TypeAlias = "int | float | Value"
#: Arguments of an operation by parameter: values, numbers, words, and lists of them.
Args: TypeAlias = dict[str, Any]

_T = TypeVar("_T", bound="Type")


class Type(Record):
    """The type of a value."""

    dtype: DataType


class ScalarType(Type):
    dtype: DataType

    def __str__(self) -> str:
        return f"Scalar[{self.dtype.name}]"


class ArrayType(Type):
    """Numbers, truth values or task ids on the stack of a core or of the orchestrator."""

    dtype: DataType
    extent: int = 0

    def __str__(self) -> str:
        return f"Array[{self.extent}, {self.dtype.name}]"


class ShapedType(Type):
    dtype: DataType
    shape: Dims = ()
    valid: Dims | None = None  # the valid region, from the origin; None: all of it

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def extent(self) -> Dims:
        """Return the extent of the valid region in each dimension."""
        return self.shape if self.valid is None else self.valid

    def __str__(self) -> str:
        shape = ", ".join(str(d) if isinstance(d, int) else d.name or "?" for d in self.shape)
        return f"{type(self).__name__.removesuffix('Type')}[[{shape}], {self.dtype.name}]"


class TensorType(ShapedType):
    """A tensor. `strides` is set for a window of a larger tensor; None: contiguous."""

    strides: Dims | None = None
    layout: str = "ND"


class DistributedTensorType(TensorType):
    """A window that every rank has. It exists only in texts that are read in order to print them. Once ranks
    are known, the window of a rank is an ordinary tensor.
    """


class HandleType(Type):
    """An opaque handle in a text: memory that every rank has, or the communication context of ranks. `word`
    is its name in the language."""

    dtype: DataType = INT64
    word: str = ""

    def __str__(self) -> str:
        return self.word


class TileType(ShapedType):
    """A tile, of constant shape. `space` is empty until a pass decides it."""

    shape: tuple[int, ...] = ()
    space: str = ""
    transposed: bool = False  # for a tile in Mat: stored transposed
    flat: bool = False  # for a row in Mat: without boxes, as Bias needs it
    scales: str = ""  # for scales in Mat: their destination in the memories of the cube


class VectorType(Type):
    """A vector register: 256 bytes of elements."""

    dtype: DataType

    @property
    def lanes(self) -> int:
        return 2048 // self.dtype.bits

    def __str__(self) -> str:
        return f"Vector[{self.lanes}, {self.dtype.name}]"


class MaskType(Type):
    """A truth value for every lane of a register, with `bits` per lane."""

    dtype: DataType = BOOL
    bits: int = 32

    def __str__(self) -> str:
        return f"Mask[{2048 // self.bits}]"


class Value:
    """The result of an operation, or an argument of a block."""

    __slots__ = ("begins", "index", "name", "owner", "told", "type")

    def __init__(self, type: Type, name: str = "", owner: Op | Block | None = None, index: int = 0) -> None:
        self.type: Any = type
        self.begins: Value | None = None  # for an argument of a loop: its value in the first iteration
        self.name = name
        self.owner = owner
        self.index = index
        self.told = False  # only in texts: the element type depends on an annotation

    @property
    def op(self) -> Op | None:
        """Return the operation that defines the value; None for an argument."""
        return self.owner if isinstance(self.owner, Op) else None

    def __repr__(self) -> str:
        return f"<{self.name or '_'}: {self.type}>"


class Op:
    """An operation. `args` holds the arguments of the call by parameter, `blocks` its nested blocks."""

    __slots__ = ("args", "blocks", "loc", "name", "parent", "results")

    def __init__(self, name: str, args: Args, types: Sequence[Type], loc: Span | None) -> None:
        self.name = name
        self.args = args
        self.results = [Value(t, "", self, i) for i, t in enumerate(types)]
        self.blocks: list[Block] = []
        self.loc = loc
        self.parent: Block | None = None

    @property
    def result(self) -> Value:
        return self.results[0]

    def add_block(self, args: list[tuple[Type, str]] | None = None) -> Block:
        block = Block(self)
        for type, name in args or ():
            block.add_arg(type, name)
        self.blocks.append(block)
        return block

    def operands(self) -> Iterator[Value]:
        """Yield every value among the arguments and in the types of the results."""
        yield from values_in(self.args)
        for result in self.results:
            yield from values_in(dims_of(result.type))

    def walk(self) -> Iterator[Op]:
        """Yield the operation and everything in its blocks, in order."""
        yield self
        for block in self.blocks:
            for op in block.ops:
                yield from op.walk()

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


class Block:
    __slots__ = ("args", "ops", "outer")

    def __init__(self, outer: Op | Function | None = None) -> None:
        self.args: list[Value] = []
        self.ops: list[Op] = []
        self.outer = outer

    def add_arg(self, type: Type, name: str = "") -> Value:
        value = Value(type, name, self, len(self.args))
        self.args.append(value)
        return value

    def append(self, op: Op) -> Op:
        op.parent = self
        self.ops.append(op)
        return op

    @property
    def yielded(self) -> list[Value]:
        """Return the values that the block hands on."""
        return list(self.ops[-1].args["values"]) if self.ops and self.ops[-1].name == "yield" else []

    def walk(self) -> Iterator[Op]:
        for op in self.ops:
            yield from op.walk()


#: Directions of parameters.
IN, OUT, INOUT = "in", "out", "inout"
#: The hidden parameter of mixed kernels: memory for FIFOs between cores (passes/mixed.py).
FIFO_SLOTS = "fifo_slots"
#: The attribute of a function with the conditions that its callers satisfy, as texts.
ASSUMED = "assume"
#: Kinds of functions with foreign bodies: C++, and Python that a task runs.
FOREIGN = ("extern", "python")


class Param(Record):
    value: Value
    direction: str = IN

    @property
    def name(self) -> str:
        return self.value.name


class Function:
    """A function. `kind`: orchestration, incore, aic, aiv, mixed, extern or python. `returns` holds values of
    its body."""

    def __init__(self, name: str, kind: str, loc: Span | None = None) -> None:
        self.name = name
        self.kind = kind
        self.loc = loc
        self.body = Block(self)
        self.params: list[Param] = []
        self.returns: list[Value] = []
        self.attrs: Args = {}

    @property
    def func_type(self) -> FunctionType:
        """Return the kind as a `pl.FunctionType`."""
        kinds = {"orchestration": "Orchestration", "aic": "AIC", "aiv": "AIV", "mixed": "Group"}
        return FunctionType[kinds.get(self.kind, "InCore")]

    def param(self, type: Type, name: str, direction: str = IN) -> Value:
        value = self.body.add_arg(type, name)
        self.params.append(Param(value, direction))
        return value

    def walk(self) -> Iterator[Op]:
        return self.body.walk()

    def __repr__(self) -> str:
        return f"<Function {self.name} ({self.kind})>"


class Program:
    """Functions by name; `entry` is the called function, `target` the profile of the machine."""

    def __init__(self, name: str, target: Profile | None = None) -> None:
        self.name = name
        self.target = target
        self.functions: dict[str, Function] = {}
        self.entry: Function | None = None

    @property
    def profile(self) -> Profile:
        """Return the target; every program that is being lowered has one."""
        assert self.target is not None
        return self.target

    def add(self, function: Function) -> Function:
        """Add a function under its name, or under a free name like it."""
        name, n = function.name, 0
        while function.name in self.functions:
            function.name = f"{name}_{n}"
            n += 1
        self.functions[function.name] = function
        return function


# ---- values within arguments ----


def values_in(arg: object) -> Iterator[Value]:
    """Yield every value in an argument, at any depth."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, list | tuple):
        for item in arg:
            yield from values_in(item)
    elif isinstance(arg, dict):
        for item in arg.values():
            yield from values_in(item)


def replaced(arg: object, of: Callable[[Value], object]) -> Any:
    """Return an argument with its values replaced."""
    if isinstance(arg, Value):
        return of(arg)
    if isinstance(arg, list):
        return [replaced(item, of) for item in arg]
    if isinstance(arg, tuple):
        return tuple(replaced(item, of) for item in arg)
    if isinstance(arg, dict):
        return {key: replaced(item, of) for key, item in arg.items()}
    return arg


def dims_of(type: Type) -> list[Dims | None]:
    """Return the extents and strides of a type, which may be values."""
    if not isinstance(type, ShapedType):
        return []
    return [type.shape, type.valid, getattr(type, "strides", None)]


def retyped(type: _T, of: Callable[[Value], object]) -> _T:
    """Return a type with the values in its extents replaced."""
    if not isinstance(type, ShapedType) or not any(True for _ in values_in(dims_of(type))):
        return type
    changes = {"shape": replaced(type.shape, of), "valid": replaced(type.valid, of)}
    if isinstance(type, TensorType):
        changes["strides"] = replaced(type.strides, of)
    return type.replace(**changes)


def scalar_type(arg: object) -> DataType | None:
    """Return the type of a scalar argument; a literal has its default type."""
    if isinstance(arg, Value):
        return arg.type.dtype if isinstance(arg.type, ScalarType) else None
    if isinstance(arg, bool):
        return BOOL
    if isinstance(arg, int):
        return INDEX
    from ..dtypes import FP32

    return FP32 if isinstance(arg, float) else None


def is_shaped(arg: object) -> TypeGuard[Value]:
    return isinstance(arg, Value) and isinstance(arg.type, ShapedType)


def is_tensor(arg: object) -> TypeGuard[Value]:
    return isinstance(arg, Value) and isinstance(arg.type, TensorType)


def is_tile(arg: object) -> TypeGuard[Value]:
    return isinstance(arg, Value) and isinstance(arg.type, TileType)


def is_int(arg: object) -> TypeGuard[Dim]:
    """Return True for an integer: a constant or a scalar."""
    dtype = scalar_type(arg)
    return dtype is not None and dtype.is_int


@overload
def is_scalar(arg: Value) -> TypeGuard[Value]: ...
@overload
def is_scalar(arg: object) -> TypeGuard[Number]: ...
def is_scalar(arg: object) -> bool:
    return isinstance(arg, int | float) or (isinstance(arg, Value) and isinstance(arg.type, ScalarType))


#: Operations whose result is a window or an alias of the storage of their first argument.
VIEWS = ("slice", "reshape", "transpose", "reinterpret_view", "tensor.view")


#: Operands that operations write.
WRITTEN = {"store": "output_tensor", "assemble": "target", "write": "x", "mscatter": "output_tensor"}


#: Operations that write to a tile, and the operand that they write.
CHANGES = {"assemble": "target", "write": "x", "gather_row": "dst", "micro.vsts": "tile"}


def writes(op: Op, name: str) -> bool:
    """Return True if an operation writes to its operand `name`. Signals between cores are written."""
    return WRITTEN.get(op.name) == name or op.name.startswith("system.")


def reads(op: Op, name: str) -> bool:
    """Return True if an operation reads its operand `name`: all except pure outputs and aliases of memory."""
    if op.name in ("slice", "reshape", "yield", "for", "while"):
        return False
    return WRITTEN.get(op.name) != name or bool(getattr(op.args.get("atomic"), "value", 0))


def root(value: Value) -> Value:
    """Return the storage that a tensor is a part of."""
    while True:
        op = value.op
        if op is None:
            if value.begins is None:
                return value
            value = value.begins
            continue
        first = next(iter(op.args.values()), None)
        if op.name not in VIEWS or not isinstance(first, Value):
            return value
        if op.name == "transpose" and value.type.strides is None:
            return value  # on a core, a transpose moves the elements
        value = first


def lies_in(block: Block, outer: Block) -> bool:
    """Return True if a block is `outer` or nested in it."""
    here: Block | None = block
    while here is not None and here is not outer:
        above = here.outer
        here = above.parent if isinstance(above, Op) else None
    return here is outer


def is_memory(value: Value) -> bool:
    """Return True if a tensor is in global memory: a parameter, a tensor made by an orchestration, or a
    window of either. Other tensors are results of operators."""
    if not isinstance(value.type, TensorType):
        return False
    value = root(value)
    op = value.op
    if op is None:
        return isinstance(value.owner, Block) and isinstance(value.owner.outer, Function)
    return op.name in ("create_tensor", "pld.window", "call", "region", "spmd") and in_orchestration(op)


def in_orchestration(op: Op) -> bool:
    """Return True if the orchestrator executes an operation, and not a core."""
    outer = op.parent.outer if op.parent is not None else None
    while isinstance(outer, Op):
        if outer.name in ("region", "spmd"):
            return False
        outer = outer.parent.outer if outer.parent is not None else None
    return isinstance(outer, Function) and outer.kind == "orchestration"
