"""A launch of ranks as processes: each is forked from this one, or all were started by another launcher, and
launches its own rank. Those of one machine have windows and arrays in common.

They know of each other by a group (native/host/group.hpp): ranks that wait for what nobody will do are told
so, and one that dies ends the others.
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
from .library import DONE, FAILED, INTERRUPTED, STUCK, Alone, Outcome

#: How a launch is called: with what receives its text, and the rank that is alone.
Call = Callable[[Callable[[str], Any], Alone], Outcome]
#: Status of a message from a rank that has not ended: its text is output of the kernel.
_PRINTS = -1
#: Characters of such a text; longer output takes several messages.
_MOST_TEXT = wire.SHORT // 8


@cache
def _host() -> ctypes.CDLL:
    host = ctypes.CDLL(str(group.library()))
    host.pto_host_join.restype = ctypes.c_void_p
    host.pto_host_leave.argtypes = [ctypes.c_void_p]
    return host


def _alone(host: ctypes.CDLL, rank: int) -> Alone:
    return Alone(rank, ctypes.cast(host.pto_host_idle, ctypes.c_void_p).value or 0)


def launched(call: Call, ranks: int, write: Callable[[str], Any]) -> Outcome:
    """Launch every rank in a process of its own; what the first that failed came to, or that all are done."""
    host = _host()
    file = group.make(ranks)
    processes: dict[Connection, int] = {}  # by what each tells
    try:
        for rank in range(ranks):
            here, there = cast("tuple[Connection, Connection]", Pipe(duplex=False))
            process = os.fork()
            if process == 0:
                _rank(call, host, file, _alone(host, rank), there)
            there.close()
            processes[here] = process
        return _heard(processes, write)
    finally:
        for process in processes.values():
            _end(process)
        os.close(file)


def joined(call: Call, world: World, write: Callable[[str], Any]) -> Outcome:
    """Launch the rank that this process is; what the first that failed came to, or that all are done."""
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
        member.all(b"")  # the arrays of all are in their places
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
    told = member.all(packed(done))
    found = {rank: outcome(data, rank, member.ranks) for rank, data in enumerate(told)}
    if far is not None:  # all that was sent has come to where it belongs, and stays so until all have seen it
        far.refresh(world.number, world.used)
    return _worst(found)


def _rank(call: Call, host: ctypes.CDLL, file: int, alone: Alone, tell: Connection) -> None:
    """In a process of its own: never returns."""
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
        tell.send_bytes(packed(Outcome(_PRINTS, text[start : start + _MOST_TEXT])))


def packed(done: Outcome) -> bytes:
    """Encode an outcome for another process."""
    touched = done.touched.start, done.touched.stop
    return wire.pack("isiuui", done.status, done.text[:_MOST_TEXT], done.mark, *touched, done.rank)


def outcome(data: bytes, sender: int, ranks: int, running: bool = False) -> Outcome:
    """Decode the outcome that one of so many ranks sends, or what it prints while it is `running`."""
    status, text, mark, first, last, rank = wire.unpack("isiuui", data, f"rank {sender}")
    if status not in (DONE, FAILED, STUCK, INTERRUPTED) and not (running and status == _PRINTS):
        raise wire.refused(f"rank {sender}", f"unknown status {status}")
    if not 0 <= rank < ranks:
        raise wire.refused(f"rank {sender}", f"expected a rank from 0 to {ranks - 1}, got {rank}")
    return Outcome(status, text, mark, range(first, last), rank)


def _heard(processes: dict[Connection, int], write: Callable[[str], Any]) -> Outcome:
    """What ranks tell, until all have ended or one has failed."""
    ranks = {pipe: rank for rank, pipe in enumerate(processes)}
    left = set(processes)
    found: dict[int, Outcome] = {}
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
            told = outcome(data, ranks[pipe], len(ranks), running=True)
            if told.status == _PRINTS:
                write(told.text)
                continue
            found[ranks[pipe]] = told
            if told.status == FAILED:  # what the others wait for is not to come
                return told
    return _worst(found)


def _worst(found: dict[int, Outcome]) -> Outcome:
    """What a launch came to, from what its ranks came to: who fails leaves others stuck."""
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
    except (ChildProcessError, ProcessLookupError):  # it has been waited for
        pass
