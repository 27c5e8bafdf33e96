"""`pto examples`: every example is listed, and copies are whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_program_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    listed = {line.partition("  ")[0] for line in capsys.readouterr().out.splitlines()}
    programs = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.pto")}
    graphs = {f"{path.parent.relative_to(EXAMPLES).as_posix()}/" for path in EXAMPLES.glob("*/*/golden.py")}
    assert programs | graphs <= listed and len(graphs) > 3


def test_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "copy", "12_race.pto", str(tmp_path)]) == 0
    assert (tmp_path / "12_race.pto").read_bytes() == (EXAMPLES / "12_race.pto").read_bytes()
    assert main(["examples", "copy", "runtime/vector_dag/", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "vector_dag" / "golden.py").is_file()
    assert main(["examples", "copy", "all", str(tmp_path / "all")]) == 0
    assert (tmp_path / "all" / "kernels" / "softmax.pto").is_file()
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["12_rice.pto"], "unknown example '12_rice.pto'; did you mean '12_race.pto'"),
        (["../README.md"], "unknown example '../README.md'"),
        (["12_race.pto", "."], "cannot copy to '12_race.pto': it exists"),
    ],
)
def test_refusals(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "12_race.pto").touch()
    assert main(["examples", "copy", *arguments]) == 1
    assert expected in capsys.readouterr().err
    assert (tmp_path / "12_race.pto").read_bytes() == b""
