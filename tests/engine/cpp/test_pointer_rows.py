"""Burst copies and cube instructions on pointers: compiled against the reference engine, byte for byte.

A case of the tests of the reference engine becomes a function that works on an image of all on-chip memory.
Its numbers are constants in one half of the cases and arguments in the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

from pto import emit_cpp, kernel, parse
from pto.codegen.cpp import emit
from pto.diag import DiagnosticError
from pto.engine import elements
from pto.engine.compiled.library import LaunchOutcome, Library
from pto.engine.cpp import build, compiler
from pto.engine.memory import Pointer
from pto.ir.attrs import StrAttr, TypeAttr, UnitAttr
from pto.ir.builder import Builder
from pto.ir.core import Value
from pto.ir.types import I64, PtrType, ScalarType
from pto.isa.dtypes import DTYPES
from pto.isa.profiles import LOCATIONS, profile
from pto.witness.plan import Plan

from ..rows import Array, Case
from ..vector import test_raw_moves as raw
from ..vector.cases import plans_of, with_attrs
from ..vector.fractals import Bench, c0, element
from ..vector.test_cube_moves import burst_case, feed, frac
from ..vector.test_fixpipe_micro import FB, MODES, Store
from ..vector.test_fixpipe_micro import build as write_back
from ..vector.test_mad import Product
from .rows_bench import _HARNESS, SPACES, imaged, scalar_word

ISA = "a5"


class Compiled:
    """A case as a function; `numbers`: scalars are arguments."""

    def __init__(self, case: Case, name: str, numbers: bool) -> None:
        self.case, self.name, self.numbers = case, name, numbers
        self.words: list[Any] = []
        #: What calls it with words and arrays, by engine.
        self.engines: dict[str, Callable[..., LaunchOutcome]] = {}

    def build(self, b: Builder) -> None:
        plan = self.case.plan
        entry = b.func(self.name, [], {"pto.entry": UnitAttr()})
        values: dict[str, Value | list[Value]] = {}
        for declared in plan.row.operands:
            held = self.case.args.get(declared.name)
            types = plan.operands.get(declared.name)
            if held is None or types is None:
                continue
            several = held if isinstance(held, list) else [held]
            made = [
                self._operand(b, entry, f"{declared.name}{i}", types[0], v) for i, v in enumerate(several)
            ]
            values[declared.name] = made
        b.op(plan.row.full_name, [], dict(plan.attrs), **values)
        b.op("func.return")
        func = entry.outer
        assert func is not None
        signature = func.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
        func.attrs["function_type"] = TypeAttr(signature)

    def _operand(self, b: Builder, entry: Any, name: str, type: Any, held: Any) -> Value:
        if isinstance(type, PtrType) and type.space != "gm":
            return b.op("pto.castptr", [type], None, addr=b.constant(held.offset, I64)).result
        if isinstance(type, ScalarType) and not self.numbers:
            return b.constant(held, type)
        self.words.append((type, held))
        return entry.add_arg(type, name)

    def run(self, engine: str) -> tuple[str, list[Array]]:
        """Return the error, and the contents of all buffers; the virtual machine has no more than a core
        has."""
        core = self.case.core
        images = [core.buffers[loc].data.copy() for loc in LOCATIONS]
        arrays = [x.data.copy() for x in core.gm.buffers]
        where = {id(x): a for x, a in zip(core.gm.buffers, arrays, strict=True)}
        words = [
            where[id(v.buffer)].ctypes.data + v.offset if isinstance(v, Pointer) else scalar_word(t, v)
            for t, v in self.words
        ]
        pointers = (ctypes.c_char_p * len(images))(
            *(ctypes.cast(i.ctypes.data, ctypes.c_char_p) for i in images)
        )
        most = [1 << 40 if engine == "cpp" else core.profile.capacity[loc] for loc in LOCATIONS]
        sizes = (ctypes.c_uint64 * len(images))(*(min(i.size, n) for i, n in zip(images, most, strict=True)))
        words = [ctypes.addressof(pointers), ctypes.addressof(sizes), *words]
        done = self.engines[engine](
            [w & (2**64 - 1) for w in words], subblocks=1,
            arrays=[(a.ctypes.data, a.size, b"array") for a in arrays],
        )  # fmt: skip
        return (done.text if done.status else ""), [*images, *arrays]


def _module(cases: list[Compiled]) -> Any:
    b = Builder.module({"pto.target_arch": StrAttr(ISA)})
    for one in cases:
        one.words = []
        one.build(b)
    return b.built


def _spelled(case: Compiled) -> bool:
    try:
        emit(_module([case]), profile(ISA))
    except DiagnosticError as e:
        assert {d.code for d in e.diagnostics} == {"PTO-E1301"}, str(e)
        return False
    return True


def _compile(cases: list[Compiled]) -> None:
    target = profile(ISA).override(SPACES)
    module = _module(cases)
    text = emit(module, target) + _HARNESS
    for one in cases:
        text += (
            f"PTO_LAUNCHER({one.name}, pto::detail::CoreKind::Mix, "
            f"(decltype(imaged({one.name}))::run<{one.name}>))\n"
        )
    flags = [*compiler.arch_flags(target), *compiler.header_flags(text)]
    built = build.cached([build.TranslationUnit("rows.cpp", text)], [], flags)
    assert built.ok, built.output[:4000]
    library = Library(built.path)
    for one in cases:
        one.engines["cpp"] = partial(library.call, f"pto_launch_{one.name}")
    imaged(cases, module, profile(ISA))


def differences(cases: list[Case]) -> list[str]:
    made = [
        Compiled(case, f"case_{i}", numbers=i % 2 == 1 and case.row.name != "copy_gm_to_ubuf")
        for i, case in enumerate(cases)
    ]
    spelled = [one for one in made if _spelled(one)]
    _compile(spelled)
    found: list[str] = []
    for one in spelled:
        outcomes = {engine: one.run(engine) for engine in one.engines}
        with np.errstate(all="ignore"):
            one.case.run()
        for engine, (text, mine) in outcomes.items():
            found += _unlike(engine, one.case, text, mine)
    return found


def _unlike(engine: str, case: Case, text: str, mine: list[Array]) -> Iterator[str]:
    core, plan = case.core, case.plan
    theirs = [*(core.buffers[loc].data for loc in LOCATIONS), *(x.data for x in core.gm.buffers)]
    names = [*LOCATIONS, *(x.name for x in core.gm.buffers)]
    for name, got, want in zip(names, mine, theirs, strict=True):
        if text or not same(case, got, want):
            at = int(np.argmax(got != want))
            shown = {k: str(v[0]) for k, v in plan.operands.items()}
            numbers = {k: v for k, v in case.args.items() if not isinstance(v, Pointer)}
            where = f"{engine}: {plan.row.name} {shown} {plan.attrs} {numbers}"
            yield f"{where}: {text or f'{name}[{at}]'}"
            return


def same(case: Case, got: Array, want: Array) -> bool:
    """Equal bytes, or NaN where the other has one: products keep the one they meet."""
    if got.tobytes() == want.tobytes():
        return True
    dst = case.args.get("dst")
    if not case.plan.row.name.startswith("mad") or dst is None or dst.dtype != "f32":
        return False
    a, b = (x[: x.size // 4 * 4].view(np.float32) for x in (got, want))
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


# -- cases ---------------------------------------------------------------------------------------------------


def plans(name: str, some: int = 1) -> list[Plan]:
    """Instances of a row; those with loop clauses may have one."""
    found = plans_of(name, ISA)[::some]
    if "loop" not in found[0].row.operand_index:
        return found
    return [p.replace(operands=p.operands | {"loop": (I64,)}) for p in found]


def copies() -> Iterator[Case]:
    """Bursts with and without loops and padding; blocks between buffers."""
    loops = ([], [3, 100, 256], [2, 64, 128, 2, 7, 512], [2, 16, 32, 2, 64, 128, 2, 7, 1024], [0, 1, 32])
    for n, plan in enumerate(plans("mte_gm_ub")):
        pad = {}
        if "pad_value" in plan.operands:
            pad = {"pad_value": [1.5, -2.0, 3.0][n % 3] if DTYPES[element(plan, "ub_dst")].is_float else 5}
        if "left_padding" in plan.operands:
            pad |= {"left_padding": 2, "right_padding": 3}
        yield Bench(
            plan,
            n,
            l2_cache_ctl=0,
            len_burst=24,
            n_burst=2,
            src_stride=40,
            dst_stride=64,
            loop=loops[n % 5],
            **pad,
        )
    for n, plan in enumerate(plans("mte_ub_gm", 2)):
        numbers = {"len_burst": 20, "n_burst": 3, "src_stride": 32, "dst_stride": 24}
        yield Bench(plan, n, loop=loops[n % 5], **numbers)
    for name in ("mte_ub_ub", "mte_ub_l1"):
        for n, plan in enumerate(plans(name, 6)):
            case = Bench(plan, n, len_burst=2, n_burst=3, src_gap=1, dst_gap=2)
            if name == "mte_ub_ub":
                case.pointer("ub_dst").offset += 1024
            yield case
    for n, plan in enumerate(plans("copy_gm_to_ubuf", 4)):
        yield Bench(
            plan, n, sid=0, n_burst=2, len_burst=24, left_padding=0, right_padding=0, l2_cache_ctl=0,
            data_select_bit=n % 2, src_stride=40, dst_stride=64,
        )  # fmt: skip
    for n, plan in enumerate(plans("copy_ubuf_to_gm", 6)):
        yield Bench(plan, n, sid=0, n_burst=2, len_burst=24, reserved=0, src_stride=32, dst_stride=40)
    for n, plan in enumerate(plans("copy_ubuf_to_ubuf", 6)):
        case = Bench(plan, n, sid=0, n_burst=2, len_burst=3, src_stride=1, dst_stride=2)
        case.pointer("dest").offset += 1024
        yield case


def moves() -> Iterator[Case]:
    """Yield the moves that feed the cube. Transposed ones write whole squares: sizes with whole fractals,
    too."""
    for name, nest in (
        ("mte_gm_l1", [(2, 32, 96), (3, 100, 256)]),
        ("mte_l1_ub", [(2, 1, 3), (2, 512, 640)]),
    ):
        for n, plan in enumerate(plans(name, 4)):
            yield burst_case(plan, 32 if name == "mte_gm_l1" else 2, nest[: 1 + n % 2])
    for n, plan in enumerate(plans("mte_gm_l1_frac")):
        mode, outer = ("nd2nz", "dn2nz")[n // 2 % 2], "src_outer_stride" in plan.operands
        more: dict[str, int] = {"src_outer_stride": 512} if outer else {}
        made = with_attrs(plan, mode=mode)
        assert made is not None
        if n % 3 == 0:
            yield frac(made, mode, 9, 3, 64, (2 if outer else 1, 5, 6, 40), smallc0_en=1, **more)
        else:
            yield frac(made, mode, 5, 36, 128, (2 if outer else 1, 1, 16, 64), **more)
    for name in ("mte_l1_l0a", "mte_l1_l0b"):
        for plan in plans(name):
            for transpose in (False, True):
                made = with_attrs(plan, transpose=transpose)
                assert made is not None
                lanes = c0(element(plan, "src"))
                window = "k_start" in plan.operands
                at = ((16, lanes) if name == "mte_l1_l0a" else (lanes, 16)) if window else None
                if transpose and at:
                    at = (lanes, 16) if name == "mte_l1_l0a" else (16, lanes)
                    at = (max(at[0], 16) // 16 * 16, max(at[1], 16) // 16 * 16) if lanes < 64 else (64, 64)
                yield feed(made, 17, 37, at)
    for name, first, second in (("mte_l1_l0a_mx", "m", "k"), ("mte_l1_l0b_mx", "k", "n")):
        for plan in plans(name):
            sizes = {first: 40, second: 256} if first == "m" else {first: 256, second: 40}
            if "k_start" in plan.operands:
                sizes |= {"k_start": 64, f"{'m' if first == 'm' else 'n'}_start": 16}
            yield Bench(plan, **sizes)
    for plan in plans("mte_l1_bt"):
        each = c0(element(plan, "src"))
        yield Bench(plan, len_burst=2 * each, count=2, src_gap=each, dst_gap=3 * each)
    for plan in plans("mte_l1_fb", 6):
        yield Bench(plan, len_burst=2, count=2, src_gap=1, dst_gap=3)


def raw_moves() -> Iterator[Case]:
    """The same by the words of their calls: windows that overlap, too."""
    for name in raw.FEEDS:
        for plan in plans(name):
            for n, window in enumerate(raw.WINDOWS):
                yield raw.feed(plan, window, transpose=False)
                if n < 3:
                    yield raw.feed(plan, window, transpose=True)
    names = ("x_start_position", "y_start_position", "x_step", "y_step", "src_stride", "dst_stride")
    for name in raw.SCALES:
        for plan in plans(name):
            for window in ((1, 2, 3, 2, 5, 2), (0, 0, 3, 4, 4, 3)):
                yield Bench(plan, **dict(zip(names, window, strict=True)))
    for name in raw.TABLES:
        for plan in plans(name):
            for widen in (0, 1):
                yield raw.table_case(plan, 2, 2, (1, 3), widen)
    for plan in plans("copy_gm_to_cbuf", 3):
        yield Bench(plan, n_burst=3, len_burst=40, src_stride=56, dst_stride=64)
    for plan in plans("copy_cbuf_to_ubuf", 3):
        yield Bench(plan, sid=0, n_burst=2, len_burst=3, src_stride=1, dst_stride=2)
    for plan in plans("copy_ubuf_to_cbuf", 3):
        yield Bench(plan, sid=0, n_burst=2, len_burst=3, src_stride=1, dst_stride=2)


def products() -> Iterator[Case]:
    for name in ("mad", "mad_acc", "mad_bias", "mad_mx", "mad_mx_acc", "mad_mx_bias"):
        for n, plan in enumerate(plans(name)):
            if n % 3 and name != "mad":
                continue
            dst, depth = element(plan, "dst"), 64 if "mx" in name else 37
            for k, attrs in enumerate(
                ({}, {"sat_mode": "sat"}, {"tf32_mode": "round_away"}, {"n_dir": "n_dir"})
            ):
                if attrs.keys() - plan.row.attr_index.keys() or (attrs and dst != "f32"):
                    continue
                made = with_attrs(plan, **attrs) if attrs else plan
                if made is not None:
                    yield Product(made, 18, depth, 21, seed=n + k, special=k == 1)
            yield Product(plan, 1, depth, 21, seed=n)


def ways_out() -> Iterator[Case]:
    """Every mode to one of its types; activations, bounds, layouts and updates."""
    for n, mode in enumerate(MODES):
        vector = mode.endswith("_vec")
        payload = (
            {}
            if mode in ("f322f16", "f322bf16")
            else {"quant_payload": FB.format("f32") if vector else "f32"}
        )
        for src in ("f32", "i32"):
            for dst in (
                "f32",
                "f16",
                "bf16",
                "i32",
                "u32",
                "i16",
                "i8",
                "u8",
                "s4",
                "hif8",
                "f8e4m3",
                "f8e5m2",
            ):
                plan = write_back("mte_l0c_l1", ISA, src, dst, payload, quant_mode=mode, layout="nz2nd")
                if plan is not None and (dst in ("i8", "f8e5m2") or src == "f32" or not vector):
                    args = (
                        {}
                        if vector or not payload
                        else {"quant_payload": [0.5, -1.5, 0.0078125, 300.0][n % 4]}
                    )
                    yield Store(plan, 3, 19, seed=n, **args)
    pairs = (("f32", "f32", None), ("f32", "f16", "qf322f16_pre_scalar"), ("f32", "bf16", None), ("i32", "i32", None),
             ("f32", "u8", "qf322b8_pre_scalar"), ("i32", "i16", "deqs16_scalar"))  # fmt: skip
    for src, dst, quant in pairs:
        types: dict[str, str] = {"quant_payload": "f32"} if quant else {}
        args: dict[str, Any] = {"quant_payload": 0.5} if quant else {}
        for relu, slope in (("normal_relu", ""), ("scalar_relu", "f32"), ("vector_relu", FB.format("f32"))):
            more = types | ({"relu_payload": slope} if slope else {})
            plan = write_back(
                "mte_l0c_gm", ISA, src, dst, more, quant_mode=quant, relu_mode=relu, layout="nz2nd"
            )
            assert plan is not None
            own = {"relu_payload": 0.25} if slope == "f32" else {}
            yield Store(plan, 4, 19, seed=11, special=src == "f32", **args, **own)
        for sat in (
            {"sat_mode": "sat"},
            {"sat_mode": "sat", "preserve_nan": "preserve_nan"},
            {"sat_mode": "nosat"},
        ):
            plan = write_back("mte_l0c_gm", ISA, src, dst, types, quant_mode=quant, layout="nz2nd", **sat)
            assert plan is not None
            yield Store(plan, 4, 19, seed=12, **args)
        for layout, arg in ((None, None), ("nz2dn", 2), ("nz2nz", 1), ("nz2nz", 0)):
            more = types | ({"layout_arg": "i64"} if arg is not None else {})
            plan = write_back("mte_l0c_l1", ISA, src, dst, more, quant_mode=quant, layout=layout)
            if plan is not None:
                own = {} if arg is None else {"layout_arg": arg}
                yield Store(plan, 4, 40, seed=13, dst_stride=512, src_stride=16, **args, **own)
    loop3 = {f"loop3_{n}": "i64" for n in ("count", "src_stride", "dst_stride")}
    plan = write_back("mte_l0c_gm", ISA, "f32", "f16", loop3, layout="nz2nd")
    assert plan is not None
    yield Store(plan, 3, 10, loop3_count=3, loop3_src_stride=5, loop3_dst_stride=50)
    for dst, bound, quant, clip in (("f16", "f16", "qf322f16_pre_scalar", 2.5), ("u8", "i16", "qf322b8_pre_scalar", 100),
                                    ("i8", "i16", "qf322b8_pre_scalar", -3)):  # fmt: skip
        types = {"quant_payload": "f32", "clip": bound}
        plan = write_back("mte_l0c_ub", ISA, "f32", dst, types | {"sub_blockid": "i64"}, quant_mode=quant,
                          relu_mode="no_relu", layout="nz2nd")  # fmt: skip
        assert plan is not None
        yield Store(plan, 4, 19, seed=14, quant_payload=0.5, clip=clip, sub_blockid=0)
    for kind, dst, quant in (("f32", "f32", None), ("f16", "f16", "f322f16"), ("s32", "i32", None)):
        for op in ("add", "max", "min"):
            src = "i32" if dst == "i32" else "f32"
            plan = write_back("mte_l0c_gm", ISA, src, dst, {}, quant_mode=quant, layout="nz2nd", atomic_type=kind,
                              atomic_op=op)  # fmt: skip
            assert plan is not None
            case = Store(plan, 4, 19, seed=15, special=False)
            noise = case.pointer("dst").buffer.data
            codes = elements.encode(dst, np.arange(noise.size // 8) % 97 - 40.0) if dst != "i32" else None
            if codes is not None:  # ordinary numbers
                noise[: codes.nbytes] = codes.view(np.uint8)
            yield case


@cache
def _cases(kind: str) -> list[Case]:
    made = {
        "copies": copies,
        "moves": moves,
        "raw moves": raw_moves,
        "products": products,
        "ways out": ways_out,
    }
    return some(made[kind](), 8, by=lambda c: (c.row.name, c.plan.attrs.get("quant_mode")))


@pytest.mark.parametrize("kind", ["copies", "moves", "raw moves", "products", "ways out"])
def test_rows(kind: str) -> None:
    assert differences(_cases(kind)) == []


_SET_ELSEWHERE = """
func.func private @set() {
  %one = arith.constant 1 : i64
  pto.set_loop_size_outtoub %one, %one : i64, i64
  return
}
func.func @k(%a: !pto.ptr<f32, gm>) attributes {pto.entry} {
  %z = arith.constant 0 : i64
  %n = arith.constant 128 : i64
  %ub = pto.castptr %z : i64 -> !pto.ptr<f32, ub>
  func.call @set() : () -> ()
  pto.mte_gm_ub %a, %ub, %z, %n nburst(%n, %n, %n) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
  return
}
"""


def test_loop_registers_of_another_function_are_not_overwritten() -> None:
    with pytest.raises(DiagnosticError, match="another function sets the loop registers") as e:
        emit_cpp(parse(_SET_ELSEWHERE), target=ISA)
    assert [d.code for d in e.value.diagnostics] == ["PTO-E1301"]
    alone = _SET_ELSEWHERE.replace("  func.call @set() : () -> ()\n", "").replace(
        "private @set() {", "@set() {"
    )
    assert "copy_gm_to_ubuf_align_v2" in emit_cpp(parse(alone), target=ISA)


_NUMBERS = """
module attributes {pto.target_arch = "a5"} {
func.func @k(%start: i64, %cols: i64, %length: i64) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<cube>} {
  %zero = arith.constant 0 : i64
  %two = arith.constant 2 : i64
  %size = arith.constant 64 : i64
  %l1 = pto.castptr %zero : i64 -> !pto.ptr<i8, l1>
  %values = pto.castptr %zero : i64 -> !pto.ptr<f32, l1>
  %l0a = pto.castptr %zero : i64 -> !pto.ptr<i8, l0a>
  %l0b = pto.castptr %zero : i64 -> !pto.ptr<i8, l0b>
  %bt = pto.castptr %zero : i64 -> !pto.ptr<f32, bt>
  pto.mte_l1_l0a %l1, %l0a, %size, %size, %start, %zero : !pto.ptr<i8, l1>, !pto.ptr<i8, l0a>, i64, i64, i64, i64
  pto.mte_l1_l0b %l1, %l0b, %size, %cols {transpose = true} : !pto.ptr<i8, l1>, !pto.ptr<i8, l0b>, i64, i64
  pto.mte_l1_bt %values, %bt, %length nburst(%two, %zero, %zero) : !pto.ptr<f32, l1>, !pto.ptr<f32, bt>, i64, i64, i64, i64
  return
}
}
"""


def test_numbers_without_a_spelling_are_refused_when_they_are_known() -> None:
    """Numbers in the program, and numbers of the launch."""
    k = kernel(parse(_NUMBERS), engine="cpp")
    assert not k.run(16, 32, 16).diagnostics
    for at, bad, what in (
        (0, 8, "where 'm_start' is not a multiple of 16"),
        (2, 12, "where 'len_burst' and 'src_gap' are not multiples of 8"),
    ):
        numbers = [16, 32, 16]
        numbers[at] = bad
        (d,) = k.run(*numbers).diagnostics
        assert (d.code, what in d.message) == ("PTO-E1301", True), d
        assert d.span is not None
        name = ("start", "cols", "length")[at]
        constant = (
            _NUMBERS.replace(f"%{name}: i64, ", "")
            .replace(f", %{name}: i64", "")
            .replace("  %zero", f"  %{name} = arith.constant {bad} : i64\n  %zero", 1)
        )
        with pytest.raises(DiagnosticError) as e:
            emit_cpp(parse(constant), target=ISA)
        (told,) = e.value.diagnostics
        assert (told.code, what in told.message) == ("PTO-E1301", True), told
        assert told.span is not None and told.span.place[0] == d.span.place[0] + 1
