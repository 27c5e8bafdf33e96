"""LLVM IR as machine code of this machine, through llvmlite: an object or assembly.

llvmlite is an extra of the package (`objects`): nothing here imports it before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from ..image.format import Image
from ..isa.profiles import Profile
from . import ir
from .debug import Lines


@cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as e:
        raise DiagnosticError([
            Diagnostic("PTO-E2406", f"machine code needs llvmlite, which cannot be imported: {e}",
                       help="install it: pip install llvmlite")
        ]) from None  # fmt: skip
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@cache
def _machine(triple: str) -> Any:
    """What generates code for any processor of a kind, at any address."""
    llvm = _llvm()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(opt=2, reloc="pic", codemodel="small")


def triple() -> str:
    """That of this machine."""
    return _llvm().get_process_triple()


def text(
    images: Sequence[Image],
    profile: Profile,
    sections: Mapping[str, bytes],
    source: str = "",
    of: str = "",
    lines: Lines = lambda _: None,
) -> str:
    """The IR of kernels for a triple, this machine's where none is named."""
    of = of or triple()
    return ir.text(images, profile, sections, source, of, str(_machine(of).target_data), lines)


def _module(source: str, of: str) -> Any:
    """The IR, with values of the frame kept in registers where no call comes in between. Loops over values of
    one core are short: there is nothing for a vectoriser."""
    llvm = _llvm()
    made = llvm.parse_assembly(source)
    tuned = llvm.create_pipeline_tuning_options(2)
    tuned.loop_vectorization = tuned.slp_vectorization = tuned.loop_unrolling = False
    passes = llvm.create_pass_builder(_machine(of), tuned)
    passes.getModulePassManager().run(made, passes)
    return made


def assembly(source: str, of: str = "") -> str:
    of = of or triple()
    return _machine(of).emit_assembly(_module(source, of))


def object_file(source: str, of: str = "") -> bytes:
    of = of or triple()
    return _machine(of).emit_object(_module(source, of))
