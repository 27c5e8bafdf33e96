"""A kernel compiled to machine code by the system's C++ compiler: `pto.kernel(module, engine="cpp")`.

The program is lowered by the passes, emitted as C++, compiled with our headers and called through ctypes.
Arguments are bound as for the reference engine. A launch gives only results and run-time errors: sanitizers,
schedules and pictures need the reference engine.
"""

from __future__ import annotations

from ...cache import Built
from ...codegen.cpp.spelling import identifier
from ...codegen.flow import compiled_cpp
from ...diag import Diagnostic, DiagnosticError
from ...driver import Lowered
from ...ir.core import Module
from ...isa.profiles import Profile
from ..compiled.kernel import CompiledKernel, flag_findings, most_arguments
from ..compiled.library import loaded
from ..entry import Launchable
from . import build, messages
from .compiler import TRACED, VERIFIED, arch_flags, find, header_flags, placed
from .launcher import BODY, LaunchEntry, about, single


class CppKernel(CompiledKernel):
    """A kernel on engine `cpp`; compiled when it is made."""

    engine = "cpp"
    #: It emits trace events of every call, see `engine/traced`.
    traced = False

    def __init__(
        self,
        module: Module,
        entry: str | None,
        target: str | Profile | None,
        check: bool,
        checks: bool = False,
    ) -> None:
        super().__init__(module, entry, target, check)
        self.findings = flag_findings(self) if check and not self.traced else []
        #: The emitted C++.
        lowered = self.lowered_as_run() if self.traced else self.lowered("always")
        _check_bodies(lowered.module)
        self.source = compiled_cpp(lowered, lines=self.traced)
        #: The shared library, from the cache or built now.
        self.built, library = loaded(lambda: self._build(lowered, checks))
        longest = most_arguments(self)
        types = [a.type for a in longest.regions[0].blocks[0].args]
        self._ready(library, entry_of(self).symbol, str(longest.attr("sym_name")), types)

    def _build(self, lowered: Lowered, checks: bool) -> Built:
        args = most_arguments(self).regions[0].blocks[0].args
        entry = entry_of(self).replace(
            args=tuple(a.name for a in args), types=tuple(str(a.type) for a in args), subblocks=self.subblocks
        )
        described = about([entry], self.profile.name, checks)
        unit = build.TranslationUnit("kernel.cpp", single([entry], BODY, self.source, described))
        flags = [*arch_flags(self.profile), *header_flags(self.source)]
        flags += [VERIFIED] if self.checked else []
        flags += ["-DPTO_CHECKED"] if checks else []
        flags += [TRACED, *placed(find())] if self.traced else []
        built = build.cached([unit], [build.TranslationUnit(BODY, self.source)], flags)
        if not built.ok:  # compile again with lines of the program, for the messages of the compiler
            lines = build.TranslationUnit(BODY, compiled_cpp(lowered, lines=True))
            output = build.cached([unit], [lines], flags).output
            sources = {s.name: s for s in self.module.sources}
            raise DiagnosticError(messages.diagnostics(output, sources, exact=False))
        return built


def _check_bodies(module: Module) -> None:
    """Refuse calls of functions without a body, because a kernel is not linked with other files."""
    called = {str(op.attr("callee")) for op in module.walk() if op.name == "func.call"}
    missing = [f for f in module.functions if not f.regions[0].blocks and str(f.attr("sym_name")) in called]
    if missing:
        raise DiagnosticError([
            Diagnostic("PTO-E2002", f"function '@{f.attr('sym_name')}' has no body to run", module.span(f))
            for f in missing
        ])  # fmt: skip


def entry_of(kernel: Launchable) -> LaunchEntry:
    """Return the functions that the launcher of a kernel calls."""
    names = [identifier(str(f.attr("sym_name"))) for f in kernel.functions]
    if len(kernel.roles) > 1:
        return LaunchEntry(kernel.name, cube=names[0], vector=names[-1])
    kind = kernel.roles[0][0]
    return LaunchEntry(kernel.name).replace(**{kind: names[0]})
