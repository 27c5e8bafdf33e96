// Kernels whose task ends when a counter reaches its target, not when the kernel returns.
//
// A device uses the core for other tasks meanwhile. Here the kernel waits where it registers the counter,
// like a kernel that calls TWAIT: other cores proceed, and the task ends at the same time.
#pragma once

#include <stdint.h>

#include "intrinsic.h"
#include "pto/pto-inst.hpp"
#include "pto_task_id.h"

inline constexpr int32_t MAX_COMPLETIONS_PER_TASK = 64;

#define COMPLETION_ENGINE_SDMA 0u
#define COMPLETION_ENGINE_ROCE 1u
#define COMPLETION_ENGINE_URMA 2u
#define COMPLETION_ENGINE_CCU 3u
#define COMPLETION_TYPE_COUNTER 0
#define COMPLETION_TYPE_SDMA_EVENT_RECORD 1

struct AsyncCtx {
  uint32_t registered = 0;
  PTO2TaskId task_token{0};
};

/// A 32-bit counter and its target.
struct CompletionToken {
  uint64_t addr;
  uint32_t expected_value;
  uint32_t engine;
  int32_t completion_type;
  uint64_t backend_cookie;
};

static inline AsyncCtx get_async_ctx(const int64_t*) { return {}; }
static inline bool async_ctx_is_deferred(const AsyncCtx&) { return true; }

static inline bool register_completion_condition(AsyncCtx& ctx, const CompletionToken& token) {
  if (token.completion_type != COMPLETION_TYPE_COUNTER || token.addr == 0) {
    pto::detail::failf("expected a counter as completion, got type %d at 0x%llx", token.completion_type,
                       static_cast<unsigned long long>(token.addr));
  }
  if (ctx.registered >= MAX_COMPLETIONS_PER_TASK) {
    pto::detail::failf("a task waits for %d completions at most", MAX_COMPLETIONS_PER_TASK);
  }
  ctx.registered++;
  const auto* counter = reinterpret_cast<const uint32_t*>(token.addr);
  const uint32_t expected = token.expected_value;
  pto::detail::wait_until([&] { return __atomic_load_n(counter, __ATOMIC_ACQUIRE) >= expected; },
                          [&](char* text, size_t size) {
                            snprintf(text, size, "a counter to reach %u, which is %u", expected,
                                     __atomic_load_n(counter, __ATOMIC_RELAXED));
                          });
  return true;
}

static inline void save_expected_notification_counter(AsyncCtx& ctx, volatile void* counter,
                                                      uint32_t expected) {
  (void)register_completion_condition(ctx, {reinterpret_cast<uint64_t>(counter), expected,
                                            COMPLETION_ENGINE_SDMA, COMPLETION_TYPE_COUNTER, 0});
}

static inline void send_notification(volatile void* counter, int32_t value, pto::comm::NotifyOp op) {
  pto::comm::Signal signal(reinterpret_cast<int32_t*>(const_cast<void*>(counter)));
  pto::comm::TNOTIFY(signal, value, op);
}
