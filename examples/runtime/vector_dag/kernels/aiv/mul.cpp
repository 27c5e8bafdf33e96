// z = x * y. Slots: x, y, z, n.
#include "rows.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  binary(args, [](Rows& z, Rows& x, Rows& y) { TMUL(z, x, y); });
}
