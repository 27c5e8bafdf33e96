"""Progress of long launches in notebooks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .options import LaunchOptions

#: Seconds before a bar is shown, and between its updates.
_AFTER, _EACH = 1.0, 0.2


@contextmanager
def in_notebook(options: LaunchOptions) -> Iterator[LaunchOptions]:
    """Yield the options of a launch, with a bar of progress if they have none and this is a notebook."""
    if "progress" in options or "ipykernel.kernelapp" not in sys.modules:
        yield options
        return
    bar = _NotebookBar()
    try:
        yield {**options, "progress": bar.step}
    finally:
        bar.end()


class _NotebookBar:
    """A bar in the output of a cell."""

    def __init__(self) -> None:
        self._last = monotonic() + _AFTER - _EACH
        self._handle: Any = None

    def step(self, begun: int, total: int, steps: int) -> None:
        if monotonic() - self._last >= _EACH:
            self._last = monotonic()
            text = f"block {begun} of {total}, {steps:,} steps"
            self._show(f'<progress value="{begun}" max="{total}"></progress> {text}')

    def end(self) -> None:
        if self._handle is not None:
            self._show("")

    def _show(self, markup: str) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        if self._handle is None:
            self._handle = display(HTML(markup), display_id=True)
        else:
            self._handle.update(HTML(markup))
