// The scheduler of a launch: the cores of a block as fibers on one thread, blocks over several threads.
//
// A core runs until it ends or has to wait; then the thread runs its next runnable core. A thread starts
// another block only if none of its cores can run. If no thread can run a core and cores are left, the launch
// is stuck. Each rank has a grid of its own. The first block of each rank starts at once, since a rank may
// poll for writes of another rank without a wait.
#pragma once

#include "pto/core/launch_abi.hpp"
#include "pto/core/machine.hpp"

namespace pto::detail {

/// A smaller address is a null pointer plus an offset.
inline constexpr uintptr_t kNearNull = uintptr_t{1} << 16;
/// A smaller address may be an on-chip offset: no on-chip memory is larger.
inline constexpr uintptr_t kOnChip = uintptr_t{1} << 20;

/// A function that runs a kernel on a core, with the arguments of a launch.
using Body = void (*)(const pto_launch& launch, const Core& core);

struct Role {
  CoreKind kind;
  uint32_t sub;
  Body body;
};

/// Run a launch and return its status. `checked`: kChecked of the kernel; `tracer`: record receiver or null.
[[gnu::cold]] PTO_COMMON int run_launch(pto_launch* given, const Role* roles, int count, int argc,
                                        const Rooms& rooms, bool checked, pto_tracer* tracer);
inline int run_launch(pto_launch* given, const Role* roles, int count, int argc) {
#if defined(PTO_TRACED) || defined(PTO_CHECKED)
  auto* const tracer = static_cast<pto_tracer*>(const_cast<void*>(given->program));
#else
  pto_tracer* const tracer = nullptr;
#endif
  return run_launch(given, roles, count, argc, kRooms, kChecked, tracer);
}

}  // namespace pto::detail

#ifdef PTO_BODY
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "pto/core/fiber.hpp"
#include "pto/core/signals.hpp"

namespace pto::detail {

struct Thread;

/// One core of a block while it runs.
struct Fiber {
  Core core;
  Context context;
  char* stack = nullptr;
  Thread* thread = nullptr;
  const Role* role = nullptr;
  const Waiting* waiting = nullptr;
  bool done = true;
  const Rooms* rooms = nullptr;
  Fiber* next = nullptr;  // of the same thread
};

struct Launch {
  pto_launch* given = nullptr;
  Role roles[3] = {};
  int role_count = 0;
  int threads = 1;
  const Rooms* rooms = nullptr;
  bool checked = false;
  pto_tracer* tracer = nullptr;
  Grid only;
  Grid* grids = nullptr;  // one per rank
  uint32_t ranks = 1;
  uint32_t blocks = 1;              // of one rank
  pto_array* arrays = nullptr;      // accessible arrays, one rank after another; null: given->arrays
  int32_t* array_counts = nullptr;  // number of accessible arrays per rank
  Thread* workers = nullptr;
  Atomic<uint64_t> next_block{0};  // block b of rank r is b * ranks + r
  Atomic<uint64_t> epoch{1};       // grows whenever a core has run
  Atomic<bool> over{false};        // failed or stuck
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
};

/// A host thread and the cores on it.
struct Thread {
  Launch* launch = nullptr;
  Context context;
  Fiber* live = nullptr;   // cores of started blocks, in order
  Fiber** last = &live;    // the link at the end of the list
  Fiber* spare = nullptr;  // finished cores, for reuse
  Fiber* running = nullptr;
  Atomic<uint64_t> idle{0};  // the epoch in which no core of this thread could run; ~0: finished; 0: running
  pthread_t id{};
};

inline thread_local Thread* this_thread = nullptr;

/// The name of a core: its rank (if there are ranks), its block (if there are several) and its kind (if a
/// block has several cores); empty for the only core.
struct Where {
  char text[48] = "";
  explicit Where(const Core& core) {
    const Grid& grid = *core.grid;
    const char* kind = grid.participants[2] <= grid.blocks ? ""
                       : core.kind == CoreKind::Cube       ? "AIC"
                       : core.subblock_idx == 0            ? "AIV0"
                                                           : "AIV1";
    if (grid.ranks > 0) add("rank %u", grid.rank);
    if (grid.blocks > 1) add("block %u", core.block_idx);
    if (kind[0] != 0) add("%s", kind);
  }

