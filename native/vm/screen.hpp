// Screens: sanitizers at the speed of the machine. A checked image (checked_image.py) calls these
// functions beside the instructions of the program. They track the order of the pipes and the state of every
// byte, and end the launch at the first suspicion. The reference engine then repeats the launch and makes the
// findings. A screen may suspect a correct program, but must suspect each program that the sanitizers report.
//
// The executor of the reference engine (accesses.py) gives the bytes that an instruction accesses, once for
// each instruction and each shape of its operands. They are kept here, relative to the operands.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "generic.hpp"
#include "values.hpp"

extern "C" {

/// Bytes that an instruction accesses, relative to one of its operands; `ACCESS` of accesses.py.
struct pto_screen_access {
  int64_t offset, rows, width, pitch;  // in bytes, except rows
  uint64_t in_step;                    // for a write: one bit per read whose bytes it never overwrites early
  uint32_t operand;
  uint8_t use;     // a pto::vm::Touching
  uint8_t flags;   // of pto::vm::AccessFlag, combined
  uint8_t format;  // a pto::vm::Format: that of a float; 0: no float
  uint8_t reserved;
};

/// The accesses of an instruction for one shape of its operands, and the facts of the registers that it makes.
struct pto_screen_pattern {
  uint64_t count;
  const pto_screen_access* accesses;
  int64_t scale;    // bytes per unit of the subscript; pto::vm::kNoScale: the subscript is part of the shape
  uint8_t each;     // 1: the accesses depend on data, so the pattern holds only once
  uint8_t partial;  // 1: a register is not written as a whole
  uint8_t reads, writes;  // special registers, one bit each
  uint8_t granule[4];     // by result: bytes per lane of a mask
  uint8_t pending[4];     // by result: bytes of a store stream that are not in memory
};
}

namespace pto::vm {

enum Check : uint32_t { kRace = 1, kUndef = 2, kOob = 4, kOverlap = 8, kSync = 16, kNan = 32 };
enum class Touching : uint8_t { read, write, left, scratch };
enum AccessFlag : uint8_t { kAtomic = 1, kWhole = 2, kUnknown = 4, kGlobal = 8, kUnspecified = 16 };
enum class Format : uint8_t { none, f16, bf16, f32, f64, other };

[[noreturn, gnu::cold]] inline void suspect(const char* what) {
  char text[96];
  std::snprintf(text, sizeof text, "suspicion: %s", what);
  detail::fail(text);
}

/// Rows of bytes with a constant pitch.
struct Bytes {
  uint64_t low = 0;
  uint64_t rows = 0, width = 0, pitch = 0;
  uint64_t high() const { return low + (rows - 1) * pitch + width; }
  bool dense() const { return rows == 1 || pitch == width; }
  bool operator==(const Bytes& other) const {
    return low == other.low && rows == other.rows && width == other.width && pitch == other.pitch;
  }
};

/// Return true if rows share a byte with a range, or with other rows.
inline bool meets(const Bytes& of, uint64_t low, uint64_t high) {
  if (of.high() <= low || of.low >= high) return false;
  if (of.dense()) return true;
  const uint64_t first = low < of.low + of.width ? 0 : (low - of.low - of.width) / of.pitch + 1;
  return first < of.rows && of.low + first * of.pitch < high;
}
inline bool meets(const Bytes& a, const Bytes& b) {
  if (a.high() <= b.low || b.high() <= a.low) return false;
  if (a.dense()) return meets(b, a.low, a.high());
  if (b.dense()) return meets(a, b.low, b.high());
  const Bytes& few = a.rows < b.rows ? a : b;
  const Bytes& many = a.rows < b.rows ? b : a;
  for (uint64_t row = 0, at = few.low; row < few.rows; ++row, at += few.pitch)
    if (meets(many, at, at + few.width)) return true;
  return false;
}
/// Return true if rows `a` surely contain all bytes of rows `b`.
inline bool covers(const Bytes& a, const Bytes& b) {
  return a == b || (a.dense() && a.low <= b.low && b.high() <= a.high());
}

// --- the order of events -----------------------------------------------------------------------------------

inline constexpr uint32_t kAgents = 10;  // pipes of `PIPES` of machine.py that have a number, in that order
inline constexpr uint32_t kScalar = 0;   // the scalar unit
inline constexpr uint32_t kVector = 1;   // pipe V
inline constexpr uint32_t kCores = 3;    // of a block: its cube core and its vector cores

struct Token {
  uint32_t of[kCores * kAgents] = {};
  void join(const Token& other) {
    for (uint32_t n = 0; n < kCores * kAgents; ++n) of[n] = std::max(of[n], other.of[n]);
  }
};

/// Vector clocks of the pipes of a block, as in engine/sanitize/clock.py. An agent is a pipe of a core:
/// kAgents times the core, plus the pipe.
struct Clocks {
  Token know[kCores * kAgents], stalls[kCores];
  uint32_t count[kCores * kAgents] = {};

  void start(uint32_t agent) { know[agent].join(stalls[agent / kAgents]); }
  uint32_t instruction(uint32_t agent, bool ordered) {
    uint32_t& own = know[agent].of[agent];
    if (ordered) own = std::max(own, count[agent]);
    if (count[agent] == ~uint32_t{0}) suspect("too many instructions");
    return ++count[agent];
  }
  Token release(uint32_t agent) const {
    Token token = know[agent];
    if (agent % kAgents == kScalar) token.join(stalls[agent / kAgents]);
    token.of[agent] = std::max(token.of[agent], count[agent]);
    return token;
  }
  void acquire(uint32_t agent, const Token& token) {
    know[agent].join(token);
    if (agent % kAgents == kScalar) stalls[agent / kAgents].join(token);
  }
  void barrier(uint32_t agent) { know[agent].of[agent] = std::max(know[agent].of[agent], count[agent]); }
  void barrier_all(uint32_t core) {
    Token all = stalls[core];
    for (uint32_t pipe = 0; pipe < kAgents; ++pipe) all.join(release(core * kAgents + pipe));
    stalls[core] = all;
  }
};

/// An access that later accesses are compared with.
struct Touch {
  Bytes bytes;
  uint64_t sequence;  // in comparisons of blocks: the block
  uint32_t agent;
  uint8_t flags;
  uint64_t before = 0;  // for a read: the read of the same agent and bytes that it replaces
};

/// Accesses by their first byte, in classes of similar length. The length limits the search for overlaps: an
/// access that overlaps some bytes begins at most its length before them.
class Touches {
 public:
  /// Call a function for each access whose bounds overlap some bytes. The function may set its argument
  /// `drop` to remove the access.
  template <class Judge>
  void meeting(const Bytes& bytes, Judge judge) {
    const uint64_t low = bytes.low, high = bytes.high();
    for (int length = 0; length < 64; ++length) {
      if ((used_ >> length & 1) == 0 || high <= low_[length] || low >= high_[length]) continue;
      auto& of = classes_[length];
      const uint64_t reach = length == 63 ? ~uint64_t{0} : (uint64_t{2} << length);
      auto at = of.lower_bound(low < reach ? 0 : low - reach);
      while (at != of.end() && at->first < high) {
        bool drop = false;
        if (at->second.bytes.high() > low) judge(at->second, drop);
        at = drop ? of.erase(at) : std::next(at);
      }
      if (of.empty()) used_ &= ~(uint64_t{1} << length);
    }
  }
  /// Return the access to exactly these bytes, or null.
  template <class Fits>
  Touch* find(const Bytes& bytes, Fits fits) {
    const int length = class_of(bytes);
    if ((used_ >> length & 1) == 0) return nullptr;
    const auto [first, last] = classes_[length].equal_range(bytes.low);
    for (auto at = first; at != last; ++at)
      if (at->second.bytes == bytes && fits(at->second)) return &at->second;
    return nullptr;
  }
  void add(const Touch& touch) {
    const int length = class_of(touch.bytes);
    classes_[length].emplace(touch.bytes.low, touch);
    const bool first = (used_ >> length & 1) == 0;
    low_[length] = first ? touch.bytes.low : std::min(low_[length], touch.bytes.low);
    high_[length] = first ? touch.bytes.high() : std::max(high_[length], touch.bytes.high());
    used_ |= uint64_t{1} << length;
  }
  void clear() {
    for (auto& of : classes_) of.clear();
    used_ = 0;
  }

