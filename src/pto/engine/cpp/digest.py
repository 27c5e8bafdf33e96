"""A digest of our headers, which identifies libraries and cache entries. The package build runs this file."""

import hashlib
import os
import sys
from pathlib import Path


def files(include: Path) -> list[str]:
    """Return the headers of kernels, relative to the folder. Fast, as every process calls it."""
    found: list[str] = []
    for folder, _, names in os.walk(include / "pto"):
        within = os.path.relpath(folder, include)
        found += [f"{within}/{name}" for name in names if name.endswith((".hpp", ".h"))]
    return sorted(found)


def digest(include: Path, headers: list[str]) -> str:
    state = hashlib.sha256()
    for name in headers:
        state.update(f"{name}\0".encode() + (include / name).read_bytes() + b"\0")
    return state.hexdigest()


if __name__ == "__main__":
    _folder = Path(sys.argv[1])
    Path(sys.argv[2]).write_text(digest(_folder, files(_folder)), encoding="utf-8")
