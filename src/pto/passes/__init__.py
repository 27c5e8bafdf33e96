"""Passes from IR to IR, and their parts; `pipeline.py` names the passes in their order.

    ctx, problems = compile(module, profile, Options(insert_sync=True))

`ctx.module` is the module with addresses and flags. No pass runs after one that reports errors.
"""

from __future__ import annotations

from .pipeline import PASSES, Options, Pass, PassContext, compile

__all__ = ["PASSES", "Options", "Pass", "PassContext", "compile"]
