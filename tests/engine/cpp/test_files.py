"""C++ written by hand and libraries of `pto build` as kernels: from Python and from the command line."""

from __future__ import annotations

import ctypes
import io
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests import made

import pto
from pto import DiagnosticError, cache
from pto.cli.main import main
from pto.diag import Source
from pto.engine.cpp import compiler, handwritten
from pto.engine.cpp.files import FileKernel

EXAMPLES = Path(__file__).parents[3] / "examples"
KERNEL = """\
#include "scale.hpp"
/// x * factor + n, with one block per element.
__global__ AICORE void scale(__gm__ float* x, const uint8_t *raw, /* how */ int32_t n, half h, uint64_t big = 0) {
  if (n < 0) set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  if (n < -1) wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID3);
  x[get_block_idx()] = FACTOR * x[get_block_idx()] + n + float(h) + raw[0] + float(big >> 60);
}
"""
HEADER = """\
#pragma once
#include <pto/pto-inst.hpp>
using namespace pto;
#define FACTOR 3
"""
TWO = """\
#include <pto/pto-inst.hpp>
__global__ AICORE void first(__gm__ bfloat16_t* x, float add) { x[0] = bfloat16_t(float(x[0]) + add); }
struct Shape { int64_t rows; };
__global__ AICORE void second(__gm__ Shape* s, pto::PadValue pad, bool yes) { s->rows += int(pad) + (yes ? 10 : 0); }
__global__ AICORE void third(Shape s) {}
__global__ AICORE void none() {}
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return made.written({"scale.hpp": HEADER, "k.cpp": KERNEL, "two.cpp": TWO})


@pytest.fixture(scope="module")
def scale(folder: Path) -> Any:
    return pto.kernel(str(folder / "k.cpp"))


@pytest.fixture(scope="module")
def library(folder: Path) -> str:
    out = folder / "two.so"
    assert main(["build", str(folder / "two.cpp"), "-o", str(out), "-q", "--arch", "a5"]) == 0
    return str(out)


def call(k: Any, **options: Any) -> list[float]:
    x = np.arange(4, dtype=np.float32)
    k(x, np.array([1], np.int16), 2, 0.5, 1 << 63, blocks=3, **options)
    return x.tolist()


def error(k: Any, *args: Any) -> Any:
    with pytest.raises(DiagnosticError) as raised:
        k(*args)
    return raised.value.diagnostics[0]


# -- C++ ----------------------------------------------------------------------------------------------------


def test_a_file_is_called_like_every_kernel(scale: Any) -> None:
    assert call(scale) == call(scale, threads=2) == [11.5, 14.5, 17.5, 3.0]
    assert [f"{a.name}: {a.type}" for a in scale.args] == [
        "x: !pto.ptr<f32>", "raw: void*", "n: i32", "h: f16", "big: ui64"
    ]  # fmt: skip
    assert scale.name == "scale" and scale.profile.name == "a2a3"


@pytest.mark.parametrize(
    ("args", "code", "word", "under"),
    [
        ((), "PTO-E2011", "expected 5 arguments for 'scale', got 0", "scale"),
        (
            (np.zeros(1, np.float16), np.zeros(1), 1, 1.0, 0),
            "PTO-E2012",
            "expected an array of f32 for argument 'x'",
            "x",
        ),
        ((1.0, np.zeros(1), 1, 1.0, 0), "PTO-E2012", "expected an array of f32 for argument 'x'", "x"),
        ((np.zeros(1, np.float32), 7, 1, 1.0, 0), "PTO-E2012", "expected an array for argument 'raw'", "raw"),
        ((np.zeros(1, np.float32), np.zeros(1), 1 << 40, 1.0, 0), "PTO-E2013", "'n' does not fit i32", "n"),
        (
            (np.zeros(1, np.float32), np.zeros(1), 1.5, 1.0, 0),
            "PTO-E2013",
            "expected an integer for argument 'n'",
            "n",
        ),
    ],
)
def test_wrong_arguments_are_shown_in_the_source(
    scale: Any, args: Any, code: str, word: str, under: str
) -> None:
    d = error(scale, *args)
    assert d.code == code and word in d.message
    assert d.span is not None and d.span.source.text[d.span.start : d.span.end] == under
    assert d.span.place[0] == 3


def test_a_file_is_compiled_once_and_again_when_an_include_changes(folder: Path, tmp_path: Path) -> None:
    for name in ("k.cpp", "scale.hpp"):
        (tmp_path / name).write_text((folder / name).read_text())
    path = tmp_path / "k.cpp"
    first = FileKernel(str(path))
    assert not first.built.cached and FileKernel(str(path)).built.cached
    (tmp_path / "scale.hpp").write_text(HEADER.replace("FACTOR 3", "FACTOR 100"))
    again = FileKernel(str(path))
    assert not again.built.cached and call(again)[2] == 211.5 and call(first)[2] == 17.5
    (tmp_path / "scale.hpp").write_text(HEADER)
    assert FileKernel(str(path)).built.path == first.built.path
    assert not [p for p in cache.folder().iterdir() if p.name.startswith(".build")]


def test_checks_are_compiled_in_when_asked_for(folder: Path, scale: Any) -> None:
    raw, x = np.zeros(1, np.uint8), np.zeros(1, np.float32)
    scale(x, raw, -1, 0.0, 0)  # unchecked: flags do nothing
    checked = pto.kernel(str(folder / "k.cpp"), "scale", checked=True)
    checked(x, raw, 1, 0.0, 0)
    left = error(checked, x, raw, -1, 0.0, 0)
    assert left.code == "PTO-E0805" and "set_flag(PIPE_MTE2, PIPE_V, 0)" in left.message
    unset = error(checked, x, raw, -2, 0.0, 0)
    assert unset.code == "PTO-E2104" and "wait_flag(PIPE_V, PIPE_MTE3, 3)" in unset.message


def test_the_target_that_the_file_names(kept_place: Path) -> None:
    path = kept_place / "k.cpp"
    text = "#include <pto/pto-inst.hpp>\n// target: a5\n__global__ AICORE void k(__gm__ int32_t* x) {\n" + (
        "#ifdef PTO_NPU_ARCH_A5\n  *x = 5;\n#else\n  *x = 3;\n#endif\n}\n"
    )
    path.write_text(text)
    for target, number in ((None, 5), ("a3", 3)):
        x = np.zeros(1, np.int32)
        pto.kernel(str(path), target=target)(x)
        assert x[0] == number
    assert handwritten.target_of("// target: zx\n") is None


def test_what_compilers_of_devices_define(kept_place: Path) -> None:
    """Kernels ask for the core before they include anything."""
    path = kept_place / "guarded.cpp"
    path.write_text("""\
