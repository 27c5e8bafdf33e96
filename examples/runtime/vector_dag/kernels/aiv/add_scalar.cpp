// z = x + s. Slots: x, s (a float), z, n.
#include "rows.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  const int rows = static_cast<int>(args[3]) / kCols;
  Global gx = rows_of(args[0], rows), gz = rows_of(args[2], rows);
  Rows x(rows), z(rows);
  TASSIGN(x, 0);
  TASSIGN(z, kTileBytes);
  TLOAD(x, gx);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TADDS(z, x, float_in(args[1]));
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(gz, z);
}
