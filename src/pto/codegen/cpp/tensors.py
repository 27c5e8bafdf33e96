"""What is known of a view of global memory, by whichever operation made it."""

from __future__ import annotations

from ...ir.core import Value

Extent = int | Value


class KnownView:
    """What is known of a view: where it starts, and its extents and strides."""

    def __init__(
        self, pointer: str, dims: list[Extent], strides: list[Extent], layout: str, elem: str,
        terms: tuple[tuple[Value, Extent], ...] = (),
    ) -> None:  # fmt: skip
        self.pointer = pointer
        self.dims = dims
        self.strides = strides
        self.layout = layout
        self.elem = elem
        self.terms = terms  # offset and stride of every window taken
        self.type = ""

    def but(self, layout: str) -> KnownView:
        """The same window in another layout."""
        return KnownView(self.pointer, self.dims, self.strides, layout, self.elem, self.terms)
