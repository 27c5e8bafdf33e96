"""The catalogue of illegal programs (34 items of the machine model): each is rejected, its legal twin is not.

A program and its twin are written as one difference: lines that begin with `-` are in the illegal program
only, lines that begin with `+` in the legal one only. `//~ CODE` says which diagnostic a line must get; the
illegal program gets exactly those, the legal one none. Items no static check can decide are in `DYNAMIC`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.each import together

#: Items that depend on what happens at run time: the sanitizers of the engines and the runtime report them.
DYNAMIC: dict[int, str] = {
    5: "a race needs happens-before over byte ranges and iterations; the race sanitizer follows every access",
    6: "as item 5, for pto.v* accesses and UB copies",
    7: "as item 5, for L0C between the cube unit and the fix pipe",
    27: "which rank runs the call is known at run time only",
    29: "whether a signal arrives depends on the other ranks; the watchdog of the engine reports it",
    31: "how many cores arrive, and what the workspace holds, is known at run time only",
}

_SCALARS = "%n: index, %i: i64, %cond: i1, %x: f32"
_POINTERS = (
    "%gm: !pto.ptr<f32>, %ub: !pto.ptr<f32, ub>, %ub16: !pto.ptr<f16, ub>, %l1: !pto.ptr<f32, l1>, "
    "%l0a: !pto.ptr<f16, l0a>, %l0b: !pto.ptr<f16, l0b>, %l0c: !pto.ptr<f32, l0c>, %bt: !pto.ptr<f32, bt>"
)
_PRELUDE = "".join(
    f"%c{v} = arith.constant {v} : index\n%i{v} = arith.constant {v} : i64\n"
    for v in (0, 1, 7, 8, 16, 32, 64)
)
TILE = "!pto.tile_buf<vec, 16x64xf32>"
NZ = "!pto.tile_buf<mat, 16x64xf32, blayout=col_major, slayout=row_major>"
ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
SET = "pto.set_flag[PIPE_MTE2, PIPE_V, EVENT_ID0]"
WAIT = "pto.wait_flag[PIPE_MTE2, PIPE_V, EVENT_ID0]"
VIEW = "!pto.partition_tensor_view<16x64xf32>"


@dataclass
class Pair:
    item: int
    name: str
    text: str
    target: str = "a2a3"
    arguments: str = f"{_SCALARS}, {_POINTERS}"
    attributes: str = ""
    whole: bool = False  # the text is a module, not the body of a function
    options: dict[str, Any] = field(default_factory=dict)

    def program(self, sign: str) -> str:
        """The illegal (`-`) or the legal (`+`) program."""
        lines = [line for line in self.text.strip("\n").split("\n") if line[:1] in ("", " ", sign)]
        text = "\n".join(" " + line[1:] for line in lines)
        if sign == "+":
            text = re.sub(r"//~.*", "", text)
        if self.whole:
            return text
        head = f"func.func @k({self.arguments})"
        if self.attributes:
            head += f" attributes {{{self.attributes}}}"
        return f"module {{\n{head} {{\n{_PRELUDE}{text}\nreturn\n}}\n}}\n"


CUBE = "pto.kernel_kind = #pto.kernel_kind<cube>"
VECTOR = "pto.kernel_kind = #pto.kernel_kind<vector>"

PAIRS: list[Pair] = [
    # ------------------------------------------------------------------------------------------- 1 pipes
    Pair(1, "unknown pipe", """
-pto.barrier #pto.pipe<PIPE_MTE9> //~ PTO-E0112
+pto.barrier #pto.pipe<PIPE_MTE2>
"""),
    Pair(1, "PIPE_ALL as an end", f"""
-pto.set_flag[#pto.pipe<PIPE_ALL>, #pto.pipe<PIPE_V>, EVENT_ID0] //~ PTO-E0112
-pto.wait_flag[#pto.pipe<PIPE_ALL>, #pto.pipe<PIPE_V>, EVENT_ID0] //~ PTO-E0112
+{SET}
+{WAIT}
"""),
    Pair(1, "PIPE_UNASSIGNED as an end", f"""
-pto.set_flag[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_UNASSIGNED>, EVENT_ID0] //~ PTO-E0112
-pto.wait_flag[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_UNASSIGNED>, EVENT_ID0] //~ PTO-E0112
+{SET}
+{WAIT}
"""),
    Pair(1, "both ends one pipe", """
-pto.set_flag[PIPE_V, PIPE_V, EVENT_ID0] //~ PTO-E0116
-pto.wait_flag[PIPE_V, PIPE_V, EVENT_ID0] //~ PTO-E0116
+pto.set_flag[PIPE_V, PIPE_MTE3, EVENT_ID0]
+pto.wait_flag[PIPE_V, PIPE_MTE3, EVENT_ID0]
"""),
    Pair(1, "two classes of one pipe", """
-pto.record_event[TMOV_M2L, TMOV_M2B, EVENT_ID0] //~ PTO-E0116
-pto.wait_event[TMOV_M2L, TMOV_M2B, EVENT_ID0] //~ PTO-E0116
+pto.record_event[TLOAD, TMOV_M2B, EVENT_ID0]
+pto.wait_event[TLOAD, TMOV_M2B, EVENT_ID0]
"""),
    # --------------------------------------------------------------------------------------------- 2 ids
    Pair(2, "flag id", f"""
-pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID8>] //~ PTO-E0112
+{SET}
+{WAIT}
"""),
    Pair(2, "event id read as unsigned", """
 %byte = arith.constant -1 : i8
-%wide = arith.index_castui %byte : i8 to index
+%wide = arith.index_cast %byte : i8 to index
 %id = arith.addi %wide, %c8 : index
-pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %id] //~ PTO-E0401
+pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %id]
-pto.wait_flag_dyn[PIPE_MTE2, PIPE_V, %id] //~ PTO-E0401
+pto.wait_flag_dyn[PIPE_MTE2, PIPE_V, %id]
"""),
    Pair(21, "valid rows read as unsigned", """
 %byte = arith.constant -56 : i8
