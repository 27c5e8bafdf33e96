"""No hole: every row of the table is executed by the engine, and some test module answers for it."""

from __future__ import annotations

import ast
from pathlib import Path

from pto import isa
from pto.engine.reference import control, fifo, handles, registry, scalars, sync
from pto.ir import multi_tiles
from pto.isa.algorithms import ALGORITHMS, kind_of
from pto.isa.row import Row

HERE = Path(__file__).parent


def has_executor(row: Row) -> bool:
    return (
        (row.set == "scalar" and bool(row.expr))
        or kind_of(row)[0] in scalars.ALGORITHMS
        or row.name in handles.HANDLERS
        or sync.orders(row.name)
        or row.name in fifo.HANDLERS
        or control.is_structured(row.name)
        or registry.find(row) is not None
        or row.full_name in (multi_tiles.ALLOC, multi_tiles.GET)  # which become others first
    )


def test_every_row_has_an_executor() -> None:
    assert [row.name for row in isa.rows() if not has_executor(row)] == []


def test_executors_are_of_algorithms_that_exist() -> None:
    assert registry.known() | set(scalars.ALGORITHMS) <= set(ALGORITHMS)


def _tested() -> dict[str, str]:
    """Row names that test modules answer for, by their module-level `ROWS`."""
    found: dict[str, str] = {}
    for path in [*HERE.glob("test_*.py"), *HERE.glob("vector/test_*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "ROWS" for t in node.targets
            ):
                names = _names(node.value, path)
                found.update(dict.fromkeys(names, path.name))
    return found


def _names(value: ast.expr, path: Path) -> tuple[str, ...]:
    """Return a tuple of strings as written, or as computed by the module."""
    try:
        return tuple(ast.literal_eval(value))
    except ValueError:
        from importlib import import_module

        name = ".".join(("tests", "engine", *path.relative_to(HERE).with_suffix("").parts))
        return tuple(import_module(name).ROWS)


def test_every_executable_row_is_tested() -> None:
    tested = _tested()
    known = [r.name for r in isa.rows()]
    assert set(tested) <= set(known)
    missing = [name for name in known if name not in tested]
    assert not missing, f"no test module of this folder lists {', '.join(missing)} in its ROWS"
