"""A plugin of pytest (`-p pto.compat.pypto.plugin`): the fixtures and options of public tests, for those
without a conftest.py of their own; and what happens to each test, for `pto python --report`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ... import knobs
from ...language.config import RunConfig
from . import session

#: Options of the field's tests: name, default, and whether it is a switch.
_OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("--platform", "a2a3", "platforms to run for, with commas between; devices are simulated"),
    ("--device", "0", "taken; there is one device"),
    ("--strategy", "Default", "taken; there is one way to lower programs"),
    ("--memory-planner", "default", "taken; ours places tiles"),
    ("--kernels-dir", None, "where folders of programs are written"),
    ("--save-kernels", False, "write folders of programs"),
    ("--dump-passes", False, "write programs after each pass"),
    ("--codegen-only", False, "compile, do not run"),
    ("--precompile-workers", None, "taken; cases are compiled when they run"),
)


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> Iterator[None]:
    """Options that no conftest.py has brought."""
    yield
    for name, default, help in _OPTIONS:
        action = "store_true" if default is False else "store"
        try:
            parser.addoption(name, action=action, default=default, help=help)
        except ValueError:  # it is there
            continue


def _platforms(config: Any) -> list[str]:
    return [p.strip() for p in str(config.getoption("--platform")).split(",") if p.strip()]


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Only the variants that were asked for."""
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
def test_runner(test_config: RunConfig) -> Any:
    from .harness import TestRunner

    return TestRunner(test_config)


@pytest.fixture
def device_id() -> int:
    return 0


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """What sanitizers found: pytest keeps to itself what tests that pass have said."""
    texts = [text for one in session.listening for text in one.texts]
    if texts and config.getoption("capture") != "no":
        terminalreporter.section("found by sanitizers")
        for text in texts:
            terminalreporter.write_line(text)


# ---- the report ----


def _tell(**line: Any) -> None:
    path = knobs.get("PTO_REPORT_FILE")
    if path:
        with open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
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