 private:
  static int class_of(const Bytes& bytes) { return 63 - __builtin_clzll(bytes.high() - bytes.low); }
  std::multimap<uint64_t, Touch> classes_[64];
  uint64_t low_[64], high_[64];  // bounds of the accesses of a class since it was empty
  uint64_t used_ = 0;            // classes with accesses, one bit each
};

/// Accesses of blocks. Neighbors of one block become one access, if not too many others come between them.
class BlockTouches {
 public:
  template <class Judge>
  void meeting(const Bytes& bytes, Judge judge) {
    touches_.meeting(bytes, judge);
    bool drop = false;
    for (uint32_t n = 0; n < count_; ++n) judge(latest_[n], drop);
  }
  void add(const Touch& touch) {
    for (uint32_t n = 0; n < count_; ++n) {
      Touch& old = latest_[n];
      if (old.sequence != touch.sequence || ((old.flags ^ touch.flags) & kAtomic) != 0) continue;
      if (covers(old.bytes, touch.bytes)) return;
      if (!old.bytes.dense() || !touch.bytes.dense() || old.bytes.high() != touch.bytes.low) continue;
      const uint64_t size = touch.bytes.high() - old.bytes.low;
      old.bytes = {old.bytes.low, 1, size, size};
      return;
    }
    if (count_ < kLatest) {
      latest_[count_++] = touch;
      return;
    }
    const Touch& oldest = latest_[next_];
    const auto same = [&](const Touch& t) {
      return t.sequence == oldest.sequence && ((t.flags ^ oldest.flags) & kAtomic) == 0;
    };
    if (touches_.find(oldest.bytes, same) == nullptr) touches_.add(oldest);
    latest_[next_] = touch;
    next_ = (next_ + 1) % kLatest;
  }
  void clear() {
    touches_.clear();
    count_ = next_ = 0;
  }

 private:
  static constexpr uint32_t kLatest = 8;
  Touches touches_;
  Touch latest_[kLatest];
  uint32_t count_ = 0, next_ = 0;
};

// --- the state of bytes ------------------------------------------------------------------------------------

/// A bit for every byte of a memory.
class Bits {
 public:
  void size(size_t bytes) { words_.assign((bytes + 63) / 64, 0); }
  bool empty() const { return words_.empty(); }
  bool all(uint64_t low, uint64_t count) const {
    const uint64_t high = low + count;
    for (uint64_t word = low / 64; word * 64 < high; ++word)
      if (const uint64_t wanted = mask(word, low, high); (words_[word] & wanted) != wanted) return false;
    return true;
  }
  void set(uint64_t low, uint64_t count, bool value) {
    const uint64_t high = low + count;
    for (uint64_t word = low / 64; word * 64 < high; ++word) {
      const uint64_t changed = mask(word, low, high);
      words_[word] = value ? words_[word] | changed : words_[word] & ~changed;
    }
  }

 private:
  static uint64_t mask(uint64_t word, uint64_t low, uint64_t high) {
    uint64_t found = ~uint64_t{0};
    if (word * 64 < low) found &= ~uint64_t{0} << (low - word * 64);
    if (high - word * 64 < 64) found &= (uint64_t{1} << (high - word * 64)) - 1;
    return found;
  }
  std::vector<uint64_t> words_;
};

/// A storage of engine/sanitize/overlap.py: the bytes on which an operation placed a tile.
struct Placing {
  uint64_t low, size;
  uint64_t kind[2];  // kind of the tile, valid region
  uint32_t op;
  uint32_t united = 0;  // the storage that this one was united with; 0: none
  uint64_t turn = 0;    // number of its last write; 0: not written
  bool rivals = false;  // other storages may share bytes by mistake
  bool same(const Placing& other) const { return low == other.low && size == other.size; }
  bool twin(const Placing& other) const {
    return same(other) && kind[0] == other.kind[0] && kind[1] == other.kind[1];
  }
  bool rival(const Placing& other) const {
    return low < other.low + other.size && other.low < low + size && (!same(other) || twin(other));
  }
};

/// The number of the storage that last wrote each part of a memory; 0: none, kMixed: not one alone.
struct Owners {
  static constexpr uint64_t kPart = 32;
  static constexpr uint16_t kMixed = 0xFFFF;
  std::vector<uint16_t> of;
};

// --- inside a vecscope -------------------------------------------------------------------------------------

/// The loads that a value was computed from: load number `top` and loads before it, one bit each. Loads that
/// are longer ago are forgotten, which makes more programs suspicious.
struct Past {
  uint64_t top = 0, loads = 0;
  void join(Past other) {
    if (other.top > top) std::swap(*this, other);
    if (top - other.top < 64) loads |= other.loads << (top - other.top);
  }
  bool has(uint64_t number) const {
    return number <= top && top - number < 64 && (loads >> (top - number) & 1) != 0;
  }
};

/// The facts of a register, beside its value in the frame.
struct RegisterFacts {
  Past past;
  uint32_t granule;  // of a mask
  uint32_t stream;   // the number of a store stream with pending bytes; 0: none
};
static_assert(sizeof(RegisterFacts) == 24, "_FACTS of checked_image.py");

/// Accesses inside a vecscope: by the vector unit or the scalar unit.
enum ScopeAccess : int { kVectorLoad, kVectorStore, kScalarLoad, kScalarStore, kScopeAccesses };

/// The accesses of a core inside its current vecscope: VecscopeHazards of vecscope.py.
struct Scope {
  bool open = false;
  uint64_t sequence = 0;  // of the vecscope on its pipe; 0: it has no access yet
  uint32_t count[kScopeAccesses] = {}, before[kScopeAccesses] = {};
  uint32_t fences[kScopeAccesses][kScopeAccesses] = {};  // accesses before the last barrier of two kinds
  std::unique_ptr<uint32_t[], decltype(&std::free)> last[kScopeAccesses] = {
      {nullptr, std::free}, {nullptr, std::free}, {nullptr, std::free}, {nullptr, std::free}};
  Past stored, carried;
  std::vector<uint32_t> streams;
  uint32_t stream = 0;

