// What the functions of the virtual machine's library work on: tiles and views whose sizes, and a target that, are
// known at run time only. Every value of a program has a place in the frame of its core.
#pragma once

#define PTO_CPU_LEAN
#define PTO_CPU_VERIFIED
#define PTO_CPU_OPEN
#include <cmath>

#include "pto/pto-inst.hpp"

namespace pto::vm {

template <TileType Loc, class T, BLayout Outer, SLayout Inner, int Fractal, uint64_t Pad, CompactMode Compact>
using OpenTile =
    Tile<Loc, T, DYNAMIC, DYNAMIC, Outer, DYNAMIC, DYNAMIC, Inner, Fractal, static_cast<PadValue>(Pad), Compact>;
template <class T, Layout L>
using OpenView = GlobalTensor<T, pto::Shape<>, pto::Stride<>, L>;

/// A function of the library: where the frame is, and at which offsets in it the arguments are.
using Function = void (*)(char* frame, const uint32_t* at);

struct Entry {
  uint64_t key;
  Function function;
};

template <class T>
PTO_INLINE T& at(char* frame, uint32_t offset) {
  return *reinterpret_cast<T*>(frame + offset);
}

}  // namespace pto::vm
