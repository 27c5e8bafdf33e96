"""Programs and images with addresses, sizes and places of an attacker: they reach no memory but their own."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError
from pto.engine.native.files import ImageKernel
from pto.image.check import check
from pto.image.container import ImageFile

from ..each import each
from ..fuzz.calls import Builder
from ..fuzz.readers import refused
from ..sampling import some

_TILE = "!pto.tile_buf<vec, 16x64xf32>"
_VIEW = "!pto.tensor_view<?x?xf32>"
_WINDOW = "!pto.partition_tensor_view<?x?xf32>"
_ALLOCATED = f"%t = pto.alloc_tile addr = %zero : {_TILE}\n %u = pto.alloc_tile addr = %next : {_TILE}\n"
_FILLED = f"pto.texpands ins(%one : f32) outs(%u : {_TILE})\n"


def _views(sizes: str, strides: str) -> str:
    return (
        f"%a = pto.make_tensor_view %x, shape = [{sizes}], strides = [{strides}] : {_VIEW}\n"
        f" %b = pto.make_tensor_view %y, shape = [{sizes}], strides = [{strides}] : {_VIEW}\n"
        f" %p = pto.partition_view %a, offsets = [%c0, %c0], sizes = [{sizes}] : {_VIEW} -> {_WINDOW}\n"
    )


def _loaded(sizes: str, strides: str) -> str:
    return (
        f"{_views(sizes, strides)} {_ALLOCATED}"
        f" pto.tload ins(%p : {_WINDOW}) outs(%t : {_TILE})\n pto.tstore ins(%t : {_TILE}) outs(%p : {_WINDOW})"
    )


def _put(sizes: str, strides: str) -> str:
    return f"{_views(sizes, strides)} pto.tput %b, %a : ({_VIEW}, {_VIEW})"


#: `%x` and `%y` are arguments, `%far` is an address elsewhere; other numbers are constants of the type that they need.
TEXTS = {
    "a memref at an address": """%m = pto.pointer_cast(%far) : memref<16x64xf32, #pto.address_space<vec>>
        pto.tneg ins(%m : memref<16x64xf32, #pto.address_space<vec>>) outs(%m : memref<16x64xf32, #pto.address_space<vec>>)""",
    "a memref of a pointer": f"""%t = pto.alloc_tile addr = %far : {_TILE}
        {_FILLED.replace("%u", "%t")}""",
    "a pointer that is none": "%p = pto.castptr %far : i64 -> !pto.ptr<f32>\n pto.store_scalar %one, %p[%c0] : !pto.ptr<f32>, f32",
    "an element of UB far away": "%p = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>\n pto.store_scalar %one, %p[%large] : !pto.ptr<f32, ub>, f32",
    "an element of UB before": "%p = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>\n pto.store_scalar %one, %p[%minus] : !pto.ptr<f32, ub>, f32",
    "a pointer beside": "%p = pto.addptr %x, %large : !pto.ptr<f32> -> !pto.ptr<f32>\n pto.store_scalar %one, %p[%c0] : !pto.ptr<f32>, f32",
    "an index far away": "pto.store_scalar %one, %x[%large] : !pto.ptr<f32>, f32",
    "an index before": "pto.store_scalar %one, %x[%minus] : !pto.ptr<f32>, f32",
    "an element far away": f"{_ALLOCATED} pto.tsetval ins(%large, %one : index, f32) outs(%t : {_TILE})",
    "an element before": f"{_ALLOCATED} pto.tsetval ins(%minus, %one : index, f32) outs(%t : {_TILE})",
    "inserted far away": f"{_ALLOCATED} {_FILLED} pto.tinsert ins(%u, %large, %large : {_TILE}, index, index) outs(%t : {_TILE})",
    "inserted before": f"{_ALLOCATED} {_FILLED} pto.tinsert ins(%u, %minus, %c0 : {_TILE}, index, index) outs(%t : {_TILE})",
    "extracted far away": f"{_ALLOCATED} {_FILLED} pto.textract ins(%u, %c0, %large : {_TILE}, index, index) outs(%t : {_TILE})",
    "loaded: a size before": _loaded("%minus, %minus", "%c64, %c1"),
    "loaded: a size that wraps": _loaded("%large, %large", "%c64, %c1"),
    "loaded: strides that wrap": _loaded("%c16, %c64", "%half, %c1"),
    "put: a size before": _put("%c16, %minus", "%c64, %c1"),
    "put: sizes before": _put("%minus, %minus", "%c64, %c1"),
    "put: a size that wraps": _put("%large, %half", "%c0, %c1"),
    "put: strides that wrap": _put("%c16, %c64", "%half, %half"),
}  # fmt: skip
_NUMBERS = """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %c64 = arith.constant 64 : index
        %zero = arith.constant 0 : i64
        %next = arith.constant 4096 : i64
        %one = arith.constant 1.0 : f32"""


def _program(body: str) -> str:
    return f"""module attributes {{pto.target_arch = "a5"}} {{
      func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %far: i64, %large: index, %half: index,
          %minus: index) attributes {{pto.entry}} {{
        {_NUMBERS}
        {body}
        return
      }}
    }}"""


