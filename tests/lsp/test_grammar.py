"""Grammars of editors: every word of the corpus gets the right color."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Token

from pto.asm.lexer import EOF, tokenize
from pto.cli import lsp as cli
from pto.diag import Source
from pto.isa import row, rows
from pto.lsp import grammar
from pto.lsp.pygments_lexer import PtoLexer

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.pto"))
#: First character of a token of the assembler -> kinds of the grammar.
KINDS = {
    "%": ("value",),
    "@": ("symbol",),
    "^": ("label",),
    "!": ("type",),
    "#": ("attribute",),
    '"': ("string",),
}


def test_all_instructions_and_words_of_the_examples() -> None:
    for r in rows():
        ((start, end, kind),) = grammar.colored(r.full_name)
        assert (start, end) == (0, len(r.full_name)) and kind in ("keyword", "instruction"), r.full_name
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        kinds = {start: (end, kind) for start, end, kind in grammar.colored(text)}
        tokens, _ = tokenize(Source(path.name, text))
        for word, at in zip(tokens.texts, tokens.starts, strict=True):
            if word == EOF or (word[0] not in KINDS and ("." not in word or row(word) is None)):
                continue
            end, kind = kinds[at]
            assert kind in KINDS.get(word[0], ("keyword", "instruction")), (path.name, word, kind)
            assert end <= at + len(word), (path.name, word)


def test_a_line() -> None:
    text = "  %0 = pto.tadd ins(%a : !pto.tile_buf<vec, 16x64xf32>) {mode = #pto.x<Y>, n = 1.5e3} // pto.tsub"
    assert [(text[a:b], kind) for a, b, kind in grammar.colored(text)] == [
        ("%0", "value"), ("pto.tadd", "instruction"), ("ins", "keyword"), ("%a", "value"), ("!pto.tile_buf", "type"),
        ("vec", "location"), ("16x64x", "number"), ("f32", "element"), ("mode", "word"), ("#pto.x", "attribute"),
        ("Y", "word"), ("n", "word"), ("1.5e3", "number"), ("// pto.tsub", "comment"),
    ]  # fmt: skip


def test_pygments() -> None:
    assert {"pto", "mlir"} <= set(PtoLexer.aliases)
    text = EXAMPLES[0].read_text(encoding="utf-8")
    found = list(PtoLexer().get_tokens(text))
    assert "".join(word for _, word in found) == text
    assert (Token.Name.Builtin, "pto.tadd") in found and (Token.Comment.Single, text.split("\n")[0]) in found
    assert isinstance(get_lexer_by_name("pto"), PtoLexer)


def test_textmate(capsys: pytest.CaptureFixture[str]) -> None:
    """The grammar has the rules above, in an order in which the first match counts."""
    assert cli.main(["--grammar", "textmate"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scopeName"] == "source.pto"
    assert [p["match"] for p in found["patterns"]] == [pattern for _, pattern in grammar.rules()]
    assert {"name": "variable.other.pto", "match": r"%[\w$.\-]+(?:#\d+)?"} in found["patterns"]


def test_the_engine_of_vs_code() -> None:
    """The regular expressions of VS Code's grammars, Oniguruma, find the same words in the corpus."""
    onigurumacffi = pytest.importorskip("onigurumacffi")
    kinds = [kind for kind, _ in grammar.rules()]
    patterns = onigurumacffi.compile_regset(*(pattern for _, pattern in grammar.rules()))
    for path in sorted(p for folder in ("tests/golden", "examples") for p in (ROOT / folder).rglob("*.pto")):
        text = path.read_bytes().decode("utf-8", "replace")
        for line in text.split("\n") if text.isascii() else ():
            found, at = list[tuple[int, int, str]](), 0
            while True:
                rule, m = patterns.search(line, at)
                if m is None:
                    break
                found.append((m.start(), m.end(), kinds[rule]))
                at = max(m.end(), m.start() + 1)
            assert found == list(grammar.colored(line)), (path.name, line)


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim")
def test_vim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Vim itself colors a program."""
    assert cli.main(["--grammar", "vim"]) == 0
    syntax = tmp_path / "pto.vim"
    syntax.write_text(capsys.readouterr().out)
    program = tmp_path / "k.pto"
    program.write_text("%0 = pto.tadd ins(%a : !pto.tile_buf<vec, 16x64xf32>) // pto.tsub\nfunc.func @f\n")
    script = tmp_path / "look.vim"
    places = {(1, 1): "Value", (1, 6): "Instruction", (1, 15): "Keyword", (1, 24): "Type", (1, 39): "Location",
              (1, 44): "Number", (1, 50): "Element", (1, 60): "Comment", (2, 1): "Keyword", (2, 11): "Symbol"}  # fmt: skip
    looks = [f"call add(found, synIDattr(synID({a}, {b}, 1), 'name'))" for a, b in places]
    out = tmp_path / "found"
    script.write_text(
        "\n".join(["let found = []", f"source {syntax}", *looks, f"call writefile(found, '{out}')", "qall!"])
    )
    subprocess.run(
        ["vim", "-u", "NONE", "-i", "NONE", "-N", "-es", "--cmd", "syntax on", "-S", str(script), str(program)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert out.read_text().split("\n")[:-1] == [f"pto{kind}" for kind in places.values()]
