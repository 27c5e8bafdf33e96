"""Engine `cpp`: emitted or hand-written C++ against our headers, compiled by the system's compiler.

`compiler` finds the compiler, `build` turns C++ into a shared library, `launcher` writes the translation unit
around a kernel, `messages` reads what the compiler says; `kernel` is a program, `files` are C++ of users and
libraries. What is called is a matter of `engine/compiled`.
"""