-%wide = arith.index_castui %byte : i8 to index
+%wide = arith.index_cast %byte : i8 to index
 %rows = arith.addi %wide, %c64 : index
 %t = pto.alloc_tile valid_row = %rows : !pto.tile_buf<vec, 16x64xf32, valid=?x64> //~ PTO-E0401
"""),
    Pair(2, "flag id by value", """
-pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %c8] //~ PTO-E0401
-pto.wait_flag_dyn[PIPE_MTE2, PIPE_V, %c8] //~ PTO-E0401
+pto.set_flag_dyn[PIPE_MTE2, PIPE_V, %c7]
+pto.wait_flag_dyn[PIPE_MTE2, PIPE_V, %c7]
"""),
    Pair(2, "cross-core id of A2/A3", """
-pto.set_cross_core %i0, %i16 : i64, i64 //~ PTO-E0401
+pto.set_cross_core %i0, %i7 : i64, i64
"""),
    Pair(2, "cross-core id of A5", """
-pto.set_intra_block #pto.pipe<PIPE_MTE3>, 32 //~ PTO-E0116
+pto.set_intra_block #pto.pipe<PIPE_MTE3>, 31
""", target="a5"),
    Pair(2, "buffer token", """
-pto.get_buf[PIPE_V, 32] //~ PTO-E0116
-pto.rls_buf[PIPE_V, 32] //~ PTO-E0116
+pto.get_buf[PIPE_V, 31]
+pto.rls_buf[PIPE_V, 31]
"""),
    # ------------------------------------------------------------------------------------- 3, 4, 8 flags
    Pair(3, "wait without set", f"""
-{WAIT} //~ PTO-E0803
+{SET}
+{WAIT}
"""),
    Pair(3, "set without wait", f"""
 {SET} //~ PTO-E0805
+{WAIT}
"""),
    Pair(3, "set on one path only", f"""
+{SET}
 scf.if %cond {{ //~ PTO-E0808
-  {SET}
+  {WAIT}
+}} else {{
+  {WAIT}
 }}
"""),
    Pair(4, "set twice", f"""
 {SET}
-{SET} //~ PTO-E0804
 {WAIT}
"""),
    Pair(4, "set in every iteration", f"""
 scf.for %k = %c0 to %n step %c1 {{
   {SET} //~ PTO-E0804
+  {WAIT}
 }}
"""),
    Pair(8, "token taken twice", """
 pto.get_buf[PIPE_V, 3]
-pto.get_buf[PIPE_V, 3] //~ PTO-E0806
+pto.get_buf[PIPE_MTE2, 4]
+pto.rls_buf[PIPE_MTE2, 4]
 pto.rls_buf[PIPE_V, 3]
"""),
    Pair(8, "token released by another pipe", """
 pto.get_buf[PIPE_V, 3] //~ PTO-E0807
-pto.rls_buf[PIPE_MTE2, 3] //~ PTO-E0806
+pto.rls_buf[PIPE_V, 3]
"""),
    Pair(8, "token left held", """
 pto.get_buf[PIPE_V, 3] //~ PTO-E0807
+pto.rls_buf[PIPE_V, 3]
"""),
    # ------------------------------------------------------------------------------------- 9-11 cross-core
    Pair(9, "set_cross_core on A5", """
-pto.set_cross_core %i0, %i7 : i64, i64 //~ PTO-E0601
+pto.set_intra_block #pto.pipe<PIPE_MTE3>, 7
""", target="a5"),
    Pair(9, "wait_flag_dev on A5", """
-pto.wait_flag_dev %i7 : i64 //~ PTO-E0601
+pto.wait_intra_core #pto.pipe<PIPE_MTE3>, 7
""", target="a5"),
    Pair(9, "set_intra_block on A2/A3", """
-pto.set_intra_block #pto.pipe<PIPE_MTE3>, 7 //~ PTO-E0601
+pto.set_cross_core %i0, %i7 : i64, i64
"""),
    Pair(9, "wait_intra_core on A2/A3", """
-pto.wait_intra_core #pto.pipe<PIPE_MTE3>, 7 //~ PTO-E0601
+pto.wait_flag_dev %i7 : i64
"""),
    Pair(10, "core id", """
-pto.set_cross_core %i7, %i7 : i64, i64 //~ PTO-E0401
+pto.set_cross_core %i1, %i7 : i64, i64
"""),
    Pair(11, "pipe of sync.set on A5", """
-pto.sync.set #pto.pipe<PIPE_V>, 3 //~ PTO-E0116
+pto.sync.set #pto.pipe<PIPE_FIX>, 3
""", target="a5"),
    Pair(11, "pipe of sync.wait on A5", """
-pto.sync.wait #pto.pipe<PIPE_M>, 3 //~ PTO-E0116
+pto.sync.wait #pto.pipe<PIPE_V>, 3
""", target="a5"),
    Pair(11, "no event id", """