 private:
  template <class T>
  void add(const char* format, T what) {
    const size_t at = std::strlen(text);
    if (at > 0) std::snprintf(text + at, sizeof text - at, ", ");
    const size_t next = std::strlen(text);
    std::snprintf(text + next, sizeof text - next, format, what);
  }
};

// --- ending early ------------------------------------------------------------------------------------------

/// Record the source location of a core: the return addresses from a frame on.
[[gnu::cold]] inline void note_frames(pto_tracer& tracer, const void* frame) {
  constexpr int kMost = sizeof tracer.frames / sizeof tracer.frames[0];
  int at = 0;
  while (at < kMost && tracer.frames[at] != 0) ++at;  // a fault has recorded its own address
  for (; at < kMost && frame != nullptr; ++at) frame = caller_of(frame, tracer.frames[at]);
}
/// Record the source location of a fault: the address of the instruction, then the return addresses.
[[gnu::cold]] inline void note_fault(pto_tracer& tracer, [[maybe_unused]] const void* context) {
  uint64_t pc = 0, frame = 0;
#if defined(__linux__) && defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  pc = static_cast<uint64_t>(registers[REG_RIP]), frame = static_cast<uint64_t>(registers[REG_RBP]);
#elif defined(__linux__) && defined(__aarch64__)
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  pc = machine.pc, frame = machine.regs[29];
#endif
  if (pc == 0) return;
  tracer.frames[0] = pc + 1;  // like a return address, which lies behind its call
  if (frame != 0) note_frames(tracer, reinterpret_cast<const void*>(frame));
}

/// End the launch with its first error; later errors are consequences. `core`, `frame`: of the failed core.
[[gnu::cold]] inline void give_up(Launch& launch, int status, const char* text, const Core* core = nullptr,
                                  const void* frame = nullptr) {
  pthread_mutex_lock(&launch.lock);
  if (!launch.over.load()) {
    if (launch.tracer != nullptr && frame != nullptr && launch.tracer->frames[0] == 0)
      note_frames(*launch.tracer, frame);
    launch.given->status = status;
    if (launch.given->error_size > 0) {
      std::snprintf(launch.given->error, launch.given->error_size, "%s", text);
    }
    if (core != nullptr) {
      launch.given->mark = core->mark;
      launch.given->rank = static_cast<int32_t>(core->grid->rank);
      std::memcpy(launch.given->touched, core->touched, sizeof core->touched);
    }
    launch.over.store(true);
  }
  pthread_mutex_unlock(&launch.lock);
}

[[gnu::cold]] inline void host_fail(Core& core, const char* message) {
  auto& fiber = *static_cast<Fiber*>(core.fiber);
  const Where where(core);
  char text[1024];
  std::snprintf(text, sizeof text, where.text[0] != 0 ? "%s (%s)" : "%s%s", message, where.text);
  give_up(*fiber.thread->launch, 1, text, &core, __builtin_frame_address(0));
  switch_to(fiber.context, fiber.thread->context);
  std::abort();  // not reached: a failed core is never resumed
}

/// Signals for faults: faults of kernel code become errors of the launch, others go to the previous handler.
inline constexpr int kSignals[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
inline constexpr int kSignalCount = 5;
inline struct sigaction old_actions[kSignalCount];

[[gnu::cold]] inline void on_signal(int signal, siginfo_t* info, void* context) {
  Thread* thread = this_thread;
  if (thread == nullptr || thread->running == nullptr || info->si_code <= 0) {
    int at = 0;
    while (at < kSignalCount - 1 && kSignals[at] != signal) ++at;
    pass_signal_on(old_actions[at], signal, info, context);
    return;
  }
  char text[240];
  Fiber& fiber = *thread->running;
  if (thread->launch->tracer != nullptr && !thread->launch->over.load())
    note_fault(*thread->launch->tracer, context);
  const auto* at = static_cast<const char*>(info->si_addr);
  if (signal == SIGFPE) {
    std::snprintf(text, sizeof text, "[PTO-E2102] an integer is divided by zero, or a quotient does not fit");
  } else if (signal == SIGTRAP) {  // a failed compiler check, on processors without a trap instruction
    std::snprintf(text, sizeof text, "[PTO-E2102] an integer is divided by zero, or the code traps");
  } else if (signal == SIGILL) {
    std::snprintf(text, sizeof text, "[PTO-E2102] the code traps, or has an instruction that is none here");
  } else if (at >= fiber.stack && at < fiber.stack + kGuard) {
    std::snprintf(text, sizeof text, "[PTO-E2101] the stack of the core overflows: %zu bytes", kStack);
  } else {
    const auto address = reinterpret_cast<uintptr_t>(at);
    const char* why = "";
    if (address < kNearNull) {
      why =
          ": a null pointer, a tile that TASSIGN gave no address, or an address on chip, which is for "
          "instructions only";
    } else if (address < kOnChip) {
      why = ": an address on chip is for instructions only; elements have GetValue and SetValue of a tile";
    }
    std::snprintf(text, sizeof text, "[PTO-E2101] access to address %p, which is not mapped%s", info->si_addr,
                  why);
  }
  host_fail(fiber.core, text);
}

[[gnu::cold]] inline void watch_signals() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &action, &old_actions[i]);
  });
}

