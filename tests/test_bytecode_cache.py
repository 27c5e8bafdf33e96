"""Workers compile the files of the tests together, each file once, and run none of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests import bytecode_cache


def test_files_are_compiled_once_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(bytecode_cache, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    files = [tmp_path / f"{name}.py" for name in ("test_of_share", "helper_of_share", "broken_of_share")]
    for path in files:
        path.write_text("assert print(" if "broken" in path.name else "assert False, 'is not run'\n")

    def times() -> dict[str, int]:
        bytecode_cache.compile_share([*files, Path("elsewhere.py")], 1, 3)
        return {p.name.split(".")[0]: p.stat().st_mtime_ns for p in tmp_path.glob("__pycache__/*.pyc")}

    first = times()
    assert first.keys() == {"test_of_share", "helper_of_share"}
    assert "test_of_share" in {p.name.split(".")[0] for p in tmp_path.glob("__pycache__/*-pytest-*.pyc")}
    assert times() == first
    bytecode = next(tmp_path.glob("__pycache__/helper*.pyc"))
    bytecode.write_bytes(b"")
    os.utime(files[1], (bytecode.stat().st_mtime + 10,) * 2)
    bytecode_cache.compile_share(files, 2, 3)
    assert bytecode.read_bytes()
