"""Read expressions: return the value of the program, or the Python object, of a syntax tree node."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...diag import Span
from .. import control
from ..dtypes import BOOL, BY_ISA, DataType
from ..ir import ArrayType, Dim, ScalarType, ShapedType, TileType, Value, index, is_scalar, is_shaped
from ..ir.build import Build
from ..operators.core import OPERATORS, Operator
from ..operators.infix import INFIX, OF_MASKS, is_mask
from ..operators.memory import in_core
from ..problems import ARGUMENTS, NAME, OF_ARRAYS, SHAPE, SYNTAX, TYPE, Problem, fail
from ..programs.arguments import NAMES
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
    """Return the value of an expression."""
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
    """Return a NumPy number as a Python number."""
    numpy = type(found).__module__ == "numpy" and getattr(found, "shape", None) == ()
    return found.item() if numpy else found


def _constant(f: Frame, node: ast.Constant) -> object:
    return node.value


def _name(f: Frame, node: ast.Name) -> Any:
    return f.lookup(node)


def _attribute(f: Frame, node: ast.Attribute) -> object:
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
            f"unknown attribute '{node.attr}' of a value",
            f.span(node),
            got=owner.type,
            help=instead_of(node.attr) or "shape, valid_shape and dtype",
        )
    if owner is f.names.get("self") and node.attr in getattr(owner, "methods", {}):
        return owner.methods[node.attr]  # a method takes precedence over an attribute of the same name
    try:
        return getattr(owner, node.attr)
    except AttributeError:
        what = getattr(owner, "__name__", type(owner).__name__)
        fail(
            NAME,
            f"unknown attribute '{node.attr}' of '{what}'",
            f.span(node),
            help=member(node.attr, dir(owner)),
        )


def _said(*_: object) -> None:
    """Accept a declaration such as `bind_dynamic`, which has no effect in a body."""


def _list(f: Frame, node: ast.List) -> object:
    return [value_of(f, item) for item in node.elts]


def _tuple(f: Frame, node: ast.Tuple) -> object:
    return tuple(value_of(f, item) for item in node.elts)


def _binary(f: Frame, node: ast.BinOp) -> object:
    name = _BINARY.get(type(node.op))
    if name is None:
        fail(SYNTAX, f"unsupported operator {type(node.op).__name__}", f.span(node))
    lhs, rhs = value_of(f, node.left), value_of(f, node.right)
    return binary(f, node, name, lhs, rhs)


def binary(f: Frame, node: ast.AST, name: str, lhs: object, rhs: object) -> object:
    """Return the result of an operator on two expressions."""
    f.build.place = f.span(node)
    if is_shaped(lhs) or is_shaped(rhs):
        return on_arrays(f, node, name, lhs, rhs)
    if not isinstance(lhs, Value) and not isinstance(rhs, Value):
        return _python(f, node, name, lhs, rhs)
    if not (is_scalar(lhs) and is_scalar(rhs)) or name == "matmul":
        fail(TYPE, "not numbers", f.span(node), got=f"{_type(lhs)} and {_type(rhs)}")
    return f.build.scalar(name, lhs, rhs)


def on_arrays(f: Frame, node: ast.AST, name: str, *args: Any) -> object:
    """Return the result of a Python operator with at least one array operand."""
    symbol = INFIX.get(name)
    if symbol is None or (name in OF_MASKS and not all(map(is_mask, args))):
        fail(TYPE, f"unsupported operator on {' and '.join(map(_type, args))}", f.span(node),
             help=OPERATORS_OF_ARRAYS.get(name, ""))  # fmt: skip
    return apply(f, node, symbol, list(args), {})


def _python(f: Frame, node: ast.AST, name: str, lhs: object, rhs: object) -> object:
    """Return Python's result of an operator on two Python objects."""
    import operator as o

    words = {"bitand": "and_", "bitor": "or_", "bitxor": "xor", "shl": "lshift", "shr": "rshift"}
    try:
        return getattr(o, words.get(name, name))(lhs, rhs)
    except (TypeError, ValueError, ArithmeticError) as e:
        fail(TYPE, str(e), f.span(node))


