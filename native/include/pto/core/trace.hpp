// The records of a traced build (-DPTO_TRACED): all calls with their operands and source locations.
//
// A call that changes state begins with
//
//   PTO_TRACE("tcmp dst src0 src1: cmpMode", PTO_SAYS(cmpMode), dst, src0, src1);
//
// The text names a row of the instruction table, then the operands in the order of the arguments and, after
// the colon, the attributes: `name`, `name@Tag` for a number of that tag of the micro level, `name=word`, or
// `#name` for the number of members of a group. A result register is `>name`, passed as PTO_RESULT: its value
// after the call is recorded, too. A call with a null text is not recorded. Each core collects records, and
// the launch passes them to the receiver (`pto_tracer::told`): the reference engine, which executes them with
// observers (src/pto/engine/traced). Calls inside a traced call are part of that call and not recorded. In a
// traced build, calls are functions with frames, so that the return address gives the source location of a
// call. In every other build these macros are empty.
//
// A record consists of 64-bit words: the number of words; the text of the call; five return addresses,
// innermost first; the numbers of operands and (from bit 32 on) attributes; the attributes; a pointer to the
// `TracedType` of each operand; then the values of the operands, with as many words as the type has. The
// words before the values are the same in repeated calls, unless attributes change.
#pragma once

#include "pto/core/macros.hpp"

#ifndef PTO_TRACED
#define PTO_TRACE(...) ((void)0)
#define PTO_TRACE_EITHER(...) ((void)0)
#define PTO_TRACE_WAITS(...) ((void)0)
#define PTO_TRACE_PHASE(...) ((void)0)
#define PTO_VECTOR_SCOPE
#define PTO_UNTOLD(...) ((void)0)
#define PTO_UNTRACED ((void)0)
#define PTO_TRACE_PLACED(...) ((void)0)
#define PTO_TRACE_FREED(...) ((void)0)
#else

#define PTO_SAYS(...) ::pto::detail::said(__VA_ARGS__)
#define PTO_RESULT(...) ::pto::detail::traced_result(__VA_ARGS__)
/// Record the name of a call that changes memory and cannot be executed from a record, unless the call is
/// part of another call.
#define PTO_UNTOLD(name) ::pto::detail::untold(name)
#define PTO_VECTOR_SCOPE if (const ::pto::detail::TracedScope pto_scope_{}; true)
#define PTO_TRACE(...) const ::pto::detail::Tracing pto_tracing_(__builtin_frame_address(0), __VA_ARGS__)
#define PTO_TRACE_IN_(...) __VA_ARGS__
/// Record one of two texts with operands, each in parentheses.
#define PTO_TRACE_EITHER(condition, first, second)                                        \
  const ::pto::detail::Tracing pto_tracing_ =                                             \
      condition ? ::pto::detail::Tracing(__builtin_frame_address(0), PTO_TRACE_IN_ first) \
                : ::pto::detail::Tracing(__builtin_frame_address(0), PTO_TRACE_IN_ second)
/// Wait for the event arguments of a call that is not recorded itself.
#define PTO_TRACE_WAITS(...) ::pto::detail::await_events(__VA_ARGS__)
/// Set the phase of the next matrix product.
#define PTO_TRACE_PHASE(phase) ::pto::detail::say_phase(static_cast<uint64_t>(phase))
#define PTO_UNTRACED \
  const ::pto::detail::Tracing pto_tracing_ {}
/// Record that storage of a tile in auto mode is allocated or (PTO_TRACE_FREED) freed.
#define PTO_TRACE_PLACED(at, loc, bytes) ::pto::detail::traced_places.add(at, loc, bytes)
#define PTO_TRACE_FREED(at) ::pto::detail::traced_places.remove(at)

#include <cstdint>
#include <cstring>
#include <type_traits>
#ifdef __PTO_AUTO__
#include <deque>
#include <map>
#endif

#include "pto/core/dtypes.hpp"
#include "pto/core/enums.hpp"
#include "pto/core/machine.hpp"

