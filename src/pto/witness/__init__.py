"""One legal program for every instruction.

The documentation shows these programs as examples. The tests use them, and illegal variants, to prove that
every row is complete, that every rule accepts one program and refuses another, and that every instruction
survives each text form.
"""

from .programs import example_forms, example_text, witness

__all__ = ["example_forms", "example_text", "witness"]
