"""The extension of VS Code: its package, and its providers with a stand-in for the editor."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.lsp.test_server import SHORT

ROOT = Path(__file__).parents[2]


def packed(folder: Path) -> Path:
    runpy.run_path(str(ROOT / "editors/vsix.py"))["write"](folder / "pto.vsix")
    with zipfile.ZipFile(folder / "pto.vsix") as z:
        z.extractall(folder / "vsix")
    return folder / "vsix/extension"


def test_the_package(tmp_path: Path) -> None:
    """Every file that package.json names is in the package."""
    extension = packed(tmp_path)
    about = json.loads((extension / "package.json").read_text())
    untrusted = about["capabilities"]["untrustedWorkspaces"]  # the settings name a program that is started
    assert set(untrusted["restrictedConfigurations"]) == set(
        about["contributes"]["configuration"]["properties"]
    )
    named = re.findall(r'"(\./[^"]+)"', (extension / "package.json").read_text())
    assert {"./extension.js", "./pto.tmLanguage.json", "./language-configuration.json"} == set(named)
    assert all((extension / name).is_file() for name in named)
    assert (
        about["contributes"]["grammars"][0]["scopeName"]
        == json.loads((extension / "pto.tmLanguage.json").read_text())["scopeName"]
    )
    assert (tmp_path / "vsix/extension.vsixmanifest").read_text().count(f'Version="{about["version"]}"') == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_providers(tmp_path: Path) -> None:
    """Each provider gives what the server answers."""
    extension = packed(tmp_path)
    tool = tmp_path / "pto"  # the extension ends it by a signal
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pto.cli.main "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    program = tmp_path / "k.pto"
    program.write_text(SHORT.replace("pto.tadd ins(%a, %a", "pto.tadd ins(%aa, %a"), encoding="utf-8")
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("vscode.js")), str(extension), str(tool), "--stdio", str(program)],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == []
    (wrong,) = found["diagnostics"]
    assert wrong["code"] == "PTO-E0201" and wrong["of"][1].startswith("undefined value '%aa'")
    assert "Element-wise sum" in found["hover"]["of"][0]["of"][0]
    assert found["completion"] > 5
    assert found["signature"]["signatures"][0]["of"][0].startswith("pto.tadd ins(")
    assert len(found["references"]) == len(found["highlights"]) == len(found["rename"]["edits"]) == 3
    assert found["definition"]["of"][0] == "file:///k.pto"
    assert "'%a' is taken" in found["refused"]
    assert [s["of"][0] for s in found["symbols"]] == ["@other", "@k"]
    assert found["format"] == [] and found["tokens"] > 100 and found["hints"] == []
    assert [a["of"][0] for a in found["actions"]][:1] == ["change to '%a'"]
    assert found["tasks"][0] == "check ${file}" or found["tasks"][0] == 2
    shown, url = found["explored"]
    assert shown == "simpleBrowser.show" and url.startswith("http://127.0.0.1:")
    assert found["debug"][1] == ["debug", "--dap"]