class _Memory:
    """Arguments, with guarded memory around them."""

    def __init__(self) -> None:
        self.whole = np.full(1 << 18, 0xA5, np.uint8)
        self.far = self.whole.ctypes.data + (1 << 17)
        self.given = [self.whole[1 << n : (1 << n) + 4096].view(np.float32) for n in (14, 15)]

    def run(self, kernel: Any) -> str:
        """Return the result of a run, after checks that other memory is unchanged and no access left the
        machine."""
        for array in self.given:
            array[:] = 1.0
        expected = self.whole.copy()
        rest = (2**60 - 1, 2**62, -4096)[: len(kernel.args) - 3]
        result = kernel.run(*self.given, self.far, *rest, out=io.StringIO())
        for array in (*self.given, expected[1 << 14 :][:4096], expected[1 << 15 :][:4096]):
            array[:] = 0
        assert (self.whole == expected).all(), "memory of nobody's argument was written"
        if result.ok:
            return "ok"
        refused(result.diagnostics)
        return str(result.diagnostics[0].message)


@pytest.mark.parametrize("engine", ["native", "reference", "cpp"])
def test_programs(engine: str) -> None:
    """Engine native is made from the headers of engine cpp and runs them all."""
    memory = _Memory()

    def run(checked: bool, name: str, body: str) -> None:
        try:
            said = memory.run(pto.kernel(pto.parse(_program(body)), engine=engine, check=checked))
        except DiagnosticError as e:
            refused(e.diagnostics)
            assert not e.diagnostics[0].code.startswith("PTO-E24"), e  # nothing was tried
            return
        # The reference engine looks at no more of a view than an instruction touches.
        assert said != "ok" or (engine, name) == ("reference", "loaded: a size that wraps"), said

    cases = [(checked, *item) for checked in (True, False) for item in TEXTS.items()]
    each(run, some(cases, 8, by=lambda c: c[0]) if engine == "cpp" else cases)


# -- images ---------------------------------------------------------------------------------------------------

_OPEN = "OpenTile<TileType::Vec, float, BLayout::RowMajor, SLayout::NoneBox, 512, 0, CompactMode::Null>"
_NEG = f"{_OPEN}& a0; {_OPEN}& a1; TNEG(a0, a1);"
_INSERT = f"{_OPEN}& a0; {_OPEN}& a1; int64_t& a2; int64_t& a3; TINSERT(a0, a1, a2, a3);"
_PUSH = f"OpenPipe& a0; {_OPEN}& a1; TPUSH<OpenPipe, {_OPEN}, TileSplitAxis::TILE_NO_SPLIT>(a0, a1);"
_LIE = (0, 0, 1, 1, 32, 0)


def _memref(b: Builder, m: _Memory) -> None:
    t = b.room(40)
    b.call("vm.tile_of", t, b.view(m.far, (16, 64), (64, 1)), 2, 0)
    b.call(_NEG, t, t)


def _window(b: Builder, m: _Memory) -> None:
    w, source = (b.tile(*shape, (1, 1), 0) for shape in ((1 << 19, 1), (1, 1 << 19)))
    b.call("vm.window", w, source, b.number(0), b.number(0), 8, 1, *_LIE)
    b.call(_INSERT, w, b.tile(1, 8, (1, 8), 0), b.number(60000), b.number(0))


def _turned(b: Builder, m: _Memory) -> None:
    t, rows = b.tile(1024, 128, (1024, 128), 0, form=1), b.room(40)
    b.call("vm.rows", rows, t, 4)
    b.call(_NEG, rows, rows)
    b.call("vm.back", t, rows, 4)


def _lent(b: Builder, m: _Memory) -> None:
    view = b.view(m.given[0].ctypes.data, (1, 1, 1, 8, 8), (64, 64, 64, 8, 1))
    home, t, large = b.tile(8, 8, (8, 8), 0), b.room(40), b.room(40)
    b.call("vm.lent", b.room(8), t, home, view, 32)
    b.call("vm.same", large, t, 64, 128, b.number(64), b.number(128), 0)
    b.call(_NEG, large, large)


def _pipes(b: Builder, m: _Memory) -> None:
    t = b.tile(1, 8, (1, 8), 0)
    for slots, size in ((1, 32 + 2 * 64), (2, 64)):  # as large as each other
        pipe = b.room(128)
        b.call("vm.pipe", pipe, *(b.number(0) for _ in range(3)), 0, 2, size, slots, 1, 0)
        b.call(_PUSH, pipe, t)


#: What an image does, and how it ends.
IMAGES: dict[str, tuple[Callable[[Builder, _Memory], None], str]] = {
    "a tile of a memref elsewhere": (_memref, "outside the memory of the core"),
    "a window larger than a memory": (_window, "a window of 524288 x 524288 elements"),
    "a tile turned as of fewer bits": (_turned, "which is not mapped"),
    "a lent tile that grows": (_lent, "ok"),
    "FIFOs of one size and two shapes": (_pipes, "disagree"),
    "a call that no file may name": (lambda b, m: b.call("vm.lend!"), "unknown value in a call"),
}


def test_images() -> None:
    memory = _Memory()

    def run(name: str, make: Callable[[Builder, _Memory], None], expected: str) -> None:
        b = Builder()
        make(b, memory)
        image = b.image(kind="vector", arguments=3)
        try:
            check(image)
            said = memory.run(ImageKernel(ImageFile("k.elf", (image,)), image))
        except DiagnosticError as e:
            said = e.diagnostics[0].message
        assert expected in said, said

    each(run, ((name, *image) for name, image in IMAGES.items()))
