// The id of a task.
#pragma once

#include <stdint.h>

/// A task id, which stays valid after the task has ended: an edge from an ended task causes no wait.
struct PTO2TaskId {
  uint64_t raw;

  static constexpr PTO2TaskId make(uint8_t ring, uint32_t local) {
    return PTO2TaskId{(static_cast<uint64_t>(ring) << 32) | local};
  }
  static constexpr PTO2TaskId invalid() { return PTO2TaskId{UINT64_MAX}; }
  constexpr uint8_t ring() const { return static_cast<uint8_t>(raw >> 32); }
  constexpr uint32_t local() const { return static_cast<uint32_t>(raw); }
  constexpr bool is_valid() const { return raw != UINT64_MAX; }
  constexpr bool is_invalid() const { return raw == UINT64_MAX; }
  constexpr bool operator==(const PTO2TaskId& other) const { return raw == other.raw; }
  constexpr bool operator!=(const PTO2TaskId& other) const { return raw != other.raw; }
};
