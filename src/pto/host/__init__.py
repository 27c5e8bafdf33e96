"""Build whole C++ programs that allocate, launch and communicate, and run them as ranks."""
