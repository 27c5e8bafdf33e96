"""The pages of the site that a script makes, once for all tests."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests import made

DOCS = made.ROOT / "docs"


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))  # it has neighbours
    return importlib.import_module("generate")


@pytest.fixture(scope="session")
def generated(generate: ModuleType) -> dict[str, str]:
    read = [
        p
        for folder in (DOCS, made.ROOT / "src/pto", made.ROOT / "examples")
        for p in folder.rglob("*")
        if p.is_file()
    ]
    read = [p for p in read if "__pycache__" not in p.parts]

    def make(part: Path) -> None:
        part.write_text(json.dumps(generate.pages()))

    return json.loads(made.made_once("pages", made._of_files(read), "pages.json", make).read_text())
