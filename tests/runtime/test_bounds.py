"""Tasks that touch memory that is not theirs, or fault: a diagnostic names the task, and the process goes on."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime
from pto.runtime.golden import GoldenTensor
from pto.runtime.memory import TensorMemory

EXAMPLE = Path(__file__).parents[2] / "examples" / "01_vec_add.pto"  # 64x128 of f32

#: y = x for `args[2]` rows of 128, in C++ with the intrinsics.
COPY = """\
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
static float* data_of(int64_t slot) {
  auto* t = reinterpret_cast<TensorData*>(slot);
  return reinterpret_cast<float*>(t->buffer.addr) + t->start_offset;
}
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 128>, Stride<1, 1, 1, 128, 1>>;
  Global from(args[2] != 0 ? reinterpret_cast<float*>(args[2]) : data_of(args[0])), to(data_of(args[1]));
  Tile<TileType::Vec, float, 16, 128> x;
  TASSIGN(x, 0);
  TLOAD(x, from);
  set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  TSTORE(to, x);
}
"""

FAULT = """\
#include <cstdint>
static int deep(volatile int* x) {{ volatile int y[1000]; y[0] = *x + 1; return deep(y) + y[0]; }}
extern "C" void kernel_entry(int64_t* args) {{
  volatile int zero = 0, nine = 9;
  (void)zero, (void)nine, (void)deep, (void)args;
  {body}
}}
"""


def _floats(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def _fails(orchestrate: Any, *args: Any, **more: Any) -> Any:
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(orchestrate, *args, block_dim=1, **more)
    (problem,) = caught.value.diagnostics
    return problem


add = runtime.kernel(EXAMPLE, "in in out", name="add")


@pytest.mark.parametrize("rows", [32, 63])
def test_a_program_stays_inside_its_tensors(rows: int) -> None:
    """The tensor is smaller than the store of the kernel: location, task, parameter and sizes are named."""
    out = _floats(rows, 128)
    problem = _fails(lambda rt: rt.submit(add, _floats(64, 128), _floats(64, 128), out))
    assert problem.code == "PTO-E2101"
    text = f"): TSTORE: touches bytes 0..32768 of %c, which has {rows * 512} bytes"
    assert problem.message in (f"task 0 (add, AIV {core}{text}" for core in (0, 1))
    line = EXAMPLE.read_text().splitlines()[problem.span.place[0] - 1]
    assert "tstore" in line
    assert (out == 1).all()


def test_the_rest_of_an_array_is_not_the_tensor() -> None:
    """A part of an array was given: the neighbours of that part belong to other tasks."""
    whole = _floats(3, 64, 128)
    problem = _fails(lambda rt: rt.submit(add, whole[0], whole[1], whole[1, 32:]))
    assert problem.code == "PTO-E2101" and (whole == 1).all()


def test_memory_of_the_heap_has_neighbours() -> None:
    def orchestrate(rt: Any, out: Any) -> None:
        small, other = rt.tensor((16, 128)), rt.tensor((64, 128))
        rt.submit(add, out, out, other)
        rt.submit(add, out, out, small)

    problem = _fails(orchestrate, _floats(64, 128))
    assert problem.code == "PTO-E2101" and "task 1" in problem.message and "8192 bytes" in problem.message


def test_a_view_with_strides_is_the_memory_between_its_ends() -> None:
    """The right half of a matrix: 64 rows of 128 in 256 columns. A kernel for dense rows stays inside."""
    wide = _floats(64, 256)
    out = np.zeros((64, 128), np.float32)

    def orchestrate(rt: Any) -> None:
        right = rt.external(wide).view((64, 128), (0, 128))
        rt.submit(add, right, right, out)

    runtime.run(orchestrate, block_dim=1)
    assert (out == 2).all()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> runtime.Kernel:
    source = tmp_path_factory.mktemp("copy") / "copy.cpp"
    source.write_text(COPY)
    return runtime.kernel(source, "in out scalar")


def test_a_kernel_in_cpp_stays_inside_its_buffers(copy: runtime.Kernel) -> None:
    problem = _fails(lambda rt: rt.submit(copy, _floats(16, 128), _floats(3, 128), 0))
    assert problem.code == "PTO-E2101"
    assert "TSTORE: touches bytes 0..8192 of parameter 1, which has 1536 bytes" in problem.message


def test_a_kernel_in_cpp_may_use_other_memory_and_more_of_a_buffer(copy: runtime.Kernel) -> None:
    """An address in a scalar does not belong to a tensor; a part of an array may be read beyond its end."""
    other, whole = 7 * _floats(16, 128), np.zeros((32, 128), np.float32)
    runtime.run(lambda rt: rt.submit(copy, _floats(16, 128), whole[8:10], other.ctypes.data), block_dim=1)
    assert (whole[8:24] == 7).all() and not whole[:8].any() and not whole[24:].any()


X86 = platform.machine() == "x86_64"  # checks divisions itself; elsewhere the compiler does, by a trap
DIVISION_SIGNAL, TRAP_SIGNAL = ("SIGFPE", "SIGILL") if X86 else ("SIGTRAP", "SIGTRAP")
FAULTS = [
    ("*(volatile int*)16 = 1;", "the kernel touched address 0x10, where it may not (SIGSEGV)"),
    ("args[0] = nine / zero;", f"the kernel was ended by {DIVISION_SIGNAL}: a division by zero"),
    ("__builtin_trap();", f"the kernel was ended by {TRAP_SIGNAL}"),
    ("args[0] = deep(&zero);", "the kernel used up its stack"),
]


@pytest.mark.parametrize(("body", "words"), FAULTS, ids=["address", "division", "trap", "stack"])
def test_a_fault_ends_the_task_not_the_process(tmp_path: Path, body: str, words: str) -> None:
    source = tmp_path / "fault.cpp"
    source.write_text(FAULT.format(body=body))
    fault = runtime.kernel(source, "inout")
    fill = runtime.kernel(lambda x: x.fill(5), "out", name="fill")
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, {"seed": 1}, {"threads": 2}]
    for how in ways:
        x = _floats(4)
        problem = _fails(lambda rt, x=x: rt.submit(fault, x), **how)
        assert problem.code == "PTO-E2622" and words in problem.message, how
        assert f"the task was submitted at {__file__}:" in problem.notes[-1][0]
        runtime.run(lambda rt, x=x: rt.submit(fill, x), block_dim=1, **how)
        assert (x == 5).all()


def test_far_beside_a_tensor_is_not_mapped() -> None:
    memory = TensorMemory([GoldenTensor("x", None, _floats(3)), GoldenTensor("y", None, _floats(5000), True)])
    for name, size in (("x", 12), ("y", 20000)):
        start = memory.addresses[name]
        assert start % 4096 == 0
        assert memory.near(start + size + 5000) == f"byte {size + 5000} of '{name}', which has {size} bytes"
        assert memory.near(start - 8) == f"8 bytes before '{name}', which has {size} bytes"
    assert memory.near(16) == ""
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    for name, size in (("x", 12), ("y", 20000)):
        behind = memory.addresses[name] + -(-size // 4096) * 4096 + 4096
        (rights,) = [
            rights for place, rights, *_ in maps
            if int(place.split("-")[0], 16) <= behind < int(place.split("-")[1], 16)
        ]  # fmt: skip
        assert rights.startswith("---")
