"""Files of images on engine native: the results and the messages of the program, without it; which calls are taken."""

from __future__ import annotations

import re
from functools import cache as once
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import pto
from pto import cache
from pto.bytecode import to_bytecode
from pto.cli import run
from pto.cli.main import main
from pto.cli.ptoas import main as ptoas
from pto.diag import Source
from pto.engine.entry import SPMD, Launchable
from pto.engine.native import files, images, machine
from pto.engine.native.files import ImageKernel
from pto.image import container, listing
from pto.image.check import check
from pto.image.container import ImageFile
from pto.image.format import END, Image, ImageCode, ImageFunction

from ...fuzz.batches import Child
from ...fuzz.readers import READERS
from ...image.programs import CONVOLUTION, TWO, convolution, example, walk
from ...seeds import seeds
from .test_native import CASES, ready, zeros


@once
def file_of(name: str) -> tuple[Launchable, ImageFile]:
    ready()
    program, entry, _, _ = CASES[name]
    kernel = Launchable(pto.parse(program), entry, None, True)
    return kernel, images.file_of(kernel.module, kernel.lowered("always"), "k.elf")


def given(name: str) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in CASES[name][2]]


def opened(path: Path, file: ImageFile) -> Path:
    path.write_bytes(container.to_bytes(file))
    return path


def test_convolution_tiles(tmp_path: Path) -> None:
    x, w = (np.arange(256) / 8).astype(np.float16), (np.arange(256) % 7 - 3).astype(np.float16)
    found = [zeros(16, 16), zeros(16, 16)]
    pto.kernel(pto.parse(CONVOLUTION), engine="native", check=False)(x, w, found[0])
    pto.kernel(opened(tmp_path / "k.elf", convolution()), "k")(x, w, found[1])
    assert found[0].any() and found[0].tobytes() == found[1].tobytes()


