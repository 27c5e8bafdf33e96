"""Hoisting of numbers: move an extent that an iteration computes from loop invariants before the loop's
memory."""

from __future__ import annotations

from ..ir import Block, Op, Value, lies_in


def raised(value: Value, at: Op, loop: Block) -> bool:
    """Return True if a number is available before an operation, after moving it there if possible. `loop` is
    the body being read."""
    if _precedes(value, at, loop):
        return True
    op = value.op
    if op is None or op.parent is None or not (op.name.startswith("scalar.") or op.name == "const"):
        return False
    if not all(raised(v, at, loop) for v in op.operands()):
        return False
    assert at.parent is not None
    op.parent.ops.remove(op)
    at.parent.ops.insert(at.parent.ops.index(at), op)
    op.parent = at.parent
    return True


def _precedes(value: Value, at: Op, loop: Block) -> bool:
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent if owner is not None else None
    if home is not None and lies_in(home, loop):
        return False
    here = at
    while here.parent is not None:
        block = here.parent
        if block is home:
            return owner is block or block.ops.index(value.owner) < block.ops.index(here)  # type: ignore[arg-type]
        if not isinstance(block.outer, Op):
            break
        here = block.outer
    # Blocks that are still being read follow all finished blocks that do not contain them.
    return home is None or not any(lies_in(home, b) for b in here.blocks)
