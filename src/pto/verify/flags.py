"""Balance of set_flag/wait_flag and get_buf/rls_buf, decided statically over structured control flow.

Flags are followed as a set of (source pipe, destination pipe, id) that are set. Both branches of an `if`
must agree, a loop body must leave the flags as it found them, and nothing may be left at the end. Functions
with run-time ids, unstructured branches or calls into code with flags are left to the simulator.
"""

from __future__ import annotations

from ..ir.core import Block, Operation
from .context import Context

Flag = tuple[str, str, str]
_SET = ("pto.set_flag", "pto.record_event")
_WAIT = ("pto.wait_flag", "pto.wait_event")
_DYNAMIC = ("pto.set_flag_dyn", "pto.wait_flag_dyn")


class State:
    """Flags that are set and buffer tokens that are held, each with the operation that did it."""

    __slots__ = ("buffers", "flags")

    def __init__(self, flags: dict[Flag, Operation], buffers: dict[tuple[str, str], Operation]) -> None:
        self.flags = flags
        self.buffers = buffers

    def copy(self) -> State:
        return State(dict(self.flags), dict(self.buffers))


def check_flags(context: Context, severity: str = "error") -> None:
    """Report unbalanced flags and buffer tokens of every function."""
    touching = {
        f.attr("sym_name")
        for f in context.module.functions
        if any(op.name in (*_SET, *_WAIT, *_DYNAMIC) for op in f.walk())
    }
    for func in context.module.functions:
        ops = list(func.walk())
        if any(op.name in _DYNAMIC or op.name.startswith("cf.") for op in ops):
            continue
        if any(op.name == "func.call" and op.attr("callee") in touching for op in ops):
            continue
        if not func.regions or len(func.regions[0].blocks) != 1:
            continue
        if not any(op.name in (*_SET, *_WAIT, "pto.get_buf", "pto.rls_buf") for op in ops):
            continue
        _Walker(context, severity).function(func)


