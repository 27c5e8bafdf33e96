"""Random edits of programs in an editor, with requests in between: no answer is an error, memory stays bounded.

python -m tests.lsp.fuzz --edits 10000 --seed 7
"""

from __future__ import annotations

import argparse
import random
import re
import time
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from tests.lsp.client import Editor, edit

ROOT = Path(__file__).parents[2]
#: Growth of the server in bytes that is a leak. Texts have at most `LONGEST` characters.
MOST = 300 << 20
LONGEST = 20_000
_PIECES = (
    "%", "!", "#", "@", "^", "{", "}", "(", ")", "<", ">", "[", "]", '"', ",", ":", "=", "->", "//", "# ", "\n", "\r\n",
    "\r", " ", "\t", "%x = ", "pto.", "pto.tadd ", "ins(%a", "#pto.pipe<", "!pto.tile_buf<vec, 1", "func.func @f(",
    "é", "𝔘", "\u2028", "\x0b", "\0", "\ufeff", "99999999999999999999", "0x", "^bb0:", "module {", "scf.for %i = ", "loc(",
)  # fmt: skip


def corpus() -> list[str]:
    folders = ("examples", "tests/golden/errors", "tests/golden/forms", "tests/golden/legality")
    paths = [p for f in folders for p in sorted((ROOT / f).rglob("*.pto"))]
    texts = [p.read_bytes().decode("utf-8", "replace") for p in paths]
    return [re.split(r"^// STD(?:OUT|ERR)", t, maxsplit=1, flags=re.M)[0][:LONGEST] for t in texts]


def mutated(text: str, random: random.Random, texts: list[str]) -> str:
    """The text after one edit."""
    at = random.randrange(len(text) + 1)
    kind = random.randrange(6)
    if kind == 0:  # type
        return text[:at] + random.choice(_PIECES) + text[at:]
    if kind == 1:  # delete
        return text[:at] + text[at + random.choice((1, 1, 2, 5, 40)) :]
    words = list(re.finditer(r"[%@!#^]?[\w.]+", text))
    if kind == 2 and words:  # exchange a word
        a, b = random.choice(words), random.choice(words)
        return text[: a.start()] + b[0] + text[a.end() :]
    lines = text.split("\n")
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    if kind == 3:  # move a line
        lines.insert(j, lines.pop(i))
    elif kind == 4:
        del lines[i]
    else:  # a line of another program
        lines.insert(j, random.choice(random.choice(texts).split("\n")))
    return "\n".join(lines)[:LONGEST]


async def ask(editor: Editor, random: random.Random) -> None:
    """One request at a random position. Only a name that cannot be renamed is refused."""
    document = lsp.TextDocumentIdentifier(editor.uri)
    place = lsp.Position(random.randrange(editor.text.count("\n") + 2), random.choice((0, 4, 9, 20, 44, 500)))
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(10**6, 0))
    here = {"text_document": document, "position": place}
    context = lsp.CodeActionContext([])
    requests = {
        "hover": lsp.HoverParams(**here),
        "completion": lsp.CompletionParams(**here),
        "signature_help": lsp.SignatureHelpParams(**here),
        "definition": lsp.DefinitionParams(**here),
        "references": lsp.ReferenceParams(**here, context=lsp.ReferenceContext(True)),
        "document_highlight": lsp.DocumentHighlightParams(**here),
        "prepare_rename": lsp.PrepareRenameParams(**here),
        "rename": lsp.RenameParams(**here, new_name=random.choice(("x", "%y", "", "0", "a b"))),
        "document_symbol": lsp.DocumentSymbolParams(document),
        "semantic_tokens_full": lsp.SemanticTokensParams(document),
        "inlay_hint": lsp.InlayHintParams(document, whole),
        "formatting": lsp.DocumentFormattingParams(document, lsp.FormattingOptions(2, True)),
        "code_action": lsp.CodeActionParams(document, whole, context),
    }
    method = random.choice(list(requests))
    try:
        await editor.ask(method, requests[method])
    except JsonRpcInvalidParams as e:
        assert method == "rename" and "cannot rename" in e.message, f"{method}: {e}"


def run(edits: int, seed: int, report: bool = False) -> None:
    chance = random.Random(seed)
    texts = corpus()

    async def work(editor: Editor) -> None:
        text = chance.choice(texts)
        await editor.open(text)
        before, start = 0, time.monotonic()
        for n in range(edits):
            if n % 40 == 39:
                text = chance.choice(texts)
            elif n % 40 in (13, 26):  # a broken text stays broken
                text = mutated(chance.choice(texts), chance, texts)
            else:
                text = mutated(text, chance, texts)
            editor.write(text)
            try:
                if chance.randrange(3):
                    await ask(editor, chance)
                if n % 10 == 9:
                    found = await editor.diagnostics()
                    assert not any("bug of pto" in d.message for d in found), found
                assert not editor.messages, editor.messages
            except BaseException:
                Path("lsp-fuzz.pto").write_text(text, encoding="utf-8", newline="")
                print(
                    f"edit {n} of seed {seed} failed ({editor.asked}); lsp-fuzz.pto has the text",
                    *editor.messages,
                )
                raise
            before = editor.memory if n == min(200, edits // 2) else before
            if report and n % 500 == 499:
                print(
                    f"{n + 1} edits, {time.monotonic() - start:.0f} s, {editor.memory >> 20} MiB", flush=True
                )
        assert editor.memory - before < MOST, f"the server grew by {editor.memory - before >> 20} MiB"

    edit(work)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--edits", type=int, default=10_000)
    p.add_argument("--seed", type=int, default=0)
    options = p.parse_args()
    run(options.edits, options.seed, True)
