"""Control flow in C++: loops, branches, and basic blocks as labels.

Blocks reached by `goto` are in braces, so that no jump passes a declaration; values that one block computes
and another uses are declared at the top of the function.
"""

from __future__ import annotations

import re

from ...ir.core import Block, Operation, Region, Value, constant_of
from ...ir.types import TileBufType, TokenType, Type, ViewType
from .function import CAST, CppFunction, handles
from .views import open_view

# -- structured control flow --------------------------------------------------------------------------------


def _end(f: CppFunction, op: Operation) -> None:
    """Close a region inside another one with a semicolon, as existing tools print it."""
    f.line("}" if op.outer is f.op else "};")


def _variable(f: CppFunction, value: Value, init: Value | None = None) -> str:
    """Return the variable of a value that control flow assigns. A window keeps the lines of its tile."""
    type = f.types(value.type)
    if init is not None:
        _same_tile(f, init, value)
        type = f.tile_types.get(value, type)
    if isinstance(value.type, ViewType) and init is None:
        token = f.token()
        f.name(value, token)
        f.line(f"{type} {token}(nullptr);")
        return token
    return f.declare(value, type, _as_variable(f, value, init) if init is not None else "")


def _same_tile(f: CppFunction, tile: Value, other: Value) -> None:
    """Give another name of a tile its C++ type, and the same storage."""
    if isinstance(tile.type, TileBufType) and tile in f.tile_types:
        f.tile_types[other] = f.tile_types[tile]
    if tile in f.pitch:
        f.pitch[other] = f.pitch[tile]


def _as_variable(f: CppFunction, target: Value, value: Value) -> str:
    """Return a value for a variable of control flow, where views have run-time strides."""
    if isinstance(target.type, ViewType):
        return open_view(f, value)
    return f.text(value)


def is_align(type: Type) -> bool:
    """Return True if a value is the state of an unaligned stream."""
    return isinstance(type, TokenType) and type.name == "align"


def assign(f: CppFunction, op: Operation, targets: list[Value], values: list[Value]) -> None:
    """Emit all assignments of an operation at once: no target changes before its last read."""
    names = [f.text(t) for t in targets]
    for target, value in zip(targets, values, strict=True):
        if isinstance(value.type, TileBufType) and f.tile_type(target) != f.tile_type(value):
            f.unit.no_spelling(op, "of a window among tiles whose lines have other lengths")
    texts = [_as_variable(f, t, v) for t, v in zip(targets, values, strict=True)]
    for i, name in enumerate(names):
        pattern = re.compile(re.escape(name) + r"(?!\d)")
        for j in range(i + 1, len(texts)):
            if texts[j] != names[j] and pattern.search(texts[j]):
                token = f.token()
                f.line(f"{f.tile_type(targets[j])} {token} = {texts[j]};")
                texts[j] = token
    for name, text in zip(names, texts, strict=True):
        if name != text:
            f.line(f"{name} = {text};")


def _never_negative(value: Value, depth: int = 12) -> bool:
    """Return True if no operation of the function makes a value negative; arguments count as sizes."""
    op = value.op
    if depth == 0:
        return False
    if op is None:
        block = value.owner
        home = block.outer if isinstance(block, Block) else None
        if home is None or home.name == "func.func":
            return home is not None and home.regions[0].blocks[0] is block
        return home.name == "scf.for" and value.index == 0 and _never_negative(home.operands[0], depth - 1)
    number = constant_of(value)
    if number is not None:
        return number >= 0
    if op.name == "arith.select":
        return all(_never_negative(v, depth - 1) for v in op.operands[1:])
    if op.name == "arith.maxsi":
        return any(_never_negative(v, depth - 1) for v in op.operands)
    if op.name.startswith(("pto.get_block", "pto.get_subblock", "pto.get_tensor_view")):
        return True
    if op.name in _KEEP_SIGN:
        return all(_never_negative(v, depth - 1) for v in op.operands)
    return False


