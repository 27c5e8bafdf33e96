"""`pto cost`: show the parameters of the cost model, and fit them to measurements."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from .. import isa
from ..diag import Diagnostic, DiagnosticError
from ..isa.timing import MACHINES, PARAMETERS, Machine, machine, toml_of
from .common import FAILED, OK, CommandParser, show, write_output
from .terminal import Screen

if TYPE_CHECKING:
    from ..perf.fit import Measurement

_EXAMPLES = """\
  pto cost show                        list the machines, and the parameters of a2a3 with their evidence
  pto cost show 910b4
  pto cost table --machine a5 tadd     entries of the cost tables
  pto cost fit runs.csv -o my.toml     fit parameters to measurements
  pto run k.pto --time --machine my.toml -- @a.npy f32:16x64
"""

_FIT = """\
  pto cost fit runs.csv -o my.toml
  pto cost fit runs.csv --machine 910b3 --param launch,bw_gm_ub -o my.toml

runs.csv has a line of column names, then one measurement per line. For a kernel:
  program,args,blocks,us
  gemm.pto,f16:512x512 f16:512x512 f32:512x512 512 512 512,16,21.4
For an instruction, operands are name=DTYPE:DIMS@PLACE, where PLACE is a tile location or gm:
  instruction,operands,cycles
  tadd,src0=f32:64x64@vec src1=f32:64x64@vec dst=f32:64x64@vec,160