#if (__CCE_AICORE__ == 220 && defined(__DAV_C220_VEC__)) || (__CCE_AICORE__ == 310 && defined(__DAV_C310_VEC__))
#include "pto/pto-inst.hpp"
__global__ AICORE void mark(__gm__ int32_t* out) { out[0] = __CCE_AICORE__; }
#endif
""")
    out = np.zeros(1, np.int32)
    for target, number in (("a2a3", 220), ("a5", 310)):
        assert pto.kernel(str(path), target=target).run(out).ok
        assert out[0] == number


def test_what_the_assembler_writes_names_its_target() -> None:
    text = pto.emit_cpp(pto.parse("func.func @k() { return }"), target="a5")
    assert handwritten.target_of(text) == "a5"


def test_names_of_parameters() -> None:
    text = 'extern "C" __global__ void k(__gm__ T<int, 3> *a, int = 3, void (*f)(int, int), // b,\n const X& c) {}'
    assert [n for n, _ in handwritten.parameters(text, "k")] == ["a", "arg2", "int", "c"]
    assert handwritten.parameters("__global__ AICORE void k(void) {}", "k") == []


# -- libraries ----------------------------------------------------------------------------------------------


def test_a_library_says_what_it_holds(library: str) -> None:
    first = pto.kernel(library, "first")
    assert first.profile.name == "a5"
    x = np.ones(1, ml_dtypes.bfloat16)
    first(x, 0.5)
    assert x[0] == 1.5
    assert "expected an array of bf16 for argument 'x'" in error(first, np.ones(1, np.float32), 0.5).message
    rows = np.zeros(1, np.int64)
    pto.kernel(library, "second")(rows, 3, True)
    assert rows[0] == 13
    pto.kernel(library, "none")()
    assert error(pto.kernel(library, "third"), 1).code == "PTO-E2014"


def test_e2405_libraries_that_cannot_be_run(library: str, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    (tmp_path / "o.cpp").write_text("int x;\n")
    command = [*compiler.find().command, "-shared", "-fPIC", str(tmp_path / "o.cpp"), "-o", str(other)]
    subprocess.run(command, check=True)
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF and no more")
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        (str(other), {}, "missing description of kernels"),
        (str(broken), {}, "cannot load"),
        (library, {"target": "a3"}, "to be built for a2a3, got a5"),
        (library, {"checked": True}, "was built without run-time checks"),
        (library, {"auto": True}, "was built without auto mode"),
    )
    for path, options, word in cases:
        with pytest.raises(DiagnosticError) as raised:
            pto.kernel(path, "first", **options)
        (d,) = raised.value.diagnostics
        assert d.code == "PTO-E2405" and word in d.message and "pto build" in d.help


def test_a_library_that_pto_build_did_not_make_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To load it would be to run its constructors. A name that the system would search for is a path here."""
    canary, other = tmp_path / "canary", tmp_path / "other.so"
    text = f"""#include <cstdio>
extern "C" const char* pto_librarian() {{ return "{{}}"; }}
__attribute__((constructor)) static void run() {{ std::fclose(std::fopen("{canary}", "w")); }}
"""
    (tmp_path / "o.cpp").write_text(text)
    command = [*compiler.find().command, "-shared", "-fPIC", str(tmp_path / "o.cpp"), "-o", str(other)]
    subprocess.run(command, check=True)
    monkeypatch.chdir(tmp_path)
    for path in (str(other), "other.so"):
        assert main(["run", path, "--", "f32:4"]) == 1
        assert "PTO-E2405" in capsys.readouterr().err and not canary.exists()
        with pytest.raises(DiagnosticError, match="missing description of kernels"):
            pto.kernel(path)
    assert not canary.exists()
    ctypes.CDLL(str(other))
    assert canary.exists()  # it would have


