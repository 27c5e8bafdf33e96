"""The names of `import pto`, whatever was imported before them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = 'm = pto.parse("func.func @f() {\\n  return\\n}")\n'


@pytest.mark.parametrize("before", ["", "import pto.verifier", "from pto.verifier.rows import RowChecker"])
def test_verify_is_a_function(before: str) -> None:
    """Imports of its package change nothing."""
    code = f"import pto\n{before}\n{PROGRAM}assert pto.verify(m, target='a5') == []\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_names_resolve() -> None:
    import pto

    for name in pto.__all__:
        assert getattr(pto, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pto.nothing