"""

_OPERAND = re.compile(r"(\w+)=(\w+):(\d+(?:x\d+)*)@(\w+)$")


def main(arguments: Sequence[str]) -> int:
    p = CommandParser("pto cost", "Show what instructions cost on a machine, by the cost model.", _EXAMPLES)
    verbs = p.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=CommandParser)
    shown = verbs.add_parser(
        "show",
        prog="pto cost show",
        help="list machines, and the parameters of one with their evidence",
        description="List machines, or show the parameters of one machine with their evidence.",
        examples="  pto cost show a5",
    )
    shown.add_argument(
        "machine", nargs="?", default="a2a3", metavar="M", help="a machine, or a .toml file (default: a2a3)"
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    table = verbs.add_parser(
        "table",
        prog="pto cost table",
        help="show the cost of instructions: expressions and their evidence",
        description="Show entries of the cost tables.",
        examples="  pto cost table tadd trowsum",
    )
    table.add_argument(
        "names", nargs="*", metavar="NAME", help="instructions (default: all that have a pipe)"
    )
    table.add_argument("--machine", default="a2a3", metavar="M", help="a machine (default: a2a3)")
    fitted = verbs.add_parser(
        "fit",
        prog="pto cost fit",
        help="fit parameters to measurements",
        description="Fit parameters of a machine to measurements, and show the error before and after.",
        examples=_FIT,
    )
    fitted.add_argument("runs", metavar="FILE", help="CSV file of measurements")
    fitted.add_argument("--machine", default="a2a3", metavar="M", help="initial parameters (default: a2a3)")
    fitted.add_argument(
        "--param", default="", metavar="LIST", help="parameters to fit, separated by commas (default: all)"
    )
    fitted.add_argument("-o", "--output", metavar="FILE", help="write the parameters to a file for --machine")
    options = p.parse_args(arguments)
    try:
        found = machine(options.machine)
        if options.verb == "show":
            return _show(found, options.json)
        return _table(options.names, found) if options.verb == "table" else _fit(options, found)
    except ValueError as e:
        print(f"pto cost {options.verb}: {e}", file=sys.stderr)
    except DiagnosticError as e:
        show(e.diagnostics, "text")
    return FAILED


def _show(found: Machine, as_json: bool) -> int:
    if as_json:
        values = {n: {"value": found.values[n], "evidence": found.evidence[n]} for n in PARAMETERS}
        print(json.dumps({"name": found.name, "title": found.title, "parameters": values}, indent=2))
        return OK
    screen = Screen()
    out = [screen.paint("Machines", "title")]
    rows = [(m.name, m.title, f"{m.mhz:g}", f"{m.aic:g}", f"{m.aiv:g}") for m in MACHINES.values()]
    out += screen.table(("name", "machine", "MHz", "cube cores", "vector cores"), rows)
    out += ["", screen.paint(f"Parameters of {found.name}", "title")]
    parameters = [(n, f"{found.values[n]:g}", words, found.evidence[n]) for n, words in PARAMETERS.items()]
    out += screen.table(("name", "value", "what it is", "evidence"), parameters)
    print("\n".join(out))
    return OK


def _table(names: Sequence[str], found: Machine) -> int:
    from ..isa.costs import costs_of

    unknown = [n for n in names if isa.row(n) is None]
    if unknown:
        raise ValueError(f"unknown instruction '{unknown[0]}'")
    rows = [isa.row(n) for n in names] if names else [r for r in isa.rows() if r.pipe and r.dialect == "pto"]
    out: list[tuple[str, ...]] = []
    for row in rows:
        assert row is not None
        out += [
            (row.name, c.when, c.busy, c.after, c.path, c.evidence, c.source)
            for c in costs_of(row, found.isa)
        ]
    screen = Screen()
    head = ("name", "where", "busy, cycles", "until done", "path", "evidence", "source")
    print("\n".join(screen.table(head, out)))
    return OK


# -- fitting -----------------------------------------------------------------------------------------------


def _fit(options: Namespace, found: Machine) -> int:
    from ..perf.fit import fit

    measurements = read(options.runs, found)
    if not measurements:
        raise ValueError(f"{options.runs} has no measurements")
    names = [n for n in options.param.split(",") if n]
    result = fit(measurements, found, names)
    width = max(len(m.name) for m in measurements) + 2
    print(f"{'measurement':<{width}}{'measured':>12}{'before':>9}{'after':>9}")
    for m, before, after in zip(measurements, result.before, result.after, strict=True):
        print(f"{m.name:<{width}}{m.truth:>12g}{before:>+9.1%}{after:>+9.1%}")
    errors = [median(map(abs, e)) for e in (result.before, result.after)]
    worst = [max(map(abs, e)) for e in (result.before, result.after)]
    print(f"median error {errors[0]:.1%} before, {errors[1]:.1%} after; worst {worst[0]:.1%}, {worst[1]:.1%}")
    text = toml_of(result.machine, found)
    print("\n" + text, end="")
    if options.output:
        problems = write_output(options.output, text.encode())
        show(problems, "text")
        return FAILED if problems else OK
    return OK


def read(path: str, found: Machine) -> list[Measurement]:
    """Read the measurements of a file; raise `ValueError` for an invalid line."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except OSError as e:
        raise ValueError(f"cannot read '{path}': {e.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as e:
        raise ValueError(f"{path}: {e}") from None
    out: list[Measurement] = []
    for number, line in enumerate(lines, 2):
        try:
            if line.get("program"):
                out.append(_kernel(line, os.path.dirname(path), found))
            elif line.get("instruction"):
                out.append(_instruction(line))
            else:
                raise ValueError("missing program or instruction")
        except (
            ValueError,
            KeyError,
            TypeError,
            ArithmeticError,
            AttributeError,
        ) as e:  # AttributeError: a missing operand
            raise ValueError(f"{path}, line {number}: {e}") from None
    return out


def _instruction(line: dict[str, Any]) -> Measurement:
    from ..isa.costs import Shape, charge, tile, view
    from ..perf.fit import Measurement

    args: dict[str, Shape] = {}
    for word in (line.get("operands") or "").split():
        m = _OPERAND.match(word)
        if not m:
            raise ValueError(f"'{word}': expected name=DTYPE:DIMS@PLACE")
        name, dtype, dims, place = m.groups()
        sizes = [int(d) for d in dims.split("x")]
        if place == "gm":
            args[name] = view(dtype, *sizes)
        else:
            rows, cols = [1, *sizes][-2:]
            args[name] = tile(dtype, rows, cols, loc=place)
    name = line["instruction"]
    charge(name, MACHINES["a2a3"], **args)  # reports an unknown instruction now
    text = f"{name} {line['operands']}"
    return Measurement(text[:48], float(line["cycles"]), lambda m: charge(name, m, **args).cycles)


def _kernel(line: dict[str, Any], folder: str, found: Machine) -> Measurement:
    from ..engine.launch import plain
    from ..engine.reference.dry import depends_on_data
    from ..perf.fit import Measurement
    from ..reading import parse
    from .arguments import Argument

    name = line["program"]
    path = os.path.join(folder, name)
    if not os.path.isfile(path):  # a table could name a device file, and reading that would not end
        raise ValueError(f"cannot read '{path}': it is not a file")
    module = parse(path)
    values = [Argument(text) for text in (line.get("args") or "").split()]
    broken: list[Diagnostic] = [a.problem for a in values if a.problem is not None]
    if broken:
        raise DiagnosticError(broken)
    launchable = plain(module, line.get("entry") or None, "reference")
    dry = depends_on_data(module) is None
    blocks = int(line.get("blocks") or 1)
    if not 0 < blocks <= 1 << 10:  # each block has its own memory while the program is timed
        raise ValueError(f"expected 1 to 1024 blocks, got {blocks}")
    result = launchable(*[a.values[0] for a in values], blocks=blocks, timeline=found, dry=dry)
    timeline = result.timeline
    return Measurement(f"{name} on {blocks}", float(line["us"]), lambda m: timeline.what_if(machine=m).us)
