"""Cube-vector FIFOs, core sections and the debug instructions.

A FIFO (`!pto.pipe`, C++ `TPipe`) is a ring of SlotNum slots of SlotSize bytes between a cube core and its two
vector cores. `tpush` fills the next slot, `tpop` empties it, and `tfree` releases it. The `*_to_*`/`*_from_*`
forms have no handle: they use the pipe that `aic_/aiv_initialize_pipe` declared in the function.
"""

from __future__ import annotations

from ..row import Attr, Family, Row
from ..rules import R, Rule

_DIR = Attr("dir_mask", "int", required=True, doc="1 cube to vector, 2 vector to cube, "
"3 both")
_SIZE = Attr("slot_size", "int", required=True, doc="bytes of one slot: a whole tile before splitting")
_NOSPLIT = Attr("nosplit", "bool", doc="no user splits; absent = inferred from the users")
_ID = Attr("id", "int", 0, doc="which pipe of the function")
_SPLIT = Attr(
    "split", "int", 0, choices=(0, 1, 2, 3, 4),
    doc="0 no split, 1 row halves, 2 column halves, 3 and 4 the same with an odd extent",
)  # fmt: skip
_ODD_C2V = "supports odd split modes (split = 3 or 4) only for C2V tile pipes"
#: A pipe uses two of the 16 flag ids per direction.
_FLAG_IDS = (
    R("flag_base >= 0", when="has(flag_base)", msg="expects 'flag_base' to be non-negative"),
    R("flag_base <= 14", when="has(flag_base) and dir_mask != 3", msg="expects 'flag_base' + 1 to be less than 16"),
    R("flag_base <= 12", when="has(flag_base) and dir_mask == 3", msg="expects 'flag_base' + 3 to be less than 16"),
)

_DIR_RULES = (
    R("dir_mask in (1, 2, 3)", msg="expects 'dir_mask' to be 1, 2, or 3"),
    R("slot_size > 0", msg="expects 'slot_size' to be greater than 0"),
)
_QUANT_MODES = (
    "NoQuant", "F322F16", "VREQ8", "REQ8", "VDEQF16", "DEQF16", "VSHIFTS322S16", "SHIFTS322S16", "F322BF16",
    "VQF322B8_PRE", "QF322B8_PRE", "QF322F16_PRE", "QF322BF16_PRE", "QS322BF16_PRE", "VQS322BF16_PRE",
)  # fmt: skip
_TILE = "!pto.tile_buf<vec, 16x64x{T}>"
_ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
_MAT = "!pto.tile_buf<mat, 16x64xf32, blayout=col_major, slayout=row_major>"
_PUSH_PIPE = (("tile.loc in (ACC, MAT)", "FIX"), ("", "MTE3"))
_POP_PIPE = (("isa == 'a5'", "S"), ("", "MTE2"))

fifo = Family("scheduling", "system", effect="sync", attrs=_SPLIT)
_PLACED = (
    "stands in section.cube/vector or a kernel_kind function: 'must be inside pto.section.cube/vector or a "
    "kernel_kind function'; the handle comes from initialize_l2l_pipe or initialize_l2g2l_pipe",
)
frontend = fifo.but(family="assembler-op", set="ptoas", attrs=(_ID, _SPLIT))
setup = Family("tpipe-frontend", "system", effect="alloc")
core = Family("core-section", "system")
section = core.but(
    effect="control", opcode=0x0006, regions="body", format="$body attr-dict",
    notes=("one block, no terminator; the function attribute pto.kernel_kind does the same for a whole "
    "function",),
)  # fmt: skip
debug = Family("debug", "system", effect="io")


