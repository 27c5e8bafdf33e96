"""What an operation or a module is, apart from whether it is right: pipe, layouts, what rules see, entries.

Every stage asks here; a fact that the text leaves open is None or empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..isa.enums import SYNC_OP_PIPE
from ..isa.machine import BOTH, C2V
from ..isa.profiles import Profile, resolve
from ..isa.row import TOUCHING, Row
from ..isa.rules import holds
from ..isa.tile import LAYOUTS
from .core import Block, Module, Operation, Value, constant_of, entry_mark
from .types import MemRefType, PtrType, Type, ViewType

# --- a module


def module_profile(module: Module, target: str | Profile | None = None) -> Profile:
    """The profile a module is held to: the given one, else its attribute, else the default."""
    written = module.attrs.get("pto.target_arch")
    return resolve(target, str(written.value) if written is not None else None)


def is_manual(module: Module, level: str | None) -> bool:
    """Manual mode (level3): asked for, or the program carries addresses of its own."""
    if level is not None:
        return level == "level3"
    return any(
        places_tile(op) or (op.name == "pto.alloc_tile" and op.get("addr") is not None)
        for op in module.walk()
    )


def places_tile(op: Operation) -> bool:
    """Whether it gives a tile an address; a view takes a pointer in either mode."""
    return op.name == "pto.tassign" and not isinstance(op.operands[0].type, ViewType)


#: Arguments that the launch itself fills in where the caller leaves them out: the index of the block, the
#: number of blocks, the index of the vector core.
SPMD = ("__pypto_spmd_block_idx", "__pypto_spmd_block_num", "__pypto_spmd_subblock_idx")


def entries(functions: dict[str, Operation]) -> list[Operation]:
    """Kernel entries: marked ones, or the only function that has a body."""
    marked = [f for f in functions.values() if entry_mark(f)]
    if marked:
        return marked
    defined = [f for f in functions.values() if f.regions[0].blocks]
    return defined if len(defined) == 1 else []


def halves(functions: dict[str, Operation]) -> dict[str, tuple[Operation, Operation]]:
    """Kernels whose cube and vector side are functions of their own, by name: those called `X_aic` and
    `X_aiv`, or else the only function of each kind, where both take the same arguments but for those that the
    launch fills in."""
    named = [n[:-4] for n in functions if n.endswith("_aic") and f"{n[:-4]}_aiv" in functions]
    if named:
        return {n: (functions[f"{n}_aic"], functions[f"{n}_aiv"]) for n in named}
    kinds = {n: str(f.attr("pto.kernel_kind")) for n, f in functions.items()}
    if sorted(kinds.values()) != ["cube", "vector"]:
        return {}
    cube, vector = sorted(functions, key=lambda n: kinds[n])
    if _given(functions[cube]) != _given(functions[vector]):
        return {}
    return {cube: (functions[cube], functions[vector])}


def _given(function: Operation) -> list[Type]:
    """Types of the arguments that a caller gives."""
    return [a.type for block in function.regions[0].blocks[:1] for a in block.args if a.name not in SPMD]


# --- an operation

#: Operations whose regions may run more than once.
LOOPS = ("scf.for", "scf.while")


class Arg:
    """An operand as rules see it: the facts of its type, plus what is known of its value."""

    __slots__ = ("_profile", "_type", "_value", "_view_layout")

    def __init__(self, type: Type, value: Value | None, profile: Profile, view_layout: str = "") -> None:
        self._type = type
        self._value = value
        self._profile = profile
        self._view_layout = view_layout  # where the operation gives one of its own

    def __getattr__(self, fact: str) -> Any:
        if fact == "const":
            return constant_of(self._value)
        if fact == "layout" and isinstance(self._type, ViewType):
            return self._view_layout or view_layout(self._value)
        if fact in ("blayout", "layout") and getattr(self._type, "loc", "") == "left":
            return left_layout(self._type, self._profile, fact)
        return getattr(self._type, fact, None)


def left_layout(type: Type, profile: Profile, fact: str) -> str | None:
    """The block layout of a Left tile is the target's, whatever the type says."""
    if fact == "blayout":
        return profile.left_blayout
    return LAYOUTS.get((profile.left_blayout, getattr(type, "slayout", "")))


class Args(tuple[Arg, ...]):
    """The values of a variadic operand."""

    __slots__ = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self)

    kind = "list"


def environment(op: Operation, row: Row, profile: Profile) -> dict[str, Any]:
    """What the rules of a row see of an operation."""
    env: dict[str, Any] = {"isa": profile.isa}
    for attr in row.attrs:
        env[attr.name] = op.attr(attr.name)
    own = str(op.attrs["layout"].value).upper() if "layout" in op.attrs else ""
    at = 0
    for i, declared in enumerate(row.operands):
        count = 1 if op.segments is None else op.segments[i]
        if declared.variadic:
            env[declared.name] = Args([Arg(v.type, v, profile) for v in op.operands[at : at + count]])
        else:
            env[declared.name] = Arg(op.operands[at].type, op.operands[at], profile, own) if count else None
        at += count
    for declared, result in zip(row.results, op.results, strict=False):
        env.setdefault(declared.name, Arg(result.type, result, profile))
    for declared in row.results[len(op.results) :]:
        env.setdefault(declared.name, None)
    return env


def pipe_of(op: Operation, profile: Profile) -> str:
    """The pipe an operation is queued on, without `PIPE_`; empty for one that occupies none."""
    row = op.row
    if row is None or not row.pipe:
        return ""
    found = row.pipe
    if not isinstance(found, str):
        env = environment(op, row, profile)
        found = next((pipe for when, pipe in found if not when or holds(when, env)), "")
    if found in row.attr_index:
        written = str(op.attr(found))
        found = SYNC_OP_PIPE.get(written, written)
    return found.removeprefix("PIPE_")


