"""Interface of the text forms: parse a text, print a module, lay out a text."""

from __future__ import annotations

from ..diag import Diagnostic, DiagnosticError, Source, has_errors
from ..ir.core import Module
from .parser import Parser, is_mlir

FORMS = ("pto", "ssa", "asm", "generic")


def read_source(source: Source) -> tuple[Parser, Module]:
    """Parse a text; return the parser, with its tokens and diagnostics, and the module without the statements
    that have errors. Operations have their locations in this text; `locate` applies `loc(..)`."""
    parser = Parser(source)
    if is_mlir(parser):  # the usual case, which needs no further imports
        return parser, parser.module()
    from . import assembly

    return parser, assembly.parse(parser) if assembly.looks_like(parser) else parser.module()


def locate(parser: Parser) -> None:
    """Set the locations that the text declares with `loc(..)`."""
    if parser.located:
        from .locations import Locations

        Locations(parser.t, parser.places).place(parser.located)


def _read(source: Source) -> tuple[Parser, Module | None]:
    parser, module = read_source(source)
    if has_errors(parser.diagnostics):
        return parser, None
    locate(parser)
    return parser, module


def parse_source(source: Source) -> tuple[Module | None, list[Diagnostic]]:
    """Parse; the module is None if there are errors."""
    parser, module = _read(source)
    return module, parser.diagnostics


def parse(text: str, name: str = "<text>") -> Module:
    """Parse a program text; raise `DiagnosticError` with all diagnostics."""
    module, diagnostics = parse_source(Source(name, text))
    if module is None:
        raise DiagnosticError(diagnostics)
    return module


def format_source(source: Source) -> tuple[str | None, list[Diagnostic]]:
    """Return a laid-out text with its form and comments; None if there are errors."""
    parser, module = _read(source)
    if module is None:
        return None, parser.diagnostics
    from .layout import layout

    text = layout(parser)
    if text != source.text:
        again, _ = parse_source(Source(source.name, text))
        if again is None or to_text(again, "generic") != to_text(module, "generic"):
            raise AssertionError("formatting has changed the program")
    return text, parser.diagnostics


def to_text(module: Module, form: str = "pto", locations: bool = False) -> str:
    """Return a module as text in one of FORMS; `locations` adds the source locations of
    operations from other files (an error for PTO-AS)."""
    aliases = {"dps": "pto", "mlir": "generic"}
    form = aliases.get(form, form)
    if form not in FORMS:
        raise ValueError(f"unknown text form {form!r}; expected one of {', '.join(FORMS)}")
    if form == "asm":
        if locations:
            raise ValueError("PTO-AS has no locations")
        from .assembly_printer import to_assembly

        return to_assembly(module)
    from .printer import Printer

    return Printer(form, locations).module(module)
