"""Not written yet."""

from __future__ import annotations

from .pipeline import PassContext


def run(ctx: PassContext) -> None:
    """Nothing yet."""
