"""Communication between ranks: remote copies, asynchronous transfers, signals and collectives.

Remote memory is a view of another rank's window. Staged instructions move data GM -> UB -> GM through a tile
(`ping`). A second tile (`pong`) lets load and store overlap. The tiles do not change the result.
"""

from __future__ import annotations

from ..row import Attr, Family
from ..rules import R, Rule

_EVERY = {"cpu": "all", "a2a3": "any", "a5": "all"}
_STAGED = (
    "staging: with rows, cols the valid extents of ping and dims D0..D4, one load and store moves all if "
    "D0*D1*D2*D3 <= rows and D4 <= cols; else loops over D0, D1, D2, row chunks of D3 and column chunks of "
    "D4 with the original strides",
    "a zero-size tensor is a no-op; the simulator may copy without the staging tiles",
)


def _staging(view: str, tile: str = "ping", second: str = "pong") -> tuple[Rule, ...]:
    """Staging tiles: in UB, of the moved type, and dividing the tensor where it does not fit at once."""
    chunked = f"{view}.elems // {view}.dims[-1] > {tile}.v_row or {view}.dims[-1] > {tile}.v_col"
    return (
        R(f"{tile}.loc == VEC"),
        R(f"{tile}.dtype == {view}.dtype"),
        R(f"{tile}.v_row > 0 and {tile}.v_col > 0", msg=f"expects {tile} to have a non-empty valid region"),
        R(f"{view}.dims[-2] % {tile}.v_row == 0", when=chunked,
          msg=f"expects the static valid rows of {tile} to divide the rows of {view}"),
        R(f"{view}.dims[-1] % {tile}.v_col == 0", when=chunked,
          msg=f"expects the static valid columns of {tile} to divide the columns of {view}"),
        R(f"{second}.loc == VEC"),
        R(f"{second}.dtype == {tile}.dtype"),
        R(f"{second}.shape == {tile}.shape"),
        R(f"has({tile}) or not has({second})", msg=f"expects {tile} where {second} is given"),
    )  # fmt: skip


_PAIR = (R("src.dtype == dst.dtype"), R("src.layout == dst.layout"))
_BUF = (
    "( $dst, $src, buf( $ping [, $pong] ) : type($dst), type($src), type($ping) [, type($pong)] ) attr-dict"
)

_BUFFER = "!pto.tile_buf<vec, 16x64x{T}>"
_STAGE = {f"staged/{name}": _BUFFER for name in ("ping", "pong")}

p2p = Family(
    "point-to-point", "comm", types=_STAGE, operands="dst=view:out src=view ping:tmp? pong:tmp?", pipe="ALL",
    core="vector", in_place="none", domain="every index of the shape", dtype_of="src", **_EVERY,
    rules=(*_PAIR, *_staging("src")),
    format=(
        _BUF,
        "$dst, $src attr-dict : ( type($dst), type($src) )",
        "$dst, $src attr-dict : type($dst), type($src)",
        "",
    ),
    notes=(
        *_STAGED,
        "all pipes are drained before it; its last store may be on its way when it returns: a barrier has to "
        "come before what follows it, a tnotify above all",
        "the manuals' text has no staging tiles: lowering adds one",
    ),
)  # fmt: skip

_FLAT = "static flat contiguous logical 1D GM"


def _flat(name: str) -> tuple[Rule, ...]:
    test = f"None not in {name}.dims and {name}.elems == {name}.dims[-1]"
    return (
        R(test, when=f"{name}.kind == 'memref'", msg=f"expects {name} to be a {_FLAT} memref"),
        R(test, when=f"{name}.kind != 'memref'", msg=f"expects {name} to be a {_FLAT} view"),
    )


