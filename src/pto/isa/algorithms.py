"""Algorithms of instructions that are not expressions over their operands. Rows name them.

    algorithm="sort blocks"                    the algorithm
    algorithm="index of extreme: largest"      one of its kinds, if rows use variants of it

An engine has one function for each algorithm. Its rows differ only in operands, attributes, and the range
`over` which they work.
"""

from __future__ import annotations

from .ctrl import OPERATIONS, TYPES
from .record import Record
from .row import Row


class Algorithm(Record):
    name: str
    doc: str
    kinds: tuple[str, ...] = ()  # variants that may follow the name; empty if there are none


def _algorithm(name: str, doc: str, *kinds: str) -> Algorithm:
    return Algorithm(name, doc, kinds)


_LIST = (
    # tiles
    _algorithm("convert", "Elements of another type, by rounding mode and saturation."),
    _algorithm("index of extreme", "First largest or smallest element along an axis, and its index.",
               "largest", "smallest"),
    _algorithm("pair sums", "Sums of neighboring columns, packed to the left."),
    _algorithm("part extreme", "The (value, index) pair with the larger or smaller value, of two.",
               "largest", "smallest"),
    _algorithm("load", "A window of global memory into a tile, with padding."),
    _algorithm("store", "A tile into a window of global memory, optionally quantized or combined."),
    _algorithm("prefetch", "Elements into a tile, by the row pitch of the tile."),
    _algorithm("prefetch hint", "No visible effect; returns a completed event."),
    _algorithm("gather from memory", "Elements or rows of global memory, by index."),
    _algorithm("scatter to memory", "Elements or rows into global memory, by index, optionally combined."),
    _algorithm("matrix product", "A product of matrices, with scales, accumulator or bias as operands.",
               "", "hif4"),
    _algorithm("move", "A tile into another one, through the fix-pipe if it leaves the accumulator."),
    _algorithm("quantised window", "A window of the accumulator through the fix-pipe, with a vector of "
               "parameters."),
    _algorithm("window", "A part of a tile that starts at an index."),
    _algorithm("insertion", "A tile into a part of another tile that starts at an index."),
    _algorithm("fill padding", "A tile into a larger tile; the rest is the pad value."),
    _algorithm("transposition", "Rows as columns, or another layout of a convolution tile."),
    _algorithm("concatenation", "Columns of one tile, then columns of another; all or given counts."),
    _algorithm("low bits", "The low bits of each element as a narrower element."),
    _algorithm("image to columns", "Windows of a feature map as rows of a matrix."),
    _algorithm("interleaving", "Alternating columns of two tiles."),
    _algorithm("separation", "Even and odd columns in two tiles."),
    _algorithm("sort blocks", "Records of 32 columns in descending order."),
    _algorithm("merge", "Sorted lists of records merged to one list."),
    _algorithm("gather", "Elements of a tile by index, by mask pattern or by comparison."),
    _algorithm("gather blocks", "Blocks of 32 bytes of a tile, by byte offset."),
    _algorithm("scatter", "Elements of a tile to positions by index or mask pattern."),
    _algorithm("count", "Consecutive numbers in row 0."),
    _algorithm("triangle", "Ones on one side of a diagonal."),
    _algorithm("random numbers", "Words of Philox-4x32."),
    _algorithm("histogram", "Running counts of the values of one byte, per row."),
    _algorithm("quantisation", "Elements as integers by scale and offset, or as groups with a shared "
               "exponent."),
    _algorithm("quantisation along rows", "Groups along the rows with a shared exponent."),
    _algorithm("quantisation to hif4", "Groups of 64 columns with a scale and bits that double it."),
    _algorithm("dequantisation", "(src - offset) * scale in f32, with parameters per row and column."),
    _algorithm("set element", "One element of a tile by offset."),
    _algorithm("get element", "One element of a tile by offset, as a scalar."),
    # text, traps and modes
    _algorithm("print tile", "Elements as text."),
    _algorithm("print scalar", "A scalar as text, by a format."),
    _algorithm("trap", "Stops the program with an error."),
    _algorithm("feature map", "Size and padding of a feature map into a register."),
    _algorithm("window repetition", "Repetition of windows of a feature map, into a register."),
    _algorithm("window padding", "The pad value of windows into a register."),
    _algorithm("quantisation scalar", "A parameter of the fix-pipe into a register."),
    _algorithm("quantisation vector", "Address of the parameters of the fix-pipe."),
    _algorithm("rounding mode",
               "Rounding of matrix operands to fewer bits, into a register.", "hf32", "tf32"),
    _algorithm("flag base", "Address of flags between cores."),
    _algorithm("control register", "Read or write the control register.", "get", "set"),
    _algorithm("atomic updates", "Combination of stores to global memory, in fields of the control register.",
               *OPERATIONS, *TYPES),
    # ranks
    _algorithm("copy between ranks", "Read or write a tensor of another rank, optionally with addition.",
               "to", "from"),
    _algorithm("started copy between ranks", "The same without waiting; returns an event."),
    _algorithm("session", "A handle for copies that do not wait."),
    _algorithm("event of a copy", "True if a copy is complete, which is always the case."),
    _algorithm("broadcast", "A tensor to all members of a group."),
    _algorithm("reduction of ranks",
               "Reduces tensors of all members, the root's first; each step is rounded."),
    _algorithm("gather of ranks", "Tensors of all members, in order."),
    _algorithm("scatter to ranks", "Parts of a tensor to the members."),
    _algorithm("signal", "Sets a signal, or adds to it."),
    _algorithm("test signal", "True if the comparison holds for every element of a signal."),
    # the scalar unit
    _algorithm("constant", "The value of an attribute."),
    _algorithm("scalar conversion", "A float as a narrower float, or as an integer with the cast of x86-64.",
               "", "signed", "unsigned"),
    _algorithm("scalar bits", "The same bits as another type."),
    _algorithm("load scalar", "An element by pointer and offset."),
    _algorithm("store scalar", "An element by pointer and offset."),
    _algorithm("load element", "An element by indices."),
    _algorithm("store element", "An element by indices."),
    _algorithm("view", "A descriptor of global memory or of ranks."),
    _algorithm("query", "A property of a descriptor, a core or a reservation."),
    _algorithm("pointer", "A pointer of another type, or advanced by elements."),
    _algorithm("affine map", "The numbers that an affine map computes."),
    _algorithm("event ids", "A number in an array of event ids."),
    _algorithm("local array", "An element of an array on the stack of a core."),
    # copies between memories
    _algorithm("copy in", "Bursts from global memory into UB, with padding."),
    _algorithm("copy out", "Bursts from UB into global memory."),
    _algorithm("copy between buffers", "Bursts of 32-byte blocks between buffers.",
               "gaps", "gaps to L1", "strides", "strides to L1"),
    _algorithm("copy in by registers", "Like copy in, with the loops of registers."),
    _algorithm("copy out by registers", "Like copy out, with the loops of registers."),
    _algorithm("copy loops", "Counts or strides of the loops of a copy into registers.",
               "loop_size_outtoub", "loop1_stride_outtoub", "loop2_stride_outtoub",
               "loop_size_ubtoout", "loop1_stride_ubtoout", "loop2_stride_ubtoout",
               "loop_size_outtol1", "loop1_stride_outtol1", "loop2_stride_outtol1"),
    # the cube core
    _algorithm("micro matrix product",
               "A product of fractals, added to the accumulator or a bias; with scales.",
               "", "mx"),
    _algorithm("bursts to a core", "Bursts of bytes into L1, or from L1 into UB.",
               "into L1", "out of L1", "into L1 by registers", "blocks out of L1"),
    _algorithm("fractals from memory", "Matrices by rows or columns into blocks of 32 bytes."),
    _algorithm("left operand", "A matrix of L1 as fractals of L0A."),
    _algorithm("right operand", "A matrix of L1 as fractals of L0B."),
    _algorithm("fractals of L1", "Fractals of L1 into L0A or L0B, by steps and strides of fractals.",
               "left", "right"),
    _algorithm("boxes of scales", "Scales of an operand, by steps and strides of boxes.",
               "left", "right"),
    _algorithm("operand scales", "Scales of an operand.", "left", "right"),
    _algorithm("bias", "Bias values, with narrow floats widened; by values or by blocks.", "", "blocks"),
    _algorithm("fix-pipe parameters", "Parameters of the fix-pipe, unchanged.", "", "words"),
    _algorithm("accumulator out", "A matrix of the accumulator through the fix-pipe.",
               "to L1", "to memory", "to UB"),
    # vector registers and memory
    _algorithm("load lanes", "Elements into a register, by distribution mode."),
    _algorithm("load two registers", "Elements into two registers, by distribution mode."),
    _algorithm("load strided", "Blocks with a stride into a register."),
    _algorithm("load blocks", "Blocks of 32 bytes with a stride into a register."),
    _algorithm("store lanes", "Active lanes into memory, by distribution mode."),
    _algorithm("store two registers", "Lanes of two registers into memory, by distribution mode."),
    _algorithm("store strided", "Lanes into blocks with a stride."),
    _algorithm("store blocks", "Active blocks of 32 bytes into memory with a stride."),
    _algorithm("gather lanes", "Elements of memory by offset."),
    _algorithm("gather some lanes", "Elements of memory by 64 offsets."),
    _algorithm("gather lane blocks", "Blocks of 32 bytes by offset."),
    _algorithm("scatter lanes", "Active lanes into memory by offset."),
    _algorithm("begin loads", "The first block of an unaligned load stream."),
    _algorithm("next load", "The next register of an unaligned load stream."),
    _algorithm("empty stream", "The state of a store stream before its first element."),
    _algorithm("append count", "The first lanes of a register to a store stream."),
    _algorithm("append", "A register to a store stream."),
    _algorithm("append squeezed", "The result of a squeeze to a store stream, at the address register."),
    _algorithm("append mask", "The lanes of a mask as dense bits to a store stream."),
    _algorithm("end of stream", "The remaining data of a store stream."),
    _algorithm("end of stream by register", "The remaining data of a store stream, at the address register."),
    _algorithm("clear address register", "Sets the address register to 0."),
    _algorithm("store address register", "The address register into memory; an offset counts words or bytes.",
               "words", "bytes"),
    # lanes
    _algorithm("broadcast scalar", "A scalar in every lane."),
    _algorithm("duplicate", "A scalar, or the first or last lane, in every active lane."),
    _algorithm("consecutive lanes", "Consecutive values that start at a scalar."),
    _algorithm("difference with borrow",
               "A 32-bit difference and a flag, whose meaning depends on the semantics."),
    _algorithm("convert lanes", "Lanes of another type, by rounding, saturation and part."),
    _algorithm("product and conversion", "A product with a scalar in f32, as f16 by rounding and part."),
    _algorithm("lane bits", "The same 256 bytes with another element type."),
    _algorithm("permutation", "Lanes by index, which wraps."),
    _algorithm("extreme lane", "The largest or smallest active lane, and its first position.",
               "largest", "smallest"),
    _algorithm("extreme lane and mask", "The largest or smallest active lane, and a mask of its lanes.",
               "largest", "smallest"),
    _algorithm("lane pair sums", "Sums of neighbors or running sums, depending on the semantics."),
    _algorithm("lane histogram", "Counts of byte values, or cumulative counts, added to counters.",
               "of each", "up to each"),
    _algorithm("two registers", "Alternating lanes, or even and odd lanes, of two registers, as two of them.",
               "in turn", "even and odd"),
    _algorithm("half of two registers", "One register of an interleaving or its inverse.",
               "in turn", "even and odd"),
    _algorithm("slide", "A window over two registers, or over zeros and one register."),
    _algorithm("squeeze", "Active lanes moved together; their number of bytes goes to a register."),
    _algorithm("count below", "Number of active lanes below each lane."),
    _algorithm("pack lanes", "Low halves of lanes."),
    _algorithm("unpack lanes", "Half of the lanes as lanes of twice the width."),
    _algorithm("block transposition", "A matrix of 16 x 16 elements in memory, transposed."),
    _algorithm("sort values", "32 values in descending order, with their indices."),
    _algorithm("sort records", "Records of value and index in descending order."),
    _algorithm("merge lists", "Two to four sorted lists of records merged to one list."),
    _algorithm("merge status", "Number of records that the last merge took from each list."),
    # masks
    _algorithm("mask by pattern", "A mask from a pattern or a count; the kind is the width of its lanes.",
               "b8", "b16", "b32"),
    _algorithm("mask of the rest", "A mask of the first lanes by a count, and the rest of the count.",
               "b8", "b16", "b32"),
    _algorithm("mask image", "The same bits as a mask for another lane width."),
    _algorithm("pack mask", "Every other bit of a mask in one half."),
    _algorithm("unpack mask", "One half of a mask over every other bit."),
    _algorithm("masks in turn", "Alternating lanes of two masks, as two masks.", "b8", "b16", "b32"),
    _algorithm("even and odd masks", "Even and odd lanes of two masks.", "b8", "b16", "b32"),
    _algorithm("load mask", "A mask from memory; the kind is the unit of the offset.",
               "bytes", "words", "units"),
    _algorithm("store mask", "A mask into memory; the kind is the unit of the offset.",
               "bytes", "words", "units"),
)  # fmt: skip
ALGORITHMS: dict[str, Algorithm] = {a.name: a for a in _LIST}


def kind_of(row: Row) -> tuple[str, str]:
    """Return the algorithm that a row names, and its kind; both are empty if the row names none."""
    name, _, kind = row.algorithm.partition(": ")
    return name, kind