class _Walker:
    def __init__(self, context: Context, severity: str) -> None:
        self.context = context
        self.severity = severity
        self.said: set[tuple[int, str]] = set()
        self.unknown: set[Flag | tuple[str, str]] = set()  # already reported: say nothing more of them

    def report(
        self,
        op: Operation,
        code: str,
        message: str,
        help: str,
        other: Operation | None = None,
        note: str = "",
    ) -> None:
        if (id(op), code) in self.said:
            return
        self.said.add((id(op), code))
        d = self.context.report(op, code, message, help=help, severity=self.severity)
        if other is not None:
            d.notes.append((note, self.context.span(other)))

    def function(self, func: Operation) -> None:
        state = State({}, {})
        self.block(func.regions[0].blocks[0], state)
        for flag, op in state.flags.items():
            self.report(
                op,
                "PTO-E0805",
                f"flag {_show(flag)} is still set at the end",
                f"add the matching wait_flag[{', '.join(flag)}]",
            )
        for key, op in state.buffers.items():
            self.report(
                op, "PTO-E0807", f"buffer token {key[1]} is still held at the end", "add the matching rls_buf"
            )

    def block(self, block: Block, state: State) -> None:
        for op in block.ops:
            if op.name in _SET:
                self.set(op, state)
            elif op.name in _WAIT:
                self.wait(op, state)
            elif op.name in ("pto.get_buf", "pto.rls_buf"):
                self.token(op, state)
            elif op.name in ("scf.if", "scf.index_switch"):
                self.branches(op, state)
            elif op.name in ("scf.for", "scf.while"):
                self.loop(op, state)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner, state)

    def set(self, op: Operation, state: State) -> None:
        flag = flag_of(op)
        if flag is None or flag in self.unknown:
            return
        if flag in state.flags:
            self.report(
                op, "PTO-E0804", f"flag {_show(flag)} is set again before it was waited for",
                "wait for it first, or use another event id", state.flags[flag], "first set here",
            )  # fmt: skip
        state.flags[flag] = op

    def wait(self, op: Operation, state: State) -> None:
        flag = flag_of(op)
        if flag is None or flag in self.unknown:
            return
        if flag not in state.flags:
            self.report(
                op,
                "PTO-E0803",
                f"waits for flag {_show(flag)}, which no path to here has set: the pipe would hang",
                f"add set_flag[{', '.join(flag)}] after the producer",
            )
            return
        del state.flags[flag]

    def token(self, op: Operation, state: State) -> None:
        key = (str(op.attr("op_type") or op.attr("pipe") or ""), str(op.attr("buf_id")))
        if op.get("buf_id_dyn") is not None or key in self.unknown:
            return  # a run-time id is left to the simulator
        if op.name == "pto.get_buf":
            if key in state.buffers:
                self.report(
                    op,
                    "PTO-E0806",
                    f"buffer token {key[1]} is taken twice by {key[0]}",
                    "release it first",
                    state.buffers[key],
                    "first taken here",
                )
            state.buffers[key] = op
        elif state.buffers.pop(key, None) is None:
            self.report(
                op,
                "PTO-E0806",
                f"buffer token {key[1]} is released but not held by {key[0]}",
                "take it with get_buf first",
            )

    def branches(self, op: Operation, state: State) -> None:
        """Alternatives must leave the same flags and tokens; what they disagree on is unknown after."""
        outcomes: list[State] = []
        for region in op.regions:
            inner = state.copy()
            for block in region.blocks:
                self.block(block, inner)
            outcomes.append(inner)
        first = outcomes[0]
        for other in outcomes[1:]:
            for flag in sorted(set(first.flags) ^ set(other.flags)):
                where = first.flags.get(flag) or other.flags.get(flag)
                self.report(
                    op,
                    "PTO-E0808",
                    f"flag {_show(flag)} is set on one branch only",
                    "set or wait for it on both branches",
                    where,
                    "set here",
                )
                self.unknown.add(flag)
            for key in sorted(set(first.buffers) ^ set(other.buffers)):
                where = first.buffers.get(key) or other.buffers.get(key)
                self.report(
                    op,
                    "PTO-E0806",
                    f"buffer token {key[1]} is held on one branch only",
                    "take and release it on the same path",
                    where,
                    "taken here",
                )
                self.unknown.add(key)
        state.flags = {f: o for f, o in first.flags.items() if all(f in s.flags for s in outcomes)}
        state.buffers = {k: o for k, o in first.buffers.items() if all(k in s.buffers for s in outcomes)}

    def loop(self, op: Operation, state: State) -> None:
        before, held = set(state.flags), set(state.buffers)
        for region in op.regions:
            for block in region.blocks:
                self.block(block, state)
        for flag in sorted(set(state.flags) - before):
            self.report(
                state.flags[flag],
                "PTO-E0804",
                f"flag {_show(flag)} is set once more in every iteration",
                "wait for it inside the loop",
                op,
                "in this loop",
            )
            del state.flags[flag]
            self.unknown.add(flag)
        for flag in sorted(before - set(state.flags)):
            self.report(
                op,
                "PTO-E0803",
                f"every iteration waits for flag {_show(flag)}, but it is set only before the loop",
                "set it again inside the loop",
            )
            self.unknown.add(flag)
        for key in sorted(set(state.buffers) ^ held):
            self.report(
                state.buffers.get(key, op),
                "PTO-E0806",
                f"buffer token {key[1]} is taken or released once more in every iteration",
                "take and release it inside the loop",
            )
            state.buffers.pop(key, None)
            self.unknown.add(key)


def flag_of(op: Operation) -> Flag | None:
    """(source pipe, destination pipe, event id) of a flag operation."""
    from ..isa.enums import SYNC_OP_PIPE

    if op.name in ("pto.set_flag", "pto.wait_flag"):
        parts = tuple(str(op.attr(n)) for n in ("src_pipe", "dst_pipe", "event_id"))
    else:
        src, dst = (SYNC_OP_PIPE.get(str(op.attr(n)), "") for n in ("src_op", "dst_op"))
        parts = (src, dst, str(op.attr("event_id")))
    return (parts[0], parts[1], parts[2]) if all(p and p != "None" for p in parts) else None


def _show(flag: Flag) -> str:
    return f"({flag[0]} -> {flag[1]}, {flag[2]})"
