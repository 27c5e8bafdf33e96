"""Processes that do not belong to a launch of ranks: they can neither join it nor read, stop or delay it."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.each import each
from tests.users import OTHER_USER, acting, as_other_user, needs_second_user

from pto import knobs
from pto.diag import DiagnosticError
from pto.engine.compiled import group
from pto.files import unnamed
from pto.host import meeting, nodes
from pto.host.handshake import admitted, introduce
from pto.host.meeting import Meeting, RankPlace, placed

HELLO = str(Path(__file__).parents[2] / "examples" / "ranks" / "01_hello.pto")
SECRET = bytes(range(32))
HELLO_OF_RANK = struct.Struct("<8sI16s")


def soon() -> float:
    """Return the time at which a test that hangs is to end."""
    return time.monotonic() + 60


@pytest.fixture
def runtime(public: Path) -> Iterator[Path]:
    """A folder for the sockets of ranks, whose path others may enter."""
    base = public / "runtime"
    base.mkdir()
    base.chmod(0o755)
    with knobs.override(XDG_RUNTIME_DIR=str(base)):
        yield base / "pto"


@contextmanager
def beside(does: Callable[[], object]) -> Iterator[list[object]]:
    """Run a function in a thread beside the block; its result or exception is available after the block."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(does())
        except BaseException as problem:
            found.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        thread.join()


def until(holds: Callable[[], bool]) -> None:
    end = soon()
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


# --- another user ---------------------------------------------------------------------------------------------


