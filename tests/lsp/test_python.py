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


#: Functions whose types are in calls or in their class, and functions that cannot be read.
FORMS = (
    HEAD
    + """\
import numpy as np
from other import SIZE

@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(a, [0, 0], [16, 64])
        return pl.store(pl.add(t, t), [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        return self.kernel(a, c)

@pl.jit.incore
def task(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    e = pl.exp(x)
    y[:] = e
    return y

@pl.jit(auto_scope=False)
def called(x: pl.Tensor, y: pl.Out[pl.Tensor], scale: float):
    return task(x, y)

@pl.jit
def uncalled(x, y):
    y[:] = x

@pl.jit
def foreign(x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
    y[:] = x + SIZE

def make(rows=4):
    @pl.jit
    def inner(x, y):
        y[:] = x
    a, b = np.random.default_rng(0).standard_normal((2, 8, 64)).astype(np.float16)
    called(a, np.zeros_like(a), 2.0)
"""
)


def test_forms_of_functions() -> None:
    """Types come from annotations, from a call or from a caller; a hint tells why a function is not read."""

    def check(text: str) -> tuple[list[str], dict[str, str]]:
        found = check_python(Source("k.py", text))
        lines = [text[: h.offset].rpartition("\n")[2].strip() for h in found.read.hints]
        return (
            [f"{d.code} {text[d.span.start : d.span.end]}" for d in found.diagnostics if d.span],
            {line: h.text for line, h in zip(lines, found.read.hints, strict=True)},
        )

    said, hints = check(FORMS)
    assert said == []
    assert hints == {
        "t": ": [16, 64] FP32 vec", "e": ": [8, 64] FP16 vec",
        "def uncalled(x, y):":
            "not analysed: the type of x is unknown; write pl.Tensor[[rows, columns], pl.FP32]",
        "def foreign(x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):":
            "not analysed: the value of SIZE is unknown",
        "def inner(x, y):": "not analysed: it is inside a function",
    }  # fmt: skip
    assert check(FORMS.replace("pl.add(t, t)", "pl.addd(t, t)"))[0] == ["PTO-E3002 pl.addd"]
    assert check(FORMS.replace("pl.exp", "pl.expp"))[0] == ["PTO-E3002 pl.expp"]
    ((wrong,), _) = check(FORMS.replace(".astype(np.float16)", ""))
    assert wrong.startswith("PTO-E3007 def called(")


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
    unread = {name for name, c in found.items() for h in c.read.hints if "not analysed" in h.text}
    assert unread == {"kernels.py"}  # it is only checked for its types, and calls nothing
    assert len([1 for c in found.values() if c.read.hints]) >= 5