  void begin() {
    open = true;
    sequence = 0;
    for (int a = 0; a < kScopeAccesses; ++a)
      for (uint32_t& fence : fences[a]) fence = count[a];
    stored = carried = {};
    streams.clear();
  }
  void barrier(uint32_t pairs) {
    for (int a = 0; a < kScopeAccesses; ++a)
      for (int b = 0; b < kScopeAccesses; ++b)
        if ((pairs >> (a * kScopeAccesses + b) & 1) != 0) fences[a][b] = count[a];
    if ((pairs >> (kVectorStore * kScopeAccesses + kVectorLoad) & 1) != 0) carried = stored;
  }
  /// Compare an access to bytes of the memory with earlier ones, and record the access. `past` are the loads
  /// that the value of a store was computed from.
  void access(ScopeAccess kind, const Bytes& bytes, uint64_t base, size_t capacity, const Past& past) {
    for (int other = 0; other < kScopeAccesses; ++other) {
      const bool loads = (kind & 1) == 0 && (other & 1) == 0, scalars = kind >= 2 && other >= 2;
      if (loads || scalars || (kind == kVectorStore && other == kVectorStore) || !last[other]) continue;
      const bool passed = other == kVectorLoad && kind == kVectorStore;
      const uint32_t fence = fences[other][kind], mine = before[other];
      for (uint64_t row = 0; row < bytes.rows; ++row) {
        const uint32_t* seen = last[other].get() + (bytes.low - base) + row * bytes.pitch;
        uint32_t newest = 0;
        for (uint64_t n = 0; n < bytes.width; ++n) newest = std::max(newest, seen[n]);
        if (newest <= fence) continue;
        uint32_t known = 0;
        for (uint64_t n = 0; n < bytes.width; ++n) {
          if (seen[n] <= fence || seen[n] == known || seen[n] > mine) continue;
          if (!passed || !past.has(seen[n])) suspect("race in a vecscope");
          known = seen[n];
        }
      }
    }
    if (!last[kind]) last[kind].reset(static_cast<uint32_t*>(std::calloc(capacity, sizeof(uint32_t))));
    if (!last[kind] || count[kind] == ~uint32_t{0}) suspect("too many accesses");
    ++count[kind];
    for (uint64_t row = 0; row < bytes.rows; ++row)
      std::fill_n(last[kind].get() + (bytes.low - base) + row * bytes.pitch, bytes.width, count[kind]);
  }
};

/// The state that the cores of a block share.
struct BlockScreen {
  Clocks clocks;
  struct {
    Touches reads, writes;
  } near, global;  // of on-chip memory, and of global memory
};

/// What an instruction does with the cores that it meets.
enum class Crossing : uint32_t { none, signal, await, meeting };

struct CoreScreen;
/// A signal through an object of the launch (`Host::ordered`), with the token for its receiver.
struct Given {
  const BlockScreen* block;
  const CoreScreen* core;
  Token token;
};
/// The signals through a semaphore.
struct Signals {
  static constexpr size_t kHighest = 15;
  std::deque<Given> waiting;
  size_t raised = 0;  // without the receipts that the last giver knew of
  struct Receipt {
    const BlockScreen* block;
    uint32_t agent, count;  // the receiver, and the number of its last instruction
  };
  std::deque<Receipt> taken;  // the other receipts

  /// Count a signal of an agent of a block that knows `know`.
  void raise(const BlockScreen& block, const Token& know) {
    const auto known = [&](const Receipt& r) { return r.block == &block && know.of[r.agent] > r.count; };
    for (; !taken.empty() && known(taken.front()); taken.pop_front()) --raised;
    if (++raised > kHighest) suspect("a semaphore that passes 15");
  }
};
/// The cores that meet once at a grid barrier. A core may come to the next round before others have left.
struct Round {
  std::vector<Given> given;
  bool taken = false;
};

struct CoreScreen {
  CoreScreen(BlockScreen& block, uint32_t core) : block(block), number(core) {}
  BlockScreen& block;
  const uint32_t number;  // of the core in its block
  Crossing crossing = Crossing::none;
  uint32_t crosses = 0;  // the agent that signals or waits
  Token carried;         // for the signals of the current instruction
  std::shared_ptr<Round> round;
  Scope scope;
  uint8_t special = 0;  // defined special registers, one bit each
  std::vector<Token> flags[kAgents][kAgents][8];
  struct Buffer {
    uint32_t holder = kAgents;  // the pipe that holds the buffer; kAgents: none
    bool released = false;
    Token token;
  } buffers[32];
  Bits defined[detail::kSpaces];
  std::vector<Placing> placings{1};  // by number, from 1
  Owners owners[detail::kSpaces];
  uint64_t turn = 0;
  std::vector<std::pair<Bytes, Format>> stores;  // to global memory, by the current instruction
  uint32_t agent(uint32_t pipe) const { return number * kAgents + pipe; }
};

// --- instructions ------------------------------------------------------------------------------------------

/// A shape of the operands of an instruction, and the accesses for this shape.
struct Learned {
  std::vector<uint64_t> key;
  const pto_screen_pattern* pattern;
};
/// The most shapes of one instruction. With more, the reference engine is as fast.
inline constexpr size_t kMostShapes = 4096;
/// No number of bytes per unit of a subscript.
inline constexpr int64_t kNoScale = INT64_MIN;

struct Site {
  std::vector<Learned> learned;
  std::unordered_multimap<uint64_t, size_t> by_hash;
  size_t last = 0;
  bool scaled = false;  // is the scale known
  int64_t scale = 0;    // bytes per unit of its subscript
};

/// An access to global memory; `TOUCHED` of screened.py.
struct Touched {
  Bytes bytes;
  uint32_t site, block, write, reserved;
};

struct Screen {
  std::vector<Site> sites;
  bool keeps = false;  // accesses to global memory
  std::vector<Touched> touched;
  uint32_t ordered = 0;  // pipes that keep their order, one bit each
  uint64_t align = 1;
  bool late_stores = false;  // vector stores of a vecscope may become visible late
  uint32_t checks = 0;
  BlockTouches block_reads, block_writes;  // accesses of all blocks to global memory
  std::unordered_map<const detail::Core*, std::unique_ptr<CoreScreen>> cores;
  std::unordered_map<uint32_t, std::unique_ptr<BlockScreen>> blocks;
  std::unordered_map<const volatile void*, Signals> signals;
  std::unordered_map<const volatile void*, std::shared_ptr<Round>> rounds;
  uint32_t block_cores = 1;
  const detail::Core* last = nullptr;  // the core of the last call, and its state
  CoreScreen* last_state = nullptr;

