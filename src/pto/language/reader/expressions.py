"""Expressions: what a node of the syntax tree stands for, a value of the program or an object of Python."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ...diag import Span
from .. import forms, index
from ..arguments import NAMES
from ..build import Build
from ..dtypes import BOOL, BY_ISA, DataType
from ..ir import ArrayType, ScalarType, ShapedType, TileType, Value, is_scalar, is_shaped
from ..operators.core import OPERATORS, Operator
from ..operators.infix import INFIX, OF_MASKS, is_mask
from ..operators.memory import in_core
from ..problems import ARGUMENTS, NAME, OF_ARRAYS, SHAPE, SYNTAX, TYPE, Problem, fail
from ..types import MemRef
from .frame import POISON, Frame
from .hints import BY_ARRAYS, OPERATORS_OF_ARRAYS, absent, instead_of, member
from .said import check_said

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "bitand", ast.BitOr: "bitor",
    ast.BitXor: "bitxor", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


def value_of(f: Frame, node: ast.expr) -> Any:
    """What an expression is."""
    reader = _READERS.get(type(node))
    if reader is None:
        absent(f, node)
    before = f.build.place
    f.build.place = f.span(node)
    try:
        return _number(reader(f, node))
    finally:
        f.build.place = before


def _number(found: Any) -> Any:
    """A number of NumPy as one of Python."""
    numpy = type(found).__module__ == "numpy" and getattr(found, "shape", None) == ()
    return found.item() if numpy else found


def _constant(f: Frame, node: ast.Constant) -> Any:
    return node.value


def _name(f: Frame, node: ast.Name) -> Any:
    return f.lookup(node)


def _attribute(f: Frame, node: ast.Attribute) -> Any:
    owner = value_of(f, node.value)
    if isinstance(owner, Value):
        if node.attr == "shape" and isinstance(owner.type, ShapedType):
            return tuple(owner.type.shape)
        if node.attr == "valid_shape" and isinstance(owner.type, ShapedType):
            return tuple(owner.type.extent)
        if node.attr == "dtype":
            return owner.type.dtype
        if node.attr == "bind_dynamic":
            return _said
        fail(
            NAME,
            f"a value has no '{node.attr}'",
            f.span(node),
            got=owner.type,
            help=instead_of(node.attr) or "shape, valid_shape and dtype",
        )
    if owner is f.names.get("self") and node.attr in getattr(owner, "methods", {}):
        return owner.methods[node.attr]  # whatever else the class of a program has by that name
    try:
        return getattr(owner, node.attr)
    except AttributeError:
        what = getattr(owner, "__name__", type(owner).__name__)
        fail(NAME, f"'{what}' has no '{node.attr}'", f.span(node), help=member(node.attr, dir(owner)))


def _said(*_: Any) -> None:
    """What a declaration does when it is reached."""


def _list(f: Frame, node: ast.List) -> Any:
    return [value_of(f, item) for item in node.elts]


def _tuple(f: Frame, node: ast.Tuple) -> Any:
    return tuple(value_of(f, item) for item in node.elts)


def _binary(f: Frame, node: ast.BinOp) -> Any:
    name = _BINARY.get(type(node.op))
    if name is None:
        fail(SYNTAX, f"operator {type(node.op).__name__} is not in the language", f.span(node))
    lhs, rhs = value_of(f, node.left), value_of(f, node.right)
    return binary(f, node, name, lhs, rhs)


def binary(f: Frame, node: ast.AST, name: str, lhs: Any, rhs: Any) -> Any:
    """An operator between two expressions."""
    f.build.place = f.span(node)
    if is_shaped(lhs) or is_shaped(rhs):
        return on_arrays(f, node, name, lhs, rhs)
    if not isinstance(lhs, Value) and not isinstance(rhs, Value):
        return _python(f, node, name, lhs, rhs)
    if not (is_scalar(lhs) and is_scalar(rhs)) or name == "matmul":
        fail(TYPE, "not numbers", f.span(node), got=f"{_type(lhs)} and {_type(rhs)}")
    return f.build.scalar(name, lhs, rhs)


def on_arrays(f: Frame, node: ast.AST, name: str, *args: Any) -> Any:
    """An operator of Python, of which one side at least is an array."""
    symbol = INFIX.get(name)
    if symbol is None or (name in OF_MASKS and not all(map(is_mask, args))):
        fail(TYPE, f"no such operator on {' and '.join(map(_type, args))}", f.span(node),
             help=OPERATORS_OF_ARRAYS.get(name, ""))  # fmt: skip
    return apply(f, node, symbol, list(args), {})


def _python(f: Frame, node: ast.AST, name: str, lhs: Any, rhs: Any) -> Any:
    """What Python makes of two of its own objects."""
    import operator as o

    words = {"bitand": "and_", "bitor": "or_", "bitxor": "xor", "shl": "lshift", "shr": "rshift"}
    try:
        return getattr(o, words.get(name, name))(lhs, rhs)
    except (TypeError, ValueError, ArithmeticError) as e:
        fail(TYPE, str(e), f.span(node))


def _unary(f: Frame, node: ast.UnaryOp) -> Any:
    value = value_of(f, node.operand)
    if isinstance(node.op, ast.UAdd):
        return value
    if not isinstance(value, Value):
        return (
            -value if isinstance(node.op, ast.USub) else not value if isinstance(node.op, ast.Not) else ~value
        )
    name = {ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}[type(node.op)]
    return on_arrays(f, node, name, value) if is_shaped(value) else f.build.scalar(name, value)


def _compare(f: Frame, node: ast.Compare) -> Any:
    if len(node.ops) > 1:
        fail(SYNTAX, "comparisons cannot be chained", f.span(node),
             help="write `a < b and b < c`; of arrays `(a < b) & (b < c)`")  # fmt: skip
    lhs, rhs = value_of(f, node.left), value_of(f, node.comparators[0])
    name = _COMPARE.get(type(node.ops[0]))
    if not isinstance(lhs, Value) and not isinstance(rhs, Value):
        if name is None:
            words = {ast.Is: lhs is rhs, ast.IsNot: lhs is not rhs}
            if type(node.ops[0]) in words:
                return words[type(node.ops[0])]
            return (lhs in rhs) == isinstance(node.ops[0], ast.In)
        return _python(f, node, name, lhs, rhs)
    if name is None:
        fail(SYNTAX, f"{type(node.ops[0]).__name__} is not in the language", f.span(node))
    f.build.place = f.span(node)
    if is_shaped(lhs) or is_shaped(rhs):
        return on_arrays(f, node, name, lhs, rhs)
    if not (is_scalar(lhs) and is_scalar(rhs)):
        fail(
            TYPE, "expected numbers or arrays to compare", f.span(node), got=f"{_type(lhs)} and {_type(rhs)}"
        )
    return f.build.scalar(name, lhs, rhs)


def _both(f: Frame, node: ast.BoolOp) -> Any:
    word = "and" if isinstance(node.op, ast.And) else "or"
    result = value_of(f, node.values[0])
    for part in node.values[1:]:
        other = value_of(f, part)
        if not isinstance(result, Value) and not isinstance(other, Value):
            result = (result and other) if word == "and" else (result or other)
        elif is_shaped(result) or is_shaped(other):
            sign = {"and": "&", "or": "|"}[word]
            fail(TYPE, f"`{word}` of arrays", f.span(node), got=f"{_type(result)} and {_type(other)}",
                 help=f"(a > 0) {sign} (b > 0), in parentheses")  # fmt: skip
        else:
            result = f.build.scalar(word, result, other)
    return result


def _choice(f: Frame, node: ast.IfExp) -> Any:
    test = value_of(f, node.test)
    if isinstance(test, Value):
        help = "pl.where(mask, a, b)" if is_shaped(test) else "write if and else"
        fail(SYNTAX, "a choice between values is a statement", f.span(node), help=help)
    return value_of(f, node.body if test else node.orelse)


def exactly(f: Frame, node: ast.expr) -> Any:
    """The operation on numbers that an expression of an exact text is, though it could be done at once."""
    if isinstance(node, ast.BinOp):
        name, parts = _BINARY.get(type(node.op), ""), [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        name, parts = _COMPARE.get(type(node.ops[0]), ""), [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp):
        name, parts = ("and" if isinstance(node.op, ast.And) else "or"), node.values
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        name, parts = (
            {ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}.get(type(node.op), ""),
            [node.operand],
        )
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("pl.min", "pl.max", "abs"):
        name, parts = ast.unparse(node.func).removeprefix("pl."), node.args
    else:
        return value_of(f, node)
    args = [value_of(f, part) for part in parts]
    if name in ("", "pow") or not all(map(is_scalar, args)) or len(args) > 2:
        return value_of(f, node)
    f.build.place = f.span(node)
    return f.build.new_scalar(name, tuple(args))


# ---- subscripts ----


def _subscript(f: Frame, node: ast.Subscript) -> Any:
    owner = value_of(f, node.value)
    if not isinstance(owner, Value):
        return _python_item(f, node, owner)
    if isinstance(owner.type, ArrayType):
        return OPERATORS["read"].function(f.build, owner, value_of(f, node.slice))  # type: ignore[arg-type]
    if not is_shaped(owner):
        fail(TYPE, "only arrays have elements", f.span(node), got=owner.type)
    offsets, sizes, dropped = window(f, node, owner)
    f.build.place = f.span(node)
    if len(dropped) == owner.type.rank:
        return OPERATORS["read"].function(f.build, owner, offsets)
    if isinstance(owner.type, TileType):
        dropped = dropped[: max(0, owner.type.rank - 2)]
    found = OPERATORS["slice"].function(f.build, owner, sizes, offsets, drop_dims=dropped)
    new = _parts(node, owner.type.rank)[1]
    return with_new(f.build, found, new, len(found.type.shape) < owner.type.rank) if new else found


def _parts(node: ast.Subscript, rank: int) -> tuple[list[Any], list[int]]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = [p.value if isinstance(p, ast.Constant) and p.value in (None, ...) else p for p in parts]
    return spelled(plain, rank, ast.Slice())


def spelled(parts: list[Any], rank: int, whole: Any) -> tuple[list[Any], list[int]]:
    """The parts of a subscript, `...` written out and without None; and where these insert an extent of 1."""
    for at in [n for n, part in enumerate(parts) if part is ...][:1]:
        count = rank - sum(part is not None for part in parts) + 1
        parts = [*parts[:at], *[whole] * count, *parts[at + 1 :]]
    return [p for p in parts if p is not None], [n for n, p in enumerate(parts) if p is None]


def with_new(b: Build, x: Value, new: list[int], dropped: bool) -> Value:
    """An array with extents of 1 inserted: `x[:, None]`."""
    if dropped:
        b.fail(SYNTAX, "None beside an index", help="pl.reshape(x, shape)")
    shape = list(x.type.shape)
    for at in new:
        shape.insert(at, 1)
    return OPERATORS["reshape"].function(b, x, shape)


def _python_item(f: Frame, node: ast.Subscript, owner: Any) -> Any:
    item = value_of(f, node.slice)
    if isinstance(item, Value) and not isinstance(owner, MemRef):
        fail(TYPE, "an object of Python is indexed with numbers that are known", f.span(node.slice),
             help="pl.array.create makes an array that a program can index")  # fmt: skip
    try:
        return owner[item]
    except (TypeError, LookupError) as e:
        fail(TYPE, f"{type(e).__name__}: {e}", f.span(node))


def window(f: Frame, node: ast.Subscript, owner: Value) -> tuple[list[Any], list[Any], list[int]]:
    """Offsets and extents that a subscript names, and the dimensions that it drops."""
    shape = owner.type.shape
    parts, new = _parts(node, len(shape))
    if new and isinstance(node.ctx, ast.Store):
        fail(SYNTAX, "None in a window that is written", f.span(node), help="leave it out")
    if len(parts) > len(shape):
        fail(SHAPE, f"{len(parts)} indices", f.span(node.slice), expected=f"at most {len(shape)}")
    offsets: list[Any] = []
    sizes: list[Any] = []
    dropped: list[int] = []
    for axis, whole in enumerate(shape):
        part = parts[axis] if axis < len(parts) else ast.Slice()
        if isinstance(part, ast.Slice):
            start, stop = _bounds(f, part, whole)
            offsets.append(start)
            f.build.place = f.span(node)
            sizes.append(f.build.scalar("sub", stop, start))
            count = index.known(sizes[-1])
            if count is not None and count < 1:
                fail(SHAPE, "a window of no elements", f.span(part if part in parts else node),
                     expected="the first index, and one past the last", got=f"{start}:{stop}")  # fmt: skip
        else:
            at = value_of(f, part)
            if not is_scalar(at):
                fail(TYPE, "an index is a number", f.span(part), got=_type(at),
                     help=BY_ARRAYS if is_shaped(at) else "")  # fmt: skip
            offsets.append(_from_end(f, at, whole))
            sizes.append(1)
            dropped.append(axis)
    return offsets, sizes, dropped


def _bounds(f: Frame, part: ast.Slice, whole: Any) -> tuple[Any, Any]:
    if part.step is not None:
        fail(SYNTAX, "windows have no step", f.span(part.step),
             help="every second row: pl.reshape(x, [rows // 2, 2 * columns])[:, 0:columns]; "
             "every second column: pl.gather(x, mask_pattern=pl.tile.MaskPattern.P0101)")  # fmt: skip
    start = 0 if part.lower is None else _from_end(f, value_of(f, part.lower), whole)
    stop = whole if part.upper is None else _from_end(f, value_of(f, part.upper), whole)
    for n in (start, stop):
        if not is_scalar(n):
            fail(TYPE, "a bound is a number", f.span(part) if hasattr(part, "lineno") else None, got=_type(n))
    return start, stop


def _from_end(f: Frame, at: Any, whole: Any) -> Any:
    known = index.known(at) if is_scalar(at) and not isinstance(at, float) else None
    return f.build.scalar("add", whole, at) if known is not None and known < 0 else at


# ---- calls ----


def _call(f: Frame, node: ast.Call) -> Any:
    target = value_of(f, node.func)
    args: list[Any] = []
    for part in node.args:
        if isinstance(part, ast.Name) and part.id not in f.names and _asks_for_memory(target):
            continue  # memory of a name that no text has to declare
        if isinstance(part, ast.Starred):
            args.extend(_items(f, part.value, list | tuple))
        else:
            args.append(value_of(f, part))
    kwargs = {k.arg: value_of(f, k.value) for k in node.keywords if k.arg is not None}
    for k in node.keywords:
        if k.arg is None:
            kwargs.update(_items(f, k.value, dict))
    f.build.place = f.span(node)
    if isinstance(target, Operator):
        return apply(f, node, target, args, kwargs)
    declared = getattr(target, "declared", None)
    if declared is not None:
        return f.unit.call(f, node, declared, args, kwargs)
    found = _python_call(f, node, target, args, kwargs)
    return f.unit.submit(f, node, found) if isinstance(found, forms.Submission) else found


def _asks_for_memory(target: Any) -> bool:
    return target is MemRef


def _of_the_program(
    f: Frame, value: Any, node: ast.AST, where: Callable[[], Span | None] = lambda: None
) -> None:
    """Refuse an array that a program does not know: one of its surroundings."""
    if isinstance(value, type) or not hasattr(value, "__array__") or not value.shape:
        return
    fail(TYPE, "an array of the surroundings is not in the program", where() or f.span(node),
         got=f"{value.dtype} of shape {list(value.shape)}", help="make it a parameter")  # fmt: skip


def _items(f: Frame, node: ast.expr, kind: Any) -> Any:
    """What `*x` and `**x` stand for in a call."""
    found = value_of(f, node)
    if not isinstance(found, kind) or (
        isinstance(found, dict) and not all(isinstance(k, str) for k in found)
    ):
        fail(
            TYPE,
            "several arguments are a list, a tuple or a dictionary of Python",
            f.span(node),
            got=_type(found),
        )
    return found


def apply(f: Frame, node: ast.AST, op: Operator, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Apply an operator: bind its arguments, and let it build. `attrs=`, as printed programs have it, marks
    an operation for tools."""
    if "attrs" not in op.signature.parameters and isinstance(kwargs.get("attrs"), dict):
        edges = [k for k in EDGES if k in kwargs["attrs"]]
        if edges:
            fail(ARGUMENTS, f"attrs of {op.full_name} say '{edges[0]}'", f.span(node),
                 help="only tasks wait: pl.submit(.., deps=[..]), pl.system.task_dummy")  # fmt: skip
        kwargs = {k: v for k, v in kwargs.items() if k != "attrs"}
    try:
        bound = op.signature.bind(*args, **kwargs)
    except TypeError as e:
        fail(ARGUMENTS, f"{op.full_name}: {e}", f.span(node), expected=f"{op.full_name}{op.signature}")
    anywhere = op.name in _ANYWHERE or op.level.startswith("pld")  # which know where they belong
    if not f.build.in_core and any(is_shaped(a) for a in bound.args) and not anywhere:
        in_core(f.build, op.full_name)
    for name, value in bound.arguments.items():
        _of_the_program(f, value, node, lambda n=name: _argument(f, node, op.signature, n))
        if name in _DTYPES and not isinstance(value, DataType | None):
            fail(
                TYPE,
                f"'{name}' is an element type",
                _argument(f, node, op.signature, name) or f.span(node),
                expected="pl.FP32 and its like",
                got=_type(value),
                help=_element_type(value),
            )
    before = f.build.place_of
    f.build.place_of = lambda name: _argument(f, node, op.signature, name)
    try:
        return op.function(f.build, *bound.args, **bound.kwargs)
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, AssertionError) as e:
        # Operators ask of objects of Python what only those of the language have.
        fail(ARGUMENTS, f"{op.full_name} does not take this", f.span(node),
             expected=f"{op.full_name}{op.signature}", got=", ".join(map(_type, args)) or str(e))  # fmt: skip
    finally:
        f.build.place_of = before


