"""Copies of the cube core by the words of their calls: fractals and boxes one by one, bursts under registers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pto.engine.elements import ARRAY_DTYPES
from pto.engine.reference.core import Core, RunError
from pto.engine.reference.grid import Cluster
from pto.isa.profiles import profile
from pto.witness.plan import Plan

from .cases import plans_of, shown, with_attrs
from .fractals import Bench, c0, element, read

FEEDS = ("load_cbuf_to_ca", "load_cbuf_to_cb", "load_cbuf_to_ca_s4", "load_cbuf_to_cb_s4")
SCALES = ("load_cbuf_to_ca_mx", "load_cbuf_to_cb_mx")
LOOPS = ("set_loop_size_outtol1", "set_loop1_stride_outtol1", "set_loop2_stride_outtol1")
TABLES = ("copy_cbuf_to_bt", "copy_cbuf_to_fbuf")
ROWS = (*FEEDS, *SCALES, *LOOPS, *TABLES, "copy_gm_to_cbuf", "copy_cbuf_to_ubuf")

FRACTAL = 512
#: m_start, k_start, m_step, k_step, src_stride, dst_stride
WINDOWS = ((0, 0, 1, 1, 1, 1), (1, 2, 2, 2, 4, 3), (0, 1, 3, 2, 3, 2), (2, 0, 2, 3, 2, 2), (0, 0, 0, 2, 1, 1))
WORDS = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")


def feed(plan: Plan, window: tuple[int, ...], transpose: bool) -> Bench:
    if "transpose" in plan.operands:
        return Bench(plan, **dict(zip(WORDS, window, strict=True)), transpose=int(transpose))
    made = with_attrs(plan, transpose=transpose)
    assert made is not None
    return Bench(made, **dict(zip(WORDS, window, strict=True)))


def by_rows(plan: Plan) -> bool:
    return plan.isa == "a2a3" and "_ca" in plan.row.name


@pytest.mark.parametrize("name", FEEDS)
def test_fractals_are_copied_one_by_one(name: str) -> None:
    for plan, window in product(plans_of(name), WINDOWS):
        row, col, rows, cols, below, beside = window
        case = feed(plan, window, transpose=False)
        src, dst = case.pointer("src"), case.pointer("dst")
        want = dst.buffer.data.copy()
        for j, i in product(range(cols), range(rows)):
            at = src.offset + ((col + j) * below + row + i) * FRACTAL
            to = dst.offset + (i * cols + j if by_rows(plan) else j * beside + i) * FRACTAL
            want[to : to + FRACTAL] = src.buffer.data[at : at + FRACTAL]
        case.execute()
        assert (dst.buffer.data == want).all(), (shown(plan), window)


@pytest.mark.parametrize("name", FEEDS)
def test_elements_of_transposed_fractals(name: str) -> None:
    """Row r and column c of the source are column r and row c of the destination."""
    for plan, window in product(plans_of(name), WINDOWS[:4]):
        row, col, rows, cols, below, beside = window
        case = feed(plan, window, transpose=True)
        width = c0(element(plan, "src"))
        down, across = rows * 16, min(cols * width, beside * 16)

        def there(r, c, row=row, col=col, below=below, width=width):
            return (((col + c // width) * below + row + r // 16) * 16 + r % 16) * width + c % width

        def here(c, r, plan=plan, beside=beside, width=width, down=down):
            wide = -(-down // width)
            fractal = c // 16 * wide + r // width if by_rows(plan) else r // width * beside + c // 16
            return (fractal * 16 + c % 16) * width + r % width

        codes = read(case.pointer("src"), there, down, across)
        before = case.pointer("dst").buffer.data.copy()
        case.execute()
        assert (read(case.pointer("dst"), here, across, down) == codes.T).all(), (shown(plan), window)
        assert (case.pointer("dst").buffer.data != before).any()


@pytest.mark.parametrize("name", SCALES)
def test_boxes_of_scales(name: str) -> None:
    names = ("x_start_position", "y_start_position", "x_step", "y_step", "src_stride", "dst_stride")
    for plan, window in product(plans_of(name), ((0, 0, 1, 1, 1, 1), (1, 2, 3, 2, 5, 2), (0, 0, 2, 0, 1, 1))):
        case = Bench(plan, **dict(zip(names, window, strict=True)))
        x, y, rows, boxes, below, beside = window
        src = case.pointer("src")
        dst = case.scale_pointer("dst", "scale_left" if "_ca" in name else "scale_right")
        want = dst.buffer.data.copy()
        for i, j in product(range(rows), range(boxes)):
            at, to = src.offset + ((x + i) * below + y + j) * 32, dst.offset + (i * beside + j) * 32
            want[to : to + 32] = src.buffer.data[at : at + 32]
        case.execute()
        assert (dst.buffer.data == want).all(), (shown(plan), window)


def test_bursts_under_the_registers_of_l1() -> None:
    """Registers are words: the inner count, and the stride in global memory, in the low bits."""
    count, length, source, target = 2, 32, 64, 96
    inner, outer = (3, 256, 512), (2, 1024, 2048)
    for plan in plans_of("copy_gm_to_cbuf"):
        case = Bench(plan, n_burst=count, len_burst=length, src_stride=source, dst_stride=target)
        for name, word in zip(LOOPS, (
            inner[0] | outer[0] << 21, inner[1] | inner[2] << 40, outer[1] | outer[2] << 40,
        ), strict=True):  # fmt: skip
            setting = Bench(plans_of(name, plan.isa)[0], word=word)
            setting.execute()
            case.core.registers.update(setting.core.registers)
        src, dst = case.pointer("src"), case.pointer("dst")
        want = dst.buffer.data.copy()
        for j, k, r in product(range(outer[0]), range(inner[0]), range(count)):
            at = src.offset + j * outer[1] + k * inner[1] + r * source
            to = dst.offset + j * outer[2] + k * inner[2] + r * target
            want[to : to + length] = src.buffer.data[at : at + length]
        case.execute()
        assert (dst.buffer.data == want).all(), shown(plan)


def test_blocks_to_either_vector_core() -> None:
    for sid in (0, 1):
        plan = plans_of("copy_cbuf_to_ubuf", "a5")[0]
        case = Bench(plan, sid=sid, n_burst=2, len_burst=3, src_stride=1, dst_stride=2)
        case.core.kind = "cube"
        case.core.cluster = cluster = Cluster(0)
        vectors = [Core(profile("a5"), kind="vector", sub=n) for n in (0, 1)]
        cluster.cores = [case.core, *vectors]
        src, dst = case.pointer("src"), case.pointer("dst")
        want = np.zeros_like(vectors[0].buffers["vec"].data)
        for r in range(2):
            at, to = src.offset + r * 4 * 32, dst.offset + r * 5 * 32
            want[to : to + 96] = src.buffer.data[at : at + 96]
        case.execute()
        assert (vectors[sid].buffers["vec"].data == want).all()
        assert not vectors[1 - sid].buffers["vec"].data.any()


def table_case(plan: Plan, length: int, count: int, gaps: tuple[int, int], widen: int) -> Bench:
    own = {"conv_control": widen} if "conv_control" in plan.operands else {}
    return Bench(plan, n_burst=count, len_burst=length, source_gap=gaps[0], dst_gap=gaps[1], **own)


def test_tables_of_bias_and_parameters() -> None:
    """Bytes unchanged, in units; in a bias, bf16 is widened, and f16 if the call requires it."""
    for name in TABLES:
        for plan, (length, count, gaps), widen in product(
            plans_of(name), ((2, 3, (1, 2)), (1, 1, (0, 0)), (0, 2, (1, 1))), (0, 1)
        ):
            case = table_case(plan, length, count, gaps, widen)
            dtype = element(plan, "src")
            unit = 32 if name.endswith("bt") else {"a2a3": 128}.get(plan.isa, 64)
            grows = name.endswith("bt") and (dtype == "bf16" or (dtype == "f16" and widen))
            src, dst = case.pointer("src"), case.pointer("dst")
            if grows:
                src.buffer.data.view(np.uint16)[...] &= 0xBFFF  # finite numbers
            want = dst.buffer.data.copy()
            for r in range(count):
                at, to = (
                    p.offset + r * (length + gap) * unit for p, gap in zip((src, dst), gaps, strict=True)
                )
                found = src.buffer.data[at : at + length * unit]
                if grows:
                    to = dst.offset + r * (length + gaps[1]) * unit * 2
                    codes = found.view(ARRAY_DTYPES[dtype])
                    found = codes.astype(np.float32).view(np.uint8)
                want[to : to + found.size] = found
            case.execute()
            assert (dst.buffer.data == want).all(), (shown(plan), length, widen)


def test_words_that_do_not_fit() -> None:
    plan = plans_of("load_cbuf_to_ca", "a5")[0]
    for name, value, bits in (("m_step", 256, 8), ("src_stride", 1 << 16, 16)):
        case = feed(plan, WINDOWS[0], transpose=False)
        case.args[name] = value
        with pytest.raises(RunError, match=f"expects {name} to fit {bits} bits, got {value}"):
            case.execute()
    case = Bench(plans_of("copy_cbuf_to_ubuf", "a5")[0], sid=2, n_burst=1, len_burst=1)
    with pytest.raises(RunError, match=r"expects sid to be 0\.\.1, got 2"):
        case.execute()
