"""Replacement of `simpler_setup.scene_test`: tests with an orchestration, cases, and expected results.

A class has its sources in CALLABLE and its cases in CASES, and defines `generate_args` and `compute_golden`.
pytest runs its `test_run`; a script ends with `SceneTestCase.run_module(__name__)`.
"""

from __future__ import annotations

import argparse
import copy
import enum
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from ... import knobs
from ...diag import Diagnostic, DiagnosticError
from ...runtime.golden import as_array
from .buffers import Buffer, Tensor
from .callables import CallableHandle, ChipCallable, CoreCallable, KernelCompiler
from .directions import ArgDirection
from .logs import DEFAULT_LOG_LEVEL, LOG_LEVEL_CHOICES, configure_logging
from .refused import refuse
from .schedule import device_range_to_list
from .task_interface import CallConfig, TaskArgs, TensorArgType, as_tensor, scalar_to_uint64
from .worker import Worker

BAD_SCENE = "PTO-E3107"
_TAGS = {
    ArgDirection.IN: TensorArgType.INPUT,
    ArgDirection.OUT: TensorArgType.OUTPUT_EXISTING,
    ArgDirection.INOUT: TensorArgType.INOUT,
}
_CONFIG_KEYS = ("aicpu_thread_num", "block_dim", "runtime_env", "device_count", "num_sub_workers")
_RING_KEYS = ("ring_task_window", "ring_heap", "ring_dep_pool")


class SceneTestLevel(enum.IntEnum):
    CHIP = 2
    NODE = 3
    NETWORK1 = 4


class TensorArg(NamedTuple):
    name: str
    value: Any


class Scalar(NamedTuple):
    name: str
    value: Any


class TaskArgsBuilder:
    """Arguments with names: `args.a` is the value of `a`. Tensors come before scalars."""

    def __init__(self, *specs: TensorArg | Scalar) -> None:
        self._specs: list[Any] = []
        self._data: dict[str, object] = {}
        for spec in specs:
            self._add(spec)

    def add_tensor(self, name: str, value: object) -> None:
        self._add(TensorArg(name, value))

    def add_scalar(self, name: str, value: object) -> None:
        self._add(Scalar(name, value))

    def _add(self, spec: TensorArg | Scalar) -> None:
        if spec.name in self._data:
            raise ValueError(f"TaskArgsBuilder: duplicate argument name {spec.name!r}")
        if hasattr(type(self), spec.name):
            raise ValueError(
                f"TaskArgsBuilder: argument name {spec.name!r} conflicts with builder attributes"
            )
        if isinstance(spec, TensorArg) and any(isinstance(s, Scalar) for s in self._specs):
            raise ValueError(f"TaskArgsBuilder: tensor {spec.name!r} comes after a scalar")
        self._specs.append(spec)
        self._data[spec.name] = spec.value

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._data:
            return self._data[name]
        raise AttributeError(f"TaskArgsBuilder has no argument '{name}'")

    def clone(self) -> TaskArgsBuilder:
        return TaskArgsBuilder(*(type(s)(s.name, _copied(s.value)) for s in self._specs))

    @property
    def specs(self) -> list[Any]:
        return self._specs

    def tensor_names(self) -> list[str]:
        return [s.name for s in self._specs if isinstance(s, TensorArg)]


