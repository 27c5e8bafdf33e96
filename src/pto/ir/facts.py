"""Facts about an operation or a module, apart from its legality: pipe, layouts, inputs of rules, entries.

All stages use these functions; a fact that the text leaves open is None or empty.
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
    """Return the profile of a module: the given one, else its attribute, else the default."""
    written = module.attrs.get("pto.target_arch")
    return resolve(target, str(written.value) if written is not None else None)


def is_manual(module: Module, level: str | None) -> bool:
    """Return True for manual mode (level3): requested, or the program has its own addresses."""
    if level is not None:
        return level == "level3"
    return any(
        places_tile(op) or (op.name == "pto.alloc_tile" and op.get("addr") is not None)
        for op in module.walk()
    )


def places_tile(op: Operation) -> bool:
    """Return True if an operation gives a tile an address; a view takes a pointer in either mode."""
    return op.name == "pto.tassign" and not isinstance(op.operands[0].type, ViewType)


#: Arguments that the launch fills in if the caller leaves them out: the index of the block, the number of
#: blocks, the index of the vector core.
SPMD = ("__pypto_spmd_block_idx", "__pypto_spmd_block_num", "__pypto_spmd_subblock_idx")


def entries(functions: dict[str, Operation]) -> list[Operation]:
    """Return kernel entries: marked ones, or the only function that has a body."""
    marked = [f for f in functions.values() if entry_mark(f)]
    if marked:
        return marked
    defined = [f for f in functions.values() if f.regions[0].blocks]
    return defined if len(defined) == 1 else []


def halves(functions: dict[str, Operation]) -> dict[str, tuple[Operation, Operation]]:
    """Return kernels with separate functions for cube and vector, by name: those called `X_aic` and `X_aiv`,
    or else the only function of each kind, if both take the same arguments except those that the launch fills
    in."""
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
    """Return types of the arguments from the caller."""
    return [a.type for block in function.regions[0].blocks[:1] for a in block.args if a.name not in SPMD]


# --- an operation

#: Operations whose regions may run more than once.
LOOPS = ("scf.for", "scf.while")


class Arg:
    """An operand for rules: the facts of its type, and the known facts of its value."""

    __slots__ = ("_profile", "_type", "_value", "_view_layout")

    def __init__(self, type: Type, value: Value | None, profile: Profile, view_layout: str = "") -> None:
        self._type = type
        self._value = value
        self._profile = profile
        self._view_layout = view_layout  # the layout of the view, if the operation defines it

    def __getattr__(self, fact: str) -> Any:
        if fact == "const":
            return constant_of(self._value)
        if fact == "layout" and isinstance(self._type, ViewType):
            return self._view_layout or view_layout(self._value)
        if fact in ("blayout", "layout") and getattr(self._type, "loc", "") == "left":
            return left_layout(self._type, self._profile, fact)
        return getattr(self._type, fact, None)


def left_layout(type: Type, profile: Profile, fact: str) -> str | None:
    """Return the block layout of a Left tile, which the target decides, and not the type."""
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
    """Return the inputs of the rules of a row for an operation."""
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
    """Return the pipe of an operation, without `PIPE_`; empty for an operation without a pipe."""
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
    """Return the effect of an operation on a FIFO, a word of `FIFO`; empty if it has none."""
    return op.row.fifo if op.row is not None else ""


def concerns_fifos(op: Operation) -> bool:
    """Return True if an operation uses a FIFO, or the buffer of one."""
    return bool(fifo_use(op)) or op.name in ("pto.reserve_buffer", "pto.import_reserved_buffer")


def fifo_slots(op: Operation) -> int:
    """Return the slots of the FIFO of an operation: its own number, else 4 per direction of two, or 8."""
    return int(op.attr("slot_num") or (4 if int(op.attr("dir_mask") or C2V) == BOTH else 8))


def fifo_end(op: Operation) -> str:
    """Return the kind of core of a frontend FIFO instruction, which names its FIFO by a number; empty for
    other operations, which have a handle.
    """
    return op.row.core if op.row is not None and op.row.fifo else ""


def makes_fifo(op: Operation) -> bool:
    """Return True if an operation makes the handle of a FIFO."""
    return fifo_use(op) == "open" and not fifo_end(op)


def storage_source(op: Operation) -> Value | None:
    """Return the value whose storage an operation gives another name to."""
    return op.get(op.row.names) if op.row is not None and op.row.names else None


#: Words for the derivation of a pointer or a window from another value; "" for trivial steps.
_MADE = {
    "pto.addptr": "%{} moved on", "pto.castptr": "made from %{}", "pto.tile_buf_addr": "the address of %{}",
    "pto.partition_view": "a window of %{}", "pto.make_tensor_view": "",
}  # fmt: skip


def provenance(value: Value) -> Iterator[tuple[str, Operation]]:
    """Yield the derivation of a pointer or a window, from its last step back to its first, within one
    function."""
    for _ in range(8):
        op = value.op
        if op is None or op.name not in _MADE:
            return
        source = op.operands[0]
        if how := _MADE[op.name]:
            yield f"%{value.name} is {how.format(source.name)} here", op
        value = source


def touches_global(op: Operation) -> bool:
    """Return True if an operation reads or writes global memory."""
    row = op.row
    if row is None or row.effect not in TOUCHING:
        return False
    return row.fifo in ("push", "pop") or any(in_global(v.type) for v in op.operands)


#: Effects of instructions that check their operands, or wait, at run time.
_FALLIBLE = ("memory", "sync", "alloc", "config")
_DIVISIONS = ("div", "rem")
#: Operations without an effect that can end a run nevertheless: they end the program, or check an index.
_CHECKING = ("trap", "local array", "event ids")


def divides(row: Row) -> bool:
    """Return True if an instruction divides integers, which fails for a divisor of 0."""
    divided = row.dialect == "arith" and any(word in row.name for word in _DIVISIONS)
    return row.dialect == "affine" or (divided and row.name.endswith("i"))


def may_fail(op: Operation) -> bool:
    """Return True if an operation can end a run: such operations keep their source locations."""
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
    """Return True if an operation can lead back to an earlier one."""
    return op.name in ("scf.for", "scf.while") or bool(op.successors)


def in_global(type: Type) -> bool:
    """Return True if values of a type are places in global memory."""
    return (
        isinstance(type, ViewType)
        or (isinstance(type, PtrType) and type.space == "gm")
        or (isinstance(type, MemRefType) and not type.local)
    )


def memref_strides(type: MemRefType) -> tuple[tuple[int, ...], int] | None:
    """Return static strides and offset of a memref type; None if the layout leaves them open."""
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
    """Return the declared layout of a view, upper case; None if it is left to inference."""
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
    """Return the function around an operation or a block; for a function, the function itself."""
    return next((op for op in enclosing(place) if op.name == "func.func"), None)


def enclosing(place: Operation | Block) -> Iterator[Operation]:
    """Yield an operation (or the one of a block) and all operations around it, innermost first."""
    op = place if isinstance(place, Operation) else place.outer
    while op is not None:
        yield op
        op = op.outer
