"""Files that are written in one step."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest
from tests.each import each
from tests.users import OTHER_USER, as_other_user, needs_second_user

import pto
from pto.files import make_private, weak_folder, write_whole

_SOURCES = Path(pto.__file__).parent


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_nobody_sets_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask is one for all threads: while one thread reads it by setting it, files of another are open to
    all."""
    assert not [p for p in _SOURCES.rglob("*.py") if "umask(" in p.read_text(encoding="utf-8")]
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is set"))
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "new", "text")
    assert mode(tmp_path / "new") == mode(tmp_path / "usual") and (tmp_path / "new").read_text() == "text"


def test_modes_and_links_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, link = tmp_path / "folder" / "secret", tmp_path / "link"
    path.parent.mkdir()
    path.write_text("old")
    link.symlink_to(path)
    seen: list[int] = []
    replace = os.replace

    def watched(source: str, target: str) -> None:
        seen.append(mode(Path(source)))
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    for bits in (0o600, 0o640, 0o755):
        path.chmod(bits)
        write_whole(link, f"{bits}")
        assert link.is_symlink() and path.read_text() == f"{bits}" and mode(path) == bits
    assert seen == [0o600, 0o640, 0o755] and [p.name for p in path.parent.iterdir()] == ["secret"]


@needs_second_user
def test_a_link_of_another_user_in_a_public_folder(public: Path, tmp_path: Path) -> None:
    """It is not followed, whether directly or through one of this user's; that of the owner of the folder is."""
    mine, link, chain = tmp_path / "mine", public / "link", public / "chain"
    mine.write_text("old")
    chain.symlink_to("link")

    def links() -> None:
        link.unlink(missing_ok=True)
        assert as_other_user(lambda: link.symlink_to(mine)) == "None"

    def check(mode: int, owner: int, followed: bool) -> None:
        public.chmod(0o777)
        mine.write_text("old")
        links()
        public.chmod(mode)
        os.chown(public, owner, -1)
        for path in (link, chain):
            with contextlib.nullcontext() if followed else pytest.raises(PermissionError):
                write_whole(path, "new")
            assert mine.read_text() == ("new" if followed else "old") and link.is_symlink()

    each(check, [(0o1777, 0, False), (0o1777, OTHER_USER, True), (0o755, 0, True), (0o777, 0, True)])
    os.chown(public, 0, -1)
    mine.unlink()
    links()
    public.chmod(0o1777)
    with pytest.raises(PermissionError):
        write_whole(link, "new")
    assert not mine.exists()


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError) as refused:
        write_whole(tmp_path / "link", "new")
    assert refused.value.errno == errno.ELOOP and refused.value.filename == str(tmp_path / "link")


def test_what_can_be_read_can_be_executed(tmp_path: Path) -> None:
    usual, program = tmp_path / "usual", tmp_path / "program"
    usual.touch()
    for bits, wanted in ((None, mode(usual) | 0o111 & mode(usual) >> 2), (0o600, 0o700), (0o664, 0o775)):
        if bits is not None:
            program.chmod(bits)
        write_whole(program, b"", executable=True)
        assert mode(program) == wanted


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def refuse(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError):
        write_whole(tmp_path / "file", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "old"


def test_folders_that_others_can_change(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    make_private(str(inner))
    us = os.geteuid(), 0

    def check(bits: tuple[int, int, int], weak: Path | None) -> None:
        for place, wanted in zip((inner.parent.parent, inner.parent, inner), bits, strict=True):
            place.chmod(wanted)
        assert weak_folder(str(inner), us) == (str(weak) if weak else "")

    each(check, [
        ((0o700, 0o700, 0o700), None), ((0o755, 0o755, 0o755), None), ((0o755, 0o755, 0o775), inner),
        ((0o755, 0o757, 0o755), inner.parent), ((0o777, 0o755, 0o755), inner.parent.parent),
        ((0o1777, 0o755, 0o755), None), ((0o755, 0o755, 0o1777), inner), ((0o777, 0o755, 0o1777), inner),
    ])  # fmt: skip
    assert weak_folder(str(inner.parent), (12345,)) == str(inner.parent)