def fifo_use(op: Operation) -> str:
    """What an operation does to a FIFO, a word of `FIFO`; empty for others."""
    return op.row.fifo if op.row is not None else ""


def concerns_fifos(op: Operation) -> bool:
    """Whether an operation serves a FIFO, or is about the buffer that one lies in."""
    return bool(fifo_use(op)) or op.name in ("pto.reserve_buffer", "pto.import_reserved_buffer")


def fifo_slots(op: Operation) -> int:
    """Slots of the FIFO that an operation opens: what it says, else 4 in each of two directions, or 8."""
    return int(op.attr("slot_num") or (4 if int(op.attr("dir_mask") or C2V) == BOTH else 8))


def fifo_end(op: Operation) -> str:
    """The kind of core of a frontend FIFO instruction, which names its FIFO by a number; empty for others,
    which have a handle."""
    return op.row.core if op.row is not None and op.row.fifo else ""


def makes_fifo(op: Operation) -> bool:
    """Whether an operation makes the handle of a FIFO."""
    return fifo_use(op) == "open" and not fifo_end(op)


def storage_source(op: Operation) -> Value | None:
    """The value whose storage an operation gives another name to."""
    return op.get(op.row.names) if op.row is not None and op.row.names else None


#: How a pointer or a window is made from another value, in words; "" where that is no news.
_MADE = {
    "pto.addptr": "%{} moved on", "pto.castptr": "made from %{}", "pto.tile_buf_addr": "the address of %{}",
    "pto.partition_view": "a window of %{}", "pto.make_tensor_view": "",
}  # fmt: skip


def provenance(value: Value) -> Iterator[tuple[str, Operation]]:
    """Yield how a pointer or a window was made, from its last step back to its first, as far as one function
    shows it."""
    for _ in range(8):
        op = value.op
        if op is None or op.name not in _MADE:
            return
        source = op.operands[0]
        if how := _MADE[op.name]:
            yield f"%{value.name} is {how.format(source.name)} here", op
        value = source


def touches_global(op: Operation) -> bool:
    """Whether an operation reads or writes global memory."""
    row = op.row
    if row is None or row.effect not in TOUCHING:
        return False
    return row.fifo in ("push", "pop") or any(in_global(v.type) for v in op.operands)


#: Effects of instructions that check what they are given, or wait, when they run.
_FALLIBLE = ("memory", "sync", "alloc", "config")
_DIVISIONS = ("div", "rem")
#: What does so though its effect is none: ends the program, or looks whether an index is inside.
_CHECKING = ("trap", "local array", "event ids")


def divides(row: Row) -> bool:
    """Return True if an instruction divides integers, which fails for a divisor of 0."""
    divided = row.dialect == "arith" and any(word in row.name for word in _DIVISIONS)
    return row.dialect == "affine" or (divided and row.name.endswith("i"))


def may_fail(op: Operation) -> bool:
    """Whether an operation can end a run: what a place in the source is kept for."""
    row = op.row
    if row is None or row.order == "fence":
        return False
    if row.dialect == "affine":  # by a division
        return True
    if row.dialect == "arith":
        return any(word in row.name for word in _DIVISIONS)
    if op.name == "scf.for":  # by a step that is not positive
        return constant_of(op.operands[2]) is None
    if op.name in ("pto.subview", "pto.subset"):  # outside the memory of its tile
        return any(constant_of(offset) is None for offset in op.group("offsets"))
    return touches_global(op) or (
        row.dialect in ("pto", "memref") and (row.effect in _FALLIBLE or row.algorithm in _CHECKING)
    )


def may_repeat(op: Operation) -> bool:
    """Whether an operation can lead back to an earlier one."""
    return op.name in ("scf.for", "scf.while") or bool(op.successors)


def in_global(type: Type) -> bool:
    """Whether values of a type are places in global memory."""
    return (
        isinstance(type, ViewType)
        or (isinstance(type, PtrType) and type.space == "gm")
        or (isinstance(type, MemRefType) and not type.local)
    )


def memref_strides(type: MemRefType) -> tuple[tuple[int, ...], int] | None:
    """Static strides and offset of a memref type; None where the layout leaves them open."""
    dims = [d or 0 for d in type.dims]
    if not type.layout_text:
        strides = [1]
        for d in reversed(dims[1:]):
            strides.insert(0, strides[0] * d)
        return tuple(strides[: len(dims)]), 0
    text = type.layout_text
    inside = text[text.find("[") + 1 : text.find("]")]
    words = [w.strip() for w in inside.split(",")] if inside.strip() else []
    offset = text.partition("offset:")[2].strip(" >") or "0"
    if "?" in words or not all(w.lstrip("-").isdigit() for w in words):
        return None
    return tuple(int(w) for w in words), int(offset) if offset.isdigit() else 0


def view_layout(value: Value | None) -> str | None:
    """Layout a view was declared with, upper case; None where it is left to inference."""
    while value is not None and value.op is not None:
        op = value.op
        found = op.attrs.get("layout")
        if found is not None:
            return str(found.value).upper()
        if op.name != "pto.partition_view":
            return None
        value = op.operands[0]
    return None


def function_of(place: Operation | Block) -> Operation | None:
    """The function that an operation or a block stands in; a function stands in itself."""
    return next((op for op in enclosing(place) if op.name == "func.func"), None)


def enclosing(place: Operation | Block) -> Iterator[Operation]:
    """An operation (or the one a block belongs to) and everything it stands in, from the inside out."""
    op = place if isinstance(place, Operation) else place.outer
    while op is not None:
        yield op
        op = op.outer
