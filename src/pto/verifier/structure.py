"""Structure of a program: symbols, calls, entry rules, terminators, yields and SSA dominance."""

from __future__ import annotations

from ..diag import DiagnosticError, did_you_mean
from ..ir.assumptions import ASSUME, assumptions_of, names_of
from ..ir.context import Context
from ..ir.core import Block, Operation, Region, Value, entry_mark
from ..ir.facts import entries
from ..ir.types import ERROR, FunctionType, Type
from ..isa.enums import ENUMS

#: Regions that end without a terminator.
_OPEN_REGIONS = (
    "builtin.module",
    "pto.section.cube",
    "pto.section.vector",
    "pto.vecscope",
    "pto.strict_vecscope",
)
_TAIL_HINTS = ("barrier-all", "barrier_all", "default", "mte3-to-s-event0", "mte3_to_s_event0",
               "setwait-mte3-to-s-event0", "setwait_mte3_to_s_event0")  # fmt: skip


#: Attributes that other tools leave behind in dumps.
_INTERNAL = ("pto.internal.entry", "pto.inferred_layout", "pto.addptr_trace", "pto.view_semantics",
             "pto.auto_sync_tail_barrier", "pto.backend")  # fmt: skip


def _attributes(context: Context, op: Operation) -> None:
    """Report an unknown `pto.` attribute of a module or function, which would have no effect."""
    known = (*(op.row.attr_index if op.row else ()), *_INTERNAL)
    for name in op.attrs:
        if name.startswith("pto.") and name not in known:
            context.report(
                op,
                "PTO-E0113",
                f"unknown attribute '{name}' is ignored",
                at=name,
                help=did_you_mean(name, known),
                severity="warning",
            )


def check_structure(context: Context) -> None:
    functions = _symbols(context)
    _recursion(context, functions)
    for op in context.module.walk():
        if op.name in ("func.func", "builtin.module"):
            _attributes(context, op)
        if op.name == "func.func":
            _function(context, op, functions)
        elif op.name == "func.call":
            _call(context, op, functions)
        for region in op.regions:
            _region(context, op, region)
        _level(context, op)
        _missing_else(context, op)
    for func in functions.values():
        if func.regions and func.regions[0].blocks:
            Dominance(context, func).check()


def _level(context: Context, op: Operation) -> None:
    """Check nesting: functions in a module, other operations in a function."""
    outer = op.outer
    if outer is None:
        return
    if op.name in ("func.func", "builtin.module"):
        if outer.name != "builtin.module":
            context.report(op, "PTO-E0214", f"cannot be inside {outer.name}", help="move it to the module")
    elif outer.name == "builtin.module":
        context.report(op, "PTO-E0214", "cannot be outside a function", help="move it into a function")


def _symbols(context: Context) -> dict[str, Operation]:
    found: dict[str, Operation] = {}
    for op in context.module.functions:
        name = op.attr("sym_name")
        if name in found:
            d = context.report(
                op,
                "PTO-E0205",
                f"function '@{name}' is defined twice",
                at=f"@{name}",
                help="rename one of them",
            )
            d.notes.append(("first defined here", context.span(found[name])))
            continue
        found[name] = op
    for declared, op in context.module.declarations:
        wanted, got = (str(f.attrs["function_type"].value) for f in (op, declared))
        if wanted != got:
            d = context.report(
                declared,
                "PTO-E0213",
                f"mismatched declaration of '@{op.attr('sym_name')}', which another module defines",
                at=f"@{op.attr('sym_name')}",
                expected=wanted,
                got=got,
            )
            d.notes.append(("defined here", context.span(op)))
    return found


