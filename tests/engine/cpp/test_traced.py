"""C++ under watch: from Python, as a library, its lines, and what cannot be watched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.diag import Source, render
from pto.engine.cpp.lines import Line
from pto.engine.cpp.places import LibraryPlaces
from pto.verifier.apply import applied

EXAMPLE = Path(__file__).parents[3] / "examples" / "17_race.cpp"


def line(d: Any) -> tuple[str, tuple[int, int]]:
    return d.code, d.span.place


def arrays() -> tuple[Any, Any]:
    a = np.random.default_rng(3).random((64, 128)).astype(np.float32)
    return a, np.zeros_like(a)


@pytest.fixture
def write(kept_place: Path) -> Any:
    """Write sources into the same folder in every run, where their kernels are found again."""

    def made(name: str, text: str) -> str:
        path = kept_place / name
        path.write_text('#include "pto/pto-inst.hpp"\nusing namespace pto;\n' + text, encoding="utf-8")
        return str(path)

    return made


def test_from_python() -> None:
    k = pto.kernel(str(EXAMPLE))
    a, c = arrays()
    assert k.run(a, c).engine == "cpp"
    plain = c.copy()
    found = k.run(a, c, sanitize="all")
    assert found.engine == "traced" and [d.code for d in found.diagnostics] == ["PTO-E2201"]
    assert np.array_equal(c, plain)
    assert any(not np.array_equal(_under(k, a, seed), plain) for seed in range(8))
    assert k.run(a, c, memory_map=True).memory_map.text().startswith("UB: peak 16384")
    assert k.run(a, c, shadow="f64").shadow is not None
    with pytest.raises(pto.DiagnosticError):
        k(a, c, sanitize="race")


def _under(k: Any, a: Any, seed: int) -> Any:
    c = np.zeros_like(a)
    k.run(a, c, schedule=seed)
    return c


def test_following_the_advice_helps(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    a, c = arrays()
    (found,) = pto.kernel(str(EXAMPLE)).run(a, c, sanitize="all").diagnostics
    assert "wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);" in found.help
    path = tmp_path / "mended.cpp"
    path.write_text(applied(text, found.help) or "", encoding="utf-8")
    result = pto.kernel(str(path)).run(a, c, sanitize="all")
    assert result.ok, render(result.diagnostics)


CLASH = """\
using Part = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
template <class T>
AICORE inline void step(T& z, T& x) {
  TADD(z, x, x);
}
__global__ AICORE void clash(__gm__ float* a, int32_t n) {
  Part x(16, n), z(16, 64);
  TASSIGN(x, 0);
  TASSIGN(z, 4096);
  step(z, x);
}
"""


FAULT = """\
__global__ AICORE void fault(__gm__ int32_t* a, int32_t n) {
  __gm__ int32_t* p = nullptr;
  a[0] = 3;
  p[n] = 4;
}
"""


def test_a_check_or_a_fault_names_its_line(write: Any) -> None:
    """Return the location of the call with a failed check."""
    path = write("clash.cpp", CLASH + FAULT)
    (d,) = pto.kernel(path, "clash", checked=True).run(np.zeros((16, 64), np.float32), 32).diagnostics
    assert line(d) == ("PTO-E0401", (6, 3)), render([d])
    assert "src0 valid columns = 32, dst valid rows = 16, dst valid columns = 64" in d.message
    (d,) = pto.kernel(path, "fault", checked=True).run(np.zeros(4, np.int32), 2).diagnostics
    assert line(d) == ("PTO-E2101", (6 + CLASH.count("\n"), 3)), render([d])


BEYOND = """\
using Rows = Tile<TileType::Vec, float, 8, 64>;
using Place = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<512, 512, 512, 64, 1>>;
AICORE inline void take(Rows& t, __gm__ float* from) {
  Place x(from);
  TLOAD(t, x);
}
__global__ AICORE void beyond(__gm__ float* a, __gm__ float* b, int32_t n) {
  Rows t;
  TASSIGN(t, 0);
  take(t, a + 64 * n);
  Place y(b + 64 * n);
  TSTORE(y, t);
}
"""


LEFT = """\
__global__ AICORE void left(__gm__ float* a) {
#ifdef __DAV_CUBE__
  set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
#endif
#ifdef __DAV_VEC__
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
#endif
}
"""


def test_a_flag_that_is_left_set_names_its_line(write: Any) -> None:
    """In a kernel of one kind of core, and in one of both, whose halves are units of their own."""
    for text, at in ((LEFT, 9), (re.sub("#.*\n", "", LEFT), 6)):
        (d,) = pto.kernel(write("left.cpp", text), checked=True).run(np.zeros(4, np.float32)).diagnostics
        assert line(d) == ("PTO-E0805", (at, 3)), render([d])


def test_an_access_beyond_an_array_names_its_line(write: Any, tmp_path: Path) -> None:
    """The check is compiled into every engine once, and its caller is found by the stack; in libraries,
    too."""
    path, library = write("beyond.cpp", BEYOND), str(tmp_path / "beyond.so")
    assert main(["build", path, "-o", library, "--checked", "-q"]) == 0
    small, large = np.zeros((8, 64), np.float32), np.zeros((16, 64), np.float32)
    for file in (path, library):
        kernel = pto.kernel(file, "beyond", checked=True)
        for a, b, at in ((small, large, 5), (large, small, 12)):
            (d,) = kernel.run(a, b, 1).diagnostics
            assert d.span is not None and d.code == "PTO-E2101"
            assert d.span.source.line(d.span.line).strip() == BEYOND.splitlines()[at - 1].strip(), render([d])


def test_a_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traced, plain = str(tmp_path / "traced.so"), str(tmp_path / "plain.so")
    assert main(["build", str(EXAMPLE), "-o", traced, "--traced", "-q"]) == 0
    assert main(["build", str(EXAMPLE), "-o", plain, "-q"]) == 0
    assert main(["run", traced, "--sanitize", "race", "--", "f32:64x128", "f32:64x128"]) == 1
    assert re.search(r"17_race.cpp:25:5: error\[PTO-E2201\]: TLOAD", capsys.readouterr().err)
    assert main(["run", plain, "--sanitize", "race", "--", "f32:64x128", "f32:64x128"]) == 1
    assert "error[PTO-E2405]" in (shown := capsys.readouterr().err) and "pto build --traced" in shown


def test_what_only_programs_are_asked_is_not_asked_of_c_plus_plus(write: Any) -> None:
    """The headers of devices look at valid regions where the assembler compares sizes."""
    text = """\