def _unary(f: Frame, node: ast.UnaryOp) -> object:
    value = value_of(f, node.operand)
    if isinstance(node.op, ast.UAdd):
        return value
    if not isinstance(value, Value):
        return (
            -value if isinstance(node.op, ast.USub) else not value if isinstance(node.op, ast.Not) else ~value
        )
    name = {ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}[type(node.op)]
    return on_arrays(f, node, name, value) if is_shaped(value) else f.build.scalar(name, value)


def _compare(f: Frame, node: ast.Compare) -> object:
    if len(node.ops) > 1:
        fail(SYNTAX, "unsupported chained comparison", f.span(node),
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
        fail(SYNTAX, f"unsupported comparison {type(node.ops[0]).__name__}", f.span(node))
    f.build.place = f.span(node)
    if is_shaped(lhs) or is_shaped(rhs):
        return on_arrays(f, node, name, lhs, rhs)
    if not (is_scalar(lhs) and is_scalar(rhs)):
        fail(
            TYPE, "expected numbers or arrays to compare", f.span(node), got=f"{_type(lhs)} and {_type(rhs)}"
        )
    return f.build.scalar(name, lhs, rhs)


def _both(f: Frame, node: ast.BoolOp) -> object:
    word = "and" if isinstance(node.op, ast.And) else "or"
    result = value_of(f, node.values[0])
    for part in node.values[1:]:
        other = value_of(f, part)
        if not isinstance(result, Value) and not isinstance(other, Value):
            result = (result and other) if word == "and" else (result or other)
        elif is_shaped(result) or is_shaped(other):
            sign = {"and": "&", "or": "|"}[word]
            fail(TYPE, f"unsupported `{word}` of arrays", f.span(node),
                 got=f"{_type(result)} and {_type(other)}",
                 help=f"(a > 0) {sign} (b > 0), in parentheses")  # fmt: skip
        else:
            result = f.build.scalar(word, result, other)
    return result


def _choice(f: Frame, node: ast.IfExp) -> object:
    test = value_of(f, node.test)
    if isinstance(test, Value):
        help = "pl.where(mask, a, b)" if is_shaped(test) else "write if and else"
        fail(SYNTAX, "unsupported conditional expression", f.span(node), help=help)
    return value_of(f, node.body if test else node.orelse)


def exactly(f: Frame, node: ast.expr) -> Value:
    """Emit the operation of an expression without constant folding, for a printed stage."""
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


def _subscript(f: Frame, node: ast.Subscript) -> object:
    owner = value_of(f, node.value)
    if not isinstance(owner, Value):
        return _python_item(f, node, owner)
    if isinstance(owner.type, ArrayType):
        return OPERATORS["read"].function(f.build, owner, value_of(f, node.slice))  # type: ignore[arg-type]
    if not is_shaped(owner):
        fail(TYPE, "cannot index this value: expected an array", f.span(node), got=owner.type)
    offsets, sizes, dropped = window(f, node, owner)
    f.build.place = f.span(node)
    if len(dropped) == owner.type.rank:
        return OPERATORS["read"].function(f.build, owner, offsets)
    if isinstance(owner.type, TileType):
        dropped = dropped[: max(0, owner.type.rank - 2)]
    found = OPERATORS["slice"].function(f.build, owner, sizes, offsets, drop_dims=dropped)
    new = _parts(node, owner.type.rank)[1]
    return with_new(f.build, found, new, len(found.type.shape) < owner.type.rank) if new else found


def _parts(node: ast.Subscript, rank: int) -> tuple[list[ast.expr], list[int]]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = [p.value if isinstance(p, ast.Constant) and p.value in (None, ...) else p for p in parts]
    return spelled(plain, rank, ast.Slice())


def spelled(parts: Sequence[object], rank: int, whole: object) -> tuple[list[Any], list[int]]:
    """Return the parts of a subscript with `...` expanded and None removed, and the positions of new extents
    of 1."""
    for at in [n for n, part in enumerate(parts) if part is ...][:1]:
        count = rank - sum(part is not None for part in parts) + 1
        parts = [*parts[:at], *[whole] * count, *parts[at + 1 :]]
    return [p for p in parts if p is not None], [n for n, p in enumerate(parts) if p is None]


def with_new(b: Build, x: Value, new: list[int], dropped: bool) -> Value:
    """Return an array with extents of 1 inserted: `x[:, None]`."""
    if dropped:
        b.fail(SYNTAX, "unsupported None beside an index", help="pl.reshape(x, shape)")
    shape = list(x.type.shape)
    for at in new:
        shape.insert(at, 1)
    return OPERATORS["reshape"].function(b, x, shape)


def _python_item(f: Frame, node: ast.Subscript, owner: Any) -> object:
    item = value_of(f, node.slice)
    if isinstance(item, Value) and not isinstance(owner, MemRef):
        fail(TYPE, "expected a constant index into a Python object", f.span(node.slice),
             help="use pl.array.create for an array that a program can index")  # fmt: skip
    try:
        return owner[item]
    except (TypeError, LookupError) as e:
        fail(TYPE, f"{type(e).__name__}: {e}", f.span(node))


def window(f: Frame, node: ast.Subscript, owner: Value) -> tuple[list[Dim], list[Dim], list[int]]:
    """Return the offsets and extents of a subscript, and the dimensions that it drops."""
    shape = owner.type.shape
    parts, new = _parts(node, len(shape))
    if new and isinstance(node.ctx, ast.Store):
        fail(SYNTAX, "unsupported None in an assignment", f.span(node), help="leave it out")
    if len(parts) > len(shape):
        fail(SHAPE, "too many indices", f.span(node.slice), expected=f"at most {len(shape)}", got=len(parts))
    offsets: list[Dim] = []
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
                fail(SHAPE, "empty window", f.span(part if part in parts else node),
                     expected="the first index, and one past the last", got=f"{start}:{stop}")  # fmt: skip
        else:
            at = value_of(f, part)
            if not is_scalar(at):
                fail(TYPE, "expected a number as an index", f.span(part), got=_type(at),
                     help=BY_ARRAYS if is_shaped(at) else "")  # fmt: skip
            offsets.append(_from_end(f, at, whole))
            sizes.append(1)
            dropped.append(axis)
    return offsets, sizes, dropped


def _bounds(f: Frame, part: ast.Slice, whole: object) -> tuple[Any, Any]:
    if part.step is not None:
        fail(SYNTAX, "unsupported step in a window", f.span(part.step),
             help="for every second row: pl.reshape(x, [rows // 2, 2 * columns])[:, 0:columns]; "
             "for every second column: pl.gather(x, mask_pattern=pl.tile.MaskPattern.P0101)")  # fmt: skip
    start = 0 if part.lower is None else _from_end(f, value_of(f, part.lower), whole)
    stop = whole if part.upper is None else _from_end(f, value_of(f, part.upper), whole)
    for n in (start, stop):
        if not is_scalar(n):
            fail(
                TYPE,
                "expected a number as a bound",
                f.span(part) if hasattr(part, "lineno") else None,
                got=_type(n),
            )
    return start, stop


def _from_end(f: Frame, at: Any, whole: Any) -> Any:
    known = index.known(at) if is_scalar(at) and not isinstance(at, float) else None
    return f.build.scalar("add", whole, at) if known is not None and known < 0 else at


# ---- calls ----


def _call(f: Frame, node: ast.Call) -> object:
    target = value_of(f, node.func)
    args: list[object] = []
    for part in node.args:
        if isinstance(part, ast.Name) and part.id not in f.names and _asks_for_memory(target):
            continue  # pl.MemRef(NAME, ..): printed stages need not declare NAME
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
    return f.unit.submit(f, node, found) if isinstance(found, control.Submission) else found


def _asks_for_memory(target: object) -> bool:
    return target is MemRef


def _of_the_program(
    f: Frame, value: Any, node: ast.AST, where: Callable[[], Span | None] = lambda: None
) -> None:
    """Reject an array of the surrounding Python."""
    if isinstance(value, type) or not hasattr(value, "__array__") or not value.shape:
        return
    fail(TYPE, "cannot use an array of the surrounding Python", where() or f.span(node),
         got=f"{value.dtype} of shape {list(value.shape)}", help="make it a parameter")  # fmt: skip


def _items(f: Frame, node: ast.expr, kind: Any) -> Any:
    """Return the value of `*x` or `**x` in a call."""
    found = value_of(f, node)
    if not isinstance(found, kind) or (
        isinstance(found, dict) and not all(isinstance(k, str) for k in found)
    ):
        fail(
            TYPE,
            "expected a Python list, tuple or dictionary to unpack",
            f.span(node),
            got=_type(found),
        )
    return found


def apply(f: Frame, node: ast.AST, op: Operator, args: Sequence[object], kwargs: dict[str, Any]) -> object:
    """Apply an operator: bind its arguments and let it build. `attrs=`, as printed programs have it, marks an
    operation for tools."""
    if "attrs" not in op.signature.parameters and isinstance(kwargs.get("attrs"), dict):
        edges = [k for k in EDGES if k in kwargs["attrs"]]
        if edges:
            fail(ARGUMENTS, f"unsupported attribute '{edges[0]}' of {op.full_name}", f.span(node),
                 help="use pl.submit(.., deps=[..]) or pl.system.task_dummy")  # fmt: skip
        kwargs = {k: v for k, v in kwargs.items() if k != "attrs"}
    try:
        bound = op.signature.bind(*args, **kwargs)
    except TypeError as e:
        fail(ARGUMENTS, f"{op.full_name}: {e}", f.span(node), expected=f"{op.full_name}{op.signature}")
    anywhere = op.name in _ANYWHERE or op.level.startswith("pld")  # these operators check their own position
    if not f.build.in_core and any(is_shaped(a) for a in bound.args) and not anywhere:
        in_core(f.build, op.full_name)
    for name, value in bound.arguments.items():
        _of_the_program(f, value, node, lambda n=name: _argument(f, node, op.signature, n))
        if name in _DTYPES and not isinstance(value, DataType | None):
            fail(
                TYPE,
                f"expected an element type for '{name}'",
                _argument(f, node, op.signature, name) or f.span(node),
                expected="a type such as pl.FP32",
                got=_type(value),
                help=_element_type(value),
            )
    before = f.build.place_of, f.build.operator
    f.build.place_of, f.build.operator = lambda name: _argument(f, node, op.signature, name), op.full_name
    try:
        return op.function(f.build, *bound.args, **bound.kwargs)
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, AssertionError) as e:
        # Operators access attributes that a Python object may lack.
        fail(ARGUMENTS, f"unsupported arguments of {op.full_name}", f.span(node),
             expected=f"{op.full_name}{op.signature}", got=", ".join(map(_type, args)) or str(e))  # fmt: skip
    finally:
        f.build.place_of, f.build.operator = before


