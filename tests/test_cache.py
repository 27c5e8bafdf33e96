"""The cache of builds: found again, shared by processes, limited, and never trusted if damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.each import together

from pto import cache, knobs
from pto.cache import Built
from pto.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        yield tmp_path / "cpp"


class Builder:
    """Builds a file and counts how often."""

    def __init__(self, content: bytes = b"content", files: tuple[str, ...] = ()) -> None:
        self.content, self.files, self.times = content, files, 0

    def __call__(self, work: Path) -> Built:
        self.times += 1
        (work / "made.so").write_bytes(self.content)
        return Built(str(work / "made.so"), files=self.files)


def filled(count: int, size: int = 1000) -> list[str]:
    """Entries, from the one that was used longest ago, hours before now."""
    keys = [cache.key("entry", str(n)) for n in range(count)]
    for n, key in enumerate(keys):
        cache.built(key, "kernel", Builder(bytes(size)))
        old = time.time() - 7200 + n
        os.utime(cache.folder() / key, (old, old))
    return keys


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert len({cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("abc", "")}) == 4


def test_a_key_is_built_once(folder: Path) -> None:
    build = Builder()
    first = cache.built("k" * 64, "kernel", build)
    again = cache.built("k" * 64, "kernel", build)
    assert (first.cached, again.cached, build.times) == (False, True, 1)
    assert first.path == again.path and Path(again.path).read_bytes() == b"content"
    assert not [p for p in folder.iterdir() if p.name.startswith((".pto-build-", ".pto-gone-"))]


def test_a_build_that_fails_leaves_nothing(folder: Path) -> None:
    for _ in range(2):
        assert cache.built("f" * 64, "kernel", lambda work: Built("", "no")).output == "no"
    assert not cache.entries()


@pytest.mark.parametrize("file", ["made.so", "entry.json"])
@pytest.mark.parametrize("how", [lambda b: b[:-1], lambda b: b"", lambda b: None, lambda b: b.swapcase()],
                         ids=["cut", "empty", "gone", "other"])  # fmt: skip
def test_what_is_damaged_is_built_again(folder: Path, file: str, how: object) -> None:
    assert callable(how)
    build = Builder()
    path = Path(cache.built("d" * 64, "kernel", build).path).with_name(file)
    damaged = how(path.read_bytes())
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    again = cache.built("d" * 64, "kernel", build)
    assert not again.cached and build.times == 2 and Path(again.path).read_bytes() == b"content"
    assert cache.built("d" * 64, "kernel", build).cached


def test_a_build_may_build_an_entry_of_another_kind(folder: Path) -> None:
    def build(work: Path) -> Built:
        cache.built("b" * 63 + "c", "headers", Builder())
        return Builder()(work)

    thread = threading.Thread(target=cache.built, args=("b" * 64, "kernel", build), daemon=True)
    thread.start()
    thread.join(60)
    assert len(cache.entries()) == 2


def test_files_that_are_found_out_about_belong_to_the_key(folder: Path, tmp_path: Path) -> None:
    header = tmp_path / "a header.h"
    made: list[tuple[str, bool]] = []
    build = Builder(files=(str(header),))
    for text in ("one", "one", "two", "one", None, None):
        header.unlink(missing_ok=True)
        if text is not None:
            header.write_text(text)
        built = cache.built("h" * 64, "kernel", build, cache.Files())
        made.append((built.path, built.cached))
        assert built.files == (str(header),)
    assert [cached for _, cached in made] == [False, True, False, True, False, True]
    assert len({path for path, _ in made}) == 3

    class Other(cache.Files):
        def fit(self, names: object) -> bool:
            return False

    assert not cache.built("h" * 64, "kernel", build, Other()).cached


def test_processes_share_one_build(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    program = f"""
from pto import cache
def build(work):
    with open({str(log)!r}, "a") as f:
        f.write("x")
    (work / "made.so").write_bytes(b"made")
    return cache.Built(str(work / "made.so"))
