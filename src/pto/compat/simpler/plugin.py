"""A plugin of pytest (`-p pto.compat.simpler.plugin`): public scene tests in this process.

Their conftest.py starts a process for each runtime and each test of several chips, for the sake of libraries
that a device loads once. There are none here, and another process would know nothing of us.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: Any) -> Any:
    if not session.config.pluginmanager.hasplugin("terminalreporter") or not _is_scene_suite(session):
        return None
    from _pytest.main import pytest_runtestloop as plain

    return plain(session)


def _is_scene_suite(session: Any) -> bool:
    return any(
        hasattr(getattr(i, "cls", None), "_st_level") or i.get_closest_marker("device_count")
        for i in session.items
    )
