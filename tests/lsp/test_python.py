"""Python files in the language server: functions of the language are read, and nothing is executed."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as lsp
from tests.each import each
from tests.lsp.client import Editor, edit
from tests.lsp.test_server import document, hovered, whole
from tests.security.watch import no_side_effects

from pto.diag import Source
from pto.lsp.python import check_python

ROOT = Path(__file__).parents[2]
SOFTMAX = (ROOT / "examples/python/02_softmax.py").read_text(encoding="utf-8")
HEAD = "import os\nimport pto.language as pl\n"
KERNEL = """\
@pl.jit
def k(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
"""
#: A text that would change a file if it were executed, and whether it is reported.
ACTING = {
    "a constant": ("X = open('touched', 'w')\n" + KERNEL + "        y[:] = pl.exp(x)\n", False),
    "a call of the language": (
        'X = pl.parse("open(\'touched\', \'w\')")\n' + KERNEL + "        y[:] = pl.exp(x)\n",
        False,
    ),
    "a body": (KERNEL + "        y[:] = pl.exp(open('touched', 'w'))\n", True),
    "a body with a program": (KERNEL + "        z = pl.parse(\"open('touched', 'w')\")\n", True),
    "a decorator": (
        KERNEL.replace("@pl.jit", "@pl.jit\n@open('touched', 'w')") + "        y[:] = pl.exp(x)\n",
        False,
    ),
    "an annotation": (
        KERNEL.replace("[[64, 64]", "[[open('touched', 'w'), 64]") + "        y[:] = pl.exp(x)\n",
        False,
    ),
    "a default": (KERNEL.replace("]):", "] = open('touched', 'w')):") + "        y[:] = pl.exp(x)\n", False),
    "an exponent": ("X = 10 ** 10 ** 10 ** 10\nY = (1 << 9) * 'x'\n" + KERNEL + "        y[:] = pl.exp(x)\n", False),
}  # fmt: skip


def test_a_session(tmp_path: Path) -> None:
    async def work(e: Editor) -> None:
        assert await e.open(SOFTMAX) == []
        page = await hovered(e, "row_expand_sub")
        assert "pl.row_expand_sub(" in page and "trowexpandsub" in page
        assert await hovered(e, "np.zeros_like") == ""
        hints = await e.ask("inlay_hint", lsp.InlayHintParams(document(e), whole(e)))
        assert [(h.position.line, h.label) for h in hints] == [
            (n, ": [32, 256] FP32 vec") for n in (20, 21, 22)
        ]
        assert not await e.ask("document_symbol", lsp.DocumentSymbolParams(document(e)))
        (wrong,) = await e.change(SOFTMAX.replace("pl.row_max", "pl.row_maxx"))
        assert (wrong.code, e.cut(wrong.range)) == ("PTO-E3002", "pl.row_maxx") and "row_max" in wrong.message
        assert await e.change(SOFTMAX.replace("def softmax(", "def softmax((")) == []  # Python reports it
        assert await e.change(SOFTMAX) == []
        assert e.messages == []

    edit(work, tmp_path / "k.py")


def test_nothing_is_executed(tmp_path: Path) -> None:
    check_python(Source("k.py", HEAD + KERNEL))  # imports

    def check(text: str, reported: bool) -> None:
        with no_side_effects(tmp_path):
            found = check_python(Source("k.py", HEAD + text))
        assert bool(found.diagnostics) == reported, found.diagnostics

    each(check, ACTING.values())
    assert not (tmp_path / "touched").exists()


def test_examples_have_no_problems() -> None:
    paths = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "tests/docs/typed").glob("*.py")]
    found = {p.name: check_python(Source(str(p), p.read_text(encoding="utf-8"))) for p in paths}
    assert {name for name, c in found.items() if c.diagnostics} == set()
    assert len([1 for c in found.values() if c.read.hints]) >= 3
