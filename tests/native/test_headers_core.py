"""The core of the C++ headers: addresses of elements, conversions, compile errors, checks."""

from __future__ import annotations

import ctypes
import itertools
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import made
from tests.each import together
from tests.sampling import some

from pto.codegen.checks import call_of
from pto.engine import elements
from pto.isa import encoding, tile
from pto.isa.dtypes import DTYPES, NUMBERS
from pto.isa.tables import tile_elementwise, tile_scalar
from pto.witness.plan import Plan, plans

from ..engine import numpy_twins
from ..engine.rows import Array, Case, mixed_codes, random_codes
from .instructions import COMPILER, ELEMENTS, INCLUDE, OWN, Unit, difference, flat

HEADERS = Path(__file__).parent / "headers"
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

SMALL = ("f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2")

_LAYOUT = {"row_major": "RowMajor", "col_major": "ColMajor", "none_box": "NoneBox"}
_COMPACT = {"null": "Null", "normal": "Normal", "row_plus_one": "RowPlusOne"}


def _tile_types() -> list[tuple[str, int, int, str, int, str]]:
    """(element, rows, cols, layout, fractal, compact)"""
    found: list[tuple[str, int, int, str, int, str]] = []
    for dtype, layout in itertools.product(("f32", "f16", "f4e2m1"), tile.LAYOUT_PARTS):
        found.append((dtype, 128, 128, layout, 512, "null"))
    for dtype, layout in itertools.product(("i8", "s4", "i64"), ("DN", "NZ", "ZN")):
        found.append((dtype, 64, 128, layout, 512, "null"))
    for layout in ("NZ", "ZZ", "NN", "ZN"):
        found += [("f32", 32, 48, layout, 1024, "null"), ("f8e8m0", 32, 32, layout, 32, "null")]
    for compact in ("normal", "row_plus_one"):
        found += [("f16", 64, 32, "NZ", 512, compact), ("f32", 64, 32, "NZ", 1024, compact)]
    return found


TILES = some(_tile_types(), 3, by=lambda t: (t[3], t[5]))
#: Instructions that the loops use where they are there; an emulated processor may show those of its host.
_FLAGS = Path("/proc/cpuinfo").read_text().split() if platform.machine() == "x86_64" else []
FAST = tuple(f"-m{name}" for name in ("f16c", "fma") if name in _FLAGS)


