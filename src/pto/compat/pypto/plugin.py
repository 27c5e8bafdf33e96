"""A pytest plugin (`-p pto.compat.pypto.plugin`): fixtures and options of public tests without a conftest.py
of their own, and events of each test for `pto python --report`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ... import knobs
from ...language.programs.config import RunConfig
from . import session

#: Options of pypto's tests: name, default, help. A default of False makes a switch.
_OPTIONS: tuple[tuple[str, object, str], ...] = (
    ("--platform", "a2a3", "platforms to run for, separated by commas; devices are simulated"),
    ("--device", "0", "ignored: there is only one device"),
    ("--strategy", "Default", "ignored: there is only one strategy"),
    ("--memory-planner", "default", "ignored: there is only one memory planner"),
    ("--kernels-dir", None, "write folders of programs into this folder"),
    ("--save-kernels", False, "write folders of programs"),
    ("--dump-passes", False, "write programs after each pass"),
    ("--codegen-only", False, "compile, and do not run"),
    ("--precompile-workers", None, "ignored: cases are compiled when they run"),
)


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: object, parser: Any, args: list[str]) -> Iterator[None]:
    """Add the options that no conftest.py defines."""
    yield
    for name, default, help in _OPTIONS:
        action = "store_true" if default is False else "store"
        try:
            parser.addoption(name, action=action, default=default, help=help)
        except ValueError:  # the option is already defined
            continue


def _platforms(config: Any) -> list[str]:
    return [p.strip() for p in str(config.getoption("--platform")).split(",") if p.strip()]


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep only the variants of the requested platforms."""
    wanted = _platforms(config)
    kept = [i for i in items if getattr(i, "callspec", None) is None
            or i.callspec.params.get("platform", wanted[0]) in wanted]  # fmt: skip
    if len(kept) != len(items):
        config.hook.pytest_deselected(items=[i for i in items if i not in kept])
        items[:] = kept


@pytest.fixture
def test_config(request: Any) -> RunConfig:
    only = bool(request.config.getoption("--codegen-only"))
    return RunConfig(platform=_platforms(request.config)[0], codegen_only=only)


@pytest.fixture
def test_runner(test_config: RunConfig) -> object:
    from .harness import TestRunner

    return TestRunner(test_config)


@pytest.fixture
def device_id() -> int:
    return 0


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Print the findings of sanitizers, because pytest hides the output of passed tests."""
    texts = [text for one in session.listening for text in one.texts]
    if texts and config.getoption("capture") != "no":
        terminalreporter.section("found by sanitizers")
        for text in texts:
            terminalreporter.write_line(text)


# ---- the report ----


def _tell(**line: object) -> None:
    path = knobs.get("PTO_REPORT_FILE")
    if path:
        with open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps({**line, "cpu": time.process_time()}) + "\n")


def pytest_runtest_logstart(nodeid: str, location: object) -> None:
    _tell(what="test", program=nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.outcome != "passed":
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or "")
        outcome = "passed" if hasattr(report, "wasxfail") else report.outcome
        _tell(what="outcome", program=report.nodeid, outcome=outcome, seconds=report.duration, text=text)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _tell(what="test", program=report.nodeid)
        _tell(what="outcome", program=report.nodeid, outcome="failed", seconds=0, text=str(report.longrepr))
