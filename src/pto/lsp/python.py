"""Functions of the Python language in Python files: diagnostics, pages of `pl.*`, shapes of tiles.

Nothing of the file is executed. The syntax tree gives decorators, annotations, constants, and the arrays of
calls (`arrays`); the reader of the language reads the bodies. A hint gives the reason if a function is not
analysed: it needs a value of another module, or a shape that neither its annotations nor a call gives.
"""

from __future__ import annotations

import ast
import linecache
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from .. import language as pl
from ..asm.lexer import Tokens
from ..checking import Checked
from ..diag import Diagnostic, DiagnosticError, Source, Span
from ..isa.profiles import PROFILES
from ..isa.record import Record
from ..language.catalogue import families
from ..language.declare import Declared
from ..language.ir import Program, TensorType, TileType
from ..language.problems import Problem
from ..language.programs.arguments import WrongArguments, bound, types_of
from ..language.programs.jit import Method, ProgramClass, kind_of
from ..language.programs.lower import read, stages
from ..language.reader.source import PythonFile
from .arrays import Calls, Unknown
from .document import Document
from .hints import Hint
from .pages import fence

_MODULES = ("pto.language", "pypto.language")
_KINDS = {"jit": "orchestration", "inline": "inline"}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Div: operator.truediv, ast.Pow: lambda a, b: a**b if abs(b) < 64 else a / 0,
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: Largest constant, so that products of constants stay small.
_LARGEST = 1 << 64


class ReadFile(Record):
    """A Python file with its functions of the language: their diagnostics, and hints for its text."""

    alias: str
    diagnostics: list[Diagnostic]
    hints: list[Hint]


class CheckedPython(Checked):
    """A Python file that was checked."""

    read: ReadFile = ReadFile("", [], [])


def check_python(source: Source) -> CheckedPython:
    """Read the functions of the language in a file, as far as its text gives their types."""
    nothing = Tokens(source)
    nothing.texts.append("")
    nothing.starts.append(len(source.text))
    try:
        file = PythonFile(source.name, source.text)
    except (SyntaxError, ValueError, RecursionError):
        return CheckedPython(source, [], nothing, read=ReadFile("", [], []))
    alias = _alias(file.tree)
    found = _FunctionReader(file, alias).read() if alias else ReadFile("", [], [])
    own = [_moved(d, source) for d in found.diagnostics]
    return CheckedPython(source, own, nothing, read=found)


def _moved(d: Diagnostic, source: Source) -> Diagnostic:
    """Return a diagnostic with its location in this source, which has the same text as that of the reader."""

    def here(span: Span | None) -> Span | None:
        return (
            Span(source, span.start, span.end)
            if span is not None and span.source.text == source.text
            else span
        )

    made = Diagnostic(d.code, d.message, here(d.span), d.severity, d.expected, d.got, d.help)
    made.notes = [(text, here(span)) for text, span in d.notes]
    return made


