"""Bytecode of the tests, compiled by the workers together.

All workers collect the same files in the same order. After a checkout or a change, each worker would compile every
file: 25 CPU seconds, most of them for the asserts that pytest rewrites. Here each worker starts at another file, and
skips files that others have compiled.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path

ROOT = Path(__file__).parents[1]


class _CompiledError(Exception):
    """The loader has compiled a module and is about to run it."""


class _Uncalled:
    """A module that a loader can compile and cannot run."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.__spec__, self.__name__ = spec, spec.name

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise _CompiledError


def compile_share(files: Iterable[Path], worker: int, workers: int) -> None:
    """Compile the files that have no bytecode yet, from the share of this worker on."""
    if sys.dont_write_bytecode:
        return
    found = sorted(p for p in {path.resolve() for path in files} if p.is_relative_to(ROOT))
    first = len(found) * worker // workers
    for path in found[first:] + found[:first]:
        if not _is_fresh(path):
            _compile(path)


def _is_fresh(path: Path) -> bool:
    """Check whether bytecode is newer than its source; a wrong answer costs time alone."""
    usual = Path(importlib.util.cache_from_source(str(path)))
    rewritten = path.name.startswith("test_") or path.name == "conftest.py"
    made = usual.parent.glob(f"{usual.stem}-pytest-*.pyc") if rewritten else [usual]
    return any(p.exists() and p.stat().st_mtime >= path.stat().st_mtime for p in made)


def _compile(path: Path) -> None:
    spec = importlib.util.find_spec(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if spec is None or spec.loader is None:
        return
    try:
        spec.loader.exec_module(_Uncalled(spec))  # type: ignore[arg-type]
    except _CompiledError:
        return
    except SyntaxError:
        return  # collection reports it
