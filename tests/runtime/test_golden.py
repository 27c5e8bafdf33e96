"""golden.py: cases, arguments, expected results, and the comparison with them (spec section 6.2)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pto import knobs
from pto.diag import Diagnostic, DiagnosticError
from pto.runtime.compare import compare
from pto.runtime.golden import Golden

from .folder_kit import GOLDEN

Load = Callable[[str], Golden]
HEAD = "import ctypes\nimport numpy as np\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def make(text: str) -> Golden:
        path = tmp_path / "golden.py"
        path.write_text(HEAD + text)
        return Golden(str(path))

    return make


def _inputs(items: str, more: str = "") -> str:
    return f"{more}\ndef generate_inputs(params):\n    return {items}\ndef compute_golden(tensors, params):\n    pass\n"


def _error(load: Load, text: str) -> Diagnostic:
    with pytest.raises(DiagnosticError) as caught:
        golden = load(text)
        golden.arguments(golden.choose()[0])
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0]


# -- arguments ---------------------------------------------------------------------------------------------


def test_a_list_gives_words_in_its_order(load: Load) -> None:
    """Section 6.2: argument order is list order; floats are bit-packed, other scalars are integers."""
    items = (
        "[('n', ctypes.c_int32(-1)), ('x', np.arange(6, dtype=np.float16).reshape(2, 3)),"
        " ('s', ctypes.c_float(1.5)), ('d', ctypes.c_double(-2.0)), ('out_y', np.zeros(4, np.int64)),"
        " ('flag', ctypes.c_bool(True))]"
    )
    arguments = load(_inputs(items)).arguments({"name": "Default"})
    words = arguments.words({"x": 0x1000, "out_y": 0x2000})
    bits = struct.unpack("<I", struct.pack("<f", 1.5))[0], struct.unpack("<Q", struct.pack("<d", -2.0))[0]
    assert words == [(1 << 64) - 1, 0x1000, bits[0], bits[1], 0x2000, 1]
    assert [t.name for t in arguments.outputs] == ["out_y"]
    assert arguments.scalars == {"n": -1, "s": 1.5, "d": -2.0, "flag": True}


def test_a_dict_gives_addresses_sizes_and_a_count(load: Load) -> None:
    """Section 6.2: the older form is [pointers, sizes in bytes, elements of the first tensor]."""
    items = "{'out_z': np.zeros(3, np.float32), 'x': np.zeros((4, 5), np.int16), 'extra': np.zeros(1)}"
    plain = load(_inputs(items)).arguments({"name": "Default"})
    at = {"out_z": 10, "x": 20, "extra": 30}
    assert plain.words(at) == [10, 20, 30, 12, 40, 8, 3]
    ordered = load(_inputs(items, "TENSOR_ORDER = ['x', 'out_z']")).arguments({"name": "Default"})
    assert ordered.words(at) == [20, 10, 40, 12, 20]
    assert {t.name for t in ordered.tensors} == set(at)


def test_outputs_are_those_named_else_those_that_begin_with_out(load: Load) -> None:
    items = "[('out_a', np.zeros(1)), ('b', np.zeros(1))]"
    named = load(_inputs(items, "__outputs__ = ['b']")).arguments({"name": "Default"})
    assert [t.name for t in named.outputs] == ["b"]
    assert [t.name for t in load(_inputs(items)).arguments({}).outputs] == ["out_a"]


def test_arrays_are_made_contiguous_and_keep_their_shape(load: Load) -> None:
    items = "[('out_t', np.arange(6).reshape(2, 3).T), ('s', np.array(5.0))]"
    tensors = load(_inputs(items)).arguments({}).tensors
    assert tensors[0].array.flags.c_contiguous and tensors[0].array.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors[1].array.shape == ()


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("[('out_a', [1, 2])]", "gives 'out_a' as a list"),
        ("[('out_a', np.zeros(1)), ('n', 5)]", "gives 'n' as an int"),
        ("[np.zeros(1)]", "element 0 is a ndarray, expected a pair"),
        ("[('out_a', np.zeros(1)), ('out_a', np.zeros(1))]", "two values the name 'out_a'"),
        ("[('out_a', np.array([None]))]", "array of Python objects"),
        ("[('out_a', np.zeros(1)), ('c', ctypes.c_char(b'x'))]", "expected a number"),
        ("[('a', np.zeros(1))]", "missing output tensors"),
        ("np.zeros(1)", "returns a ndarray"),
        ("{}", "empty dict"),
    ],
)
def test_wrong_inputs_are_refused(load: Load, items: str, words: str) -> None:
    problem = _error(load, _inputs(items))
    assert problem.code == "PTO-E2603" and words in problem.message


def test_names_that_no_tensor_has(load: Load) -> None:
    items = "[('result', np.zeros(1))]"
    assert "did you mean 'result'" in _error(load, _inputs(items, "__outputs__ = ['resullt']")).help
    missing = _error(load, _inputs("{'out_a': np.zeros(1)}", "TENSOR_ORDER = ['b']"))
    assert "'b' of TENSOR_ORDER" in missing.message and missing.span is not None


# -- cases -------------------------------------------------------------------------------------------------

CASES = "ALL_CASES = {'A': {'n': 1}, 'B': {'n': 2, 'context_len': 9}}\nDEFAULT_CASE = 'B'\n"


def test_cases(load: Load) -> None:
    """Section 6.2: params are {"name": case, **parameters}; a file without cases has one, "Default"."""
    golden = load(_inputs("[]", CASES))
    assert golden.choose() == [{"name": "B", "n": 2, "context_len": 9}]
    assert golden.choose("A") == [{"name": "A", "n": 1}]
    assert [p["name"] for p in golden.choose(every=True)] == ["A", "B"]
    assert load(_inputs("[]")).choose() == [{"name": "Default"}]


def test_e2604_unknown_case(load: Load) -> None:
    golden = load(_inputs("[]", CASES))
    with pytest.raises(DiagnosticError, match=r"unknown case 'C' \(--case\); available: A, B") as caught:
        golden.choose("C")
    assert caught.value.diagnostics[0].code == "PTO-E2604"
    # As in the documents: without DEFAULT_CASE, or with one that is not there, the first case runs.
    without = load(_inputs("[]", "ALL_CASES = {'A': {}, 'B': {}}"))
    assert without.choose() == [{"name": "A"}] and not without.warnings({"name": "A"})
    other = load(_inputs("[]", CASES.replace("'B'\n", "'C'\n")))
    assert [c["name"] for c in other.choose()] == ["A"]
    (warning,) = other.warnings({"name": "A"})
    assert warning.severity == "warning" and warning.span is not None
    assert warning.message == "unknown case 'C' (DEFAULT_CASE): the first case runs, 'A'"
    with pytest.raises(DiagnosticError, match=r"unknown case .* \(DEFAULT_CASE\)"):
        load(_inputs("[]", CASES + "DEFAULT_CASE = ['A']")).choose()


def test_case_and_lengths_from_the_environment(load: Load) -> None:
    """Section 2.11: PA_CASE and PA_SEQ_LEN; --case is stronger."""
    golden = load(_inputs("[]", CASES))
    with knobs.override(PA_CASE="A"):
        assert golden.choose()[0]["name"] == "A"
        assert golden.choose("B")[0]["name"] == "B"
        assert load(_inputs("[]")).choose()[0]["name"] == "Default"
    with knobs.override(PA_SEQ_LEN="33,17"):
        assert golden.choose("B") == [{"name": "B", "n": 2, "context_len": 33, "context_lens_list": [33, 17]}]
        assert golden.choose("A") == [{"name": "A", "n": 1}]
    with (
        knobs.override(PA_SEQ_LEN="33,x"),
        pytest.raises(DiagnosticError, match="for PA_SEQ_LEN, got '33,x'"),
    ):
        golden.choose("B")


def test_unused_lengths_are_warned_of(load: Load) -> None:
    golden = load(_inputs("[]", "ALL_CASES = {'A': {'batch': 2, 'context_len': 16}, 'B': {'n': 2}}"))

    def said(case: str, lengths: str) -> list[tuple[str, str]]:
        with knobs.override(PA_SEQ_LEN=lengths):
            (params,) = golden.choose(case)
            return [(d.severity, d.message) for d in golden.warnings(params)]

    assert said("A", "33,17") == said("A", "33") == said("A", "") == []
    assert said("A", "33,17,4,5") == [
        ("warning", "case A: 4, 5 of PA_SEQ_LEN are not used: the case has 2 sequences")
    ]
    assert said("B", "33") == [("warning", "case B: 33 of PA_SEQ_LEN is not used: the case has no lengths")]


def test_an_output_by_its_name(load: Load) -> None:
    """The description has no `__outputs__`: its output is called `out`."""
    golden = load(_inputs("[('x', np.zeros(2)), ('out', np.zeros(2)), ('outer', np.zeros(2))]"))
    assert [t.name for t in golden.arguments({}).outputs] == ["out"]


# -- effects of the file -----------------------------------------------------------------------------------


def test_golden_works_on_copies_of_outputs_and_sees_scalars(load: Load) -> None:
    text = """