-"pto.sync.set"() <{pipe = #pto.pipe<PIPE_MTE3>}> : () -> () //~ PTO-E0116
+"pto.sync.set"() <{pipe = #pto.pipe<PIPE_MTE3>, event_id = 3}> : () -> ()
"""),
    Pair(11, "two event ids", """
-"pto.sync.set"(%n) <{pipe = #pto.pipe<PIPE_MTE3>, event_id = 3}> : (index) -> () //~ PTO-E0116
+"pto.sync.set"(%n) <{pipe = #pto.pipe<PIPE_MTE3>}> : (index) -> ()
"""),
    Pair(11, "ffts mode", """
-pto.sync.set #pto.pipe<PIPE_MTE3>, 3 {ffts_mode = 3} //~ PTO-E0116
+pto.sync.set #pto.pipe<PIPE_MTE3>, 3 {ffts_mode = 2}
"""),
    # ---------------------------------------------------------------------------------- 12-14 vecscopes
    Pair(12, "mem_bar outside", """
-pto.mem_bar "VST_VLD" //~ PTO-E1001
+pto.vecscope {
+  pto.mem_bar "VST_VLD"
+}
""", target="a5"),
    Pair(12, "unknown barrier", """
 pto.vecscope {
-  pto.mem_bar "VST_VLDD" //~ PTO-E0112
+  pto.mem_bar "VST_VLD"
 }
""", target="a5"),
    Pair(13, "nested vecscope", """
 pto.vecscope {
-  pto.strict_vecscope() { //~ PTO-E1004
-  } : () -> ()
+}
+pto.strict_vecscope() {
+} : () -> ()
-}
""", target="a5"),
    Pair(13, "register outside", """
-%v = pto.vlds %ub[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32> //~ PTO-E1001
+pto.vecscope {
+  %v = pto.vlds %ub[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
+}
""", target="a5"),
    Pair(13, "mask outside", """
-%m = pto.pset_b32 "PAT_ALL" : !pto.mask //~ PTO-E1001
+pto.vecscope {
+  %m = pto.pset_b32 "PAT_ALL" : !pto.mask
+}
""", target="a5"),
    Pair(13, "a vecscope has no results", """
 %one = scf.for %k = %c0 to %c1 step %c1 iter_args(%a = %n) -> (index) {
-  %r = "pto.vecscope"() ({ //~ PTO-E0107
+  pto.vecscope {
     %v = pto.vlds %ub[%a] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
-  }) : () -> !pto.vreg<64xf32>
+  }
   scf.yield %a : index
 }
""", target="a5"),
    Pair(13, "implicit capture", """
-pto.strict_vecscope(%ub) {
-^bb0(%p: !pto.ptr<f32, ub>):
-  %v = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32> //~ PTO-E1006
-} : (!pto.ptr<f32, ub>) -> ()
+pto.strict_vecscope(%ub, %c0) {
+^bb0(%p: !pto.ptr<f32, ub>, %o: index):
+  %v = pto.vlds %p[%o] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
+} : (!pto.ptr<f32, ub>, index) -> ()
""", target="a5"),
    Pair(14, "load stream from init_align", """
 pto.vecscope {
-  %s = pto.init_align : !pto.align
+  %s = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align
   %v, %t = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align //~ PTO-E1008
 }
""", target="a5"),
    Pair(14, "store stream from vldas", """
 pto.vecscope {
-  %s = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align
+  %s = pto.init_align : !pto.align
   pto.vstar %s, %ub : !pto.align, !pto.ptr<f32, ub> //~ PTO-E1008
 }
""", target="a5"),
    Pair(14, "state used twice", """
 pto.vecscope {
   %s = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align
   %v, %t = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align
-  %w, %u = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align //~ PTO-E1007
+  %w, %u = pto.vldus %ub, %t : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align
 }
""", target="a5"),
    # ----------------------------------------------------------------------------------------- 15, 16 DMA
    Pair(15, "no nburst", """
-pto.mte_gm_ub %gm, %ub, %i0, %i64 : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64 //~ PTO-E0107
+pto.mte_gm_ub %gm, %ub, %i0, %i64 nburst(%i1, %i64, %i64) : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
"""),
    Pair(15, "incomplete loop", """
-pto.mte_ub_gm %ub, %gm, %i64 nburst(%i1, %i64, %i64) loop(%i1, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64, loop i64, i64 //~ PTO-E0107
+pto.mte_ub_gm %ub, %gm, %i64 nburst(%i1, %i64, %i64) loop(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64, loop i64, i64, i64
"""),
    Pair(15, "clause order", """
-pto.mte_ub_gm %ub, %gm, %i64 loop(%i1, %i64, %i64) nburst(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64, loop i64, i64, i64 //~ PTO-E0107
+pto.mte_ub_gm %ub, %gm, %i64 nburst(%i1, %i64, %i64) loop(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64, loop i64, i64, i64
"""),
    Pair(15, "one-sided pad", """
-pto.mte_gm_ub %gm, %ub, %i0, %i64 nburst(%i1, %i64, %i64) pad(%x, %i1) : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64, pad f32, i64 //~ PTO-E0107
+pto.mte_gm_ub %gm, %ub, %i0, %i64 nburst(%i1, %i64, %i64) pad(%x, %i1, %i1) : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64, pad f32, i64, i64
"""),
    Pair(15, "field overflow", """
-%len = arith.constant 65536 : i64
+%len = arith.constant 65535 : i64
 pto.mte_ub_gm %ub, %gm, %len nburst(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64 //~ PTO-E0401
"""),
    Pair(16, "address space", """
-pto.mte_ub_gm %gm, %gm, %i64 nburst(%i1, %i64, %i64) : !pto.ptr<f32>, !pto.ptr<f32>, i64, i64, i64, i64 //~ PTO-E0501
+pto.mte_ub_gm %ub, %gm, %i64 nburst(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64
"""),
    Pair(16, "element types differ", """
-pto.mte_ub_gm %ub16, %gm, %i64 nburst(%i1, %i64, %i64) : !pto.ptr<f16, ub>, !pto.ptr<f32>, i64, i64, i64, i64 //~ PTO-E0301
+pto.mte_ub_gm %ub, %gm, %i64 nburst(%i1, %i64, %i64) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64
"""),
    Pair(16, "operand buffer of mad", """
-pto.mad %l0b, %l0b, %l0c, %i16, %i16, %i16 : !pto.ptr<f16, l0b>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0501
+pto.mad %l0a, %l0b, %l0c, %i16, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
"""),
    # --------------------------------------------------------------------------------------- 17-19 cube
    Pair(17, "extent zero", """
-pto.mad %l0a, %l0b, %l0c, %i0, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0401
+pto.mad %l0a, %l0b, %l0c, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
"""),
    Pair(17, "extent too large", """
-%k = arith.constant 4096 : i64
+%k = arith.constant 4095 : i64
 pto.mad %l0a, %l0b, %l0c, %i1, %i16, %k : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0401
"""),
    Pair(17, "element types", """
-pto.mad %a, %b, %i32acc, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<i32, l0c>, i64, i64, i64 //~ PTO-E0302
+pto.mad %a, %b, %acc, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
""", arguments="%a: !pto.ptr<f16, l0a>, %b: !pto.ptr<f16, l0b>, %i32acc: !pto.ptr<i32, l0c>, %acc: !pto.ptr<f32, l0c>"),
    Pair(17, "tf32 on f16", """
-pto.mad %l0a, %l0b, %l0c, %i16, %i16, %i16 tf32_mode(round_even) : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0301
+pto.mad %a, %b, %l0c, %i16, %i16, %i16 tf32_mode(round_even) : !pto.ptr<f32, l0a>, !pto.ptr<f32, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
""", arguments=f"{_SCALARS}, {_POINTERS}, %a: !pto.ptr<f32, l0a>, %b: !pto.ptr<f32, l0b>"),
    Pair(17, "saturation of integers", """
-pto.mad %a, %b, %c, %i16, %i16, %i16 sat : !pto.ptr<i8, l0a>, !pto.ptr<i8, l0b>, !pto.ptr<i32, l0c>, i64, i64, i64 //~ PTO-E0301
+pto.mad %a, %b, %c, %i16, %i16, %i16 : !pto.ptr<i8, l0a>, !pto.ptr<i8, l0b>, !pto.ptr<i32, l0c>, i64, i64, i64
""", arguments="%a: !pto.ptr<i8, l0a>, %b: !pto.ptr<i8, l0b>, %c: !pto.ptr<i32, l0c>"),
    Pair(17, "k of MX", """
-pto.mad_mx %a, %b, %c, %i16, %i16, %i32 : !pto.ptr<f8E4M3FN, l0a>, !pto.ptr<f8E4M3FN, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0401
+pto.mad_mx %a, %b, %c, %i16, %i16, %i64 : !pto.ptr<f8E4M3FN, l0a>, !pto.ptr<f8E4M3FN, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
""", target="a5", arguments="%a: !pto.ptr<f8E4M3FN, l0a>, %b: !pto.ptr<f8E4M3FN, l0b>, %c: !pto.ptr<f32, l0c>"),
    Pair(17, "MX off A5", """
-pto.mad_mx %a, %b, %c, %i16, %i16, %i64 : !pto.ptr<f8E4M3FN, l0a>, !pto.ptr<f8E4M3FN, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E0601
+pto.mad %l0a, %l0b, %c, %i16, %i16, %i64 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64
""", arguments="%a: !pto.ptr<f8E4M3FN, l0a>, %b: !pto.ptr<f8E4M3FN, l0b>, %c: !pto.ptr<f32, l0c>, %l0a: !pto.ptr<f16, l0a>, "
         "%l0b: !pto.ptr<f16, l0b>"),
    Pair(17, "bias not in bt", """
-pto.mad_bias %l0a, %l0b, %l0c, %ub, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64 //~ PTO-E0501
+pto.mad_bias %l0a, %l0b, %l0c, %bt, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, !pto.ptr<f32, bt>, i64, i64, i64
"""),
    Pair(17, "bias of another type", """
-pto.mad_bias %l0a, %l0b, %l0c, %b16, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, !pto.ptr<f16, bt>, i64, i64, i64 //~ PTO-E0301
+pto.mad_bias %l0a, %l0b, %l0c, %bt, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, !pto.ptr<f32, bt>, i64, i64, i64
""", arguments=f"{_SCALARS}, {_POINTERS}, %b16: !pto.ptr<f16, bt>"),
    Pair(18, "quantisation without payload", """
-pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, pre_quant(mode = qf322f32_pre_scalar) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64 //~ PTO-E0116
+pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, pre_quant(%x, mode = qf322f32_pre_scalar) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64, f32
"""),
    Pair(18, "clauses out of order", """
-pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, nz2nd, unit_flag(check_only) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64 //~ PTO-E0107
+pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, unit_flag(check_only), nz2nd : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64
"""),
    Pair(18, "relu payload", """
-pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, pre_relu(%x, mode = normal_relu) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64, f32 //~ PTO-E0116
+pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, pre_relu(%x, mode = scalar_relu) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64, f32
"""),
    Pair(18, "nz2dn without stride", """
-pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, nz2dn : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64 //~ PTO-E0116
+pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, nz2dn(%i1) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64, i64
"""),
    Pair(18, "nz2nz to f16", """
-pto.mte_l0c_l1 %l0c, %h, %i16, %i16, %i16, %i16, nz2nz : !pto.ptr<f32, l0c>, !pto.ptr<f16, l1>, i64, i64, i64, i64 //~ PTO-E0301
+pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, nz2nz : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64
""", arguments=f"{_SCALARS}, {_POINTERS}, %h: !pto.ptr<f16, l1>"),
    Pair(18, "odd split_m", """
-pto.mte_l0c_ub %l0c, %ub, %i7, %i32, %i16, %i16, dst_mode(split_m) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64 //~ PTO-E0401
+pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(split_m) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64
""", target="a5"),
    Pair(18, "split_n of 16", """
-pto.mte_l0c_ub %l0c, %ub, %i8, %i16, %i16, %i16, dst_mode(split_n) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64 //~ PTO-E0401
+pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(split_n) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64
""", target="a5"),
    Pair(18, "split with relu", """
-pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(split_m), pre_relu(mode = normal_relu) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64 //~ PTO-E0116
+pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(%i1), pre_relu(mode = normal_relu) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
""", target="a5"),
    Pair(18, "vector core 7", """
-pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(%i7) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64 //~ PTO-E0401
+pto.mte_l0c_ub %l0c, %ub, %i8, %i32, %i16, %i16, dst_mode(%i1) : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
""", target="a5"),
    Pair(18, "sid and l2", """
-pto.mte_l0c_gm %l0c, %gm, %i16, %i16, %i16, %i16, %i7, %i16 : !pto.ptr<f32, l0c>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64 //~ PTO-E0401 PTO-E0401
+pto.mte_l0c_gm %l0c, %gm, %i16, %i16, %i16, %i16, %i1, %i8 : !pto.ptr<f32, l0c>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64
"""),
    Pair(18, "atomic outside l0c_gm", """
-pto.mte_l0c_l1 %l0c, %l1, %i16, %i16, %i16, %i16, atomic(type = f32, op = add) : !pto.ptr<f32, l0c>, !pto.ptr<f32, l1>, i64, i64, i64, i64 //~ PTO-E0107
+pto.mte_l0c_gm %l0c, %gm, %i16, %i16, %i16, %i16, %i0, %i0, atomic(type = f32, op = add) : !pto.ptr<f32, l0c>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64
"""),
    Pair(19, "small C0 with many channels", """
 %on = arith.constant true
-pto.mte_gm_l1_frac %gm, %l1, nd2nz, shape(%i16, %i8), src_layout(%i32), dst_group(%i1, %i1, %i16, %i64), ctrl(%i0, %on) : !pto.ptr<f32>, !pto.ptr<f32, l1>, nd2nz, shape i64, i64, src_layout(i64), dst_group i64, i64, i64, i64, ctrl i64, i1 //~ PTO-E0401
+pto.mte_gm_l1_frac %gm, %l1, nd2nz, shape(%i16, %i1), src_layout(%i32), dst_group(%i1, %i1, %i16, %i64), ctrl(%i0, %on) : !pto.ptr<f32>, !pto.ptr<f32, l1>, nd2nz, shape i64, i64, src_layout(i64), dst_group i64, i64, i64, i64, ctrl i64, i1
"""),
    # ----------------------------------------------------------------------------------- 20, 21 events
    Pair(20, "event before its producer", """
-%d = pto.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1 //~ PTO-E0203
 %e = pto.tput_async(%dst, %src, %s : !pto.partition_tensor_view<128xf32>, !pto.partition_tensor_view<128xf32>, !pto.async_session) -> !pto.async_event
+%d = pto.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
""", arguments="%dst: !pto.partition_tensor_view<128xf32>, %src: !pto.partition_tensor_view<128xf32>, %s: !pto.async_session"),
    Pair(20, "event of no operation", """
-%d = pto.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1 //~ PTO-E0201
+%e = pto.tput_async(%dst, %src, %s : !pto.partition_tensor_view<128xf32>, !pto.partition_tensor_view<128xf32>, !pto.async_session) -> !pto.async_event
+%d = pto.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
""", arguments="%dst: !pto.partition_tensor_view<128xf32>, %src: !pto.partition_tensor_view<128xf32>, %s: !pto.async_session"),
    Pair(21, "tsync of a vector class on A5", """
-pto.tsync {op = #pto.op<TADD>} //~ SA-0096
+pto.tsync {op = #pto.op<TLOAD>}
""", target="a5"),
    Pair(21, "event of one pipe", """
-pto.record_event[TVEC, TMOV_M2V, EVENT_ID0] //~ PTO-E0116
-pto.wait_event[TVEC, TMOV_M2V, EVENT_ID0] //~ PTO-E0116
+pto.record_event[TVEC, TSTORE_VEC, EVENT_ID0]
+pto.wait_event[TVEC, TSTORE_VEC, EVENT_ID0]
"""),
    # ------------------------------------------------------------------------------- 22-24 memory, modes
    Pair(22, "space absent", """
-%t = pto.alloc_tile : !pto.tile_buf<scale_left, 16x16xui8, slayout=row_major, fractal=32> //~ SA-0351
+%t = pto.alloc_tile : !pto.tile_buf<vec, 16x32xui8>
"""),
    Pair(22, "larger than its buffer", """
-%t = pto.alloc_tile : !pto.tile_buf<vec, 769x64xf32> //~ SA-0352
+%t = pto.alloc_tile : !pto.tile_buf<vec, 768x64xf32>
"""),
    Pair(22, "beyond its buffer", f"""
-%at = arith.constant 192544 : i64
+%at = arith.constant 192512 : i64
 %t = pto.alloc_tile addr = %at : {TILE} //~ SA-0353
"""),
    Pair(22, "negative, unless it is read as unsigned", f"""
 %byte = arith.constant -64 : i8
-%at = arith.extsi %byte : i8 to i64
+%at = arith.extui %byte : i8 to i64
 %t = pto.alloc_tile addr = %at : {TILE} //~ SA-0353
"""),
    Pair(22, "beyond its buffer, unless the product wraps", f"""
 %rows = arith.constant 65536 : i32
 %more = arith.constant 65537 : i32
-%n64 = arith.extsi %rows : i32 to i64
-%m64 = arith.extsi %more : i32 to i64
-%at = arith.muli %n64, %m64 : i64
+%wrapped = arith.muli %rows, %more : i32
+%at = arith.extsi %wrapped : i32 to i64
 %t = pto.alloc_tile addr = %at : {TILE} //~ SA-0353
"""),
    Pair(22, "misaligned", f"""
-%at = arith.constant 8 : i64
+%at = arith.constant 96 : i64
 %t = pto.alloc_tile addr = %at : {TILE} //~ SA-0354
"""),
    Pair(22, "rebinding beyond its buffer", f"""
 %t = pto.alloc_tile addr = %i0 : {TILE}
-%at = arith.constant 192544 : i64
+%at = arith.constant 192512 : i64
 pto.tassign %t, %at : {TILE}, i64 //~ SA-0353
"""),
    Pair(22, "address below level3", f"""
-%t = pto.alloc_tile addr = %i0 : {TILE} //~ PTO-E0902
+%t = pto.alloc_tile : {TILE}
""", options={"level": "level2"}),
    Pair(22, "no address at level3", f"""
-%t = pto.alloc_tile : {TILE} //~ PTO-E0901
+%t = pto.alloc_tile addr = %i0 : {TILE}
""", options={"level": "level3"}),
    Pair(22, "tassign below level3", f"""
 %t = pto.alloc_tile : {TILE}
-pto.tassign %t, %i0 : {TILE}, i64 //~ PTO-E0903
""", options={"level": "level2"}),
    Pair(22, "tassign with insert-sync", f"""
 %t = pto.alloc_tile addr = %i0 : {TILE}
-pto.tassign %t, %i0 : {TILE}, i64 //~ PTO-E0904
""", options={"insert_sync": True}),
    Pair(24, "tassign in auto mode", f"""
 %t = pto.alloc_tile : {TILE}
 %u = pto.alloc_tile : {TILE}
-pto.tassign %t, %i0 : {TILE}, i64 //~ PTO-E0903
-pto.tassign %u, %i0 : {TILE}, i64 //~ PTO-E0903
""", options={"level": "level1"}),
    Pair(24, "fixed buffer beside planned tiles", f"""
 %t = pto.alloc_tile : {TILE}
-%r = pto.reserve_buffer {{name = "b", size = 64, location = #pto.address_space<vec>, auto = false, base = 0}} -> i32 //~ PTO-E0905
+%r = pto.reserve_buffer {{name = "b", size = 64, location = #pto.address_space<vec>, auto = true}} -> i32
"""),
    # --------------------------------------------------------------------------------------- 25 tiles
    Pair(25, "row of 24 bytes", """
-%t = pto.alloc_tile : !pto.tile_buf<vec, 16x12xf16> //~ SA-0006
+%t = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf16>
"""),
    Pair(25, "valid region", """
-%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=16x65> //~ SA-0065
+%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=16x63>
"""),
    Pair(25, "fp8 on A2/A3", """
-%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf8E4M3FN> //~ PTO-E0602
+%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16>
"""),
    Pair(25, "element types of tadd", """
 %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
 %b = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16>
-pto.tadd ins(%a, %b : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf16>) outs(%a : !pto.tile_buf<vec, 16x64xf32>) //~ PTO-E0301
+pto.tadd ins(%a, %a : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>) outs(%a : !pto.tile_buf<vec, 16x64xf32>)
"""),
    Pair(25, "tile of tadd not in vec", f"""
-%a = pto.alloc_tile : {NZ}
+%a = pto.alloc_tile : {TILE}
-pto.tadd ins(%a, %a : {NZ}, {NZ}) outs(%a : {NZ}) //~ PTO-E0501 PTO-E0501 PTO-E0501 SA-0136
+pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%a : {TILE})
"""),
    # ------------------------------------------------------------------------- ids, branches, overlaps
    Pair(25, "load into a boxed vec tile", """
-%z = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, slayout=row_major>
-pto.tload ins(%w : !pto.partition_tensor_view<16x64xf32>) outs(%z : !pto.tile_buf<vec, 16x64xf32, slayout=row_major>) //~ SA-0104
+%z = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
+pto.tload ins(%w : !pto.partition_tensor_view<16x64xf32>) outs(%z : !pto.tile_buf<vec, 16x64xf32>)
""", arguments="%w: !pto.partition_tensor_view<16x64xf32>"),
    Pair(2, "id of sync.set on A2/A3", """
-pto.sync.set #pto.pipe<PIPE_MTE3>, 16 //~ PTO-E0116
+pto.sync.set #pto.pipe<PIPE_MTE3>, 15
"""),
    Pair(2, "id of sync.wait on A5", """
-pto.sync.wait #pto.pipe<PIPE_V>, 32 //~ PTO-E0116
+pto.sync.wait #pto.pipe<PIPE_V>, 31
""", target="a5"),
    Pair(3, "set in one case of a switch", f"""
-scf.index_switch %n //~ PTO-E0808
+scf.index_switch %n
 case 1 {{
   {SET}
 }}
 default {{
+  {SET}
 }}
+{WAIT}
"""),
    Pair(8, "token taken on one branch", """
-scf.if %cond { //~ PTO-E0806
+scf.if %cond {
   pto.get_buf[PIPE_V, 3]
+  pto.rls_buf[PIPE_V, 3]
 }
"""),
    Pair(8, "token taken in every iteration", """
 scf.for %k = %c0 to %n step %c1 {
-  pto.get_buf[PIPE_V, 3] //~ PTO-E0806
+  pto.get_buf[PIPE_V, 3]
+  pto.rls_buf[PIPE_V, 3]
 }
"""),
    Pair(13, "types of strict_vecscope arguments", """
-pto.strict_vecscope(%ub) { //~ PTO-E0213
-^bb0(%p: !pto.ptr<f16, ub>):
+pto.strict_vecscope(%ub) {
+^bb0(%p: !pto.ptr<f32, ub>):
 } : (!pto.ptr<f32, ub>) -> ()
""", target="a5"),
    Pair(14, "state used in every iteration", """
 pto.vecscope {
   %s = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align
-  scf.for %k = %c0 to %n step %c1 {
-    %v, %t = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align //~ PTO-E1007
-  }
+  %r = scf.for %k = %c0 to %n step %c1 iter_args(%q = %s) -> (!pto.align) {
+    %v, %t = pto.vldus %ub, %q : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align
+    scf.yield %t : !pto.align
+  }
 }
""", target="a5"),
    Pair(14, "state used in a branch and after it", """
 pto.vecscope {
   %s = pto.vldas %ub : !pto.ptr<f32, ub> -> !pto.align
   scf.if %cond {
     %v, %t = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align
   }
-  %w, %u = pto.vldus %ub, %s : !pto.ptr<f32, ub>, !pto.align -> !pto.vreg<64xf32>, !pto.align //~ PTO-E1007
 }
""", target="a5"),
    Pair(23, "destination overlaps a part of a source", f"""
 %first = arith.constant 0 : i64
-%second = arith.constant 64 : i64
+%second = arith.constant 4096 : i64
 %a = pto.alloc_tile addr = %first : {TILE}
 %b = pto.alloc_tile addr = %second : {TILE}
-pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE}) //~ PTO-E0701 PTO-E0701
+pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})
"""),
    Pair(23, "destination overlaps a source at an unsigned offset", f"""
 %half = arith.constant -32768 : i16
-%offset = arith.extui %half : i16 to i64
+%offset = arith.extsi %half : i16 to i64
 %base = arith.constant 65536 : i64
 %first = arith.addi %base, %offset : i64
 %second = arith.constant 98368 : i64
 %a = pto.alloc_tile addr = %first : {TILE}
 %b = pto.alloc_tile addr = %second : {TILE}
-pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE}) //~ PTO-E0701 PTO-E0701
+pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})
"""),
    Pair(30, "flag ids of a pipe", """
-%p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 4, flag_base = 15} (%a : i32) -> !pto.pipe //~ PTO-E0116
+%p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 4, flag_base = 14} (%a : i32) -> !pto.pipe
""", arguments="%a: i32"),
    Pair(33, "if with results and no else", """
-%r = scf.if %cond -> (index) { //~ PTO-E0214
+%r = scf.if %cond -> (index) {
   scf.yield %n : index
+} else {
+  scf.yield %n : index
 }
"""),
    # ------------------------------------------------------------------------------------ 26, 28 ranks
    Pair(26, "element types", """
-pto.tput %h, %f : (!pto.partition_tensor_view<16x64xf16>, !pto.partition_tensor_view<16x64xf32>) //~ PTO-E0301
+pto.tput %f, %f : (!pto.partition_tensor_view<16x64xf32>, !pto.partition_tensor_view<16x64xf32>)
""", arguments="%h: !pto.partition_tensor_view<16x64xf16>, %f: !pto.partition_tensor_view<16x64xf32>"),
    Pair(26, "signal not i32", """
-pto.tnotify(%f, %v : !pto.partition_tensor_view<1x1xf32>, i32) {notifyOp = #pto.notify_op<Set>} //~ PTO-E0301
+pto.tnotify(%s, %v : !pto.partition_tensor_view<1x1xi32>, i32) {notifyOp = #pto.notify_op<Set>}
""", arguments="%f: !pto.partition_tensor_view<1x1xf32>, %s: !pto.partition_tensor_view<1x1xi32>, %v: i32"),
    Pair(26, "root out of range", f"""
-%g = pto.make_group(%a, %b : {VIEW}, {VIEW}) {{root = 2}} -> !pto.group<2> //~ PTO-E0401
+%g = pto.make_group(%a, %b : {VIEW}, {VIEW}) {{root = 1}} -> !pto.group<2>
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(26, "no ranks", f"""
-%g = "pto.make_group"() <{{root = 0}}> : () -> !pto.group<2> //~ PTO-E0401 PTO-E0401
+%g = "pto.make_group"(%a, %b) <{{root = 0}}> : ({VIEW}, {VIEW}) -> !pto.group<2>
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(26, "staging tile not in vec", f"""
-%t = pto.alloc_tile : {NZ}
+%t = pto.alloc_tile : {TILE}
-pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, {NZ}) //~ PTO-E0501
+pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, {TILE})
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(26, "pong of another shape", f"""
 %t = pto.alloc_tile : {TILE}
-%u = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
+%u = pto.alloc_tile : {TILE}
-pto.tput(%a, %b, buf(%t, %u) : {VIEW}, {VIEW}, {TILE}, !pto.tile_buf<vec, 8x64xf32>) //~ PTO-E0401
+pto.tput(%a, %b, buf(%t, %u) : {VIEW}, {VIEW}, {TILE}, {TILE})
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(26, "empty valid region", f"""
-%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=0x64>
+%t = pto.alloc_tile : {TILE}
-pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, !pto.tile_buf<vec, 16x64xf32, valid=0x64>) //~ PTO-E0401
+pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, {TILE})
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(26, "valid rows do not divide", f"""
-%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=5x64>
+%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=4x64>
-pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, !pto.tile_buf<vec, 16x64xf32, valid=5x64>) //~ PTO-E0401
+pto.tput(%a, %b, buf(%t) : {VIEW}, {VIEW}, !pto.tile_buf<vec, 16x64xf32, valid=4x64>)
""", arguments=f"%a: {VIEW}, %b: {VIEW}"),
    Pair(28, "transfer of two dimensions", f"""
-%e = pto.tput_async(%a, %a, %s : {VIEW}, {VIEW}, !pto.async_session) -> !pto.async_event //~ PTO-E0401 PTO-E0401
+%e = pto.tput_async(%d, %d, %s : !pto.partition_tensor_view<128xf32>, !pto.partition_tensor_view<128xf32>, !pto.async_session) -> !pto.async_event
""", arguments=f"%a: {VIEW}, %d: !pto.partition_tensor_view<128xf32>, %s: !pto.async_session"),
    Pair(28, "engine of A5 on A2/A3", """
-%e = pto.tput_async(%d, %d, %s : !pto.partition_tensor_view<128xf32>, !pto.partition_tensor_view<128xf32>, !pto.async_session) {engine = "URMA"} -> !pto.async_event //~ PTO-E0116
+%e = pto.tput_async(%d, %d, %s : !pto.partition_tensor_view<128xf32>, !pto.partition_tensor_view<128xf32>, !pto.async_session) {engine = "SDMA"} -> !pto.async_event
""", arguments="%d: !pto.partition_tensor_view<128xf32>, %s: !pto.async_session"),
    Pair(28, "sync id", """
 %t = pto.alloc_tile : !pto.tile_buf<vec, 1x32xui8>
-%s = pto.build_async_session(%t, %w : !pto.tile_buf<vec, 1x32xui8>, !pto.ptr<ui8>) {sync_id = 8} -> !pto.async_session //~ PTO-E0116
+%s = pto.build_async_session(%t, %w : !pto.tile_buf<vec, 1x32xui8>, !pto.ptr<ui8>) {sync_id = 7} -> !pto.async_session
""", arguments="%w: !pto.ptr<ui8>"),
    # ----------------------------------------------------------------------------------------- 30 FIFOs
    Pair(30, "split mode", f"""
-pto.tpush(%t, %p : {TILE}, !pto.pipe) {{split = 5}} //~ PTO-E0112
+pto.tpush(%t, %p : {TILE}, !pto.pipe) {{split = 2}}
""", arguments=f"%t: {TILE}, %p: !pto.pipe", attributes=VECTOR),
    Pair(30, "slot number", """
-%p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 0, flag_base = 0} (%a : i32) -> !pto.pipe //~ PTO-E0116
+%p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 4, flag_base = 0} (%a : i32) -> !pto.pipe
""", arguments="%a: i32"),
    Pair(30, "producer tile", f"""
-pto.tpush(%t, %p : {NZ}, !pto.pipe) {{split = 0}} //~ PTO-E0501
+pto.tpush(%u, %p : {ACC}, !pto.pipe) {{split = 0}}
""", arguments=f"%t: {NZ}, %u: {ACC}, %p: !pto.pipe", attributes=CUBE),
    Pair(30, "consumer tile", f"""
-pto.tpop(%t, %p : {ACC}, !pto.pipe) {{split = 0}} //~ PTO-E0501
+pto.tpop(%u, %p : {TILE}, !pto.pipe) {{split = 0}}
""", arguments=f"%t: {ACC}, %u: {TILE}, %p: !pto.pipe", attributes=VECTOR),
    Pair(30, "frontend operation in the other kernel", f"""
 pto.aiv_initialize_pipe {{dir_mask = 3, slot_size = 1024}} (c2v_consumer_buf = %a : i32, v2c_consumer_buf = %a : i32)
-pto.tpush_to_aiv(%t : {ACC}) {{split = 0}} //~ PTO-E1003 PTO-E1105
+pto.tpush_to_aic(%u : {TILE}) {{split = 0}}
""", target="a5", arguments=f"%t: {ACC}, %u: {TILE}, %a: i32", attributes=VECTOR),
    Pair(30, "two initialisations", """
 pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %a : i32)
-pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %a : i32) //~ PTO-E1101
""", target="a5", arguments="%a: i32", attributes=VECTOR),
    Pair(30, "not initialised", f"""
+pto.aiv_initialize_pipe {{dir_mask = 2, slot_size = 1024}} (v2c_consumer_buf = %a : i32)
 pto.tpush_to_aic(%u : {TILE}) {{split = 0}} //~ PTO-E1104
""", target="a5", arguments=f"%u: {TILE}, %a: i32", attributes=VECTOR),
    Pair(30, "fixed buffer without base", """
-%r = pto.reserve_buffer {name = "b", size = 64, location = #pto.address_space<vec>, auto = false} -> i32 //~ PTO-E0116
+%r = pto.reserve_buffer {name = "b", size = 64, location = #pto.address_space<vec>, auto = false, base = 0} -> i32
"""),
    # --------------------------------------------------------------------------------- 32-34 the rest
    Pair(32, "cube operation in a vector section", """
-pto.section.vector {
+pto.section.cube {
   pto.mad %l0a, %l0b, %l0c, %i1, %i16, %i16 : !pto.ptr<f16, l0a>, !pto.ptr<f16, l0b>, !pto.ptr<f32, l0c>, i64, i64, i64 //~ PTO-E1003
 }
"""),
    Pair(32, "vector operation in a cube kernel", f"""
-pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%t : {TILE}) //~ PTO-E1003
""", arguments=f"%t: {TILE}", attributes=CUBE),
    Pair(32, "section of the other core", """
-pto.section.vector { //~ PTO-E1003 PTO-E1003
+pto.section.cube {
 }
""", attributes=CUBE),
    Pair(33, "arith on a tile", f"""
-%s = arith.addf %t, %t : {TILE} //~ PTO-E0303 PTO-E0303
+%s = arith.addf %x, %x : f32
""", arguments=f"%t: {TILE}, %x: f32"),
    Pair(33, "carried value not yielded", """
 %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %n) -> (index) {
-  %b = arith.addi %a, %c1 : index //~ PTO-E0211
+  %b = arith.addi %a, %c1 : index
+  scf.yield %b : index
 }
"""),
    Pair(33, "i64 where an index is meant", """
-%v = pto.load_scalar %gm[%i] : !pto.ptr<f32> -> f32 //~ PTO-E0303
+%v = pto.load_scalar %gm[%n] : !pto.ptr<f32> -> f32
"""),
    Pair(34, "result of load_scalar", """
-%v = pto.load_scalar %gm[%n] : !pto.ptr<f32> -> f16 //~ PTO-E0301
+%v = pto.load_scalar %gm[%n] : !pto.ptr<f32> -> f32
"""),
    Pair(34, "value of store_scalar", """
-pto.store_scalar %i, %gm[%n] : !pto.ptr<f32>, i64 //~ PTO-E0301
+pto.store_scalar %x, %gm[%n] : !pto.ptr<f32>, f32
"""),
    Pair(34, "memref not in GM", """
-%v = pto.load_scalar %l[%n] : memref<64xf32, #pto.address_space<vec>> -> f32 //~ PTO-E0501
+%v = pto.load_scalar %g[%n] : memref<64xf32, #pto.address_space<gm>> -> f32
""", arguments="%n: index, %l: memref<64xf32, #pto.address_space<vec>>, %g: memref<64xf32, #pto.address_space<gm>>"),
]  # fmt: skip


@together("pair", PAIRS)
def test_illegal_program_is_rejected(pair: Pair, annotated: Callable[..., Any]) -> None:
    text = pair.program("-")
    assert "//~" in text, "the illegal program expects no diagnostic"
    annotated(text, pair.target, **pair.options)


@together("pair", PAIRS)
def test_legal_twin_is_accepted(pair: Pair, annotated: Callable[..., Any]) -> None:
    annotated(pair.program("+"), pair.target, **pair.options)


def test_every_item_is_covered() -> None:
    assert {p.item for p in PAIRS} | set(DYNAMIC) == set(range(1, 35))
    assert not {p.item for p in PAIRS} & set(DYNAMIC)
