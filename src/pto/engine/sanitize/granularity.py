"""Reports masks that are used for elements of another width than they were made for."""

from __future__ import annotations

from ..registers import Register
from ..watch import Event
from .sanitizer import Sanitizer


class Granularity(Sanitizer):
    memory = False

    def other_granularity(self, event: Event, mask: Register, size: int) -> None:
        d = event.core.diagnostic(
            event.op,
            "PTO-E2208",
            f"%{mask.name} was made for elements of {8 * mask.granule} bits, but is used for {8 * size} bits",
            expected=f"a mask of granularity b{8 * size}",
            got=f"b{8 * mask.granule}",
            help="make the mask for this width, or change it with pbitcast, ppack or punpack",
        )
        made = next((v.op for v in event.op.operands if v.name == mask.name), None)
        if made is not None:
            d.notes.append((f"%{mask.name} is made here", self.launch.span(made)))
        self.reports.add(("granularity", made or mask.name), d)  # one report for each wrong mask
