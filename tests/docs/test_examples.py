"""The example ladder: every program is legal for its target, but for the one that is wrong on purpose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pto
from pto.diag import Diagnostic
from pto.frontdoor import read

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(p for p in EXAMPLES.iterdir() if p.name.endswith((".pto", ".pto.s")))
WRONG = EXAMPLES / "10_wrong.pto"


def check(path: Path) -> list[Diagnostic]:
    return pto.verify(pto.parse(path), flags="error")


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p != WRONG], ids=lambda p: p.name)
def test_legal(path: Path) -> None:
    assert check(path) == []
    source, _ = read(str(path))
    assert source is not None and source.text.startswith(("//", "#")), "say in a comment what it shows"


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p != WRONG], ids=lambda p: p.name)
@pytest.mark.parametrize("form", ["pto", "asm", "generic"])
def test_forms_say_the_same(path: Path, form: str) -> None:
    module = pto.parse(path)
    again = pto.parse(pto.to_text(module, form))
    assert pto.to_text(again, "pto") == pto.to_text(module, "pto")


def test_three_spellings_of_the_first() -> None:
    texts = {
        pto.to_text(pto.parse(EXAMPLES / f"01_vec_add{s}"), "ssa") for s in (".pto", ".ssa.pto", ".pto.s")
    }
    assert len(texts) == 1


def test_wrong_in_three_ways() -> None:
    assert sorted(d.code for d in check(WRONG)) == ["PTO-E0301", "SA-0006", "SA-0353"]


def test_missing_flag_is_found() -> None:
    """The manual example without one of its flags."""
    text = (EXAMPLES / "02_manual_flags.pto").read_text()
    line = "    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]\n"
    assert line in text
    problems = pto.verify(pto.parse(text.replace(line, "")), flags="error")
    assert [d.code for d in problems] == ["PTO-E0803"]


def test_readme_lists_every_program() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\| \[(\S+)\]\(\1\)", readme, re.MULTILINE) == sorted(
        (p.name for p in PROGRAMS), key=lambda n: (n[:2], not n.endswith("add.pto"), "ssa" not in n)
    )


@pytest.mark.parametrize("page", ["README.md", "examples/README.md"])
def test_links_of_readmes(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target
