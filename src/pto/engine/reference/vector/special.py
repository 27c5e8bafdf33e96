"""The product with a scalar that also converts."""

from __future__ import annotations

import numpy as np

from ..instr import Instr
from ..meaning import Numbers
from ..registry import executor
from .convert import converted
from .lanes import active, put_raw, values


@executor("product and conversion")
def scale_convert(i: Instr) -> None:
    """Compute products in f32, convert them, and store them in every other lane."""
    product = values(i, "input") * Numbers(i, "f32").scalar(i.args["scalar"])
    codes = converted(i, product, "f32", "f16", i.attr("rnd"), False)
    found = np.zeros(i.args["r"].lanes, codes.dtype)
    np.copyto(found[int(i.attr("part") == "ODD") :: 2], codes, where=active(i, "mask", 4))
    put_raw(i, "r", found)
