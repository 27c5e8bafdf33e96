"""The kernels of examples/kernels with their arguments, as their own file has them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def _cases() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("kernels_reference", EXAMPLES / "kernels" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.KERNELS


KERNELS = _cases()
