# Made by `python -m pto.language.stub` from the operators that there are: do not edit.
# ruff: noqa
# fmt: off
"""The Python language of PTO: kernels and graphs of tasks, read from their syntax trees."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .arguments import RUNTIME as RUNTIME
from .autotune import autotune as autotune
from .compiled import Compiled as Compiled
from .config import RunConfig as RunConfig
from .dtypes import DataType as DataType
from .enums import ArgDirection as ArgDirection
from .enums import AtomicType as AtomicType
from .enums import ForKind as ForKind
from .enums import FunctionType as FunctionType
from .enums import Level as Level
from .enums import MaskPattern as MaskPattern
from .enums import MemorySpace as MemorySpace
from .enums import PadValue as PadValue
from .enums import PipeType as PipeType
from .enums import Role as Role
from .enums import ScopeMode as ScopeMode
from .enums import SplitMode as SplitMode
from .enums import TensorLayout as TensorLayout
from .enums import TileLayout as TileLayout
from .forms import at as at
from .forms import cluster as cluster
from .forms import cond as cond
from .forms import cross_core_slot as cross_core_slot
from .forms import incore as incore
from .forms import manual_scope as manual_scope
from .forms import no_dep as no_dep
from .forms import parallel as parallel
from .forms import pipeline as pipeline
from .forms import range as range
from .forms import scope as scope
from .forms import split as split
from .forms import split_aiv as split_aiv
from .forms import spmd as spmd
from .forms import spmd_submit as spmd_submit
from .forms import submit as submit
from .forms import unroll as unroll
from .forms import while_ as while_
from .forms import yield_ as yield_
from .jit import function as function
from .jit import inline as inline
from .jit import jit as jit
from .jit import program as program
from .text import loads as loads
from .text import loads_program as loads_program
from .text import parse as parse
from .text import parse_program as parse_program
from .types import Array as Array
from .types import DynVar as DynVar
from .types import MemRef as MemRef
from .types import Ptr as Ptr
from .types import Scalar as Scalar
from .types import TaskId as TaskId
from .types import TensorView as TensorView
from .types import TileView as TileView
from .types import Tuple as Tuple
from .types import UNSET as UNSET
from .types import dynamic as dynamic

_T = TypeVar("_T")

class _Sized(type):
    def __getitem__(cls, item: Any) -> Any: ...

class _Array:
    shape: tuple[Any, ...]
    valid_shape: tuple[Any, ...]
    dtype: DataType
    def bind_dynamic(self, *args: Any) -> None: ...
    def __getitem__(self, window: Any) -> Any: ...
    def __setitem__(self, window: Any, value: Any) -> None: ...
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any: ...
    def __rtruediv__(self, other: Any) -> Any: ...
    def __and__(self, other: Any) -> Any: ...
    def __rand__(self, other: Any) -> Any: ...
    def __or__(self, other: Any) -> Any: ...
    def __ror__(self, other: Any) -> Any: ...
    def __xor__(self, other: Any) -> Any: ...
    def __rxor__(self, other: Any) -> Any: ...
    def __eq__(self, other: Any) -> Any: ...
    def __ne__(self, other: Any) -> Any: ...
    def __lt__(self, other: Any) -> Any: ...
    def __le__(self, other: Any) -> Any: ...
    def __gt__(self, other: Any) -> Any: ...
    def __ge__(self, other: Any) -> Any: ...
    def __pow__(self, other: Any) -> Any: ...
    def __rpow__(self, other: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __rmatmul__(self, other: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __invert__(self) -> Any: ...

class Tensor(_Array, metaclass=_Sized):
    """An array in global memory: `pl.Tensor`, or `pl.Tensor[[rows, columns], pl.FP32]`."""

class Tile(_Array, metaclass=_Sized):
    """An array in the memory of a core."""

class Out(_Array, Generic[_T]):
    """A parameter that is written and not read before: `pl.Out[pl.Tensor]`."""

class InOut(_Array, Generic[_T]):
    """A parameter that is read and written."""

AUTO: Any
BF16: DataType
BOOL: DataType
DN: Any
FP16: DataType
FP32: DataType
FP4: DataType
FP8E4M3FN: DataType
FP8E5M2: DataType
FP8E8M0: DataType
HF4: DataType
HF8: DataType
INDEX: DataType
INT16: DataType
INT32: DataType
INT4: DataType
INT64: DataType
INT8: DataType
MX_A_ZZ: Any
MX_B_NN: Any
Mem: Any
ND: Any
NZ: Any
TASK_ID: DataType
UINT16: DataType
UINT32: DataType
UINT4: DataType
UINT64: DataType
UINT8: DataType
def abs(x: Any) -> Any:
    """Element-wise absolute value."""

def add(lhs: Any, rhs: Any) -> Any:
    """Element-wise sum; integers wrap."""

def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Sum of three tiles."""

def adddeqrelu(lhs: Any, rhs: Any, scale: Any, tmp: Any = ...) -> Any:
    """Integer sum, dequantised by a scale, with ReLU."""

def addreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
    """Sum, ReLU and saturating conversion to a narrower type."""

def adds(lhs: Any, rhs: Any) -> Any:
    """Adds a scalar to every element; integers wrap."""

def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Adds a scalar and a second tile."""

adir: Any
def aic_gather(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
    """The halves of both vector cores as one, for the cube. `split` is the number of a mode."""

def aic_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
    """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""

def aiv_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
    """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""

def aiv_shard(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
    """The half of this vector core of what the cube made. `split` is the number of a mode."""

def and_(lhs: Any, rhs: Any) -> Any:
    """Element-wise bitwise AND."""

def ands(lhs: Any, rhs: Any) -> Any:
    """Bitwise AND of every element and a scalar."""

def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """A row of consecutive integers from `start` on."""

class array:
    @staticmethod
    def create(extent: Any, dtype: Any) -> Any:
        """Numbers, truth values or tasks on the stack. Slots of tasks begin as no task; numbers hold nothing."""
    @staticmethod
    def get_element(array: Any, index: Any) -> Any:
        """An element: `array[index]`."""
    @staticmethod
    def update_element(array: Any, index: Any, value: Any) -> Any:
        """The array with another element. On a core it is the same array, else the one given stays what it is."""

def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = ...) -> Any:
    """Write the valid part of `source` into `target` at an offset; `target` is what it returns. In an orchestration it is a task that copies, unless tasks can write to that part of `target` at once."""

def axpy(acc: Any, lhs: Any, rhs: Any) -> Any:
    """Adds a scaled tile to dst."""

def batch_matmul(lhs: Any, rhs: Any) -> Any:
    """Products of stacks of matrices."""

def batch_matmul_acc(acc: Any, lhs: Any, rhs: Any) -> Any:
    """`acc` plus products of stacks of matrices."""

def cast(x: Any, target_type: Any, mode: Any = ...) -> Any:
    """Convert to another type; `mode` says how floats are rounded: none rint round floor ceil trunc odd."""

def ci(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
    """A row of consecutive integers from `start` on."""

def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Compare: of tiles a predicate for `sel`, of tensors 1 and 0. `cmp_type` 0 to 5: eq ne lt le gt ge."""

