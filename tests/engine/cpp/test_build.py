"""Builds: the choice of the compiler, the reuse of builds, and the errors for missing parts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import DiagnosticError, cache, knobs
from pto.engine.cpp import build, compiler, digest
from pto.isa.profiles import profile

ANSWER = 'extern "C" __attribute__((visibility("default"))) int answer() { return %d; }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        yield tmp_path


def unit(number: int = 42) -> build.TranslationUnit:
    return build.TranslationUnit("u.cpp", ANSWER % number)


def answer(path: str) -> int:
    import ctypes

    return ctypes.CDLL(path).answer()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def counting(folder: Path) -> tuple[str, Path]:
    """A compiler that notes every compilation to a library."""
    log = folder / "log"
    log.touch()
    real = shutil.which("g++") or shutil.which("clang++")
    wrapper = script(
        folder / "cxx", f'case "$*" in *-shared*) echo x >> {log}; sleep 0.3;; esac\nexec {real} "$@"'
    )
    return str(wrapper), log


def test_a_library_is_built_once(folder: Path) -> None:
    first = build.cached([unit()], [], [])
    assert first.ok and not first.cached and answer(first.path) == 42
    again = build.cached([unit()], [], [])
    assert again.cached and again.path == first.path


def test_everything_that_matters_is_in_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {build.cached([unit()], [], []).path, build.cached([unit(43)], [], []).path}
    paths.add(build.cached([unit()], [], ["-DPTO_CHECKED"]).path)
    paths.add(build.cached([unit()], [build.TranslationUnit("body.inc", "// x")], []).path)
    monkeypatch.setattr(compiler, "headers_digest", lambda: "other headers")
    paths.add(build.cached([unit()], [], []).path)
    monkeypatch.setattr(compiler.Compiler, "identity", "another compiler")
    paths.add(build.cached([unit()], [], []).path)
    assert len(paths) == 6


def test_a_changed_header_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / "pto" / "pto-inst.hpp"
    header.parent.mkdir()
    header.write_text("// one")
    monkeypatch.setattr(compiler, "include_dir", lambda: tmp_path)
    first = compiler.headers_digest()
    assert compiler.headers_digest() == first
    header.write_text("// two")
    os.utime(header, ns=(1, 1))
    second = compiler.headers_digest()
    (header.parent / "more.hpp").write_text("")
    assert len({first, second, compiler.headers_digest()}) == 3


def test_threads_that_want_the_same_build_share_one(folder: Path) -> None:
    wrapper, log = counting(folder)
    found: list[cache.Built] = []
    with knobs.override(PTO_CXX=wrapper, PTO_CACHE_DIR=str(folder)):
        compiler.find()
        log.write_text("")
        threads = [
            threading.Thread(target=lambda: found.append(build.cached([unit()], [], []))) for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len({b.path for b in found}) == 1 and all(b.ok for b in found)
    assert log.read_text() == "x\n"


def test_processes_that_want_the_same_build_share_one(folder: Path) -> None:
    wrapper, log = counting(folder)
    program = (
        "from pto.engine.cpp import build\n"
        f"print(build.cached([build.TranslationUnit('u.cpp', {ANSWER % 7!r})], [], []).path)"
    )
    environment = {**os.environ, "PTO_CXX": wrapper, "PTO_CACHE_DIR": str(folder)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    paths = {p.communicate(timeout=600)[0].strip() for p in running}
    assert len(paths) == 1 and answer(paths.pop()) == 7
    assert log.read_text() == "x\n"


def test_a_failed_build_leaves_nothing_and_can_be_repeated(folder: Path) -> None:
    bad = build.TranslationUnit("u.cpp", "int x = ;")
    for _ in range(2):
        built = build.cached([bad], [], [])
        assert not built.ok and "u.cpp:1" in built.output
    assert [e.kind for e in cache.entries()] in ([], ["compiler"])
    assert not [p for p in (folder / "cpp").iterdir() if p.name.startswith((".pto-build-", ".pto-gone-"))]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with knobs.override(PTO_CACHE_DIR=str(blocked)):
        built = build.cached([unit()], [], [])
    assert built.ok and answer(built.path) == 42


# -- the compiler -------------------------------------------------------------------------------------------


def test_e2401_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with knobs.override(PTO_CXX=""), pytest.raises(DiagnosticError) as error:
        compiler.find()
    d = error.value.diagnostics[0]
    assert (d.code, d.message) == ("PTO-E2401", "no C++ compiler: none of g++, clang++, c++ found")
    assert "apt install" in d.help and "PTO_CXX" in d.help


def test_e2401_a_named_compiler_that_is_missing() -> None:
    with (
        knobs.override(PTO_CXX="no-such-c++"),
        pytest.raises(DiagnosticError, match=r"'no-such-c\+\+' of PTO_CXX"),
    ):
        compiler.find()


def test_e2401_a_compiler_that_is_too_old(tmp_path: Path) -> None:
    old = script(tmp_path / "old", "echo \"error: unrecognized option '-std=c++20'\" >&2; exit 1")
    with (
        knobs.override(PTO_CXX=str(old)),
        pytest.raises(DiagnosticError, match=r"does not compile C\+\+20: error:"),
    ):
        compiler.find()


def test_e2401_a_compiler_that_makes_nothing(tmp_path: Path) -> None:
    for text, why in (
        ("exit 0", "writes no file"),
        (
            """case "$*" in *--version*) exit 0 ;; esac