def _function(context: Context, op: Operation, functions: dict[str, Operation]) -> None:
    signature: FunctionType = op.attrs["function_type"].value
    has_body = bool(op.regions[0].blocks)
    mark = entry_mark(op)
    if mark is not None and not has_body:
        context.report(op, "PTO-E0217", f"`{mark}` is only valid on function definitions", at=mark)
    if has_body and signature.results and op in entries(functions):
        context.report(
            op, "PTO-E0215", "PTO entry functions must return void", expected="no results",
            got=", ".join(map(str, signature.results)), help="store the result to global memory instead",
        )  # fmt: skip
    kind = op.attrs.get("pto.kernel_kind")
    if kind is not None and getattr(kind, "enum", "") != "kernel_kind":
        context.report(
            op, "PTO-E0112", "pto.kernel_kind must be #pto.kernel_kind<cube> or #pto.kernel_kind<vector>",
            at="pto.kernel_kind", got=str(kind), expected=", ".join(ENUMS["kernel_kind"].values),
        )  # fmt: skip
    if has_body and ASSUME in op.attrs:
        try:
            for one in assumptions_of([op]):
                one.check_names(names_of(op))
        except DiagnosticError as e:
            for d in e.diagnostics:
                context.report(op, d.code, d.message, at=ASSUME, help=d.help)
    hint = op.attrs.get("pto.auto_sync_tail_hint")
    if hint is not None and hint.value not in _TAIL_HINTS:
        context.report(
            op,
            "PTO-E0112",
            f"invalid pto.auto_sync_tail_hint '{hint.value}'. "
            "Expected 'barrier-all' (or 'default') or 'mte3-to-s-event0'.",
            at="pto.auto_sync_tail_hint",
            help=did_you_mean(str(hint.value), _TAIL_HINTS),
        )


def _call(context: Context, op: Operation, functions: dict[str, Operation]) -> None:
    name = op.attr("callee")
    callee = functions.get(name)
    if callee is None:
        context.report(
            op,
            "PTO-E0204",
            f"undefined function '@{name}'",
            at=f"@{name}",
            help=did_you_mean(str(name), functions),
        )
        return
    signature: FunctionType = callee.attrs["function_type"].value
    have = FunctionType(tuple(v.type for v in op.operands), tuple(r.type for r in op.results))
    if have != signature and ERROR not in (*have.inputs, *have.results):
        d = context.report(
            op, "PTO-E0218", f"call does not match '@{name}'", expected=str(signature), got=str(have),
            help="pass what the function declares",
        )  # fmt: skip
        d.notes.append(("declared here", context.span(callee)))


def _recursion(context: Context, functions: dict[str, Operation]) -> None:
    calls: dict[str, list[tuple[str, Operation]]] = {}
    for name, func in functions.items():
        calls[name] = [(op.attr("callee"), op) for op in func.walk() if op.name == "func.call"]
    state: dict[str, int] = {}
    for root in functions:
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, at = stack.pop()
            if at == 0 and state.get(name):
                continue
            state[name] = 1
            edges = calls.get(name, [])
            if at < len(edges):
                stack.append((name, at + 1))
                callee, op = edges[at]
                if state.get(callee) == 1:
                    what = (
                        "recursive function calls are"
                        if callee == name
                        else "a cyclic function call graph is"
                    )
                    context.report(
                        op, "PTO-E0216", f"{what} not supported", at=f"@{callee}",
                        help="an AI core has no call stack: use a loop",
                    )  # fmt: skip
                elif not state.get(callee):
                    stack.append((callee, 0))
            else:
                state[name] = 2


# --------------------------------------------------------------------------------------------- terminators


def _region(context: Context, op: Operation, region: Region) -> None:
    if op.name in _OPEN_REGIONS:
        if len(region.blocks) > 1:
            context.report(
                op, "PTO-E0214", "its body must be a single block", help="use structured control flow inside"
            )
        for child in (c for b in region.blocks for c in b.ops):
            if child.row is not None and child.row.terminator:
                context.report(
                    child, "PTO-E0212", f"unexpected terminator in a {op.name} body", help="remove it"
                )
        return
    for block in region.blocks:
        for child in block.ops[:-1]:
            if child.row is not None and child.row.terminator:
                context.report(
                    child,
                    "PTO-E0212",
                    "cannot end a block before its last operation",
                    help="remove what follows, or start a new block",
                )
        last = block.ops[-1] if block.ops else None
        if op.row is None:
            continue
        if last is None or last.row is None or not last.row.terminator:
            wanted = "func.return" if op.name == "func.func" else "scf.yield"
            context.report(
                last or op,
                "PTO-E0211",
                f"block does not end with a terminator (in {op.name})",
                expected=wanted,
                got=last.name if last else "an empty block",
                help=f"add `{wanted.removeprefix('func.')}` at its end",
            )
            continue
        if not last.successors:
            _exit_types(context, op, region, last)


