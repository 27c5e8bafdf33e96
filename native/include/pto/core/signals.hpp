// Signals that are not for us go where they would have gone.
#pragma once

#include <signal.h>

namespace pto::detail {

/// Do the action of `old`, while the handler that calls this stays.
inline void pass_signal_on(const struct sigaction& old, int signal, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;  // by a process; else by an instruction
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    if (old.sa_sigaction != nullptr) old.sa_sigaction(signal, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else if (old.sa_handler == SIG_DFL || !sent) {
    ::signal(signal, SIG_DFL);
    // An instruction is repeated, and ends the process where it is; not so a trap, which may count as done.
    if (!sent && signal != SIGTRAP) return;
    sigset_t open;
    sigemptyset(&open);
    sigaddset(&open, signal);
    pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
    raise(signal);
  }
}

}  // namespace pto::detail
