#include "nodes.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "group.hpp"
#include "pto/ops/comm.hpp"

namespace pto::host {
namespace {

using detail::DType;
using detail::Use;

enum class Kind : uint32_t {
  put,      // bytes
  combine,  // combine elements by the operation `use`
  get,      // request bytes
  reply,    // the requested bytes
  meet,     // the sender has ended the launch
  probe,    // request a mark
  mark,     // the requested mark
  over,     // all ranks are stuck
  lost,     // a line to rank `at` broke, for the reason `use`
};

/// The reason of a broken line: the other process has left, or has sent an invalid message.
enum class Reason : uint32_t { left, message };

struct Head {
  Kind kind;
  uint32_t use;
  int32_t world;
  uint32_t wave;
  uint64_t at, bytes;  // offset from the first window; size
};

/// The state of a rank, as sent to rank 0.
struct Mark {
  uint64_t applied = 0, polls = 0, sent = 0;
  State state = State::absent;
  uint32_t turns = 0;
};

constexpr size_t kRoom = 32 << 10;               // bytes of one receive call
constexpr size_t kWhole = 16 << 10;              // the largest message that is applied as a whole
constexpr size_t kPiece = 1 << 20;               // the largest request
constexpr size_t kAsked = 8 << 20;               // the most bytes requested and not yet received
constexpr size_t kQueued = kAsked + 2 * kPiece;  // the most bytes queued for sending: more than kAsked
constexpr size_t kCopied = 4096;                 // shorter pieces are collected before they are sent
constexpr int64_t kTurn = 100'000;               // nanoseconds that the thread leaves receiving to a core
constexpr int64_t kWave = 20'000'000;            // nanoseconds between waves

int64_t now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

// --- elements -----------------------------------------------------------------------------------------------

template <class T>
T combined(Use kind, T old, T next) {
  using comm::detail::less;
  if (kind == Use::add) return comm::detail::sum(old, next);
  // The old value stays unless the new one is beyond it, so a NaN changes nothing.
  const bool beyond = kind == Use::max ? less(old, next) : less(next, old);
  return beyond ? next : old;
}

/// Return the neutral element of an operation. For sums of floats it is -0: +0 would turn a negative zero
/// into a positive one.
template <class T>
T neutral(Use kind) {
  if constexpr (std::is_integral_v<T>) {
    return kind == Use::add   ? T{0}
           : kind == Use::max ? std::numeric_limits<T>::lowest()
                              : std::numeric_limits<T>::max();
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return T(kind == Use::add ? -0.0F : kind == Use::max ? -kInfinity : kInfinity);
  }
}

struct Element {
  DType type;
  size_t size;
  void (*combine)(Use kind, char* at, const char* from, size_t bytes);
  void (*fill)(Use kind, char* at, size_t bytes);
};

template <class T>
constexpr Element element() {
  return {detail::dtype_of<T>, sizeof(T),
          [](Use kind, char* at, const char* from, size_t bytes) {
            for (size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
              T next;
              std::memcpy(static_cast<void*>(&next), from + i, sizeof next);
              detail::update(reinterpret_cast<T*>(at + i), [&](T old) { return combined(kind, old, next); });
            }
          },
          [](Use kind, char* at, size_t bytes) {
            const T empty = neutral<T>(kind);
            for (size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T))
              std::memcpy(at + i, static_cast<const void*>(&empty), sizeof empty);
          }};
}

constexpr Element kElements[] = {element<float>(),      element<double>(),   element<half>(),
                                 element<bfloat16_t>(), element<int8_t>(),   element<int16_t>(),
                                 element<int32_t>(),    element<int64_t>(),  element<uint8_t>(),
                                 element<uint16_t>(),   element<uint32_t>(), element<uint64_t>()};

/// Return the functions that combine elements for a use; null if the use or its element type cannot combine.
const Element* element_of(uint32_t use) {
  const Use kind = detail::kind_of(static_cast<Use>(use));
  if (use > 0xffff || (kind != Use::add && kind != Use::max && kind != Use::min)) return nullptr;
  for (const Element& one : kElements)
    if (one.type == detail::combined_type(static_cast<Use>(use))) return &one;
  return nullptr;
}

/// Store a word in one operation: a reader that waits for it sees the whole word and all data applied before.
void put_word(char* at, const char* from, size_t bytes) {
  const auto store = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    __atomic_store_n(reinterpret_cast<decltype(value)*>(at), value, __ATOMIC_RELEASE);
  };
  switch (bytes) {
    case 1: return store(uint8_t{});
    case 2: return store(uint16_t{});
    case 4: return store(uint32_t{});
    default: return store(uint64_t{});
  }
}
bool is_word(uint64_t at, uint64_t bytes) {
  return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && at % bytes == 0;
}

