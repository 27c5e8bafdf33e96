"""The options of a launch, for all engines: `kernel.run(a, b, sanitize="all", blocks=24)`.

`registry` lists the engines with each option. The options here and there are the same (tests/engine).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TextIO, TypedDict

if TYPE_CHECKING:
    from .ranks import World
    from .watch import Watcher


class LaunchOptions(TypedDict, total=False):
    """Options of a launch; `ReferenceKernel.begin` and `CompiledKernel.run` describe them."""

    blocks: int
    out: TextIO | None
    progress: Callable[[int, int, int], None] | None
    threads: int
    subblocks: int | None
    sanitize: str | Sequence[str] | frozenset[str]
    schedule: int | None
    shadow: str | None
    memory_map: bool
    max_steps: int | None
    timeout: float | None
    semantics: str
    watchers: Sequence[Watcher]
    ranks: World | None
    processes: bool
    timeline: object
    dry: bool
    only: Collection[int] | None
