"""What the language has for what NumPy and Python are used to: help for those who come from there."""

from __future__ import annotations

from ...diag import did_you_mean
from ..operators.core import OPERATORS

#: Names that other libraries have, and what to write.
ELSEWHERE = {
    "T": "pl.transpose(x, 0, 1), or b_trans=True of pl.matmul",
    "amax": "pl.row_max and pl.col_max",
    "argmax": "pl.row_argmax and pl.col_argmax",
    "astype": "pl.cast(x, dtype)",
    "clip": "pl.minimum(pl.maximum(x, low), high)",
    "copy": "a name is enough: operators give new arrays",
    "dot": "pl.matmul(a, b)",
    "empty": "pl.create_tensor(shape, dtype=..), pl.create_tile on a core",
    "max": "pl.row_max and pl.col_max; pl.maximum(a, b) for elements",
    "mean": "pl.row_sum(x) * (1.0 / n)",
    "min": "pl.row_min and pl.col_min; pl.minimum(a, b) for elements",
    "ones": "pl.full(shape, dtype, 1.0)",
    "power": "pl.pow(a, b)",
    "sigmoid": "1.0 / (pl.exp(-x) + 1.0)",
    "sum": "pl.row_sum and pl.col_sum",
    "tanh": "1.0 - 2.0 / (pl.exp(x * 2.0) + 1.0)",
    "where": "pl.sel(mask, a, b), with a mask of pl.cmp",
    "zeros": "pl.full(shape, dtype, 0.0)",
}

#: Operators of Python that arrays do not have.
OPERATORS_OF_ARRAYS = {
    "matmul": "pl.matmul(a, b)",
    "pow": "pl.pow(a, b), or x * x",
    "floordiv": "pl.cast(a / b, dtype, mode='floor')",
    "mod": "pl.rem(a, b) or pl.fmod(a, b)",
    "bitand": "pl.and_(a, b)",
    "bitor": "pl.or_(a, b)",
    "bitxor": "pl.xor(a, b)",
    "shl": "pl.shl(a, b)",
    "shr": "pl.shr(a, b)",
}


def instead_of(name: str) -> str:
    """What to write for a function or method of that name; empty where nothing is near."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    return f"pl.{name}" if name in OPERATORS else ""


def member(name: str, known: list[str]) -> str:
    """What to write for a name that a module does not have."""
    return ELSEWHERE.get(name) or did_you_mean(name, known)
