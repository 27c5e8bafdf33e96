"""Paged attention in chunks of 16 sequences; inputs and golden are those of paged_attention.

CaseBatch256 is 16 chunks of 13 tasks: one that starts the accumulators, and four for each of three blocks.
PA_CASE names a case, PA_SEQ_LEN gives other lengths: PA_SEQ_LEN=33,17,48.
"""

from __future__ import annotations

import runpy
from pathlib import Path

_SINGLE = runpy.run_path(str(Path(__file__).parents[1] / "paged_attention/golden.py"))

__outputs__ = ["out"]
RTOL = ATOL = 1e-3
ALL_CASES = {
    "Case1": {"batch": 1, "num_heads": 16, "head_dim": 16, "context_len": 16},
    "CaseBatch256": {"batch": 256, "num_heads": 1, "head_dim": 256, "context_len": 48},
    "CaseVarSeq": {"batch": 20, "num_heads": 20, "head_dim": 16, "context_lens_list": [33, 64, 128, 15]},
}
DEFAULT_CASE = "Case1"

generate_inputs = _SINGLE["generate_inputs"]
compute_golden = _SINGLE["compute_golden"]
