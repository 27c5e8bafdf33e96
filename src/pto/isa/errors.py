"""The catalogue of diagnostic codes: the meaning of each code, and a way out.

The codes of the vendor stack come first: SA static assertions, PA run-time assertions of the device, CA
assertions of the CPU simulator, and the general codes E, L, R, M, N, P and F. The PTO-Exxxx codes of this
package are `OWN`, at the end. If the vendor documents several ids as one group, every id has the condition of
the whole group.
"""

from __future__ import annotations

from collections.abc import Iterator

from .own_errors import FACTS
from .record import Record


class CatalogueEntry(Record):
    code: str
    title: str
    explain: str
    fix: str
    recipe: str = ""  # the documented way out, FIX-A12


#: The documented ways out, FIX-A01 and so on. A group below names one, has a sentence of its own, or both.
RECIPES: dict[str, str] = {
    "A01": "Pass exactly as many constructor arguments as there are dynamic dimensions.",
    "A02": "Use the run-time getter for a dynamic dimension.",
    "A03": "Make NZ rows a multiple of 16 and columns a multiple of C0 (32 bytes / element size).",
    "A04": "Make the row (or column, if column-major) a multiple of 32 bytes, or use a boxed layout.",
    "A05": "Give the operands matching valid regions that fit their tiles.",
    "A06": "Change the element type or layout to a supported one, or convert first.",
    "A07": "Pair events and tsync by different operations on different pipes; the plain barrier form is for "
           "vector operations only.",
    "A08": "Put the tile in the required location, with a tmov before if needed.",
    "A09": "Correct the shape, stride or range of the global tensor.",
    "A10": "Make gather and scatter operands contiguous and aligned.",
    "A11": "Keep zeros out of the divisor.",
    "A12": "Choose an address that is aligned and leaves room for the tile in its buffer, or a smaller tile.",
}  # fmt: skip

#: Checks of many instructions: title, condition ({op} = the instruction), recipe.
_CHECKS: dict[str, tuple[str, str, str]] = {
    "dtype": ("unsupported element type", "{op} does not accept the element type", "A06"),
    "dtype@a2a3": ("unsupported element type", "{op} does not accept the element type on A2/A3", "A06"),
    "dtype@a5": ("unsupported element type", "{op} does not accept the element type on A5", "A06"),
    "same": ("element types differ", "the tiles of {op} do not have one element type", "A06"),
    "layout": ("unsupported layout", "a tile of {op} is not row-major", "A06"),
    "layout@a2a3": ("unsupported layout", "a tile of {op} is not row-major on A2/A3", "A06"),
    "layout@a5": ("unsupported layout", "a tile of {op} is not row-major on A5", "A06"),
    "shape": ("shapes do not fit", "the operand shapes of {op} do not fit each other", "A05"),
    "vcol": ("valid columns exceed the tile", "a tile of {op} has more valid columns than columns", "A05"),
    "vrow": ("valid rows exceed the tile", "a tile of {op} has more valid rows than rows", "A05"),
    "vec": ("tile not in Vec", "a tile of {op} is not in Vec", "A08"),
    "cols": ("valid columns differ", "source and destination of {op} differ in valid columns", "A05"),
    "rows": ("valid rows differ", "source and destination of {op} differ in valid rows", "A05"),
}

