"""Engine `traced`: a traced build of C++ emits an event for each call; the reference engine executes it."""