def compiled(
    source: Path, target: Path, *flags: str, reads: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    assert COMPILER is not None
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", f"-I{INCLUDE}", *flags]
    return made.compiled(command, source, target, reads)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("core")
    lines: list[str] = []
    for k, (dtype, rows, cols, layout, fractal, compact) in enumerate(TILES):
        outer, inner = (_LAYOUT[part] for part in tile.LAYOUT_PARTS[layout])
        lines.append(
            f"TILE({k}, {ELEMENTS[dtype]}, {rows}, {cols}, {outer}, {inner}, {fractal}, {_COMPACT[compact]})"
        )
    tiles, library = folder / "tiles.inc", folder / "core.so"
    tiles.write_text("\n".join(lines))
    flags = ("-Werror", "-O0", "-shared", "-fPIC", *OWN, f"-I{folder}", *FAST)
    done = compiled(HEADERS / "core.cpp", library, *flags, reads=[tiles])
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _expected_offsets(k: int, valid: int) -> Array:
    dtype, rows, cols, layout, fractal, compact = TILES[k]
    box = tile.inner_box(DTYPES[dtype].bits, tile.LAYOUT_PARTS[layout][1], fractal)
    pitch = tile.compact_pitch(compact, rows, valid, tile.block_height(layout, box))
    return np.array(
        [[tile.offset(layout, rows, cols, box, r, c, pitch) for c in range(cols)] for r in range(valid)]
    )


# ---- tiles ----


@together("k", range(len(TILES)))
def test_elements_lie_where_the_formula_says(core: Any, k: int) -> None:
    _, rows, cols, *_ = TILES[k]
    for valid in (rows, rows // 2 + 3):
        got = np.empty((valid, cols), np.int64)
        core.offsets(k, valid, _pointer(got))
        np.testing.assert_array_equal(got, _expected_offsets(k, valid))


@together("by_column", [0, 1])
@together("k", range(len(TILES)))
def test_lines_are_read_and_written(core: Any, k: int, by_column: int) -> None:
    dtype, rows, cols, *_ = TILES[k]
    valid = rows // 2 + 3
    at = _expected_offsets(k, valid)
    rng = np.random.default_rng(k)
    count = int(at.max()) + 8
    codes = random_codes(rng, dtype, (1, count + count % 2))[0]
    storage = numpy_twins.pack4(codes) if DTYPES[dtype].bits == 4 else codes
    wide = np.float64 if dtype in SMALL else None
    values = numpy_twins.decode(dtype, codes, wide)[at].astype(np.float64)
    order: Callable[[Array], Array] = np.transpose if by_column else np.asarray
    got = np.empty(values.size)
    core.read_tile(k, valid, by_column, _pointer(storage), _pointer(got))
    np.testing.assert_array_equal(got, order(values).ravel())

    fresh = random_codes(rng, dtype, (valid, cols))
    numbers = np.ascontiguousarray(order(numpy_twins.decode(dtype, fresh, wide)).astype(np.float64))
    want = codes.copy()
    want[at] = numpy_twins.encode(dtype, numpy_twins.decode(dtype, fresh, np.float64)) if wide else fresh
    core.write_tile(k, valid, by_column, _pointer(storage), _pointer(numbers))
    left = numpy_twins.unpack4(storage, want.size) if DTYPES[dtype].bits == 4 else storage
    np.testing.assert_array_equal(left, want)


# ---- element types ----


@pytest.mark.parametrize("dtype", SMALL)
def test_every_code_decodes_as_the_table_says(core: Any, dtype: str) -> None:
    codes = np.arange(1 << DTYPES[dtype].bits).astype(elements.code_dtype(dtype))
    line, single = np.empty((2, codes.size), np.float32)
    core.decode_all(NUMBERS[dtype], _pointer(codes), _pointer(line), _pointer(single), codes.size)
    want = np.array([encoding.decode(dtype, int(c)) for c in codes], np.float32)
    np.testing.assert_array_equal(line, want)
    np.testing.assert_array_equal(single, want)
    np.testing.assert_array_equal(np.signbit(line[want == 0]), np.signbit(want[want == 0]))


def _hard_floats(dtype: str) -> Array:
    """Floats on, between and next to the middles of neighbouring elements, and any bit pattern."""
    codes = np.arange(1 << (DTYPES[dtype].bits - 1)).astype(elements.code_dtype(dtype))
    known = numpy_twins.decode(dtype, codes, np.float64)
    known = np.unique(known[np.isfinite(known)])
    middles = ((known[1:] + known[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middles, np.float32(sign)) for sign in (-np.inf, np.inf)]
    rng = np.random.default_rng(3)
    patterns = rng.integers(0, 2**32, 50_000, np.uint64).astype(np.uint32).view(np.float32)
    found = np.concatenate([known.astype(np.float32), middles, *near, patterns])
    return np.concatenate([found, -found])


@pytest.mark.parametrize("dtype", SMALL)
def test_floats_encode_to_the_nearest_element(core: Any, dtype: str) -> None:
    values = _hard_floats(dtype)
    line, single = np.zeros((2, values.size), elements.code_dtype(dtype))
    core.encode_all(NUMBERS[dtype], _pointer(values), _pointer(line), _pointer(single), values.size)
    want = numpy_twins.encode(dtype, values)
    np.testing.assert_array_equal(single, want)
    np.testing.assert_array_equal(line, want)


@pytest.mark.parametrize("dtype", SMALL)
def test_a_double_rounds_once(core: Any, dtype: str) -> None:
    middles = _hard_floats(dtype).astype(np.float64)
    values = np.concatenate([middles, middles * (1 + 2.0**-40), middles * (1 - 2.0**-40)])
    got = np.zeros(values.size, elements.code_dtype(dtype))
    core.encode_doubles(NUMBERS[dtype], _pointer(values), _pointer(got), values.size)
    np.testing.assert_array_equal(got, numpy_twins.encode(dtype, values))


# ---- instructions ----


def _call(plan: Plan) -> str:
    call = call_of(plan.row.forms[-1])
    assert call is not None
    order = [name for name in call.operands if name in plan.operands]
    return f"{plan.row.name.upper()}({', '.join(order)})"


def _regular_plans(column: str) -> list[Plan]:
    """Every regular row, as floats and as integers; in other columns those that differ there. The ordinary run takes
    some: every row is compared in tests/engine/cpp (test_rows, test_meanings)."""
    found: list[Plan] = []
    for row in (*tile_elementwise.ROWS, *tile_scalar.ROWS):
        derived = row.expr and not any(form.written for form in row.forms)
        if not derived and row.name not in ("taxpy", "tadddeqrelu"):
            continue
        if column != "cpu" and not row.expr_on and row.name != "tadddeqrelu":
            continue
        seen: set[str] = set()
        for plan in plans(row, column):
            first = str(_dtypes(plan)[0])
            kind = first[0] if first not in ("f16", "bf16") else "half"
            if kind not in seen and first in ("f32", "f16", "i16", "ui32", "i32"):
                seen.add(kind)
                found.append(plan)
    return some(found, 4)


def _dtypes(plan: Plan) -> list[Any]:
    return [getattr(t, "dtype") for types in plan.operands.values() for t in types if hasattr(t, "dtype")]  # noqa: B009


@pytest.fixture(scope="module", params=["cpu", "a2a3", "a5"])
def unit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Unit:
    entries = [(plan, _call(plan)) for plan in _regular_plans(request.param)]
    headers = ("ops/calls.hpp",)
    # The default of compilers is to fuse products with sums: results must not show it.
    return Unit(
        request.param, entries, tmp_path_factory.mktemp("unit"), headers, ("-ffp-contract=fast", *FAST)
    )


VALID = ((16, 64), (5, 37), (1, 3), (13, 64))


def test_instructions_agree_with_the_reference(unit: Unit) -> None:
    failures: list[str] = []
    for k, (plan, call) in enumerate(unit.entries):
        for seed, valid in enumerate(VALID):
            case = Case(plan, seed)
            for name, value, _ in flat(case):
                if hasattr(value, "v_row"):
                    make = mixed_codes if seed % 2 else random_codes
                    case.set(name, make(case.rng, value.dtype, value.shape))
                    value.v_row, value.v_col = (min(a, b) for a, b in zip(valid, value.shape, strict=True))
                elif isinstance(value, int | float):
                    case.args[name] = 0.75 if isinstance(value, float) else seed + 1
            found = difference(unit, k, case)
            if found:
                failures.append(f"{call} on {_dtypes(plan)[0]} {valid}: {found}")
    assert not failures, "\n".join(failures[:20])


# ---- refusals ----

BAD = {
    "too_big": "SA-0352", "out_of_bounds": "SA-0353", "misaligned": "SA-0354", "no_such_space": "SA-0351",
    "short_rows": "SA-0006", "valid_beyond_the_tile": "SA-0065", "odd_fractal": "SA-0095",
    "broken_boxes": "SA-0066", "broken_boxes ": "SA-0067", "pointer_to_a_tile": "SA-0218",
    "static_valid_region": "SetValidShape", "too_few_sizes": "SA-0001", "dynamic_size": "SA-0015",
    "mixed_types": "PTO-E0301] TADD", "wrong_type": "SA-0339", "wrong_place": "SA-0133",
    "wrong_layout": "SA-0285", "wrong_pair": "PTO-E0302] TCVT", "two_many_tiles": "too many tile arguments",
}  # fmt: skip


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = compiled(
        HEADERS / "bad_use.cpp", tmp_path_factory.mktemp("bad") / "bad.o", "-DPTO_NPU_ARCH_A2A3", "-c"
    )
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("case", BAD)
def test_bad_use_does_not_compile(complaints: str, case: str) -> None:
    assert BAD[case] in complaints


def test_every_complaint_is_expected(complaints: str) -> None:
    """Each bad use fails for its own reason and for no other."""
    errors = [line for line in complaints.splitlines() if "error:" in line]
    strange = [e for e in errors if not any(code in e for code in BAD.values())]
    assert all("(FIX-A12)" in e for e in errors if "SA-035" in e)
    assert not strange, "\n".join(strange)


CHECKED = {
    0: "SA-0353", 1: "SA-0354", 2: "SA-0065", 3: "R003", 4: "M001", 5: "PTO-E2104", 6: "PTO-E0804", 7: "PTO-E0401",
    8: "1 21 -1",
}  # fmt: skip


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("checked") / "checked"
    done = compiled(HEADERS / "checked.cpp", program, "-Werror", "-DPTO_CHECKED")
    assert done.returncode == 0, done.stderr[:4000]
    return program


@pytest.mark.parametrize("case", CHECKED)
def test_run_time_checks(checked: Path, case: int) -> None:
    done = subprocess.run([str(checked), str(case)], capture_output=True, text=True, check=False)
    assert CHECKED[case] in done.stderr + done.stdout
    assert (done.returncode == 0) == (case == 8)


def test_auto_mode_needs_no_addresses(tmp_path: Path) -> None:
    """Tiles find their own memory and TASSIGN does nothing: what would overlap does not."""
    program = tmp_path / "auto"
    done = compiled(HEADERS / "checked.cpp", program, "-Werror", "-D__PTO_AUTO__")
    assert done.returncode == 0, done.stderr[:4000]
    assert subprocess.run([str(program), "8"], capture_output=True, text=True, check=True).stdout == "1 21 -1"


def test_code_may_bring_registers_and_pipes_of_its_own(tmp_path: Path) -> None:
    """The headers of pto-isa do: their definitions are left to them, and the calls work on them."""
    program = tmp_path / "bare"
    flags = ("-Werror", "-DPTO_NPU_ARCH_A5", "-DPTO_CPU_BARE_REGISTERS")
    done = compiled(HEADERS / "bare.cpp", program, *flags)
    assert done.returncode == 0, done.stderr[:4000]
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert said == "5 5 5 0, 0 left"
