// Flags, barriers and events. A core runs its instructions in program order, so a wait for one of its own
// pipes is a no-op. With -DPTO_CHECKED, each wait_flag needs an earlier set_flag, and the reverse.
//
// Every tile intrinsic returns a RecordEvent. After its operands it takes events to wait for:
//   Event<Op::TLOAD, Op::TADD> loaded;  loaded = TLOAD(tile, tensor);  TADD(dst, tile, tile, loaded);
#pragma once

#include "pto/core/check.hpp"
#include "pto/core/cross_core.hpp"
#include "pto/core/enums.hpp"
#include "pto/core/trace.hpp"

namespace pto::detail {
constexpr bool is_flag(pipe_t from, pipe_t to, int id) {
  return from != to && from >= 0 && from < kPipes && to >= 0 && to < kPipes && id >= 0 && id < kEventIds;
}
}  // namespace pto::detail

PTO_INST void set_flag([[maybe_unused]] pipe_t from, [[maybe_unused]] pipe_t to, [[maybe_unused]] int id) {
  PTO_TRACE("set_flag: src_pipe dst_pipe event_id", PTO_SAYS(from, to, id));
#ifdef PTO_CHECKED
  PTO_CHECK(pto::detail::is_flag(from, to, id), "SA-0118",
            "set_flag(%d, %d, %d): expected two different pipes and an id of 0..7", from, to, id);
  uint32_t& raised = pto::detail::core().flags[from][to][id];
  PTO_CHECK(raised == 0, "PTO-E0804",
            "set_flag(PIPE_%s, PIPE_%s, %d): the flag is still raised; a wait_flag is missing",
            pto::detail::kPipeNames[from], pto::detail::kPipeNames[to], id);
  raised = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
#endif
}

PTO_INST void wait_flag([[maybe_unused]] pipe_t from, [[maybe_unused]] pipe_t to, [[maybe_unused]] int id) {
  PTO_TRACE("wait_flag: src_pipe dst_pipe event_id", PTO_SAYS(from, to, id));
#ifdef PTO_CHECKED
  PTO_CHECK(pto::detail::is_flag(from, to, id), "SA-0118",
            "wait_flag(%d, %d, %d): expected two different pipes and an id of 0..7", from, to, id);
  uint32_t& raised = pto::detail::core().flags[from][to][id];
  PTO_CHECK(raised != 0, "PTO-E2104",
            "wait_flag(PIPE_%s, PIPE_%s, %d): the flag is not set; the pipe would wait forever",
            pto::detail::kPipeNames[from], pto::detail::kPipeNames[to], id);
  raised = 0;
#endif
}

PTO_INST void pipe_barrier([[maybe_unused]] pipe_t pipe) { PTO_TRACE("barrier: pipe", PTO_SAYS(pipe)); }

// --- the control register ----------------------------------------------------------------------------------

inline uint64_t get_ctrl() { return pto::detail::core().ctrl; }
inline void set_ctrl(uint64_t value) { pto::detail::core().ctrl = value; }
constexpr uint64_t sbitset1(uint64_t value, int64_t bit) { return value | uint64_t{1} << (bit & 63); }
constexpr uint64_t sbitset0(uint64_t value, int64_t bit) { return value & ~(uint64_t{1} << (bit & 63)); }

namespace pto {

/// The result of an instruction. Assigning it to an event records the event at this point of the program.
struct RecordEvent {};

struct EventBaseTag {};
template <class T>
struct is_event : std::is_base_of<EventBaseTag, T> {};
template <class... Ts>
concept all_events_v = (is_event<std::remove_cvref_t<Ts>>::value && ...);

/// An event from an instruction of kind Src to an instruction of kind Dst.
template <Op Src, Op Dst, bool AutoToken = true, event_t EventId = EVENT_ID0>
struct Event : EventBaseTag {
  static_assert(Dst < Op::OP_COUNT, "[PTO][SA-0037] Event: the second kind of instruction does not exist");
  static_assert(Src < Op::OP_COUNT, "[PTO][SA-0116] Event: the first kind of instruction does not exist");
  static constexpr Op srcOp = Src, dstOp = Dst;
  static constexpr pipe_t srcPipe = pipe_of(Src), dstPipe = pipe_of(Dst);
  static constexpr bool isSamePipe = srcPipe == dstPipe;
#ifdef PTO_TRACED
  event_t token = AutoToken ? detail::next_event(srcPipe, dstPipe) : EventId;
#else
  static constexpr event_t token = EventId;
#endif

