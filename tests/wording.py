"""Patterns of English that are always wrong (docs/writing.md): `python -m tests.wording` lists them, for `make lint`.

Docstrings begin with a verb or a noun. Messages of errors do not state the broken rule as a fact.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_OPENING = re.compile(r"(What|Whether|How|Where|Who|Whose|Which|When)\b(?!.*\?)")
_FACT = re.compile(r"\b(is|are) no (?!longer|more|other|such)|\b(nobody|whoever|somebody)\b", re.I)
_REPORTS = ("fail", "report", "refuse", "warn", "Diagnostic")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with such a text, and the text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, _DOCUMENTED):
            doc = ast.get_docstring(node) or ""
            if _OPENING.match(doc):
                yield getattr(node, "lineno", 1), f"begin with a verb or a noun: {doc.partition(chr(10))[0]}"
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_message = name in _REPORTS or name.endswith("Error")
            for text in filter(None, map(_text, node.args if is_message else ())):
                if " " in text and _FACT.search(text):
                    yield (
                        node.lineno,
                        f"write 'cannot ..: reason', 'expected .., got ..' or 'unknown ..': {text}",
                    )


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "%s" for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def main() -> int:
    found = [
        f"{path.relative_to(_ROOT)}:{line}: {text}"
        for folder in ("src", "tests", "bench")
        for path in sorted((_ROOT / folder).rglob("*.py"))
        for line, text in problems(path)
    ]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