#: Consecutive ids of one instruction: first id, instruction, checks in order.
_RUNS: tuple[tuple[str, str, str], ...] = (
    ("SA-0130", "tabs", "dtype vcol vrow vec"),
    ("SA-0134", "tadd", "dtype layout@a5 layout@a2a3"),
    ("SA-0137", "tadds", "dtype@a2a3"),
    ("SA-0138", "tile-scalar operations", "dtype@a5"),
    ("SA-0141", "tcolexpanddiv", "dtype layout"),
    ("SA-0143", "tcolexpandexpdif", "dtype layout"),
    ("SA-0145", "tcolexpandmul", "dtype layout"),
    ("SA-0147", "tcolexpandsub", "dtype layout"),
    ("SA-0150", "tdiv", "dtype layout"),
    ("SA-0152", "tdivs", "dtype"),
    ("SA-0153", "texp", "dtype layout vcol vrow vec"),
    ("SA-0158", "texpands", "dtype"),
    ("SA-0238", "tlog", "dtype vcol vrow vec"),
    ("SA-0248", "tmax", "dtype layout@a5 layout@a2a3"),
    ("SA-0251", "tmin", "dtype layout@a5 layout@a2a3"),
    ("SA-0283", "tmul", "dtype layout layout"),
    ("SA-0286", "tmuls", "dtype"),
    ("SA-0297", "trecip", "dtype vcol vrow vec"),
    ("SA-0306", "trowexpanddiv", "dtype shape same"),
    ("SA-0309", "trowexpandexpdif", "dtype shape same"),
    ("SA-0312", "trowexpandmul", "dtype shape same"),
    ("SA-0315", "trowexpandsub", "dtype shape same"),
    ("SA-0318", "trsqrt", "dtype layout vcol vrow vec"),
    ("SA-0326", "tsel", "dtype"),
    ("SA-0327", "tsels", "dtype dtype"),
    ("SA-0332", "tsqrt", "dtype layout vcol vrow vec"),
    ("SA-0339", "tsub", "dtype layout@a2a3 layout@a5"),
    ("PA-0024", "tabs", "cols rows"),
    ("PA-0026", "texp", "cols rows"),
    ("PA-0049", "tlog", "cols rows"),
    ("PA-0055", "trecip", "cols rows"),
    ("PA-0060", "trsqrt", "cols rows"),
    ("PA-0062", "tsqrt", "cols rows"),
)

#: Groups of ids: ids, where, title, condition, recipe or fix. A later group overrides an earlier one.
_Group = tuple[str, str, str, str, str]