namespace pto::detail {

#ifdef __PTO_AUTO__
/// Addresses for the storage of tiles in auto mode, beyond the capacity of their memory, as in the reference
/// engine. Freed addresses are reused, so that loops need a bounded number, but only once many are free, so
/// that old data of a tile is not mistaken for data of the next tile. A traced launch has one thread.
class TracedPlaces {
 public:
  void add(const char* at, TileType loc, size_t bytes) {
    const int space = static_cast<int>(loc);
    const uint64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (next_[space] == 0)
      next_[space] = (capacity(space) + kAlignment - 1) / kAlignment * kAlignment + kFifos;
    uint64_t place = next_[space];
    std::deque<uint64_t>& free = free_[{space, size}];
    if (free.size() >= kWaiting) {
      place = free.front();
      free.pop_front();
    } else {
      next_[space] += size;
    }
    held_[reinterpret_cast<uintptr_t>(at)] = {space, size, place};
  }
  void remove(const char* at) {
    const auto found = held_.find(reinterpret_cast<uintptr_t>(at));
    if (found == held_.end()) return;
    free_[{found->second.space, found->second.size}].push_back(found->second.place);
    held_.erase(found);
  }
  /// Return the address of a byte in the storage of a tile or shortly after it, else `otherwise`.
  uint64_t of(const char* byte, uint64_t otherwise) const {
    auto found = held_.upper_bound(reinterpret_cast<uintptr_t>(byte));
    if (found == held_.begin()) return otherwise;
    --found;
    const uint64_t offset = reinterpret_cast<uintptr_t>(byte) - found->first;
    return offset < found->second.size + kBehind ? found->second.place + offset : otherwise;
  }

