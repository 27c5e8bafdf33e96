"""Output files of views of a run, and packaged files of pages."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from ..diag import Diagnostic, DiagnosticError
from ..files import write_whole


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file; raise `DiagnosticError` if it cannot be written."""
    path = Path(path)
    try:
        write_whole(path, text)
    except OSError as error:
        raise cannot_write(path, error) from None
    return path


def cannot_write(path: Path, error: OSError) -> DiagnosticError:
    """Return the error for a file that cannot be written."""
    why = (error.strerror or str(error)).lower()
    return DiagnosticError([Diagnostic("PTO-E0002", f"cannot write '{path}': {why}")])


def packaged(name: str) -> str:
    """Return a style sheet or script from the folder of this module, also in an installed wheel."""
    return files("pto.perf").joinpath(name).read_text("utf-8")