// --- traces ------------------------------------------------------------------------------------------------

/// Pass the records of a core to the receiver; return true if the receiver ends the launch.
[[gnu::cold]] inline bool hand_over(const Launch& launch, const Core& core, bool last) {
  Trace& trace = *core.trace;
  const auto which = static_cast<uint32_t>(core.kind) | core.subblock_idx << 8;
  const int32_t stop =
      launch.tracer->told(core.grid->rank, core.block_idx, which, last, trace.words, trace.count);
  trace.count = 0;
  return stop != 0;
}
[[gnu::cold]] inline void flush_trace(Core& core) {
  const Launch& launch = *static_cast<Fiber*>(core.fiber)->thread->launch;
  if (hand_over(launch, core, false)) host_fail(core, "[PTO-E2106] the launch was ended");
}
/// Pass the last records of a core to the receiver, and free its trace.
[[gnu::cold]] inline void end_trace(const Launch& launch, Core& core) {
  if (core.trace == nullptr) return;
  hand_over(launch, core, true);
  delete core.trace;
  core.trace = nullptr;
}

// --- running -----------------------------------------------------------------------------------------------

inline void host_wait(Core& core, const Waiting& waiting) {
  auto& fiber = *static_cast<Fiber*>(core.fiber);
  if (core.trace != nullptr) flush_trace(core);
  if (core.host->settled != nullptr) core.host->settled(core);
  do {
    fiber.waiting = &waiting;
    switch_to(fiber.context, fiber.thread->context);
  } while (!waiting.ready(waiting.state));
  fiber.waiting = nullptr;
}

inline void host_print(Core& core, const char* text) {
  const Launch& launch = *static_cast<Fiber*>(core.fiber)->thread->launch;
  const auto put = [&](const char* part) {
    if (launch.given->print != nullptr) {
      launch.given->print(part);
    } else {
      std::fputs(part, stdout);
    }
  };
  Grid& grid = *core.grid;
  if (grid.ranks == 0) return put(text);
  while (*text != 0) {  // each line begins with its rank
    const char* end = std::strchr(text, '\n');
    const size_t length = end != nullptr ? static_cast<size_t>(end - text) + 1 : std::strlen(text);
    char line[1100];
    const int before = grid.line_begun ? 0 : std::snprintf(line, sizeof line, "rank %u: ", grid.rank);
    const size_t room = sizeof line - static_cast<size_t>(before) - 1, some = length < room ? length : room;
    std::memcpy(line + before, text, some);
    line[static_cast<size_t>(before) + some] = 0;
    put(line);
    text += some;
    grid.line_begun = text[-1] != '\n';
  }
}

inline constexpr Host kHost = {host_wait, host_fail, host_print};