def test_a_convolution_tile_outside_the_memory() -> None:
    """Any address in a file that leads out of the buffer is reported at its line."""
    text = listing.text_of(convolution())
    (address,) = re.findall(r"vm\.conv_at @\d+, @(\d+)", text)
    for far in (0x7FF00, 1 << 40, 1 << 63):
        changed = re.sub(rf"\n    @{address} = 0x\w+", "", text)
        changed = re.sub(r"(\n  frame \d+)", rf"\1\n    @{address} = {far:#x}", changed, count=1)
        file = listing.assembled(Source("k.txt", changed))
        (found,) = (
            ImageKernel(file, file.images[0]).run(*[np.zeros(256, np.float16)] * 2, zeros(16, 16)).diagnostics
        )
        assert found.span is not None and "alloc_tile" in found.span.source.line(found.span.line), found


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_engine_itself(name: str, tmp_path: Path) -> None:
    kernel, file = file_of(name)
    sets = [given(name) for _ in range(2)]
    path = opened(tmp_path / "k.elf", file)
    pto.kernel(path, kernel.name)(*sets[0], blocks=CASES[name][3], threads=2)
    pto.kernel(kernel.module, kernel.name, engine="native")(*sets[1], blocks=CASES[name][3])
    for mine, theirs in zip(*sets, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()


def test_messages_are_those_of_the_program(tmp_path: Path) -> None:
    program = CASES["columns"][0]
    source = tmp_path / "columns.pto"
    source.write_text(program)
    kernel = pto.kernel(pto.parse(source), engine="native")
    file = images.file_of(kernel.module, kernel.lowered("always"), "k.elf")
    source.unlink()
    again = ImageKernel(file, file.images[0])
    x, y = given("columns")
    for args in ((x, y[:4]), (x,), (x, 3), (x.astype(np.float64), y)):
        said = []
        for k in (kernel, again):
            with pytest.raises(pto.DiagnosticError) as e:
                k(*args)
            said.append(str(e.value))
        assert said[0] == said[1] and "columns.pto:" in said[0]
    bare = ImageKernel(file.replace(program=b""), file.images[0])
    (found,) = bare.run(x, y[:4]).diagnostics
    assert (
        found.code == "PTO-E2101"
        and found.span is not None
        and "pto.tstore" in found.span.source.line(found.span.line)
    )


def test_the_tools(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ptoas` to `pto run`, `pto objdump` and back, several kernels, the reference engine, what contradicts itself."""
    ready()
    monkeypatch.chdir(tmp_path)
    Path("k.pto").write_text(TWO)

    def run(*words: str) -> tuple[int, str]:
        tool = ptoas if words[0] == "ptoas" else main
        try:
            status = tool([*words[1:]])
        except SystemExit as e:
            status = int(str(e.code))
        out = capfd.readouterr()
        return status, out.out + out.err

    assert run("ptoas", "--target=cpu", "k.pto", "-o", "k.elf") == (0, "")
    Path("k.pto").unlink()
    assert run("pto", "objdump", "k.elf", "-o", "k.txt") == (0, "")
    assert run("ptoas", "k.txt", "-o", "k2.elf") == (0, "")
    assert files.read("k2.elf").images == files.read("k.elf").images
    for path in ("k.elf", "k2.elf"):
        status, said = run("pto", "run", path, "--entry", "count", "--", "i32:1=n.npy", "7")
        assert status == 0 and said.startswith("7 sums\n@count: ok (1 block, target cpu")
        assert np.load("n.npy").tolist() == [7]
    for engine in ("reference", "native"):  # the program in the file
        named = ["--engine", "reference"] if engine == "reference" else []
        status, said = run(
            "pto", "run", "k.elf", *named, "--sanitize", "all", "--entry", "@turn", "--", "f32:16x8"
        )
        assert status == 0 and f"engine {engine}, checked for" in said
    expected = {
        ("pto", "run", "k.elf", "--", "i32:1", "7"): "PTO-E2001]: cannot choose one of several functions",
        ("pto", "run", "k.elf", "--entry", "cont", "--", "i32:1"): "did you mean 'count'?",
        ("pto", "run", "k.elf", "--engine", "native", "--entry", "turn", "--shadow", "f64"): "engine native has no --shadow",
        ("pto", "run", "k.elf", "--arch", "a5", "--entry", "turn"): "PTO-E2405]: expected 'k.elf' to be made for a5, got cpu",
        ("pto", "run", "k2.elf", "--engine", "reference", "--entry", "turn"): "PTO-E1221]: missing program in 'k2.elf'",
        ("pto", "run", "none.elf"): "PTO-E0001]",
        ("pto", "objdump", "k.elf", "--entry", "tur"): "did you mean 'turn'?",
        ("pto", "check", "k.elf"): "'pto objdump k.elf' prints it",
        ("ptoas", "k.txt"): "cannot write cpp: 'k.txt' is a listing of images",
        ("ptoas", "k.pto", "-o", "k.elf", "--emit=cpp"): "PTO-E0005]: -o k.elf is an image, --emit=cpp is C++",
        ("ptoas", "k.pto", "-o", "k.cpp", "--emit=elf"): "PTO-E0005]: --emit=elf is an image, -o k.cpp is not",
    }  # fmt: skip
    for words, message in expected.items():
        status, said = run(*words)
        assert status == 1 and message in said, said
    status, said = run("ptoas", "a.pto", "b.pto", "--emit=elf")
    assert status == 2 and "cannot write several images to standard output" in said
    status, said = run("ptoas", "k.elf", "--emit=elf", "--line-directives", "-o", "x.elf")
    assert status == 1 and "--line-directives: no effect on an image" in said


def test_the_program_of_a_file_on_another_engine(tmp_path: Path) -> None:
    _, file = file_of("columns")
    (x, y), (_, z) = given("columns"), given("columns")
    path = opened(tmp_path / "k.elf", file)
    result = pto.kernel(path, engine="reference").run(x, y, sanitize="all")
    assert result.ok and result.checked
    kernel = pto.kernel(path)
    assert kernel(x, z).engine == "native" and y.tobytes() == z.tobytes()
    result = kernel.run(x, z, sanitize="all")
    assert result.engine == "native" and result.ok and result.checked
    assert kernel.run(x, z, shadow="f64").engine == "reference"


def test_e1225_no_text_of_a_file_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown call is taken only where the program in the file makes it."""
    kernel, file = file_of("columns")
    image = file.images[0]
    name = next(n for n, call in enumerate(image.calls) if "TADD(" in call)
    own, known = image.calls[name], machine.missing
    asked: list[str] = []
    monkeypatch.setenv("PTO_NATIVE_COMPILE", "always")
    monkeypatch.setattr(machine, "compiled", lambda calls: asked.extend(calls) or pytest.fail("compiled"))
    monkeypatch.setattr(machine, "kept", lambda calls: None)

    def refused(changed: ImageFile, note: str) -> None:
        with pytest.raises(pto.DiagnosticError) as e:
            pto.kernel(opened(tmp_path / "k.elf", changed))
        (found,) = e.value.diagnostics
        assert found.code == "PTO-E1225" and any(note in text for text, _ in found.notes), found.notes

    evil = own.replace("TADD(a0, a1, a2);", "TADD(a0, a1, a2); system(0);")
    other = image.replace(calls=tuple(evil if call == own else call for call in image.calls))
    refused(file.replace(images=(other,)), "makes another image")
    refused(file.replace(images=(other,), program=b""), "it has only images")
    refused(file.replace(images=(other,), program=b"PTOBC\0garbage"), "its program: ")
    wrong = to_bytecode(pto.parse(CASES["control flow"][0]))
    refused(file.replace(images=(other,), program=wrong), "makes another image")
    assert not asked

    monkeypatch.setattr(machine, "missing", lambda calls: sorted({own} & {*calls} | {*known(calls)}))
    monkeypatch.setattr(machine, "compiled", lambda calls: asked.extend(calls) or _Found(own))
    pto.kernel(opened(tmp_path / "k.elf", file))
    assert asked == [own] and kernel.name == image.name


def test_what_is_run_again_is_not_parsed_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run of a text takes its image from the cache; another text, name, target or option does not."""
    ready()
    monkeypatch.chdir(tmp_path)
    parsed: list[str] = []
    real = run.parse_source
    monkeypatch.setattr(run, "parse_source", lambda source: parsed.append(source.name) or real(source))

    def again(*options: str, status: int = 0, path: str = "k.pto") -> tuple[int, str]:
        parsed.clear()
        given = ["run", path, "--engine", "native", "--entry", "count", *options, "--", "i32:1", "7"]
        assert main(given) == status
        out = capfd.readouterr()
        return len(parsed), out.out.partition(" (")[0] + out.err

    Path("k.pto").write_text(TWO)
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    first = again()
    assert first == (1, "7 sums\n@count: ok") and again() == (0, first[1])
    assert (
        again("--no-check")[0] == 1
        and again("--arch", "cpu")[0] == 1
        and again("--capacity", "vec=65536")[0] == 1
    )
    assert again("--arch", "cpu")[0] == 0 and again("--capacity", "vec=65536")[0] == 0
    Path("copy.pto").write_text(TWO)
    assert again(path="copy.pto")[0] == 1
    Path("k.pto").write_text(TWO.replace("%d sums", "%d times"))
    assert again() == (1, "7 times\n@count: ok")
    wrong = TWO.replace("scf.yield %more : i32", "scf.yield %none : i32")
    Path("k.pto").write_text(wrong)
    assert again(status=1)[0] == 1 and again(status=1)[0] == 1  # errors are reported every time
    Path("k.pto").write_text(TWO)
    for found in cache.entries():
        if found.kind == "image" and Path(found.path, "kernel.elf").read_bytes().count(b"k.pto"):
            Path(found.path, "kernel.elf").write_bytes(b"damaged")
    assert again() == (1, first[1]) and again() == (0, first[1])
    said: list[str] = []
    for _ in range(2):
        assert main(["run", "k.pto", "--engine", "native", "--entry", "turn", "--", "f32:16x8", "1"]) == 1
        said.append(capfd.readouterr().err)
    assert said[0] == said[1] and "k.pto:15:3: error[PTO-E2011]" in said[0]


def test_a_popped_tile_larger_than_the_memory() -> None:
    """A file may declare any tile for a pop from a FIFO: no memory outside the core is written."""
    file = example("runtime/python/cluster_pipe")
    image = file.images[0]
    code = image.codes[1]
    words = list(code.words)
    (tile, *_) = [at for at, name, _ in walk(image, code) if name == "vm.tile"]
    words[tile + 3] = 1 << 16
    changed = image.replace(codes=(image.codes[0], code.replace(words=tuple(words))))
    data = container.to_bytes(file.replace(images=(changed,)))
    found = Child(READERS["vm"], range(20), data).result()
    assert not found.failures and found.outcomes == {"refused": 20}


class _Found:
    """A pack of one function, that is there already."""

    def __init__(self, name: str) -> None:
        self.address = machine._found[name]

    def find(self, name: str) -> int:
        return self.address


@pytest.mark.seeded
def test_any_signature_is_refused_or_bound() -> None:
    """With any arguments that a file declares for its kernel, a launch runs it or reports an error."""
    types = ("i32", "index", "f32", "!pto.ptr<f32>", "!pto.ptr<f32, ub>", "!pto.tensor_view<?x4xf32>", "bf16",
             "!pto.tile_buf<vec, 16x16xf32>", "memref<4xf32>", "i1", "!pto.ptr<i4>", "none")  # fmt: skip
    names = ("a", "b", "c", *SPMD, "")
    values = (1, 2.5, zeros(3, 4), zeros(4), np.zeros(4, np.uint8), "x", None)
    bound = 0
    for seed in seeds(range(300)):
        random = Random(seed)
        kinds = random.choice((("mix",), ("cube", "vector")))
        functions = [
            ImageFunction(
                f"f{n}",
                tuple((random.choice(names), random.choice(types)) for _ in range(random.randrange(4))),
            )
            for n in range(random.randint(1, len(kinds)))
        ]
        if random.random() < 0.6:
            functions = [f.replace(parameters=functions[0].parameters) for f in functions]
        codes = [
            ImageCode(kind, (END | 1 << 24,), bytes(1024),
                 tuple((128 * i, int("view" in t)) for i, (_, t) in enumerate(functions[0].parameters)), ())
            for kind in kinds
        ]  # fmt: skip
        dealt = (random.randrange(3),) if random.random() < 0.2 else ()
        image = Image("k", "cpu", (), tuple(codes), tuple(functions), dealt, random.choice((1, 2)))
        try:
            check(image)
            kernel = ImageKernel(ImageFile("k.elf", (image,)), image)
            kernel.run(
                *(random.choice(values) for _ in functions[0].parameters), blocks=random.choice((1, 3))
            )
            bound += 1
        except pto.DiagnosticError as e:
            assert str(e)
    assert bound
