"""The generic form is MLIR: xDSL reads it, with its own definitions of arith, scf, cf, func and memref."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.each import together
from tests.sampling import some

from pto.asm import parse_source, to_text
from pto.diag import Source, has_errors
from pto.verifier import verify

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(
    p for folder in ("examples", "tests/golden", "tests/fuzz/corpus") for p in (ROOT / folder).rglob("*.pto")
)


def accepted_by_xdsl(text: str) -> None:
    from xdsl.context import Context
    from xdsl.dialects import affine, arith, builtin, cf, func, math, memref, scf
    from xdsl.parser import Parser

    context = Context(allow_unregistered=True)
    for dialect in (
        builtin.Builtin, arith.Arith, scf.Scf, func.Func, cf.Cf, memref.MemRef, math.Math, affine.Affine,
    ):  # fmt: skip
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    unknown = {op.op_name.data for op in module.walk() if isinstance(op, builtin.UnregisteredOp)}
    assert all(name.startswith("pto.") for name in unknown), unknown


#: Wrong programs, besides those of golden/errors: no parser has to accept them.
WRONG = {
    "10_wrong.pto", "all_errors.pto", "double.pto", "names.pto", "pipes.pto", "flags_of_two_cores.pto", "right_layout_a3.pto",
    "right_layout_cpu.pto",
}  # fmt: skip


@together("path", some(PROGRAMS, 12, by=lambda p: p.parent))
def test_generic_form_is_accepted(path: Path) -> None:
    pytest.importorskip("xdsl", reason="xdsl is a development dependency")
    module, problems = parse_source(Source(path.name, path.read_text()))
    if module is not None:
        problems = verify(module)
    if has_errors(problems) and "errors" in path.parts:
        return
    assert has_errors(problems) == (path.name in WRONG), problems
    if module is not None and path.name not in WRONG:
        accepted_by_xdsl(to_text(module, "generic"))