_KEEP_SIGN = frozenset(
    f"arith.{name}"
    for name in "addi muli divsi divui remsi remui ceildivsi ceildivui floordivsi minsi minui maxui andi ori "
    "shrsi shrui index_cast index_castui extsi extui".split()
)


@handles("scf.for")
def _for(f: CppFunction, op: Operation) -> None:
    lb, ub, step = op.operands[:3]
    block = op.regions[0].blocks[0]
    carried = list(op.results)
    for result, argument, init in zip(carried, block.args[1:], op.operands[3:], strict=True):
        if is_align(init.type):  # the state of a stream is one variable for the whole stream
            f.name(result, *f.known[init])
            f.name(argument, *f.known[init])
        else:
            f.name(argument, _variable(f, result, init))
            _same_tile(f, result, argument)
    iv = block.args[0]
    token = f.token(iv.name)
    type = f.types(iv.type)
    if f.unit.checked and constant_of(step) is None:
        f.line(f"pto::detail::check_step({f.text(step)});")
    # With 64-bit indices, as our engine uses them, a negative bound stays negative.
    sizes = iv.type.kind == "index" and not f.unit.wide
    if sizes and not carried and _never_negative(lb) and _never_negative(ub):
        f.bare[iv] = token
        f.name(iv, f"({type}) {token}", CAST)
        first, last, by = (f"(size_t) {f.unary(v)}" for v in (lb, ub, step))
        f.line(f"for (size_t {token} = {first}; {token} < ({last}); {token} += {by}) {{")
    else:
        f.name(iv, token)
        f.line(
            f"for ({type} {token} = {f.text(lb)}; {token} < {f.operand(ub)}; {token} += {f.text(step)}) {{"
        )
    f.yields[op] = carried
    f.nested(block)
    _end(f, op)


@handles("scf.yield")
def _yield(f: CppFunction, op: Operation) -> None:
    owner = op.outer
    if owner is None:
        return
    assign(f, op, f.yields.get(owner, []), op.operands)
    label = f.leave.get(owner)
    if label:
        f.line(f"goto {label};")


def _empty(region: Region) -> bool:
    return not region.blocks or all(
        op.name == "scf.yield" and not op.operands for b in region.blocks for op in b.ops
    )


@handles("scf.if")
def _if(f: CppFunction, op: Operation) -> None:
    for result in op.results:
        _variable(f, result)
    f.yields[op] = list(op.results)
    f.line(f"if ({f.text(op.operands[0])}) {{")
    f.nested(op.regions[0].blocks[0])
    if not _empty(op.regions[1]):
        f.line("} else {")
        f.nested(op.regions[1].blocks[0])
    _end(f, op)


