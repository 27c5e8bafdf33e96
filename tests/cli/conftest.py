from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def tool(tool_folder: Path) -> Tool:
    """A tool as users run it: its own process."""

    def run(*arguments: str, data: bytes = b"", name: str = "ptoas") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([tool_folder / name, *arguments], input=data, capture_output=True, check=False)

    return run
