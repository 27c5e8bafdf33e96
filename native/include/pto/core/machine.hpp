// The machine of a kernel: the state of one core, the state shared by the cores of a block, and waiting.
//
// A core is one flow of control: instructions run in program order, so flags and barriers between its own
// pipes are no-ops. A wait for another core uses `wait_until`. Inside a launch (launch.hpp), cores are fibers
// and a waiting core switches to another core; a plain thread yields the processor.
//
// Kernels that are compiled in two halves (cube and vector) share only these objects, through `core()`: the
// state of a launch is never in a C++ static variable.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <type_traits>

#include "pto/core/atomic.hpp"
#include "pto/core/macros.hpp"

struct pto_array;

namespace pto::detail {

/// Return the bytes of a space: its capacity and a margin for wide accesses past its end, in whole pages.
inline constexpr size_t room(int space) { return (kCapacity[space] + 4096 + 4095) / 4096 * 4096; }

/// The room of all spaces, and their sum.
struct Rooms {
  size_t of[kSpaces], all;
};
inline constexpr Rooms kRooms = [] {
  Rooms rooms{};
  for (int space = 0; space < kSpaces; ++space) rooms.all += rooms.of[space] = room(space);
  return rooms;
}();

enum class CoreKind : uint8_t { Mix, Cube, Vector };

struct Core;

/// A condition that a core waits for; its text is made only if the program is stuck.
struct Waiting {
  bool (*ready)(void* state);
  void* state;
  void (*describe)(void* state, char* text, size_t size);
  void* description;
  bool polls = false;  // the core can run, but the program may poll for a block that has not started
};

/// Kinds of access to global memory. The last three combine with the present value: two accesses of the same
/// kind may run in either order. Such a use has the element type in its upper byte (`use_of` in bounds.hpp);
/// `kind_of` removes the type.
enum class Use : uint16_t { read, write, add, max, min };
constexpr Use kind_of(Use use) { return static_cast<Use>(static_cast<unsigned>(use) & 0xFF); }

/// Bytes of global memory that an instruction uses; `last` is excluded.
struct Used {
  uint64_t first, last;
  Use use;
};

/// Functions of the launch that cores call; plain threads have none.
struct Host {
  void (*wait)(Core& core, const Waiting& waiting);
  void (*fail)(Core& core, const char* message);  // does not return
  void (*print)(Core& core, const char* text);
  void (*used)(Core& core, const Used& used) = nullptr;  // use of global memory; null: not observed
  /// Called after the last `used` of an instruction, and when the earlier uses of a core are complete because
  /// it waits, has signalled, or ends. Null: uses are not observed.
  void (*settled)(Core& core) = nullptr;
  /// Write to global memory of another process. Returns false if the memory is shared. Null: all is shared.
  bool (*put)(Core& core, void* to, const void* from, size_t bytes) = nullptr;
  /// Called when a core signals through a flag, barrier or FIFO slot (`gives`), or after it waited for such a
  /// signal: the work before a signal happens before the work after the wait. Null: not observed.
  void (*ordered)(Core& core, const volatile void* through, bool gives) = nullptr;
};

// --- semaphores between the cores of a block --------------------------------------------------------------

/// The waiting core of the semaphores that a signal increments. A2A3: the cube core has one box per vector
/// core. A5: it has one box, where AIV1 uses id + 16.
enum Box : uint8_t { kBoxAic, kBoxAicFromAiv0, kBoxAicFromAiv1, kBoxAiv0, kBoxAiv1, kBoxOwn, kBoxes };

/// The shared state of the cores of one block.
struct Cluster {
  Atomic<int32_t> semaphores[kBoxes][kSemaphores];
  Atomic<uint32_t> arrived[2][kSemaphores];  // cores at a barrier within the block, by kind and id
  static constexpr int kShared = 64;         // objects made on first use, by key (the state of FIFOs)
  Atomic<void*> shared[kShared];
  Core* vectors[2];  // its vector cores, to whose UB the cube core may write
  Core* cube;        // its cube core, to whose L1 the vector cores may write
};

/// The shared state of all blocks of a launch; with several ranks, each rank has one Grid.
struct Grid {
  Cluster* clusters = nullptr;
  uint32_t blocks = 1;
  uint32_t vectors = 0;                         // vector cores per block
  uint32_t participants[3] = {};                // by SyncCoreType: vector, cube, all
  Atomic<uint32_t> here[3] = {};                // cores at a barrier
  Atomic<uint32_t> round[3] = {};               // barriers passed
  Atomic<uint32_t> flags[2][kSemaphores] = {};  // cores at a barrier of all blocks (mode 0), by kind and id
  uint32_t rank = 0, ranks = 0;                 // ranks is 0: the program has no ranks
  bool line_begun = false;                      // the output of the rank is inside a line
};

/// The two outer loops of burst copies, as in their registers. Index 0 is loop 1, the inner one.
struct DmaLoops {
  uint64_t size[2] = {1, 1}, from[2] = {}, to[2] = {};
  void set_size(uint64_t inner, uint64_t outer) {
    size[0] = inner;
    size[1] = outer;
  }
  void set_stride(int loop, uint64_t source, uint64_t target) {
    from[loop] = source;
    to[loop] = target;
  }
};

/// Registers that few vector calls use: the next address of squeezed stores, the size of the last squeeze
/// (both in bytes), and the number of records that a merge took from each list.
struct SqueezeRegisters {
  int64_t ar = 0, sqzn = 0;
  uint64_t merged = 0;
};

/// Registers of copies to and from the cube unit, as one word each.
struct CubeRegisters {
  uint64_t fractals = 1;                 // number of groups and three strides, 16 bits each
  uint64_t loop3 = 1;                    // count and source stride, 16 bits each; destination stride
  uint64_t channel = uint64_t{1} << 48;  // row stride of nz2dn, from bit 48 on
  uint64_t relu_alpha = 0, clip = 0;
  uint64_t parameters = 0;  // addresses of quantisation parameters and slopes in FB
};

struct Core;

/// The records of a core of a traced build (trace.hpp) since the last flush.
struct Trace {
  static constexpr size_t kWords = size_t{1} << 14;
  size_t count = 0;
  int32_t depth = 0;                     // traced calls that have not returned
  uint64_t phase = 0;                    // phase of the next matrix product
  uint32_t events[kPipes][kPipes] = {};  // number of events so far, by their pipes
  void (*flush)(Core&) = nullptr;        // hands the records to the receiver
  uint64_t words[kWords];
};

/// Return the frame of the caller, or null after the last; set `address` to the return address of `frame`.
inline const void* caller_of(const void* frame, uint64_t& address) {
  constexpr uintptr_t kFarthest = uintptr_t{1} << 20;  // a larger distance is another stack
  const auto* record = static_cast<const uintptr_t*>(frame);
  address = record[1];
  const uintptr_t here = reinterpret_cast<uintptr_t>(frame), next = record[0];
  return next > here && next - here < kFarthest && next % sizeof next == 0
             ? reinterpret_cast<const void*>(next)
             : nullptr;
}

/// A target that is known only at run time, for kernels of the virtual machine.
struct Target {
  Isa isa;
  bool left_by_columns;
  size_t capacity[kSpaces];
};

struct Core {
  char* space[kSpaces] = {};
  size_t used[kSpaces] = {};  // bytes of each space that a program may have written
  uint32_t block_idx = 0, block_num = 1;
  uint32_t subblock_idx = 0, subblock_num = 1;
  CoreKind kind = CoreKind::Mix;
  Cluster* cluster = nullptr;
  Grid* grid = nullptr;  // null in plain threads
  const Host* host = nullptr;
  void* fiber = nullptr;  // for the host
  uint64_t task_cookie = 0;
  const pto_array* arrays = nullptr;  // global memory; null: not known
  int32_t array_count = 0;
  const Target* target = nullptr;  // null: the target of the compilation
  bool only_arrays = true;         // the program has no global memory outside `arrays`

