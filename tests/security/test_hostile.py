"""Hostile inputs through every tool and engine: each is run or refused with a diagnostic, and nothing else happens."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

import pto
from pto import cache
from pto.checking import check_source
from pto.cli import main as pto_main
from pto.cli import ptoas, ptobc
from pto.diag import DiagnosticError, Source, Unread
from pto.engine.cpp import compiler
from pto.engine.debug.stop import text_of
from pto.lsp import completion, fixes, highlight, hints, pages
from pto.lsp.document import Document

from ..each import each
from ..made import INCLUDE, ROOT
from ..sampling import EVERY, some
from . import hostile
from .watch import CANARY, no_side_effects

TOOLS: dict[str, Callable[[Sequence[str]], int]] = {
    "pto": pto_main.main,
    "ptoas": ptoas.main,
    "ptobc": ptobc.main,
}
FORMS = ("cpp", "pto", "ssa", "asm", "generic", "elf", "llvm")
RUNS = (("reference", "--sanitize", "all"), ("native",), *([("cpp",)] if EVERY else []))


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """`ptoas` is the only user of its process, and reduces garbage collection."""
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


def called(tool: str, *arguments: str) -> int:
    """Call a tool in this process; its status is 0 or 1, and a refusal has a reason."""
    return _called(tool, arguments)[0]


def said(tool: str, *arguments: str) -> str:
    """Return the output of a tool."""
    return _called(tool, arguments)[1]


def _called(tool: str, arguments: Sequence[str]) -> tuple[int, str]:
    out = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for name in ("stdout", "stderr")}
    with contextlib.redirect_stdout(out["stdout"]), contextlib.redirect_stderr(out["stderr"]):
        try:
            status = TOOLS[tool](arguments)
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 1
    printed = {name: _text(stream) for name, stream in out.items()}
    where = f"{tool} {' '.join(arguments)}: status {status}\n{printed['stderr'][:2000]}"
    assert status in (0, 1), where
    assert not re.search(r"Traceback|internal error", printed["stdout"] + printed["stderr"]), where
    assert "\x1b" not in printed["stdout"] + printed["stderr"], f"{where}: orders to the terminal"
    assert status == 0 or re.search(r"error\[[A-Z]+-E?\d+\]: |^\[$", printed["stderr"], re.MULTILINE), (
        f"{where}: no diagnostic"
    )
    return status, printed["stdout"]


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8", "replace")


def every_tool(path: str, forms: Sequence[str] = FORMS) -> None:
    """Run every tool on a program in a file."""
    called("pto", "check", path)
    called("pto", "check", path, "--diagnostics=json")
    shutil.copy(path, "formatted.pto")
    called("pto", "fmt", "formatted.pto")
    for form in forms:
        called("ptoas", f"--emit={form}", "--line-directives", "-o", f"out.{form}", path)
    called("ptoas", "--no-verify", "-o", "unverified.cpp", path)
    if called("ptobc", "encode", "--debuginfo", "-o", "k.ptobc", path) == 0:
        bytecode("k.ptobc")
    runs(path)


def bytecode(path: str) -> None:
    called("ptobc", "dump", path)
    called("ptobc", "decode", "-o", "decoded.pto", path)
    called("pto", "check", path)


def runs(path: str) -> None:
    for engine, *more in RUNS:
        called("pto", "run", "--engine", engine, *more, "--max-steps", "10000", path, "--", "i64:4")


@contextlib.contextmanager
def alone(place: Path) -> Iterator[Path]:
    """An empty folder under watch."""
    place.mkdir()
    tools = [*compiler.find().command[:1], "cc1plus", "as", "ld"]
    with no_side_effects(place, also=[cache.folder()], commands=tools):
        yield place


def folders(root: Path) -> Iterator[Path]:
    return (root / f"{n}" for n in range(1_000_000))


def test_programs(tmp_path: Path) -> None:
    place = folders(tmp_path)

    programs = hostile.PROGRAMS | hostile.OTHER_FORMS
    forms = some(product(programs, FORMS), 4, by=lambda case: case[0])

    def check(name: str, text: str) -> None:
        with alone(next(place)) as here:
            (here / "k.pto").write_text(text, encoding="utf-8")
            every_tool("k.pto", [form for program, form in forms if program == name])

    each(check, programs.items())


def test_paths(tmp_path: Path) -> None:
    place = folders(tmp_path)

    def check(name: str) -> None:
        with alone(next(place)) as here:
            (here / name).write_text(hostile.program(hostile.put("%c1")), encoding="utf-8")
            every_tool(f"./{name}")

    each(check, hostile.PATHS)


# -- bytecode -----------------------------------------------------------------------------------------------


def encoded(text: str, line: int = 0) -> bytes:
    module = pto.parse(text)
    if line:
        for op in module.functions[0].walk():
            op.loc = Unread("k.py").at(line, line)
    return pto.to_bytecode(module, debuginfo=True)


def swapped(old: str, new: str) -> bytes:
    """A file in which one text stands for another of the same length."""
    data = encoded(_HARMLESS)
    assert old.encode() in data and len(new) <= len(old)
    return data.replace(old.encode(), new.ljust(len(old)).encode())


_LONG, _NAME = "x" * 120, "k" * 120
_HARMLESS = hostile.program(
    f"%x = affine.apply affine_map<(d0) -> (d0 {'+ 1 ' * 60})>(%c1)\n    {hostile.put('%x')}\n"
    f'    pto.print ins("{_LONG}", %i : i64)\n    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32>',
    attributes=f'attributes {{a.b = "{_LONG}"}}',
).replace("@k", f"@{_NAME}")  # fmt: skip
_MAP = f"affine_map<(d0) -> (d0 {'+ 1 ' * 60}".rstrip() + ")>"
BYTECODE: dict[str, Callable[[], bytes]] = {
    "a default in a map": lambda: swapped(_MAP, f"affine_map<(d0={hostile.PYTHON}) -> (d0)>"),
    "a call in a map": lambda: swapped(_MAP, f"affine_map<(d0) -> ({hostile.PYTHON})>"),
    "another map": lambda: swapped(_MAP, "affine_map<(d0, d1) -> (d0)>"),
    "no map": lambda: swapped(_MAP, "1 : index"),
    "more attributes": lambda: swapped(_MAP, 'affine_map<(d0) -> (d0)>, map = "pwned"'),
    "a map that does not end": lambda: swapped(_MAP, "affine_map<(d0) -> (d0"),
    "a type": lambda: swapped("!pto.tile_buf<vec, 16x16xf32>", "!pto.tile_buf<vec, 9x9xf32);>"),
    "another type": lambda: swapped("!pto.tile_buf<vec, 16x16xf32>", "!pto.ptr<f32>"),
    "a function": lambda: swapped(_NAME, hostile.CPP),
    "a large line": lambda: encoded(_HARMLESS, 1 << 62),
    "nothing": lambda: b"",
    **{f"cut behind byte {n}": (lambda n=n: encoded(_HARMLESS)[:n]) for n in range(0, 600, 37)},
    **{f"a section of many bytes at {n}": (lambda n=n: _patched(n, b"\xff\xff\xff\x7f")) for n in range(8, 64, 4)},
    **{f"many of something at {n}": (lambda n=n: _patched(n, b"\xff" * 9 + b"\x01")) for n in range(16, 600, 53)},
}  # fmt: skip


def _patched(at: int, new: bytes) -> bytes:
    data = encoded(_HARMLESS)
    return data[:at] + new + data[at + len(new) :]


def test_bytecode(tmp_path: Path) -> None:
    place = folders(tmp_path)

    def check(name: str) -> None:
        with alone(next(place)) as here:
            (here / "k.ptobc").write_bytes(BYTECODE[name]())
            bytecode("k.ptobc")
            for form in ("cpp", "generic", "elf", "llvm"):
                called("ptoas", f"--emit={form}", "--line-directives", "-o", f"out.{form}", "k.ptobc")
            runs("k.ptobc")

    each(check, BYTECODE)


# -- images, machine code, pages ----------------------------------------------------------------------------


def test_calls_of_images(tmp_path: Path) -> None:
    """The name of a call is the C++ that it is compiled from: only names of the program are accepted."""
    with alone(tmp_path / "made") as here:
        (here / "k.pto").write_text(hostile.program(hostile.put("%c1")))
        assert called("ptoas", "-o", "k.elf", "k.pto") == 0
        listing = said("pto", "objdump", "k.elf")
    (call,) = re.findall(r'"(.*& a0; .*)"\n', listing)
    place = folders(tmp_path)

    def check(name: str) -> None:
        with alone(next(place)) as here:
            (here / "k.lst").write_text(listing.replace(call, name.replace("\\", "\\\\").replace('"', '\\"')))
            if called("ptoas", "-o", "evil.elf", "k.lst") == 0:
                assert called("pto", "run", "evil.elf", "--", "i64:4") == 1
                assert called("pto", "build", "evil.elf", "-o", "evil.so") == 1

    each(check, hostile.CALLS)


def test_objects(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    place = folders(tmp_path)

    def check(name: str) -> None:
        with alone(next(place)) as here:
            (here / "k.pto").write_text(hostile.PROGRAMS[name], encoding="utf-8")
            for form in ("obj", "so", "native"):
                assert called("ptoas", f"--emit={form}", "-o", f"k.{form}", "k.pto") == 0

    each(check, ("loc: C++", "loc: a zero", "print: zeros and tokens", "symbol: long", "symbol: of a module"))


def test_pages(tmp_path: Path) -> None:
    with alone(tmp_path / "k") as here:
        (here / "k.pto").write_text(hostile.PROGRAMS["symbol: a page"])
        assert called("pto", "run", "--view", "k.html", "--memory-map", "m.html", "k.pto", "--", "i64:4") == 0
        for page in ("k.html", "m.html"):
            assert "<script>alert(1)" not in (here / page).read_text()


def test_editors(tmp_path: Path) -> None:
    """The language server answers everything about a text, and names no file of it; text of a program stays in
    blocks of code."""
    place = folders(tmp_path)

    def check(text: str) -> None:
        with alone(next(place)):
            d = Document("k.pto", text, 1, "utf-16", check_source)
            assert highlight.symbols(d) is not None and hints.hints(d, 0, len(text)) is not None
            words = list(highlight.words(d))
            for word in words[:: 1 + len(words) // 20]:
                about = pages.hover(d, word.start)
                _ = completion.complete(d, word.end), pages.signature(d, word.end)
                assert about is None or "<script>" not in re.sub(
                    r"```.*?\n```", "", about[0], flags=re.DOTALL
                )
            for problem in d.checked.diagnostics:
                fixes.fixes(d, problem)

    each(check, list((hostile.PROGRAMS | hostile.OTHER_FORMS).values()))


def test_files_that_locations_name(tmp_path: Path) -> None:
    """The debugger shows them: a file that never ends, or none, is not read."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    each(
        lambda name: _unread(text_of(Unread(name))),
        ("/dev/zero", str(pipe), str(tmp_path), "k\0.py", "k" * 5000),
    )
    assert text_of(Unread(__file__)).text