for o; do :; done; printf '#!/bin/sh\\nexit 3\\n' > "$o"
chmod +x "$o" """,
            "ends with status 3",
        ),
    ):
        fake = script(tmp_path / "fake", text)
        os.utime(fake, ns=(len(text), len(text)))
        with knobs.override(PTO_CXX=str(fake)), pytest.raises(DiagnosticError, match=why):
            compiler.find()


def test_a_compiler_that_reports_success_without_a_file(tmp_path: Path) -> None:
    fake = compiler.Compiler(("/bin/true",), "true 1.0", False)
    one = build.compile_units(fake, [unit()], [], [], tmp_path, "")
    two = build.compile_units(fake, [unit(), build.TranslationUnit("v.cpp", "")], [], [], tmp_path, "")
    for built in (one, two):
        assert not built.ok and "/bin/true reports success, but wrote no " in built.output


def test_a_compiler_may_come_with_options() -> None:
    real = compiler.find()
    with knobs.override(PTO_CXX=f"{real.command[0]} -DX=1"):
        assert compiler.find().command == (real.command[0], "-DX=1")


def test_flags_of_the_user_win(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(
        "#include <pto/pto-inst.hpp>\n__global__ AICORE void k(__gm__ int* y) {\n#ifdef MINE\n  y[0] = MINE;\n#endif\n}\n"
    )
    y = np.zeros(1, np.int32)
    for flags, n in (("-DMINE=1", 1), ("-DMINE=1  -UMINE -DMINE=2", 2)):  # the cache holds a kernel for each
        with knobs.override(PTO_CXXFLAGS=flags):
            assert compiler.find().flags[-len(flags.split()) :] == flags.split()
            pto.kernel(source, engine="cpp")(y)
        assert y[0] == n


def test_the_first_that_works_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("g++") or shutil.which("clang++")
    broken = script(tmp_path / "g++", "exit 1")
    places = {"g++": str(broken), "clang++": None, "c++": real}
    monkeypatch.setattr(shutil, "which", lambda name: places.get(name))
    with knobs.override(PTO_CXX=""):
        assert compiler.find().command == (real,)


def test_capacities_become_macros() -> None:
    assert compiler.arch_flags(profile("a3")) == ["-DPTO_NPU_ARCH_A2A3"]
    assert compiler.arch_flags(profile("cpu")) == []
    changed = profile("a5").override({"vec": 1024})
    assert compiler.arch_flags(changed) == ["-DPTO_NPU_ARCH_A5", "-DPTO_UBUF_SIZE_BYTES=1024u"]


# -- the headers --------------------------------------------------------------------------------------------


def test_headers_of_an_installed_package_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "site" / "pto" / "engine" / "cpp" / "compiler.py"
    module.parent.mkdir(parents=True)
    module.touch()
    monkeypatch.setattr(compiler, "__file__", str(module))
    find = compiler.include_dir.__wrapped__
    with pytest.raises(DiagnosticError, match=r"missing C\+\+ headers"):
        find()
    installed = tmp_path / "site" / "pto" / "include" / "pto" / "pto-inst.hpp"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert find() == tmp_path / "site" / "pto" / "include"


def test_the_wheel_has_the_headers_and_examples(tmp_path: Path) -> None:
    """The install rules copy every header to where `include_dir` looks, and the examples beside the package."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake")
    root = Path(__file__).parents[3]
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(x NONE)\n"
        + "\n".join(
            re.sub(
                r"native/include|(?<=DIRECTORY )examples|tests/(?:golden|sanitize)", rf"{root}/\g<0>", rule
            )
            for rule in re.findall(
                r"^ *install\(DIRECTORY.*?\)", (root / "CMakeLists.txt").read_text(), re.M | re.S
            )
        )
    )
    subprocess.run([cmake, "-S", str(tmp_path), "-B", str(tmp_path / "b")], check=True, capture_output=True)
    subprocess.run(
        [cmake, "--install", str(tmp_path / "b"), "--prefix", str(tmp_path / "out")],
        check=True,
        capture_output=True,
    )
    here = {
        p.relative_to(root / "native/include") for p in (root / "native/include").rglob("*.h*") if p.is_file()
    }
    there = tmp_path / "out" / "pto" / "include"
    assert {p.relative_to(there) for p in there.rglob("*.h*") if p.is_file()} == here and len(here) > 10
    assert (tmp_path / "out" / "pto" / "examples" / "12_race.pto").is_file()
    assert (tmp_path / "out" / "pto" / "errors" / "PTO-E2602_exception.txt").is_file()


