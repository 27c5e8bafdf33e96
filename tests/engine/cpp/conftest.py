"""Libraries that several tests launch, built once for all workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.diag import Source
from pto.engine.compiled.library import Library
from pto.engine.cpp import handwritten
from pto.isa.profiles import profile

HERE = Path(__file__).parent


def build(name: str, arch: str, checked: bool = False) -> Library:
    path = HERE / name
    source = Source(str(path), path.read_text(encoding="utf-8"))
    made, problems = handwritten.entries(source, None)
    assert not problems
    built = handwritten.cached(source, made, profile(arch), checked)
    assert built.ok, built.output
    return Library(built.path)


@pytest.fixture(scope="session")
def machine() -> Library:
    return build("machine.cpp", "a3")


@pytest.fixture(scope="session", params=["a3", "a5"])
def mixed(request: Any) -> Library:
    return build("mixed.cpp", request.param)