def generate_inputs(params):
    return [('x', np.ones(2)), ('out_y', np.full(2, 5.0)), ('out_z', np.zeros(2)), ('k', ctypes.c_int64(3))]
def compute_golden(tensors, params):
    tensors['out_y'] += tensors['x'] * tensors['k']
    tensors['out_z'] = np.array([7.0, params['p']])
"""
    golden = load(text)
    arguments = golden.arguments({"p": 8})
    expected = golden.expected(arguments, {"p": 8})
    assert expected["out_y"].tolist() == [8.0, 8.0] and expected["out_z"].tolist() == [7.0, 8.0]
    assert arguments.outputs[0].array.tolist() == [5.0, 5.0], "the run starts from the content of before"


def test_e2602_an_exception_names_its_line(load: Load) -> None:
    problem = _error(
        load, "def generate_inputs(params):\n    return params['size']\ndef compute_golden(t, p): pass\n"
    )
    assert problem.code == "PTO-E2602" and "KeyError: 'size'" in problem.message
    assert problem.span is not None and problem.span.place == (4, 5)
    assert "invalid Python" in _error(load, "def f(:\n").message
    assert "SystemExit" in _error(load, "raise SystemExit(3)\n").message
    unknown = _error(load, "import no_such_module_at_all\n")
    assert "pip install no_such_module_at_all" in unknown.help


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def generate_inputs(params): return []\n", "missing compute_golden(tensors, params) in"),
        (_inputs("[]", "RTOL = 'small'"), "for RTOL, got 'small'"),
        (_inputs("[]", "ATOL = -1"), "for ATOL, got -1"),
        (_inputs("[]", "ATOL = float('inf')"), "for ATOL, got inf"),
        (_inputs("[]", "__outputs__ = 'out_y'"), "for __outputs__, got a str"),
        (_inputs("[]", "__outputs__ = 5"), "for __outputs__, got an int"),
        (_inputs("[]", "ALL_CASES = ['A']"), "expected a dict of cases for ALL_CASES"),
        (_inputs("[]", "ALL_CASES = {'A': 3}"), "case 'A' of ALL_CASES"),
    ],
)
def test_wrong_files_are_refused(load: Load, text: str, words: str) -> None:
    problem = _error(load, text)
    assert problem.code == "PTO-E2603" and words in problem.message


def test_torch_tensors(load: Load) -> None:
    """bfloat16 passes through unchanged, and NumPy arrays are torch tensors where the file uses torch."""
    torch = pytest.importorskip("torch")
    golden = load("""
