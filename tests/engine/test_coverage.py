"""No hole: every row of the table is executed by the engine, and some test module answers for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pto import isa
from pto.engine.reference import control, fifo, handles, registry, sync
from pto.isa.row import Row

#: Instruction sets and rows whose executors are still to come: vector registers and cube micro-instructions.
LATER_SETS = ("vector", "predicate")
LATER = frozenset(
    "vecscope strict_vecscope init_align get_vms4_sr mem_bar mad mad_acc mad_bias mad_mx mad_mx_acc mad_mx_bias "
    "mte_gm_l1 mte_gm_l1_frac mte_l1_ub mte_l1_l0a mte_l1_l0b mte_l1_l0a_mx mte_l1_l0b_mx mte_l1_bt mte_l1_fb "
    "mte_l0c_l1 mte_l0c_gm mte_l0c_ub".split()
)


def executable() -> list[Row]:
    return [r for r in isa.rows() if r.set not in LATER_SETS and r.name not in LATER]


def has_executor(row: Row) -> bool:
    return (
        row.family in ("shared-arith", "shared-math")
        or row.name in handles.HANDLERS
        or row.name in sync.HANDLERS
        or row.name in fifo.HANDLERS
        or control.is_structured(row.name)
        or registry.find(row) is not None
    )


@pytest.mark.parametrize("row", executable(), ids=lambda r: r.name)
def test_every_row_has_an_executor(row: Row) -> None:
    assert has_executor(row)


def test_what_is_to_come_is_not_there_yet() -> None:
    """A row that gains an executor leaves the list above."""
    there = {r.name for r in isa.rows() if r.name in LATER and has_executor(r)}
    assert there <= {"vecscope", "strict_vecscope", "mem_bar"}
    assert {r.name for r in isa.rows()} >= LATER


def _tested() -> dict[str, str]:
    """Row names that test modules answer for, by their module-level `ROWS`."""
    found: dict[str, str] = {}
    for path in Path(__file__).parent.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "ROWS" for t in node.targets
            ):
                names = _names(node.value, path)
                found.update(dict.fromkeys(names, path.name))
    return found


def _names(value: ast.expr, path: Path) -> tuple[str, ...]:
    """A tuple of strings as written, or what the module computes."""
    try:
        return tuple(ast.literal_eval(value))
    except ValueError:
        from importlib import import_module

        name = f"tests.engine.{path.stem}"
        return tuple(import_module(name).ROWS)


def test_every_executable_row_is_tested() -> None:
    tested = _tested()
    missing = [r.name for r in executable() if r.name not in tested]
    assert not missing, f"no test module of this folder lists {', '.join(missing)} in its ROWS"


def test_only_rows_of_the_table_are_listed() -> None:
    known = {r.name for r in isa.rows()}
    assert set(_tested()) <= known
