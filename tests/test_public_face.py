"""The names of `import pto`, whatever was imported before them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = 'm = pto.parse("func.func @f() {\\n  return\\n}")\n'


@pytest.mark.parametrize("before", ["", "import pto.verify", "from pto.verify.rows import RowChecker"])
def test_verify_is_a_function(before: str) -> None:
    """The subpackage of the same name takes its place on import."""
    code = f"import pto\n{before}\n{PROGRAM}assert pto.verify(m, target='a5') == []\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_names_resolve() -> None:
    import pto

    for name in pto.__all__:
        assert getattr(pto, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pto.nothing
