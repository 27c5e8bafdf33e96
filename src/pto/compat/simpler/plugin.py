"""A pytest plugin (`-p pto.compat.simpler.plugin`): it runs public scene tests in this process.

The conftest.py of these tests starts a process for each runtime, and for each test with several chips,
because a device loads a library only once. The simulator does not need these processes, and they would not
have this package's finder.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: Any) -> bool | None:
    if not session.config.pluginmanager.hasplugin("terminalreporter") or not _is_scene_suite(session):
        return None
    from _pytest.main import pytest_runtestloop as plain

    return plain(session)


def _is_scene_suite(session: Any) -> bool:
    return any(
        hasattr(getattr(i, "cls", None), "_st_level") or i.get_closest_marker("device_count")
        for i in session.items
    )
