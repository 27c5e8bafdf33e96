"""Files that tests keep between runs are built again if anything has changed; one test of many checks runs
all.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import pytest
from tests import made
from tests.each import together

#: A compiler that notes its calls, makes a file at the given path, and complains.
_COMPILER = """\
#!/bin/sh
case "$*" in --version) echo 1; exit;; esac
echo "$*" >> {calls}
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo made > "$2"; shift; done
echo complaint >&2
exit 3
"""


def test_what_is_kept_is_made_of_what_is_there_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command, calls = tmp_path / "cc", tmp_path / "calls"
    command.write_text(_COMPILER.format(calls=calls))
    command.chmod(0o700)

    def count(
        source: Path | str, *flags: str, target: Path | None = None, reads: tuple[Path, ...] = ()
    ) -> int:
        done = made.compiled([command, *flags], source, target, reads)
        assert (done.returncode, done.stderr) == (3, "complaint\n")
        assert target is None or target.read_text() == "made\n"
        return len(calls.read_text().splitlines())

    assert count("text") == count("text") == 1
    assert count("other text") == 2 and count("text", "-O1") == 3
    for run in ("first", "second"):  # in another folder
        folder = tmp_path / run
        folder.mkdir()
        source, read = folder / "k.cpp", folder / "read.inc"
        source.write_text("text")
        read.write_text("read")
        assert count(source, f"-I{folder}", target=folder / "k.so", reads=(read,)) == 4
    read.write_text("something else")
    assert count(source, f"-I{folder}", target=folder / "k.so", reads=(read,)) == 5
    monkeypatch.setattr(made, "_headers", lambda: "other headers")
    assert count("text") == 6


def test_a_place_is_held_by_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with made.held("places", "one") as place, made.held("places", "two") as elsewhere:
        assert place.is_dir() and place != elsewhere
        (lock,) = tmp_path.rglob("one.lock")
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_who_changes_what_builds_kernels_sees_them_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(made, "ROOT", tmp_path)
    builder = tmp_path / "src/pto/engine/cpp/build.py"
    builder.parent.mkdir(parents=True)
    builder.write_text('def f():\n    """a"""\n    return "a"\n')
    first = made.kernels()
    assert first == made.kernels() and first.is_dir()
    builder.write_text('"""b"""\ndef f():\n    """c"""\n    return "a"  # d\n')
    assert first == made.kernels()
    builder.write_text('def f():\n    """a"""\n    return "b"\n')
    assert first != made.kernels()


def test_all_that_fails_is_shown() -> None:
    seen: list[tuple[int, str]] = []

    @together("n", [1, 2, 3])
    @together(("word", "more"), [("a", 1), ("b", 2)])
    def check(n: int, word: str, more: int, fixture: str) -> None:
        seen.append((n, word))
        assert (fixture == "given" and n < 3) or more < 2, f"{n} {word}"

    with pytest.raises(AssertionError, match=r"1 of 3 fail:\n3\n.*1 of 2 fail:\nb, 2\n.*3 b"):
        check(fixture="given")
    assert seen == [(n, word) for n in (1, 2, 3) for word in "ab"]