def test_a_library_that_was_built_again(tmp_path: Path) -> None:
    source, out = tmp_path / "k.cpp", str(tmp_path / "k.so")
    for number in (1, 2):
        source.write_text(
            f"#include <pto/pto-inst.hpp>\n__global__ AICORE void k(__gm__ int32_t* x) {{ *x = {number}; }}\n"
        )
        assert main(["build", str(source), "-q"]) == 0
        x = np.zeros(1, np.int32)
        pto.kernel(out)(x)
        assert x[0] == number


def test_a_library_of_a_program_has_its_types(tmp_path: Path) -> None:
    program = tmp_path / "k.pto"
    program.write_text("""module attributes {pto.target_arch = "a5"} {
func.func @put(%out: !pto.ptr<i32>, %v: !pto.tensor_view<2x?xf32>, %__pypto_spmd_block_idx: i32)
    attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  pto.store_scalar %__pypto_spmd_block_idx, %out[%c0] : !pto.ptr<i32>, i32
  return
}
}
""")
    assert main(["build", str(program), "-q"]) == 0
    k = pto.kernel(str(tmp_path / "k.so"))
    out = np.zeros(1, np.int32)
    k(out, np.zeros((2, 4), np.float32), blocks=3)
    assert k.profile.name == "a5" and out[0] == 2
    assert error(k, out, np.zeros((3, 4), np.float32)).code == "PTO-E2015"


def test_a_pair_that_the_assembler_wrote(kept_place: Path) -> None:
    """Its cube and vector side are functions of their own; the kernel has the name that the program's has."""
    program = (EXAMPLES / "09_fifo_push_pop.pto").read_text()
    bare = program.replace(", pto.entry", "").replace("pto.entry, ", "")
    other = bare.replace("exp_product_aic", "matrix").replace("exp_product_aiv", "activation")
    marked, plain, by_kind = (pto.emit_cpp(pto.parse(t), insert_sync=True) for t in (program, bare, other))
    assert "__global__" in marked and "__global__" not in plain
    for text in (marked, plain):
        assert handwritten.pairs(text) == {"exp_product": ("exp_product_aic", "exp_product_aiv")}
        assert text[slice(*handwritten.place_of(text, "exp_product") or ())] == "exp_product_aic"
    made, _ = handwritten.entries(Source("k.cpp", marked), "exp_product_aiv")
    assert (made[0].name, made[0].cube, made[0].vector) == (
        "exp_product_aiv",
    ) * 3  # one side alone, if wanted

    path = kept_place / "k.cpp"
    path.write_text(by_kind)
    assert main(["build", str(path), "-q"]) == 0
    k = pto.kernel(str(kept_place / "k.so"))
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    y, expected = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    k(a, b, y)
    of_program = pto.kernel(pto.parse(other), engine="reference")
    of_program(a, b, expected)
    assert np.array_equal(y, expected)
    assert k.name == of_program.name == "matrix"


def test_two_functions_that_are_no_pair() -> None:
    cube, vector = (f"void {n}(int x) {{\n#ifdef __DAV_{n}__\n#endif\n}}\n" for n in ("CUBE", "VEC"))
    plain = "AICORE " + cube + "AICORE " + vector
    assert handwritten.pairs(plain) == {"CUBE": ("CUBE", "VEC")}
    for text in (
        plain.replace("AICORE", "__global__ AICORE"),  # two kernels of a user
        plain.replace("int x", "float x", 1),
        plain + "AICORE void third() {}\n",
        plain + "__global__ AICORE void k() { CUBE(1); VEC(1); }\n",
        plain.replace("_CUBE__", "_VEC__"),
        "AICORE void k_aic(int);\nAICORE void k_aiv(int) {}\n",
    ):
        assert not handwritten.pairs(text)
    marked = "__global__ void k_aic() {}\n__global__ void k_aiv() {}\n"
    assert [e.name for e in handwritten.entries(Source("k.cpp", marked), None)[0]] == ["k"]
    marked += "__global__ void other() {}\n"  # runs as it is
    assert [e.mix for e in handwritten.entries(Source("k.cpp", marked), None)[0]] == [
        "k_aic",
        "k_aiv",
        "other",
    ]


