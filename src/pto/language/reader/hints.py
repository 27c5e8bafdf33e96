"""Help for users of NumPy and Python: the language's counterparts of their names."""

from __future__ import annotations

import ast
from typing import NoReturn

from ...diag import did_you_mean
from ..operators.core import OPERATORS
from ..problems import SYNTAX, fail
from .frame import Frame

#: Counterparts of an index that is an array, or of a comparison of arrays.
_GATHERED = "a loop: out[i] = x[index[i]]; pl.gather(x, dim=-1, index=i) for elements of a row"
_COUNTED = "a loop: out[0, x[0, i]] += 1; or pl.row_sum((x == value) * 1.0)"
BY_ARRAYS = f"pl.where(mask, a, b) selects by element; for rows by number use {_GATHERED}"
#: Names of other libraries, and their counterparts.
ELSEWHERE = {
    "T": "pl.transpose(x, 0, 1), or b_trans=True of pl.matmul",
    "arange": "pl.arange(start, [1, n])",
    "amax": "pl.row_max and pl.col_max",
    "argmax": "pl.row_argmax and pl.col_argmax",
    "astype": "pl.cast(x, dtype)",
    "ceil": "pl.cast(pl.cast(x, pl.INT32, mode='ceil'), pl.FP32)",
    "bincount": _COUNTED,
    "clip": "pl.minimum(pl.maximum(x, low), high)",
    "concatenate": "pl.concat(a, b) beside each other; windows of a tensor: out[0:16] = a; out[16:32] = b",
    "copy": "use the name: operators return new arrays",
    "cumsum": "a loop: total = total + x[i:i + 1]; out[i:i + 1] = total",
    "dot": "pl.matmul(a, b)",
    "einsum": "pl.matmul(a, b), with a_trans=True and b_trans=True",
    "empty": "pl.create_tensor(shape, dtype=..), pl.create_tile on a core",
    "expand_dims": "pl.reshape(x, shape)",
    "floor": "pl.cast(pl.cast(x, pl.INT32, mode='floor'), pl.FP32)",
    "full_like": "pl.full(x.shape, x.dtype, value)",
    "histogram": _COUNTED,
    "hstack": "pl.concat(a, b)",
    "max": "pl.row_max and pl.col_max; pl.maximum(a, b) for elements",
    "mean": "pl.row_sum(x) / n and pl.col_sum(x) / n",
    "min": "pl.row_min and pl.col_min; pl.minimum(a, b) for elements",
    "ones": "pl.full(shape, dtype, 1.0)",
    "ones_like": "pl.full(x.shape, x.dtype, 1.0)",
    "power": "pl.pow(a, b)",
    "reciprocal": "pl.recip(x)",
    "round": "pl.cast(pl.cast(x, pl.INT32, mode='rint'), pl.FP32)",
    "sigmoid": "1.0 / (pl.exp(-x) + 1.0)",
    "silu": "x / (pl.exp(-x) + 1.0)",
    "softmax": "e = pl.exp(x - pl.row_max(x)), then e / pl.row_sum(e)",
    "square": "x * x",
    "std": "pl.sqrt(pl.row_sum((x - mean)**2) / n)",
    "sum": "pl.row_sum(x) along axis 1, pl.col_sum(x) along axis 0; pl.col_sum(pl.row_sum(x)) of all",
    "take": _GATHERED,
    "topk": "k times: m = pl.row_max(x); out[:, i:i + 1] = m; x = pl.where(x == m, -1e30, x)",
    "tril": "pl.where(pl.arange(0, [1, n]) > pl.transpose(pl.arange(0, [1, n]), 0, 1), 0.0, x)",
    "trunc": "pl.cast(pl.cast(x, pl.INT32, mode='trunc'), pl.FP32)",
    "var": "pl.row_sum((x - mean)**2) / n",
    "vstack": "windows of a tensor: out[0:16] = a; out[16:32] = b",
    "zeros": "pl.full(shape, dtype, 0.0)",
    "zeros_like": "pl.full(x.shape, x.dtype, 0.0)",
}

#: Unsupported Python syntax by node of the syntax tree: its name, and the help.
_LOCAL = "define it outside of the function"
_CHECKED = "pl.static_assert(condition, message) checks shapes and constants; check data before the call"
_LISTED = "a list over a constant range: [f(i) for i in range(4)]"
ABSENT = {
    "Assert": ("assert", _CHECKED),
    "AsyncFunctionDef": ("async", _LOCAL),
    "ClassDef": ("a class in a function", _LOCAL),
    "Delete": ("del", "leave it out: memory is reused after the last use of its contents"),
    "DictComp": ("a dictionary over a range", _LISTED),
    "FunctionDef": ("a function in a function", f"{_LOCAL}, with @pl.jit.inline"),
    "GeneratorExp": ("a generator", _LISTED),
    "Global": ("global", "names outside of the function are constants: pass an array, and write into it"),
    "Import": ("import", "import it outside of the function"),
    "ImportFrom": ("import", "import it outside of the function"),
    "Lambda": ("lambda", f"a function with @pl.jit.inline; {_LOCAL}"),
    "Match": ("match", "if and elif"),
    "NamedExpr": (":=", "write a separate statement: name = value"),
    "Nonlocal": ("nonlocal", "return what changes"),
    "Raise": ("raise", _CHECKED),
    "Set": ("a set", "a list or a tuple"),
    "SetComp": ("a set over a range", _LISTED),
    "Starred": ("*", "write out the parts"),
    "Try": ("try", f"programs raise no exceptions. {_CHECKED}"),
    "Yield": ("yield", "write into an array: out[..] = value"),
    "YieldFrom": ("yield", "write into an array: out[..] = value"),
}

#: Python operators that arrays do not support.
OPERATORS_OF_ARRAYS = {
    "pow": "pl.pow(a, b), or x * x",
    "floordiv": "pl.cast(a / b, dtype, mode='floor')",
    "mod": "pl.rem(a, b) or pl.fmod(a, b)",
    "bitand": "pl.and_(a, b) of integers; masks, as a < b, have `&`",
    "bitor": "pl.or_(a, b) of integers; masks, as a < b, have `|`",
    "bitxor": "pl.xor(a, b) of integers; masks, as a < b, have `^`",
    "invert": "pl.not_(a) of integers; masks, as a < b, have `~`",
    "not": "`~` of a mask; pl.read(x, [0, 0]) is a number",
    "shl": "pl.shl(a, b)",
    "shr": "pl.shr(a, b)",
}


def absent(f: Frame, node: ast.AST) -> NoReturn:
    """Reject Python syntax that the language does not have."""
    what, help = ABSENT.get(type(node).__name__, (type(node).__name__, ""))
    word = what if " " in what else f"`{what}`"
    fail(SYNTAX, f"unsupported syntax: {word}", f.span(node).head, help=help)


def instead_of(name: str) -> str:
    """Return the counterpart of a function or method; empty if there is none."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    return f"pl.{name}" if name in OPERATORS else ""


def member(name: str, known: list[str]) -> str:
    """Return help for an unknown name of a module."""
    return ELSEWHERE.get(name) or did_you_mean(name, known)
