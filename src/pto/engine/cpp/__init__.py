"""Engine `cpp`: emitted or hand-written C++ against our headers, compiled by the system's compiler.

`compiler` finds the compiler, `build` turns C++ into a shared library (cached by content), `launcher` writes
the translation unit around a kernel, `messages` reads what the compiler says, `kernel` runs the result.
"""