  CoreScreen& of(const detail::Core& core) {
    if (&core != last) {
      last_state = cores[&core].get();
      last = &core;
    }
    return *last_state;
  }
  CoreScreen& here() { return of(detail::core()); }
  bool checks_for(Check check) const { return (checks & check) != 0; }
};

inline thread_local Screen* screen = nullptr;

/// Compare an access with earlier ones of its core, and record the access: RaceChecker of race.py.
inline void follow(BlockScreen& block, const Bytes& bytes, bool global, bool write, uint32_t agent,
                   uint64_t sequence, uint8_t flags) {
  constexpr uint64_t kChained = 4096;
  const Token& know = block.clocks.know[agent];
  auto& me = global ? block.global : block.near;
  const auto judge = [&](bool old_write) {
    return [&, old_write](const Touch& old, bool& drop) {
      const bool same = old.agent == agent && old.sequence == sequence;
      if (same && old_write != write) {
        // the write of an instruction comes after its own reads, but maybe not after earlier ones
        if (know.of[agent] < old.before && meets(bytes, old.bytes)) suspect("race");
        return;
      }
      if (!same && know.of[old.agent] < old.sequence) {
        if ((old.flags & flags & kAtomic) != 0) return;
        const bool exact = (old.flags & flags & kWhole) != 0 && bytes.dense() && old.bytes.dense();
        const bool chained = exact && !write && old_write && agent % kAgents == kVector &&
                             old.agent == agent && bytes.low == old.bytes.low &&
                             bytes.high() == old.bytes.high() && bytes.high() - bytes.low >= kChained;
        if (chained || !meets(bytes, old.bytes)) return;
        suspect("race");
      }
      drop = (write || (!old_write && old.agent == agent)) && covers(bytes, old.bytes);
    };
  };
  me.writes.meeting(bytes, judge(true));
  if (write) me.reads.meeting(bytes, judge(false));
  Touch touch{bytes, sequence, agent, flags};
  if (write) {
    me.writes.add(touch);
  } else if (Touch* old = me.reads.find(bytes, [&](const Touch& t) { return t.agent == agent; })) {
    touch.before = old->sequence == sequence ? old->before : old->sequence;
    *old = touch;
  } else {
    me.reads.add(touch);
  }
}

/// Compare an access to global memory with accesses of other blocks, and record the access.
inline void follow_blocks(Screen& all, const Bytes& bytes, bool write, uint64_t block, uint8_t flags) {
  const auto judge = [&](const Touch& old, bool&) {
    if (old.sequence == block || (old.flags & flags & kAtomic) != 0 || !meets(bytes, old.bytes)) return;
    suspect("race between blocks");
  };
  all.block_writes.meeting(bytes, judge);
  if (write) all.block_reads.meeting(bytes, judge);
  (write ? all.block_writes : all.block_reads).add({bytes, block, 0, flags});
}

/// Return the number of the storage that stands for all names united with this one.
inline uint32_t united(const CoreScreen& me, uint32_t number) {
  while (me.placings[number].united != 0) number = me.placings[number].united;
  return number;
}

/// Call a function for each part of a memory that a row shares, with true if the row contains the whole part.
template <class Work>
inline void each_part(const Bytes& bytes, uint64_t base, Work work) {
  for (uint64_t row = 0; row < bytes.rows; ++row) {
    const uint64_t low = bytes.low - base + row * bytes.pitch, high = low + bytes.width;
    for (uint64_t part = low / Owners::kPart; part * Owners::kPart < high; ++part)
      work(part, low <= part * Owners::kPart && (part + 1) * Owners::kPart <= high);
  }
}

/// Return the storage to which a read belongs. A storage that was never written under its own name is united
/// with the twin that was written last.
inline uint32_t read_storage(CoreScreen& me, uint32_t number) {
  number = united(me, number);
  Placing& own = me.placings[number];
  if (own.turn != 0 || !own.rivals) return number;
  uint32_t best = 0;
  for (uint32_t n = 1; n < me.placings.size(); ++n)
    if (n != number && me.placings[n].united == 0 && me.placings[n].turn > me.placings[best].turn &&
        me.placings[n].twin(own))
      best = n;
  if (best == 0) return number;
  own.united = best;
  return best;
}

inline void read_owned(CoreScreen& me, int space, uint64_t base, const Bytes& bytes, uint32_t number) {
  number = read_storage(me, number);
  if (!me.placings[number].rivals) return;
  const auto& of = me.owners[space].of;
  if (of.empty()) return;
  each_part(bytes, base, [&](uint64_t part, bool) {
    const uint16_t owner = of[part];
    if (owner == 0 || owner == number) return;
    if (owner != Owners::kMixed) {
      const uint32_t other = united(me, owner);
      if (other == number || !me.placings[other].rival(me.placings[number])) return;
    }
    suspect("overlap");
  });
}

inline void write_owned(CoreScreen& me, int space, uint64_t base, const Bytes& bytes, uint32_t number,
                        bool counts) {
  number = united(me, number);
  Placing& own = me.placings[number];
  own.turn = ++me.turn;
  auto& of = me.owners[space].of;
  if (of.empty()) of.resize(detail::core().target->capacity[space] / Owners::kPart + 1);
  each_part(bytes, base, [&](uint64_t part, bool whole) {
    uint16_t& owner = of[part];
    const bool own = counts && (whole || owner == 0 || owner == number);
    owner = own ? static_cast<uint16_t>(number) : Owners::kMixed;
  });
}

/// An access with its address in memory.
struct Placed {
  Bytes bytes;
  const pto_screen_access* of;
  int space;         // on-chip memory, or -1
  uint32_t storage;  // the number of a Placing; 0: unknown
};

/// Check and update the storages that an instruction accesses: Overlap of overlap.py.
inline void follow_names(CoreScreen& me, const std::vector<Placed>& accesses, const detail::Core& core) {
  const auto base = [&](int space) { return reinterpret_cast<uint64_t>(core.space[space]); };
  for (const Placed& access : accesses)
    if (access.space >= 0 && access.storage != 0 && access.of->use == uint8_t(Touching::read))
      read_owned(me, access.space, base(access.space), access.bytes, access.storage);
  for (const Placed& access : accesses) {
    const bool writes =
        access.of->use == uint8_t(Touching::write) || access.of->use == uint8_t(Touching::scratch);
    if (access.space < 0 || access.storage == 0 || !writes) continue;
    uint32_t held = united(me, access.storage);
    uint64_t bit = 1;
    for (const Placed& other : accesses) {
      if (other.of->use != uint8_t(Touching::read)) continue;
      const bool in_step = (access.of->in_step & bit) != 0;
      bit <<= 1;
      if (other.space != access.space || other.storage == 0) continue;
      const uint32_t read = united(me, other.storage);
      if (read == held || !me.placings[read].rival(me.placings[held])) continue;
      if (in_step) {
        if (me.placings[read].twin(me.placings[held])) {
          me.placings[held].united = read;
          held = read;
        }
        continue;
      }
      if (meets(access.bytes, other.bytes)) suspect("overlap");
    }
    const bool counts = (access.of->flags & kUnspecified) == 0;
    write_owned(me, access.space, base(access.space), access.bytes, held, counts);
  }
}

/// Check that an instruction reads defined bytes only, and update which bytes are defined.
inline void follow_data(CoreScreen& me, const std::vector<Placed>& accesses, const detail::Core& core) {
  const auto rows = [&](const Placed& access, auto work) {
    Bits& bits = me.defined[access.space];
    if (bits.empty()) bits.size(core.target->capacity[access.space]);
    const uint64_t low = access.bytes.low - reinterpret_cast<uint64_t>(core.space[access.space]);
    if (access.bytes.dense()) return work(bits, low, access.bytes.high() - access.bytes.low);
    for (uint64_t row = 0; row < access.bytes.rows; ++row)
      work(bits, low + row * access.bytes.pitch, access.bytes.width);
  };
  const auto use = [](const Placed& access) { return static_cast<Touching>(access.of->use); };
  for (const Placed& access : accesses) {
    if (access.space < 0 || use(access) != Touching::read) continue;
    if ((access.of->flags & kUnknown) != 0) suspect("undefined data");
    rows(access, [](const Bits& bits, uint64_t low, uint64_t count) {
      if (!bits.all(low, count)) suspect("undefined data");
    });
  }
  for (const bool defines : {true, false}) {
    for (const Placed& access : accesses) {
      if (access.space < 0 || use(access) == Touching::read) continue;
      if ((use(access) == Touching::write) != defines) continue;
      rows(access, [&](Bits& bits, uint64_t low, uint64_t count) { bits.set(low, count, defines); });
    }
  }
}

/// Check that an access through a pointer stays in the tile that the pointer was made from.
inline void inside_home(const Screen& all, const CoreScreen& me, const Placed& access) {
  if (access.storage == 0 || !all.checks_for(kOob)) return;
  const Placing& home = me.placings[access.storage];
  if (access.bytes.low < home.low || access.bytes.high() > home.low + home.size) suspect("a pointer");
}

/// Get the accesses of an instruction from the host.
inline const pto_screen_pattern* learn(char* frame, const uint32_t* at, detail::Core& core) {
  pto_generic call;
  describe(call, frame, at, core);
  ask_host(call, core);
  return reinterpret_cast<const pto_screen_pattern*>(call.touched[0]);
}

/// The kinds of operands of `vm.event!`. The kind of a number is its size in bytes.
enum OperandKind : uint32_t {
  kTileOperand = 0,
  kViewOperand = 16,
  kPointerOperand,    // into global memory
  kIgnoredOperand,    // a number on which no access depends
  kNearOperand,       // a pointer into on-chip memory
  kSubscriptOperand,  // moves a pointer: its third word has the width of the number, and from bit 8 the operand
  kVectorOperand,
  kMaskOperand,
  kStreamOperand  // the state of an unaligned stream
};

/// The state of an unaligned stream in the frame: `_ALIGN` of frames.py.
struct StreamState {
  char bytes[32];
  uint64_t position;
  int32_t pending;
  uint8_t kind;
};

/// The operands of an instruction: how the words of a call describe them.
struct Operands {
  static constexpr size_t kMostWords = 128, kMost = 16;
  char* const frame;
  const uint32_t* const words;  // three of each: slot, kind, slot of its facts or storage
  const uint32_t count;
  uint64_t key[kMostWords], data[kMost];  // the shape; the addresses
  size_t length = 0;