/// Return the functions for windows outside shared memory; only for launches that have such windows.
[[gnu::cold]] inline const pto_far& far_of(const Core& core) {
  return *static_cast<Fiber*>(core.fiber)->thread->launch->given->far;
}
[[gnu::cold]] inline void far_used(Core& core, const Used& used) {
  const pto_far& far = far_of(core);
  if (used.first < far.last && used.last > far.first)
    far.used(used.first, used.last, static_cast<uint32_t>(used.use));
}
[[gnu::cold]] inline void far_settled(Core& core) {
  const char* problem = far_of(core).settled();
  if (problem == nullptr) return;
  // The condition of a core may be tested on the fiber of another core.
  if (static_cast<Fiber*>(core.fiber)->thread->running == core.fiber) {
    host_fail(core, problem);
  } else {
    give_up(*static_cast<Fiber*>(core.fiber)->thread->launch, 1, problem, &core);
  }
}
[[gnu::cold]] inline bool far_put(Core& core, void* to, const void* from, size_t bytes) {
  const pto_far& far = far_of(core);
  const auto at = reinterpret_cast<uint64_t>(to);
  return at >= far.first && at < far.last && far.put(at, from, bytes) != 0;
}
inline constexpr Host kFarHost = {host_wait, host_fail, host_print, far_used, far_settled, far_put};

/// Fail if a flag was set and not waited for: the next kernel would find the flag set.
[[gnu::cold]] inline void check_flags_left(Core& core) {
  for (int at = 0; at < kPipes * kPipes * kEventIds; ++at) {
    const int from = at / kEventIds / kPipes, to = at / kEventIds % kPipes, id = at % kEventIds;
    const uint32_t raised = core.flags[from][to][id];
    if (raised == 0) continue;
    Launch& launch = *static_cast<Fiber*>(core.fiber)->thread->launch;
    if (launch.tracer != nullptr && !launch.over.load()) {
      const auto here = reinterpret_cast<uint64_t>(&check_flags_left);  // in the same library
      launch.tracer->frames[0] =
          here + static_cast<uint64_t>(int64_t{static_cast<int32_t>(raised - static_cast<uint32_t>(here))});
    }
    char text[160];
    std::snprintf(text, sizeof text,
                  "[PTO-E0805] set_flag(PIPE_%s, PIPE_%s, %d): the flag is still set when the kernel ends; "
                  "a wait_flag is missing",
                  kPipeNames[from], kPipeNames[to], id);
    host_fail(core, text);
  }
}

/// The function of every fiber: run one core after another.
inline void fiber_main() {
  for (;;) {
    Thread& thread = *this_thread;  // another launch may reuse the fiber
    Fiber& fiber = *thread.running;
#ifdef __cpp_exceptions
    try {
      fiber.role->body(*thread.launch->given, fiber.core);
    } catch (...) {
      fail("[PTO-E2102] the kernel threw a C++ exception");
    }
#else
    fiber.role->body(*thread.launch->given, fiber.core);
#endif
    if (fiber.core.host->settled != nullptr) fiber.core.host->settled(fiber.core);
    end_trace(*thread.launch, fiber.core);
    if (thread.launch->checked) check_flags_left(fiber.core);
    fiber.done = true;
    switch_to(fiber.context, thread.context);
  }
}

/// Run a core until it ends or has to wait.
inline void resume(Thread& thread, Fiber& fiber) {
  thread.idle.store(0);
  thread.running = &fiber;
  current = &fiber.core;
  switch_to(thread.context, fiber.context);
  current = nullptr;
  thread.running = nullptr;
  thread.launch->epoch.fetch_add(1);
}

[[gnu::cold]] inline void drop_fibers(Fiber* fiber) {
  while (fiber != nullptr) {
    Fiber* next = fiber->next;
    drop_spaces(fiber->core, *fiber->rooms);
    drop_stack(fiber->stack);
    delete fiber;
    fiber = next;
  }
}

/// Stacks and memory a thread keeps for its next launch: their allocation takes longer than many kernels.
struct Pool {
  static constexpr int kMost = 3;
  Fiber* fibers = nullptr;
  char* signal_stack = nullptr;
  void keep(Fiber* list) {
    int count = 0;
    for (Fiber* f = fibers; f != nullptr; f = f->next) ++count;
    while (list != nullptr && count++ < kMost) {
      Fiber* next = list->next;
      list->next = fibers;
      fibers = list;
      list = next;
    }
    drop_fibers(list);
  }
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    drop_fibers(fibers);
    drop_stack(signal_stack);
  }
};
inline thread_local Pool pool;

