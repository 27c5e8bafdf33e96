"""ir -> ir, one pass per file; `pipeline.py` names the order.

    from pto.passes import Options, compile
    ctx, problems = compile(module, profile, Options(insert_sync=True))

`ctx.module` is the module with addresses and flags. A pass that finds errors is the last one that runs.
"""

from __future__ import annotations

from .pipeline import PASSES, Options, Pass, PassContext, compile

__all__ = ["PASSES", "Options", "Pass", "PassContext", "compile"]
