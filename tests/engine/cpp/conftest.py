"""Libraries that several tests launch, built once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.diag import Source
from pto.engine.compiled.library import Library
from pto.engine.cpp import handwritten
from pto.isa.profiles import profile

HERE = Path(__file__).parent


def build(name: str, arch: str, folder: Path, checked: bool = False) -> Library:
    path = HERE / name
    source = Source(str(path), path.read_text(encoding="utf-8"))
    made, problems = handwritten.entries(source, None)
    assert not problems
    built = handwritten.library(source, made, profile(arch), checked, False, str(folder))
    assert built.ok, built.output
    return Library(built.path)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build("machine.cpp", "a3", tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="session", params=["a3", "a5"])
def mixed(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build("mixed.cpp", request.param, tmp_path_factory.mktemp("mixed"))
