"""How a launch is spoken of where somebody looks at it: in the words of what was written.

Programs have those of the ISA. Kernels in C++ have others (`traced/spelling.py`); a launch says which are its
own (`Grid.words`).
"""

from __future__ import annotations

from ..diag import Diagnostic
from ..ir.core import Operation
from ..ir.multi_tiles import told_as


class Words:
    """Those of programs."""

    #: Before names of values.
    sign = "%"

    def operation(self, op: Operation) -> str:
        """The name of an operation."""
        return told_as(op)

    def call(self, op: Operation) -> str:
        """An operation in a line that says what is at work."""
        return self.operation(op)

    def function(self, name: str) -> str:
        return f"@{name}"

    def plain(self, text: str) -> str:
        """What the debugger says, in which names of values stand."""
        return text

    def told(self, found: Diagnostic) -> Diagnostic:
        """What somebody who watches has found."""
        return found
