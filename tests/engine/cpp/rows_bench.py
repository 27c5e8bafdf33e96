"""The same instruction on the same bytes by all engines: emitted C++ and images, the latter with functions and with
executors in their place, against the reference engine.

A plan (see pto.witness) becomes a function of a module: its tiles are allocated where `Case` put them, its
views and scalars are arguments. Many functions are compiled as one library, and each is lowered to an image;
they are called with the contents of all on-chip memory, which they change in place. Afterwards they may
differ by the tolerance only.

    python -m tests.engine.cpp.rows_bench tadd trowsum          # try single instructions
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tests.sampling import EVERY

from pto import isa
from pto.codegen.cpp import emit, program
from pto.codegen.cpp.unit import Unit
from pto.diag import DiagnosticError, has_errors
from pto.engine import elements
from pto.engine.compiled.library import LaunchOutcome as Outcome_
from pto.engine.compiled.library import Library
from pto.engine.cpp import build, compiler
from pto.engine.memory import MemoryFault, Pointer, Tile, View
from pto.engine.native import machine
from pto.engine.reference.instr import IllegalInstruction
from pto.image.format import END, Image, ImageCode
from pto.image.generic import Origins
from pto.image.lower import Lowering
from pto.ir.attrs import EnumAttr, StrAttr, TypeAttr, UnitAttr
from pto.ir.builder import Builder
from pto.ir.core import Block, Module, Value
from pto.ir.types import I64, INDEX, MemRefType, PtrType, ScalarType, TileBufType, ViewType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import LOCATIONS, Profile, profile
from pto.passes import Options, compile
from pto.witness.plan import Plan

from ..native.without_pack import generic_program, performable
from ..rows import Case

Array = np.ndarray[Any, Any]

#: Room in every space: capacities are not tested here.
SPACES = dict.fromkeys(LOCATIONS, 1 << 19)

_HARNESS = """
#include "pto/launch.hpp"
namespace {
template <class... A>
struct Imaged {
  template <void (*F)(A...)>
  static void run(char** images, const uint64_t* sizes, A... args) {
    auto& core = pto::detail::core();
    for (int i = 0; i < pto::detail::kSpaces; ++i) std::memcpy(core.space[i], images[i], sizes[i]);
    F(args...);
    for (int i = 0; i < pto::detail::kSpaces; ++i) std::memcpy(images[i], core.space[i], sizes[i]);
  }
};
template <class... A>
Imaged<A...> imaged(void (*)(A...));
}
"""


class Compiled:
    """A planned instruction as a compiled function, and the case with its operands."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan = plan
        self.name = name
        self.case = Case(plan)
        #: Tiles with their whole valid region.
        self.tiles = [(v, (v.v_row, v.v_col)) for _, v in self._values() if isinstance(v, Tile)]
        #: On-chip memory, where the ordinary run looks at what operands take only, and arrays.
        self.on_chip = {
            loc: b.data if EVERY else b.data[: self.case.used(loc)]
            for loc, b in self.case.core.buffers.items()
            if loc in LOCATIONS
        }
        self.gm = [b.data for b in self.case.core.gm.buffers]
        #: What calls it with words and arrays, by engine.
        self.engines: dict[str, Callable[..., Outcome_]] = {}

    def _values(self) -> Iterable[tuple[str, Any]]:
        for name, found in self.case.args.items():
            for value in found if isinstance(found, list) else [found]:
                yield name, value

    def fits(self, target: Profile) -> bool:
        """Return True if the memory of a core holds the operands: the virtual machine has no more, and a page
        after it."""
        return all(self.case.used(loc) <= target.capacity[loc] + 4096 for loc in self.on_chip)

    def build(self, b: Builder) -> None:
        """Add the function to a module."""
        plan = self.plan
        entry = b.func(self.name, [], {"pto.entry": UnitAttr()})
        values: dict[str, Value | list[Value]] = {}
        for declared in plan.row.operands:
            types = plan.operands.get(declared.name)
            if types is None:
                continue
            held = self.case.args[declared.name]
            values[declared.name] = [
                self._operand(b, entry, declared.name, i, type, held[i] if isinstance(held, list) else held)
                for i, type in enumerate(types)
            ]
        results = [t for types in plan.results.values() for t in types]
        b.op(plan.row.full_name, results, dict(plan.attrs), **values)
        b.op("func.return")
        assert entry.parent is not None and entry.parent.parent is not None
        func = entry.parent.parent
        signature = func.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
        func.attrs["function_type"] = TypeAttr(signature)

    def _operand(self, b: Builder, entry: Block, name: str, at: int, type: Any, held: Any) -> Value:
        if (name, at) in self.plan.constants and isinstance(type, ScalarType):
            return b.constant(self.plan.constants[name, at], type)
        label = f"{name}{at}"
        if isinstance(type, TileBufType):
            rows, cols = entry.add_arg(INDEX, f"{label}_rows"), entry.add_arg(INDEX, f"{label}_cols")
            address = b.constant(held.address, I64)
            open_type = type.replace(v_row=None, v_col=None)
            return b.op(
                "pto.alloc_tile", [open_type], None, addr=address, valid_row=rows, valid_col=cols
            ).result
        if isinstance(type, ViewType):
            return self._view(b, entry, type, self.plan.layouts.get(name), label, held)
        return entry.add_arg(type, label)

    def _view(
        self, b: Builder, entry: Block, type: ViewType, layout: str | None, name: str, held: View
    ) -> Value:
        pointer = entry.add_arg(PtrType(type.elem), name)
        shape = [b.constant(d) for d in held.dims]
        steps = [b.constant(s) for s in held.strides]
        attrs = {"layout": EnumAttr("layout", layout)} if layout else {}
        whole = b.op(
            "pto.make_tensor_view", [type.replace(name="tensor_view")], attrs, ptr=pointer, shape=shape,
            strides=steps,
        ).result  # fmt: skip
        if type.name == "tensor_view":
            return whole
        zero = [b.constant(0) for _ in held.dims]
        return b.op("pto.partition_view", [type], None, source=whole, offsets=zero, sizes=shape).result

    # -- running ------------------------------------------------------------------------------------------

    def words(self) -> list[int]:
        """The arguments of the function, in the order `build` made them."""
        out: list[int] = []
        for declared in self.plan.row.operands:
            types = self.plan.operands.get(declared.name)
            if types is None:
                continue
            held = self.case.args[declared.name]
            for i, type in enumerate(types):
                value = held[i] if isinstance(held, list) else held
                if (declared.name, i) in self.plan.constants and isinstance(type, ScalarType):
                    continue
                if isinstance(value, Tile):
                    out += [value.v_row, value.v_col]
                elif isinstance(value, View | Pointer):
                    out.append(value.buffer.data.ctypes.data)
                elif isinstance(type, MemRefType):
                    out.append(value.buffer.data.ctypes.data)
                else:
                    out.append(scalar_word(type, value))
        return out

    def settle(self) -> None:
        """Scalars become numbers that their types have: a launch can pass no others."""
        for name, types in self.plan.operands.items():
            held = self.case.args[name]
            if len(types) == 1 and isinstance(types[0], ScalarType) and types[0].is_float:
                dtype = DTYPES[str(types[0].dtype)]
                value = held[0] if isinstance(held, list) else held
                exact = encoding.decode(dtype, encoding.encode(dtype, float(value)))
                self.case.args[name] = [exact] if isinstance(held, list) else exact

    def run(self, engine: str) -> str:
        """Run the function on the case's memory; what went wrong, or nothing."""
        images = [self.on_chip[loc].copy() for loc in LOCATIONS]
        pointers = (ctypes.c_char_p * len(images))(
            *(ctypes.cast(i.ctypes.data, ctypes.c_char_p) for i in images)
        )
        sizes = (ctypes.c_uint64 * len(images))(*(i.size for i in images))
        words = [ctypes.addressof(pointers), ctypes.addressof(sizes), *self.words()]
        arrays = [(b.data.ctypes.data, b.data.size, b.name.encode()) for b in self.case.core.gm.buffers]
        done = self.engines[engine]([w & (2**64 - 1) for w in words], subblocks=1, arrays=arrays)
        if done.status:
            return done.text
        for loc, image in zip(LOCATIONS, images, strict=True):
            self.on_chip[loc][:] = image
        return ""


