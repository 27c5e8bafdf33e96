"""Vector rows on all engines: many instances of instructions in one kernel, each on bytes of its own.

    cases = [VectorRow(plan, seed) for plan in ..]
    differences(cases)                       # cases in which the engines differ

An instance is a vecscope between two copies: the unified buffer is filled from global memory, registers and
masks are loaded from it, the instruction runs, and its results are stored before all bytes are copied out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pto
from pto.engine import elements
from pto.ir.attrs import Attribute, EnumAttr, StrAttr, TypeAttr, UnitAttr
from pto.ir.builder import Builder
from pto.ir.core import Block, Module, Operation, Region, Value
from pto.ir.types import I64, MaskType, PtrType, ScalarType, Type, VRegType
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..native.without_pack import generic_kernel
from ..rows import random_codes, special_codes
from .rows_bench import unequal

Array = np.ndarray[Any, Any]

#: Bytes of the unified buffer that an instance has; registers lie in its first part, then what pointers point
#: to, then results.
ROOM, POINTERS, RESULTS = 24576, 4096, 16384
_EACH = 2048  # bytes for each pointer
U8 = ScalarType("ui8")


class VectorRow:
    """One instance of an instruction: its contents, and how it becomes part of a function."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.seed = seed
        self.bytes = self._contents()
        self.results: list[tuple[int, Type]] = []  # where registers and masks are stored

    def _contents(self) -> Array:
        rng = np.random.default_rng(self.seed)
        out = rng.integers(0, 256, ROOM, np.uint8)
        at = 0
        for name, types in self.plan.operands.items():
            for type in types:
                if isinstance(type, VRegType):
                    out[at : at + 256] = self._lanes(rng, name, type)
                elif isinstance(type, MaskType):
                    out[at : at + 32] = _some_lanes(rng, int((type.gran or "b8")[1:]) // 8)
                else:
                    continue
                at += 256
        return out

    def _lanes(self, rng: np.random.Generator, name: str, type: VRegType) -> Array:
        dtype, lanes = str(type.dtype), type.lanes
        if name == "offsets":
            found = rng.permutation(lanes) % 512
            if self.plan.row.name == "vgatherb":
                found = found % 16 * 32
            codes = found.astype(elements.code_dtype(dtype))
        elif self.plan.row.name in ("vshl", "vshr") and name == "rhs":
            codes = rng.integers(0, DTYPES[dtype].bits, lanes).astype(elements.code_dtype(dtype))
        else:
            codes = random_codes(rng, dtype, (1, lanes))[0]
            special = np.array(special_codes(dtype), np.uint64).astype(codes.dtype)
            codes = np.where(rng.random(lanes) < 0.4, rng.choice(special, lanes), codes)
        return np.ascontiguousarray(codes).view(np.uint8)

    def build(self, b: Builder, number: int, given: Value, out: Value) -> None:
        self._copy(b, "pto.mte_gm_ub", given, number)
        scope = b.op("pto.vecscope")
        outer, b.block = b.block, _region(scope)
        plan, row = self.plan, self.plan.row
        values: dict[str, Value | list[Value]] = {}
        at, pointers = 0, 0
        for name, types in plan.operands.items():
            held: list[Value] = []
            for k, type in enumerate(types):
                if isinstance(type, VRegType):
                    source = _pointer(b, type.elem, at)
                    held.append(b.op("pto.vlds", [type], None, source=source, offset=b.constant(0)).result)
                    at += 256
                elif isinstance(type, MaskType):
                    held.append(b.op("pto.plds", [type], None, source=_pointer(b, U8, at)).result)
                    at += 256
                elif isinstance(type, PtrType):
                    held.append(_pointer(b, type.elem, POINTERS + _EACH * pointers))
                    pointers += 1
                else:
                    held.append(self._scalar(b, name, k, type))
            values[name] = held
        op = b.op(row.full_name, [t for ts in plan.results.values() for t in ts], dict(plan.attrs), **values)
        place = RESULTS
        for result in op.results:
            if isinstance(result.type, VRegType):
                dest = _pointer(b, result.type.elem, place)
                b.op("pto.vsts", [], None, value=result, dest=dest, offset=b.constant(0))
            elif isinstance(result.type, MaskType):
                b.op("pto.psts", [], None, mask=result, dest=_pointer(b, U8, place))
            elif isinstance(result.type, PtrType) and result.type.space == "ub":
                one = b.constant(1 if DTYPES[str(result.type.dtype)].is_int else 1.0, result.type.elem)
                b.op("pto.store_scalar", [], None, ptr=result, offset=b.constant(0), value=one)
            elif isinstance(result.type, ScalarType):
                dest = _pointer(b, result.type, place)
                b.op("pto.store_scalar", [], None, ptr=dest, offset=b.constant(0), value=result)
            self.results.append((place, result.type))
            place += 256
        b.block = outer
        self._copy(b, "pto.mte_ub_gm", out, number)

    def _copy(self, b: Builder, name: str, gm: Value, number: int) -> None:
        there = b.op("pto.addptr", [gm.type], None, ptr=gm, offset=b.constant(number * ROOM)).result
        here, size = _pointer(b, U8, 0), b.constant(ROOM, I64)
        one = b.constant(1, I64)
        common = dict(len_burst=size, n_burst=one, src_stride=size, dst_stride=size)
        b.op("pto.barrier", [], {"pipe": EnumAttr("pipe", "PIPE_ALL")})
        if name == "pto.mte_gm_ub":
            b.op(name, [], None, gm_src=there, ub_dst=here, l2_cache_ctl=b.constant(0, I64), **common)
        else:
            b.op(name, [], None, ub_src=here, gm_dst=there, **common)
        b.op("pto.barrier", [], {"pipe": EnumAttr("pipe", "PIPE_ALL")})

    def _scalar(self, b: Builder, name: str, at: int, type: Type) -> Value:
        assert isinstance(type, ScalarType)
        if (name, at) in self.plan.constants:
            return b.constant(self.plan.constants[name, at], type)
        if type.is_float:
            return b.constant((1.5, -0.75, 0.0, -3.0, 65504.0)[self.seed % 5], type)
        number = {"offset": 64, "ctl": 2 << 16 | 1 if "32" in type.text else 2, "mask": 5, "areg": 8}.get(
            name
        )
        return b.constant((3, 1, 7, 2, 5)[self.seed % 5] if number is None else number, type)

    def shown(self) -> str:
        types = [f"{n}={t[0]}" for n, t in (*self.plan.operands.items(), *self.plan.results.items()) if t]
        return " ".join([self.plan.row.name, *types, *(f"{k}={v}" for k, v in self.plan.attrs.items())])

    def unlike(self, got: Array, want: Array) -> str:
        """Return the difference between the engines."""
        got = got.copy()
        for place, type in self.results:
            if isinstance(type, VRegType) and DTYPES[str(type.dtype)].is_float:
                dtype = str(type.dtype)
                mine, theirs = (x[place : place + 256].view(elements.code_dtype(dtype)) for x in (got, want))
                differ = unequal(dtype, mine, theirs)
                if differ.any():
                    i = int(np.argmax(differ))
                    return f"lane {i} is {mine[i]:#x}, reference {theirs[i]:#x}; {differ.sum()} differ"
                got[place : place + 256] = want[place : place + 256]
        if (got != want).any():
            i = int(np.argmax(got != want))
            return f"byte {i} is {got[i]:#x}, reference {want[i]:#x}; {(got != want).sum()} differ"
        return ""


def _some_lanes(rng: np.random.Generator, size: int) -> Array:
    image = np.zeros(256, np.uint8)
    image[::size] = 1 if rng.random() < 0.3 else rng.random(256 // size) < 0.6
    return np.packbits(image, bitorder="little")


def _region(op: Operation) -> Block:
    region = Region(op)
    op.regions = [region]
    return region.add_block()


def _pointer(b: Builder, elem: ScalarType, address: int) -> Value:
    return b.op("pto.castptr", [PtrType(elem, "ub")], None, addr=b.constant(address, I64)).result


def module_of(cases: list[VectorRow], isa: str) -> Module:
    """One function with all of them."""
    b = Builder.module({"pto.target_arch": StrAttr(isa)})
    kind: dict[str, Attribute] = {
        "pto.entry": UnitAttr(),
        "pto.kernel_kind": EnumAttr("kernel_kind", "vector"),
    }
    entry = b.func("rows", [], kind)
    given, out = (entry.add_arg(PtrType(U8), name) for name in ("given", "out"))
    for number, case in enumerate(cases):
        case.build(b, number, given, out)
    b.op("func.return")
    func = entry.outer
    assert func is not None
    signature = func.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
    func.attrs["function_type"] = TypeAttr(signature)
    return b.built


def differences(cases: list[VectorRow], isa: str) -> list[str]:
    module = module_of(cases, isa)
    given = np.concatenate([case.bytes for case in cases])
    theirs = np.zeros_like(given)
    pto.kernel(module, engine="reference")(given, theirs)
    found: list[str] = []
    kernels = {engine: pto.kernel(module, engine=engine) for engine in ("cpp", "native")}
    for engine, kernel in {**kernels, "generic": generic_kernel(module)}.items():
        mine = np.zeros_like(given)
        kernel(given, mine)
        for k, case in enumerate(cases):
            part = slice(k * ROOM, (k + 1) * ROOM)
            unlike = case.unlike(mine[part], theirs[part])
            if unlike:
                found.append(f"{engine}: {case.shown()}: {unlike}")
    return found
