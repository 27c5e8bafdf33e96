"""Attention over keys and values that lie in pages: a graph of cube and vector tasks. Lengths of sequences
and a table of pages decide which tasks there are, while they are submitted.

python 06_paged_attention.py [FOLDER]     writes a swimlane of the run to the folder, if one is given
"""

import sys

import numpy as np

import pto.language as pl

HEADS, WIDTH, PAGE = 16, 64, 32
BATCH, PAGES, MOST = pl.dynamic("BATCH"), pl.dynamic("PAGES"), pl.dynamic("MOST")
SCALE = WIDTH**-0.5


@pl.jit.incore
def scores(q: pl.Tensor, k: pl.Tensor, s: pl.Out[pl.Tensor]):
    s[:] = pl.matmul(q, k, b_trans=True)
    return s


@pl.jit.incore
def weights(
    s: pl.Tensor,
    held: pl.Scalar[pl.INT32],
    p: pl.Out[pl.Tensor],
    top: pl.Out[pl.Tensor],
    total: pl.Out[pl.Tensor],
):
    t = pl.load(s, [0, 0], [HEADS, PAGE], valid_shape=[HEADS, held]) * SCALE  # the last page may not be full
    highest = pl.row_max(t)
    e = pl.exp(pl.row_expand_sub(t, highest))
    pl.store(highest, [0, 0], top)
    pl.store(pl.row_sum(e), [0, 0], total)
    pl.store(pl.cast(pl.fillpad(e, pl.PadValue.zero), pl.FP16), [0, 0], p)  # nothing counts beyond
    return p, top, total


@pl.jit.incore
def weighted(p: pl.Tensor, v: pl.Tensor, o: pl.Out[pl.Tensor]):
    o[:] = pl.matmul(p, v)
    return o


@pl.jit.incore
def update(
    top: pl.Tensor,
    total: pl.Tensor,
    o: pl.Tensor,
    top_all: pl.InOut[pl.Tensor],
    total_all: pl.InOut[pl.Tensor],
    o_all: pl.InOut[pl.Tensor],
):
    higher = pl.maximum(top_all, top)
    old, new = pl.exp(top_all - higher), pl.exp(top - higher)
    o_all[:] = pl.row_expand_mul(o_all, old) + pl.row_expand_mul(o, new)
    total_all[:] = total_all * old + total * new
    top_all[:] = higher


@pl.jit.incore
def divide(o: pl.Tensor, total: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.row_expand_div(o, total)
    return out


@pl.jit
def paged_attention(
    q: pl.Tensor[[BATCH, HEADS, WIDTH], pl.FP16],
    keys: pl.Tensor[[PAGES, PAGE, WIDTH], pl.FP16],
    values: pl.Tensor[[PAGES, PAGE, WIDTH], pl.FP16],
    table: pl.Tensor[[BATCH, MOST], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[BATCH, HEADS, WIDTH], pl.FP32]],
):
    for b in pl.parallel(BATCH):
        top_all = pl.create_tensor([HEADS, 1], dtype=pl.FP32, init_value=-1e30)
        total_all = pl.create_tensor([HEADS, 1], dtype=pl.FP32, init_value=0.0)
        o_all = pl.create_tensor([HEADS, WIDTH], dtype=pl.FP32, init_value=0.0)
        length = pl.read(lengths, [b])  # by the orchestrator, while it submits
        for i in pl.range((length + PAGE - 1) // PAGE):
            page = pl.read(table, [b, i])
            s = pl.create_tensor([HEADS, PAGE], dtype=pl.FP32)
            p = pl.create_tensor([HEADS, PAGE], dtype=pl.FP16)
            top = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            total = pl.create_tensor([HEADS, 1], dtype=pl.FP32)
            o = pl.create_tensor([HEADS, WIDTH], dtype=pl.FP32)
            s = scores(q[b], keys[page], s)
            p, top, total = weights(s, pl.min(PAGE, length - i * PAGE), p, top, total)
            o = weighted(p, values[page], o)
            update(top, total, o, top_all, total_all, o_all)
        divide(o_all, total_all, out[b])
    return out


def attention(q, keys, values, table, lengths):
    """The same in NumPy."""
    out = np.zeros(q.shape)
    for b, n in enumerate(lengths):
        k, v = (x[table[b]].reshape(-1, WIDTH)[:n].astype(np.float64) for x in (keys, values))
        s = q[b].astype(np.float64) @ k.T * SCALE
        e = np.exp(s - s.max(axis=1, keepdims=True))
        out[b] = e / e.sum(axis=1, keepdims=True) @ v
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((3, HEADS, WIDTH)).astype(np.float16)
    keys, values = rng.standard_normal((2, 12, PAGE, WIDTH)).astype(np.float16)
    table = rng.permutation(12).reshape(3, 4).astype(np.int32)
    lengths = np.array([20, 64, 101], np.int32)
    out = np.zeros(q.shape, np.float32)
    given = [q, keys, values, table, lengths, out]
    run = paged_attention.compile(*given).execute(given, block_dim=4, record=True)
    print(f"{run.stats['tasks']} tasks, close to NumPy:", np.allclose(out, attention(*given[:-1]), atol=1e-3))
    if len(sys.argv) > 1:
        run.save_swimlane(f"{sys.argv[1]}/run.html", "paged attention")


if __name__ == "__main__":
    main()
