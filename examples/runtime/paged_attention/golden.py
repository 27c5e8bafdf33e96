"""Attention of one query per sequence over a paged cache of keys and values, all heads on one KV head.

The keys and values of a sequence lie in blocks of 16 that a table names; the last block may be partly used.
Golden gathers them and computes the softmax over the whole context at once, in float64: nothing of the
block-by-block algorithm of the kernels.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__outputs__ = ["out"]
RTOL = ATOL = 1e-3
ALL_CASES = {
    "Case1": {"batch": 1, "num_heads": 16, "head_dim": 16, "context_len": 33},
    "Case2": {"batch": 1, "num_heads": 16, "head_dim": 16, "context_len": 128},
    "CaseHeads": {"batch": 2, "num_heads": 20, "head_dim": 256, "context_lens_list": [40, 16]},
}
DEFAULT_CASE = "Case1"

BLOCK = 16


def lengths(params: dict[str, Any]) -> list[int]:
    """The context of each sequence; a list that is too short is used again from its start."""
    given = params.get("context_lens_list") or [params["context_len"]]
    return [given[i % len(given)] for i in range(params["batch"])]


def generate_inputs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    rng = np.random.default_rng(13)
    batch, heads, dim = params["batch"], params["num_heads"], params["head_dim"]
    context = lengths(params)
    per_sequence = -(-max(context) // BLOCK)
    blocks = batch * per_sequence
    query = rng.uniform(-0.5, 0.5, (batch, heads, dim)).astype(np.float16)
    key_cache = rng.uniform(-0.5, 0.5, (blocks, BLOCK, dim)).astype(np.float16)
    value_cache = rng.uniform(-1, 1, (blocks, BLOCK, dim)).astype(np.float16)
    block_table = rng.permutation(blocks).reshape(batch, per_sequence).astype(np.int32)
    return [
        ("query", query),
        ("key_cache", key_cache),
        ("value_cache", value_cache),
        ("block_table", block_table),
        ("context_lens", np.array(context, np.int32)),
        ("out", np.zeros((batch, heads, dim), np.float32)),
        ("batch", ctypes.c_int64(batch)),
        ("num_heads", ctypes.c_int64(heads)),
        ("head_dim", ctypes.c_int64(dim)),
        ("max_blocks", ctypes.c_int64(per_sequence)),
        ("scale", ctypes.c_float(dim**-0.5)),
    ]


def compute_golden(tensors: dict[str, Any], params: dict[str, Any]) -> None:
    scale = params["head_dim"] ** -0.5
    for b, length in enumerate(lengths(params)):
        used = tensors["block_table"][b]
        keys = tensors["key_cache"][used].reshape(-1, params["head_dim"])[:length].astype(np.float64)
        values = tensors["value_cache"][used].reshape(-1, params["head_dim"])[:length].astype(np.float64)
        scores = tensors["query"][b].astype(np.float64) @ keys.T * scale
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        tensors["out"][b] = weights @ values / weights.sum(axis=1, keepdims=True)
