"""Common parts of several test folders: equal runs everywhere, `--rebase`, annotated programs.

Property tests draw the same examples in every run (profile `fixed`). `make fuzz` draws others (profile
`fuzz`; see `tests/fuzz/rounds.py`). Neither profile minds how long an example takes: machines are shared and
noisy.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from tests import bytecode_cache, made, sampling, seeds
from tests.tools import tools
from tests.users import shared_folder

from pto import cache, knobs
from pto.asm import parse_source
from pto.diag import Diagnostic, Source
from pto.verifier import verify

#: `op //~ CODE CODE`: the diagnostics expected on this line.
_EXPECTED = re.compile(r"//~ *((?:[A-Z]+-[A-Z]?\d{4} *)+)$")

Diagnose = Callable[..., list[Diagnostic]]

settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz", database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False
)
settings.load_profile("fixed")
if hasattr(providers, "_get_local_constants"):
    # Else constants of the modules that happen to be loaded are drawn too: a test would draw one thing alone and
    # another among others.
    providers._get_local_constants = lambda: providers._local_constants

# Whatever the user has set, tests find the defaults, and a compiler cache of their own that all workers share (they
# inherit it), and later runs, too. A crash under test leaves its reproducer with the other temporary files, not in the
# checkout.
_KEPT = ("PTO_CXX", "NO_COLOR")
#: Of kernels and precompiled headers, between runs: those of a few versions.
_KEPT_BYTES = 1 << 30
_COLOURS = ("FORCE_COLOR", "PYTHON_COLORS")


def pytest_configure(config: pytest.Config) -> None:
    fuzzing = config.getoption("--hypothesis-profile") == "fuzz"
    if fuzzing:
        seeds.fuzz_round = int(config.getoption("--hypothesis-seed") or 0)
    # Ctrl-C is ignored by background jobs of scripts, and by all processes started from there.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if worker := getattr(config, "workerinput", None):
        named = (Path(argument.split("::")[0]) for argument in config.args)
        files = {p for path in named for p in (path.rglob("*.py") if path.is_dir() else [path])}
        bytecode_cache.compile_share(files, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
        return
    for name in (*(knobs.KNOBS.keys() - set(_KEPT)), *_COLOURS):
        os.environ.pop(name, None)
    folder = tempfile.mkdtemp(prefix="pto-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    kernels = f"{folder}/cache" if fuzzing else str(made.kernels())  # no other process uses those of a round
    # Products are small, and threads of BLAS spin while they wait for each other: each worker has one.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.update(PTO_CACHE_DIR=kernels, PTO_REPRODUCER_DIR=folder, XDG_RUNTIME_DIR=folder)
    # `make matrix` compiles as the engines do, and calls that the package's pack lacks instead of interpreting them.
    os.environ.update({"PTO_NATIVE_COMPILE": "always"} if sampling.EVERY else {"PTO_CXXFLAGS": "-O0"})
    cache.prune(_KEPT_BYTES, grace=3600)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if sampling.EVERY or any("::" in argument for argument in config.args):  # a test that is named is run
        return
    left = [i for i in items if i.get_closest_marker("matrix")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [i for i in items if not i.get_closest_marker("matrix")]


def pytest_collection_finish() -> None:
    # What has been collected stays until the end. Else every collection of garbage looks at it again.
    gc.collect()
    gc.freeze()


@pytest.fixture
def kept_place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return a folder for this test, the same in every run: a built orchestration is identified by its
    location, too."""
    with made.held("places", made.digest(str(request.path), request.node.name)) as place:
        yield place


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rebase", action="store_true", help="rewrite the expectations of the golden tests")


def _diagnose(text: str, target: Any = None, **options: Any) -> list[Diagnostic]:
    options.setdefault("flags", "error")
    module, problems = parse_source(Source("t.pto", text))
    return problems if module is None else problems + verify(module, target, **options)


@pytest.fixture(scope="session")
def tool_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the first folder of PATH for pages, scripts and tests that call our tools."""
    with tools(tmp_path_factory.mktemp("tools")) as folder:
        yield folder


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder as that of temporary files: everybody may enter it and make files there."""
    with tempfile.TemporaryDirectory(prefix="pto-public-", dir=shared_folder()) as folder:
        os.chmod(folder, 0o1777)
        yield Path(folder)


@pytest.fixture
def diagnose() -> Diagnose:
    """Everything the parser and then the verifier say about a text."""
    return _diagnose


@pytest.fixture
def annotated() -> Diagnose:
    """Check that a text gives exactly the diagnostics written in its `//~ CODE` comments, on those lines."""

    def run(text: str, target: Any = None, **options: Any) -> list[Diagnostic]:
        expected: Counter[tuple[int, str]] = Counter()
        for number, line in enumerate(text.splitlines(), 1):
            m = _EXPECTED.search(line)
            assert m or "//~" not in line, f"line {number}: malformed annotation"
            expected.update((number, code) for code in (m[1].split() if m else ()))
        found = _diagnose(text, target, **options)
        places = Counter((d.span.place[0] if d.span else 0, d.code) for d in found)
        shown = "\n".join(f"  line {d.span.place[0] if d.span else 0}: {d.code} {d.message}" for d in found)
        assert places == expected, f"expected {sorted(expected.elements())}, got\n{shown or '  nothing'}"
        return found

    return run


@pytest.fixture
def kernel() -> Callable[[str], str]:
    """Wrap statements into a module with one function that has the usual arguments."""

    def wrap(body: str, arguments: str = "%gm: !pto.ptr<f32>, %n: index, %cond: i1", more: str = "") -> str:
        return f"module {{\nfunc.func @k({arguments}) {more}{{\n{body}\nreturn\n}}\n}}\n"

    return wrap
