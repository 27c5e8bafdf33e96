#include "group.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "nodes.hpp"
#include "trace.hpp"

namespace pto::host {
namespace {

struct Seen {
  uint32_t turns = 0;
  uint64_t polls = 0;
};

struct Joined {
  Group* group;
  bool known = false;  // `seen` is valid
  Seen seen[kMostRanks];
};

std::mutex lock;
std::vector<Joined> joined;
bool waits = false;
uint64_t moved = 0, looks = 0, since = 0;  // since: `looks` at the start of the wait
constexpr uint64_t kPatient = 1 << 16;     // polls, some 20 ms, before the thread sleeps regularly
constexpr uint64_t kCrowded = 64;          // the same if there are more ranks than processors
constexpr int64_t kNap = 50'000;           // nanoseconds; up to kNaps times that after a wait of some seconds
constexpr uint64_t kNaps = 20;
constexpr int kStuck = 3;      // exit status of a process that is stuck forever
constexpr ssize_t kHead = 24;  // size of magic, ranks, window and token of a board
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr uint64_t kMostBytes = uint64_t{1} << 46;  // largest window: sums and products cannot overflow

/// Mark a member as ended if its process is gone. The process number is in memory that a program may
/// overwrite, so no signal is ever sent to it: signal 0 only tests whether the process exists.
void check_alive(Member& member) {
  const int32_t process = member.process.load();
  if (process > 0 && kill(process, 0) != 0 && errno == ESRCH && member.state.load() != State::ended) {
    member.turns.fetch_add(1);
    member.state.store(State::ended);
  }
}

/// Return true if no member of a group can proceed. The calling process waits.
bool is_stuck(Joined& one, bool alive) {
  Board& board = one.group->board();
  const uint32_t own = one.group->rank();
  bool waited = one.known, same = one.known;
  const uint32_t ranks = one.group->ranks();
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r == own) continue;
    Member& member = board.members[r];
    if (alive) check_alive(member);
    const State state = member.state.load();
    if (state != State::waiting && state != State::ended) return one.known = false;
    waited = waited && (state == State::ended || member.polls.load() >= one.seen[r].polls + 2);
    // Read last: the member has not proceeded since the first reading.
    same = same && member.turns.load() == one.seen[r].turns;
  }
  if (same) return waited;
  for (uint32_t r = 0; r < ranks; ++r)
    one.seen[r] = {board.members[r].turns.load(), board.members[r].polls.load()};
  one.known = true;
  return false;
}

/// Return the number of processors that this process may use.
uint32_t processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  return known ? static_cast<uint32_t>(CPU_COUNT(&usable)) : kMostRanks;
}

/// Return the nanoseconds to sleep after this poll; 0 for none.
int64_t nap_now() {
  static const uint32_t usable = processors();
  bool crowded = false;
  for (const Joined& one : joined) crowded = crowded || one.group->ranks() > usable;
  const uint64_t waited = looks - since, patient = crowded ? kCrowded : kPatient;
  if (waited > patient && looks % 16 == 0)
    return kNap * static_cast<int64_t>(std::min(kNaps, 1 + (waited - patient) / 4096));
  return looks % 4096 == 0 ? kNap : 0;
}

size_t size_of(const Board& head) { return kWindows + head.ranks * head.window; }

/// Read the header of a file; return false if the file is not a group, belongs to another user, or can be
/// resized.
bool read_head(int file, Board& head) {
  struct stat found{};
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && fstat(file, &found) == 0 && found.st_uid == geteuid() &&
         pread(file, &head, kHead, 0) == kHead && head.magic == kMagic && head.ranks >= 1 &&
         head.ranks <= kMostRanks && head.window <= kMostBytes &&
         static_cast<uint64_t>(found.st_size) >= size_of(head);
}

}  // namespace

int Group::make(uint32_t ranks, uint64_t window, uint64_t token) {
  if (window > kMostBytes) return -1;
  const int file = memfd_create("pto-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  Board head{};
  head.magic = kMagic, head.ranks = ranks, head.window = (window + 4095) / 4096 * 4096, head.token = token;
  if (fchmod(file, 0600) == 0 && ftruncate(file, static_cast<off_t>(size_of(head))) == 0 &&
      pwrite(file, &head, kHead, 0) == kHead && fcntl(file, F_ADD_SEALS, kSeals) == 0)
    return file;
  close(file);
  return -1;
}

Group* Group::open(int process, int file, uint64_t token) {
  int opened = file;
  const bool inherited = process == 0 || process == getpid();
  if (!inherited) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    opened = ::open(path, O_RDWR | O_CLOEXEC);
  }
  Board head{};
  void* at = MAP_FAILED;
  if (opened >= 0 && read_head(opened, head) && head.token == token)
    at = mmap(nullptr, size_of(head), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, opened, 0);
  if (at == MAP_FAILED) {
    if (!inherited && opened >= 0) close(opened);
    return nullptr;
  }
  fcntl(opened, F_SETFD, FD_CLOEXEC);  // child processes of this process are not ranks
  return new Group(static_cast<Board*>(at), opened, !inherited, head, size_of(head));
}

