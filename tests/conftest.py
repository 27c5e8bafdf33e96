"""What several test folders share: the `--rebase` option and programs annotated with their diagnostics."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pto.asm import parse_source
from pto.diag import Diagnostic, Source
from pto.verify import verify

#: `op //~ CODE CODE`: the diagnostics expected on this line.
_EXPECTED = re.compile(r"//~ *((?:[A-Z]+-[A-Z]?\d{4} *)+)$")

Diagnose = Callable[..., list[Diagnostic]]

# A crash under test leaves its reproducer with the other temporary files, not in the checkout.
os.environ.setdefault("PTO_REPRODUCER_DIR", tempfile.gettempdir())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rebase", action="store_true", help="rewrite the expectations of the golden tests")


def _diagnose(text: str, target: Any = None, **options: Any) -> list[Diagnostic]:
    options.setdefault("flags", "error")
    module, problems = parse_source(Source("t.pto", text))
    return problems if module is None else problems + verify(module, target, **options)


@pytest.fixture
def diagnose() -> Diagnose:
    """Everything the parser and then the verifier say about a text."""
    return _diagnose


@pytest.fixture
def annotated() -> Diagnose:
    """Check that a text gives exactly the diagnostics written in its `//~ CODE` comments, on those lines."""

    def run(text: str, target: Any = None, **options: Any) -> list[Diagnostic]:
        expected: Counter[tuple[int, str]] = Counter()
        for number, line in enumerate(text.splitlines(), 1):
            m = _EXPECTED.search(line)
            assert m or "//~" not in line, f"line {number}: malformed annotation"
            expected.update((number, code) for code in (m[1].split() if m else ()))
        found = _diagnose(text, target, **options)
        places = Counter((d.span.place[0] if d.span else 0, d.code) for d in found)
        shown = "\n".join(f"  line {d.span.place[0] if d.span else 0}: {d.code} {d.message}" for d in found)
        assert places == expected, f"expected {sorted(expected.elements())}, got\n{shown or '  nothing'}"
        return found

    return run


@pytest.fixture
def kernel() -> Callable[[str], str]:
    """Wrap statements into a module with one function that has the usual arguments."""

    def wrap(body: str, arguments: str = "%gm: !pto.ptr<f32>, %n: index, %cond: i1", more: str = "") -> str:
        return f"module {{\nfunc.func @k({arguments}) {more}{{\n{body}\nreturn\n}}\n}}\n"

    return wrap
