// Code that brings registers, masks and pipes of its own, in the names that ours have elsewhere.
#include <cstdio>
#include <pto/pto-inst.hpp>

namespace pto {

template <class T>
struct TypeGet;
template <>
struct TypeGet<float> {
  using T = vector_f32;
};
template <class T>
struct RegTensor {
  typename TypeGet<T>::T reg;
  operator typename TypeGet<T>::T&() { return reg; }
};
using MaskReg = vector_bool;
template <class T>
MaskReg CreatePredicate(uint32_t& left) {
  return plt_b32(left, POST_UPDATE);
}
constexpr const uint32_t SHIFT_MX_ADDR = 4;
enum class TInsertMode : uint8_t { Plain = 0 };

template <uint8_t FlagID, uint8_t DirType, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
          bool IsNoSplit = false, bool EN_UNIT_FLAG = false>
struct TPipe {
  static constexpr uint32_t bytes = SlotSize * SlotNum;
  template <class Config>
  using Element = FixpipeConsDType_t<Config::QuantPre, float>;
};
template <class Tile>
struct TMPipe {};

}  // namespace pto

using namespace pto;
using Halves = TPipe<0, DIR_C2V, 512, 2>::Element<FixpipeParams<LayoutMode_t::NZ2ND, F322F16>>;
static_assert(std::is_same_v<Halves, half> && TPipe<0, DIR_C2V, 512, 2>::bytes == 1024);
static_assert(std::is_same_v<FixpipeConsDType_t<NoQuant, int32_t>, int32_t>);
static_assert(std::is_same_v<FixpipeConsDType_t<REQ8, int32_t>, int8_t>);

int main() {
  __ubuf__ float* const x = (__ubuf__ float*)0;
  uint32_t left = 3;
  RegTensor<float> value, sum;
  __VEC_SCOPE__ {
    MaskReg some = CreatePredicate<float>(left);
    MaskReg all = pset_b32(PAT_ALL);
    vdup(value, 2.5f, all, MODE_ZEROING);
    vadd(sum, value, value, some, MODE_ZEROING);
    vsts(sum, x, 0, NORM_B32, all);
  }
  vlds(value, x, 0, NORM);
  const auto& found = value.reg.lane;
  std::printf("%g %g %g %g, %u left", found[0], found[1], found[2], found[3], left);
}
