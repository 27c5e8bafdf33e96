"""`pto python --report DIR TREE...`: run every program of folders in a process of its own with a time limit,
and write a table of the outcomes: DIR/report.html, DIR/report.json.

A program is a script, which is a file with `if __name__ == "__main__":`, or a test of a file `test_*.py`,
which pytest runs. `session.py` and `plugin.py` write events inside the processes as lines, which this module
reads.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from ..diag import visible
from ..files import write_whole
from .report_page import page

_MAIN = re.compile(r"^if __name__ == ['\"]__main__['\"]:", re.M)
_RELATIVE = re.compile(r"^\s*from \.", re.M)
_TEST = re.compile(r"^\s*def test_", re.M)
#: Scene tests as a script, and another script that requires the option --platform, or --device.
_SCENE = re.compile(r"\.run_module\(__name__\)")
_PLATFORM = re.compile(r"""["']--platform["'][^()]*required=True""")
_DEVICE = re.compile(r"""["']--device["']([^()]*)required=True""")
#: Files of the root of a checkout.
_ROOTS = (".git", "pyproject.toml")
#: Maximum number of restarts of a test file after a test has killed the process.
_AGAIN = 8
#: Seconds for a process to end by itself.
_ENDING = 2.0
#: The phase that ends with an event. Other time belongs to the start, or to the program itself.
_PHASES = {"parsed": "lowering", "lowered": "lowering", "run": "run", "finding": "run", "checked": "run"}
#: Variables with the number of threads of a program and its libraries.
_THREADS = ("PTO_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Scene tests for another platform, or for `--manual include`.
_NO_CASE = "cannot find a case for platform"
#: Codes of features that this package lacks.
_REFUSED = re.compile(r"PTO-E(3009|310[1-6])\b")
OUTCOMES = ("passed", "failed", "refused", "timeout", "crashed", "skipped")


@dataclass
class ReportRow:
    """A program, and its progress."""

    file: str
    test: str = ""
    outcome: str = "failed"
    reason: str = ""
    seconds: float = 0.0
    #: Processor seconds, and where they went: before the first program, lowering, runs, the program itself
    #: (inputs, golden, comparison).
    cpu: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    parsed: bool = False
    lowered: bool = False
    run: bool = False
    findings: list[dict[str, str]] = field(default_factory=list)

    def see(self, events: Sequence[dict[str, Any]]) -> None:
        """Record the events of the programs in this file."""
        count = Counter(e["what"] for e in events)
        self.programs = list(dict.fromkeys(e["program"] for e in events if e["what"] == "reading"))
        self.parsed = 0 < count["reading"] == count["parsed"]
        self.lowered = self.parsed and count["lowered"] >= count["parsed"]
        self.run = count["run"] > 0
        last = 0.0
        for e in (e for e in events if "cpu" in e):
            if e["what"] != "test":
                phase = _PHASES.get(e["what"], "program" if "start" in self.phases else "start")
                self.phases[phase] = round(self.phases.get(phase, 0.0) + e["cpu"] - last, 2)
            last = e["cpu"]
        seen = {f["text"]: f for e in events for f in e.get("findings", ())}
        self.findings = list(seen.values())


def programs(trees: Sequence[str]) -> list[tuple[Path, str]]:
    """Return the files that contain programs, with their kind: script or tests."""
    found: list[tuple[Path, str]] = []
    for tree in trees:
        files = [Path(tree)] if os.path.isfile(tree) else sorted(Path(tree).rglob("*.py"))
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace")
            if re.match(r"test_.*|.*_test$", file.stem) and _TEST.search(text):
                found.append((file, "tests"))
            elif _MAIN.search(text):
                found.append((file, "script"))
    return list(dict.fromkeys(found))


def run(
    folder: str, trees: Sequence[str], sanitize: str, jobs: int, timeout: float, platform: str, devices: str,
    resume: bool = False,
) -> int:  # fmt: skip
    """Run all programs. Return 0 if every program passed or was skipped, else 1. With `resume`, files in an
    earlier report with the same settings are not run again."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    todo = programs(trees)
    processors = os.cpu_count() or 1
    jobs = min(jobs or processors, len(todo)) or 1
    options = _Options(sanitize, timeout, platform, devices, max(1, processors // jobs))
    before, same = _earlier(out, options)
    made = [before.get(str(file), []) if resume and same else [] for file, _ in todo]  # by file
    left = [i for i, rows in enumerate(made) if not rows]

    def weight(i: int) -> tuple[float, int]:
        file = todo[i][0]
        return sum(r.seconds for r in before.get(str(file), ())), file.stat().st_size

    left.sort(key=weight, reverse=True)  # a long program that starts last delays the end
    progress = _FileProgress(len(todo), len(todo) - len(left))
    begin = time.time()
    with ThreadPoolExecutor(jobs) as pool:
        at = {pool.submit(_file, *todo[i], options, progress): i for i in left}
        try:
            for ended in as_completed(at):
                made[at[ended]] = ended.result()
                _write(out, trees, list(chain(*made)), options, time.time() - begin)
        except KeyboardInterrupt:
            options.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    rows = list(chain(*made))
    _write(out, trees, rows, options, time.time() - begin)
    count = Counter(r.outcome for r in rows)
    said = ", ".join(f"{count[o]} {o}" for o in OUTCOMES if count[o])
    print(f"{len(rows)} programs of {len(todo)} files: {said or 'none'}; see {out / 'report.html'}")
    return 0 if all(r.outcome in ("passed", "skipped") for r in rows) else 1


@dataclass
class _Options:
    sanitize: str
    timeout: float
    platform: str
    devices: str
    threads: int = 1  # threads of each program
    stop: threading.Event = field(default_factory=threading.Event)


def _earlier(out: Path, options: _Options) -> tuple[dict[str, list[ReportRow]], bool]:
    """Return the rows of the last report in a folder by file, and True if its settings are the same."""
    rows: dict[str, list[ReportRow]] = {}
    if not (out / "report.json").is_file():
        return {}, False
    try:
        data = json.loads((out / "report.json").read_text(encoding="utf-8"))
        for p in data["programs"]:
            rows.setdefault(p["file"], []).append(ReportRow(**p))
    except (OSError, ValueError, TypeError, KeyError):  # damaged, or of another version
        return {}, False
    settings = (data.get("sanitize"), data.get("platform"), data.get("devices"), data.get("timeout"))
    return rows, settings == (options.sanitize, options.platform, options.devices, options.timeout)


class _FileProgress:
    """A line per file on stderr."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total = total
        self.done = done
        self.lock = threading.Lock()

    def step(self, file: Path, rows: Sequence[ReportRow]) -> None:
        with self.lock:
            self.done += 1
            count = Counter(r.outcome for r in rows)
            said = ", ".join(f"{n} {o}" for o, n in count.items()) or "nothing to run"
            said += f" ({sum(r.seconds for r in rows):.1f} s)"
            where = f"[{self.done}/{self.total}] {visible(str(file))}"
            print(f"{where}: {said}", file=sys.stderr, flush=True)


def _file(file: Path, how: str, options: _Options, progress: _FileProgress) -> list[ReportRow]:
    with tempfile.TemporaryDirectory(prefix="pto-report-") as place:
        rows = (_tests if how == "tests" else _script)(file, options, place)
    if not options.stop.is_set():
        progress.step(file, rows)
    return rows


# ---- processes ----


@dataclass
class _Ended:
    """End of a process: its status, or None after a timeout."""

    status: int | None
    text: str
    events: list[dict[str, Any]]
    seconds: float
    cpu: float = 0.0


def _process(arguments: Sequence[str], options: _Options, place: str, root: str = "") -> _Ended:
    """Run `pto python`. The time limit starts again at each event of pytest. `root` is a folder for
    imports."""
    log, lines = Path(place, "log"), Path(place, "events")
    lines.write_text("")
    command = [sys.executable, "-m", "pto.cli.main", "python", "--sanitize", options.sanitize, *arguments]
    threads = dict.fromkeys(_THREADS, str(options.threads))
    own = {"PTO_REPORT_FILE": str(lines), "PTO_BUILD_DIR": place, "PTO_REPRODUCER_DIR": place}
    env = {**threads, **os.environ, **own}
    if root:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH", ""))))
    begin = last = time.time()
    size = 0
    with open(log, "wb") as f:
        process = subprocess.Popen(command, stdout=f, stderr=f, stdin=subprocess.DEVNULL, env=env, cwd=place)
        cpu = None
        while cpu is None and time.time() - last < options.timeout and not options.stop.is_set():
            cpu = _waited(process, 0.2)
            now = lines.stat().st_size
            if "pytest" in arguments and now != size:  # a test started or ended
                size, last = now, time.time()
        status = process.returncode
        if cpu is None:
            process.terminate()  # this also ends its child processes
            cpu = _waited(process, _ENDING)
            if cpu is None:
                process.kill()
                cpu = _waited(process, 60.0)
    text = log.read_text(encoding="utf-8", errors="replace")
    events = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    return _Ended(status, text, events, time.time() - begin, cpu or 0.0)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> float | None:
    """Wait for the end of a process; return its processor seconds, with those of its children, or None."""
    end = time.time() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.time() >= end:
            return None
        time.sleep(0.02)


def _script(file: Path, options: _Options, place: str) -> list[ReportRow]:
    root, module = _module(file.resolve())
    arguments = ["-m", module] if module else [str(file.resolve())]
    arguments += _required(file, options)
    ended = _process(arguments, options, place, root or _checkout(file.resolve()))
    row = ReportRow(str(file), seconds=round(ended.seconds, 2), cpu=round(ended.cpu, 2))
    row.see(ended.events)
    row.phases["program"] = round(ended.cpu - sum(t for p, t in row.phases.items() if p != "program"), 2)
    row.outcome, row.reason = _verdict(ended, options)
    return [row]


def _required(file: Path, options: _Options) -> list[str]:
    """Return the options that a script requires: platform and devices."""
    text = file.read_text(encoding="utf-8", errors="replace")
    found: list[str] = []
    device = _DEVICE.search(text)
    if _SCENE.search(text) or _PLATFORM.search(text):
        found += ["--platform", options.platform]
    if _SCENE.search(text):
        found += ["--device", options.devices]
    elif device:
        only_one = "type=int" in device[1]
        found += ["--device", re.split("[-,]", options.devices)[0] if only_one else options.devices]
    return found


def _checkout(file: Path) -> str:
    """Return the root of the checkout of a file, whose packages it may import; "" if there is none."""
    for folder in file.parents:
        if any((folder / name).exists() for name in _ROOTS):
            return str(folder)
    return ""


def _module(file: Path) -> tuple[str, str]:
    """Return the folder of a package, and the module name in it, for a script with relative imports; else
    empty texts."""
    if not _RELATIVE.search(file.read_text(encoding="utf-8", errors="replace")):
        return "", ""
    root = file.parent
    while (root / "__init__.py").exists():
        root = root.parent
    names = file.relative_to(root).with_suffix("").parts
    return (str(root), ".".join(names)) if len(names) > 1 else ("", "")


def _verdict(ended: _Ended, options: _Options) -> tuple[str, str]:
    if ended.status is None:
        return "timeout", f"no end within {options.timeout:.0f} s"
    if ended.status == 0:
        return "passed", ""
    if ended.status < 0:
        return "crashed", f"signal {-ended.status}"
    reason = why(ended.text)
    if _NO_CASE in reason:
        return "skipped", reason
    return ("refused" if _refused(reason) else "failed"), reason


def _refused(reason: str) -> bool:
    """Return True if a reason names a missing feature of this package."""
    return _REFUSED.search(reason) is not None


def why(text: str) -> str:
    """Return the line with the reason of a failure: the first diagnostic, or the last line of a traceback."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in text.splitlines()]
    lines = [re.sub(r"^E\s+", "", line) for line in lines if line]
    for line in lines:
        if re.search(r"error\[[A-Z]+-[A-Z]?\d+\]", line):
            return re.sub(r"^.*?(error\[)", r"\1", line)[:300]
    for line in reversed(lines):
        if re.match(r"[\w.]*(Error|Exception|Failed|Exit)\b", line) or line.startswith("[RUN] FAIL"):
            return line[:300]
    return (lines[-1] if lines else "no output")[:300]


def _tests(file: Path, options: _Options, place: str) -> list[ReportRow]:
    """Return a row per test. If a test kills the process, restart after that test."""
    rows: list[ReportRow] = []
    base = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
            f"--platform={options.platform}", f"--device={options.devices}"]  # fmt: skip
    for _ in range(_AGAIN):
        done = [a for r in rows for a in ("--deselect", r.test)]
        ended = _process([*base, *done, str(file.resolve())], options, place, _checkout(file.resolve()))
        made = list(_outcomes(file, ended, options))
        rows += made
        if not made or made[-1].outcome not in ("timeout", "crashed"):
            break
    return rows


def _outcomes(file: Path, ended: _Ended, options: _Options) -> Iterator[ReportRow]:
    groups: list[list[dict[str, Any]]] = []
    for e in ended.events:
        if e["what"] == "test":
            groups.append([e])
        elif groups:
            groups[-1].append(e)
    for events in groups:
        row = ReportRow(str(file), events[0]["program"])
        row.see(events)
        row.cpu = round(sum(row.phases.values()), 2)
        told = [e for e in events if e["what"] == "outcome"]
        if told:
            worst = next((e for e in told if e["outcome"] != "passed"), told[0])
            row.seconds = round(worst["seconds"], 2)
            row.outcome = worst["outcome"]
            row.reason = "" if row.outcome == "passed" else why(worst["text"])
            if row.outcome == "failed" and _refused(row.reason):
                row.outcome = "refused"
        else:
            row.outcome, row.reason = "crashed", f"the process ended with status {ended.status}"
            if ended.status is None or ended.status < 0:
                row.outcome, row.reason = _verdict(ended, options)
            row.seconds = round(ended.seconds, 2)
        yield row
    if not groups and ended.status not in (0, 5):  # 5: pytest collected no tests
        outcome, reason = _verdict(ended, options)
        yield ReportRow(str(file), outcome=outcome, reason=reason, seconds=round(ended.seconds, 2))


# ---- output ----


def _write(
    out: Path, trees: Sequence[str], rows: Sequence[ReportRow], options: _Options, seconds: float
) -> None:
    count = Counter(r.outcome for r in rows)
    data = {
        "trees": list(trees),
        "sanitize": options.sanitize,
        "platform": options.platform,
        "devices": options.devices,
        "timeout": options.timeout,
        "threads": options.threads,
        "seconds": round(seconds, 1),
        "count": {o: count[o] for o in OUTCOMES},
        "programs": [asdict(r) for r in rows],
    }
    write_whole(out / "report.json", json.dumps(data, indent=1) + "\n")
    write_whole(out / "report.html", page(data))
