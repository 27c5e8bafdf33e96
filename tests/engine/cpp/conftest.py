"""Libraries that several tests launch, built once; compiled kernels go to a folder of the test run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pto import knobs
from pto.diag import Source
from pto.engine.compiled.library import Library
from pto.engine.cpp import handwritten
from pto.isa.profiles import profile

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kernels")
    with knobs.override(PTO_CACHE_DIR=str(folder)):
        yield folder


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
