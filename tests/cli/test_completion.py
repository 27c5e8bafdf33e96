"""Completion in shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.each import each

from pto.cli import completion
from pto.cli.main import VERBS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert completion.main([shell]) == 0
    return capsys.readouterr().out


def test_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bash itself completes verbs, options, subcommands, instructions and codes."""
    path = tmp_path / "pto.bash"
    path.write_text(script("bash", capsys))

    def check(line: str, *wanted: str) -> None:
        words = line.split(" ")
        command = f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _{words[0]}; printf '%s\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert set(wanted) <= set(done.stdout.split()), done.stdout + done.stderr
        assert all(word.startswith(words[-1]) for word in done.stdout.split())

    each(
        check,
        [
            ("pto ch", "check"), ("pto check --diag", "--diagnostics"), ("pto runtime r", "run"),
            ("pto isa tadd", "tadd", "tadds"), ("pto explain SA-035", "SA-0353"), ("ptoas --em", "--emit"),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts name everything that bash gets; a shell that is installed reads them."""
    text = script(shell, capsys)
    for verb, words in completion._words().items():
        assert verb in text
        assert all(w.removeprefix("--") in text for w in words), verb
    assert all(verb in text for verb in VERBS)
    if shutil.which(shell) is not None:
        path = tmp_path / "script"
        path.write_text(text)
        subprocess.run([shell, "-n", str(path)], stdin=subprocess.DEVNULL, timeout=120, check=True)
