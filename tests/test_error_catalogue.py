"""The catalogue is complete: every code the sources name is explained, and every code of ours is tested."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from tests import wording
from tests.each import each

import pto
from pto.isa import errors

_SOURCES = Path(pto.__file__).parent
_TESTS = Path(__file__).parent
_GOLDEN = _TESTS / "golden" / "errors"
_CODE = re.compile(r"\b(?:PTO-E\d{4}|(?:SA|PA|CA)-\d{4})\b")

#: Codes about files and ranks, which a golden file cannot show or a corpus does: code -> the test that does.
_PYTHON_TESTS = {
    "PTO-E3104": "compat/test_simpler.py::test_e3104_another_package",
    "PTO-E3105": "compat/test_simpler.py::test_e3105_modules_that_nothing_stands_for",
    "PTO-E3106": "compat/test_simpler.py::test_e3106_what_is_not_here",
    "PTO-E3107": "compat/test_simpler.py::test_scene",
    "PTO-E2408": "perf/test_costs.py::test_e2408_a_dry_run_that_depends_on_data",
    "PTO-E2409": "test_cache_owners.py::test_e2409_a_folder_that_others_can_write",
    "PTO-E2420": "host/test_programs.py::test_wrong_calls_are_told",
    "PTO-E2421": "host/test_rewrite.py::test_launches_that_cannot_be_read",
    "PTO-E2422": "host/test_programs.py::test_a_rank_that_is_killed_ends_the_others",
    "PTO-E2423": "test_wire.py::test_what_is_wrong_is_said",
    "PTO-E2424": "host/test_programs.py::test_e2424_damaged_bytes",
    "PTO-E2016": "debug/test_prompt.py::test_what_is_wrong_with_options",
    "PTO-E2018": "engine/cpp/test_record.py::test_what_is_refused",
    "PTO-E2017": "debug/test_dap.py::test_launches_that_cannot_be",
    "PTO-E0001": "cli/test_input_errors.py::test_e0001_missing_file",
    "PTO-E0006": "lsp/test_server.py::test_without_pygls",
    "PTO-E0007": "lsp/test_server.py::test_a_bug_does_not_end_the_server",
    "PTO-E0002": "cli/test_input_errors.py::test_e0002_output_folder_missing",
    "PTO-E0004": "cli/test_input_errors.py::test_e0004_cpp_and_libraries",
    "PTO-E0005": "objects/test_refused.py::test_e0005_contradictions",
    "PTO-E0103": "cli/test_input_errors.py::test_e0103_place_of_the_bad_byte",
    "PTO-E0502": "passes/test_infer_layout.py::test_e0502_layouts_that_the_strides_contradict",
    "PTO-E1108": "passes/test_reserve_buffers.py::test_e1108_no_room",
    "PTO-E1109": "passes/test_reserve_buffers.py::test_e1109_more_pipes_than_flags",
    "PTO-E1201": "bytecode/test_hostile.py::test_e1201_not_bytecode",
    "PTO-E1202": "bytecode/test_hostile.py::test_e1202_version",
    "PTO-E1203": "bytecode/test_hostile.py::test_e1203_payload_length",
    "PTO-E1204": "bytecode/test_hostile.py::test_e1204_sections",
    "PTO-E1205": "bytecode/test_hostile.py::test_e1205_truncated",
    "PTO-E1206": "bytecode/test_hostile.py::test_e1206_leb",
    "PTO-E1207": "bytecode/test_hostile.py::test_e1207_utf8",
    "PTO-E1208": "bytecode/test_hostile.py::test_e1208_ids",
    "PTO-E1209": "bytecode/test_hostile.py::test_e1209_counts",
    "PTO-E1210": "bytecode/test_hostile.py::test_e1210_left_over",
    "PTO-E1211": "bytecode/test_hostile.py::test_e1211_unknown",
    "PTO-E1212": "bytecode/test_hostile.py::test_e1212_texts",
    "PTO-E1213": "bytecode/test_hostile.py::test_e1213_constants",
    "PTO-E1214": "bytecode/test_hostile.py::test_e1214_shape",
    "PTO-E1215": "bytecode/test_hostile.py::test_e1215_long_texts_named_often",
    "PTO-E1216": "bytecode/test_strict.py::test_e1216_all_at_once",
    "PTO-E1221": "image/test_hostile.py::test_e1221_no_images",
    "PTO-E1222": "image/test_hostile.py::test_e1222_versions",
    "PTO-E1223": "image/test_hostile.py::test_e1223_elf",
    "PTO-E1224": "image/test_hostile.py::test_e1224_words",
    "PTO-E1225": "engine/native/test_files.py::test_e1225_no_text_of_a_file_is_compiled",
    "PTO-E1226": "image/test_hostile.py::test_e1226_listings",
    "PTO-E2212": "sanitize/test_corpus.py::test_the_bug_is_found",
    "PTO-E2213": "sanitize/test_corpus.py::test_the_bug_is_found",
    "PTO-E2214": "engine/test_ranks.py::test_a_signal_that_nobody_waits_for_is_told",
    "PTO-E2215": "engine/test_ranks.py::test_a_signal_that_was_left_is_told",
    "PTO-E2216": "sanitize/test_corpus.py::test_the_bug_is_found",
    "PTO-E2217": "sanitize/test_corpus.py::test_the_bug_is_found",
    "PTO-E2218": "sanitize/test_corpus.py::test_the_bug_is_found",
    "PTO-E2401": "engine/cpp/test_build.py::test_e2401_no_compiler",
    "PTO-E2402": "engine/cpp/test_kernel.py::test_e2402_a_compiler_error_names_the_line_of_the_program",
    "PTO-E2403": "engine/cpp/test_kernel.py::test_e2403_options_of_the_reference_engine",
    "PTO-E2404": "cli/test_build.py::test_e2404_no_such_kernel",
    "PTO-E2405": "engine/cpp/test_files.py::test_e2405_libraries_that_cannot_be_run",
    "PTO-E2406": "objects/test_refused.py::test_e2406_without_llvmlite",
    "PTO-E2407": "objects/test_refused.py::test_e2407_names_that_are_no_symbols",
    "PTO-E2019": "proof/test_prove.py::test_e2019_launches_check_assumptions",
    "PTO-E2440": "proof/test_prove.py::test_e2440_no_solver",
    "PTO-E2441": "proof/test_prove.py::test_e2441_assumptions_that_cannot_be",
    "PTO-E2442": "proof/test_prove.py::test_e2442_an_instruction_that_is_not_followed",
    "PTO-E2601": "runtime/test_folder.py::test_e2601_missing_files",
    "PTO-E2602": "runtime/test_golden.py::test_e2602_an_exception_names_its_line",
    "PTO-E2603": "runtime/test_folder.py::test_e2603_all_mistakes_at_once",
    "PTO-E2604": "runtime/test_golden.py::test_e2604_unknown_case",
    "PTO-E2605": "runtime/test_compile.py::test_e2605_no_entry_point",
    "PTO-E2606": "runtime/test_golden.py::test_e2606_what_differs",
    "PTO-E2607": "runtime/test_folder.py::test_e2607_stray_writes",
    "PTO-E2608": "runtime/test_folder.py::test_e2608_no_native_module",
    "PTO-E2609": "runtime/test_folder.py::test_e2609_a_failing_engine",
    "PTO-E2610": "runtime/test_compile.py::test_e2610_a_view_needs_a_tensor",
    "PTO-E2611": "runtime/test_hazards.py::test_e2611_a_reader_and_a_later_writer",
    "PTO-E2620": "runtime/test_seed_rings.py::test_flow_control_deadlock_text",
    "PTO-E2621": "runtime/test_session.py::test_a_number_for_a_tensor_and_the_reverse",
    "PTO-E2622": "runtime/test_failures.py::test_threads_end_with_the_error",
    "PTO-E2623": "runtime/test_seed_api.py::test_a_throwing_orchestration",
    "PTO-E2624": "runtime/test_session.py::test_e2624_a_core_that_waits_for_nobody",
    "PTO-E2625": "runtime/test_graph.py::test_cycle_is_named",
    "PTO-E2626": "runtime/test_virtual_time.py::test_what_cannot_be",
    "PTO-E2627": "runtime/test_virtual_time.py::test_tables_that_make_no_sense",
    "PTO-E2629": "runtime/test_session.py::test_e2629_what_must_not_be",
    "PTO-E2801": "perf/test_records.py::test_e2801_unreadable",
    "PTO-E2802": "perf/test_records.py::test_e2802_contradictions",
    "PTO-E2901": "tune/test_tune.py::test_e2901_what_makes_no_sense",
    "PTO-E2902": "tune/test_tune.py::test_the_tool",
    "PTO-E3001": "language/test_problems.py::test_e3001_python_that_is_not_in_the_language",
    "PTO-E3002": "language/test_problems.py::test_e3002_names",
    "PTO-E3003": "language/test_problems.py::test_e3003_and_e3004_arguments_and_types",
    "PTO-E3004": "language/test_problems.py::test_e3003_and_e3004_arguments_and_types",
    "PTO-E3005": "language/test_problems.py::test_e3005_shapes",
    "PTO-E3006": "language/test_problems.py::test_e3006_misplaced",
    "PTO-E3007": "language/test_problems.py::test_e3007_calls",
    "PTO-E3008": "language/test_problems.py::test_e3008_names_that_are_two_things",
    "PTO-E3009": "language/test_problems.py::test_e3009_what_is_not_built",
    "PTO-E3010": "language/test_problems.py::test_e3010_and_e3011_outputs_and_directions",
    "PTO-E3011": "language/test_problems.py::test_e3010_and_e3011_outputs_and_directions",
    "PTO-E3012": "language/test_problems.py::test_e3012_reductions_over_padding",
    "PTO-E3013": "language/test_problems.py::test_e3013_claims_of_independence",
    "PTO-E3014": "language/test_problems.py::test_e3014_holes",
    "PTO-E3015": "language/test_problems.py::test_e3015_tensors_that_are_overwritten_while_in_use",
    "PTO-E3016": "language/test_ranks.py::test_e3016_races_between_ranks",
    "PTO-E3101": "compat/test_report.py::test_e3101_another_package",
    "PTO-E3102": "compat/test_names.py::test_e3102_modules_that_nothing_stands_for",
    "PTO-E3103": "compat/test_names.py::test_e3103_names_that_are_refused",
}

#: Codes of a bytecode file, which is binary: a Python test of this folder names each of them.
_BYTECODE_TESTS = _TESTS / "bytecode"

#: Field codes that Python code raises, rather than a rule of a row (those are in the generated matrix).
_RAISING_FOLDERS = ("asm", "verifier", "cli")


def _literals() -> dict[str, set[Path]]:
    """Every code written in the sources, with the files that write it; the catalogue itself does not count."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    native = _TESTS.parent / "native"
    for path in (*_SOURCES.rglob("*.py"), *(native / "host").rglob("*.cpp")):
        if path.name not in ("errors.py", "own_errors.py"):
            for code in _CODE.findall(path.read_text(encoding="utf-8")):
                found[code].add(path.relative_to(_SOURCES if path.suffix == ".py" else native))
    return found