using Wide = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 32>;
using Narrow = Tile<TileType::Vec, float, 16, 32>;
using Columns = Tile<TileType::Vec, float, 16, 32, BLayout::ColMajor>;
using Rows = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
__global__ AICORE void largest(__gm__ float* c) {
  Rows gc(c);
  Wide x;
  Narrow y, z;
  Columns w;
  TASSIGN(x, 0x0);
  TASSIGN(y, 0x1000);
  TASSIGN(z, 0x2000);
  TASSIGN(w, 0x3000);
  TEXPANDS(x, 1.0f);
  TEXPANDS(y, 2.0f);
  TEXPANDS(w, 3.0f);
  pipe_barrier(PIPE_V);
  TPARTMAX(z, x, y);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gc, z);
}
"""
    c = np.zeros(512, np.float32)
    found = pto.kernel(write("sizes.cpp", text), target="a2a3").run(c, sanitize="all")
    assert found.ok and (c == 2).all(), render(found.diagnostics)
    program = """\
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @k() {{
    %s = arith.constant 3.0 : f32
    %w = pto.alloc_tile : !pto.tile_buf<vec, 16x32xf32, blayout={0}>
    pto.texpands ins(%s : f32) outs(%w : !pto.tile_buf<vec, 16x32xf32, blayout={0}>)
    return
  }}
}}
"""
    assert not pto.verify(pto.parse(program.format("row_major")))
    refused = pto.verify(pto.parse(program.format("col_major")))
    assert [d.code for d in refused] == ["PTO-E0501"]


LOADS = """\
template <class View, class InL1>
AICORE void loaded(__gm__ int32_t* a, __gm__ int32_t* c) {
  View view(a);
  InL1 tile;
  TASSIGN(tile, 0x0);
  create_cbuf_matrix(tile.data(), int64_t{16 * 64 * 4 / 32} << 16 | 1, uint32_t{9});
  pipe_barrier(PIPE_ALL);
  TLOAD(tile, view);
  pipe_barrier(PIPE_ALL);
  copy_cbuf_to_gm(c, tile.data(), 0, 1, 16 * 64 * 4 / 32, 0, 0);
}
using Narrow = GlobalTensor<int32_t, Shape<1, 1, 1, 16, 61>, Stride<1024, 1024, 1024, 61, 1>>;
using High = GlobalTensor<int32_t, Shape<1, 1, 2, 8, 61>, Stride<1024, 1024, 488, 61, 1>>;
using Nz = Tile<TileType::Mat, int32_t, 16, 64, BLayout::ColMajor, 16, 64, SLayout::RowMajor, 512>;
using Nd = Tile<TileType::Mat, int32_t, 16, 64, BLayout::RowMajor, 8, 61>;
__global__ AICORE void narrow(__gm__ int32_t* a, __gm__ int32_t* c) { loaded<Narrow, Nz>(a, c); }
__global__ AICORE void high(__gm__ int32_t* a, __gm__ int32_t* c) { loaded<High, Nd>(a, c); }
"""


@pytest.mark.parametrize(("target", "kernel"), [("a2a3", "narrow"), ("a5", "high")])
def test_loads_into_l1_count_what_the_device_counts(write: Any, target: str, kernel: str) -> None:
    """Fractals of A2 and A3 are as large as the tensor and filled with zeros; rows on A5 are those of the
    tensor, of which the tile has fewer valid ones."""
    path = write("loads.cpp", LOADS)
    a = np.arange(16 * 61, dtype=np.int32)
    want = np.zeros((16, 64), np.int32)
    want[:, :61] = a.reshape(16, 61)
    if kernel == "narrow":
        want = want.reshape(16, 8, 8).swapaxes(0, 1).copy()
    for options in ({}, {"sanitize": "all"}):
        c = np.zeros(16 * 64, np.int32)
        found = pto.kernel(path, kernel, target=target).run(a, c, **options)
        assert found.ok, render(found.diagnostics)
        assert np.array_equal(c, want.ravel())


def test_tiles_of_auto_mode_are_watched_where_they_are(write: Any) -> None:
    """They have storage of their own and no flags: the compiler orders pipes. Reads of unwritten data are
    found."""
    text = """\
