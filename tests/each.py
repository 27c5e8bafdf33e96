"""One check for many things, as one test: pytest takes longer to start a small test than the test itself does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def each(check: Callable[..., None], things: Iterable[Any]) -> None:
    """Check every thing (a tuple is several arguments); all that fail are shown, not only the first."""
    count, failed = 0, []
    for thing in things:
        count += 1
        try:
            check(*thing) if isinstance(thing, tuple) else check(thing)
        except Exception as error:
            named = (getattr(t, "name", t) for t in (thing if isinstance(thing, tuple) else (thing,)))
            failed.append(f"{', '.join(map(str, named)):.200}\n    {type(error).__name__}: {error!s:.2000}")
    assert count, "nothing to check"
    assert not failed, f"{len(failed)} of {count} fail:\n" + "\n".join(failed[:20])
