// Communication in one process: tensors of all ranks lie in one memory, so a remote copy is a plain copy.
//
// TPUT, TGET and their asynchronous forms, collectives over a ParallelGroup, and signals: TNOTIFY writes a
// signal, TWAIT lets other cores run until a comparison holds. Staging tiles are accepted but not used.
#pragma once

#include "pto/core/access.hpp"
#include "pto/core/assign.hpp"
#include "pto/core/bounds.hpp"
#include "pto/core/events.hpp"

namespace pto::comm {

enum class NotifyOp : uint8_t { AtomicAdd = 0, Set = 1 };
enum class WaitCmp : uint8_t { EQ = 0, NE = 1, GT = 2, GE = 3, LT = 4, LE = 5 };
enum class ReduceOp : uint8_t { Sum = 0, Max = 1, Min = 2 };
enum class DmaEngine : uint8_t { SDMA = 0, URMA = 1, RDMA = 2 };
enum class CollEngine : uint8_t { AIV = 0, CCU = 1 };

/// The tensors of the ranks that take part, by rank.
template <class Global>
struct ParallelGroup {
  using value_type = Global;
  Global* tensors = nullptr;
  int nranks = 0, rootIdx = -1;
  constexpr ParallelGroup() = default;
  constexpr ParallelGroup(Global* all, int count, int root) : tensors(all), nranks(count), rootIdx(root) {}
  static constexpr ParallelGroup Create(Global* all, int count, int root) { return {all, count, root}; }
  constexpr int GetRootIdx() const { return rootIdx; }
  constexpr int GetSize() const { return nranks; }
  constexpr bool empty() const { return nranks == 0; }
  constexpr Global& operator[](int rank) const { return tensors[rank]; }
};

template <class T>
struct ParallelGroupTraits;
template <class Global>
struct ParallelGroupTraits<ParallelGroup<Global>> {
  using GlobalDataType = Global;
};

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;
template <class Element, class Shape_, class Stride_, Layout L = Layout::ND>
using GlobalSignal = GlobalTensor<Element, Shape_, Stride_, L>;

/// A matrix of signals: dense, or a window of a larger matrix.
template <int Rows, int Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND> {
  using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND>;
  explicit Signal2D(int32_t* at, int stride = Cols)
      : Base(at, typename Base::Shape{}, typename Base::Stride{stride}) {}
};

// --- boxes of elements -------------------------------------------------------------------------------------

namespace detail {

using namespace pto::detail;

struct Extents {
  int64_t at[5];
  bool operator==(const Extents&) const = default;
};

template <class Global>
inline Extents extents_of(const Global& tensor) {
  Extents found;
  for (int d = 0; d < 5; ++d) {
    found.at[d] = tensor.GetShape(d);
    if (found.at[d] < 0) [[unlikely]]
      failf("[PTO-E2102] expects the sizes of a tensor to be at least 0, got %lld",
            static_cast<long long>(found.at[d]));
  }
  return found;
}

/// Return true if every index of `part` is one of `whole`.
inline bool holds(const Extents& whole, const Extents& part) {
  for (int d = 0; d < 5; ++d) {
    if (whole.at[d] < part.at[d]) return false;
  }
  return true;
}

/// Announce an access to a box that begins at row `row` of a tensor.
template <class Global>
inline void touch(const Global& tensor, const Extents& box, int64_t row, Use use) {
  using T = typename Global::DType;
  touch_box("transfer", tensor.data(), bits_of<T>, reach(row + 1, tensor.GetStride(3)), box.at,
            tensor.strides(), use);
}

/// A row of a box.
struct Row {
  int64_t a, b, c, d;
  /// Return its start in a tensor, in elements, if the box begins at row `first` of the tensor.
  template <class Global>
  int64_t in(const Global& tensor, int64_t first = 0) const {
    return a * tensor.GetStride(0) + b * tensor.GetStride(1) + c * tensor.GetStride(2) +
           (d + first) * tensor.GetStride(3);
  }
};
/// Call row(Row) for every row of a box.
template <class Each>
inline void walk_rows(const Extents& box, Each&& row) {
  for (int64_t a = 0; a < box.at[0]; ++a) {
    for (int64_t b = 0; b < box.at[1]; ++b) {
      for (int64_t c = 0; c < box.at[2]; ++c) {
        for (int64_t d = 0; d < box.at[3]; ++d) row(Row{a, b, c, d});
      }
    }
  }
}
/// Call row(to, from) with the offsets of each row. `from` is read; `to` is written or combined with. The
/// write is announced last.
template <class To, class From, class Each>
inline void for_rows(const To& to, const From& from, const Extents& box, int64_t to_row, int64_t from_row,
                     Use use, Each&& row) {
  touch(from, box, from_row, Use::read);
  touch(to, box, to_row, use);
  walk_rows(box, [&](Row at) { row(at.in(to, to_row), at.in(from, from_row)); });
}

/// Call put(out, i, element) for every element of a box that begins at rows `to_row` and `from_row`.
template <class To, class From, class Put>
inline void for_elements(To& to, From& from, const Extents& box, int64_t to_row, int64_t from_row, Use use,
                         Put&& put) {
  using T = typename To::DType;
  using S = typename From::DType;
  T* const out = to.data();
  S* const in = from.data();
  const int64_t to_step = to.GetStride(4), from_step = from.GetStride(4);
  for_rows(to, from, box, to_row, from_row, use, [&](int64_t a, int64_t b) {
    for (int64_t i = 0; i < box.at[4]; ++i)
      put(out, static_cast<size_t>(a + i * to_step),
          static_cast<T>(element_at(in, static_cast<size_t>(b + i * from_step))));
  });
}

/// Set to[i] = f(elements i of all members of a group).
template <class To, class Group, class F>
inline void combine_ranks(To& to, Group& group, const Extents& box, F&& f) {
  using T = typename To::DType;
  constexpr int kMost = 64;
  if (group.GetSize() > kMost)
    failf("[PTO-E2102] a group of %d members; %d are the most", group.GetSize(), kMost);
  for (int rank = 0; rank < group.GetSize(); ++rank) touch(group[rank], box, 0, Use::read);
  touch(to, box, 0, Use::write);
  walk_rows(box, [&](Row at) {
    for (int64_t i = 0; i < box.at[4]; ++i) {
      T values[kMost];
      for (int rank = 0; rank < group.GetSize(); ++rank) {
        const auto& member = group[rank];
        values[rank] =
            element_at(member.data(), static_cast<size_t>(at.in(member) + i * member.GetStride(4)));
      }
      put_element(to.data(), static_cast<size_t>(at.in(to) + i * to.GetStride(4)), f(values));
    }
  });
}

/// Copy if ranks may be on other machines: their data is sent from `from` itself, without a copy before.
template <class To, class From>
[[gnu::cold]] inline void copy_far(To& to, From& from, const Extents& box, int64_t to_row, int64_t from_row) {
  using T = typename To::DType;
  touch(from, box, from_row, Use::read);
  walk_rows(box, [&](Row at) {
    const int64_t a = at.in(to, to_row), b = at.in(from, from_row);
    const size_t bytes = static_cast<size_t>(box.at[4]) * sizeof(T);
    stay_inside("transfer", to.data() + a, 0, static_cast<int64_t>(bytes));
    if (current->host->put(*current, to.data() + a, from.data() + b, bytes)) return;
    touch("transfer", to.data() + a, 0, static_cast<int64_t>(bytes), Use::write);
    std::memmove(static_cast<void*>(to.data() + a), from.data() + b, bytes);
  });
}

template <class To, class From>
inline void copy(To& to, From& from, const Extents& box, int64_t to_row = 0, int64_t from_row = 0) {
  using T = typename To::DType;
  static_assert(std::is_same_v<T, typename From::DType>,
                "[PTO][SA-0218] the element types of two tensors differ");
  if (bits_of<T> >= 8 && to.GetStride(4) == 1 && from.GetStride(4) == 1) {
    if (current != nullptr && current->host != nullptr && current->host->put != nullptr)
      return copy_far(to, from, box, to_row, from_row);
    for_rows(to, from, box, to_row, from_row, Use::write, [&](int64_t a, int64_t b) {
      std::memmove(static_cast<void*>(to.data() + a), from.data() + b,
                   static_cast<size_t>(box.at[4]) * sizeof(T));
    });
  } else {
    for_elements(to, from, box, to_row, from_row, Use::write,
                 [](T* out, size_t at, T value) { put_element(out, at, value); });
  }
}

/// Return a + b, rounded to the element type; integers wrap.
template <class T>
inline T sum(T a, T b) {
  using C = compute_t<T>;
  if constexpr (std::is_integral_v<C>) {
    using U = std::make_unsigned_t<C>;
    return element_of<T>(static_cast<C>(static_cast<U>(value_of<C>(a)) + static_cast<U>(value_of<C>(b))));
  } else {
    return element_of<T>(static_cast<C>(value_of<C>(a) + value_of<C>(b)));
  }
}
template <class T>
inline bool less(T a, T b) {
  return value_of<compute_t<T>>(a) < value_of<compute_t<T>>(b);
}

template <class T>
inline void wait_for(T& what) {
  if constexpr (is_event<std::remove_cv_t<T>>::value) what.Wait();
}

template <class Group>
inline void check_group(const Group& group) {
  PTO_CHECK(group.GetSize() > 0 && group.GetRootIdx() >= 0 && group.GetRootIdx() < group.GetSize(),
            "PTO-E2102", "root is %d, but the group has %d members", group.GetRootIdx(), group.GetSize());
  check_root(group[group.GetRootIdx()].data(), group.GetRootIdx());
}

}  // namespace detail

// --- from one rank to another ------------------------------------------------------------------------------

template <AtomicType Atomic = AtomicType::AtomicNone, class Dst, class Src, class... Rest>
PTO_INST RecordEvent TPUT(Dst& dst, Src& src, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  using T = typename Dst::DType;
  const detail::Extents box = detail::extents_of(src);
  PTO_CHECK(detail::holds(detail::extents_of(dst), box), "PTO-E2102",
            "TPUT: dst has fewer elements than src");
  bool add = Atomic == AtomicType::AtomicAdd;
  (
      [&] {
        if constexpr (std::is_same_v<std::remove_cvref_t<Rest>, AtomicType>)
          add = rest == AtomicType::AtomicAdd;
      }(),
      ...);
  PTO_TRACE("tput dst src: atomicType", PTO_SAYS(add ? AtomicType::AtomicAdd : AtomicType::AtomicNone), dst,
            src, rest...);
  if (add) {
    constexpr detail::Use kAdd = detail::use_of(AtomicType::AtomicAdd, detail::dtype_of<T>);
    detail::for_elements(dst, src, box, 0, 0, kAdd, [](T* out, size_t at, T value) {
      if constexpr (detail::bits_of<T> >= 8) {
        detail::update(out + at, [&](T old) { return detail::sum(old, value); });
      } else {  // two elements share a byte
        detail::put_element(out, at, detail::sum(detail::element_at(out, at), value));
      }
    });
  } else {
    detail::copy(dst, src, box);
  }
  return {};
}

template <class Dst, class Src, class... Rest>
PTO_INST RecordEvent TGET(Dst& dst, Src& src, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  PTO_TRACE("tget dst src:", PTO_SAYS(), dst, src, rest...);
  PTO_CHECK(detail::extents_of(dst) == detail::extents_of(src), "PTO-E2102",
            "TGET: dst and src differ in shape");
  detail::copy(dst, src, detail::extents_of(src));
  return {};
}

namespace sdma {
inline constexpr uint32_t kAutoChannelGroupIdx = UINT32_MAX;
inline constexpr uint64_t kDefaultSdmaBlockBytes = 1024 * 1024;
inline constexpr uint32_t UB_ALIGN_SIZE = 256, kSdmaMinTransferBytes = 64, kSdmaMaxChannel = 48;
/// `comm_block_offset`: bytes from the start of source and destination to the part that this core moves.
struct SdmaBaseConfig {
  uint64_t block_bytes = kDefaultSdmaBlockBytes, comm_block_offset = 0;
  uint32_t queue_num = 1;
};
using sdma_base_config_t = SdmaBaseConfig;
}  // namespace sdma

struct AsyncSession {
  DmaEngine engine = DmaEngine::SDMA;
  bool valid = false;
  uint32_t destRankId = 0, myPe = 0;
  uint64_t commBlockOffset = 0;
};

/// The event of a transfer. Copies end within the call, so a wait returns at once. On A5 the handle is 0.
struct AsyncEvent {
  uint64_t handle = 0;
  DmaEngine engine = DmaEngine::SDMA;
  constexpr AsyncEvent() = default;
  constexpr AsyncEvent(uint64_t h, DmaEngine e) : handle(h), engine(e) {}
  constexpr bool valid() const { return handle != 0; }
  PTO_INST bool Wait([[maybe_unused]] const AsyncSession& session) const {
    PTO_TRACE("wait_async_event session:", PTO_SAYS(), session);
    return true;
  }
  PTO_INST bool Test([[maybe_unused]] const AsyncSession& session) const {
    PTO_TRACE("test_async_event session:", PTO_SAYS(), session);
    return true;
  }
};

template <DmaEngine Engine = DmaEngine::SDMA, class Scratch>
inline bool BuildAsyncSession(Scratch&, const void*, AsyncSession& session, uint32_t = 0,
                              const sdma::SdmaBaseConfig& config = {},
                              uint32_t = sdma::kAutoChannelGroupIdx) {
  session.engine = Engine;
  session.commBlockOffset = config.comm_block_offset;
  return session.valid = true;
}
/// Build a session with one peer, without a scratch tile.
template <DmaEngine Engine>
inline bool BuildAsyncSession(const void*, uint32_t peer, AsyncSession& session, uint32_t my_pe = 0) {
  session.engine = Engine;
  session.destRankId = peer;
  session.myPe = my_pe;
  return session.valid = true;
}

namespace detail {

/// The part of two tensors that a core moves.
template <class Dst, class Src>
struct Share {
  Dst to;
  Src from;
};
template <class Dst, class Src>
inline Share<Dst, Src> share_of(const Dst& dst, const Src& src, const AsyncSession& session) {
  PTO_CHECK(holds(extents_of(dst), extents_of(src)), "PTO-E2102",
            "TPUT_ASYNC: dst has fewer elements than src");
  Share<Dst, Src> share{dst, src};
  bind(share.to, reinterpret_cast<const char*>(dst.data()) + session.commBlockOffset);
  bind(share.from, reinterpret_cast<const char*>(src.data()) + session.commBlockOffset);
  return share;
}
template <DmaEngine Engine, class Dst, class Src>
inline AsyncEvent transfer(Share<Dst, Src>& share) {
  copy(share.to, share.from, extents_of(share.from));
  return {kIsa == Isa::a5 ? uint64_t{0} : uint64_t{1}, Engine};
}

}  // namespace detail

template <DmaEngine Engine = DmaEngine::SDMA, class Dst, class Src, class... Rest>
PTO_INST AsyncEvent TPUT_ASYNC(Dst& dst, Src& src, const AsyncSession& session, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  auto share = detail::share_of(dst, src, session);
  PTO_TRACE("tput_async dst src session:", PTO_SAYS(), share.to, share.from, session);
  return detail::transfer<Engine>(share);
}
template <DmaEngine Engine = DmaEngine::SDMA, class Dst, class Src, class... Rest>
PTO_INST AsyncEvent TGET_ASYNC(Dst& dst, Src& src, const AsyncSession& session, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  auto share = detail::share_of(dst, src, session);
  PTO_TRACE("tget_async dst src session:", PTO_SAYS(), share.to, share.from, session);
  return detail::transfer<Engine>(share);
}

// --- collectives -------------------------------------------------------------------------------------------

template <CollEngine Engine = CollEngine::AIV, class Group, class Src, class... Rest>
PTO_INST RecordEvent TBROADCAST(Group& group, Src& src, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  PTO_TRACE("tbroadcast src group: root #group", PTO_SAYS(group.GetRootIdx(), group.GetSize()), src, group,
            rest...);
  detail::check_group(group);
  const detail::Extents box = detail::extents_of(src);
  for (int rank = 0; rank < group.GetSize(); ++rank) detail::copy(group[rank], src, box);
  return {};
}

/// Combine the root's tensor with the others in rank order; each step is rounded to the element type.
template <CollEngine Engine = CollEngine::AIV, class Group, class Dst, class... Rest>
PTO_INST RecordEvent TREDUCE(Group& group, Dst& dst, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  using T = typename Dst::DType;
  ReduceOp how = ReduceOp::Sum;
  (
      [&] {
        if constexpr (std::is_same_v<std::remove_cvref_t<Rest>, ReduceOp>) how = rest;
      }(),
      ...);
  PTO_TRACE("treduce dst group: reduceOp root #group", PTO_SAYS(how, group.GetRootIdx(), group.GetSize()),
            dst, group, rest...);
  detail::check_group(group);
  const int root = group.GetRootIdx();
  const detail::Extents box = detail::extents_of(group[root]);
  PTO_CHECK(detail::holds(detail::extents_of(dst), box), "PTO-E2102",
            "TREDUCE: dst has fewer elements than a member");
  // element by element over all ranks: dst may be one of the members
  const auto reduce = [&](auto&& step) {
    detail::combine_ranks(dst, group, box, [&](T* values) {
      T acc = values[root];
      for (int rank = 0; rank < group.GetSize(); ++rank) {
        if (rank != root) acc = step(acc, values[rank]);
      }
      return acc;
    });
  };
  switch (how) {
    case ReduceOp::Sum: reduce([](T a, T b) { return detail::sum(a, b); }); break;
    case ReduceOp::Max: reduce([](T a, T b) { return detail::less(a, b) ? b : a; }); break;
    case ReduceOp::Min: reduce([](T a, T b) { return detail::less(b, a) ? b : a; }); break;
  }
  return {};
}

/// Write the rows of the members to dst one below the other, in rank order.
template <CollEngine Engine = CollEngine::AIV, class Group, class Dst, class... Rest>
PTO_INST RecordEvent TGATHER(Group& group, Dst& dst, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  PTO_TRACE("comm.tgather dst group: root #group", PTO_SAYS(group.GetRootIdx(), group.GetSize()), dst, group,
            rest...);
  detail::check_group(group);
  const detail::Extents box = detail::extents_of(group[0]);
  PTO_CHECK(dst.GetShape(3) >= group.GetSize() * box.at[3], "PTO-E2102", "TGATHER: dst lacks rows");
  for (int rank = 0; rank < group.GetSize(); ++rank) detail::copy(dst, group[rank], box, rank * box.at[3], 0);
  return {};
}
template <CollEngine Engine = CollEngine::AIV, class Group, class Src, class... Rest>
PTO_INST RecordEvent TSCATTER(Group& group, Src& src, Rest&&... rest) {
  (detail::wait_for(rest), ...);
  PTO_TRACE("comm.tscatter src group: root #group", PTO_SAYS(group.GetRootIdx(), group.GetSize()), src, group,
            rest...);
  detail::check_group(group);
  const detail::Extents box = detail::extents_of(group[0]);
  PTO_CHECK(src.GetShape(3) >= group.GetSize() * box.at[3], "PTO-E2102", "TSCATTER: src lacks rows");
  for (int rank = 0; rank < group.GetSize(); ++rank) detail::copy(group[rank], src, box, 0, rank * box.at[3]);
  return {};
}

// --- signals -----------------------------------------------------------------------------------------------

template <class Global, class... Events>
PTO_INST void TNOTIFY(Global& signal, int32_t value, NotifyOp op, Events&... events) {
  WaitAllEvents(events...);
  PTO_TRACE("tnotify signal value: notifyOp", PTO_SAYS(op), signal, value);
  static_assert(sizeof(typename Global::DType) == 4, "[PTO][SA-0218] TNOTIFY: a signal is an int32_t");
  auto* at = reinterpret_cast<int32_t*>(signal.data());
  detail::touch_elements("TNOTIFY", at, 32, 0, 0,
                         op == NotifyOp::AtomicAdd ? detail::use_of(AtomicType::AtomicAdd, detail::DType::i32)
                                                   : detail::Use::write);
  if (op == NotifyOp::AtomicAdd) {
    __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
  } else {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
  }
  if (detail::current != nullptr && detail::is_noted(detail::current)) detail::settle();
}

namespace detail {

/// Return true if the value of a signal compares as requested.
inline bool compares(int32_t found, int32_t value, WaitCmp cmp) {
  switch (cmp) {
    case WaitCmp::EQ: return found == value;
    case WaitCmp::NE: return found != value;
    case WaitCmp::GT: return found > value;
    case WaitCmp::GE: return found >= value;
    case WaitCmp::LT: return found < value;
    case WaitCmp::LE: return found <= value;
  }
  return true;
}

/// Return true if every signal of a tensor compares as requested. The reads are not noted: waiting cores poll
/// many times, and on other fibers.
template <class Global>
inline bool all_signals(Global& signal, int32_t value, WaitCmp cmp) {
  static_assert(sizeof(typename Global::DType) == 4, "[PTO][SA-0218] a signal is an int32_t");
  bool all = true;
  const auto* base = reinterpret_cast<const int32_t*>(signal.data());
  const int64_t step = signal.GetStride(4), count = signal.GetShape(4);
  walk_rows(extents_of(signal), [&](Row at) {
    const int64_t row = at.in(signal);
    for (int64_t i = 0; i < count && all; ++i) {
      all = compares(__atomic_load_n(base + row + i * step, __ATOMIC_ACQUIRE), value, cmp);
    }
  });
  return all;
}

/// The values of the signals of a tensor as text; empty for more than 8 signals.
struct Held {
  char text[128] = "";
  template <class Global>
  explicit Held(const Global& signal) {
    const auto* base = reinterpret_cast<const int32_t*>(signal.data());
    const Extents box = extents_of(signal);
    int64_t all = 1;
    for (const int64_t size : box.at) {
      if (size > 8 || (all *= size) > 8) return;
    }
    int length = 0;
    walk_rows(box, [&](Row at) {
      const int64_t row = at.in(signal);
      for (int64_t i = 0; i < box.at[4]; ++i)
        length += std::snprintf(text + length, sizeof text - static_cast<size_t>(length), "%s%d",
                                length == 0 ? " (holds " : ", ",
                                __atomic_load_n(base + row + i * signal.GetStride(4), __ATOMIC_ACQUIRE));
    });
    if (length > 0) std::snprintf(text + length, sizeof text - static_cast<size_t>(length), ")");
  }
};

}  // namespace detail

template <class Global, class... Events>
PTO_INST bool TTEST(Global& signal, int32_t value, WaitCmp cmp, Events&... events) {
  WaitAllEvents(events...);
  detail::touch(signal, detail::extents_of(signal), 0, detail::Use::read);
  const bool all = detail::all_signals(signal, value, cmp);
  // A test that finds a notification orders like a wait and is traced as one: a trace records no answers.
  // A test that the initial value of a signal, 0, passes as well needs no notification.
  PTO_TRACE_EITHER(all && !detail::compares(0, value, cmp),
                   ("twait signal cmpValue: cmp", PTO_SAYS(cmp), signal, value),
                   ("ttest signal cmpValue: cmp", PTO_SAYS(cmp), signal, value));
  if (!all) detail::step_aside(true);
  return all;
}

template <class Global, class... Events>
PTO_INST void TWAIT(Global& signal, int32_t value, WaitCmp cmp, Events&... events) {
  WaitAllEvents(events...);
  PTO_TRACE("twait signal cmpValue: cmp", PTO_SAYS(cmp), signal, value);
  detail::touch(signal, detail::extents_of(signal), 0, detail::Use::read);
  const char* const name = detail::name_of(signal.data());  // read here: another core may describe the wait
  const int64_t byte = detail::byte_of(signal.data());
  detail::Core& me = detail::core();
  const detail::Extents box = detail::extents_of(signal);
  const bool far = me.host != nullptr && me.host->settled != nullptr;
  const auto holds = [&] {
    if (detail::all_signals(signal, value, cmp)) return true;
    if (!far) return false;
    detail::look_again(me, signal.data(), 32, box.at, signal.strides());
    return detail::all_signals(signal, value, cmp);
  };
  detail::wait_until(holds, [&](char* text, size_t size) {
    constexpr const char* kNames[] = {"eq", "ne", "gt", "ge", "lt", "le"};
    char at[32] = "";
    if (byte > 0) std::snprintf(at, sizeof at, " at byte %lld", static_cast<long long>(byte));
    std::snprintf(text, size, "a signal%s%s%s %s %d%s", name[0] != 0 ? " of " : "", name, at,
                  kNames[static_cast<int>(cmp)], value, detail::Held(signal).text);
  });
  // Note the signals again after the wait: for an observer of uses, the order begins at its end.
  if (!far && detail::is_noted(&me)) detail::look_again(me, signal.data(), 32, box.at, signal.strides());
}

// Names of the simulator's internal layer, which some programs call.
template <class... Args>
PTO_INST void TNOTIFY_IMPL(Args&&... args) {
  TNOTIFY(args...);
}
template <class... Args>
PTO_INST void TWAIT_IMPL(Args&&... args) {
  TWAIT(args...);
}
template <class... Args>
PTO_INST bool TTEST_IMPL(Args&&... args) {
  return TTEST(args...);
}

}  // namespace pto::comm
