"""The language server, over its protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from tests.lsp import fuzz
from tests.lsp.client import Editor, edit
from tests.sampling import some
from tests.seeds import seeds

from pto.cli import check
from pto.cli import lsp as cli
from pto.cli import main as pto

ROOT = Path(__file__).parents[2]
VEC_ADD = (ROOT / "examples/01_vec_add.pto").read_text(encoding="utf-8")
SHORT = """\
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a3"} {
  func.func private @other(%x: !tile)
  func.func @k(%p: !pto.ptr<f32>) {
    %a = pto.alloc_tile : !tile // 𝔘 first
    %b = pto.alloc_tile : !tile
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c4 {
      pto.tadd ins(%a, %a : !tile, !tile) outs(%b : !tile)
    }
    func.call @other(%b) : (!tile) -> ()
    return
  }
}
"""


def document(e: Editor) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(e.uri)


def whole(e: Editor) -> lsp.Range:
    return lsp.Range(lsp.Position(0, 0), lsp.Position(e.text.count("\n") + 1, 0))


async def hovered(e: Editor, *place: Any, **more: Any) -> str:
    found = await e.ask("hover", lsp.HoverParams(**e.place(*place, **more)))
    return found.contents.value if found is not None else ""


async def completed(e: Editor, part: str, skip: int = 0) -> dict[str, lsp.CompletionItem]:
    found = await e.ask("completion", lsp.CompletionParams(**e.place(part, skip, behind=True)))
    return {i.label: i for i in found.items}


async def actions(e: Editor) -> dict[str, str]:
    """Title of each code action -> the text after it."""
    found = await e.ask("code_action", lsp.CodeActionParams(document(e), whole(e), lsp.CodeActionContext([])))
    return {a.title: e.applied(list(a.edit.changes[e.uri])) for a in found}


async def a_session(e: Editor) -> None:
    """Each feature on a program that is edited: pages, completion, names, structure, hints."""
    assert await e.open(VEC_ADD) == []
    # pages
    page = await hovered(e, "tadd")
    assert "Element-wise sum" in page and "SA-0134" in page and "| src0 | read |" in page
    value = await hovered(e, "%ta,")
    assert "%ta : !pto.tile_buf<vec, 64x128xf32>\n// vec 0x0..0x8000" in value and "line 22" in value
    found = await e.ask("signature_help", lsp.SignatureHelpParams(**e.place("ins(%ta, ", behind=True)))
    assert found.signatures[0].label.startswith("pto.tadd ins(%src0, %src1")
    assert found.signatures[0].parameters[found.active_parameter].label == "%src1"
    # names
    name = e.place("%ta,")
    place = await e.ask("definition", lsp.DefinitionParams(**name))
    assert e.text.split("\n")[place.range.start.line].startswith("    %ta = pto.alloc_tile")
    uses = await e.ask("references", lsp.ReferenceParams(**name, context=lsp.ReferenceContext(False)))
    assert [e.cut(u.range) for u in uses] == ["%ta"] * 2
    change = await e.ask("rename", lsp.RenameParams(**name, new_name="first"))
    assert e.applied(change.changes[e.uri]) == VEC_ADD.replace("%ta ", "%first ").replace("%ta,", "%first,")
    with pytest.raises(JsonRpcInvalidParams, match="the name '%tb' is taken"):
        await e.ask("rename", lsp.RenameParams(**name, new_name="%tb"))
    # structure
    (function,) = await e.ask("document_symbol", lsp.DocumentSymbolParams(document(e)))
    assert (function.name, [c.name for c in function.children]) == ("@vec_add", ["%ta", "%tb", "%tc"])
    # what the tools add
    hints = await e.ask("inlay_hint", lsp.InlayHintParams(document(e), whole(e)))
    shown = [h.label for h in hints]
    assert shown[:3] == ["@ vec 0x0..0x8000", "@ vec 0x8000..0x10000", "@ vec 0x10000..0x18000"]
    assert shown[3:5] == ["set_flag[MTE2, V, ID0]", "wait_flag[MTE2, V, ID0]"]
    # diagnostics as the text changes
    (wrong,) = await e.change(VEC_ADD.replace("pto.tadd ", "pto.taddx "))
    assert (wrong.code, e.cut(wrong.range)) == ("PTO-E0108", "pto.taddx")
    assert await e.change(VEC_ADD) == []
    assert e.messages == []


async def completion(e: Editor) -> None:
    await e.open(VEC_ADD)
    line = "    pto.tadd ins(%ta, %tb"

    async def typed(text: str) -> dict[str, lsp.CompletionItem]:
        """Completion at the end of a statement that is being typed."""
        await e.change(VEC_ADD.replace("    return\n", f"{text}\n    return\n"))
        return await completed(e, f"{text}", e.text.count(text) - 1)

    found = await typed("    pto.tad")
    assert {"pto.tadd", "pto.tadds"} <= found.keys() and "pto.tsub" not in found
    item = found["pto.tadd"]
    assert (
        item.text_edit.new_text
        == "pto.tadd ins(${1:%src0}, ${2:%src1} : ${3:type}, ${4:type}) outs(${5:%dst} : ${6:type})"
    )
    full = await e.client.completion_item_resolve_async(item)
    assert "Element-wise sum" in full.documentation.value
    assert "pto.tadd" in await typed("    tad") and "pto.tadd" in await typed("    %x = tad")
    found = await typed(f"{line}, %t")
    assert found["%ta"].detail == "!pto.tile_buf<vec, 64x128xf32>" and {"%a", "%c0", "%tc"} <= found.keys()
    assert "!pto.tile_buf" in await typed(f"{line} : !pto.ti")
    assert {"vec", "f32"} <= (await typed(f"{line} : !pto.tile_buf<v")).keys()
    assert {"PIPE_V", "EVENT_ID0"} <= (await typed("    pto.set_flag[<PIPE_")).keys()
    assert "#pto<cmp lt>" in await typed("    pto.tcmp ins(%ta, %tb {cmpMode = #pto")
    assert "cmpMode" in await typed("    pto.tcmp ins(%ta, %tb {c")
    assert "a5" in await typed('module attributes {pto.target_arch = "')
    assert "@vec_add" in await typed("    func.call @")
    # in a function that cannot be read
    await e.change("func.func @f(%p: !pto.ptr<f32>) {\n  %x = pto.alloc_tile\n  %")
    assert {"%p", "%x"} <= (await completed(e, "\n  %", 1)).keys()


async def names_of_all_kinds(e: Editor) -> None:
    await e.open(SHORT)

    async def cuts(part: str, skip: int = 0) -> list[tuple[int, str]]:
        place = e.place(part, skip)
        found = await e.ask("references", lsp.ReferenceParams(**place, context=lsp.ReferenceContext(True)))
        return [(f.range.start.line, e.cut(f.range)) for f in found]

    assert await cuts("%i") == [(8, "%i")]
    assert await cuts("%a", 1) == [(4, "%a"), (9, "%a"), (9, "%a")]
    assert await cuts("@other") == [(2, "@other"), (11, "@other")]
    assert [n for n, _ in await cuts("!tile", 1)] == [0, 2, 4, 5, 9, 9, 9, 11]
    place = await e.ask("definition", lsp.DefinitionParams(**e.place("@other", 1)))
    assert place.range.start.line == 2
    assert "!tile = !pto.tile_buf<vec, 16x64xf32>" in await hovered(e, "!tile", 3)
    marks = await e.ask("document_highlight", lsp.DocumentHighlightParams(**e.place("%b")))
    assert [m.kind for m in marks] == [lsp.DocumentHighlightKind.Write] + [lsp.DocumentHighlightKind.Read] * 2


async def colors_cover_the_text(e: Editor) -> None:
    """Semantic tokens are in order, on their lines, and say what each word is."""
    await e.open(SHORT)
    data = (await e.ask("semantic_tokens_full", lsp.SemanticTokensParams(document(e)))).data
    kinds = e.server.capabilities.semantic_tokens_provider.legend.token_types
    line = column = 0
    words: dict[str, str] = {}
    for n in range(0, len(data), 5):
        line, column = line + data[n], data[n + 1] + (column if not data[n] else 0)
        at = lsp.Range(lsp.Position(line, column), lsp.Position(line, column + data[n + 2]))
        words.setdefault(e.cut(at), kinds[data[n + 3]])
    assert words["pto.tadd"] == "method" and words["scf.for"] == words["func.func"] == "keyword"
    assert words["%p"] == words["%i"] == "parameter" and words["%a"] == "variable"
    assert words["!tile"] == "type" and words["@k"] == "function" and words["// 𝔘 first"] == "comment"
    assert words['"a3"'] == "string" and words["4"] == "number"


CASES = {
    "a name": ("pto.tadd ins(%a, %a", "pto.tadd ins(%aa, %a", "change to '%a'"),
    "an instruction": ("pto.tadd ins", "pto.taddd ins", "change to 'pto.tadd'"),
    "a constant": ("%c0 to %c4 step %c4 {", "%c0 to 4 step %c4 {", "use %c4 = arith.constant 4 : index"),
}


async def code_actions(e: Editor) -> None:
    """The change that each diagnostic suggests leads back to a program without errors."""
    await e.open(SHORT)
    for name, (right, wrong, title) in CASES.items():
        assert right in SHORT, name
        assert await e.change(SHORT.replace(right, wrong)), name
        found = await actions(e)
        assert title in found, (name, list(found))
        assert not [d for d in await e.change(found[title]) if d.severity == lsp.DiagnosticSeverity.Error], (
            name
        )
    flags = (ROOT / "examples/02_manual_flags.pto").read_text(encoding="utf-8")
    wait = "    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]\n"
    assert wait in flags
    assert await e.change(flags.replace(wait, ""))
    (fixed,) = (await actions(e)).values()
    assert wait in fixed and await e.change(fixed) == []


async def formatting_keeps_comments(e: Editor) -> None:
    messy = VEC_ADD.replace("    %c0 =", "  %c0   =").replace("    return\n", "return // end\n")
    await e.open(messy)
    options = lsp.FormattingOptions(2, True)
    edits = await e.ask("formatting", lsp.DocumentFormattingParams(document(e), options))
    assert len(edits) == 2
    assert e.applied(edits) == VEC_ADD.replace("    return\n", "    return  // end\n")
    await e.change("func.func @f( {")
    assert not await e.ask("formatting", lsp.DocumentFormattingParams(document(e), options))


async def texts_that_are_no_programs(e: Editor) -> None:
    """Any characters and line ends; positions count as the client counts."""
    await e.open("\ufeffmodule {\r\n  func.func @f() {\r  x\n  }\n}")
    await e.change("import numpy\n")
    (d,) = await e.change("import numpy as np\n")
    assert d.code == "PTO-E0004"
    (d,) = await e.change(
        "// \u2028 \x0b \U0001d518\nmodule {\n  func.func @f() {\n    pto.nothing\n    return\n  }\n}\n"
    )
    assert (d.range.start.line, d.range.start.character) == (3, 4)
    assert e.messages == []


#: In one session, each with a document of its own.
FEATURES = [
    a_session,
    completion,
    names_of_all_kinds,
    colors_cover_the_text,
    code_actions,
    formatting_keeps_comments,
    texts_that_are_no_programs,
]


def test_features() -> None:
    async def work(e: Editor) -> None:
        for feature in FEATURES:
            e.uri = f"file:///tmp/{feature.__name__}.pto"
            await feature(e)

    edit(work)


def corpus() -> list[Path]:
    return sorted(p for folder in ("tests/golden", "examples") for p in (ROOT / folder).rglob("*.pto"))


def test_diagnostics_are_those_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"

    async def work(e: Editor) -> None:
        await e.open("")
        for file in some(corpus(), 4, by=lambda p: p.parent):
            data = file.read_bytes()
            try:
                text = data.decode()
            except UnicodeDecodeError:
                continue  # an editor shows other characters
            found = await e.change(text)
            path.write_bytes(data)
            check.main([str(path), "--quiet", "--diagnostics=json"])
            wanted = json.loads(capsys.readouterr().err or "[]")
            lines = text.removeprefix("\ufeff").split("\n")
            assert len(found) == len(wanted), file
            for d, w in zip(found, wanted, strict=True):
                assert (d.code, d.severity.name.lower()) == (w["code"], w["severity"]), file
                assert d.message.startswith(w["message"]) and w.get("help", "") in d.message, file
                if w.get("file") == str(path):
                    line = lines[w["line"] - 1]
                    column = len(line[: w["column"] - 1].encode("utf-16-le")) // 2
                    assert (d.range.start.line, d.range.start.character) == (w["line"] - 1, column), file
        assert e.messages == []

    edit(work, path)


@pytest.mark.seeded
@pytest.mark.parametrize("seed", seeds([0]))
def test_random_edits(seed: int) -> None:
    fuzz.run(60, seed)


def test_without_pygls(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "pygls.exceptions", None)
    for name in [n for n in sys.modules if n.startswith(("pygls.", "pto.lsp.server"))]:
        monkeypatch.delitem(sys.modules, name)
    assert cli.main([]) == 1
    assert "PTO-E0006" in (said := capsys.readouterr().err) and "pip install 'pto[lsp]'" in said


def test_a_bug_does_not_end_the_server() -> None:
    """An exception in a check is a diagnostic, and the next text is checked."""
    program = (
        "from pto.lsp.server import make_server\nfrom pto.checking import check_source\nimport sys\n"
        "def check(source):\n    assert 'bug' not in source.text\n    return check_source(source)\n"
        "make_server(check).start_io()\n"
    )

    async def work(e: Editor) -> None:
        (d,) = await e.open("// bug\n")
        assert d.code == "PTO-E0007" and "AssertionError" in d.message
        assert "AssertionError" in e.messages[0]
        assert await hovered(e, "bug") == ""
        assert [d.code for d in await e.change("module {\n}\n")] == ["PTO-E0219"]

    edit(work, command=[sys.executable, "-c", program])


def test_help_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pto.cli.main", "lsp", "--nothing"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2 and "--nothing" in done.stderr
    with pytest.raises(SystemExit):
        pto.main(["lsp", "--help"])
    assert "Language Server Protocol" in capsys.readouterr().out
