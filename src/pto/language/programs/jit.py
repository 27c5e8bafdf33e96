"""Decorators and the functions that they make, which are read, lowered and run for the arguments of a
call."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ...diag import Diagnostic, DiagnosticError
from ..declare import Declared
from ..enums import FunctionType, Level, Role
from ..interpreter.current import current, interpreter
from ..problems import SYNTAX
from .arguments import WrongArguments

if TYPE_CHECKING:
    from .compiled import Compiled, RunResult
    from .lower import LoweredProgram
    from .prove import ProgramProof

_P = ParamSpec("_P")
_R = TypeVar("_R")

_KINDS = {
    FunctionType.Opaque: "opaque", FunctionType.Orchestration: "orchestration", FunctionType.InCore: "incore",
    FunctionType.AIC: "aic", FunctionType.AIV: "aiv", FunctionType.Group: "group", FunctionType.Spmd: "group",
    FunctionType.Inline: "inline", FunctionType.Graph: "orchestration",
}  # fmt: skip


def _enclosing(depth: int) -> dict[str, object]:
    """Return the names of the function that encloses a decorated one; none at module level."""
    frame = sys._getframe(depth)
    names: dict[str, object] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        names = {**frame.f_locals, **names}
        if "__qualname__" not in frame.f_locals:
            break
        frame = frame.f_back  # a class body is nested in the function
    return names


def _plainly(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Re-raise user errors without internal frames."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except (DiagnosticError, WrongArguments) as e:
            raise e.with_traceback(None) from None

    return call


class _Calls:
    """The calls of a function, and of a program."""

    def __init__(self, name: str) -> None:
        self._cache: dict[object, Compiled] = {}
        self._quick: dict[object, object] = {}  # cache keys by shapes and dtypes of the arguments
        self.__name__ = name

    @property
    def declared(self) -> Declared:
        """Return the function that runs."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.__name__

    @_plainly
    def __call__(self, *args: object, config: object = None, **kwargs: object) -> Any:
        it = current.get()
        if it is not None:  # called by an executing body
            return it.call(self.declared, args, kwargs)
        from .call import call

        return call(self, args, kwargs, config)

    @_plainly
    def lower(
        self, *args: object, config: object = None, dump: str | os.PathLike[str] | None = None,
        **kwargs: object,
    ) -> LoweredProgram:  # fmt: skip
        """Return the program after every stage; `dump` is a folder for the program after each stage."""
        from .call import lower

        return lower(self, args, kwargs, config, dump)

    @_plainly
    def compile(self, *args: object, config: object = None, **kwargs: object) -> Compiled:
        from .call import compiled

        return compiled(self, args, kwargs, config)

    @_plainly
    def run(self, *args: object, **kwargs: object) -> RunResult:
        from .call import run

        return run(self, args, kwargs)

    @_plainly
    def explain(self, *args: object, config: object = None, **kwargs: object) -> str:
        """Return the graph of tasks, and the memory and the inserted flags of every kernel, as text."""
        from .call import explain

        return explain(self, args, kwargs, config)

    @_plainly
    def interpret(
        self, *args: object, config: object = None, target: str | None = None, **kwargs: object
    ) -> Any:
        """Execute the body as ordinary Python: `print` and breakpoints work, the numbers are the same."""
        from ..interpreter.interpret import interpret
        from .call import profile_of

        return interpret(self.declared, args, kwargs, profile_of(config, target))


class JitFunction(_Calls):
    """A function of the language that Python calls with arrays and numbers.

    f(a, b, out)               run it; arrays are used in place
    f.lower(a, b, out)         the program for such arguments, after every pass
    f.compile(a, b, out)       the same, ready to run and to save
    f.run(a, b, out, ...)      run it under observers: engine=, sanitize=, ...
    f.prove(a, b, out)         whether some call can have an error, for all extents of pl.dynamic
    f.explain(a, b, out)       its tasks and their order, its memory, its flags, as text
    f.interpret(a, b, out)     execute its body as ordinary Python
    """

    def __init__(self, declared: Declared) -> None:
        super().__init__(declared.name)
        self._declared = declared
        self.__doc__ = declared.function.__doc__
        self.__wrapped__ = declared.function

    def __repr__(self) -> str:
        return f"<pl.jit {self.declared.said} {self.declared.name}>"

    @property
    def declared(self) -> Declared:
        return self._declared

    @property
    def params(self) -> list[str]:
        return list(self.declared.signature.parameters)

    @property
    def return_types(self) -> list[object]:
        """Return the annotated results."""
        said = self.declared.function.__annotations__.get("return")
        return [] if said is None else list(said) if isinstance(said, tuple) else [said]

    def as_python(self, concise: bool = False) -> str:
        """Return the program as text; all types must be annotated."""
        return Method(self.declared).as_python(concise)

    @_plainly
    def prove(
        self, *args: object, assume: Sequence[str] = (), timeout: float = 60.0, **kwargs: object
    ) -> ProgramProof:
        """Prove that no kernel of the program has an access outside memory, a flag error or a race, for all
        extents and numbers; or show values that cause one. Arguments without an annotated type are required;
        other arguments may be missing. `assume` has conditions, e.g. ["ROWS % 32 == 0"].
        """
        from .call import proved

        return proved(self, args, kwargs, assume, timeout)


