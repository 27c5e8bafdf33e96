// Every function here is wrong; the compiler must say why. See tests/native/test_headers_core.py.
#include <pto/pto-inst.hpp>

using namespace pto;

template <class T, int Rows, int Cols, BLayout B = BLayout::RowMajor, TileType L = TileType::Vec>
using Plain = Tile<L, T, Rows, Cols, B>;

void too_big() {
  Plain<float, 1024, 512> tile;
  TASSIGN<0>(tile);
}
void out_of_bounds() {
  Plain<float, 128, 128> tile;
  TASSIGN<0x7F000>(tile);
}
void misaligned() {
  Plain<float, 8, 8> tile;
  TASSIGN<48>(tile);
}
void no_such_space() {
  TileLeftScale<float8_e8m0_t, 16, 2> tile;
  TASSIGN<0>(tile);
}
void short_rows() { Plain<float, 8, 4> tile; }
void valid_beyond_the_tile() { Tile<TileType::Vec, float, 8, 8, BLayout::RowMajor, 9, 8> tile; }
void odd_fractal() {
  Tile<TileType::Mat, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor, 256> tile;
}
void broken_boxes() {
  Tile<TileType::Mat, half, 16, 24, BLayout::ColMajor, 16, 24, SLayout::RowMajor> columns;
  Tile<TileType::Mat, half, 24, 16, BLayout::ColMajor, 24, 16, SLayout::RowMajor> rows;
}
void pointer_to_a_tile(float* p) {
  Plain<float, 8, 8> tile;
  TASSIGN(tile, p);
}
void static_valid_region() {
  Plain<float, 8, 8> tile;
  tile.SetValidShape(4, 4);
}
void too_few_sizes() { (void)Shape<1, 1, 1, -1, -1>(3); }
void dynamic_size(float* p) {
  GlobalTensor<float, Shape<1, 1, 1, -1, 8>, Stride<1, 1, 1, 8, 1>> tensor(p);
  (void)tensor.GetShape<3>();
}
void mixed_types() {
  Plain<float, 8, 8> a, b;
  Plain<int32_t, 8, 8> c;
  TADD(a, b, c);
}
void wrong_type() {
  Plain<int64_t, 8, 8> a;
  TSUB(a, a, a);
}
void wrong_place() {
  Plain<float, 8, 8, BLayout::RowMajor, TileType::Mat> a;
  TABS(a, a);
}
void wrong_layout() {
  Plain<float, 8, 8, BLayout::ColMajor> a;
  TMUL(a, a, a);
}
void wrong_pair() {
  Plain<uint16_t, 16, 16> a;
  Plain<float, 16, 16> b;
  TCVT(b, a, RoundMode::CAST_RINT);
}
void two_many_tiles() {
  Plain<float, 8, 8> a;
  TADD(a, a, a, a);
}