def _end(name: str, me: str, opcode: int) -> Row:
    """The initialize_pipe row of one end; every clause but dir_mask and slot_size may be left out."""
    keys = (
        "{ [id = $id ,] dir_mask = $dir_mask, slot_size = $slot_size [, slot_num = $slot_num] "
        "[, local_slot_num = $local_slot_num] [, nosplit = $nosplit] }"
    )
    gm = "[gm_slot_buffer = $gm_slot_buffer : type($gm_slot_buffer) ,]"
    c2v = "c2v_consumer_buf = $c2v_consumer_buf : type($c2v_consumer_buf)"
    v2c = "v2c_consumer_buf = $v2c_consumer_buf : type($v2c_consumer_buf)"
    return setup(
        name, opcode=opcode, fifo="open", core=me,
        operands="gm_slot_buffer=ptr? gm_slot_tensor=tensor_view? c2v_consumer_buf=i32? "
        "v2c_consumer_buf=i32?",
        attrs=(
            _ID, _DIR, _SIZE, Attr("slot_num", "int", doc="slots per direction; absent = 8, or 4 for "
            "dir_mask 3"),
            Attr("local_slot_num", "int", doc="local staging buffers of a FIFO in GM; absent = "
            "slot_num"), _NOSPLIT,
        ),
        format=(
            f"{keys} ( {gm} {c2v}, {v2c} ) attr-dict",
            f"{keys} ( {gm} {c2v} ) attr-dict",
            f"{keys} ( {gm} {v2c} ) attr-dict",
            f"{keys} ( gm_slot_tensor = $gm_slot_tensor : type($gm_slot_tensor) ) attr-dict",
            f"{keys} ( gm_slot_buffer = $gm_slot_buffer : type($gm_slot_buffer) ) attr-dict",
        ),
        rules=(
            *_DIR_RULES,
            R("has(gm_slot_buffer) or has(gm_slot_tensor)", on="a2a3",
              msg="requires 'gm_slot_buffer' when lowering to a2/a3"),
            R("slot_num > 0", when="has(slot_num)", msg="expects 'slot_num' to be greater than 0"),
            R("local_slot_num > 0", when="has(local_slot_num)", msg="expects 'local_slot_num' to be "
            "greater than 0"),
            *(R(f"local_slot_num <= {most}", when=f"has(local_slot_num) and {when}",
                msg="expects 'local_slot_num' to be less than or equal to slot_num")
              for most, when in (("slot_num", "has(slot_num)"), ("8", "not has(slot_num) and dir_mask != 3"),
                                 ("4", "not has(slot_num) and dir_mask == 3"))),
        ),
        doc=f"Declare the {me} end of the FIFOs of a function.",
        meaning="Makes the pipe(s) of dir_mask known to the frontend FIFO instructions of this function: "
        "FIFO slots in GM at gm_slot_buffer (A2A3) or on chip (A5) in the consumer's UB at "
        "c2v_consumer_buf and L1 at v2c_consumer_buf. Lowered to initialize_l2l_pipe (A5) or "
        "initialize_l2g2l_pipe (A2A3).",
        notes=(
            f"stands in a {me} kernel function: 'must be inside a {me} kernel function'; one per id",
            "SlotNum 8, or 4 per direction for dir_mask 3; nosplit is true where every user has split 0",
            "id, slot_num, local_slot_num and gm_slot_tensor belong to newer assemblers",
        ),
        no_cpp="lowered to initialize_l2l_pipe or initialize_l2g2l_pipe",
        types={
            "gm_slot_buffer": "!pto.ptr<f32>", "c2v_consumer_buf": "i32", "v2c_consumer_buf": "i32",
            "attr:dir_mask": "3", "attr:slot_size": "1024",
        },
    )  # fmt: skip


_KEYED = "{ [id = $id ,] split = $split }"
_SUBBLOCK = "[aiv_subblockid( $aiv_subblockid )]"
_ENTRY = "( $tile, $pipe_handle : type($tile), type($pipe_handle) )"
_HANDLE = f"{_ENTRY} {{ split = $split }} {_SUBBLOCK} attr-dict"


def _even(direction: str) -> tuple[Rule, ...]:
    """Hardware has odd splits from cube to vector only."""
    return (R("split in (0, 1, 2)", on="a2a3 a5", msg=_ODD_C2V),) if direction == "V2C" else ()


