// Process groups of one machine: shared memory, the rendezvous of the members, and detection of deadlocks.
//
// A group is a file without a name (memfd): its first member makes it, and the others open it through that
// process. No file is left, even after kill -9. Processes of other users cannot open it, and its size is
// sealed. A program under test may overwrite the memory: the number of ranks and the size of the windows are
// read once, and checked.
//
// Deadlock: a process counts how often it began to wait or went on (`turns`), and how often it tested its
// condition (`polls`). A waiting process notes the turns and polls of all others. If all wait or have ended,
// no count of turns has changed, and each has polled twice, then no process has acted since that moment and
// all have tested their condition after it: no process can change the state. Turns are read before polls: a
// process that was at work at the first reading has other turns at the next.
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
  char what[216];                       // the condition, as text; written before the state
  std::atomic<uint64_t> sent, applied;  // messages to and from other nodes (nodes.hpp)
};

/// A rendezvous of a number of members.
struct Meeting {
  std::atomic<uint32_t> here, round;
};

/// The header before the windows. The launcher (src/pto/host/launch.py) reads the members.
struct Board {
  uint32_t magic, ranks;
  uint64_t window;             // bytes of each
  uint64_t token;              // a random number that distinguishes groups; 0 for those of a launcher
  std::atomic<uint32_t> over;  // a member has found that all are stuck
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

/// Wait in all groups of this process until a condition holds. End the process if the condition can never
/// hold.
void wait_until(const std::function<bool()>& holds, const char* what);

/// This process ends with the one that has started it.
[[gnu::visibility("default")]] void end_with_launcher();

/// Count a poll of a condition that did not hold; `moves` grows if the process has acted since. True if all are
/// stuck.
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
/// End the membership: the process has done its part in that group.
[[gnu::visibility("default")]] void pto_host_leave(void* group);
}
