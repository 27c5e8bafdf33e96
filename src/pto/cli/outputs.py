"""Output forms of `ptoas`. The form follows from --emit, the suffix of -o, and --target, which must agree."""

from __future__ import annotations

import os

from ..diag import Diagnostic, DiagnosticError
from ..isa.record import Record


class OutputForm(Record):
    suffix: str
    doc: str
    image: bool = False
    machine: bool = False  # True for machine code of the CPU


FORMS: dict[str, OutputForm] = {
    "cpp": OutputForm(".cpp", "C++"),
    "pto": OutputForm(".pto", "a program"),
    "dps": OutputForm(".pto", "a program"),
    "ssa": OutputForm(".ssa.pto", "a program"),
    "asm": OutputForm(".pto.s", "PTO-AS"),
    "generic": OutputForm(".mlir", "MLIR"),
    "elf": OutputForm(".elf", "an image", image=True),
    "llvm": OutputForm(".ll", "LLVM IR", machine=True),
    "native": OutputForm(".s", "assembly", machine=True),
    "obj": OutputForm(".o", "an object", machine=True),
    "so": OutputForm(".so", "a shared object", machine=True),
}
_BY_SUFFIX = {form.suffix: name for name, form in FORMS.items() if form.machine or form.image}
_TEXTS = {".ssa.pto": "ssa", ".pto.s": "asm", ".pto": "pto", ".mlir": "generic"}
_CPP = ("cpp", "cc", "cxx", "c++", "cce", "asc", "h", "hpp", "hh", "inc", "ipp")
#: Forms that the suffix `.s` can mean.
_AS_ASSEMBLY = ("asm", "native")


def decided(emit: str | None, output: str, arch: str | None) -> str:
    """Return the form to write; raise `DiagnosticError` if the options contradict each other."""
    suffix = next((s for s in (".pto.s", *_BY_SUFFIX) if output.endswith(s)), "")
    said = _BY_SUFFIX.get(suffix)
    text = next((s for s in _TEXTS if output.endswith(s)), "")
    form = emit or said or (_TEXTS[text] if text else "cpp")
    other = os.path.splitext(output)[1].lower().lstrip(".")
    if not (emit or said or text or output.startswith("/dev/")) and other not in ("", "ptobc", *_CPP):
        known = ".cpp, " + ", ".join((*_TEXTS, *_BY_SUFFIX))
        raise _contradiction(
            f"unknown suffix of -o {output}: expected one of {known}",
            "--emit=cpp writes C++ to a file of any name",
        )
    if said is not None and form != said and not (suffix == ".s" and form in _AS_ASSEMBLY):
        raise _contradiction(
            f"-o {output} is {FORMS[said].doc}, --emit={form} is {FORMS[form].doc}",
            "leave out one of them",
        )
    if (
        (FORMS[form].machine or FORMS[form].image)
        and not said
        and output.endswith((".cpp", ".pto", ".pto.s", ".mlir"))
    ):
        raise _contradiction(
            f"--emit={form} is {FORMS[form].doc}, -o {output} is not", f"use the suffix {FORMS[form].suffix}"
        )
    if FORMS[form].machine and arch not in (None, "cpu"):
        asked = f"-o {output}" if said else f"--emit={form}"
        raise _contradiction(
            f"{asked} is {FORMS[form].doc} for the CPU, but --target is {arch}",
            "leave out --target (the CPU emulates the target of the program), or write C++ for the NPU",
        )
    return form


def _contradiction(what: str, help: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E0005", what, help=help)])
