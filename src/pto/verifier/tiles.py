"""Tile types and places of tiles: construction rules, capacity and alignment, auto and manual mode."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.context import Context
from ..ir.core import Operation, Value, constant_of
from ..ir.facts import is_manual, places_tile
from ..ir.types import TileBufType
from ..isa.profiles import LOCATIONS, PROFILES, Profile
from ..isa.tile import FRACTALS

Problem = tuple[str, str, str, str, str]  # code, message, expected, got, help


#: The documents give 4095 columns; real kernels use 16384 and more, and the hardware field has 16 bits.
MAX_COLS = 65535

_LINE = {"cols": "a row", "rows": "a column"}


def construction_problems(t: TileBufType, profile: Profile, window: bool = False) -> Iterator[Problem]:
    """Yield the problems that make a tile type itself illegal."""
    if t.rows <= 0 or t.cols <= 0:
        yield (
            "SA-0064",
            "a tile needs at least one row and one column",
            "rows > 0 and cols > 0",
            f"{t.rows}x{t.cols}",
            "",
        )
        return
    if (t.v_row or 0) > t.rows or (t.v_col or 0) > t.cols:
        yield (
            "SA-0065",
            "valid region is larger than the tile",
            f"valid <= {t.rows}x{t.cols}",
            f"{_d(t.v_row)}x{_d(t.v_col)}",
            f"write valid={_clip(t.v_row, t.rows)}x{_clip(t.v_col, t.cols)} or enlarge the tile",
        )
    if t.bits not in (4, 8, 16, 32, 64) or t.elem.text in ("f64", "index"):
        yield (
            "PTO-E0302",
            f"a tile cannot hold elements of type {t.elem}",
            "an element type of the ISA",
            str(t.elem),
            "",
        )
        return
    if t.elem.is_float and t.bits < 16 and not profile.small_floats:
        have = ", ".join(p.name for p in PROFILES.values() if p.small_floats)
        message = f"profile restriction: element type {t.dtype} does not exist on {profile.name}"
        yield (
            "PTO-E0602",
            message,
            f"target {have}",
            f"target {profile.name}",
            "use f16 or bf16, or another target",
        )
        return
    if t.fractal not in FRACTALS:
        near = min(FRACTALS, key=lambda f: abs(f - t.fractal))
        message = f"unsupported s_fractal_size: {t.fractal}, must be one of {{32, 512, 1024}}"
        yield ("SA-0095", message, "512, 1024 or 32", str(t.fractal), f"nearest legal choice: {near}")
        return
    if t.boxed:
        ir, ic = t.box
        if t.cols % ic:
            yield (
                "SA-0066",
                f"columns must be a multiple of the inner box ({ir}x{ic})",
                f"a multiple of {ic}",
                str(t.cols),
                _multiple("cols", t.cols, ic),
            )
        if t.rows % ir and not (t.loc == "vec" or t.fractal == 32 or t.rows == 1):
            yield (
                "SA-0067",
                f"rows must be a multiple of the inner box ({ir}x{ic})",
                f"a multiple of {ir}",
                str(t.rows),
                _multiple("rows", t.rows, ir),
            )
    else:
        name, n = ("cols", t.cols) if t.blayout == "row_major" else ("rows", t.rows)
        if n * t.bits % 256 and not window:  # a window has the lines of its tile
            step = 256 // t.bits
            yield (
                "SA-0006",
                f"{_LINE[name]} of an unboxed tile must be a multiple of 32 bytes",
                "a multiple of 32 bytes",
                f"{n * t.bits / 8:g} bytes",
                _multiple(name, n, step),
            )
    if t.rows > profile.max_rows or t.cols > MAX_COLS:
        yield (
            "PTO-E0401",
            f"tile is larger than {profile.name} allows",
            f"rows <= {profile.max_rows}, cols <= {MAX_COLS}",
            f"{t.rows}x{t.cols}",
            "split the tile",
        )


def _clip(valid: int | None, size: int) -> str:
    return "?" if valid is None else str(min(valid, size))


def _d(n: int | None) -> str:
    return "?" if n is None else str(n)


def _multiple(name: str, n: int, step: int) -> str:
    up = -(-n // step) * step
    down = n // step * step
    return (
        f"nearest legal choices: {name}={down} or {name}={up}"
        if down
        else f"nearest legal choice: {name}={up}"
    )


def placement_problems(t: TileBufType, addr: int | None, profile: Profile) -> Iterator[Problem]:
    """Yield SA-0351 .. SA-0354: the space exists, the tile fits at its address, aligned; with the documented
    help."""
    for code, message, expected, got, help in _placement(t, addr, profile):
        from ..isa.errors import entry  # costly, and rarely needed

        yield code, message, expected, got, f"{help} ({entry(code).recipe})"


def _placement(t: TileBufType, addr: int | None, profile: Profile) -> Iterator[Problem]:
    capacity = profile.capacity[t.loc]
    buffer = LOCATIONS[t.loc]
    where = f"{t.loc} ({buffer}) holds {capacity} bytes on {profile.name}"
    if capacity == 0:
        yield (
            "SA-0351",
            f"{profile.name} has no {t.loc} ({buffer}) buffer",
            "a location of the profile",
            t.loc,
            "target a profile that has it, e.g. a5",
        )
        return
    if t.size > capacity:
        yield (
            "SA-0352",
            f"tile of {t.size} bytes is larger than its buffer: {where}",
            f"at most {capacity} bytes",
            f"{t.size} bytes",
            "use a smaller tile",
        )
        return
    if addr is None:
        return
    last = (capacity - t.size) // profile.align * profile.align
    if addr < 0:
        yield (
            "SA-0353",
            f"address {addr} of a tile in {t.loc} ({buffer}) is negative",
            f"0 <= address <= {last}",
            str(addr),
            "lowest legal address: 0",
        )
    elif addr + t.size > capacity:
        yield (
            "SA-0353",
            f"tile of {t.size} bytes at address {addr} ends at {addr + t.size}, beyond its buffer: {where}",
            f"0 <= address <= {last}",
            str(addr),
            f"highest legal address: {last}",
        )
    if addr % profile.align:
        near = min(round(addr / profile.align) * profile.align, last)
        yield (
            "SA-0354",
            f"address {addr} of a tile in {t.loc} ({buffer}) is not aligned to {profile.align} bytes",
            f"a multiple of {profile.align}",
            str(addr),
            f"nearest legal address: {max(near, 0)}",
        )


def check_tiles(context: Context) -> None:
    """Check tile types where tiles are created, addresses, and the rules of auto and manual mode."""
    module, profile = context.module, context.profile
    manual = is_manual(module, context.level)
    seen: set[tuple[int, int | None, bool]] = set()
    placeless: dict[Value, Operation] = {}  # tiles of manual mode that have no address yet
    for op in module.walk():
        for value in op.operands if placeless else ():
            made = placeless.pop(value, None)
            if made is not None and not (places_tile(op) and value is op.operands[0]):
                _mode(context, made, manual)
        for value in _created(op):
            t = value.type
            assert isinstance(t, TileBufType)
            addr_value = op.get("addr") if op.name == "pto.alloc_tile" else None
            addr = constant_of(addr_value)
            addr = addr if isinstance(addr, int) else None
            window = op.row is not None and op.row.window
            key = (id(t), addr, window)
            if key in seen:
                continue
            before = len(context.diagnostics)
            for code, message, expected, got, help in construction_problems(t, profile, window):
                at = context.type_span(op, value)
                context.report(op, code, message, at=at, expected=expected, got=got, help=help)
            if len(context.diagnostics) == before:
                for code, message, expected, got, help in placement_problems(t, addr, profile):
                    placed = addr_value is not None and code in ("SA-0353", "SA-0354")
                    at = addr_value if placed else context.type_span(op, value)
                    context.report(op, code, message, at=at, expected=expected, got=got, help=help)
            if len(context.diagnostics) == before:
                seen.add(key)
        if op.name == "pto.alloc_tile" and manual and op.get("addr") is None:
            placeless[op.result] = op
        elif op.name == "pto.alloc_tile":
            _mode(context, op, manual)
        elif places_tile(op):
            _tassign(context, op, manual)
    for made in placeless.values():
        _mode(context, made, manual)


def _created(op: Operation) -> Iterator[Value]:
    """Yield tiles whose type is fixed here: results of alias and alloc operations, function arguments."""
    if op.name == "func.func":
        for block in op.regions[0].blocks[:1]:
            yield from (a for a in block.args if isinstance(a.type, TileBufType))
    for result in op.results:
        if isinstance(result.type, TileBufType) and op.row is not None and op.row.dialect == "pto":
            yield result


def _mode(context: Context, op: Operation, manual: bool) -> None:
    has_addr = op.get("addr") is not None
    if manual and not has_addr:
        why = "when --pto-level=level3" if context.level else "because other tiles of this program have one"
        other = "drop --pto-level=level3" if context.level else "drop all addresses"
        context.report(
            op, "PTO-E0901", f"requires 'addr' operand {why}", expected="addr = %address", got="no address",
            help=f"give every tile an address, by addr or by pto.tassign before its first use, or {other}",
        )  # fmt: skip
    elif has_addr and not manual:
        context.report(
            op,
            "PTO-E0902",
            "unexpected 'addr' operand: only supported when --pto-level=level3",
            at=op.get("addr"),
            help="use --pto-level=level3, or drop the address to have the tile placed",
        )


def _tassign(context: Context, op: Operation, manual: bool) -> None:
    if not manual:
        context.report(
            op,
            "PTO-E0903",
            "has no effect in auto mode",
            severity="warning",
            help="use --pto-level=level3, or drop it to have the tile placed",
        )
        return
    if context.insert_sync:
        context.report(
            op,
            "PTO-E0904",
            "requires --enable-insert-sync to be disabled",
            help="insert set_flag/wait_flag by hand",
        )
    addr = constant_of(op.get("addr"))
    tile = op.operands[0].type
    if isinstance(addr, int) and isinstance(tile, TileBufType):
        for code, message, expected, got, help in placement_problems(tile, addr, context.profile):
            context.report(op, code, message, at=op.get("addr"), expected=expected, got=got, help=help)