  // registers, with their values after a reset
  uint64_t ctrl = uint64_t{1} << 60;  // vector conversions saturate
  uint64_t quant_pre = 0;
  const void* fpc = nullptr;  // quantisation vector of fixpipe
  uint64_t fmatrix[2] = {};
  uint64_t padding = 0, repeat = 0;
  uint64_t ffts_base = 0;
  DmaLoops out_to_ub, ub_to_out, out_to_l1;
  uint64_t pad_value[2] = {};  // of copies into UB, into L1
  CubeRegisters cube;
  int8_t hf32 = -1;  // RoundMode to 11 fraction bits for f32 operands of products; -1: no rounding
  SqueezeRegisters squeeze;
  struct DeferredCopies* deferred = nullptr;  // null: copies are not deferred; see ops/deferred_copies.hpp
  bool lends = false;                         // the next pop may alias the FIFO entry: core/loans.hpp
  int32_t mark = -1;                          // current source location
  Trace* trace = nullptr;                     // null: the core is not traced
  int64_t task = -1;                          // number of the task in a graph of tasks
  uint64_t touched[2] = {};                   // range of an access outside all arrays
  /// PTO_CHECKED: by source pipe, destination pipe and id, the low bits of the code address that set the
  /// flag; 0 if the flag is not set.
  uint32_t flags[kPipes][kPipes][kEventIds] = {};
};

/// Map zeroed memory; untouched pages cost nothing. If the address space is large enough, inaccessible guards
/// lie before and after it, so that an access far outside a tile faults instead of reaching other memory.
/// Return null if there is not enough memory.
PTO_COMMON char* map_guarded(size_t bytes);
PTO_COMMON void unmap_guarded(void* memory);
/// Map guarded memory for the buffers of a core.
PTO_COMMON bool make_spaces(Core& core, const Rooms& rooms);
PTO_COMMON void drop_spaces(Core& core, const Rooms& rooms);
/// Clear the used bytes for another core; this is faster than fresh pages.
PTO_COMMON void clear_spaces(Core& core);

/// Return true if a byte is in the memory of a core.
inline bool is_own(const Core& core, const void* data) {
  const auto* at = static_cast<const char*>(data);
  for (int space = 0; space < kSpaces; ++space)
    if (at >= core.space[space] && at < core.space[space] + room(space)) return true;
  return false;
}

/// Record that the first `end` bytes of a space are in use. In a graph of tasks, other cores of the block may
/// do the same at the same time.
inline void use_space(Core& core, int space, size_t end) {
  if (end > room(space)) end = room(space);
  size_t before = atomic_load(core.used[space], kRelaxed);
  while (end > before && !atomic_replace(core.used[space], before, end)) {
  }
}

/// Return the cluster of a block for plain threads.
PTO_COMMON Cluster* loose_cluster(uint32_t block);

#ifdef PTO_CPU_OPEN
[[gnu::visibility("default")]] extern thread_local Core* current;
#else
inline thread_local Core* current = nullptr;
#endif

/// Return the core of a plain thread; the first call makes it.
[[gnu::cold]] PTO_COMMON Core& loose_core(const Rooms& rooms);

#ifdef PTO_CPU_OPEN
/// The target of the running program, read at each use.
struct IsaOfTarget {
  PTO_INLINE operator Isa() const { return current->target->isa; }
};
inline constexpr IsaOfTarget kIsa{};
PTO_INLINE bool left_by_columns() { return current->target->left_by_columns; }
PTO_INLINE size_t capacity(int space) { return current->target->capacity[space]; }
#else
constexpr bool left_by_columns() { return kLeftByColumns; }
constexpr size_t capacity(int space) { return kCapacity[space]; }
#endif

/// Return the core that the caller runs on.
[[gnu::noinline]] inline Core& core() {
  Core* found = current;
  return found != nullptr ? *found : loose_core(kRooms);
}

/// Return the address at an offset in the memory of another core of the block. The caller may write as many
/// bytes there as it uses of its own memory.
inline char* in_memory_of(Core& other, int space, ptrdiff_t at) {
  use_space(other, space, atomic_load(core().used[space], kRelaxed));
  return other.space[space] + at;
}

/// Return the address of a byte of a space; `location` is a `TileType` or its number.
template <class Location>
inline char* on_chip(Location location, size_t offset) {
  Core& me = core();
  const int space = static_cast<int>(location);
  use_space(me, space, room(space));  // the size of the write is unknown
  return me.space[space] + offset;
}

// --- failing and waiting -----------------------------------------------------------------------------------

/// End the launch with a message; a program without a launch aborts.
[[noreturn, gnu::cold]] PTO_COMMON void fail(const char* message);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] PTO_COMMON void failf(const char* format, ...);

