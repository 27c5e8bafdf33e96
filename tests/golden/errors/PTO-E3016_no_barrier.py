# RUN: PTO_SANITIZE=race python %s
import numpy as np

import pto.language as pl
import pto.language.distributed as pld


@pl.jit.incore
def shift(
    x: pl.Tensor[[1, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    window: pld.DistributedTensor[[1, 64], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
):
    pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], window)
    other = 1 - pld.rank(pld.get_comm_ctx(window))
    pl.store(pld.tile.remote_load(window, peer=other, offsets=[0, 0], shape=[1, 64]), [0, 0], out)


@pl.jit.host
def exchange(x: pl.Tensor[[2, 1, 64], pl.FP32], out: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]):
    data = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    signals = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        window = pld.window(data, [1, 64], dtype=pl.FP32)
        shift(x[r], out[r], window, pld.window(signals, [2, 1], dtype=pl.INT32), device=r)


x = np.ones((2, 1, 64), np.float32)
config = pl.RunConfig(distributed_config=pld.DistributedConfig(device_ids=[0, 1]))
exchange(x, np.zeros_like(x), config=config)
# STDERR:
#| PTO-E3016_no_barrier.py:17:14: error[PTO-E3016]: race between ranks: 'shift' of rank 0 reads window[0, 0] on rank 1, which 'shift_0' of rank 1 writes, in either order
#|    17 |     pl.store(pld.tile.remote_load(window, peer=other, offsets=[0, 0], shape=[1, 64]), [0, 0], out)
#|       |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   PTO-E3016_no_barrier.py:15:5: note: 'shift_0' of rank 1 writes it here
#|    15 |     pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], window)
#|       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   PTO-E3016_no_barrier.py:26:9: note: 'shift_0' of rank 1 was submitted here
#|    26 |         shift(x[r], out[r], window, pld.window(signals, [2, 1], dtype=pl.INT32), device=r)
#|       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   PTO-E3016_no_barrier.py:26:9: note: 'shift' of rank 0 was submitted here
#|    26 |         shift(x[r], out[r], window, pld.window(signals, [2, 1], dtype=pl.INT32), device=r)
#|       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#|   help: let one task notify after its access, and the other task wait for that: pld.system.notify and pld.system.wait, or pld.tensor.barrier between the two