_ENGINE = Attr("engine", "str", "SDMA", choices=("SDMA", "URMA", "RDMA"), doc="DMA engine")
transfer = Family(
    "async", "comm", operands="dst=view:out src=view session=async_session peer=int?",
    results="event=async_event", attrs=_ENGINE, pipe="S", in_place="none", domain="every element of src",
    dtype_of="src", **_EVERY,
    format="( $dst, $src, $session [, $peer] : type($dst), type($src), type($session) [, type($peer)] ) "
    "attr-dict -> type($event)",
    rules=(
        R("dst.dtype == src.dtype"),
        *_flat("dst"),
        *_flat("src"),
        R("dst.layout == src.layout"),
        R("dst.dims == src.dims", on="a2a3 a5", msg="expects dst and src to have the same static shape"),
        R("dst.elems >= src.elems", on="cpu", msg="expects dst to hold at least the elements of src"),
        R("engine == 'SDMA'", on="a2a3", msg="expects the SDMA engine on A2/A3"),
        R("not has(peer)", on="a2a3", msg="expects no peer on A2/A3"),
        R("src.elems * src.bytes <= 268435456", on="cpu a5", when="engine == 'URMA'",
          msg="expects at most 256 MiB with URMA"),
        R("src.elems * src.bytes <= 2147483647", on="cpu a5", when="engine == 'RDMA'",
          msg="expects at most 2147483647 bytes with RDMA"),
    ),
    types={
        "dst": "!pto.partition_tensor_view<128x{T}>", "src": "!pto.partition_tensor_view<128x{T}>",
        "memref/dst": "memref<128x{T}, #pto.address_space<gm>>",
        "memref/src": "memref<128x{T}, #pto.address_space<gm>>",
    },
    notes=(
        "at most 64 operations of a session are outstanding before issue blocks; engines copy at "
        "once, the reference engine under a schedule as late as the wait",
        "session and workspace outlive pending events; one session serves one flow; RDMA addresses lie in "
        "registered memory and the queue belongs to peer",
    ),
)  # fmt: skip
event = Family(
    "async", "comm", operands="event=async_event session=async_session", results="completed=i1",
    effect="sync", pipe="S",
    format="( $event, $session : type($event), type($session) ) attr-dict -> type($completed)",
    notes=("the session is the one the event was issued with",),
)  # fmt: skip

_WAIT_CMP = Attr("cmp", "wait_cmp", required=True, doc="comparison each element must satisfy")
signal = Family(
    "signal", "comm", effect="sync", pipe="S", rules=(R("signal.dtype == I32"),),
    types={"signal": "!pto.partition_tensor_view<1x1xi32>", "attr:cmp": "eq"},
)  # fmt: skip

_GROUP = (
    Attr("root", "int", 0, doc="rank that calls and owns the local tensor; equal on all ranks"),
    Attr("engine", "str", "AIV", choices=("AIV", "CCU"), doc="vector cores, or the A5 collective unit"),
)
_GROUP_RULES = (
    R("engine == 'AIV'", on="a2a3", msg="expects the AIV engine on A2/A3"),
    R("root >= 0", msg="expects root to be non-negative"),
    R("root < group.count", when="group.count > 0", msg="expects root to index into group operands"),
    R("has(pg) != (group.count > 0)", msg="expects either a group value or its member tensors"),
    R("all(g.dtype == group[0].dtype for g in group)", msg="expects group members to have the same element "
    "type"),
    R("all(g.dims == group[0].dims for g in group)", msg="expects group members to have the same shape"),
)
collective = Family(
    "collective", "comm", attrs=_GROUP, pipe="ALL", core="vector", in_place="none", **_EVERY,
    notes=(
        *_STAGED,
        "AIV engine: only the root calls it, and it blocks; CCU: the first extra C++ argument is a "
        "CcuTriggerContext, the vector core rings the gate and every rank launches the unit from the host",
        "member k of the group is the tensor of rank k; shape and strides of all come from the first",
    ),
)  # fmt: skip
_RECV = "recv( $ping [, $pong] ), group( $group... )"
_RECV_TYPES = "type($ping) [, type($pong)], type($group...)"


def _text(local: str) -> tuple[str, ...]:
    """The assembler's form, then the manual's with a group value and no staging tiles."""
    return (
        f"( ${local}, {_RECV} : type(${local}), {_RECV_TYPES} ) attr-dict",
        f"$pg, ${local} attr-dict : ( type($pg), type(${local}) )",
        f"$pg, ${local} attr-dict : type($pg), type(${local})",
    )


_MEMBERS = ", ".join(["!pto.partition_tensor_view<16x64x{T}>"] * 2)


def _group_types(first: str = "ping", second: str = "pong", also: str = "") -> dict[str, str]:
    """Witness types: members in place with one staging tile or two, or a group value and none."""
    once = {name: _BUFFER for name in (first, *also.split())}
    value = {f"value/{name}": "" for name in (*once, "group")}
    return {"group": _MEMBERS, **once, f"double/{second}": _BUFFER, **value, "value/pg": "!pto.group<2>"}