/// Seconds after which the wait of a plain thread fails.
#ifndef PTO_WATCHDOG_SECONDS
#define PTO_WATCHDOG_SECONDS 60
#endif

[[gnu::cold]] PTO_COMMON void wait_alone(const Core& me, const Waiting& waiting, int seconds);

/// Wait until `ready()` returns true. `what` describes the condition: a text, or a callable (char* text,
/// size_t size) that writes a text.
template <class Ready, class What>
inline void wait_until(Ready&& ready, const What& what) {
  if (ready()) return;
  Waiting waiting{};
  waiting.ready = [](void* state) -> bool {
    return (*static_cast<std::remove_reference_t<Ready>*>(state))();
  };
  waiting.state = const_cast<void*>(static_cast<const void*>(&ready));
  waiting.description = const_cast<void*>(static_cast<const void*>(&what));
  waiting.describe = [](void* description, char* text, size_t size) {
    const What& about = *static_cast<const What*>(description);
    if constexpr (requires { about(text, size); }) {
      about(text, size);
    } else {
      std::snprintf(text, size, "%s", static_cast<const char*>(about));
    }
  };
  Core& me = core();
  if (me.host != nullptr) {
    me.host->wait(me, waiting);
    current = &me;  // other cores ran on this thread; each half of a kernel has its own `current`
  } else {
    wait_alone(me, waiting, PTO_WATCHDOG_SECONDS);
  }
}

