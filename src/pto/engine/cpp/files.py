"""Kernels that are not programs: hand-written C++, and libraries of `pto build`.

    pto.kernel("k.cpp", "softmax", target="a5")     compiled when it is made, and kept in the cache
    pto.kernel("k.so")                              describes its kernels, see pto/core/describe.hpp

They are called like all other kernels. Arguments are compared with the C++ signature: `__gm__ float*` takes
an array of float32, `void*` and `uint8_t*` take any array.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...asm.type_text import parse_type
from ...cache import Built
from ...diag import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from ...image.elf import BadElf
from ...ir.types import Type, ViewType
from ...isa.dtypes import SPELLINGS
from ...isa.machine import SUBBLOCKS
from ...isa.profiles import Profile, profile, resolve
from ...isa.record import Record
from ...objects.contents import has_symbol
from ...reading import SUFFIXES, read
from ..binding import Binding, Windows
from ..compiled.kernel import CompiledKernel, special_words
from ..compiled.library import LaunchOutcome, Library, Tracer, loaded
from ..memory import GlobalMemory, Pointer
from . import handwritten, messages
from .places import LibraryPlaces


class AnyPointer(Type):
    """A pointer that takes every array: `void*`, bytes, structures."""

    dtype = ""
    kind = "ptr"

    def text_of(self) -> str:
        return "void*"


class Foreign(Type):
    """The type of an argument that no launch can pass."""

    kind = "opaque"

    def text_of(self) -> str:
        return "a C++ class"


class KernelParam(Record):
    """An argument of a kernel, like an `ir.Value` of a program."""

    name: str
    type: Any


class About(Record):
    """The description of one kernel in a library."""

    name: str
    symbol: str
    kind: str
    params: tuple[KernelParam, ...]
    subblocks: int = SUBBLOCKS


class FileKernel(CompiledKernel):
    """A kernel of a C++ file or of a library."""

    engine = "cpp"
    #: It emits trace events of every call, see `engine/traced`.
    traced = False

    def __init__(
        self, path: str, entry: str | None = None, target: str | Profile | None = None, checked: bool = False,
        capacity: Mapping[str, int] | None = None, auto: bool = False,
    ) -> None:  # fmt: skip
        self.path = path
        self.checked = checked
        self.auto = auto
        self.text: Source | None = None
        self.findings = []
        entry = entry.removeprefix("@") if entry is not None else None
        if path.endswith(SUFFIXES):
            self._compile(entry, target, capacity or {})
        else:
            self._load(target, capacity or {})
        about = self._choose(entry)
        self.name = about.name
        self.kind = about.kind
        self.subblocks = about.subblocks
        self._params = list(about.params)
        #: A kernel of a file has no functions of a program.
        self.functions, self.roles = [], []
        #: The return addresses of the core that failed, in a checked build.
        self._tracer = Tracer() if checked else None
        program = ctypes.addressof(self._tracer) if self._tracer is not None else 0
        self._ready(self._library, about.symbol, self.name, [p.type for p in self._params], program)

    @property
    def args(self) -> list[Any]:
        return self._params

    # -- its library ----------------------------------------------------------------------------------------

    def _compile(self, entry: str | None, target: str | Profile | None, capacity: Mapping[str, int]) -> None:
        source, problems = read(self.path)
        if source is None:
            raise DiagnosticError(problems)
        self.text = source
        made, problems = handwritten.entries(source, entry)
        if not made:
            raise DiagnosticError(problems)
        if len(made) > 1:
            raise DiagnosticError([_several(self.path, [e.name for e in made])])
        self.profile = resolve(target, handwritten.target_of(source.text)).override(capacity)

        def build() -> Built:
            built = handwritten.cached(source, made, self.profile, self.checked, self.auto, self.traced)
            if not built.ok:
                shown = {os.path.abspath(source.name): source}
                raise DiagnosticError(messages.diagnostics(built.output, shown))
            return built

        self.built, self._library = loaded(build)
        self._abouts = describe(self._library, self.path)[1]

    def _load(self, target: str | Profile | None, capacity: Mapping[str, int]) -> None:
        if not os.path.isfile(self.path):
            raise DiagnosticError(read(self.path)[1])
        try:
            self._library = Library(self.path, self._check)
            self.built = Built(self._library.path, "")
        except (OSError, BadElf) as e:
            raise DiagnosticError([
                Diagnostic("PTO-E2405", f"cannot load '{self.path}': {e}",
                           help="give a library that 'pto build' made on this kind of machine")
            ]) from None  # fmt: skip
        facts, self._abouts = describe(self._library, self.path)
        self.profile = profile(facts["target"])
        wanted = target.name if isinstance(target, Profile) else profile(target).name if target else None
        if wanted not in (None, self.profile.name):
            raise DiagnosticError([
                Diagnostic("PTO-E2405", f"expected '{self.path}' to be built for {wanted}, "
                           f"got {self.profile.name}", help=f"build it again: pto build --arch {wanted}")
            ])  # fmt: skip
        lacks = [("run-time checks", "--checked")] if self.checked and not facts["checked"] else []
        lacks += [("traced calls", "--traced")] if self.traced and not facts.get("traced") else []
        lacks += [("auto mode", "--auto")] if self.auto and not facts.get("auto") else []
        lacks += [("these capacities", f"--capacity {loc}={size}") for loc, size in capacity.items()][:1]
        for what, option in lacks:
            raise DiagnosticError([
                Diagnostic("PTO-E2405", f"cannot use '{self.path}': it was built without {what}",
                           help=f"build it again: pto build {option}")
            ])  # fmt: skip

    def _check(self, data: bytes) -> None:
        """Refuse a library that `pto build` did not make, before its constructors run."""
        if not has_symbol(data, _DESCRIBES):
            raise _unknown(self.path)

    def _choose(self, entry: str | None) -> About:
        names = [a.name for a in self._abouts]
        if entry is None and len(self._abouts) == 1:
            return self._abouts[0]
        for a in self._abouts:
            if a.name == entry:
                return a
        if entry is None:
            raise DiagnosticError([_several(self.path, names)])
        help = did_you_mean(entry, names) or f"the library has {', '.join(names)}"
        raise DiagnosticError([Diagnostic("PTO-E2404", f"no kernel '{entry}' in '{self.path}'", help=help)])

    # -- a launch -------------------------------------------------------------------------------------------

    def _binding(self, gm: GlobalMemory, windows: Windows | None, rank: int) -> Binding:
        return _FileBinding(self, gm, windows, rank)

    def _special(self, binding: Binding) -> bytes:
        return special_words(binding.values[self._longest])

    def _at(self, frames: Sequence[int]) -> Span | None:
        """Return the innermost source location in code of the user among some return addresses."""
        if self.__dict__.get("_places") is None:
            self._places = LibraryPlaces(self.built.path, [self.text] if self.text is not None else [])
        return self._places.span(frames)

    def _place(self, done: LaunchOutcome) -> tuple[Span | None, str]:
        if self._tracer is not None:
            found = self._at([a for a in self._tracer.frames if a])
            ctypes.memset(self._tracer.frames, 0, ctypes.sizeof(self._tracer.frames))
            if found is not None:
                return found, ""
        return super()._place(done)

    def _problem(self, done: LaunchOutcome, kept: Any, binding: Binding) -> Diagnostic:
        d = super()._problem(done._replace(touched=range(0), mark=-1), kept, binding)
        for p in self._params:
            d.message = d.message.replace(f" of %{p.name},", f" of '{p.name}',")
        if "different launch interfaces" in d.message:
            d.help = "build the library again: pto build"
        elif done.touched:
            d.help = "check offsets, strides and sizes; the array given to the launch may be too small"
        return d

    def span(self, param: str | None = None) -> Span | None:
        """Return the source location of the name of the kernel, or of an argument."""
        if self.text is None:
            return None
        found = handwritten.place_of(self.text.text, self.name, param)
        return None if found is None else Span(self.text, *found)


class _FileBinding(Binding):
    """The bound arguments of a C++ function."""

    def _spread(self, first: list[Any]) -> None:
        self.values[self.kernel.name] = first

    def _problem(self, code: str, message: str, param: Any, **facts: str) -> Diagnostic:
        assert isinstance(self.kernel, FileKernel)
        name = param.name if param is not None else None
        if name is not None:
            message = message.replace(f"%{name}", f"'{name}'")
        if param is None and "expected" in facts:
            facts["expected"] = _POINTER.sub(_spelled, facts["expected"]).replace("%", "")
        message = message.replace(f"'@{self.kernel.name}'", f"'{self.kernel.name}'")
        return Diagnostic(code, self._with_rank(message), self.kernel.span(name), **facts)

    def _value(self, param: Any, value: Any) -> Any:
        type = param.type
        if isinstance(type, AnyPointer):
            array = self._array(param, type, value)
            if isinstance(array, Diagnostic):
                return array
            return Pointer(self._mapped(param, value, array), 0, "u8", param.name)
        if isinstance(type, ViewType) and isinstance(value, np.ndarray) and value.ndim < len(type.dims):
            value = value.reshape((1,) * (len(type.dims) - value.ndim) + value.shape)
        return super()._value(param, value)


_POINTER = re.compile(r"!pto\.ptr<(\w+)>")


def _spelled(m: re.Match[str]) -> str:
    found = SPELLINGS.get(m[1].lower())
    return f"{found.cpp if found else m[1]}*"


# -- descriptions of libraries ------------------------------------------------------------------------------


#: The function in which a library describes its kernels (`PTO_ABOUT` in pto/core/describe.hpp).
_DESCRIBES = "pto_library"


def describe(library: Library, shown: str) -> tuple[dict[str, Any], list[About]]:
    """Return the facts of a library and the descriptions of its kernels; raise if it has no description."""
    text = library.text(_DESCRIBES)
    facts = json.loads(text) if text is not None else {}
    if facts.get("format") != 1:
        raise _unknown(shown)
    kernels = []
    for k in facts["kernels"]:
        types = k["types"]
        if types:
            made = [parse_type(t) for t in types]
        else:
            said = library.text(f"pto_arguments_{k['symbol'].removeprefix('pto_launch_')}") or ""
            made = [_type(t) for t in said.split(";")[:-1]]
        names = k["args"] if len(k["args"]) == len(made) else [f"arg{n}" for n in range(1, len(made) + 1)]
        params = tuple(KernelParam(n, t) for n, t in zip(names, made, strict=True))
        kernels.append(About(k["name"], k["symbol"], k["kind"], params, k["subblocks"]))
    return facts, kernels


def _unknown(path: str) -> DiagnosticError:
    what = f"missing description of kernels in '{path}'"
    return DiagnosticError([Diagnostic("PTO-E2405", what, help="make it with 'pto build'")])


def _type(text: str) -> Type | AnyPointer | Foreign:
    """Return a type from its text in pto/core/describe.hpp."""
    if text.startswith("view "):
        _, element, *dims = text.split()
        extents = "x".join("?" if n == "-1" else n for n in dims)
        return parse_type(f"!pto.tensor_view<{extents}x{element}>")
    if text == "*":
        return AnyPointer()
    if text.startswith("*"):
        return parse_type(f"!pto.ptr<{text[1:]}>")
    return Foreign() if text == "?" else parse_type(text)


def _several(path: str, names: Sequence[str]) -> Diagnostic:
    return Diagnostic("PTO-E2001", f"cannot choose one of several kernels of '{path}'",
                      help=f"name one with --entry: {', '.join(names)}")  # fmt: skip
