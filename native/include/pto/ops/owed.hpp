// Copies that are owed: noted when an instruction asks for them, done when somebody could see that they have not been.
//
// An operand of a product goes from global memory to L1 and from there to L0A or L0B, in other layouts each time. Here
// all that is memory of one machine: the product may read what the first copy would have read. So a core that owes
// copies notes those into L1, L0A and L0B.
//
// - What a noted copy reads is still there: it is done before something of it is written, and before others are told
//   that they may write it (vm.settle).
// - Noted copies go to places that have nothing in common: one is done before a part of its place is written, and
//   forgotten where all of it is.
// - None reads what another one writes: a copy of what is owed reads what that one reads.
//
// Only programs of the virtual machine owe copies, and of these only such as touch those memories by copies and products
// alone (src/pto/image/lives.py); there it is also known which copies nobody needs any more (vm.forget).
#pragma once

#include "pto/ops/place.hpp"

namespace pto::detail {

struct Copier;
PTO_COMMON void copy_now(const Copier& copier, void* to_data, const Axis& to_rows, const Axis& to_cols,
                         const void* from_data, const Axis& from_rows, const Axis& from_cols, ptrdiff_t rows,
                         ptrdiff_t cols);
PTO_COMMON ptrdiff_t size_of(const Copier& copier);

/// A place of elements of any size.
struct AnyPlace {
  char* data;
  Axis rows, cols;

  /// Bytes of memory.
  struct Bytes {
    const char *low, *high;
    bool meets(const Bytes& other) const { return low < other.high && other.low < high; }
    bool inside(const char* from, size_t size) const { return low >= from && high <= from + size; }
  };
  /// Those that hold its first n x m elements of `size` bytes, and perhaps others.
  Bytes bytes(ptrdiff_t size, ptrdiff_t n, ptrdiff_t m) const;
  /// Whether rows and columns have the same steps.
  bool lies_as(const AnyPlace& other) const;
};

struct OwedCopy {
  const Copier* copier;
  AnyPlace to, from;
  ptrdiff_t rows, cols;
  AnyPlace::Bytes written, read;
  bool global;  // whether it reads global memory

