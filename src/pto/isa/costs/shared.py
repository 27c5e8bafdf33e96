"""Costs shared by all targets: data movement, products and others, from rates and latencies of a machine."""

from __future__ import annotations

from .entry import DERIVED, FITTED, GUESSED, MEASURED, Cost

_DMA = "a start-up per transfer, then bytes at the rate of the path"
_MAD = "products on 24 cores: cycles per step of base blocks"


def _products(names: str, a: str, b: str, evidence: str, source: str) -> Cost:
    """Return the cost of a product of tiles. The inner extent is that of the left operand; both have the same
    type."""
    m, k, n = f"{a}.v_row", f"{a}.v_col", f"{b}.v_col"
    return Cost(
        names, f"mad_head + cube({m}, {k}, {n}, {a}.bits)", "0", evidence, source,
        flops=f"2 * {m} * {k} * {n}",
    )  # fmt: skip


def _moves(
    names: str, when: str, path: str, busy: str, evidence: str, source: str, of: str = "dst", after: str = "0"
) -> Cost:
    return Cost(names, busy, after, evidence, source, when, path, f"stored({of})")


_MATRIX = "tmov textract tmov.fp textract_fp tinsert tinsert_fp"

COSTS: tuple[Cost, ...] = (
    # -- global memory
    Cost("tload tprefetch", "(descriptors(src) - 1) * lat_gm_in + size(src) / bw_gm_ub", "lat_gm_in", FITTED,
         _DMA, "dst.loc == VEC", "gm_ub", "size(src)"),
    Cost("tload tprefetch", "(descriptors(src) - 1) * lat_gm_in + size(src) / bw_gm_l1", "lat_gm_in", FITTED,
         _DMA, "", "gm_l1", "size(src)"),
    Cost("tstore", "(descriptors(dst) - 1) * lat_l0c_gm + size(dst) / bw_l0c_gm", "lat_l0c_gm", DERIVED,
         "stores of products on 24 cores", "src.loc == ACC", "l0c_gm", "size(dst)"),
    Cost("tstore", "size(dst) / bw_l1_gm", "lat_ub_gm", GUESSED, _DMA, "src.loc == MAT", "l1_gm",
         "size(dst)"),
    Cost("tstore", "(descriptors(dst) - 1) * lat_ub_gm + size(dst) / bw_ub_gm", "lat_ub_gm", FITTED, _DMA, "",
         "ub_gm", "size(dst)"),
    Cost("tstore_fp", "size(dst) / bw_l0c_gm", "lat_l0c_gm", DERIVED, "as tstore", "", "l0c_gm", "size(dst)"),
    Cost("mgather", "dst.v_row * lat_gm_in / 8 + size(dst) / bw_gm_ub", "lat_gm_in", GUESSED,
         "a transfer per row, eight at a time", "", "gm_ub", "size(dst)"),
    Cost("mscatter", "src.v_row * lat_ub_gm / 8 + size(src) / bw_ub_gm", "lat_ub_gm", GUESSED,
         "a transfer per row, eight at a time", "", "ub_gm", "size(src)"),
    # -- FIFOs: slots are in global memory; on a5, in memory of the consumer
    Cost("tpush tpush_to_aiv tpush_to_aic", "stored(tile) / bw_l0c_ub", "lat_l1_l0", DERIVED,
         "the platform's rate of the path", "tile.loc == ACC and isa == 'a5'", "l0c_ub", "stored(tile)"),
    Cost("tpush tpush_to_aiv tpush_to_aic", "size(tile) / bw_l0c_gm", "lat_l0c_gm", DERIVED, "as tstore",
         "tile.loc == ACC", "l0c_gm", "size(tile)"),
    Cost("tpush tpush_to_aiv tpush_to_aic", "size(tile) / bw_l1_ub", "lat_l1_l0", DERIVED,
         "the platform's rate of the path", "isa == 'a5'", "l1_ub", "size(tile)"),
    Cost("tpush tpush_to_aiv tpush_to_aic", "size(tile) / bw_ub_gm", "lat_ub_gm", FITTED, _DMA,
         "tile.loc == VEC", "ub_gm", "size(tile)"),
    Cost("tpop tpop_from_aic tpop_from_aiv", "issue", "0", GUESSED, "the tile has already arrived",
         "isa == 'a5'"),
    Cost("tpop tpop_from_aic tpop_from_aiv", "size(tile) / bw_gm_ub", "lat_gm_in", FITTED, _DMA,
         "tile.loc == VEC", "gm_ub", "size(tile)"),
    Cost("tpop tpop_from_aic tpop_from_aiv", "size(tile) / bw_gm_l1", "lat_gm_in", FITTED, _DMA,
         "tile.loc == MAT", "gm_l1", "size(tile)"),
    # -- between the memories of the cube core
    _moves(_MATRIX, "src.loc == MAT and dst.loc == LEFT", "l1_l0a", "lat_l1_l0 + stored(dst) / bw_l1_l0a",
           DERIVED, "extracts of products on 24 cores"),
    _moves(_MATRIX, "src.loc == MAT and dst.loc == RIGHT", "l1_l0b", "lat_l1_l0 + stored(dst) / bw_l1_l0b",
           DERIVED, "extracts of products on 24 cores"),
    _moves(_MATRIX, "src.loc == MAT and dst.loc in (SCALE_LEFT, SCALE_RIGHT)", "l1_l0a",
           "lat_l1_l0 / 2 + stored(dst) / bw_l1_l0b", GUESSED, "as an extract"),
    _moves("timg2col", "dst.loc == RIGHT", "l1_l0b", "lat_l1_l0 + stored(dst) / bw_l1_l0b", DERIVED,
           "as extracts of products"),
    _moves("timg2col", "", "l1_l0a", "lat_l1_l0 + stored(dst) / bw_l1_l0a", DERIVED,
           "as extracts of products"),
    _moves(_MATRIX, "src.loc == MAT and dst.loc in (BIAS, SCALING)", "l1_bt", "stored(dst) / bw_l1_bt",
           GUESSED, "as published, without a source"),
    _moves(_MATRIX, "src.loc == ACC and dst.loc == MAT", "l0c_l1", "stored(dst) / bw_l0c_l1", GUESSED,
           "as published, without a source", after="lat_l1_l0"),
    _moves(_MATRIX, "src.loc == ACC and dst.loc == VEC", "l0c_ub", "stored(dst) / bw_l0c_ub", DERIVED,
           "the platform's rate of the path", after="lat_l1_l0"),
    _moves(_MATRIX, "src.loc == VEC and dst.loc == MAT", "l1_ub", "stored(src) / bw_l1_ub", DERIVED,
           "the platform's rate of the path", of="src", after="lat_l1_l0"),
    _moves(_MATRIX, "src.loc == MAT and dst.loc == VEC", "l1_ub", "stored(dst) / bw_l1_ub", DERIVED,
           "the platform's rate of the path", after="lat_l1_l0"),
    Cost("textract tinsert", "size(dst) / bw_ub_ub", "5", FITTED, "copies of tiles within UB",
         "src.loc == VEC and dst.loc == VEC", "ub_ub", "size(dst)"),
    Cost("tfillpad tfillpad_inplace tfillpad_expand", "stored(dst) / bw_l1_bt", "0", GUESSED, "a fill of L1",
         "dst.loc == MAT"),
    # -- the cube
    _products("tmatmul tmatmul.acc tgemv tgemv.acc", "lhs", "rhs", DERIVED, _MAD),
    _products("tmatmul.bias tgemv.bias", "a", "b", DERIVED, _MAD),
    _products("tmatmul.mx tmatmul.mx.acc tmatmul.mx.bias tgemv.mx tgemv.mx.acc tgemv.mx.bias tmatmul_mx_hif4",
              "a", "b", DERIVED, "8-bit and 4-bit products on 32 cores: 8192 per cycle"),
    Cost("mad mad_acc mad_bias", "mad_head + cube(m.const, k.const, n.const, lhs.bits)", "0", DERIVED, _MAD,
         flops="2 * m.const * n.const * k.const"),
    Cost("mad_mx mad_mx_acc mad_mx_bias", "mad_head + cube(m.const, k.const, n.const, 8)", "0", DERIVED,
         "8-bit and 4-bit products on 32 cores: 8192 per cycle", flops="2 * m.const * n.const * k.const"),
    # -- the micro level: bursts of bytes
    Cost("mte_gm_ub copy_gm_to_ubuf", "len_burst.const * loops(n_burst, loop) / bw_gm_ub", "lat_gm_in",
         FITTED, _DMA, "", "gm_ub", "len_burst.const * loops(n_burst, loop)"),
    Cost("mte_ub_gm copy_ubuf_to_gm", "len_burst.const * loops(n_burst, loop) / bw_ub_gm", "lat_ub_gm",
         FITTED, _DMA, "", "ub_gm", "len_burst.const * loops(n_burst, loop)"),
    Cost("mte_ub_ub copy_ubuf_to_ubuf", "32 * len_burst.const * loops(n_burst) / bw_ub_ub", "5", FITTED,
         "copies of tiles within UB", "", "ub_ub", "32 * len_burst.const * loops(n_burst)"),
    Cost("mte_ub_l1 copy_ubuf_to_cbuf copy_cbuf_to_ubuf", "32 * len_burst.const * loops(n_burst) / bw_l1_ub",
         "lat_l1_l0", DERIVED, "the platform's rate of the path", "", "l1_ub",
         "32 * len_burst.const * loops(n_burst)"),
    Cost("mte_gm_l1", "len_burst.const * loops(count, loop) / bw_gm_l1", "lat_gm_in", FITTED, _DMA, "",
         "gm_l1", "len_burst.const * loops(count, loop)"),
    Cost("copy_gm_to_cbuf", "len_burst.const * loops(n_burst) / bw_gm_l1", "lat_gm_in", FITTED, _DMA, "",
         "gm_l1", "len_burst.const * loops(n_burst)"),
    Cost("mte_gm_l1_frac", "n_value.const * d_value.const * dst.bytes / bw_gm_l1", "lat_gm_in", FITTED, _DMA,
         "", "gm_l1", "n_value.const * d_value.const * dst.bytes"),
    Cost("mte_l1_l0a mte_l1_l0a_mx", "lat_l1_l0 + m.const * k.const * dst.bytes / bw_l1_l0a", "0", DERIVED,
         "as extracts of products", "", "l1_l0a", "m.const * k.const * dst.bytes"),
    Cost("mte_l1_l0b mte_l1_l0b_mx", "lat_l1_l0 + n.const * k.const * dst.bytes / bw_l1_l0b", "0", DERIVED,
         "as extracts of products", "", "l1_l0b", "n.const * k.const * dst.bytes"),
    Cost("load_cbuf_to_ca load_cbuf_to_ca_s4",
         "lat_l1_l0 + 512 * m_step.const * k_step.const / bw_l1_l0a", "0", DERIVED, "as extracts of products",
         "", "l1_l0a", "512 * m_step.const * k_step.const"),
    Cost("load_cbuf_to_cb load_cbuf_to_cb_s4",
         "lat_l1_l0 + 512 * m_step.const * k_step.const / bw_l1_l0b", "0", DERIVED, "as extracts of products",
         "", "l1_l0b", "512 * m_step.const * k_step.const"),
    Cost("load_cbuf_to_ca_mx load_cbuf_to_cb_mx",
         "lat_l1_l0 + 32 * x_step.const * y_step.const / bw_l1_l0a", "0", DERIVED, "as extracts of products",
         "", "l1_l0a", "32 * x_step.const * y_step.const"),
    Cost("mte_l0c_gm", "m.const * n.const * dst.bytes / bw_l0c_gm", "lat_l0c_gm", DERIVED, "as tstore", "",
         "l0c_gm", "m.const * n.const * dst.bytes"),
    Cost("mte_l0c_l1", "m.const * n.const * dst.bytes / bw_l0c_l1", "lat_l1_l0", GUESSED,
         "as published, without a source", "", "l0c_l1", "m.const * n.const * dst.bytes"),
    Cost("mte_l0c_ub", "m.const * n.const * dst.bytes / bw_l0c_ub", "lat_l1_l0", DERIVED,
         "the platform's rate of the path", "", "l0c_ub", "m.const * n.const * dst.bytes"),
    Cost("mte_l1_ub", "len_burst.const * loops(count, loop) / bw_l1_ub", "lat_l1_l0", DERIVED,
         "the platform's rate of the path", "", "l1_ub", "len_burst.const * loops(count, loop)"),
    Cost("copy_gm_to_cbuf", "len_burst.const * loops(n_burst) / bw_gm_l1", "lat_gm_in", FITTED, _DMA, "",
         "gm_l1", "len_burst.const * loops(n_burst)"),
    Cost("copy_ubuf_to_cbuf copy_cbuf_to_ubuf", "32 * len_burst.const * loops(n_burst) / bw_l1_ub",
         "lat_l1_l0", DERIVED, "the platform's rate of the path", "", "l1_ub",
         "32 * len_burst.const * loops(n_burst)"),
    Cost("load_cbuf_to_ca load_cbuf_to_ca_s4", "lat_l1_l0 + 512 * m_step.const * k_step.const / bw_l1_l0a",
         "0", DERIVED, "fractals of 512 bytes, as extracts of products", "", "l1_l0a",
         "512 * m_step.const * k_step.const"),
    Cost("load_cbuf_to_cb load_cbuf_to_cb_s4", "lat_l1_l0 + 512 * m_step.const * k_step.const / bw_l1_l0b",
         "0", DERIVED, "fractals of 512 bytes, as extracts of products", "", "l1_l0b",
         "512 * m_step.const * k_step.const"),
    # -- other devices
    Cost("tget tput", "size(src) / bw_remote", "0", MEASURED, "reads of another device, 4 KiB to 4 MiB", "",
         "remote", "size(src)"),
    Cost("tget_async tput_async", "size(src) / bw_remote_async", "lat_remote_async", MEASURED,
         "asynchronous reads of another device", "", "remote", "size(src)"),
    # -- single elements
    Cost("tgetval tsetval", "13", "0", DERIVED, "loops that read a number per row"),
    # synchronization: its time is that of the awaited events
    Cost("set_flag set_flag_dyn wait_flag wait_flag_dyn record_event wait_event get_buf rls_buf barrier"
         " barrier_sync fence.barrier_all set_cross_core wait_flag_dev set_intra_block wait_intra_core"
         " sync.set sync.wait syncall tsync talloc tfree tfree_from_aic tfree_from_aiv",
         "0", "0", DERIVED, "the machine's latencies of flags, barriers and semaphores"),
)  # fmt: skip

_FALLBACK = "no evidence: by its pipe"

#: Costs of rows without an entry, by pipe.
BY_PIPE: dict[str, Cost] = {
    "V": Cost("", "2 * merged(dst)", "24", GUESSED, f"{_FALLBACK}, two cycles per repeat", flops="dst.elems"),
    "MTE2": Cost("", "size(dst) / bw_gm_ub", "lat_gm_in", GUESSED, _FALLBACK, "", "gm_ub", "size(dst)"),
    "MTE3": Cost("", "size(src) / bw_ub_gm", "lat_ub_gm", GUESSED, _FALLBACK, "", "ub_gm", "size(src)"),
    "MTE1": Cost("", "lat_l1_l0 + stored(dst) / bw_l1_l0b", "0", GUESSED, _FALLBACK),
    "FIX": Cost("", "size(dst) / bw_l0c_gm", "lat_l0c_gm", GUESSED, _FALLBACK),
    "M": Cost("", "mad_head", "0", GUESSED, _FALLBACK),
    "ALL": Cost("", "size(dst) / bw_remote", "0", GUESSED, _FALLBACK, "", "remote", "size(dst)"),
    "S": Cost("", "issue", "0", GUESSED, f"{_FALLBACK}, one issue"),
}