def _element_type(value: Any) -> str:
    """What the language calls an element type of NumPy or torch, or one by its name."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    isa = NAMES.get(name.removeprefix("torch."), "")
    return f"pl.{BY_ISA[isa].name}" if isa in BY_ISA else ""


#: What `attrs=` calls the tasks that a task waits for.
EDGES = ("manual_dep_edges", "compiler_manual_dep_edges")
#: Parameters that are element types.
_DTYPES = ("dtype", "target_type", "out_dtype", "output_dtype", "count_dtype")
#: Operators on arrays that an orchestrator has.
_ANYWHERE = (
    "assemble",
    "slice",
    "reshape",
    "transpose",
    "read",
    "write",
    "dim",
    "create_tensor",
    "reinterpret_view",
    "view",
    "static_print",
    "static_assert",
    "async_prefetch",
    "dump_tag",
)


def _argument(f: Frame, node: ast.AST, signature: inspect.Signature, name: str) -> Span | None:
    """Where the argument of a parameter is written; a body that is executed has operators of Python, too."""
    given: list[ast.expr] = [] if not isinstance(node, ast.Call) else node.args
    if isinstance(node, ast.BinOp):
        given = [node.left, node.right]
    if isinstance(node, ast.Compare):
        given = [node.left, *node.comparators]
    for k in getattr(node, "keywords", ()):
        if k.arg == name:
            return f.span(k.value)
    names = list(signature.parameters)
    at = names.index(name) if name in names else -1
    return f.span(given[at]) if 0 <= at < len(given) else None


_OF_NUMBERS = {"min": min, "max": max, "abs": abs}
#: Functions and types of Python that a body may use on its objects: they only compute.
_PURE = (
    int, float, bool, str, tuple, list, dict, set, frozenset, range, enumerate, zip, reversed, slice, type,
    len, min, max, abs, sum, round, sorted, divmod, pow, any, all, isinstance, repr,
)  # fmt: skip


def _pure(target: Any) -> bool:
    """Whether calling it does nothing but compute: a body is read, and not executed."""
    if target is _said or any(target is p for p in _PURE) or getattr(target, "__name__", "") == "<lambda>":
        return True
    module = str(getattr(target, "__module__", ""))
    if isinstance(target, type):
        return module.startswith("pto.language")
    owner = getattr(target, "__self__", None)
    if isinstance(owner, DataType | str | list | tuple | dict | int | float):
        return True
    return module in ("math", forms.__name__, "pto.language.types")


def _of_numpy(target: Any) -> bool:
    """Check whether it is a function or a type of NumPy that makes a number of numbers: `np.sqrt`,
    `np.float32`."""
    kind = target if isinstance(target, type) else type(target)
    return kind.__module__ == "numpy" and (kind is target or kind.__name__ == "ufunc")


def _python_call(f: Frame, node: ast.Call, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of Python: on its own objects, or one that numbers of a program have too."""
    if any(isinstance(a, Value) for a in (*args, *kwargs.values())):
        for name, function in _OF_NUMBERS.items():
            if target is function and len(args) in (1, 2) and all(map(is_scalar, args)):
                return f.build.scalar(name, *args)
        if isinstance(target, type) and target in (int, float, bool) and len(args) == 1:
            fail(TYPE, "a value is converted by the program", f.span(node), help="pl.cast(x, dtype)")
        if target is len and args and is_shaped(args[0]):
            return args[0].type.shape[0]
    if _of_numpy(target) and not kwargs and all(isinstance(a, int | float) for a in args):
        return _number(target(*args))
    if not callable(target) or not _pure(target):
        name = getattr(target, "__name__", type(target).__name__)
        fail(
            SYNTAX,
            f"'{name}' is no function of the language",
            f.span(node),
            help=instead_of(name) or "decorate it with @pl.jit.inline, or compute what it gives outside",
        )
    if any(map(is_shaped, args)) and getattr(target, "__module__", "") in ("builtins", "math"):
        fail(TYPE, f"'{target.__name__}' of Python takes no arrays of a program", f.span(node),
             help=instead_of(target.__name__))  # fmt: skip
    check_said(target, args, kwargs, lambda signature, name: _argument(f, node, signature, name))
    try:
        return target(*args, **kwargs)
    except Problem:
        raise
    except Exception as e:
        fail(TYPE, f"{type(e).__name__}: {e}", f.span(node))