class _Jit:
    """`@pl.jit` and `@pl.jit.incore`, with or without options in parentheses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(self, function: Callable[..., object] | None = None, /, **options: Any) -> Any:
        enclosing = _enclosing(2)
        if function is not None:
            return JitFunction(Declared(function, self._kind, enclosing, **options))
        return lambda f: JitFunction(Declared(f, self._kind, enclosing, **options))


class _JitFamily(_Jit):
    def __init__(self) -> None:
        super().__init__("orchestration")
        self.incore = _Jit("incore")
        self.inline = _Jit("inline")
        self.opaque = _Jit("opaque")
        self.host = _Jit("host")
        self.extern = _Jit("extern")


jit = _JitFamily()
inline = _Jit("inline")


class Method:
    """A function of a program class, made by `@pl.function`."""

    def __init__(self, declared: Declared) -> None:
        self.declared = declared

    def __call__(self, *args: object, **kwargs: object) -> object:
        return interpreter(f"{self.declared.name} of a program").call(self.declared, args, kwargs)

    def as_python(self, concise: bool = False) -> str:
        """Return the text of its program; a function without a class is a program of one function."""
        name = self.declared.name
        return (self.declared.owner or ProgramClass(name, {name: self})).as_python(concise)

    def __str__(self) -> str:
        return self.as_python()


def kind_of(type: FunctionType, level: Any = None) -> str:
    """Return the kind of a function of a program class."""
    return "host" if level in (Level.HOST, Level.GLOBAL, Level.POD) else _KINDS[type]


def function(
    func: Callable[..., object] | None = None, *, type: FunctionType = FunctionType.Opaque,
    level: Level | None = None, role: Role | None = None, attrs: object = None, auto_scope: bool = True,
    strict_ssa: bool = False, external_source: object = None,
) -> Any:  # fmt: skip
    """Declare a function of a program class, or a function of its own."""
    enclosing = _enclosing(2)

    def make(f: Callable[..., object]) -> Method:
        method = declare(f)
        method.declared.strict, method.declared.attrs = strict_ssa, attrs
        return method

    def declare(f: Callable[..., object]) -> Method:
        if external_source is not None:
            core = type.name.lower()  # extern.py rejects other kinds than aic and aiv
            return Method(
                Declared(f, "extern", enclosing, method=True, core_type=core, source=external_source)
            )
        kind = "python" if role is Role.SubWorker else kind_of(type, level)
        return Method(Declared(f, kind, enclosing, method=True, auto_scope=auto_scope))

    return make if func is None else make(func)


class ProgramClass(_Calls):
    """A class of functions, which call one another as `self.name`. A call runs its orchestration."""

    def __init__(self, name: str, methods: dict[str, Method]) -> None:
        super().__init__(name)
        self.methods = methods
        for method in methods.values():
            method.declared.owner = self

    def __getattr__(self, name: str) -> Method:
        methods = self.__dict__.get("methods", {})
        if name in methods:
            return methods[name]
        raise AttributeError(f"program {self.__dict__.get('__name__')} has no function '{name}'")

    @property
    def functions(self) -> dict[str, Declared]:
        return {n: m.declared for n, m in self.methods.items()}

    def get_function(self, name: str) -> Declared | None:
        return self.functions.get(name)

    @property
    def declared(self) -> Declared:
        kinds = {m.declared.kind: m.declared for m in reversed(self.methods.values())}
        found = (kinds[kind] for kind in ("host", "orchestration", "incore") if kind in kinds)
        return next(found, next(iter(self.methods.values())).declared)

    def as_python(self, concise: bool = False) -> str:
        """Return the program as text; all types of its functions must be annotated."""
        from ..ir.printer import program_text
        from .lower import exact

        return program_text(exact(self), concise)

    def __str__(self) -> str:
        return self.as_python()


def _empty(cls: type) -> Diagnostic:
    from ..reader.source import class_at

    return Diagnostic(
        SYNTAX,
        f"missing function in program {cls.__name__}",
        class_at(cls),
        help="decorate methods: @pl.function",
    )


def program(cls: type | None = None, *, strict_ssa: bool = False) -> Any:
    """Declare a class of functions as a program."""

    def make(cls: type) -> ProgramClass:
        methods = {n: m for n, m in vars(cls).items() if isinstance(m, Method)}
        if not methods:
            raise DiagnosticError([_empty(cls)])
        for method in methods.values():
            method.declared.strict |= strict_ssa
        return ProgramClass(cls.__name__, methods)

    return make if cls is None else make(cls)
