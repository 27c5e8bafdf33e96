"""Text <-> IR: lexer, parser and printer for the PTO text forms."""

from .text import FORMS, effective_profile, parse, parse_source, to_text

__all__ = ["FORMS", "effective_profile", "parse", "parse_source", "to_text"]
