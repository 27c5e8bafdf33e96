"""Proofs about kernels: no access outside memory, no race and no flag error, for all values of run-time
parameters. `prove` is the entry; `docs/prove.md` says what a proof means."""
