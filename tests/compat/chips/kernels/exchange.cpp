// Every rank writes its number into the window of the next one and signals it; out is the received number.
// How: 0 with signals, 1 without any signal, 2 with counters that end a task, 3 as 0 with a copy by an
// engine. Slots: out, window (a number, then a signal), the context, how.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "backend/sdma/sdma_completion_kernel.h"
#include "intrinsic.h"
#include "platform_comm/comm_context.h"
#include "pto/comm/comm_types.hpp"
#include "pto/comm/pto_comm_inst.hpp"
#include "pto_async_kernel_api.h"
#include "tensor.h"

extern "C" void kernel_entry(int64_t* args) {
  ChipTensor *out = reinterpret_cast<ChipTensor*>(args[0]), *window = reinterpret_cast<ChipTensor*>(args[1]);
  const CommContext* context = reinterpret_cast<CommContext*>(args[2]);
  const uint32_t me = context->rankId, next = (me + 1) % context->rankNum;
  float* mine = reinterpret_cast<float*>(window->buffer.addr) + window->start_offset;
  const uint64_t place = reinterpret_cast<uint64_t>(mine) - context->windowsIn[me];
  float* theirs = reinterpret_cast<float*>(context->windowsIn[next] + place);
  float* result = reinterpret_cast<float*>(out->buffer.addr) + out->start_offset;
  if (args[3] == 3) {
    using One = pto::GlobalTensor<float, pto::Shape<1, 1, 1, 1, 1>, pto::Stride<1, 1, 1, 1, 1>>;
    pto::Tile<pto::TileType::Vec, uint8_t, 1, SDMA_SCRATCH_ALIGNMENT> scratch;
    TASSIGN(scratch, 0);
    result[0] = 10.0f + static_cast<float>(me);
    AsyncCtx asks = get_async_ctx(args);
    if (get_dma_workspace(args, DMA_WORKSPACE_URMA) != nullptr ||
        !send_request_entry(
            asks, SdmaTput(One(theirs), One(result), scratch, get_dma_workspace(args, DMA_WORKSPACE_SDMA))))
      return;
  } else {
    theirs[0] = 10.0f + static_cast<float>(me);
  }
  pipe_barrier(PIPE_ALL);
  pto::comm::Signal said(reinterpret_cast<int32_t*>(theirs + 1));
  if (args[3] == 0 || args[3] == 3) pto::comm::TNOTIFY(said, 1, pto::comm::NotifyOp::AtomicAdd);
  pto::comm::Signal heard(reinterpret_cast<int32_t*>(mine + 1));
  if (args[3] == 2) {
    send_notification(theirs + 1, 1, pto::comm::NotifyOp::Set);
    AsyncCtx ends = get_async_ctx(args);
    save_expected_notification_counter(ends, mine + 1, 1);
  } else {
    pto::comm::TWAIT(heard, 1, pto::comm::WaitCmp::GE);
  }
  result[0] = mine[0];
}