def _copied(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else copy.copy(value)


class CallableNamespace:
    """Callables by name. `keep` keeps objects alive as long as the namespace."""

    def __init__(self, entries: Mapping[str, object]) -> None:
        self._entries = dict(entries)
        self._kept: list[object] = []

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__.get("_entries", {})
        if name in entries:
            return entries[name]
        raise AttributeError(f"CallableNamespace has no entry '{name}'")

    def keep(self, *objects: object) -> object:
        self._kept.extend(objects)
        return objects[0] if len(objects) == 1 else objects or None


# ---- arguments ----


def _build_args(args: TaskArgsBuilder, signature: Sequence[ArgDirection]) -> tuple[TaskArgs, list[str]]:
    """Return the arguments of a run, and the names of its outputs."""
    made, outputs, at = TaskArgs(), [], 0
    for spec in args.specs:
        if isinstance(spec, Scalar):
            made.add_scalar(scalar_to_uint64(spec.value))
            continue
        if at >= len(signature):
            raise ValueError(
                f"cannot find tensor '{spec.name}' in the signature of the orchestration, which has "
                f"{len(signature)} entries"
            )
        direction = signature[at]
        made.add_tensor(as_tensor(spec.value), _TAGS.get(direction, TensorArgType.INPUT))
        if direction in (ArgDirection.OUT, ArgDirection.INOUT):
            outputs.append(spec.name)
        at += 1
    return made, outputs


def _build_l2_ref_args(
    args: TaskArgsBuilder, signature: Sequence[Any], worker: object
) -> tuple[TaskArgs, list[str]]:
    return _build_args(args, signature)


_build_chip_task_args = _build_args


def _build_l3_task_args(
    args: TaskArgsBuilder, signature: Sequence[Any], worker: object = None
) -> tuple[TaskArgs, list[str]]:
    return _build_args(args, signature)


def _rehosted_buffer_for(args: TaskArgsBuilder, tensor: object) -> Buffer:
    return as_tensor(tensor).buffer


def _rehosted_ref_for(args: TaskArgsBuilder, tensor: object) -> Tensor:
    return as_tensor(tensor)


def _rehosted_ref(args: TaskArgsBuilder, name: str) -> Tensor:
    return as_tensor(getattr(args, name))


def _l3_ref(args: TaskArgsBuilder, name: str, worker: object = None) -> Tensor:
    return _rehosted_ref(args, name)


# ---- declarations ----


def scene_level(level: int | SceneTestLevel) -> Callable[[object], object]:
    try:
        found = SceneTestLevel(level)
    except ValueError:
        known = ", ".join(str(int(x)) for x in SceneTestLevel)
        raise ValueError(f"Unsupported scene test level {level!r}; expected one of: {known}") from None

    def mark(what: Any) -> object:
        what._st_level = found
        return what

    return mark


def scene_test(level: int | SceneTestLevel, runtime: str) -> Callable[[type], type]:
    """Mark a class as a scene test, and check its declarations."""
    mark = scene_level(level)

    def declare(cls: Any) -> type:
        _check_cases(cls)
        mark(cls)
        cls._st_runtime = runtime
        if "CALLABLE" in vars(cls) or getattr(cls, "CALLABLE", None):
            cls.CALLABLE = _placed(cls.CALLABLE, Path(inspect.getfile(cls)).parent)
        return cls

    return declare


def _check_cases(cls: type) -> None:
    for at, case in enumerate(getattr(cls, "CASES", ())):
        where = f"{cls.__name__}.CASES[{at}]"
        if not isinstance(case, Mapping):
            raise TypeError(f"{where}: expected a mapping, got {type(case).__name__}")
        config = case.get("config", {})
        for given, known, name in (
            (config, _CONFIG_KEYS, "config"),
            (
                config.get("runtime_env", {}) if isinstance(config, Mapping) else {},
                _RING_KEYS,
                "config.runtime_env",
            ),
        ):
            if not isinstance(given, Mapping):
                raise TypeError(f"{where} ({case.get('name')!r}) {name} must be a mapping")
            unknown = sorted(set(given) - set(known))
            if unknown:
                raise ValueError(
                    f"{where} ({case.get('name')!r}) {name} has unknown keys: "
                    f"{', '.join(unknown)}; allowed keys: {', '.join(sorted(known))}"
                )


def _placed(spec: Any, folder: Path) -> object:
    """Return a CALLABLE with paths relative to the file of its class made absolute."""
    spec = dict(spec)
    if "callables" in spec:
        spec["callables"] = [_placed(e, folder) if "orchestration" in e else e for e in spec["callables"]]
        return spec
    orchestration = spec.get("orchestration")
    if isinstance(orchestration, Mapping) and "source" in orchestration:
        spec["orchestration"] = {**orchestration, "source": _path(orchestration["source"], folder)}
    if "incores" in spec:
        spec["incores"] = [_placed_kernel(k, folder) for k in spec["incores"]]
    return spec


def _placed_kernel(kernel: Mapping[str, Any], folder: Path) -> dict[str, object]:
    made = dict(kernel)
    if "source" in made:
        made["source"] = _path(made["source"], folder)
    if made.get("extra_include_dirs"):
        made["extra_include_dirs"] = [
            str(d) if "$" in str(d) else _path(d, folder) for d in made["extra_include_dirs"]
        ]
    return made


def _path(path: object, folder: Path) -> str:
    return str(path) if os.path.isabs(str(path)) else str((folder / str(path)).resolve())


# ---- compiling ----

_compiled: dict[Any, ChipCallable] = {}


def clear_compile_cache() -> None:
    _compiled.clear()


def l3_compile_cache_key(
    module: str, qualname: str, name: str, platform: str, runtime: str
) -> tuple[str, ...]:
    return module, qualname, name, platform, runtime


def _compile_chip_callable_from_spec(
    spec: Mapping[str, Any], platform: str, runtime: str, key: object
) -> ChipCallable:
    if key not in _compiled:
        compiler = KernelCompiler(platform)
        orchestration = spec["orchestration"]
        children = []
        for k in spec["incores"]:
            source = compiler.compile_incore(
                k["source"],
                k["core_type"],
                extra_include_dirs=_include_dirs(k.get("extra_include_dirs") or (), k),
            )
            children.append((k["func_id"], CoreCallable(k.get("signature", []), source, k.get("name", ""))))
        _compiled[key] = ChipCallable(
            orchestration.get("signature", []),
            orchestration["function_name"],
            compiler.compile_orchestration(runtime, orchestration["source"]),
            children,
            orchestration.get("config_name", ""),
        )
    return _compiled[key]


def _include_dirs(given: Sequence[object], kernel: Mapping[str, object]) -> list[str]:
    found = [os.path.expandvars(str(d)) for d in given]
    there = [d for d in found if os.path.isdir(d)]
    if found and not there:
        raise refuse(
            f"cannot find the include folders of kernel {kernel.get('name', kernel['source'])}: "
            f"{', '.join(found)}",
            "install the vendor's toolkit, whose headers the kernel includes",
        )
    return there


# ---- choosing ----


def is_manual_for_platform(manual: object, platform: str | None) -> bool:
    if isinstance(manual, str):
        return manual == platform
    if isinstance(manual, list | tuple | set | frozenset):
        return platform in manual
    return bool(manual)


def _wanted(cls: type, case: Mapping[str, Any], platform: str, selectors: Sequence[str], manual: str) -> bool:
    if platform not in case["platforms"]:
        return False
    if selectors and not any(_selects(s, cls.__name__, case["name"]) for s in selectors):
        return False
    return manual == "include" or is_manual_for_platform(case.get("manual"), platform) == (manual == "only")


def _selects(selector: str, cls: str, case: str) -> bool:
    """Return True if a selector (`Case`, `Class::Case` or `Class::`) selects a case."""
    first, separator, last = selector.rpartition("::")
    return (not separator or first in ("", cls)) and last in ("", case)


def _class_wants_sdma(cls: type) -> bool:
    return any(
        getattr(m, "name", "") == "sdma" and m.kwargs.get("worker_workspace", True)
        for m in getattr(cls, "pytestmark", ())
    )


def _validate_diagnostic_flags(*, chip_swimlane: int = 0, swimlane_overhead: bool = False) -> None:
    if swimlane_overhead and not chip_swimlane:
        raise ValueError("--enable-swimlane-overhead requires --enable-chip-swimlane")


def _outputs_dir() -> Path:
    return Path.cwd() / "outputs"


def _sanitize_for_filename(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)


# ---- results ----


def _compare_outputs(args: object, golden: object, names: Sequence[str], rtol: float, atol: float) -> None:
    """Raise AssertionError if an output differs from its expected value: |a - e| > atol + rtol * |e|."""
    import numpy as np

    for name in names:
        actual, expected = (as_array(getattr(x, name)) for x in (args, golden))
        if actual.dtype.kind in "iub" and expected.dtype.kind in "iub" and np.array_equal(actual, expected):
            continue
        a, e = (x.astype(np.float64).ravel() for x in (actual, np.broadcast_to(expected, actual.shape)))
        bad = np.flatnonzero(~np.isclose(a, e, rtol=rtol, atol=atol))
        if bad.size:
            worst = float(np.nan_to_num(np.abs(a - e), nan=np.inf).max())
            raise AssertionError(
                f"Golden mismatch on '{name}': max_diff={worst}, rtol={rtol}, atol={atol}; {bad.size} of "
                f"{a.size} elements differ, the first is {bad[0]}: {a[bad[0]]}, expected {e[bad[0]]}"
            )


# ---- tests ----


class SceneTestCase:
    """Base class of scene tests; see the module."""

    CALLABLE: ClassVar[Any] = {}
    CASES: ClassVar[Any] = []
    RTOL = 1e-5
    ATOL = 1e-5
    SKIP_GOLDEN = False
    RUNTIME_ENV: ClassVar[Any] = {}
    _st_level = SceneTestLevel.CHIP
    _st_runtime = "tensormap_and_ringbuffer"

    def generate_args(self, params: object) -> TaskArgsBuilder:
        raise NotImplementedError(f"{type(self).__name__}.generate_args")

    def compute_golden(self, args: TaskArgsBuilder, params: object) -> None:
        raise NotImplementedError(f"{type(self).__name__}.compute_golden")

    def compare_outputs(
        self, test_args: object, golden_args: object, output_names: Sequence[str], params: object
    ) -> None:
        _compare_outputs(test_args, golden_args, output_names, self.RTOL, self.ATOL)

    # -- execution --

    @classmethod
    def compile_chip_callable(cls, platform: str) -> ChipCallable:
        key = cls.__module__, cls.__qualname__, platform, cls._st_runtime
        return _compile_chip_callable_from_spec(cls.CALLABLE, platform, cls._st_runtime, key)

    @classmethod
    def _compile_l3_callables(cls, platform: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for entry in cls.CALLABLE["callables"]:
            if "orchestration" in entry:
                key = l3_compile_cache_key(
                    cls.__module__, cls.__qualname__, entry["name"], platform, cls._st_runtime
                )
                found[entry["name"]] = _compile_chip_callable_from_spec(entry, platform, cls._st_runtime, key)
                found[f"{entry['name']}_sig"] = entry["orchestration"].get("signature", [])
        return found

    def build_callable(self, platform: str) -> Any:
        return (
            self.compile_chip_callable(platform)
            if self._st_level == 2
            else self._compile_l3_callables(platform)
        )

    def _build_config(self, config: Mapping[str, Any], *_: object, **__: object) -> CallConfig:
        made = CallConfig(config.get("aicpu_thread_num", 0), config.get("block_dim", 0))
        for name, value in config.get("runtime_env", {}).items():
            setattr(made.runtime_env, name, value)
        return made

    def _resolve_env(self) -> dict[str, str]:
        folder = Path(inspect.getfile(type(self))).parent
        return {
            k: _path(v, folder) if k.endswith(("_DIR", "_PATH")) else str(v)
            for k, v in dict(self.RUNTIME_ENV).items()
        }

    def _run_and_validate(
        self,
        worker: Worker,
        callable_obj: object,
        case: Mapping[str, Any],
        sub_handles: Any = None,
        rounds: int = 1,
        skip_golden: bool = False,
        **_: object,
    ) -> None:
        params = case.get("params", {})
        skip = skip_golden or bool(case.get("skip_golden", self.SKIP_GOLDEN))
        args = self.generate_args(params)
        golden = None
        if not skip:
            golden = args.clone()
            self.compute_golden(golden, params)
        named = cast("dict[str, Any]", {} if self._st_level == 2 else callable_obj)
        if self._st_level == 2:
            handle = (
                callable_obj if isinstance(callable_obj, CallableHandle) else worker.register(callable_obj)
            )
            given, names = _build_args(args, self.CALLABLE.get("orchestration", {}).get("signature", []))
        else:
            handle = given = None
            names = args.tensor_names()
        before = {n: _copied(getattr(args, n)) for n in args.tensor_names()} if rounds > 1 else {}
        for round_number in range(rounds):
            for name, value in before.items() if round_number else ():
                as_array(getattr(args, name))[...] = as_array(value)
            config = self._build_config(case.get("config", {}))
            with knobs.environment(self._resolve_env()):
                if handle is not None:
                    worker.run(handle, given, config=config)
                else:
                    known = CallableNamespace({**named, **dict(sub_handles or {})})
                    worker.run(self._orchestration(known, args, config))
            if not skip:
                self.compare_outputs(args, golden, names, params)

    def _orchestration(self, known: CallableNamespace, args: TaskArgsBuilder, config: CallConfig) -> Any:
        function = self.CALLABLE["orchestration"]
        return lambda orch, _args, _config: function(orch, known, args, config)

    # -- pytest --

    def _matching_cases(self, st_platform: str, request: Any) -> list[Mapping[str, Any]]:
        option = request.config.getoption
        selectors, manual = option("--case", default=None) or [], option("--manual", default="exclude")
        return [c for c in self.CASES if _wanted(type(self), c, st_platform, selectors, manual)]

    @staticmethod
    def _effective_enable_dep_gen(request: object) -> bool:
        return False

    def test_run(self, st_platform: str, st_worker: Worker, request: Any) -> None:
        option = request.config.getoption
        matched = self._matching_cases(st_platform, request)
        if not matched:
            import pytest

            pytest.skip(
                f"No cases matched {type(self).__name__} (platform={st_platform}, "
                f"manual={option('--manual', default='exclude')})"
            )
        _refuse_records(
            {
                name: option(name, default=0)
                for name in (
                    "--enable-chip-swimlane",
                    "--dump-args",
                    "--enable-pmu",
                    "--enable-dep-gen",
                    "--enable-scope-stats",
                )
            }
        )
        callables = self.build_callable(st_platform)
        if self._st_level == 3:
            callables = dict(getattr(type(self), "_st_chip_handles", None) or callables)
        for case in matched:
            self._run_and_validate(
                st_worker,
                callables,
                case,
                getattr(type(self), "_st_sub_handles", {}),
                option("--rounds", default=1),
                option("--skip-golden", default=False),
            )

    # -- scripts --

    @staticmethod
    def run_module(module_name: str) -> None:
        """Run the classes of a script on the given devices, and end the process."""
        module = sys.modules[module_name]
        classes = [
            v
            for v in vars(module).values()
            if isinstance(v, type)
            and issubclass(v, SceneTestCase)
            and v.__module__ == module_name
            and v.CASES
        ]
        options = _options()
        configure_logging(options.log_level)
        chosen = [
            (c, case)
            for c in classes
            for case in c.CASES
            if _wanted(c, case, options.platform, options.case or [], options.manual)
        ]
        if not chosen:
            raise DiagnosticError(
                [
                    Diagnostic(
                        BAD_SCENE,
                        f"cannot find a case for platform {options.platform} (--manual {options.manual})",
                        help=f"existing cases: {', '.join(x for c in classes for x in _cases(c)) or 'none'}",
                    )
                ]
            )
        failed = 0
        for cls, case in chosen:
            label = f"{cls.__name__}::{case['name']}"
            try:
                _run_case(cls, case, options)
                print(f"PASS {label}", flush=True)
            except DiagnosticError as e:
                failed += 1
                print(f"FAIL {label}\n{e}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL {label}\n{traceback.format_exc()}", flush=True)
            if failed and options.exitfirst:
                break
        print(f"{len(chosen) - failed} passed, {failed} failed")
        sys.exit(1 if failed else 0)


def _cases(cls: Any) -> list[str]:
    return [f"{cls.__name__}::{c['name']} ({', '.join(c['platforms'])})" for c in cls.CASES]


def _refuse_records(asked: Mapping[str, object]) -> None:
    for name, value in asked.items():
        if value:
            raise refuse(
                f"{name}: runs do not write records in that format",
                "use pto runtime run --swimlane, --trace, --graph or --summary",
            )


def _options() -> Any:
    p = argparse.ArgumentParser()
    p.add_argument("-p", "--platform", required=True)
    p.add_argument("-d", "--device", default="0")
    p.add_argument("--case", action="append")
    p.add_argument("--manual", choices=["exclude", "include", "only"], default="exclude")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--skip-golden", action="store_true")
    p.add_argument("-x", "--exitfirst", action="store_true")
    p.add_argument("--log-level", choices=LOG_LEVEL_CHOICES, default=DEFAULT_LOG_LEVEL)
    p.add_argument("--max-parallel", default="auto")
    p.add_argument("--runtime")
    p.add_argument("--level", type=int, choices=[2, 3])
    for name in ("--enable-chip-swimlane", "--dump-args", "--enable-pmu"):
        p.add_argument(name, nargs="?", const=1, default=0, type=int)
    for name in ("--enable-dep-gen", "--enable-scope-stats"):
        p.add_argument(name, action="store_true")
    options = p.parse_args()
    _refuse_records(
        {
            f"--{n.replace('_', '-')}": getattr(options, n)
            for n in (
                "enable_chip_swimlane",
                "dump_args",
                "enable_pmu",
                "enable_dep_gen",
                "enable_scope_stats",
            )
        }
    )
    return options


def _run_case(cls: Any, case: Mapping[str, Any], options: Any) -> None:
    devices = device_range_to_list(options.device)
    test = cls()
    callables = test.build_callable(options.platform)
    if cls._st_level == 2:
        worker = Worker(
            2,
            platform=options.platform,
            runtime=cls._st_runtime,
            device_id=devices[0],
            enable_sdma=_class_wants_sdma(cls),
        )
        subs: dict[str, object] = {}
    else:
        wanted = int(case.get("config", {}).get("device_count", 1))
        if wanted > len(devices):
            raise DiagnosticError(
                [
                    Diagnostic(
                        BAD_SCENE,
                        f"{cls.__name__}: expected {wanted} devices, got {len(devices)} from -d",
                        help=f"-d 0-{wanted - 1}: devices are simulated, so any number is available",
                    )
                ]
            )
        worker = Worker(
            3,
            platform=options.platform,
            runtime=cls._st_runtime,
            device_ids=devices[:wanted],
            num_sub_workers=int(case.get("config", {}).get("num_sub_workers", 0)),
        )
        callables = {
            n: worker.register(c) if isinstance(c, ChipCallable) else c for n, c in callables.items()
        }
        entries = cls.CALLABLE["callables"]
        subs = {e["name"]: worker.register(e["callable"]) for e in entries if "callable" in e}
    with worker:
        test._run_and_validate(worker, callables, case, subs, options.rounds, options.skip_golden)
