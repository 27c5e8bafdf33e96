"""Requests of the Language Server Protocol, on standard input and output, with pygls.

| request | answer |
| --- | --- |
| didOpen, didChange | diagnostics, those of `pto check` |
| hover, completion, signatureHelp | pages and syntax of the instruction table |
| definition, references, documentHighlight, rename | names of the program |
| documentSymbol, semanticTokens, inlayHint | structure, colors, what the tools add |
| formatting, codeAction | `pto fmt`; changes that diagnostics suggest |

A change is checked at once, or after a pause that is as long as the last check took. The client sends whole
texts. An exception is reported and does not end the server.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from .. import __version__
from ..asm import format_source
from ..asm.lexer import Tokens
from ..checking import Checked
from ..diag import Diagnostic, Source, Span, Unread, sorted_by_place
from . import completion, fixes, highlight, hints, pages
from .document import Document
from .edited import Check, EditedText
from .names import Occurrence

_SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
#: The memory of earlier texts is released after this many seconds without a change, or after this many
#: checks.
_IDLE = 0.25
_MOST_KEPT = 8
#: The largest delay in seconds between a change and its check.
_LONGEST_REST = 1.0


class PtoServer(LanguageServer):
    """The server with its open documents. `check` is what `pto check` does with a text."""

    def __init__(self, check: Check) -> None:
        super().__init__("pto", __version__, lsp.TextDocumentSyncKind.Full)
        self._check = check
        self._documents: dict[str, Document] = {}
        self._versions: dict[str, EditedText] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._cleaning: asyncio.TimerHandle | None = None
        self._kept = 0  # checks since memory was released
        self._seconds = self._ended = 0.0  # duration and end of the last check

    # -- documents -----------------------------------------------------------------------------------------

    def document(self, uri: str) -> Document:
        """Return a document in its present version."""
        given = self.workspace.get_text_document(uri)
        found = self._documents.get(uri)
        if found is None or found.version != given.version or given.version is None:
            found = self._read(uri, given.source, given.version)
        return found

    def _read(self, uri: str, text: str, version: int | None) -> Document:
        start = time.perf_counter()
        encoding = lsp.PositionEncodingKind(self.server_capabilities.position_encoding or "utf-16").value
        text = text.encode("utf-8", "replace").decode("utf-8")  # JSON may contain single surrogates
        self._kept += 1
        if self._kept > _MOST_KEPT:
            self._clean()
        path = to_fs_path(uri) or uri
        if is_python(uri):
            check = self._checked_python
        else:
            check = self._versions.setdefault(uri, EditedText(self._checked))
        found = Document(path, text, version, encoding, check)
        self._documents[uri] = found
        self._ended = time.perf_counter()
        self._seconds = self._ended - start
        return found

    def _checked_python(self, source: Source) -> Checked:
        from .python import check_python  # costly, and not needed for programs

        return self._checked(source, check_python)

    def _checked(self, source: Source, check: Check | None = None) -> Checked:
        try:
            return (check or self._check)(source)
        except Exception as e:
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, traceback.format_exc()))
            problem = Diagnostic(
                "PTO-E0007", f"internal error, this is a bug of pto: {type(e).__name__}: {e}"
            )
            nothing = Tokens(source)
            nothing.texts.append("")
            nothing.starts.append(len(source.text))
            return Checked(source, [problem], nothing)

    def changed(self, uri: str, now: bool = False) -> None:
        """Check a document soon; a further change before that replaces this one."""
        loop = asyncio.get_running_loop()
        if (old := self._waiting.pop(uri, None)) is not None:
            old.cancel()
        rest = self._seconds - (time.perf_counter() - self._ended)
        delay = 0.0 if now else max(0.0, min(rest, _LONGEST_REST))
        self._waiting[uri] = loop.call_later(delay, self._publish, uri)
        if self._cleaning is not None:
            self._cleaning.cancel()
        self._cleaning = loop.call_later(_IDLE, self._clean)

    def _clean(self) -> None:
        self._kept = 0
        gc.collect()

    def _publish(self, uri: str) -> None:
        self._waiting.pop(uri, None)
        try:
            document = self.document(uri)
            found = [self.diagnostic(document, d) for d in sorted_by_place(document.checked.diagnostics)]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, document.version))
        except Exception:
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, traceback.format_exc()))

    def closed(self, uri: str) -> None:
        if (waiting := self._waiting.pop(uri, None)) is not None:
            waiting.cancel()
        self._documents.pop(uri, None)
        self._versions.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    # -- conversions ---------------------------------------------------------------------------------------

    def range(self, document: Document, start: int, end: int) -> lsp.Range:
        return lsp.Range(lsp.Position(*document.place(start)), lsp.Position(*document.place(end)))

    def location(self, document: Document, uri: str, found: Occurrence) -> lsp.Location:
        return lsp.Location(uri, self.range(document, found.start, found.end))

    def edits(self, document: Document, edits: list[fixes.Edit]) -> list[lsp.TextEdit]:
        return [lsp.TextEdit(self.range(document, e.start, e.end), e.text) for e in edits]

    def diagnostic(self, document: Document, d: Diagnostic) -> lsp.Diagnostic:
        parts = [d.message]
        parts += [
            f"{key}: {text}"
            for key, text in (("expected", d.expected), ("got", d.got), ("help", d.help))
            if text
        ]
        related: list[lsp.DiagnosticRelatedInformation] = []
        spans = [(message, span) for message, span in d.notes]
        if d.span is not None and d.span.source is not document.source:
            spans.insert(0, ("here", d.span))
        for message, span in spans:
            place = self._place(document, span)
            if place is None:
                parts.append(f"note: {message}")
            else:
                related.append(lsp.DiagnosticRelatedInformation(place, message))
        own = d.span is not None and d.span.source is document.source
        span = d.span.head if own and d.span is not None else Span(document.source, 0, 0)
        return lsp.Diagnostic(
            self.range(document, span.start, span.end), "\n".join(parts), _SEVERITY[d.severity], d.code,
            source="pto", related_information=related or None,
            data={"message": d.message, "line": d.span.place[0] if d.span is not None else 0},
        )  # fmt: skip

    def _place(self, document: Document, span: Span | None) -> lsp.Location | None:
        if span is None:
            return None
        if span.source is document.source:
            from pygls.uris import from_fs_path

            uri = from_fs_path(document.path) or document.path
            return lsp.Location(uri, self.range(document, span.start, span.end))
        if not isinstance(span.source, Unread):
            return None
        line, column = span.place
        from pygls.uris import from_fs_path

        at = lsp.Position(max(0, line - 1), max(0, column - 1))
        uri = from_fs_path(span.source.name)
        return lsp.Location(uri, lsp.Range(at, at)) if uri else None


Handler = Callable[[PtoServer, Any], Any]
_HANDLERS: list[tuple[str, Any, Handler]] = []


def _answers(method: str, options: Any = None) -> Callable[[Handler], Handler]:
    def keep(handler: Handler) -> Handler:
        _HANDLERS.append((method, options, handler))
        return handler

    return keep


def make_server(check: Check) -> PtoServer:
    """Return a server, ready to start."""
    logging.getLogger("pygls").propagate = False  # the client gets errors as answers
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    server = PtoServer(check)
    for method, options, handler in _HANDLERS:
        server.feature(method, options)(_bound(server, method, handler))
    gc.collect()
    gc.freeze()  # exempt the loaded modules from garbage collection
    gc.disable()  # memory is released between checks, not during them
    return server


#: Requests that are answered for Python files, too; others have an editor's own server for Python.
_OF_PYTHON = (
    lsp.TEXT_DOCUMENT_DID_OPEN, lsp.TEXT_DOCUMENT_DID_CHANGE, lsp.TEXT_DOCUMENT_DID_CLOSE,
    lsp.TEXT_DOCUMENT_HOVER, lsp.TEXT_DOCUMENT_INLAY_HINT,
)  # fmt: skip


_NOTHING: dict[str, Any] = {
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lsp.SemanticTokens([]),
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionList(is_incomplete=False, items=[]),
}


def is_python(uri: str) -> bool:
    return uri.endswith((".py", ".pyi"))


def _bound(server: PtoServer, method: str, handler: Handler) -> Callable[[Any], Any]:
    def answer(params: Any) -> Any:
        document = getattr(params, "text_document", None)
        if document is not None and method not in _OF_PYTHON and is_python(document.uri):
            return _NOTHING.get(method)  # the answer without a result
        return handler(server, params)

    return answer


def _at(server: PtoServer, params: Any) -> tuple[Document, int]:
    document = server.document(params.text_document.uri)
    return document, document.offset(params.position.line, params.position.character)


# -- texts ---------------------------------------------------------------------------------------------------


@_answers(lsp.TEXT_DOCUMENT_DID_OPEN)
def _opened(server: PtoServer, params: lsp.DidOpenTextDocumentParams) -> None:
    server.changed(params.text_document.uri, now=True)


@_answers(lsp.TEXT_DOCUMENT_DID_CHANGE)
def _changed(server: PtoServer, params: lsp.DidChangeTextDocumentParams) -> None:
    server.changed(params.text_document.uri)


@_answers(lsp.TEXT_DOCUMENT_DID_CLOSE)
def _closed(server: PtoServer, params: lsp.DidCloseTextDocumentParams) -> None:
    server.closed(params.text_document.uri)


# -- pages ---------------------------------------------------------------------------------------------------


@_answers(lsp.TEXT_DOCUMENT_HOVER)
def _hover(server: PtoServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document, offset = _at(server, params)
    if is_python(document.path):
        from . import python

        found = python.hover(document, offset)
    else:
        found = pages.hover(document, offset)
    if found is None:
        return None
    text, start, end = found
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), server.range(document, start, end))


@_answers(
    lsp.TEXT_DOCUMENT_COMPLETION,
    lsp.CompletionOptions(trigger_characters=list(completion.TRIGGERS), resolve_provider=True),
)
def _complete(server: PtoServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    document, offset = _at(server, params)
    found = completion.complete(document, offset)
    where = server.range(document, found.start, offset)
    able = server.client_capabilities.text_document
    item = able.completion.completion_item if able is not None and able.completion is not None else None
    snippets = item is not None and bool(item.snippet_support)
    items: list[lsp.CompletionItem] = []
    for order, i in enumerate(found.items):
        filled = bool(i.insert) and (snippets or not i.page)
        items.append(
            lsp.CompletionItem(
                i.label, kind=lsp.CompletionItemKind[i.kind], detail=i.detail or None,
                sort_text=f"{order:05}",
                filter_text=i.label, text_edit=lsp.TextEdit(where, i.insert if filled else i.label),
                insert_text_format=lsp.InsertTextFormat.Snippet if filled and i.page else None,
                data=i.page or None,
            )
        )  # fmt: skip
    return lsp.CompletionList(is_incomplete=False, items=items)


@_answers(lsp.COMPLETION_ITEM_RESOLVE)
def _resolve(server: PtoServer, item: lsp.CompletionItem) -> lsp.CompletionItem:
    if isinstance(item.data, str):
        text = pages.instruction_page(item.data)
        item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
    return item


@_answers(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ",", " "]))
def _signature(server: PtoServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    found = pages.signature(*_at(server, params))
    if found is None:
        return None
    active = found.active if found.active >= 0 else len(found.parameters)
    parameters = [lsp.ParameterInformation(p) for p in found.parameters]
    shown = lsp.SignatureInformation(found.label, found.doc, parameters, active)
    return lsp.SignatureHelp([shown], 0, active)


# -- names ---------------------------------------------------------------------------------------------------


@_answers(lsp.TEXT_DOCUMENT_DEFINITION)
def _definition(server: PtoServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    document, offset = _at(server, params)
    name = document.names.at(offset)
    found = document.names.definition(name.key) if name is not None else None
    return server.location(document, params.text_document.uri, found) if found is not None else None


@_answers(lsp.TEXT_DOCUMENT_REFERENCES)
def _references(server: PtoServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    document, offset = _at(server, params)
    name = document.names.at(offset)
    found = document.names.of(name.key) if name is not None else []
    wanted = [o for o in found if params.context.include_declaration or not o.defines]
    return [server.location(document, params.text_document.uri, o) for o in wanted]


@_answers(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
def _highlights(server: PtoServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
    document, offset = _at(server, params)
    name = document.names.at(offset)
    return [
        lsp.DocumentHighlight(
            server.range(document, o.start, o.end),
            lsp.DocumentHighlightKind.Write if o.defines else lsp.DocumentHighlightKind.Read,
        )
        for o in (document.names.of(name.key) if name is not None else ())
    ]


@_answers(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
def _may_rename(server: PtoServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    document, offset = _at(server, params)
    name = document.names.at(offset)
    if name is None or document.names.definition(name.key) is None:
        return None
    return server.range(document, name.start, name.end)


@_answers(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
def _rename(server: PtoServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    document, offset = _at(server, params)
    name = document.names.at(offset)
    if name is None or document.names.definition(name.key) is None:
        raise JsonRpcInvalidParams("cannot rename: expected a name that the text defines")
    if why := document.names.refused(name, params.new_name):
        raise JsonRpcInvalidParams(f"cannot rename {name.name}: {why}")
    new = params.new_name if params.new_name[:1] == name.name[0] else name.name[0] + params.new_name
    edits = [fixes.Edit(o.start, o.end, new) for o in document.names.of(name.key)]
    return lsp.WorkspaceEdit({params.text_document.uri: server.edits(document, edits)})


# -- the whole text ----------------------------------------------------------------------------------------


@_answers(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def _symbols(server: PtoServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    document = server.document(params.text_document.uri)

    def shown(s: highlight.OutlineItem) -> lsp.DocumentSymbol:
        return lsp.DocumentSymbol(
            s.name, lsp.SymbolKind[s.kind], server.range(document, s.start, s.end),
            server.range(document, *s.head), s.detail or None, children=[shown(c) for c in s.children],
        )  # fmt: skip

    return [shown(s) for s in highlight.symbols(document)]


@_answers(
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
    lsp.SemanticTokensLegend(list(highlight.KINDS), [lsp.SemanticTokenModifiers.Definition]),
)
def _tokens(server: PtoServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    document = server.document(params.text_document.uri)
    data: list[int] = []
    line = column = 0
    for word in highlight.words(document):
        at, start = document.place(word.start)
        length = document.place(word.end)[1] - start
        data += [
            at - line,
            start - (column if at == line else 0),
            length,
            highlight.KINDS.index(word.kind),
            word.defines,
        ]
        line, column = at, start
    return lsp.SemanticTokens(data)


@_answers(lsp.TEXT_DOCUMENT_INLAY_HINT)
def _hints(server: PtoServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    document = server.document(params.text_document.uri)
    start = document.offset(params.range.start.line, params.range.start.character)
    end = document.offset(params.range.end.line, params.range.end.character)
    return [
        lsp.InlayHint(
            lsp.Position(*document.place(h.offset)), h.text, tooltip=h.doc, padding_left=not h.before,
            padding_right=h.before,
        )
        for h in _hints_of(document, start, end)
    ]  # fmt: skip


def _hints_of(document: Document, start: int, end: int) -> list[hints.Hint]:
    if is_python(document.path):
        from .python import CheckedPython

        checked = document.checked
        return checked.read.hints if isinstance(checked, CheckedPython) else []
    return hints.hints(document, start, end)


@_answers(lsp.TEXT_DOCUMENT_FORMATTING)
def _format(server: PtoServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    document = server.document(params.text_document.uri)
    text, _ = format_source(document.source)
    return None if text is None else server.edits(document, fixes.difference(document.text, text))


@_answers(
    lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
)
def _actions(server: PtoServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    document = server.document(params.text_document.uri)
    first, last = params.range.start.line, params.range.end.line
    out: list[lsp.CodeAction] = []
    for d in sorted_by_place(document.checked.diagnostics):
        shown = server.diagnostic(document, d)
        if shown.range.end.line < first or shown.range.start.line > last:
            continue
        for fix in fixes.fixes(document, d):
            edit = lsp.WorkspaceEdit({params.text_document.uri: server.edits(document, fix.edits)})
            out.append(lsp.CodeAction(fix.title, lsp.CodeActionKind.QuickFix, [shown], edit=edit))
    return out
