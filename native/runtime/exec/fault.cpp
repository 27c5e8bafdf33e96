#include "fault.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "pto/core/fiber.hpp"

// Sanitizers have handlers of their own, which say more.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PTO2_CATCHES_FAULTS 1
#else
#define PTO2_CATCHES_FAULTS 0
#endif

namespace pto2 {

thread_local Guarded* guarded_kernel = nullptr;
thread_local bool orchestrating = false;

const char* fault_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "a signal";
  }
}

#if PTO2_CATCHES_FAULTS

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kCount = 4;
constexpr size_t kHandlerStack = size_t{64} << 10;

std::mutex lock;  // guards the next two
int users = 0;
struct sigaction before[kCount];

/// As if nobody had been here.
void pass_on(int at, int signal, siginfo_t* info, void* context) {
  const struct sigaction& old = before[at];
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    old.sa_sigaction(signal, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else {
    if (orchestrating) {
      const char* parts[] = {"pto runtime: the orchestration was ended by ", fault_name(signal), "\n"};
      for (const char* part : parts) [[maybe_unused]]
        const auto written = write(STDERR_FILENO, part, std::strlen(part));
    }
    ::signal(signal, SIG_DFL);  // the instruction is repeated, and ends the process
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  int at = 0;
  while (at < kCount - 1 && kSignals[at] != signal) ++at;
  Guarded* kernel = guarded_kernel;
  if (kernel == nullptr || info->si_code <= 0) {  // not of a kernel; or sent by somebody
    pass_on(at, signal, info, context);
    return;
  }
  guarded_kernel = nullptr;
  kernel->signal = signal;
  kernel->address = reinterpret_cast<uint64_t>(info->si_addr);
  const auto stack = reinterpret_cast<uint64_t>(kernel->stack);
  kernel->overflow = signal == SIGSEGV && kernel->address - stack < pto::detail::kGuard;
  const uint64_t top = (stack + pto::detail::kGuard + pto::detail::kStack - 128) & ~uint64_t{15};
  mcontext_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 8);  // as after a call
  registers.gregs[REG_RBP] = 0;
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(kernel->give_up);
#else
  registers.sp = top;
  registers.regs[29] = registers.regs[30] = 0;
  registers.pc = reinterpret_cast<uint64_t>(kernel->give_up);
#endif
}

/// The stack of the handler, where the thread has none.
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

Faults::Faults() {
  const std::lock_guard guard(lock);
  if (users++ > 0) return;
  struct sigaction ours{};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &ours, &before[i]);
}

Faults::~Faults() {
  const std::lock_guard guard(lock);
  if (--users > 0) return;
  for (int i = 0; i < kCount; ++i) {
    struct sigaction now{};
    sigaction(kSignals[i], nullptr, &now);
    if (now.sa_sigaction == handle) sigaction(kSignals[i], &before[i], nullptr);
  }
}

void prepare_thread_for_faults() { static thread_local const HandlerStack stack; }

#else

Faults::Faults() = default;
Faults::~Faults() = default;
void prepare_thread_for_faults() {}

#endif

}  // namespace pto2
