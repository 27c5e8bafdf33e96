"""A digest of our headers: libraries and caches are known by it. The build of the package runs this file."""

import hashlib
import sys
from pathlib import Path


def files(include: Path) -> list[Path]:
    """Headers that kernels are compiled with."""
    return sorted(p for p in (include / "pto").rglob("*") if p.suffix in (".hpp", ".h") and p.is_file())


def digest(include: Path, headers: list[Path]) -> str:
    state = hashlib.sha256()
    for path in headers:
        state.update(f"{path.relative_to(include).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()


if __name__ == "__main__":
    _folder = Path(sys.argv[1])
    Path(sys.argv[2]).write_text(digest(_folder, files(_folder)), encoding="utf-8")
