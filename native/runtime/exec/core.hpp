// A virtual core: registers, the payload of its task, and the machine state for kernels that need one.
//
// Ownership: a scheduler that holds its baton writes `payload` and then DATA_MAIN_BASE (release). The thread
// that claims the core reads both, writes ACK, runs the task and writes FIN (release). The thread owns the
// core from dispatch to FIN; the scheduler owns it at all other times.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "fiber.hpp"
#include "platform.hpp"
#include "records.hpp"

namespace pto2 {

struct MachineState;  // machine.cpp: a pto::detail::Core and a fiber

struct alignas(64) VirtualCore {
  std::atomic<uint32_t> data_main_base{0};
  std::atomic<uint32_t> cond{kIdleValue};
  CoreType type = CoreType::Aic;
  int index = 0;   // among the cores of its type
  int worker = 0;  // among all cores
  int cluster = 0;
  int scheduler = 0;  // the scheduler that owns this core
  DispatchPayload payload;
  TaskRecord record{};             // of its current task, if the run records
  std::atomic<bool> waits{false};  // true: it waits in the middle of a kernel
  std::unique_ptr<MachineState> machine;

  VirtualCore();
  ~VirtualCore();
};

}  // namespace pto2
