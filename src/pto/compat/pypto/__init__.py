"""`pypto` is us, in this process: programs that say `import pypto.language as pl` run as they are.

import pto.compat.pypto     # before they are imported; `pto python script.py` does it
import pypto.language as pl

Nothing is copied: `pypto.language` is `pto.language`, and so on (`modules.py`). Where another package of that
name is installed this refuses, as it cannot know which one is meant; `PTO_PYPTO=shadow` says ours.
"""

from __future__ import annotations

from ... import knobs
from .finder import install

install(shadow=knobs.get("PTO_PYPTO") == "shadow")

__all__ = ["install"]
