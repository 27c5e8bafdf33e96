"""A minimal legal program for every row of the table, for the documentation and the matrix test.

`build` makes the program around one planned instruction (`plan`): a function whose arguments are the
operands, with the scope, core and other instructions that the instruction needs.
"""

from __future__ import annotations

from ..asm import parse, to_text
from ..ir.attrs import Attribute, EnumAttr, StrAttr, TypeAttr
from ..ir.builder import Builder
from ..ir.core import Block, Module, Operation, Region, Value
from ..ir.types import MaskType, PtrType, ScalarType, Type, ViewType, VRegType
from ..isa import row as find_row
from ..isa.row import Row
from .control import PROGRAMS
from .plan import Plan, dtype_choices, first_plan, forms, plan, plans, plans_of, violated

__all__ = [
    "Plan", "build", "dtype_choices", "example_text", "first_plan", "forms", "plan", "plans", "witness",
]  # fmt: skip

#: Instruction -> the instruction that must run before it, in the same function.
_BEFORE: dict[str, str] = {
    "tpush_to_aiv": "aic_initialize_pipe",
    "tpop_from_aiv": "aic_initialize_pipe",
    "tfree_from_aiv": "aic_initialize_pipe",
    "tpush_to_aic": "aiv_initialize_pipe",
    "tpop_from_aic": "aiv_initialize_pipe",
    "tfree_from_aic": "aiv_initialize_pipe",
    "wait_flag": "set_flag",
    "wait_event": "record_event",
    "rls_buf": "get_buf",
}
#: Instruction -> the instruction that must follow, in the same function.
_AFTER: dict[str, str] = {"set_flag": "wait_flag", "record_event": "wait_event", "get_buf": "rls_buf"}

#: Instruction -> name and instruction of another function that the module must have.
_PEER: dict[str, tuple[str, str]] = {"import_reserved_buffer": ("peer", "reserve_buffer")}


def witness(row: Row, isa: str, dtype: str | None = None) -> Module:
    """Return a minimal legal program with one instance of the instruction."""
    if dtype is None:
        return build(first_plan(row, isa))
    return build(
        next(p for p in plans(row, isa) if any(_has(t, dtype) for ts in p.operands.values() for t in ts))
    )


def _has(type: Type, dtype: str) -> bool:
    found = getattr(type, "dtype", None)
    return found is not None and str(found) == dtype


def example_text(row: Row, isa: str, form: str = "pto", of: str = "") -> str:
    """Return the witness as text, for the documentation; `of` is one of the instruction's `example_forms`."""
    made = next(plans_of(row, isa, of)) if of else first_plan(row, isa)
    return to_text(build(_sensible(made)), form)


def example_forms(row: Row, isa: str) -> list[str]:
    """Return the forms of an instruction, except the first, that are legal on a target."""
    if row.name in PROGRAMS:
        return []
    return [form for form in forms(row) if form and next(plans_of(row, isa, form), None) is not None]


#: Typical sizes of a transfer, by a word in the name of the operand: 16 bursts of 256 bytes.
_SENSIBLE = (("stride", 256), ("len", 256), ("n_burst", 16), ("count", 2))


def _sensible(made: Plan) -> Plan:
    """Give a transfer typical sizes, because the minimal legal transfer has zeros everywhere."""
    if made.row.family != "dma-copy":
        return made
    for word, value in _SENSIBLE:
        for key in [key for key, old in made.constants.items() if word in key[0] and old == 0]:
            trial = made.replace(constants={**made.constants, key: value})
            made = made if violated(trial) else trial
    return made


def build(made: Plan) -> Module:
    """Return the program around one planned instruction."""
    if made.row.name in PROGRAMS:
        return parse(PROGRAMS[made.row.name])
    return _program(made)


def _program(made: Plan) -> Module:
    row = made.row
    b = Builder.module({"pto.target_arch": StrAttr(made.isa)})
    if row.name in _PEER:
        name, inside = _PEER[row.name]
        _function(b, name, [first_plan(_row(inside), made.isa)])
    before, after = _BEFORE.get(row.name), _AFTER.get(row.name)
    sequence = [first_plan(_row(before), made.isa)] if before else []
    sequence.append(made)
    if after:
        sequence.append(first_plan(_row(after), made.isa))
    _function(b, "example", sequence)
    return b.built


def _row(name: str) -> Row:
    found = find_row(name)
    assert found is not None
    return found


