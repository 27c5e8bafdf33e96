"""The vocabulary of reports about a launch: the words of its source language.

Programs use those of the ISA. Kernels in C++ have others (`traced/spelling.py`); a launch has its own in
`Grid.words`.
"""

from __future__ import annotations

from ..diag import Diagnostic
from ..ir.core import Operation
from ..ir.multi_tiles import name_in_messages


class Words:
    """The words of programs."""

    #: Prefix of names of values.
    sign = "%"

    def operation(self, op: Operation) -> str:
        """Return the name of an operation."""
        return name_in_messages(op)

    def call(self, op: Operation) -> str:
        """Return the text of an operation for a line about current work."""
        return self.operation(op)

    def function(self, name: str) -> str:
        return f"@{name}"

    def plain(self, text: str) -> str:
        """Return text of the debugger, which contains names of values."""
        return text

    def told(self, found: Diagnostic) -> Diagnostic:
        """Return a finding of a watcher."""
        return found