using Rows = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
using Row = Tile<TileType::Vec, float, 16, 64>;
__global__ AICORE void twice(__gm__ float* a, __gm__ float* c, int32_t loads) {
  Rows ga(a), gc(c);
  for (int i = 0; i < 40; ++i) {
    Row x, y;
    TASSIGN(x, 0);
    TASSIGN(y, 0);
    if (loads) TLOAD(x, ga);
    TADD(y, x, x);
    TSTORE(gc, y);
  }
}
"""
    k = pto.kernel(write("auto.cpp", text), auto=True)
    a, c = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    for options in ({}, {"schedule": 3}):
        found = k.run(a, c, 1, sanitize="all", **options)
        assert found.ok and np.array_equal(c, 2 * a), render(found.diagnostics)
        c[:] = 0
    found = k.run(a, c, 0, sanitize="all")
    assert [line(d) for d in found.diagnostics] == [("PTO-E2203", (13, 5))], render(found.diagnostics)


def test_a_vector_core_moves_to_the_l1_of_its_cube_core(write: Any) -> None:
    text = """\
__global__ AICORE void there_and_back(__gm__ half* a, __gm__ half* c, int32_t wait) {
  Tile<TileType::Vec, half, 16, 32> x;
  Tile<TileType::Mat, half, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor, 512> m;
  TASSIGN(x, 0x0);
  TASSIGN(m, 0x400);
#if defined(__DAV_VEC__)
  if (get_subblockid() == 0) {
    GlobalTensor<half, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>> in(a);
    TLOAD(x, in);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TMOV(m, x);
    set_intra_block(PIPE_MTE3, 1);
  }
#elif defined(__DAV_CUBE__)
  if (wait) wait_intra_block(PIPE_MTE3, 1);
  copy_cbuf_to_gm(c, m.data(), 0, 1, 32, 0, 0);
#endif
}
"""
    a, c = np.arange(512, dtype=np.float16), np.zeros(512, np.float16)
    want = a.reshape(16, 2, 16).swapaxes(0, 1).ravel()
    k = pto.kernel(write("l1.cpp", text), target="a5")
    for options in ({}, {"sanitize": "all"}):
        c[:] = 0
        found = k.run(a, c, 1, **options)
        assert found.ok and np.array_equal(c, want), render(found.diagnostics)
    found = k.run(a, c, 0, sanitize="all")
    assert "PTO-E2201" in [d.code for d in found.diagnostics]


def test_threads_of_a5_gather_on_the_vector_pipe(write: Any) -> None:
    text = """\
