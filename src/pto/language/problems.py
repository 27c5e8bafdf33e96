"""Problems of a program: how stages report them, and how several are collected."""

from __future__ import annotations

from typing import NoReturn

from ..diag import Diagnostic, Span

SYNTAX = "PTO-E3001"
NAME = "PTO-E3002"
ARGUMENTS = "PTO-E3003"
TYPE = "PTO-E3004"
SHAPE = "PTO-E3005"
PLACE = "PTO-E3006"
CALL = "PTO-E3007"
MERGE = "PTO-E3008"
UNSUPPORTED = "PTO-E3009"
UNWRITTEN = "PTO-E3010"
DIRECTION = "PTO-E3011"
PADDING = "PTO-E3012"
CLAIM = "PTO-E3013"
HOLES = "PTO-E3014"
OVERWRITTEN = "PTO-E3015"
RANKS = "PTO-E3016"

#: Help for an operator of a core outside of a core.
TO_A_CORE = "put it into `with pl.at(level=pl.Level.CORE_GROUP):` or a function with @pl.jit.incore"
#: Help for a condition that is an array.
OF_ARRAYS = "select by element with pl.where(mask, a, b); test one element with pl.read(x, [0, 0]) > 0"


class LanguageWarning(UserWarning):
    """A warning about a legal program that is most likely a mistake."""


class Problem(Exception):
    """A problem that is raised to the code that collects problems."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


def fail(
    code: str, message: str, span: Span | None = None, expected: object = "", got: object = "", help: str = ""
) -> NoReturn:
    """Raise a problem."""
    raise Problem(
        Diagnostic(code, message, span, expected=str(expected or ""), got=str(got or ""), help=help)
    )
