"""Timeline of a launch: its events with their times on a machine, for users.

timeline = kernel.run(a, b, timeline=True).timeline
timeline.us, timeline.cycles            # of the whole launch
timeline.pipes                          # busy and idle time by core and pipe
timeline.stalls()                       # waits: pipe, duration and reason
timeline.critical_path()                # the parts of the total
timeline.what_if(change)                # the same on another trace or machine
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...shown import Shown
from .measures import Measures, PipeUse, Stall
from .trace import SCALAR

if TYPE_CHECKING:
    from ..explorer.values import Values
    from ..memory_map import MemoryMap


class Timeline(Shown, Measures):
    """Times of a launch on a machine."""

    def __repr__(self) -> str:
        return f"<Timeline {self.us:.2f} us, {len(self.trace)} events, {self.machine.name}>"

    def text(self, advice: bool = True) -> str:
        from .report import text

        return text(self, advice)

    def html(self, name: str = "", values: Values | None = None, memory_map: MemoryMap | None = None) -> str:
        """Return the page of the explorer, with values of a `Keeper` and the memory map of the launch."""
        from ..explorer.kernel import Recorded, html

        return html(self, name, None, Recorded(values, memory_map))

    def perfetto(self) -> list[dict[str, object]]:
        """Return the events of a Chrome trace."""
        from .export import perfetto

        return perfetto(self)


__all__ = ["SCALAR", "PipeUse", "Stall", "Timeline"]
