"""Export of a timeline: Perfetto (Chrome) traces, a JSON summary, and the page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..explorer.kernel import dataset, html
from .trace import INSIDE, SCALAR, WORK

if TYPE_CHECKING:
    from .measures import Measures


def perfetto(t: Measures) -> list[dict[str, Any]]:
    """Return events of a Chrome trace in virtual microseconds: a process per core, a thread per pipe, and
    flows for flags and other signals."""
    trace, times, us = t.trace, t.times, t.machine.us
    out: list[dict[str, Any]] = []
    for number in range(len(trace.cores)):
        name = t.core_name(number)
        out.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}})
        out.append({"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": number}})
    named: set[tuple[int, int]] = set()
    for e, kind in enumerate(trace.kind):
        if kind == INSIDE:
            continue
        core, pipe = trace.core[e], trace.pipe[e]
        if (core, pipe) not in named:
            named.add((core, pipe))
            thread = {"name": trace.pipes[pipe]}
            out.append({"ph": "M", "name": "thread_name", "pid": core, "tid": pipe, "args": thread})
        site = trace.sites[trace.site[e]]
        charge = trace.charges[trace.charge[e]]
        if kind == WORK or (pipe == 0 and times.free[e] > times.start[e]):
            args: dict[str, Any] = {"line": site.line, "why": times.why[e], "cost": charge.evidence}
            if charge.bytes:
                args["bytes"] = charge.bytes
            if e in times.stretched:
                args["waits for bandwidth, us"] = us(times.stretched[e])
            out.append(
                {
                    "ph": "X", "name": site.name, "cat": trace.pipes[pipe], "pid": core, "tid": pipe,
                    "ts": us(times.start[e]), "dur": us(times.done[e] - times.start[e]), "args": args,
                }
            )  # fmt: skip
        for giver, what in trace.waits.get(e, ()):
            flow = {"name": what, "cat": "flow", "id": e}
            at = {"pid": trace.core[giver], "tid": trace.pipe[giver], "ts": us(times.done[giver])}
            out.append({"ph": "s", **flow, **at})
            to = {"pid": core, "tid": pipe, "ts": us(times.start[e])}
            out.append({"ph": "f", "bp": "e", **flow, **to})
    return out


def summary(t: Measures) -> dict[str, Any]:
    """Return the content of the text report as data."""
    from .report import reason

    trace = t.trace
    return {
        "us": t.us,
        "cycles": t.cycles,
        "kernel_us": t.machine.us(t.kernel_cycles),
        "machine": t.machine.name,
        "bound": t.bound,
        "blocks": t.blocks,
        "waves": t.waves,
        "events": len(trace),
        "pipes": {pipe: {"share": share} for pipe, share in t.share.items() if pipe != SCALAR},
        "bytes": t.bytes,
        "flops": t.flops,
        "intensity": t.intensity,
        "guessed_share": t.guessed_share,
        "guessed": sorted(t.guessed),
        "stalls": [
            {
                "reason": s.reason, "words": reason(s), "pipe": s.pipe, "line": s.site.line,
                "instruction": s.site.name, "us": t.machine.us(s.worst), "count": s.times,
            }
            for s in t.stalls()[:50]
        ],
    }  # fmt: skip


def written(t: Measures, path: str, name: str, other: dict[str, Any] | None = None) -> bytes:
    """Return the content of a timeline file, by its suffix; `other` is a timeline to compare with."""
    if path.endswith((".html", ".htm")):
        return html(t, name, other).encode()
    about = {"pto": summary(t), "view": dataset(t, name), "note": "virtual time of the machine, by model"}
    return json.dumps({"traceEvents": perfetto(t), "displayTimeUnit": "ns", "otherData": about}).encode()
