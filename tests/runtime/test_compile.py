"""Kernels and orchestrations become libraries: their exports, when they are built again, and errors."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pto import knobs, runtime
from pto.diag import Diagnostic, DiagnosticError
from pto.engine.cpp import compiler
from pto.runtime.compile import Ahead, CompiledJob, Job, _listed, compile_all
from pto.runtime.elf import exports

from .folder_kit import KERNEL, call_kernel

#: Small kernels without our tile instructions, so that compiling takes little.
SCALE = """\
#include <cstdint>
#include "factor.h"
extern "C" void kernel_entry(int64_t* args) {
  auto* x = reinterpret_cast<float*>(args[0]);
  x[0] *= FACTOR;
}
"""

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return file


@pytest.fixture
def own_cache(tmp_path: Path) -> Iterator[Path]:
    with knobs.override(PTO_CACHE_DIR=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def _job(source: str, **more: str) -> Job:
    return Job(
        Path(source).stem,
        source,
        more.pop("core_type", "aiv"),
        more.pop("runtime", "host_build_graph"),
        **more,
    )


def _errors(*jobs: Job) -> list[Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        compile_all(jobs)
    return caught.value.diagnostics


# -- behaviour of a library ----------------------------------------------------------------------------------


def test_a_kernel_runs_on_the_core_of_the_caller(write: Write) -> None:
    """Section 1: one exported kernel_entry that gets 64-bit slots."""
    library = compile_all([_job(write("add.cpp", KERNEL.replace("OP", "+")))])[0]
    x, y, z = np.arange(5, dtype=np.float32), np.full(5, 10, np.float32), np.zeros(6, np.float32)
    call_kernel(library.path, [x.ctypes.data, y.ctypes.data, z.ctypes.data, 5])
    assert z.tolist() == [10, 11, 12, 13, 14, 0]


def test_all_libraries_agree_on_the_state_of_a_core(write: Write) -> None:
    made = compile_all(
        [_job(write(f"{n}.cpp", KERNEL.replace("OP", op))) for n, op in (("add", "+"), ("mul", "*"))]
    )
    numbers: list[int] = []
    for library in made:
        function = ctypes.CDLL(library.path).pto2_kernel_abi
        function.restype = ctypes.c_uint64
        numbers.append(function())
    assert numbers[0] == numbers[1] != 0


TILES = """\
#include <cstdint>
#include <pto/pto-inst.hpp>
using namespace pto;
#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__ [aicore]
#endif
extern "C" __aicore__ __attribute__((always_inline)) void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<1, 1, 1, 16, 1>>;
  using T = Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, -1, -1>;
  Global x(reinterpret_cast<__gm__ float*>(args[0])), y(reinterpret_cast<__gm__ float*>(args[1]));
  T a(16, 16), b(16, 16);
  TASSIGN(a, 0x0);
  TASSIGN(b, 0x10000);
  TLOAD(a, x);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(b, a, 1.0f);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(y, b);
}
"""


def test_tile_instructions_in_a_source_as_users_write_it(write: Write) -> None:
    """Section 3 of the examples: the fallback of __aicore__ must never be reached."""
    library = compile_all([_job(write("tiles.cpp", TILES))])[0]
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    call_kernel(library.path, [x.ctypes.data, y.ctypes.data])
    assert np.array_equal(y, x + 1)


def test_guards_of_a_kind_of_core_follow_the_core_type(write: Write) -> None:
    text = """\
#include <cstdint>
extern "C" void kernel_entry(int64_t* args) {
  args[0] = 0;
#ifdef __DAV_CUBE__
  args[0] += 1;
#endif
#ifdef __DAV_VEC__
  args[0] += 2;
#endif
}
"""
    source = write("guarded.cpp", text)
    for core_type, expected in (("aic", 1), ("aiv", 2)):
        path = compile_all([_job(source, core_type=core_type)])[0].path
        function, slots = ctypes.CDLL(path).pto2_kernel, (ctypes.c_int64 * 1)(-1)
        function(slots, None)
        assert slots[0] == expected


@pytest.mark.parametrize(("flags", "number"), [("-O0", 0), ("-O0 -DNDEBUG", 1)])
def test_an_orchestration_has_assertions(write: Write, flags: str, number: int) -> None:
    """Section 1.1: NDEBUG is not defined for orchestrations, unless the user does it."""
    text = '#include <cassert>\nextern "C" int go() {\n#ifdef NDEBUG\nreturn 1;\n#endif\nreturn 0; }\n'
    with knobs.override(PTO_CXXFLAGS=flags):
        path = compile_all([_job(write("o.cpp", text), core_type="", entry="go")])[0].path
    assert ctypes.CDLL(path).go() == number


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the counter is there")
def test_an_orchestration_may_read_the_counter_of_the_device(write: Write) -> None:
    """Section 2 of the examples: one has aarch64 assembler for it. It goes on, and changes nothing else."""
    text = """\