[[gnu::cold]] inline Fiber* new_fiber(Thread& thread) {
  Fiber*& list = thread.spare != nullptr ? thread.spare : pool.fibers;
  Fiber* fiber = list;
  if (fiber != nullptr) {
    list = fiber->next;
    clear_spaces(fiber->core);  // remove the data of the previous core
  } else {
    fiber = new (std::nothrow) Fiber;
    if (fiber == nullptr) return nullptr;
    fiber->stack = make_stack();
    fiber->rooms = thread.launch->rooms;
    if (fiber->stack == nullptr || !make_spaces(fiber->core, *fiber->rooms)) return nullptr;
    prepare(fiber->context, fiber->stack, fiber_main);
  }
  fiber->thread = &thread;
  return fiber;
}

/// Start the next block on this thread; return false if no block is left or the memory is exhausted.
[[gnu::cold]] inline bool admit(Thread& thread) {
  Launch& launch = *thread.launch;
  const uint64_t next = launch.next_block.fetch_add(1);
  if (next >= uint64_t{launch.blocks} * launch.ranks) return false;
  const auto rank = static_cast<uint32_t>(next % launch.ranks),
             block = static_cast<uint32_t>(next / launch.ranks);
  Grid& grid = launch.grids[rank];
  for (int i = 0; i < launch.role_count; ++i) {
    Fiber* fiber = new_fiber(thread);
    if (fiber == nullptr) {
      give_up(launch, 1, "[PTO-E2102] no memory for a core");
      return false;
    }
    char* spaces[kSpaces];
    std::memcpy(spaces, fiber->core.space, sizeof spaces);
    fiber->core = Core{};
    Core& core = fiber->core;
    std::memcpy(core.space, spaces, sizeof spaces);
    core.block_idx = block;
    core.block_num = grid.blocks;
    core.kind = launch.roles[i].kind;
    core.subblock_idx = launch.roles[i].sub;
    core.subblock_num = grid.vectors > 0 ? grid.vectors : 1;
    core.cluster = &grid.clusters[block];
    if (core.kind == CoreKind::Vector && core.subblock_idx < 2)
      core.cluster->vectors[core.subblock_idx] = &core;
    if (core.kind == CoreKind::Cube) core.cluster->cube = &core;
    core.grid = &grid;
    core.arrays = launch.given->arrays;
    core.array_count = launch.given->array_count;
    if (launch.arrays != nullptr) {
      core.arrays = launch.arrays + static_cast<size_t>(launch.given->array_count) * rank;
      core.array_count = launch.array_counts[rank];
    }
    core.host = launch.given->far != nullptr ? &kFarHost : &kHost;
    core.fiber = fiber;
    if (launch.tracer != nullptr && launch.tracer->told != nullptr) {
      core.trace = new (std::nothrow) Trace;
      if (core.trace == nullptr) {
        give_up(launch, 1, "[PTO-E2102] no memory for a core");
        return false;
      }
      core.trace->flush = flush_trace;
    }
    fiber->role = &launch.roles[i];
    fiber->waiting = nullptr;
    fiber->done = false;
    fiber->next = nullptr;
    *thread.last = fiber;
    thread.last = &fiber->next;
  }
  return true;
}

/// Run every core of this thread that can run; return true if one made progress, beyond another poll.
inline bool turn(Thread& thread) {
  bool went = false;
  Fiber** link = &thread.live;
  while (*link != nullptr && !thread.launch->over.load(kRelaxed)) {
    Fiber& fiber = **link;
    if (fiber.waiting != nullptr && !fiber.waiting->ready(fiber.waiting->state)) {
      link = &fiber.next;
      continue;
    }
    const bool polls = fiber.waiting != nullptr && fiber.waiting->polls;
    resume(thread, fiber);
    went |= !polls || fiber.done || fiber.waiting == nullptr || !fiber.waiting->polls;
    if (fiber.done) {
      *link = fiber.next;
      if (thread.last == &fiber.next) thread.last = link;
      fiber.next = thread.spare;
      thread.spare = &fiber;
    } else {
      link = &fiber.next;
    }
  }
  return went;
}