def _push(name: str, me: str, direction: str, opcode: int, witness: str) -> Row:
    return frontend(
        name, opcode=opcode, fifo="push", core=me, operands="tile=tile|view aiv_subblockid=i64?", pipe=_PUSH_PIPE,
        format=f"( $tile : type($tile) ) {_KEYED} {_SUBBLOCK} attr-dict",
        doc=f"Push a tile to the other side from a {me} kernel.",
        meaning=f"tpush to the {direction} pipe number id of this function",
        notes=(f"in a {me} kernel function, after an initialize_pipe that enables {direction}",),
        rules=_even(direction), no_cpp="lowered to tpush", types={"tile": witness, "attr:split": "0"},
    )  # fmt: skip


def _pop(name: str, me: str, direction: str, opcode: int, witness: str) -> Row:
    return frontend(
        name, opcode=opcode, fifo="pop", core=me, results="tile=tile|view", pipe=_POP_PIPE,
        operands="valid_row=index? valid_col=index? aiv_subblockid=i64?",
        format=f"[( $valid_row, $valid_col )] {_KEYED} {_SUBBLOCK} attr-dict -> type($tile)",
        rules=(
            *_even(direction),
            R("has(valid_row)", on="a2a3 a5", when="split > 2 and tile.kind == 'tile'",
              msg="expects odd C2V split tpop to provide per-sub-core valid_row and valid_col operands"),
            R("has(valid_row) == has(valid_col)", msg="expects valid_row and valid_col to be provided "
            "together"),
            R("tile.dyn_row and tile.dyn_col", when="has(valid_row)",
              msg="expects tile result to have dynamic validShape (?, ?) when valid_row/valid_col operands "
              "are provided"),
        ),
        doc=f"Pop a tile from the other side in a {me} kernel.",
        meaning=f"declare the tile (valid region as given), then tpop it from the {direction} pipe number id",
        notes=(f"in a {me} kernel function, after an initialize_pipe that enables {direction}",),
        no_cpp="lowered to declare_tile, set_validshape and tpop",
        types={"tile": witness, "attr:split": "0", "dynamic/tile": witness.replace(">", ", valid=?x?>"),
               "dynamic/valid_row": "index", "dynamic/valid_col": "index"},
    )  # fmt: skip


def _free(name: str, me: str, direction: str, opcode: int) -> Row:
    return frontend(
        name, opcode=opcode, fifo="free", core=me, operands="entry=tile|view?", pipe="S", touches=False,
        format=f"[( $entry : type($entry) )] {_KEYED} attr-dict",
        doc=f"Give the slot of the last pop back in a {me} kernel.",
        meaning=f"tfree on the {direction} pipe number id of this function",
        notes=(f"in a {me} kernel function, after an initialize_pipe that enables {direction}",),
        rules=_even(direction), no_cpp="lowered to tfree",
        types={"entry": "!pto.tensor_view<16x64xf32>", "attr:split": "0"},
    )  # fmt: skip


