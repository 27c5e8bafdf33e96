"""Engine `cpp`: emitted or hand-written C++ with our headers, compiled by the system's compiler.

`compiler` finds the compiler, `build` turns C++ into a shared library, `launcher` writes the translation unit
around a kernel, `messages` reads the output of the compiler. `kernel` has kernels of programs, `files`
kernels of C++ files and libraries. `engine/compiled` calls the libraries.
"""
