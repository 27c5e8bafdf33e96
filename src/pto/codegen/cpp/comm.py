"""Communication: asynchronous sessions and collectives over groups of tensors."""

from __future__ import annotations

from ...ir.core import Operation, Value
from ...isa.enums import ENUMS
from .function import CppFunction, handles


@handles("pto.build_async_session")
def _session(f: CppFunction, op: Operation) -> None:
    engine = f"pto::comm::DmaEngine::{op.attr('engine')}"
    scratch, workspace = op.group("scratch")[0], op.group("workspace")[0]
    memory, config = f.token(), f.token()
    f.line(f"__gm__ uint8_t* {memory} = (__gm__ uint8_t*) {f.unary(workspace)};")
    session = f.declare(op.results[0], "pto::comm::AsyncSession")
    sizes = f"{op.attr('block_bytes')}ULL, {op.attr('comm_block_offset')}ULL, {op.attr('queue_num')}u"
    f.line(f"pto::comm::sdma::SdmaBaseConfig {config} = {{{sizes}}};")
    group = op.attr("channel_group_idx")
    channel = f.helper("uint32_t", "UINT32_MAX" if group is None else f"{group}u")
    number = f.constant("uint32_t", f"{op.attr('sync_id')}u")
    f.line(
        f"pto::comm::BuildAsyncSession<{engine}>({f.text(scratch)}, {memory}, {session}, {number}, {config}, "
        f"{channel});"
    )


@handles("pto.make_prefetch_async_context")
def _prefetch_context(f: CppFunction, op: Operation) -> None:
    type, context = "pto::PrefetchAsyncContext", op.results[0]
    f.declare(context, type, f"{type}((__gm__ uint8_t*) {f.unary(op.operands[0])})")


@handles("pto.get_prefetch_async_session")
def _prefetch_session(f: CppFunction, op: Operation) -> None:
    f.name(op.results[0], f"{f.text(op.operands[0])}.session")


def _group(f: CppFunction, members: list[Value], root: int) -> str:
    """Declare a group of tensors with its root."""
    type = f.view_type(members[0])
    tensors, group = f.token(), f.token()
    f.line(f"{type} {tensors}[{len(members)}] = {{{', '.join(f.tensor(v) for v in members)}}};")
    f.line(
        f"pto::comm::ParallelGroup<{type}> {group} = pto::comm::ParallelGroup<{type}>::Create({tensors}, "
        f"{len(members)}, {root});"
    )
    return group


@handles("pto.make_group")
def _make_group(f: CppFunction, op: Operation) -> None:
    f.name(op.results[0], _group(f, op.group("tensors"), int(op.attr("root"))))


_CALL = {
    "pto.tbroadcast": ("TBROADCAST", ("src", "ping", "pong")),
    "pto.treduce": ("TREDUCE", ("dst", "acc", "recvPing", "recvPong")),
    "pto.comm.tgather": ("TGATHER", ("dst", "ping", "pong")),
    "pto.comm.tscatter": ("TSCATTER", ("src", "ping", "pong")),
}


@handles(*_CALL)
def _collective(f: CppFunction, op: Operation) -> None:
    call, names = _CALL[op.name]
    given = op.get("pg")
    group = f.text(given) if given is not None else _group(f, op.group("group"), int(op.attr("root")))
    arguments = [group, *(f.tensor(v) for name in names for v in op.group(name))]
    if op.name == "pto.treduce":
        arguments.append(ENUMS["reduce_op"].spelling(str(op.attr("reduceOp"))))
    f.line(f"pto::comm::{call}<pto::comm::CollEngine::{op.attr('engine')}>({', '.join(arguments)});")