_STATIC: tuple[_Group, ...] = (
    ("0001", "Shape/Stride", "wrong argument count",
     "a one-argument constructor meets other than 1 dynamic dimension", "A01"),
    ("0002", "Shape/Stride", "wrong argument count",
     "a two-argument constructor meets other than 2 dynamic dimensions", "A01"),
    ("0003", "Shape/Stride", "wrong argument count",
     "a three-argument constructor meets other than 3 dynamic dimensions", "A01"),
    ("0004", "Shape/Stride", "wrong argument count",
     "a four-argument constructor meets other than 4 dynamic dimensions", "A01"),
    ("0005", "A5 matmul", "bad accumulator type", "the accumulator is neither i32 nor f32", "A06"),
    ("0006", "Tile", "row not aligned",
     "an unboxed row-major tile has rows, or a column-major one columns, not a multiple of 32 bytes", "A04"),
    ("0007 0093", "NZ shape", "NZ dimensions not aligned",
     "the columns of an NZ shape are not a multiple of C0, or its rows not a multiple of 16", "A03"),
    ("0008", "trowexpand A2/A3", "bad element width", "the element is not 8, 16 or 32 bits wide", "A06"),
    ("0009", "tload A5", "bad element width", "the element is not 8, 16, 32 or 64 bits wide", "A06"),
    ("0010", "tload A2/A3", "unsupported element type",
     "the element is neither an 8 to 64-bit integer nor f16, bf16 or f32", "A06"),
    ("0011", "tstore A2/A3", "unsupported element type",
     "the element is neither an 8 to 64-bit integer nor f16, bf16 or f32", "A06"),
    ("0012-0014 0102", "tmov", "bad accumulator move",
     "the destination is not Vec or Mat, the fractal size is not 512, or the source is not Acc", "A08"),
    ("0015-0019", "GlobalTensor", "static getter on a dynamic dimension",
     "a compile-time getter asks for a dynamic dimension", "A02"),
    ("0020 0129", "vector store A5", "bad element width", "the element is not 8, 16 or 32 bits wide", "A06"),
    ("0021", "tload A5", "fp4 cannot go DN to NZ", "a DN to NZ load moves an fp4 type", "A06"),
    ("0041", "tload A5", "64-bit cannot go to NZ", "an ND or DN to NZ load moves a 64-bit type", "A06"),
    ("0022 0023 0027 0028 0049 0058 0186 0203 0205 0228 0229 0329-0331", "tsort32", "bad sort operand",
     "the data is not one of f32 and f16 throughout, the index not u32, or a tile not row-major, unboxed, "
     "in Vec and of the common stride", "A06"),
    ("0024-0026", "tmov/tstore", "unsupported accumulator type",
     "an accumulator move or store does not accept the element type", "A06"),
    ("0029 0107", "tmov", "accumulator to Mat is not NZ", "source or destination is not in NZ layout", "A06"),
    ("0030", "tmov", "row not aligned", "the destination row is empty or not a multiple of 32 bytes", "A04"),
    ("0031", "tmov", "column not aligned",
     "the destination column is empty or not a multiple of 32 bytes", "A04"),
    ("0032 0033 0103 0111 0112", "tload/trowexpand", "bad location or layout",
     "a tload destination or a trowexpand operand does not have the location (Vec) or layout (ND) required",
     "A08"),
    ("0034-0040 0113-0115 0119-0121", "textract", "tile not aligned",
     "rows or columns of source or destination are not a multiple of 16 or of C0", "A03"),
    ("0037", "Event", "bad destination operation",
     "the destination operation of an event is not valid", "A07"),
    ("0116", "Event", "bad source operation", "the source operation of an event is not valid", "A07"),
    ("0117", "Event", "operations equal", "source and destination operation of an event are the same", "A07"),
    ("0118", "Event", "pipes equal", "both operations of an event run on one pipe", "A07"),
    ("0042 0092", "tmov A5", "dual destination not available",
     "a dual-destination move is combined with NZ to DN or with quantization", "Use a single destination."),
    ("0043", "tmrgsort", "does not fit UB",
     "the lists of a merge sort need more than the UB", "Sort shorter lists."),
    ("0044-0048 0050 0051 0139 0140", "tgather/tci", "bad index",
     "the index width or size does not suit tgather, or a tci tile has a bad type or several rows", "A10"),
    ("0052", "quantized forms", "scale tile not in Scaling", "the fp operand is not a Scaling tile", "A08"),
    ("0053", "tassign", "no pointer", "the address of a global tensor is not a pointer", "A12"),
    ("0054", "tassign", "bad pointer type",
     "the pointer does not have the type of the global tensor", "A12"),
    ("0089", "tassign", "bad operand", "the operand is neither a tile nor a global tensor", "A12"),
    ("0218", "tassign", "bad address", "the address of a tile is not an integer", "A12"),
    ("0055-0057", "tload", "not two-dimensional", "an NZ conversion meets a global tensor of more than 2 "
     "dimensions", "A09"),
    ("0059 0060 0079 0080 0225-0227", "tmatmul", "operands do not fit",
     "m, k or n disagree, a fractal is wrong, or a tile is not in its role of Left, Right or Acc", "A08"),
    ("0061", "trowsum CPU", "shapes do not fit", "source and destination do not have row-sum shapes", "A05"),
    ("0062 0081 0185", "tmov/tmatmul", "unsupported element type",
     "the operation does not accept the element type", "A06"),
    ("0063", "treshape/get_scale_addr", "input not a tile", "the input is not a tile", "A08"),
    ("0090", "treshape/get_scale_addr", "output not a tile", "the output is not a tile", "A08"),
    ("0064", "Tile", "layout not legal", "the location, outer and inner layout do not go together", "A06"),
    ("0065", "Tile", "bad size", "rows or columns are not positive, or the valid region exceeds them", "A05"),
    ("0066", "Tile", "columns do not fill boxes", "the columns are not a multiple of the box columns", "A03"),
    ("0067", "Tile", "rows do not fill boxes", "the rows are not a multiple of the box rows", "A03"),
    ("0094", "Tile", "empty box", "the inner box has no rows or no columns", "A06"),
    ("0095", "Tile", "bad fractal size", "the fractal size is not 512, 1024 or 32", "A06"),
    ("0068 0074-0078 0219", "tmatmul", "unsupported combination",
     "i8 operands lack an i32 accumulator, the operands of an f32 one are not supported, or the bias has a "
     "wrong type, fractal or more than one row", "A06"),
    ("0069 0070 0072 0073", "mgather/mscatter", "bad element or index",
     "the element size is not supported or the indexes are not integers", "A10"),
    ("0071", "mask", "bad mask index", "a mask index is out of range", "Use a defined mask pattern."),
    ("0082 0104 0105 0108-0110 0124-0126", "tload/tstore", "layouts do not pair",
     "global and tile layout do not pair, a shape differs from the valid region, or NZ dimensions are wrong",
     "A09"),
    ("0083", "Tile", "valid exceeds physical", "a static valid dimension is larger than the tile", "A05"),
    ("0084", "Tile", "valid exceeds physical", "a static valid dimension is larger than the tile", "A05"),
    ("0085", "tload/tstore CPU", "unsupported view layout", "the global view is neither ND nor DN", "A09"),
    ("0086", "GlobalTensor", "bad dimension index", "the dimension index is not 0 to 4", "A09"),
    ("0087 0091 0207-0212", "reductions", "bad operand",
     "the type is not f16 or f32 throughout, a tile is not in Vec, or not ND (the destination also DN with "
     "one column)", "A06"),
    ("0088 0122", "tmov A5", "bad accumulator move",
     "the layout change is none of NZ to NZ, ND or DN, or a size is not a multiple of 512 bytes", "A06"),
    ("0096", "tsync", "not a vector operation", "the single-operation form names no vector operation", "A07"),
    ("0097", "Tile", "bad element width", "the element is not 4 bytes wide", "A06"),
    ("0098 0099", "tload/tstore", "element types differ",
     "global tensor and tile differ in element type", "A06"),
    ("0100 0101", "tstore", "bad source location",
     "the source is not in Vec or Acc (A5), or in Vec, Acc or Mat (A2/A3)", "A08"),
    ("0106 0191-0200 0204", "tmov/tstore", "unsupported fixpipe types",
     "the source is not f32 or i32, or the output type does not go with the quantization mode", "A06"),
    ("0123 0342-0347", "ttrans", "bad operand",
     "shape, element type or layout does not suit a transpose", "A06"),
    ("0127 0128 0178-0183", "tgather/tgatherb", "bad operand",
     "the type is not supported, a size is wrong, or a tile is not row-major in Vec", "A10"),
    ("0159-0167", "textract", "bad operand",
     "the element types differ or are not supported, or a fractal of source, Left, Right or destination is "
     "wrong", "A06"),
    ("0168-0177", "tfillpad", "bad operand",
     "the pad value is Null, the element types differ or are not supported, or the shapes do not fit", "A06"),
    ("0184 0201 0202 0224 0236", "tload/tstore", "size limit exceeded",
     "rows exceed 16384 or columns exceed 4095", "Use smaller tiles."),
    ("0187-0190", "column reductions", "bad element type",
     "the type is not supported, or source, destination and tmp differ in it", "A06"),
    ("0192", "tstore", "bad accumulator store",
     "the layout of an accumulator store is neither ND nor NZ", "A06"),
    ("0206 0287-0296", "tpart*", "bad operand",
     "type or layout is not supported, or the types differ", "A06"),
    ("0213-0217", "row reductions A2/A3", "fast path not available",
     "a fast path meets another type than f32 or another shape than its own", "A06"),
    ("0220-0223", "tload", "bad NZ tile or pad",
     "an NZ fractal is not 512, the tile exceeds L1, or a 64-bit load pads with other than Null or Zero",
     "A06"),
    ("0230", "tcmp and tile-scalar", "destination not in Vec", "the destination is not in Vec", "A08"),
    ("0231", "tcmp and tile-scalar", "tile not in Vec", "source or destination is not in Vec", "A08"),
    ("0232", "tcmp and tile-scalar", "source not in Vec", "the source is not in Vec", "A08"),
    ("0233-0235 0237", "tload", "bad conversion or pad",
     "the layout conversion is not supported, or the pad does not have the element type", "A06"),
    ("0242-0247", "tmatmul_mx", "operands do not fit",
     "m, k or n disagree, k is not a multiple of 64, or bias, type or fractal is wrong", "A06"),
    ("0254-0273", "tmov", "bad operand",
     "type, fractal, location, shape, or the size and alignment of a Bias or Scaling tile is wrong", "A08"),
    ("0274-0282", "tmrgsort", "bad operand",
     "a tile is not row-major, of one row and in Vec, or its element type is not supported", "A06"),
    ("0301", "treshape", "boxed and unboxed", "one tile is boxed and the other is not", "A06"),
    ("0302", "treshape", "types of two families", "the element types belong to different families", "A06"),
    ("0303 0304", "treshape", "locations differ",
     "the tiles do not have the required common location", "A08"),
    ("0305", "treshape", "sizes differ", "the tiles do not have the same size in bytes", "A05"),
    ("0323", "tscatter", "index not integral", "the index type is not an integer", "A10"),
    ("0324", "tscatter", "unsupported element type", "tscatter does not accept the element type", "A06"),
    ("0325", "tscatter", "unsupported index type", "tscatter does not accept the index type", "A10"),
    ("0337", "tstore", "bad accumulator store",
     "an accumulator store is neither NZ to ND nor NZ to NZ", "A06"),
    ("0338", "tstore", "bad 64-bit store", "a 64-bit store is neither ND nor DN", "A06"),
    ("0348", "tcmp CPU", "bad compare mode", "the compare mode is unknown", "Use one of eq ne lt le gt ge."),
    ("0349", "element operation CPU", "not supported", "the element operation is unknown", "A06"),
    ("0350", "tload/tstore", "bad NZ view", "the last dimensions of an NZ view are not static 16 and "
     "32 / element size", "A03"),
    ("0351", "tile address", "no such buffer", "the target has no buffer for the tile's location",
     "A12: Use a location that the target has, or another target."),
    ("0352", "tile address", "tile too big", "the tile is larger than its buffer",
     "A12: Use a smaller tile, or split the work."),
    ("0353", "tile address", "out of bounds", "address plus size exceeds the buffer", "A12"),
    ("0354", "tile address", "misaligned", "the address is not a multiple of the buffer's alignment", "A12"),
)  # fmt: skip