// --- lines --------------------------------------------------------------------------------------------------

/// The bytes of a window that a `get` requests. The reply has the same range.
struct Question {
  int32_t world;
  uint64_t at, bytes;
};

struct Line {
  int rank = 0, socket = -1;
  std::atomic<bool> broken{false};

  // Receiving, by the holder of `serving_`.
  std::vector<char> room = std::vector<char>(kRoom);
  size_t have = 0;       // bytes in `room`
  Head head{};           // of a message whose bytes are stored directly at their destination
  char* into = nullptr;  // that destination
  uint64_t left = 0;     // bytes still to be stored there
  uint32_t met = 0;      // launches that the other process has ended
  uint32_t wave = 0;     // the wave of `mark`
  Mark mark;

  // Sending.
  std::mutex lock;
  bool busy = false;  // a core is sending a message: other messages are queued
  std::vector<char> queue;
  size_t gone = 0;  // bytes of the queue that were sent
  std::deque<Question> asked;
};

struct World {
  char* base;
  uint64_t stride;
};

/// A range of bytes of a mirror.
struct Run {
  uint64_t first, last;
  uint32_t use;
};

class Nodes {
 public:
  Nodes(int rank, int ranks, const int32_t* sockets);
  bool start();
  void wake();

  void* map(int world, int file, uint64_t stride);
  void unmap(int world);
  const pto_far* begin(int world, Group* group);
  void end(bool well);
  bool met(int timeout_ms);
  bool refresh(int world, uint64_t bytes);
  int lost() const { return lost_.load(); }
  const char* problem();
  void close();

  void used(uint64_t first, uint64_t last, uint32_t use);
  const char* settled();
  bool put(uint64_t to, const void* from, uint64_t bytes);
  bool help();

 private:
  void serve();
  void receive(Line& line);
  bool parse(Line& line);
  bool apply(Line& line, const Head& head, const char* bytes);
  void arrived(Line& line, const Head& head);
  void lose(int rank, Reason why);
  void say_over();

  bool fits(const Line& line, const Head& head) const;
  char* own(const Head& head);
  char* mirror(Line& line, const Head& head);
  Mark own_mark();
  void next_wave();
  void judge();

  bool queue(Line& line, const Head& head, const void* bytes);
  void write(Line& line);
  bool write_through(Line& line, const void* first, size_t count, const void* second, size_t more);
  bool flush();
  bool get(uint64_t at, uint64_t bytes);
  bool wait_for_replies(size_t most);

  const int rank_, ranks_;
  std::vector<std::unique_ptr<Line>> lines_;
  Line* to_[kMostRanks] = {};
  int wakes_ = -1;  // wakes the thread when a message is queued
  std::atomic<int> lost_{-1};
  std::atomic<Reason> why_{Reason::left};  // written before `lost_`

  std::mutex serving_;              // held by the thread that receives
  std::atomic<int64_t> helped_{0};  // the time when a core last received
  std::map<int, World> worlds_;
  Group* group_ = nullptr;  // of the launch; protected by `serving_`

  // The hooks of the launch, used by its core only.
  pto_far far_{};
  int world_ = 0;
  World here_{};
  Member* member_ = nullptr;
  std::vector<Run> fresh_, written_;
  std::vector<char> batch_;
  std::atomic<uint32_t> launches_{0};
  std::atomic<size_t> asked_{0};  // requested bytes that have not arrived, with the headers of their replies
  char problem_[160] = "";

  // Waves of deadlock detection, on rank 0.
  uint32_t wave_ = 0, first_wave_ = 0;
  std::atomic<bool> launched_{false};
  int64_t asked_at_ = 0;
  std::vector<std::vector<Mark>> waves_;
};

std::atomic<Nodes*> active{nullptr};

