# RUN: pto python %s
# EXIT: 1
import pypto.language as pl
from pypto.ir import PassManager


@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x + 1.0


PassManager.get_strategy()
# STDERR:
#| error[PTO-E3103]: cannot use PassManager.get_strategy: not supported by pto's replacement of pypto
#|   help: f.lower(...).as_python() shows a program after the passes of pto