def _type(value: Any) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _text(f: Frame, node: ast.JoinedStr) -> str:
    parts: list[str] = []
    for part in node.values:
        if not isinstance(part, ast.FormattedValue):
            parts.append(str(value_of(f, part)))
            continue
        value = value_of(f, part.value)
        value = _CONVERSIONS.get(part.conversion, lambda v: v)(value)
        how = value_of(f, part.format_spec) if part.format_spec is not None else ""
        try:
            parts.append(format(value, how))
        except (TypeError, ValueError) as e:
            fail(TYPE, f"this is not written so: {e}", f.span(node), got=_type(value))
    return "".join(parts)


def _each(f: Frame, node: ast.ListComp) -> list[Any]:
    """A list over a range that is known: its elements, one by one."""
    (g,) = node.generators if len(node.generators) == 1 else (None,)
    if g is None or not isinstance(g.target, ast.Name) or g.is_async:
        fail(SYNTAX, "a list is made over one range", f.span(node))
    over = value_of(f, g.iter)
    if isinstance(over, Value) or not hasattr(over, "__iter__"):
        fail(SYNTAX, "a list is made over a range that is known", f.span(g.iter), got=_type(over))
    before = f.names.get(g.target.id, POISON)
    found: list[Any] = []
    for item in over:
        f.names[g.target.id] = item
        if all(_known_truth(f, test) for test in g.ifs):
            found.append(value_of(f, node.elt))
    if before is POISON:
        del f.names[g.target.id]
    else:
        f.names[g.target.id] = before
    return found