#include <cstdint>
static inline uint64_t ticks() { uint64_t t; asm volatile("mrs %0, cntvct_el0" : "=r"(t)); return t; }
extern "C" uint64_t go(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t first = ticks(), kept = a * 3 + b * 5 + c * 7, later = first;
  while (later == first) later = ticks();
  return later - first < (uint64_t(1) << 32) ? kept : 0;
}
"""
    if compiler.find().is_clang:
        pytest.skip("g++ only")
    path = compile_all([_job(write("o.cpp", text), core_type="", entry="go")])[0].path
    function = ctypes.CDLL(path).go
    function.argtypes, function.restype = [ctypes.c_uint64] * 3, ctypes.c_uint64
    assert function(1 << 40, 2, 3) == 3 * (1 << 40) + 10 + 21


# -- .pto ----------------------------------------------------------------------------------------------------

#: y = x * s for 16 rows of 16, given by pointers and a number.
PROGRAM = """\
!tile = !pto.tile_buf<vec, 16x16xf32>
!view = !pto.tensor_view<16x16xf32>
!window = !pto.partition_tensor_view<16x16xf32>
func.func @scale(%x: !pto.ptr<f32>, %s: f32, %y: !pto.ptr<f32>) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %vx = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : !view
  %vy = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !view
  %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
  %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
  %t = pto.alloc_tile : !tile
  pto.tload ins(%px : !window) outs(%t : !tile)
  pto.tmuls ins(%t, %s : !tile, f32) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%py : !window)
  return
}
"""


def test_a_program_takes_addresses(write: Write) -> None:
    scale = runtime.kernel(write("scale.pto", PROGRAM), "in float out", entry="scale")
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    runtime.run(lambda rt: rt.add_task(scale, x, 3.0, y), runtime="host_build_graph")
    assert np.array_equal(y, x * 3)


def test_a_program_takes_tensors_from_where_they_start(write: Write) -> None:
    """Section 1: the address of a tensor slot is buffer.addr + start_offset elements."""
    scale = runtime.kernel(write("scale.pto", PROGRAM), "in float out")
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    runtime.run(lambda rt: rt.submit(scale, x[20:276], 3.0, y[40:296]))
    assert np.array_equal(y[40:296], x[20:276] * 3) and not y[:40].any() and not y[296:].any()


def test_programs_that_are_wrong(write: Write) -> None:
    broken = _errors(_job(write("broken.pto", "func.func @f( {")))[0]
    assert broken.span is not None and broken.span.source.name.endswith("broken.pto")
    kind = PROGRAM.replace("{pto.entry}", "{pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}")
    other = _errors(_job(write("vector.pto", kind), core_type="aic"))[0]
    assert other.code == "PTO-E2603" and "runs on a vector core" in other.message
    assert _errors(_job(write("scale.pto", PROGRAM), entry="scala"))[0].code == "PTO-E2001"


#: x += x for a view, whose size is that of the type or of the tensor.
VIEW = """\
!view = !pto.tensor_view<SIZExf32>
!window = !pto.partition_tensor_view<16x16xf32>
!tile = !pto.tile_buf<vec, 16x16xf32>
func.func @twice(%x: !view) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %p = pto.partition_view %x, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !window
  %t = pto.alloc_tile : !tile
  pto.tload ins(%p : !window) outs(%t : !tile)
  pto.tadd ins(%t, %t : !tile, !tile) outs(%t : !tile)
  pto.tstore ins(%t : !tile) outs(%p : !window)
  return
}
"""


def test_a_view_takes_shape_and_strides_of_its_tensor(write: Write) -> None:
    """A window of 16 columns in a buffer with rows of 20, from its row 1 and column 2 on."""
    twice = runtime.kernel(write("twice.pto", VIEW.replace("SIZE", "?x?")), "inout")
    x = np.ones((18, 20), np.float32)
    runtime.run(lambda rt: rt.submit(twice, rt.external(x).view((16, 16), (1, 2))))
    expected = np.ones((18, 20), np.float32)
    expected[1:17, 2:18] = 2
    assert np.array_equal(x, expected)


def test_a_view_of_a_fixed_size_takes_an_address(write: Write) -> None:
    """The rest follows from its type: rows of 20, of which the kernel takes 16 columns."""
    twice = runtime.kernel(write("twice.pto", VIEW.replace("SIZE", "18x20")), "inout")
    x = np.ones((18, 20), np.float32)
    runtime.run(lambda rt: rt.add_task(twice, x), runtime="host_build_graph")
    expected = np.ones((18, 20), np.float32)
    expected[:16, :16] = 2
    assert np.array_equal(x, expected)


# -- the cache -----------------------------------------------------------------------------------------------


def test_a_library_is_built_again_when_what_it_includes_has_changed(write: Write, own_cache: Path) -> None:
    source = write("scale.cpp", SCALE)
    values: list[tuple[float, bool]] = []
    for factor in ("2", "2", "3", "2"):
        write("factor.h", f"#define FACTOR {factor}\n")
        library = compile_all([_job(source)])[0]
        x = np.ones(1, np.float32)
        call_kernel(library.path, [x.ctypes.data])
        values.append((float(x[0]), library.cached))
    assert values == [(2.0, False), (2.0, True), (3.0, False), (2.0, True)]


def test_other_names_of_files(write: Write, own_cache: Path) -> None:
    """Blanks and quotes in names, also of included files."""
    source = write('a "b"/it is $5.cpp', SCALE.replace("factor.h", "the factor.h"))
    write('a "b"/the factor.h', "#define FACTOR 4\n")
    assert not compile_all([_job(source)])[0].cached
    assert compile_all([_job(source)])[0].cached
    write('a "b"/the factor.h', "#define FACTOR 5\n")
    assert not compile_all([_job(source)])[0].cached


def test_a_kernel_is_the_same_wherever_its_folder_lies(write: Write, own_cache: Path) -> None:
    """A copy of a folder finds the libraries of the original; a copy with another header does not."""
    made: list[tuple[bool, str]] = []
    for name, factor in (("one", 6), ("two", 6), ("three", 7)):
        source = write(f"{name}/aiv/scale.cpp", SCALE.replace("factor.h", "../factor.h"))
        write(f"{name}/factor.h", f"#define FACTOR {factor}\n")
        library = compile_all([_job(source)])[0]
        made.append((library.cached, library.path))
    assert [cached for cached, _ in made] == [False, True, False]
    assert made[0][1] == made[1][1] != made[2][1]


def test_variables_of_a_library_are_its_own(write: Write, own_cache: Path) -> None:
    """Inline variables of an orchestration are not unique symbols: those are shared by all libraries of the
    process, and keep a library loaded for ever."""
    source = write("o.cpp", 'inline int counter = 0;\nextern "C" int go() { return ++counter; }\n')
    library = compile_all([Job("orchestration", source, "", "host_build_graph", entry="go")])[0]
    assert {"counter", "go"} <= exports(library.path)


def test_a_compiler_is_asked_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler._probe.cache_clear()
    first = compiler.find()
    compiler._probe.cache_clear()
    monkeypatch.setattr(compiler, "call", lambda *_: pytest.fail("asked again"))
    assert compiler.find() == first
    compiler._probe.cache_clear()


def test_make_rules_are_read_as_compilers_write_them() -> None:
    assert _listed("x: a.h \\\n  b\\ c.h d$$e.h \\\n f\\#g.h\n") == ["a.h", "b c.h", "d$e.h", "f#g.h"]


def test_a_kernel_may_use_what_comes_with_the_simulator(write: Write) -> None:
    """Most kernels are compiled without the host calls of the simulator; one that uses them, with them."""
    text = """\