  Operands(char* frame, const uint32_t* words, uint32_t count) : frame(frame), words(words), count(count) {
    if (count > kMost) suspect("operands");
    for (uint32_t n = 0; n < count; ++n) {
      const uint32_t of = kind(n);
      data[n] = of == kTileOperand ? reinterpret_cast<uint64_t>(value<AnyTile>(n).data())
                : of == kViewOperand || of == kPointerOperand || of == kNearOperand ? value<uint64_t>(n)
                                                                                    : 0;
    }
  }
  uint32_t kind(uint32_t n) const { return words[3 * n + 1]; }
  uint32_t third(uint32_t n) const { return words[3 * n + 2]; }
  template <class T>
  const T& value(uint32_t n) const {
    return *reinterpret_cast<const T*>(frame + words[3 * n]);
  }
  const RegisterFacts& facts(uint32_t n) const { return at<RegisterFacts>(frame, third(n)); }
  bool is_register(uint32_t n) const { return kind(n) >= kVectorOperand; }

  int64_t number(uint32_t n, uint32_t width) const {
    int64_t found = 0;
    std::memcpy(&found, frame + words[3 * n], width);
    return width == 4 ? static_cast<int32_t>(found) : width == 2 ? static_cast<int16_t>(found) : found;
  }
  /// Move a pointer by its subscript.
  void displace(int64_t scale) {
    for (uint32_t n = 0; n < count; ++n)
      if (kind(n) == kSubscriptOperand)
        data[third(n) >> 8] += static_cast<uint64_t>(number(n, third(n) & 0xFF) * scale);
  }
  void make_key(bool with_subscripts) {
    for (uint32_t n = 0; n < count; ++n) {
      switch (kind(n)) {
        case kTileOperand: add_tile(n); break;
        case kViewOperand:
          std::memcpy(key + length, &value<char>(n) + 8, 80);
          length += 10;
          break;
        case kNearOperand: key[length++] = data[n] % 64; break;
        case kPointerOperand:
        case kIgnoredOperand:
        case kVectorOperand: break;
        case kSubscriptOperand:
          if (with_subscripts) key[length++] = static_cast<uint64_t>(number(n, third(n) & 0xFF));
          break;
        case kMaskOperand:
          std::memcpy(key + length, &value<char>(n), 32);
          key[length + 4] = facts(n).granule;
          length += 5;
          break;
        case kStreamOperand: {
          const auto& state = value<StreamState>(n);
          key[length++] = static_cast<uint64_t>(state.pending) << 8 | state.kind;
          for (uint32_t m = 0; m < count; ++m)
            if (kind(m) == kNearOperand) key[length++] = state.position - data[m];
          break;
        }
        default: key[length] = 0; std::memcpy(key + length++, &value<char>(n), kind(n));
      }
      if (length + 20 > kMostWords) suspect("operands");
    }
  }
  uint64_t hash() const {
    uint64_t found = length;
    for (size_t n = 0; n < length; ++n) {
      found = (found ^ key[n]) * 0x9E3779B97F4A7C15;
      found ^= found >> 29;
    }
    return found;
  }

