"""Programs for `bench_micro.py`: one instruction in a loop, its operands filled with numbers worth computing.

    p = Program(plan)            # raises DiagnosticError where it does not run
    p.launch(100)                # 100 times the instruction; p.empty is the same program without it

The unified buffer is filled from an argument before the loop: random elements with NaN, infinities, zeros and
denormals among them, offsets and records where an operand wants them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.diag import DiagnosticError
from pto.engine import elements
from pto.engine.launch import kernel
from pto.engine.reference.kernel import ReferenceKernel
from pto.ir.attrs import StrAttr, TypeAttr
from pto.ir.builder import Builder
from pto.ir.core import Block, Operation, Region, replace_uses
from pto.ir.types import INDEX, MaskType, PtrType, ScalarType, VRegType
from pto.isa import encoding
from pto.isa import row as find_row
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan, violated
from pto.witness.programs import build

Array = np.ndarray[Any, Any]
I64, U8 = ScalarType("i64"), ScalarType("ui8")

ROOM = 8192  # bytes of an operand in the unified buffer
FOUR_LISTS = 0xF01  # config of vmrgsort4: one merge of four lists
RECORDS = 32  # of each of its lists

#: What scalar operands are, by name; the others are 0.
_SCALARS = {
    "scalar": 3, "value": 3, "input": 3, "index": 3, "alpha": 3, "ctl": 2 << 16 | 2, "config": FOUR_LISTS,
    "count": sum(RECORDS << 16 * k for k in range(4)),
}  # fmt: skip
#: What operands are that have to be constants, where that is legal: an instruction with something to do.
_CONSTANTS = {"scalar": 3, "amt": 5, "bin": 1, "half": 1}
#: Instructions whose memory begins inside a block.
_UNALIGNED = ("vldas", "vldus")


class Program:
    """The smallest program of an instruction with a loop around it, and one whose loop is empty."""

    def __init__(self, made: Plan, pattern: str = "PAT_ALL") -> None:
        made = _busy(made)
        self.scalars = _SCALARS if made.row.set != "cube" else {}
        for apart in (True, False):  # pointers lead to different places, or to one
            self.full, self.memory = _repeated(made, True, apart, pattern)
            self.empty, _ = _repeated(made, False, apart, pattern)
            try:
                self.launch(1)
            except DiagnosticError:
                if not apart:
                    raise
            else:
                return

    def launch(self, count: int, empty: bool = False) -> None:
        k = self.empty if empty else self.full
        args: list[Any] = []
        for param in k.args[:-1]:
            t = param.type
            if isinstance(t, PtrType):
                args.append(self.memory if param.name == "memory" else np.zeros(1 << 16, np.uint8))
            else:
                found = self.scalars.get(param.name or "", 0)
                args.append(float(found) if isinstance(t, ScalarType) and t.is_float else found)
        result = k.run(*args, count)
        if not result.ok:
            raise DiagnosticError(result.diagnostics)


def _busy(made: Plan) -> Plan:
    """A plan with constants that give the instruction something to do."""
    for (name, at), old in made.constants.items():
        value = _CONSTANTS.get(name, old)
        if name == "count":
            value = next(t.lanes for ts in made.operands.values() for t in ts if isinstance(t, VRegType)) - 1
        trial = made.replace(constants={**made.constants, (name, at): value})
        if not violated(trial):
            made = trial
    return made


def _repeated(made: Plan, body: bool, apart: bool, pattern: str) -> tuple[ReferenceKernel, Array]:
    """A program whose last argument is how often its loop runs, and what fills the unified buffer."""
    module = build(made)
    function = module.functions[-1]
    entry = function.regions[0].blocks[0]
    op = next(o for o in function.walk() if o.row is not None and o.row.name == made.row.name)
    for other in function.walk():
        if other is not op and other.name.startswith("pto.pset_"):
            other.attrs["pattern"] = StrAttr(pattern)
    memory = _place_pointers(made, entry, function, apart)
    if made.row.name == "vstur":
        _squeeze(op)
    times = entry.add_arg(INDEX, "times")
    _loop(op, times, body)
    signature = function.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
    function.attrs["function_type"] = TypeAttr(signature)
    made_kernel = kernel(module, str(function.attr("sym_name")), "reference", made.isa, check=False)
    assert isinstance(made_kernel, ReferenceKernel)
    return made_kernel, memory


def _place_pointers(made: Plan, entry: Block, function: Operation, apart: bool) -> Array:
    """Give each on-chip pointer an address of its own, as pointers are not arguments of a launch. Return the
    content of those in the unified buffer."""
    region = function.regions[0]
    kept: list[Any] = []
    at: dict[str, int] = {}
    parts: list[Array] = []
    scratch = Block()
    b = Builder(scratch)
    for arg in entry.args:
        if not isinstance(arg.type, PtrType) or arg.type.space == "gm":
            kept.append(arg)
            continue
        space = arg.type.space
        shift = 8 if made.row.name in _UNALIGNED else 0
        place = b.constant(at.get(space, 0) + shift, I64)
        pointer = b.op("pto.castptr", [arg.type], addr=place).result
        pointer.name = arg.name
        replace_uses(region, arg, pointer)
        if space == "ub":
            parts.append(_contents(made, arg.name or "", str(arg.type.dtype), len(parts)))
        if apart:
            at[space] = at.get(space, 0) + (ROOM if space == "ub" else 1024)
    memory = np.concatenate(parts if apart else parts[:1]) if parts else np.zeros(0, np.uint8)
    entry.args[:] = kept
    for n, arg in enumerate(entry.args):
        arg.index = n
    if parts:
        _fill(b, entry.add_arg(PtrType(U8), "memory"), memory.size)
    for n, new in enumerate(scratch.ops):
        new.parent = entry
        entry.ops.insert(n, new)
    return memory


def _fill(b: Builder, memory: Any, size: int) -> None:
    """Copy an argument to the beginning of the unified buffer."""
    zero, one, whole = (b.constant(n, I64) for n in (0, 1, size))
    start = b.op("pto.castptr", [PtrType(U8, "ub")], addr=zero).result
    b.op(
        "pto.mte_gm_ub", [], None, gm_src=memory, ub_dst=start, l2_cache_ctl=zero, len_burst=whole,
        n_burst=one, src_stride=whole, dst_stride=whole,
    )  # fmt: skip


def _squeeze(op: Operation) -> None:
    """Give a stream of squeezed lanes some to append."""
    block, value = op.parent, op.get("value")
    assert block is not None and value is not None and isinstance(value.type, VRegType)
    scratch = Block()
    b = Builder(scratch)
    bits = min(DTYPES[str(value.type.dtype)].bits, 32)
    mask_type = MaskType(f"b{bits}")
    mask = b.op(f"pto.pset_b{bits}", [mask_type], {"pattern": StrAttr("PAT_M3")}).result
    b.op("pto.vsqz", [value.type], None, src=value, mask=mask)
    at = block.ops.index(op)
    block.ops[at:at] = scratch.ops
    for new in scratch.ops:
        new.parent = block


def _loop(op: Operation, times: Any, body: bool) -> None:
    block = op.parent
    assert block is not None
    scratch = Block()
    b = Builder(scratch)
    loop = b.op("scf.for", lb=b.constant(0), ub=times, step=b.constant(1))
    region = Region(loop)
    inner = region.add_block()
    inner.add_arg(INDEX, "i")
    loop.regions = [region]
    at = block.ops.index(op)
    block.ops[at : at + 1] = scratch.ops
    for new in scratch.ops:
        new.parent = block
    if body:
        inner.append(op)
    inner.append(Operation("scf.yield", find_row("scf.yield"), [], segments=(0,)))


# -- data --------------------------------------------------------------------------------------------------


def _contents(made: Plan, name: str, dtype: str, seed: int) -> Array:
    """`ROOM` bytes of elements for the pointer of an operand."""
    rng = np.random.default_rng(seed)
    lanes = 2048 // DTYPES[dtype].bits
    if name == "offsets_ptr":  # every lane goes somewhere else
        unit = 32 if made.row.name == "vgatherb" else 1
        found = rng.permutation(lanes if unit == 1 else 8) * unit
        found = np.resize(found, lanes).astype(elements.code_dtype(dtype))
    elif made.row.name == "vmrgsort4" and name.startswith("src"):
        return np.resize(_records(rng, dtype), ROOM)
    else:
        found = random_codes(rng, dtype, ROOM * 8 // DTYPES[dtype].bits)
    return np.resize(found.view(np.uint8), ROOM)


def random_codes(rng: np.random.Generator, dtype: str, count: int) -> Array:
    """Random elements of modest size, one in sixteen a special one."""
    d, code = DTYPES[dtype], elements.code_dtype(dtype)
    if not d.is_float or d.bits <= 8:
        wide = rng.integers(0, 1 << min(d.bits, 63), count, np.uint64).astype(code)
        return np.where(rng.random(count) < 1 / 16, wide & np.asarray(3, code), wide)
    numbers = (4 * rng.standard_normal(count)).astype(np.float64 if d.bits == 64 else np.float32)
    sign = 1 << (d.bits - 1)
    special = [0, sign, 1, sign | 1, encoding.NAN_CODES[dtype], encoding.INF_CODES[dtype]]
    chosen = rng.choice(np.array([*special, encoding.INF_CODES[dtype] | sign], code), count)
    return np.where(rng.random(count) < 1 / 16, chosen, elements.encode(dtype, numbers))


def _records(rng: np.random.Generator, dtype: str) -> Array:
    """A sorted list of records, as vbitsort writes them."""
    scores = -np.sort(-rng.standard_normal(RECORDS).astype(np.float32))
    codes = elements.encode(dtype, scores)
    found = np.zeros((RECORDS, 8), np.uint8)
    found[:, : codes.itemsize] = codes.view(np.uint8).reshape(RECORDS, -1)
    found[:, 4:] = rng.permutation(RECORDS).astype(np.uint32).view(np.uint8).reshape(RECORDS, 4)
    return found.ravel()