def cmps(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
    """Compare every element with a number."""

def col_argmax(x: Any, tmp_tile: Any = ...) -> Any:
    """Row index of the largest element of each column, and optionally that element."""

def col_argmin(x: Any, tmp_tile: Any = ...) -> Any:
    """Row index of the smallest element of each column, and optionally that element."""

def col_expand(target: Any, col_vec: Any) -> Any:
    """Copy row 0 of src into every row of dst."""

def col_expand_add(lhs: Any, rhs: Any) -> Any:
    """Add a per-column value to every element of a tile."""

def col_expand_div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Divide every element of a tile by a per-column value."""

def col_expand_expdif(lhs: Any, rhs: Any) -> Any:
    """Exponential of every element minus a per-column value."""

def col_expand_max(lhs: Any, rhs: Any) -> Any:
    """Larger of every element and a per-column value."""

def col_expand_min(lhs: Any, rhs: Any) -> Any:
    """Smaller of every element and a per-column value."""

def col_expand_mul(lhs: Any, rhs: Any) -> Any:
    """Multiply every element of a tile by a per-column value."""

def col_expand_sub(lhs: Any, rhs: Any) -> Any:
    """Subtract a per-column value from every element of a tile."""

def col_max(x: Any) -> Any:
    """Largest element of each column, into row 0."""

def col_min(x: Any) -> Any:
    """Smallest element of each column, into row 0."""

def col_prod(x: Any) -> Any:
    """Product of each column, into row 0."""

def col_sum(x: Any, tmp_tile: Any = ...) -> Any:
    """Sum of each column, into row 0."""

def concat(src0: Any, src1: Any) -> Any:
    """Join the rows of two tiles side by side."""

def const(value: Any, dtype: Any) -> Any:
    """A number of a certain type."""

def cos(x: Any) -> Any:
    """Cosine, of FP32."""

def create_l1(shape: Any, dtype: Any, transpose: Any = ...) -> Any:
    """A tile in Mat that holds nothing yet, to gather rows into."""

def create_tensor(shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...) -> Any:
    """Memory for a tensor; on a core, a tile. It holds nothing, unless `init_value` is given."""

def create_tile(shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...) -> Any:
    """A tile that holds nothing yet; in Mat, with `transpose`, one that lies there column by column."""

def deinterleave(lhs: Any, rhs: Any) -> Any:
    """Split the even and odd elements of one or two tiles."""

def dequant(src: Any, scale: Any, offset: Any) -> Any:
    """Turn quantised integers back into floating point with per-row scale and offset."""

def dim(tensor: Any, axis: Any) -> Any:
    """The extent of a dimension."""

def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Element-wise quotient; integers truncate toward zero."""

def divs(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Divides a tile by a scalar, or a scalar by a tile; integers truncate."""

def dump_tag(tensor: Any) -> Any:
    """Mark a tensor for tools that show what it holds; the tensor is what it returns."""

def erf(x: Any) -> Any:
    """Error function."""

def exp(x: Any, high_precision: Any = ...) -> Any:
    """Element-wise exponential."""

def expand_clone(src: Any, target: Any) -> Any:
    """`src` in the shape of `target`, repeated along the one dimension in which it is 1; what `target` holds after."""

def expands(target: Any, scalar: Any) -> Any:
    """Fills a tile with a scalar."""

def fillpad(x: Any, pad_value: Any = ...) -> Any:
    """An array that is valid everywhere: what was outside the valid part is the padding."""

def fillpad_expand(x: Any, shape: Any, pad_value: Any = ...) -> Any:
    """A larger array, valid everywhere: beyond the valid part of `x` it is the padding."""

def fmod(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Element-wise truncated remainder: the result takes the sign of the dividend."""

def fmods(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
    """Truncated remainder by a scalar: the result takes the sign of the element."""

def full(shape: Any, dtype: Any, value: Any, valid_shape: Any = ...) -> Any:
    """Fills a tile with a scalar."""

def func_attr(attrs: Any) -> Any:
    """What is to be known of a function, by name: its first statement."""

def fusedmuladd(acc: Any, lhs: Any, rhs: Any) -> Any:
    """Multiplies dst by src0 and adds src1."""

def fusedmuladdrelu(acc: Any, lhs: Any, rhs: Any) -> Any:
    """Multiplies dst by src0, adds src1 and applies ReLU."""

def gather(x: Any, dim: Any = ..., index: Any = ..., *, mask_pattern: Any = ..., output_dtype: Any = ..., kvalue: Any = ..., cmp_mode: Any = ..., out_cols: Any = ..., offset: Any = ..., count_dtype: Any = ...) -> Any:
    """Elements along `dim`, which is each row unless it is given: at the indices that `index` has, in the columns of a pattern, or the indices of those that compare so with `kvalue`, and how many there are."""

def gather_row(dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any = ..., *, valid_shape: Any = ...) -> Any:
    """Copy a window of a tensor into a tile, at an offset; the tile is what it returns."""

def gatherb(src: Any, offset: Any, output_dtype: Any = ...) -> Any:
    """Collect blocks of 32 bytes by byte offset."""

def gelu(x: Any, approximate: Any = ...) -> Any:
    """Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2`; `approximate="tanh"` is `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`."""

def gemv(lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
    """A row times a matrix."""

def gemv_acc(acc: Any, lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
    """`acc` plus a row times a matrix."""

def gemv_bias(lhs: Any, rhs: Any, bias: Any, acc_phase: Any = ...) -> Any:
    """A row times a matrix, plus a row."""

def get_block_idx() -> Any:
    """The number of the block that runs."""

def get_block_num() -> Any:
    """How many blocks there are."""

def get_subblock_idx() -> Any:
    """Which vector core of its block this is."""

def histogram(src: Any, idx: Any, isMSB: Any = ...) -> Any:
    """Cumulative histogram of one byte of every element, per row."""

def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
    """Where the other side has the memory of a FIFO."""

def interleave(lhs: Any, rhs: Any) -> Any:
    """Interleave the elements of two tiles into two."""

def load(tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = ..., target_memory: Any = ..., clamp: Any = ...) -> Any:
    """Copy a window of a tensor into a new tile; only its valid part is read. `clamp` lets it end with the tensor."""

def log(x: Any, high_precision: Any = ...) -> Any:
    """Element-wise natural logarithm."""

def lrelu(x: Any, slope: Any) -> Any:
    """Leaky ReLU with one slope."""

def matmul(lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...) -> Any:
    """The product of two matrices, summed in FP32 or INT32; of stacks of them, one by one."""

def matmul_acc(acc: Any, lhs: Any, rhs: Any, a_trans: Any = ..., b_trans: Any = ..., init_cond: Any = ...) -> Any:
    """`acc` plus the product of two matrices; the product alone where `init_cond` holds."""

def matmul_bias(lhs: Any, rhs: Any, bias: Any) -> Any:
    """The product of two matrices plus a row."""

def matmul_mx(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """The product of two matrices of small floats with scales, summed in FP32."""

def matmul_mx_acc(acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    """`acc` plus the product of two matrices of small floats with scales."""

def matmul_mx_bias(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, bias: Any) -> Any:
    """The product of two matrices of small floats with scales, plus a row."""

def max(lhs: Any, rhs: Any) -> Any:
    """The larger of two numbers."""

def maximum(lhs: Any, rhs: Any) -> Any:
    """Element-wise maximum."""

def maximums(lhs: Any, rhs: Any) -> Any:
    """Maximum of every element and a scalar."""

class micro:
    @staticmethod
    def plt(n: Any, dtype: Any) -> Any:
        """A mask whose first `n` lanes are on."""
    @staticmethod
    def vabs(input: Any, mask: Any = ...) -> Any:
        """Absolute value."""
    @staticmethod
    def vadd(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise sum; integers wrap."""
    @staticmethod
    def vaddrelu(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Sum followed by ReLU."""
    @staticmethod
    def vadds(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Sum with a scalar; integers wrap."""
    @staticmethod
    def vand(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Bitwise and."""
    @staticmethod
    def vands(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Bitwise and with a scalar."""
    @staticmethod
    def vaxpy(x: Any, y: Any, alpha: Any, mask: Any = ...) -> Any:
        """Scaled vector plus a vector, rounded once."""
    @staticmethod
    def vbcnt(input: Any, mask: Any = ...) -> Any:
        """Number of one bits in each element."""
    @staticmethod
    def vcadd(input: Any, mask: Any = ...) -> Any:
        """Sum of all active lanes."""
    @staticmethod
    def vcgadd(input: Any, mask: Any = ...) -> Any:
        """Sum of each 32-byte group."""
    @staticmethod
    def vcgmax(input: Any, mask: Any = ...) -> Any:
        """Maximum of each 32-byte group."""
    @staticmethod
    def vcgmin(input: Any, mask: Any = ...) -> Any:
        """Minimum of each 32-byte group."""
    @staticmethod
    def vcls(input: Any, mask: Any = ...) -> Any:
        """Number of leading bits equal to the sign bit."""
    @staticmethod
    def vcmp(src0: Any, src1: Any, cmp_mode: Any = ..., seed: Any = ...) -> Any:
        """Lane-wise comparison of two vectors into a mask."""
    @staticmethod
    def vcmps(src: Any, scalar: Any, cmp_mode: Any = ..., seed: Any = ...) -> Any:
        """Comparison of every lane with a scalar into a mask."""
    @staticmethod
    def vcvt(value: Any, dtype: Any, mode: Any = ..., part: Any = ..., sat: Any = ..., mask: Any = ...) -> Any:
        """Every lane as an element of another type. Of narrower lanes, two or four to one of the others, `part` says which is read or written; the rest are 0."""
    @staticmethod
    def vdiv(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise quotient."""
    @staticmethod
    def vdup(value: Any, dtype: Any) -> Any:
        """A number in every lane."""
    @staticmethod
    def vexp(input: Any, mask: Any = ...) -> Any:
        """Exponential, base e."""
    @staticmethod
    def vlds(tile: Any, offset: Any = ...) -> Any:
        """256 bytes of a tile, from the element at `offset` on, counted in memory."""
    @staticmethod
    def vln(input: Any, mask: Any = ...) -> Any:
        """Natural logarithm."""
    @staticmethod
    def vlrelu(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Leaky ReLU with one slope for all lanes."""
    @staticmethod
    def vmadd(acc: Any, lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Fused multiply-add that scales the accumulator: lhs * acc + rhs."""
    @staticmethod
    def vmax(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise maximum."""
    @staticmethod
    def vmaxs(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Maximum with a scalar."""
    @staticmethod
    def vmin(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise minimum."""
    @staticmethod
    def vmins(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Minimum with a scalar."""
    @staticmethod
    def vmov(input: Any, mask: Any = ...) -> Any:
        """Copy of a vector register."""
    @staticmethod
    def vmul(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise product; integers wrap."""
    @staticmethod
    def vmula(acc: Any, lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Product added to an accumulator, rounded once: lhs * rhs + acc."""
    @staticmethod
    def vmuls(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Product with a scalar; integers wrap."""
    @staticmethod
    def vneg(input: Any, mask: Any = ...) -> Any:
        """Negation; integers wrap."""
    @staticmethod
    def vnot(input: Any, mask: Any = ...) -> Any:
        """Bitwise complement."""
    @staticmethod
    def vor(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Bitwise or."""
    @staticmethod
    def vors(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Bitwise or with a scalar."""
    @staticmethod
    def vprelu(input: Any, alpha: Any, mask: Any = ...) -> Any:
        """Leaky ReLU with a slope per lane."""
    @staticmethod
    def vrec(input: Any, mask: Any = ...) -> Any:
        """Reciprocal."""
    @staticmethod
    def vrelu(input: Any, mask: Any = ...) -> Any:
        """Rectified linear unit."""
    @staticmethod
    def vrsqrt(input: Any, mask: Any = ...) -> Any:
        """Reciprocal square root."""
    @staticmethod
    def vsel(src0: Any, src1: Any, mask: Any = ...) -> Any:
        """Choice between two vectors lane by lane."""
    @staticmethod
    def vshl(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Shift left by a count per lane."""
    @staticmethod
    def vshls(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Shift left by one count for all lanes."""
    @staticmethod
    def vshr(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Shift right by a count per lane."""
    @staticmethod
    def vshrs(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Shift right by one count for all lanes."""
    @staticmethod
    def vsqrt(input: Any, mask: Any = ...) -> Any:
        """Square root."""
    @staticmethod
    def vsts(value: Any, tile: Any, offset: Any = ..., mask: Any = ...) -> Any:
        """Write the lanes of a register that are on to a tile; the tile is what it returns."""
    @staticmethod
    def vsub(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Lane-wise difference; integers wrap."""
    @staticmethod
    def vsubrelu(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Difference followed by ReLU."""
    @staticmethod
    def vsubs(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Difference with a scalar; integers wrap."""
    @staticmethod
    def vxor(lhs: Any, rhs: Any, mask: Any = ...) -> Any:
        """Bitwise exclusive or."""
    @staticmethod
    def vxors(input: Any, scalar: Any, mask: Any = ...) -> Any:
        """Bitwise exclusive or with a scalar."""

def min(lhs: Any, rhs: Any) -> Any:
    """The smaller of two numbers."""

def minimum(lhs: Any, rhs: Any) -> Any:
    """Element-wise minimum."""

def minimums(lhs: Any, rhs: Any) -> Any:
    """Minimum of every element and a scalar."""

def move(tile: Any, target_memory: Any, blayout: Any = ..., slayout: Any = ...) -> Any:
    """A copy in another memory."""

def mrgsort(src0: Any, src1: Any = ..., src2: Any = ..., src3: Any = ..., tmp: Any = ..., exhausted: Any = ..., *, block_len: Any = ...) -> Any:
    """Merge sorted lists of values and indices (`sort32` makes them): runs of `block_len` of one row, by fours; or two to four rows."""

def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
    """Write the elements of a tile to the numbers of a tensor that `idx` has; the tensor is what it returns."""

def mul(lhs: Any, rhs: Any) -> Any:
    """Element-wise product; integers wrap."""

def muladddst(acc: Any, lhs: Any, rhs: Any) -> Any:
    """Adds the product of the sources to dst."""

def muls(lhs: Any, rhs: Any) -> Any:
    """Multiplies every element by a scalar; integers wrap."""

def neg(x: Any) -> Any:
    """Element-wise negation; integers wrap."""

def not_(x: Any) -> Any:
    """Element-wise bitwise complement."""

def operation(name: Any, types: Any, **args: Any) -> Any:
    """An operation that only stages make, as they print it."""

optimizations: Any
def or_(lhs: Any, rhs: Any) -> Any:
    """Element-wise bitwise OR."""

def ors(lhs: Any, rhs: Any) -> Any:
    """Bitwise OR of every element and a scalar."""

def pack(x: Any, dtype: Any) -> Any:
    """Narrow every element to its low bits."""

def paged_gather(src: Any, indices: Any, block_table: Any, block_size: Any, size: Any, max_indices: Any, *, space: Any = ..., col_off: Any = ..., is_trans: Any = ..., is_b_matrix: Any = ...) -> Any:
    """Rows of a tensor of pages: row i is `src[block_table[indices[i] // block_size] * block_size + indices[i] % block_size]`, `size` columns of it from `col_off` on."""

def pair_reduce_sum(x: Any) -> Any:
    """Sum of each pair of neighbouring columns, packed to the left, the rest zero."""

def part_add(lhs: Any, rhs: Any) -> Any:
    """Add two tiles where both are valid, copy the valid one elsewhere."""

def part_argmax(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
    """Maximum of two value tiles with its index where both are valid, the valid pair elsewhere."""

def part_argmin(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
    """Minimum of two value tiles with its index where both are valid, the valid pair elsewhere."""

def part_max(lhs: Any, rhs: Any) -> Any:
    """Maximum of two tiles where both are valid, the valid one elsewhere."""

def part_min(lhs: Any, rhs: Any) -> Any:
    """Minimum of two tiles where both are valid, the valid one elsewhere."""

def part_mul(lhs: Any, rhs: Any) -> Any:
    """Multiply two tiles where both are valid, copy the valid one elsewhere."""

def pow(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Element-wise power of one tile to another."""

def pows(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Raises every element to a scalar power."""

class prefetch:
    @staticmethod
    def async_prefetch(src: Any, ctx: Any) -> Any:
        """Say that a tensor will be read soon."""
    @staticmethod
    def make_context() -> Any:
        """What prefetches belong to."""
    @staticmethod
    def session(ctx: Any) -> Any:
        """What prefetches are waited for with."""
    @staticmethod
    def wait(event: Any, session_handle: Any) -> Any:
        """Whether a prefetch is done: always."""

def prelu(x: Any, slope: Any, tmp: Any = ...) -> Any:
    """Parametric ReLU with a slope per element."""

def quant(x: Any, scale: Any, offset: Any = ...) -> Any:
    """`x * scale`, with a scale per row, rounded to INT8; with an offset per row added, to UINT8."""

def quant_mx(x: Any, dtype: Any, scale_alg: Any = ...) -> Any:
    """Small floats with one scale per 32 columns: the elements, and the exponents of the scales as UINT8."""

def random(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., rounds: Any = ...) -> Any:
    """Fill a tile with counter-based pseudo-random 32-bit words."""

def read(x: Any, offset: Any) -> Any:
    """One element as a number. An orchestrator waits until the tensor is written."""

def recip(x: Any, high_precision: Any = ...) -> Any:
    """Element-wise reciprocal."""

def reinterpret_view(x: Any, dtype: Any, *, shape: Any = ...) -> Any:
    """The same bytes as elements of another type; the last extent changes as their width does."""

def relu(x: Any) -> Any:
    """Element-wise rectified linear unit."""

def rem(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Element-wise floored remainder: the result takes the sign of the divisor."""

def rems(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Floored remainder by a scalar: the result takes the sign of the scalar."""

def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
    """Memory for what arrives in a FIFO; its address is found where `base` is `pl.AUTO`, or left out."""

def reshape(x: Any, shape: Any) -> Any:
    """The same elements, row after row, in another shape."""

def row_argmax(x: Any, tmp_tile: Any = ...) -> Any:
    """Column index of the largest element of each row, and optionally that element."""

def row_argmin(x: Any, tmp_tile: Any = ...) -> Any:
    """Column index of the smallest element of each row, and optionally that element."""

def row_expand(target: Any, row_vec: Any) -> Any:
    """Copy column 0 of src into every column of dst."""

def row_expand_add(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Add a per-row value to every element of a tile."""

def row_expand_div(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Divide every element of a tile by a per-row value."""

def row_expand_expdif(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Exponential of every element minus a per-row value."""

def row_expand_max(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Larger of every element and a per-row value."""

def row_expand_min(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Smaller of every element and a per-row value."""

def row_expand_mul(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Multiply every element of a tile by a per-row value."""

def row_expand_sub(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Subtract a per-row value from every element of a tile."""

def row_max(x: Any, tmp_tile: Any = ...) -> Any:
    """Largest element of each row, into column 0."""

def row_min(x: Any, tmp_tile: Any = ...) -> Any:
    """Smallest element of each row, into column 0."""

def row_prod(x: Any, tmp_tile: Any = ...) -> Any:
    """Product of each row, into column 0."""

def row_sum(x: Any, tmp_tile: Any = ...) -> Any:
    """Sum of each row, into column 0."""

def rsqrt(x: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
    """Element-wise reciprocal square root."""

def scatter(x: Any, dim: Any = ..., index: Any = ..., src: Any = ..., *, mask_pattern: Any = ..., dst: Any = ...) -> Any:
    """`x` with the elements of `src` at the indices of each row; or `dst` with `x` in the columns of a pattern."""

def scatter_update(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` with its row `index[k]` replaced by row k of `src`: (x, dim, index, src), or (x, index, src, dim=)."""

def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Selects from two tiles by a packed predicate."""

def sels(mask: Any, src: Any, tmp: Any = ..., scalar: Any = ...) -> Any:
    """Selects tile elements or a scalar by a packed predicate: `sels(mask, src, scalar)`, or with scratch third."""

def set_validshape(x: Any, valid_rows: Any, valid_cols: Any) -> Any:
    """The same elements, of which another part is valid."""

def shl(lhs: Any, rhs: Any) -> Any:
    """Element-wise left shift; bits shifted out are lost."""

def shls(lhs: Any, rhs: Any) -> Any:
    """Shifts every element left by a scalar count."""

def shr(lhs: Any, rhs: Any) -> Any:
    """Element-wise right shift: arithmetic for signed, logical for unsigned elements."""

def shrs(lhs: Any, rhs: Any) -> Any:
    """Shifts every element right: arithmetic for signed, logical for unsigned elements."""

def sin(x: Any) -> Any:
    """Sine, of FP32; exact to some 1e-7 near 0, worse than 1e-5 beyond 6000."""

def slice(x: Any, shape: Any, offset: Any, valid_shape: Any = ..., drop_dims: Any = ..., pad_value: Any = ..., clamp: Any = ...) -> Any:
    """A window of a tensor or of a tile: other names for the same elements."""

def sort32(src: Any, idx: Any, tmp: Any = ...) -> Any:
    """Sort every 32 elements of a row in descending order, each with its index beside it."""

def sqrt(x: Any, high_precision: Any = ...) -> Any:
    """Element-wise square root."""

def static_assert(condition: Any, message: Any = ...) -> Any:
    """Refuse the program unless something holds that is known when it is read."""

def static_print(*args: Any) -> Any:
    """Print what is known when the program is read: objects of Python, and the types of values."""

def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = ..., *, atomic: Any = ...) -> Any:
    """Write the valid part of a tile to a tensor; the tensor is what it returns."""

def sub(lhs: Any, rhs: Any) -> Any:
    """Element-wise difference; integers wrap."""

def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Difference of two tiles plus a third."""

def subrelu(lhs: Any, rhs: Any) -> Any:
    """Difference followed by ReLU."""

def subreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
    """Difference, ReLU and saturating conversion to a narrower type."""

def subs(lhs: Any, rhs: Any) -> Any:
    """Subtracts a scalar from every element; integers wrap."""

def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
    """Subtracts a scalar and adds a second tile."""

class system:
    @staticmethod
    def aic_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def aiv_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def available_aiv_count() -> Any:
        """How many vector cores there are."""
    @staticmethod
    def available_cluster_count() -> Any:
        """How many clusters there are: cube cores, each with two vector cores."""
    @staticmethod
    def bar_all() -> Any:
        """Every pipe of the core waits for all work before this."""
    @staticmethod
    def bar_m() -> Any:
        """Work of the cube from here on waits for all before it."""
    @staticmethod
    def bar_v() -> Any:
        """Vector work from here on waits for all before it."""
    @staticmethod
    def cacheinvalid(tensor: Any = ..., shapes: Any = ..., offsets: Any = ...) -> Any:
        """Forget what the cache of the scalar unit holds: later reads see what other cores wrote."""
    @staticmethod
    def fence() -> Any:
        """What this core wrote to memory is there for others from here on."""
    @staticmethod
    def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
        """Where the other side has the memory of a FIFO."""
    @staticmethod
    def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
        """Memory for what arrives in a FIFO; its address is found where `base` is `pl.AUTO`, or left out."""
    @staticmethod
    def set_ffts(workspace: Any) -> Any:
        """The memory that signals between cores lie in. Nothing here needs it."""
    @staticmethod
    def sync_dst(*, set_pipe: Any, wait_pipe: Any, event_id: Any) -> Any:
        """Let a pipe wait for a flag."""
    @staticmethod
    def sync_set(event_id: Any, *, pipe: Any, ffts_mode: Any = ..., core_type: Any = ...) -> Any:
        """Signal the other cores of the block when a pipe has done its work so far."""
    @staticmethod
    def sync_src(*, set_pipe: Any, wait_pipe: Any, event_id: Any) -> Any:
        """Raise a flag when a pipe has done its work so far. A kernel with flags orders its pipes itself."""
    @staticmethod
    def sync_wait(event_id: Any, *, pipe: Any, core_type: Any = ...) -> Any:
        """Wait for the signal of another core of the block."""
    @staticmethod
    def syncall(*, core_type: Any = ..., mode: Any = ..., gm_workspace: Any = ..., used_cores: Any = ...) -> Any:
        """No core goes on before all have come here."""
    @staticmethod
    def task_dummy(deps: Any = ...) -> Any:
        """A task that runs nothing: who waits for it waits for all its `deps`."""
    @staticmethod
    def task_invalid() -> Any:
        """No task: nobody waits for it."""
    @staticmethod
    def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the cube core back."""
    @staticmethod
    def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the vector cores back."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""

class tensor:
    @staticmethod
    def abs(x: Any) -> Any:
        """Element-wise absolute value."""
    @staticmethod
    def add(lhs: Any, rhs: Any) -> Any:
        """Element-wise sum; integers wrap."""
    @staticmethod
    def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Sum of three tiles."""
    @staticmethod
    def adddeqrelu(lhs: Any, rhs: Any, scale: Any, tmp: Any = ...) -> Any:
        """Integer sum, dequantised by a scale, with ReLU."""
    @staticmethod
    def addreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
        """Sum, ReLU and saturating conversion to a narrower type."""
    @staticmethod
    def adds(lhs: Any, rhs: Any) -> Any:
        """Adds a scalar to every element; integers wrap."""
    @staticmethod
    def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Adds a scalar and a second tile."""
    @staticmethod
    def aic_gather(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
        """The halves of both vector cores as one, for the cube. `split` is the number of a mode."""
    @staticmethod
    def aic_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def aiv_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def aiv_shard(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
        """The half of this vector core of what the cube made. `split` is the number of a mode."""
    @staticmethod
    def alloc(memory: Any, size: Any) -> Any:
        """Memory that tiles name beside their types. Tools place tiles: it is read past."""
    @staticmethod
    def and_(lhs: Any, rhs: Any) -> Any:
        """Element-wise bitwise AND."""
    @staticmethod
    def ands(lhs: Any, rhs: Any) -> Any:
        """Bitwise AND of every element and a scalar."""
    @staticmethod
    def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
        """A row of consecutive integers from `start` on."""
    @staticmethod
    def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = ...) -> Any:
        """Write the valid part of `source` into `target` at an offset; `target` is what it returns. In an orchestration it is a task that copies, unless tasks can write to that part of `target` at once."""
    @staticmethod
    def axpy(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Adds a scaled tile to dst."""
    @staticmethod
    def batch_matmul(lhs: Any, rhs: Any) -> Any:
        """Products of stacks of matrices."""
    @staticmethod
    def batch_matmul_acc(acc: Any, lhs: Any, rhs: Any) -> Any:
        """`acc` plus products of stacks of matrices."""
    @staticmethod
    def cast(x: Any, target_type: Any, mode: Any = ...) -> Any:
        """Convert to another type; `mode` says how floats are rounded: none rint round floor ceil trunc odd."""
    @staticmethod
    def ci(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
        """A row of consecutive integers from `start` on."""
    @staticmethod
    def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
        """Compare: of tiles a predicate for `sel`, of tensors 1 and 0. `cmp_type` 0 to 5: eq ne lt le gt ge."""
    @staticmethod
    def cmps(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
        """Compare every element with a number."""
    @staticmethod
    def col_argmax(x: Any, tmp_tile: Any = ...) -> Any:
        """Row index of the largest element of each column, and optionally that element."""
    @staticmethod
    def col_argmin(x: Any, tmp_tile: Any = ...) -> Any:
        """Row index of the smallest element of each column, and optionally that element."""
    @staticmethod
    def col_expand(target: Any, col_vec: Any) -> Any:
        """Copy row 0 of src into every row of dst."""
    @staticmethod
    def col_expand_add(lhs: Any, rhs: Any) -> Any:
        """Add a per-column value to every element of a tile."""
    @staticmethod
    def col_expand_div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Divide every element of a tile by a per-column value."""
    @staticmethod
    def col_expand_expdif(lhs: Any, rhs: Any) -> Any:
        """Exponential of every element minus a per-column value."""
    @staticmethod
    def col_expand_max(lhs: Any, rhs: Any) -> Any:
        """Larger of every element and a per-column value."""
    @staticmethod
    def col_expand_min(lhs: Any, rhs: Any) -> Any:
        """Smaller of every element and a per-column value."""
    @staticmethod
    def col_expand_mul(lhs: Any, rhs: Any) -> Any:
        """Multiply every element of a tile by a per-column value."""
    @staticmethod
    def col_expand_sub(lhs: Any, rhs: Any) -> Any:
        """Subtract a per-column value from every element of a tile."""
    @staticmethod
    def col_max(x: Any) -> Any:
        """Largest element of each column, into row 0."""
    @staticmethod
    def col_min(x: Any) -> Any:
        """Smallest element of each column, into row 0."""
    @staticmethod
    def col_prod(x: Any) -> Any:
        """Product of each column, into row 0."""
    @staticmethod
    def col_sum(x: Any, tmp_tile: Any = ...) -> Any:
        """Sum of each column, into row 0."""
    @staticmethod
    def concat(src0: Any, src1: Any) -> Any:
        """Join the rows of two tiles side by side."""
    @staticmethod
    def const(value: Any, dtype: Any) -> Any:
        """A number of a certain type."""
    @staticmethod
    def cos(x: Any) -> Any:
        """Cosine, of FP32."""
    @staticmethod
    def create(shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...) -> Any:
        """Memory for a tensor; on a core, a tile. It holds nothing, unless `init_value` is given."""
    @staticmethod
    def create_l1(shape: Any, dtype: Any, transpose: Any = ...) -> Any:
        """A tile in Mat that holds nothing yet, to gather rows into."""
    @staticmethod
    def create_tensor(shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...) -> Any:
        """Memory for a tensor; on a core, a tile. It holds nothing, unless `init_value` is given."""
    @staticmethod
    def create_tile(shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...) -> Any:
        """A tile that holds nothing yet; in Mat, with `transpose`, one that lies there column by column."""
    @staticmethod
    def deinterleave(lhs: Any, rhs: Any) -> Any:
        """Split the even and odd elements of one or two tiles."""
    @staticmethod
    def dequant(src: Any, scale: Any, offset: Any) -> Any:
        """Turn quantised integers back into floating point with per-row scale and offset."""
    @staticmethod
    def dim(tensor: Any, axis: Any) -> Any:
        """The extent of a dimension."""
    @staticmethod
    def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Element-wise quotient; integers truncate toward zero."""
    @staticmethod
    def divs(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Divides a tile by a scalar, or a scalar by a tile; integers truncate."""
    @staticmethod
    def dump_tag(tensor: Any) -> Any:
        """Mark a tensor for tools that show what it holds; the tensor is what it returns."""
    @staticmethod
    def erf(x: Any) -> Any:
        """Error function."""
    @staticmethod
    def exp(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise exponential."""
    @staticmethod
    def expand_clone(src: Any, target: Any) -> Any:
        """`src` in the shape of `target`, repeated along the one dimension in which it is 1; what `target` holds after."""
    @staticmethod
    def expands(target: Any, scalar: Any) -> Any:
        """Fills a tile with a scalar."""
    @staticmethod
    def fillpad(x: Any, pad_value: Any = ...) -> Any:
        """An array that is valid everywhere: what was outside the valid part is the padding."""
    @staticmethod
    def fillpad_expand(x: Any, shape: Any, pad_value: Any = ...) -> Any:
        """A larger array, valid everywhere: beyond the valid part of `x` it is the padding."""
    @staticmethod
    def fmod(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Element-wise truncated remainder: the result takes the sign of the dividend."""
    @staticmethod
    def fmods(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Truncated remainder by a scalar: the result takes the sign of the element."""
    @staticmethod
    def full(shape: Any, dtype: Any, value: Any, valid_shape: Any = ...) -> Any:
        """Fills a tile with a scalar."""
    @staticmethod
    def func_attr(attrs: Any) -> Any:
        """What is to be known of a function, by name: its first statement."""
    @staticmethod
    def fusedmuladd(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Multiplies dst by src0 and adds src1."""
    @staticmethod
    def fusedmuladdrelu(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Multiplies dst by src0, adds src1 and applies ReLU."""
    @staticmethod
    def gather(x: Any, dim: Any = ..., index: Any = ..., *, mask_pattern: Any = ..., output_dtype: Any = ..., kvalue: Any = ..., cmp_mode: Any = ..., out_cols: Any = ..., offset: Any = ..., count_dtype: Any = ...) -> Any:
        """Elements along `dim`, which is each row unless it is given: at the indices that `index` has, in the columns of a pattern, or the indices of those that compare so with `kvalue`, and how many there are."""
    @staticmethod
    def gather_row(dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any = ..., *, valid_shape: Any = ...) -> Any:
        """Copy a window of a tensor into a tile, at an offset; the tile is what it returns."""
    @staticmethod
    def gatherb(src: Any, offset: Any, output_dtype: Any = ...) -> Any:
        """Collect blocks of 32 bytes by byte offset."""
    @staticmethod
    def gelu(x: Any, approximate: Any = ...) -> Any:
        """Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2`; `approximate="tanh"` is `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`."""
    @staticmethod
    def gemv(lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
        """A row times a matrix."""
    @staticmethod
    def gemv_acc(acc: Any, lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
        """`acc` plus a row times a matrix."""
    @staticmethod
    def gemv_bias(lhs: Any, rhs: Any, bias: Any, acc_phase: Any = ...) -> Any:
        """A row times a matrix, plus a row."""
    @staticmethod
    def get_block_idx() -> Any:
        """The number of the block that runs."""
    @staticmethod
    def get_block_num() -> Any:
        """How many blocks there are."""
    @staticmethod
    def get_subblock_idx() -> Any:
        """Which vector core of its block this is."""
    @staticmethod
    def histogram(src: Any, idx: Any, isMSB: Any = ...) -> Any:
        """Cumulative histogram of one byte of every element, per row."""
    @staticmethod
    def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
        """Where the other side has the memory of a FIFO."""
    @staticmethod
    def interleave(lhs: Any, rhs: Any) -> Any:
        """Interleave the elements of two tiles into two."""
    @staticmethod
    def load(tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = ..., target_memory: Any = ..., clamp: Any = ...) -> Any:
        """Copy a window of a tensor into a new tile; only its valid part is read. `clamp` lets it end with the tensor."""
    @staticmethod
    def log(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise natural logarithm."""
    @staticmethod
    def lrelu(x: Any, slope: Any) -> Any:
        """Leaky ReLU with one slope."""
    @staticmethod
    def matmul(lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...) -> Any:
        """The product of two matrices, summed in FP32 or INT32; of stacks of them, one by one."""
    @staticmethod
    def matmul_acc(acc: Any, lhs: Any, rhs: Any, a_trans: Any = ..., b_trans: Any = ..., init_cond: Any = ...) -> Any:
        """`acc` plus the product of two matrices; the product alone where `init_cond` holds."""
    @staticmethod
    def matmul_bias(lhs: Any, rhs: Any, bias: Any) -> Any:
        """The product of two matrices plus a row."""
    @staticmethod
    def matmul_mx(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
        """The product of two matrices of small floats with scales, summed in FP32."""
    @staticmethod
    def matmul_mx_acc(acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
        """`acc` plus the product of two matrices of small floats with scales."""
    @staticmethod
    def matmul_mx_bias(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, bias: Any) -> Any:
        """The product of two matrices of small floats with scales, plus a row."""
    @staticmethod
    def max(lhs: Any, rhs: Any) -> Any:
        """The larger of two numbers."""
    @staticmethod
    def maximum(lhs: Any, rhs: Any) -> Any:
        """Element-wise maximum."""
    @staticmethod
    def maximums(lhs: Any, rhs: Any) -> Any:
        """Maximum of every element and a scalar."""
    @staticmethod
    def min(lhs: Any, rhs: Any) -> Any:
        """The smaller of two numbers."""
    @staticmethod
    def minimum(lhs: Any, rhs: Any) -> Any:
        """Element-wise minimum."""
    @staticmethod
    def minimums(lhs: Any, rhs: Any) -> Any:
        """Minimum of every element and a scalar."""
    @staticmethod
    def move(tile: Any, target_memory: Any, blayout: Any = ..., slayout: Any = ...) -> Any:
        """A copy in another memory."""
    @staticmethod
    def mrgsort(src0: Any, src1: Any = ..., src2: Any = ..., src3: Any = ..., tmp: Any = ..., exhausted: Any = ..., *, block_len: Any = ...) -> Any:
        """Merge sorted lists of values and indices (`sort32` makes them): runs of `block_len` of one row, by fours; or two to four rows."""
    @staticmethod
    def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
        """Write the elements of a tile to the numbers of a tensor that `idx` has; the tensor is what it returns."""
    @staticmethod
    def mul(lhs: Any, rhs: Any) -> Any:
        """Element-wise product; integers wrap."""
    @staticmethod
    def muladddst(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Adds the product of the sources to dst."""
    @staticmethod
    def muls(lhs: Any, rhs: Any) -> Any:
        """Multiplies every element by a scalar; integers wrap."""
    @staticmethod
    def neg(x: Any) -> Any:
        """Element-wise negation; integers wrap."""
    @staticmethod
    def not_(x: Any) -> Any:
        """Element-wise bitwise complement."""
    @staticmethod
    def operation(name: Any, types: Any, **args: Any) -> Any:
        """An operation that only stages make, as they print it."""
    @staticmethod
    def or_(lhs: Any, rhs: Any) -> Any:
        """Element-wise bitwise OR."""
    @staticmethod
    def ors(lhs: Any, rhs: Any) -> Any:
        """Bitwise OR of every element and a scalar."""
    @staticmethod
    def pack(x: Any, dtype: Any) -> Any:
        """Narrow every element to its low bits."""
    @staticmethod
    def paged_gather(src: Any, indices: Any, block_table: Any, block_size: Any, size: Any, max_indices: Any, *, space: Any = ..., col_off: Any = ..., is_trans: Any = ..., is_b_matrix: Any = ...) -> Any:
        """Rows of a tensor of pages: row i is `src[block_table[indices[i] // block_size] * block_size + indices[i] % block_size]`, `size` columns of it from `col_off` on."""
    @staticmethod
    def pair_reduce_sum(x: Any) -> Any:
        """Sum of each pair of neighbouring columns, packed to the left, the rest zero."""
    @staticmethod
    def part_add(lhs: Any, rhs: Any) -> Any:
        """Add two tiles where both are valid, copy the valid one elsewhere."""
    @staticmethod
    def part_argmax(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
        """Maximum of two value tiles with its index where both are valid, the valid pair elsewhere."""
    @staticmethod
    def part_argmin(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
        """Minimum of two value tiles with its index where both are valid, the valid pair elsewhere."""
    @staticmethod
    def part_max(lhs: Any, rhs: Any) -> Any:
        """Maximum of two tiles where both are valid, the valid one elsewhere."""
    @staticmethod
    def part_min(lhs: Any, rhs: Any) -> Any:
        """Minimum of two tiles where both are valid, the valid one elsewhere."""
    @staticmethod
    def part_mul(lhs: Any, rhs: Any) -> Any:
        """Multiply two tiles where both are valid, copy the valid one elsewhere."""
    @staticmethod
    def pow(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise power of one tile to another."""
    @staticmethod
    def pows(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Raises every element to a scalar power."""
    @staticmethod
    def prelu(x: Any, slope: Any, tmp: Any = ...) -> Any:
        """Parametric ReLU with a slope per element."""
    @staticmethod
    def quant(x: Any, scale: Any, offset: Any = ...) -> Any:
        """`x * scale`, with a scale per row, rounded to INT8; with an offset per row added, to UINT8."""
    @staticmethod
    def quant_mx(x: Any, dtype: Any, scale_alg: Any = ...) -> Any:
        """Small floats with one scale per 32 columns: the elements, and the exponents of the scales as UINT8."""
    @staticmethod
    def random(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., rounds: Any = ...) -> Any:
        """Fill a tile with counter-based pseudo-random 32-bit words."""
    @staticmethod
    def read(x: Any, offset: Any) -> Any:
        """One element as a number. An orchestrator waits until the tensor is written."""
    @staticmethod
    def recip(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise reciprocal."""
    @staticmethod
    def reinterpret_view(x: Any, dtype: Any, *, shape: Any = ...) -> Any:
        """The same bytes as elements of another type; the last extent changes as their width does."""
    @staticmethod
    def relu(x: Any) -> Any:
        """Element-wise rectified linear unit."""
    @staticmethod
    def rem(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise floored remainder: the result takes the sign of the divisor."""
    @staticmethod
    def rems(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Floored remainder by a scalar: the result takes the sign of the scalar."""
    @staticmethod
    def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
        """Memory for what arrives in a FIFO; its address is found where `base` is `pl.AUTO`, or left out."""
    @staticmethod
    def reshape(x: Any, shape: Any) -> Any:
        """The same elements, row after row, in another shape."""
    @staticmethod
    def row_argmax(x: Any, tmp_tile: Any = ...) -> Any:
        """Column index of the largest element of each row, and optionally that element."""
    @staticmethod
    def row_argmin(x: Any, tmp_tile: Any = ...) -> Any:
        """Column index of the smallest element of each row, and optionally that element."""
    @staticmethod
    def row_expand(target: Any, row_vec: Any) -> Any:
        """Copy column 0 of src into every column of dst."""
    @staticmethod
    def row_expand_add(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Add a per-row value to every element of a tile."""
    @staticmethod
    def row_expand_div(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Divide every element of a tile by a per-row value."""
    @staticmethod
    def row_expand_expdif(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Exponential of every element minus a per-row value."""
    @staticmethod
    def row_expand_max(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Larger of every element and a per-row value."""
    @staticmethod
    def row_expand_min(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Smaller of every element and a per-row value."""
    @staticmethod
    def row_expand_mul(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Multiply every element of a tile by a per-row value."""
    @staticmethod
    def row_expand_sub(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Subtract a per-row value from every element of a tile."""
    @staticmethod
    def row_max(x: Any, tmp_tile: Any = ...) -> Any:
        """Largest element of each row, into column 0."""
    @staticmethod
    def row_min(x: Any, tmp_tile: Any = ...) -> Any:
        """Smallest element of each row, into column 0."""
    @staticmethod
    def row_prod(x: Any, tmp_tile: Any = ...) -> Any:
        """Product of each row, into column 0."""
    @staticmethod
    def row_sum(x: Any, tmp_tile: Any = ...) -> Any:
        """Sum of each row, into column 0."""
    @staticmethod
    def rsqrt(x: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise reciprocal square root."""
    @staticmethod
    def scatter(x: Any, dim: Any = ..., index: Any = ..., src: Any = ..., *, mask_pattern: Any = ..., dst: Any = ...) -> Any:
        """`x` with the elements of `src` at the indices of each row; or `dst` with `x` in the columns of a pattern."""
    @staticmethod
    def scatter_update(x: Any, *args: Any, **kwargs: Any) -> Any:
        """`x` with its row `index[k]` replaced by row k of `src`: (x, dim, index, src), or (x, index, src, dim=)."""
    @staticmethod
    def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Selects from two tiles by a packed predicate."""
    @staticmethod
    def sels(mask: Any, src: Any, tmp: Any = ..., scalar: Any = ...) -> Any:
        """Selects tile elements or a scalar by a packed predicate: `sels(mask, src, scalar)`, or with scratch third."""
    @staticmethod
    def set_validshape(x: Any, valid_rows: Any, valid_cols: Any) -> Any:
        """The same elements, of which another part is valid."""
    @staticmethod
    def shl(lhs: Any, rhs: Any) -> Any:
        """Element-wise left shift; bits shifted out are lost."""
    @staticmethod
    def shls(lhs: Any, rhs: Any) -> Any:
        """Shifts every element left by a scalar count."""
    @staticmethod
    def shr(lhs: Any, rhs: Any) -> Any:
        """Element-wise right shift: arithmetic for signed, logical for unsigned elements."""
    @staticmethod
    def shrs(lhs: Any, rhs: Any) -> Any:
        """Shifts every element right: arithmetic for signed, logical for unsigned elements."""
    @staticmethod
    def sin(x: Any) -> Any:
        """Sine, of FP32; exact to some 1e-7 near 0, worse than 1e-5 beyond 6000."""
    @staticmethod
    def slice(x: Any, shape: Any, offset: Any, valid_shape: Any = ..., drop_dims: Any = ..., pad_value: Any = ..., clamp: Any = ...) -> Any:
        """A window of a tensor or of a tile: other names for the same elements."""
    @staticmethod
    def sort32(src: Any, idx: Any, tmp: Any = ...) -> Any:
        """Sort every 32 elements of a row in descending order, each with its index beside it."""
    @staticmethod
    def sqrt(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise square root."""
    @staticmethod
    def static_assert(condition: Any, message: Any = ...) -> Any:
        """Refuse the program unless something holds that is known when it is read."""
    @staticmethod
    def static_print(*args: Any) -> Any:
        """Print what is known when the program is read: objects of Python, and the types of values."""
    @staticmethod
    def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = ..., *, atomic: Any = ...) -> Any:
        """Write the valid part of a tile to a tensor; the tensor is what it returns."""
    @staticmethod
    def sub(lhs: Any, rhs: Any) -> Any:
        """Element-wise difference; integers wrap."""
    @staticmethod
    def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Difference of two tiles plus a third."""
    @staticmethod
    def subrelu(lhs: Any, rhs: Any) -> Any:
        """Difference followed by ReLU."""
    @staticmethod
    def subreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
        """Difference, ReLU and saturating conversion to a narrower type."""
    @staticmethod
    def subs(lhs: Any, rhs: Any) -> Any:
        """Subtracts a scalar from every element; integers wrap."""
    @staticmethod
    def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Subtracts a scalar and adds a second tile."""
    @staticmethod
    def tanh(x: Any) -> Any:
        """Hyperbolic tangent."""
    @staticmethod
    def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the cube core back."""
    @staticmethod
    def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the vector cores back."""
    @staticmethod
    def tpop_from_aic(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
        """The next tile of a FIFO from the cube core; wait until there is one."""
    @staticmethod
    def tpop_from_aiv(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
        """The next tile of a FIFO from the vector cores; wait until there is one."""
    @staticmethod
    def tpush_to_aic(tile: Any, *, split: Any, id: Any = ...) -> Any:
        """Put a tile into a FIFO to the cube core; wait while it is full."""
    @staticmethod
    def tpush_to_aiv(tile: Any, *, split: Any, id: Any = ...) -> Any:
        """Put a tile into a FIFO to the vector cores; wait while it is full."""
    @staticmethod
    def transpose(x: Any, axis1: Any, axis2: Any) -> Any:
        """Two dimensions change places; on a core, elements move."""
    @staticmethod
    def tri(diagonal: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., upper: Any = ...) -> Any:
        """Fill a tile with a triangular mask of ones and zeros."""
    @staticmethod
    def view(x: Any, shape: Any = ..., valid_shape: Any = ..., *, layout: Any = ...) -> Any:
        """The same elements, row after row, in another shape, of which a part is valid."""
    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`: arrays, columns, rows or numbers. The condition is a comparison, as in `pl.where(x > 0, x, 0.0)`, or an array, whose elements hold unless they are 0."""
    @staticmethod
    def write(x: Any, offset: Any, value: Any) -> Any:
        """Set one element."""
    @staticmethod
    def xor(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Element-wise bitwise exclusive OR."""
    @staticmethod
    def xors(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Bitwise exclusive OR of every element and a scalar."""

def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Give the place of a tile that came from the cube core back."""

def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Give the place of a tile that came from the vector cores back."""

class tile:
    MaskPattern: Any
    @staticmethod
    def abs(x: Any) -> Any:
        """Element-wise absolute value."""
    @staticmethod
    def add(lhs: Any, rhs: Any) -> Any:
        """Element-wise sum; integers wrap."""
    @staticmethod
    def addc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Sum of three tiles."""
    @staticmethod
    def adddeqrelu(lhs: Any, rhs: Any, scale: Any, tmp: Any = ...) -> Any:
        """Integer sum, dequantised by a scale, with ReLU."""
    @staticmethod
    def addreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
        """Sum, ReLU and saturating conversion to a narrower type."""
    @staticmethod
    def adds(lhs: Any, rhs: Any) -> Any:
        """Adds a scalar to every element; integers wrap."""
    @staticmethod
    def addsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Adds a scalar and a second tile."""
    @staticmethod
    def aic_gather(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
        """The halves of both vector cores as one, for the cube. `split` is the number of a mode."""
    @staticmethod
    def aic_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def aiv_initialize_pipe(c2v_consumer_buf: Any = ..., v2c_consumer_buf: Any = ..., *, dir_mask: Any, slot_size: Any, slot_num: Any = ..., local_slot_num: Any = ..., id: Any = ..., gm_slot_buffer: Any = ..., gm_offset: Any = ...) -> Any:
        """This side of a FIFO: 1 from cube to vector, 2 from vector to cube, 3 both."""
    @staticmethod
    def aiv_shard(x: Any, mode: Any = ..., *, split: Any = ..., lane_stride: Any = ...) -> Any:
        """The half of this vector core of what the cube made. `split` is the number of a mode."""
    @staticmethod
    def alloc(memory: Any, size: Any) -> Any:
        """Memory that tiles name beside their types. Tools place tiles: it is read past."""
    @staticmethod
    def and_(lhs: Any, rhs: Any) -> Any:
        """Element-wise bitwise AND."""
    @staticmethod
    def ands(lhs: Any, rhs: Any) -> Any:
        """Bitwise AND of every element and a scalar."""
    @staticmethod
    def arange(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
        """A row of consecutive integers from `start` on."""
    @staticmethod
    def assemble(target: Any, source: Any, offset: Any, *, atomic: Any = ...) -> Any:
        """Write the valid part of `source` into `target` at an offset; `target` is what it returns. In an orchestration it is a task that copies, unless tasks can write to that part of `target` at once."""
    @staticmethod
    def axpy(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Adds a scaled tile to dst."""
    @staticmethod
    def batch_matmul(lhs: Any, rhs: Any) -> Any:
        """Products of stacks of matrices."""
    @staticmethod
    def batch_matmul_acc(acc: Any, lhs: Any, rhs: Any) -> Any:
        """`acc` plus products of stacks of matrices."""
    @staticmethod
    def cast(x: Any, target_type: Any, mode: Any = ...) -> Any:
        """Convert to another type; `mode` says how floats are rounded: none rint round floor ceil trunc odd."""
    @staticmethod
    def ci(start: Any, shape: Any, dtype: Any = ..., descending: Any = ...) -> Any:
        """A row of consecutive integers from `start` on."""
    @staticmethod
    def cmp(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
        """Compare: a predicate for `sel`. `cmp_type` 0 to 5: eq ne lt le gt ge."""
    @staticmethod
    def cmps(lhs: Any, rhs: Any, cmp_type: Any = ...) -> Any:
        """Compare every element with a number: a predicate for `sel`."""
    @staticmethod
    def col_argmax(x: Any, tmp_tile: Any = ...) -> Any:
        """Row index of the largest element of each column, and optionally that element."""
    @staticmethod
    def col_argmin(x: Any, tmp_tile: Any = ...) -> Any:
        """Row index of the smallest element of each column, and optionally that element."""
    @staticmethod
    def col_expand(target: Any, col_vec: Any) -> Any:
        """Copy row 0 of src into every row of dst."""
    @staticmethod
    def col_expand_add(lhs: Any, rhs: Any) -> Any:
        """Add a per-column value to every element of a tile."""
    @staticmethod
    def col_expand_div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Divide every element of a tile by a per-column value."""
    @staticmethod
    def col_expand_expdif(lhs: Any, rhs: Any) -> Any:
        """Exponential of every element minus a per-column value."""
    @staticmethod
    def col_expand_max(lhs: Any, rhs: Any) -> Any:
        """Larger of every element and a per-column value."""
    @staticmethod
    def col_expand_min(lhs: Any, rhs: Any) -> Any:
        """Smaller of every element and a per-column value."""
    @staticmethod
    def col_expand_mul(lhs: Any, rhs: Any) -> Any:
        """Multiply every element of a tile by a per-column value."""
    @staticmethod
    def col_expand_sub(lhs: Any, rhs: Any) -> Any:
        """Subtract a per-column value from every element of a tile."""
    @staticmethod
    def col_max(x: Any) -> Any:
        """Largest element of each column, into row 0."""
    @staticmethod
    def col_min(x: Any) -> Any:
        """Smallest element of each column, into row 0."""
    @staticmethod
    def col_prod(x: Any) -> Any:
        """Product of each column, into row 0."""
    @staticmethod
    def col_sum(x: Any, tmp_tile: Any = ...) -> Any:
        """Sum of each column, into row 0."""
    @staticmethod
    def concat(src0: Any, src1: Any) -> Any:
        """Join the rows of two tiles side by side."""
    @staticmethod
    def const(value: Any, dtype: Any) -> Any:
        """A number of a certain type."""
    @staticmethod
    def cos(x: Any) -> Any:
        """Cosine, of FP32."""
    @staticmethod
    def create(shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...) -> Any:
        """A tile that holds nothing yet; in Mat, with `transpose`, one that lies there column by column."""
    @staticmethod
    def create_l1(shape: Any, dtype: Any, transpose: Any = ...) -> Any:
        """A tile in Mat that holds nothing yet, to gather rows into."""
    @staticmethod
    def create_tensor(shape: Any, dtype: Any, layout: Any = ..., manual_dep: Any = ..., init_value: Any = ...) -> Any:
        """Memory for a tensor; on a core, a tile. It holds nothing, unless `init_value` is given."""
    @staticmethod
    def create_tile(shape: Any, dtype: Any, target_memory: Any = ..., transpose: Any = ..., *, flat_layout: Any = ...) -> Any:
        """A tile that holds nothing yet; in Mat, with `transpose`, one that lies there column by column."""
    @staticmethod
    def deinterleave(lhs: Any, rhs: Any) -> Any:
        """Split the even and odd elements of one or two tiles."""
    @staticmethod
    def dequant(src: Any, scale: Any, offset: Any) -> Any:
        """Turn quantised integers back into floating point with per-row scale and offset."""
    @staticmethod
    def dim(tensor: Any, axis: Any) -> Any:
        """The extent of a dimension."""
    @staticmethod
    def div(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Element-wise quotient; integers truncate toward zero."""
    @staticmethod
    def divs(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Divides a tile by a scalar, or a scalar by a tile; integers truncate."""
    @staticmethod
    def dump_tag(tensor: Any) -> Any:
        """Mark a tensor for tools that show what it holds; the tensor is what it returns."""
    @staticmethod
    def erf(x: Any) -> Any:
        """Error function."""
    @staticmethod
    def exp(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise exponential."""
    @staticmethod
    def expand_clone(src: Any, target: Any) -> Any:
        """`src` in the shape of `target`, repeated along the one dimension in which it is 1; what `target` holds after."""
    @staticmethod
    def expands(target: Any, scalar: Any) -> Any:
        """Fills a tile with a scalar."""
    @staticmethod
    def extract(x: Any, index_row: Any, index_col: Any, shape: Any, target_memory: Any = ...) -> Any:
        """A window of a tile in another memory."""
    @staticmethod
    def fillpad(x: Any, pad_value: Any = ...) -> Any:
        """An array that is valid everywhere: what was outside the valid part is the padding."""
    @staticmethod
    def fillpad_expand(x: Any, shape: Any, pad_value: Any = ...) -> Any:
        """A larger array, valid everywhere: beyond the valid part of `x` it is the padding."""
    @staticmethod
    def fillpad_inplace(x: Any, pad_value: Any = ...) -> Any:
        """As `fillpad`."""
    @staticmethod
    def fmod(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Element-wise truncated remainder: the result takes the sign of the dividend."""
    @staticmethod
    def fmods(lhs: Any, rhs: Any, high_precision: Any = ...) -> Any:
        """Truncated remainder by a scalar: the result takes the sign of the element."""
    @staticmethod
    def full(shape: Any, dtype: Any, value: Any, valid_shape: Any = ...) -> Any:
        """Fills a tile with a scalar."""
    @staticmethod
    def func_attr(attrs: Any) -> Any:
        """What is to be known of a function, by name: its first statement."""
    @staticmethod
    def fusedmuladd(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Multiplies dst by src0 and adds src1."""
    @staticmethod
    def fusedmuladdrelu(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Multiplies dst by src0, adds src1 and applies ReLU."""
    @staticmethod
    def gather(src: Any, indices: Any, tmp: Any = ...) -> Any:
        """Elements of a tile by number, counted row after row."""
    @staticmethod
    def gather_compare(src: Any, kvalue: Any, tmp: Any = ..., *, cmp_mode: Any = ..., offset: Any = ..., out_cols: Any = ..., count_dtype: Any = ...) -> Any:
        """The numbers of the elements of each row that equal `kvalue`, or are larger; and how many there are."""
    @staticmethod
    def gather_mask(src: Any, mask_pattern: Any, *, output_dtype: Any = ...) -> Any:
        """The columns of a pattern, side by side; `output_dtype` says as what their bits are read."""
    @staticmethod
    def gather_row(dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any = ..., *, valid_shape: Any = ...) -> Any:
        """Copy a window of a tensor into a tile, at an offset; the tile is what it returns."""
    @staticmethod
    def gatherb(src: Any, offset: Any, output_dtype: Any = ...) -> Any:
        """Collect blocks of 32 bytes by byte offset."""
    @staticmethod
    def gelu(x: Any, approximate: Any = ...) -> Any:
        """Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2`; `approximate="tanh"` is `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`."""
    @staticmethod
    def gemv(lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
        """A row times a matrix."""
    @staticmethod
    def gemv_acc(acc: Any, lhs: Any, rhs: Any, acc_phase: Any = ...) -> Any:
        """`acc` plus a row times a matrix."""
    @staticmethod
    def gemv_bias(lhs: Any, rhs: Any, bias: Any, acc_phase: Any = ...) -> Any:
        """A row times a matrix, plus a row."""
    @staticmethod
    def get_block_idx() -> Any:
        """The number of the block that runs."""
    @staticmethod
    def get_block_num() -> Any:
        """How many blocks there are."""
    @staticmethod
    def get_subblock_idx() -> Any:
        """Which vector core of its block this is."""
    @staticmethod
    def histogram(src: Any, idx: Any, isMSB: Any = ...) -> Any:
        """Cumulative histogram of one byte of every element, per row."""
    @staticmethod
    def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
        """Where the other side has the memory of a FIFO."""
    @staticmethod
    def interleave(lhs: Any, rhs: Any) -> Any:
        """Interleave the elements of two tiles into two."""
    @staticmethod
    def load(tensor: Any, offsets: Any, shapes: Any, valid_shape: Any = ..., target_memory: Any = ..., clamp: Any = ...) -> Any:
        """Copy a window of a tensor into a new tile; only its valid part is read. `clamp` lets it end with the tensor."""
    @staticmethod
    def log(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise natural logarithm."""
    @staticmethod
    def lrelu(x: Any, slope: Any) -> Any:
        """Leaky ReLU with one slope."""
    @staticmethod
    def matmul(lhs: Any, rhs: Any, out_dtype: Any = ..., a_trans: Any = ..., b_trans: Any = ..., c_matrix_nz: Any = ...) -> Any:
        """The product of two matrices, summed in FP32 or INT32; of stacks of them, one by one."""
    @staticmethod
    def matmul_acc(acc: Any, lhs: Any, rhs: Any, a_trans: Any = ..., b_trans: Any = ..., init_cond: Any = ...) -> Any:
        """`acc` plus the product of two matrices; the product alone where `init_cond` holds."""
    @staticmethod
    def matmul_bias(lhs: Any, rhs: Any, bias: Any) -> Any:
        """The product of two matrices plus a row."""
    @staticmethod
    def matmul_mx(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
        """The product of two matrices of small floats with scales, summed in FP32."""
    @staticmethod
    def matmul_mx_acc(acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
        """`acc` plus the product of two matrices of small floats with scales."""
    @staticmethod
    def matmul_mx_bias(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, bias: Any) -> Any:
        """The product of two matrices of small floats with scales, plus a row."""
    @staticmethod
    def max(lhs: Any, rhs: Any) -> Any:
        """The larger of two numbers."""
    @staticmethod
    def maximum(lhs: Any, rhs: Any) -> Any:
        """Element-wise maximum."""
    @staticmethod
    def maximums(lhs: Any, rhs: Any) -> Any:
        """Maximum of every element and a scalar."""
    @staticmethod
    def mgather(mem: Any, idx: Any, coalesce: Any = ..., *, gather_oob: Any = ..., target_memory: Any = ..., scratch: Any = ..., valid_shape: Any = ...) -> Any:
        """Rows, or elements, of a tensor by index. Into Mat they are gathered by indices in memory, elements by way of `scratch`, a tensor with a place for each."""
    @staticmethod
    def min(lhs: Any, rhs: Any) -> Any:
        """The smaller of two numbers."""
    @staticmethod
    def minimum(lhs: Any, rhs: Any) -> Any:
        """Element-wise minimum."""
    @staticmethod
    def minimums(lhs: Any, rhs: Any) -> Any:
        """Minimum of every element and a scalar."""
    @staticmethod
    def move(tile: Any, target_memory: Any, blayout: Any = ..., slayout: Any = ...) -> Any:
        """A copy in another memory."""
    @staticmethod
    def mrgsort(src0: Any, src1: Any = ..., src2: Any = ..., src3: Any = ..., tmp: Any = ..., exhausted: Any = ..., *, block_len: Any = ...) -> Any:
        """Merge sorted lists of values and indices (`sort32` makes them): runs of `block_len` of one row, by fours; or two to four rows."""
    @staticmethod
    def mscatter(src: Any, idx: Any, output_tensor: Any) -> Any:
        """Write the elements of a tile to the numbers of a tensor that `idx` has; the tensor is what it returns."""
    @staticmethod
    def mul(lhs: Any, rhs: Any) -> Any:
        """Element-wise product; integers wrap."""
    @staticmethod
    def muladddst(acc: Any, lhs: Any, rhs: Any) -> Any:
        """Adds the product of the sources to dst."""
    @staticmethod
    def muls(lhs: Any, rhs: Any) -> Any:
        """Multiplies every element by a scalar; integers wrap."""
    @staticmethod
    def neg(x: Any) -> Any:
        """Element-wise negation; integers wrap."""
    @staticmethod
    def not_(x: Any) -> Any:
        """Element-wise bitwise complement."""
    @staticmethod
    def operation(name: Any, types: Any, **args: Any) -> Any:
        """An operation that only stages make, as they print it."""
    @staticmethod
    def or_(lhs: Any, rhs: Any) -> Any:
        """Element-wise bitwise OR."""
    @staticmethod
    def ors(lhs: Any, rhs: Any) -> Any:
        """Bitwise OR of every element and a scalar."""
    @staticmethod
    def pack(x: Any, dtype: Any) -> Any:
        """Narrow every element to its low bits."""
    @staticmethod
    def paged_gather(src: Any, indices: Any, block_table: Any, block_size: Any, size: Any, max_indices: Any, *, space: Any = ..., col_off: Any = ..., is_trans: Any = ..., is_b_matrix: Any = ...) -> Any:
        """Rows of a tensor of pages: row i is `src[block_table[indices[i] // block_size] * block_size + indices[i] % block_size]`, `size` columns of it from `col_off` on."""
    @staticmethod
    def pair_reduce_sum(x: Any) -> Any:
        """Sum of each pair of neighbouring columns, packed to the left, the rest zero."""
    @staticmethod
    def part_add(lhs: Any, rhs: Any) -> Any:
        """Add two tiles where both are valid, copy the valid one elsewhere."""
    @staticmethod
    def part_argmax(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
        """Maximum of two value tiles with its index where both are valid, the valid pair elsewhere."""
    @staticmethod
    def part_argmin(lhs: Any, rhs: Any, lhs_index: Any, rhs_index: Any) -> Any:
        """Minimum of two value tiles with its index where both are valid, the valid pair elsewhere."""
    @staticmethod
    def part_max(lhs: Any, rhs: Any) -> Any:
        """Maximum of two tiles where both are valid, the valid one elsewhere."""
    @staticmethod
    def part_min(lhs: Any, rhs: Any) -> Any:
        """Minimum of two tiles where both are valid, the valid one elsewhere."""
    @staticmethod
    def part_mul(lhs: Any, rhs: Any) -> Any:
        """Multiply two tiles where both are valid, copy the valid one elsewhere."""
    @staticmethod
    def pow(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise power of one tile to another."""
    @staticmethod
    def pows(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Raises every element to a scalar power."""
    @staticmethod
    def prelu(x: Any, slope: Any, tmp: Any = ...) -> Any:
        """Parametric ReLU with a slope per element."""
    @staticmethod
    def quant(x: Any, scale: Any, offset: Any = ...) -> Any:
        """`x * scale`, with a scale per row, rounded to INT8; with an offset per row added, to UINT8."""
    @staticmethod
    def quant_mx(x: Any, dtype: Any, scale_alg: Any = ...) -> Any:
        """Small floats with one scale per 32 columns: the elements, and the exponents of the scales as UINT8."""
    @staticmethod
    def random(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., rounds: Any = ...) -> Any:
        """Fill a tile with counter-based pseudo-random 32-bit words."""
    @staticmethod
    def read(x: Any, offset: Any) -> Any:
        """One element as a number. An orchestrator waits until the tensor is written."""
    @staticmethod
    def recip(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise reciprocal."""
    @staticmethod
    def reinterpret_view(x: Any, dtype: Any, *, shape: Any = ...) -> Any:
        """The same bytes as elements of another type; the last extent changes as their width does."""
    @staticmethod
    def relu(x: Any) -> Any:
        """Element-wise rectified linear unit."""
    @staticmethod
    def rem(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise floored remainder: the result takes the sign of the divisor."""
    @staticmethod
    def rems(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Floored remainder by a scalar: the result takes the sign of the scalar."""
    @staticmethod
    def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
        """Memory for what arrives in a FIFO; its address is found where `base` is `pl.AUTO`, or left out."""
    @staticmethod
    def reshape(x: Any, shape: Any) -> Any:
        """The same elements, row after row, in another shape."""
    @staticmethod
    def row_argmax(x: Any, tmp_tile: Any = ...) -> Any:
        """Column index of the largest element of each row, and optionally that element."""
    @staticmethod
    def row_argmin(x: Any, tmp_tile: Any = ...) -> Any:
        """Column index of the smallest element of each row, and optionally that element."""
    @staticmethod
    def row_expand(target: Any, row_vec: Any) -> Any:
        """Copy column 0 of src into every column of dst."""
    @staticmethod
    def row_expand_add(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Add a per-row value to every element of a tile."""
    @staticmethod
    def row_expand_div(lhs: Any, rhs: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Divide every element of a tile by a per-row value."""
    @staticmethod
    def row_expand_expdif(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Exponential of every element minus a per-row value."""
    @staticmethod
    def row_expand_max(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Larger of every element and a per-row value."""
    @staticmethod
    def row_expand_min(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Smaller of every element and a per-row value."""
    @staticmethod
    def row_expand_mul(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Multiply every element of a tile by a per-row value."""
    @staticmethod
    def row_expand_sub(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Subtract a per-row value from every element of a tile."""
    @staticmethod
    def row_max(x: Any, tmp_tile: Any = ...) -> Any:
        """Largest element of each row, into column 0."""
    @staticmethod
    def row_min(x: Any, tmp_tile: Any = ...) -> Any:
        """Smallest element of each row, into column 0."""
    @staticmethod
    def row_prod(x: Any, tmp_tile: Any = ...) -> Any:
        """Product of each row, into column 0."""
    @staticmethod
    def row_sum(x: Any, tmp_tile: Any = ...) -> Any:
        """Sum of each row, into column 0."""
    @staticmethod
    def rsqrt(x: Any, tmp: Any = ..., high_precision: Any = ...) -> Any:
        """Element-wise reciprocal square root."""
    @staticmethod
    def scatter(dst: Any, src: Any, indexes: Any) -> Any:
        """`dst` with the elements of `src` at the numbers that `indexes` has, counted row after row."""
    @staticmethod
    def scatter_mask(dst: Any, src: Any, mask_pattern: Any) -> Any:
        """`dst` with the columns of `src` in those of a pattern."""
    @staticmethod
    def scatter_update(x: Any, *args: Any, **kwargs: Any) -> Any:
        """`x` with its row `index[k]` replaced by row k of `src`: (x, dim, index, src), or (x, index, src, dim=)."""
    @staticmethod
    def sel(mask: Any, lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Selects from two tiles by a packed predicate."""
    @staticmethod
    def sels(mask: Any, src: Any, tmp: Any = ..., scalar: Any = ...) -> Any:
        """Selects tile elements or a scalar by a packed predicate: `sels(mask, src, scalar)`, or with scratch third."""
    @staticmethod
    def set_validshape(x: Any, valid_rows: Any, valid_cols: Any) -> Any:
        """The same elements, of which another part is valid."""
    @staticmethod
    def shl(lhs: Any, rhs: Any) -> Any:
        """Element-wise left shift; bits shifted out are lost."""
    @staticmethod
    def shls(lhs: Any, rhs: Any) -> Any:
        """Shifts every element left by a scalar count."""
    @staticmethod
    def shr(lhs: Any, rhs: Any) -> Any:
        """Element-wise right shift: arithmetic for signed, logical for unsigned elements."""
    @staticmethod
    def shrs(lhs: Any, rhs: Any) -> Any:
        """Shifts every element right: arithmetic for signed, logical for unsigned elements."""
    @staticmethod
    def sin(x: Any) -> Any:
        """Sine, of FP32; exact to some 1e-7 near 0, worse than 1e-5 beyond 6000."""
    @staticmethod
    def slice(x: Any, shape: Any, offset: Any, valid_shape: Any = ..., drop_dims: Any = ..., pad_value: Any = ..., clamp: Any = ...) -> Any:
        """A window of a tensor or of a tile: other names for the same elements."""
    @staticmethod
    def sort32(src: Any, idx: Any, tmp: Any = ...) -> Any:
        """Sort every 32 elements of a row in descending order, each with its index beside it."""
    @staticmethod
    def sqrt(x: Any, high_precision: Any = ...) -> Any:
        """Element-wise square root."""
    @staticmethod
    def static_assert(condition: Any, message: Any = ...) -> Any:
        """Refuse the program unless something holds that is known when it is read."""
    @staticmethod
    def static_print(*args: Any) -> Any:
        """Print what is known when the program is read: objects of Python, and the types of values."""
    @staticmethod
    def store(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = ..., *, atomic: Any = ...) -> Any:
        """Write the valid part of a tile to a tensor; the tensor is what it returns."""
    @staticmethod
    def sub(lhs: Any, rhs: Any) -> Any:
        """Element-wise difference; integers wrap."""
    @staticmethod
    def subc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Difference of two tiles plus a third."""
    @staticmethod
    def subrelu(lhs: Any, rhs: Any) -> Any:
        """Difference followed by ReLU."""
    @staticmethod
    def subreluconv(lhs: Any, rhs: Any, dtype: Any) -> Any:
        """Difference, ReLU and saturating conversion to a narrower type."""
    @staticmethod
    def subs(lhs: Any, rhs: Any) -> Any:
        """Subtracts a scalar from every element; integers wrap."""
    @staticmethod
    def subsc(lhs: Any, rhs: Any, rhs2: Any) -> Any:
        """Subtracts a scalar and adds a second tile."""
    @staticmethod
    def tanh(x: Any) -> Any:
        """Hyperbolic tangent."""
    @staticmethod
    def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the cube core back."""
    @staticmethod
    def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
        """Give the place of a tile that came from the vector cores back."""
    @staticmethod
    def tpop_from_aic(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
        """The next tile of a FIFO from the cube core; wait until there is one."""
    @staticmethod
    def tpop_from_aiv(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
        """The next tile of a FIFO from the vector cores; wait until there is one."""
    @staticmethod
    def tpush_to_aic(tile: Any, *, split: Any, id: Any = ...) -> Any:
        """Put a tile into a FIFO to the cube core; wait while it is full."""
    @staticmethod
    def tpush_to_aiv(tile: Any, *, split: Any, id: Any = ...) -> Any:
        """Put a tile into a FIFO to the vector cores; wait while it is full."""
    @staticmethod
    def transpose(x: Any, axis1: Any, axis2: Any) -> Any:
        """Two dimensions change places; on a core, elements move."""
    @staticmethod
    def transpose_view(x: Any) -> Any:
        """The transpose of a tile in Mat, by another name for the same memory."""
    @staticmethod
    def tri(diagonal: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., upper: Any = ...) -> Any:
        """Fill a tile with a triangular mask of ones and zeros."""
    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`: arrays, columns, rows or numbers. The condition is a comparison, as in `pl.where(x > 0, x, 0.0)`, or an array, whose elements hold unless they are 0."""
    @staticmethod
    def write(x: Any, offset: Any, value: Any) -> Any:
        """Set one element."""
    @staticmethod
    def xor(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Element-wise bitwise exclusive OR."""
    @staticmethod
    def xors(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
        """Bitwise exclusive OR of every element and a scalar."""

def tpop_from_aic(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
    """The next tile of a FIFO from the cube core; wait until there is one."""

def tpop_from_aiv(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
    """The next tile of a FIFO from the vector cores; wait until there is one."""

def tpush_to_aic(tile: Any, *, split: Any, id: Any = ...) -> Any:
    """Put a tile into a FIFO to the cube core; wait while it is full."""

def tpush_to_aiv(tile: Any, *, split: Any, id: Any = ...) -> Any:
    """Put a tile into a FIFO to the vector cores; wait while it is full."""

def transpose(x: Any, axis1: Any, axis2: Any) -> Any:
    """Two dimensions change places; on a core, elements move."""

def tri(diagonal: Any, shape: Any, valid_shape: Any = ..., dtype: Any = ..., upper: Any = ...) -> Any:
    """Fill a tile with a triangular mask of ones and zeros."""

def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`: arrays, columns, rows or numbers. The condition is a comparison, as in `pl.where(x > 0, x, 0.0)`, or an array, whose elements hold unless they are 0."""

def write(x: Any, offset: Any, value: Any) -> Any:
    """Set one element."""

def xor(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Element-wise bitwise exclusive OR."""

def xors(lhs: Any, rhs: Any, tmp: Any = ...) -> Any:
    """Bitwise exclusive OR of every element and a scalar."""
