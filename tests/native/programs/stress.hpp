// Common parts of native test programs: checks that count failures, random numbers from a seed, selection of
// tests by name.
//
//   PROGRAM              all tests
//   PROGRAM NAME...      these tests
//   PROGRAM --list       the names of all tests
//
// An alarm ends a test that hangs, so a lost wake-up is a failure.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace stress {

inline int failures = 0;

inline void failed(const char* file, int line, const char* what) {
  if (++failures <= 20) std::printf("FAILED %s:%d: %s\n", file, line, what);
}

struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
};

struct Test {
  const char* name;
  void (*run)();
};

inline int main_of(int argc, char** argv, std::initializer_list<Test> tests, unsigned seconds) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int ran = 0;
  for (const Test& test : tests) {
    bool wanted = argc <= 1;
    for (int i = 1; i < argc; ++i) wanted |= std::strcmp(argv[i], test.name) == 0;
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
      std::printf("%s\n", test.name);
      continue;
    }
    if (!wanted) continue;
    const int before = failures;
    alarm(seconds);
    test.run();
    alarm(0);
    std::printf("%s %s\n", failures == before ? "ok    " : "FAILED", test.name);
    ++ran;
  }
  if (argc > 1 && ran == 0 && std::strcmp(argv[1], "--list") != 0) {
    std::printf("no such test\n");
    return 2;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace stress

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) stress::failed(__FILE__, __LINE__, #condition); \
  } while (0)
