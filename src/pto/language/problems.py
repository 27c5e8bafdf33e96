"""What is wrong with a program of the language: how stages say it, and how several are collected."""

from __future__ import annotations

from typing import Any, NoReturn

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

#: What to write for work of a core that is elsewhere.
TO_A_CORE = "put it into `with pl.at(level=pl.Level.CORE_GROUP):` or a function with @pl.jit.incore"
#: What to write for a condition that is an array.
OF_ARRAYS = "pl.where(mask, a, b) chooses by elements; pl.read(x, [0, 0]) > 0 asks one"


class LanguageWarning(UserWarning):
    """Something of a program that is legal and most likely not meant."""


class Problem(Exception):
    """One problem, on its way to those that are collected."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


def fail(
    code: str, message: str, span: Span | None = None, expected: Any = "", got: Any = "", help: str = ""
) -> NoReturn:
    """Give up on what is being read."""
    raise Problem(
        Diagnostic(code, message, span, expected=str(expected or ""), got=str(got or ""), help=help)
    )
