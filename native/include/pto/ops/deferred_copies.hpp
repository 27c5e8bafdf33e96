// Deferred copies: recorded when an instruction requests them, performed before the delay can be observed.
//
// An operand of a product goes from global memory to L1, and from there to L0A or L0B; each copy changes its
// layout. Here all these are memory of one machine, so the product can read the source of the first copy. A
// core that defers copies therefore records its copies into L1, L0A and L0B.
//
// - The source of a recorded copy is intact: the copy is performed before a part of the source is written,
//   and before other cores get permission to write the source (vm.settle).
// - Destinations of recorded copies are disjoint: a copy is performed before a part of its destination is
//   written, and dropped if another copy overwrites all of it.
// - No recorded copy reads the destination of another one: it reads the source of that copy instead.
//
// Only programs of the virtual machine defer copies, and only if nothing but copies and products touches
// these memories. src/pto/image/lives.py decides this, and finds tiles that are dead (vm.forget).
#pragma once

#include "pto/ops/place.hpp"

namespace pto::detail {

struct Copier;
PTO_COMMON void copy_now(const Copier& copier, void* to_data, const Axis& to_rows, const Axis& to_cols,
                         const void* from_data, const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows,
                         ptrdiff_t cols);
PTO_COMMON ptrdiff_t size_of(const Copier& copier);

/// A place whose elements have any size.
struct AnyPlace {
  char* data;
  Axis rows, cols;

  /// A range of bytes in memory.
  struct Bytes {
    const char *low, *high;
    bool meets(const Bytes& other) const { return low < other.high && other.low < high; }
    bool inside(const char* from, size_t size) const { return low >= from && high <= from + size; }
  };
  /// Return a range that covers the first n x m elements of `size` bytes; it may cover other bytes too.
  Bytes bytes(ptrdiff_t size, ptrdiff_t n, ptrdiff_t m) const;
  /// Return true if rows and columns have the same steps.
  bool lies_as(const AnyPlace& other) const;
};

struct DeferredCopy {
  const Copier* copier;
  AnyPlace to, from;
  ptrdiff_t rows, cols;
  AnyPlace::Bytes written, read;
  bool global;  // true if it reads global memory

