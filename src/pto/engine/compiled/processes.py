"""A launch of ranks as processes, which are forked from this one, or were started by another launcher. Each
process launches its rank. Processes of one machine share windows and arrays.

A group (native/host/group.hpp) connects the processes: it detects a deadlock of all ranks, and a rank that
dies ends the others.
"""

from __future__ import annotations

import ctypes
import os
import signal
import traceback
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, cast

from ... import wire
from ...diag import Diagnostic, DiagnosticError
from ..ranks import World
from . import group
from .library import DONE, FAILED, INTERRUPTED, STUCK, LaunchOutcome, SeparateRank

#: A function that runs a launch; its arguments are the receiver of output, and the rank of this process.
Call = Callable[[Callable[[str], Any], SeparateRank], LaunchOutcome]
#: The status of a message with output of the kernel, from a rank that has not ended.
_PRINTS = -1
#: The largest number of characters in such a message; longer output takes several messages.
_MOST_TEXT = wire.SHORT // 8


@cache
def _host() -> ctypes.CDLL:
    host = ctypes.CDLL(str(group.library()))
    host.pto_host_join.restype = ctypes.c_void_p
    host.pto_host_leave.argtypes = [ctypes.c_void_p]
    return host


def _alone(host: ctypes.CDLL, rank: int) -> SeparateRank:
    return SeparateRank(rank, ctypes.cast(host.pto_host_idle, ctypes.c_void_p).value or 0)


def launched(call: Call, ranks: int, write: Callable[[str], object]) -> LaunchOutcome:
    """Launch every rank in a separate process; return the outcome of the first that failed, else DONE."""
    host = _host()
    file = group.make(ranks)
    processes: dict[Connection, int] = {}  # by the connection that each sends on
    try:
        for rank in range(ranks):
            here, there = cast("tuple[Connection, Connection]", Pipe(duplex=False))
            process = os.fork()
            if process == 0:
                _rank(call, host, file, _alone(host, rank), there)
            there.close()
            processes[here] = process
        return _received(processes, write)
    finally:
        for process in processes.values():
            _end(process)
        os.close(file)


def joined(call: Call, world: World, write: Callable[[str], object]) -> LaunchOutcome:
    """Launch the rank of this process; return the outcome of the first rank that failed, else DONE."""
    host, member = _host(), world.member
    assert member is not None
    far = member.far
    file = member.share(lambda: group.make(member.ranks))
    place = host.pto_host_join(file, member.rank, 0)
    if place is None:
        os.close(file)
        raise DiagnosticError([Diagnostic("PTO-E2420", f"rank {member.rank} cannot join the others")])
    try:
        alone = _alone(host, member.rank)
        if far is not None:
            alone = alone._replace(far=far.begin(world.number, place))
        member.all(b"")  # wait until the arrays of all ranks are in shared memory
        done = call(write, alone)
        if far is not None:
            far.end(done.status == DONE)
            far.check()
    except BaseException:
        if far is not None:
            far.close()
        raise
    finally:
        host.pto_host_leave(place)
    received = member.all(packed(done))
    found = {rank: outcome(data, rank, member.ranks) for rank, data in enumerate(received)}
    if far is not None:  # all messages have arrived, and windows do not change until all ranks have read them
        far.refresh(world.number, world.used)
    return _worst(found)


def _rank(call: Call, host: ctypes.CDLL, file: int, alone: SeparateRank, tell: Connection) -> None:
    """Run a rank in its process; never return."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        place = host.pto_host_join(file, alone.rank, 1)
        if place is not None:
            done = call(lambda text: _print(tell, text), alone)
            tell.send_bytes(packed(done))
            host.pto_host_leave(place)
            status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _print(tell: Connection, text: str) -> None:
    for start in range(0, len(text), _MOST_TEXT):
        tell.send_bytes(packed(LaunchOutcome(_PRINTS, text[start : start + _MOST_TEXT])))


def packed(done: LaunchOutcome) -> bytes:
    """Encode an outcome for another process."""
    touched = done.touched.start, done.touched.stop
    return wire.pack("isiuui", done.status, done.text[:_MOST_TEXT], done.mark, *touched, done.rank)


def outcome(data: bytes, sender: int, ranks: int, running: bool = False) -> LaunchOutcome:
    """Decode the outcome that one of `ranks` ranks sends; while the rank is `running`, its output."""
    status, text, mark, first, last, rank = wire.unpack("isiuui", data, f"rank {sender}")
    if status not in (DONE, FAILED, STUCK, INTERRUPTED) and not (running and status == _PRINTS):
        raise wire.refused(f"rank {sender}", f"unknown status {status}")
    if not 0 <= rank < ranks:
        raise wire.refused(f"rank {sender}", f"expected a rank from 0 to {ranks - 1}, got {rank}")
    return LaunchOutcome(status, text, mark, range(first, last), rank)


def _received(processes: dict[Connection, int], write: Callable[[str], object]) -> LaunchOutcome:
    """Receive outcomes until all ranks have ended or one has failed; return that of the launch."""
    ranks = {pipe: rank for rank, pipe in enumerate(processes)}
    left = set(processes)
    found: dict[int, LaunchOutcome] = {}
    while left:
        for pipe in wait(list(left)):
            assert isinstance(pipe, Connection)
            try:
                data = pipe.recv_bytes(wire.SHORT)
            except EOFError:
                left.discard(pipe)
                if ranks[pipe] not in found:
                    raise _died(ranks[pipe], processes[pipe]) from None
                continue
            done = outcome(data, ranks[pipe], len(ranks), running=True)
            if done.status == _PRINTS:
                write(done.text)
                continue
            found[ranks[pipe]] = done
            if done.status == FAILED:  # others may wait for it
                return done
    return _worst(found)


def _worst(found: dict[int, LaunchOutcome]) -> LaunchOutcome:
    """Return the outcome of a launch from those of its ranks. A failed rank comes first: it may leave others
    stuck."""
    failed = [found[r] for r in sorted(found) if found[r].status == FAILED]
    if failed:
        return failed[0]
    stuck = [found[r] for r in sorted(found) if found[r].status == STUCK]
    if stuck:
        return stuck[0]._replace(text="".join(s.text for s in stuck))
    return next((o for o in found.values() if o.status != DONE), found[0])


def _died(rank: int, process: int) -> DiagnosticError:
    _, status = os.waitpid(process, 0)
    how = os.waitstatus_to_exitcode(status)
    what = f"was killed by {signal.Signals(-how).name}" if how < 0 else f"ended with status {how}"
    return DiagnosticError([Diagnostic("PTO-E2422", f"rank {rank} {what}")])


def _end(process: int) -> None:
    try:
        if os.waitpid(process, os.WNOHANG)[0] == 0:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    except (ChildProcessError, ProcessLookupError):  # the process was reaped before
        pass
