"""C++ under watch: a traced build tells of every call, and the reference engine executes what it is told."""
