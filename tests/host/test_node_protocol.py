"""Messages between nodes (native/host/nodes.hpp) without a kernel: two processes with a line between them
access each other's windows as a core would, and check the result at the owner. Then one end of the line is
hostile.
"""

from __future__ import annotations

import ctypes
import os
import random
import socket
import struct
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.seeds import seeds

from pto.codegen.machine_facts import NUMBERS
from pto.diag import DiagnosticError
from pto.engine.compiled import group
from pto.engine.compiled.nodes import Far

STRIDE = 1 << 24
READ, WRITE, ADD, MAX, MIN = range(5)


class Hooks(ctypes.Structure):
    """`pto_far` of launch.h."""

    _fields_ = (
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("used", ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32)),
        ("settled", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


class Node:
    """A process: a rank that is alone on its node."""

    def __init__(self, rank: int, line: int) -> None:
        self.rank = rank
        self.far = Far(rank, [None, line] if rank == 0 else [line, None])
        file = os.memfd_create("windows", 0)
        os.ftruncate(file, 2 * STRIDE)
        self.world, self.memory = self.far.map(file, STRIDE)
        self._host = ctypes.CDLL(str(group.library()))
        self._host.pto_host_join.restype = ctypes.c_void_p
        place = self._host.pto_host_join(group.make(2), rank, 0)
        self._hooks = Hooks.from_address(self.far.begin(self.world, place))

    def window(self, rank: int, dtype: Any) -> Any:
        return np.frombuffer(self.memory, dtype)[rank * STRIDE // np.dtype(dtype).itemsize :]

    def touch(self, part: Any, use: int, dtype: str | None = None) -> bytes | None:
        """Announce an access to an array of a window."""
        at = part.ctypes.data
        combines = 0 if dtype is None else NUMBERS[dtype] + 1 << 8
        self._hooks.used(at, at + part.nbytes, use | combines)
        return self._hooks.settled()

    def settle(self) -> None:
        assert self._hooks.settled() is None

    def settled(self) -> bytes | None:
        """Return the error of the line, if any."""
        return self._hooks.settled()

    def until(self, holds: Callable[[], Any]) -> None:
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end, "it never came"


def both(
    first: Callable[[Node], None], second: Callable[[Node], None], after: Callable[[Node], None] | None = None
) -> None:
    """Run two ranks, each in a process of its own; `after` checks their results."""
    lines, ready = socket.socketpair(), socket.socketpair()
    processes = []
    for rank, does in enumerate((first, second)):
        process = os.fork()
        if process == 0:
            status = 1
            try:
                lines[1 - rank].close()
                node = Node(rank, lines[rank].detach())
                ready[rank].sendall(b"r")  # messages need a receiver with windows
                ready[rank].recv(1)
                does(node)
                node.far.end(True)
                node.far.check()
                if after is not None:
                    after(node)
                ready[rank].sendall(b"e")
                ready[rank].recv(1)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        processes.append(process)
    for line in (*lines, *ready):
        line.close()
    assert [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes] == [0, 0]


ROUNDS = 1000


def test_a_signal_comes_behind_its_data() -> None:
    """Rows of all lengths, each followed by a word with its number."""

    def sends(node: Node) -> None:
        there, signal = node.window(1, np.uint8)[4096:], node.window(1, np.int32)
        heard = node.window(0, np.int32)
        for n in range(1, ROUNDS):
            part = there[: n * 7]
            assert node.touch(part, WRITE) is None
            part[:] = n % 251
            assert node.touch(signal[:1], WRITE) is None
            signal[0] = n
            node.settle()
            if n % 10 == 0:  # the other has read it
                node.until(lambda n=n: heard[0] >= n)

    def gets(node: Node) -> None:
        own, signal = node.window(1, np.uint8)[4096:], node.window(1, np.int32)
        told = node.window(0, np.int32)
        for n in range(10, ROUNDS, 10):
            node.until(lambda n=n: signal[0] >= n)
            assert signal[0] == n and (own[: n * 7] == n % 251).all(), n
            assert node.touch(told[:1], ADD, "i32") is None
            assert told[0] == 0
            told[0] += 10
            node.settle()

    both(sends, gets)


def test_both_send_more_than_fits() -> None:
    """Neither waits for the other to receive; and reads see earlier writes."""

    def does(node: Node) -> None:
        there = node.window(1 - node.rank, np.uint8)[64 : STRIDE // 2]
        for n in range(1, 5):
            assert node.touch(there, WRITE) is None
            there[:] = n + node.rank
            assert node.touch(there[1:-5], READ) is None
            assert (there == n + node.rank).all()

    both(does, does)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("f32", "f4"), ("f16", "f2"), ("i32", "i4"), ("i8", "i1"), ("u16", "u2"), ("i64", "i8")],
)
def test_the_owner_combines(dtype: str, kind: str) -> None:
    """Sums wrap and are rounded as his own are; a negative zero stays one."""
    values = np.array([1, 2, 100, 7, -0.0, 3], kind)
    start = np.array([1, 100, 60, 5, -0.0, 1], kind)

    def sends(node: Node) -> None:
        there = node.window(1, kind)[:18]
        ready = node.window(0, np.int32)
        node.until(lambda: ready[0] == 1)
        combine = {ADD: np.add, MAX: np.maximum, MIN: np.minimum}
        for use, part in ((ADD, there[:6]), (MAX, there[6:12]), (MIN, there[12:])):
            for factor in (1, 2):
                assert node.touch(part, use, dtype) is None
                combine[use](part, values * np.array(factor, kind), out=part)

    def gets(node: Node) -> None:
        own = node.window(1, kind)
        own[:18] = np.tile(start, 3)
        assert node.touch(node.window(0, np.int32)[:1], WRITE) is None
        node.window(0, np.int32)[0] = 1
        node.settle()

    def after(node: Node) -> None:
        if node.rank == 0:
            return
        own, once, twice = node.window(1, kind), values, values * np.array(2, kind)
        want = start + once
        want = want + twice
        assert own[:6].tobytes() == want.tobytes()
        assert (own[6:12] == np.maximum(np.maximum(start, once), twice)).all()
        assert (own[12:18] == np.minimum(np.minimum(start, once), twice)).all()

    both(sends, gets, after)


def test_elements_that_nobody_combines_are_refused() -> None:
    def sends(node: Node) -> None:
        said = node.touch(node.window(1, np.uint8)[:4], ADD, "hif8")
        assert said is not None and said.startswith(b"[PTO-E2102]")

    both(sends, lambda node: None)


def test_one_that_dies_is_told() -> None:
    def waits(node: Node) -> None:
        there = node.window(1, np.int32)[:1]
        node.until(lambda: node.touch(there, READ) is not None)
        said = node.touch(there, READ)
        assert said == b"[PTO-E2422] rank 1 has left before the others"
        with pytest.raises(DiagnosticError, match="rank 1 has left before the others"):
            node.far.check()
        os._exit(0)

    both(waits, lambda node: os._exit(0))


# --- hostile messages -----------------------------------------------------------------------------------------

HEAD = struct.Struct("<IIiIQQ")  # kind, use, world, wave, at, bytes
PUT, COMBINE, GET, REPLY, MEET, PROBE, MARK, OVER, LOST = range(9)
ADD_F32 = ADD | NUMBERS["f32"] + 1 << 8
DOES_NOT_FIT = b"[PTO-E2423] rank 1 has sent a message that does not fit"


def head(kind: int, at: int = 0, size: int = 0, *, use: int = 0, world: int = 1, wave: int = 0) -> bytes:
    return HEAD.pack(kind, use, world, wave, at, size)


def attacked(hostile: Callable[[socket.socket], object], does: Callable[[Node], None]) -> None:
    """Run rank 0 in a process of its own, whose line to rank 1 a hostile end has."""
    (here, there), (ready, begun) = socket.socketpair(), os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            here.close()
            node = Node(0, there.detach())
            os.write(begun, b"b")  # there are windows, and a launch
            does(node)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    there.close()
    os.close(begun)
    with here, os.fdopen(ready, "rb") as pipe:
        try:
            assert pipe.read(1)
            hostile(here)
        except OSError:  # the line is broken already
            pass
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def refuses(node: Node) -> None:
    """The launch ends with a diagnostic, and nothing was stored in any window."""
    node.until(node.settled)
    with pytest.raises(DiagnosticError) as found:
        node.far.check()
    problem = found.value.diagnostics[0]
    assert f"[{problem.code}] {problem.message}".encode() == DOES_NOT_FIT
    assert not np.frombuffer(node.memory, np.uint8).any()


def test_messages_that_do_not_fit_end_the_launch() -> None:
    """Kinds, sizes, places, numbers of worlds and ranks, each beyond what there is."""
    everything = bytes([0xFF]) * 8192
    each(
        lambda data: attacked(lambda line: line.sendall(data + everything), refuses),
        [
            head(PUT, 0, 4096, world=0),
            head(PUT, 0, 4096, world=2),
            head(PUT, 0, 4096, world=-1),
            head(PUT, STRIDE, 4096),  # in its own window, as rank 0 has it
            head(PUT, STRIDE - 1, 4096),
            head(PUT, 0, STRIDE + 1),
            head(PUT, 0, 2**64 - 1),
            head(PUT, 2**64 - 4096, 8192),  # whose sum is 4096
            head(PUT, STRIDE, 8),
            head(PUT, 2**64 - 8, 8),
            head(COMBINE, STRIDE, 64, use=ADD_F32),
            head(COMBINE, 2**64 - 64, 128, use=ADD_F32),
            head(COMBINE, 2, 64, use=ADD_F32),
            head(COMBINE, 0, 63, use=ADD_F32),
            head(COMBINE, 0, 64 << 10, use=ADD_F32),
            head(COMBINE, 0, 64, use=WRITE | ADD_F32 & ~0xFF),
            head(COMBINE, 0, 64, use=9 | ADD_F32 & ~0xFF),
            head(COMBINE, 0, 64, use=ADD | 0xFF00),
            head(COMBINE, 0, 64, use=ADD),
            head(COMBINE, 0, 64, use=ADD_F32 | 1 << 16),
            head(GET, STRIDE, 64),
            head(GET, 2**64 - 64, 128),
            head(GET, 0, 2 << 20),
            head(GET, 0, 2**63),
            head(REPLY, 0, 64),  # a reply without a request
            head(REPLY, STRIDE, 64),
            head(MEET, 0, 8),
            head(MEET) + head(MEET),
            head(PROBE),  # only rank 0 asks, and says that all are stuck
            head(OVER),
            head(MARK, 0, 32),
            head(MARK, 0, 32, wave=1_000_000),
            head(MARK, 0, 31, wave=1),
            head(LOST, 2),
            head(LOST, 64),
            head(LOST, 2**31),
            head(LOST, 2**64 - 1),
            head(LOST, 1, 8),
            head(LOST, 1, use=2),
            head(9),
            head(2**32 - 1, 0, 2**64 - 1),
            b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
        ],
    )


def test_a_reply_has_what_was_asked_for() -> None:
    def answers(change: Callable[..., bytes]) -> Callable[[socket.socket], None]:
        def hostile(line: socket.socket) -> None:
            kind = PROBE
            while kind == PROBE:  # rank 0 asks for the state of the other
                data = line.recv(HEAD.size, socket.MSG_WAITALL)
                kind, use, world, wave, at, size = HEAD.unpack(data)
            assert (at, size) == (STRIDE + 64, 100)
            line.sendall(change(use, world, wave, at, size))

        return hostile

    def asks(node: Node) -> None:
        assert node.touch(node.window(1, np.uint8)[64:164], READ) == DOES_NOT_FIT
        refuses(node)

    each(
        lambda change: attacked(answers(change), asks),
        [
            lambda use, world, wave, at, size: HEAD.pack(REPLY, use, world, wave, 0, size) + b"x" * size,
            lambda use, world, wave, at, size: HEAD.pack(REPLY, use, world, wave, at + 1, size) + b"x" * size,
            lambda use, world, wave, at, size: HEAD.pack(REPLY, use, world, wave, at, size + 1) + b"x" * 200,
            lambda use, world, wave, at, size: HEAD.pack(REPLY, use, world, wave, at, size - 1) + b"x" * size,
            lambda use, world, wave, at, size: HEAD.pack(REPLY, use, world + 1, wave, at, size) + b"x" * size,
        ],
    )


def test_who_asks_and_takes_no_answers_is_refused() -> None:
    """The queue of unread answers does not grow without end."""
    attacked(lambda line: line.sendall(head(GET, 0, 1 << 20) * 100_000), refuses)


def test_the_rest_of_a_message_to_windows_that_are_gone() -> None:
    def loses(node: Node) -> None:
        node.until(lambda: node.window(0, np.uint8)[0] == 7)
        host = ctypes.CDLL(str(group.library()))
        host.pto_nodes_unmap.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        host.pto_nodes_unmap(node.far._nodes, node.world)
        with pytest.raises(DiagnosticError, match="a message that does not fit"):
            node.far.check()
        os._exit(0)  # the memory is gone

    attacked(lambda line: line.sendall(head(PUT, 0, 1 << 20) + b"\7" * 1000), loses)


@pytest.mark.seeded
def test_random_messages() -> None:
    """Heads that are nearly right: rank 0 stays alive."""
    edges = (
        0,
        1,
        4,
        8,
        63,
        64,
        4096,
        STRIDE - 8,
        STRIDE - 1,
        STRIDE,
        2 * STRIDE,
        2**31,
        2**63,
        2**64 - 8,
        2**64 - 1,
    )

    def survives(seed: int) -> None:
        rng = random.Random(seed)

        def message() -> bytes:
            at, size = (rng.choice([*edges, rng.randrange(2 * STRIDE)]) for _ in range(2))
            use = rng.choice([0, WRITE, ADD_F32, rng.randrange(1 << 20)])
            kind = rng.choice([PUT, PUT, COMBINE, GET, rng.randrange(12)])
            world = rng.choice([1, 1, 1, rng.randrange(-2, 3)])
            data = rng.randbytes(min(size, rng.choice([0, 8, 64, 4096])))
            return head(kind, at, size, use=use, world=world, wave=rng.randrange(3)) + data

        def hostile(line: socket.socket) -> None:
            line.setblocking(False)  # what does not fit into the line is not sent
            try:
                line.sendall(b"".join(message() for _ in range(rng.randrange(1, 40))))
            finally:
                line.shutdown(socket.SHUT_WR)

        attacked(hostile, lambda node: node.until(node.settled))  # the line ends, if nothing else does

    each(survives, seeds(range(40)))
