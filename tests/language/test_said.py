"""Named arguments of forms, attributes of functions, names set once: refusals and their locations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto
import pto.language as pl
from pto.language.problems import LanguageWarning

HEAD = """
T = pl.Tensor[[64, 64], pl.FP32]

@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: T, out: pl.Out[T]) -> T:
        out = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def gate(self, x: T, out: pl.Out[pl.Tensor[[8], pl.INT32]]) -> pl.Tensor[[8], pl.INT32]:
        pl.write(out, [0], 1)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, n: pl.Scalar[pl.INT32], asked: pl.InOut[pl.Tensor[[8], pl.INT32]],
             bytes: pl.Tensor[[8], pl.UINT8], out: pl.Out[T]) -> T:
"""


def whole(body: str) -> str:
    return HEAD + "\n".join(f"        {line}" for line in body.splitlines()) + "\n        return out\n"


def refused(text: str) -> list[tuple[str, str, str]]:
    """Return codes, the text at each caret, and the message."""
    with pytest.raises(pto.DiagnosticError) as caught:
        program = pl.parse_program(text)
        program.as_python()
        program.lower()
    return [(d.code, d.span.source.text[d.span.start : d.span.end], d.message)
            for d in caught.value.diagnostics if d.span]  # fmt: skip


def fine(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LanguageWarning)  # not all of its parameters are used
        pl.parse_program(text).lower()


REGION = "    out[:] = pl.add(x, 1.0)"
SUBMIT = "asked, g = pl.submit(self.gate, x, asked)\n"


@together(("body", "place"), [
    ("with pl.at(name_hint='a b'):\n" + REGION, "'a b'"),
    ("with pl.at(name_hint='class'):\n" + REGION, "'class'"),
    ("with pl.at(level=3):\n" + REGION, "3"),
    ("with pl.at(allow_early_resolve=1):\n" + REGION, "1"),
    ("with pl.at(no_dep_args=[pl.no_dep(x)]):\n" + REGION, "[pl.no_dep(x)]"),
    ("with pl.at(no_dep_args=[x, x]):\n" + REGION, "[x, x]"),
    ("with pl.at(no_dep_args=x):\n" + REGION, "x"),
    ("with pl.at(optimizations=[pl.split]):\n" + REGION, "[pl.split]"),
    ("with pl.at(optimizations=pl.split(pl.SplitMode.NONE)):\n" + REGION, "pl.split(pl.SplitMode.NONE)"),
    ("with pl.at(optimizations=[pl.cross_core_slot(slot_num=2), pl.cross_core_slot(slot_num=4)]):\n" + REGION,
     "[pl.cross_core_slot(slot_num=2), pl.cross_core_slot(slot_num=4)]"),
    ("with pl.at(optimizations=[pl.cross_core_slot(slot_num=0)]):\n" + REGION, "0"),
    ("with pl.at(optimizations=[pl.split(pl.SplitMode.NONE, slot_num=2), pl.cross_core_slot(slot_num=2)]):\n" + REGION,
     "[pl.split(pl.SplitMode.NONE, slot_num=2), pl.cross_core_slot(slot_num=2)]"),
    ("with pl.at(optimizations=[pl.split(1)]):\n" + REGION, "1"),
    ("for i in pl.spmd(0):\n    out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :]", "0"),
    ("for i in pl.spmd(True):\n    out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :]", "True"),
    ("for i in pl.spmd(2.0):\n    out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :]", "2.0"),
    ("for i in pl.spmd(8, sync_start=n):\n    out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :]", "n"),
    ("out, _ = pl.spmd_submit(self.kernel, x, out, core_num=-1)", "-1"),
    ("for i in pl.pipeline(4, stage=0):\n    with pl.at():\n    " + REGION, "0"),
    ("for i in pl.pipeline(4, stage=n):\n    with pl.at():\n    " + REGION, "n"),
    ("with pl.scope(1):\n    out = self.kernel(x, out)", "1"),
    ("with pl.at():\n    for lane in pl.split_aiv(3):\n    " + REGION, "3"),
])  # fmt: skip
def test_e3003_words_of_forms(body: str, place: str) -> None:
    ((code, found, message),) = refused(whole(body))
    assert (code, found) == ("PTO-E3003", place)
    assert message.startswith("expected ")


@together(('body', 'code', 'place'), [
    ("with pl.manual_scope() as scope:\n    out = self.kernel(x, out)", "PTO-E3001", "scope"),
    ("with pl.cluster() as cluster:\n    out = self.kernel(x, out)", "PTO-E3001", "cluster"),
    ("with pl.manual_scope():\n    with pl.scope():\n        out = self.kernel(x, out)", "PTO-E3006", "pl.scope()"),
    ("with pl.cluster():\n    with pl.at() as task:\n    " + REGION, "PTO-E3006", "task"),
    (SUBMIT + "with pl.cluster():\n    out, _ = pl.submit(self.kernel, x, out, deps=[g])", "PTO-E3006",
     "pl.submit(self.kernel, x, out, deps=[g])"),
    ("with pl.at():\n    for a in pl.split_aiv(2):\n        for b in pl.split_aiv(2):\n        " + REGION,
     "PTO-E3006", "pl.split_aiv(2)"),
    ("with pl.spmd(4):\n" + REGION, "PTO-E3006", "pl.spmd(4)"),
    ("with pl.at(role=pl.Role.SubWorker):\n" + REGION, "PTO-E3003", "pl.at(role=pl.Role.SubWorker)"),
    ("if n:\n    out = self.kernel(x, out)", "PTO-E3004", "n"),
    ("while n:\n    out = self.kernel(x, out)", "PTO-E3004", "n"),
    ("some = [i for i in range(4) if n > i]\nout = self.kernel(x, out)", "PTO-E3004", "n > i"),
    ("with pl.at():\n    out[0:16, 8:4] = x[0:16, 8:12]", "PTO-E3005", "8:4"),
])  # fmt: skip
def test_places_and_conditions(body: str, code: str, place: str) -> None:
    assert [(c, found) for c, found, _ in refused(whole(body))] == [(code, place)]


def test_blocks_that_do_not_ask_which_they_are() -> None:
    """One block needs no number, and blocks that call a kernel leave that to it."""
    for body in ("with pl.spmd(1):\n" + REGION, "with pl.spmd(4):\n    out = self.kernel(x, out)"):
        fine(whole(body))


def test_conditions_that_are_known() -> None:
    """Objects of Python follow the truth rules of Python."""
    fine(whole("if 1:\n    out = self.kernel(x, out)"))


@together(('body', 'message'), [
    # It waits for another task.
    ("with pl.manual_scope():\n    asked, g = pl.submit(self.gate, x, asked)\n    out, g = pl.submit(self.kernel, x, out)\n"
     "    out, _ = pl.submit(self.kernel, x, out, deps=[g], predicate=(asked[0] > 0))", "missing dependency of a predicate"),
    # A predicate does not order other tasks, in other scopes neither.
    (SUBMIT + "out, _ = pl.submit(self.kernel, x, out, predicate=(asked[0] > 0))", "missing dependency of a predicate"),
    (SUBMIT + "with pl.spmd(2, predicate=(asked[0] > 0)):\n    out = self.kernel(x, out)", "missing dependency of a predicate"),
    (SUBMIT + "with pl.at() as g:\n" + REGION + "\nout, _ = pl.submit(self.kernel, x, out, deps=[g], predicate=(asked[0] > 0))",
     "missing dependency of a predicate"),
    # A scheduler compares numbers with a sign.
    ("out, _ = pl.submit(self.kernel, x, out, predicate=(bytes[0] > 0))", "integer tensor element"),
])  # fmt: skip
def test_predicates(body: str, message: str) -> None:
    assert [message in said for _, _, said in refused(whole(body))] == [True]


@together('body', [
    SUBMIT + "out, _ = pl.submit(self.kernel, x, out, deps=[g], predicate=(asked[0] > 0))",
    "with pl.manual_scope():\n    asked, g = pl.submit(self.gate, x, asked)\n"
    "    _, h = pl.submit(self.kernel, x, out, deps=[g])\n"
    "    out, _ = pl.submit(self.kernel, x, out, deps=[h], predicate=(asked[0] > 0))",
    "out, _ = pl.submit(self.kernel, x, out, predicate=(asked[0] > 0))",
])  # fmt: skip
def test_predicates_that_wait(body: str) -> None:
    """For the writing task, for one that has waited for it; for no task if no write exists."""
    fine(whole(body))


def test_formats(capsys: pytest.CaptureFixture[str]) -> None:
    fine(whole("pl.static_print(f'{x.shape[0]:>5}|{\"a\"!r}|{2.5:{1}.1f}')\nout = self.kernel(x, out)"))
    assert "   64|'a'|2.5" in capsys.readouterr().out
    ((code, place, _),) = refused(whole("pl.static_print(f'{n:>4}')"))
    assert (code, place) == ("PTO-E3004", "f'{n:>4}'")


FUNCTION = """
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore{more})
    def kernel(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
{body}
"""


def function(body: str, more: str = "") -> str:
    return FUNCTION.format(more=more, body="\n".join(f"        {line}" for line in body.splitlines()))


STORE = "out = pl.store(pl.load(x, [0], [64]), [0], out)"
SPLIT = 'pl.func_attr({"split": pl.SplitMode.UP_DOWN})'


@together(('body', 'more', 'code', 'place'), [
    (STORE + "\n" + SPLIT, "", "PTO-E3006", SPLIT),
    (SPLIT + "\n" + SPLIT + "\n" + STORE, "", "PTO-E3003", '{"split": pl.SplitMode.UP_DOWN}'),
    ('pl.func_attr({"split": 1, "split": 2})\n' + STORE, "", "PTO-E3001", '"split"'),
    ('pl.func_attr({"auto_scope": True})\n' + STORE, "", "PTO-E3003", '{"auto_scope": True}'),
    (SPLIT + "\n" + STORE, ', attrs={"split": pl.SplitMode.NONE}', "PTO-E3003", '{"split": pl.SplitMode.UP_DOWN}'),
    (STORE, ", attrs=5", "PTO-E3003", "5"),
    (STORE, ", attrs={1: 2}", "PTO-E3003", "{1: 2}"),
])  # fmt: skip
def test_attributes(body: str, more: str, code: str, place: str) -> None:
    assert [(c, found) for c, found, _ in refused(function(body, more))] == [(code, place)]


def test_attributes_of_decorators_are_in_the_text() -> None:
    told = 'attrs={"split": pl.SplitMode.UP_DOWN}, auto_scope=False'
    one = pl.parse_program(function('"""A kernel."""\n' + STORE, f", {told}")).as_python()
    two = pl.parse_program(function(SPLIT + "\n" + STORE, ", auto_scope=False")).as_python()
    assert one == two == pl.parse_program(one).as_python()
    assert "auto_scope=False" in one and "pl.func_attr({'split': pl.SplitMode.UP_DOWN})" in one


@pl.jit
def plus(
    x: pl.Tensor[[16, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    n: pl.Scalar[pl.FP32] = pl.RUNTIME,
):
    with pl.at():
        y = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), n), [0, 0], y)
    return y


def test_numbers_that_calls_give() -> None:
    """`pl.RUNTIME` as a default is the same as no default: it is not a constant."""
    made, x, y = plus.compile(), np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    for n in (2.5, 4.0):
        made(x, y, n)
        np.testing.assert_array_equal(y, x + np.float32(n))


def test_decorators_ask_how_many_cores_there_are() -> None:
    @pl.program
    class Program:
        @pl.function(type=pl.FunctionType.Spmd, attrs={"core_num": pl.system.available_cluster_count()})
        def kernel(self, x: pl.Tensor[[4], pl.FP16]) -> pl.Tensor[[4], pl.FP16]:
            return x

    text = Program.as_python()
    assert "'core_num': 24" in text.replace('"', "'")
    assert pl.parse_program(text).as_python() == text
    assert pl.system.available_aiv_count() == 48


@together("dtype", [pl.HF4, pl.UINT4])
def test_e3009_elements_that_no_instruction_has(dtype: Any) -> None:
    @pl.program
    class Program:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[16, 64], dtype], y: pl.Out[pl.Tensor[[16, 64], dtype]]):
            pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)

    text = Program.as_python()
    assert dtype.bits == 4 and f"pl.{dtype.name}" in text
    assert pl.parse_program(text).as_python() == text
    with pytest.raises(pto.DiagnosticError, match="unsupported element type pl"):
        Program.lower()


def test_e3002_names_that_are_set_once() -> None:
    """If a function, or its program, declares so; branches and loops have names of their own."""
    body = "t = pl.load(x, [0], [64])\nt = pl.add(t, 1.0)\nout[0:64] = t"
    found = refused(function(body, ", strict_ssa=True"))
    assert [(c, place) for c, place, _ in found] == [("PTO-E3002", "t"), ("PTO-E3002", "out[0:64]")]
    assert refused(function(body).replace("@pl.program", "@pl.program(strict_ssa=True)")) == found
    pl.parse_program(function(body)).as_python()
    pl.parse_program(
        function("t = pl.load(x, [0], [64])\npl.store(t, [0], out)", ", strict_ssa=True")
    ).as_python()


KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[32, 64], pl.FP32], index: pl.Tensor[[32, 8], pl.INT32], n: pl.Scalar[pl.FP16]):
    t = pl.load(x, [0, 0], [32, 64])
    {body}
    return x
"""


@together(
    ("body", "code", "place"),
    [
        ("pl.gather(t, index=index, kvalue=1.0, out_cols=8)", "PTO-E3003", "1.0"),
        ("pl.gather(t, mask_pattern=1, kvalue=1.0, out_cols=8)", "PTO-E3003", "1.0"),
        ("pl.gather(t, kvalue=n, out_cols=8)", "PTO-E3004", "n"),
        ("pl.prefetch.async_prefetch(x, t)", "PTO-E3004", "t"),
        (
            "c = pl.prefetch.make_context(); pl.prefetch.wait(pl.prefetch.async_prefetch(x, c), c)",
            "PTO-E3004",
            "c",
        ),
    ],
)
def test_operators_that_are_told_two_things(body: str, code: str, place: str) -> None:
    with pytest.raises(pto.DiagnosticError) as caught:
        pl.parse(KERNEL.format(body=body)).as_python()
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, found.span.source.text[found.span.start : found.span.end]) == (code, place)


