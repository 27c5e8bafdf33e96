// Deterministic mode: orchestrator, schedulers and cores take turns on one thread, in an order that a seed
// decides. They part at every `Pause::point` and wherever one waits, so that an interleaving that breaks
// something can be found by trying seeds, and comes back with the same seed. Now and then one of them is left
// out for a while, like a thread that loses its processor in the middle of an operation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fault.hpp"
#include "fiber.hpp"

namespace pto2 {

class Exec;

class Interleaver {
 public:
  Interleaver(Exec& exec, uint64_t seed);
  void run(const std::function<void()>& orchestrate);

  /// Called by an actor: let others go on; `always`, or as the seed decides.
  void yield(bool always);

 private:
  uint64_t random();
  int choose(std::vector<int>& able);
  int below(int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); }

  struct Actor {
    Fiber fiber;
    std::function<void()> body;
    Guarded* guarded = nullptr;  // what `guarded` is while it runs
    bool done = false;
    bool in_round = false;
  };
  Exec& exec_;
  uint64_t state_;
  std::vector<std::unique_ptr<Actor>> actors_;  // the orchestrator, then the schedulers
  Actor* running_ = nullptr;
  int left_out_ = 0;         // an actor, or -1 for the cores
  uint64_t left_turns_ = 0;  // for how long still
};

}  // namespace pto2
