"""debug/run.py of a folder: a script that runs the program again on random inputs, for users who change a
kernel there."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..ir import OUT
from .arguments import NAMES
from .callable import CallParam

_TEXT = '''"""Run {name} again, from this folder: python run.py"""

from pathlib import Path

{imports}
import pto.language as pl


def _inline_inputs():
    """A value per parameter, in order."""
    return [
{rows}
    ]


if __name__ == "__main__":
    program = pl.Compiled.load(Path(__file__).resolve().parent.parent)
    values = _inline_inputs()
    program(*values)
    for name, value in zip(program.param_names, values):
        print(f"{{name}}: {{value}}")
'''


def text(name: str, params: Sequence[CallParam], torch: bool | None = None) -> str:
    """Return the script; it uses torch if the process does."""
    torch = "torch" in sys.modules if torch is None else torch
    rows = [f"        {_value(p, torch)},  # {p.name}" for p in params]
    imports = "import torch\n" if torch else "import ml_dtypes\nimport numpy as np\n"
    return _TEXT.format(name=name, imports=imports, rows="\n".join(rows))


def _value(p: CallParam, torch: bool) -> str:
    if p.shape is None or p.dtype is None:
        return "0"
    shape = "(" + "".join(f"{16 if isinstance(d, str) else d}, " for d in p.shape).rstrip() + ")"
    shape = shape if len(p.shape) == 1 else shape.replace(",)", ")")
    dtype = next((n for n, isa in NAMES.items() if isa == p.dtype.isa), "float32")
    plain = p.direction != OUT and p.dtype.is_float
    if torch:
        if plain and p.dtype.bits < 16:
            return f"torch.randn({shape}).to(torch.{dtype})"
        return f"torch.{'randn' if plain else 'zeros'}({shape}, dtype=torch.{dtype})"
    kept = f"np.{dtype}" if p.dtype.isa in ("f32", "f16") or p.dtype.is_int else f"ml_dtypes.{dtype}"
    if plain:
        return f"np.random.standard_normal({shape}).astype({kept})"
    return f"np.zeros({shape}, {kept})"
