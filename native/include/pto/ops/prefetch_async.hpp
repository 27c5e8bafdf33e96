// TPREFETCH_ASYNC: request a prefetch of data. Here it is a no-op, and the event that it returns is complete.
#pragma once

#include "pto/ops/comm.hpp"

namespace pto {

struct PrefetchAsyncContext {
  using ScratchTile = Tile<TileType::Vec, uint8_t, 1, 256>;  // scratch memory of sessions

  ScratchTile scratchTile;
  uint8_t* workspace = nullptr;
  comm::AsyncSession session{};
  comm::AsyncSession* externalSession = nullptr;

  PrefetchAsyncContext() = default;
  explicit PrefetchAsyncContext(uint8_t* at, comm::AsyncSession* own = nullptr)
      : workspace(at), externalSession(own) {}
  comm::AsyncSession& GetSession() { return externalSession != nullptr ? *externalSession : session; }
};

/// The context is a PrefetchAsyncContext or a session.
template <class Global, class Context, class... Events>
  requires(is_global_data_v<Global> && all_events_v<Events...>)
PTO_INST comm::AsyncEvent TPREFETCH_ASYNC(Global&, Context&, Events&... events) {
  TSYNC(events...);
  return {0, comm::DmaEngine::SDMA};
}

}  // namespace pto