 private:
  void add_tile(uint32_t n) {
    const auto& tile = value<AnyTile>(n);
    std::memcpy(key + length, &tile, 24);
    length += 3;
    const uint64_t end = data[n] + static_cast<uint64_t>(tile.Numel) * 8;
    for (uint32_t m = 0; m < n; ++m) {  // tiles that share bytes
      if (kind(m) != kTileOperand) continue;
      const auto& other = value<AnyTile>(m);
      const bool apart = data[m] >= end || data[n] >= data[m] + static_cast<uint64_t>(other.Numel) * 8;
      key[length++] = apart ? ~uint64_t{0} : data[n] - data[m];
    }
  }
};

/// Return the accesses of an instruction for the shape of its operands; ask the host about a new shape.
inline const pto_screen_pattern& pattern_of(Site& site, Operands& operands, const uint32_t* call,
                                            detail::Core& core) {
  const pto_screen_pattern* found = nullptr;
  if (!site.scaled) {
    found = learn(operands.frame, call, core);
    site.scale = found->scale;
    site.scaled = true;
  }
  const bool moves = site.scale != kNoScale;
  if (moves) operands.displace(site.scale);
  if (found != nullptr && found->each != 0) return *found;
  operands.make_key(!moves);
  const auto fits = [&](size_t n) {
    const auto& key = site.learned[n].key;
    return key.size() == operands.length && std::memcmp(key.data(), operands.key, operands.length * 8) == 0;
  };
  if (found == nullptr) {
    if (site.last < site.learned.size() && fits(site.last)) return *site.learned[site.last].pattern;
    const auto [first, last] = site.by_hash.equal_range(operands.hash());
    for (auto at = first; at != last; ++at)
      if (fits(at->second)) return *site.learned[site.last = at->second].pattern;
    if (site.learned.size() == kMostShapes) suspect("too many shapes");
    found = learn(operands.frame, call, core);
    if (found->each != 0) return *found;
  }
  site.last = site.learned.size();
  site.by_hash.emplace(operands.hash(), site.last);
  site.learned.push_back({{operands.key, operands.key + operands.length}, found});
  return *found;
}

/// Check the accesses of an instruction inside a vecscope. Return the loads that its results depend on.
inline Past follow_scope(Scope& scope, const std::vector<Placed>& accesses, const detail::Core& core,
                         bool scalar, const Past& past) {
  constexpr int kMemory = static_cast<int>(TileType::Vec);
  Past made = past;
  std::copy(std::begin(scope.count), std::end(scope.count), scope.before);
  bool stores = false;
  for (const Placed& access : accesses) {
    const auto use = static_cast<Touching>(access.of->use);
    if (access.space != kMemory || use == Touching::left) continue;
    const bool write = use != Touching::read;
    const auto kind = static_cast<ScopeAccess>((scalar ? kScalarLoad : kVectorLoad) + (write ? 1 : 0));
    scope.access(kind, access.bytes, reinterpret_cast<uint64_t>(core.space[kMemory]),
                 core.target->capacity[kMemory], past);
    stores |= write;
    if (kind == kVectorStore) scope.stored.join(past);
    if (kind == kVectorLoad) made.join({scope.count[kind], 1});
  }
  if (stores || scope.count[kVectorLoad] == scope.before[kVectorLoad]) return past;
  made.join(scope.carried);
  return made;
}

/// The bits of the third word of `vm.event!`.
enum EventBits : uint32_t { kEveryPipe = 1, kScalarUnit = 2 };

/// Check an instruction: site, pipe, EventBits, operand count, result count, operands (three words each),
/// results (slots of the facts of registers)
inline void begin_event(char* frame, const uint32_t* s) {
  Screen& all = *screen;
  detail::Core& core = detail::core();
  CoreScreen& me = all.here();
  const bool inside = me.scope.open;
  const uint32_t pipe = inside ? kVector : s[1], agent = me.agent(pipe), count = s[3], results = s[4];
  Operands operands(frame, s + 5, count);
  const uint32_t* const made = s + 5 + 3 * count;
  const pto_screen_pattern& pattern = pattern_of(all.sites[s[0]], operands, s, core);

  static thread_local std::vector<Placed> accesses;
  accesses.clear();
  me.stores.clear();
  for (uint64_t n = 0; n < pattern.count; ++n) {
    const pto_screen_access& one = pattern.accesses[n];
    Placed placed{
        {operands.data[one.operand] + static_cast<uint64_t>(one.offset), static_cast<uint64_t>(one.rows),
         static_cast<uint64_t>(one.width), static_cast<uint64_t>(one.pitch)},
        &one,
        -1,
        0};
    if ((one.flags & kGlobal) == 0) {
      for (int space = 0; space < detail::kSpaces && placed.space < 0; ++space) {
        const auto base = reinterpret_cast<uint64_t>(core.space[space]);
        if (placed.bytes.low >= base && placed.bytes.high() <= base + core.target->capacity[space])
          placed.space = space;
      }
      if (placed.space < 0) suspect("outside of the memory");
      placed.storage = at<uint64_t>(frame, operands.third(one.operand)) & 0xFFFFFFFF;
      if (operands.kind(one.operand) == kNearOperand) inside_home(all, me, placed);
    } else if (one.format != 0 && one.use == uint8_t(Touching::write)) {
      me.stores.emplace_back(placed.bytes, static_cast<Format>(one.format));
    }
    if (all.keeps && placed.space < 0 && one.use != uint8_t(Touching::left))
      all.touched.push_back({placed.bytes, s[0], core.block_idx, one.use != uint8_t(Touching::read), 0});
    accesses.push_back(placed);
  }
  Past past;
  if (all.checks_for(kRace)) {
    Clocks& clocks = me.block.clocks;
    if ((s[2] & kEveryPipe) != 0) clocks.barrier_all(me.number);
    uint64_t sequence = me.scope.sequence;
    if (!inside) clocks.start(agent);
    if (!inside || sequence == 0) sequence = clocks.instruction(agent, (all.ordered >> pipe & 1) != 0);
    if (inside) me.scope.sequence = sequence;
    for (const Placed& access : accesses) {
      const auto use = static_cast<Touching>(access.of->use);
      if (use == Touching::left) continue;
      const bool write = use != Touching::read;
      follow(me.block, access.bytes, access.space < 0, write, agent, sequence, access.of->flags);
      if (access.space < 0 && core.block_num > 1)
        follow_blocks(all, access.bytes, write, core.block_idx, access.of->flags);
    }
    for (uint32_t n = 0; n < count; ++n) {
      if (!operands.is_register(n)) continue;
      past.join(operands.facts(n).past);
      if (const uint32_t stream = operands.facts(n).stream; stream != 0) std::erase(me.scope.streams, stream);
    }
    if (inside && all.late_stores)
      past = follow_scope(me.scope, accesses, core, (s[2] & kScalarUnit) != 0, past);
  }
  for (uint32_t n = 0; n < results; ++n) {
    const bool open = pattern.pending[n] != 0;
    if (open) me.scope.streams.push_back(++me.scope.stream);
    at<RegisterFacts>(frame, made[n]) = {past, pattern.granule[n], open ? me.scope.stream : 0};
  }
  if (all.checks_for(kOverlap)) follow_names(me, accesses, core);
  if (all.checks_for(kUndef)) {
    if ((pattern.reads & ~me.special) != 0 || pattern.partial != 0) suspect("undefined data");
    me.special |= pattern.writes;
    follow_data(me, accesses, core);
  }
}

template <class Word>
inline bool all_finite(const Bytes& bytes, Word exponent) {
  for (uint64_t row = 0; row < bytes.rows; ++row) {
    const char* at = reinterpret_cast<const char*>(bytes.low + row * bytes.pitch);
    uint32_t bad = 0;
    for (uint64_t n = 0; n < bytes.width / sizeof(Word); ++n) {
      Word word;
      std::memcpy(&word, at + n * sizeof(Word), sizeof word);
      bad |= (word & exponent) == exponent;
    }
    if (bad != 0) return false;
  }
  return true;
}

/// Check after an instruction that the floats it stored to global memory are finite.
inline void end_event(char*, const uint32_t*) {
  if (!screen->checks_for(kNan)) return;
  for (const auto& [bytes, format] : screen->here().stores) {
    const bool finite = format == Format::f16    ? all_finite<uint16_t>(bytes, 0x7C00)
                        : format == Format::bf16 ? all_finite<uint16_t>(bytes, 0x7F80)
                        : format == Format::f32  ? all_finite<uint32_t>(bytes, 0x7F800000)
                        : format == Format::f64  ? all_finite<uint64_t>(bytes, 0x7FF0000000000000)
                                                 : false;
    if (!finite) suspect("NaN or infinity");
  }
}

// --- synchronization ---------------------------------------------------------------------------------------

enum Order : uint32_t { kSet, kWait, kBarrier, kBarrierAll, kGet, kRelease };

/// Check a synchronization: an Order, pipe, other pipe, number (a slot), its width
inline void order(char* frame, const uint32_t* s) {
  CoreScreen& me = screen->here();
  Clocks& clocks = me.block.clocks;
  const bool sync = screen->checks_for(kSync);
  const uint32_t pipe = s[1], agent = me.agent(pipe);
  int64_t number = 0;
  std::memcpy(&number, frame + s[3], s[4]);
  switch (s[0]) {
    case kSet: {
      if (number < 0 || number > 7) suspect("event id");
      auto& flags = me.flags[pipe][s[2]][number];
      if (sync && !flags.empty()) suspect("a flag that is set twice");
      clocks.start(agent);
      flags.push_back(clocks.release(agent));
      return;
    }
    case kWait: {  // by s[2], for a flag that `pipe` sets
      if (number < 0 || number > 7) suspect("event id");
      auto& flags = me.flags[pipe][s[2]][number];
      if (flags.empty()) suspect("a wait before its flag is set");
      clocks.start(me.agent(s[2]));
      clocks.acquire(me.agent(s[2]), flags.front());
      flags.erase(flags.begin());
      return;
    }
    case kBarrier: clocks.start(agent); return clocks.barrier(agent);
    case kBarrierAll: clocks.start(me.agent(kScalar)); return clocks.barrier_all(me.number);
    default: break;
  }
  if (number < 0 || number > 31) suspect("buffer token");
  auto& buffer = me.buffers[number];
  clocks.start(agent);
  if (s[0] == kGet) {
    if (buffer.holder != kAgents) suspect("a buffer token that is held");
    if (buffer.released) clocks.acquire(agent, buffer.token);
    buffer.holder = pipe;
  } else {
    if (buffer.holder != pipe) suspect("a buffer token that is not held");
    buffer.holder = kAgents;
    buffer.released = true;
    buffer.token = clocks.release(agent);
  }
}

/// Begin an instruction that signals to other cores, waits for them or meets them: a Crossing, pipe, 1 if on
/// all pipes
inline void cross(char*, const uint32_t* s) {
  CoreScreen& me = screen->here();
  if (s[2] != 0) me.block.clocks.barrier_all(me.number);
  me.crossing = static_cast<Crossing>(s[0]);
  me.crosses = me.agent(s[1]);
  me.carried = {};
  me.block.clocks.start(me.crosses);
}
inline void crossed(char*, const uint32_t*) { screen->here().crossing = Crossing::none; }

/// Follow a signal of a core through an object of the launch, or the receipt of one: `Host::ordered`.
inline void follow_signal(detail::Core& core, const volatile void* through, bool gives) {
  if (screen == nullptr) return;
  Screen& all = *screen;
  CoreScreen& me = all.of(core);
  Clocks& clocks = me.block.clocks;
  Signals& signals = all.signals[through];
  auto& waiting = signals.waiting;
  switch (me.crossing) {
    case Crossing::none: suspect("a signal");
    case Crossing::signal:
      if (gives) {
        Token token = clocks.release(me.crosses);
        token.join(me.carried);
        if (all.checks_for(kSync)) signals.raise(me.block, token);
        waiting.push_back({&me.block, &me, token});
      } else {  // the last arrival passes on the earlier tokens
        std::vector<const CoreScreen*> cores;
        for (const Given& given : waiting) {
          if (given.block == &me.block) me.carried.join(given.token);
          cores.push_back(given.core);
        }
        std::sort(cores.begin(), cores.end());
        if (std::adjacent_find(cores.begin(), cores.end()) != cores.end()) suspect("a second arrival");
        signals = {};
      }
      return;
    case Crossing::await:
      if (gives || waiting.empty()) suspect("a signal");
      if (waiting.front().block == &me.block) clocks.acquire(me.crosses, waiting.front().token);
      waiting.pop_front();
      signals.taken.push_back({&me.block, me.crosses, clocks.count[me.crosses]});
      return;
    case Crossing::meeting: {
      if (gives) {
        auto& round = all.rounds[through];
        if (!round || round->taken) round = std::make_shared<Round>();
        me.round = round;
        clocks.barrier_all(me.number);
        round->given.push_back({&me.block, &me, clocks.stalls[me.number]});
        return;
      }
      Round& round = *me.round;
      if (!round.taken && round.given.size() == size_t{core.block_num} * all.block_cores) {
        all.block_reads.clear();
        all.block_writes.clear();
      }
      round.taken = true;
      for (const Given& given : round.given)
        if (given.block == &me.block) clocks.stalls[me.number].join(given.token);
    }
  }
}

/// The host of cores under screens.
inline detail::Host screened_host() {
  detail::Host host = detail::kHost;
  host.ordered = follow_signal;
  return host;
}
inline const detail::Host kScreenedHost = screened_host();

// --- tiles and windows -------------------------------------------------------------------------------------

/// Record that a tile got its address: slot, operation, bytes, kind, space, slot of its storage
inline void placed(char* frame, const uint32_t* s) {
  CoreScreen& me = screen->here();
  const detail::Core& core = detail::core();
  const auto& tile = at<AnyTile>(frame, s[0]);
  const auto address = reinterpret_cast<uint64_t>(tile.data()) - reinterpret_cast<uint64_t>(core.space[s[4]]);
  if (address + s[2] > core.target->capacity[s[4]] || address % screen->align != 0)
    suspect("the place of a tile");
  Placing made{reinterpret_cast<uint64_t>(tile.data()),
               s[2],
               {s[3], uint64_t{tile.RowMaskInternal} << 32 | tile.ColMaskInternal},
               s[1]};
  uint32_t number = 0;
  if (screen->checks_for(kOverlap) || screen->checks_for(kOob)) {
    for (uint32_t n = 1; n < me.placings.size() && number == 0; ++n)
      if (me.placings[n].op == made.op && me.placings[n].twin(made)) number = n;
    if (number == 0) {
      number = static_cast<uint32_t>(me.placings.size());
      if (number >= Owners::kMixed) suspect("overlap");
      for (uint32_t n = 1; n < number; ++n)
        if (me.placings[n].rival(made)) me.placings[n].rivals = made.rivals = true;
      me.placings.push_back(made);
    }
  }
  at<uint64_t>(frame, s[5]) = number;
}

/// Check that a window lies in its source: offset (a slot), its width, size, size of the source
inline void inside(char* frame, const uint32_t* s) {
  if (!screen->checks_for(kOob)) return;
  int64_t offset = 0;
  std::memcpy(&offset, frame + s[0], s[1]);
  if (s[1] == 4) offset = static_cast<int32_t>(offset);
  if (offset < 0 || offset + static_cast<int64_t>(s[2]) > static_cast<int64_t>(s[3])) suspect("a window");
}

/// Check that a part lies in its view: view, rank, offsets, sizes
inline void inside_view(char* frame, const uint32_t* s) {
  if (!screen->checks_for(kOob)) return;
  const auto& source = at<ViewFields>(frame, s[0]);
  const uint32_t rank = s[1];
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t offset = at<int64_t>(frame, s[2 + d]), size = at<int64_t>(frame, s[2 + rank + d]);
    if (size != 0 && (offset < 0 || offset + size > source.shape[5 - rank + d])) suspect("a partition");
  }
}

