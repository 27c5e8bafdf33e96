"""The library of code that is the same in every kernel: its dependencies, and that nothing depends on it."""

from __future__ import annotations

import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.made import compiled
from tests.sampling import EVERY, some

import pto
from pto import cache, knobs
from pto.engine.cpp import build, compiler
from pto.isa.profiles import PROFILES

ROOT = Path(__file__).parents[3]
KERNELS = runpy.run_path(str(ROOT / "examples" / "kernels" / "reference.py"))["KERNELS"]
USES = """
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __attribute__((visibility("default"))) void twice(float* x, float* y) {
  using View = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
  View in(x), out(y);
  Tile<TileType::Vec, float, 16, 64> tile;
  TASSIGN(tile, 0);
  TLOAD(tile, in);
  TADD(tile, tile, tile);
  TSTORE(out, tile);
}
"""


def found() -> compiler.Common:
    common = compiler.common(compiler.find())
    if common is None and not compiler.find().vectors:
        pytest.skip("no library for the vectors of this processor")
    assert common is not None, "the library is that of other headers: make setup"
    return common


def test_the_package_has_it() -> None:
    assert Path(found().path).is_file()


def test_neither_target_nor_checks_change_it(tmp_path: Path) -> None:
    def assembly(*flags: str) -> str:
        made = tmp_path / "common.s"
        command = [
            *compiler.find().command,
            "-std=c++20",
            "-O0",
            "-fPIC",
            "-S",
            f"-I{compiler.include_dir()}",
        ]
        source = ROOT / "native" / "common" / "kernels.cpp"
        assert compiled([*command, *flags], source, made).returncode == 0
        return re.sub(r"\.L([A-Z]*)\d+", r".L\1", made.read_text())  # labels count parsed constructs

    plain = assembly()
    assert "copy_matrix" in plain and "map_run" in plain and "run_launch" in plain
    assert not EVERY or assembly("-DPTO_NPU_ARCH_A2A3") == plain
    assert assembly("-DPTO_NPU_ARCH_A5", "-DPTO_CHECKED") == plain


def test_it_is_only_for_the_headers_that_it_was_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    found()
    monkeypatch.setattr(compiler, "headers_digest", lambda: "other headers")
    assert compiler.common(compiler.find()) is None


def test_kernels_get_its_code_from_it(tmp_path: Path) -> None:
    common, chosen = found(), compiler.find()
    source = tmp_path / "kernel.cpp"
    source.write_text(USES)
    command = [*chosen.command, *chosen.flags, f"-I{compiler.include_dir()}", "-shared", compiler.LINKED]
    command += ["-Wl,--no-undefined", str(source), "-o", str(tmp_path / "kernel.so")]
    alone = compiler.call(command)
    missing = set(re.findall(r"pto::detail::(\w+)", alone.stderr))
    assert alone.returncode and {"copy_matrix", "describe_tile", "map_runs"} <= missing
    assert compiler.call([*command, common.path]).returncode == 0


def test_the_same_results_with_headers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies, products, exponentials, sums and both kinds of core, compiled both ways."""
    found()
    case = KERNELS["flash_attention"]

    def run() -> list[Any]:
        args, _ = case.make(np.random.default_rng(7))
        pto.kernel(pto.parse(case.path), case.entry, engine="cpp")(*args, blocks=case.blocks)
        return args

    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        linked = run()
        monkeypatch.setattr(compiler, "common", lambda chosen: None)
        alone = run()
        assert len([e for e in cache.entries() if e.kind == "kernel"]) == 2  # under two keys
    _, expected = case.make(np.random.default_rng(7))
    for index in expected:
        assert linked[index].any() and linked[index].tobytes() == alone[index].tobytes()


def test_every_profile_and_checks_link() -> None:
    found()
    for name in some(PROFILES, 3):
        flags = [*compiler.arch_flags(PROFILES[name]), "-DPTO_CHECKED", compiler.TILES_ONLY, "-O0"]
        assert build.cached([build.TranslationUnit("kernel.cpp", USES)], [], flags).ok, name


def test_a_damaged_library_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "libdamaged.a"
    monkeypatch.setattr(compiler, "common", lambda chosen: compiler.Common(str(damaged), "damaged"))
    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        for k, content in enumerate((b"", b"!<arch>\n", b"no library at all")):
            damaged.write_bytes(content)
            flags = [compiler.TILES_ONLY, "-O0", f"-DNUMBER={k}"]
            assert build.cached(
                [build.TranslationUnit("kernel.cpp", 'extern "C" int one() { return 1; }')], [], flags
            ).ok


def test_a_mistake_in_a_source_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found()
    calls: list[list[str]] = []
    real = compiler.call
    monkeypatch.setattr(
        compiler, "call", lambda command, *more: calls.append(command) or real(command, *more)
    )
    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        compiler.find()
        calls.clear()
        built = build.cached([build.TranslationUnit("kernel.cpp", "int x = ;")], [], [])
    assert not built.ok and "kernel.cpp:1:9" in built.output and len(calls) == 1


def test_a_compiler_whose_programs_cannot_run_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for temporary files without programs: their answer is not cached for good."""
    real = compiler.call

    def call(command: list[str], *more: Any) -> Any:
        if command[0].endswith("check"):
            raise PermissionError
        return real(command, *more)

    with knobs.override(PTO_CACHE_DIR=str(tmp_path)):
        compiler._probe.cache_clear()
        monkeypatch.setattr(compiler, "call", call)
        assert compiler.find().vectors == ""
        assert not cache.entries()
        monkeypatch.undo()
        compiler._probe.cache_clear()
        chosen = compiler.find()
        assert [e.kind for e in cache.entries()] == ["compiler"]
    compiler._probe.cache_clear()
    assert chosen.vectors == compiler.find().vectors


def test_headers_can_be_included_alone() -> None:
    root = compiler.include_dir()
    headers = sorted(
        p.relative_to(root).as_posix() for f in ("core", "ops") for p in (root / "pto" / f).glob("*.hpp")
    )
    headers.remove("pto/ops/instances.hpp")  # for the library, and those who link it
    assert len(headers) > 40

    def problem(header: str) -> str:
        command = [*compiler.find().command, "-std=c++20", "-fsyntax-only", f"-I{root}"]
        return compiled(command, f'#include "{header}"\n').stderr

    each_alone = some(headers, 5, by=lambda h: h.rpartition("/")[0])
    with ThreadPoolExecutor(2) as pool:
        problems = zip(each_alone, pool.map(problem, each_alone), strict=True)
        assert {h: text[:300] for h, text in problems if text} == {}