ROWS = (
    p2p(
        "tput", opcode=0x1280, algorithm="copy between ranks: to", aliases="comm.tput",
        attrs=Attr("atomicType", "atomic_type", "atomic_none", choices=("atomic_none", "atomic_add"),
                   doc="how the remote element combines"),
        rules=(
            R("src.dtype in (F32, F16, BF16, I32, I16, I8)", on="a2a3 a5", when="atomicType == 'atomic_add'",
              msg="expects an element type atomic stores support"),
        ),
        doc="Copy a local global-memory tensor to another rank.",
        meaning="dst[idx] = src[idx], or dst[idx] += src[idx] with atomic_add, for every index of src, "
        "each tensor by its own strides. dst is remote, src local. atomic_add is atomic per element.",
        notes=("a run-time atomic argument other than add acts as none",),
        cpp="pto::comm::TPUT($dst, $src, $ping) | pto::comm::TPUT($dst, $src, $ping, $pong) | "
        "pto::comm::TPUT<AtomicType>($dst, $src, $ping) | pto::comm::TPUT<AtomicType>($dst, $src, $ping, $pong)",
    ),
    p2p(
        "tget", opcode=0x1281, algorithm="copy between ranks: from", aliases="comm.tget",
        doc="Copy a tensor of another rank into local global memory.",
        meaning="dst[idx] = src[idx] for every index of the shape, each tensor by its own strides. src is "
        "remote, dst local.",
        cpp="pto::comm::TGET($dst, $src, $ping) | pto::comm::TGET($dst, $src, $ping, $pong)",
    ),
    transfer(
        "tput_async", opcode=0x1282, algorithm="started copy between ranks", aliases="comm.tput_async",
        doc="Start a copy to another rank and return an event.",
        meaning="Start copying every element of src (local) to dst (remote) and return. Handle 0 means "
        "nothing is pending: waits return true. Waiting for an event also completes every earlier "
        "operation of the session (RDMA: of that peer). A5 with SDMA copies through the session scratch at "
        "once and returns handle 0.",
        cpp="pto::comm::TPUT_ASYNC<pto::comm::DmaEngine::$engine>($dst, $src, $session) | "
        "pto::comm::TPUT_ASYNC<pto::comm::DmaEngine::$engine>($dst, $src, $session, $peer)",
    ),
    transfer(
        "tget_async", opcode=0x1283, algorithm="started copy between ranks", aliases="comm.tget_async",
        doc="Start a copy from another rank and return an event.",
        meaning="Start copying every element of src (remote) to dst (local) and return; completion as "
        "tput_async, except that the A5 SDMA get is asynchronous too.",
        cpp="pto::comm::TGET_ASYNC<pto::comm::DmaEngine::$engine>($dst, $src, $session) | "
        "pto::comm::TGET_ASYNC<pto::comm::DmaEngine::$engine>($dst, $src, $session, $peer)",
    ),
    Family("async", "comm", effect="alloc", pipe="S", core="vector")(
        "build_async_session", opcode=0x1284, algorithm="session",
        touches=True, aliases="comm.build_async_session",
        operands="scratch:tmp workspace=ptr|memref dest_rank=int? "
        "my_pe=int?", results="session=async_session",
        attrs=(
            _ENGINE,
            Attr("sync_id", "int", 0, doc="event id the session uses, 0..7"),
            Attr("block_bytes", "int", 32768, doc="SDMA block size"),
            Attr("comm_block_offset", "int", 0, doc="SDMA block offset"),
            Attr("queue_num", "int", 1, doc="SDMA queues"),
            Attr("channel_group_idx", "int", doc="channel group; absent = the block index"),
        ),
        format="( $scratch, $workspace : type($scratch), type($workspace) ) [dest_rank = $dest_rank] "
        "[my_pe = $my_pe] attr-dict -> type($session)",
        rules=(
            R("scratch.loc == VEC", msg="expects scratch to be in vec address space"),
            R("scratch.size >= 8", msg="expects scratch to provide at least 8 bytes"),
            R("scratch.size >= 64", on="cpu a5", when="engine == 'RDMA'", msg="expects scratch to provide at least 64 "
            "bytes"),
            R("workspace.dtype in (I8, U8)", msg="expects workspace element type to be an 8-bit integer"),
            R("workspace.space == GM", msg="expects workspace to be in GM address space"),
            R("0 <= sync_id <= 7", msg="expects sync_id in range [0, 7]"),
            R("block_bytes > 0", msg="expects block_bytes to be greater than 0"),
            R("comm_block_offset >= 0", msg="expects comm_block_offset to be non-negative"),
            R("queue_num > 0", msg="expects queue_num to be greater than 0"),
            R("channel_group_idx >= 0", when="has(channel_group_idx)",
              msg="expects channel_group_idx to be non-negative"),
            R("channel_group_idx <= 4294967295", when="has(channel_group_idx)",
              msg="expects channel_group_idx to fit in uint32"),
            R("engine == 'SDMA'", on="a2a3", msg="expects the SDMA engine on A2/A3"),
        ),
        doc="Open a session for asynchronous transfers.",
        meaning="session = engine state over scratch (control words only, never payload) and the GM "
        "workspace; invalid with a null workspace or too small a scratch.",
        notes=(
            "C++ defaults block_bytes to 1 MiB, PTOAS writes 32768, which is the default here",
            "SDMA: workspace 16 KiB + 48*512 bytes, at most 48 queues and channel groups; scratch of 256 "
            "bytes recommended; dest_rank belongs to URMA and RDMA, my_pe to RDMA",
        ),
        cpp="pto::comm::BuildAsyncSession<pto::comm::DmaEngine::$engine>($scratch, $workspace, $session, "
        "$sync_id, {$block_bytes, $comm_block_offset, $queue_num}, $channel_group_idx)",
        types={"scratch": "!pto.tile_buf<vec, 1x256xi8>", "workspace": "!pto.ptr<i8>"},
    ),
    Family("async", "comm", effect="alloc", pipe="S")(
        "make_prefetch_async_context", opcode=0x128F, algorithm="session", operands="workspace=ptr|memref",
        results="ctx=prefetch_async_context", format="( $workspace : type($workspace) ) attr-dict -> type($ctx)",
        rules=(
            R("workspace.dtype in (I8, U8)", msg="expects workspace element type to be an 8-bit integer"),
            R("workspace.space == GM", msg="expects workspace to be in GM address space"),
        ),
        doc="Make a context for asynchronous prefetches.",
        meaning="ctx = a session of its own over the GM workspace, for tprefetch_async.",
        cpp="pto::PrefetchAsyncContext($workspace)", types={"workspace": "!pto.ptr<i8>"},
    ),
    Family("async", "comm", effect="alloc", pipe="S")(
        "get_prefetch_async_session", opcode=0x1290, algorithm="session", operands="ctx=prefetch_async_context",
        results="session=async_session", format="$ctx attr-dict : type($ctx) -> type($session)",
        doc="The session of a context for asynchronous prefetches.",
        meaning="session = that of ctx: waiting for its events also completes the prefetches before them.",
        cpp="$ctx.session",
    ),
    event(
        "wait_async_event", opcode=0x1285, algorithm="event of a copy", aliases="comm.wait_async_event",
        doc="Wait until an asynchronous transfer has completed.",
        meaning="Block until the event and every earlier operation of the session are complete. true on "
        "success, at once for handle 0; false for an unknown engine.",
        cpp="$event.Wait($session)",
    ),
    event(
        "test_async_event", opcode=0x1286, algorithm="event of a copy", aliases="comm.test_async_event",
        doc="Ask whether an asynchronous transfer has completed.",
        meaning="completed = whether the event is complete, without blocking; true for handle 0",
        cpp="$event.Test($session)",
    ),
    signal(
        "tnotify", opcode=0x1287, algorithm="signal",
        aliases="comm.tnotify", operands="signal=view:inout value=i32",
        attrs=Attr("notifyOp", "notify_op", required=True, doc="set the signal or add to it"),
        format=(
            "( $signal, $value : type($signal), type($value) ) attr-dict",
            "$signal, $value { op = $notifyOp } attr-dict : ( type($signal), type($value) )",
            "$signal, $value { op = $notifyOp } attr-dict : type($signal), type($value)",
        ),
        doc="Write or add to a signal of another rank.",
        meaning="element 0 of signal: Set = value; AtomicAdd += value, atomically, wrapping in 32 bits. "
        "Sequentially consistent. The rest of the tensor is untouched.",
        notes=(
            "the store is issued before the instruction's own final barrier: order the payload first "
            "(barrier PIPE_ALL or events), then notify",
            "the signal is remote, 4-byte aligned; hardware cleans the cache line and drains all pipes "
            "afterwards",
        ),
        cpp="pto::comm::TNOTIFY($signal, $value, $notifyOp)",
        types={"signal": "!pto.partition_tensor_view<1x1xi32>", "attr:notifyOp": "Set"},
    ),
    signal(
        "twait", opcode=0x1288, aliases="comm.twait", operands="signal=view cmpValue=i32", attrs=_WAIT_CMP,
        format=(
            "( $signal, $cmpValue : type($signal), type($cmpValue) ) attr-dict",
            "$signal, $cmpValue attr-dict : ( type($signal), type($cmpValue) )",
            "$signal, $cmpValue attr-dict : type($signal), type($cmpValue)",
        ),
        doc="Wait until every element of a local signal satisfies a comparison.",
        meaning="The scalar unit spins until signal[i] cmp cmpValue holds for all i (signed 32 bits, up to "
        "5-D, by strides). Loads acquire. The signal is not changed.",
        notes=(
            "a wait never satisfied is a deadlock error in the simulator; the reference returns silently "
            "after a spin limit, hardware asserts after 1e8 spins",
            "numbers of the comparison differ from tcmp: eq 0, ne 1, gt 2, ge 3, lt 4, le 5; #pto.cmp<EQ> "
            "is accepted",
        ),
        cpp="pto::comm::TWAIT($signal, $cmpValue, $cmp)",
    ),
    signal(
        "ttest", opcode=0x1289, algorithm="test signal", aliases="comm.ttest", operands="signal=view "
        "cmpValue=i32", results="result=i1",
        attrs=_WAIT_CMP,
        format=(
            "( $signal, $cmpValue : type($signal), type($cmpValue) ) attr-dict -> type($result)",
            "$signal, $cmpValue attr-dict : ( type($signal), type($cmpValue) ) -> type($result)",
            "$signal, $cmpValue attr-dict : type($signal), type($cmpValue) -> type($result)",
        ),
        doc="Ask whether every element of a local signal satisfies a comparison.",
        meaning="result = all(signal[i] cmp cmpValue), one sweep, no waiting; true for an empty tensor",
        cpp="pto::comm::TTEST($signal, $cmpValue, $cmp)",
    ),
    Family("collective", "comm", effect="pure", scope="any")(
        "make_group", opcode=0x128A, algorithm="view", aliases="comm.make_group", operands="tensors=view*",
        results="group=group",
        attrs=Attr("root", "int", 0, doc="root rank, equal on all ranks"),
        format="( $tensors... : type($tensors...) ) attr-dict -> type($group)",
        rules=(
            R("tensors.count > 0", msg="expects at least one tensor"),
            R("0 <= root", msg="expects root to be non-negative"),
            R("root < tensors.count", msg="expects root to index into group operands"),
        ),
        doc="Collect one tensor per rank into a group.",
        meaning="group = (tensors, root); member k belongs to rank k",
        notes=(
            "not in the inventory: the manual's group values need a producer; the assembler lists the "
            "members in place",
        ),
        cpp="pto::comm::ParallelGroup<GlobalData>::Create($tensors, N, $root)",
        types={"tensors": _MEMBERS.replace("{T}", "f32"), "group": "!pto.group<2>"},
    ),
    collective(
        "tbroadcast", opcode=0x128B, algorithm="broadcast", aliases="comm.tbroadcast",
        operands="src=view ping:tmp? pong:tmp? group=view:out* "
        "pg=group?", format=_text("src"), dtype_of="src",
        rules=(
            *_GROUP_RULES, *_staging("src"),
            R("group[0].dtype == src.dtype", msg="expects src type to match group member type"),
            R("group[0].layout == src.layout"),
        ),
        domain="every index of src, in every member",
        doc="Copy a tensor of the root to every rank.",
        meaning="for each rank k, root included: group[k][idx] = src[idx] over the shape of src. Each "
        "chunk is loaded once and stored to all ranks in rank order.",
        cpp="pto::comm::TBROADCAST<pto::comm::CollEngine::$engine>(pg, $src, $ping, $pong)",
        types=_group_types(),
    ),
    collective(
        "treduce", opcode=0x128C, algorithm="reduction of ranks", aliases="comm.treduce",
        operands="dst=view:out acc:tmp? recvPing:tmp? recvPong:tmp? group=view* pg=group?",
        attrs=Attr("reduceOp", "reduce_op", required=True, doc="Sum (tadd), Max (tmax) or Min (tmin)"),
        format=(
            "( $dst, $acc, recv( $recvPing [, $recvPong] ), group( $group... ) : type($dst), type($acc), "
            "type($recvPing) [, type($recvPong)], type($group...) ) attr-dict",
            "$pg, $dst { op = $reduceOp } attr-dict : ( type($pg), type($dst) )",
            "$pg, $dst { op = $reduceOp } attr-dict : type($pg), type($dst)",
        ),
        cpu="any", a2a3="f32 f16 bf16 i32 i16", a5="f32 f16 bf16 ints",
        rules=(
            *_GROUP_RULES, *_staging("dst", "acc", "recvPing"),
            R("recvPong.dtype == recvPing.dtype"),
            R("recvPong.shape == recvPing.shape"),
            R("recvPong.loc == VEC"),
            R("group[0].dtype == dst.dtype", msg="expects dst element type to match group member type"),
            R("dst.dtype != BF16", on="a2a3", when="reduceOp != 'Sum'",
              msg="expects A2/A3 max and min element type to be i32/i16/f16/f32"),
        ),
        domain="every index of dst",
        doc="Combine the tensors of all ranks into one of the root.",
        meaning="Per chunk: acc = group[root]; for r = 0..N-1 except root, in this order: recv = group[r]; "
        "acc = op(acc, recv) with the arithmetic of tadd, tmax or tmin in the element type; then dst = "
        "acc. N = 1 copies. recvPong overlaps loads and keeps the order.",
        notes=("the root alone receives; one page's all-rank result and product are wrong",),
        cpp="pto::comm::TREDUCE<pto::comm::CollEngine::$engine>(pg, $dst, $acc, $recvPing, $recvPong, "
        "$reduceOp)",
        types={
            **_group_types("recvPing", "recvPong", also="acc"), "attr:reduceOp": "Sum",
        },
    ),
    collective(
        "comm.tgather", opcode=0x128D, algorithm="gather of ranks",
        operands="dst=view:out ping:tmp? pong:tmp? group=view* pg=group?",
        format=_text("dst"), dtype_of="dst",
        rules=(
            *_GROUP_RULES, *_staging("group[0]"),
            R("group[0].dtype == dst.dtype", msg="expects dst element type to match group member type"),
            R("group[0].layout == dst.layout"),
            R("dst.dims[-2] >= group.count * group[0].dims[-2]",
              msg="expects dst to hold the rows of every group member"),
            R("dst.dims[-1] == group[0].dims[-1]", msg="expects dst and group members to have the same "
            "columns"),
        ),
        domain="rows 0..N*H of dst",
        doc="Stack the tensors of all ranks into one of the root.",
        meaning="dst[d0, d1, d2, r*H + i, j] = group[r][d0, d1, d2, i, j] for r in 0..N-1, members of "
        "shape (D0, D1, D2, H, W); rows of dst from N*H on are untouched.",
        notes=("the reference asserts equality of the rows; more rows are accepted here",),
        cpp="pto::comm::TGATHER<pto::comm::CollEngine::$engine>(pg, $dst, $ping, $pong)",
        types={**_group_types(), "dst": "!pto.partition_tensor_view<32x64x{T}>"},
    ),
    collective(
        "comm.tscatter", opcode=0x128E, algorithm="scatter to ranks",
        operands="src=view ping:tmp? pong:tmp? group=view:out* pg=group?",
        format=_text("src"), dtype_of="src",
        rules=(
            *_GROUP_RULES, *_staging("group[0]"),
            R("group[0].dtype == src.dtype", msg="expects src element type to match group member type"),
            R("group[0].layout == src.layout"),
            R("src.dims[-2] >= group.count * group[0].dims[-2]",
              msg="expects src to hold the rows of every group member"),
            R("src.dims[-1] == group[0].dims[-1]", msg="expects src and group members to have the same "
            "columns"),
        ),
        domain="every index of every member",
        doc="Split a tensor of the root over all ranks.",
        meaning="group[r][d0, d1, d2, i, j] = src[d0, d1, d2, r*H + i, j] for r in 0..N-1, members of "
        "shape (D0, D1, D2, H, W); further rows of src are ignored.",
        cpp="pto::comm::TSCATTER<pto::comm::CollEngine::$engine>(pg, $src, $ping, $pong)",
        types={**_group_types(), "src": "!pto.partition_tensor_view<32x64x{T}>"},
    ),
)  # fmt: skip