import torch
def generate_inputs(params):
    return [('x', torch.tensor([1.5, 2.5], dtype=torch.bfloat16)), ('out_y', np.zeros(2, np.float32)),
            ('w', torch.arange(6).reshape(2, 3).t())]
def compute_golden(tensors, params):
    assert all(isinstance(t, torch.Tensor) for t in tensors.values())
    tensors['out_y'][:] = tensors['x'].float() * 2
""")
    arguments = golden.arguments({})
    x, _, w = arguments.tensors
    assert x.array.dtype == ml_dtypes.bfloat16 and x.array.tolist() == [1.5, 2.5]
    assert w.array.flags.c_contiguous and w.array.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert golden.expected(arguments, {})["out_y"].tolist() == [3.0, 5.0]
    assert torch.bfloat16 == x.value.dtype


# -- comparing ---------------------------------------------------------------------------------------------


def test_an_element_matches_within_both_tolerances() -> None:
    expected = np.array([100.0, 0.0, 1.0])
    assert compare("y", expected + np.array([0.9, 0.009, 0.0]), expected, 0.01, 0.01).ok
    worse = compare("y", expected + np.array([1.02, 0.009, 0.0]), expected, 0.01, 0.01)
    assert worse.mismatched == 1 and math.isclose(worse.max_abs, 1.02)
    assert math.isclose(worse.max_rel, 0.0102)


def test_e2606_what_differs() -> None:
    expected = np.zeros((3, 4), np.float32)
    actual = expected.copy()
    actual[1, 2], actual[2, 3] = 5.0, -7.0
    found = compare("out", actual, expected, 1e-5, 1e-5)
    problem = found.problem("Case1")
    assert problem.code == "PTO-E2606"
    assert problem.message == "case Case1: output 'out' does not match golden: 2 of 12 elements differ"
    assert problem.expected.startswith("0 at [1, 2]") and problem.got == "5"
    assert found.max_abs == 7.0


def test_nan_never_matches_and_equal_infinities_do() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0])
    found = compare("y", values, values.copy(), 0.1, 0.1)
    assert found.mismatched == 1 and found.first is not None and found.first[0] == (0,)
    other = compare("y", np.array([np.inf, 1.0, np.inf]), np.array([-np.inf, np.inf, 1.0]), 0.1, 0.1)
    assert other.mismatched == 3


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.int64, np.bool_])
def test_every_element_type(dtype: type) -> None:
    expected = np.array([0, 1, 1], dtype)
    actual = np.array([0, 1, 0], dtype)
    assert compare("y", expected.copy(), expected, 0.0, 0.0).ok
    found = compare("y", actual, expected, 1e-5, 1e-5)
    assert (
        found.mismatched == 1 and found.max_abs == 1.0 and found.first is not None and found.first[0] == (2,)
    )


def test_large_integers_differ_by_one() -> None:
    expected = np.array([1 << 60], np.int64)
    assert compare("y", expected + 1, expected, 0.0, 0.0).mismatched == 1


def test_shapes() -> None:
    assert compare("y", np.zeros((2, 3)), np.zeros(6), 0.0, 0.0).ok, "a flat golden is fine"
    found = compare("y", np.zeros(6), np.zeros(5), 0.0, 0.0)
    assert not found.ok and "the shapes differ" in found.problem("A").message
    assert compare("y", np.zeros(0), np.zeros(0), 0.0, 0.0).ok


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('tensors["f"][:] = ', 'del tensors["f"]; _ = ', "compute_golden removed 'f'"),
        ('tensors["f"][:] = ', 'tensors["f"] = None; _ = ', "sets 'f' to a NoneType"),
        ('tensors["f"][:] = ', 'tensors["f"] = [[1], [2, 3]]; _ = ', "sets 'f' to a list"),
    ],
)
def test_what_golden_may_not_make_of_an_output(load: Load, old: str, new: str, words: str) -> None:
    golden = load(GOLDEN.replace(old, new))
    params = golden.choose()[0]
    with pytest.raises(DiagnosticError, match=words):
        golden.expected(golden.arguments(params), params)


@pytest.mark.parametrize("dtype", ["'U4'", "[('a', 'f4')]", "'M8[s]'", "'V3'"])
def test_arrays_of_what_is_no_number(load: Load, dtype: str) -> None:
    golden = load(GOLDEN.replace("np.zeros(n, np.float32)", f"np.zeros(n, {dtype})"))
    with pytest.raises(DiagnosticError, match="expected numbers"):
        golden.arguments(golden.choose()[0])
