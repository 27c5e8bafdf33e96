"""Launches of whole programs as C++."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.diag import DiagnosticError, Source
from pto.host.rewrite import rewritten, units


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        (
            "add<<<1, nullptr, s>>>(a, b);",
            "::pto::host::kernel([](auto... pto_a) { add(pto_a...); })(1, nullptr, s)(a, b);",
        ),
        (
            "ns::add<T, (N > 4)>\n    <<<n * 2, nullptr, c.s>>>();",
            "::pto::host::kernel([](auto... pto_a) { ns::add<T, (N > 4)>\n    (pto_a...); })"
            "(n * 2, nullptr, c.s)();",
        ),
        ("x = 1 << 3; // k<<<1>>>()", "x = 1 << 3; // k<<<1>>>()"),
        ('puts("<<<");', 'puts("<<<");'),
    ],
)
def test_launches(written: str, becomes: str) -> None:
    assert rewritten(Source("k.cpp", written)) == becomes
    assert written.count("\n") == becomes.count("\n")


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
