// Process groups of one machine: shared memory, barriers of the members, and deadlock detection.
//
// A group is a file without a name (memfd). Its first member creates the file, and the others open it through
// the first process, so no file remains, even after kill -9. Processes of other users cannot open the file,
// and its size is sealed. A program under test may overwrite the memory: the number of ranks and the size of
// the windows are therefore checked and read only once.
//
// Deadlock: each process counts how often it began to wait or proceeded (`turns`), and how often it tested
// its condition (`polls`). A waiting process records turns and polls of all others, and reads them again
// later. Suppose that all wait or have ended, all turns are unchanged, and each waiting process has polled at
// least twice more. Then all have tested their conditions after the last action of any process, so no process
// can proceed. The first reading takes turns before polls, and the second reading takes turns last: a process
// that proceeds meanwhile changes its turns.
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
  char what[216];                       // the condition as text; written before the state
  std::atomic<uint64_t> sent, applied;  // messages to and from other nodes (nodes.hpp)
};

/// A barrier for a number of members.
struct Meeting {
  std::atomic<uint32_t> here, round;
};

/// The header before the windows. The launcher (src/pto/host/launch.py) reads the members.
struct Board {
  uint32_t magic, ranks;
  uint64_t window;             // bytes per window
  uint64_t token;              // a random number that identifies the group; 0 for groups of a launcher
  std::atomic<uint32_t> over;  // not 0: a member has found that all are stuck
  uint32_t reserved[9];
  Member members[kMostRanks];
  Meeting meeting;
  char letter[64 << 10];  // buffer for broadcasts
};
inline constexpr uint32_t kMagic = 0x50544f52;
inline constexpr size_t kWindows = 1 << 20;  // offset of the first window
static_assert(sizeof(Board) <= kWindows);
static_assert(sizeof(Member) == 256 && offsetof(Board, members) == 64);

class [[gnu::visibility("default")]] Group {
 public:
  /// Create the file of a new group; return -1 if the system has no memory for it.
  static int make(uint32_t ranks, uint64_t window, uint64_t token = 0);
  /// Map the group file of a process (0: the file is inherited). Return null if it is not a group file of
  /// this user, or if its token differs.
  static Group* open(int process, int file, uint64_t token = 0);
  /// Leave the group: unmap its windows and delete this object.
  void leave();

  /// Join as one of the first `ranks` ranks; return false if there is no such rank.
  bool join(uint32_t rank, uint32_t ranks);
  bool join(uint32_t rank) { return join(rank, ranks_); }
  void meet();
  /// Broadcast bytes of rank `from` to all ranks.
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

/// Kill this process when the process that started it ends.
[[gnu::visibility("default")]] void end_with_launcher();

/// Count a poll of a condition that was false; `moves` grows if the process has proceeded since. Return true
/// if all ranks are stuck.
bool look(uint64_t moves, const char* what);
/// Record that this process proceeds.
void go_on();
/// Record that this process ends.
[[gnu::visibility("default")]] void ended();

}  // namespace pto::host

extern "C" {
/// Join the group of a file as a rank; the group then owns the file. Return null if the file is no group or
/// has no such rank. `launched`: the process ends with the process that started it.
[[gnu::visibility("default")]] void* pto_host_join(int32_t file, int32_t rank, int32_t launched);
/// Leave the group: this process has completed its work there.
[[gnu::visibility("default")]] void pto_host_leave(void* group);
}