  /// True if the event goes to another core of the block. The program then gives its id: Record<id>() and
  /// Wait<id>().
  static constexpr bool isCrossCore = Src == Op::TMOV_A2V || Src == Op::TMOV_V2M || Src == Op::TEXTRACT_V2M;
  static_assert(!isCrossCore || !AutoToken,
                "[PTO][SA-0116] Event: an event between cores has no automatic id; "
                "fix: give false as AutoToken and name the id in Record<id>() and Wait<id>()");

  Event() = default;
  PTO_INST Event(RecordEvent) { Record(); }
  PTO_INST Event& operator=(RecordEvent) { return Record(); }
  Event& InitAddr(uint64_t address) {
    set_ffts_base_addr(address);
    return *this;
  }
  template <uint8_t CrossCoreId = 0xFF>
  PTO_INST Event& Init() {
    return Record<CrossCoreId>();
  }
  template <uint8_t CrossCoreId = 0xFF>
  PTO_INST Event& Record() {
    if constexpr (!isCrossCore && !isSamePipe)
      PTO_TRACE("set_flag: src_pipe dst_pipe event_id", PTO_SAYS(srcPipe, dstPipe, token));
    if constexpr (isCrossCore && CrossCoreId != 0xFF) {
      if (detail::core().kind != detail::CoreKind::Mix) {
        PTO_IF_TARGET(detail::kIsa == detail::Isa::a2a3) { detail::signal_cross_core(2, CrossCoreId); }
        else {
          set_intra_block(srcPipe, CrossCoreId);
          if constexpr (Src == Op::TMOV_A2V) set_intra_block(srcPipe, CrossCoreId + detail::kSecondVector);
        }
      }
    }
    return *this;
  }
  template <uint8_t CrossCoreId = 0xFF>
  PTO_INST Event& Wait() {
    if constexpr (!isCrossCore && !isSamePipe)
      PTO_TRACE("wait_flag: src_pipe dst_pipe event_id", PTO_SAYS(srcPipe, dstPipe, token));
    else if constexpr (!isCrossCore)
      PTO_TRACE("barrier: pipe", PTO_SAYS(srcPipe));
    if constexpr (isCrossCore && CrossCoreId != 0xFF) {
      if (detail::core().kind != detail::CoreKind::Mix) {
        PTO_IF_TARGET(detail::kIsa == detail::Isa::a2a3) { wait_flag_dev(CrossCoreId); }
        else {
          wait_intra_block(dstPipe, CrossCoreId);
        }
      }
    }
    return *this;
  }
};

template <class... Events>
PTO_INST void WaitAllEvents(Events&... events) {
  (events.Wait(), ...);
}

/// Wait for all of the given events.
template <class... Events>
PTO_INST void TSYNC(Events&... events) {
  WaitAllEvents(events...);
}
/// Wait for the pipe of an instruction; a no-op here.
template <Op Kind>
PTO_INST void TSYNC() {
  static_assert(
      detail::kIsa != detail::Isa::a5 || pipe_of(Kind) == PIPE_MTE2 || pipe_of(Kind) == PIPE_MTE3 ||
          pipe_of(Kind) == PIPE_ALL,
      "[PTO][SA-0096] TSYNC: A5 waits for loads and stores only, not for the pipe of this operation");
}

template <pipe_t Src, pipe_t Dst>
PTO_INST void PtoSetWaitFlag(event_t set = EVENT_ID0, event_t wait = EVENT_ID0) {
  set_flag(Src, Dst, set);
  wait_flag(Src, Dst, wait);
}

}  // namespace pto
