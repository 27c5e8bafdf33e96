"""Lower frontend FIFO instructions to one pipe handle with push, pop and free.

    pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %buf : i32)
    %t = pto.tpop_from_aic(%rows, %cols) {split = 0} -> !pto.tile_buf<vec, 16x16xf32, valid=?x?>
    pto.tfree_from_aic {split = 0}
becomes
    %p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8} (%buf : i32) -> !pto.pipe
    %t = pto.declare_tile -> !pto.tile_buf<vec, 16x16xf32, valid=?x?>
    pto.set_validshape %t, %rows, %cols : !pto.tile_buf<vec, 16x16xf32, valid=?x?>
    pto.tpop(%t, %p : !pto.tile_buf<vec, 16x16xf32, valid=?x?>, !pto.pipe) {split = 0}
    pto.tfree(%p : !pto.pipe) {split = 0}

On A5 slots lie in the consumer's on-chip memory (l2l), elsewhere in global memory with a staging buffer for
popped tiles (l2g2l). A pipe has 8 slots, or 4 per direction if it has both.
"""

from __future__ import annotations

from ..ir.attrs import Attribute, IntAttr
from ..ir.core import Block, Operation, Value
from ..ir.dominance import dominator_tree
from ..ir.facts import enclosing, fifo_end, fifo_slots, fifo_use
from ..ir.types import TileBufType, TokenType
from ..isa.machine import BOTH, C2V, SECTIONS, V2C
from .edit import function_name, make, operations, replace_values, rewrite
from .pipeline import PassContext

_PIPE = TokenType("pipe")


def run(ctx: PassContext) -> None:
    for func in ctx.module.functions:
        _Lowering(ctx, func).run()


class _Lowering:
    """The lowering of the frontend FIFO instructions of one function."""

    def __init__(self, ctx: PassContext, func: Operation) -> None:
        self.ctx = ctx
        self.func = func
        self.inits: dict[int, Operation] = {}  # by id
        self.handles: dict[int, Value] = {}
        self.values: dict[Value, Value] = {}  # popped tiles -> declared tiles
        self._trees: dict[Block, dict[Block, Block]] = {}

    def run(self) -> None:
        region = self.func.regions[0]
        found = [op for op in operations(region) if fifo_end(op)]
        if not found:
            return
        for op in found:
            if fifo_use(op) == "open":
                self.inits[_id(op)] = op
        sound = [self._in_its_kernel(op) and self._initialised(op) for op in found]
        if all(sound):
            rewrite(region, self._lowered)
            replace_values(region, self.values)

    # -- conditions ------------------------------------------------------------------------------------------

    def _in_its_kernel(self, op: Operation) -> bool:
        assert op.row is not None
        core = op.row.core
        if any(around.name in SECTIONS for around in enclosing(op)):
            return True  # the verifier has checked the kind of this function
        if self.func.attr("pto.kernel_kind") is not None:
            return True
        self.ctx.report(
            op,
            "PTO-E1003",
            f"must be inside a {core} kernel function",
            expected=f"pto.kernel_kind = #pto.kernel_kind<{core}>",
            got=f"'@{function_name(self.func)}' without a kind",
            help=f"give the function the attribute pto.kernel_kind = #pto.kernel_kind<{core}>",
        )
        return False

    def _initialised(self, op: Operation) -> bool:
        """Check that a use is dominated by its initialisation, and that an initialisation has its buffers."""
        if fifo_use(op) == "open":
            mask = int(op.attr("dir_mask"))
            needed = [name for bit, name in _BUFFERS if mask & bit and op.get(name) is None]
            if not needed or _in_memory(self.ctx, op):
                return True
            self.ctx.report(
                op,
                "PTO-E1107",
                f"requires '{needed[0]}' for a pipe in on-chip memory",
                help=f"add {needed[0]} = %address : i32, from pto.reserve_buffer or "
                "pto.import_reserved_buffer",
            )
            return False
        init = self.inits[_id(op)]
        if self._dominates(init, op):
            return True
        d = self.ctx.report(
            op,
            "PTO-E1104",
            "requires a dominating frontend initialize_pipe op",
            help="initialize the pipe before this use",
        )
        d.notes.append(("initialized here", self.ctx.span(init)))
        return False

    def _dominates(self, init: Operation, op: Operation) -> bool:
        home = init.parent
        assert home is not None
        at: Operation | None = op
        while at is not None and at.parent is not None:
            if at.parent is home:
                return True  # uses before the initialisation have been rejected already
            if at.parent.parent is home.parent and home.parent is not None:
                entry = home.parent.blocks[0]
                tree = self._trees.get(entry)
                if tree is None:
                    tree = self._trees[entry] = dominator_tree(home.parent)
                block: Block | None = at.parent
                while block is not None and block is not home:
                    block = tree.get(block)
                return block is home
            at = at.outer
        return False

    # -- lowering -------------------------------------------------------------------------------------------

    def _lowered(self, op: Operation) -> list[Operation] | None:
        if not fifo_end(op):
            return None
        use = fifo_use(op)
        if use == "open":
            made = _pipe(self.ctx, op)
            self.handles[_id(op)] = made.result
            self.ctx.pipe_ids[made] = _id(op)
            return [made]
        attrs = {key: value for key, value in op.attrs.items() if key != "id"}
        handle = self.handles[_id(op)]
        if use == "pop":
            return self._popped(op, attrs, handle)
        if use == "push":
            lane = op.get("aiv_subblockid")
            tile = op.get("tile")
            return [make("pto.tpush", op, (), attrs, tile=tile, pipe_handle=handle, aiv_subblockid=lane)]
        return [make("pto.tfree", op, (), attrs, entry=op.get("entry"), pipe_handle=handle)]

    def _popped(self, op: Operation, attrs: dict[str, Attribute], handle: Value) -> list[Operation] | None:
        type = op.result.type
        if not isinstance(type, TileBufType):
            self.ctx.report(
                op,
                "PTO-E0303",
                f"cannot pop an entry of type {type}",
                expected="a tile",
                got=str(type),
                help="pop into a view with pto.tpop on the handle of pto.initialize_l2g2l_pipe",
            )
            return None
        tile = make("pto.declare_tile", op, (type,))
        tile.result.name = op.result.name
        self.values[op.result] = tile.result
        made = [tile]
        rows, cols = op.get("valid_row"), op.get("valid_col")
        if rows is not None and cols is not None:
            made.append(
                make("pto.set_validshape", op, source=tile.result, valid_row=rows, valid_col=cols)
            )  # fmt: skip
        lane = op.get("aiv_subblockid")
        made.append(
            make("pto.tpop", op, (), attrs, tile=tile.result, pipe_handle=handle, aiv_subblockid=lane)
        )
        return made


