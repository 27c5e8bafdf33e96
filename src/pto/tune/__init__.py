"""Search over compile-time parameters of a kernel. Choices that are illegal or do not fit in memory are left
out; the others are ranked by the cost model.

    pto tune k.pto --param TILE=64,128,256 --param STAGES=1..4

`space` has the parameters and their values, `source` replaces them in a program, `measure` times one choice,
`explore` times all choices in parallel and writes the results to a file, and `picture` draws the results.
"""

from __future__ import annotations

from ..trials import Outcome
from .explore import search
from .space import Space

__all__ = ["Outcome", "Space", "search"]
