"""`k.explain(...)`: describe a lowered program as text.

The text has its tasks and their dependencies, then every kernel with its memory and the inserted flags.

    softmax(x, y) for a2a3: 1 call of 1 kernel
    for r in pl.parallel(0, M, 16):
        [1] rows (vector, line 31)  in x  out y

`[4] of earlier iterations (acc)` refers to earlier iterations of the enclosing loop; a question mark after a
name marks a dependency that depends on the run.
"""

from __future__ import annotations

from .. import driver
from ..diag import Span
from ..ir.core import Module
from .graphs.graph import CallGraph, Edge, Site, name_of
from .ir import IN, INOUT, OUT, Block, Function, Op, Value, root, values_in
from .programs.lower import LoweredProgram

_CORES = {"cube": "cube", "vector": "vector"}


def explanation(done: LoweredProgram) -> str:
    """Return the whole text."""
    entry = done.program.entry
    assert entry is not None
    parts = [_graph(done, entry)] if entry.kind == "orchestration" else []
    parts += [_kernel(name, module, done.functions[name].loc) for name, module in done.modules.items()]
    return "\n\n".join(parts)


def _graph(done: LoweredProgram, entry: Function) -> str:
    graph = CallGraph(entry)
    sites = graph.sites
    params = ", ".join(p.name for p in entry.params)
    kernels = len({s.callee.name for s in sites})
    counts = f"{_count(len(sites), 'call')} of {_count(kernels, 'kernel')}"
    head = f"{entry.name}({params}) for {done.profile.name}: {counts}"
    lines = _lines(done, entry.body, {s.op: s for s in sites}, graph.edges, 1)
    warned = [_overwrites(e) for e in graph.hazards()]
    return "\n".join([head, *lines, *warned])


def _lines(
    done: LoweredProgram, block: Block, sites: dict[Op, Site], found: list[Edge], depth: int
) -> list[str]:
    out: list[str] = []
    pad = "  " * depth
    for op in block.ops:
        if op in sites:
            out.append(pad + _site(done, sites[op], [e for e in found if e.later is sites[op]], sites))
        elif any(o in sites for o in op.walk()):
            for n, inner in enumerate(op.blocks):
                lines = _lines(done, inner, sites, found, depth + 1)
                if lines:
                    out += [pad + _head(op, n), *lines]
    return out


def _head(op: Op, block: int) -> str:
    """Return the line of the program that opens a block."""
    text = " ".join(op.loc.source.text[op.loc.start : op.loc.end].split()) if op.loc is not None else op.name
    if op.name == "for":
        return f"for {op.blocks[0].args[0].name} in {text}:"
    if op.name == "if":
        return "else:" if block else f"if {text}:"
    return f"{'while' if op.name == 'while' else 'with'} {text}:"


def _site(done: LoweredProgram, site: Site, found: list[Edge], sites: dict[Op, Site]) -> str:
    where = f", line {site.op.loc.line}" if site.op.loc is not None else ""
    words = [f"[{site.number}] {site.callee.name} ({_core(done.modules[site.callee.name])}{where})"]
    blocks = site.op.args.get("core_num")
    if blocks:
        words.append(f"{blocks.name or '?' if isinstance(blocks, Value) else blocks} blocks")
    for direction in (IN, INOUT, OUT):
        names = list(dict.fromkeys(name_of(root(v)) for v, p in site.tensors if p.direction == direction))
        if names:
            words.append(f"{direction} {', '.join(names)}")
    after = [_after(e) for e in found if e.kind == "waits"]
    after += [
        f"[{sites[d.op].number}] (deps)" if d.op in sites else f"{name_of(d)} (deps)"
        for d in values_in(site.op.args.get("deps"))
    ]
    if after:
        words.append(f"after {', '.join(after)}")
    return "  ".join(words)


def _after(e: Edge) -> str:
    turn = " of earlier iterations" if e.again is not None else ""
    return f"[{e.earlier.number}]{turn} ({', '.join(e.names)})"


def _overwrites(e: Edge) -> str:
    turn = " in an earlier iteration" if e.again is not None else ""
    names = ", ".join(e.names)
    return f"  not ordered: [{e.later.number}] overwrites {names}, which [{e.earlier.number}] uses{turn}"


# ---- kernels ----


def _core(module: Module) -> str:
    kinds = {str(f.attr("pto.kernel_kind") or "") for f in module.functions}
    return "cube and vector" if len(kinds) > 1 else _CORES.get(min(kinds), "vector")


_FLAGS = {"set": "flag", "barrier": "barrier"}


def _kernel(name: str, module: Module, loc: Span | None) -> str:
    """Return the memory plan of a kernel, and the operations that were inserted."""
    from ..passes import explain_memory

    done = driver.lowered(module, options=driver.Options(insert_sync=True)).sound()
    if loc is not None:  # lines in the file of the function need no file name
        done.module.source = loc.source
    before, after = _orders(module), _orders(done.module)
    made = {k: after.get(k, 0) - before.get(k, 0) for k in after}
    said = [_count(n, k) for k, n in made.items() if n > 0]
    memory = explain_memory.text(done.plan) if done.plan is not None else "no tile to place"
    head = f"@{name} ({_core(module)}): {' and '.join(said) or 'nothing'} inserted"
    return "\n".join([head, *(f"  {line}".rstrip() for line in memory.splitlines())])


def _orders(module: Module) -> dict[str, int]:
    out: dict[str, int] = {}
    for op in module.walk():
        if op.row is not None and op.row.order in _FLAGS:
            word = _FLAGS[op.row.order]
            out[word] = out.get(word, 0) + 1
    return out


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
