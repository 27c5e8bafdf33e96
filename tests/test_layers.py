"""Imports go down only: who may import whom, as docs/development.md draws it."""

from __future__ import annotations

import ast
from pathlib import Path

import pto

#: From the lowest layer to the highest; those in one line do not know each other.
LAYERS = (
    ("isa", "diag"),
    ("knobs", "perf", "ir"),
    ("asm", "verify", "passes"),
    ("bytecode", "witness"),
    ("frontdoor", "codegen"),
    ("engine",),
    ("runtime",),
    ("cli",),
)
ROOT = Path(pto.__file__).parent


def imported(path: Path) -> set[str]:
    """The layers that a module imports, anywhere in it."""
    package = path.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            if node.level <= len(package) + 1:
                names = [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
                found |= {base[0]} if base else set(names)
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("pto.")}
    return found


def test_imports_go_down() -> None:
    height = {name: n for n, names in enumerate(LAYERS) for name in names}
    modules = [p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py"]
    layers = {p: p.relative_to(ROOT).parts[0].removesuffix(".py") for p in modules}
    assert set(layers.values()) == set(height), "a layer is missing here, or gone"
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules
        for name in imported(path)
        if name in height and name != layers[path] and height[name] >= height[layers[path]]
    ]
    assert not wrong
    assert any(imported(p) - {layers[p]} for p in modules)  # it does see imports


#: What other layers call of the verifier; the command lines may also know its levels.
CALLS = {"verify", "verify_flags"}


def test_facts_are_not_asked_of_the_verifier() -> None:
    """Others call it, and learn what an operation is from `ir`."""
    wrong: list[str] = []
    seen: set[str] = set()
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[:-1]
        if package[:1] in (("verify",), ("cli",)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            if base[0] == "verify":
                names = {a.name for a in node.names}
                seen |= names
                if base != ("verify",) or not names <= CALLS:
                    wrong.append(f"{path.relative_to(ROOT)} imports {', '.join(names)} of {'.'.join(base)}")
    assert not wrong
    assert seen == CALLS
