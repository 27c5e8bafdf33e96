"""A timeline as text: total, limit, stalls with their causes, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...isa.costs import PATHS
from . import simulate as sim
from .trace import DRAIN, TraceSite

if TYPE_CHECKING:
    from .measures import Measures, Stall

#: Order of pipes in tables: the direction of data flow.
ORDER = ("MTE2", "MTE1", "M", "FIX", "V", "MTE3", "S")
_ARROWS = {"gm": "GM", "ub": "UB", "l1": "L1", "l0a": "L0A", "l0b": "L0B", "l0c": "L0C", "bt": "BT"}
_SHOWN = 8
#: Maximum number of gaps for an analysis of causes, which takes some seconds.
_SOME = 200_000
_CAUSES = {
    sim.TOKEN: "buffer token", sim.QUEUE: "full queue", sim.ORDER: "no order of pipes",
    sim.TRANSFER: "asynchronous transfer",
}  # fmt: skip


def amount(size: float) -> str:
    """Return a number of bytes or operations with a suitable prefix."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.3g} "


def path_name(path: str) -> str:
    return " -> ".join(_ARROWS.get(word, word) for word in path.split("_"))


def place(site: TraceSite) -> str:
    return f"{site.name} (line {site.line})" if site.line else site.name


def reason(stall: Stall) -> str:
    """Return the reason of a stall as text."""
    of = f" from line {stall.of.line}" if stall.of is not None and stall.of.line else ""
    return {
        sim.FLAG: f"flag{of}",
        sim.TOKEN: f"buffer token{of}",
        sim.BARRIER_: f"barrier{f' at line {stall.of.line}' if of and stall.of is not None else ''}",
        sim.EMPTY: f"FIFO empty: entry{of}",
        sim.FULL: f"FIFO full: slot freed{of}",
        sim.CROSS: f"cross-core: signal{of}",
        sim.GRID: "grid barrier",
        sim.BANDWIDTH: "bandwidth of global memory",
        sim.ISSUE: "issue: the scalar unit has not issued it yet",
        sim.QUEUE: "issue: the queue of the pipe is full",
        sim.ORDER: "the previous instruction: no flag orders the pipes",
        sim.UNIT: f"unit flag{of}",
        sim.TRANSFER: f"asynchronous transfer{of}",
    }.get(stall.reason, stall.reason)


def text(t: Measures, advice: bool = True) -> str:
    machine, trace = t.machine, t.trace
    us = machine.us
    blocks = f"{t.blocks} block{'s' * (t.blocks != 1)}" + (f" in {t.waves} waves" if t.waves > 1 else "")
    out = [
        f"{t.us:.2f} us on {machine.title} ({t.cycles:,.0f} cycles at {machine.mhz:g} MHz, {blocks}): "
        f"{t.bound}",
        f"  launch {us(machine.launch):.2f} us, kernel {us(t.kernel_cycles):.2f} us",
    ]
    if trace.in_order:
        why = "no flag or barrier orders its pipes"
        if DRAIN in trace.kind:
            why = "its barriers do not order all conflicting accesses (--sanitize race)"
        out.append(f"  this program is timed one instruction after another: {why}")
    order = {p: n for n, p in enumerate(ORDER)}
    shares = sorted(t.share.items(), key=lambda kv: order.get(kv[0], 99))
    whole = t.kernel_cycles or 1.0
    out += ["", "pipe     busy    us       of the kernel, on its busiest core"]
    for pipe, share in shares:
        bar = "#" * round(share * 40)
        out.append(f"  {pipe:<6}{share:5.0%}  {us(share * whole):8.2f}  {bar}")
    moved = [f"{path_name(path)} {amount(t.bytes[path])}B" for path in PATHS if t.bytes.get(path)]
    if moved:
        out += ["", "moved    " + ", ".join(moved)]
    for pipe, name in (("M", "cube"), ("V", "vector")):
        if t.flops.get(pipe):
            rate = t.flops[pipe] / us(whole) / 1e6
            unit = "TFLOPS" if pipe == "M" else "T elements/s"
            out.append(
                f"{name:<8} {amount(t.flops[pipe])}{'FLOP' if pipe == 'M' else 'elements'}, {rate:.3g} {unit}"
            )
    roof, done = t.roofline
    if roof and done:
        out.append(
            f"roofline {t.intensity:.3g} operations per byte of global memory allow "
            f"{roof * machine.mhz / 1e6:.3g} T/s; {done / roof:.0%} of that"
        )
    out += _stalls(t)
    out += _path(t)
    if advice:
        from .advice import BUDGET, chain

        if len(trace) > BUDGET:
            out += ["", "no advice for a trace of this length: time fewer blocks, or a smaller case"]
        rounds = chain(t)
        if rounds:
            out += ["", "advice, each tried on this timeline"]
        for n, found in enumerate(rounds):
            then = "then " if n else ""
            out += [
                f"  {then}{one.text}: {us(one.gain):.2f} us ({one.gain / t.cycles:.0%}) less" for one in found
            ]
    if t.guessed:
        names = sorted(t.guessed, key=lambda n: -t.guessed[n])
        listed = ", ".join(names[:6]) + (", .." if len(names) > 6 else "")
        out += ["", f"{t.guessed_share:.0%} of busy time rests on guessed costs: {listed} (pto cost show)"]
    return "\n".join(out)


def _stalls(t: Measures) -> list[str]:
    found = [s for s in t.stalls() if s.worst >= max(1.0, 0.002 * t.kernel_cycles)]
    if not found:
        return []
    us = t.machine.us
    out = ["", "stalls   us of a core   pipe   waits for"]
    for s in found[:_SHOWN]:
        out.append(f"  {us(s.worst):17.2f}   {s.pipe:<5}  {reason(s)}, at {place(s.site)}")
    if len(found) > _SHOWN:
        out.append(f"  and {len(found) - _SHOWN} more")
    if len(t.gaps) <= _SOME:
        whole = sum(t.causes.values())
        words = [f"{_CAUSES.get(c, c)} {n / whole:.0%}" for c, n in t.causes.items() if n >= 0.005 * whole]
        out.append(f"  root causes of all idle time: {', '.join(words)}")
    return out


def _path(t: Measures) -> list[str]:
    """Return the critical path, by instruction."""
    spent: dict[tuple[str, str, int], float] = {}
    trace = t.trace
    for step in t.critical_path():
        if step.end > step.begin:
            site = trace.sites[trace.site[step.event]]
            key = trace.pipes[trace.pipe[step.event]], site.name, site.line
            spent[key] = spent.get(key, 0.0) + step.end - step.begin
    if not spent:
        return []
    whole = t.kernel_cycles or 1.0
    ranked = sorted(spent.items(), key=lambda kv: -kv[1])
    out = ["", "critical path, by instruction"]
    for (pipe, name, line), cycles in ranked[:_SHOWN]:
        out.append(
            f"  {cycles / whole:5.0%}  {t.machine.us(cycles):8.2f} us   {pipe:<5}  {name} (line {line})"
        )
    return out