ROWS = (
    fifo(
        "tpush", opcode=0x1260, fifo="push", pipe=_PUSH_PIPE,
        operands="tile=tile|view pipe_handle=pipe aiv_subblockid=i64?",
        attrs=(
            Attr("layout_mode", "str", "NZ2ND", choices=("NZ2ND", "NZ2DN", "NZ2NZ"), doc="reorder of an "
            "Acc push"),
            Attr(
                "quant_mode", "str", "NoQuant",
                choices=_QUANT_MODES,
                doc="conversion of an Acc push; the word comes from set_quant_scalar or set_quant_vector",
            ),
            Attr("reluPreMode", "relu_pre_mode", "no_relu", doc="ReLU of an Acc push"),
            Attr("stPhase", "st_phase", "unspecified", doc="phase of an Acc push"),
        ),
        format=(
            _HANDLE,
            "ins($tile : type($tile)) pipe($pipe_handle : type($pipe_handle)) attr-dict",
            "$tile, $pipe_handle attr-dict : ( type($tile), type($pipe_handle) )",
        ),
        rules=(
            R("tile.loc in (ACC, VEC)", on="a2a3 a5", msg="tile type must map to a supported producer pipe"),
            R("tile.loc in (ACC, MAT, VEC)", on="cpu", msg="tile type must map to a supported producer pipe"),
            R("tile.rows % 2 == 0", when="tile.loc in (ACC, MAT) and split == 1",
              msg="expects an even number of rows for a split by rows"),
            R("tile.cols % 2 == 0", when="tile.loc in (ACC, MAT) and split == 2",
              msg="expects an even number of columns for a split by columns"),
            R("tile.v_row % 2 == 1", on="a2a3 a5", when="tile.loc == ACC and split == 3",
              msg="expects a statically odd valid-row count for split = 3"),
            R("tile.v_col % 2 == 1", on="a2a3 a5", when="tile.loc == ACC and split == 4",
              msg="expects a statically odd valid-column count for split = 4"),
            R("split in (0, 1, 2)", on="a2a3 a5", when="tile.loc == VEC", msg=_ODD_C2V),
            R("quant_mode == 'NoQuant' and reluPreMode == 'no_relu'", when="tile.loc in (VEC, MAT)",
              msg="expects quantisation and ReLU only when pushing from the accumulator"),
        ),
        doc="Write a tile into the next slot of a FIFO and publish it.",
        meaning="Allocate: wait until slot tileIndex % SlotNum is free. Write the tile into it (slot "
        "address = base + (tileIndex % SlotNum) * SlotSize). Record: publish; tileIndex += 1. C2V (Acc, "
        "CPU also Mat): each lane later reads its window: split 0 lane 0 only; 1 rows [0, R/2) and [R/2, "
        "R); 2 columns likewise; 3/4 the first lane gets R/2+1 rows (columns), R odd; Acc data passes "
        "quantisation and ReLU. V2C (Vec): lane l writes its half at row l*rows (1) or column l*cols (2) "
        "of the full tile, the slot is visible once both lanes recorded; split 0 zero-fills the slot first "
        "and only lane 0 pushes. A view operand commits a slot taken with talloc. Free-space waits are "
        "sparse: SyncPeriod = SlotNum <= 2 ? SlotNum : SlotNum/2; the producer waits only if tileIndex >= "
        "SlotNum and tileIndex % SyncPeriod == 0, the consumer gives back if (tileIndex+1) % SyncPeriod == "
        "0. The control direction carries the tile's first element only (32 bits; 64 in A2A3 GM).",
        notes=(
            *_PLACED,
            "FIFO place: A2A3 (and the A5 _GM directions) GM slots, V2C of both directions "
            "SlotNum*SlotSize after C2V; A5 otherwise the consumer's UB (C2V) or L1 (V2C)",
            "flags: data ready FlagID, free FlagID+1; V2C of both +2, +3 (all < 16); A5 adds 16 for AIV1. "
            "A2A3 signals by cross-core semaphores on FIX (C2V) or MTE3 (V2C), A5 by set_intra_block",
            "the consumer uses the same FlagID, direction, SlotNum and SlotSize; slot bytes >= tile bytes",
            "slots are packed with the consumer's column count: the reference packs C2V split 0 with the "
            "producer's valid columns and misreads it where they differ",
            "odd splits (3, 4) take a slot from cube to vector; each lane of the consumer gives its own valid region, "
            "ceil and floor of the half",
            "odd splits start the second lane after the first lane's share; the reference gives both lanes "
            "offset 0",
            "split 0 on lane 1: pushes do nothing, pops give zeros, frees nothing, unless a no-split pipe "
            "has two lanes: then lane 1 takes part with zeros and the last free releases the slot",
            "not for auto mode; a full FIFO whose peer never pops is a deadlock",
        ),
        cpp="TPUSH<Pipe, Tile, TileSplitAxis::$split>($pipe_handle, $tile)",
        dtype_of="tile", cpu="all", a2a3="any", a5="all", types={"tile": _TILE, "acc/tile": _ACC},
    ),
    fifo(
        "tpop", opcode=0x1261, fifo="pop", pipe=_POP_PIPE, operands="tile=tile|view:out pipe_handle=pipe "
        "aiv_subblockid=i64?", rebinds="tile",
        format=(
            _HANDLE,
            "pipe($pipe_handle : type($pipe_handle)) outs($tile : type($tile)) attr-dict",
            "$pipe_handle, $tile attr-dict : ( type($pipe_handle), type($tile) )",
        ),
        rules=(
            R("tile.loc in (VEC, MAT)", msg="tile type and target arch must map to a supported consumer "
            "pipe"),
            R("split in (0, 1, 2)", on="a2a3 a5", when="tile.loc == MAT", msg=_ODD_C2V),
        ),
        doc="Wait for the next slot of a FIFO and load it into a tile.",
        meaning="Wait until the next slot of this direction is published, load slot tileIndex % SlotNum "
        "into the tile (C2V with a split: the window of this lane; V2C: the whole tile), tileIndex += 1. A "
        "view operand is only pointed at the slot (C2V: at the lane's part). In the simulator tfree alone "
        "frees the slot.",
        notes=(
            *_PLACED,
            "who frees: A2A3 tpop of a tile, A5 tpop of a GM FIFO and tfree otherwise, simulator tfree; "
            "portable code has one tfree per tpop, after the last use of the tile",
            "a pop without a push is a deadlock",
        ),
        cpp="TPOP<Pipe, Tile, TileSplitAxis::$split>($pipe_handle, $tile)",
        dtype_of="tile", cpu="all", a2a3="any", a5="all", types={"tile": _TILE},
    ),
    fifo(
        "tfree", opcode=0x1262, fifo="free", touches=False, pipe="S", operands="entry=tile|view? pipe_handle=pipe",
        format=(
            "( $pipe_handle : type($pipe_handle) ) { split = $split } attr-dict",
            "( $entry, $pipe_handle : type($entry), type($pipe_handle) ) { split = $split } attr-dict",
        ),
        doc="Give the slot of the last pop back to the producer.",
        meaning="Signals free space by the sparse rule of tpush; a slot with two consumer lanes is free "
        "after the last of them. On A2A3, and on A5 with a GM FIFO, the tile form does nothing because "
        "tpop has freed already; the view form (entry) always signals.",
        notes=(*_PLACED, "follows a tpop; at most SlotNum pops may be outstanding"),
        cpp="TFREE<Pipe, TileSplitAxis::$split>($pipe_handle)",
        types={"entry": "!pto.tensor_view<16x64xf32>", "attr:split": "0"},
    ),
    setup(
        "reserve_buffer", opcode=0x1263, results="addr=i32",
        attrs=(
            Attr("name", "str", required=True, doc="name the peer function imports"),
            Attr("size", "int", required=True, doc="bytes"),
            Attr("location", "address_space", required=True, doc="buffer it lies in: vec or mat"),
            Attr("auto", "bool", required=True, doc="memory planning chooses the address"),
            Attr("base", "int", doc="byte address; with auto = false only"),
        ),
        format="{ name = $name, size = $size, location = $location, auto = $auto [, base = $base] } "
        "attr-dict -> type($addr)",
        rules=(
            R("size > 0", msg="expects 'size' to be greater than 0"),
            R("location in ('vec', 'mat')",
              msg="expects 'location' to be #pto.address_space<vec> or #pto.address_space<mat>"),
            R("auto or has(base)", msg="expects 'base' when 'auto' is false"),
            R("base >= 0", when="has(base)", msg="expects 'base' to be non-negative when present"),
        ),
        doc="Reserve the consumer-side memory of a FIFO.",
        meaning="addr = byte address of size bytes in location: chosen by memory planning (auto) or base.",
        notes=(
            "in a function, at most one per function, its name unique; the generic form spells auto as "
            "autoAlloc",
            "levels 1 and 2 take auto = true without base only; level3 takes any base; auto = true with a "
            "base is what planning prints",
        ),
        no_cpp="replaced by the constant address",
        types={
            "attr:name": "fifo", "attr:size": "8192", "attr:location": "vec", "attr:auto": "true",
            "addr": "i32",
        },
    ),
    setup(
        "import_reserved_buffer", opcode=0x1264, algorithm="query", results="addr=i32", effect="pure",
        attrs=(
            Attr("name", "str", required=True, doc="name of the peer's reserve_buffer"),
            Attr("peer_func", "symbol", required=True, doc="function that reserves it"),
        ),
        format="{ name = $name, peer_func = $peer_func } attr-dict -> type($addr)",
        doc="Address of memory another function reserved.",
        meaning="addr = address of the reserve_buffer called name in peer_func",
        notes=("at most one per function; the peer exists and has a reserve_buffer of that name",),
        no_cpp="replaced by the peer's constant address",
        types={"attr:name": "fifo", "attr:peer_func": "@peer", "addr": "i32"},
    ),
    _end("aic_initialize_pipe", "cube", 0x1265),
    _end("aiv_initialize_pipe", "vector", 0x1266),
    setup(
        "initialize_l2l_pipe", opcode=0x1267, fifo="open", results="pipe=pipe", operands="local_addr=any "
        "peer_local_addr=any?",
        attrs=(
            _DIR, _SIZE, Attr("slot_num", "int", required=True, doc="slots per direction"),
            Attr("flag_base", "int", doc="first flag id; absent = assigned"), _NOSPLIT,
        ),
        format="{ dir_mask = $dir_mask, slot_size = $slot_size, slot_num = $slot_num [, flag_base = "
        "$flag_base] [, nosplit = $nosplit] } ( $local_addr : type($local_addr) [, $peer_local_addr : "
        "type($peer_local_addr)] ) attr-dict -> type($pipe)",
        rules=(
            *_DIR_RULES,
            R("slot_num > 0", msg="expects 'slot_num' to be greater than 0"),
            *_FLAG_IDS,
            R("has(peer_local_addr)", when="dir_mask == 3", msg="expects 'peer_local_addr' when dir_mask "
            "is 3"),
            R("dir_mask == 3", when="has(peer_local_addr)",
              msg="'peer_local_addr' is only allowed when dir_mask is 3"),
        ),
        doc="Make a FIFO whose slots lie in the consumer's on-chip memory.",
        meaning="pipe = TPipe<flag_base, direction, slot_size, slot_num, 2, nosplit> over local_addr (C2V "
        "slots, or the only direction) and peer_local_addr (V2C slots of both directions).",
        notes=(
            "without flag_base local_addr comes from reserve_buffer or import_reserved_buffer, and both "
            "ends must be initialised",
            "a native A5 path; accepted for A2A3 text too",
        ),
        cpp="TPipe<$flag_base, Direction::DIR_x, $slot_size, $slot_num, 2, $nosplit>(nullptr, $local_addr, "
        "$peer_local_addr)",
        types={
            "local_addr": "i32", "attr:dir_mask": "1", "attr:slot_size": "1024", "attr:slot_num": "8",
            "attr:flag_base": "0", "pipe": "!pto.pipe", "both/attr:dir_mask": "3", "both/peer_local_addr": "i32",
            "both/attr:slot_num": "4",
        },
    ),
    setup(
        "initialize_l2g2l_pipe", opcode=0x1268, fifo="open", results="pipe=pipe",
        operands="gm_addr=any local_addr=any? peer_local_addr=any?",
        attrs=(
            _DIR, _SIZE, Attr("slot_num", "int", required=True, doc="slots per direction"),
            Attr("local_slot_num", "int", doc="local staging buffers; absent = slot_num"),
            Attr("flag_base", "int", doc="first flag id; absent = assigned"), _NOSPLIT,
        ),
        format="{ dir_mask = $dir_mask, slot_size = $slot_size, slot_num = $slot_num [, local_slot_num = "
        "$local_slot_num] [, flag_base = $flag_base] [, nosplit = $nosplit] } ( $gm_addr : type($gm_addr) "
        "[, $local_addr : type($local_addr) [, $peer_local_addr : type($peer_local_addr)]] ) attr-dict -> "
        "type($pipe)",
        rules=(
            *_DIR_RULES,
            R("slot_num > 0", msg="expects 'slot_num' to be greater than 0"),
            R("local_slot_num > 0", when="has(local_slot_num)", msg="expects 'local_slot_num' to be "
            "greater than 0"),
            R("local_slot_num <= slot_num", when="has(local_slot_num)",
              msg="expects 'local_slot_num' to be less than or equal to slot_num"),
            *_FLAG_IDS,
            R("has(peer_local_addr)", when="dir_mask == 3 and has(local_addr)",
              msg="expects 'peer_local_addr' when dir_mask is 3"),
            R("dir_mask == 3", when="has(peer_local_addr)",
              msg="'peer_local_addr' is only allowed when dir_mask is 3"),
        ),
        doc="Make a FIFO whose slots lie in global memory, staged through local buffers.",
        meaning="pipe = TPipe<flag_base, direction, slot_size, slot_num, local_slot_num, nosplit> with "
        "slots at gm_addr and staging at local_addr and peer_local_addr. A5 uses the _GM directions for "
        "dir_mask 1 and 2.",
        notes=(
            "without flag_base local_addr comes from reserve_buffer or import_reserved_buffer",
            "the optional keys keep this order; 0.27 needs local_slot_num before flag_base, flag_base "
            "before nosplit",
        ),
        cpp="TPipe<$flag_base, Direction::DIR_x, $slot_size, $slot_num, $local_slot_num, $nosplit>($gm_addr, "
        "$local_addr, $peer_local_addr)",
        types={
            "gm_addr": "!pto.ptr<f32>", "local_addr": "i32", "attr:dir_mask": "1", "attr:slot_size": "1024",
            "attr:slot_num": "8", "attr:flag_base": "0", "pipe": "!pto.pipe",
            "both/attr:dir_mask": "3", "both/peer_local_addr": "i32", "both/attr:slot_num": "4",
        },
    ),
    section(
        "section.cube", variant=0, core="cube",
        doc="Part of a kernel that runs on the cube core only.",
        meaning="the cube core runs body, vector cores skip it; no vector-only instruction stands inside",
        cpp="#if defined(__DAV_CUBE__) ... #endif",
    ),
    section(
        "section.vector", variant=1, core="vector",
        doc="Part of a kernel that runs on the vector cores only.",
        meaning="every vector core runs body, the cube core skips it; no cube-only instruction stands inside",
        notes=(
            "emitted with set_mask_norm() and set_vector_mask(-1, -1) first; on A5 with no-split pipes "
            "wrapped in if (get_subblockid() == 0) unless the body asks for its subblock",
        ),
        cpp="#if defined(__DAV_VEC__) ... #endif",
    ),
    core(
        "set_ffts", opcode=0x1269, algorithm="flag base",
        operands="ffts=memref|ptr", effect="config", pipe="S",
        rules=(R("ffts.dtype in (I64, U64, I8, U8)", msg="expects element type i64 (or i8)"),),
        doc="Install the base address of the cross-core flags.",
        meaning="flag base = address of ffts; A2A3 cross-core signals need it before the first of them, "
        "elsewhere it has no effect",
        cpp="set_ffts_base_addr((uint64_t)$ffts)",
        types={"ffts": "memref<256xi64, #pto.address_space<gm>>"},
    ),
    debug(
        "trap", opcode=0x126A, touches=False, algorithm="trap", format="attr-dict", pipe="S", scope="any",
        doc="Stop the program with an error.", meaning="execution of the kernel ends with a trap error",
        cpp="trap()",
    ),
    debug(
        "print", opcode=0x126B, touches=False, algorithm="print scalar", operands="scalar=scalar", pipe="S", scope="any",
        attrs=Attr("format", "str", required=True, doc="printf-like format of one value"),
        format="ins($format, $scalar : type($scalar)) attr-dict",
        doc="Print one scalar with a format string.",
        meaning="prints scalar by format; an empty format means %f",
        notes=("an index operand is refused: 'operand #0 must be numeric (integer/float)'",),
        cpp="cce::printf($format, $scalar)", types={"scalar": "i32", "attr:format": "%d"},
    ),
    _push("tpush_to_aiv", "cube", "C2V", 0x126C, _ACC),
    _push("tpush_to_aic", "vector", "V2C", 0x126D, _TILE),
    _pop("tpop_from_aic", "vector", "C2V", 0x126E, _TILE),
    _pop("tpop_from_aiv", "cube", "V2C", 0x126F, _MAT),
    _free("tfree_from_aic", "vector", "C2V", 0x1270),
    _free("tfree_from_aiv", "cube", "V2C", 0x1271),
)  # fmt: skip
