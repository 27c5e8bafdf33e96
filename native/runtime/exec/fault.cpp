#include "fault.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "pto/core/fiber.hpp"
#include "pto/core/signals.hpp"

// Sanitizers have their own handlers, which report more.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PTO2_CATCHES_FAULTS 1
#else
#define PTO2_CATCHES_FAULTS 0
#endif

namespace pto2 {

thread_local Guarded* guarded = nullptr;

namespace {

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGTRAP: return "SIGTRAP";
    default: return "a signal";
  }
}

}  // namespace

const char* Guarded::what(const char* who, char* text, size_t size) const {
  if (signal == SIGINT) {
    std::snprintf(text, size, "the %s did not return after Ctrl-C, and was given up", who);
  } else if (overflow && stack == nullptr) {
    std::snprintf(text, size, "the %s used up its stack", who);
  } else if (overflow) {
    std::snprintf(text, size, "the %s used up its stack of %zu bytes", who, pto::detail::kStack);
  } else if (signal == SIGSEGV || signal == SIGBUS) {
    std::snprintf(text, size,
                  "the %s touched address %#llx, where it may not (%s); what it wrote before may have "
                  "damaged this process",
                  who, static_cast<unsigned long long>(address), name_of(signal));
  } else {
    const char* why = "";
    if (signal == SIGFPE) why = ": a division by zero, most likely";
    if (signal == SIGTRAP) why = ": a division by zero or a trap";  // a failed check raises SIGTRAP
    std::snprintf(text, size, "the %s was ended by %s%s", who, name_of(signal), why);
  }
  return text;
}

void call_guarded(const Text& text, const std::function<void()>& orchestration) {
  prepare_thread_for_faults();
  Guarded here;
  sigjmp_buf out_of;
  here.out_of = &out_of;
  here.text = text;
  Guarded* const outside = guarded;
  if (sigsetjmp(out_of, 1) != 0) {
    guarded = outside;
    char words[256];
    throw std::runtime_error(here.what("orchestration", words, sizeof words));
  }
  guarded = &here;
  try {
    orchestration();
  } catch (...) {
    guarded = outside;
    throw;
  }
  guarded = outside;
}

#if PTO2_CATCHES_FAULTS

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr int kCount = 5;
constexpr int kTell = SIGURG;  // ignored without a handler, so a late signal is harmless
constexpr size_t kHandlerStack = size_t{64} << 10;
constexpr uint64_t kNearStack = uint64_t{64} << 10;
constexpr int kSecondsToReturn = 2;        // after the first Ctrl-C
constexpr long kAgain = 10 * 1000 * 1000;  // nanoseconds between signals to the threads
constexpr int kThreads = 1024;             // most threads that can be signalled

std::mutex lock;  // guards the non-atomic data below; handlers read it only while it does not change
int users = 0, interruptible_users = 0;
struct sigaction before[kCount], before_interrupt, before_tell;
timer_t timer;
pid_t timer_of = 0;                 // the process that owns the timer (a child process has none); 0: no timer
std::atomic<int> interrupts{0};     // Ctrl-C presses since the first run that handles them began
std::atomic<pid_t> told[kThreads];  // threads of runs that Ctrl-C stops; 0: free slot

/// Abandon the code that this thread runs.
void give_up(Guarded& code, int signal, mcontext_t& registers) {
  guarded = nullptr;
  code.signal = signal;
  if (code.out_of != nullptr) siglongjmp(*code.out_of, 1);
  const auto stack = reinterpret_cast<uint64_t>(code.stack);
  const uint64_t top = (stack + pto::detail::kGuard + pto::detail::kStack - 128) & ~uint64_t{15};
#if defined(__x86_64__)
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 8);  // stack alignment as after a call
  registers.gregs[REG_RBP] = 0;
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(code.give_up);
#else
  registers.sp = top;
  registers.regs[29] = registers.regs[30] = 0;
  registers.pc = reinterpret_cast<uint64_t>(code.give_up);
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  Guarded* code = guarded;
  if (code == nullptr || info->si_code <= 0) {  // not in user code, or sent by a process
    int at = 0;
    while (at < kCount - 1 && kSignals[at] != signal) ++at;
    pto::detail::pass_signal_on(before[at], signal, info, context);
    return;
  }
  code->address = reinterpret_cast<uint64_t>(info->si_addr);
  mcontext_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto top = static_cast<uint64_t>(registers.gregs[REG_RSP]);
#else
  const uint64_t top = registers.sp;
#endif
  // Overflow is an access to the guard page of a fiber; elsewhere, an access near the stack pointer.
  code->overflow =
      signal == SIGSEGV &&
      (code->stack != nullptr ? code->address - reinterpret_cast<uint64_t>(code->stack) < pto::detail::kGuard
                              : code->address - top + kNearStack < 2 * kNearStack);
  give_up(*code, signal, registers);
}

