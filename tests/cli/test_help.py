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
    "pto": ["pto.cli.main", "--help"],
    "ptoas": ["pto.cli.ptoas", "--help"],
    "ptobc": ["pto.cli.ptobc", "--help"],
    **{f"ptobc-{verb}": ["pto.cli.ptobc", verb, "--help"] for verb in ("encode", "decode", "dump")},
    **{f"pto-{verb}": ["pto.cli.main", verb, "--help"] for verb in VERBS},
    "pto-runtime-run": ["pto.cli.main", "runtime", "run", "--help"],
}


def _help(name: str) -> str:
    module, *arguments = COMMANDS[name]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays options out differently")
@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str, request: pytest.FixtureRequest) -> None:
    shown, path = _help(name), HELP / f"{name}.txt"
    if request.config.getoption("--rebase"):
        path.write_text(shown)
    assert path.exists(), f"no expectation; pytest {__file__} --rebase makes it"
    assert shown == path.read_text(), "if this is right: pytest tests/cli --rebase"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_name_the_tool(name: str) -> None:
    shown = _help(name)
    assert "examples:\n" in shown
    lines = shown.partition("examples:\n")[2].splitlines()
    assert any(name.partition("-")[0] in line for line in lines)


def test_no_stray_expectations() -> None:
    assert {path.stem for path in HELP.glob("*.txt")} == set(COMMANDS)