inline void begin_scope(char*, const uint32_t*) {
  CoreScreen& me = screen->here();
  me.block.clocks.start(me.agent(kVector));
  me.scope.begin();
}

inline void end_scope(char*, const uint32_t*) {
  Scope& scope = screen->here().scope;
  scope.open = false;
  if (screen->checks_for(kRace) && !scope.streams.empty()) suspect("a store stream without its end");
}

/// Pass a barrier inside a vecscope: the pairs of accesses that it orders, one bit each
inline void fence(char*, const uint32_t* s) { screen->here().scope.barrier(s[0]); }

inline void begin_core(char*, const uint32_t*) {
  detail::Core& core = detail::core();
  auto& block = screen->blocks[core.block_idx];
  if (!block) block = std::make_unique<BlockScreen>();
  const uint32_t number = core.kind == detail::CoreKind::Vector ? 1 + core.subblock_idx : 0;
  if (number >= kCores) suspect("cores of a block");
  screen->cores[&core] = std::make_unique<CoreScreen>(*block, number);
  screen->last = nullptr;
  core.host = &kScreenedHost;
}

inline void end_core(char*, const uint32_t*) {
  const CoreScreen& me = screen->here();
  if (screen->checks_for(kSync)) {
    for (const auto& from : me.flags)
      for (const auto& to : from)
        for (const auto& flags : to)
          if (!flags.empty()) suspect("a flag that is left set");
    for (const auto& buffer : me.buffers)
      if (buffer.holder != kAgents) suspect("a buffer token that is held");
  }
}