def _id(op: Operation) -> int:
    return int(op.attr("id") or 0)


_BUFFERS = ((C2V, "c2v_consumer_buf"), (V2C, "v2c_consumer_buf"))


def _in_memory(ctx: PassContext, op: Operation) -> bool:
    """Return True if slots lie in global memory, and not in the buffer of the consumer."""
    if not ctx.profile.behaviour.buffer_slots or op.get("gm_slot_tensor") is not None:
        return _slots(op) is not None
    return _slots(op) is not None and all(op.get(name) is None for _, name in _BUFFERS)


def _slots(op: Operation) -> Value | None:
    return op.get("gm_slot_buffer") or op.get("gm_slot_tensor")


def _pipe(ctx: PassContext, op: Operation) -> Operation:
    mask = int(op.attr("dir_mask"))
    local = op.get("v2c_consumer_buf" if mask == V2C else "c2v_consumer_buf")
    peer = op.get("v2c_consumer_buf") if mask == BOTH else None
    slots = op.attrs.get("slot_num") or IntAttr(fifo_slots(op))
    attrs = {"dir_mask": op.attrs["dir_mask"], "slot_size": op.attrs["slot_size"], "slot_num": slots}
    nosplit = {name: op.attrs[name] for name in ("nosplit",) if name in op.attrs}
    if not _in_memory(ctx, op):
        made = make("pto.initialize_l2l_pipe", op, (_PIPE,), attrs | nosplit, local_addr=local,
                    peer_local_addr=peer)  # fmt: skip
    else:
        if local is not None:
            attrs["local_slot_num"] = op.attrs.get("local_slot_num") or slots
        made = make("pto.initialize_l2g2l_pipe", op, (_PIPE,), attrs | nosplit, gm_addr=_slots(op),
                    local_addr=local, peer_local_addr=peer)  # fmt: skip
    made.result.name = f"pipe{_id(op) or ''}"
    return made
