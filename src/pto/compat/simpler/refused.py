"""Errors for features of simpler that this package lacks, with an alternative."""

from __future__ import annotations

from ...diag import Diagnostic, DiagnosticError

REFUSED = "PTO-E3106"


def refuse(what: str, instead: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic(REFUSED, what, help=instead)])
