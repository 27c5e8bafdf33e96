"""Pipe and core synchronisation: flags, barriers, events, buffer tokens and cross-core semaphores.

A flag is (source pipe, destination pipe, id) with ids 0..7 per ordered pair. Sets are queued on the source
pipe, waits on the destination pipe; `pipe` of a row here names the attribute that holds its pipe.
"""

from __future__ import annotations

from ..enums import FLAG_PIPES, SYNC_OP_PIPE
from ..row import Attr, Family
from ..rules import R, Rule

sync = Family("pipeline-sync", "scalar", effect="sync")

_ENDS = (
    Attr("src_pipe", "pipe", required=True, choices=FLAG_PIPES, doc="pipe that produces"),
    Attr("dst_pipe", "pipe", required=True, choices=FLAG_PIPES, doc="pipe that consumes"),
)
_END_VALUES = {"attr:src_pipe": "PIPE_MTE2", "attr:dst_pipe": "PIPE_V"}
_EVENT = Attr("event_id", "event", required=True, doc="flag id of this pipe pair")
_DIFFERENT = R("src_pipe != dst_pipe", msg="expects src_pipe and dst_pipe to be different pipes")

flag = sync.but(
    attrs=(*_ENDS, _EVENT), rules=(_DIFFERENT,), types={**_END_VALUES, "attr:event_id": "EVENT_ID0"},
    format=(
        "'[' $src_pipe, $dst_pipe, $event_id ']' attr-dict",
        "$src_pipe, $dst_pipe, $event_id attr-dict",
    ),
)  # fmt: skip
flag_dyn = sync.but(
    operands="event_id=index", attrs=_ENDS, types=_END_VALUES,
    rules=(_DIFFERENT, R("0 <= event_id.const <= 7", msg="expects event_id in range [0, 7]")),
    format=(
        "'[' $src_pipe, $dst_pipe, $event_id ']' attr-dict",
        "$src_pipe, $dst_pipe, $event_id attr-dict",
    ),
)  # fmt: skip


def _different_pipes() -> tuple[Rule, ...]:
    """The two operation classes of an event run on different pipes."""
    pipes = dict.fromkeys(SYNC_OP_PIPE.values())
    groups = (tuple(op for op, at in SYNC_OP_PIPE.items() if at == pipe) for pipe in pipes)
    return tuple(
        R(f"src_op not in {ops} or dst_op not in {ops}", msg="expects src_op and dst_op to map to "
        "different pipes")
        for ops in groups
    )


