// A virtual core: registers, the payload of its task, and for kernels in C++ the state of the PTO machine.
//
// Ownership: a scheduler that holds its baton writes `payload` and then DATA_MAIN_BASE (release); the thread
// that claims the core reads them, writes ACK, runs the task, writes FIN (release). Between dispatch and FIN
// the core belongs to the thread, before and after to the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "fiber.hpp"
#include "platform.hpp"
#include "records.hpp"

namespace pto2 {

struct MachineState;  // machine.cpp: pto::detail::Core and a fiber

struct alignas(64) VirtualCore {
  std::atomic<uint32_t> data_main_base{0};
  std::atomic<uint32_t> cond{kIdleValue};
  CoreType type = CoreType::Aic;
  int index = 0;   // among the cores of its type
  int worker = 0;  // among all cores
  int cluster = 0;
  int scheduler = 0;  // whose core this is
  DispatchPayload payload;
  TaskRecord record{};             // of the task it has, if the run records
  std::atomic<bool> waits{false};  // in the middle of a kernel
  std::unique_ptr<MachineState> machine;

  VirtualCore();
  ~VirtualCore();
};

}  // namespace pto2