Nodes::Nodes(int rank, int ranks, const int32_t* sockets) : rank_(rank), ranks_(ranks) {
  for (int r = 0; r < ranks; ++r) {
    if (sockets[r] < 0) continue;
    auto line = std::make_unique<Line>();
    line->rank = r, line->socket = sockets[r];
    const int on = 1;
    setsockopt(line->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    to_[r] = line.get();
    lines_.push_back(std::move(line));
  }
}

bool Nodes::start() {
  wakes_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakes_ < 0) return false;
  sigset_t all, before;  // signals go to the threads of the program
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool well = true;
  try {
    std::thread([this] { serve(); }).detach();
  } catch (const std::system_error&) {
    well = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return well;
}

void Nodes::wake() {
  const uint64_t one = 1;
  (void)!::write(wakes_, &one, sizeof one);
}

// --- receiving ----------------------------------------------------------------------------------------------

void Nodes::serve() {
  std::vector<pollfd> asked(lines_.size() + 1);
  for (;;) {
    for (size_t n = 0; n < lines_.size(); ++n) {
      Line& line = *lines_[n];
      const std::lock_guard<std::mutex> held(line.lock);
      const bool writes = !line.queue.empty() && !line.busy;
      asked[n] = {line.broken.load() ? -1 : line.socket,
                  static_cast<int16_t>(POLLIN | (writes ? POLLOUT : 0)), 0};
    }
    asked.back() = {wakes_, POLLIN, 0};
    // Leave receiving to a core that receives: two threads that alternate would wake each other all the time.
    if (now() - helped_.load(std::memory_order_relaxed) < kTurn) {
      const timespec nap{0, kTurn};
      nanosleep(&nap, nullptr);
    }
    poll(asked.data(), asked.size(),
         rank_ == 0 && launched_.load() ? static_cast<int>(kWave / 1'000'000) : -1);
    if (asked.back().revents != 0) {
      uint64_t times;
      (void)!read(wakes_, &times, sizeof times);
    }
    const std::lock_guard<std::mutex> held(serving_);
    for (size_t n = 0; n < lines_.size(); ++n) {
      if ((asked[n].revents & POLLOUT) != 0) write(*lines_[n]);
      if ((asked[n].revents & ~POLLOUT) != 0) receive(*lines_[n]);
    }
    if (rank_ == 0 && group_ != nullptr && now() - asked_at_ >= kWave) next_wave();
  }
}

bool Nodes::help() {
  const std::unique_lock<std::mutex> held(serving_, std::try_to_lock);
  if (!held.owns_lock()) return false;
  pollfd asked[kMostRanks];
  for (size_t n = 0; n < lines_.size(); ++n)
    asked[n] = {lines_[n]->broken.load() ? -1 : lines_[n]->socket, POLLIN, 0};
  if (poll(asked, lines_.size(), 0) <= 0) return false;
  for (size_t n = 0; n < lines_.size(); ++n)
    if (asked[n].revents != 0) receive(*lines_[n]);
  helped_.store(now(), std::memory_order_relaxed);
  return true;
}

void Nodes::receive(Line& line) {
  if (line.broken.load()) return;
  for (int turn = 0; turn < 32; ++turn) {
    const bool straight = line.left > 0;
    char* const to = straight ? line.into : line.room.data() + line.have;
    const size_t most = straight ? line.left : line.room.size() - line.have;
    const ssize_t count = recv(line.socket, to, most, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return lose(line.rank, Reason::left);
    if (straight) {
      line.into += count, line.left -= static_cast<uint64_t>(count);
      if (line.left == 0) arrived(line, line.head);
    } else {
      line.have += static_cast<size_t>(count);
      if (!parse(line)) return lose(line.rank, Reason::message);
    }
    if (static_cast<size_t>(count) < most && !straight) return;
  }
}

/// Apply the received messages; return false if one is invalid.
bool Nodes::parse(Line& line) {
  size_t at = 0;
  while (line.have - at >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, line.room.data() + at, sizeof head);
    if (!fits(line, head)) return false;
    const char* const bytes = line.room.data() + at + sizeof head;
    const size_t there = line.have - at - sizeof head;
    const bool straight =
        head.kind == Kind::reply || (head.kind == Kind::put && !is_word(head.at, head.bytes));
    if (straight) {
      char* const to = head.kind == Kind::put ? own(head) : mirror(line, head);
      if (to == nullptr) return false;
      const size_t some = std::min<size_t>(there, head.bytes);
      std::memcpy(to, bytes, some);
      at += sizeof head + some;
      if (some < head.bytes) {
        line.head = head, line.into = to + some, line.left = head.bytes - some;
        break;  // no bytes remain in `room`
      }
      arrived(line, head);
      continue;
    }
    const size_t size = head.kind == Kind::get ? 0 : head.bytes;
    if (there < size) break;
    if (!apply(line, head, bytes)) return false;
    at += sizeof head + size;
  }
  line.have -= at;
  std::memmove(line.room.data(), line.room.data() + at, line.have);
  return true;
}

/// Check whether the other process may send this kind and size now. `own` and `mirror` check the address.
bool Nodes::fits(const Line& line, const Head& head) const {
  switch (head.kind) {
    case Kind::put:
    case Kind::reply: return true;
    case Kind::combine: {
      const Element* const element = element_of(head.use);
      return element != nullptr && head.bytes <= kWhole && head.at % element->size == 0 &&
             head.bytes % element->size == 0;
    }
    case Kind::get: return head.bytes <= kPiece;
    case Kind::meet: return head.bytes == 0 && line.met <= launches_.load();
    case Kind::probe: return head.bytes == 0 && line.rank == 0;
    case Kind::mark:
      return head.bytes == sizeof line.mark && rank_ == 0 && head.wave == wave_ && line.wave != wave_;
    case Kind::over: return head.bytes == 0 && line.rank == 0;
    case Kind::lost:
      return head.bytes == 0 && head.at < static_cast<uint64_t>(ranks_) &&
             head.use <= static_cast<uint32_t>(Reason::message);
  }
  return false;
}

/// Apply a message that was received completely.
bool Nodes::apply(Line& line, const Head& head, const char* bytes) {
  switch (head.kind) {
    case Kind::put: {
      char* const at = own(head);
      if (at == nullptr) return false;
      put_word(at, bytes, head.bytes);
      break;
    }
    case Kind::combine: {
      char* const at = own(head);
      const Element* const element = element_of(head.use);
      if (at == nullptr) return false;
      __atomic_thread_fence(__ATOMIC_RELEASE);
      element->combine(detail::kind_of(static_cast<Use>(head.use)), at, bytes, head.bytes);
      break;
    }
    case Kind::get: {
      const char* const at = own(head);
      if (at == nullptr) return false;
      Head reply = head;
      reply.kind = Kind::reply;
      if (is_word(head.at,
                  head.bytes)) {  // another core may write it: the result is the old or the new value
        uint64_t word = 0;
        switch (head.bytes) {
          case 1: word = __atomic_load_n(reinterpret_cast<const uint8_t*>(at), __ATOMIC_ACQUIRE); break;
          case 2: word = __atomic_load_n(reinterpret_cast<const uint16_t*>(at), __ATOMIC_ACQUIRE); break;
          case 4: word = __atomic_load_n(reinterpret_cast<const uint32_t*>(at), __ATOMIC_ACQUIRE); break;
          default: word = __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
        }
        return queue(line, reply, &word);
      }
      return queue(line, reply, at);
    }
    case Kind::meet: ++line.met; return true;
    case Kind::probe: {
      const Mark mine = own_mark();
      Head reply = head;
      reply.kind = Kind::mark, reply.bytes = sizeof mine;
      return queue(line, reply, &mine);
    }
    case Kind::mark:
      std::memcpy(&line.mark, bytes, sizeof line.mark);
      line.wave = head.wave;
      if (std::all_of(lines_.begin(), lines_.end(), [&](auto& one) { return one->wave == wave_; })) judge();
      return true;
    case Kind::over: say_over(); return true;
    case Kind::lost: lose(static_cast<int>(head.at), static_cast<Reason>(head.use)); return true;
    case Kind::reply: return false;  // stored directly at its destination
  }
  arrived(line, head);
  return true;
}

/// Count a message whose effect is complete.
void Nodes::arrived(Line&, const Head& head) {
  if (head.kind == Kind::reply) {
    asked_.fetch_sub(head.bytes + sizeof head, std::memory_order_release);
  } else if (group_ != nullptr) {
    group_->board().members[rank_].applied.fetch_add(1);
  }
}

char* Nodes::own(const Head& head) {
  const auto found = worlds_.find(head.world);
  if (found == worlds_.end()) return nullptr;
  const uint64_t stride = found->second.stride, first = static_cast<uint64_t>(rank_) * stride;
  const bool inside = head.at >= first && head.bytes <= stride && head.at - first <= stride - head.bytes;
  return inside ? found->second.base + head.at : nullptr;
}

/// Return the destination of a reply, which answers the oldest request of its line; null for any other reply.
char* Nodes::mirror(Line& line, const Head& head) {
  const std::lock_guard<std::mutex> held(line.lock);
  if (line.asked.empty()) return nullptr;
  const Question& first = line.asked.front();
  if (first.world != head.world || first.at != head.at || first.bytes != head.bytes) return nullptr;
  line.asked.pop_front();
  const auto found = worlds_.find(head.world);
  return found != worlds_.end() ? found->second.base + head.at : nullptr;
}

void Nodes::say_over() {
  if (group_ != nullptr) group_->board().over.store(1);
}

void Nodes::lose(int rank, Reason why) {
  Line* const line = to_[rank];
  if (line != nullptr) line->broken.store(true);
  if (lost_.load() >= 0) return;
  why_.store(why);
  lost_.store(rank);
  const Head head = {Kind::lost, static_cast<uint32_t>(why), 0, 0, static_cast<uint64_t>(rank), 0};
  for (auto& other : lines_)
    if (!other->broken.load()) queue(*other, head, nullptr);
  say_over();
}

const char* Nodes::problem() {
  const char* const what =
      why_.load() == Reason::left ? "has left before the others" : "has sent a message that does not fit";
  std::snprintf(problem_, sizeof problem_, "[PTO-E%d] rank %d %s", why_.load() == Reason::left ? 2422 : 2423,
                lost_.load(), what);
  return problem_;
}

// --- deadlock
// -----------------------------------------------------------------------------------------------

/// Read turns last: a member counts them before its polls, and before the effects of its polls.
Mark mark_of(const Member& member) {
  Mark found;
  found.applied = member.applied.load();
  found.polls = member.polls.load();
  found.sent = member.sent.load();
  found.state = member.state.load();
  found.turns = member.turns.load();
  return found;
}

Mark Nodes::own_mark() { return group_ != nullptr ? mark_of(group_->board().members[rank_]) : Mark{}; }

void Nodes::next_wave() {
  asked_at_ = now();
  for (auto& line : lines_)
    if (line->wave != wave_ && wave_ != 0) return;  // the last wave is not complete
  ++wave_;
  const Head head = {Kind::probe, 0, 0, wave_, 0, 0};
  for (auto& line : lines_) queue(*line, head, nullptr);
}

void Nodes::judge() {
  if (group_ == nullptr || wave_ < first_wave_) return;
  std::vector<Mark> marks(static_cast<size_t>(ranks_));
  for (int r = 0; r < ranks_; ++r)
    marks[static_cast<size_t>(r)] = to_[r] != nullptr ? to_[r]->mark : mark_of(group_->board().members[r]);
  waves_.push_back(std::move(marks));
  if (waves_.size() > 3) waves_.erase(waves_.begin());
  if (waves_.size() < 3) return;
  uint64_t sent = 0, applied = 0;
  bool waits = false;
  for (size_t r = 0; r < waves_[0].size(); ++r) {
    const Mark &first = waves_[0][r], &second = waves_[1][r], &third = waves_[2][r];
    for (const Mark* one : {&first, &second, &third})
      if (one->state != State::waiting && one->state != State::ended) return;
    if (first.turns != second.turns || second.turns != third.turns) return;
    if (third.state == State::waiting) {
      waits = true;
      if (third.polls < second.polls + 2) return;
    }
    sent += first.sent, applied += first.applied;
  }
  if (!waits || sent != applied) return;
  say_over();
  const Head head = {Kind::over, 0, 0, 0, 0, 0};
  for (auto& line : lines_) queue(*line, head, nullptr);
}

// --- sending ------------------------------------------------------------------------------------------------

/// Send a message from the receiving thread, later if the socket is full. Return false if the queue is full:
/// the other process sends requests and does not read the replies.
bool Nodes::queue(Line& line, const Head& head, const void* bytes) {
  if (line.broken.load()) return true;
  {
    const std::lock_guard<std::mutex> held(line.lock);
    if (line.gone > kQueued) {
      line.queue.erase(line.queue.begin(), line.queue.begin() + static_cast<ptrdiff_t>(line.gone));
      line.gone = 0;
    }
    if (line.queue.size() - line.gone > kQueued) return false;
    const auto* const first = reinterpret_cast<const char*>(&head);
    line.queue.insert(line.queue.end(), first, first + sizeof head);
    if (bytes != nullptr) {
      const auto* const more = static_cast<const char*>(bytes);
      line.queue.insert(line.queue.end(), more, more + head.bytes);
    }
  }
  write(line);
  return true;
}

void Nodes::write(Line& line) {
  const std::lock_guard<std::mutex> held(line.lock);
  if (line.busy || line.broken.load()) return;
  while (line.gone < line.queue.size()) {
    const ssize_t count = send(line.socket, line.queue.data() + line.gone, line.queue.size() - line.gone,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {  // the receiving thread detects a broken line
      wake();
      return;
    }
    line.gone += static_cast<size_t>(count);
  }
  line.queue.clear();
  line.gone = 0;
}

/// Send two pieces of bytes from the core; return when they are sent, or false if the launch is over.
bool Nodes::write_through(Line& line, const void* first, size_t count, const void* second, size_t more) {
  for (;;) {
    if (lost_.load() >= 0) return false;
    {
      const std::lock_guard<std::mutex> held(line.lock);
      if (line.queue.empty()) {
        line.busy = true;
        break;
      }
    }
    help();
    sched_yield();
  }
  iovec parts[2] = {{const_cast<void*>(first), count}, {const_cast<void*>(second), more}};
  bool well = true;
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    msghdr message{};
    message.msg_iov = parts, message.msg_iovlen = 2;
    const ssize_t some = sendmsg(line.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (some < 0 && errno != EAGAIN && errno != EINTR) {
      well = false;
      break;
    }
    if (some < 0) {
      if (lost_.load() >= 0) {
        well = false;
        break;
      }
      help();
      pollfd asked = {line.socket, POLLOUT, 0};
      poll(&asked, 1, 1);
      continue;
    }
    auto left = static_cast<size_t>(some);
    for (iovec& part : parts) {
      const size_t taken = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      left -= taken;
    }
  }
  bool queued;
  {
    const std::lock_guard<std::mutex> held(line.lock);
    line.busy = false;
    queued = !line.queue.empty();
  }
  if (!well) {
    const std::lock_guard<std::mutex> held(serving_);
    lose(line.rank, Reason::left);
  } else if (queued) {
    write(line);
  }
  return well;
}

// --- actions of a core
// --------------------------------------------------------------------------------------

void Nodes::used(uint64_t first, uint64_t last, uint32_t use) {
  const uint64_t rank = (first - far_.first) / here_.stride;
  if (first < far_.first || rank >= static_cast<uint64_t>(ranks_) || to_[rank] == nullptr) return;
  const uint64_t end = far_.first + (rank + 1) * here_.stride;
  if (last > end) {  // the rest belongs to the next rank
    used(end, last, use);
    last = end;
  }
  if (!fresh_.empty() && fresh_.back().last == first && fresh_.back().use == use &&
      (fresh_.back().first - far_.first) / here_.stride == rank) {
    fresh_.back().last = last;
  } else {
    fresh_.push_back({first, last, use});
  }
}

bool Nodes::flush() {
  size_t n = 0;
  bool well = true;
  while (n < written_.size() && well) {
    const uint64_t owner = (written_[n].first - far_.first) / here_.stride;
    Line& line = *to_[owner];
    batch_.clear();
    const auto add = [&](const void* bytes, size_t count) {
      const auto* const from = static_cast<const char*>(bytes);
      batch_.insert(batch_.end(), from, from + count);
    };
    for (; n < written_.size() && well && (written_[n].first - far_.first) / here_.stride == owner; ++n) {
      const Run& run = written_[n];
      char* const bytes = reinterpret_cast<char*>(run.first);
      Head head = {Kind::put, run.use, world_, 0, run.first - far_.first, run.last - run.first};
      if (static_cast<Use>(run.use) != Use::write) {
        const Element& element = *element_of(run.use);
        head.kind = Kind::combine;
        for (uint64_t done = 0; done < run.last - run.first && well;
             done += head.bytes, head.at += head.bytes) {
          head.bytes = std::min<uint64_t>(kWhole, run.last - run.first - done);
          member_->sent.fetch_add(1);
          add(&head, sizeof head);
          add(bytes + done, head.bytes);
          if (batch_.size() > kRoom) {
            well = write_through(line, batch_.data(), batch_.size(), nullptr, 0);
            batch_.clear();
          }
        }
        // Runs of one instruction may overlap: no operand is sent twice.
        element.fill(detail::kind_of(static_cast<Use>(run.use)), bytes, run.last - run.first);
        continue;
      }
      member_->sent.fetch_add(1);
      add(&head, sizeof head);
      if (head.bytes < kCopied) {
        add(bytes, head.bytes);
        if (batch_.size() < kRoom) continue;
        well = write_through(line, batch_.data(), batch_.size(), nullptr, 0);
      } else {
        well = write_through(line, batch_.data(), batch_.size(), bytes, head.bytes);
      }
      batch_.clear();
    }
    if (well && !batch_.empty()) well = write_through(line, batch_.data(), batch_.size(), nullptr, 0);
  }
  written_.clear();
  return well;
}

bool Nodes::wait_for_replies(size_t most) {
  while (asked_.load(std::memory_order_acquire) > most) {
    if (lost_.load() >= 0) return false;
    help();
    if (asked_.load(std::memory_order_acquire) > most) sched_yield();
  }
  return true;
}

bool Nodes::get(uint64_t at, uint64_t bytes) {
  const uint64_t owner = at / here_.stride;
  for (uint64_t some; bytes > 0; at += some, bytes -= some) {
    some = std::min<uint64_t>(bytes, kPiece);
    if (!wait_for_replies(kAsked)) return false;
    asked_.fetch_add(some + sizeof(Head));
    {
      const std::lock_guard<std::mutex> held(to_[owner]->lock);
      to_[owner]->asked.push_back({world_, at, some});
    }
    const Head head = {Kind::get, 0, world_, 0, at, some};
    if (!write_through(*to_[owner], &head, sizeof head, nullptr, 0)) return false;
  }
  return true;
}

const char* Nodes::settled() {
  if (written_.empty() && fresh_.empty() && lost_.load(std::memory_order_relaxed) < 0) return nullptr;
  bool well = lost_.load() < 0 && flush();
  bool reads = false;
  for (const Run& run : fresh_) {
    const auto use = static_cast<Use>(run.use);
    if (use == Use::read) {
      reads = true;
      well = well && get(run.first - far_.first, run.last - run.first);
      continue;
    }
    if (use != Use::write) {
      const Element* const element = element_of(run.use);
      if (element == nullptr) {
        fresh_.clear();
        return "[PTO-E2102] cannot combine elements of this type in the window of a rank of another "
               "machine";
      }
      if ((run.first - far_.first) % element->size != 0 || (run.last - run.first) % element->size != 0) {
        fresh_.clear();
        return "[PTO-E2102] cannot combine at an address that is not a multiple of the element size, in the "
               "window of a rank of another machine";
      }
      element->fill(detail::kind_of(use), reinterpret_cast<char*>(run.first), run.last - run.first);
    }
    written_.push_back(run);
  }
  fresh_.clear();
  if (well && reads) well = wait_for_replies(0);
  if (well) return nullptr;
  written_.clear();
  return problem();
}

/// Send a long write directly from its source, after the earlier writes. Return false for a short write
/// (which is collected in the mirror), for a range outside one remote window, or after a broken line.
bool Nodes::put(uint64_t to, const void* from, uint64_t bytes) {
  const uint64_t at = to - far_.first, rank = at / here_.stride;
  if (bytes < kCopied || rank >= static_cast<uint64_t>(ranks_) || to_[rank] == nullptr ||
      at + bytes > (rank + 1) * here_.stride || settled() != nullptr || !flush())
    return false;  // the core reports a broken line at its next poll
  member_->sent.fetch_add(1);
  const Head head = {Kind::put, static_cast<uint32_t>(Use::write), world_, 0, at, bytes};
  return write_through(*to_[rank], &head, sizeof head, from, bytes);
}

// --- worlds and launches ------------------------------------------------------------------------------------

void* Nodes::map(int world, int file, uint64_t stride) {
  size_t all;
  struct stat found{};
  if (__builtin_mul_overflow(stride, static_cast<size_t>(ranks_), &all) || fstat(file, &found) != 0 ||
      static_cast<uint64_t>(found.st_size) < all)
    return nullptr;
  void* const made =
      mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  char* const base = static_cast<char*>(made);
  for (int r = 0; r < ranks_; ++r) {
    if (to_[r] != nullptr) continue;
    const uint64_t at = static_cast<uint64_t>(r) * stride;
    if (mmap(base + at, stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             static_cast<off_t>(at)) == MAP_FAILED) {
      munmap(made, all);
      return nullptr;
    }
  }
  const std::lock_guard<std::mutex> held(serving_);
  worlds_[world] = {base, stride};
  return made;
}

void Nodes::unmap(int world) {
  const std::lock_guard<std::mutex> held(serving_);
  const auto found = worlds_.find(world);
  if (found == worlds_.end()) return;
  for (auto& line : lines_)  // the rest of such a message would be stored in unmapped memory
    if (line->left > 0 && line->head.world == world) {
      line->left = 0;
      lose(line->rank, Reason::message);
    }
  munmap(found->second.base, found->second.stride * static_cast<uint64_t>(ranks_));
  worlds_.erase(found);
}

const pto_far* Nodes::begin(int world, Group* group) {
  const std::lock_guard<std::mutex> held(serving_);
  world_ = world;
  here_ = worlds_.at(world);
  far_.first = reinterpret_cast<uint64_t>(here_.base);
  far_.last = far_.first + here_.stride * static_cast<uint64_t>(ranks_);
  far_.used = [](uint64_t first, uint64_t last, uint32_t use) { active.load()->used(first, last, use); };
  far_.settled = [] { return active.load()->settled(); };
  far_.put = [](uint64_t to, const void* from, uint64_t bytes) -> int32_t {
    return active.load()->put(to, from, bytes);
  };
  member_ = &group->board().members[rank_];
  fresh_.clear();
  written_.clear();
  waves_.clear();
  first_wave_ = wave_ + 1;  // late replies may belong to the launch before
  group_ = group;
  launched_.store(true);
  wake();
  if (lost_.load() >= 0) say_over();
  return &far_;
}

void Nodes::end(bool well) {
  fresh_.clear();
  if (!well) written_.clear();
  if (lost_.load() < 0) flush();
  member_->turns.fetch_add(1);
  member_->state.store(State::ended);
  ++launches_;
  const Head head = {Kind::meet, 0, 0, 0, 0, 0};
  for (auto& line : lines_) write_through(*line, &head, sizeof head, nullptr, 0);
}

bool Nodes::met(int timeout_ms) {
  const int64_t end = now() + int64_t{timeout_ms} * 1'000'000;
  for (uint64_t turn = 0;; ++turn) {
    if (help()) turn = 0;
    {
      const std::lock_guard<std::mutex> held(serving_);
      const bool all = std::all_of(lines_.begin(), lines_.end(),
                                   [&](auto& one) { return one->met >= launches_ || one->broken.load(); });
      if (all || lost_.load() >= 0) {
        group_ = nullptr;
        launched_.store(false);
        return true;
      }
    }
    if (now() > end) return false;
    if (turn < 1000) {
      sched_yield();
    } else {
      const timespec nap{0, 50'000};
      nanosleep(&nap, nullptr);
    }
  }
}

bool Nodes::refresh(int world, uint64_t bytes) {
  {
    const std::lock_guard<std::mutex> held(serving_);
    world_ = world;
    here_ = worlds_.at(world);
  }
  for (int r = 0; r < ranks_; ++r)
    if (to_[r] != nullptr && !get(static_cast<uint64_t>(r) * here_.stride, bytes)) return false;
  return wait_for_replies(0);
}

void Nodes::close() {
  {
    const std::lock_guard<std::mutex> held(serving_);
    group_ = nullptr;
    launched_.store(false);
  }
  for (auto& line : lines_) shutdown(line->socket, SHUT_RDWR);
}

Nodes& of(void* nodes) { return *static_cast<Nodes*>(nodes); }

}  // namespace

void help_nodes() {
  if (Nodes* nodes = active.load(std::memory_order_relaxed); nodes != nullptr) nodes->help();
}

}  // namespace pto::host

using pto::host::of;

void* pto_nodes_open(int32_t rank, int32_t ranks, const int32_t* sockets) {
  if (ranks < 1 || ranks > static_cast<int32_t>(pto::host::kMostRanks) || rank < 0 || rank >= ranks)
    return nullptr;
  auto made = std::make_unique<pto::host::Nodes>(rank, ranks, sockets);
  if (!made->start()) return nullptr;
  pto::host::active.store(made.get());
  return made.release();  // its thread runs until the process ends
}
void* pto_nodes_map(void* nodes, int32_t world, int32_t file, uint64_t stride) {
  return of(nodes).map(world, file, stride);
}
void pto_nodes_unmap(void* nodes, int32_t world) { of(nodes).unmap(world); }
const pto_far* pto_nodes_begin(void* nodes, int32_t world, void* group) {
  return of(nodes).begin(world, static_cast<pto::host::Group*>(group));
}
void pto_nodes_end(void* nodes, int32_t well) { of(nodes).end(well != 0); }
int32_t pto_nodes_met(void* nodes, int32_t timeout_ms) { return of(nodes).met(timeout_ms); }
int32_t pto_nodes_refresh(void* nodes, int32_t world, uint64_t bytes) {
  return of(nodes).refresh(world, bytes);
}
const char* pto_nodes_problem(void* nodes) { return of(nodes).lost() >= 0 ? of(nodes).problem() : nullptr; }
void pto_nodes_close(void* nodes) { of(nodes).close(); }
