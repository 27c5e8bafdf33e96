"""Enumerations that operators and regions take, with pypto's numbers."""

from __future__ import annotations

import enum


class MemorySpace(enum.Enum):
    """The memory of a tile. `isa` is its location in the instruction table."""

    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9

    @property
    def isa(self) -> str:
        return {"LeftScale": "scale_left", "RightScale": "scale_right"}.get(self.name, self.name.lower())


class BackendType(enum.Enum):
    """Machines by pypto's names; older names select a code generator for the machine."""

    Ascend910B = 0
    Ascend910B_PTO = 0
    Ascend910B_CCE = 0
    Ascend950 = 1


class Level(enum.Enum):
    """The level of the machine hierarchy of a region or function."""

    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    L2CACHE = 3
    CHIP = 4
    PROCESSOR = 4
    UMA = 4
    HOST = 5
    NODE = 5
    CLUSTER_0 = 6
    POD = 6
    CLUSTER_1 = 7
    CLOS1 = 7
    CLUSTER_2 = 8
    CLOS2 = 8
    GLOBAL = 9


class Role(enum.Enum):
    Orchestrator = 0
    SubWorker = 1


class ArgDirection(enum.Enum):
    """The direction of a call's argument, as printed programs note it. All except `NoDep` follow from the
    function."""

    Input = 0
    Output = 1
    OutputExisting = 2
    InOut = 3
    NoDep = 4
    Scalar = 5


class NotifyOp(enum.Enum):
    Set = 0
    AtomicAdd = 1


class WaitCmp(enum.Enum):
    Eq = 0
    Ge = 1


class ReduceOp(enum.Enum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class FunctionType(enum.Enum):
    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class ForKind(enum.Enum):
    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class SplitMode(enum.Enum):
    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class PadValue(enum.Enum):
    null = 0
    zero = 1
    max = 2
    min = 3


class AtomicType(enum.Enum):
    None_ = 0
    Add = 1


class PipeType(enum.Enum):
    """Pipes of a core."""

    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class ScopeMode(enum.Enum):
    AUTO = 0
    MANUAL = 1


class TensorLayout(enum.Enum):
    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(enum.Enum):
    none_box = 0
    row_major = 1
    col_major = 2


class MaskPattern(enum.Enum):
    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


#: Comparisons by number, and the table's spelling of the rounding modes of `cast`.
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ROUNDINGS = {
    "none": "NONE", "rint": "RINT", "round": "ROUND", "floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC",
    "odd": "ODD",
}  # fmt: skip