event = sync.but(
    attrs=(
        Attr("src_op", "pipe_event_type", required=True, doc="operation class that produces"),
        Attr("dst_op", "pipe_event_type", required=True, doc="operation class that consumes"),
        _EVENT,
    ),
    rules=_different_pipes(), format="'[' $src_op, $dst_op, $event_id ']' attr-dict",
    types={"attr:src_op": "TLOAD", "attr:dst_op": "TVEC", "attr:event_id": "EVENT_ID0"},
    notes=(
        "the classes are printed in full, #pto.pipe_event_type<X>; #pto.sync_op_type<X> is an older name "
        "of it",
    ),
)  # fmt: skip
token = sync.but(
    operands="buf_id_dyn=i64|index? mode_dyn=i64?",
    attrs=(
        Attr("op_type", "pipe_event_type", doc="operation class whose pipe holds the token"),
        Attr("pipe", "pipe", choices=FLAG_PIPES, doc="pipe that holds the token, instead of op_type"),
        Attr("buf_id", "int", doc="token 0..31, one pool for all pipes"),
        Attr("mode", "int", 0, doc="mode bit of the hardware instruction"),
    ),
    pipe=(("has(op_type)", "op_type"), ("", "pipe")),
    format=(
        "'[' $op_type, $buf_id ']' attr-dict",
        "'[' $op_type, $buf_id, $mode ']' attr-dict",
        "'[' $pipe, $buf_id [, $mode] ']' attr-dict",
        "'[' $op_type, $buf_id_dyn [, $mode] ']' attr-dict",
        "'[' $pipe, $buf_id_dyn [, $mode] ']' attr-dict",
        "$buf_id_dyn, $pipe [, $mode_dyn] attr-dict : type($buf_id_dyn) [, type($mode_dyn)]",
        "$pipe, $buf_id_dyn [, $mode_dyn] attr-dict : type($buf_id_dyn) [, type($mode_dyn)]",
        "$pipe, $buf_id_dyn [, $mode] attr-dict",
        "$pipe, $buf_id [, $mode] attr-dict",
        "$op_type, $buf_id [, $mode] attr-dict",
    ),
    rules=(
        R("has(op_type) != has(pipe)", msg="expects exactly one of op_type and pipe"),
        R("has(buf_id) != has(buf_id_dyn)", msg="expects exactly one buffer-id form: static or dynamic"),
        R("0 <= buf_id <= 31", when="has(buf_id)", msg="expects buf_id in range [0, 31]"),
        R("0 <= buf_id_dyn.const <= 31", msg="expects buf_id in range [0, 31]"),
        R("mode >= 0", msg="expects mode to be non-negative"),
        R("mode_dyn.const >= 0", msg="expects mode to be non-negative"),
    ),
    types={"attr:op_type": "TVEC", "attr:buf_id": "0", "dynamic/attr:buf_id": "", "dynamic/buf_id_dyn": "index"},
    notes=(
        "operation classes are printed in full; the manuals also show the pipe or the id first, with or "
        "without mode",
    ),
)  # fmt: skip

#: Operations of the scalar unit on its data cache. The simulated core has no such cache.
cache = Family("cache", "scalar", effect="sync", touches=False, pipe="S")
_DCCI_WORDS = {w: f"dcci_dst_t::{w}" for w in ("CACHELINE_ALL", "CACHELINE_UB", "CACHELINE_OUT", "CACHELINE_ATOMIC")}
_DSB_WORDS = {w: f"DSB_{w}" for w in ("ALL", "DDR", "UB", "SEQ")}

_EITHER_ID = R(
    "has(event_id) != has(event_id_dyn)",
    msg="expects exactly one event-id form: static attr or dynamic index operand",
)
#: Signals between the cube core and its vector cores; the id is static or an operand.
core_sync = sync.but(
    operands="event_id_dyn=index|i64?",
    attrs=(
        Attr("pipe", "pipe", required=True, choices=FLAG_PIPES, doc="pipe that signals or stalls"),
        Attr("event_id", "int", doc="semaphore id"),
    ),
    rules=(
        _EITHER_ID,
        R("0 <= event_id <= 15", on="a2a3", when="has(event_id)", msg="expects event_id in range [0, 15]"),
        R("0 <= event_id <= 31", on="a5", when="has(event_id)", msg="expects event_id in range [0, 31]"),
    ), pipe="pipe",
    types={"attr:pipe": "PIPE_MTE3", "attr:event_id": "3", "dynamic/attr:event_id": "",
           "dynamic/event_id_dyn": "index"},
)  # fmt: skip
portable = core_sync.but(
    format=("$pipe, $event_id attr-dict", "$pipe, $event_id_dyn attr-dict"),
    notes=(
        "A2A3 needs set_ffts in the same function: 'A3 inter-core sync requires explicit `pto.set_ffts` in "
        "the same function when using `pto.sync.set`/`pto.sync.wait`'",
    ),
)  # fmt: skip
intra = core_sync.but(
    isas="cpu a5",
    rules=(
        _EITHER_ID,
        R("0 <= event_id <= 31", when="has(event_id)", msg="expects static event_id in [0, 31]"),
        R("0 <= event_id_dyn.const <= 31", msg="expects event_id in range [0, 31]"),
    ),
    format=(
        "$pipe, $event_id attr-dict",
        "$pipe, $event_id_dyn attr-dict : i64, type($event_id_dyn)",
        "$pipe, $event_id_dyn attr-dict : type($event_id_dyn)",
        "$pipe, $event_id_dyn attr-dict",
    ),
    notes=("AIV1 is addressed as id + 16 (one page of the manual has + 15; examples and headers use + 16)",),
)  # fmt: skip
cross = sync.but(
    isas="cpu a2a3",
    rules=(R("0 <= event_id.const <= 15", msg="expects event_id in range [0, 15]"),),
    notes=("ids 11..14 serve the hard syncall, 14 and 15 the assembler's block barrier",),
)  # fmt: skip

