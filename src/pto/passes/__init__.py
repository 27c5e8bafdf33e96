"""ir -> ir, passes and what they are made of; `pipeline.py` names the passes in their order.

    from pto.passes import Options, compile
    ctx, problems = compile(module, profile, Options(insert_sync=True))

`ctx.module` is the module with addresses and flags. A pass that finds errors is the last one that runs.
"""

from __future__ import annotations

from .pipeline import PASSES, Options, Pass, PassContext, compile

__all__ = ["PASSES", "Options", "Pass", "PassContext", "compile"]
