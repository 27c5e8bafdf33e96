"""`@pl.autotune`: choose compile-time parameters for the arguments of a call.

    @pl.autotune(configs=[{"ROWS": 16}, {"ROWS": 64}], key=["x"])
    @pl.jit
    def twice(x: pl.Tensor, y: pl.Out[pl.Tensor], ROWS=16): ...

    twice(x, y)                 # with the fastest ROWS for such an x, by the cost model
    twice.best(x, y)            # {"ROWS": 64}

Every configuration runs in virtual time on copies of the arguments. Configurations that are illegal, do not
fit or end with an error are left out; the fastest of the others is used. The measurement is made once per
key: the shapes and element types of the arrays that `key` names, and the values of the numbers that it names.
`pto tune` searches larger spaces.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...diag import Diagnostic, DiagnosticError, did_you_mean
from ...trials import TIMED, Outcome, digest_of, times, untimed
from . import arguments
from .jit import JitFunction


class Choice(NamedTuple):
    """The result of one configuration: microseconds of virtual time, or the reason why there are none."""

    config: dict[str, Any]
    us: float | None
    why: str = ""


class Autotuned:
    """A function of the language with tuned parameters. It has the methods of a `pl.jit` function."""

    def __init__(
        self, function: JitFunction, configs: Sequence[Mapping[str, object]], key: Sequence[str] | None,
        machine: object, results: str | None,
    ) -> None:  # fmt: skip
        self.function = function
        self.configs = [dict(c) for c in configs]
        self._machine, self._results = machine, results
        self._found: dict[str, list[Choice]] = {}
        params = list(function.declared.signature.parameters)
        chosen = {name for c in self.configs for name in c}
        self._key = [p for p in params if p not in chosen] if key is None else list(key)
        if not self.configs or not chosen:
            raise _refuse(f"missing configs for {function.name}", "configs=[{'ROWS': 16}, ..]")
        for name in (*sorted(chosen), *self._key):
            if name not in params:
                raise _refuse(
                    f"{function.name} has no parameter '{name}'",
                    did_you_mean(name, params) or ", ".join(params),
                )
        self.__name__, self.__doc__, self.__wrapped__ = function.name, function.__doc__, function.__wrapped__

    def __repr__(self) -> str:
        return f"<pl.autotune of {self.function!r}, {len(self.configs)} choices>"

    # -- the choice ------------------------------------------------------------------------------------

    def best(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """Return the fastest configuration for these arguments."""
        return dict(self.choices(*args, **kwargs)[0].config)

    def choices(self, *args: object, **kwargs: object) -> list[Choice]:
        """Return the results of all configurations, the fastest first."""
        key = self._key_of(args, kwargs)
        if key not in self._found:
            digest = digest_of([*self._source(), str(self._machine), key])
            outcomes = times(lambda c: self._timed(c, args, kwargs), self.configs, digest, self._results)
            found = [
                Choice(o.params, o.us) if o.status == TIMED else Choice(o.params, None, f"{o.code}: {o.why}")
                for o in outcomes
            ]
            if found[0].us is None:
                message = f"{self.__name__}: none of {len(found)} choices can be timed; {found[0].config}: "
                raise DiagnosticError([Diagnostic("PTO-E2902", message + found[0].why)])
            self._found[key] = found
        return self._found[key]

    def _key_of(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        given = arguments.bound(self.function.declared, args, {**self.configs[0], **kwargs})
        seen = [
            [list(v.shape), arguments.dtype_name(v.dtype)] if arguments.is_array(v) else repr(v)
            for v in (given[name] for name in self._key)
        ]
        return json.dumps(seen)

    def _timed(
        self, config: dict[str, Any], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Outcome:
        mine = {name: _copy(v) for name, v in kwargs.items()} | config
        try:
            given = [_copy(v) for v in args]
            values = list(arguments.bound(self.function.declared, tuple(given), mine).values())
            made = self.function.compile(*given, **mine)
            run = made.execute(values, virtual_time=True, machine=self._machine)
        except DiagnosticError as e:
            return untimed(config, e)
        return Outcome(config, TIMED, run.stats["virtual_ns"] / 1e3)

    def _source(self) -> list[str]:
        """Return the name and the text of the function."""
        try:
            return [self.__name__, inspect.getsource(self.function.__wrapped__)]
        except OSError:
            return [self.__name__]

    # -- as the function -------------------------------------------------------------------------------

    def _with(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """Return the keywords of a call; a parameter that the caller passes keeps the caller's value."""
        names = self.function.declared.signature.parameters
        own = {k: v for k, v in kwargs.items() if k in names}
        if all(name in own for c in self.configs for name in c):
            return dict(kwargs)
        return {**self.best(*args, **own), **kwargs}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function(*args, **self._with(args, kwargs))

    def compile(self, *args: object, **kwargs: object) -> Any:
        return self.function.compile(*args, **self._with(args, kwargs))

    def lower(self, *args: object, **kwargs: object) -> Any:
        return self.function.lower(*args, **self._with(args, kwargs))

    def run(self, *args: object, **kwargs: object) -> object:
        return self.function.run(*args, **self._with(args, kwargs))

    def explain(self, *args: object, **kwargs: object) -> str:
        return self.function.explain(*args, **self._with(args, kwargs))

    def interpret(self, *args: object, **kwargs: object) -> Any:
        return self.function.interpret(*args, **self._with(args, kwargs))


def autotune(
    configs: Sequence[Mapping[str, object]] | Mapping[str, Sequence[object]],
    key: Sequence[str] | None = None,
    *,
    machine: object = None,
    results: str | None = None,
) -> Callable[[JitFunction], Autotuned]:
    """Choose parameters of a function by measurement.

    `configs` is a list of configurations, or values by parameter, of which all combinations are tried. `key`
    names the arguments that decide (default: all that are not chosen), `machine` is the machine of virtual
    time, `results` a file that keeps the results.
    """
    if isinstance(configs, Mapping):
        values = [list(v) for v in configs.values()]
        configs = [dict(zip(configs, point, strict=True)) for point in itertools.product(*values)]

    def decorate(function: JitFunction) -> Autotuned:
        if not isinstance(function, JitFunction):
            raise _refuse("expected a function of pl.jit for pl.autotune", "write it above @pl.jit")
        return Autotuned(function, configs, key, machine, results)

    return decorate


def _copy(value: Any) -> object:
    """Return a copy of an array argument, which a trial may overwrite."""
    if not arguments.is_array(value):
        return value
    return value.copy() if hasattr(value, "copy") else value.clone()


def _refuse(message: str, help: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2901", message, help=help)])
