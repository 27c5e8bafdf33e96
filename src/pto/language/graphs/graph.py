"""Static task graph of an orchestration: dependencies between calls, and conflicts without one.

Dependencies are those of the task runtime: a task waits for every earlier task that writes one of its `in` or
`inout` tensors. An `out` tensor makes a task wait only if it is `ordered`, and no task waits for readers. So
a task that overwrites a tensor needs another order after the earlier readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...isa.record import Record
from ..ir import IN, INOUT, OUT, VIEWS, Block, Function, Op, TensorType, Value, index, is_tensor, values_in


class WindowBox(Record):
    """A window: its offset in its storage and its size; None if it is not a box."""

    offsets: tuple[Any, ...] | None
    sizes: tuple[Any, ...] = ()
    whole: bool = False


class GraphAccess(Record):
    """An access of a task to a storage. `all` means that the task uses the whole window in every run, and not
    a part.
    """

    storage: Value
    box: WindowBox
    direction: str
    all: bool = True
    through: frozenset[Op] = frozenset()  # loops that handed the storage on from an earlier iteration


class Site:
    """A call of a kernel in the program text, which may run as several tasks."""

    def __init__(self, number: int, op: Op, ordered: Sequence[int]) -> None:
        self.number = number
        self.op = op
        self.callee: Function = op.args["callee"]
        self.around = list(_around(op))  # loops and regions, the innermost first
        self.tensors = [
            (value, p)
            for value, p in zip(op.args["args"], self.callee.params, strict=False)
            if isinstance(value, Value) and isinstance(value.type, TensorType)
        ]
        waiting = [op.args["args"][i] for i in ordered]
        self.accesses: list[GraphAccess] = []
        for value, p in self.tensors:
            found = storages(value)
            whole = len(found) == 1 and _takes_all(self.callee, p.value)
            box, direction = _box(value), INOUT if value in waiting and p.direction == OUT else p.direction
            self.accesses += [GraphAccess(s, box, direction, whole, loops) for s, loops in found.items()]
        manual = any(
            o.name == "region" and getattr(o.args.get("mode"), "name", "") == "MANUAL" for o in self.around
        )
        self.tracked = not manual


def ordered(function: Function) -> dict[Op, list[int]]:
    """Return the outputs of each task that wait for earlier writers of the same tensor, as InOut parameters
    do: in sequential loops, after a writer in this function, and of InOut parameters of this function."""
    found: dict[Op, list[int]] = {}
    written = {p.value for p in function.params if p.direction == INOUT}

    def visit(block: Block, in_loop: bool) -> None:
        for op in block.ops:
            if op.name == "call":
                callee: Function = op.args["callee"]
                ways = {p.value: p.direction for p in callee.params}
                uses = enumerate(zip(op.args["args"], map(ways.get, callee.body.args), strict=True))
                used = [(i, storages(value), way) for i, (value, way) in uses if is_tensor(value)]
                found[op] = [i for i, of, way in used if way == OUT and (in_loop or written & of.keys())]
                written.update(storage for _, of, way in used if way != IN for storage in of)
            sequential = op.name == "while" or (op.name == "for" and op.args["kind"] != "parallel")
            for inner in op.blocks:
                visit(inner, in_loop or sequential)

    visit(function.body, False)
    return found


def _takes_all(function: Function, param: Value) -> bool:
    """Return True if an operation of a function loads or stores all of a parameter."""
    for op in function.walk():
        a = op.args
        if op.name == "call":
            pairs = zip(a["args"], a["callee"].params, strict=False)
            if any(v is param and _takes_all(a["callee"], p.value) for v, p in pairs):
                return True
        at, shape = None, ()
        if op.name == "load" and _sliced_whole(a["tensor"]) is param:
            at, shape = a["offsets"], a["valid_shape"] or a["shapes"]
        elif op.name == "store" and _sliced_whole(a["output_tensor"]) is param:
            at, shape = a["offsets"], a["tile"].type.extent
        if (
            at is not None
            and all(index.known(o) == 0 for o in at)
            and index.same_dims(shape, param.type.shape)
        ):
            return True
    return False


def _sliced_whole(value: Value) -> Value:
    """Return the tensor whose elements a value consists of entirely, as in `x[:]`."""
    while value.op is not None and value.op.name == "slice":
        a = value.op.args
        whole = index.same_dims(a["shape"], a["x"].type.shape) and not a.get("drop_dims")
        if not whole or any(index.known(o) != 0 for o in a["offset"]):
            break
        value = a["x"]
    return value


def _around(op: Op) -> Iterator[Op]:
    outer = op.parent.outer if op.parent is not None else None
    while isinstance(outer, Op):
        yield outer
        outer = outer.parent.outer if outer.parent is not None else None


def storages(
    value: Value, seen: frozenset[Value] = frozenset(), through: frozenset[Op] = frozenset()
) -> dict[Value, frozenset[Op]]:
    """Return the storages that a tensor may be a part of, each with the loops that carry it between
    iterations. There are several if loops or branches choose.
    """
    value = _viewed(value)
    if value in seen:
        return {}
    op = value.op
    outer = value.owner.outer if isinstance(value.owner, Block) else None
    sources: list[tuple[Value, frozenset[Op]]] = []
    if op is not None and op.name in ("for", "while"):
        sources = [(v[value.index], through) for v in (op.args["init_values"], op.blocks[-1].yielded)]
    elif op is not None and op.name in ("if", "region"):
        sources = [(b.yielded[value.index], through) for b in op.blocks]
    elif isinstance(outer, Op) and outer.name in ("for", "while"):
        at = value.index - (outer.name == "for")
        sources = [
            (outer.args["init_values"][at], through),
            (outer.blocks[-1].yielded[at], through | {outer}),
        ]
    if not sources:
        return {value: through}
    found: dict[Value, frozenset[Op]] = {}
    for source, loops in sources:
        if isinstance(source, Value):
            for storage, more in storages(source, seen | {value}, loops).items():
                found[storage] = found.get(storage, frozenset()) | more
    return found


def _viewed(value: Value) -> Value:
    while value.op is not None and value.op.name in VIEWS:
        value = next(iter(value.op.args.values()))
    return value


def _box(value: Value) -> WindowBox:
    """Return the position of a window, by adding up the slices that made it."""
    offsets: list[Any] | None = None
    sizes: list[Any] = []
    while value.op is not None and value.op.name in VIEWS:
        a = value.op.args
        if value.op.name != "slice" or offsets is not None:
            return WindowBox(None)
        offsets, sizes = list(a["offset"]), list(a["shape"])
        value = a["x"]
    if offsets is None:
        return WindowBox(tuple(0 for _ in value.type.shape), tuple(value.type.shape), True)
    return WindowBox(tuple(offsets), tuple(sizes))


def overlap(a: WindowBox, b: WindowBox) -> bool | None:
    """Return True if two windows of one storage overlap; None if it depends on the run."""
    if a.whole or b.whole:
        return True
    if a.offsets is None or b.offsets is None or len(a.offsets) != len(b.offsets):
        return None
    certain = True
    for p, n, q, m in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True):
        by = index.known_difference(q, p)
        if by is None:
            certain = False
            continue
        n, m = index.known(n), index.known(m)
        if by == 0:
            continue
        if (n is not None and by >= n) or (m is not None and -by >= m):
            return False
        if n is None or m is None:
            certain = False
    return True if certain else None


class Edge(Record):
    """A relation between two calls. `kind`: waits or overwrites. If the first call belongs to an earlier
    iteration, `again` is the loop. `certain` means that the relation holds in every run.
    """

    earlier: Site
    later: Site
    kind: str
    names: tuple[str, ...]
    again: Op | None = None
    certain: bool = True


class CallGraph:
    """The calls of an orchestration, their dependencies, and their unordered conflicts."""

    def __init__(self, entry: Function) -> None:
        ops = [o for o in entry.walk() if o.name == "call"]
        waiting = ordered(entry)
        self.sites = [Site(n, op, waiting[op]) for n, op in enumerate(ops, 1)]
        users: dict[Value, list[Site]] = {}
        for site in self.sites:
            for storage in dict.fromkeys(a.storage for a in site.accesses):
                users.setdefault(storage, []).append(site)
        found: dict[tuple[Any, ...], dict[str, bool]] = {}
        for storage, sites in users.items():
            for later in sites:
                for earlier, kind, loop, certain in _relations(later, sites, storage):
                    names = found.setdefault((later, earlier, kind, loop), {})
                    names[name_of(storage)] = names.get(name_of(storage), False) or certain
        self.edges = [
            Edge(earlier, later, kind, tuple(n if sure else f"{n}?" for n, sure in names.items()), loop,
                 all(names.values()))
            for (later, earlier, kind, loop), names in found.items()
        ]  # fmt: skip
        self.edges.sort(key=lambda e: (e.later.number, e.earlier.number))

    def hazards(self) -> list[Edge]:
        """Return calls that overwrite, in every run, a tensor that an earlier call uses, without a chain of
        dependencies."""
        after: dict[Site, set[Site]] = {}
        for e in self.edges:
            if e.kind == "waits":
                after.setdefault(e.earlier, set()).add(e.later)
        for site in self.sites:
            for d in values_in(site.op.args.get("deps")):
                for other in self.sites:
                    if d.op is other.op or d.op is None or d.op.name != "call":
                        after.setdefault(other, set()).add(site)
        return [e for e in self.edges if e.kind == "overwrites" and e.certain and not _reaches(after, e)]


def _reaches(after: dict[Site, set[Site]], e: Edge) -> bool:
    seen: set[Site] = set()
    todo = list(after.get(e.earlier, ()))
    while todo:
        site = todo.pop()
        if site is e.later:
            return True
        if site not in seen:
            seen.add(site)
            todo += after.get(site, ())
    return False


#: An earlier call, the kind of relation, the loop of earlier iterations, True if certain.
Relation = tuple["Site", str, "Op | None", bool]


def _relations(later: Site, users: list[Site], storage: Value) -> Iterator[Relation]:
    """Yield the relations of a call to others through one storage: to earlier calls, up to the last call that
    waits for all before it, and to calls of earlier iterations of the enclosing loop.
    """
    reads = all(b.direction != OUT for b in later.accesses if b.storage is storage)
    for earlier in reversed(users):
        if earlier.number < later.number and not _apart(earlier.op, later.op):
            yield from _between(earlier, later, storage, None)
            if reads and _closes(earlier, later, storage):
                break
    loop = next((o for o in later.around if o.name in ("for", "while")), None)
    if loop is not None and loop.args.get("kind") != "parallel":
        for earlier in users:
            if loop in earlier.around:
                yield from _between(earlier, later, storage, loop)


def _closes(earlier: Site, later: Site, storage: Value) -> bool:
    """Return True if a wait for a call covers all earlier writers of the storage: the call always runs, and
    takes the whole storage as InOut."""
    always = later.around[len(later.around) - len(earlier.around) :] == earlier.around
    mine = [a for a in earlier.accesses if a.storage is storage and not a.through]
    return always and earlier.tracked and any(a.direction == INOUT and a.box.whole for a in mine)


def _between(earlier: Site, later: Site, storage: Value, loop: Op | None) -> Iterator[Relation]:
    """Yield the relations between two calls in the same iteration or in different iterations of a loop."""
    if not (earlier.tracked and later.tracked):
        return
    for a in earlier.accesses:
        for b in later.accesses:
            if a.storage is not storage or b.storage is not storage:
                continue
            kind = _kind(a.direction, b.direction)
            shared = _shared(a, b, loop) if kind else False
            if shared is not False:
                whole = kind == "waits" or (a.all and b.all)
                yield earlier, kind, loop, shared is True and whole


def _apart(one: Op, other: Op) -> bool:
    """Return True if two calls are in different branches, so that one iteration runs only one of them."""
    arms: dict[Any, Any] = {}
    for op in (one, other):
        block = op.parent
        while block is not None and isinstance(block.outer, Op):
            if block.outer.name == "if" and arms.setdefault(block.outer, block) is not block:
                return True
            block = block.outer.parent
    return False


def _kind(first: str, second: str) -> str:
    """Return the runtime's ordering of two accesses to the same memory. An `out` does not wait for writers,
    and no task waits for a reader.
    """
    if second == OUT or (first == IN and second == INOUT):
        return "overwrites"
    return "" if first == IN else "waits"


def _shared(a: GraphAccess, b: GraphAccess, loop: Op | None) -> bool | None:
    if loop is None:
        return overlap(a.box, b.box)
    made = a.storage.op
    if made is not None and loop in _around(made):  # each iteration has its own storage
        return overlap(a.box, b.box) if loop in b.through and loop not in a.through else False
    if not _varies(a.box) and not _varies(b.box):
        return overlap(a.box, b.box)
    return _turns(a.box, b.box, loop)


def _varies(box: WindowBox) -> bool:
    return box.offsets is None or any(index.affine(o)[1] for o in box.offsets)


def _turns(a: WindowBox, b: WindowBox, loop: Op) -> bool | None:
    """Return False if the windows of different iterations are disjoint because they move with the counter;
    None if that is unknown.
    """
    if loop.name != "for" or a.offsets is None or b.offsets is None or len(a.offsets) != len(b.offsets):
        return None
    counter = loop.blocks[0].args[0]
    step = index.known(loop.args["step"])
    for p, n, q, m in zip(a.offsets, a.sizes, b.offsets, b.sizes, strict=True):
        by = index.affine(p)[1].get(counter, 0)
        length = max(index.known(n) or 0, index.known(m) or 0)
        if step and by and index.known_difference(p, q) == 0 and length and abs(by * step) >= length:
            return False
    return None


def name_of(value: Value) -> str:
    return value.name or "a tensor"