def condition(f: Frame, node: ast.expr) -> Any:
    """What decides an arm or another turn: a truth value of the program, or one that is known."""
    found = value_of(f, node)
    if not isinstance(found, Value):
        return bool(found)
    if not isinstance(found.type, ScalarType) or found.type.dtype != BOOL:
        help = "compare it, as in `x != 0`" if is_scalar(found) else OF_ARRAYS
        fail(TYPE, "a condition is a truth value", f.span(node), got=found.type, help=help)
    return found


def _known_truth(f: Frame, node: ast.expr) -> bool:
    """Whether an element of a list is one: nothing that only a run can tell."""
    found = value_of(f, node)
    if isinstance(found, Value):
        fail(TYPE, "which elements a list has is known when the program is read", f.span(node),
             got=found.type, help="a loop with pl.unroll, or the whole array")  # fmt: skip
    return bool(found)


def _dict(f: Frame, node: ast.Dict) -> Any:
    if any(k is None for k in node.keys):
        fail(SYNTAX, "dictionaries are written out", f.span(node))
    found = {}
    for k, v in zip(node.keys, node.values, strict=True):
        assert k is not None
        try:
            key = value_of(f, k)
            twice = key in found
            found[key] = value_of(f, v)
        except TypeError as e:
            fail(TYPE, str(e), f.span(k))
        if twice:
            fail(SYNTAX, f"{key!r} is in the dictionary twice", f.span(k), help="leave one of them out")
    return found


_READERS: dict[type, Callable[[Frame, Any], Any]] = {
    ast.Dict: _dict,
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.List: _list, ast.Tuple: _tuple,
    ast.BinOp: _binary, ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _both, ast.IfExp: _choice,
    ast.Subscript: _subscript, ast.Call: _call, ast.JoinedStr: _text, ast.ListComp: _each,
}  # fmt: skip
