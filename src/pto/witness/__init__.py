"""One legal program for every instruction, and its illegal neighbours.

The documentation shows them as examples; the tests prove with them that every row is complete, that every
rule has a program it accepts and one it refuses, and that every instruction survives each text form.
"""

from .programs import example_forms, example_text, witness

__all__ = ["example_forms", "example_text", "witness"]