def _missing_else(context: Context, op: Operation) -> None:
    if op.name == "scf.if" and op.results and not op.regions[1].blocks:
        context.report(
            op,
            "PTO-E0214",
            "missing else branch of an if with results",
            expected=f"else {{ scf.yield {', '.join(str(r.type) for r in op.results)} }}",
            got="no else",
        )


def _exit_types(context: Context, op: Operation, region: Region, last: Operation) -> None:
    """Check that the values at the end of a region have the types that its operation returns."""
    wanted: tuple[Type, ...]
    expected_name = "scf.yield"
    values = list(last.operands)
    if op.name == "func.func":
        expected_name = "func.return"
        wanted = op.attrs["function_type"].value.results
    elif op.name == "scf.while":
        if region is op.regions[0]:
            expected_name = "scf.condition"
            wanted = tuple(r.type for r in op.results)
            values = values[1:]
        else:
            wanted = tuple(v.type for v in op.operands)
    elif op.name.startswith("scf."):
        wanted = tuple(r.type for r in op.results)
    else:
        return
    if last.name != expected_name:
        context.report(
            last,
            "PTO-E0213",
            f"{op.name} ends with {expected_name}, not {last.name}",
            expected=expected_name,
            got=last.name,
        )
        return
    have = tuple(v.type for v in values)
    if have != wanted and ERROR not in have:
        context.report(
            last,
            "PTO-E0213",
            f"returns {len(have)} value{'s' * (len(have) != 1)} of other types than {op.name} declares",
            expected=", ".join(map(str, wanted)) or "no values",
            got=", ".join(map(str, have)) or "no values",
        )


# ----------------------------------------------------------------------------------------------- dominance


class Dominance:
    """Checks that each use of a value is dominated by its definition."""

    def __init__(self, context: Context, func: Operation) -> None:
        self.context = context
        self.func = func
        self.visible: set[Value] = set()

    def check(self) -> None:
        self._region(self.func.regions[0])

    def _region(self, region: Region) -> None:
        """Go down the dominator tree: a block has the values around it and those of its dominators."""
        children: dict[Block, list[Block]] = {}
        if len(region.blocks) > 1:
            from ..ir.dominance import dominator_tree

            for block, parent in dominator_tree(region).items():
                children.setdefault(parent, []).append(block)
        work: list[tuple[Block, list[Value] | None]] = [(block, None) for block in region.blocks[:1]]
        while work:
            block, added = work.pop()
            if added is not None:  # all dominated blocks have been checked
                self.visible.difference_update(added)
                continue
            work.append((block, self._block(block)))
            work.extend((child, None) for child in reversed(children.get(block, ())))

    def _block(self, block: Block) -> list[Value]:
        """Check a block; its own values stay visible and are returned."""
        visible = self.visible
        added: list[Value] = list(block.args)
        visible.update(added)
        for op in block.ops:
            for value in dict.fromkeys(op.operands):
                if value not in visible and value.type is not ERROR:
                    self._late(op, value)
            for successor in op.successors:
                for value in successor.args:
                    if value not in visible and value.type is not ERROR:
                        self._late(op, value)
                if successor.block.parent is not None and successor.block.parent.blocks[0] is successor.block:
                    self.context.report(
                        op,
                        "PTO-E0214",
                        "cannot branch to the entry block of a region",
                        help="branch to a separate block after it",
                    )
                want = tuple(a.type for a in successor.block.args)
                have = tuple(v.type for v in successor.args)
                if want != have:
                    self.context.report(
                        op,
                        "PTO-E0213",
                        f"mismatched values in the branch to {successor.block.label}",
                        expected=", ".join(map(str, want)) or "no values",
                        got=", ".join(map(str, have)) or "no values",
                    )
            for region in op.regions:
                self._region(region)
            visible.update(op.results)
            added.extend(op.results)
        return added

    def _late(self, op: Operation, value: Value) -> None:
        d = self.context.report(
            op, "PTO-E0203", f"cannot use '%{value.name}' before it is defined on every path", at=value,
            help="move the definition up, or pass the value as a block argument",
        )  # fmt: skip
        self.context.note_definition(d, value)
