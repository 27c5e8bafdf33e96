"""Costs of vector instructions on A2 and A3: repeats of 256 bytes, and the start of the pipe."""

from __future__ import annotations

from .entry import DERIVED, FITTED, GUESSED, MEASURED, Cost

_SINGLE = "single instructions on a device, slope by repeat and start-up"
_TABLE = "the vendor's table of profiled slopes, reproduced with a mean error of 1.2 %"
_E = "dst.elems"

COSTS: tuple[Cost, ...] = (
    Cost("tadd tsub", "2 * reps(dst) + masked(dst)", "25", MEASURED, _SINGLE, flops=_E),
    Cost("tmul", "2 * reps(dst) + masked(dst)", "26", MEASURED, _SINGLE, flops=_E),
    Cost("tmax tmin", "2 * reps(dst) + masked(dst)", "24", MEASURED, _SINGLE, flops=_E),
    Cost("tdiv", "(4 if dst.bits == 32 else 8 * min(dst.v_col, epr(dst)) / epr(dst)) * reps(dst)"
         " + masked(dst)", "31", MEASURED, _SINGLE, flops=_E),
    Cost("tand tor", "2 * reps(dst) + masked(dst)", "20", MEASURED, _SINGLE, flops=_E),
    Cost("tnot", "2 * merged(dst) + unmerged(dst)", "20", DERIVED, "by symmetry with tand", flops=_E),
    Cost("tadds tsubs", "merged(dst) + unmerged(dst)", "25", FITTED, _TABLE, flops=_E),
    Cost("tmuls", "merged(dst) + unmerged(dst)", "26", FITTED, _TABLE, flops=_E),
    Cost("tmins tmaxs trelu", "merged(dst) + unmerged(dst)", "23", MEASURED, _SINGLE, flops=_E),
    Cost("tlrelu", "merged(dst) + unmerged(dst)", "26", MEASURED, _SINGLE, flops=_E),
    Cost("tdivs trecip", "(5 if dst.bits == 32 else 9) * merged(dst) + unmerged(dst)", "45", FITTED, _TABLE,
         flops=_E),
    Cost("texp tsqrt", "0.0314 * dst.elems", "30", FITTED, _TABLE, flops=_E),
    Cost("tlog", "0.0314 * dst.elems", "33", MEASURED, _SINGLE, flops=_E),
    Cost("trsqrt", "merged(dst) + unmerged(dst)", "25", MEASURED, _SINGLE, flops=_E),
    Cost("tabs", "merged(dst) + unmerged(dst)", "24", GUESSED, "as trsqrt, which the vendor guesses too",
         flops=_E),
    Cost("tneg", "merged(dst) + unmerged(dst)", "26", DERIVED, "tmuls by -1", flops=_E),
    Cost("tcvt", "max(merged(src), merged(dst)) + unmerged(dst)", "27", MEASURED,
         "f32 to f16 on a device, applied to all pairs of types", flops=_E),
    Cost("tsel tsels", "2 * merged(dst) + unmerged(dst)", "27", GUESSED, "as published, without a source",
         flops=_E),
    Cost("tcmp tcmps", "2 * merged(src or src0) + 2", "36", GUESSED, "as published, without a source",
         flops=_E),
    Cost("texpands", "merged(dst) + unmerged(dst)", "24", GUESSED, "as published, without a source",
         when="dst.loc == VEC", flops=_E),
    Cost("texpands", "stored(dst) / bw_l1_bt", "0", GUESSED, "a fill of L1", when="dst.loc == MAT"),
    # -- reductions: folds of repeats with a barrier after each, then one across lanes
    Cost("trowsum", "7 * src.v_row + 15", "44", FITTED, _TABLE, when="full(src) == 0", flops="src.elems"),
    Cost("trowsum", "src.v_row * (7 + full(src) - 1 + 2 * rem(src) + (1 if full(src) >= 4 else 0))"
         " + rowfix(src) - 44", "44", FITTED, _TABLE, flops="src.elems"),
    Cost("trowmax trowmin", "7 * src.v_row + 15", "31", FITTED, _TABLE, when="full(src) == 0",
         flops="src.elems"),
    Cost("trowmax trowmin", "src.v_row * (7 + full(src) - 1 + 2 * rem(src) + (1 if full(src) >= 4 else 0))"
         " + rowfix(src) - 44", "31", FITTED, _TABLE, flops="src.elems"),
    Cost("trowprod trowargmax trowargmin", "14 * src.v_row * blocks(src) + 30", "46", GUESSED,
         "twice a row sum", flops="src.elems"),
    Cost("tcolsum", "src.v_row * (17.4 + 1.75 * blocks(src))", "15 if src.v_col <= 128 else 33", FITTED,
         _TABLE, flops="src.elems"),
    Cost("tcolmax tcolmin", "35 * src.v_row", "2", FITTED, _TABLE, when="full(src) >= 1 and rem(src)",
         flops="src.elems"),
    Cost("tcolmax tcolmin", "src.v_row * (15.2 + 2.3 * blocks(src))", "15", FITTED, _TABLE,
         flops="src.elems"),
    Cost("tcolprod tcolargmax tcolargmin", "src.v_row * (17.4 + 2.3 * blocks(src)) * 2", "24", GUESSED,
         "twice a column maximum", flops="src.elems"),
    # -- broadcasts
    Cost("trowexpand", "dst.v_row * (13 + blocks(dst))", "37", FITTED, _TABLE, flops=_E),
    Cost("trowexpandadd trowexpandsub trowexpandmul trowexpandmax trowexpandmin",
         "36 + 2 * dst.v_row * blocks(dst)", "26", DERIVED,
         "a broadcast of the column, a barrier, then two cycles per repeat", flops=_E),
    Cost("trowexpanddiv", "36 + (4 if dst.bits == 32 else 8) * dst.v_row * blocks(dst)", "31", DERIVED,
         "a broadcast of the column, a barrier, then a division", flops=_E),
    Cost("trowexpandexpdif", "36 + (2 * dst.v_row * blocks(dst)) + 17 + 0.0314 * dst.elems", "31", DERIVED,
         "a subtraction with broadcast, a barrier, then an exponential", flops=_E),
    Cost("tcolexpand", "dst.v_row * blocks(dst)", "24", GUESSED, "a copy of every row", flops=_E),
    Cost("tcolexpandadd tcolexpandsub tcolexpandmul tcolexpandmax tcolexpandmin",
         "2 * dst.v_row * blocks(dst) + 16", "26", GUESSED, "as an instruction of two tiles, row by row",
         flops=_E),
    Cost("tcolexpanddiv", "(4 if dst.bits == 32 else 8) * dst.v_row * blocks(dst) + 16", "31", GUESSED,
         "as an instruction of two tiles, row by row", flops=_E),
    Cost("tcolexpandexpdif", "2 * dst.v_row * blocks(dst) + 33 + 0.0314 * dst.elems", "31", GUESSED,
         "a subtraction, a barrier, then an exponential", flops=_E),
    # -- sorting and gathering
    Cost("tsort32", "src.v_row * (16 * ceil(src.v_col / 32) + 21) - 21", "21", MEASURED,
         "f32 on a device, the barrier of every row included", flops="src.elems"),
    Cost("tmrgsort", "78 * size(src) / 1024 + size(src) / bw_ub_ub", "20", MEASURED,
         "one list on a device, by KiB of records; with the copy of the result", when="has(blockLen)",
         flops="src.elems"),
    Cost("tmrgsort", "78 * size(dst) / 1024 + size(dst) / bw_ub_ub", "20", DERIVED,
         "several lists, as one of their length", flops=_E),
    Cost("tgather", "47 * dst.v_row * max(1, blocks(dst) / 2)", "24", MEASURED,
         "rows gathered by index on a device", when="has(indices)", flops=_E),
    Cost("tgather", "14 * merged(src)", "34", GUESSED, "by mask, as published without a source", flops=_E),
    Cost("tgatherb", "2 * merged(dst)", "24", GUESSED, "as the vendor's default", flops=_E),
    Cost("ttrans", "2 * max(1, stored(dst) / 512) + size(dst) / bw_ub_ub", "24", GUESSED,
         "conversions of 16 rows, then a copy", flops=_E),
    # -- copies within UB
    Cost("tmov", "size(dst) / bw_ub_ub", "5", FITTED, "copies of tiles within UB",
         when="src.loc == VEC and dst.loc == VEC", path="ub_ub", bytes="size(dst)"),
)  # fmt: skip