__global__ AICORE void rows(__gm__ float* a, __gm__ int32_t* which, __gm__ float* c, int32_t from_vector) {
  GlobalTensor<float, Shape<1, 1, 1, 64, 32>, Stride<2048, 2048, 2048, 32, 1>> table(a);
  GlobalTensor<int32_t, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>> names(which);
  GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>> out(c);
  Tile<TileType::Vec, float, 16, 32> x;
  Tile<TileType::Vec, int32_t, 1, 16> i;
  TASSIGN(x, 0x0);
  TASSIGN(i, 0x1000);
  TLOAD(i, names);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  MGATHER(x, table, i);
  if (from_vector) {
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  } else {
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  }
  TSTORE(out, x);
}
"""
    a, c = np.arange(64 * 32, dtype=np.float32), np.zeros(16 * 32, np.float32)
    which = np.arange(16, dtype=np.int32) * 3
    k = pto.kernel(write("rows.cpp", text), target="a5")
    found = k.run(a, which, c, 1, sanitize="all")
    assert found.ok and np.array_equal(c, a.reshape(64, 32)[which].ravel()), render(found.diagnostics)
    found = k.run(a, which, c, 0, sanitize="race")
    stored = 3 + text[: text.index("TSTORE")].count("\n")
    assert [line(d) for d in found.diagnostics] == [("PTO-E2201", (stored, 3))]


def test_a_fault_is_reported_and_not_who_waits_for_it(write: Any) -> None:
    text = """\
__global__ AICORE void meet(__gm__ int32_t* a) {
#if defined(__DAV_VEC__)
  auto* ub = reinterpret_cast<__ubuf__ int32_t*>(0x10000);
  ub[0] = 1;
#elif defined(__DAV_CUBE__)
  wait_flag_dev(3);
#endif
}
"""
    (found,) = pto.kernel(write("meet.cpp", text)).run(np.zeros(4, np.int32), sanitize="all").diagnostics
    assert line(found) == ("PTO-E2101", (6, 3)) and "GetValue" in found.message


def test_what_cannot_be_watched_is_said_and_a_loop_without_end_is_ended(write: Any) -> None:
    text = """\
__global__ AICORE void both(__gm__ float* a, int32_t ends) {
  auto* z = reinterpret_cast<__cc__ float*>(0);
  if (ends) copy_matrix_cc_to_gm(a, z, uint64_t{2} << 4 | uint64_t{2} << 16, uint64_t{16});
  Tile<TileType::Vec, float, 8, 64> x;
  TASSIGN(x, 0);
  while (!ends) TEXPANDS(x, 1.0f);
}
"""
    path, given = write("both.cpp", text), np.zeros(4, np.float32)
    found = pto.kernel(path).run(given, 1, sanitize="all").diagnostics
    assert [(d.code, d.span.place[0]) for d in found if d.span] == [("PTO-E2003", 5)], render(found)
    (d,) = pto.kernel(path, engine="traced").run(given, 0, max_steps=5000).diagnostics
    assert line(d)[:1] + line(d)[1][:1] == ("PTO-E2106", 8), render([d])


def test_a_library_that_was_built_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept by content, it may name headers of another folder, and the program as seen from another one."""
    headers = tmp_path / "other" / "include" / "pto" / "core"
    headers.mkdir(parents=True)
    (headers / "tile.hpp").write_text("// as ours\n")
    monkeypatch.chdir(tmp_path)
    program = Source("sub/k.pto", "one\ntwo\n")
    places = LibraryPlaces("/bin/sh", [program])
    lines = {1: Line(str(headers / "tile.hpp"), 1, 1), 2: Line("/elsewhere/sub/k.pto", 2, 1)}
    monkeypatch.setattr(places, "line", lines.get)
    found = places.span([1, 2])
    assert found is not None and found.source is program and found.place[0] == 2
    own = tmp_path / "include" / "pto" / "mine.hpp"
    own.parent.mkdir(parents=True)
    own.write_text("// a header of the user\n")
    lines[3] = Line(str(own), 1, 1)
    found = places.span([1, 3, 2])
    assert found is not None and found.source.text == own.read_text()


