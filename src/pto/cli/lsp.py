"""`pto lsp`: the language server of programs, on standard input and output."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..checking import check_source
from ..diag import Diagnostic
from ..lsp.grammar import GRAMMARS
from .common import FAILED, OK, CommandParser, add_target, show, target

_EXAMPLES = """\
  pto lsp                 an editor starts this; docs/editors.md has settings
  pto lsp --arch a5       target of programs that do not name one
  pto lsp --grammar vim > ~/.vim/syntax/pto.vim
"""


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto lsp", "Serve the Language Server Protocol on standard input and output.", _EXAMPLES
    )
    add_target(p)
    p.add_argument("--stdio", action="store_true", help="no effect: editors pass it to every server")
    p.add_argument(
        "--grammar", choices=tuple(GRAMMARS), help="print a grammar for an editor, and serve nothing"
    )
    options = p.parse_args(arguments)
    if options.grammar:
        print(GRAMMARS[options.grammar](), end="")
        return OK
    try:
        from ..lsp.server import make_server
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith(("pygls", "lsprotocol")):
            raise
        help = "install it: pip install 'pto[lsp]', or pip install pygls"
        show([Diagnostic("PTO-E0006", f"cannot serve editors: {e.name} is not installed", help=help)], "text")
        return FAILED
    # other output must not mix with the messages of the protocol
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # a copy, because the interpreter cannot end while a thread reads from its standard input
    source = os.fdopen(os.dup(0), "rb")
    make_server(lambda text: check_source(text, lambda module: target(options, module))).start_io(
        source, output
    )
    return OK
