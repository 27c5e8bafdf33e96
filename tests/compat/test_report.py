"""`pto python` on programs as the field writes them: one by one, and a folder of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.compat.torch_like import TEXT

from pto.compat import report


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the modules that the programs import, and the programs in `tree`."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(TEXT)
    shutil.copytree(Path(__file__).parent / "tree", folder / "tree")
    return folder


def pto(*arguments: str, library: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pto.cli.main", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(library), **env},
    )  # fmt: skip


def test_a_script(library: Path) -> None:
    """Its arguments are its own, a device is simulated and reported once, and another pypto is refused."""
    done = pto("python", str(library / "tree" / "good.py"), "-p", "--report", library=library)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "arguments ['-p', '--report']\n"
    assert done.stderr == "pto: simulating device a2a3\n"


def test_a_folder(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Every program of a folder has a row: scripts, and tests one by one, also behind one that kills pytest."""
    monkeypatch.setenv("PYTHONPATH", str(library))
    assert report.run(str(tmp_path), [str(library / "tree")], "warn", 2, 100, "a5sim", "0-7") == 1
    told = capsys.readouterr()
    assert "[5/5]" in told.err and "8 programs of 5 files: 6 passed" in told.out
    data = json.loads((tmp_path / "report.json").read_text())
    rows = {(Path(r["file"]).name, r["test"].rpartition("::")[2]): r for r in data["programs"]}
    good = rows["good.py", ""]
    assert good["outcome"] == "passed" and good["programs"] == ["add"]
    assert good["parsed"] and good["lowered"] and good["run"] and not good["findings"]
    assert rows["inside.py", ""]["outcome"] == "passed"  # as a module of its package
    racy = rows["racy.py", ""]
    assert racy["outcome"] == "passed" and [f["code"] for f in racy["findings"]] == ["PTO-E2611"]
    assert "RAW" in racy["findings"][0]["text"] and "racy.py:" in racy["findings"][0]["text"]
    ranks = rows["ranks.py", ""]
    assert ranks["outcome"] == "passed" and ranks["run"] and not ranks["findings"]
    tests = {test: r["outcome"] for (file, test), r in rows.items() if file == "test_cases.py"}
    assert tests == {
        "test_right[a5sim]": "passed", "test_wrong": "failed", "test_dies": "crashed", "test_behind": "passed",
    }  # fmt: skip
    assert "1016 of 1024 elements differ" in rows["test_cases.py", "test_wrong"]["reason"]
    assert "test_wrong" in (tmp_path / "report.html").read_text()
    assert data["threads"] == max(1, (os.cpu_count() or 1) // 2)
    assert 0 < good["cpu"] and {"start", "lowering", "run", "program"} <= set(good["phases"])
    assert abs(sum(good["phases"].values()) - good["cpu"]) < 0.1
    assert good["phases"]["program"] >= 0.3  # its golden takes 0.3 s
    assert 0 < rows["test_cases.py", "test_right[a5sim]"]["cpu"] < data["seconds"]
    # A report that was cut off goes on: only the file without an outcome runs again.
    data["programs"] = [r for r in data["programs"] if Path(r["file"]).name != "good.py"]
    (tmp_path / "report.json").write_text(json.dumps(data))
    assert (
        report.run(str(tmp_path), [str(library / "tree")], "warn", 2, 100, "a5sim", "0-7", resume=True) == 1
    )
    told = capsys.readouterr()
    assert told.err.count("[") == 1 and "good.py" in told.err and "8 programs of 5 files" in told.out
    again = json.loads((tmp_path / "report.json").read_text())["programs"]
    assert {(r["file"], r["test"]): r["outcome"] for r in again} == {
        (r["file"], r["test"]): r["outcome"] for r in rows.values()
    }


def test_a_script_that_needs_a_platform_and_its_checkout(tmp_path: Path) -> None:
    """It gets the name of a simulator, and devices if it requires these, and may import packages of its checkout."""
    (tmp_path / "checkout" / "helpers").mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").write_text("")
    (tmp_path / "checkout" / "helpers" / "__init__.py").write_text("")
    file = tmp_path / "checkout" / "part" / "main.py"
    file.parent.mkdir()
    for device, given in (("", None), (", required=True", "0-7"), (", type=int, required=True", 0)):
        file.write_text(
            "import argparse, helpers\n"
            "p = argparse.ArgumentParser()\n"
            'p.add_argument("-p", "--platform",\n    required=True, choices=["a2a3"])\n'
            f'p.add_argument("--device"{device})\n'
            'if __name__ == "__main__":\n'
            f"    assert p.parse_args().device == {given!r}\n"
        )
        assert report.run(str(tmp_path / str(given)), [str(file)], "warn", 1, 100, "a2a3", "0-7") == 0


def test_scene_tests_of_another_platform(tmp_path: Path) -> None:
    """Scene tests get a platform and devices; without a case for the platform they are skipped."""
    file = tmp_path / "scene.py"
    file.write_text(
        "from simpler_setup import SceneTestCase, scene_test\n"
        '@scene_test(level=2, runtime="tensormap_and_ringbuffer")\n'
        "class TestNothing(SceneTestCase):\n"
        '    CALLABLE = {"orchestration": {"source": "x.cpp", "function_name": "f", "signature": []}, "incores": []}\n'
        '    CASES = [{"name": "far", "platforms": ["a5"], "params": {}}]\n'
        "    def generate_args(self, params): ...\n"
        "    def compute_golden(self, args, params): ...\n"
        'if __name__ == "__main__":\n'
        "    SceneTestCase.run_module(__name__)\n"
    )
    report.run(str(tmp_path / "out"), [str(file)], "warn", 1, 100, "a2a3", "0-7")
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text())["programs"]
    assert row["outcome"] == "skipped" and "cannot find a case for platform a2a3 " in row["reason"]


def test_features_that_this_package_lacks_are_refused(tmp_path: Path) -> None:
    """They are no failures: an unsupported module or attribute of simpler, a name of pypto."""
    for number, text in enumerate((
        "from _task_interface import anything",
        "import simpler_setup.tools",
        "from simpler.worker import Worker; Worker(level=2)._chip_worker",
        "import pypto; pypto.ir.serialize(pypto)",
        "raise ValueError('PTO-E2101')",
    )):  # fmt: skip
        (tmp_path / f"{number}.py").write_text(f"if __name__ == '__main__':\n    {text}\n")
    report.run(str(tmp_path / "out"), [str(tmp_path)], "warn", 2, 100, "a2a3", "0-7")
    rows = json.loads((tmp_path / "out" / "report.json").read_text())["programs"]
    outcomes = {Path(r["file"]).stem: r["outcome"] for r in rows}
    assert outcomes == {"0": "refused", "1": "refused", "2": "refused", "3": "refused", "4": "failed"}
