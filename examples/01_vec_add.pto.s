# 01_vec_add.pto in PTO-AS, the assembly form: directives, then destination-first statements.
.module {pto.target_arch = "a3"}
.func @vec_add {pto.entry}
.arg %a : !pto.ptr<f32>
.arg %b : !pto.ptr<f32>
.arg %c : !pto.ptr<f32>
.const %c0 = 0 : index
.const %c1 = 1 : index
.const %c64 = 64 : index
.const %c128 = 128 : index
%va = pto.make_tensor_view %a, shape = [%c64, %c128], strides = [%c128, %c1] : !pto.tensor_view<64x128xf32>
%vb = pto.make_tensor_view %b, shape = [%c64, %c128], strides = [%c128, %c1] : !pto.tensor_view<64x128xf32>
%vc = pto.make_tensor_view %c, shape = [%c64, %c128], strides = [%c128, %c1] : !pto.tensor_view<64x128xf32>
%pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c64, %c128] : !pto.tensor_view<64x128xf32> -> !pto.partition_tensor_view<64x128xf32>
%pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c64, %c128] : !pto.tensor_view<64x128xf32> -> !pto.partition_tensor_view<64x128xf32>
%pc = pto.partition_view %vc, offsets = [%c0, %c0], sizes = [%c64, %c128] : !pto.tensor_view<64x128xf32> -> !pto.partition_tensor_view<64x128xf32>
%ta = pto.alloc_tile : !pto.tile_buf<vec, 64x128xf32>
%tb = pto.alloc_tile : !pto.tile_buf<vec, 64x128xf32>
%tc = pto.alloc_tile : !pto.tile_buf<vec, 64x128xf32>
tload %ta, %pa : !pto.tile_buf<vec, 64x128xf32>, !pto.partition_tensor_view<64x128xf32>
tload %tb, %pb : !pto.tile_buf<vec, 64x128xf32>, !pto.partition_tensor_view<64x128xf32>
tadd %tc, %ta, %tb : !pto.tile_buf<vec, 64x128xf32>
tstore %pc, %tc : !pto.partition_tensor_view<64x128xf32>, !pto.tile_buf<vec, 64x128xf32>
.end
