#include "interleave.hpp"

#include <utility>

#include "exec.hpp"

namespace pto2 {

void yield_to_others(Interleaver& interleaver, bool always) { interleaver.yield(always); }

Interleaver::Interleaver(Exec& exec, uint64_t seed) : exec_(exec), state_(seed) {}

uint64_t Interleaver::random() {  // splitmix64
  uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Interleaver::yield(bool always) {
  if (running_ == nullptr) return;  // a core, whose task runs without a switch
  if (always || (random() & 3) == 0) running_->fiber.suspend();
}

int Interleaver::choose(std::vector<int>& able) {
  if (left_turns_ > 0) {
    --left_turns_;
    if (able.size() > 1) std::erase(able, left_out_);
  } else if ((random() & 127) == 0) {
    left_out_ = below(static_cast<int>(actors_.size()) + 1) - 1;
    left_turns_ = random() % (uint64_t{1} << below(12));
  }
  return able[static_cast<size_t>(below(static_cast<int>(able.size())))];
}

void Interleaver::run(const std::function<void()>& orchestrate) {
  actors_.push_back(std::make_unique<Actor>());
  actors_[0]->body = orchestrate;
  for (const auto& s : exec_.schedulers_) {
    actors_.push_back(std::make_unique<Actor>());
    Actor& actor = *actors_.back();
    Scheduler& scheduler = *s;
    actor.body = [this, &actor, &scheduler] {
      for (;;) {
        actor.in_round = true;
        try {
          exec_.round(scheduler, 0);
        } catch (const std::exception& error) {
          exec_.fail(ErrorCode::Internal, error.what());
        } catch (...) {
          exec_.fail(ErrorCode::Internal, "an exception that is not a std::exception");
        }
        actor.in_round = false;
        actor.fiber.suspend();
      }
    };
  }
  for (const auto& actor : actors_) {
    actor->fiber.start([](void* body) { (*static_cast<std::function<void()>*>(body))(); }, &actor->body);
  }
  std::vector<int> able;
  // True if, since the last progress, the waiting cores or the blocked orchestrator were tried in vain.
  bool cores_tried = false, orchestrator_tried = false;
  uint64_t turns = 0;
  while (!actors_[0]->done || !exec_.over()) {
    if (++turns % 1024 == 0) exec_.ask();
    able.clear();
    if (!actors_[0]->done) able.push_back(0);
    bool waiting = false;
    if (!exec_.failure_.failed()) {
      for (size_t k = 0; k < exec_.schedulers_.size(); ++k) {
        if (actors_[k + 1]->in_round || exec_.wants(*exec_.schedulers_[k]))
          able.push_back(static_cast<int>(k) + 1);
        for (int t = 0; t < kCoreTypes; ++t) {
          if (exec_.schedulers_[k]->runnable[t].load() != 0) waiting = true;
        }
      }
      if (waiting || exec_.waiting_count_.load() > 0) able.push_back(-1);
    }
    if (able.empty()) {
      exec_.fail(ErrorCode::Internal, "no thread can go on and the run is not over");
      break;
    }
    const bool blocked = exec_.orchestrator_blocked_.load();
    if (cores_tried && (actors_[0]->done || orchestrator_tried) && able.back() < 0 &&
        able.size() == (actors_[0]->done ? 1 : 2)) {
      exec_.fail_stuck();
      continue;
    }
    const int chosen = choose(able);
    if (chosen < 0) {
      // Run a core with a task, searching from a scheduler that the seed picks, or resume the waiting cores.
      VirtualCore* core = exec_.claim(below(static_cast<int>(exec_.schedulers_.size())));
      if (core != nullptr) exec_.execute(*core, 0);
      cores_tried = core == nullptr && !exec_.resume_waiting(0);
      if (!cores_tried) orchestrator_tried = false;
      continue;
    }
    running_ = actors_[static_cast<size_t>(chosen)].get();
    Guarded* const outside = std::exchange(guarded, running_->guarded);
    running_->done = running_->fiber.resume();
    running_->guarded = std::exchange(guarded, outside);
    running_ = nullptr;
    const bool in_vain = chosen == 0 && blocked && exec_.orchestrator_blocked_.load();
    orchestrator_tried = in_vain;
    if (!in_vain) cores_tried = false;
  }
}

}  // namespace pto2
