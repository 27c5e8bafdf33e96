"""Versions of a text, of which only the edited statements are read: they are those of a whole check."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from tests.lsp.fuzz import corpus, mutated
from tests.seeds import seeds

from pto.asm import to_text
from pto.checking import Checked, check_source
from pto.diag import Source, Span
from pto.lsp.edited import EditedText


def seen(found: Checked) -> list[Any]:
    """Everything that an editor can show of a version."""

    def place(span: Span | None) -> Any:
        return span and (span.source.name, span.source.text, span.start, span.end)

    said = [
        (
            d.code,
            d.message,
            d.severity,
            d.expected,
            d.got,
            d.help,
            place(d.span),
            [(n, place(s)) for n, s in d.notes],
        )
        for d in found.diagnostics
    ]
    module = found.module
    ops = [(op.name, place(op.loc)) for op in module.walk()] if module is not None else []
    text = to_text(module, "generic") if module is not None and found.done is not None else ""
    return [said, found.tokens.texts, list(found.tokens.starts), ops, text]


def edited(text: str, chance: random.Random) -> str:
    """The text after an edit of one line, which often stays a program."""
    lines = text.split("\n")
    n, kind = chance.randrange(len(lines)), chance.randrange(6)
    names = re.findall(r"%\w+", text) or ["%x"]
    if kind == 0:
        lines[n] = f"  {lines[n]} // so"
    elif kind == 1:
        lines.insert(n, lines[n])
    elif kind == 2:
        del lines[n]
    elif kind == 3:
        lines[n] = re.sub(r"%\w+", lambda m: chance.choice((m[0], chance.choice(names))), lines[n])
    elif kind == 4:
        lines[n] = re.sub(r"\b\d+\b", lambda _: chance.choice(("0", "1", "16", "64", "4096")), lines[n])
    else:
        lines[n], lines[n - 1] = lines[n - 1], lines[n]
    return "\n".join(lines)


@pytest.mark.seeded
@pytest.mark.parametrize("seed", seeds([0]))
def test_a_version_is_that_of_a_whole_check(seed: int) -> None:
    chance, texts, whole = random.Random(seed), corpus(), 0

    def check(source: Source) -> Checked:
        nonlocal whole
        whole += 1
        return check_source(source)

    versions, text, steps = EditedText(check), "", 400
    good = text
    for n in range(steps):
        if n % 30 == 0:
            text = good = chance.choice(texts)
        elif chance.random() < 0.5:
            text = good  # an edit is taken back
        text = edited(text, chance) if chance.random() < 0.75 else mutated(text, chance, texts)
        found = versions(Source("k.pto", text))
        assert seen(found) == seen(check_source(Source("k.pto", text))), text
        good = text if found.ok else good
    assert whole < 0.8 * steps