@needs_second_user
def test_another_user_cannot_join_read_or_kill_a_launch(runtime: Path) -> None:
    """Rank 0 waits for rank 1 while another user tries, and then the launch goes on."""
    command = [sys.executable, "-m", "pto.cli.main", "run", HELLO, "--ranks", "2", "--"]
    command += ["window:i32:1x8", "window:i32:1", "context", "i32:1x8"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime.parent), "PMI_SIZE": "2"}

    def rank(number: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env={**environment, "PMI_RANK": str(number)}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    first = rank(0)
    until(lambda: runtime.exists() and any(runtime.iterdir()))
    name = str(next(runtime.iterdir()))

    def connects() -> None:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(name)

    assert (
        as_other_user(lambda: os.listdir(runtime.parent)) == "['pto']"
    )  # what protects is the folder itself
    each(
        lambda does: (
            pytest.fail(f"got {said}") if (said := as_other_user(does)) != "PermissionError" else None
        ),
        [
            connects,
            lambda: os.listdir(runtime),
            lambda: os.unlink(name),
            lambda: os.rename(runtime, runtime.parent / "away"),
            lambda: os.listdir(f"/proc/{first.pid}/fd"),
            lambda: open(f"/proc/{first.pid}/mem", "rb"),
            lambda: os.kill(first.pid, 9),
        ],
    )
    second = rank(1)
    said = first.communicate(timeout=120)[0]
    assert first.returncode == 0 and "2 ranks of 1 block" in said, said
    assert (second.communicate(timeout=120)[0], second.returncode) == ("", 0)
    assert not list(runtime.iterdir())


@needs_second_user
def test_files_that_ranks_share_are_closed_to_other_users() -> None:
    file = unnamed("pto-test", 4096)
    try:
        path = f"/proc/{os.getpid()}/fd/{file}"
        assert as_other_user(lambda: os.open(path, os.O_RDONLY)) == "PermissionError"
    finally:
        os.close(file)


def test_files_that_ranks_share_keep_their_size() -> None:
    file = unnamed("pto-test", 4096)
    try:
        assert os.fstat(file).st_mode & 0o777 == 0o600 and not os.get_inheritable(file)
        for size in (0, 8192):
            with pytest.raises(PermissionError):
                os.ftruncate(file, size)
    finally:
        os.close(file)


@needs_second_user
def test_the_first_rank_asks_the_system_who_calls(public: Path) -> None:
    """Another user who could reach the socket with a correct message is refused, and the launch goes on."""
    path, (told, tell) = str(public / "socket"), os.pipe()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        os.chmod(path, 0o777)

        def calls() -> str:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(path)
                introduce(line, 1, 0, b"", soon())
            return "joined"

        def calls_later() -> str:
            os.close(tell)
            os.read(told, 1)  # ends when the others have
            return calls()

        others = [acting(calls) for _ in range(3)]
        own = acting(calls_later, os.geteuid())
        os.close(tell)
        found = admitted(listening, 0, {1}, b"", soon())
    assert {said() for said in others} <= {"EOFError", "ConnectionResetError", "BrokenPipeError"}
    assert own() == "joined" and list(found) == [1]
    found[1].close()
    os.close(told)


@needs_second_user
def test_a_rank_asks_the_system_who_listens(public: Path, runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    ready, go = os.pipe(), os.pipe()

    def listens() -> None:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(public / "socket"))
            listening.listen()
            os.write(ready[1], b"r")
            os.read(go[0], 1)

    other = acting(listens)
    os.close(ready[1])
    assert os.read(ready[0], 1) == b"r", other()  # at once, too, where the other user has failed
    os.rename(public / "socket", runtime / "ranks")  # which only this user can do
    try:
        with pytest.raises(DiagnosticError, match="'ranks' of the ranks belongs to another user"):
            Meeting(RankPlace(1, 2, "ranks"))
    finally:
        os.write(go[1], b"g")
        other()
        for file in (ready[0], *go):
            os.close(file)


# --- the folder -----------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the ranks in that of temporary files (which pytest has made its own in by now)."""
    monkeypatch.setattr(tempfile, "tempdir", str(public))
    with knobs.override(XDG_RUNTIME_DIR=""):
        yield public / f"pto-{os.geteuid()}"


def refused(folder: Path, why: str) -> None:
    with pytest.raises(DiagnosticError) as found:
        Meeting(RankPlace(0, 2, "ranks"))
    (problem,) = found.value.diagnostics
    assert problem.code == "PTO-E2423"
    assert problem.message == f"cannot meet the other ranks in '{folder}': {why}"
    assert f"remove '{folder}'" in problem.help and "XDG_RUNTIME_DIR" in problem.help


@needs_second_user
def test_a_folder_that_another_user_has_made(temporary: Path) -> None:
    assert as_other_user(lambda: os.mkdir(temporary, 0o777)) == "None"
    refused(temporary, f"it belongs to user {OTHER_USER}")
    assert not list(temporary.iterdir())


@needs_second_user
def test_a_link_that_another_user_has_made(temporary: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    assert as_other_user(lambda: os.symlink(own, temporary)) == "None"
    refused(temporary, "not a directory")
    assert not list(own.iterdir())


def test_a_folder_that_others_may_enter(temporary: Path) -> None:
    temporary.mkdir()
    for mode in (0o755, 0o710, 0o702):
        temporary.chmod(mode)
        refused(temporary, f"other users may enter it: its mode is {mode:o}")


def test_a_file_in_place_of_the_folder(temporary: Path) -> None:
    temporary.write_text("")
    refused(temporary, "not a directory")


def test_a_runtime_folder_of_somebody_else_is_not_used(temporary: Path) -> None:
    """XDG_RUNTIME_DIR of another user stays set where one becomes root; or it is not there."""
    for other in ("/proc/1/cwd/nothing", "/nothing"):
        with knobs.override(XDG_RUNTIME_DIR=other):
            assert meeting._folder() == str(temporary)


# --- names ----------------------------------------------------------------------------------------------------


@contextmanager
def met(name: str) -> Iterator[tuple[Meeting, Meeting]]:
    """Two ranks that meet, both in this process."""
    with beside(lambda: Meeting(RankPlace(0, 2, name))) as first:
        second = Meeting(RankPlace(1, 2, name))
    assert isinstance(first[0], Meeting), first[0]
    with first[0]._lines[1], second._lines[0]:
        yield first[0], second


def test_sockets_of_ranks_that_were_killed_are_removed(runtime: Path) -> None:
    """Its own, and that of another launch; neither that of a launch which is there, nor other files."""
    runtime.mkdir(mode=0o700)
    (runtime / "notes").write_text("mine")
    with ExitStack() as sockets:
        for name in ("ranks-1", "ranks-2", "ranks-3"):
            listening = sockets.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(runtime / name))
            listening.listen()
            if name != "ranks-3":
                listening.close()
        with met("ranks-1") as (first, second):
            assert sorted(os.listdir(runtime)) == ["notes", "ranks-3"]
            with beside(lambda: second.all(b"second")) as said:
                assert first.all(b"first") == [b"first", b"second"]
    assert said == [[b"first", b"second"]]


def test_launches_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by the process that has started them, with its start time as process numbers are reused, and by
    their count."""
    here = placed({"PMI_RANK": "0", "PMI_SIZE": "2"})
    more = placed({"PMI_RANK": "0", "PMI_SIZE": "3"})
    started = meeting._started(os.getppid())
    monkeypatch.setattr(meeting, "_started", lambda process: started + 1)
    later = placed({"PMI_RANK": "0", "PMI_SIZE": "2"})
    monkeypatch.setattr(os, "getppid", os.getpid)
    other = placed({"PMI_RANK": "0", "PMI_SIZE": "2"})
    assert here is not None and more is not None and later is not None and other is not None
    assert len({here.name, more.name, later.name, other.name}) == 4 and started > 0


def test_files_are_for_this_process_alone(runtime: Path) -> None:
    file = unnamed("pto-test", 4096)
    with met("ranks-1") as (first, second), beside(lambda: second.share(lambda: 0)) as got:
        first.share(lambda: file)
    assert isinstance(got[0], int)
    assert not os.get_inheritable(got[0]) and os.fstat(got[0]).st_ino == os.fstat(file).st_ino
    os.close(file)
    os.close(got[0])


def test_a_message_that_is_too_long_is_refused(runtime: Path) -> None:
    with met("ranks-1") as (first, second), beside(lambda: second.all(bytes(101), 100)) as found:
        with first._lines[1], pytest.raises(DiagnosticError, match="expected at most 100 bytes, got 101"):
            first.all(b"", 100)
    assert isinstance(found[0], DiagnosticError)  # the first rank has left


# --- strangers of the same machine -------------------------------------------------------------------------------


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as made:
        yield made


def call(listening: socket.socket, rank: int, secret: bytes = SECRET, to: int = 0) -> socket.socket:
    line = socket.create_connection(listening.getsockname())
    try:
        introduce(line, rank, to, secret, soon())
    except BaseException:
        line.close()
        raise
    return line


def test_silent_strangers_hold_nobody_up(listening: socket.socket) -> None:
    """Silent connections, hundreds of them, and one that stops in the middle."""
    with ExitStack() as open_lines:
        strangers = [socket.create_connection(listening.getsockname()) for _ in range(300)]
        for n, stranger in enumerate(strangers):
            open_lines.enter_context(stranger)
            stranger.sendall(HELLO_OF_RANK.pack(b"pto-rank", 1, bytes(16))[: n % 28])
        with beside(lambda: admitted(listening, 0, {1, 2}, SECRET, soon())) as found:
            for rank in (2, 1):
                open_lines.enter_context(call(listening, rank))
        assert isinstance(found[0], dict) and list(found[0]) == [1, 2], found[0]
        for line in found[0].values():
            line.close()


def test_who_cannot_prove_that_he_belongs_there_is_refused(listening: socket.socket) -> None:
    """Without the secret, as a rank that there is not, as one that is there already, or with other bytes."""
    out: list[str] = []

    def tries(does: Callable[[], object]) -> None:
        try:
            does()
            out.append("in")
        except DiagnosticError as problem:
            out.append(problem.diagnostics[0].code)
        except (OSError, EOFError):
            out.append("refused")

    def sends(data: bytes) -> None:
        with socket.create_connection(listening.getsockname()) as line:
            line.sendall(data)
            while line.recv(100):
                pass
        raise EOFError

    def answers_with_another_proof() -> None:
        with socket.create_connection(listening.getsockname()) as line:
            line.sendall(HELLO_OF_RANK.pack(b"pto-rank", 1, bytes(16)))
            got = line.recv(48, socket.MSG_WAITALL)
            line.sendall(got[16:])  # the listener's own proof
            if line.recv(1) == b"":
                raise EOFError

    with beside(lambda: admitted(listening, 0, {1, 2}, SECRET, soon())) as found:
        tries(lambda: call(listening, 1, bytes(32)))  # the caller finds out that secrets differ
        tries(answers_with_another_proof)
        for rank in (0, 3, 2**32 - 1):
            tries(lambda rank=rank: call(listening, rank))
        tries(lambda: call(listening, 1, to=5))
        for data in (bytes(28), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", os.urandom(4096)):
            tries(lambda data=data: sends(data))
        first = call(listening, 1)
        tries(lambda: call(listening, 1))
        second = call(listening, 2)
    assert out == ["PTO-E2423", "refused", *["refused"] * 3, "PTO-E2423", *["refused"] * 3, "refused"]
    assert isinstance(found[0], dict) and list(found[0]) == [1, 2]
    for rank, line in ((1, first), (2, second)):
        line.sendall(bytes([rank]))
        assert found[0][rank].recv(1) == bytes([rank])
        found[0][rank].close()
        line.close()


def test_an_impostor_learns_no_secret(listening: socket.socket) -> None:
    """A process that listens in place of a rank is found out before the caller proves anything."""

    def pretends() -> bytes:
        line, _ = listening.accept()
        with line:
            got = line.recv(28, socket.MSG_WAITALL)
            line.sendall(os.urandom(48))
            return got + line.recv(100)

    with (
        beside(pretends) as got,
        pytest.raises(DiagnosticError, match="answers as rank 3 does not belong to the launch"),
    ):
        with socket.create_connection(listening.getsockname()) as line:
            introduce(line, 1, 3, SECRET, soon())
    assert isinstance(got[0], bytes) and len(got[0]) == 28 and SECRET[:4] not in got[0]


def test_a_caller_that_is_cut_off_calls_again(listening: socket.socket) -> None:
    """A listener that closes a connection before it reads the sent bytes resets it."""

    def listens() -> object:
        line, _ = listening.accept()
        line.recv(1)
        line.close()
        return admitted(listening, 0, {1}, SECRET, soon())

    with beside(listens) as found, nodes._called(listening.getsockname(), 1, 0, SECRET, soon()):
        pass
    assert isinstance(found[0], dict) and list(found[0]) == [1]
    found[0][1].close()


def test_who_waits_too_long_is_told_who_is_missing(listening: socket.socket) -> None:
    call_ended = time.monotonic() - 1
    assert admitted(listening, 0, {1}, SECRET, call_ended) == {}


# --- addresses --------------------------------------------------------------------------------------------------


def test_a_node_listens_at_its_own_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with nodes._listening(True, 2) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
    with knobs.override(PTO_NODE_ADDRESS="127.0.0.2"), nodes._listening(False, 2) as listening:
        host, port = listening.getsockname()
        assert host == "127.0.0.2"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    unreachable = "it has no address that other machines can reach"
    for given, why in (
        (
            "0.0.0.0",
            f"cannot listen for other machines at '0.0.0.0': {unreachable}",
        ),  # it stands for every network
        ("::", f"cannot listen for other machines at '::': {unreachable}"),
        ("", f"cannot listen for other machines at 'localhost': {unreachable}"),
        ("192.0.2.1", "cannot listen for other machines at '192.0.2.1': cannot assign requested address"),
    ):
        with knobs.override(PTO_NODE_ADDRESS=given), pytest.raises(DiagnosticError) as found:
            nodes._listening(False, 2).close()
        assert found.value.diagnostics[0].message.lower() == why.lower()
        assert "set PTO_NODE_ADDRESS" in found.value.diagnostics[0].help


# --- files that are not groups ------------------------------------------------------------------------------


def test_files_that_are_no_groups_are_not_joined(tmp_path: Path) -> None:
    host = ctypes.CDLL(str(group.library()))
    host.pto_host_join.restype = ctypes.c_void_p

    def head(ranks: int, window: int, magic: int = group._MAGIC) -> int:
        file = unnamed("pto-test", (1 << 20) + 2 * 4096)
        os.pwrite(file, group._HEAD.pack(magic, ranks, window), 0)
        return file

    def refuses(file: int, rank: int) -> None:
        try:
            assert host.pto_host_join(file, rank, 0) is None
            os.fstat(file)  # it still belongs to the caller
        finally:
            os.close(file)

    plain = tmp_path / "group"
    plain.write_bytes(group._HEAD.pack(group._MAGIC, 2, 4096) + bytes((1 << 20) + 2 * 4096))
    unsealed = os.memfd_create("pto-test")
    os.write(unsealed, plain.read_bytes())
    each(
        refuses,
        [
            (group.make(2), 2),
            (group.make(2), -1),
            (head(0, 4096), 0),
            (head(65, 4096), 0),
            (head(3, 4096), 0),  # the file ends before its windows do
            (head(2, 8192), 0),
            (head(2, 1 << 63), 0),
            (head(64, (1 << 58) + 4096), 0),  # whose sum overflows
            (head(2, 4096, 7), 0),
            (unsealed, 0),
            (os.open(plain, os.O_RDWR), 0),
            (os.open("/dev/null", os.O_RDWR), 0),
        ],
    )
    assert host.pto_host_join(-1, 0, 0) is None
