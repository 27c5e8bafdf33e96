"""Costs of vector instructions on A5: curves over loops of vector functions.

A tile with contiguous elements is one loop, `a * loops + b`; any other tile is a nested loop, `(a * inner +
b) * rows + c`. The curves are published fits; whether they were fitted to a board or to a simulator is not
published.
"""

from __future__ import annotations

from .entry import FITTED, GUESSED, Cost

_CURVES = "the vendor's curves over loops of vector functions"

#: Names, condition, then a, b of one loop and a, b, c of two.
_TABLE: tuple[tuple[str, str, tuple[float, float], tuple[float, float, float]], ...] = (
    ("tadd tsub", "", (1.2470, 55.07), (1.8749, 2.8763, 44.34)),
    ("tmul", "", (1.1941, 56.29), (1.8708, 2.9124, 44.84)),
    ("tmins", "", (1.0589, 53.14), (1.1017, 4.5314, 49.63)),
    ("tneg", "", (1.0589, 55.14), (1.0953, 4.5653, 51.51)),
    ("tdivs trecip", "dst.bits == 32", (1.9081, 64.52), (1.8689, 2.4754, 62.94)),
    ("tdivs trecip", "dst.bits == 16", (3.5492, 68.74), (3.9982, -0.1208, 65.16)),
    ("texp", "dst.bits == 32", (1.9671, 62.66), (1.8549, 2.5442, 60.60)),
    ("texp", "dst.bits == 16", (3.7623, 65.93), (3.9982, -0.1208, 64.16)),
    ("tsqrt", "dst.bits == 32", (1.9671, 63.66), (1.8549, 2.5442, 61.60)),
    ("tsqrt", "dst.bits == 16", (3.7623, 66.93), (3.9982, -0.1208, 65.16)),
    ("trsqrt", "dst.bits == 32", (4.0295, 75.57), (4.0, 0.0326, 76.46)),
    ("trsqrt", "dst.bits == 16", (8.1066, 81.10), (8.0112, 0.0572, 80.71)),
    ("tsel", "dst.bits < 32", (2.0984, 52.48), (2.4617, 1.4273, 48.62)),
    ("tsel", "dst.bits == 32", (1.9337, 58.85), (3.0869, 36.110, 22.51)),
    ("tcvt", "src.bits == 16 and dst.bits == 32", (-1.7705, 82.44), (1.2704, 1.9299, 51.66)),
    ("tcvt", "src.dtype == F16 and dst.bits == 8", (1.3197, 53.30), (1.2898, 1.7846, 52.47)),
    ("tcvt", "src.bits == 16 and dst.bits == 16", (1.2131, 53.20), (1.2793, 1.8334, 51.81)),
    ("tcvt", "src.bits == 32 and dst.bits == 16", (1.3197, 52.30), (2.2580, 1.0422, 55.18)),
    ("tcvt", "src.bits == 32 and dst.bits == 8", (12.320, 55.30), (87.638, -30.013, 7.607)),
    ("tcvt", "src.bits == 8 and dst.bits == 32", (3.9344, 81.02), (5.1632, -1.7589, 69.10)),
    ("tcvt", "src.bits == 16 and dst.bits == 4", (12.426, 55.39), (87.729, -29.744, 7.035)),
    ("tcvt", "src.bits == 4 and dst.bits == 16", (0.8934, 89.90), (3.2957, 1.9433, 61.60)),
)  # fmt: skip

#: Rows without a curve -> row whose curve they use.
_LIKE = {
    "tmax tmin tand tor": "tadd",
    "tadds tsubs tmuls tmaxs trelu tlrelu tabs tnot": "tmins",
    "tdiv": "tdivs trecip",
    "tlog": "texp",
}


def _loops(names: str) -> tuple[str, str]:
    """Return the number of loops of a contiguous tile, and of inner loops of a row."""
    if not names.startswith("tcvt"):
        return "ceil(dst.elems / epr(dst))", "blocks(dst)"
    # narrow sources that widen fill the lanes of the result
    wide = "(64 if dst.bits == 32 and src.bits >= 16 else epr(src))"
    return f"ceil(dst.elems / {wide})", "ceil(dst.v_col / (64 if dst.bits == 32 else 128))"


def _curves() -> tuple[Cost, ...]:
    out: list[Cost] = []

    def add(
        names: str, when: str, one: tuple[float, float], two: tuple[float, float, float], of: str
    ) -> None:
        evidence = FITTED if of == names else GUESSED
        source = _CURVES if of == names else f"as {of.split()[0]}"
        runs, inner = _loops(names)
        both = f"({when}) and flat(dst)" if when else "flat(dst)"
        if one[0] < 0:  # the fit covers ten loops; beyond them, its negative slope would make costs negative
            busy, after = f"max({one[0]} * min({runs}, 10), -30) + max(0, {runs} - 10)", f"{one[1]}"
            out.append(Cost(names, f"max(0, {busy} + 30)", f"{one[1] - 30}", evidence, source, both,
                            flops="dst.elems"))  # fmt: skip
        else:
            busy, after = f"{one[0]} * {runs}", f"{one[1]}"
            out.append(Cost(names, busy, after, evidence, source, both, flops="dst.elems"))
        a, b, c = two
        out.append(Cost(names, f"({a} * {inner} + {b}) * dst.v_row", f"{c}", evidence, source, when,
                        flops="dst.elems"))  # fmt: skip

    for names, when, one, two in _TABLE:
        add(names, when, one, two, names)
    for names, like in _LIKE.items():
        for found, when, one, two in _TABLE:
            if like.split()[0] in found.split():
                add(names, when, one, two, like)
    return tuple(out)


COSTS: tuple[Cost, ...] = (
    *_curves(),
    Cost("trowsum trowmax trowmin", "src.v_row * (blocks(src) * 1.25 + 9)", "60", GUESSED,
         "a loop per row, with one reduction across lanes", flops="src.elems"),
    Cost("tcolsum tcolmax tcolmin", "src.v_row * (blocks(src) * 1.25 + 3)", "60", GUESSED,
         "a loop per row", flops="src.elems"),
    Cost("trowexpand trowexpandadd trowexpandsub trowexpandmul trowexpandmax trowexpandmin tcolexpandadd"
         " tcolexpandsub tcolexpandmul tcolexpandmax tcolexpandmin tcolexpand",
         "dst.v_row * (1.875 * blocks(dst) + 4)", "50", GUESSED, "as an instruction of two tiles, row by row",
         flops="dst.elems"),
    Cost("trowexpanddiv tcolexpanddiv trowexpandexpdif tcolexpandexpdif",
         "dst.v_row * ((2 if dst.bits == 32 else 4) * blocks(dst) + 5)", "65", GUESSED,
         "with a division or an exponential", flops="dst.elems"),
    Cost("texpands", "1.06 * merged(dst)", "50", GUESSED, "as tmins", flops="dst.elems"),
    Cost("tmov", "2 * size(dst) / 256", "50", GUESSED, "a load and a store per repeat",
         when="src.loc == VEC and dst.loc == VEC", path="ub_ub", bytes="size(dst)"),
)  # fmt: skip
