"""Programs as text: files of users, and dumps of stages (printer.py).

    k = pl.parse_program(text)          a class of functions, to be called, lowered, executed like any other
    k = pl.loads_program("dump/03_after_tiles.py")
    f = pl.parse(text)                  a single function, or a program, whichever the text has

A text that a stage has printed is complete: `lower.exact(k)` is the same program.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ...diag import Diagnostic, DiagnosticError, Source
from .. import distributed
from ..problems import SYNTAX
from ..programs.jit import JitFunction, Method, ProgramClass

_count = count()


class NothingDefined(DiagnosticError, ValueError):
    """A text without a function or program. Programs for pypto expect a ValueError."""


class NotPython(DiagnosticError, SyntaxError):
    """A text that Python cannot read. Programs for pypto expect a SyntaxError."""

    __str__ = Exception.__str__  # the text of a SyntaxError does not survive a copy


def _names(text: str, name: str) -> dict[str, object]:
    """Execute a text and return its names; its lines are available to tracebacks, debuggers and
    diagnostics."""
    if not os.path.exists(name):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    language = sys.modules["pto.language"]  # a text need not import these names
    names: dict[str, object] = {"__name__": name, "__file__": name, "pl": language, "pld": distributed}
    try:
        code = compile(text, name, "exec")
    except (SyntaxError, ValueError) as e:
        source = Source(name, text)
        line = getattr(e, "lineno", None) or 1
        span = source.at(min(line, source.lines), getattr(e, "offset", None) or 0)
        raise NotPython([Diagnostic(SYNTAX, getattr(e, "msg", str(e)), span)]) from None
    try:
        exec(code, names)  # executes the file: `pl.parse` reads only Python programs
    except DiagnosticError:
        raise
    except Exception as e:
        at = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == name]
        span = Source(name, text).at(at[-1] or 1) if at else None
        raise DiagnosticError([Diagnostic(SYNTAX, f"{type(e).__name__}: {e}", span)]) from None
    return names


def _last(names: Mapping[str, object], kinds: tuple[type, ...], what: str, name: str) -> Any:
    found = [v for v in names.values() if isinstance(v, kinds)]
    if not found:
        raise NothingDefined(
            [Diagnostic(SYNTAX, f"missing {what} in {name}", help=f"decorate one: {_HELP[what]}")]
        )
    return found[-1]


_HELP = {"program": "@pl.program", "function or program": "@pl.jit, @pl.function or @pl.program"}


def parse_program(text: str, name: str = "") -> ProgramClass:
    """Return the program that a text defines, the last of several."""
    name = name or f"<program {next(_count)}>"
    return _last(_names(text, name), (ProgramClass,), "program", name)


def loads_program(path: str | os.PathLike[str]) -> ProgramClass:
    """Return the program of a file."""
    return parse_program(Path(path).read_text(encoding="utf-8"), os.fspath(path))


def parse(text: str, name: str = "") -> Any:
    """Return the function or the program that a text defines, the last of several."""
    name = name or f"<function {next(_count)}>"
    found = _last(_names(text, name), (JitFunction, Method, ProgramClass), "function or program", name)
    return JitFunction(found.declared) if isinstance(found, Method) else found


def loads(path: str | os.PathLike[str]) -> Any:
    """Return the function or the program of a file."""
    return parse(Path(path).read_text(encoding="utf-8"), os.fspath(path))
