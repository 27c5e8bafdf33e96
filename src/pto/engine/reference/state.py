"""The state of a core that instructions use, and the cores of one block.

`Core` (in `core.py`) adds the scalar unit and the pipes; `Grid` (in `grid.py`) is the launch.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ...diag import Diagnostic
from ...ir.core import Operation
from ...ir.multi_tiles import name_in_messages
from ...isa.profiles import Profile
from ..memory import Buffer, GlobalMemory, core_buffers
from ..registers import SPECIAL, Register
from ..watch import Given, Watchers
from .semantics import SEMANTICS


class Cluster:
    """The cores of one block, and their shared semaphores and FIFOs."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.cores: list[CoreState] = []
        self.semaphores: dict[tuple[str, int], deque[Given | None]] = {}
        self.fifos: dict[object, Any] = {}
        self.reserved: dict[object, int] = {}

    @property
    def vectors(self) -> list[CoreState]:
        return [c for c in self.cores if c.kind == "vector"]


class CoreState:
    """A cube core, a vector core, or ("mix") a core of both kinds, for programs that do not separate them."""

    def __init__(
        self,
        profile: Profile,
        gm: GlobalMemory | None = None,
        kind: str = "mix",
        block: int = 0,
        sub: int = 0,
        out: Any = None,
        rank: int = 0,
        index: int | None = None,
    ) -> None:
        self.profile = profile
        self.gm = gm or GlobalMemory()
        self.kind = kind
        self.block = block
        self.sub = sub
        self.rank = rank
        #: The number of its block in the launch, over all ranks.
        self.index = block if index is None else index
        self.name = {"cube": "AIC", "vector": f"AIV{sub}"}.get(kind, "")
        self.buffers: dict[str, Buffer] = core_buffers(profile, self.name)
        #: Mode registers that configuration instructions set, by name.
        self.registers: dict[str, Any] = {}
        #: The semantics of vector instructions for which the manual and the hardware differ.
        self.semantics = SEMANTICS["hw"]
        #: Special registers of the vector core: AR, SQZN and the counts of the last merge sort.
        self.special: dict[str, Register] = {}
        self.homes: dict[object, int] = {}  # addresses of storage without an address in the program
        self.out = out  # output of the program
        self.port: Any = None  # access to memory, see `instr.Port`
        #: The observers of the launch; None without any.
        self.watch: Watchers | None = None
        #: The vecscope that runs now, see `interval.py`.
        self.interval: Any = None
        self.grid: Any = None  # the launch, see `grid.Grid`
        self.cluster: Cluster = None  # type: ignore[assignment]

    def special_register(self, name: str, dtype: str, lanes: int = 1) -> Register:
        """Return a special register, which is zero at first."""
        found = self.special.get(name)
        if found is None:
            found = self.special[name] = Register(dtype, lanes, name, SPECIAL)
        return found

    def where(self) -> str:
        """Return the name of this core in messages; empty if there is only one."""
        parts = [f"rank {self.rank}"] if self.grid is not None and self.grid.ranks > 1 else []
        if self.grid is not None and self.grid.blocks > 1:
            parts.append(f"block {self.block}")
        if self.name:
            parts.append(self.name)
        if self.semantics.name != "hw":
            parts.append(f"semantics={self.semantics.name}")
        return ", ".join(parts)

    def indices(self, op: Operation) -> str:
        """Return the text for the current iteration of the loops around an operation."""
        return ""

    def diagnostic(self, op: Operation, code: str, message: str, **facts: Any) -> Diagnostic:
        where = ", ".join(part for part in (self.where(), self.indices(op)) if part)
        text = f"{name_in_messages(op)}: {message}" + (f" ({where})" if where else "")
        return Diagnostic(code, text, self.grid.span(op), **facts)
