"""Run single instructions of the C++ headers on the data of reference cases.

    unit = Unit("a5", [(plan, "TROWSUM(dst, src, tmp)"), ...], folder, ["pto-inst.hpp"])   # compiles once
    case = Case(plan); ...                                          # data as for the reference engine
    difference(unit, 0, case)                                       # runs both; None, or the difference

Operands become tiles with a dynamic valid region and global tensors with dynamic shapes, bound to copies of
the memory of the case with a guard around each.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.made import compiled

from pto.engine import elements
from pto.engine.memory import ConvTile, Tile, View
from pto.ir.types import ScalarType, TileBufType
from pto.isa import encoding, tile
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..engine.rows import FILL, GUARD, Array, Case

INCLUDE = Path(__file__).parents[2] / "native/include"
COMPILER = shutil.which("g++") or shutil.which("clang++")
#: Makes inline variables of two libraries distinct: else the sizes and the core of the first target are those of all.
OWN = ("-fno-gnu-unique",) if COMPILER and "clang" not in COMPILER else ()
#: Compiled quickly: engine/cpp/test_rows.py has every row optimised.
FLAGS = ("-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-ffp-contract=off", *OWN)
DEFINES = {"cpu": (), "a2a3": ("-DPTO_NPU_ARCH_A2A3",), "a5": ("-DPTO_NPU_ARCH_A5",)}

ELEMENTS = {
    "f32": "float", "f16": "half", "bf16": "bfloat16_t", "f8e4m3": "float8_e4m3_t", "f8e5m2": "float8_e5m2_t",
    "f8e8m0": "float8_e8m0_t", "hif8": "hifloat8_t", "f4e2m1": "float4_e2m1x2_t", "f4e1m2": "float4_e1m2x2_t",
    "s4": "int4b_t", **{f"{k}{b}": f"{'u' * (k == 'u')}int{b}_t" for k in "iu" for b in (8, 16, 32, 64)},
}  # fmt: skip
_LOCATIONS = {n: "".join(w.capitalize() for w in n.split("_")) for n in (
    "vec", "mat", "left", "right", "acc", "bias", "scaling", "scale_left", "scale_right")}  # fmt: skip
_BLAYOUT = {"row_major": "RowMajor", "col_major": "ColMajor"}
_SLAYOUT = {"none_box": "NoneBox", "row_major": "RowMajor", "col_major": "ColMajor"}
_FORMS = {form: keys for keys, form in tile.LAYOUTS.items()}

_HEAD = """\
{includes}
using namespace pto;
struct Operand {{ void* data; int64_t rows, cols, shape[5], stride[5], code; }};
template <class T> T scalar_of(const Operand& o) {{
  T made; std::memcpy(static_cast<void*>(&made), &o.code, sizeof made); return made;
}}
static char text[1 << 17], stopped[1 << 10];
extern "C" const char* printed() {{ return text; }}
static void keep(detail::Core&, const char* more) {{
  std::strncat(text, more, sizeof text - std::strlen(text) - 1);
}}
struct Stop {{}};
static void stop(detail::Core&, const char* why) {{
  std::snprintf(stopped, sizeof stopped, "%s", why);
  throw Stop();
}}
"""


class Operand(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64),
        ("shape", ctypes.c_int64 * 5), ("stride", ctypes.c_int64 * 5), ("code", ctypes.c_int64),
    ]  # fmt: skip


def flat(case: Case) -> list[tuple[str, Any, Any]]:
    """Operands that are there: name, value and type."""
    return [(n, v, case.plan.operands[n][0]) for n, v in case.args.items() if not isinstance(v, list)]


def declaration(k: int, name: str, value: Any, type: Any) -> str:
    if isinstance(value, Tile):
        assert isinstance(type, TileBufType)
        outer, inner = _FORMS[value.layout]
        pad = f", static_cast<PadValue>({type.pad}ull)" if type.pad else ""
        return (
            f"  Tile<TileType::{_LOCATIONS[value.loc]}, {ELEMENTS[value.dtype]}, {value.rows}, {value.cols}, "
            f"BLayout::{_BLAYOUT[outer]}, -1, -1, SLayout::{_SLAYOUT[inner]}, {type.fractal}{pad}> {name}(o[{k}].rows,"
            f" o[{k}].cols); detail::bind({name}, o[{k}].data);\n"
        )
    if isinstance(value, ConvTile):
        dims = ", ".join(str(d) for d in value.dims)
        return (
            f"  ConvTile<TileType::{_LOCATIONS[value.loc]}, {ELEMENTS[value.dtype]}, {int(np.prod(value.dims))}, "
            f"Layout::{value.layout}, ConvTileShape<{dims}>> {name}; detail::bind({name}, o[{k}].data);\n"
        )
    if isinstance(value, View):
        five = ", ".join(f"o[{k}].shape[{d}]" for d in range(5))
        steps = ", ".join(f"o[{k}].stride[{d}]" for d in range(5))
        dynamic, element = "<-1, -1, -1, -1, -1>", ELEMENTS[value.dtype]
        return (
            f"  GlobalTensor<{element}, pto::Shape{dynamic}, pto::Stride{dynamic}, Layout::"
            f"{value.layout or 'ND'}> {name}(static_cast<{element}*>(o[{k}].data), pto::Shape{dynamic}({five}), "
            f"pto::Stride{dynamic}({steps}));\n"
        )
    if isinstance(type, ScalarType):
        element = ELEMENTS.get(str(type.dtype), "int64_t")
        return f"  [[maybe_unused]] const auto {name} = scalar_of<{element}>(o[{k}]);\n"
    return f"  [[maybe_unused]] const auto {name} = o[{k}].code;\n"


def source(entries: Sequence[tuple[Plan, str]], headers: Sequence[str]) -> str:
    parts = [_HEAD.format(includes="\n".join(f"#include <pto/{h}>" for h in headers))]
    for number, (plan, call) in enumerate(entries):
        operands = flat(Case(plan))
        body = "".join(declaration(k, *operand) for k, operand in enumerate(operands))
        parts.append(f"static void f{number}([[maybe_unused]] Operand* o) {{\n{body}  {call};\n}}\n")
    table = ", ".join(f"f{n}" for n in range(len(entries)))
    parts.append(f"static void (*const all[])(Operand*) = {{{table}}};\n")
    parts.append("""extern "C" const char* run(int k, Operand* o) {
  const detail::Host host{nullptr, stop, keep};
  text[0] = stopped[0] = 0;
  detail::core().host = &host;
  try {
    all[k](o);
  } catch (const Stop&) {
  }
  detail::core().host = nullptr;
  return stopped;
}
""")
    return "".join(parts)


class Unit:
    """Instructions compiled for one column of the table."""

    def __init__(
        self,
        isa: str,
        entries: Sequence[tuple[Plan, str]],
        folder: Path,
        headers: Sequence[str],
        flags: Sequence[str] = (),
    ) -> None:
        self.entries = list(entries)
        path = folder / f"{isa}{len(list(folder.iterdir()))}.cpp"  # a library is loaded once by its name
        path.write_text(source(entries, headers))
        made = path.with_suffix(".so")
        assert COMPILER is not None
        done = compiled([COMPILER, *FLAGS, *flags, *DEFINES[isa], f"-I{INCLUDE}"], path, made)
        assert done.returncode == 0, done.stderr[:4000]
        library = ctypes.CDLL(str(made))
        self.run = library.run
        self.run.restype = ctypes.c_char_p
        self.printed = library.printed
        self.printed.restype = ctypes.c_char_p


def complaints(
    headers: Sequence[str], bodies: Sequence[str], flags: Sequence[str], parameters: str = ""
) -> list[str]:
    """Return the messages of the compiler for each body, all functions of one file."""
    assert COMPILER is not None
    head = [*(f"#include <pto/{h}>" for h in headers), "using namespace pto;"]
    lines = [*head, *(f"void f{k}({parameters}) {{ {body} }}" for k, body in enumerate(bodies))]
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-fmax-errors=0", f"-I{INCLUDE}", *flags]
    said = [""] * len(lines)
    line = 0
    for text in compiled(command, "\n".join(lines)).stderr.splitlines():
        here = re.match(r"<stdin>:(\d+):\d+:\s+(?:required from here|error:)", text)
        line = int(here[1]) - 1 if here else line
        said[line] += f"{text}\n"
    return said[len(head) :]


def place(case: Case, value: Any) -> Array:
    """The bytes of an operand in its buffer."""
    if isinstance(value, Tile | ConvTile):
        assert value.address is not None
        return value.buffer.data[value.address : value.address + value.size]
    return value.buffer.data


def difference(unit: Unit, number: int, case: Case) -> str | None:
    """Run a case on both sides and compare the bytes of all operands; the case keeps the reference's."""
    operands = flat(case)
    made = (Operand * len(operands))()
    memory: dict[str, Array] = {}
    for k, (name, value, type) in enumerate(operands):
        if isinstance(value, Tile | View | ConvTile):
            bytes_ = place(case, value)
            memory[name] = np.full(bytes_.size + 2 * GUARD, FILL, np.uint8)
            memory[name][GUARD : GUARD + bytes_.size] = bytes_
            made[k].data = memory[name].ctypes.data + GUARD
        if isinstance(value, Tile):
            made[k].rows, made[k].cols = value.valid
        elif isinstance(value, View):
            shape, stride = value.dims5
            made[k].shape[:], made[k].stride[:] = shape, stride
        elif isinstance(value, int | float) and isinstance(type, ScalarType) and str(type.dtype) in DTYPES:
            made[k].code = encoding.encode(DTYPES[str(type.dtype)], value)
        elif isinstance(value, int):
            made[k].code = value
    case.run()
    if stopped := unit.run(number, made).decode():
        return f"stopped: {stopped}"
    text = unit.printed().decode()
    if text != case.out.getvalue():
        return f"printed {text[:200]!r}, expected {case.out.getvalue()[:200]!r}"
    for name, value, _ in operands:
        if name not in memory:
            continue
        got, want = memory[name][GUARD:-GUARD], place(case, value)
        if (memory[name][:GUARD] != FILL).any() or (memory[name][-GUARD:] != FILL).any():
            return f"{name}: written outside"
        differ = _unequal(value, got, want)
        if differ.any():
            at = int(np.argmax(differ))
            codes = [_codes(value, x)[at] for x in (got, want)]
            return (
                f"{name} element {at}: {codes[0]:#x}, expected {codes[1]:#x}; {differ.sum()} of {differ.size}"
            )
    return None


def _codes(value: Any, raw: Array) -> Array:
    """Elements in storage order (4-bit ones two to a byte)."""
    dtype = elements.code_dtype(value.dtype)
    return np.ascontiguousarray(raw[: raw.size // dtype.itemsize * dtype.itemsize]).view(dtype)


def _unequal(value: Any, got: Array, want: Array) -> Array:
    a, b = _codes(value, got), _codes(value, want)
    differ = a != b
    if value.bits >= 8 and DTYPES[value.dtype].nan and differ.any():
        nan = [np.isnan(elements.decode(value.dtype, x)) for x in (a, b)]
        differ &= ~(nan[0] & nan[1])
    return differ