def _raised() -> list[str]:
    return sorted(
        code
        for code, files in _literals().items()
        if code.startswith("PTO-E") or any(f.parts[0] in _RAISING_FOLDERS for f in files)
    )


@cache
def _golden(suffix: str) -> dict[str, list[Path]]:
    """Golden files by the code they are named after."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in _GOLDEN.glob("*.pto"):
        if path.stem.endswith("_ok") == (suffix == "_ok"):
            found[path.name.partition("_")[0]].append(path)
    return found


def test_every_code_of_the_sources_is_in_the_catalogue() -> None:
    literals = _literals()
    assert literals, "no codes found: the walk is broken"
    unknown = {
        code: sorted(map(str, files)) for code, files in literals.items() if code not in errors.CATALOGUE
    }
    assert not unknown


def test_every_code_of_ours_is_raised_somewhere() -> None:
    assert not {e.code for e in errors.OWN} - set(_literals())


def test_every_entry_is_filled() -> None:
    each(entry_is_filled, errors.CATALOGUE.values())


def entry_is_filled(entry: errors.CatalogueEntry) -> None:
    assert errors.CATALOGUE[entry.code] is entry
    for name in ("title", "explain", "fix"):
        text = getattr(entry, name)
        assert text and text == text.strip(), name
    assert entry.explain.endswith(".") and entry.fix.endswith("."), "sentences end with a full stop"
    assert not entry.title.endswith("."), "a title is no sentence"
    assert not re.match(r"(What|Whether|How|The|This|It|You|There)\b", entry.fix), "the way out is what to do"
    assert not re.search(r"\b(nobody|whoever|somebody)\b", " ".join((entry.title, entry.explain, entry.fix)))
    assert "{op}" not in entry.title + entry.explain + entry.fix, "unfilled placeholder"


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    """Whether it is so."""\n',
        'fail("E1", f"\'{x}\' is no tile")\n',
        "report(op, 'nobody reads it')\n",
    ],
)
def test_the_lint_finds_wording_that_is_always_wrong(text: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(text)
    assert len(list(wording.problems(tmp_path / "wrong.py"))) == 1


def test_entries_are_looked_up_in_any_case() -> None:
    assert errors.entry("pto-e0101") is errors.CATALOGUE["PTO-E0101"]
    with pytest.raises(KeyError):
        errors.entry("PTO-E9999")


def test_every_code_has_a_failing_golden_and_its_twin() -> None:
    each(has_golden_and_twin, _raised())


def has_golden_and_twin(code: str) -> None:
    if code in _PYTHON_TESTS:
        file, _, name = _PYTHON_TESTS[code].partition("::")
        assert f"def {name}(" in (_TESTS / file).read_text(encoding="utf-8")
        return
    if code.startswith("PTO-E12"):
        texts = (path.read_text(encoding="utf-8") for path in _BYTECODE_TESTS.glob("*.py"))
        assert any(code in text for text in texts), f"no test in {_BYTECODE_TESTS} names {code}"
        return
    failing, passing = _golden("")[code], _golden("_ok")[code]
    assert failing, f"add tests/golden/errors/{code}_what.pto"
    assert {p.stem + "_ok" for p in failing} == {p.stem for p in passing}, "every failing golden has a twin"
    for path in failing:
        _, _, expected = path.read_text(encoding="utf-8").partition("// STDERR:")
        assert set(_CODE.findall(expected)) == {code}, f"{path.name} shows {code} and nothing else"
    for path in passing:
        assert "// STDERR" not in path.read_text(encoding="utf-8"), f"{path.name} has nothing to say"


def test_no_golden_is_left_over() -> None:
    known = set(_raised())
    assert not {path.name for kind in ("", "_ok") for code, paths in _golden(kind).items() if code not in known
                for path in paths}  # fmt: skip
