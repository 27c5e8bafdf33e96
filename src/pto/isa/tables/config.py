"""Configuration of tiles and of the core: address binding, aliases, mode registers, grid and event waits.

These instructions do not move data. Binding and alias rows give storage an address or another name, register
rows set state that later instructions read, and `tsync`/`syncall` synchronize.
"""

from __future__ import annotations

from ..enums import OPS
from ..kinds import event_pipe
from ..row import Attr, Family
from ..rules import R, Rule

config = Family("sync-and-config", "tile", effect="config", pipe="S")
alias = config.but(effect="alias", pipe="S")
order = config.but(effect="sync", also="system")
register = config.but(family="control-and-configuration", also="scalar")
#: Registers that a convolution tile sets and `timg2col` reads.
conv = register.but(
    operands="src=conv_tile", core="cube", format="$src attr-dict : type($src)",
    types={"src": "!pto.conv_tile<mat, 1x4x8x8x16xf16, NC1HWC0>"},
    attrs=Attr(
        "fmatrix_mode", "str", "FMATRIX_A_MANUAL",
        choices=("FMATRIX_A_AUTO", "FMATRIX_B_AUTO", "FMATRIX_A_MANUAL", "FMATRIX_B_MANUAL"),
        doc="which register set; the AUTO modes make the instruction a no-op",
    ),
    notes=(
        "not a dialect op of PTOAS; it has only a v0 bytecode number",
        "must precede the timg2col that depends on it; the AUTO modes leave the programming to timg2col",
    ),
)  # fmt: skip
mode = register.but(
    core="cube",
    attrs=(
        Attr("enable", "bool", True, doc="false restores full precision"),
        Attr("mode", "round_mode", "ROUND", doc="rounding of the operands"),
    ),
    notes=("v0 bytecode reserves two operands for it; both are attributes here",),
)  # fmt: skip

_SPLIT = Attr(
    "split", "int", 0, choices=(0, 1, 2, 3, 4),
    doc="0 no split, 1 row halves, 2 column halves, 3 and 4 the same with an odd extent",
)  # fmt: skip


def _tsync_on_a5() -> tuple[Rule, ...]:
    """A5 has barriers of the pipes of loads and stores only. The rows of other groups say which those are."""
    kinds = tuple(op for op in OPS.split() if event_pipe(op) in ("MTE2", "MTE3"))
    return (R(f"op in {kinds}", on="a5", when="has(op)", code="SA-0096",
              msg="expects A5 tsync to name an operation of pipe MTE2 or MTE3"),)  # fmt: skip