ROWS = (
    flag(
        "set_flag", opcode=0x1240, order="set", pipe="src_pipe",
        doc="Raise a flag once the source pipe has finished its earlier work.",
        meaning="Queued on src_pipe: when every earlier instruction of src_pipe has retired, flag (src_pipe, "
        "dst_pipe, event_id) goes 0 -> 1. Stalls nothing. Setting a flag that is 1 is a protocol error.",
        notes=(
            "exactly one wait per set on every path; a flag left set at the end of the kernel is an error",
            "n buffers per edge take n ids per direction; the reverse ids are primed before the loop, "
            "drained after",
            "waits consume: the manual's 'visible to all later waiters' contradicts its own examples",
        ),
        cpp="set_flag($src_pipe, $dst_pipe, $event_id)",
    ),
    flag(
        "wait_flag", opcode=0x1241, order="wait", pipe="dst_pipe",
        doc="Hold the destination pipe until a flag is raised, and lower it.",
        meaning="Queued on dst_pipe: later instructions of dst_pipe start after flag (src_pipe, dst_pipe, "
        "event_id) is 1, which then goes to 0; they are ordered after everything that preceded the "
        "matching set on src_pipe. Other pipes go on; with dst_pipe PIPE_S the scalar unit itself stalls.",
        notes=("a wait that no set can reach is a deadlock",),
        cpp="wait_flag($src_pipe, $dst_pipe, $event_id)",
    ),
    flag_dyn(
        "set_flag_dyn", opcode=0x1242, order="set", pipe="src_pipe",
        doc="Raise a flag whose id is a run-time value.",
        meaning="set_flag with event id event_id (0..7)",
        cpp="set_flag($src_pipe, $dst_pipe, (event_t)$event_id)",
    ),
    flag_dyn(
        "wait_flag_dyn", opcode=0x1243, order="wait", pipe="dst_pipe",
        doc="Wait for a flag whose id is a run-time value.",
        meaning="wait_flag with event id event_id (0..7)",
        cpp="wait_flag($src_pipe, $dst_pipe, (event_t)$event_id)",
    ),
    sync(
        "barrier", opcode=0x1002, order="barrier", aliases="pipe_barrier", also="ptoas", pipe="pipe",
        attrs=Attr("pipe", "pipe", required=True, choices=(*FLAG_PIPES, "PIPE_ALL"), doc="pipe to drain"),
        format=("$pipe attr-dict", "'[' $pipe ']' attr-dict", "( $pipe ) attr-dict"),
        doc="Finish the earlier work of a pipe before its later work starts.",
        meaning="Every earlier instruction of pipe retires before a later one of pipe starts. PIPE_ALL "
        "drains every pipe of the core; any other pipe orders itself only.",
        notes=(
            "needed between stores of MTE3 to the same GM bytes and, on A2A3, between dependent V "
            "instructions",
            "A5 keeps V in order: a PIPE_V barrier is dropped when emitting code for it",
        ),
        cpp="pipe_barrier($pipe)", types={"attr:pipe": "PIPE_ALL"},
    ),
    sync(
        "barrier_sync", opcode=0x1244, order="barrier", pipe="op_type",
        attrs=Attr("op_type", "sync_op_type", required=True, doc="operation class whose pipe is drained"),
        format="'[' $op_type ']' attr-dict",
        doc="Pipe barrier on the pipe of an operation class.",
        meaning="barrier on the pipe op_type maps to: TLOAD MTE2; TSTORE_VEC MTE3; TSTORE_ACC, TMOV_M2S, "
        "TMOV_V2M FIX; TMOV_M2L, TMOV_M2B MTE1; TMATMUL M; TMOV_M2V, TVEC, TVECWAIT_EVENT V.",
        notes=("on A5 a V barrier is dropped",),
        cpp="pipe_barrier(pipe of $op_type)", types={"attr:op_type": "TVEC"},
    ),
    sync(
        "fence.barrier_all", opcode=0x124E, order="barrier", pipe="ALL",
        attrs=Attr("scope", "fence_scope", required=True, doc="what later work of any core sees",
                   words={"local_memory": "DSB_UB", "gm": "DSB_DDR", "all": "DSB_ALL"}),
        format="$scope attr-dict",
        doc="Drain every pipe of the core and make what it stored visible.",
        meaning="barrier PIPE_ALL; then stores before it are visible to cores that are signaled after it: gm to "
        "global memory, local_memory to the buffers of the core, all to both.",
        notes=("of a newer assembler than the manual's: stands before a notify, with cmo.cacheinvalid of what "
        "scalar stores wrote",),
        cpp="dsb($scope)", types={"attr:scope": "gm"},
    ),
    cache(
        "cmo.cacheinvalid", opcode=0x124F, operands="addr=ptr|view|memref?",
        attrs=Attr("space", "address_space", choices=("gm",), doc="all of the cache: of which memory"),
        format=("$addr single_cache_line attr-dict : type($addr)", "all $space attr-dict"),
        rules=(
            R("has(addr) != has(space)", msg="expects either an address or the memory of all lines"),
            R("addr.space == GM", when="has(addr)", msg="expects addr to be in GM address space"),
        ),
        doc="Write back and drop a line of the scalar unit's data cache, or all of it.",
        meaning="No value changes: the scalar unit of a simulated core has no cache of its own.",
        cpp="dcci($addr, SINGLE_CACHE_LINE) | dcci(0, ENTIRE_DATA_CACHE)",
        types={"addr": "", "attr:space": "gm", "line/addr": "!pto.ptr<f32>", "line/attr:space": ""},
    ),
    cache(
        "dcci", opcode=0x1250, operands="ptr=ptr|memref",
        attrs=(
            Attr("cache", "str", required=True, choices=("SINGLE_CACHE_LINE", "ENTIRE_DATA_CACHE"),
                 doc="the line that holds the address, or all lines"),
            Attr("dst", "str", choices=tuple(_DCCI_WORDS), words=_DCCI_WORDS, doc="lines of which memory"),
        ),
        format="$ptr $cache [, $dst] attr-dict : type($ptr)",
        rules=R("ptr.space in (GM, UB)", msg="expects ptr memory space to be gm or ub/vec"),
        doc="Write back and drop a line of the data cache, or all of it, as the call of C++ says it.",
        meaning="As cmo.cacheinvalid: no value changes.",
        notes=("words may also be #pto.dcci_cache_line<..> and #pto.dcci_dst<..>",),
        cpp="dcci($ptr, $cache) | dcci($ptr, $cache, $dst)",
        types={"ptr": "!pto.ptr<f32>", "attr:cache": "SINGLE_CACHE_LINE",
               "ub/ptr": "!pto.ptr<f32, ub>", "ub/attr:cache": "ENTIRE_DATA_CACHE", "ub/attr:dst": "CACHELINE_UB"},
    ),
    cache(
        "dsb", opcode=0x1251,
        attrs=Attr("mem", "str", required=True, choices=tuple(_DSB_WORDS), words=_DSB_WORDS,
                   doc="whose accesses complete"),
        format="$mem attr-dict",
        doc="Wait until what the scalar unit has read and written is complete.",
        meaning="No value changes: every access of a simulated scalar unit is complete before the next one. Other "
        "pipes are not waited for.",
        notes=("the word may also be #pto.dsb_mem<..>", "fence.barrier_all drains the pipes, too"),
        cpp="dsb($mem)", types={"attr:mem": "ALL"},
    ),
    event(
        "record_event", opcode=0x1005, order="set", pipe="src_op",
        doc="Raise the flag between the pipes of two operation classes.",
        meaning="set_flag[pipe(src_op), pipe(dst_op), event_id] with the pipe map of barrier_sync",
        cpp="set_flag(pipe of $src_op, pipe of $dst_op, $event_id)",
    ),
    event(
        "wait_event", opcode=0x1070, order="wait", pipe="dst_op",
        doc="Wait for the flag between the pipes of two operation classes.",
        meaning="wait_flag[pipe(src_op), pipe(dst_op), event_id] with the pipe map of barrier_sync",
        notes=("pairs with a record_event of the same triple",),
        cpp="wait_flag(pipe of $src_op, pipe of $dst_op, $event_id)",
    ),
    token(
        "get_buf", opcode=0x1245, order="get", aliases="get_buf_dyn",
        doc="Acquire a buffer token for a pipe.",
        meaning="Queued on the pipe: blocks it until no other pipe holds the token and every get/rls pair "
        "on that id earlier in program order by other pipes is complete; then the pipe holds it. Tokens "
        "start free, so nothing is primed or drained; grants follow program order, which orders reader "
        "after writer and writer after reader.",
        notes=("a pipe may not acquire a token it holds; one rls_buf per get_buf on the same pipe and id",),
        cpp="get_buf($pipe, $buf_id, $mode)",
    ),
    token(
        "rls_buf", opcode=0x1246, order="release", aliases="rls_buf_dyn",
        doc="Release a buffer token.",
        meaning="Queued on the pipe: once its earlier work has retired the token is free for the next "
        "acquirer in program order. Never blocks.",
        notes=("the pipe must hold the token and touches the buffer no more until it acquires it again",),
        cpp="rls_buf($pipe, $buf_id, $mode)",
    ),
    sync(
        "mem_bar", opcode=0x1247, order="fence", also="micro", pipe="V", core="vector", scope="vec",
        attrs=Attr(
            "barrier_type", "str", required=True,
            choices=(
                "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST",
                "SV_ALL", "ST_VLD", "LD_VST", "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
            ),
            doc="accesses before and after: V vector, S scalar; LD load, ST store, ALL any",
        ),
        format=("$barrier_type attr-dict", "'[' $barrier_type ']' attr-dict"),
        doc="Fence between unified-buffer accesses of one vector interval.",
        meaning="VV_ALL: all earlier vector instructions complete first; VST_VLD: earlier vector stores "
        "are visible to later vector loads; VLD_VST: earlier vector loads complete before later vector "
        "stores; the others likewise. Does not order other pipes.",
        notes=(
            "required wherever UB addresses of loads and stores in one interval alias",
            "the manual lists VV_ALL, VST_VLD and VLD_VST; newer versions of PTOAS have all sixteen",
            "for stores of MTE3 to the same GM bytes use barrier PIPE_MTE3, not this",
        ),
        cpp="mem_bar($barrier_type)", types={"attr:barrier_type": "VST_VLD"},
    ),
    cross(
        "set_cross_core", opcode=0x1248, order="signal", operands="core_id=i64 event_id=i64",
        attrs=(
            Attr("pipe", "pipe", choices=FLAG_PIPES, doc="pipe whose earlier work must retire; absent = "
            "all pipes"),
            Attr("mode", "int", 2, choices=(0, 1, 2), doc="2: the cube core and its vector cores; 1: like "
            "cores of the block; 0: those of all blocks"),
        ),
        pipe=(("has(pipe)", "pipe"), ("", "ALL")),
        rules=(R("core_id.const in (0, 1)", msg="expects core_id to be 0 or 1"),),
        doc="Signal across the cores of an A2A3 cluster.",
        meaning="From the cube core: semaphore event_id of both vector cores += 1 in one step (core_id "
        "does not narrow it). From a vector core: one count toward the cube core's semaphore, whose wait "
        "needs one from each vector core. Modes 0 and 1: once all cores of the group have signalled, the "
        "semaphore that each of them waits for += 1. Semaphores are 4-bit counters, 16 per cluster; passing "
        "15 is an error.",
        cpp="ffts_cross_core_sync($pipe, getFFTSMsg($mode, $event_id))",
    ),
    cross(
        "wait_flag_dev", opcode=0x1249, order="await", operands="core_id=i64? event_id=i64", pipe="S",
        format=(
            "$event_id attr-dict : type($event_id)",
            "$core_id, $event_id attr-dict : type($core_id), type($event_id)",
        ),
        doc="Wait for a cross-core signal on A2A3; the whole core stalls.",
        meaning="The scalar unit stalls, and with it all later issue, while semaphore event_id is 0; then "
        "the semaphore is decremented. The cube core needs one count from each of its vector cores. "
        "core_id is ignored.",
        notes=("a counting semaphore: the manual's 'unblocks at zero' contradicts its own handshake "
        "examples",),
        cpp="wait_flag_dev($event_id)",
    ),
    intra(
        "set_intra_block", opcode=0x124A, order="signal",
        doc="Signal one core of an A5 cluster when a pipe has finished its earlier work.",
        meaning="When the earlier work of pipe has retired, semaphore id of exactly one peer += 1. Cube "
        "core: ids 0..15 address AIV0, 16..31 AIV1. Vector cores use 0..15; AIV1's signal arrives at the "
        "cube core as id + 16. There are 16 physical semaphores; signalling both vector cores takes two "
        "calls.",
        cpp="set_intra_block($pipe, $event_id)",
    ),
    intra(
        "wait_intra_core", opcode=0x124B, order="await", aliases="wait_intra_block",
        doc="Hold one pipe of an A5 core until a peer has signalled.",
        meaning="Blocks pipe alone while semaphore id is 0, then decrements it; other pipes and the scalar "
        "unit go on. The cube core waits for AIV0 (id) and AIV1 (id + 16) separately.",
        cpp="wait_intra_block($pipe, $event_id)",
    ),
    portable(
        "sync.set", opcode=0x124C, order="signal",
        attrs=Attr("ffts_mode", "int", doc="A2A3 signal mode 0..2; absent = 2"),
        rules=(
            R("0 <= ffts_mode <= 2", when="has(ffts_mode)", msg="requires ffts_mode in range [0, 2]"),
            R("pipe in ('PIPE_FIX', 'PIPE_MTE3')", on="a5",
              msg="A5 sync.set expects pipe to be one of <PIPE_FIX>, <PIPE_MTE3>"),
        ),
        doc="Signal between the cube and vector cores, on either architecture.",
        meaning="A2A3: set_cross_core on pipe with mode ffts_mode (default 2). A5: set_intra_block(pipe, "
        "id); for PIPE_FIX also (pipe, id + 16), so both vector cores are signalled.",
        cpp="ffts_cross_core_sync($pipe, getFFTSMsg($ffts_mode, $event_id)) | set_intra_block($pipe, "
        "$event_id)",
    ),
    portable(
        "sync.wait", opcode=0x124D, order="await", pipe=(("isa == 'a5'", "pipe"), ("", "S")),
        rules=(
            R("pipe in ('PIPE_FIX', 'PIPE_MTE1', 'PIPE_MTE2', 'PIPE_MTE3', 'PIPE_V')", on="a5",
              msg="A5 sync.wait expects pipe to be one of <PIPE_FIX>, <PIPE_MTE1>, <PIPE_MTE2>, "
              "<PIPE_MTE3>, <PIPE_V>"),
        ),
        doc="Wait for a signal between the cube and vector cores, on either architecture.",
        meaning="A2A3: wait_flag_dev(id), stalling the core. A5: wait_intra_core(pipe, id), stalling pipe "
        "alone.",
        cpp="wait_flag_dev($event_id) | wait_intra_block($pipe, $event_id)",
    ),
)  # fmt: skip
