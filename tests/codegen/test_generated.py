"""Files that are generated from the instruction table: up to date, and a slice of them as a golden for review."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.codegen.__main__ import FILES
from pto.codegen.generated import write
from pto.language import stub

SLICE = Path(__file__).with_name("generated.txt")
#: Words of the blocks that are shown of each header: one instruction for each generator.
SHOWN = {
    "machine_facts.hpp": "PTO_UBUF_SIZE_BYTES",
    "element_types.hpp": "PTO_FLOAT_FIELDS",
    "legality.hpp": "check_tlrelu|check_tgatherb|check_trowmax",
    "meanings.hpp": "struct tlrelu|TLRELU",
    "regular.hpp": "TROWMAX",
    "calls.hpp": "TGATHERB",
    "tags.hpp": "PIPE_V|MODE_ZEROING",
    "arithmetic.hpp": "struct vlrelu|vlrelu",
}


def test_they_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """After a change of the table: `make generate`."""
    assert write({**FILES, **stub.FILES}, ["--check"]) == 0, capsys.readouterr().out


def test_a_file_that_does_not_change_keeps_its_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = tmp_path / "names.hpp", tmp_path / "other.hpp"
    other.write_text("2\n")
    made = {file: lambda: "1\n", other: lambda: "2\n"}
    time = other.stat().st_mtime_ns
    assert write(made, ["--check"]) == 1 and not file.exists()
    assert capsys.readouterr().out == "names.hpp is out of date: make generate\nother.hpp is up to date\n"
    assert write(made, []) == 0 and file.read_text() == "1\n" and other.stat().st_mtime_ns == time


def test_a_slice_of_them(request: pytest.FixtureRequest) -> None:
    """A change of a generator shows here. `pytest tests/codegen --rebase` rewrites the slice."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in FILES if path.suffix == ".hpp"}
    assert set(texts) == set(SHOWN)
    parts: list[str] = []
    for name, words in SHOWN.items():
        shown = [b for b in re.split(r"\n\n+", texts[name].strip()) if re.search(rf"\b(?:{words})", b)]
        assert shown, name
        parts += [f"==== {name}", *("\n".join(b.split("\n")[:60]) for b in shown)]
    made = "\n\n".join(parts) + "\n"
    if request.config.getoption("--rebase"):
        SLICE.write_text(made, encoding="utf-8")
    assert made == SLICE.read_text(encoding="utf-8")
