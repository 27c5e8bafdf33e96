"""Diagnostics from the compiler's output about sources of a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from ..diag import Diagnostic, Source
from ..engine.cpp import compiler, messages

_NO_ENTRY = re.compile(r"entry\.cpp:\d+:.*\bkernel_entry\b.*not declared|use of undeclared.*kernel_entry")
#: Headers that belong to certain runtimes.
_HEADERS = {
    "pto_orchestration_api.h": "tensormap_and_ringbuffer",
    "runtime.h": "host_build_graph or aicpu_build_graph",
}


class _Files(Mapping[str, Source]):
    """The files of the user by the names that the compiler prints; a file is read when it is looked up."""

    def __init__(self) -> None:
        self._ours = str(compiler.include_dir()) + os.sep
        self._read: dict[str, Source | None] = {}

    def _find(self, name: str) -> Source | None:
        if name not in self._read:
            self._read[name] = None
            generated = os.path.basename(name) == "entry.cpp" and ".pto-build-" in name
            if not name.startswith((self._ours, "/usr/")) and not generated and os.path.isfile(name):
                with open(name, encoding="utf-8", errors="replace") as f:
                    self._read[name] = Source(name, f.read())
        return self._read[name]

    def __getitem__(self, name: str) -> Source:
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def explain(name: str, path: str, output: str) -> list[Diagnostic]:
    """Return diagnostics for a source that did not compile."""
    found = messages.diagnostics(output, _Files())
    if _NO_ENTRY.search(output) and all(d.span is None for d in found):
        d = Diagnostic(
            "PTO-E2605", f"missing kernel_entry of kernel '{name}': '{path}' does not define it",
            help='define extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args)',
        )  # fmt: skip
        return [d]
    for d in found:
        for header, runtime in _HEADERS.items():
            if re.search(rf"(?<![\w./]){re.escape(header)}\b.*(?:No such file|not found)", d.message):
                d.help = f"this source is for {runtime}"
    return found
