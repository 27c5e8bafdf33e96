// Enumerations and constants of the tile instruction set, with the values that the assembler uses.
#pragma once

#include <type_traits>

#include "pto/core/macros.hpp"

namespace pto {

// --- tiles and tensors -------------------------------------------------------------------------------------

enum class BLayout { RowMajor = 0, ColMajor = 1 };
enum class SLayout { NoneBox = 0, RowMajor = 1, ColMajor = 2 };

enum class Layout {
  ND,
  DN,
  NZ,
  SCALE,
  MX_A_ND,
  MX_A_DN,
  MX_A_ZZ,
  MX_B_ND,
  MX_B_DN,
  MX_B_NN,
  HIF4_A_ZZ,
  HIF4_B_NN,
  NC1HWC0,
  GNC1HWC0,
  NCHW,
  GNCHW,
  NHWC,
  NDC1HWC0,
  NCDHW,
  FRACTAL_Z,
  FRACTAL_Z_S16S8,
  FRACTAL_Z_3D,
  MAX,
};

enum class TileLayoutCustom : uint8_t { ND, DN, NZ, ZN, ZZ, NONE };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };

/// The padding of a tile. From CustomBase on, the low 32 bits are the bit pattern of an element.
enum class PadValue : uint64_t { Null = 0, Zero = 1, Max = 2, Min = 3, CustomBase = 0x100000000 };

inline constexpr int DYNAMIC = -1;

namespace GlobalTensorDim {
inline constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}

namespace TileConfig {
inline constexpr int alignedSize = 32, fixedRowSize = 16, fixedColSize = 16, fixedMxRowSize = 16,
                     fixedMxColSize = 2, fractalABSize = 512, fractalCSize = 1024, fractalMxSize = 32;
}

// --- modes of instructions ---------------------------------------------------------------------------------

enum class CmpMode : uint8_t { EQ = 0, NE = 1, LT = 2, LE = 3, GT = 4, GE = 5 };

enum class RoundMode : uint8_t {
  CAST_NONE = 0,
  CAST_RINT = 1,   // nearest, ties to even
  CAST_ROUND = 2,  // nearest, ties away from zero
  CAST_FLOOR = 3,
  CAST_CEIL = 4,
  CAST_TRUNC = 5,
  CAST_ODD = 6,
};
enum class SaturationMode : uint8_t { ON = 0, OFF = 1 };

enum class PowAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class DivAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class ExpAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };

enum class AtomicType : uint8_t { AtomicNone = 0, AtomicAdd = 1, AtomicMax = 2, AtomicMin = 3 };
enum class ReluPreMode : uint8_t { NoRelu = 0, NormalRelu = 1 };
enum class AccToVecMode : uint8_t {
  SingleModeVec0 = 0,
  SingleModeVec1 = 1,
  DualModeSplitM = 2,
  DualModeSplitN = 3
};
enum class STPhase : uint8_t { Unspecified = 0, Partial = 2, Final = 3 };
enum class AccPhase : uint8_t { Unspecified = 0, Unknown = 0, Partial = 2, Final = 3 };
enum class TFillPadMode : uint8_t { Normal = 0, InPlace = 1, Expand = 2 };
namespace detail {
enum class InsertMode : uint8_t { SPLIT2 = 2, SPLIT4 = 3 };
}
#ifndef PTO_CPU_BARE_REGISTERS
using TInsertMode = detail::InsertMode;
#endif
enum class TCopyMode : uint8_t { SHALLOW_COPY = 0, DEEP_COPY = 1 };
enum class VecStoreMode { ND = 0, NZ = 1 };
enum class SetFmatrixMode { FMATRIX_A_AUTO, FMATRIX_B_AUTO, FMATRIX_A_MANUAL, FMATRIX_B_MANUAL };

enum class QuantType { MXFP8 = 0, MXFP4_E2M1 = 1, INT8_SYM = 2, INT8_ASYM = 3 };
enum class QuantScaleAlg { OCP = 0, NV = 1 };
enum class MxQuantAlg { OcpMxFp8E4M3 = 0, NvMxFp8E4M3 = 1, OcpMxFp4E2M1 = 2, NvMxFp4E2M1 = 3, Hif4 = 4 };

