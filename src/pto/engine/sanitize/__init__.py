"""Sanitizers: what is wrong with a program although it runs. `race`, `undef`, `oob` and `sync` by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...isa.profiles import Profile

if TYPE_CHECKING:
    from .observer import Observer

NAMES = ("race", "undef", "oob", "sync")


def parse_names(text: str | Sequence[str]) -> frozenset[str]:
    """Names of sanitizers, from a comma-separated list; `all` stands for every one."""
    if not isinstance(text, str | Sequence | frozenset):
        raise ValueError(f"sanitize takes names, got {text!r}: expected {', '.join(NAMES)} or all")
    words = [w.strip() for w in text.split(",")] if isinstance(text, str) else list(text)
    found: set[str] = set()
    for word in words:
        if word == "all":
            found.update(NAMES)
        elif word in NAMES:
            found.add(word)
        elif word:
            raise ValueError(f"unknown sanitizer {word!r}: expected {', '.join(NAMES)} or all")
    return frozenset(found)


def observe(
    profile: Profile,
    names: frozenset[str],
    shadow: str | None,
    memory_map: bool,
    result: Any,
) -> Observer | None:
    """What watches a launch; None where nothing does."""
    if not names and shadow is None and not memory_map:
        return None
    from .observer import Observer

    beside = None
    if shadow is not None:
        if shadow != "f64":
            raise ValueError(f"unknown shadow {shadow!r}: expected f64")
        from .shadow import Shadow

        beside = Shadow()
    picture = None
    if memory_map:
        from .memory_map import RecordedMap

        picture = RecordedMap(profile)
    return Observer(profile, names, beside, picture, result)