_RUNTIME: tuple[_Group, ...] = (
    ("0001", "tmrgsort", "bad block length", "blockLen is not a multiple of 64", "Use a multiple of 64."),
    ("0003", "tmrgsort", "bad valid columns", "the valid columns are not a multiple of 4 * blockLen", "A05"),
    ("0004", "tmrgsort", "bad ratio", "the ratio of columns to block length is not 1 to 255",
     "Choose a block length nearer to the list."),
    ("0008", "tmrgsort", "does not fit UB", "the lists need more than the UB", "Sort shorter lists."),
    ("0002", "tstore", "unsupported element type", "tstore does not accept the element type", "A06"),
    ("0005", "tmatmul", "bad left columns", "the valid columns of the left tile are not 1 to 4095", "A05"),
    ("0006", "tmatmul", "bad left rows", "the valid rows of the left tile are not 1 to 4095", "A05"),
    ("0007", "tmatmul", "bad right columns", "the valid columns of the right tile are not 1 to 4095", "A05"),
    ("0009", "tgather", "destination not contiguous", "the destination has gaps between its rows", "A10"),
    ("0010", "division", "zero divisor", "a divisor is zero", "A11"),
    ("0011", "textract", "column index not aligned", "the column index is not aligned", "A03"),
    ("0012", "textract", "row index not aligned", "the row index is not aligned", "A03"),
    ("0013", "textract", "column index not aligned", "the column index is not a multiple of 16", "A03"),
    ("0014", "textract", "row index not aligned", "the row index is not a multiple of 16", "A03"),
    ("0015", "textract", "column index not aligned", "the column index is not a multiple of C0", "A03"),
    ("0016", "textract", "row index not aligned", "the row index is not a multiple of C0", "A03"),
    ("0017", "valid region", "valid columns differ", "src and dst differ in valid columns", "A05"),
    ("0020", "valid region", "valid rows differ", "src and dst differ in valid rows", "A05"),
    ("0018", "valid region", "valid columns differ", "src and index differ in valid columns", "A05"),
    ("0021", "valid region", "valid rows differ", "src and index differ in valid rows", "A05"),
    ("0019", "valid region", "valid columns differ", "src0, src1 and dst differ in valid columns", "A05"),
    ("0022", "valid region", "valid rows differ", "src0, src1 and dst differ in valid rows", "A05"),
    ("0023", "tstore", "not two-dimensional", "an NZ to ND store meets more than 2 dimensions", "A09"),
    ("0048", "tstore", "rows differ", "the valid rows differ from dimension 3 of the global tensor", "A09"),
    ("0064", "tstore", "bad valid rows", "the valid rows are not 1 to 8192", "A05"),
    ("0028", "tload/tstore", "row not aligned",
     "dimension 3 of a DN tensor is not a multiple of 32 bytes", "A04"),
    ("0029", "tload/tstore", "row not aligned",
     "dimension 4 of an ND tensor is not a multiple of 32 bytes", "A04"),
    ("0030", "reductions", "empty valid region", "the valid region is empty", "A05"),
    ("0031", "reductions", "valid columns differ", "the valid columns do not fit the reduction", "A05"),
    ("0032", "reductions", "valid rows differ", "the valid rows do not fit the reduction", "A05"),
    ("0033", "tload/tstore", "bad valid columns", "the valid columns are not 1 to 4095", "A05"),
    ("0034-0039", "tload/tstore", "global tensor out of range",
     "a dimension is not positive, or dimension 3 or 4 or stride 3 exceeds its limit (16384 or 65535)",
     "A09"),
    ("0040", "textract", "window too wide", "the window ends beyond the source columns", "A05"),
    ("0041", "textract", "window too tall", "the window ends beyond the source rows", "A05"),
    ("0042", "tload/tstore", "NZ columns differ", "the valid columns are not shape 0 * 1 * 4", "A09"),
    ("0043", "tload/tstore", "DN columns differ", "the valid columns are not shape 3", "A09"),
    ("0044", "tload/tstore", "ND columns differ", "the valid columns are not shape 4", "A09"),
    ("0045", "tload/tstore", "ND rows differ", "the valid rows are not shape 0 * 1 * 2 * 3", "A09"),
    ("0046", "tload/tstore", "DN rows differ", "the valid rows are not shape 0 * 1 * 2 * 4", "A09"),
    ("0047", "tload/tstore", "NZ rows differ", "the valid rows are not shape 2 * 3", "A09"),
    ("0051-0054", "tpart*", "both dimensions smaller",
     "more than one source dimension is smaller than the destination's", "A05"),
    ("0057", "trowexpanddiv", "bad src1 shape", "src1 does not have one value per row", "A05"),
    ("0058", "trowexpandmul", "bad src1 shape", "src1 does not have one value per row", "A05"),
    ("0059", "trowexpandsub", "bad src1 shape", "src1 does not have one value per row", "A05"),
)  # fmt: skip

