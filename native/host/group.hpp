// Processes of one machine that form a group: memory that all of them map, where they meet, and who waits.
//
// A group is a file without a name (memfd): its first member makes it, and the others open it by way of the first
// one's process. Nothing is left behind, also after kill -9. Processes of other users cannot open it, and its size is
// sealed. A program under test may overwrite the memory: the number of ranks and the size of the windows are read from
// it once, and checked.
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
  uint64_t token;              // a random number that tells groups apart; 0 for those that a launcher makes
  std::atomic<uint32_t> over;  // somebody has found that all are stuck
  uint32_t reserved[9];
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
  static int make(uint32_t ranks, uint64_t window, uint64_t token = 0);
  /// Map that of a process (0: it was inherited); null if it is not the file of a group of this user, or if its token
  /// differs.
  static Group* open(int process, int file, uint64_t token = 0);
  /// Leave it: its windows are no more, and neither is this.
  void leave();

  /// Join as a rank of the first `ranks`; false where there are no such ranks.
  bool join(uint32_t rank, uint32_t ranks);
  bool join(uint32_t rank) { return join(rank, ranks_); }
  void meet();
  /// Bytes of one member, for all of them.
  void tell(uint32_t from, void* bytes, size_t count);

  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }
  uint64_t window() const { return window_; }
  char* window_of(uint32_t rank) const { return reinterpret_cast<char*>(board_) + kWindows + rank * window_; }
  Board& board() const { return *board_; }

 private:
  Group(Board* board, int file, bool owned, const Board& head, size_t size)
      : board_(board), file_(file), owned_(owned), size_(size), window_(head.window), ranks_(head.ranks) {}
  Board* board_;
  int file_;
  bool owned_;  // the file is closed with the group
  size_t size_;
  uint64_t window_;
  uint32_t ranks_, rank_ = 0;
};

/// Wait in all groups of this process until something holds. Ends the process where nobody can make it hold.
void wait_until(const std::function<bool()>& holds, const char* what);

/// This process ends with the one that has started it.
[[gnu::visibility("default")]] void end_with_launcher();

/// One look at something that did not hold; `moves` grows when the process has done something else since. Whether all
/// are stuck.
bool look(uint64_t moves, const char* what);
/// The process goes on.
void go_on();
/// The process ends.
[[gnu::visibility("default")]] void ended();

}  // namespace pto::host

extern "C" {
/// This process is a rank of the group of a file, which belongs to the group from then on; null where the file is no
/// group, or has no such rank. `launched`: the process ends with the one that has started it.
[[gnu::visibility("default")]] void* pto_host_join(int32_t file, int32_t rank, int32_t launched);
/// It has done what it had to do in that group.
[[gnu::visibility("default")]] void pto_host_leave(void* group);
}
