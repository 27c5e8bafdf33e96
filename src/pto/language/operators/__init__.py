"""Operators of the language: those that are one instruction (rows.py) and those that are several."""

from . import (
    casts,
    compute,
    cube,
    directives,
    fifo,
    gather,
    hints,
    memory,
    micro,
    mx,
    quant,
    ranks,
    shapes,
    system,
    tasks,
)
from .core import OPERATORS, Namespace, Operator
from .micro import add_micro
from .rows import add_all

add_all()
add_micro(OPERATORS)
#: Aliases of operators.
ALIASES = {
    "ci": "arange", "tile.create": "create_tile", "tensor.create": "create_tensor",
    **{f"system.{name}": name for name in fifo.BUFFERS},
    "pld.remote_load": "pld.tile.remote_load",
    **{f"pld.system.{name}": f"pld.{name}" for name in ("world_size", "get_comm_ctx", "rank", "nranks")},
    **{f"pld.tensor.{name}": f"pld.{name}" for name in ("alloc_window_buffer", "window")},
}  # fmt: skip
OPERATORS.update({name: OPERATORS[of] for name, of in ALIASES.items()})

__all__ = [
    "ALIASES",
    "OPERATORS",
    "Namespace",
    "Operator",
    "casts",
    "compute",
    "cube",
    "directives",
    "fifo",
    "gather",
    "hints",
    "memory",
    "micro",
    "mx",
    "quant",
    "ranks",
    "shapes",
    "system",
    "tasks",
]