_CPU: tuple[_Group, ...] = (
    ("0001", "tmov", "valid regions differ", "source and destination differ in valid region", "A05"),
    ("0002", "tload", "extents differ", "the global extents are not the valid rows and columns", "A09"),
    ("0003", "tgather", "partly valid row",
     "the valid columns of the destination are not its columns", "A05"),
    ("0004", "tload", "not two-dimensional",
     "an ND or DN to NZ or ZN load meets more than 2 dimensions", "A09"),
    ("0005", "tstore", "not two-dimensional",
     "an NZ or ZN to ND or DN store meets more than 2 dimensions", "A09"),
    ("0006", "textract", "window does not fit",
     "the valid region of the destination is not that of the source less the index", "A05"),
    ("0007", "tgatherb", "row not aligned", "a valid row is not a multiple of 32 bytes", "A10"),
)  # fmt: skip

_GENERAL: tuple[_Group, ...] = (
    ("E001", "build", "pto header not found", "the compiler does not find the pto headers",
     "Add the include directory of pto to the compiler's search path."),
    ("E002", "Tile", "tile not aligned", "a tile row is not a multiple of 32 bytes", "A04"),
    ("E003", "operands", "mixed operands", "one operation mixes element types or shapes",
     "Insert a tcvt, or give the operands one type and shape."),
    ("E004", "build", "compiler too old", "the compiler lacks C++20", "Use gcc 13, clang 15 or newer."),
    ("L001", "link", "undefined reference", "a symbol has no definition at link time",
     "Link the library that defines it."),
    ("L002", "link", "shared library missing", "a shared library is not found at start",
     "Put its directory on the run path or the library search path."),
    ("R001", "launch", "kernel launch failed", "the launch is refused",
     "Check the block count and the argument types."),
    ("R002", "run", "assertion failed", "a run-time assertion does not hold",
     "Validate the inputs against the condition printed with it."),
    ("R003", "run", "null pointer", "a kernel meets a null pointer", "Check the global memory pointers."),
    ("M001", "memory", "on-chip buffer overflow",
     "the tiles need more than a buffer holds", "Use smaller tiles."),
    ("M002", "memory", "misaligned address", "an address is not aligned as required",
     "Align it, for example to 64 bytes."),
    ("N001", "numerics", "precision error", "results are further from the reference than allowed",
     "Use a wider element type, or a tolerance that suits the type."),
    ("N002", "numerics", "NaN or infinity", "a result is NaN or infinite",
     "Add an epsilon to divisors and logarithms, and check the range of the type."),
    ("P001", "performance", "slow kernel", "a kernel is slower than expected",
     "Move more data per transfer, and overlap transfers with computation."),
    ("F001", "framework", "operator not registered", "the framework does not know the operator",
     "Register it before use."),
    ("F002", "framework", "device mismatch", "tensors and kernel are on different devices",
     "Move the tensors to the device of the kernel."),
)  # fmt: skip