@handles("scf.while")
def _while(f: CppFunction, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    for argument, init in zip(before.args, op.operands, strict=True):
        _variable(f, argument, init)
    condition = before.ops[-1]
    forwarded = condition.operands[1:]
    outside: list[tuple[Value, Value]] = []  # values that the condition hands on, and their variables
    for value, argument, result in zip(forwarded, after.args, op.results, strict=True):
        if value in f.known and value not in f.bare:  # the variable of the loop, or a variable from before it
            for same in (argument, result):
                f.name(same, *f.known[value])
                _same_tile(f, value, same)
        else:
            f.name(argument, _variable(f, result))
            outside.append((result, value))
    head, inside, end = (f.label() for _ in range(3))
    f.yields[op] = list(before.args)
    f.line(f"goto {head};")
    _label(f, head)
    f.line("{")
    f.open()
    f.block(Before(before))
    assign(f, condition, [target for target, _ in outside], [value for _, value in outside])
    f.line(f"if ({f.text(condition.operands[0])}) {{")
    f.line(f"  goto {inside};")
    f.line("} else {")
    f.line(f"  goto {end};")
    f.line("}")
    f.close()
    f.line("}")
    _label(f, inside)
    f.line("{")
    f.nested(after)
    f.line(f"  goto {head};")
    f.line("}")
    _label(f, end)


class Before(Block):
    """The operations of a block without its terminator."""

    __slots__ = ()

    def __init__(self, block: Block) -> None:
        super().__init__(block.label)
        self.ops = block.ops[:-1]


@handles("scf.condition")
def _condition(f: CppFunction, op: Operation) -> None:
    """Emit the condition as part of its while."""


@handles("scf.execute_region")
def _execute(f: CppFunction, op: Operation) -> None:
    for result in op.results:
        _variable(f, result)
    f.yields[op] = list(op.results)
    region = op.regions[0]
    f.line("{")
    f.open()
    if len(region.blocks) == 1:
        f.block(region.blocks[0])
    else:
        end = f.leave[op] = f.label()
        basic_blocks(f, region)
        _label(f, end)
    f.close()
    f.line("}")


@handles("scf.index_switch")
def _index_switch(f: CppFunction, op: Operation) -> None:
    for result in op.results:
        _variable(f, result)
    f.yields[op] = list(op.results)
    f.line(f"switch ({f.text(op.operands[0])}) {{")
    labels = [f"case {number}:" for number in op.attrs["cases"].value]
    for label, region in zip([*labels, "default:"], [*op.regions[1:], op.regions[0]], strict=True):
        f.line(f"{label} {{")
        f.nested(region.blocks[0])
        f.line("  break;")
        f.line("}")
    f.line("}")


# -- basic blocks -------------------------------------------------------------------------------------------


def basic_blocks(f: CppFunction, region: Region) -> None:
    """Emit a region of several blocks: the first in place, the others as labeled blocks in braces."""
    f.crossing |= _crossing(region)
    first, *others = region.blocks
    for block in others:
        f.labels[block] = f.label()
        for argument in block.args:
            token = f.token()
            f.name(argument, token)
            null = "(nullptr)" if isinstance(argument.type, ViewType) else ""
            f.hoisted.append(f"{f.types(argument.type)} {token}{null};")
    f.block(first)
    for block in others:
        _label(f, f.labels[block])
        f.line("{")
        at = len(f.lines)
        f.nested(block)
        if len(f.lines) == at:  # only the return that follows
            f.lines.pop()
            f.marks.pop()
        else:
            f.line("}")


def _crossing(region: Region) -> set[Value]:
    """Return values that a block other than the first computes and another block uses."""
    home: dict[Value, Block] = {}
    for block in region.blocks[1:]:
        for op in block.ops:
            home.update(dict.fromkeys(op.results, block))
    found: set[Value] = set()
    for block in region.blocks:
        for top in block.ops:
            for op in top.walk():
                passed = (v for s in op.successors for v in s.args)
                found |= {v for v in (*op.operands, *passed) if home.get(v, block) is not block}
    return found


def _label(f: CppFunction, label: str) -> None:
    if f.lines and f.lines[-1].endswith(":"):
        f.lines[-1] += ";"
    f.lines.append(f"{f.indent[:-2]}{label}:")
    f.marks.append(f.here)


def _jump(f: CppFunction, op: Operation, block: Block, values: list[Value]) -> None:
    assign(f, op, block.args, values)
    f.line(f"goto {f.labels[block]};")


@handles("cf.br")
def _br(f: CppFunction, op: Operation) -> None:
    _jump(f, op, op.successors[0].block, op.successors[0].args)


@handles("cf.cond_br")
def _cond_br(f: CppFunction, op: Operation) -> None:
    f.line(f"if ({f.text(op.operands[0])}) {{")
    for successor, end in zip(op.successors, ("} else {", "}"), strict=True):
        f.open()
        _jump(f, op, successor.block, successor.args)
        f.close()
        f.line(end)


@handles("cf.switch")
def _switch(f: CppFunction, op: Operation) -> None:
    f.line(f"switch ({f.text(op.operands[0])}) {{")
    default, *cases = op.successors
    labels = [f"case {number}:" for number in op.attrs["case_values"].value] if cases else []
    for label, successor in zip([*labels, "default:"], [*cases, default], strict=True):
        f.line(f"{label} {{")
        f.open()
        _jump(f, op, successor.block, successor.args)
        f.close()
        f.line("}")
    f.line("}")
