// Who runs: out[3 * block + slot] = 100 * blocks + block, where slot is 0 for the cube core and 1 and 2 for the
// vector cores of its cluster. Slots: out.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

extern "C" void kernel_entry(int64_t* args) {
  ChipTensor* out = reinterpret_cast<ChipTensor*>(args[0]);
#if defined(__DAV_CUBE__)
  const int slot = 0;
#elif defined(__DAV_VEC__)
  const int slot = 1 + get_sub_block_id(args);
#else
#error "a kernel knows its core"
#endif
  reinterpret_cast<float*>(out->buffer.addr)[out->start_offset + 3 * get_block_idx(args) + slot] =
      static_cast<float>(100 * get_block_num(args) + get_block_idx(args));
}
