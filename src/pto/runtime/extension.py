"""The extension module of the task runtime, loaded at first use."""

from __future__ import annotations

from typing import Any

from ..diag import Diagnostic, DiagnosticError


def extension() -> Any:
    """Return the module `_runtime`, compiled from native/runtime."""
    try:
        from .. import _runtime  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as e:
        message = f"cannot load the native task runtime: {e}"
        help = "install the package again, or make setup in a checkout"
        raise DiagnosticError([Diagnostic("PTO-E2608", message, help=help)]) from e
    return _runtime