def _ids(text: str, prefix: str) -> Iterator[str]:
    """Expand `0001-0004 0010` to SA-0001 .. SA-0004, SA-0010."""
    for word in text.split():
        first, _, last = word.partition("-")
        if not prefix:
            yield word
            continue
        for number in range(int(first), int(last or first) + 1):
            yield f"{prefix}-{number:04d}"


def _entry(code: str, where: str, title: str, condition: str, fix: str) -> CatalogueEntry:
    name, _, own = fix.partition(": ")
    recipe = f"FIX-{name}" if name in RECIPES else ""
    way = (own or RECIPES[name]) if recipe else fix
    return CatalogueEntry(code, f"{where}: {title}", f"Raised when {condition}.", way, recipe)


def _field() -> Iterator[CatalogueEntry]:
    """Yield the entries of the vendor stack. If a code occurs twice, the later entry is more specific."""
    for first, op, checks in _RUNS:
        prefix, number = first.split("-")
        for offset, check in enumerate(checks.split()):
            title, condition, recipe = _CHECKS[check]
            yield _entry(f"{prefix}-{int(number) + offset:04d}", op, title, condition.format(op=op), recipe)
    for prefix, groups in (("SA", _STATIC), ("PA", _RUNTIME), ("CA", _CPU), ("", _GENERAL)):
        for ids, where, title, condition, recipe in groups:
            for code in _ids(ids, prefix):
                yield _entry(code, where, title, condition, recipe)


# ---- Our own codes -------------------------------------------------------------------------------------

#: PTO-Exxxx, in numeric order.
OWN: tuple[CatalogueEntry, ...] = tuple(CatalogueEntry(*facts) for facts in FACTS)

#: Every entry by code, sorted by code.
CATALOGUE: dict[str, CatalogueEntry] = dict(sorted({e.code: e for e in (*_field(), *OWN)}.items()))


def recipe(code: str) -> CatalogueEntry | None:
    """Return a documented way out, with the codes that it applies to, or None."""
    text = RECIPES.get(code.upper().removeprefix("FIX-"))
    if text is None:
        return None
    led = ", ".join(e.code for e in CATALOGUE.values() if e.recipe == code.upper())
    return CatalogueEntry(code.upper(), "a way out", f"For {led}.", text)


def entry(code: str) -> CatalogueEntry:
    """Return the entry of a code, in any case (`sa-0134`); raise `KeyError` for an unknown code."""
    return CATALOGUE[code.upper()]
