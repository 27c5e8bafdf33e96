"""`pto python`: run unmodified Python programs that were written for pypto or simpler."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from ..diag import Diagnostic, DiagnosticError, has_errors
from ..engine.sanitize import WARN, parse_names
from .common import FAILED, OK, CommandParser, add_depth, show, unwritten
from .interrupt import allow

_EXAMPLES = """\
  pto python hello.py                       run a script; its own arguments follow its name
  pto python --sanitize all hello.py        run every task on the reference engine, with all sanitizers
  pto python -m pytest tests/st/runtime     run public tests on this package
  pto python --report out examples models   run all programs of folders; write a page and a JSON file to out/

In that process, this package provides `pypto`, `pypto.language`, `pypto.runtime`, `pypto.ir` and the like,
and `simpler` and `simpler_setup`; nothing is installed. Device platforms (a2a3, a5) are simulated.
Findings go to stderr.
Exit status: that of the script; 1 if sanitizers found errors in a script that ended without an error.
"""
#: Seconds for a script, or for the programs of a report, to end after a signal.
_SECONDS = 3.0
_LEVELS = "checks: off, warn (unordered tasks, at little cost), all, or names as in pto run --sanitize"


def main(arguments: Sequence[str]) -> int:
    p = CommandParser(
        "pto python",
        "Run Python programs that import pypto or simpler, with this package in their place.",
        _EXAMPLES,
    )
    add = p.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module instead of a script, like python -m")
    add("-c", dest="code", metavar="CODE", help="run CODE instead of a script, like python -c")
    add("--shadow", action="store_true", help="use this package even if pypto or simpler is installed")
    add("--sanitize", metavar="LEVEL", default=WARN, help=f"{_LEVELS} (default: {WARN})")
    add_depth(p)
    add("--report", metavar="DIR", help="run all programs of folders or files, and write DIR/report.html and "
        "DIR/report.json")  # fmt: skip
    add(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="with --report: number of programs to run in parallel",
    )
    add("--resume", action="store_true", help="with --report: keep the outcomes of a report that was cut off")
    add("--timeout", type=float, default=120, metavar="SECONDS",
        help="with --report: time limit of each program (default: 120)")  # fmt: skip
    add("--platform", metavar="NAME", default="a2a3", help="with --report: platform of tests (default: a2a3)")
    add("--device", metavar="LIST", default="0-7",
        help="with --report: simulated devices for tests with several ranks (default: 0-7)")  # fmt: skip
    add("script", nargs="?", help="script, or the first folder for --report")
    add("args", nargs=argparse.REMAINDER, help="arguments of the script, or more folders for --report")
    given, rest = _split(list(arguments))
    options = p.parse_args(given)
    options.args = [*options.args, *rest]
    level = "" if options.sanitize == "off" else options.sanitize
    if options.strict_undef:
        os.environ["PTO_STRICT_UNDEF"] = "1"
    os.environ["PTO_SAMPLE"] = options.sample
    if level != WARN:
        try:
            parse_names(level)
        except ValueError as e:
            p.error(f"--sanitize: {e}")
    if options.report is not None:
        return _report(p, options, level)
    if options.script is None and options.module is None and options.code is None:
        p.error("missing script")
    return _run(options, level)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the arguments: options of `pto python`, and arguments after -m MODULE or -c CODE, which belong to
    it."""
    for i, word in enumerate(arguments):
        if word in ("-m", "-c"):
            return arguments[: i + 2], arguments[i + 2 :]
        if not word.startswith("-") and (i == 0 or arguments[i - 1] not in _VALUED):
            break
    return arguments, []


_VALUED = ("--sanitize", "--report", "-j", "--jobs", "--timeout", "--platform", "--device", "--sample")


def _report(p: CommandParser, options: Any, level: str) -> int:
    from ..compat.report import run as report

    allow(_SECONDS, signal.SIGINT, signal.SIGTERM)
    trees = [t for t in (options.script, *options.args) if t is not None]
    if not trees:
        p.error("missing folders or files for --report")
    for tree in trees:
        if not os.path.exists(tree):
            p.error(f"cannot find '{tree}': no such file or folder")
    return report(
        options.report, trees, level or "off", options.jobs, options.timeout, options.platform,
        options.device, options.resume,
    )  # fmt: skip


def _run(options: Any, level: str) -> int:
    allow(_SECONDS, signal.SIGTERM)  # the script decides what Ctrl-C does
    os.environ["PTO_SANITIZE"] = level
    if options.shadow:
        os.environ["PTO_PYPTO"] = os.environ["PTO_SIMPLER"] = "shadow"
    try:
        from ..compat import pypto, simpler  # noqa: F401  # from now on they are us
    except DiagnosticError as e:
        show(e.diagnostics, "text")
        return FAILED
    from ..compat.pypto import session

    listening = session.begin()
    status = _ended(lambda: _execute(options))
    if status == OK and has_errors(listening.findings):
        count = len(listening.findings)
        print(f"pto python: {count} finding{'s'[: count != 1]}, see above", file=sys.stderr)
        return FAILED
    return status


def _ended(body: Any) -> int:
    """Return the exit status that Python would return."""
    try:
        body()
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or OK
        print(e.code, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        raise
    except DiagnosticError as e:
        show(e.diagnostics, "text")
        return FAILED
    except BaseException as e:
        if unwritten(e):
            raise
        _show_traceback(e)
        return FAILED
    return OK


def _show_traceback(e: BaseException) -> None:
    """Print a traceback as Python does, from the script on."""
    tb = e.__traceback__
    here = {__file__}
    while tb is not None and (
        tb.tb_frame.f_code.co_filename in here or "runpy" in tb.tb_frame.f_code.co_filename
    ):
        tb = tb.tb_next
    traceback.print_exception(type(e), e, tb)


#: Arguments that modules get before their own: plugins with the fixtures and options of the vendor's tests.
_PLUGINS = {"pytest": ("-p", "pto.compat.pypto.plugin", "-p", "pto.compat.simpler.plugin")}


def _execute(options: Any) -> None:
    import runpy

    if options.module is not None:
        sys.argv = [options.module, *_PLUGINS.get(options.module, ()), *_own(options)]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
    elif options.code is not None:
        sys.argv = ["-c", *_own(options)]
        sys.path.insert(0, "")
        exec(  # as `python -c`
            compile(options.code, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__}
        )
    else:
        script = options.script
        if not os.path.isfile(script):
            raise DiagnosticError([Diagnostic("PTO-E0001", f"cannot read '{script}': no such file")])
        sys.argv = [script, *options.args]
        sys.path[:0] = [os.path.dirname(os.path.abspath(script))]
        sys.path += _roots(script)
        runpy.run_path(script, run_name="__main__")


def _own(options: Any) -> list[str]:
    return [a for a in (options.script, *options.args) if a is not None]


def _roots(script: str) -> list[str]:
    """Return folders where a script of a checkout expects packages: the current folder, the folder above the
    packages that contain the script, and parent folders that contain `golden`."""
    found = [os.getcwd()]
    folder = os.path.dirname(os.path.abspath(script))
    inside = True
    while folder != os.path.dirname(folder):
        packaged = os.path.isfile(os.path.join(folder, "__init__.py"))
        if (inside and not packaged) or os.path.isfile(os.path.join(folder, "golden", "__init__.py")):
            found.append(folder)
        inside = inside and packaged
        folder = os.path.dirname(folder)
    return found
