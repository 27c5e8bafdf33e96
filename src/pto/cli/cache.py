"""`pto cache`: show the cache of compiled code, and empty it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from .. import cache
from .common import OK, CommandParser

_EXAMPLES = """\
  pto cache                    show its folder and its size
  pto cache --json             the same for scripts
  pto cache clear              remove everything; code is compiled again when needed
  pto cache prune --max 500M   keep the 500 MiB that were used last
  PTO_CACHE_LIMIT=8G PTO_CACHE_DIR=/data/pto pto run k.pto --engine cpp -- @a.npy f32:16x64

Libraries that a process has loaded stay loaded when they are removed.
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser("pto cache", "Show, prune or clear the cache of compiled code.", _EXAMPLES)
    p.add_argument(
        "action",
        nargs="?",
        choices=("show", "clear", "prune"),
        default="show",
        help="show (default): print folder and size; clear: remove everything; prune: remove the least "
        "recently used entries",
    )
    p.add_argument(
        "--max",
        type=_size,
        metavar="SIZE",
        help="with prune: the size to keep, such as 500M or 2G (default: the limit, PTO_CACHE_LIMIT)",
    )
    p.add_argument("--json", action="store_true", help="print JSON")
    options = p.parse_args(arguments)
    if options.max is not None and options.action != "prune":
        p.error("--max is an option of prune")
    folder = cache.folder()
    gone: list[cache.CacheEntry] = []
    if options.action != "show":
        most = 0 if options.action == "clear" else cache.limit() if options.max is None else options.max
        gone = cache.prune(most)
    left = cache.entries(folder)
    if options.json:
        print(json.dumps(_facts(str(folder), left, gone if options.action != "show" else None), indent=2))
    elif options.action == "show":
        print("\n".join(_lines(str(folder), left)))
    else:
        print(f"{_count(gone)} removed, {_total(gone)}; {_count(left)} left, {_total(left)}")
    return OK


def _shared() -> str:
    """Return the folder of the shared cache; empty if there is none, or if other users can write to it."""
    found = cache.shared()
    return str(found[0]) if found else ""


def _facts(
    folder: str, left: Sequence[cache.CacheEntry], gone: Sequence[cache.CacheEntry] | None
) -> dict[str, object]:
    facts: dict[str, object] = {
        "path": folder,
        "entries": len(left),
        "bytes": sum(e.size for e in left),
        "limit": cache.limit(),
        "kinds": {k: {"entries": n, "bytes": size} for k, (n, size) in _kinds(left).items()},
    }
    if shared := _shared():
        facts["shared"] = shared
    if gone is not None:
        facts["removed"] = {"entries": len(gone), "bytes": sum(e.size for e in gone)}
    return facts


def _lines(folder: str, left: Sequence[cache.CacheEntry]) -> list[str]:
    lines = [
        f"path     {folder}",
        f"entries  {len(left)}",
        f"size     {_total(left)}",
        f"limit    {shown(cache.limit())} (PTO_CACHE_LIMIT)",
    ]
    if shared := _shared():
        lines.insert(1, f"shared   {shared} (PTO_CACHE_SHARED)")
    kinds = _kinds(left)
    if kinds:
        lines.append("")
        column = max(map(len, kinds)) + 2
        lines += [f"  {kind:<{column}}{n:>6}  {shown(size):>10}" for kind, (n, size) in kinds.items()]
    return lines


def _kinds(found: Sequence[cache.CacheEntry]) -> dict[str, tuple[int, int]]:
    """Return the number of entries and bytes of each kind."""
    kinds: dict[str, tuple[int, int]] = {}
    for e in sorted(found, key=lambda e: e.kind):
        n, size = kinds.get(e.kind, (0, 0))
        kinds[e.kind] = n + 1, size + e.size
    return kinds


def _count(found: Sequence[cache.CacheEntry]) -> str:
    return f"{len(found)} entr{'y' if len(found) == 1 else 'ies'}"


def _total(found: Sequence[cache.CacheEntry]) -> str:
    return shown(sum(e.size for e in found))


def shown(size: int) -> str:
    """Return a number of bytes as text with a unit."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def _size(text: str) -> int:
    found = cache.size_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected a size such as 500M or 2G")
    return found
