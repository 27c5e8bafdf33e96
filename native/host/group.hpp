// Processes of one machine that form a group: memory that all of them map, where they meet, and who waits.
//
// A group is a file without a name (memfd): its first member makes it, and the others open it by way of the first
// one's process. Nothing is left behind, whoever is killed and however.
//
// Whether a group is stuck: a process says when it begins to wait and when it goes on (`turns`), and counts how often it
// has looked for what it waits for (`polls`). One that waits notes the turns and looks of all others. Where all wait or
// have ended, none has taken a turn since, and each has looked twice, all of them have done nothing since that moment
// and have looked after it: nobody is left who could change anything. Turns are counted before looks: who was at work
// when he was noted has another number of turns when he looks again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pto::host {

inline constexpr uint32_t kMostRanks = 64;

enum class State : uint32_t { absent, running, waiting, ended };

struct alignas(64) Member {
  std::atomic<State> state;
  std::atomic<uint32_t> turns;
  std::atomic<uint64_t> polls;
  std::atomic<int32_t> process;
  int32_t reserved;
  char what[216];                       // what it waits for, in words; written before the state
  std::atomic<uint64_t> sent, applied;  // messages to and from other nodes (nodes.hpp)
};

/// Where a number of members meet.
struct Meeting {
  std::atomic<uint32_t> here, round;
};

/// What stands before the windows. The launcher (src/pto/host/launch.py) reads the members.
struct Board {
  uint32_t magic, ranks;
  uint64_t window;             // bytes of each
  std::atomic<uint32_t> over;  // somebody has found that all are stuck
  uint32_t reserved[11];
  Member members[kMostRanks];
  Meeting meeting;
  char letter[64 << 10];  // from one to all
};
inline constexpr uint32_t kMagic = 0x50544f52;
inline constexpr size_t kWindows = 1 << 20;  // where they begin
static_assert(sizeof(Board) <= kWindows);
static_assert(sizeof(Member) == 256 && offsetof(Board, members) == 64);

class [[gnu::visibility("default")]] Group {
 public:
  /// The file of a new one; -1 where the system has no memory for it.
  static int make(uint32_t ranks, uint64_t window);
  /// Map that of a process (0: it was inherited); null where there is none.
  static Group* open(int process, int file);
  /// Leave it: its windows are no more, and neither is this.
  void leave();

  void join(uint32_t rank);
  /// As `join`, for a process that its launcher has started: it ends with it.
  void join_launched(uint32_t rank);
  void meet();
  /// Bytes of one member, for all of them.
  void tell(uint32_t from, void* bytes, size_t count);

  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return board_->ranks; }
  uint64_t window() const { return board_->window; }
  char* window_of(uint32_t rank) const {
    return reinterpret_cast<char*>(board_) + kWindows + rank * board_->window;
  }
  Board& board() const { return *board_; }

 private:
  Group(Board* board, int file, size_t size) : board_(board), file_(file), size_(size) {}
  Board* board_;
  int file_;
  size_t size_;
  uint32_t rank_ = 0;
};

/// Wait in all groups of this process until something holds. Ends the process where nobody can make it hold.
void wait_until(const std::function<bool()>& holds, const char* what);

/// One look at something that did not hold; `moves` grows when the process has done something else since. Whether all
/// are stuck.
bool look(uint64_t moves, const char* what);
/// The process goes on.
void go_on();
/// The process ends.
[[gnu::visibility("default")]] void ended();

}  // namespace pto::host

extern "C" {
/// This process is a rank of the group of a file, which belongs to the group from then on; null where it is none.
/// `launched`: it ends with the process that has started it.
[[gnu::visibility("default")]] void* pto_host_join(int32_t file, int32_t rank, int32_t launched);
/// It has done what it had to do in that group.
[[gnu::visibility("default")]] void pto_host_leave(void* group);
}
