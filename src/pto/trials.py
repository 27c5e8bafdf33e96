"""Trials of choices of parameters, for `pto tune` and `@pl.autotune`. Choices are timed one by one or in
parallel. Results are kept in a file, and a later search reuses them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple

from .diag import Diagnostic, DiagnosticError
from .signals import deferred

#: Values of parameters, by name.
Point = dict[str, Any]

#: Status of a choice: timed, forbidden by a rule, with tiles that do not fit, or ended by an error.
TIMED, ILLEGAL, TOO_LARGE, FAILED = "timed", "illegal", "too large", "failed"


class Outcome(NamedTuple):
    """Result of one choice. `busy` is the pipe with the most work, and `share` is the share of the time that
    it works; `guessed` is True if a cost has no evidence."""

    params: Point
    status: str
    us: float = 0.0
    busy: str = ""
    share: float = 0.0
    guessed: bool = False
    code: str = ""
    why: str = ""


#: Callback after every choice, with the number of choices that are done, the number of all choices, the
#: outcome, and the best outcome so far.
Progress = Callable[[int, int, Outcome, "Outcome | None"], object]


def untimed(point: Point, error: DiagnosticError) -> Outcome:
    """Return the outcome of a choice that an error ends."""
    found = next((d for d in error.diagnostics if d.severity == "error"), error.diagnostics[0])
    return Outcome(point, _status(found), code=found.code, why=found.message)


def _status(problem: Diagnostic) -> str:
    family = problem.code[:7]
    # tiles beyond the end of a buffer, or larger than a buffer
    if family == "PTO-E07" or problem.code == "SA-0352":
        return TOO_LARGE
    return FAILED if family in ("PTO-E20", "PTO-E21", "PTO-E22", "PTO-E24", "PTO-E26") else ILLEGAL


def times(
    one: Callable[[Point], Outcome],
    points: Sequence[Point],
    digest: str,
    results: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Return the outcomes of all choices, the fastest first, then those that could not be timed; `one` times
    a choice. With `results`, a file, outcomes with the same digest are read from the file, and new outcomes
    are added to it. The file only has times of choices; the values of parameters come from `points`."""
    known = _known(results, digest) if results else {}
    found = [known[_key(p)]._replace(params=p) for p in points if _key(p) in known]
    todo = [p for p in points if _key(p) not in known]
    best = min((o for o in found if o.status == TIMED), key=lambda o: o.us, default=None)
    done = len(found)
    with _OutcomeFile(results, digest) as kept, closing(_each(one, todo, jobs)) as outcomes:
        for outcome in outcomes:
            kept.add(outcome)
            found.append(outcome)
            done += 1
            if outcome.status == TIMED and (best is None or outcome.us < best.us):
                best = outcome
            if progress is not None:
                progress(done, len(points), outcome, best)
    place = {_key(p): n for n, p in enumerate(points)}
    return sorted(found, key=lambda o: (o.status != TIMED, o.us, place[_key(o.params)]))


def _each(
    one: Callable[[Point], Outcome], points: Sequence[Point], jobs: int
) -> Generator[Outcome, None, None]:
    if jobs <= 1 or len(points) <= 1:
        yield from map(one, points)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed  # slow to import
    from multiprocessing import active_children, get_context

    pool = ProcessPoolExecutor(min(jobs, len(points)), get_context("fork"), _end_with_parent)
    others = set(active_children())
    try:
        with deferred():
            # Ctrl-C at a terminal sends SIGINT to every process in the group; only this process handles it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                futures = [pool.submit(one, p) for p in points]
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        for worker in set(active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this worker process when its parent process ends, for whatever reason."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


# -- the file ----------------------------------------------------------------------------------------------


def _key(point: Mapping[str, object]) -> str:
    return json.dumps(point, sort_keys=True, default=repr)


def digest_of(parts: Sequence[object]) -> str:
    """Return a digest of everything that an outcome depends on."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()[:16]


def _known(path: str, digest: str) -> dict[str, Outcome]:
    """Read the outcomes of the same program from a file. An unfinished last line is ignored."""
    out: dict[str, Outcome] = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return out
    except (OSError, UnicodeDecodeError) as e:
        raise DiagnosticError([Diagnostic("PTO-E0001", f"cannot read '{path}': {e}")]) from None
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            if data.pop("program") == digest:
                out[_key(data["params"])] = _outcome(data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if number < len(lines):
                message = f"{path}:{number}: expected a result of a search"
                raise DiagnosticError(
                    [Diagnostic("PTO-E2901", message, help="name another file with --results")]
                ) from None
    return out


def _outcome(data: dict[str, Any]) -> Outcome:
    """Return the outcome of a line in the file; raise `TypeError` or `ValueError` for an invalid field."""
    found = Outcome(**data)
    texts, numbers = (found.status, found.busy, found.code, found.why), (found.us, found.share)
    if not all(isinstance(t, str) for t in texts) or not all(type(n) in (int, float) for n in numbers):
        raise TypeError("invalid outcome")
    if not all(0 <= n < 1e18 for n in numbers):
        raise ValueError("invalid outcome")
    return found


class _OutcomeFile:
    """File that receives outcomes as they arrive; without a path, outcomes are not written."""

    def __init__(self, path: str | None, digest: str) -> None:
        self._path, self._digest = path, digest
        self._file = None

    def __enter__(self) -> _OutcomeFile:
        if self._path is not None:
            try:
                self._file = open(self._path, "a+b")
                self._end_line()
            except OSError as e:
                raise self._unwritten(e) from None
        return self

    def _unwritten(self, e: OSError) -> DiagnosticError:
        why = (e.strerror or str(e)).lower()
        return DiagnosticError([Diagnostic("PTO-E0002", f"cannot write '{self._path}': {why}")])

    def _end_line(self) -> None:
        """Remove an unfinished last line of an interrupted search."""
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)

    def add(self, outcome: Outcome) -> None:
        if self._file is not None:
            line = json.dumps({"program": self._digest, **outcome._asdict()}, default=repr)
            try:
                self._file.write(line.encode() + b"\n")
                self._file.flush()
            except OSError as e:
                raise self._unwritten(e) from None

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk has been reported
                self._file.close()
