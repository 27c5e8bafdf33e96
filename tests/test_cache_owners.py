"""No other user gets a library loaded from a cache: planted entries, folders that others can write, links, swaps."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.made import compiled
from tests.users import OTHER_USER, acting, as_other_user, needs_second_user

from pto import cache, knobs
from pto.cache import Built
from pto.cli.main import main
from pto.engine.compiled.library import Library, load, loaded, name_to_load
from pto.engine.cpp import compiler

Capture = pytest.CaptureFixture[str]
KEY = "ab" * 32

_GOOD = 'extern "C" int answer() { return 42; }\n'
_EVIL = """
#include <cstdio>
#include <cstdlib>
extern "C" int answer() { return 13; }
__attribute__((constructor)) static void run() {
  if (const char* path = std::getenv("PTO_CANARY")) std::fclose(std::fopen(path, "w"));
}
"""


def library(place: Path, text: str) -> Path:
    done = compiled([compiler.find().command[0], "-shared", "-fPIC"], text, place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that the constructor of the attacker's library makes; it must not be there at the end."""
    monkeypatch.setenv("PTO_CANARY", str(tmp_path / "canary"))
    yield tmp_path / "canary"
    assert not (tmp_path / "canary").exists(), "the library of the attacker ran"


@pytest.fixture
def evil(tmp_path: Path, canary: Path) -> Path:
    return library(tmp_path / "evil.so", _EVIL)


@pytest.fixture
def build(tmp_path: Path) -> Callable[[Path], Built]:
    """Build as the victim does."""
    made = library(tmp_path / "good.so", _GOOD)
    return lambda work: Built(shutil.copy(made, work / "made.so"))


@pytest.fixture
def folder(public: Path, build: object) -> Iterator[Path]:
    """The folder of a cache."""
    with knobs.override(PTO_CACHE_DIR=str(public / "cache")):
        yield public / "cache" / "cpp"


def as_other(act: Callable[[], object]) -> None:
    """Have something done by another user."""
    assert as_other_user(lambda: (act(), "done")[1]) == "done", "the other user could not do that"


def plant(where: Path, evil: Path, owner: bool = False) -> None:
    """Make an entry with the right digest, as another user or (`owner`) as this one."""
    data = evil.read_bytes()

    def act() -> None:
        with tempfile.TemporaryDirectory() as work:
            Path(work, "made.so").write_bytes(data)
            cache.put(KEY, "kernel", Path(work, "made.so"), where=where)

    act() if owner else as_other(act)


def answer(build: Callable[[Path], Built]) -> tuple[int, Built]:
    """Return the library that the victim runs."""
    built, found = loaded(lambda: cache.built(KEY, "kernel", build))
    return found.raw("answer")(), built


# -- folders -----------------------------------------------------------------------------------------------


def test_folders_and_entries_are_for_their_owner(
    folder: Path, public: Path, build: Callable[[Path], Built]
) -> None:
    mask = os.umask(0)
    try:
        built = cache.built(KEY, "kernel", build)
    finally:
        os.umask(mask)
    assert not built.cached and cache.built(KEY, "kernel", build).cached
    made = [public / "cache", folder, folder / KEY, folder / KEY / "made.so", folder / KEY / "entry.json"]
    assert [oct(p.stat().st_mode & 0o777) for p in made] == ["0o700", "0o700", "0o700", "0o755", "0o600"]


@needs_second_user
@pytest.mark.parametrize("level", ["folder", "above"])
def test_e2409_a_folder_that_others_can_write(
    folder: Path, evil: Path, build: Callable[[Path], Built], capfd: Capture, level: str
) -> None:
    folder.mkdir(parents=True)
    weak = folder if level == "folder" else folder.parent
    for place in (folder, folder.parent):
        place.chmod(0o777)
    plant(folder, evil)
    (folder.parent if level == "folder" else folder).chmod(0o755)
    assert [answer(build)[0] for _ in range(3)] == [42] * 3
    said = capfd.readouterr().err
    assert said.count("PTO-E2409") == 1 and f"cannot use the cache '{folder}'" in said
    assert f"'{weak}' belongs to user {os.geteuid()} and has mode 0777" in said
    assert f"chmod go-w {weak}" in said and "PTO_CACHE_DIR" in said
    # as the folder requires; planted files from before do not count
    weak.chmod(0o755)
    value, built = answer(build)
    assert value == 42 and Path(built.path).parent.parent == folder
    assert answer(build)[1].cached and "PTO-E2409" not in capfd.readouterr().err


@needs_second_user
def test_a_folder_of_another_user(
    folder: Path, evil: Path, build: Callable[[Path], Built], capfd: Capture
) -> None:
    as_other(lambda: folder.mkdir(parents=True))
    plant(folder, evil)
    assert answer(build)[0] == 42
    said = capfd.readouterr().err
    assert f"'{folder}' belongs to user {OTHER_USER} and has mode" in said and "chmod" not in said


