"""Text <-> IR: lexer, parser and printer for the PTO text forms."""

from .parser import effective_profile, parse, parse_source
from .printer import FORMS, to_text

__all__ = ["FORMS", "effective_profile", "parse", "parse_source", "to_text"]
