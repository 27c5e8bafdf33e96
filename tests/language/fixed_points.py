"""Check that the text of a program after every stage reads back as the same program."""

from __future__ import annotations

import copy
import re
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.sampling import EVERY

import pto.language as pl
from pto.language.programs.lower import exact


def check(kernel: Any, *args: Any) -> Any:
    """Print, parse and print again: as read and after every stage (a third of the stages in `make test`),
    with types and without. Kernels of the text of the last stage are those of the program itself, which is
    returned."""
    with TemporaryDirectory() as folder:
        done = kernel.lower(*args, dump=folder)
        texts = [p.read_text() for p in sorted(Path(folder).glob("*.py"))]
    stages = [*dict.fromkeys(texts)]
    for text in stages if EVERY else stages[len(stages[0]) % 3 :: 3]:
        _same(text, pl.parse_program(text).as_python())
        short = pl.parse_program(text).as_python(concise=True)
        _same(short, pl.parse_program(short).as_python(concise=True))
    again = copy.copy(done)
    again.__dict__.pop("modules", None)
    again.program = exact(pl.parse_program(texts[-1]), done.profile)
    _same(_anonymous(done.as_pto()), _anonymous(again.as_pto()))
    return done


def _same(text: str, again: str) -> None:
    assert again == text, "\n".join(unified_diff(text.splitlines(), again.splitlines(), lineterm=""))


def _anonymous(text: str) -> str:
    """Without names: those of the text are all different, those of a program need not be."""
    return re.sub(r"%\w+", "%", text)
