"""An editor for tests: starts `pto lsp`, and talks to it through the client of pygls."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

#: Seconds for any answer: only ends a hang.
LIMIT = 300


class Editor:
    """One document in an editor with snippets and UTF-16 columns."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.text = ""
        self.version = 0
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: list[str] = []
        self.asked = ""  # the last request
        self.server: Any = None  # what it has answered to initialize

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        self.version, self.text = self.version + 1, text
        item = lsp.TextDocumentItem(self.uri, "pto", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def change(self, text: str) -> list[lsp.Diagnostic]:
        self.write(text)
        return await self.diagnostics()

    def write(self, text: str) -> None:
        self.version, self.text = self.version + 1, text
        document = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """The diagnostics of the present version."""
        while True:
            found = await asyncio.wait_for(self.published.get(), LIMIT)
            if found.version == self.version:
                return list(found.diagnostics)

    def place(self, part: str, skip: int = 0, behind: bool = False) -> dict[str, Any]:
        """The position of a part of the text, as parameters of a request."""
        at = -1
        for _ in range(skip + 1):
            at = self.text.index(part, at + 1)
        at += len(part) if behind else 0
        start = self.text.rfind("\n", 0, at) + 1
        column = len(self.text[start:at].encode("utf-16-le")) // 2
        return {
            "text_document": lsp.TextDocumentIdentifier(self.uri),
            "position": lsp.Position(self.text.count("\n", 0, at), column),
        }

    @property
    def seconds(self) -> float:
        """Time of the processor that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """Bytes of the server in memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self.client._server is not None
        return self.client._server

    async def ask(self, method: str, params: Any) -> Any:
        self.asked = method
        return await asyncio.wait_for(getattr(self.client, f"text_document_{method}_async")(params), LIMIT)

    def cut(self, range: lsp.Range) -> str:
        """The text of a range on one line."""
        line = self.text.split("\n")[range.start.line].encode("utf-16-le")
        assert range.start.line == range.end.line
        return line[range.start.character * 2 : range.end.character * 2].decode("utf-16-le")

    def applied(self, edits: list[lsp.TextEdit]) -> str:
        """The text after edits."""
        lines = self.text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)

        def offset(p: lsp.Position) -> int:
            if p.line >= len(lines):
                return len(self.text)
            return starts[p.line] + len(
                lines[p.line].encode("utf-16-le")[: p.character * 2].decode("utf-16-le")
            )

        out = self.text
        for e in sorted(edits, key=lambda e: (offset(e.range.start), offset(e.range.end)), reverse=True):
            out = out[: offset(e.range.start)] + e.new_text + out[offset(e.range.end) :]
        return out


SERVER = (sys.executable, "-m", "pto.cli.main", "lsp")


def edit(
    work: Callable[[Editor], Awaitable[None]],
    path: Path = Path("/tmp/k.pto"),
    command: Sequence[str] = SERVER,
) -> None:
    """Run a session from start to end. The server has to end by itself, with status 0."""

    async def session() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client, path.as_uri())
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda p: editor.published.put_nowait(p))
        client.feature(lsp.WINDOW_LOG_MESSAGE)(lambda p: editor.messages.append(p.message))
        client.feature(lsp.WINDOW_SHOW_MESSAGE)(lambda p: editor.messages.append(p.message))
        await client.start_io(*command)
        able = lsp.ClientCapabilities(
            text_document=lsp.TextDocumentClientCapabilities(
                completion=lsp.CompletionClientCapabilities(
                    completion_item=lsp.ClientCompletionItemOptions(snippet_support=True)
                )
            )
        )
        process = editor.process
        try:
            editor.server = await asyncio.wait_for(client.initialize_async(lsp.InitializeParams(able)), LIMIT)
            client.initialized(lsp.InitializedParams())
            await work(editor)
            await asyncio.wait_for(client.shutdown_async(None), LIMIT)
            client.exit(None)
            assert await asyncio.wait_for(process.wait(), LIMIT) == 0
        finally:
            if process.returncode is None:
                process.kill()
            await client.stop()

    asyncio.run(session())
