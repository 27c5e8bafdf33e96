"""Text <-> IR: lexer, parser and printer for the PTO text forms."""

from .text import FORMS, format_source, locate, parse, parse_source, read_source, to_text

__all__ = ["FORMS", "format_source", "locate", "parse", "parse_source", "read_source", "to_text"]
