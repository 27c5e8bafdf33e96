"""Provide `pypto` from this package in this process, so that programs with `import pypto.language as pl` run
unchanged.

No code is copied: `pypto.language` is `pto.language`, and so on (`modules.py`). If another package of that
name is installed, the import fails, because the intended package is unknown; `PTO_PYPTO=shadow` selects this
package.
"""

from __future__ import annotations

from ... import knobs
from .finder import install

install(shadow=knobs.get("PTO_PYPTO") == "shadow")

__all__ = ["install"]