@needs_second_user
def test_a_link_of_another_user(
    folder: Path, public: Path, evil: Path, build: Callable[[Path], Built], capfd: Capture
) -> None:
    """To a folder of theirs it is refused. To one of this user's, it is followed once: then the real folder is used,
    wherever the link leads later."""
    theirs, link = public / "theirs", public / "cache"
    as_other(lambda: (theirs / "cpp").mkdir(parents=True))
    plant(theirs / "cpp", evil)
    as_other(lambda: link.symlink_to(theirs))
    assert answer(build)[0] == 42 and f"cannot use the cache '{theirs / 'cpp'}'" in capfd.readouterr().err
    ours = public / "ours"
    ours.mkdir(mode=0o755)
    as_other(lambda: (link.unlink(), link.symlink_to(ours)))
    value, built = answer(build)
    assert value == 42 and built.path == str(ours / "cpp" / KEY / "made.so")
    as_other(lambda: (link.unlink(), link.symlink_to(theirs)))
    assert Library(built.path).raw("answer")() == 42


@needs_second_user
def test_no_other_user_can_hold_a_lock(folder: Path, public: Path, build: Callable[[Path], Built]) -> None:
    """Whoever can open a file can lock it, and builds would wait. Folders as earlier versions made them, and as a
    shared cache has them."""
    locks = folder / ".pto-locks"
    locks.mkdir(parents=True)
    for place in (public / "cache", folder, locks):
        place.chmod(0o755)
    cache.built(KEY, "kernel", build)
    assert as_other_user(lambda: os.listdir(folder)) != "PermissionError"
    for name in os.listdir(locks):
        assert as_other_user(lambda name=name: os.open(locks / name, os.O_RDONLY)) == "PermissionError"


# -- entries -----------------------------------------------------------------------------------------------


@needs_second_user
def test_an_entry_that_was_planted(folder: Path, evil: Path, build: Callable[[Path], Built]) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    plant(folder, evil)
    folder.chmod(0o700)
    folder.parent.chmod(0o700)
    assert cache.find(KEY) is None
    value, built = answer(build)
    assert value == 42 and not built.cached and answer(build)[1].cached


def _other_owner(place: Path) -> None:
    os.chown(place, OTHER_USER, -1)


def _writable(place: Path) -> None:
    place.chmod(place.stat().st_mode | 0o020)


def _linked(place: Path) -> None:
    """A link to the same content, which its owner could change later."""
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


def _pipe(place: Path) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    os.mkfifo(place)


@pytest.mark.parametrize("part", ["", "made.so", "entry.json"])
@pytest.mark.parametrize(
    "change",
    [pytest.param(_other_owner, marks=needs_second_user), _writable, _linked, _pipe],
    ids=["owner", "writable", "link", "pipe"],
)
def test_what_others_could_have_changed_is_built_again(
    folder: Path, canary: Path, build: Callable[[Path], Built], change: Callable[[Path], None], part: str
) -> None:
    cache.built(KEY, "kernel", build)
    assert cache.find(KEY) is not None
    change(folder / KEY / part if part else folder / KEY)
    assert cache.find(KEY) is None
    value, built = answer(build)
    assert value == 42 and not built.cached and answer(build)[1].cached


@pytest.mark.parametrize("name", ["../evil.so", "/{public}/cache/cpp/evil.so", "..", ".", "a/../made.so", 7])
def test_the_name_of_a_file_is_a_plain_name(
    folder: Path, public: Path, evil: Path, build: Callable[[Path], Built], name: object
) -> None:
    """The digest is right, and all files are of the right owner."""
    plant(cache.folder(), evil, owner=True)
    shutil.copy(evil, folder / "evil.so")
    about = folder / KEY / "entry.json"
    facts = json.loads(about.read_text())
    facts["file"] = name.format(public=public) if isinstance(name, str) else name
    about.write_text(json.dumps(facts))
    assert cache.find(KEY) is None and answer(build)[0] == 42


@pytest.mark.parametrize(
    "text", [b"", b"[" * 100_000, b"[1]", b"7", b'{"file": {}, "facts": 1}', b"\xff", None]
)
def test_a_description_that_is_damaged(
    folder: Path, build: Callable[[Path], Built], text: bytes | None
) -> None:
    cache.built(KEY, "kernel", build)
    about = folder / KEY / "entry.json"
    about.unlink() if text is None else about.write_bytes(text)
    if text is None:
        os.mkfifo(about, 0o600)
    assert cache.find(KEY) is None and [e.kind for e in cache.entries()] == ["other"]
    assert answer(build)[0] == 42 and [e.kind for e in cache.entries()] == ["kernel"]


# -- between the check and the load ------------------------------------------------------------------------


