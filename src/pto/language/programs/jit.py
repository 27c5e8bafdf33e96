"""Decorators and the functions that they make, which are read, lowered and run for the arguments of a
call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ...diag import Diagnostic, DiagnosticError
from ..declare import Declared
from ..enums import FunctionType, Level, Role
from ..interpreter.current import current, interpreter
from ..problems import SYNTAX
from .arguments import WrongArguments

_KINDS = {
    FunctionType.Opaque: "opaque", FunctionType.Orchestration: "orchestration", FunctionType.InCore: "incore",
    FunctionType.AIC: "aic", FunctionType.AIV: "aiv", FunctionType.Group: "group", FunctionType.Spmd: "group",
    FunctionType.Inline: "inline", FunctionType.Graph: "orchestration",
}  # fmt: skip


def _enclosing(depth: int) -> dict[str, Any]:
    """Return the names of the function that encloses a decorated one; none at module level."""
    frame = sys._getframe(depth)
    names: dict[str, Any] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        names = {**frame.f_locals, **names}
        if "__qualname__" not in frame.f_locals:
            break
        frame = frame.f_back  # a class body is nested in the function
    return names


def _plainly(method: Callable[..., object]) -> Callable[..., Any]:
    """Re-raise user errors without internal frames."""

    @functools.wraps(method)
    def call(self: object, *args: object, **kwargs: object) -> Any:
        try:
            return method(self, *args, **kwargs)
        except (DiagnosticError, WrongArguments) as e:
            raise e.with_traceback(None) from None

    return call


class JitFunction:
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
        self.declared = declared
        self._cache: dict[Any, Any] = {}
        self._quick: dict[Any, Any] = {}  # cache keys by shapes and dtypes of the arguments
        self.__name__ = declared.name
        self.__doc__ = declared.function.__doc__
        self.__wrapped__ = declared.function

    def __repr__(self) -> str:
        return f"<pl.jit {self.declared.said} {self.declared.name}>"

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def params(self) -> list[str]:
        return list(self.declared.signature.parameters)

    @property
    def return_types(self) -> list[Any]:
        """Return the annotated results."""
        said = self.declared.function.__annotations__.get("return")
        return [] if said is None else list(said) if isinstance(said, tuple) else [said]

    def as_python(self, concise: bool = False) -> str:
        """Return the program as text; all types must be annotated."""
        return Method(self.declared).as_python(concise)

    @_plainly
    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        it = current.get()
        if it is not None:  # called by an executing body
            return it.call(self.declared, args, kwargs)
        from .call import call

        return call(self, args, kwargs, config)

    @_plainly
    def lower(self, *args: object, config: object = None, dump: object = None, **kwargs: object) -> Any:
        """Return the program after every stage; `dump` is a folder for the program after each stage."""
        from .call import lower

        return lower(self, args, kwargs, config, dump)

    @_plainly
    def compile(self, *args: object, config: object = None, **kwargs: object) -> Any:
        from .call import compiled

        return compiled(self, args, kwargs, config)

    @_plainly
    def run(self, *args: object, **kwargs: object) -> Any:
        from .call import run

        return run(self, args, kwargs)

    @_plainly
    def prove(self, *args: Any, assume: Any = (), timeout: float = 60.0, **kwargs: Any) -> Any:
        """Prove that no kernel of the program has an access outside memory, a flag error or a race, for all
        extents and numbers; or show values that cause one. Arguments without an annotated type are required;
        other arguments may be missing. `assume` has conditions, e.g. ["ROWS % 32 == 0"].
        """
        from .call import proved

        return proved(self, args, kwargs, assume, timeout)

    @_plainly
    def explain(self, *args: Any, config: Any = None, **kwargs: Any) -> str:
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

        return interpret(self, args, kwargs, profile_of(config, target))


class _Jit:
    """`@pl.jit` and `@pl.jit.incore`, with or without options in parentheses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
    func: Callable[..., Any] | None = None, *, type: FunctionType = FunctionType.Opaque, level: Any = None,
    role: Any = None, attrs: Any = None, auto_scope: bool = True, strict_ssa: bool = False,
    external_source: Any = None,
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


class ProgramClass:
    """A class of functions, which call one another as `self.name`. A call runs its orchestration."""

    def __init__(self, name: str, methods: dict[str, Method]) -> None:
        self.__name__ = name
        self.methods = methods
        for method in methods.values():
            method.declared.owner = self
        self._cache: dict[Any, Any] = {}
        self._quick: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("methods", {})
        if name in methods:
            return methods[name]
        raise AttributeError(f"program {self.__dict__.get('__name__')} has no function '{name}'")

    @property
    def name(self) -> str:
        return self.__name__

    @property
    def functions(self) -> dict[str, Declared]:
        return {n: m.declared for n, m in self.methods.items()}

    def get_function(self, name: str) -> Declared | None:
        return self.functions.get(name)

    @property
    def declared(self) -> Declared:
        kinds = {m.declared.kind: m.declared for m in reversed(self.methods.values())}
        for kind in ("host", "orchestration", "incore"):
            if kind in kinds:
                return kinds[kind]
        return next(iter(self.methods.values())).declared

    __call__ = JitFunction.__call__
    lower = JitFunction.lower
    compile = JitFunction.compile
    run = JitFunction.run
    explain = JitFunction.explain
    interpret = JitFunction.interpret

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


def program(cls: Any = None, *, strict_ssa: bool = False) -> Any:
    """Declare a class of functions as a program."""

    def make(cls: Any) -> ProgramClass:
        methods = {n: m for n, m in vars(cls).items() if isinstance(m, Method)}
        if not methods:
            raise DiagnosticError([_empty(cls)])
        for method in methods.values():
            method.declared.strict |= strict_ssa
        return ProgramClass(cls.__name__, methods)

    return make if cls is None else make(cls)
