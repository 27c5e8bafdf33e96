"""All readers of untrusted input (docs/security.md): valid inputs of each, what makes hostile ones, and what reads them.

A reader says how far an input got. It takes `DiagnosticError` for an answer, where its diagnostics are well-formed, or
the error that its module documents; anything else is a failure (`batches`).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import pto
from pto.asm import FORMS, to_text
from pto.bytecode.dump import dump
from pto.diag import Diagnostic, DiagnosticError, Source, has_errors, render, render_json
from pto.image import check, container, listing
from pto.image.format import Image
from pto.isa.errors import CATALOGUE

from ..image import programs as images
from ..security.watch import CANARY
from . import binary, calls, documents, mutations, properties
from .batches import Mutation, Reader
from .mutations import programs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
KERNELS = EXAMPLES / "kernels"
READERS: dict[str, Reader] = {}


def _add(name: str, corpus: Callable[[], Sequence[bytes]], make: Mutation, **more: Any) -> Callable[..., Any]:
    """Add a function that reads to the readers."""

    def added(read: Callable[[bytes], str]) -> Callable[[bytes], str]:
        READERS[name] = Reader(name, corpus, make, _answers(read), **more)
        return read

    return added


def _answers(read: Callable[[bytes], str]) -> Callable[[bytes], str]:
    """Diagnostics are an answer."""

    def answered(data: bytes) -> str:
        try:
            return read(data)
        except DiagnosticError as e:
            return refused(e.diagnostics)

    return answered


def refused(problems: Iterable[Diagnostic]) -> str:
    """Check that diagnostics keep their promises."""
    found = list(problems)
    assert has_errors(found), "refused without an error"
    for d in found:
        assert d.code in CATALOGUE and d.message, f"{d.code} is not in the catalogue"
    assert render(found) and render_json(found)
    return "refused"


def _quiet(make: Mutation) -> Mutation:
    """For readers that parse Python and execute none of it: without the word that must not be compiled."""
    return lambda data, r, others: make(data, r, others).replace(CANARY.encode(), b"../owned")


def _written(name: str, data: bytes) -> str:
    Path(name).write_bytes(data)
    return name


# -- programs -------------------------------------------------------------------------------------------------


@_add("text", programs, mutations.text, examples=500, is_text=True)
def text(data: bytes) -> str:
    """Parse, verify, print in all forms and read again."""
    return properties.check(data)


@cache
def _kernels() -> tuple[bytes, ...]:
    return tuple(
        (KERNELS / f"{name}.pto").read_bytes()
        for name in ("vector_add", "softmax", "gemm", "mixed_fifo", "topk")
    )


def _kernel(data: bytes, r: Random, others: Sequence[bytes]) -> bytes:
    """A kernel with a few gentle mutations, so that it often still runs."""
    for _ in range(r.randint(1, 3)):
        data = mutations.MUTATIONS[r.choice(("alike", "lines", "number", "literal", "fragment"))](data, r)
    return data


#: In an image: an address outside of all arguments.
ELSEWHERE = b"elsewher"


class Canary:
    """Arguments of a launch, each between bytes that the launch may not change."""

    _ROOM = 1 << 12
    elsewhere = np.full(1 << 16, 0xA5, np.uint8)

    def __init__(self, kernel: Any, seed: int) -> None:
        self.memory: list[np.ndarray[Any, Any]] = []
        self.values = [self._value(argument.type, Random(seed)) for argument in kernel.args]

    def _value(self, type: Any, r: Random) -> Any:
        from pto.engine.memory import array_of

        dtype = getattr(type, "dtype", None)
        if type.kind not in ("ptr", "view", "tensor_view", "memref") or dtype is None:
            return r.choice((0, 1, 4, 128))
        element = np.dtype(array_of(str(dtype)))
        dims = [d if d and d < 256 else 16 for d in getattr(type, "dims", ())][:4] or [1 << 12]
        size = element.itemsize * int(np.prod(dims))
        whole = np.full(size + 2 * self._ROOM, 0xA5, np.uint8)
        inside = whole[self._ROOM : self._ROOM + size]
        inside[:] = np.random.default_rng(7).integers(0, 60, size)
        self.memory.append(whole)
        return inside.view(element).reshape(dims)

    @classmethod
    def check_elsewhere(cls) -> None:
        assert (cls.elsewhere == 0xA5).all(), "memory of nobody's argument was written"

    def check(self) -> None:
        self.check_elsewhere()
        for whole in self.memory:
            fences = whole[: self._ROOM], whole[-self._ROOM :]
            assert all((fence == 0xA5).all() for fence in fences), "memory beside an argument was written"


_OPTIONS: list[dict[str, Any]] = [
    {"sanitize": "all"}, {"schedule": 3}, {"shadow": "f64", "memory_map": True}, {"sanitize": "all", "schedule": 5}, {"timeline": True},
]  # fmt: skip


@_add("run", _kernels, _kernel, examples=25, is_text=True)
def run(data: bytes) -> str:
    """Parse and run on the reference engine, with all observers."""
    seed = len(data)
    module = pto.parse(data.decode("utf-8", "replace") + "\n")
    kernel = pto.kernel(module, check=seed % 2 == 0, engine="reference")
    given = Canary(kernel, seed)
    options = _OPTIONS[seed % len(_OPTIONS)]
    result = kernel.run(*given.values, out=io.StringIO(), max_steps=5_000, **options)
    given.check()
    return "ran" if result.ok else refused(result.diagnostics)


@_add("native", _kernels, _kernel, examples=25, is_text=True)
def native(data: bytes) -> str:
    """Parse and run on the virtual machine, unless something would have to be compiled."""
    from pto.engine.entry import Launchable
    from pto.engine.native import machine
    from pto.engine.native.kernel import image_of

    module = pto.parse(data.decode("utf-8", "replace") + "\n")
    checked = len(data) % 2 == 0
    if machine.missing(image_of(Launchable(module, None, None, checked)).calls):
        return "would be compiled"
    return _launched(pto.kernel(module, check=checked, engine="native"), len(data))


def _launched(kernel: Any, seed: int) -> str:
    given = Canary(kernel, seed)
    result = kernel.run(*given.values, out=io.StringIO(), max_steps=2_000, timeout=2.0, blocks=1 + seed % 2)
    given.check()
    return "ran" if result.ok else refused(result.diagnostics)


@_add("emit", lambda: (*programs(), *_kernels()), mutations.text, examples=60, is_text=True)
def emit(data: bytes) -> str:
    """Run the passes, emit C++ and lower to an image: what `ptoas` does with a program."""
    from pto.driver import Options, lowered
    from pto.engine.native import images as native

    text = data.decode("utf-8", "replace") + "\n"
    seed = len(data)
    outcome = "refused"
    try:
        pto.emit_cpp(
            pto.parse(text),
            (None, "cpu", "a5")[seed % 3],
            insert_sync=seed % 2 == 0,
            line_directives=seed % 5 == 0,
        )
        outcome = "emitted"
    except DiagnosticError as e:
        refused(e.diagnostics)
    module = pto.parse(text)
    native.file_of(module, lowered(module, None, Options(passes="always")).sound(), "k.elf")
    return outcome


@_add("fmt", programs, mutations.text, examples=100, is_text=True)
def fmt(data: bytes) -> str:
    """Format a text; formatted again it stays as it is."""
    from pto.asm import format_source
    from pto.reading import decode

    source, problems = decode("x.pto", data)
    once, problems = format_source(source) if source is not None else (None, problems)
    if once is None:
        return refused(problems)
    assert format_source(Source("x.pto", once))[0] == once, "formatted again it is another text"
    return "formatted"


# -- bytecode -------------------------------------------------------------------------------------------------

#: What the examples do not have: branches, module-level operations, carried values, wide and odd constants.
MORE = """
module @outer attributes {k = [1, {a = "x"}]} {
  module @inner {
    func.func @g(%n: i32) {
      return
    }
  }
  func.func private @h(i32) -> i32
  func.func @f(%c: i1, %n: i32) {
    cf.br ^loop(%n : i32)
  ^loop(%x: i32):
    cf.cond_br %c, ^loop(%x : i32), ^end
  ^end:
    %w = arith.constant 1267650600228229401496703205376 : i128
    %d = arith.constant dense<[1, 2]> : tensor<2xi32>
    %r:2 = "my.op"(%n) ({
      "my.end"() : () -> ()
    }) : (i32) -> (i32, f32)
    cf.switch %n : i32, [default: ^last, 3: ^loop(%r#0 : i32)]
  ^last:
    return
  }
}
"""


@cache
def bytecodes() -> tuple[bytes, ...]:
    more = pto.parse(MORE)
    found = [pto.to_bytecode(more), pto.to_bytecode(more, debuginfo=True)]
    for path in sorted(EXAMPLES.glob("*.pto")):
        try:
            found.append(pto.to_bytecode(pto.parse(path), debuginfo=len(found) % 2 == 0))
        except DiagnosticError:
            continue
    assert len(found) > 2
    return tuple(found)


@_add("bytecode", bytecodes, binary.bytecode, examples=600)
def bytecode(data: bytes) -> str:
    """List a file, read it, and check the result as a program: it prints, and is written again."""
    try:
        for line in dump(data, "x"):
            assert "\n" not in line
    except DiagnosticError:
        pass
    module = pto.from_bytecode(data)
    for form in FORMS:
        to_text(module, form)
    again = pto.to_bytecode(module)
    assert pto.to_bytecode(pto.from_bytecode(again)) == again, "written again it is another file"
    return "read"


# -- images ---------------------------------------------------------------------------------------------------


@cache
def _images() -> tuple[bytes, ...]:
    files = (images.two(), images.values(), images.convolution(), images.example("07_mixed_sections"))
    return tuple(map(container.to_bytes, files))


@_add("image", _images, binary.elf, examples=250)
def image(data: bytes) -> str:
    """Read and check a file of images, and list it; the properties that were checked hold."""
    return _checked(container.read(data, "k.elf"))


def _checked(file: container.ImageFile) -> str:
    for one in file.images:
        images.inside(one)
    again = listing.assembled(Source("k.txt", listing.text_of(file)))
    assert _placed(again) == _placed(file), "the listing is of other images"
    file.lines.spans()
    container.to_bytes(file)
    return "read"


def _placed(file: container.ImageFile) -> list[Image]:
    """The images of a file, places in the order of the words."""
    return [
        i.replace(codes=tuple(c.replace(places=tuple(sorted(c.places))) for c in i.codes))
        for i in file.images
    ]


@cache
def _listings() -> tuple[bytes, ...]:
    return tuple(listing.text_of(container.read(data, "k.elf")).encode() for data in _images())


_OPERANDS = (
    "@8",
    "8",
    "L0",
    "end",
    '"x"',
    "-1",
    "",
    ",",
    "9" * 30,
    "@4294967295",
    "0xffffffff",
    "view",
    '"\\ud800"',
    ";",
    "16777216",
)


def _listed(data: bytes, r: Random, others: Sequence[bytes]) -> bytes:
    """A listing: lines and words of it exchanged."""
    if r.random() < 0.2:
        return binary.damaged(data, r, others)
    rows = data.decode("utf-8", "replace").splitlines()
    for _ in range(r.choice((1, 1, 2))):
        at = r.randrange(len(rows) or 1)
        act = r.randrange(5)
        if act == 0:
            rows[at : at + 1] = rows[r.randrange(len(rows) or 1) :][:1]
        elif act == 1:
            del rows[at : at + 1]
        elif act == 2:
            rows[at:at] = rows[at : at + 1] * r.choice((1, 2, 30))
        else:
            words = (rows[at] if rows else "").split(" ")
            words[r.randrange(len(words))] = r.choice(_OPERANDS)
            rows[at : at + 1] = [" ".join(words)]
    return "\n".join(rows).encode("utf-8", "surrogatepass")


@_add("listing", _listings, _listed, examples=120, is_text=True)
def listed(data: bytes) -> str:
    """Assemble a listing of images."""
    return _checked(listing.assembled(Source("k.txt", data.decode("utf-8", "replace"))))


@cache
def _runnable() -> tuple[bytes, ...]:
    """Files whose calls the machine has: nothing is compiled."""
    from pto.engine.native import machine

    files = [images.two(), *map(images.example, images.NAMES)]
    made = [
        file.replace(images=(one,)) for file in files for one in file.images if not machine.missing(one.calls)
    ]
    return tuple(map(container.to_bytes, made))


@cache
def _read(data: bytes) -> container.ImageFile:
    return container.read(data, "k.elf")


def _words(data: bytes, r: Random, others: Sequence[bytes]) -> bytes:
    """A file whose image has other words or constants."""
    file = _read(data)
    image = file.images[0]
    code = image.codes[r.randrange(len(image.codes))]
    words, frame = list(code.words), bytearray(code.frame)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        if r.random() < 0.4 and len(frame) >= 8:
            at = r.randrange(len(frame) // 8) * 8
            frame[at : at + 8] = r.choice((
                binary.edge(r, 8, len(frame)), r.choice((0, 1, 16, 64, 4096, 1 << 20)).to_bytes(8, "little"), ELSEWHERE, frame[:8],
            ))  # fmt: skip
        else:
            at = r.randrange(len(words))
            words[at] = r.choice((
                words[at] ^ 1 << r.randrange(32), r.choice(words), r.randrange(len(words)), r.randrange(0, len(frame) or 8, 8),
                int.from_bytes(binary.edge(r, 4, len(frame)), "little"), words[at] + r.choice((-8, -1, 1, 8)) & 0xFFFFFFFF,
            ))  # fmt: skip
    changed = code.replace(words=tuple(words), frame=bytes(frame))
    codes = tuple(changed if c is code else c for c in image.codes)
    return container.to_bytes(file.replace(images=(image.replace(codes=codes),)))


@_add("vm", _runnable, _words, examples=150)
def vm(data: bytes) -> str:
    """Check a file of images and run it on the virtual machine."""
    from pto.engine.native import machine
    from pto.engine.native.files import ImageKernel

    there = Canary.elsewhere.ctypes.data + (1 << 15)
    file = container.read(data.replace(ELSEWHERE, there.to_bytes(8, "little")), "k.elf")
    if machine.missing(file.images[0].calls):
        return "would be compiled"
    return _launched(ImageKernel(file, file.images[0]), data[-1] + len(data))


@cache
def _array() -> Any:
    return np.zeros(1 << 16, np.float32)


@_add(
    "calls", lambda: (b"pto.tneg 1", b"pto.tload 2", b"pto.vadd 3"), calls.chosen, examples=60, is_text=True
)
def call(data: bytes) -> str:
    """Run an image of one call with operands of an attacker. What leaves a core ends at its guards: no other address
    is tried."""
    from pto.engine.native import machine
    from pto.engine.native.files import ImageKernel

    there = Canary.elsewhere.ctypes.data + (1 << 15)
    made = calls.made(data, _array(), there)
    if made is None or machine.missing(made.calls):
        return "no call"
    check.check(made)
    result = ImageKernel(container.ImageFile("k.elf", (made,)), made).run(
        _array(), out=io.StringIO(), max_steps=100, timeout=2.0
    )
    Canary.check_elsewhere()
    if result.ok:
        return "ran"
    if found := re.search(
        r"access to address (\w+|\(nil\)), which is not mapped", str(result.diagnostics[0])
    ):
        at = int(found[1], 16) if found[1] != "(nil)" else 0
        assert 1 << 40 < at < 1 << 47 and at >> 32 != 0x5A5A, f"a pointer of the program: {at:#x}"
    return refused(result.diagnostics)


@cache
def _objects() -> tuple[bytes, ...]:
    """Objects and shared objects, where LLVM is there to make them; files of images are ELF, too."""
    try:
        from ..objects.test_objects import made
    except BaseException:  # pytest's way to say that llvmlite is missing
        return _images()
    return (*_images()[:1], made("control flow", "so"), made("control flow", "obj"))


@_add("object", _objects, binary.elf, examples=300)
def objects(data: bytes) -> str:
    """Look at an object or a library without loading it."""
    from pto.objects.contents import check_runnable, is_object
    from pto.runtime.elf import exports

    path = _written("k.so", data)
    is_object(path)
    exports(path)
    check_runnable(data, "k.so", "k")
    container.read(data, "k.so")
    return "runnable"


@cache
def _line_tables() -> tuple[bytes, ...]:
    from ..engine.cpp.test_lines import EVERY_STEP, library

    return tuple(library(EVERY_STEP, version=version) for version in (2, 4, 5))


@_add("lines", _line_tables, binary.elf, examples=300)
def lines(data: bytes) -> str:
    """Read the table of lines of a library."""
    from pto.engine.cpp.lines import LibraryLines
    from pto.image.elf import BadElf

    try:
        found = LibraryLines(data)
    except BadElf:
        return "refused"
    return "read" if found.at(0x1000) else "empty"


# -- arrays, records, tables ----------------------------------------------------------------------------------


@cache
def _arrays() -> tuple[bytes, ...]:
    found: list[bytes] = []
    for array in (
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.zeros((), np.int8),
        np.zeros(3, "V2"),
        np.asfortranarray(np.eye(3)),
    ):
        out = io.BytesIO()
        np.save(out, array)
        found.append(out.getvalue())
    return tuple(found)


@cache
def _takes() -> Any:
    text = "func.func @k(%a: !pto.ptr<f32>) attributes {pto.entry} {\n  return\n}\n"
    return pto.kernel(pto.parse(text), engine="reference")


@_add("npy", _arrays, _quiet(binary.npy), examples=400)
def npy(data: bytes) -> str:
    """An argument of a launch: `@a.npy`."""
    from pto.cli.arguments import Argument

    argument = Argument("@" + _written("a.npy", data))
    if argument.problem is not None:
        return refused([argument.problem])
    result = _takes().run(argument.values[0], out=io.StringIO())
    return "bound" if result.ok else refused(result.diagnostics)


@cache
def _records() -> tuple[bytes, ...]:
    import tempfile

    from pto.perf import swimlane_json
    from pto.perf.records import Records

    from ..perf.schedule import simulate

    found: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        for tasks in (0, 5):
            records = simulate(tasks).records if tasks else Records()
            found += [records.save(Path(folder) / f"r.{kind}").read_bytes() for kind in ("npz", "json")]
        found.append(swimlane_json.write(simulate(5).records, Path(folder) / "s.json").read_bytes())
    return tuple(found)


def _recorded(data: bytes, r: Random, others: Sequence[bytes]) -> bytes:
    return (binary.npz if data[:2] == b"PK" else documents.json_document)(data, r, others)


@_add("records", _records, _quiet(_recorded), examples=150)
def records(data: bytes) -> str:
    """Records of a run: read, checked, summed up, drawn."""
    from pto.perf.records import Records
    from pto.runtime.durations import Durations

    suffix = "npz" if data[:2] == b"PK" else "json"
    path = _written(f"r.{suffix}", data)
    found = Records.load(path)
    problems = found.check()
    if has_errors(problems):
        return refused(problems)
    Durations(path)
    return "read"


@cache
def _machines() -> tuple[bytes, ...]:
    return (
        b'machine = "a2a3"\nmhz = 1800\nlaunch = 12000\nbw_gm_ub = 100.5\n',
        b'machine = "a5"\n\n[runtime]\ncompletion = 2600\nclock_mhz = 1800\n\n[durations]\nadd = 3.5\nmul = { cycles = 1850 }\n',
    )


@_add("machine", _machines, documents.toml, examples=250, is_text=True)
def machine_file(data: bytes) -> str:
    """Parameters of a machine: `--machine FILE.toml`, for kernels, for the runtime, and as durations."""
    from pto.isa.timing import machine
    from pto.runtime.durations import Durations
    from pto.runtime.overheads import read_machine

    path = _written("m.toml", data)
    outcome = "read"
    try:
        machine(path)
    except ValueError as e:  # documented
        assert str(e)
        outcome = "refused"
    for act in (read_machine, Durations):
        try:
            act(path)
        except DiagnosticError as e:
            outcome = refused(e.diagnostics)
    return outcome


@_add(
    "durations",
    lambda: (b"kernel,us\nadd,3.5\nmul,4\n", b"# note\nkernel,cycles\nadd,1850\n"),
    documents.csv,
    examples=200,
    is_text=True,
)
def durations(data: bytes) -> str:
    """Read durations of kernels: `--durations FILE.csv`."""
    from pto.runtime.durations import Durations

    Durations(_written("d.csv", data))
    return "read"


@cache
def _measurements() -> tuple[bytes, ...]:
    operands = "src0=f32:64x64@vec src1=f32:64x64@vec dst=f32:64x64@vec"
    kernel = f"program,args,blocks,us\n{EXAMPLES}/01_vec_add.pto,f32:64x128 f32:64x128 f32:64x128,1,21.4\n"
    return (
        f"instruction,operands,cycles\ntadd,{operands},160\ntload,src=f32:64x64@gm dst=f32:64x64@vec,99\n".encode(),
        kernel.encode(),
    )


@_add("measurements", _measurements, documents.csv, examples=100, is_text=True)
def measurements(data: bytes) -> str:
    """Measurements that parameters are fitted to: `pto cost fit FILE.csv`."""
    from pto.cli.cost import read
    from pto.isa.timing import MACHINES

    try:
        found = read(_written("f.csv", data), MACHINES["a2a3"])
    except ValueError as e:  # documented
        assert str(e)
        return "refused"
    return "read" if found else "empty"


@cache
def _timelines() -> tuple[bytes, ...]:
    view = {
        "name": "k", "machine": "m", "tick": 0.1, "total": 12.5, "begin": 0.5, "bound": "gm", "cores": ["c0"], "blocks": [0], "lanes": [],
        "sites": [["tadd", 3, "k.pto"]], "sources": {"k.pto": "x"}, "capacity": {"vec": 196608}, "lines": [], "cards": [["a", "b"]],
    }  # fmt: skip
    return (json.dumps({"traceEvents": [], "otherData": {"view": view}}).encode(),)


@_add("timeline", _timelines, documents.json_document, examples=200, is_text=True)
def timeline(data: bytes) -> str:
    """A timeline to compare with: `--compare FILE.json`."""
    from pto.perf.explorer.page import loaded, page

    try:
        found = loaded(_written("t.json", data))
    except ValueError as e:  # documented
        assert str(e)
        return "refused"
    assert (
        "</script>"
        not in page([found], "Timeline", "note")
        .partition('type="application/json">')[2]
        .partition("</script>\n")[0]
    )
    assert f"{12.5 / float(found['total']):.2f} of {found['name']}"
    return "read"


@cache
def _results() -> tuple[bytes, ...]:
    rows = [
        {
            "program": "d",
            "params": {"ROWS": rows},
            "status": "timed",
            "us": 3.5 * rows,
            "busy": "V",
            "share": 0.5,
            "guessed": False,
            "code": "",
            "why": "",
        }
        for rows in (16, 32)
    ]
    rows.append(
        {"program": "d", "params": {"ROWS": 64}, "status": "illegal", "code": "PTO-E0701", "why": "too large"}
    )
    return ("".join(json.dumps(row) + "\n" for row in rows).encode(),)


@_add("results", _results, documents.json_lines, examples=200, is_text=True)
def results(data: bytes) -> str:
    """Results of an earlier search: `pto tune --results FILE`."""
    from pto.cli.tune import _result_lines
    from pto.trials import _key, _known

    known = _known(_written("r.jsonl", data), "d")
    found = [
        known[key] for rows in (16, 32, 64) if (key := _key({"ROWS": rows})) in known
    ]  # as a search takes them
    found.sort(key=lambda o: (o.status != "timed", o.us))
    assert _result_lines(found, 0, 10)
    return "read" if found else "empty"


@_add(
    "template",
    lambda: (b"tile ${ROWS} x ${COLS=64} at ${ROWS * 4}",),
    _quiet(documents.template),
    examples=300,
    is_text=True,
)
def template(data: bytes) -> str:
    """A program with parameters: `pto tune FILE.pto`."""
    from pto.tune.source import fill, named

    text = data.decode("utf-8", "replace")
    names = named(text, "k.pto")
    made = fill(text, {"ROWS": 16}, "k.pto")
    assert len(made) < 1 << 20 and all(isinstance(name, str) for name in names)
    return "filled"


_MESSAGE = b'Content-Length: 58\r\n\r\n{"seq": 1, "type": "request", "command": "initialize"}    '


@_add("dap", lambda: (_MESSAGE, _MESSAGE * 2), documents.framed, examples=250)
def dap(data: bytes) -> str:
    """Messages of an editor to the debugger."""
    from pto.engine.debug.wire import Bad, read

    stream = io.BytesIO(data)
    outcome = "nothing"
    while (found := read(stream)) is not None:
        outcome = "refused" if isinstance(found, Bad) else "read"
        if isinstance(found, Bad) and found.last:
            break
    return outcome


@_add(
    "expression",
    lambda: (b"%acc[0:4, 0:8]", b"%i * 2 > 7 and not %last", b"%t[1, 2] + 3 // $block"),
    documents.template,
    examples=200,
    is_text=True,
)
def expression(data: bytes) -> str:
    """Evaluate requests of an editor or a file of commands to the debugger."""
    from pto.engine.debug.expressions import Expression, ExpressionError

    text = data.decode("utf-8", "replace").replace("${", "").replace("}", "")
    try:
        Expression(text).number(lambda index: 3)
    except ExpressionError as e:
        assert str(e)
        return "refused"
    return "computed"
