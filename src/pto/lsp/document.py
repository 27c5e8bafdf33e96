"""An open text: its diagnostics at once, and names and lowered program when a request needs them.

A change of the text makes a new document, which may take over the program of the old one (`edited`).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from ..asm.lexer import EOF, Tokens
from ..diag import DiagnosticError, Source
from ..driver import Lowered, Options, lowered
from ..ir.facts import module_profile
from ..isa.profiles import DEFAULT, Profile, profile
from .edited import Check
from .lines import TextLines
from .names import NameIndex

_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class Document:
    """A text of a version, checked. Offsets are those of the text in `source`."""

    def __init__(self, path: str, text: str, version: int | None, encoding: str, check: Check) -> None:
        self.path = path
        self.version = version
        #: 1 if the text starts with a byte order mark, which is not part of the source.
        self.skipped = 1 if text.startswith(_MARK) else 0
        self.lines = TextLines(text, encoding)
        self.source = Source(path, text[self.skipped :])
        self.checked = check(self.source)

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def tokens(self) -> Tokens:
        return self.checked.tokens

    @cached_property
    def names(self) -> NameIndex:
        return NameIndex(self.checked)

    @cached_property
    def profile(self) -> Profile:
        """Return the target that the readable part of the program names."""
        done, module = self.checked.done, self.checked.module
        if done is not None:
            return done.profile
        return profile(DEFAULT) if module is None else module_profile(module, None)

    @cached_property
    def lowered(self) -> Lowered | None:
        """Return the program with the addresses and flags that it leaves to the tools; None after errors."""
        done, module = self.checked.done, self.checked.module
        if done is None or module is None or not self.checked.ok:
            return None
        try:
            found = lowered(module, done.profile, Options(check="none", passes="needed"))
        except DiagnosticError:
            return None
        return found if found.ok else None

    # -- offsets and tokens --------------------------------------------------------------------------------

    def offset(self, line: int, column: int) -> int:
        return max(0, self.lines.offset(line, column) - self.skipped)

    def place(self, offset: int) -> tuple[int, int]:
        return self.lines.place(offset + self.skipped)

    def token_at(self, offset: int) -> int | None:
        """Return the index of the token at an offset, or of the token that ends there."""
        index = bisect_right(self.tokens.starts, offset) - 1
        if index >= 0 and self.tokens.starts[index] == offset and not self._is_word(index) and index > 0:
            index -= 1  # a cursor between `%x` and `,` belongs to the word
        if index < 0 or self.tokens.texts[index] == EOF:
            index -= 1
        if index < 0:
            return None
        end = self.tokens.starts[index] + len(self.tokens.texts[index])
        return index if offset <= end else None

    def _is_word(self, index: int) -> bool:
        text = self.tokens.texts[index]
        return text[:1] in ("%", "@", "^", "!", "#", '"', "_") or text[:1].isalnum()

    def before(self, offset: int) -> str:
        """Return the text of a line up to an offset."""
        return self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
