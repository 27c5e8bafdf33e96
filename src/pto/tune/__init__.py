"""Search over compile-time parameters of a kernel: what is illegal or does not fit is left out, the rest is
ranked by the cost model.

    pto tune k.pto --param TILE=64,128,256 --param STAGES=1..4

`space` has the parameters and their values, `source` what they change in a program, `measure` how long the
outcome takes, `explore` goes over all of them, several at a time, and keeps what it found in a file;
`picture` draws it.
"""

from __future__ import annotations

from .explore import search
from .measure import Outcome
from .space import Space

__all__ = ["Outcome", "Space", "search"]
