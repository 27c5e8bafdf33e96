"""Rule shorthands shared by the row modules."""

from __future__ import annotations

from ..rules import R, Rule


def located(where: str, names: str, code: str = "", on: str = "") -> tuple[Rule, ...]:
    """Every named operand lies in `where` (an upper-case location constant)."""
    return tuple(R(f"{n}.loc == {where}", code=code, on=on) for n in names.split())


def vec(names: str, code: str = "") -> tuple[Rule, ...]:
    return located("VEC", names, code)


def row_major(names: str, code: str = "", on: str = "a2a3 a5") -> tuple[Rule, ...]:
    return tuple(R(f"{n}.blayout == ROW", code=code, on=on) for n in names.split())


def nd(names: str, code: str = "", on: str = "a2a3 a5") -> tuple[Rule, ...]:
    """Row-major and unboxed."""
    return tuple(R(f"{n}.layout == ND", code=code, on=on) for n in names.split())


def same_dtype(names: str, code: str = "", on: str = "") -> tuple[Rule, ...]:
    """All named operands have the element type of the first."""
    first, *rest = names.split()
    return tuple(R(f"{n}.dtype == {first}.dtype", code=code, on=on) for n in rest)


def same_valid(names: str, code: str = "", on: str = "") -> tuple[Rule, ...]:
    """All named operands have the valid region of the first, as far as it is static."""
    first, *rest = names.split()
    return tuple(R(f"valid_eq({n}, {first})", code=code, on=on) for n in rest)


def same_shape(names: str, code: str = "", on: str = "") -> tuple[Rule, ...]:
    first, *rest = names.split()
    return tuple(R(f"{n}.shape == {first}.shape", code=code, on=on) for n in rest)


def form(ins: str, outs: str, attrs_inside: bool = False) -> str:
    """Format text of one destination-style form over the named operands, none of them optional."""

    def group(names: str, attrs: str = "") -> str:
        words = names.split()
        return f"{', '.join(f'${n}' for n in words)}{attrs} : {', '.join(f'type(${n})' for n in words)}"

    if attrs_inside:
        return f"ins({group(ins, ' attr-dict')}) outs({group(outs)})"
    return f"ins({group(ins)}) outs({group(outs)}) attr-dict"


def two_steps(first: str, last: str) -> dict[str, str]:
    """Return the expression of a sum of three on targets where it is two instructions, the first of which
    rounds, too."""
    return dict.fromkeys(("a2a3", "a5"), f"round({first}) + {last}")
