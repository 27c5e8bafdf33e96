"""Base of public objects that `print` and notebooks show: `display` has their texts and pictures.

`display` imports the printers and the pages, which are above the classes, so a class imports `display` on
use.
"""

from __future__ import annotations

from importlib import import_module


class Shown:
    """An object with a text for people, and HTML for notebooks."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(import_module("pto.display").text(self))

    def _repr_html_(self) -> str:
        return str(import_module("pto.display").html(self))