def test_a_file_that_was_swapped_is_not_loaded(
    folder: Path, evil: Path, build: Callable[[Path], Built]
) -> None:
    """The verified content is not at the path any more: it is built again."""
    cache.built(KEY, "kernel", build)

    def swapped() -> Built:
        found = cache.built(KEY, "kernel", build)
        if found.cached:
            os.replace(shutil.copy(evil, folder / "fresh"), found.path)
        return found

    for overwritten in (False, True):
        found = cache.built(KEY, "kernel", build)
        if overwritten:  # the same file with another content
            Path(found.path).write_bytes(evil.read_bytes())
        else:
            os.replace(shutil.copy(evil, folder / "fresh"), found.path)
        with pytest.raises(OSError, match="changed since it was verified"):
            load(found.path)
    built, found = loaded(swapped)
    assert found.raw("answer")() == 42 and not built.cached


def test_what_is_loaded_is_what_was_opened(folder: Path, evil: Path, build: Callable[[Path], Built]) -> None:
    path = cache.built(KEY, "kernel", build).path
    with name_to_load(path) as name:
        os.replace(evil, path)
        assert ctypes.CDLL(name).answer() == 42


def test_names_are_not_used_again(tmp_path: Path) -> None:
    """Descriptors are, and the system would take the name of one for the library that it has loaded."""
    numbers = range(8)
    for n in numbers:
        library(tmp_path / f"{n}.so", _GOOD.replace("42", str(n)))
    assert [load(str(tmp_path / f"{n}.so")).answer() for n in numbers] == list(numbers)


def test_a_file_that_was_written_over(tmp_path: Path) -> None:
    """The system would take it for the library that it has loaded: it is the same file. A process that has loaded
    both cannot end as others do: the code of the first one has changed."""
    path = library(tmp_path / "k.so", _GOOD)
    other = library(tmp_path / "other.so", _GOOD.replace("42", "43"))

    def act() -> None:
        assert load(str(path)).answer() == 42
        path.write_bytes(other.read_bytes())
        os.utime(path, (1, 1))
        assert load(str(path)).answer() == 43

    assert acting(lambda: (act(), "done")[1], os.geteuid())() == "done"


def test_debuggers_are_told_the_file(tmp_path: Path) -> None:
    path = library(tmp_path / "named.so", _GOOD)
    found = load(str(path))

    class Info(ctypes.Structure):
        _fields_ = (("file", ctypes.c_char_p), ("rest", ctypes.c_void_p * 3))

    info = Info()
    assert ctypes.CDLL(None).dladdr(ctypes.cast(found.answer, ctypes.c_void_p), ctypes.byref(info))
    assert info.file == bytes(path)
    assert load(str(path))._handle == found._handle


# -- a cache of several users ------------------------------------------------------------------------------


@needs_second_user
def test_a_shared_cache_is_read(
    folder: Path, public: Path, build: Callable[[Path], Built], capfd: Capture
) -> None:
    data = Path(build(public).path).read_bytes()
    theirs = public / "theirs" / "cpp"

    def fill() -> None:
        theirs.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as work:
            Path(work, "made.so").write_bytes(data)
            cache.put(KEY, "kernel", Path(work, "made.so"), where=theirs)

    as_other(fill)
    before = sorted(theirs.iterdir())
    with knobs.override(PTO_CACHE_SHARED=str(public / "theirs")):
        value, built = answer(build)
        assert value == 42 and built.cached and built.path == str(theirs / KEY / "made.so")
        cache.built("cd" * 32, "kernel", build)
        assert main(["cache"]) == 0
        assert f"shared   {theirs}" in capfd.readouterr().out
    assert not answer(build)[1].cached  # not named by the victim: not trusted
    assert sorted(theirs.iterdir()) == before
    assert sorted(p.name for p in folder.iterdir() if p.name[0] != ".") == [KEY, "cd" * 32]


def test_a_shared_cache_that_is_damaged_or_that_others_can_write(
    folder: Path, public: Path, evil: Path, build: Callable[[Path], Built], capfd: Capture
) -> None:
    theirs = public / "theirs" / "cpp"
    theirs.mkdir(parents=True)
    plant(theirs, evil, owner=True)
    with knobs.override(PTO_CACHE_SHARED=str(public / "theirs")):
        theirs.chmod(0o777)
        assert cache.find(KEY) is None and cache.find(KEY) is None
        assert capfd.readouterr().err.count(f"cannot use the cache '{theirs}'") == 1
        theirs.chmod(0o755)
        assert cache.find(KEY) is not None
        made = theirs / KEY / "made.so"
        made.write_bytes(made.read_bytes() + b"\\0")
        assert cache.find(KEY) is None and answer(build)[0] == 42
    with knobs.override(PTO_CACHE_SHARED=str(public / "none")):
        assert cache.shared() is None and answer(build)[1].cached
