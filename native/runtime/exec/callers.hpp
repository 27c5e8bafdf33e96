// The calls inside a shared object that lead to a submission.
#pragma once

#include <execinfo.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "shared_object.hpp"

namespace pto2 {

/// Offsets of return addresses in a shared object, innermost call first.
using CallChain = std::vector<uint64_t>;
using Callers = std::function<CallChain()>;

/// Return a function that collects the active calls of the calling thread inside a shared object.
inline Callers callers_in(const SharedObject& library) {
  return [text = library.text(), base = library.base()] {
    void* frames[64];
    const int count = backtrace(frames, 64);
    CallChain found;
    for (int i = 0; i < count; ++i) {
      const auto address = reinterpret_cast<uint64_t>(frames[i]);
      if (text.begin <= address && address < text.end) found.push_back(address - base);
    }
    return found;
  };
}

}  // namespace pto2
