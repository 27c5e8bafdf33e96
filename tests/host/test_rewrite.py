"""Launches of whole programs as C++."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.diag import DiagnosticError, Source
from pto.engine.cpp.compiler import NO_REGISTERS, TILES_ONLY
from pto.host.build import header_flags
from pto.host.rewrite import mixed_kernels, rewritten, units


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        (
            "add<<<1, nullptr, s>>>(a, b);",
            '::pto::host::kernel<struct pto_at_3>("add", 0, [](auto... pto_a) { add(pto_a...); })(1, nullptr, s)(a, b);',
        ),
        (
            "ns::add<T, (N > 4)>\n    <<<n * 2, nullptr, c.s>>>();",
            '::pto::host::kernel<struct pto_at_24>("ns::add<T, (N > 4)>", 0, [](auto... pto_a) { ns::add<T, (N > 4)>\n    (pto_a...); })'
            "(n * 2, nullptr, c.s)();",
        ),
        ("x = 1 << 3; // k<<<1>>>()", "x = 1 << 3; // k<<<1>>>()"),
        ('puts("<<<");', 'puts("<<<");'),
    ],
)
def test_launches(written: str, becomes: str) -> None:
    assert rewritten(Source("k.cpp", written)) == becomes
    assert written.count("\n") == becomes.count("\n")


def test_kernels_that_ask_for_both_kinds_of_core_are_mixed() -> None:
    """Themselves, or in functions that they call."""
    text = """
static void cube() {
#ifdef __DAV_CUBE__
#endif
}
__global__ AICORE void plain(float* a) { cube(); }
template <int N>
__global__ AICORE void both(float* a) {
  cube();
  if constexpr (DAV_VEC) a[0] = N;
}
// __DAV_CUBE__ and __DAV_VEC__ in comments of plain
int main() { plain<<<1, nullptr, nullptr>>>(a); both<3><<<2, nullptr, nullptr>>>(a); }
"""
    source = Source("k.cpp", text)
    mixed = mixed_kernels([source])
    assert mixed & {"plain", "both"} == {"both"}
    found = rewritten(source, mixed)
    assert '("plain", 0, ' in found and '("both<3>", 2, ' in found


@pytest.mark.parametrize(
    "written", ["<<<1, nullptr, s>>>(a)", "k<<<1, nullptr, s>>>;", "k<<<1, nullptr, s(a);"]
)
def test_launches_that_cannot_be_read(written: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        rewritten(Source("k.cpp", f"void f() {{\n  {written}\n}}\n"))
    (d,) = caught.value.diagnostics
    assert d.code == "PTO-E2421" and d.span is not None and d.span.line == 2


def test_files_that_are_included_have_launches_too(tmp_path: Path) -> None:
    main, header = tmp_path / "main.cpp", tmp_path / "launch.hpp"
    header.write_text("inline void go() { k<<<1, nullptr, nullptr>>>(); }\n")
    main.write_text('#include "launch.hpp"\nint main() { go(); }\n')
    found = dict(units(Source(str(main), main.read_text())))
    assert set(found) == {"main.cpp", "launch.hpp"}
    assert found["main.cpp"] == f'#include "{main}"\n' and "pto::host::kernel" in found["launch.hpp"]


def test_headers_that_no_file_uses_are_left_out(tmp_path: Path) -> None:
    """Includes of the device runtime and of files beside the source are read; any other may use everything."""
    source = Source(str(tmp_path / "main.cpp"), '#include "acl/acl.h"\n#include "parts/one.hpp"\n')
    (tmp_path / "parts").mkdir()
    one = tmp_path / "parts" / "one.hpp"
    for text, flags in (
        ("", [TILES_ONLY]),
        ("mad(c, a, b);", [NO_REGISTERS]),
        ("vector_f32 v;", []),
        ('#include "elsewhere.hpp"', []),
    ):
        one.write_text(text)
        assert header_flags(source, []) == flags, text
    one.write_text("")
    assert header_flags(source, ["-Iinclude"]) == header_flags(source, ["-DT=vector_f32"]) == []
    one.unlink()
    assert header_flags(source, []) == []