#include <cstdint>
#include <pto/pto-inst.hpp>
extern "C" void kernel_entry(int64_t* args) {
  std::vector<int64_t> values(3, 14);
  args[0] = std::max(values[0], int64_t{2}) * (F16_MAX > 1);
}
"""
    library = compile_all([_job(write("host.cpp", text))])[0]
    slots = (ctypes.c_int64 * 1)(0)
    ctypes.CDLL(library.path).pto2_kernel(slots, None)
    assert slots[0] == 14


def _calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every call of the compiler from now on."""
    seen: list[list[str]] = []
    real = compiler.call

    def call(command: list[str]) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return real(command)

    monkeypatch.setattr(compiler, "call", call)
    return seen


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("return std::min(a, 3);", 1),
        ('return static_cast<int>(std::string("ab").size());', 1),
        ("std::ostream* none = nullptr; return none == nullptr ? a - 4 : 0;", 2),
        ("try { always_assert(a < 3); } catch (const std::runtime_error&) { return 2; } return 0;", 1),
    ],
    ids=["plain", "strings", "unforeseen", "catches"],
)
def test_an_orchestration_is_compiled_with_strings_where_it_needs_them(
    write: Write, own_cache: Path, monkeypatch: pytest.MonkeyPatch, body: str, calls: int
) -> None:
    """Without them first, unless it shows that it needs them; with them once more where that fails."""
    compiler.find()
    seen = _calls(monkeypatch)
    text = f'#include "pto_orchestration_api.h"\nextern "C" int go(int a) {{ {body} }}\n'
    job = _job(write("o.cpp", text), core_type="", runtime="tensormap_and_ringbuffer", entry="go")
    assert ctypes.CDLL(compile_all([job])[0].path).go(7) in (2, 3)
    assert len(seen) == calls
    foreseen = "string" in body or "catch" in body
    assert ["-DPTO2_LEAN" in command for command in seen] == [not foreseen, False][:calls]