/// On a signal of the timer, signal all threads. On a signal to a thread, abandon its user code if safe.
void handle_tell(int signal, siginfo_t* info, void* context) {
  if (info->si_code == SI_TIMER) {
    const int kept = errno;  // errno of the interrupted code
    for (const auto& thread : told) {
      const pid_t number = thread.load(std::memory_order_relaxed);
      if (number != 0) tgkill(getpid(), number, kTell);
    }
    errno = kept;
    return;
  }
  if (info->si_code != SI_TKILL || info->si_pid != getpid() || interrupts.load() == 0) {
    if ((before_tell.sa_flags & SA_SIGINFO) != 0 || before_tell.sa_handler != SIG_DFL)  // default: ignore it
      pto::detail::pass_signal_on(before_tell, signal, info, context);
    return;
  }
  mcontext_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto at = static_cast<uint64_t>(registers.gregs[REG_RIP]);
#else
  const uint64_t at = registers.pc;
#endif
  Guarded* code = guarded;
  if (code != nullptr && code->text.has(at)) give_up(*code, SIGINT, registers);
}

/// On Ctrl-C, call the previous handler, then set the timer that stops this run; the second time, at once.
void handle_interrupt(int signal, siginfo_t* info, void* context) {
  pto::detail::pass_signal_on(before_interrupt, signal, info, context);
  if (timer_of != getpid()) return;
  itimerspec when{};
  when.it_interval.tv_nsec = kAgain;
  if (interrupts.fetch_add(1) == 0) {
    when.it_value.tv_sec = kSecondsToReturn;
  } else {
    when.it_value.tv_nsec = 1;
  }
  timer_settime(timer, 0, &when, nullptr);
}

void install(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction& old, int flags) {
  struct sigaction ours{};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigemptyset(&ours.sa_mask);
  sigaction(signal, nullptr, &old);  // first, so a signal that comes in between is passed on
  sigaction(signal, &ours, nullptr);
}

void uninstall(int signal, void (*handler)(int, siginfo_t*, void*), const struct sigaction& old) {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  if (now.sa_sigaction == handler) sigaction(signal, &old, nullptr);
}

/// The stack of the handler, for a thread that has none.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    memory_ = mmap(nullptr, kHandlerStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return;
    now = {};
    now.ss_sp = memory_;
    now.ss_size = kHandlerStack;
    sigaltstack(&now, nullptr);
  }
  ~HandlerStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || now.ss_sp != memory_) return;
    now = {};
    now.ss_flags = SS_DISABLE;
    sigaltstack(&now, nullptr);
    munmap(memory_, kHandlerStack);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  void* memory_ = MAP_FAILED;
};

}  // namespace

Faults::Faults(bool with_interrupts) : interrupts_(with_interrupts) {
  const std::lock_guard guard(lock);
  if (users++ == 0) {
    for (int i = 0; i < kCount; ++i) install(kSignals[i], handle, before[i], 0);
  }
  if (!interrupts_) return;
  const bool first = interruptible_users++ == 0;
  if (first || timer_of != getpid()) {  // or a child of a process that forked during a run
    interrupts.store(0);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = kTell;
    // If there is no timer, code that does not return is not abandoned.
    timer_of = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 ? getpid() : 0;
  }
  if (!first) return;
  install(kTell, handle_tell, before_tell, SA_RESTART);
  install(SIGINT, handle_interrupt, before_interrupt, 0);
}

Faults::~Faults() {
  const std::lock_guard guard(lock);
  if (--users == 0) {
    for (int i = 0; i < kCount; ++i) uninstall(kSignals[i], handle, before[i]);
  }
  if (!interrupts_ || --interruptible_users > 0) return;
  uninstall(SIGINT, handle_interrupt, before_interrupt);
  if (timer_of == getpid()) timer_delete(timer);
  timer_of = 0;
  uninstall(kTell, handle_tell, before_tell);
}

Interruptible::Interruptible(bool yes) {
  for (int i = 0; yes && i < kThreads && slot_ < 0; ++i) {
    pid_t free = 0;
    if (told[i].compare_exchange_strong(free, gettid())) slot_ = i;
  }
}

Interruptible::~Interruptible() {
  if (slot_ >= 0) told[slot_].store(0);
}

void prepare_thread_for_faults() { static thread_local const HandlerStack stack; }

#else

Faults::Faults(bool interrupts) : interrupts_(interrupts) {}
Faults::~Faults() = default;
Interruptible::Interruptible(bool) {}
Interruptible::~Interruptible() = default;
void prepare_thread_for_faults() {}

#endif

}  // namespace pto2