def _function(b: Builder, name: str, sequence: list[Plan]) -> None:
    """Append a function with the planned instructions, in the scope and on the core that they need."""
    cores = {p.row.core for p in sequence if not p.row.name.startswith("section.")} - {""}
    kind: dict[str, Attribute] = {}
    if len(cores) == 1:
        kind["pto.kernel_kind"] = EnumAttr("kernel_kind", cores.pop())
    entry = b.func(name, [], kind)
    if any(made.row.scope == "vec" for made in sequence):
        b.block = _region(b.op("pto.vecscope"))
    for made in sequence:
        values = _operands(b, entry, made)
        results = [t for types in made.results.values() for t in types]
        op = b.op(made.row.full_name, results, dict(made.attrs), **values)
        op.regions = [_empty_region(op) for _ in made.row.regions]
        for declared, result in zip(made.row.results, op.results, strict=False):
            result.name = declared.name
    b.block = entry
    b.op("func.return")
    func = entry.outer
    assert func is not None
    signature = func.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
    func.attrs["function_type"] = TypeAttr(signature)


def _operands(b: Builder, entry: Block, made: Plan) -> dict[str, Value | list[Value]]:
    return {
        name: [_value(b, entry, made, name, i) for i in range(len(types))]
        for name, types in made.operands.items()
    }


def _value(b: Builder, entry: Block, made: Plan, name: str, at: int) -> Value:
    """Return an operand: a constant, a view with a declared layout, vector state, or an argument of the
    function."""
    type = made.operands[name][at]
    label = name if len(made.operands[name]) == 1 else f"{name}{at}"
    if (name, at) in made.constants and isinstance(type, ScalarType):
        value = b.constant(made.constants[name, at], type)
        value.name = f"c_{label}"
        return value
    if name in made.layouts and isinstance(type, ViewType):
        return _view(b, entry, type, made.layouts[name], label)
    if isinstance(type, VRegType | MaskType) or type.kind == "align":
        return _vector_state(b, entry, type, made.row.name == "vldus", label)
    taken = {a.name for a in entry.args}
    return entry.add_arg(type, label if label not in taken else f"{label}_{len(taken)}")


def _vector_state(b: Builder, entry: Block, type: Type, loads: bool, name: str) -> Value:
    """Return a register, mask or alignment state. It is made inside the vecscope, which takes no registers
    from outside.
    """
    if isinstance(type, MaskType):
        op = b.op(f"pto.pset_{type.gran or 'b32'}", [type], {"pattern": StrAttr("PAT_ALL")})
    elif not isinstance(type, VRegType) and not loads:
        op = b.op("pto.init_align", [type])
    else:
        elem = type.elem if isinstance(type, VRegType) else ScalarType("f32")
        pointer = entry.add_arg(PtrType(elem, "ub"), f"{name}_ptr")
        if isinstance(type, VRegType):
            op = b.op("pto.vlds", [type], None, source=pointer, offset=b.constant(0))
        else:
            op = b.op("pto.vldas", [type], None, source=pointer)
    op.results[0].name = name
    return op.results[0]


def _view(b: Builder, entry: Block, type: ViewType, layout: str, name: str) -> Value:
    """Return a view made from a pointer, because only the operation that makes a view can declare a
    layout."""
    pointer = entry.add_arg(PtrType(type.elem), f"{name}_ptr")
    dims = [d or 16 for d in type.dims]
    strides = [1]
    for d in reversed(dims[1:]):
        strides.insert(0, strides[0] * d)
    shape, steps = ([b.constant(d) for d in values] for values in (dims, strides))
    whole = b.op(
        "pto.make_tensor_view", [type.replace(name="tensor_view")], {"layout": EnumAttr("layout", layout)},
        ptr=pointer, shape=shape, strides=steps,
    ).result  # fmt: skip
    if type.name == "tensor_view":
        return whole
    zero = [b.constant(0) for _ in dims]
    return b.op("pto.partition_view", [type], None, source=whole, offsets=zero, sizes=shape).result


def _region(op: Operation) -> Block:
    region = Region(op)
    op.regions = [region]
    return region.add_block()


def _empty_region(op: Operation) -> Region:
    """Return a body without effect: loops have their counter and a yield, scopes are empty."""
    block = _region(op)
    if op.name == "scf.for":
        block.add_arg(op.operands[0].type, "i")
        block.append(Operation("scf.yield", find_row("scf.yield"), [], segments=(0,)))
    for value in op.operands if op.name == "pto.strict_vecscope" else ():
        block.add_arg(value.type, f"{value.name}_in")
    assert block.parent is not None
    return block.parent
