"""Serve the page of a program to a browser on this machine.

The address contains a token, and requests need it. The server listens on 127.0.0.1 only, and answers only
requests that name this address as their host, so that pages of other sites cannot reach it.
"""

from __future__ import annotations

import secrets
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..perf.markup import script_json

#: Longest text of a request in bytes, and seconds that a client may be silent.
_MOST, _SILENCE = 1 << 20, 30
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageServer(ThreadingHTTPServer):
    """Server of a page. `answers` has a function from a text to data for each request of the page."""

    daemon_threads = True

    def __init__(self, port: int, page: Callable[[], str], answers: dict[str, Callable[[str], Any]]) -> None:
        self.page, self.answers = page, answers
        self.token = secrets.token_urlsafe()
        self.turn = threading.Lock()  # one text at a time
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "pto", ""
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE

    def do_GET(self) -> None:
        if self._admitted() == "":
            self._send(200, "text/html; charset=utf-8", self.server.page())

    def do_POST(self) -> None:
        name = self._admitted()
        if name is None:
            return
        answer = self.server.answers.get(name)
        origin, length = self.headers.get("Origin"), self.headers.get("Content-Length", "")
        if answer is None:
            self._refuse(404, "unknown request")
        elif origin is not None and origin != f"http://{self.server.host}":
            self._refuse(403, "expected a request of the page itself")
        elif not length.isdecimal() or int(length) > _MOST:
            self._refuse(413, f"expected a text of at most {_MOST} bytes")
        else:
            text = self.rfile.read(int(length)).decode("utf-8", "replace")
            try:
                with self.server.turn:
                    data = script_json(answer(text))
            except Exception as e:
                traceback.print_exc()
                self._refuse(500, f"internal error, this is a bug of pto: {type(e).__name__}: {e}")
                return
            self._send(200, "application/json", data)

    def _admitted(self) -> str | None:
        """Return the path after the token. Refuse a request without the token or for another host."""
        _, token, *rest = (*self.path.split("/", 2), "")[:3]
        if self.headers.get("Host") != self.server.host:
            self._refuse(403, f"expected host {self.server.host}")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(403, "expected the address that pto explore printed, with its token")
        elif self.command == "GET" and rest != [""]:
            self._refuse(404, "unknown page")
        else:
            return rest[0]
        return None

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", why + "\n")

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a line for each request would hide other messages."""