// Images in files cannot contain these calls.
// clang-format off
#define PTO_VM_SCREEN                                                                                        \
  {"vm.event!", begin_event}, {"vm.after!", end_event}, {"vm.order!", order}, {"vm.placed!", placed},        \
  {"vm.inside!", inside}, {"vm.inside_view!", inside_view}, {"vm.begin!", begin_core}, {"vm.end!", end_core}, \
  {"vm.cross!", cross}, {"vm.crossed!", crossed}, {"vm.scope!", begin_scope}, {"vm.unscope!", end_scope}, {"vm.fence!", fence}
// clang-format on

}  // namespace pto::vm

/// Make the state for checked launches of a program with `sites` instructions. `pto_screen_free` frees it.
PTO_EXPORT void* pto_screen_new(uint32_t sites, uint32_t ordered, uint64_t align, bool late_stores,
                                uint32_t block_cores) {
  auto* made = new pto::vm::Screen;
  made->block_cores = block_cores;
  made->late_stores = late_stores;
  made->sites.resize(sites);
  made->ordered = ordered;
  made->align = align;
  return made;
}
PTO_EXPORT void pto_screen_free(void* screen) { delete static_cast<pto::vm::Screen*>(screen); }

/// Get the first byte and the size of a storage of the current core.
PTO_EXPORT void pto_screen_home(uint32_t number, uint64_t* bytes) {
  const pto::vm::Placing& home = pto::vm::screen->here().placings[number];
  bytes[0] = home.low;
  bytes[1] = home.size;
}

/// Call before and after a checked launch, which runs on the calling thread only. `keeps`: keep the accesses
/// to global memory for `pto_screen_touched`.
PTO_EXPORT void pto_screen_start(void* screen, uint32_t checks, bool keeps) {
  pto::vm::screen = static_cast<pto::vm::Screen*>(screen);
  pto::vm::screen->checks = checks;
  pto::vm::screen->keeps = keeps;
  pto::vm::screen->touched.clear();
}
/// Return true if a signal between cores is left, which is an error of the launch.
PTO_EXPORT bool pto_screen_stop() {
  pto::vm::Screen* screen = pto::vm::screen;
  pto::vm::screen = nullptr;
  bool left = false;
  if (screen->checks_for(pto::vm::kSync))
    for (const auto& [through, signals] : screen->signals) left |= !signals.waiting.empty();
  screen->block_reads.clear();
  screen->block_writes.clear();
  screen->cores.clear();
  screen->blocks.clear();
  screen->signals.clear();
  screen->rounds.clear();
  screen->last = nullptr;
  return left;
}
/// Return the accesses to global memory of the last launch, and their number.
PTO_EXPORT const void* pto_screen_touched(const void* screen, uint64_t* count) {
  const auto& touched = static_cast<const pto::vm::Screen*>(screen)->touched;
  *count = touched.size();
  return touched.data();
}
