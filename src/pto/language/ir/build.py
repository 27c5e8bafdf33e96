"""The builder that operators use: it appends operations to a block and reports problems at the argument."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar, overload

from ...diag import Span
from ...isa.profiles import Profile
from ...isa.record import Record
from ..dtypes import BOOL, FP32, INDEX, DataType
from ..enums import SplitMode
from ..problems import ARGUMENTS, SHAPE, TYPE, fail
from ..types import Annotation
from . import Args, Block, Dim, Number, Op, ScalarType, Type, Value, index, is_int, scalar_type

_X = TypeVar("_X")

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


#: Operations that a core has for integers only, and their spelling in Python.
_OF_INTEGERS = {
    "floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>", "bitand": "&", "bitor": "|", "bitxor": "^",
}  # fmt: skip


def power(base: _X, exponent: int, times: Callable[[_X, _X], _X]) -> _X | int:
    """Return a power with a whole exponent as products, by squaring. `times` multiplies values of any
    kind."""
    found = None
    while exponent:
        if exponent & 1:
            found = base if found is None else times(found, base)
        exponent >>= 1
        base = times(base, base) if exponent else base
    return 1 if found is None else found


class WindowRanks(Record):
    """The ranks of a window: `rank` of `count`, with `rows` of its first dimension each."""

    whole: Value
    rank: int
    count: int
    rows: int


class BufferUse(Record):
    """The use of a buffer in a program: the devices that get its windows, and the declared shape of a
    parameter that takes a window of another shape with as many elements."""

    devices: tuple[int, ...]
    shape: tuple[int, ...] | None = None


class RankBuffer:
    """Memory of the ranks of a group: the ranks to which the host gives its windows. The first window
    decides the shape and type of its tensor. `use` is known if the program was read before."""

    def __init__(self, size: int, use: BufferUse) -> None:
        self.size = size  # bytes on each rank
        self.group = use.devices  # devices of the ranks 0, 1, .. of the group
        self.shape = use.shape
        self.members: set[int] = set()  # the devices that got a window so far
        self.asked: tuple[int, ...] | None = None  # see `BufferUse.shape`
        self.whole: Value | None = None


class TensorWindow(Record):
    """A buffer as a tensor of some shape; the call that takes it decides the rank."""

    buffer: RankBuffer
    shape: tuple[int, ...]
    dtype: DataType


class Build:
    """Appends operations to `block`. `place` is the current source location; `place_of` finds the source
    location of a parameter of the operator being applied."""

    def __init__(self, block: Block, target: Profile | None = None) -> None:
        self.block = block
        self.target = target
        self.place: Span | None = None
        self.place_of: Callable[[str], Span | None] = lambda _: None
        self.operator = ""  # its name, as the user writes it
        self.in_core = False
        self.said: Annotation | None = None  # the annotated type of the name that the result is assigned to
        self.split: SplitMode | None = None  # the split mode of vector work in the current region
        self.shards: dict[Dim, Dim] = {}  # extents of the valid region: of the whole, by the extent in a half
        self.exact = False  # annotations are complete: nothing is inferred
        self.attributes: set[str] = set()  # attributes of the function, as far as declared
        self.world = 1  # the number of ranks
        # the rank that the host calls, and the number of that call
        self.dispatch: tuple[int, int] | None = None
        self.dispatches: dict[int, int] = {}  # the number of calls of each rank
        self.windows: list[TensorWindow] = []  # windows of the host: one per buffer
        self.buffers: list[RankBuffer] = []  # buffers of the program, in order
        self.uses: Sequence[BufferUse] = ()  # uses of the buffers, if the program was read before
        self.ranks: dict[Value, WindowRanks] = {}  # ranks of windows that several ranks have
        self.touched: list[Value] = []  # these windows in the order in which operators used them
        self.limits: dict[Value, int] = {}  # upper bounds of extents of parameters
        self._numbers: list[dict[Hashable, Value]] = [{}]  # operations on numbers, per open block

    @contextmanager
    def into(self, block: Block) -> Iterator[Block]:
        """Build in another block inside the `with` statement."""
        before, self.block = self.block, block
        known = self._numbers
        region = isinstance(block.outer, Op) and block.outer.name == "region"
        self._numbers = [{}] if region else [*known, {}]
        try:
            yield block
        finally:
            self.block = before
            self._numbers = known

    @contextmanager
    def on_rank(self, rank: int) -> Iterator[None]:
        """Build the host's call of a rank inside the `with` statement."""
        before, number = self.dispatch, self.dispatches.get(rank, 0)
        self.dispatches[rank] = number + 1
        self.dispatch = rank, number
        try:
            yield
        finally:
            self.dispatch = before

    # ---- operations ----

    def op(self, name: str, types: Sequence[Type], /, **args: object) -> Value:
        """Append an operation with one result, and return the result."""
        return self.append(name, types, args).results[0]

    def append(self, name: str, types: Sequence[Type], args: Args) -> Op:
        return self.block.append(Op(name, args, types, self.place))

    @overload
    def scalar(self, name: str, *args: Dim) -> Dim: ...
    @overload
    def scalar(self, name: str, *args: Number) -> Number: ...
    def scalar(self, name: str, *args: Number) -> Number:
        """Return the result of an operation on numbers, folded if they are constants."""
        if name == "pow":
            return power(args[0], self._exponent(args[1]), lambda a, b: self.scalar("mul", a, b))
        if all(not isinstance(a, Value) for a in args):
            folded = _folded(name, args)
            if folded is not None:
                return folded
        dtype = self._scalar_result(name, args)
        if dtype.is_float and self.in_core and name in _OF_INTEGERS:
            self.fail(TYPE, f"unsupported `{_OF_INTEGERS[name]}` of {dtype.name} numbers on a core",
                      got=_shown(args[0]), help="pl.cast(x, pl.INT32) first")  # fmt: skip
        if dtype.is_int:
            constant = self._simplified(name, args, dtype)
            if constant is not None:
                return constant
        key = (name, tuple((type(a), repr(a) if isinstance(a, float) else a) for a in args))
        found = next((known[key] for known in self._numbers if key in known), None)
        if found is None:
            found = self._numbers[-1][key] = self.new_scalar(name, args, dtype)
        return found

    def _exponent(self, given: Number) -> int:
        found = given if isinstance(given, float) and given.is_integer() else None
        if not isinstance(given, float) and scalar_type(given) is not None:
            found = index.known(given)
        if found is None or not 0 <= found <= 64:
            self.fail(TYPE, "expected a constant whole exponent for the power of a number",
                      expected="0 to 64",
                      got=_shown(given), help="use pl.pow, pl.sqrt and pl.exp on arrays")  # fmt: skip
        return int(found)

    def new_scalar(self, name: str, args: Sequence[Number], dtype: DataType | None = None) -> Value:
        """Append an operation on numbers, without folding and without reuse of an identical earlier
        operation."""
        names = ("x",) if len(args) == 1 else ("lhs", "rhs")
        dtype = dtype or self._scalar_result(name, args)
        return self.op(f"scalar.{name}", [ScalarType(dtype)], **dict(zip(names, args, strict=True)))

    def _scalar_result(self, name: str, args: Sequence[Number]) -> DataType:
        if name in (*_COMPARISONS, "and", "or", "not"):
            return BOOL
        types = [scalar_type(a) for a in args]
        if name == "truediv":
            return FP32
        dtype = types[0]
        for a, t in zip(args[1:], types[1:], strict=True):
            if dtype is None or t is None:
                self.fail(TYPE, "not a number", expected="scalars", got=args)
            if dtype.is_float != t.is_float:
                literal = not isinstance(a, Value) or not isinstance(args[0], Value)
                if not literal:
                    self.fail(TYPE, f"cannot mix {dtype.name} and {t.name} in one expression",
                              help="convert one of them: pl.cast(x, dtype)")  # fmt: skip
                dtype = dtype if isinstance(args[0], Value) else t
            elif not isinstance(args[0], Value) or (isinstance(a, Value) and t.bits > dtype.bits):
                dtype = t
        assert dtype is not None
        return dtype

    def _simplified(self, name: str, args: Sequence[Number], dtype: DataType) -> Number | None:
        """Return the result of a sum, product or similar of integer scalars if it needs no operation, else
        None."""
        a = args[0]
        b = args[1] if len(args) > 1 else 0
        if name in ("add", "sub") and not isinstance(b, Value) and b == 0:
            return a
        if name == "add" and not isinstance(a, Value) and a == 0:
            return b
        if name == "sub":
            difference = index.known_difference(a, b)
            return None if difference is None else dtype.wrapped(difference)
        if name == "mul":
            for one, other in ((a, b), (b, a)):
                if not isinstance(one, Value) and one in (0, 1):
                    return other if one else 0
        if name == "floordiv" and not isinstance(b, Value) and b == 1:
            return a
        if name in ("min", "max") and not dtype.is_unsigned:
            difference = index.known_difference(a, b)
            if difference is not None:
                return a if (difference <= 0) == (name == "min") else b
        return None

    # ---- checks of arguments ----

    def fail(
        self, code: str, message: str, at: str = "", expected: object = "", got: object = "", help: str = ""
    ) -> NoReturn:
        fail(code, message, (self.place_of(at) if at else None) or self.place, expected, got, help)

    def dims(self, given: object, at: str, rank: int | None = None) -> list[Dim]:
        """Check a list of extents or offsets."""
        if isinstance(given, tuple):
            given = list(given)
        if not isinstance(given, list):
            self.fail(
                ARGUMENTS, f"expected a list for '{at}', one entry per dimension", at, got=_shown(given)
            )
        for item in given:
            if not is_int(item):
                self.fail(TYPE, f"expected integers in '{at}'", at, got=_shown(item))
        if rank is not None and len(given) != rank:
            self.fail(
                SHAPE,
                f"wrong number of entries in '{at}'",
                at,
                expected=f"{rank}: one per dimension",
                got=len(given),
            )
        return list(given)

    def static(self, given: object, at: str) -> list[int]:
        """Check a list of extents that must be constants."""
        dims = self.dims(given, at)
        if self.exact:
            return list(map(index.folded, dims))  # pyright: ignore[reportReturnType]
        found = list(map(index.known, dims))
        for item in found:
            if item is None:
                self.fail(SHAPE, f"expected constant extents in '{at}' of a tile", at,
                          help="pass the valid region as valid_shape=")  # fmt: skip
        return [n for n in found if n is not None]

    def most(self, tensor: Value, axis: int) -> int | None:
        """Return an upper bound of an extent; for a window of dynamic extent, the bound of its tensor."""
        extent = tensor.type.shape[axis]
        known = index.known(extent)
        if known is not None or extent in self.limits:
            return known if known is not None else self.limits[extent]
        if tensor.op is None or tensor.op.name != "slice":
            return None
        whole, dropped = tensor.op.args["x"], tensor.op.args["drop_dims"] or ()
        return self.most(whole, [i for i in range(whole.type.rank) if i not in dropped][axis])

    def as_index(self, value: Dim) -> Dim:
        """Return an integer scalar as INDEX."""
        if isinstance(value, Value) and value.type.dtype != INDEX:
            return self.op("scalar.cast", [ScalarType(INDEX)], x=value, dtype=INDEX)
        return value


def _shown(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def _folded(name: str, args: Sequence[Number]) -> int | float | None:
    """Fold an operation with Python's own numbers, which have no type and do not wrap."""
    import operator as o

    table: dict[str, Callable[..., object]] = {
        "add": o.add, "sub": o.sub, "mul": o.mul, "floordiv": o.floordiv, "mod": o.mod, "truediv": o.truediv,
        "eq": o.eq, "ne": o.ne, "lt": o.lt, "le": o.le, "gt": o.gt, "ge": o.ge, "min": min, "max": max,
        "neg": o.neg, "and": lambda a, b: bool(a and b), "or": lambda a, b: bool(a or b), "not": o.not_,
        "shl": o.lshift, "shr": o.rshift, "invert": o.invert, "abs": abs,
    }  # fmt: skip
    if name not in table:
        return None
    try:
        return table[name](*args)  # pyright: ignore[reportReturnType]
    except (ZeroDivisionError, ValueError, TypeError) as e:
        fail(TYPE, f"{name} of {', '.join(map(repr, args))}: {e}")
