"""`pto debug`: a kernel stopped, looked at, stepped through and back; at a prompt, or by an editor."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..diag import has_errors
from .common import FAILED, OK, show
from .run import parsed, parser, run

_EXAMPLES = """\
  pto debug k.pto -- @a.npy @b.npy f32:16x64
  pto debug k.pto --break 14:3 --watch '%acc[0,1]' -- @a.npy f32:16x64
  pto debug k.pto --break '14 if %i == 2' --command 'print %acc' --command continue -- @a.npy f32:16x64
  pto debug k.pto --schedule seed=4 --sanitize all -- @a.npy f32:16x64
  pto debug --dap                         the Debug Adapter Protocol on standard input and output
  pto debug --dap-port 4711               the same on a port of this machine

at the prompt, 'help' lists the commands; arguments are those of pto run (pto run --help)
"""


def main(arguments: Sequence[str]) -> int:
    if "--dap" in arguments or any(a.partition("=")[0] == "--dap-port" for a in arguments):
        return _serve(arguments)
    doc = "Debug a kernel: stop it, look at its tiles, step through it, and back."
    p = parser("pto debug", doc, _EXAMPLES)
    p.add_argument("--dap", action="store_true", help="speak the Debug Adapter Protocol: editors start this")
    p.add_argument("--dap-port", metavar="PORT", help="the same on a port of this machine, for one editor")
    options = parsed(p, arguments)
    options.debug = True
    options.stop_first = options.stop_first or not (options.breaks or options.watches)
    problems = run(options)
    show(problems, options.diagnostics)
    return FAILED if has_errors(problems) else OK