/// Report a signal of this core through an object, before the object changes: the earlier work of this core
/// happens before the later work of cores that take the signal (`order_takes`).
inline void order_gives(const volatile void* through) {
  Core& me = core();
  if (me.host != nullptr && me.host->ordered != nullptr) me.host->ordered(me, through, true);
}
/// Report that this core took a signal, after its wait.
inline void order_takes(const volatile void* through) {
  Core& me = core();
  if (me.host != nullptr && me.host->ordered != nullptr) me.host->ordered(me, through, false);
}

/// Let other cores run, since this core may depend on their writes. `polls`: the core may repeat this for
/// ever, so further blocks are started, too.
inline void step_aside(bool polls) {
  Core& me = core();
  if (me.host == nullptr) {
    sched_yield();
    return;
  }
  Waiting waiting{};
  waiting.ready = [](void*) { return true; };
  waiting.describe = [](void*, char* text, size_t size) { std::snprintf(text, size, "its turn"); };
  waiting.polls = polls;
  me.host->wait(me, waiting);
  current = &me;
}

/// The function that prints in a program without a launch; null: standard output.
inline void (*plain_print)(const char* text) = nullptr;

/// Print text of a kernel; a launch may redirect the text.
[[gnu::format(printf, 1, 2)]] PTO_COMMON int print(const char* format, ...);

#ifdef PTO_BODY
/// Size of a guard: 2^31 elements of 8 bytes, the reach of a tile with the largest number of rows or columns.
inline constexpr size_t kSpaceGuard = size_t{1} << 34;
/// The header of guarded memory, in the page before it: the address and size of the whole mapping.
struct Mapped {
  char* memory;
  size_t bytes;
};
inline constexpr size_t kMappedPage = 4096;

