// Pass signals that are not caused by kernels on to the previous handler.
#pragma once

#include <signal.h>

namespace pto::detail {

/// Perform the action of `old`. The calling handler stays installed unless the default action is needed.
inline void pass_signal_on(const struct sigaction& old, int signal, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;  // by a process; else by an instruction
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    if (old.sa_sigaction != nullptr) old.sa_sigaction(signal, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else if (old.sa_handler == SIG_DFL || !sent) {
    ::signal(signal, SIG_DFL);
    // A faulting instruction runs again after the return and ends the process; a trap may not run again.
    if (!sent && signal != SIGTRAP) return;
    sigset_t open;
    sigemptyset(&open);
    sigaddset(&open, signal);
    pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
    raise(signal);
  }
}

}  // namespace pto::detail
