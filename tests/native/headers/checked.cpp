// Run-time checks, one per argument; see tests/native/test_headers_core.py.
#include <cstdio>
#include <cstdlib>

#include "pto/ops/elementwise.hpp"

using namespace pto;
using Small = Tile<TileType::Vec, float, 8, 8, BLayout::RowMajor, -1, -1>;

int main(int, char** argv) {
  Small a(8, 8), b(8, 8), c(3, 5), d(3, 5);
  switch (std::atoi(argv[1])) {
    case 0: TASSIGN(a, 0x7FFE0); break;
    case 1: TASSIGN(a, 4); break;
    case 2: a.SetValidShape(9, 8); break;
    case 3: TASSIGN(a, 0), TADD(a, b, b); break;
    case 4: TASSIGN(a, 0), a.SetValue(64, 1.0f); break;
    case 5: wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1); break;
    case 6: set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1), set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1); break;
    case 7: TASSIGN(a, 0), TASSIGN(b, 256), TASSIGN(c, 512), TADD(a, b, c); break;
    default:
      TASSIGN(a, 0), TASSIGN(b, 0x100), TASSIGN(c, 0x200);
      set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1), wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
      for (int i = 0; i < 64; ++i) a.SetValue(i, i), b.SetValue(i, 1), c.SetValue(i, -1);
      a.SetValidShape(3, 5), b.SetValidShape(3, 5);
      d.data() = c.data();  // which binds it as well
      TADD(d, a, b);
      std::printf("%g %g %g", c.GetValue(0), c.GetValue(20), c.GetValue(5));
  }
}