def _alias(tree: ast.Module) -> str:
    """Return the name of the language in a file; empty if the file does not import the language."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = next((a.asname for a in node.names if a.name in _MODULES and a.asname), None)
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.language" in _MODULES:
            found = next((a.asname or a.name for a in node.names if a.name == "language"), None)
        else:
            continue
        if found:
            return found
    return ""


class _FileNames(dict[str, Any]):
    """Names of a file. A name that is bound to an unknown value raises `Unknown`."""

    def __init__(self, known: Mapping[str, Any], bound: set[str]) -> None:
        super().__init__(known)
        self._bound = bound

    def __missing__(self, name: str) -> Any:
        raise Unknown(f"the value of {name} is unknown") if name in self._bound else KeyError(name)


class _FunctionReader:
    def __init__(self, file: PythonFile, alias: str) -> None:
        self.file = file
        bound = {
            n.id for n in ast.walk(file.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                bound |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        self.names = _FileNames({alias: pl, "int": int, "float": float, "bool": bool}, bound)
        self.alias = alias
        self.calls = Calls(file.tree, self._value)
        self.diagnostics: list[Diagnostic] = []
        self.hints: list[Hint] = []
        self.done: set[str] = set()  # functions of programs that were read

    def read(self) -> ReadFile:
        source = self.file.source
        linecache.cache[source.name] = (len(source.text), None, source.text.splitlines(True), source.name)
        try:
            entries = [found for node in self.file.tree.body if (found := self._entry(node)) is not None]
            # what tasks call has its types from them
            for kinds in (("host",), ("orchestration", "opaque"), ("incore", "aic", "aiv", "group")):
                for node, declared in entries:
                    if declared.said in kinds:
                        self._program(node, declared)
            for outer in self.file.tree.body:
                for inner in ast.walk(outer) if isinstance(outer, ast.FunctionDef) else ():
                    if inner is not outer and isinstance(inner, ast.FunctionDef | ast.ClassDef):
                        if any(self._decorator(_called(d)) for d in inner.decorator_list):
                            self._not_analysed(inner, "it is inside a function")
        finally:
            del linecache.cache[source.name]
        return ReadFile(self.alias, self.diagnostics, sorted(set(self.hints)))

    def _entry(self, node: ast.stmt) -> tuple[ast.FunctionDef | ast.ClassDef, Declared] | None:
        """Note a constant, function or class of the file; return a function or class that may be launched."""
        if isinstance(node, ast.Assign):
            self._constants(node.targets[0], node.value)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            return None
        self.names.pop(node.name, None)
        try:
            found = self._class(node) if isinstance(node, ast.ClassDef) else self._declared(node)
        except Unknown as e:
            self._not_analysed(node, str(e))
            return None
        except Problem as e:
            self.diagnostics.append(e.diagnostic)
            return None
        if found is None:
            return None
        self.names[node.name] = found
        return node, found.declared

    def _class(self, node: ast.ClassDef) -> ProgramClass | None:
        """Return the program of a class."""
        if not any(self._decorator(d) == ("program",) for d in map(_called, node.decorator_list)):
            return None
        methods: dict[str, Method] = {}
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and (made := self._declared(inner)) is not None:
                methods[inner.name] = Method(made.declared)
        return ProgramClass(node.name, methods) if methods else None

    def _not_analysed(self, node: ast.FunctionDef | ast.ClassDef, why: str) -> None:
        """Add a hint behind the first line of a function."""
        start = self.file.span(node).start
        at = self.file.source.text.find(node.name, start) + len(node.name)
        end = self.file.source.text.find("\n", at)
        text = f"not analysed: {why or 'a part of it is known at run time only'}"
        self.hints.append(Hint(end if end >= 0 else at, text, "the text of a file is read, not run"))

    def _program(self, node: ast.FunctionDef | ast.ClassDef, declared: Declared) -> None:
        """Read a function with all that it calls; add its problems and hints."""
        if isinstance(node, ast.FunctionDef) and node.name in self.done:
            return
        try:
            program, warnings = read(declared, self._types(node, declared), PROFILES["a2a3"])
            self.done |= program.functions.keys()
            self.diagnostics += warnings
            *_, (_, last) = stages(program)
            self.hints += self._shapes(last)
        except Unknown as e:
            self._not_analysed(node, str(e))
        except Problem as e:
            self.diagnostics.append(e.diagnostic)
        except DiagnosticError as e:
            for d in e.diagnostics:
                d.span = d.span or self.file.span(node).head
            self.diagnostics += e.diagnostics

    def _types(self, node: ast.FunctionDef | ast.ClassDef, declared: Declared) -> list[Any]:
        """Return the types of the parameters, from their annotations or from a call; raise Unknown if neither
        gives them."""
        types: list[Any] = []
        for name in declared.signature.parameters:
            given = declared.annotations.get(name)
            if (
                given is None
                or given.dtype is None
                or given.kind not in ("tensor", "scalar")
                or (given.kind == "tensor" and (given.shape is None or given.distributed))
            ):
                break
            if given.kind == "scalar":
                types.append(1.0 if given.dtype.is_float else 1)
            else:
                types.append(TensorType(given.dtype, tuple(given.shape or ()), layout=given.layout))
        else:
            return types
        try:
            args, kwargs = self.calls.arguments(node.name)
            return types_of(declared, bound(declared, tuple(args), kwargs))
        except (Unknown, WrongArguments):
            help = "write pl.Tensor[[rows, columns], pl.FP32]"
            raise Unknown(f"the type of {name} is unknown; {help}") from None

    def _constants(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(name), _:
                try:
                    self.names[name] = self._value(value)
                except Unknown:
                    self.names.pop(name, None)
            case ast.Tuple(names), ast.Tuple(values) if len(names) == len(values):
                for each, of in zip(names, values, strict=True):
                    self._constants(each, of)
            case _:
                pass

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an expression of constants and types of the language; raise `Unknown` for any
        other."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.List(items):
                return [self._value(i) for i in items]
            case ast.Tuple(items):
                return tuple(self._value(i) for i in items)
            case ast.UnaryOp(ast.USub(), operand):
                return -self._number(operand)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return self._combined(_OPERATORS[type(op)], left, right)
            case ast.Attribute(ast.Name(self.alias), name) if name[:1] != "_" and hasattr(pl, name):
                return getattr(pl, name)
            case ast.Attribute(ast.Attribute(ast.Name(self.alias), of), name) if name[:1] != "_":
                return getattr(getattr(pl, of, None), name, None)
            case ast.Subscript(ast.Attribute(ast.Name(self.alias), _) as of, inner):
                return self._subscript(self._value(of), self._value(inner))
            case ast.Call(ast.Attribute(ast.Name(self.alias), "dynamic"), [ast.Constant(str(name))], []):
                return pl.dynamic(name)
            case _:
                raise Unknown

    def _number(self, node: ast.expr) -> int | float:
        found = self._value(node)
        if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > _LARGEST:
            raise Unknown
        return found

    def _combined(self, op: Callable[[Any, Any], Any], left: ast.expr, right: ast.expr) -> Any:
        try:
            return op(self._number(left), self._number(right))
        except (ArithmeticError, ValueError, TypeError):
            raise Unknown from None

    def _subscript(self, of: Any, inner: Any) -> Any:
        try:
            return of[inner]
        except (TypeError, KeyError, ValueError, Problem):
            raise Unknown from None

    def _decorator(self, node: ast.expr) -> tuple[str, ...]:
        """Return the names of a decorator of the language, without the module: ("jit", "incore")."""
        match node:
            case ast.Attribute(ast.Name(self.alias), name):
                return (name,)
            case ast.Attribute(of, name) if found := self._decorator(of):
                return (*found, name)
            case _:
                return ()

    def _kind(self, node: ast.FunctionDef) -> tuple[str, dict[str, Any]]:
        """Return the kind of a decorated function and its options; no kind for other functions."""
        for d in node.decorator_list:
            kind = self._decorator(_called(d))
            written = d.keywords if isinstance(d, ast.Call) and kind else []
            options = {k.arg: self._value(k.value) for k in written if k.arg}
            if kind == ("function",):
                type, level = options.get("type", pl.FunctionType.Opaque), options.get("level")
                if options.get("role") or "external_source" in options:
                    raise Unknown("the function is not of the language")
                return kind_of(type, level), {"method": True}
            if kind == ("jit", "extern"):
                raise Unknown("the function is in C++")
            if kind and (kind[0] in _KINDS or kind[0] == "jit"):
                return _KINDS[kind[-1]] if kind[-1] in _KINDS else kind[-1], options
        return "", {}

    def _declared(self, node: ast.FunctionDef) -> Any:
        """Return an object with the declaration of a decorated function, whose text is read; None for other
        functions."""
        kind, options = self._kind(node)
        if not kind:
            return None
        import inspect

        if (
            node.args.posonlyargs
            or node.args.kwonlyargs
            or node.args.vararg
            or node.args.kwarg
            or node.args.defaults
        ):
            raise Unknown("its parameters have defaults, or are not by position")
        types = {a.arg: self._value(a.annotation) for a in node.args.args if a.annotation is not None}
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        empty = inspect.Parameter.empty
        params = [inspect.Parameter(a.arg, kinds, annotation=types.get(a.arg, empty)) for a in node.args.args]
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        code = SimpleNamespace(
            co_filename=self.file.source.name, co_firstlineno=first, co_freevars=(), co_names=used
        )

        def function(*_: object) -> None:
            raise AssertionError("functions of an editor are only read")

        stand_in: Any = _StandIn(function)
        stand_in.__name__, stand_in.__doc__ = node.name, ast.get_docstring(node)
        stand_in.__code__, stand_in.__closure__, stand_in.__globals__ = code, None, self.names
        stand_in.__signature__ = inspect.Signature(params)
        result = {} if node.returns is None else {"return": self._value(node.returns)}
        stand_in.__annotations__ = {**types, **result}
        return SimpleNamespace(declared=Declared(stand_in, kind, **options))

    def _shapes(self, program: Program) -> Iterator[Hint]:
        """Yield shape, element type and memory of the tiles that have names."""
        made = {
            (op.loc.start, op.loc.end): op.results[0].type
            for function in program.functions.values()
            for op in function.walk()
            if op.loc is not None and op.results and isinstance(op.results[0].type, TileType)
        }
        for node in ast.walk(self.file.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                span = self.file.span(node.value)
                if (type := made.get((span.start, span.end))) is not None:
                    shape = ", ".join(map(str, type.shape))
                    space = f" {type.space}" if type.space else ""
                    end = self.file.span(node.targets[0]).end
                    yield Hint(end, f": [{shape}] {type.dtype.name}{space}", f"tile {node.targets[0].id}")


class _StandIn:
    """An object with the attributes of a Python function that declarations read."""

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *args: object) -> None:
        self._call(*args)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def hover(document: Document, offset: int) -> tuple[str, int, int] | None:
    """Return the page of an operator, type or enumeration of the language under the cursor."""
    checked = document.checked
    alias = checked.read.alias if isinstance(checked, CheckedPython) else ""
    start = document.text.rfind("\n", 0, offset) + 1
    line = document.text[start:].partition("\n")[0]
    for m in _NAME.finditer(line):
        if m.start() <= offset - start <= m.end() and alias and m[0].startswith(f"{alias}."):
            word = m[0].removeprefix(f"{alias}.")
            page = _pages().get(f"pl.{word}") or _described(word)
            return (page, start + m.start(), start + m.end()) if page else None
    return None


def _pages() -> dict[str, str]:
    """Return the pages of all operators by name."""
    return {
        e.call.partition("(")[0]: "\n\n".join([
            fence([e.call]).replace("```pto", "```python"), e.doc,
            *(f"instruction `{r.full_name}`: {r.doc}" for r in e.rows), f"targets: {', '.join(e.targets)}",
        ])
        for entries in families().values() for e in entries
    }  # fmt: skip


def _described(word: str) -> str:
    """Return the description of another name of the language."""
    found: Any = pl
    for part in word.split("."):
        if part[:1] == "_" or not hasattr(found, part):
            return ""
        found = getattr(found, part)
    doc = getattr(found, "__doc__", None) if callable(found) or isinstance(found, type) else None
    return f"`pl.{word}`: {(doc or repr(found)).strip()}"
