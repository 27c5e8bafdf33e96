from __future__ import annotations

import importlib.util

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip proofs where the solver is missing, which is an extra of the package."""
    if importlib.util.find_spec("z3") is None:
        for item in items:
            if "proof" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="no z3: pip install 'pto[prove]'"))
