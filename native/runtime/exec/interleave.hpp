// Deterministic mode: orchestrator, schedulers and cores run on one thread, in an order that a seed decides.
// A switch can happen at every `Pause::point` and at every wait. So a failing interleaving can be found by
// trying seeds, and repeated with the same seed. From time to time one actor is left out for a while, like a
// thread that loses its processor in the middle of an operation.
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

  /// Let other actors run: now if `always`, otherwise if the seed decides so. Called by an actor.
  void yield(bool always);

 private:
  uint64_t random();
  int choose(std::vector<int>& able);
  int below(int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); }

  struct Actor {
    Fiber fiber;
    std::function<void()> body;
    Guarded* guarded = nullptr;  // value of the thread-local `guarded` while the actor runs
    bool done = false;
    bool in_round = false;
  };
  Exec& exec_;
  uint64_t state_;
  std::vector<std::unique_ptr<Actor>> actors_;  // the orchestrator, then the schedulers
  Actor* running_ = nullptr;
  int left_out_ = 0;         // the actor that is left out; -1 for the cores
  uint64_t left_turns_ = 0;  // remaining steps of `left_out_`
};

}  // namespace pto2
