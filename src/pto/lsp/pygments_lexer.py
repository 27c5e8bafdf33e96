"""Colors of programs in documents, for Pygments (entry point `pygments.lexers`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, String, Text

from .grammar import colored

_TOKENS: dict[str, Any] = {
    "comment": Comment.Single, "string": String.Double, "value": Name.Variable, "symbol": Name.Function,
    "label": Name.Label, "type": Keyword.Type, "attribute": Name.Constant, "keyword": Keyword,
    "instruction": Name.Builtin, "number": Number, "element": Keyword.Type, "location": Name.Constant,
    "word": Name,
}  # fmt: skip


class PtoLexer(Lexer):
    """Lexer of PTO programs; the documents use the name `mlir`, too."""

    name = "PTO"
    aliases: ClassVar[Sequence[str]] = ["pto", "mlir"]
    filenames: ClassVar[Sequence[str]] = ["*.pto"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-pto"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        behind = 0
        for start, end, kind in colored(text):
            if start > behind:
                yield behind, Text, text[behind:start]
            yield start, _TOKENS[kind], text[start:end]
            behind = end
        if text[behind:]:
            yield behind, Text, text[behind:]