/// Report the condition that each core waits for. The last thread that finds nothing to run calls this.
[[gnu::cold]] inline void report_stuck(Launch& launch) {
  char text[4096];
  size_t at = 0;
  int shown = 0, more = 0;
  const Core* first = nullptr;
  for (int t = 0; t < launch.threads; ++t) {
    for (Fiber* fiber = launch.workers[t].live; fiber != nullptr; fiber = fiber->next) {
      if (++shown > 12) {
        ++more;
        continue;
      }
      if (first == nullptr) first = &fiber->core;
      char what[256] = "";
      fiber->waiting->describe(fiber->waiting->description, what, sizeof what);
      at += static_cast<size_t>(
          std::snprintf(text + at, sizeof text - at, "%s\t%s\n", Where(fiber->core).text, what));
      if (at >= sizeof text) at = sizeof text - 1;
    }
  }
  if (more > 0) std::snprintf(text + at, sizeof text - at, "\t%d more\n", more);
  give_up(launch, 2, text, first);
}

/// Return true if every thread has finished or has found no runnable core in this epoch.
[[gnu::cold]] inline bool all_idle(const Launch& launch, uint64_t epoch) {
  for (int t = 0; t < launch.threads; ++t) {
    const uint64_t idle = launch.workers[t].idle.load();
    if (idle != epoch && idle != ~uint64_t{0}) return false;
  }
  return launch.epoch.load() == epoch;
}

[[gnu::cold]] inline void* work(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  Launch& launch = *thread.launch;
  Thread* outer = this_thread;
  Core* outer_core = current;
  this_thread = &thread;
  if (pool.signal_stack == nullptr) pool.signal_stack = make_stack();  // to report stack overflows
  stack_t mine{}, before{};
  mine.ss_sp = pool.signal_stack + kGuard;
  mine.ss_size = kStack;
  const bool has_stack = pool.signal_stack != nullptr && sigaltstack(&mine, &before) == 0;
  if (launch.ranks > 1) {
    const auto threads = static_cast<uint32_t>(launch.threads);
    for (uint32_t n = (launch.ranks + threads - 1) / threads; n > 0 && admit(thread); --n) {
    }
  }
  for (bool blocks_left = true; !launch.over.load();) {
    const uint64_t epoch = launch.epoch.load();
    if (turn(thread)) continue;
    if (blocks_left && (blocks_left = admit(thread))) continue;
    if (thread.live == nullptr) break;
    thread.idle.store(epoch);
    pthread_mutex_lock(&launch.lock);
    const bool stuck = !launch.over.load() && all_idle(launch, epoch);
    pthread_mutex_unlock(&launch.lock);
    if (stuck && (launch.given->idle == nullptr || launch.given->idle(epoch) != 0)) {
      report_stuck(launch);
    } else {
      sched_yield();
    }
  }
  thread.idle.store(~uint64_t{0});
  if (has_stack) sigaltstack(&before, nullptr);
  pool.keep(thread.spare);
  thread.spare = nullptr;
  this_thread = outer;
  current = outer_core;
  return nullptr;
}

/// Make the grids of all ranks and their lists of accessible arrays, own arrays first. Return false if there
/// is not enough memory.
[[gnu::cold]] inline bool make_grids(Launch& launch, const Grid& like) {
  const auto& given = *launch.given;
  launch.grids = launch.ranks > 1 ? new (std::nothrow) Grid[launch.ranks] : &launch.only;
  if (launch.grids == nullptr) return false;
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    Grid& grid = launch.grids[rank];
    grid.blocks = like.blocks, grid.vectors = like.vectors;
    std::memcpy(grid.participants, like.participants, sizeof grid.participants);
    grid.rank = given.alone != 0 ? static_cast<uint32_t>(given.rank) : rank;
    grid.ranks = static_cast<uint32_t>(given.ranks);
    grid.clusters = static_cast<Cluster*>(std::calloc(grid.blocks, sizeof(Cluster)));
    if (grid.clusters == nullptr) return false;
  }
  if (given.arrays == nullptr || given.ranks == 0) return true;
  const auto count = static_cast<size_t>(given.array_count);
  launch.arrays = static_cast<pto_array*>(std::malloc((count * launch.ranks + 1) * sizeof(pto_array)));
  launch.array_counts = static_cast<int32_t*>(std::calloc(launch.ranks, sizeof(int32_t)));
  if (launch.arrays == nullptr || launch.array_counts == nullptr) return false;
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    pto_array* const into = launch.arrays + count * rank;
    int32_t& found = launch.array_counts[rank];
    const auto own = static_cast<int32_t>(launch.grids[rank].rank) + 1;
    for (int others = 0; others < 2; ++others) {
      for (size_t i = 0; i < count; ++i) {
        const int32_t owner = given.arrays[i].owner;
        if (others == 0 ? owner == own || owner == -own : owner <= 0 && owner != -own)
          into[found++] = given.arrays[i];
      }
    }
  }
  return true;
}

