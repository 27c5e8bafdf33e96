"""The removal of one flag or one barrier from a correct C++ kernel is reported.

Flags change nothing in the kernel's own run, so what a kernel without one would tell is what it tells without that
call; nothing has to be compiled again.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.each import each

from pto.diag import render
from pto.engine.traced.sites import CallSite, Sites

from .test_cpp import FILES, Written, kernels, run

#: Files of which every run has the time.
SOME = ("cube", "events")

ORDERING = ("set_flag", "wait_flag", "barrier", "sync.set", "wait_flag_dev", "mem_bar")


def _nothing(core: Any) -> None: ...


def sites_of(written: Written) -> list[tuple[str, int]]:
    """The calls of a kernel that order something, by row and line."""
    found: set[tuple[str, int]] = set()
    make = Sites._make

    def noting(self: Sites, key: tuple[int, ...]) -> CallSite:
        site = make(self, key)
        row = site.op.row
        if row is not None and row.name in ORDERING and site.op.loc is not None:
            found.add((row.name, site.op.loc.line))
        return site

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sites, "_make", noting)
        run(written, "good")
    return sorted(found)


def without(written: Written, name: str, line: int) -> Any:
    """A run in which the calls of a row at a line do nothing."""
    make = Sites._make

    def dropping(self: Sites, key: tuple[int, ...]) -> CallSite:
        site = make(self, key)
        if site.op.row is not None and site.op.row.name == name and site.op.loc is not None:
            if site.op.loc.line == line:
                site.step = _nothing
        return site

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sites, "_make", dropping)
        return run(written, "good", sanitize="race,sync")[0]


@pytest.mark.parametrize("file", FILES)
def test_every_flag_is_missed(file: str) -> None:
    if file not in SOME and "PTO_TEST_EMITTED" not in os.environ:
        pytest.skip("make emitted")

    def missed(name: str) -> None:
        written = kernels(file)[name]
        for row, line in sites_of(written):
            result = without(written, row, line)
            assert not result.ok, f"nobody misses {row} of line {line}: {render(result.diagnostics)}"

    each(missed, list(kernels(file)))