# -- refusals -----------------------------------------------------------------------------------------------


def test_wrong_uses(folder: Path) -> None:
    two = str(folder / "two.cpp")
    with pytest.raises(DiagnosticError, match="several kernels") as raised:
        pto.kernel(two)
    assert "first, second, third, none" in raised.value.diagnostics[0].help
    with pytest.raises(DiagnosticError, match="no kernel 'frist'"):
        pto.kernel(two, "frist")
    with pytest.raises(DiagnosticError, match="cannot read"):
        pto.kernel(str(folder / "missing.so"))
    with pytest.raises(ValueError, match="engine 'cpp', 'traced' only"):
        pto.kernel(two, "first", engine="reference")
    with pytest.raises(TypeError, match=r"expected a module, a program as a path or text, .* got int"):
        pto.kernel(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="checked=True is for engine 'cpp'"):
        pto.kernel(pto.parse("func.func @k() { return }"), checked=True)
    with pytest.raises(DiagnosticError, match=r"cannot read .* as a PTO program: it is C\+\+"):
        pto.parse(two)


# -- the command line ---------------------------------------------------------------------------------------


def test_pto_run(folder: Path, library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.npy"
    k = str(folder / "k.cpp")
    arguments = ["--", f"f32:4={out}", "u8:1", "2", "0.5", "0"]
    assert main(["run", k, "--blocks", "3", "--arch", "a5", "--capacity", "vec=65536", *arguments]) == 0
    assert "@scale: ok (3 blocks, target a5" in capsys.readouterr().out
    assert np.load(out).tolist() == [2.5, 2.5, 2.5, 0.0]
    assert main(["run", library, "--entry", "first", "--print", "--", "bf16:1", "1.25"]) == 0
    assert "%x =\n[1.25]" in capsys.readouterr().out
    assert main(["run", k, "--checked", "--", "f32:1", "u8:1", "-1", "0", "0"]) == 1
    assert "error[PTO-E0805]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--engine", "reference"], "it runs on engine cpp, traced only"),
        (["--engine", "cpp", "--sanitize", "all"], "engine cpp has no --sanitize"),
        (["--engine", "cpp", "--memory-map", "m.html"], "engine cpp has no --memory-map"),
        (
            ["--engine", "cpp", "--schedule", "seed=0", "--max-steps", "3"],
            "engine cpp has no --max-steps, --schedule",
        ),
    ],
)
def test_options_that_c_plus_plus_does_not_have(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], word: str
) -> None:
    assert main(["run", str(folder / "k.cpp"), *options]) == 1
    assert (
        f"error[PTO-E2403]: {word}" in capsys.readouterr().err or word in "it runs on engine cpp, traced only"
    )


FLAGS = """func.func @k(%x: !pto.ptr<i32>, %go: i1) attributes {pto.entry} {
  BODY
  return
}
func.func @other() attributes {pto.entry} {
  pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
  return
}
"""
SET, WAIT = (f"pto.{verb}_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]" for verb in ("set", "wait"))


def test_flags_of_a_program_on_engine_cpp() -> None:
    """A program on which the reference engine is stuck is an error, one that runs through a warning; other
    entries do not count."""
    x = np.zeros(1, np.int32)
    with pytest.raises(DiagnosticError) as raised:
        pto.kernel(pto.parse(FLAGS.replace("BODY", WAIT)), "k", engine="cpp")
    assert [d.code for d in raised.value.diagnostics] == ["PTO-E0803"]
    exact = pto.kernel(pto.parse(FLAGS.replace("BODY", WAIT)), "k", engine="reference").run(x, 1)
    assert [d.code for d in exact.diagnostics] == ["PTO-E2104"]
    for body, code in ((SET, "PTO-E0805"), (f"scf.if %go {{\n{SET}\n}}\n{WAIT}", "PTO-E0808")):
        run = pto.kernel(pto.parse(FLAGS.replace("BODY", body)), "k", engine="cpp").run(
            x, 1, out=io.StringIO()
        )
        assert run.ok and [(d.code, d.severity) for d in run.diagnostics] == [(code, "warning")]
    run = pto.kernel(pto.parse(FLAGS.replace("BODY", f"{SET}\n{WAIT}")), "k", engine="cpp").run(x, 1)
    assert run.diagnostics == []