def scalar_word(type: Any, value: Any) -> int:
    """A scalar as the 64-bit word of a launch."""
    if isinstance(type, ScalarType) and type.is_float:
        return int(encoding.encode(DTYPES[str(type.dtype)], float(value)))
    return int(value)


def compiled(plans: Sequence[Plan], column: str) -> list[Compiled]:
    """Functions for plans of one legality column, in one library."""
    made = [Compiled(plan, f"case_{i}") for i, plan in enumerate(plans)]
    b = Builder.module({"pto.target_arch": StrAttr(column)})
    for one in made:
        one.build(b)
    target = profile(column).override(SPACES)
    ctx, problems = compile(b.built, target, Options(level="level3"))
    if has_errors(problems):
        raise DiagnosticError(problems)
    text = emit(ctx.module, target)
    text += _HARNESS
    for one in made:
        text += (
            f"PTO_LAUNCHER({one.name}, pto::detail::CoreKind::Mix, "
            f"(decltype(imaged({one.name}))::run<{one.name}>))\n"
        )
    unit = build.TranslationUnit("rows.cpp", text)
    built = build.cached([unit], [], compiler.arch_flags(target))
    assert built.ok, built.output[:4000]
    library = Library(built.path)
    for one in made:
        one.engines["cpp"] = partial(library.call, f"pto_launch_{one.name}")
    imaged([one for one in made if one.fits(profile(column))], ctx.module, target)
    return made