RANKS = """\
struct CommContext {
  uint64_t workSpace, workSpaceSize;
  uint32_t rankId, rankNum;
  uint64_t winSize, windowsIn[64], windowsOut[64];
};
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>>;
using Both = GlobalTensor<float, Shape<1, 1, 1, 2, 64>, Stride<1, 1, 1, 64, 1>>;
using Stage = Tile<TileType::Vec, float, 1, 64>;

__global__ AICORE void reduce(__gm__ float* window, __gm__ float* out, __gm__ int32_t* signal, __gm__ CommContext* ctx) {
  const int me = ctx->rankId, n = ctx->rankNum;
  Row rows[2];
  for (int r = 0; r < n; ++r) rows[r] = Row((__gm__ float*)((uint64_t)window + ctx->windowsIn[r] - ctx->windowsIn[me]));
  Stage acc, ping;
  TASSIGN(acc, 0x0);
  TASSIGN(ping, 0x400);
  if (me == 0) {
    comm::ParallelGroup<Row> group(rows, n, 0);
    Row result(out);
    Both both(out + 64);
    comm::TREDUCE(group, result, acc, ping, comm::ReduceOp::Sum);
    pipe_barrier(PIPE_ALL);
    comm::TGATHER(group, both, ping);
    pipe_barrier(PIPE_ALL);
    Row again(out + 192);
    comm::TGET(again, rows[1], ping);
    pipe_barrier(PIPE_ALL);
    comm::AsyncSession session;
    comm::BuildAsyncSession(ping, nullptr, session);
    Row later(out + 256);
    auto event = comm::TGET_ASYNC(later, rows[1], session);
    event.Wait(session);
    TLOAD(acc, later);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    Row copy(out + 320);
    TSTORE(copy, acc);
  }
}
"""


def test_ranks(write: Any) -> None:
    """Copies between ranks, collectives and transfers: the results of the kernel itself, and no report. Then
    a transfer without a wait."""
    sound = RANKS[RANKS.index("__global__") :]
    race = sound.replace("reduce(", "race(").replace("    event.Wait(session);\n", "")
    text = RANKS + race
    path = write("ranks.cpp", text)
    k = pto.kernel(path, "reduce")

    def run(**options: Any) -> tuple[Any, Any]:
        world = pto.ranks(2)
        rows, signals = world.window((1, 64), "f32"), world.window((4,), "i32")
        for rank in range(2):
            rows[rank][:] = np.arange(64) + 100 * rank
        outs = [np.zeros(384, np.float32) for _ in range(2)]
        return world.run(k, lambda rank: [rows, outs[rank], signals, world.context], **options), outs[0]

    plain, wanted = run()
    watched, found = run(sanitize="all")
    assert (plain.engine, watched.engine) == ("cpp", "traced") and plain.ok
    assert watched.ok, render(watched.diagnostics)
    assert found[:3].tolist() == [100, 102, 104] and np.array_equal(found, wanted)
    world = pto.ranks(2)
    rows, signals = world.window((1, 64), "f32"), world.window((4,), "i32")
    args = [[rows, np.zeros(384, np.float32), signals, world.context] for _ in range(2)]
    reports = world.run(pto.kernel(path, "race"), args, sanitize="all").diagnostics
    *_, number = (n for n, shown in enumerate(text.splitlines(), 3) if "TLOAD(acc, later)" in shown)
    assert {line(d) for d in reports} == {("PTO-E2201", (number, 5))}, render(reports)
