from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .tools import tools


@pytest.fixture(scope="session")
def tool_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What stands first in PATH where pages and scripts call our tools."""
    with tools(tmp_path_factory.mktemp("tools")) as folder:
        yield folder
