"""Generate `__init__.pyi`: the names of `import pto.language as pl`, for editors and type checkers.

`python -m pto.language.stub` writes it from the names of the package, `--check` checks that it is up to date.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..isa import python
from ..isa.python import names
from .dtypes import DataType
from .enums import COMPARISONS
from .operators import Namespace, Operator
from .operators.infix import INFIX
from .operators.micro import names as micro_names

TARGET = Path(__file__).with_name("__init__.pyi")
INDEX = Path(python.__file__).with_name("python_names.py")
_HEAD = '''# Made by `python -m pto.language.stub` from the operators that there are: do not edit.
# ruff: noqa
# fmt: off
"""The Python language of PTO: kernels and graphs of tasks, read from their syntax trees."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
'''
_ONE_SIDE = ("neg", "invert")


def _methods() -> Iterator[str]:
    """Yield Python's operators on arrays."""
    for name in INFIX:
        reflected = name not in (*COMPARISONS, *_ONE_SIDE)
        for word in (name.removeprefix("bit"), f"r{name.removeprefix('bit')}")[: 1 + reflected]:
            other = "" if name in _ONE_SIDE else ", other: Any"
            yield f"    def __{word}__(self{other}) -> Any: ...\n"


#: Parameters as bodies use them: the operations of an array, and no others.
_ARRAYS = '''_T = TypeVar("_T")

class _Sized(type):
    def __getitem__(cls, item: Any) -> Any: ...

class _Array:
    shape: tuple[Any, ...]
    valid_shape: tuple[Any, ...]
    dtype: DataType
    def bind_dynamic(self, *args: Any) -> None: ...
    def __getitem__(self, window: Any) -> Any: ...
    def __setitem__(self, window: Any, value: Any) -> None: ...
{operators}
class Tensor(_Array, metaclass=_Sized):
    """An array in global memory: `pl.Tensor`, or `pl.Tensor[[rows, columns], pl.FP32]`."""

class Tile(_Array, metaclass=_Sized):
    """An array in the memory of a core."""

class Out(_Array, Generic[_T]):
    """A parameter that is written and not read before: `pl.Out[pl.Tensor]`."""

class InOut(_Array, Generic[_T]):
    """A parameter that is read and written."""
'''.replace(
    "{operators}",
    "".join(_methods()),
)
_PACKAGE = __package__ or ""


def text() -> str:
    """Return the whole file."""
    names = public()
    own = [n for n in names if n not in ("Tensor", "Tile", "Out", "InOut")]
    parts = [_HEAD, *_imports({n: names[n] for n in own}), "", _ARRAYS]
    for name in own:
        parts += _shown(name, names[name])
    return "\n".join(parts).rstrip() + "\n"


def public() -> dict[str, Any]:
    """Return every name of the language, in order."""
    module = sys.modules[_PACKAGE]
    names = [n for n in dir(module) if not n.startswith("_") and n not in ("Any", "annotations")]
    found = {n: getattr(module, n) for n in names}
    return {n: v for n, v in found.items() if not inspect.ismodule(v)}


def _home(name: str, value: Any) -> str:
    """Return the module of the package that defines an object under this name."""
    module = getattr(value, "__module__", "")
    if isinstance(value, Operator | DataType) or not module.startswith(f"{_PACKAGE}."):
        return ""
    here = sys.modules.get(module)
    return module.removeprefix(f"{_PACKAGE}.") if getattr(here, name, None) is value else ""


def _imports(names: dict[str, Any]) -> Iterator[str]:
    yield from sorted({"from .dtypes import DataType as DataType"} | {
        f"from .{_home(n, v)} import {n} as {n}" for n, v in names.items() if _home(n, v)
    })  # fmt: skip


def _shown(name: str, value: Any) -> list[str]:
    """Return the lines of a name that is not imported."""
    if isinstance(value, Operator):
        return [*_function(name, value), ""]
    if isinstance(value, Namespace):
        lines = [f"class {name}:"]
        members = {n: getattr(value, n) for n in (*dir(value), *vars(value)) if not n.startswith("_")}
        for inner, item in sorted(members.items()):
            if isinstance(item, Operator):
                lines += [f"    {line}" for line in ("@staticmethod", *_function(inner, item))]
            else:
                lines.append(f"    {inner}: Any")
        return [*lines, ""]
    if _home(name, value) or value is DataType:
        return []
    if inspect.isfunction(value):
        return [f"def {name}(*args: Any, **kwargs: Any) -> Any:", f'    """{_doc(value)}"""', ""]
    kind = type(value).__name__ if isinstance(value, DataType) else "Any"
    return [f"{name}: {kind}"]


def _function(name: str, op: Operator) -> list[str]:
    """Return an operator as a function of the stub."""
    words: list[str] = []
    star = False
    for p in op.signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
        star |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else " = ..."
        words.append(f"{prefix}{p.name}: {_type(p.annotation)}{default}")
    return [f"def {name}({', '.join(words)}) -> Any:", f'    """{_doc(op)}"""']


def _doc(value: Any) -> str:
    doc = value.doc if isinstance(value, Operator) else value.__doc__
    return " ".join((doc or "").split()).replace('"""', "'''")


#: Types of parameters that are constants; the others are values of a program.
_SAID = (
    "int",
    "bool",
    "str",
    "None",
    "DataType",
    "MemorySpace",
    "PadValue",
    "AtomicType",
    "TensorLayout",
    "PipeType",
)


def _type(annotation: Any) -> str:
    words = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    return words if all(word in _SAID for word in words.replace("|", " ").split()) else "Any"


def index() -> str:
    """Return `isa/python_names.py`: the row of each function, so that rows are loaded on first use only."""
    micro = "".join(f'    "{name}",\n' for name in micro_names())
    functions = "".join(f'    "{name}": "{row}",\n' for name, row in sorted(names().items()))
    return (
        '"""The instruction of each Python function. Made by `python -m pto.language.stub`."""\n\n'
        "from __future__ import annotations\n\n"
        f"NAMES: dict[str, str] = {{\n{functions}}}\n"
        f"#: Vector instructions that are functions of `pl.micro`.\nMICRO: tuple[str, ...] = (\n{micro})\n"
    )


def main(args: list[str]) -> int:
    from ..codegen.generated import write

    check = "--check" in args
    known = INDEX.read_text()
    made = index()
    if write(INDEX, made, "pto.language.stub", check):
        return 1  # compares with the names of this process, not with the rows
    if made != known:  # operators are made from the index when the language is imported
        return subprocess.run([sys.executable, "-m", "pto.language.stub"]).returncode
    return write(TARGET, text(), "pto.language.stub", check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
