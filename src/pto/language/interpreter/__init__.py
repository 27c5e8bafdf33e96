"""Bodies of programs as ordinary Python over arrays, for tests and for debugging."""