EXTERN = """
@pl.program
class Program:
    @pl.function(type=pl.FunctionType.{type}, external_source="kernel.cpp")
    def kernel(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
        "In C++."
        {body}
"""


def test_kernels_in_cpp() -> None:
    """On one kind of core, and without a body."""
    text = pl.parse_program(EXTERN.format(type="AIC", body="...")).as_python()
    assert text == pl.parse_program(text).as_python()
    assert refused(EXTERN.format(type="InCore", body="..."))[0][0] == "PTO-E3003"
    assert refused(EXTERN.format(type="AIV", body="return out"))[0][:2] == ("PTO-E3001", "return out")


def test_e3004_numbers_that_are_changed() -> None:
    text = function(STORE).replace("out: pl.Out", "n: pl.InOut[pl.Scalar[pl.INT32]], out: pl.Out")
    ((code, place, _),) = refused(text)
    assert (code, place) == ("PTO-E3004", "n: pl.InOut[pl.Scalar[pl.INT32]]")


def test_e3001_a_program_without_functions() -> None:
    assert refused("@pl.program\nclass Nothing:\n    pass\n")[0][:2] == ("PTO-E3001", "class Nothing:")


@together('shape', ["'64x64'", "[64.0, 64.0]", "[64, True]"])  # fmt: skip
def test_e3004_extents_that_are_no_numbers(shape: str) -> None:
    text = f"@pl.function\ndef f(x: pl.Tensor[{shape}, pl.FP32]):\n    return x\n"
    with pytest.raises(pto.DiagnosticError) as caught:
        pl.parse(text).as_python()
    (found,) = caught.value.diagnostics
    assert (found.code, found.span and found.span.line) == ("PTO-E3004", 2)


def test_texts_of_programs() -> None:
    """`pl.parse` reads a function or a program, and a program is accepted in place of its text."""
    text = function(STORE)
    assert str(pl.parse(text)) == pl.parse_program(text).as_python() == f"{pl.parse_program(text)}"

    @pl.function
    def kernel(x: pl.Tensor[[64], pl.FP32]):
        return x

    assert "class Kernel:" in str(kernel) == str(pl.parse(str(kernel)))
    with pytest.raises(pto.DiagnosticError, match="missing function or program in"):
        pl.parse("n = 1")
    with pytest.raises(ValueError, match="missing function or program in") as nothing:
        pl.parse("n = 1")
    with pytest.raises(SyntaxError, match="invalid syntax") as unread:
        pl.parse("n = 1 +")
    for error in (nothing.value, unread.value):  # the classes that programs for pypto expect
        assert isinstance(error, pto.DiagnosticError) and error.diagnostics[0].code == "PTO-E3001"
