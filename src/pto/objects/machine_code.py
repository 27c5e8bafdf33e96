"""Compile LLVM IR to machine code through llvmlite: an object or assembly.

llvmlite is an optional dependency (`objects`), which is imported at first use.
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
            Diagnostic("PTO-E2406", f"cannot import llvmlite, which machine code needs: {e}",
                       help="install it: pip install llvmlite")
        ]) from None  # fmt: skip
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@cache
def _machine(triple: str) -> Any:
    """Return a code generator for any processor of a triple, with position-independent code."""
    llvm = _llvm()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(opt=2, reloc="pic", codemodel="small")


def triple() -> str:
    """Return the triple of this machine."""
    return _llvm().get_process_triple()


def text(
    images: Sequence[Image],
    profile: Profile,
    sections: Mapping[str, bytes],
    source: str = "",
    of: str = "",
    lines: Lines = lambda _: None,
) -> str:
    """Return the IR of kernels for a triple (default: this machine)."""
    of = of or triple()
    return ir.text(images, profile, sections, source, of, str(_machine(of).target_data), lines)


def _module(source: str, of: str) -> Any:
    """Return the optimized IR. Values of the frame stay in registers between calls. Loops over values of one
    core are short, so vectorizers are off."""
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