PTO_BODY char* map_guarded(size_t bytes) {
  const size_t used = kMappedPage + (bytes + kMappedPage - 1) / kMappedPage * kMappedPage;
  Mapped mapped{nullptr, used + 2 * kSpaceGuard};
  void* memory = mmap(nullptr, mapped.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mapped.memory = static_cast<char*>(memory);
  char* at = mapped.memory + kSpaceGuard;
  if (memory != MAP_FAILED && mprotect(at, used, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, mapped.bytes);
    memory = MAP_FAILED;
  }
  if (memory == MAP_FAILED) {  // map without guards, for example under a limit of the address space
    mapped.bytes = used;
    memory = mmap(nullptr, used, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    at = mapped.memory = static_cast<char*>(memory);
  }
  std::memcpy(at, &mapped, sizeof mapped);
  mprotect(at, kMappedPage, PROT_READ);
  return at + kMappedPage;
}

PTO_BODY void unmap_guarded(void* memory) {
  Mapped mapped;
  std::memcpy(&mapped, static_cast<char*>(memory) - kMappedPage, sizeof mapped);
  munmap(mapped.memory, mapped.bytes);
}

PTO_BODY bool make_spaces(Core& core, const Rooms& rooms) {
  char* at = map_guarded(rooms.all);
  if (at == nullptr) return false;
  for (int i = 0; i < kSpaces; ++i) {
    core.space[i] = at;
    at += rooms.of[i];
  }
  return true;
}

PTO_BODY void drop_spaces(Core& core, const Rooms&) {
  if (core.space[0] != nullptr) unmap_guarded(core.space[0]);
  core.space[0] = nullptr;
}

PTO_BODY void clear_spaces(Core& core) {
  for (int i = 0; i < kSpaces; ++i) {
    std::memset(core.space[i], 0, core.used[i]);
    core.used[i] = 0;
  }
}

PTO_BODY Cluster* loose_cluster(uint32_t block) {
  static Atomic<Cluster*> clusters[256];
  Atomic<Cluster*>& place = clusters[block % 256];
  Cluster* found = place.load(kAcquire);
  if (found == nullptr) {
    auto* made = static_cast<Cluster*>(std::calloc(1, sizeof(Cluster)));
    if (place.compare_exchange_strong(found, made)) return made;
    std::free(made);
  }
  return found;
}

struct LooseCore : Core {
  const Rooms& rooms;
  explicit LooseCore(const Rooms& given) : rooms(given) {
    if (!make_spaces(*this, rooms)) std::abort();
    cluster = loose_cluster(0);
  }
  ~LooseCore() { drop_spaces(*this, rooms); }
  LooseCore(const LooseCore&) = delete;
  LooseCore& operator=(const LooseCore&) = delete;
};

PTO_BODY Core& loose_core(const Rooms& rooms) {
  static thread_local LooseCore core(rooms);
  current = &core;
  return core;
}

PTO_BODY void fail(const char* message) {
  Core* me = current;
  if (me != nullptr && me->host != nullptr) me->host->fail(*me, message);
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

PTO_BODY void failf(const char* format, ...) {
  char text[512];
  va_list rest;
  va_start(rest, format);
  std::vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  fail(text);
}

PTO_BODY void wait_alone(const Core& me, const Waiting& waiting, int seconds) {
  timespec start{}, now{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (uint64_t turn = 0; !waiting.ready(waiting.state); ++turn) {
    if (turn < 64) {
      sched_yield();
      continue;
    }
    const timespec nap{0, turn < 1024 ? 20'000 : 500'000};
    nanosleep(&nap, nullptr);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - start.tv_sec > seconds) {
      char what[256] = "";
      waiting.describe(waiting.description, what, sizeof what);
      failf("[PTO] stuck: block %u, sub-block %u has waited %d s for %s", me.block_idx, me.subblock_idx,
            seconds, what);
    }
  }
}

PTO_BODY int print(const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  char text[1024];
  const int length = std::vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  Core* me = current;
  if (me != nullptr && me->host != nullptr) {
    me->host->print(*me, text);
  } else if (plain_print != nullptr) {
    plain_print(text);
  } else {
    std::fputs(text, stdout);
  }
  return length;
}
#endif

}  // namespace pto::detail

// --- numbers of the core -----------------------------------------------------------------------------------

inline int64_t get_block_idx() { return pto::detail::core().block_idx; }
inline int64_t get_block_num() { return pto::detail::core().block_num; }
#ifdef __CPU_SIM
namespace pto::cpu_sim {
inline uint32_t (*subblock_hook)() = nullptr;  // function of the program: the vector core of a thread
}
inline uint32_t get_subblockid() {
  return pto::cpu_sim::subblock_hook != nullptr ? pto::cpu_sim::subblock_hook()
                                                : pto::detail::core().subblock_idx;
}
#else
inline int64_t get_subblockid() { return pto::detail::core().subblock_idx; }
#endif
inline int64_t get_subblockdim() { return pto::detail::core().subblock_num; }
/// The same functions with the names of the manual.
inline int64_t GetBlockIdx() { return get_block_idx(); }
inline int64_t GetBlockNum() { return get_block_num(); }
inline int64_t GetSubBlockIdx() { return static_cast<int64_t>(get_subblockid()); }
inline int64_t GetSubBlockNum() { return get_subblockdim(); }
inline int64_t get_coreid() { return pto::detail::core().block_idx; }
inline uint64_t get_task_cookie() { return pto::detail::core().task_cookie; }

/// Programs must call this before each repeated read of an address that another rank may write.
inline void dcci(const volatile void*, int, int = 0) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const pto::detail::Core* me = pto::detail::current;
  if (me != nullptr && me->grid != nullptr && me->grid->ranks > 1) pto::detail::step_aside(false);
}

[[noreturn]] inline void trap() { pto::detail::fail("[PTO-E2105] trap: the program trapped"); }
