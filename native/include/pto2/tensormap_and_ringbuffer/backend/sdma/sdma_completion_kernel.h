// Tasks that end with a copy between ranks. Here a copy is complete when its call returns, so the task has
// nothing to wait for.
#pragma once

#include <stdint.h>

#include "pto/pto-inst.hpp"
#include "pto_async_kernel_api.h"

inline constexpr uint32_t SDMA_SCRATCH_ALIGNMENT = pto::comm::sdma::UB_ALIGN_SIZE;

enum class SdmaOp : uint8_t { TGET = 0, TPUT = 1 };

/// A request for a copy.
template <class Dst, class Src, class Scratch>
struct SdmaRequestDescriptor {
  SdmaOp op;
  Dst dst;
  Src src;
  Scratch scratch;
  uint8_t* workspace;
  uint32_t sync_id;
};

template <class Dst, class Src, class Scratch>
inline SdmaRequestDescriptor<Dst, Src, Scratch> SdmaTget(const Dst& dst, const Src& src,
                                                         const Scratch& scratch, uint8_t* workspace,
                                                         uint32_t sync_id = 0) {
  return {SdmaOp::TGET, dst, src, scratch, workspace, sync_id};
}

template <class Dst, class Src, class Scratch>
inline SdmaRequestDescriptor<Dst, Src, Scratch> SdmaTput(const Dst& dst, const Src& src,
                                                         const Scratch& scratch, uint8_t* workspace,
                                                         uint32_t sync_id = 0) {
  return {SdmaOp::TPUT, dst, src, scratch, workspace, sync_id};
}

/// Copy as requested; return false if there is no engine, because get_dma_workspace returned null.
template <class Dst, class Src, class Scratch>
inline bool send_request_entry(AsyncCtx& ctx, SdmaRequestDescriptor<Dst, Src, Scratch> request) {
  pto::comm::AsyncSession session;
  if (request.workspace == nullptr ||
      !pto::comm::BuildAsyncSession(request.scratch, request.workspace, session, request.sync_id))
    return false;
  if (ctx.registered >= MAX_COMPLETIONS_PER_TASK)
    pto::detail::failf("a task waits for %d completions at most", MAX_COMPLETIONS_PER_TASK);
  ctx.registered++;
  const pto::comm::AsyncEvent event = request.op == SdmaOp::TGET
                                          ? pto::comm::TGET_ASYNC(request.dst, request.src, session)
                                          : pto::comm::TPUT_ASYNC(request.dst, request.src, session);
  return event.Wait(session);
}