def _element_type(value: object) -> str:
    """Return the name in the language of an element type of NumPy or torch, given as a type or as text."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    isa = NAMES.get(name.removeprefix("torch."), "")
    return f"pl.{BY_ISA[isa].name}" if isa in BY_ISA else ""


#: Attributes with the dependencies of a task.
EDGES = ("manual_dep_edges", "compiler_manual_dep_edges")
#: Parameters that take element types.
_DTYPES = ("dtype", "target_type", "out_dtype", "output_dtype", "count_dtype")
#: Operators on arrays that an orchestration can use.
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
    """Return the source location of the argument for a parameter. The operands of a Python operator count as
    arguments."""
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
#: Pure functions and types of Python that a body may call on Python objects.
_PURE = (
    int, float, bool, str, tuple, list, dict, set, frozenset, range, enumerate, zip, reversed, slice, type,
    len, min, max, abs, sum, round, sorted, divmod, pow, any, all, isinstance, repr,
)  # fmt: skip


def _pure(target: object) -> bool:
    """Return True if a call has no side effects. Other calls are illegal, because a body is not executed."""
    if target is _said or any(target is p for p in _PURE) or getattr(target, "__name__", "") == "<lambda>":
        return True
    module = str(getattr(target, "__module__", ""))
    if isinstance(target, type):
        return module.startswith("pto.language")
    owner = getattr(target, "__self__", None)
    if isinstance(owner, DataType | str | list | tuple | dict | int | float):
        return True
    return module in ("math", control.__name__, "pto.language.types")


def _of_numpy(target: object) -> bool:
    """Return True for a NumPy function or type that maps numbers to a number: `np.sqrt`, `np.float32`."""
    kind = target if isinstance(target, type) else type(target)
    return kind.__module__ == "numpy" and (kind is target or kind.__name__ == "ufunc")


def _python_call(
    f: Frame, node: ast.Call, target: Any, args: list[Any], kwargs: Mapping[str, object]
) -> object:
    """Call a Python function on Python objects, or its counterpart on numbers of a program."""
    if any(isinstance(a, Value) for a in (*args, *kwargs.values())):
        for name, function in _OF_NUMBERS.items():
            if target is function and len(args) in (1, 2) and all(map(is_scalar, args)):
                return f.build.scalar(name, *args)
        if isinstance(target, type) and target in (int, float, bool) and len(args) == 1:
            fail(
                TYPE,
                "cannot convert a value of the program in Python",
                f.span(node),
                help="pl.cast(x, dtype)",
            )
        if target is len and args and is_shaped(args[0]):
            return args[0].type.shape[0]
    if _of_numpy(target) and not kwargs and all(isinstance(a, int | float) for a in args):
        return _number(target(*args))
    if not callable(target) or not _pure(target):
        name = getattr(target, "__name__", type(target).__name__)
        fail(
            SYNTAX,
            f"cannot call '{name}': not a function of the language",
            f.span(node),
            help=instead_of(name)
            or "decorate it with @pl.jit.inline, or compute its result outside of the function",
        )
    if any(map(is_shaped, args)) and getattr(target, "__module__", "") in ("builtins", "math"):
        fail(TYPE, f"cannot apply Python's '{target.__name__}' to arrays of a program", f.span(node),
             help=instead_of(target.__name__))  # fmt: skip
    check_said(target, args, kwargs, lambda signature, name: _argument(f, node, signature, name))
    try:
        return target(*args, **kwargs)
    except Problem:
        raise
    except Exception as e:
        fail(TYPE, f"{type(e).__name__}: {e}", f.span(node))


def _type(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


_CONVERSIONS: dict[int, Callable[[object], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


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
            fail(TYPE, f"invalid type expression: {e}", f.span(node), got=_type(value))
    return "".join(parts)


def _each(f: Frame, node: ast.ListComp) -> list[object]:
    """Return a list comprehension over a constant range, element by element."""
    (g,) = node.generators if len(node.generators) == 1 else (None,)
    if g is None or not isinstance(g.target, ast.Name) or g.is_async:
        fail(SYNTAX, "expected one range in a list comprehension", f.span(node))
    over = value_of(f, g.iter)
    if isinstance(over, Value) or not hasattr(over, "__iter__"):
        fail(SYNTAX, "expected a constant range in a list comprehension", f.span(g.iter), got=_type(over))
    before = f.names.get(g.target.id, POISON)
    found: list[object] = []
    for item in over:
        f.names[g.target.id] = item
        if all(_known_truth(f, test) for test in g.ifs):
            found.append(value_of(f, node.elt))
    if before is POISON:
        del f.names[g.target.id]
    else:
        f.names[g.target.id] = before
    return found


def condition(f: Frame, node: ast.expr) -> Value | bool:
    """Return the condition of a branch or loop: a truth value of the program, or a constant."""
    found = value_of(f, node)
    if not isinstance(found, Value):
        return bool(found)
    if not isinstance(found.type, ScalarType) or found.type.dtype != BOOL:
        help = "compare it, as in `x != 0`" if is_scalar(found) else OF_ARRAYS
        fail(TYPE, "expected a truth value as a condition", f.span(node), got=found.type, help=help)
    return found


def _known_truth(f: Frame, node: ast.expr) -> bool:
    """Return the constant condition of a list comprehension."""
    found = value_of(f, node)
    if isinstance(found, Value):
        fail(TYPE, "expected a constant condition in a list comprehension", f.span(node),
             got=found.type, help="a loop with pl.unroll, or the whole array")  # fmt: skip
    return bool(found)


def _dict(f: Frame, node: ast.Dict) -> dict[object, object]:
    if any(k is None for k in node.keys):
        fail(SYNTAX, "unsupported `**` in a dictionary", f.span(node))
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
            fail(SYNTAX, f"duplicate key {key!r} in a dictionary", f.span(k), help="leave one of them out")
    return found


_READERS: dict[type, Callable[[Frame, Any], object]] = {
    ast.Dict: _dict,
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.List: _list, ast.Tuple: _tuple,
    ast.BinOp: _binary, ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _both, ast.IfExp: _choice,
    ast.Subscript: _subscript, ast.Call: _call, ast.JoinedStr: _text, ast.ListComp: _each,
}  # fmt: skip
