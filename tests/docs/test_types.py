"""Type checkers accept what users write: README, tutorial, the pages on Python, the examples, and a script.

pyright checks all of them in its standard mode; `make matrix` has mypy check them, too. Both report the
mistakes of `typed/mistakes.py`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_snippets import ROOT, blocks
from tests.sampling import matrix

TYPED = Path(__file__).parent / "typed"
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/tutorial-manual.md",
    "docs/python*.md",
    "docs/language-*.md",
    "docs/from-*.md",
    "docs/index.md",
)


def checker(name: str) -> list[str]:
    """Return the command of a checker for this interpreter; skip the test without the checker."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    options = {"pyright": ["--pythonpath", sys.executable], "mypy": ["--cache-dir", os.devnull]}
    return [sys.executable, "-m", name, *options[name]]


def reports(name: str, folder: Path) -> list[str]:
    """Return the lines of a checker that report an error."""
    (folder / "pyproject.toml").write_text('[tool.pyright]\ntypeCheckingMode = "standard"\n')
    done = subprocess.run([*checker(name), "."], cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " error: " in line or ": error:" in line]


@pytest.mark.parametrize("name", ["pyright", pytest.param("mypy", marks=matrix)])
def test_programs_and_mistakes(name: str, tmp_path: Path) -> None:
    """Programs of users are accepted, and each mistake is reported at its line."""
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    for page in pages:
        parts = [b.text for b in blocks(page.read_text()) if b.language == "python"]
        (tmp_path / f"{page.stem.replace('-', '_')}_page.py").write_text("".join(parts))
    for script in [*ROOT.glob("examples/*.py"), *ROOT.glob("examples/*/*.py"), TYPED / "kernels.py"]:
        (tmp_path / f"{script.parent.name}_{script.name}").write_text(script.read_text())
    assert len(list(tmp_path.glob("*.py"))) > 12
    text = (TYPED / "mistakes.py").read_text()
    (tmp_path / "mistakes.py").write_text(text)
    wrong = {n for n, line in enumerate(text.splitlines(), 1) if "  # " in line}
    if name == "mypy":  # to which the type of an annotation is `Any`
        wrong = {n for n in wrong if "# a tile is no tensor" not in text.splitlines()[n - 1]}
    found = reports(name, tmp_path)
    mistakes = [m for line in found for m in [re.search(r"\bmistakes\.py:(\d+)", line)] if m]
    assert [line for line in found if "mistakes.py:" not in line] == []
    assert {int(m[1]) for m in mistakes} == wrong