print(cache.built("p" * 64, "kernel", build).path)
"""
    environment = {**os.environ, "PTO_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert len({p.communicate(timeout=600)[0] for p in running}) == 1
    assert log.read_text() == "x"


def test_a_cache_that_is_no_folder_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with knobs.override(PTO_CACHE_DIR=str(tmp_path / "file")):
        assert Path(cache.built("n" * 64, "kernel", Builder()).path).exists()


# -- the limit ---------------------------------------------------------------------------------------------


@together(
    ("text", "size"),
    [("0", 0), ("123", 123), ("500M", 500 << 20), ("2g", 2 << 30), ("1.5 KiB", 1536), ("1TB", 1 << 40),
     ("", None), ("-1", None), ("many", None), ("5 M M", None)],
)  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert cache.size_of(text) == size


def test_a_limit_that_is_no_size_is_the_usual_one() -> None:
    with knobs.override(PTO_CACHE_LIMIT="plenty"):
        assert cache.limit() == 2 << 30


def test_what_was_used_longest_ago_goes_first(folder: Path) -> None:
    keys = filled(10)
    size = cache.entries()[0].size
    assert cache.built(keys[0], "kernel", Builder()).cached  # used just now
    with knobs.override(PTO_CACHE_LIMIT=str(10 * size)):
        cache.built("9" * 64, "kernel", Builder(bytes(1000)))
    left = [cache.find(key) is not None for key in keys]
    assert left == [True, *[False] * 3, *[True] * 6]  # four fifths of the limit: 8 of 11


def test_precompiled_headers_go_first(folder: Path) -> None:
    cache.built("0" * 64, "kernel", Builder())
    cache.built("1" * 64, "headers", Builder())
    assert [e.kind for e in cache.prune(cache.entries()[0].size)] == ["headers"]


def test_what_was_used_a_moment_ago_is_not_evicted(folder: Path) -> None:
    """A process may be about to load it. It is evicted on request."""
    with knobs.override(PTO_CACHE_LIMIT="1"):
        made = [cache.built(cache.key(str(n)), "kernel", Builder()) for n in range(3)]
    assert all(Path(b.path).exists() for b in made)
    assert len(cache.prune(0)) == 3 and not cache.entries()


def test_a_wrong_total_does_no_harm(folder: Path) -> None:
    keys = filled(3)
    for text in ("nonsense", str(1 << 60)):
        (folder / ".pto-total").write_text(text)
        cache.built(cache.key(text), "kernel", Builder())
        assert int((folder / ".pto-total").read_text()) == sum(e.size for e in cache.entries())
    assert all(cache.find(key) for key in keys)


def test_the_rest_of_killed_builds_goes(folder: Path) -> None:
    keys = filled(1)
    left, fresh = folder / ".pto-build-left", folder / ".pto-build-fresh"
    for work in (left, fresh):
        work.mkdir()
        (work / "half.so").touch()
    os.utime(left, (0, 0))
    cache.prune(1 << 30)
    assert not left.exists() and fresh.exists() and cache.find(keys[0])


def test_what_older_versions_left_counts_and_goes(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{'0123' * 16}.so").write_bytes(bytes(10))
    assert [(e.kind, e.size) for e in cache.entries()] == [("other", 10)]
    cache.prune(0)
    assert not (folder / f"{'0123' * 16}.so").exists()


def test_what_is_not_ours_stays(folder: Path) -> None:
    """If the cache has a folder of the user's, no source of theirs is counted or removed."""
    for name in ("kernel.cpp", "notes", ".build-debug/a.o", "project/CMakeLists.txt", "libthing.so"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
        os.utime((folder / name).parent if "/" in name else folder / name, (1, 1))
    filled(1)
    assert len(cache.entries()) == 1 and len(cache.prune(0)) == 1
    left = sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.read_text() == "mine"
    )
    assert left == [".build-debug/a.o", "kernel.cpp", "libthing.so", "notes", "project/CMakeLists.txt"]


def test_a_library_that_is_loaded_survives(folder: Path) -> None:
    import ctypes

    from pto.engine.cpp import build

    text = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }\n'
    loaded = ctypes.CDLL(build.cached([build.TranslationUnit("u.cpp", text)], [], []).path)
    assert main(["cache", "clear"]) == 0
    assert not cache.entries() and loaded.answer() == 42


# -- pto cache ---------------------------------------------------------------------------------------------


def test_show(folder: Path, capsys: Capture) -> None:
    filled(2)
    cache.put("c" * 64, "compiler", facts={"version": "1"})
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["path", str(folder)] and lines[1].split() == ["entries", "3"]
    assert lines[3].split() == ["limit", "2.0", "GiB", "(PTO_CACHE_LIMIT)"]
    assert [line.split()[:2] for line in lines[5:]] == [["compiler", "1"], ["kernel", "2"]]


def test_json(folder: Path, capsys: Capture) -> None:
    filled(3)
    total = sum(e.size for e in cache.entries())
    assert main(["cache", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": str(folder), "entries": 3, "bytes": total, "limit": 2 << 30,
        "kinds": {"kernel": {"entries": 3, "bytes": total}},
    }  # fmt: skip
    assert main(["cache", "prune", "--max", str(total - 1), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["removed"] == {"entries": 1, "bytes": total // 3} and shown["entries"] == 2


def test_clear_and_prune(folder: Path, capsys: Capture) -> None:
    keys = filled(4)
    assert main(["cache", "prune"]) == 0
    assert capsys.readouterr().out.startswith("0 entries removed, 0 B; 4 entries left, ")
    assert main(["cache", "prune", "--max", "2.5K"]) == 0
    assert [cache.find(key) is not None for key in keys] == [False, False, True, True]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.endswith("2 entries removed, 2.1 KiB; 0 entries left, 0 B\n")


@pytest.mark.parametrize("arguments", [["drop"], ["prune", "--max", "much"], ["clear", "--max", "1M"]])
def test_wrong_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["cache", *arguments])
    assert stop.value.code == 2 and "try 'pto cache --help'" in capsys.readouterr().err