  bool has(const AnyPlace& part, ptrdiff_t n, ptrdiff_t m) const {
    return part.data == to.data && part.lies_as(to) && to.rows.first == 0 && to.cols.first == 0 &&
           part.rows.first + n <= rows && part.cols.first + m <= cols;
  }
  /// What a part of its place is to hold.
  AnyPlace source(const AnyPlace& part) const {
    AnyPlace found = from;
    found.rows.first += part.rows.first;
    found.cols.first += part.cols.first;
    return found;
  }
};

struct OwedCopies {
  static constexpr int kMost = 12;
  bool wanted = false, notes = false;  // whether the program has any; whether new ones are noted
  int count = 0;
  OwedCopy all[kMost];
};

#ifdef PTO_CPU_OPEN
/// Those of a core that owes copies.
inline OwedCopies* owed_copies() {
  OwedCopies* owed = current == nullptr ? nullptr : current->owed;
  return owed != nullptr && owed->wanted ? owed : nullptr;
}

/// Note a copy, or do what is owed and it concerns; false where it has to be done now.
PTO_COMMON bool owe(OwedCopies& owed, const Copier& copier, const AnyPlace& to, const AnyPlace& from,
                    ptrdiff_t rows, ptrdiff_t cols);
/// Where n x m elements can be read: there, or where a copy that is owed would read them.
PTO_COMMON AnyPlace readable(OwedCopies& owed, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                             ptrdiff_t m);
/// Do the copies that read or write some of these elements, which are about to be written.
PTO_COMMON void make_way(OwedCopies& owed, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n, ptrdiff_t m);
/// Do the copies that read global memory, or all of them.
PTO_COMMON void settle_owed(OwedCopies& owed, bool all);
/// Nobody reads these bytes before they are written.
PTO_COMMON void forget_owed(OwedCopies& owed, const char* data, ptrdiff_t bytes);
#endif

/// An operand, `rows` x `cols` of which are about to be read.
template <class T>
inline Place<T> readable(const Place<T>& place, [[maybe_unused]] ptrdiff_t rows,
                         [[maybe_unused]] ptrdiff_t cols) {
#ifdef PTO_CPU_OPEN
  if (OwedCopies* owed = owed_copies(); owed != nullptr && bits_of<T> >= 16) {
    const AnyPlace found = readable(*owed, {reinterpret_cast<char*>(place.data), place.rows, place.cols},
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

/// Take the n-th copy out of those that are owed.
inline OwedCopy take_owed(OwedCopies& owed, int n) {
  const OwedCopy taken = owed.all[n];
  owed.all[n] = owed.all[--owed.count];
  return taken;
}
inline void copy_owed(OwedCopies& owed, int n) {
  const OwedCopy due = take_owed(owed, n);
  copy_now(*due.copier, due.to.data, due.to.rows, due.to.cols, due.from.data, due.from.rows, due.from.cols,
           due.rows, due.cols);
}

PTO_BODY bool owe(OwedCopies& owed, const Copier& copier, const AnyPlace& to, const AnyPlace& from,
                  ptrdiff_t rows, ptrdiff_t cols) {
  const ptrdiff_t size = size_of(copier);
  OwedCopy made{&copier, to, from, rows, cols, to.bytes(size, rows, cols), from.bytes(size, rows, cols),
                true};
  const auto in = [](const AnyPlace::Bytes& bytes, TileType memory) {
    const int space = static_cast<int>(memory);
    return bytes.inside(current->space[space], room(space));
  };
  const bool noted = owed.notes && size >= 2 &&
                     (in(made.written, TileType::Mat) || in(made.written, TileType::Left) ||
                      in(made.written, TileType::Right));
  for (int n = owed.count; n-- > 0;) {  // what it reads
    const OwedCopy& other = owed.all[n];
    if (!other.written.meets(made.read)) continue;
    if (noted && other.has(from, rows, cols) && made.from.data == from.data) {
      made.from = other.source(from);
    } else {
      copy_owed(owed, n);
    }
  }
  made.read = made.from.bytes(size, rows, cols);
  for (int n = owed.count; n-- > 0;) {  // what it writes
    const OwedCopy& other = owed.all[n];
    if (other.read.meets(made.written)) {
      copy_owed(owed, n);
    } else if (other.written.meets(made.written)) {
      if (to.data == other.to.data && to.lies_as(other.to) && to.rows.first == other.to.rows.first &&
          to.cols.first == other.to.cols.first && rows >= other.rows && cols >= other.cols) {
        take_owed(owed, n);
      } else {
        copy_owed(owed, n);
      }
    }
  }
  if (!noted) return false;
  made.global = !in(made.read, TileType::Mat);
  if (owed.count == OwedCopies::kMost) copy_owed(owed, 0);
  owed.all[owed.count++] = made;
  return true;
}

PTO_BODY AnyPlace readable(OwedCopies& owed, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n,
                           ptrdiff_t m) {
  const AnyPlace::Bytes bytes = place.bytes(size, n, m);
  for (int i = owed.count; i-- > 0;) {
    if (!owed.all[i].written.meets(bytes)) continue;
    if (owed.all[i].has(place, n, m)) return owed.all[i].source(place);
    copy_owed(owed, i);
  }
  return place;
}

PTO_BODY void make_way(OwedCopies& owed, const AnyPlace& place, ptrdiff_t size, ptrdiff_t n, ptrdiff_t m) {
  const AnyPlace::Bytes bytes = place.bytes(size, n, m);
  for (int i = owed.count; i-- > 0;)
    if (owed.all[i].written.meets(bytes) || owed.all[i].read.meets(bytes)) copy_owed(owed, i);
}

PTO_BODY void settle_owed(OwedCopies& owed, bool all) {
  for (int n = owed.count; n-- > 0;)
    if (all || owed.all[n].global) copy_owed(owed, n);
}

PTO_BODY void forget_owed(OwedCopies& owed, const char* data, ptrdiff_t bytes) {
  for (int n = owed.count; n-- > 0;)
    if (owed.all[n].written.inside(data, static_cast<size_t>(bytes))) take_owed(owed, n);
}
#endif

}  // namespace pto::detail
