"""The Python language of PTO: kernels and graphs of tasks, read from their syntax trees.

import numpy as np
import pto.language as pl

@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [128, 128])
        y = pl.load(b, [0, 0], [128, 128])
        pl.store(pl.add(x, y), [0, 0], c)
    return c

add(a, b, c)     # NumPy arrays, used in place
"""

from __future__ import annotations

from types import SimpleNamespace as _Names
from typing import Any

from .control import FORMS as _FORMS
from .dtypes import DATA_TYPES as _DATA_TYPES
from .dtypes import DataType
from .enums import (
    ArgDirection,
    AtomicType,
    ForKind,
    FunctionType,
    Level,
    MaskPattern,
    MemorySpace,
    PadValue,
    PipeType,
    Role,
    ScopeMode,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from .ir.text import loads, loads_program, parse, parse_program
from .operators import OPERATORS as _OPERATORS
from .operators import Namespace as _Namespace
from .operators.fifo import AUTO
from .programs.arguments import RUNTIME
from .programs.autotune import autotune
from .programs.config import RunConfig
from .programs.jit import function, inline, jit, program
from .types import (
    UNSET,
    Array,
    DynVar,
    InOut,
    MemRef,
    Out,
    Ptr,
    Scalar,
    TaskId,
    Tensor,
    TensorView,
    Tile,
    TileView,
    Tuple,
    dynamic,
)

Mem = MemorySpace
ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_A_ZZ, MX_B_NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN


tensor, tile, array, system, prefetch, micro = (
    _Namespace(n) for n in ("tensor", "tile", "array", "system", "prefetch", "micro")
)
vars(tile)["MaskPattern"] = MaskPattern
adir = _Names(
    input=ArgDirection.Input, output=ArgDirection.Output, output_existing=ArgDirection.OutputExisting,
    inout=ArgDirection.InOut, no_dep=ArgDirection.NoDep, scalar=ArgDirection.Scalar,
)  # fmt: skip
optimizations = _Names(split=_FORMS["split"], cross_core_slot=_FORMS["cross_core_slot"])
globals().update(_DATA_TYPES)
globals().update(_FORMS)


def __getattr__(name: str) -> Any:
    """Return an operator, made on first use, or `pl.Compiled`, for `pl.Compiled.load(folder)`."""
    if name == "Compiled":
        from .programs.compiled import Compiled

        return Compiled
    if "." in name or name not in _OPERATORS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = _OPERATORS[name]
    return globals()[name]


def __dir__() -> list[str]:
    """List the names that programs use, without the modules of the package."""
    return sorted({"Compiled", *__all__, *_DATA_TYPES, *_FORMS, *(n for n in _OPERATORS if "." not in n)})


__all__ = [
    "AUTO",
    "DN",
    "MX_A_ZZ",
    "MX_B_NN",
    "ND",
    "NZ",
    "RUNTIME",
    "UNSET",
    "ArgDirection",
    "Array",
    "AtomicType",
    "DataType",
    "DynVar",
    "ForKind",
    "FunctionType",
    "InOut",
    "Level",
    "MaskPattern",
    "Mem",
    "MemRef",
    "MemorySpace",
    "Out",
    "PadValue",
    "PipeType",
    "Ptr",
    "Role",
    "RunConfig",
    "Scalar",
    "ScopeMode",
    "SplitMode",
    "TaskId",
    "Tensor",
    "TensorLayout",
    "TensorView",
    "Tile",
    "TileLayout",
    "TileView",
    "Tuple",
    "adir",
    "array",
    "autotune",
    "dynamic",
    "function",
    "inline",
    "jit",
    "loads",
    "loads_program",
    "micro",
    "optimizations",
    "parse",
    "parse_program",
    "prefetch",
    "program",
    "system",
    "tensor",
    "tile",
]