 private:
  static constexpr uint64_t kAlignment = 512;
  static constexpr uint64_t kFifos = 1 << 20;  // reserved for slots of FIFOs without an address
  static constexpr size_t kWaiting = 16;
  static constexpr uint64_t kBehind = 1 << 16;
  struct Held {
    int space;
    uint64_t size, place;
  };
  std::map<uintptr_t, Held> held_;
  std::map<std::pair<int, uint64_t>, std::deque<uint64_t> > free_;
  uint64_t next_[kSpaces] = {};
};
inline TracedPlaces traced_places;
#endif

/// Kinds of operands.
enum class Traced : int32_t { number, tile, tensor, pointer, conv_tile, object, pipe, vector, mask, group };
/// The largest number of recorded members of a group.
inline constexpr int kTracedMembers = 64;

/// The common description of all operands of a type.
struct TracedType {
  Traced kind;
  int32_t dtype;  // a DType; -1: none
  int32_t words;  // of a value
  int32_t facts
      [9];  // tiles: space, rows, columns, valid rows and columns (-1: dynamic), BLayout, SLayout, fractal,
            // compact mode; tensors: layout; vectors: lanes; pipes: flag, direction, slot size, slots,
            // local slots, no split; convolution tiles: space, layout, number of dimensions
  uint64_t pad;     // tiles: pad value
  int64_t dims[6];  // convolution tiles and tensors: static sizes
};

template <class... Arguments>
inline void await_events(Arguments&... arguments) {
  [[maybe_unused]] const auto await = [](auto& argument) {
    if constexpr (requires {
                    argument.srcPipe;
                    argument.Wait();
                  })
      argument.Wait();
  };
  (await(arguments), ...);
}

inline void say_phase(uint64_t phase) {
  Trace* trace = core().trace;
  if (trace != nullptr) trace->phase = phase;
}
/// Return the id of an event that has no explicit id: the next id between two pipes, cyclically.
inline int next_event(pipe_t from, pipe_t to) {
  Trace* trace = core().trace;
  if (trace == nullptr || from < 0 || from >= kPipes || to < 0 || to >= kPipes) return 0;
  return trace->events[from][to]++ % kEventIds;
}
inline uint64_t traced_phase() {
  Trace* trace = core().trace;
  if (trace == nullptr) return 0;
  const uint64_t phase = trace->phase;
  trace->phase = 0;
  return phase;
}

/// The values of the attributes of a call.
template <size_t N>
struct Said {
  uint64_t words[N + 1];
};
template <class... Values>
inline Said<sizeof...(Values)> said(Values... values) {
  return {{static_cast<uint64_t>(values)..., 0}};
}

template <class T>
concept TracedTile = requires(const T& t) {
  T::Loc;
  T::BFractal;
  t.GetValidRow();
};
template <class T>
concept TracedConvTile = requires {
  T::Loc;
  T::totalDimCount;
};
template <class T>
concept TracedTensor = requires { T::staticStride; };
template <class T>
concept TracedGroup = requires(const T& t) {
  typename T::value_type;
  t.tensors;
  t.nranks;
};
template <class T>
concept TracedPipe = requires(const T& t) {
  T::DIR_TYPE;
  T::is_no_split;
  t.fifo.GM_SLOT_BUFFER;
};
template <class T>
inline constexpr bool is_traced_float = false;
template <DType D>
inline constexpr bool is_traced_float<SmallFloat<D> > = true;
template <class T>
concept TracedElement = std::is_arithmetic_v<T> || is_traced_float<T> || std::is_same_v<T, int4b_t>;

template <class T>
concept TracedRegister = requires {
  typename T::Element;
  T::kLanes;
} && sizeof(T) == 256;
template <class T>
concept TracedMask = requires(const T& t) { t.word[3]; } && sizeof(T) == 32;
/// A register or a mask that is the result of a call.
template <class T>
struct TracedResult {
  using Made = T;
  const T& value;
};
template <class T>
inline TracedResult<T> traced_result(const T& value) {
  return {value};
}
template <class T>
concept IsTracedResult = requires { typename T::Made; };
template <class T>
concept TracedCast = requires { typename T::Given; };

template <class T>
constexpr TracedType traced_type_of() {
  if constexpr (TracedCast<T>) return traced_type_of<typename T::Given>();
  if constexpr (IsTracedResult<T>) return traced_type_of<typename T::Made>();
  TracedType type{};
  type.dtype = -1;
  type.words = 1;
  if constexpr (TracedTile<T>) {
    type.kind = Traced::tile;
    type.words = 4;
    const int32_t facts[] = {static_cast<int32_t>(T::Loc),
                             T::Rows,
                             T::Cols,
                             T::ValidRow,
                             T::ValidCol,
                             static_cast<int32_t>(T::BFractal),
                             static_cast<int32_t>(T::SFractal),
                             T::SFractalSize,
                             static_cast<int32_t>(T::Compact)};
    for (int i = 0; i < 9; ++i) type.facts[i] = facts[i];
    type.pad = static_cast<uint64_t>(T::PadVal);
    type.dtype = static_cast<int32_t>(dtype_of<typename T::DType>);
  } else if constexpr (TracedConvTile<T>) {
    type.kind = Traced::conv_tile;
    type.words = 8;
    type.facts[0] = static_cast<int32_t>(T::Loc);
    type.facts[1] = static_cast<int32_t>(T::layout);
    type.facts[2] = T::totalDimCount;
    for (int d = 0; d < 6; ++d) type.dims[d] = T::staticShape[d];
    type.dtype = static_cast<int32_t>(dtype_of<typename T::DType>);
  } else if constexpr (TracedTensor<T>) {
    type.kind = Traced::tensor;
    type.words = 11;
    type.facts[0] = static_cast<int32_t>(T::layout);
    for (int d = 0; d < 5; ++d) type.dims[d] = T::staticShape[d];
    type.dtype = static_cast<int32_t>(dtype_of<typename T::DType>);
  } else if constexpr (TracedGroup<T>) {
    type = traced_type_of<typename T::value_type>();
    type.kind = Traced::group;
    type.words *= kTracedMembers;
  } else if constexpr (TracedRegister<T>) {
    type.kind = Traced::vector;
    type.words = 1 + 32;
    type.facts[0] = T::kLanes;
    type.dtype = static_cast<int32_t>(dtype_of<typename T::Element>);
  } else if constexpr (TracedMask<T>) {
    type.kind = Traced::mask;
    type.words = 1 + 4;
  } else if constexpr (TracedPipe<T>) {
    type.kind = Traced::pipe;
    type.words = 3;
    const int32_t facts[] = {T::flag,
                             T::DIR_TYPE,
                             static_cast<int32_t>(T::RingFiFo::SLOT_SIZE),
                             static_cast<int32_t>(T::RingFiFo::SLOT_NUM),
                             static_cast<int32_t>(T::RingFiFo::LOCAL_SLOT_NUM),
                             T::is_no_split};
    for (int i = 0; i < 6; ++i) type.facts[i] = facts[i];
  } else if constexpr (std::is_pointer_v<T>) {
    type.kind = Traced::pointer;
    type.words = 2;
    using Element = std::remove_cv_t<std::remove_pointer_t<T> >;
    if constexpr (TracedElement<Element>) type.dtype = static_cast<int32_t>(dtype_of<Element>);
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
    type.kind = Traced::number;
    type.dtype = static_cast<int32_t>(DType::i64);
  } else if constexpr (TracedElement<T>) {
    type.kind = Traced::number;
    type.dtype = static_cast<int32_t>(dtype_of<T>);
  } else if constexpr (std::is_arithmetic_v<T>) {
    type.kind = Traced::number;
    type.dtype = static_cast<int32_t>(sizeof(T) == 4 ? DType::i32 : DType::i64);
  } else {
    type.kind = Traced::object;
  }
  return type;
}
template <class T>
inline constexpr TracedType traced_type = traced_type_of<T>();

template <class T>
inline uint64_t* traced_value(Core& me, uint64_t* at, const T& value) {
  if constexpr (TracedCast<T> || IsTracedResult<T>) {
    return traced_value(me, at, value.value);
  } else if constexpr (TracedRegister<T> || TracedMask<T>) {
    *at++ = reinterpret_cast<uintptr_t>(&value);
    std::memcpy(at, &value, sizeof value);
    at += sizeof value / sizeof *at;
  } else if constexpr (TracedTile<T> || TracedConvTile<T>) {
    const auto* data = reinterpret_cast<const char*>(const_cast<T&>(value).data());
    uint64_t offset = static_cast<uint64_t>(data - me.space[static_cast<int>(T::Loc)]);
#ifdef __PTO_AUTO__
    if (offset >= room(static_cast<int>(T::Loc))) offset = traced_places.of(data, offset);
#endif
    *at++ = data == nullptr ? ~uint64_t{0} : offset;
    *at++ = reinterpret_cast<uintptr_t>(&value);
    if constexpr (TracedTile<T>) {
      *at++ = value.GetValidRow();
      *at++ = value.GetValidCol();
    } else {
      for (int d = 0; d < 6; ++d) *at++ = static_cast<uint64_t>(value.GetShape(d));
    }
  } else if constexpr (TracedTensor<T>) {
    *at++ = reinterpret_cast<uintptr_t>(value.data());
    for (int d = 0; d < 5; ++d) *at++ = static_cast<uint64_t>(value.sizes()[d]);
    for (int d = 0; d < 5; ++d) *at++ = static_cast<uint64_t>(value.strides()[d]);
  } else if constexpr (TracedGroup<T>) {
    uint64_t* const end = at + traced_type<T>.words;
    for (int rank = 0; rank < value.nranks && rank < kTracedMembers; ++rank)
      at = traced_value(me, at, value.tensors[rank]);
    at = end;
  } else if constexpr (TracedPipe<T>) {
    *at++ = reinterpret_cast<uintptr_t>(value.fifo.GM_SLOT_BUFFER);
    *at++ = value.fifo.C2V_CONSUMER_BUF;
    *at++ = value.fifo.V2C_CONSUMER_BUF;
  } else if constexpr (std::is_pointer_v<T>) {
    const auto address = reinterpret_cast<uintptr_t>(value);
    int space = 0;
    while (space < kSpaces && address - reinterpret_cast<uintptr_t>(me.space[space]) >= room(space)) ++space;
    *at++ = static_cast<uint64_t>(space);
    *at++ = space < kSpaces ? address - reinterpret_cast<uintptr_t>(me.space[space]) : address;
  } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    *at++ = static_cast<uint64_t>(static_cast<int64_t>(value));
  } else if constexpr (traced_type<T>.kind == Traced::number) {
    *at = 0;
    std::memcpy(at++, &value, sizeof value < 8 ? sizeof value : 8);
  } else {
    *at++ = reinterpret_cast<uintptr_t>(&value);
  }
  return at;
}

