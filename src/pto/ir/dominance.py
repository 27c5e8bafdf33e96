"""Dominators of blocks."""

from __future__ import annotations

from .core import Block, Region


def dominator_tree(region: Region) -> dict[Block, Block]:
    """Return immediate dominators (Cooper, Harvey, Kennedy); unreachable blocks have the entry."""
    order: list[Block] = []
    seen: set[Block] = set()
    stack: list[tuple[Block, int]] = [(region.blocks[0], 0)]
    seen.add(region.blocks[0])
    while stack:
        block, at = stack.pop()
        targets = [s.block for op in block.ops[-1:] for s in op.successors]
        if at < len(targets):
            stack.append((block, at + 1))
            if targets[at] not in seen:
                seen.add(targets[at])
                stack.append((targets[at], 0))
        else:
            order.append(block)
    order.reverse()
    index = {b: i for i, b in enumerate(order)}
    preds: dict[Block, list[Block]] = {}
    for b in order:
        for op in b.ops[-1:]:
            for s in op.successors:
                preds.setdefault(s.block, []).append(b)
    entry = order[0]
    idom: dict[Block, Block] = {entry: entry}
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new: Block | None = None
            for p in preds.get(b, []):
                if p in idom:
                    new = p if new is None else _meet(p, new, idom, index)
            if new is not None and idom.get(b) is not new:
                idom[b] = new
                changed = True
    del idom[entry]
    for b in region.blocks:
        if b not in seen:
            idom[b] = entry
    return idom


def _meet(a: Block, b: Block, idom: dict[Block, Block], index: dict[Block, int]) -> Block:
    while a is not b:
        while index[a] > index[b]:
            a = idom[a]
        while index[b] > index[a]:
            b = idom[b]
    return a
