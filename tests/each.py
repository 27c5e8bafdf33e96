"""One check for many things, as one test: pytest takes longer to start a small test than the test itself does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


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


def together(names: str | tuple[str, ...], things: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, but all as one test; several of them make all combinations. A fixture is made once
    for all of them."""
    named = (names,) if isinstance(names, str) else names
    values = [(thing,) if isinstance(names, str) else tuple(thing) for thing in things]

    def around(check: Test) -> Test:
        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            each(lambda *thing: check(**dict(zip(named, thing, strict=True)), **fixtures), values)

        signature = inspect.signature(check)
        rest = [p for name, p in signature.parameters.items() if name not in named]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return around
