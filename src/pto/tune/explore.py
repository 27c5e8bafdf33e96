"""Time all choices of a space in parallel. Results are kept in a file, and a later search reuses them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing, suppress
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from ..signals import deferred
from .measure import TIMED, Outcome, TunedProgram, measure
from .source import check_named, fill, named, parameters
from .space import Space

#: Callback after every choice, with the number of choices that are done, the number of all choices, the
#: outcome, and the best outcome so far.
Progress = Callable[[int, int, Outcome, "Outcome | None"], object]


def search(
    program: TunedProgram,
    space: Space,
    results: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Return the outcomes of all choices, the fastest first, then those that could not be timed. With
    `results`, a file, outcomes of the same program are read from the file, and new outcomes are added to
    it."""
    _check(program, space)
    points = space.points
    known = _known(results, _digest(program)) if results else {}
    found = [known[_key(p)] for p in points if _key(p) in known]
    todo = [p for p in points if _key(p) not in known]
    best = min((o for o in found if o.status == TIMED), key=lambda o: o.us, default=None)
    done = len(found)
    with _OutcomeFile(results, _digest(program)) as kept, closing(_each(program, todo, jobs)) as outcomes:
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


def _check(program: TunedProgram, space: Space) -> None:
    """Check that the program uses every parameter, and that every used parameter has a value."""
    names = set(parameters(program.text, program.path))
    for argument in program.args:
        names |= named(argument)
    check_named(names, space.params, program.path)
    if not program.is_python and space.points:
        fill(program.text, space.points[0], program.path)


def _each(
    program: TunedProgram, points: list[dict[str, object]], jobs: int
) -> Generator[Outcome, None, None]:
    one = partial(measure, program)
    if jobs <= 1 or len(points) <= 1:
        yield from map(one, points)
        return
    pool = ProcessPoolExecutor(min(jobs, len(points)), get_context("fork"), _end_with_parent)
    others = set(active_children())
    try:
        with deferred():
            # Ctrl-C at a terminal sends SIGINT to every process in the group; only this process handles it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                futures: list[Future[Outcome]] = [pool.submit(one, p) for p in points]
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
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


# -- the file ----------------------------------------------------------------------------------------------


def _key(point: dict[str, object]) -> str:
    return json.dumps(point, sort_keys=True)


def _digest(program: TunedProgram) -> str:
    """Return a digest of everything that an outcome depends on."""
    parts = [program.text, *program.args, program.entry, program.target, program.blocks]
    if program.machine and os.path.exists(program.machine):
        with open(program.machine, encoding="utf-8") as file:
            parts.append(file.read())
    else:
        parts.append(program.machine)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


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
    texts, numbers = (found.status, found.busy, found.code, found.why), (found.us, found.share, found.guessed)
    if not all(isinstance(t, str) for t in texts) or not all(isinstance(n, int | float) for n in numbers):
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
            line = json.dumps({"program": self._digest, **outcome._asdict()})
            try:
                self._file.write(line.encode() + b"\n")
                self._file.flush()
            except OSError as e:
                raise self._unwritten(e) from None

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk has been reported
                self._file.close()