/// A traced call; the object lives as long as the call.
class Tracing {
 public:
  /// Do not record this call or the calls inside it.
  Tracing() : me_(core()) {
    if (me_.trace != nullptr) ++me_.trace->depth;
  }
  template <size_t Attributes, class... Operands>
  Tracing(const void* frame, const char* form, const Said<Attributes>& said, const Operands&... operands)
      : me_(core()) {
    Trace* trace = me_.trace;
    if (trace == nullptr || trace->depth++ > 0 || form == nullptr) return;
    constexpr size_t most =
        8 + Attributes +
        (static_cast<size_t>(traced_type<std::remove_cvref_t<Operands> >.words + 1) + ... + 0);
    if (trace->count + most > Trace::kWords) trace->flush(me_);
    uint64_t* const first = trace->words + trace->count;
    uint64_t* at = first + 1;
    *at++ = reinterpret_cast<uintptr_t>(form);
    for (int i = 0; i < 5; ++i) {
      *at = 0;
      if (frame != nullptr) frame = caller_of(frame, *at);
      ++at;
    }
    *at++ = sizeof...(Operands) | uint64_t{Attributes} << 32;
    for (size_t i = 0; i < Attributes; ++i) *at++ = said.words[i];
    ((*at++ = reinterpret_cast<uintptr_t>(&traced_type<std::remove_cvref_t<Operands> >)), ...);
    ((note_result(operands, at), at = traced_value(me_, at, operands)), ...);
    *first = static_cast<uint64_t>(at - first);
    trace->count += static_cast<size_t>(at - first);
  }
  ~Tracing() {
    if (me_.trace == nullptr) return;
    --me_.trace->depth;
    for (int i = 0; i < results_; ++i) std::memcpy(result_[i].to, result_[i].from, result_[i].bytes);
  }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  template <class T>
  void note_result([[maybe_unused]] const T& operand, [[maybe_unused]] uint64_t* at) {
    if constexpr (IsTracedResult<T>) {
      if (results_ < 3) result_[results_++] = {at + 1, &operand.value, sizeof operand.value};
    }
  }

  /// The result of a call and its position in the record. The destructor stores the value there, before a
  /// flush can pass the record to the receiver.
  struct Result {
    uint64_t* to;
    const void* from;
    size_t bytes;
  };
  Core& me_;
  Result result_[3];
  int results_ = 0;
};

[[gnu::noinline]] inline void untold(const char* name) {
  PTO_TRACE("untold: name", PTO_SAYS(reinterpret_cast<uintptr_t>(name)));
}

[[gnu::noinline]] inline void begin_scope() { PTO_TRACE("vecscope.begin:", PTO_SAYS()); }
[[gnu::noinline]] inline void end_scope() { PTO_TRACE("vecscope.end:", PTO_SAYS()); }
/// A vector scope; the object lives as long as the scope.
struct TracedScope {
  TracedScope() { begin_scope(); }
  ~TracedScope() { end_scope(); }
  TracedScope(const TracedScope&) = delete;
  TracedScope& operator=(const TracedScope&) = delete;
};

}  // namespace pto::detail
#endif
