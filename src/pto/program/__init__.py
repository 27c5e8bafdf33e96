"""The flat form of programs, for everything that executes them or emits code."""