def test_headers_are_read_again_only_when_they_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiler.headers_digest()
    monkeypatch.setattr(digest, "digest", lambda *_: pytest.fail("read again"))
    assert compiler.headers_digest() == found


@pytest.mark.parametrize("content", [b"", b"\x7fELF no library"], ids=["empty", "garbage"])
def test_something_else_in_the_place_of_a_library_is_built_again(folder: Path, content: bytes) -> None:
    text = (
        "func.func @k(%p: !pto.ptr<i32>) {\n  %c0 = arith.constant 0 : index\n"
        "  %n = arith.constant 7 : i32\n  pto.store_scalar %n, %p[%c0] : !pto.ptr<i32>, i32\n  return\n}\n"
    )
    first = pto.kernel(pto.parse(text), engine="cpp")
    path = Path(first.built.path)  # type: ignore[attr-defined]
    path.unlink()
    path.write_bytes(content)
    out = np.zeros(1, np.int32)
    pto.kernel(pto.parse(text), engine="cpp")(out)
    assert out[0] == 7 and path.stat().st_size > 1000


def test_a_full_cache_is_like_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = cache.lock

    def full(where: Path, name: str) -> Any:
        if where == cache.folder():
            raise OSError(28, "No space left on device")
        return lock(where, name)

    monkeypatch.setattr(cache, "lock", full)
    built = build.cached([unit(5)], [], [])
    assert built.ok and not built.path.startswith(str(folder)) and answer(built.path) == 5


def test_a_quote_that_nothing_closes_in_the_name_of_a_compiler() -> None:
    with knobs.override(PTO_CXX='g++ "-O2'), pytest.raises(DiagnosticError) as e:
        compiler.find()
    assert [d.code for d in e.value.diagnostics] == ["PTO-E2401"]
    assert "no closing quotation" in str(e.value)