def _unread(source: Source) -> None:
    assert source.text == ""


def test_modules_in_the_current_folder(tmp_path: Path, tool_folder: Path) -> None:
    """Python would look for modules there first: another user may have put some of these names into /tmp."""
    for name in sys.stdlib_module_names:
        (tmp_path / f"{name}.py").write_text(f"open({CANARY!r}, 'w').close()")
    tile = str(ROOT / "examples" / "tune" / "double.pto")
    command = ["tune", tile, "-j2", "--param", "ROWS=8,16", "--param", "COLS=32", "--results", "results"]
    command += ["--", *["f32:1024x128"] * 2]
    done = subprocess.run(
        [tool_folder / "pto", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "2 of 2 timed" in done.stdout + done.stderr, done.stderr
    assert not (tmp_path / CANARY).exists()


# -- C++ ----------------------------------------------------------------------------------------------------

_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def test_emitted_cpp_holds_no_text_of_a_program(tmp_path: Path) -> None:
    """It is one unit of many namespaces: a name or string that ends early would break the next ones."""
    parts, count = ['#include "pto/pto-inst.hpp"\n#include <cmath>\n'], 0
    for name, text in hostile.PROGRAMS.items():
        if name.startswith("type: "):  # some of them no header takes
            continue
        try:
            made = pto.emit_cpp(pto.parse(text), line_directives=True)
        except DiagnosticError:
            continue
        plain = _LITERAL.sub('""', made)
        assert "system(" not in plain and "pwned;" not in plain and "??" not in made.replace("?\\?", "")
        parts.append(f"namespace program{count} {{\n{made}\n}}\n")
        count += 1
    assert count > 35
    source = tmp_path / "all.cpp"
    source.write_text("".join(parts))
    command = [compiler.find().command[0], "-std=c++20", "-fsyntax-only", "-trigraphs", "-w", f"-I{INCLUDE}"]
    done = subprocess.run([*command, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_engine_cpp(tmp_path: Path) -> None:
    place = folders(tmp_path)
    wanted = {
        "print: ends the string by a trigraph": 0,
        "symbol: C++": 0,
        "call: the C library": 1,
        "call: a fork": 1,
    }

    def check(name: str, status: int) -> None:
        with alone(next(place)) as here:
            (here / "k.pto").write_text(hostile.PROGRAMS[name])
            assert called("pto", "run", "--engine", "cpp", "k.pto", "--", "i64:4") == status

    each(check, wanted.items())
