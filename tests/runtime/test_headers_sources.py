"""Sources as users write them compile with the headers of the three runtimes and have the documented effects.

Programs that execute nothing load the compiled orchestrations and print their requests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sampling import matrix, some

from .header_build import (
    ABG,
    COMPILER,
    COMPILERS,
    HBG,
    HERE,
    PTO2,
    TMR,
    WARNINGS,
    build,
    includes,
    output,
    run_compiler,
)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

SOURCES = {
    "vector_dag.cpp": TMR,
    "clusters.cpp": TMR,
    "host_diamond.cpp": HBG,
    "device_diamond.cpp": ABG,
}


@pytest.fixture(scope="module")
def recorder() -> Path:
    return build("headers/record_calls.cpp", TMR, "-std=c++20", "-fsanitize=undefined", shared=False)


@pytest.fixture(scope="module")
def graphs() -> Path:
    host = build("headers/host_graph.cpp", HBG, "-c", "-std=c++20")
    device = build("headers/device_graph.cpp", ABG, "-c", "-std=c++20")
    return build("headers/graphs.cpp", HBG, "-std=c++20", str(host), str(device), shared=False)


@matrix
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("source", SOURCES)
def test_compiles_without_warnings(source: str, compiler: str) -> None:
    """As C++17; the tests below build all sources with one compiler, and include the same headers as C++20."""
    flags = ["-std=c++17", "-fsyntax-only", *WARNINGS]
    run_compiler([compiler, *flags, *includes(SOURCES[source]), str(HERE / "headers" / source)])


#: Those that only kernels include, behind the instructions; kernels of tests/compat/chips do.
FOR_KERNELS = ("intrinsic.h", "pipe_sync.h", "pto_async_kernel_api.h", "sdma_completion_kernel.h")


@pytest.mark.parametrize(
    "header",
    some(
        sorted(str(p.relative_to(PTO2)) for p in PTO2.rglob("*.h") if p.name not in FOR_KERNELS),
        4,
        by=lambda header: header.partition("/")[0],
    ),
)
def test_header_stands_alone(header: str, tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    source.write_text(f'#include "{header}"\n#include "{header}"\nint main() {{}}\n')
    run_compiler([str(COMPILER), "-std=c++17", "-fsyntax-only", *WARNINGS, f"-I{PTO2}", str(source)])


def test_kernel_reads_the_descriptor_at_documented_places(tmp_path: Path) -> None:
    """pto2-runtime 2.2: kernels read the exact layout of TensorData."""
    source = tmp_path / "layout.cpp"
    source.write_text(
        '#include "tensor.h"\n'
        "struct Documented { int32_t ref_count; int32_t version; struct { uint64_t addr, size; } buffer;\n"
        "  uint64_t raw_shapes[5]; uint64_t shapes[5]; uint64_t offsets[5]; uint64_t start_offset; uint64_t ndims;\n"
        "  uint32_t dtype; };\n"
        "#define SAME(f) static_assert(offsetof(Documented, f) == offsetof(TensorData, f) && \\\n"
        "                              sizeof(Documented::f) == sizeof(TensorData::f))\n"
        "SAME(ref_count); SAME(version); SAME(buffer); SAME(raw_shapes); SAME(shapes); SAME(offsets);\n"
        "SAME(start_offset); SAME(ndims); SAME(dtype);\n"
        "static_assert(!std::is_copy_constructible_v<TensorData> && !std::is_move_constructible_v<TensorData>);\n"
        "static_assert(sizeof(Tensor) == 4);\n"
    )
    run_compiler([str(COMPILER), "-std=c++20", "-fsyntax-only", *WARNINGS, *includes(TMR), str(source)])


@pytest.mark.parametrize(("variant", "header"), [(TMR, "tensor.h"), (HBG, "runtime.h"), (ABG, "runtime.h")])
def test_cheap_to_include(variant: str, header: str, tmp_path: Path) -> None:
    """It brings little more text than the few headers of the standard library that it needs."""

    def size(text: str) -> int:
        source = tmp_path / "empty.cpp"
        source.write_text(text)
        return len(run_compiler([str(COMPILER), "-std=c++17", "-E", "-P", *includes(variant), str(source)]))

    needed = size("".join(f"#include <{name}>\n" for name in ("array", "atomic", "stdexcept", "string")))
    assert size(f'#include "{header}"\n') < 1.25 * needed


def line_of(source: str, text: str, nth: int = 0) -> int:
    lines = (HERE / "headers" / source).read_text().splitlines()
    return [n for n, line in enumerate(lines, 1) if text in line][nth]


def test_vector_dag(recorder: Path) -> None:
    """Seed, orchestration API: submit, scopes, tensors, log lines; outputs get addresses when submitted."""
    at = [f"vector_dag.cpp:{line_of('vector_dag.cpp', 'pto2_rt_submit_task', n)}" for n in range(5)]
    scope = [f"vector_dag.cpp:{line_of('vector_dag.cpp', 'PTO2_SCOPE', n)}" for n in range(3)]
    one, two = 0x3F800000, 0x40000000
    expected = [
        "expects 4",
        "[INFO] aicpu_orchestration_entry: size=128",
        "[DEBUG] aicpu_orchestration_entry: no values",
        f"{at[0]} submit 0 on 1: in@1000 in@2000 out@10000",
        f"{scope[0]} scope 1",
        f"{at[1]} submit 1 on 1: in@10000 {one} out@11000",
        f"{at[2]} submit 1 on 1: in@10000 {two} out@12000",
        f"{scope[1]} scope 2",
        f"{scope[2]} scope 3",
        f"{at[3]} submit 2 on 1: in@11000 in@12000 out@13000",
        "end 3",
        "end 2",
        f"{at[4]} submit 0 on 0: in@13000 inout@10000 out@3000",
        "end 1",
        "live 0",
    ]
    library = build("headers/vector_dag.cpp", TMR)
    # Two runtimes after one another, in one process.
    assert output(recorder, library, library) == expected * 2


def test_clusters(recorder: Path) -> None:
    """Seed, cluster allocation and block_incore; the pool is bound without pto2_rt_init_tensor_pool."""
    lines = output(recorder, build("headers/clusters.cpp", TMR))
    site = lambda text, n=0: f"clusters.cpp:{line_of('clusters.cpp', text, n)}"  # noqa: E731
    assert lines == [
        *[f"{site('allocate_cluster')} take cluster"] * 2,
        f"{site('PTO2_SCOPE')} scope 1",
        f"{site('clustered')} submit 0 on 0 in 0: in@1000 2 0",
        f"{site('clustered')} submit 0 on 0 in 1: in@1000 2 1",
        f"{site('block_task')} submit 1 on 1 2 times in clusters: in@1000",
        f"{site('block_task', 1)} submit 2 on 1 24 times: inout@1000",
        "end 1",
        f"{site('free_cluster')} give cluster 0",
        f"{site('free_cluster')} give cluster 1",
        "live 0",
    ]


def test_tensor_without_a_pool_is_an_error(recorder: Path) -> None:
    """pto2-runtime 2.1: without pto2_rt_init_tensor_pool the first Tensor must not crash."""
    line = line_of("clusters.cpp", "make_tensor_external")
    lines = output(recorder, "--no-pool", build("headers/clusters.cpp", TMR))
    assert len(lines) == 2 and lines[1] == "live 0"
    assert lines[0].startswith("AssertionError ") and f"clusters.cpp:{line}: " in lines[0]
    assert "pto2_rt_init_tensor_pool" in lines[0]


def test_pool_of_each_library_is_its_own(recorder: Path) -> None:
    """Both libraries are loaded: the second must not see the pool that the first was given. (A visible variable
    of an inline function would be one for the whole process.)"""
    names = ("headers/vector_dag.cpp", "headers/clusters.cpp")
    unique = ["-fgnu-unique"] if "g++" in str(COMPILER) and "clang" not in str(COMPILER) else []
    lines = output(recorder, "--no-pool", *(build(name, TMR, *unique) for name in names))
    assert "AssertionError" in lines[-2] and "pto2_rt_init_tensor_pool" in lines[-2]


def test_host_diamond(graphs: Path) -> None:
    """pto2-runtime 3: tasks, edges (a pair added twice counts twice), pairs, log lines without a runtime."""
    add = [line_of("host_diamond.cpp", "runtime->add_task", n) for n in range(4)]
    lines = output(graphs, "host", build("headers/host_diamond.cpp", HBG), "build_diamond")
    assert lines[1:] == [
        "log 3 print_runtime: Total tasks: 4",
        "log 3 print_runtime:   ready: 0",
        "log 3 print_runtime:   Task 0: func_id=0, fanin=0, fanout=2, args=2 [1,2]",
        "log 3 print_runtime:   Task 1: func_id=1, fanin=1, fanout=1, args=1 [3]",
        "log 3 print_runtime:   Task 2: func_id=31, fanin=1, fanout=2, args=1 [3,3]",
        "log 3 print_runtime:   Task 3: func_id=2, fanin=3, fanout=0, args=3 []",
        "log 2 build_diamond: tasks 4",
        "returned 0",
        "errors 0 ",
        "tasks 4 ready 1 pairs 1",
        f"task 0 func 0 aiv fanin 0 line {add[0]}: 1 2 args 1 11",
        f"task 1 func 1 aic fanin 1 line {add[1]}: 3 args 12",
        f"task 2 func 31 aiv fanin 1 line {add[2]}: 3 3 args 12",
        f"task 3 func 2 aiv fanin 3 line {add[3]}: args 13 14 2",
    ]


def test_refused_calls_are_logged_and_counted(graphs: Path) -> None:
    """pto2-runtime 3: the texts of the errors; a graph with losses differs from a whole one."""
    lines = output(graphs, "count", build("headers/host_diamond.cpp", HBG), "build_refused")
    logged = [line.removeprefix("log 0 Runtime: [Runtime] ") for line in lines if line.startswith("log 0")]
    assert logged[0] == "Too many args (17 > 16)"
    assert logged[3:5] == ["Invalid func_id 32 (max=32)", "Invalid func_id -1 (max=32)"]
    assert logged[5:] == [
        "Invalid from_task ID -1",
        "Invalid to_task ID 2",
        "Fanout overflow for task 0 (max=512)",
        "Tensor pairs full (max=64)",
        "Invalid func_id 32 (max=32)",
    ]
    assert lines[-3:] == [
        "returned 0",
        f"errors {len(logged)} [Runtime] Too many args (17 > 16)",
        "tasks 2 ready 1 pairs 64",
    ]


def test_task_table_is_full_at_its_limit(graphs: Path) -> None:
    """pto2-runtime 2.11: 131072 tasks; they do not move while the table grows."""
    lines = output(graphs, "count", build("headers/host_diamond.cpp", HBG), "build_full")
    text = "[Runtime] Task table full (max=131072)"
    assert lines == [
        f"log 0 Runtime: {text}",
        "returned 0",
        f"errors 1 {text}",
        "tasks 131072 ready 1 pairs 0",
    ]


@pytest.mark.parametrize("mode", [0, 1])
def test_device_diamond(graphs: Path, mode: int) -> None:
    """pto2-runtime 4: add, edges, publish; an edge to a task that has run is kept and not counted."""
    lines = output(graphs, f"device{mode}", build("headers/device_diamond.cpp", ABG), "orchestration")
    ran = [int(line.split()[1]) for line in lines if line.startswith("run")]
    assert sorted(ran) == [0, 1, 2, 3] and ran[0] == 0 and ran[3] == 3
    assert lines.index("run 0") < lines.index("returned 0") if mode else lines[0] == "returned 0"
    add = [line_of("device_diamond.cpp", "add_task(", n) for n in range(4)]
    fanin = 0 if mode else 1  # task 0 has run before its edges were added
    assert lines[-5:] == [
        "errors 0 ",
        f"task 0 func 0 addr 1000 line {add[0]} fanin 0 fanout 2 published 1 completed 1",
        f"task 1 func 63 addr 1063 line {add[1]} fanin {fanin} fanout 1 published 1 completed 1",
        f"task 2 func 0 addr 77 line {add[2]} fanin {fanin} fanout 1 published 1 completed 1",
        f"task 3 func 0 addr 1000 line {add[3]} fanin 2 fanout 0 published 1 completed 1",
    ]


def test_edge_into_a_published_task(graphs: Path) -> None:
    """pto2-runtime 4: edges come before publish; while tasks run a late edge is refused, before that it counts."""
    library = build("headers/device_diamond.cpp", ABG)
    late = output(graphs, "device1", library, "late_edge")
    assert "errors 2 [Runtime] Task 1 is published: the edge from task 0 comes too late" in late
    early = output(graphs, "device0", library, "late_edge")
    assert [line for line in early if line.startswith("run")] == ["run 0", "run 1"]
    assert "errors 1 [Runtime] Invalid task ID 9 to publish" in early


def test_device_tables(graphs: Path) -> None:
    """pto2-runtime 2.11 and 4: the limits of aicpu_build_graph."""
    assert "returned 0" in output(graphs, "device1", build("headers/device_diamond.cpp", ABG), "tables")
