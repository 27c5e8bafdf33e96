"""Numbers moved up: an extent that a loop computes in every iteration, from what is known before it, belongs
to what was made before it."""

from __future__ import annotations

from ..ir import Block, Op, Value, lies_in


def raised(value: Value, at: Op, loop: Block) -> bool:
    """Whether a number is there before an operation; it is moved before it where that changes nothing. `loop`
    is the body that is being read."""
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
    # What is still being read follows all that was read and is not in it.
    return home is None or not any(lies_in(home, b) for b in here.blocks)