bool Group::join(uint32_t rank, uint32_t ranks) {
  if (rank >= ranks || ranks > ranks_) return false;
  rank_ = rank, ranks_ = ranks, owned_ = true;
  Member& mine = board_->members[rank];
  mine.process.store(getpid());
  mine.turns.fetch_add(1);
  mine.state.store(State::running);
  const std::lock_guard<std::mutex> held(lock);
  static const int once = std::atexit([] { ended(); });
  (void)once;
  joined.push_back({this, false, {}});
  return true;
}

void end_with_launcher() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

void Group::leave() {
  const std::lock_guard<std::mutex> held(lock);
  if (std::erase_if(joined, [&](const Joined& one) { return one.group == this; }) > 0) {
    board_->members[rank_].turns.fetch_add(1);
    board_->members[rank_].state.store(State::ended);
  }
  if (joined.empty()) waits = false;
  munmap(board_, size_);
  if (owned_) close(file_);
  delete this;
}

void Group::meet() {
  trace(Message::barrier, {ranks_}, nullptr, 0);
  Meeting& at = board_->meeting;
  const uint32_t round = at.round.load();
  if (at.here.fetch_add(1) + 1 == ranks_) {
    at.here.store(0);
    at.round.fetch_add(1);
    return;
  }
  wait_until([&] { return at.round.load() != round; }, "the others at a barrier of the host");
}

void Group::tell(uint32_t from, void* bytes, size_t count) {
  auto* at = static_cast<char*>(bytes);
  for (size_t part; count > 0; at += part, count -= part) {
    part = count < sizeof board_->letter ? count : sizeof board_->letter;
    if (rank_ == from) std::memcpy(board_->letter, at, part);
    meet();
    if (rank_ != from) std::memcpy(at, board_->letter, part);
    meet();
  }
}

bool look(uint64_t moves, const char* what) {
  help_nodes();
  const std::lock_guard<std::mutex> held(lock);
  for (Joined& one : joined) {
    Member& mine = one.group->board().members[one.group->rank()];
    if (!waits) {
      std::snprintf(mine.what, sizeof mine.what, "%s", what);
      mine.state.store(State::waiting);
    }
    if (!waits || moves != moved) {
      since = looks;
      mine.turns.fetch_add(1);
      one.known = false;  // earlier observations are void once this process has proceeded
    }
    mine.polls.fetch_add(1);
  }
  // The fence orders this count before the next test of the condition.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  waits = true;
  moved = moves;
  ++looks;
  if (looks % 16 != 0) return false;
  for (Joined& one : joined) {
    Board& board = one.group->board();
    if (board.over.load() != 0) return true;
    if (is_stuck(one, looks % 4096 == 0)) {
      board.over.store(1);
      return true;
    }
  }
  // Polls first only yield the processor, then the thread also sleeps for short times, because there are
  // often more ranks than processors. After a long wait, the thread sleeps most of the time.
  if (const int64_t nap = nap_now(); nap > 0) {
    const timespec time{0, nap};
    nanosleep(&time, nullptr);
  }
  return false;
}

void go_on() {
  const std::lock_guard<std::mutex> held(lock);
  if (!waits) return;
  for (Joined& one : joined) {
    Member& mine = one.group->board().members[one.group->rank()];
    mine.turns.fetch_add(1);
    mine.state.store(State::running);
    one.known = false;
  }
  waits = false;
}

void ended() {
  const std::lock_guard<std::mutex> held(lock);
  for (Joined& one : joined) {
    Member& mine = one.group->board().members[one.group->rank()];
    mine.turns.fetch_add(1);
    mine.state.store(State::ended);
  }
}

void wait_until(const std::function<bool()>& holds, const char* what) {
  for (uint64_t turn = 0; !holds(); ++turn) {
    if (look(0, what)) {
      if (holds()) break;
      const uint32_t rank = joined.empty() ? 0 : joined[0].group->rank();
      std::fprintf(stderr, "[PTO-E2104] rank %u is stuck: waits for %s, and no rank can go on\n", rank, what);
      std::fflush(nullptr);
      _exit(kStuck);
    }
    sched_yield();
  }
  go_on();
}

}  // namespace pto::host

void* pto_host_join(int32_t file, int32_t rank, int32_t launched) {
  pto::host::Group* group = pto::host::Group::open(0, file);
  if (group == nullptr) return nullptr;
  if (launched != 0) pto::host::end_with_launcher();
  if (group->join(static_cast<uint32_t>(rank))) return group;
  group->leave();
  return nullptr;
}

void pto_host_leave(void* group) { static_cast<pto::host::Group*>(group)->leave(); }