ROWS = (
    alias(
        "tassign", opcode=0x1200, pipe="", rebinds="tile",
        by_hand="binds a tile to an address: what it does is in core/assign.hpp",
        operands="tile=tile|conv_tile|view:inout addr=i64|i32|index|ptr", results="result=tile|conv_tile|view?",
        format=(
            "$tile, $addr attr-dict : type($tile) -> type($result)",
            "$tile, $addr attr-dict : type($tile), type($addr)",
            "$tile, $addr attr-dict : type($tile)",
            "ins($tile, $addr attr-dict : type($tile), type($addr))",
        ),
        rules=(
            R("result.type == tile.type", msg="expects tile and result to have the same type"),
            R("addr.kind != 'ptr'", when="tile.kind == 'tile'", code="SA-0218",
              msg="expects the address of a tile to be an integer"),
            R("addr.kind == 'ptr'", when="tile.kind == 'view'", code="SA-0053",
              msg="expects the address of a global tensor to be a pointer"),
            R("addr.dtype == tile.dtype", when="addr.kind == 'ptr'", code="SA-0054"),
        ),
        doc="Bind a tile to a byte offset of its buffer, or a global tensor to a pointer.",
        meaning="address(tile) = addr, at once and until bound again; result is the same tile. A tile "
        "address is a byte offset inside the buffer of its location (UB, L1, L0A, L0B, L0C, BT, FB, scale "
        "buffers); a global tensor takes a GM pointer. Nothing is copied.",
        notes=(
            "capacity checks SA-0351 (buffer absent), SA-0352 (tile too big) and SA-0353 (end out of "
            "bounds) need the profile: the memory check makes them for constant addresses",
            "level3 only, and never together with automatic sync; in auto mode the tile form is a no-op",
            "two live tiles that are not aliases must not overlap without an ordering between their uses",
            "takes and returns no events",
        ),
        cpp="TASSIGN($tile, (uint64_t) $addr)",
        types={
            "tile": "!pto.tile_buf<vec, 16x64xf32>", "result": "!pto.tile_buf<vec, 16x64xf32>", "addr": "i64",
            "view/tile": "!pto.tensor_view<16x64xf32>", "view/result": "!pto.tensor_view<16x64xf32>",
            "view/addr": "!pto.ptr<f32>",
        },
    ),
    order(
        "tsync", opcode=0x107D, touches=False, aliases="tsync.op", operands="events=event|tile|memref*",
        attrs=Attr("op", "op", doc="barrier form: operation class whose pipe is drained"),
        format=(
            "ins($events... : type($events...)) attr-dict",
            "$events... attr-dict : type($events...)",
            "$op attr-dict",
            "attr-dict",
        ),
        pipe="S",
        rules=(
            _tsync_on_a5,
            R("not has(op) or events.count == 0", msg="expects either events or an operation class, not "
            "both"),
        ),
        doc="Wait for events, or drain the pipe of one operation class.",
        meaning="Event form: wait until every token has been recorded, then go on; no tokens = no-op. "
        "Barrier form (op): pipe barrier on the pipe of op. Events waited on were produced earlier in "
        "program order.",
        notes=(
            "an event whose two pipes are equal waits by a pipe barrier (A5: only where the source is MTE2 "
            "or the destination MTE3); event identities SA-0037, SA-0116..0118 are checked where the event "
            "is made",
            "the manual restricts the barrier form to vector operations; the headers allow every pipe on "
            "A2A3",
            "no-op in auto mode; the assembler writes the tokens as the tiles that were produced",
        ),
        cpp="TSYNC($events) | TSYNC<Op>()",
        types={"events": "!pto.tile_buf<vec, 16x64xf32>"},
    ),
    order(
        "syncall", opcode=0x1201, operands="gm_workspace=ptr|view:inout? used_cores=i32?", pipe="ALL",
        by_hand="a barrier: it returns nothing and takes no events",
        attrs=(
            Attr("mode", "sync_all_mode", "hard", doc="hard: core flags; soft: a counter in GM"),
            Attr("core_type", "sync_core_type", "aiv_only", doc="which cores take part"),
        ),
        format=(
            "( [$gm_workspace [, $used_cores] : type($gm_workspace) [, type($used_cores)]] ) mode = $mode, "
            "core_type = $core_type attr-dict",
            "attr-dict",
        ),
        rules=(
            R("mode == 'hard' or has(gm_workspace)", msg="expects soft syncall to provide gm_workspace"),
            R("mode == 'soft' or not has(gm_workspace)", on="a2a3 a5",
              msg="expects hard syncall to have no operands"),
            R("gm_workspace.dtype in (I32, U32)"),
            R("gm_workspace.space == GM", when="gm_workspace.kind == 'ptr'"),
            R("gm_workspace.elems * gm_workspace.bytes >= 64", on="a2a3 a5",
              msg="expects gm_workspace to hold at least 64 bytes"),
        ),
        doc="Grid barrier: no participating core passes before all have arrived.",
        meaning="Drain the own pipes, then meet. N = used_cores, or where that is absent or 0: aiv_only "
        "and aic_only the number of blocks, mix the AIC blocks * (1 + AIVs per AIC). Soft: before = "
        "atomic_add(counter, 1) on the first i32 of the workspace; target = (before / N + 1) * N; spin "
        "until counter >= target (never reset; a barrier every 16 polls, giving up after 1000000). Hard: "
        "core flags AIC 11, AIV 12, AIC with AIV 13, AIV only 14; workspace and used_cores are ignored.",
        notes=(
            "gives arrival only: GM data needs a cache clean and a data barrier on hardware to become "
            "visible",
            "every participant calls it equally often and in the same order, others must not call it",
            "the workspace is zeroed before its first use and keeps one 64-byte line",
            "takes and returns no events; a no-op in auto mode; hard aic_only on A2A3 needs a mixed build",
            "an older interface with UB and L1 scratch tiles is gone; the manual still shows it",
        ),
        cpp="SYNCALL<SyncCoreType>() | SYNCALL<SyncAllMode, SyncCoreType>($gm_workspace) | "
            "SYNCALL<SyncAllMode, SyncCoreType>($gm_workspace, $used_cores)",
        types={"gm_workspace": "!pto.ptr<i32>", "attr:mode": "soft", "attr:core_type": "aiv_only"},
    ),
    alias(
        "talias", opcode=0x1202, touches=False, operands="src dst:out", pipe="", names="src", rebinds="dst",
        rules=(
            R("dst.loc == src.loc"),
            R("dst.size == src.size", msg="expects src and dst to hold the same number of bytes"),
            R("dst.boxed == src.boxed", msg="cannot alias boxed and non-boxed tile layouts"),
        ),
        doc="Make a tile a second view of another tile's storage.",
        meaning="dst names the bytes of src from here on; nothing is copied. Legality as treshape: same "
        "location, same byte size, both boxed or both unboxed.",
        no_cpp="the manual names TALIAS, but the headers have no such intrinsic; TRESHAPE does the same",
        types={"*": "!pto.tile_buf<vec, 16x64xf32>"},
    ),
    alias(
        "subview", opcode=0x1203, aliases="tsubview", pipe="", names="source", window=True,
        by_hand="its offsets are a list, two arguments in C++",
        operands="source offsets=index* valid_row=index? valid_col=index?", results="result",
        attrs=Attr("sizes", "ints", doc="rows and columns of the window"),
        format=(
            "$source '[' $offsets... ']' sizes $sizes [valid '[' $valid_row, $valid_col ']'] attr-dict : "
            "type($source) -> type($result)",
            "$source '[' $offsets... ']' sizes $sizes [valid '[' $valid_row, $valid_col ']'] attr-dict : "
            "type($source)",
            "$source, $offsets... attr-dict : ( type($source), type($offsets...) ) -> type($result)",
            "$source, $offsets... attr-dict : type($source), type($offsets...) -> type($result)",
        ),
        infer={"result": "subview($source, $sizes, $valid_row, $valid_col)"},
        rules=(
            R("offsets.count == 2", msg="subview expects 2D offsets"),
            R("len(sizes) == 2", when="has(sizes)", msg="subview expects 2D sizes"),
            R("sizes[0] > 0 and sizes[1] > 0", when="has(sizes)", msg="subview sizes must be positive"),
            R("offsets[0].const >= 0", msg="subview offsets must be non-negative"),
            R("offsets[1].const >= 0", msg="subview offsets must be non-negative"),
            R("result.rows == sizes[0] and result.cols == sizes[1]", when="has(sizes)",
              msg="expects result shape to match subview sizes"),
            R("result.dtype == source.dtype", msg="expects result element type to match source"),
            R("result.loc == source.loc", msg="expects result address space to match source"),
            R("result.layout == source.layout and result.fractal == source.fractal",
              msg="expects result tile config to match source"),
            R("has(valid_row) == has(valid_col)",
              msg="subview expects valid_row and valid_col to be both present or both absent"),
            R("valid_row.const >= 0", msg="valid_row must be non-negative when constant"),
            R("valid_col.const >= 0", msg="valid_col must be non-negative when constant"),
            R("valid_row.const <= result.rows", msg="valid_row must be <= subview row size"),
            R("valid_col.const <= result.cols", msg="valid_col must be <= subview col size"),
            R("offsets[0].const + result.v_row <= source.rows"),
            R("offsets[1].const + result.v_col <= source.cols"),
        ),
        doc="Window of a tile that shares its storage.",
        meaning="result[i, j] is source[r + i, c + j] with (r, c) = offsets. The window starts r*RowStride "
        "+ c*ColStride elements into source (row-major strides cols, 1; column-major 1, rows) and keeps "
        "the strides of source. valid gives the valid region; without it the result type does, by default "
        "the whole window. Nothing moves and no ordering arises.",
        notes=(
            "the C++ form takes the window as a destination tile and addresses it with that tile's own "
            "strides, so there both tiles need the same Rows and Cols; offsets are 16 bits wide",
            "the linear offset suits boxed layouts only where offsets are multiples of the inner box",
            "auto mode also asks that the window lies inside the source's valid region",
        ),
        cpp="TSUBVIEW($result, $source, $offsets)",
        types={
            "source": "!pto.tile_buf<vec, 32x64xf32>", "result": "!pto.tile_buf<vec, 16x64xf32>",
            "offsets": "index, index", "attr:sizes": "[16, 64]",
            "valid/valid_row": "index", "valid/valid_col": "index",
            "valid/result": "!pto.tile_buf<vec, 16x64xf32, valid=?x?>",
        },
    ),
    alias(
        "tget_scale_addr", opcode=0x1078, aliases="get_scale_addr", also="ptoas", isas="cpu a5",
        by_hand="it refuses what is no tile, by ids of its own",
        operands="src dst:out", rebinds="dst",
        rules=(
            R("dst.loc in (SCALING, SCALE_LEFT, SCALE_RIGHT)", on="a5"),
            R("dst.shape == src.shape or (dst.rows == src.rows and dst.cols == (src.cols + 31) // 32)", on="a5",
              when="src.loc == LEFT", msg="expects dst to have the shape of src, or one scale for 32 columns of it"),
            R("dst.shape == src.shape or (dst.cols == src.cols and dst.rows == (src.rows + 31) // 32)", on="a5",
              when="src.loc == RIGHT", msg="expects dst to have the shape of src, or one scale for 32 rows of it"),
            R("valid_eq(dst, src)", on="a5", when="dst.shape == src.shape"),
        ),
        doc="Bind a microscaling scale tile to the scale buffer address of a data tile.",
        meaning="address(dst) = address(src) >> 4, a byte offset in the scale buffer that belongs to the "
        "buffer of src; nothing is copied.",
        notes=(
            "the manual prints a shift of 2; the headers use 4 and so do we",
            "meant for auto mode; operands that are not tiles are SA-0063 (src) and SA-0090 (dst)",
        ),
        cpp="TGET_SCALE_ADDR($dst, $src)",
        types={
            "src": "!pto.tile_buf<left, 16x64xf8E4M3FN, blayout=col_major, slayout=row_major>",
            "dst": "!pto.tile_buf<scaling, 16x64xf8E8M0FNU>",
        },
    ),
    conv(
        "setfmatrix", opcode=0x105B, algorithm="feature map", aliases="tsetfmatrix",
        doc="Program the feature-map register from a convolution tile.",
        meaning="FMATRIX (A or B by mode): bits [15:0] = fmapW, [31:16] = fmapH, [39:32] [47:40] [55:48] "
        "[63:56] = padList[0..3] (left, right, top, bottom) of src. fmapH and fmapW must be positive.",
        notes=("an older page describes a matrix slot binding on ordinary tiles; it is stale",),
        cpp="SETFMATRIX<Src, SetFmatrixMode::$fmatrix_mode>($src)",
    ),
    conv(
        "set_img2col_rpt", opcode=0x105A, algorithm="window repetition", aliases="tset_img2col_rpt",
        doc="Program the repeat register of img2col from a convolution tile.",
        meaning="bits [15:0] = repeatStride, [23:16] = repeatTime, [31:24] = repeatMode of src; except on "
        "A2A3 also [47:32] = dstStride, [63:48] = dstMposition.",
        cpp="SET_IMG2COL_RPT<Src, SetFmatrixMode::$fmatrix_mode>($src)",
    ),
    conv(
        "set_img2col_padding", opcode=0x1059, algorithm="window padding", aliases="tset_img2col_padding",
        doc="Program the value img2col reads outside the feature map.",
        meaning="pad value register = padValue of src: a 1-byte value doubled into both bytes of 16 bits, "
        "2- and 4-byte values as their raw bits.",
        notes=("the pad amounts belong to setfmatrix, although one page of the manual differs",),
        cpp="SET_IMG2COL_PADDING<Src, SetFmatrixMode::$fmatrix_mode>($src)",
    ),
    config(
        "set_quant_scalar", opcode=0x1204, algorithm="quantisation scalar",
        operands="preQuantScalar=float", core="cube",
        attrs=(
            Attr("out_type", "str", choices=("i8", "u8", "i16", "f16", "bf16"),
                 doc="element type of the quantized move; default: that of the pipe's consumer"),
            Attr("id", "int", 0, doc="which pipe of the function it serves"),
        ),
        format=(
            "( $preQuantScalar : type($preQuantScalar) ) { id = $id } attr-dict",
            "$preQuantScalar attr-dict : type($preQuantScalar)",
        ),
        dtype_of="preQuantScalar", cpu="f32", a2a3="f32", a5="f32",
        doc="Set the scalar quantisation word of the next push from the accumulator.",
        meaning="quant word = u64(bits of the f32 scale); where out_type is one byte wide, bit 46 = "
        "(out_type is i8). Other fields of a word: offset [45:37], sign bit 46, shift [35:32]. A word of 0 "
        "means scale 1.",
        notes=(
            "call before the tpush that consumes it",
            "hardware sign-extends the 32 scale bits, the simulator zero-extends; the high bits carry no "
            "scale",
        ),
        cpp="SET_QUANT_SCALAR<$out_type>($preQuantScalar)",
    ),
    config(
        "set_quant_vector", opcode=0x1205, algorithm="quantisation vector",
        touches=True, keeps=True, operands="fpTile", core="cube",
        attrs=Attr("id", "int", 0, doc="which pipe of the function it serves"),
        format=("( $fpTile : type($fpTile) ) { id = $id } attr-dict", "$fpTile attr-dict : type($fpTile)"),
        dtype_of="fpTile", cpu="u64", a2a3="u64", a5="u64", rules=(R("fpTile.loc == "
        "SCALING", code="SA-0052"),),
        doc="Set the per-column quantisation table of the next push from the accumulator.",
        meaning="vector quant register = address of fpTile, one u64 quant word per column; hardware encodes "
        "(addr >> 7) << 8.",
        notes=("call before the tpush that consumes it",),
        cpp="SET_QUANT_VECTOR($fpTile)", types={"fpTile": "!pto.tile_buf<scaling, 1x64xui64>"},
    ),
    mode(
        "sethf32mode", opcode=0x105C, algorithm="rounding mode: hf32", aliases="tsethf32mode",
        doc="Switch the HF32 rounding of f32 matrix operands.",
        meaning="HF32 state = (enable, mode); later f32 matmul and convolution read it.",
        cpp="SETHF32MODE<$enable, $mode>()", by_hand="it sets a register: ops/matmul.hpp",
        notes=("no numeric effect in the simulator: the state is kept only",
               "documented, but absent from the public headers; ours have it"),
    ),
    mode(
        "settf32mode", opcode=0x105D, algorithm="rounding mode: tf32", aliases="tsettf32mode",
        rules=(R("mode in ('ROUND', 'RINT', 'CAST_RINT')"),),
        doc="Switch the TF32 rounding of f32 matrix operands.",
        meaning="enable: CTRL bit 46 = 1, bit 47 = 1 for ROUND and 0 for RINT; disable: bit 46 = 0. Later "
        "f32 matmul reads it.",
        cpp="SETTF32MODE<$enable, $mode>()", by_hand="it sets a register: ops/matmul.hpp",
        notes=(
            "documented, but absent from the public headers, which have Tile::SetMadTF32Mode and ResetMadMode; "
            "ours have all three",
            "sources differ on the kept mantissa: headers 11 bits on A2A3 and 10 on A5, manual no-op and 7",
            "no numeric effect in the simulator: the state is kept only",
        ),
    ),
    order(
        "talloc", opcode=0x1206, fifo="alloc", operands="entry=tensor_view|view:out "
        "pipe_handle=pipe", pipe="S", attrs=_SPLIT, rebinds="entry",
        by_hand="the type of a FIFO is a template argument: ops/fifo.hpp",
        format=(
            "( $entry, $pipe_handle : type($entry), type($pipe_handle) ) { split = $split } attr-dict",
            "$pipe_handle, $entry attr-dict : type($pipe_handle), type($entry)",
        ),
        rules=(R("split in (0, 1, 2)", on="a2a3 a5", msg="expects 'split' to be 0, 1, or 2"),),
        doc="Take the next free slot of a FIFO in GM as a writable view.",
        meaning="Wait for free space by the sparse rule of tpush (only if tileIndex >= SlotNum and "
        "tileIndex % SyncPeriod == 0), point entry at slot tileIndex % SlotNum, tileIndex += 1. V2C with a "
        "split adds the lane offset: rows * cols * lane elements (row halves) or cols * lane (column "
        "halves); C2V gives the whole slot. Writes nothing and signals nothing: store into entry, then "
        "tpush it to publish.",
        notes=(
            "only for FIFOs in GM: A2A3 directions C2V, V2C, both; A5 the _GM directions",
            "SlotSize holds one entry; SlotNum >= 1; SyncPeriod = SlotNum <= 2 ? SlotNum : SlotNum / 2",
        ),
        cpp="TALLOC<Pipe, GlobalData, TileSplitAxis::$split>($pipe_handle, $entry)",
        types={"entry": "!pto.tensor_view<16x64xf32>"},
    ),
)  # fmt: skip
