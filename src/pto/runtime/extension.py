"""The task runtime itself: an extension module, loaded when something first needs it."""

from __future__ import annotations

from typing import Any

from ..diag import Diagnostic, DiagnosticError


def extension() -> Any:
    """The module `_runtime`, compiled from native/runtime."""
    try:
        from .. import _runtime  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as e:
        message = f"the native task runtime cannot be loaded: {e}"
        help = "install the package again, or make setup in a checkout"
        raise DiagnosticError([Diagnostic("PTO-E2608", message, help=help)]) from e
    return _runtime