#: What stands before and behind a function on the virtual machine, as `Imaged` has it.
_ENTER, _LEAVE = (
    "char**& a0; uint64_t*& a1; for (int i = 0; i < pto::detail::kSpaces; ++i) { "
    f"pto::detail::use_space(pto::detail::core(), i, a1[i]); std::memcpy({copy}, a1[i]); }}"
    for copy in ("pto::detail::core().space[i], a0[i]", "a0[i], pto::detail::core().space[i]")
)


def imaged(made: Sequence[Any], module: Module, target: Profile) -> None:
    """Run the same functions as images; their calls are compiled in one go. If only compiled functions
    execute an instruction, there is no other way."""
    program.load(module)
    unit = Unit(module, target, index_type="int64_t", checked=True)
    functions = {str(f.attr("sym_name")): f for f in module.functions}
    images: list[tuple[Image, Origins]] = []
    for one in made:
        calls: dict[str, int] = {}
        lowering = Lowering(unit, "mix", calls)
        memory = lowering.room(8), lowering.room(8)
        function = functions[one.name]
        args = [lowering.slot(v) for v in function.regions[0].blocks[0].args]
        lowering.call(_ENTER, *memory)
        lowering.body(function, [])
        lowering.call(_LEAVE, *memory)
        lowering.emit(END)
        if lowering.problems:
            raise DiagnosticError(lowering.problems)
        places = tuple((place, 0) for place in (*memory, *args))
        code = ImageCode("mix", tuple(lowering.words), bytes(lowering.frame), places, ())
        images.append((Image(one.name, target.name, tuple(calls), (code,)), [lowering.origins]))
    machine.functions(list(dict.fromkeys(c for image, _ in images for c in image.calls)))
    for one, (image, origins) in zip(made, images, strict=True):
        one.engines["native"] = _launcher(machine.MachineProgram(image, target))
        if performable(image, origins, target):
            one.engines["generic"] = _launcher(generic_program(image, target, origins))


def _launcher(made: machine.MachineProgram) -> Callable[..., Outcome_]:
    return lambda words, **options: machine.library().call(
        "pto_launch_image", words, program=made.address, **options
    )


# -- comparing --------------------------------------------------------------------------------------------


class Outcome:
    """Memory after a run."""

    def __init__(self, one: Compiled) -> None:
        case = one.case
        self.on_chip = {loc: data.copy() for loc, data in one.on_chip.items()}
        self.gm = [data.copy() for data in one.gm]
        self.tiles = {
            name: (v.dtype, case.get(name))
            for name, v in case.args.items()
            if isinstance(v, Tile) and v.address is not None
        }


def reference(case: Case) -> str:
    """Run the reference engine; return its error, or an empty text."""
    try:
        with np.errstate(all="ignore"):
            case.run()
    except (IllegalInstruction, MemoryFault, LookupError) as e:
        return f"{type(e).__name__}: {e}"
    return ""


def unequal(dtype: str, got: Array, want: Array) -> Array:
    """Return the elements whose codes differ; one NaN is as good as another."""
    differ = got != want
    if differ.any() and DTYPES[dtype].nan:
        x, y = (elements.decode(dtype, codes) for codes in (got, want))
        differ &= ~(np.isnan(x) & np.isnan(y))
    return differ


if __name__ == "__main__":
    from ..rows import some_plans
    from .test_rows import differences

    for name in sys.argv[1:]:
        row = isa.row(name)
        assert row is not None, name
        for column in row.isas:
            found = differences([p for p in some_plans(name) if p.isa == column], column)
            print(name, column, len(found), *found[:6], sep="\n  " if found else " ")