  bool has(const AnyPlace& part, ptrdiff_t n, ptrdiff_t m) const {
    return part.data == to.data && part.lies_as(to) && to.rows.first == 0 && to.cols.first == 0 &&
           part.rows.first + n <= rows && part.cols.first + m <= cols;
  }
  /// Return the source of a part of the destination.
  AnyPlace source(const AnyPlace& part) const {
    AnyPlace found = from;
    found.rows.first += part.rows.first;
    found.cols.first += part.cols.first;
    return found;
  }
};

struct DeferredCopies {
  static constexpr int kMost = 12;
  bool wanted = false, notes = false;  // the program defers copies; new copies are recorded
  int count = 0;
  DeferredCopy all[kMost];
};

#ifdef PTO_CPU_OPEN
/// Return the deferred copies of the current core; null if the core defers none.
inline DeferredCopies* deferred_copies() {
  DeferredCopies* deferred = current == nullptr ? nullptr : current->deferred;
  return deferred != nullptr && deferred->wanted ? deferred : nullptr;
}

/// Perform the deferred copies that conflict with a copy, and record it; return false if it must run now.
PTO_COMMON bool defer_copy(DeferredCopies& deferred, const Copier& copier, const AnyPlace& to,
                           const AnyPlace& from, ptrdiff_t rows, ptrdiff_t cols);
/// Return the place to read n x m elements from: their own, or the source of a deferred copy.
PTO_COMMON AnyPlace readable(DeferredCopies& deferred, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                             ptrdiff_t m);
/// Perform the copies that read or write some of these elements, which are about to be written.
PTO_COMMON void make_way(DeferredCopies& deferred, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                         ptrdiff_t m);
/// Perform the copies that read global memory, or all copies.
PTO_COMMON void settle_deferred(DeferredCopies& deferred, bool all);
/// Drop the copies into these bytes, which are written before they are read again.
PTO_COMMON void forget_deferred(DeferredCopies& deferred, const char* data, ptrdiff_t bytes);
#endif

/// Return the place to read `rows` x `cols` elements of an operand from.
template <class T>
inline Place<T> readable(const Place<T>& place, [[maybe_unused]] ptrdiff_t rows,
                         [[maybe_unused]] ptrdiff_t cols) {
#ifdef PTO_CPU_OPEN
  if (DeferredCopies* deferred = deferred_copies(); deferred != nullptr && bits_of<T> >= 16) {
    const AnyPlace found = readable(*deferred, {reinterpret_cast<char*>(place.data), place.rows, place.cols},
                                    bits_of<T> / 8, rows, cols);
    return {reinterpret_cast<T*>(found.data), found.rows, found.cols};
  }
#endif
  return place;
}

#if defined(PTO_BODY) && defined(PTO_CPU_OPEN)
PTO_BODY AnyPlace::Bytes AnyPlace::bytes(ptrdiff_t size, ptrdiff_t n, ptrdiff_t m) const {
  int64_t low, high, left, right;
  rows.span(rows.first + n, low, high);
  cols.span(cols.first + m, left, right);
  return {data + (low + left) * size, data + (high + right + 1) * size};
}

inline bool same_steps(const Axis& a, const Axis& b) {
  if (a.digits != b.digits) return false;
  for (int d = 0; d < a.digits; ++d)
    if (a.step[d] != b.step[d] || (d + 1 < a.digits && a.size[d] != b.size[d])) return false;
  return true;
}
PTO_BODY bool AnyPlace::lies_as(const AnyPlace& other) const {
  return same_steps(rows, other.rows) && same_steps(cols, other.cols);
}

/// Take the n-th deferred copy out of the list.
inline DeferredCopy take_deferred(DeferredCopies& deferred, int n) {
  const DeferredCopy taken = deferred.all[n];
  deferred.all[n] = deferred.all[--deferred.count];
  return taken;
}
inline void copy_deferred(DeferredCopies& deferred, int n) {
  const DeferredCopy due = take_deferred(deferred, n);
  copy_now(*due.copier, due.to.data, due.to.rows, due.to.cols, due.from.data, due.from.rows, due.from.cols,
           due.rows, due.cols);
}

PTO_BODY bool defer_copy(DeferredCopies& deferred, const Copier& copier, const AnyPlace& to,
                         const AnyPlace& from, ptrdiff_t rows, ptrdiff_t cols) {
  const ptrdiff_t size = size_of(copier);
  DeferredCopy made{&copier, to, from, rows, cols, to.bytes(size, rows, cols), from.bytes(size, rows, cols),
                    true};
  const auto in = [](const AnyPlace::Bytes& bytes, TileType memory) {
    const int space = static_cast<int>(memory);
    return bytes.inside(current->space[space], room(space));
  };
  const bool noted = deferred.notes && size >= 2 &&
                     (in(made.written, TileType::Mat) || in(made.written, TileType::Left) ||
                      in(made.written, TileType::Right));
  for (int n = deferred.count; n-- > 0;) {  // copies that write its source
    const DeferredCopy& other = deferred.all[n];
    if (!other.written.meets(made.read)) continue;
    if (noted && other.has(from, rows, cols) && made.from.data == from.data) {
      made.from = other.source(from);
    } else {
      copy_deferred(deferred, n);
    }
  }
  made.read = made.from.bytes(size, rows, cols);
  for (int n = deferred.count; n-- > 0;) {  // copies that read or write its destination
    const DeferredCopy& other = deferred.all[n];
    if (other.read.meets(made.written)) {
      copy_deferred(deferred, n);
    } else if (other.written.meets(made.written)) {
      if (to.data == other.to.data && to.lies_as(other.to) && to.rows.first == other.to.rows.first &&
          to.cols.first == other.to.cols.first && rows >= other.rows && cols >= other.cols) {
        take_deferred(deferred, n);
      } else {
        copy_deferred(deferred, n);
      }
    }
  }
  if (!noted) return false;
  made.global = !in(made.read, TileType::Mat);
  if (deferred.count == DeferredCopies::kMost) copy_deferred(deferred, 0);
  deferred.all[deferred.count++] = made;
  return true;
}

PTO_BODY AnyPlace readable(DeferredCopies& deferred, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                           ptrdiff_t m) {
  const AnyPlace::Bytes bytes = place.bytes(size, n, m);
  for (int i = deferred.count; i-- > 0;) {
    if (!deferred.all[i].written.meets(bytes)) continue;
    if (deferred.all[i].has(place, n, m)) return deferred.all[i].source(place);
    copy_deferred(deferred, i);
  }
  return place;
}

PTO_BODY void make_way(DeferredCopies& deferred, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                       ptrdiff_t m) {
  const AnyPlace::Bytes bytes = place.bytes(size, n, m);
  for (int i = deferred.count; i-- > 0;)
    if (deferred.all[i].written.meets(bytes) || deferred.all[i].read.meets(bytes)) copy_deferred(deferred, i);
}

PTO_BODY void settle_deferred(DeferredCopies& deferred, bool all) {
  for (int n = deferred.count; n-- > 0;)
    if (all || deferred.all[n].global) copy_deferred(deferred, n);
}

PTO_BODY void forget_deferred(DeferredCopies& deferred, const char* data, ptrdiff_t bytes) {
  for (int n = deferred.count; n-- > 0;)
    if (deferred.all[n].written.inside(data, static_cast<size_t>(bytes))) take_deferred(deferred, n);
}
#endif

}  // namespace pto::detail