def test_the_longest_is_compiled_first(
    write: Write, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.find()
    seen = _calls(monkeypatch)
    kernel = KERNEL.replace("OP", "+")
    jobs = [
        _job(
            write("o.cpp", 'extern "C" int go() { return 0; }\n' + "// long\n" * 99), core_type="", entry="go"
        ),
        _job(write("short.cpp", kernel)),
        _job(write("long.cpp", kernel + "// more\n" * 9)),
    ]
    made = compile_all(jobs, workers=1)
    assert [library.job for library in made] == jobs
    order = [next(w for w in command if w.endswith(("o.cpp", "short.cpp", "long.cpp"))) for command in seen]
    assert [Path(source).name for source in order] == ["long.cpp", "short.cpp", "o.cpp"]


def test_a_compiler_that_is_looked_for_early_is_asked_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler._probe.cache_clear()
    seen = _calls(monkeypatch)
    compiler.find_early()
    found = compiler.find()
    assert len([c for c in seen if "--version" in c]) == 1 and found.version
    compiler._probe.cache_clear()
    with knobs.override(PTO_CXX="no_such_compiler"):
        compiler.find_early()  # says nothing: `find` does
        with pytest.raises(DiagnosticError, match="no_such_compiler"):
            compiler.find()


def test_what_is_compiled_ahead_may_be_given_up(write: Write, own_cache: Path) -> None:
    job = _job(write("add.cpp", KERNEL.replace("OP", "+")))
    ahead = Ahead([job])
    assert not ahead.result()[0].cached and ahead.seconds > 0
    jobs = [_job(write(f"k{n}.cpp", KERNEL.replace("OP", "+") + f"// {n}\n")) for n in range(20)]
    ahead = Ahead(jobs, workers=1)
    ahead.give_up()
    made = ahead.result()
    assert len(made) == 20 and sum(bool(library.path) for library in made) < 3


def test_progress_counts_all_jobs(write: Write, own_cache: Path) -> None:
    jobs = [_job(write(f"{name}.cpp", KERNEL.replace("OP", name))) for name in "+-"]
    for cached in (False, True):
        seen: list[tuple[int, int, str]] = []
        keep = seen.append
        made = compile_all(jobs, lambda done, total, last, keep=keep: keep((done, total, last.job.name)))
        assert [(done, total) for done, total, _ in seen] == [(1, 2), (2, 2)]
        assert {name for _, _, name in seen} == {job.name for job in jobs}
        assert [library.cached for library in made] == [cached, cached]
        assert [library.job for library in made] == jobs


# -- errors --------------------------------------------------------------------------------------------------


def test_errors_of_all_sources_at_once_in_their_files(write: Write) -> None:
    write("inner.h", "int broken() { return nothing; }\n")
    one = write("one.cpp", '#include "inner.h"\nextern "C" void kernel_entry(long* args) {}\n')
    two = write("two.cpp", '#include <cstdint>\nextern "C" void kernel_entry(int64_t* args) { oops(); }\n')
    found = _errors(_job(one), _job(two))
    places = {(Path(d.span.source.name).name, d.span.place[0]): d for d in found if d.span is not None}
    assert ("inner.h", 1) in places and ("two.cpp", 2) in places
    assert all(d.code == "PTO-E2402" for d in found)
    assert "oops" in places["two.cpp", 2].message


def test_e2605_no_entry_point(write: Write) -> None:
    kernel = _errors(
        _job(write("k.cpp", '#include <cstdint>\nextern "C" void kernel_entri(int64_t* args) {}\n'))
    )
    assert [d.code for d in kernel] == ["PTO-E2605"] and "missing kernel_entry of kernel 'k'" in kernel[
        0
    ].message
    text = 'extern "C" int go() { return 0; }\nint gone() { return 0; }\n'
    orchestration = _errors(_job(write("o.cpp", text), core_type="", entry="gone"))
    assert [d.code for d in orchestration] == ["PTO-E2605"] and "'gone'" in orchestration[0].message
    assert orchestration[0].help.startswith('declare it extern "C"'), "it is there, under a name of C++"
    spelled = _errors(_job(write("s.cpp", text), core_type="", entry="goo"))
    assert spelled[0].help == "did you mean 'go'?"
    assert 'extern "C"' in kernel[0].help


def test_missing_sources(tmp_path: Path) -> None:
    found = _errors(_job(str(tmp_path / "no.cpp")), _job(str(tmp_path / "no.pto")))
    assert [d.code for d in found] == ["PTO-E0001"] * 2


def test_a_library_says_which_job_it_is_of() -> None:
    job = _job("k.cpp")
    assert CompiledJob(job).job.core_type == "aiv" and not job.is_program and _job("k.pto").is_program


def test_the_graph_runtimes_share_kernels_but_for_those_that_include_their_headers(
    write: Write, own_cache: Path
) -> None:
    kernel = write("plain.cpp", KERNEL.replace("OP", "-"))
    first, second = (
        compile_all([_job(kernel, runtime=r)])[0] for r in ("host_build_graph", "aicpu_build_graph")
    )
    assert not first.cached and second.cached and first.path == second.path
    assert compile_all([_job(kernel, runtime="tensormap_and_ringbuffer")])[0].path != first.path
    limit = write("limit.cpp", """\
#include "runtime.h"
extern "C" void kernel_entry(int64_t* args) { args[0] = RUNTIME_MAX_FUNC_ID; }
""")  # fmt: skip
    for name, most in (("host_build_graph", 32), ("aicpu_build_graph", 64), ("host_build_graph", 32)):
        library = compile_all([_job(limit, runtime=name)])[0]
        slots = (ctypes.c_int64 * 1)()
        ctypes.CDLL(library.path).pto2_kernel(ctypes.byref(slots), None)
        assert slots[0] == most


SCALARS = """module attributes {pto.target_arch = "a5"} {
func.func @move(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %at = arith.constant 4096 : i64
  %0 = pto.castptr %at : i64 -> !pto.ptr<f32, ub>
  %1 = pto.addptr %0, %c4 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
  %v = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32
  pto.store_scalar %v, %1[%c8] : !pto.ptr<f32, ub>, f32
  %w = pto.load_scalar %0[%c12] : !pto.ptr<f32, ub> -> f32
  %s = arith.addf %w, %w : f32
  pto.store_scalar %s, %y[%c0] : !pto.ptr<f32>, f32
  return
}
}
"""


def test_scalars_of_the_unified_buffer_in_a_task(write: Write) -> None:
    """Pointers page: load_scalar and store_scalar on `ub`, in a `.pto` kernel of a task graph."""
    move = runtime.kernel(write("move.pto", SCALARS), "in out")
    x, y = np.full(4, 3, np.float32), np.zeros(4, np.float32)
    for how in ({"threads": 1}, {"seed": 1}):
        y[:] = 0
        runtime.run(lambda rt: rt.submit(move, x, y), block_dim=1, **how)
        assert y.tolist() == [6, 0, 0, 0]