enum class ScatterAxis : uint8_t { SCATTER_ROW = 0, SCATTER_COL = 1 };
enum class ScatterAtomicOp : uint8_t { None = 0, Add = 1, Max = 2, Min = 3 };
enum class ScatterOOB : uint8_t { Undefined = 0, Skip = 1, Clamp = 2, Wrap = 3 };
enum class ScatterConflict : uint8_t { Last = 0, Default = 1 };
enum class GatherAxis : uint8_t { GATHER_ROW = 0, GATHER_COL = 1 };
enum class GatherOOB : uint8_t { Undefined = 0, Clamp = 1, Wrap = 2, Zero = 3 };
enum class Coalesce : uint8_t { Row = 0, Elem = 1 };
/// A5: the unit that fetches the elements of a gather from global memory to L1; the result is the same.
enum class GatherExec : uint8_t { Scalar = 0, Simt = 1 };
enum class HistByte : uint8_t { BYTE_0 = 0, BYTE_1 = 1, BYTE_2 = 2, BYTE_3 = 3 };
enum class PrintFormat : uint8_t { Width8_Precision4 = 0, Width8_Precision2 = 1, Width10_Precision6 = 2 };

enum class SyncAllMode : uint8_t { Hard = 0, Soft = 1 };
enum class SyncCoreType : uint8_t { AIVOnly = 0, AICOnly = 1, Mix = 2 };
inline constexpr uint16_t SYNC_AIC_FLAG = 11, SYNC_AIV_FLAG = 12, SYNC_AIC_AIV_FLAG = 13,
                          SYNC_AIV_ONLY_ALL = 14, SYNC_FLAG_ID_MAX = 16;
inline constexpr int32_t SYNCALL_SOFT_WORKSPACE_INT32 = 16;

enum VFImplKind : unsigned {
  VFIMPL_DEFAULT = 0,
  VFIMPL_1D_NO_POST_UPDATE = 1,
  VFIMPL_2D_NO_POST_UPDATE = 2,
  VFIMPL_1D_POST_UPDATE = 3,
  VFIMPL_2D_POST_UPDATE = 4,
};

// --- hardware sizes that kernels use -----------------------------------------------------------------------

inline constexpr int REPEAT_BYTE = 256, REPEAT_MAX = 255, REPEAT_STRIDE_MAX = 255, BLOCK_BYTE_SIZE = 32,
                     BLOCK_LEN = 16, CUBE_BLOCK_SIZE = 512, C0_SIZE_BYTE = 32, FRACTAL_NZ_ROW = 16,
                     FRACTAL_ZZ_ROW = 16, ACC_C0_SIZE = 16, FIXP_BURST_UNIT_LEN = 64, MX_COL_LEN = 2,
                     MX_ROW_LEN = 16, MX_BLOCK_SIZE = 32, HIF4_COL_LEN = 4, HIF4_ROW_LEN = 16,
                     HIF4_BLOCK_SIZE = 64, B8_DATA_TYPE_OFFSET = 8, MAD_MODE_BIT = 46,
                     MAD_ROUND_MODE_BIT = 47;
inline constexpr uint32_t SHIFT_BLOCK_LEN = 4, SHIFT_BLOCK_BYTE = 5, SHIFT_FRACTAL_BYTE = 9, B4_C0_SIZE = 64;
#ifndef PTO_CPU_BARE_REGISTERS
inline constexpr uint32_t SHIFT_MX_ADDR = 4;
#endif
inline constexpr int NUM_1 = 1, NUM_4 = 4, NUM_8 = 8, NUM_12 = 12, NUM_16 = 16, NUM_32 = 32, NUM_64 = 64,
                     NUM_77 = 77, NUM_96 = 96, NUM_128 = 128, NUM_256 = 256, NUM_512 = 512;
inline constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8, MASK_LEN = 64;

inline constexpr int PTO_RANDOM_KEY_SIZE = 2, PTO_RANDOM_COUNTER_SIZE = 4;
using TRandomKey = uint32_t[PTO_RANDOM_KEY_SIZE];
using TRandomCounter = uint32_t[PTO_RANDOM_COUNTER_SIZE];

}  // namespace pto
