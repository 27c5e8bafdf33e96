"""The front door of the text forms: a text to a module, a module to text."""

from __future__ import annotations

from ..diag import Diagnostic, DiagnosticError, Source, has_errors
from ..ir.core import Module
from ..isa.profiles import Profile, resolve
from . import assembly
from .comments import Comments
from .parser import Parser
from .printer import Printer

FORMS = ("pto", "ssa", "asm", "generic")


def target_of(text: str) -> str | None:
    """Value of the `pto.target_arch` attribute of a text, without parsing it."""
    at = text.find("pto.target_arch")
    if at < 0:
        return None
    rest = text[at + 15 : at + 80].lstrip(' "').lstrip("= ")
    return rest[1:].partition('"')[0] if rest[:1] == '"' else None


def effective_profile(text: str, target: str | Profile | None) -> Profile:
    """The profile of a program text, known before it is parsed: Left tiles depend on it."""
    return resolve(target, target_of(text))


def parse_source(
    source: Source, target: str | Profile | None = None
) -> tuple[Module | None, list[Diagnostic]]:
    """Parse; the module is None when there are errors."""
    parser = Parser(source, effective_profile(source.text, target))
    if assembly.looks_like(parser):
        module = assembly.parse(parser)
    else:
        module = parser.module()
    if has_errors(parser.diagnostics):
        return None, parser.diagnostics
    return module, parser.diagnostics


def parse(text: str, name: str = "<text>", target: str | Profile | None = None) -> Module:
    """Parse a program text; raises `DiagnosticError` with all diagnostics."""
    module, diagnostics = parse_source(Source(name, text), target)
    if module is None:
        raise DiagnosticError(diagnostics)
    return module


def to_text(module: Module, form: str = "pto", comments: bool = False) -> str:
    """A module as text in one of FORMS; `comments` keeps those of the source (not in assembly)."""
    aliases = {"dps": "pto", "mlir": "generic"}
    form = aliases.get(form, form)
    if form not in FORMS:
        raise ValueError(f"unknown text form {form!r}; one of {', '.join(FORMS)}")
    if form == "asm":
        return assembly.to_assembly(module)
    return Printer(form, Comments(module.source.text) if comments else None).module(module)
