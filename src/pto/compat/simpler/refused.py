"""What programs ask for and we do not have: said with the reason, and with what there is."""

from __future__ import annotations

from ...diag import Diagnostic, DiagnosticError

REFUSED = "PTO-E3106"


def refuse(what: str, instead: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic(REFUSED, what, help=instead)])
