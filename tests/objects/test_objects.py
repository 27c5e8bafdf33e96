"""Objects: machine code with the bits of engine native, which the tools of the system read, C calls and `pto run` runs
without the source."""

from __future__ import annotations

import ctypes
import os
import platform
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.test_execute import INPUTS
from tests.codegen.test_execute import Program as RandomProgram
from tests.engine.native import test_ends as ends
from tests.engine.native.test_native import CASES, COLUMNS, ready
from tests.sampling import EVERY, some
from tests.seeds import seeds

import pto
from pto.cli import build, ptoas
from pto.driver import Options, lowered
from pto.engine.compiled.library import LaunchRecord, Library
from pto.engine.native import machine, objects
from pto.engine.native.images import file_of
from pto.image import elf
from pto.image.container import read
from pto.image.every_call import calls
from pto.image.format import CALL, END, JUMP, Image, ImageCode
from pto.isa import rows
from pto.isa.profiles import profile
from pto.objects import ir, machine_code
from pto.objects.scalars import scalar
from pto.objects.shared import shared

pytest.importorskip("llvmlite")
EXAMPLES = Path(__file__).parents[2] / "examples"
VEC_ADD = EXAMPLES / "01_vec_add.pto"


@cache
def made(name: str, form: str = "so", triple: str = "") -> bytes:
    """A case of engine native as an object."""
    return _object(CASES[name][0], None, form, triple)


def _object(text: Any, target: str | None, form: str = "so", triple: str = "") -> bytes:
    module = pto.parse(text)
    done = lowered(module, target, Options(passes="always"))
    return objects.emitted(file_of(module, done, module.source.name), form, "k.so", triple)


