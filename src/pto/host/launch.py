"""Run a program as ranks: start the processes together, watch them, and end them together.

The ranks share a group (native/host/group.hpp): an unnamed file whose descriptor each process gets. The
memory is freed when the last process has ended, even if a process was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

from ..engine.compiled import group
from ..isa.record import Record
from ..signals import deferred
from .meeting import Meeting, RankPlace, agreed, placed

#: Seconds for the other ranks to end by themselves after a rank has failed.
GRACE = 2.0
#: Seconds after which a stopped rank is reported while another rank waits.
STOPPED = 5.0


class RanksOutcome(Record):
    """End of the ranks: the status of each (negative: a signal), and reports about failures."""

    statuses: tuple[int, ...]
    reports: tuple[str, ...] = ()


class _Ranks:
    """Processes of a command: all ranks of a group, or the only rank that this process stands for."""

    def __init__(
        self, command: Sequence[str], ranks: int, environment: Mapping[str, str], place: RankPlace | None,
        traces: Sequence[int],
    ) -> None:  # fmt: skip
        self.ranks = ranks if place is None else 1
        self.file = group.make(ranks) if place is None else Meeting(place).share(lambda: group.make(ranks))
        self.processes: list[subprocess.Popen[str]] = []
        self.readers: list[threading.Thread] = []
        self._printing = threading.Lock()
        #: Error that prevents the output of the ranks from being printed.
        self.unwritten: OSError | None = None
        try:
            self._start(command, environment, place, traces)
        except BaseException:
            self.end()
            raise

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], place: RankPlace | None,
        traces: Sequence[int],
    ) -> None:  # fmt: skip
        for rank in range(self.ranks):
            number = rank if place is None else place.rank
            env = {
                **environment, "PTO_RANK": str(number), "PTO_RANKS_FILE": str(self.file),
                "MPI_LIB_PATH": str(group.library("libmpi_pto.so")),
            }  # fmt: skip
            files = [self.file, *traces[rank : rank + 1]]
            if traces:
                env["PTO_TRACE_FILE"] = str(traces[rank])
            with deferred():
                process = subprocess.Popen(
                    list(command), env=env, pass_fds=files, stdin=subprocess.DEVNULL, text=True,
                    errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
                self.processes.append(process)
            for pipe, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                assert pipe is not None
                reader = threading.Thread(target=self._copy, args=(rank, pipe, out), daemon=True)
                reader.start()
                self.readers.append(reader)

    def _copy(self, rank: int, pipe: IO[str], out: IO[str]) -> None:
        prefix = f"rank {rank}: " if self.ranks > 1 else ""
        with pipe:
            for line in pipe:
                try:
                    with self._printing:
                        out.write(prefix + line if line.endswith("\n") else f"{prefix}{line}\n")
                        out.flush()
                except OSError as e:
                    self.unwritten = e
                    return

    def said(self, rank: int) -> str:
        """Describe the state of a rank."""
        status = self.processes[rank].poll()
        if status is not None:
            return f"rank {rank} has ended" + (f" with status {status}" if status else "")
        what = group.waits_for(self.file, rank)
        return f"rank {rank} was at work" if what is None else f"rank {rank} waits for {what}"

    def end(self) -> None:
        """Kill all remaining ranks with their process groups."""
        for process in self.processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        for process in self.processes:
            process.wait()

    def close(self) -> None:
        for reader in self.readers:
            reader.join(5)
        os.close(self.file)


def run(
    command: Sequence[str], ranks: int | None, timeout: float | None = None,
    environment: Mapping[str, str] | None = None, traces: Sequence[int] = (),
) -> RanksOutcome:  # fmt: skip
    """Start `ranks` processes of a command (None: one) and wait for them. Another launcher starts this
    process once per rank; then only one process is started. `traces` has the file for the trace of each
    rank."""
    given = os.environ if environment is None else environment
    place = agreed(placed(given), ranks, "leave out -n, or start pto ranks -n N by itself")
    all = _Ranks(command, place.ranks if place is not None else ranks or 1, given, place, traces)
    try:
        reports = _watched(all, timeout)
    finally:
        all.end()
        all.close()
    if all.unwritten is not None:
        raise all.unwritten
    return RanksOutcome(tuple(p.returncode for p in all.processes), tuple(reports))


def _watched(all: _Ranks, timeout: float | None) -> list[str]:
    begin = time.monotonic()
    failed: float | None = None
    stopped: dict[int, float] = {}
    pause = 0.001
    while True:
        statuses = [p.poll() for p in all.processes]
        now = time.monotonic()
        if all.unwritten is not None:
            return []
        if None not in statuses:
            return _deaths(statuses)
        if failed is None and any(statuses):
            failed = now
        if failed is not None and now - failed > GRACE:
            left = [all.said(r) for r, s in enumerate(statuses) if s is None]
            return [*_deaths(statuses), f"{', '.join(left)}: ended, because another rank has failed"]
        if timeout is not None and now - begin > timeout:
            said = ", ".join(all.said(r) for r in range(all.ranks))
            return [f"not finished after {timeout:g} s: {said}"]
        for rank, process in enumerate(all.processes):
            if statuses[rank] is None and _is_stopped(process.pid):
                since = stopped.setdefault(rank, now)
                waits = [
                    r for r in range(all.ranks) if r != rank and group.waits_for(all.file, r) is not None
                ]
                if now - since > STOPPED and waits:
                    others = ", ".join(all.said(r) for r in waits)
                    return [
                        f"rank {rank} (process {process.pid}) has been stopped for {STOPPED:g} s; {others}"
                    ]
            else:
                stopped.pop(rank, None)
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _is_stopped(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in ("T", "t")
    except OSError:
        return False


def _deaths(statuses: Sequence[int | None]) -> list[str]:
    return [
        f"rank {rank} was killed by {_signal_name(-status)}"
        for rank, status in enumerate(statuses)
        if status is not None and status < 0
    ]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
