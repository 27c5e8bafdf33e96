"""The help of every tool and verb is part of its contract: `pytest tests/cli --rebase` rewrites the texts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pto.cli.main import VERBS

HELP = Path(__file__).parent / "help"

COMMANDS: dict[str, list[str]] = {
    "pto": ["pto", "--help"],
    "ptoas": ["ptoas", "--help"],
    "ptobc": ["ptobc", "--help"],
    **{f"ptobc-{verb}": ["ptobc", verb, "--help"] for verb in ("encode", "decode", "dump")},
    **{f"pto-{verb}": ["pto", verb, "--help"] for verb in VERBS},
    "pto-runtime-run": ["pto", "runtime", "run", "--help"],
    **{f"pto-cost-{verb}": ["pto", "cost", verb, "--help"] for verb in ("show", "table", "fit")},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str, tool_folder: Path, request: pytest.FixtureRequest) -> None:
    tool, *arguments = COMMANDS[name]
    done = subprocess.run(
        [str(tool_folder / tool), *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == ""
    examples = done.stdout.partition("examples:\n")[2].splitlines()
    assert any(tool in line for line in examples)
    if sys.version_info >= (3, 13):  # argparse lays options out differently
        return
    path = HELP / f"{name}.txt"
    if request.config.getoption("--rebase"):
        path.write_text(done.stdout)
    assert path.exists(), f"no expectation; pytest {__file__} --rebase makes it"
    assert done.stdout == path.read_text(), "if this is right: pytest tests/cli --rebase"


def test_no_stray_expectations() -> None:
    assert {path.stem for path in HELP.glob("*.txt")} == set(COMMANDS)
