"""The catalogue is complete: every code the sources name is explained, and every code of ours is tested."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from tests import wording
from tests.each import each

import pto
from pto.cli import error_programs
from pto.isa import errors

_SOURCES = Path(pto.__file__).parent
_TESTS = Path(__file__).parent
_GOLDEN = _TESTS / "golden" / "errors"
_REPORTED = re.compile(r"\[((?:PTO-E|SA-|PA-|CA-)\d{4})\]")
_CODE = re.compile(r"\b(?:PTO-E\d{4}|(?:SA|PA|CA)-\d{4})\b")

#: Codes without a program: code -> the test that causes it.
_TESTED = {
    "PTO-E2423": "test_wire.py::test_what_is_wrong_is_said",
    "PTO-E2424": "host/test_programs.py::test_e2424_damaged_bytes",
    "PTO-E2017": "debug/test_dap.py::test_launches_that_cannot_be",
    "PTO-E0006": "lsp/test_server.py::test_without_pygls",
    "PTO-E0007": "lsp/test_server.py::test_a_bug_does_not_end_the_server",
    "PTO-E1215": "bytecode/test_hostile.py::test_e1215_long_texts_named_often",
    "PTO-E2406": "objects/test_refused.py::test_e2406_without_llvmlite",
    "PTO-E2440": "proof/test_prove.py::test_e2440_no_solver",
    "PTO-E2608": "runtime/test_folder.py::test_e2608_no_native_module",
    "PTO-E2609": "runtime/test_folder.py::test_e2609_a_failing_engine",
    "PTO-E2629": "runtime/test_session.py::test_e2629_what_must_not_be",
}

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


def _programs() -> dict[str, list[Path]]:
    """Return golden files with an error by the code in their names."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(_GOLDEN.glob("*.*")):
        if not path.stem.endswith("_ok"):
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


def test_every_code_has_a_program_or_a_reason() -> None:
    """Programs are golden files, which run, or those of the sanitizers, which run, too."""
    programs = _programs()
    corpus = "\n".join(
        p.read_text(encoding="utf-8") for p in (_TESTS / "sanitize/programs").glob("*.bad.pto")
    )

    def check(code: str) -> None:
        if code not in error_programs.WITHOUT:
            assert programs[code] or f" {code} " in corpus, f"add tests/golden/errors/{code}_what.pto"
            return
        assert not programs[code], "it has a program"
        file, _, name = _TESTED[code].partition("::")
        assert f"def {name}(" in (_TESTS / file).read_text(encoding="utf-8")

    each(check, _raised())
    assert set(_TESTED) == set(error_programs.WITHOUT)


def test_a_program_reports_its_code_alone_and_its_twin_nothing() -> None:
    known, programs = set(_raised()), _programs()
    failing = [path for paths in programs.values() for path in paths]
    assert set(_GOLDEN.glob("*_ok.*")) == {*map(error_programs.twin, failing)} and not set(programs) - known

    def reported(path: Path) -> set[str]:
        return set(_REPORTED.findall(path.read_text(encoding="utf-8")))

    def check(path: Path) -> None:
        varies = re.search(
            r"^(//|#) VARIES$", path.read_text(encoding="utf-8"), re.M
        )  # the golden test looks
        assert varies or reported(path) == {path.name.partition("_")[0]}
        assert not reported(error_programs.twin(path))

    each(check, failing)
