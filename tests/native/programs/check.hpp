// A small framework for native checks. Each check has a name and a topic of the runtime's description.
#pragma once

#include <cstdio>
#include <vector>

namespace check {

struct Check {
  const char* name;
  const char* topic;
  void (*run)();
};

inline std::vector<Check>& all() {
  static std::vector<Check> checks;
  return checks;
}
inline int failures = 0;

struct Register {
  Register(const char* name, const char* topic, void (*run)()) { all().push_back({name, topic, run}); }
};

inline void that(bool condition, const char* text, const char* file, int line) {
  if (condition) return;
  std::printf("%s:%d: not so: %s\n", file, line, text);
  ++failures;
}

template <class A, class B>
void equal(const A& got, const B& wanted, const char* text, const char* file, int line) {
  const auto a = static_cast<long long>(got), b = static_cast<long long>(wanted);
  if (a == b) return;
  std::printf("%s:%d: %s is %lld, expected %lld\n", file, line, text, a, b);
  ++failures;
}

}  // namespace check

#define CHECK(condition) check::that(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define EQUAL(got, wanted) check::equal(got, wanted, #got, __FILE__, __LINE__)
#define CHECKS(name, topic)                                   \
  void name();                                                \
  const check::Register register_##name(#name, topic, &name); \
  void name()
