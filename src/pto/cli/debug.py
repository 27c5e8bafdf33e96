"""`pto debug`: stop a kernel, inspect it, and step forward and back, at a prompt or from an editor."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import socket
import sys
import threading
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from .common import FAILED, OK, CommandParser, ended, say
from .run import Prepared, finished, parsed, parser, run

if TYPE_CHECKING:
    from ..engine.debug.dap import Adapter
    from ..engine.debug.session import Stops
    from ..engine.result import LaunchResult

_EXAMPLES = """\
  pto debug k.pto -- @a.npy @b.npy f32:16x64
  pto debug k.pto --break 14:3 --watch '%acc[0,1]' -- @a.npy f32:16x64
  pto debug k.pto --break '14 if %i == 2' --command 'print %acc' --command continue -- @a.npy f32:16x64
  pto debug k.pto --schedule seed=4 --sanitize all -- @a.npy f32:16x64
  pto debug --dap                         Debug Adapter Protocol on standard input and output
  pto debug --dap-port 4711               the same on a local port; prints a token for the editor

At the prompt, 'help' lists the commands. Arguments are those of pto run (pto run --help).
"""


def main(arguments: Sequence[str]) -> int:
    if "--dap" in arguments or any(a.partition("=")[0] == "--dap-port" for a in arguments):
        return _serve(arguments)
    doc = "Debug a kernel: stop it, inspect its tiles, and step forward and back."
    p = parser("pto debug", doc, _EXAMPLES)
    p.add_argument(
        "--dap",
        action="store_true",
        help="serve the Debug Adapter Protocol on standard input and output, for editors",
    )
    p.add_argument(
        "--dap-port", metavar="PORT", help="the same on a local port; the editor sends the printed token"
    )
    options = parsed(p, arguments)
    options.debug = True
    options.stop_first = options.stop_first or not (options.breaks or options.watches)
    problems = run(options)
    return ended(problems, options)


def _serve(arguments: Sequence[str]) -> int:
    """Serve the protocol, on standard input and output or on a port."""
    from ..engine.debug.dap import Adapter

    p = CommandParser("pto debug", "Serve the Debug Adapter Protocol.", _EXAMPLES)
    p.add_argument("--dap", action="store_true")
    p.add_argument("--dap-port", type=_port, metavar="PORT")
    options = p.parse_args(list(arguments))
    if options.dap_port is None:
        # other output must not mix with the messages of the protocol
        target = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        # a copy, because the interpreter cannot end while a thread reads from its standard input
        source = os.fdopen(os.dup(0), "rb")
        Adapter(source, target, _begin).serve()
        return OK
    try:
        server = socket.create_server(("127.0.0.1", options.dap_port))
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        say(f"pto debug: cannot listen on 127.0.0.1:{options.dap_port}: {why}\n")
        return FAILED
    token = secrets.token_urlsafe()
    with server:
        say(f"listening on 127.0.0.1:{server.getsockname()[1]}, token {token}\n")
        client, adapter = _admitted(server, token)
    with contextlib.suppress(OSError), client:  # the client may disconnect at any time
        adapter.serve()
    return OK


#: Seconds that a client has to present the token.
_PROOF = 10.0
#: Number of clients without a token at a time; a further client replaces the oldest.
_MOST_ASKED = 32

#: The files of a connection, and its adapter.
_Client = tuple[contextlib.ExitStack, "Adapter"]


def _admitted(server: socket.socket, token: str) -> _Client:
    """Wait for a client that presents the token. Every user of the machine can connect, so the server asks
    all clients at the same time. A client without the token can neither end the server nor delay another
    client."""
    found: SimpleQueue[_Client] = SimpleQueue()
    asked: list[socket.socket] = []
    over = threading.Event()

    def ask(client: socket.socket) -> None:
        admitted = _asked(client, token)
        if admitted is not None:
            found.put(admitted)

    def listen() -> None:
        while not over.is_set():
            try:
                client = server.accept()[0]
            except OSError:  # the client or the server has closed the connection
                continue
            asked[:] = [*(c for c in asked if c.fileno() >= 0), client]
            for oldest in asked[:-_MOST_ASKED]:
                _hang_up(oldest)
            threading.Thread(target=ask, args=(client,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    try:
        return found.get()
    finally:
        over.set()
        _hang_up(server)


def _asked(client: socket.socket, token: str) -> _Client | None:
    """Ask a client for the token. Return None if the client does not present it in time."""
    from ..engine.debug.dap import Adapter

    limit = threading.Timer(_PROOF, _hang_up, (client,))
    limit.daemon = True
    limit.start()
    try:
        # the client may disconnect at any time
        with contextlib.suppress(OSError), contextlib.ExitStack() as files:
            files.enter_context(client)
            source = files.enter_context(client.makefile("rb"))
            adapter = Adapter(source, files.enter_context(client.makefile("wb")), _begin)
            if adapter.admits(token):
                return files.pop_all(), adapter
    finally:
        limit.cancel()
    return None


def _hang_up(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise ArgumentTypeError(f"'{text}': expected a port from 0 to 65535, or 0 for any")
    return int(text)


class _Launching:
    """A launch request, prepared."""

    def __init__(self, options: Namespace) -> None:
        self._ready = Prepared(options)

    def stops(self) -> Stops:
        return self._ready.stops()

    def left(self, result: LaunchResult) -> list[Diagnostic]:
        with contextlib.redirect_stdout(sys.stderr):
            return finished(self._ready, result)


#: Keys of a launch request for the editor or the adapter itself.
_OF_EDITORS = (
    "program",
    "args",
    "cwd",
    "type",
    "name",
    "request",
    "stopOnEntry",
    "noDebug",
    "env",
    "console",
    "token",
    "debugServer",
    "internalConsoleOptions",
    "preLaunchTask",
    "postDebugTask",
    "presentation",
)


def _begin(request: dict[str, Any]) -> _Launching:
    """Prepare a launch from a launch request: `program`, `args`, and options of `pto run` by their names, for
    example `blocks` or `sanitize`. Names with a leading underscore belong to the editor."""
    program, args = request.get("program"), request.get("args") or []
    if not isinstance(program, str) or not program:
        raise _refused("expected the path of a kernel in 'program'")
    if not isinstance(args, list):
        raise _refused("expected a list in 'args', the arguments after '--' of pto run")
    folder = request.get("cwd")
    if isinstance(folder, str) and folder:
        try:
            os.chdir(folder)
        except OSError as e:
            raise _refused(f"cannot change to '{folder}': {(e.strerror or str(e)).lower()}") from None
    words: list[str] = []
    for name, value in request.items():
        if name in _OF_EDITORS or name.startswith("_"):
            continue
        flag = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(flag)
            elif isinstance(one, str | int | float) and one is not False:
                words.append(f"{flag}={one}")
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            p = parser("pto debug", "", "")
            options = parsed(p, [*words, "--debug", "--", *map(str, args)], program)
    except SystemExit:
        raise _refused(said.getvalue().strip().partition("\n")[0].removeprefix("pto debug: ")) from None
    options.quiet = True
    return _Launching(options)


def _refused(why: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2017", why, help="docs/debugger.md shows launch requests")])
