"""Whether what a program prints after every stage reads back as the same program."""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import Any

import pto.language as pl
from pto.language import arguments, lower
from pto.language.call import profile_of
from pto.language.printer import program_text


def check(kernel: Any, *args: Any) -> list[str]:
    """Print, parse and print again: as it is read and after every stage, with types and without. Kernels of what
    the last stage printed are those of the program itself."""
    profile = profile_of(None)
    types = arguments.types_of(kernel.declared, arguments.bound(kernel.declared, args, {}))
    program, _ = lower.read(kernel.declared, types, profile)
    texts = [_fixed(program)]
    for _, after in lower.stages(program):
        if program_text(after) != texts[-1]:
            texts.append(_fixed(after))
        program = after
    again = lower.Lowered(lower.exact(pl.parse_program(texts[-1])), profile)
    assert _anonymous(again.as_pto()) == _anonymous(lower.Lowered(program, profile).as_pto())
    return texts


def _fixed(program: Any) -> str:
    for concise in (True, False):
        text = program_text(program, concise)
        again = pl.parse_program(text).as_python(concise)
        assert again == text, "\n".join(unified_diff(text.splitlines(), again.splitlines(), lineterm=""))
    return text


def _anonymous(text: str) -> str:
    """Without names: those of the text are all different, those of a program need not be."""
    return re.sub(r"%\w+", "%", text)