[[gnu::cold]] inline void drop_grids(Launch& launch) {
  for (uint32_t rank = 0; launch.grids != nullptr && rank < launch.ranks; ++rank) {
    const Grid& grid = launch.grids[rank];
    for (uint32_t b = 0; grid.clusters != nullptr && b < grid.blocks; ++b) {
      for (Atomic<void*>& shared : grid.clusters[b].shared) std::free(shared.load());
    }
    std::free(static_cast<void*>(grid.clusters));
  }
  if (launch.grids != &launch.only) delete[] launch.grids;
  std::free(launch.arrays);
  std::free(launch.array_counts);
}

PTO_BODY int run_launch(pto_launch* given, const Role* roles, int count, int argc, const Rooms& rooms,
                        bool checked, pto_tracer* tracer) {
  given->status = 0;
  if (given->error_size > 0) given->error[0] = 0;
  Launch launch;
  launch.given = given;
  launch.rooms = &rooms;
  launch.checked = checked;
  launch.tracer = tracer;
  Grid grid;  // a template for the grid of each rank
  for (int i = 0; i < count; ++i) {
    if (count > 1 && roles[i].kind == CoreKind::Vector &&
        roles[i].sub >= static_cast<uint32_t>(given->subblocks)) {
      continue;
    }
    launch.roles[launch.role_count++] = roles[i];
  }
  grid.blocks = static_cast<uint32_t>(given->blocks);
  for (int i = 0; i < launch.role_count; ++i) {
    const CoreKind kind = launch.roles[i].kind;
    grid.vectors += kind == CoreKind::Vector;
    grid.participants[0] += (kind != CoreKind::Cube) * grid.blocks;
    grid.participants[1] += (kind != CoreKind::Vector) * grid.blocks;
    grid.participants[2] += grid.blocks;
  }
  launch.blocks = grid.blocks;
  launch.ranks = given->ranks > 1 && given->alone == 0 ? static_cast<uint32_t>(given->ranks) : 1;
  launch.threads = given->threads < 1 ? 1 : given->threads > 256 ? 256 : given->threads;
  const uint64_t most = uint64_t{launch.blocks} * launch.ranks;
  if (static_cast<uint64_t>(launch.threads) > most) launch.threads = static_cast<int>(most);
  if (given->size != sizeof(pto_launch)) {
    give_up(launch, 1, "[PTO-E2102] the caller and the kernel were built for different launch interfaces");
  } else if (given->argc != argc) {
    char text[96];
    std::snprintf(text, sizeof text, "[PTO-E2011] the kernel takes %d arguments, got %d", argc, given->argc);
    give_up(launch, 1, text);
  } else if (given->blocks < 1) {
    give_up(launch, 1, "[PTO-E2102] a launch has at least one block");
  }
  if (given->status != 0) return given->status;
  given->mark = -1;
  if (given->alone == 0) given->rank = 0;
  given->touched[0] = given->touched[1] = 0;
  Thread* workers = new (std::nothrow) Thread[static_cast<size_t>(launch.threads)];
  if (!make_grids(launch, grid) || workers == nullptr) {
    give_up(launch, 1, "[PTO-E2102] no memory for the launch");
  } else {
    launch.workers = workers;
    watch_signals();
    for (int t = 0; t < launch.threads; ++t) workers[t].launch = &launch;
    int started = 1;
    for (; started < launch.threads; ++started) {
      if (pthread_create(&workers[started].id, nullptr, work, &workers[started]) != 0) break;
    }
    for (int t = started; t < launch.threads; ++t) workers[t].idle.store(~uint64_t{0});
    work(&workers[0]);
    for (int t = 1; t < started; ++t) pthread_join(workers[t].id, nullptr);
    for (int t = 0; t < launch.threads; ++t) {
      for (Fiber* left = workers[t].live; left != nullptr; left = left->next) end_trace(launch, left->core);
      drop_fibers(workers[t].live);
    }
  }
  drop_grids(launch);
  delete[] workers;
  return given->status;
}

}  // namespace pto::detail
#endif