@pytest.mark.parametrize("name", CASES)
def test_as_on_engine_native(name: str, tmp_path: Path) -> None:
    ready()
    program, entry, given, blocks = CASES[name]
    (tmp_path / "k.so").write_bytes(made(name))
    blocks = 24 if name == "vector_add" else blocks
    sets = [[a.copy() if isinstance(a, np.ndarray) else a for a in given] for _ in range(2)]
    pto.kernel(tmp_path / "k.so", entry)(*sets[0], blocks=blocks, threads=2)
    pto.kernel(pto.parse(program), entry, engine="native")(*sets[1], blocks=blocks)
    for mine, theirs in zip(*sets, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()


def test_called_from_many_threads(tmp_path: Path) -> None:
    ready()
    (tmp_path / "k.so").write_bytes(made("micro softmax"))
    kernel = pto.kernel(tmp_path / "k.so")
    x, _, *sizes = CASES["micro softmax"][2]
    outs = [np.zeros_like(x) for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(kernel, x, out, *sizes) for out in outs]:
            done.result()
    assert outs[0].any() and {out.tobytes() for out in outs} == {outs[0].tobytes()}


def test_what_ends_a_launch_names_its_line(tmp_path: Path) -> None:
    ready()
    (tmp_path / "k.so").write_bytes(made("columns"))
    x, y = (a.copy() for a in CASES["columns"][2])
    (found,) = pto.kernel(tmp_path / "k.so").run(x, y[:4]).diagnostics
    assert found.code == "PTO-E2101" and found.message.startswith("tstore")
    assert found.span is not None and "pto.tstore" in COLUMNS.splitlines()[found.span.line - 1]


def test_a_division_traps_in_its_place(tmp_path: Path) -> None:
    """A trap of the processor, in code that a call of the object does."""
    ready()
    text = """func.func @k(%out: !pto.ptr<i32>, %x: i32, %n: i32) attributes {pto.entry} {
  %c0 = arith.constant 0 : index

  %y = arith.remsi %x, %n : i32
  pto.store_scalar %y, %out[%c0] : !pto.ptr<i32>, i32
  return
}
"""
    (tmp_path / "k.so").write_bytes(_object(text, "cpu"))
    kernel = pto.kernel(tmp_path / "k.so", target="cpu")
    out = np.zeros(1, np.int32)
    kernel(out, 17, 10)
    assert out[0] == 7
    (found,) = kernel.run(out, 17, 0).diagnostics
    assert found.code == "PTO-E2102" and found.span is not None and found.span.line == 4


def test_every_end_names_its_line(tmp_path: Path) -> None:
    """Bad addresses, traps, failed checks, loops that do not end, deep nests and many values; the process goes on."""
    for n, name in enumerate(some(ends.ENDS, 4)):
        code, line, text = ends.made(name)
        path = tmp_path / f"k{n}.so"
        path.write_bytes(_object(text, None))
        out = np.zeros(4, np.int64)
        for options in ({}, {"blocks": 3, "threads": 2}):
            (found,) = pto.kernel(path).run(out, 100, max_steps=50_000, **options).diagnostics
            assert found.code == code and found.span is not None, (name, found)
            assert line in text.splitlines()[found.span.line - 1], (name, found)
            assert found.message.startswith(line.removeprefix("pto.")), (name, found)


def test_a_limit_of_time_ends_an_endless_loop(tmp_path: Path) -> None:
    _, line, text = ends.made("an endless loop")
    (tmp_path / "k.so").write_bytes(_object(text, None))
    (found,) = pto.kernel(tmp_path / "k.so").run(np.zeros(4, np.int64), 1, timeout=0.05).diagnostics
    assert found.code == "PTO-E2106" and found.message == "scf.while: still running after 0.05 s"
    assert found.span is not None and line in text.splitlines()[found.span.line - 1]


def test_an_interrupt_ends_a_launch(tmp_path: Path) -> None:
    text = ends.endless()
    (tmp_path / "k.so").write_bytes(_object(text, None))
    ends.interrupt(pto.kernel(tmp_path / "k.so"), text)


def test_a_limit_from_c(tmp_path: Path) -> None:
    """As declared in pto/object.h: status 1, a message, and in `mark` the word that jumps back."""
    _, _, text = ends.made("an endless loop")
    (tmp_path / "k.so").write_bytes(_object(text, None))
    kernel, vm = Library(str(tmp_path / "k.so")).raw("k"), machine.library()
    opened, close = vm.raw("pto_machine_open"), vm.raw("pto_machine_close")
    opened.restype, error = ctypes.c_void_p, ctypes.create_string_buffer(200)
    made = ctypes.c_void_p(opened(None, 0, error, ctypes.c_size_t(len(error))))
    words = (ctypes.c_uint64 * 2)(0, 1)
    launch = LaunchRecord(
        size=ctypes.sizeof(LaunchRecord), argc=2, args=ctypes.addressof(words), blocks=1, threads=1,
        error=ctypes.addressof(error), error_size=len(error), limit=20_000_000, mark=-1,
    )  # fmt: skip
    assert kernel(ctypes.byref(launch), made) == launch.status == 1
    close(made)
    assert b"[PTO-E2106] still running after 0.02 s" in error.value
    image = read((tmp_path / "k.so").read_bytes(), "k.so").images[0]
    ((at, to),) = [
        (at, words[0]) for at, op, words in ir.instructions(image.codes[0]) if op == JUMP and words[0] <= at
    ]
    assert launch.mark == at >= to


def test_packs_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain name is a file of the working directory, and is not searched for in LD_LIBRARY_PATH."""
    opened, error = machine.library().raw("pto_machine_open"), ctypes.create_string_buffer(200)
    opened.restype = ctypes.c_void_p
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls.so").write_bytes(_object(ends.endless(), None))
    for name, why in ((b"calls.so", b"no library of calls"), (b"libm.so.6", b"No such file or directory")):
        packs = (ctypes.c_char_p * 1)(name)
        assert opened(packs, 1, error, ctypes.c_size_t(len(error))) is None
        assert error.value.startswith(name + b": " + why)


@pytest.mark.seeded
def test_random_programs(tmp_path: Path) -> None:
    """Control flow of every kind around scalars of every type, all programs in one object."""
    programs = [RandomProgram(seed, f"k{i}") for i, seed in enumerate(seeds(range(8 if EVERY else 3)))]
    text = "".join(p.text for p in programs).replace("%y: f32) {", "%y: f32) attributes {pto.entry} {")
    path = tmp_path / "k.so"
    path.write_bytes(_object(text, "a2a3"))
    images = read(path.read_bytes(), "k.so").images
    machine.functions(list(dict.fromkeys(call for image in images for call in image.calls)))
    for n, program in enumerate(programs):
        reference, kernel = pto.kernel(pto.parse(program.text), engine="reference"), pto.kernel(path, f"k{n}")
        for given in INPUTS:
            want, got = np.zeros(16, np.int64), np.zeros(16, np.int64)
            reference(want, *given)
            kernel(got, *given)
            assert want.tolist() == got.tolist(), program.text


# -- arithmetic in place of calls -----------------------------------------------------------------------------

_SLOT = 8


def _scalar_image() -> Image:
    """Return an image with all calls that an object executes itself, each on places of its own."""
    known = calls([r for r in rows() if r.dialect == "arith"])
    found = {name: s for name in known if (s := scalar(name)) is not None}
    assert len(found) > 100
    names = tuple(found)
    words: list[int] = []
    at = 0
    for n, name in enumerate(names):
        count = len(found[name].types)
        words += (CALL + n | (1 + count) << 24, *(at + _SLOT * i for i in range(count)))
        at += _SLOT * count
    words.append(END | 1 << 24)
    return Image("k", "cpu", names, (ImageCode("mix", tuple(words), bytes(at), (), ()),))


def _frames(image: Image) -> Iterator[bytes]:
    """Frames full of numbers that matter, conditions 0 or 1 where they are read as such."""
    chance = random.Random(5)
    numbers = [0, 1, 2, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 63) - 1, (1 << 64) - 1]
    floats = [struct.unpack("<I", struct.pack("<f", v))[0] for v in (1.5, -1.5, -0.0, np.inf, np.nan)]
    wide = [struct.unpack("<Q", struct.pack("<d", v))[0] for v in (1.5, -1.5, -0.0, np.inf, np.nan)]
    for _ in range(60 if EVERY else 20):
        frame = bytearray()
        for name in image.calls:
            for type in re.findall(r"(\w+)& a\d+;", name):
                some = chance.choice((*numbers, *floats, *wide, chance.getrandbits(64)))
                frame += (some & 1 if type == "bool" else some).to_bytes(8, "little")
        yield bytes(frame)


def test_arithmetic_is_that_of_the_calls_it_replaces(tmp_path: Path) -> None:
    image = _scalar_image()
    source = machine_code.text([image], profile("cpu"), {})
    assert "call void" not in source
    path = tmp_path / "k.so"
    path.write_bytes(shared(machine_code.object_file(source), "k.so"))
    (local,) = [s for s in elf.Elf(path.read_bytes()).symbols(elf.SYMTAB) if s.name == "k.mix"]
    (entry,) = [s for s in elf.Elf(path.read_bytes()).symbols(elf.DYNSYM) if s.name == "k"]
    library = ctypes.CDLL(str(path))
    address = (ctypes.cast(library.k, ctypes.c_void_p).value or 0) - entry.value + local.value
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(address)
    functions = [
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(f) for f in machine.functions(image.calls)
    ]
    for frame in _frames(image):
        mine, theirs = (ctypes.create_string_buffer(frame, len(frame)) for _ in range(2))
        run(mine, None, None, None, None)
        for _, opcode, operands in ir.instructions(image.codes[0]):
            if opcode >= CALL:
                functions[opcode - CALL](theirs, (ctypes.c_uint32 * len(operands))(*operands))
        for _, opcode, operands in ir.instructions(image.codes[0]):
            part = slice(operands[0], operands[-1] + _SLOT) if operands else slice(0)
            assert mine.raw[part] == theirs.raw[part], (image.calls[opcode - CALL], frame[part])


# -- files ------------------------------------------------------------------------------------------------------

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"


@pytest.mark.parametrize("triple", [X86, ARM])
def test_tools_of_the_system_read_them(triple: str, tmp_path: Path) -> None:
    files = []
    for form in ("obj", "so"):
        files.append(tmp_path / f"k.{form}")
        files[-1].write_bytes(made("flash_attention", form, triple))
    here = triple.startswith(platform.machine())
    tools = [["readelf", "-aW"], ["nm"], ["objdump", "-d"] if here else ["llvm-objdump", "-d"]]
    for tool in tools:
        if shutil.which(tool[0]) is None:
            continue
        for path in files:
            done = subprocess.run([*tool, path], capture_output=True, text=True, check=False)
            assert done.returncode == 0 and done.stderr == "", (tool, done.stderr)
            assert "flash_attention.cube" in done.stdout and "flash_attention.vector" in done.stdout
            assert "arning" not in done.stdout and "<corrupt" not in done.stdout
        if "objdump" in tool[0]:  # lines of the program
            said = [subprocess.run([tool[0], "-dl", p], capture_output=True, text=True).stdout for p in files]
            assert all("flash_attention.pto:" in text for text in said)
    whole = elf.Elf(files[1].read_bytes())
    assert [s.name for s in whole.symbols(elf.DYNSYM)] == ["", "flash_attention"]
    assert {".pto", ".ptobc", ".text"} <= {s.name for s in whole.sections}
    assert not any(s.kind in (elf.RELA, elf.REL) for s in whole.sections)


def test_several_kernels_and_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An object has a symbol for every entry; what --emit and the suffix ask for is one thing."""
    source = tmp_path / "k.pto"
    one = "func.func @NAME(%out: !pto.ptr<i32>) attributes {pto.entry} {\n  %c0 = arith.constant 0 : index\n"
    one += "  %v = arith.constant VALUE : i32\n  pto.store_scalar %v, %out[%c0] : !pto.ptr<i32>, i32\n  return\n}\n"
    source.write_text("".join(one.replace("NAME", f"k{n}").replace("VALUE", str(n)) for n in (3, 4)))
    out = str(tmp_path / "k.so")
    assert ptoas.main([str(source), "--target=cpu", "-o", out]) == 0
    assert os.access(out, os.X_OK)
    for n in (3, 4):
        x = np.zeros(1, np.int32)
        pto.kernel(out, f"k{n}", target="cpu")(x)
        assert x[0] == n
    with pytest.raises(pto.DiagnosticError, match="cannot choose one of several functions"):
        pto.kernel(out)
    for options, first in ((["--emit=llvm"], "source_filename"), (["--emit=native"], '\t.file\t"k.pto"')):
        assert ptoas.main([str(source), *options]) == 0
        assert capsys.readouterr().out.replace(str(tmp_path) + "/", "").startswith(first)
    for suffix, begins in ((".ll", b"source_filename"), (".s", b"\t.file"), (".o", b"\x7fELF")):
        assert ptoas.main([str(source), "-o", str(tmp_path / f"x{suffix}")]) == 0
        assert (tmp_path / f"x{suffix}").read_bytes().startswith(begins)
    assert [i.name for i in read((tmp_path / "x.o").read_bytes(), "x.o").images] == ["k3", "k4"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_program_in_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("vec_add.o", "vec_add.so"):
        assert ptoas.main([str(VEC_ADD), "--target=cpu", "-o", name]) == 0
    assert build.main(["vec_add.o", "-o", "calls.so", "-q"]) == 0
    capsys.readouterr()
    assert build.main(["--flags"]) == 0
    flags = capsys.readouterr().out.split()
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(EXAMPLES / "16_call_from_c.c")]
    for n, more in enumerate((["vec_add.o"], ["-DLOAD", "-ldl"])):
        subprocess.run([*command, *more, *flags, "-o", f"main{n}"], check=True)
        said = subprocess.run([f"./main{n}", "./calls.so"], capture_output=True, text=True, check=True).stdout
        assert said.startswith("c[2] = 2.5, 0 of 8192 are wrong\nstatus 1: [PTO-E2101] TLOAD: touches bytes")
    refused = {"./vec_add.so": "vec_add.so: no library of calls", "./no.so": "No such file"}
    for pack, why in refused.items():
        done = subprocess.run(["./main0", pack], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and why in done.stderr
    vm = next(Path(flag) for flag in flags if flag.endswith(".so"))
    shutil.copy(vm, vm.name)  # a package of its own: without its pack, then with it
    here = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    subprocess.run([*command, "vec_add.o", flags[0], vm.name, "-o", "main2"], check=True)
    done = subprocess.run(["./main2"], capture_output=True, text=True, check=False, env=here)
    assert done.returncode == 1 and "[PTO-E2401] missing in all packs of the machine" in done.stderr
    shutil.copy("calls.so", vm.name.replace("libpto_vm_", "libpto_pack_"))
    done = subprocess.run(["./main2"], capture_output=True, text=True, check=True, env=here)
    assert "0 of 8192 are wrong" in done.stdout
