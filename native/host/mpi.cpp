// MPI functions that programs load by name. They use the group of the launcher (`pto ranks`), whose file
// descriptor is in PTO_RANKS_FILE. A program without a launcher is the only rank.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "group.hpp"

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using pto::host::Group;

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<int>(std::strtol(text, nullptr, 10)) : otherwise;
}

Group* world() {
  static Group* const found = [] {
    const int file = number("PTO_RANKS_FILE", -1);
    Group* group = Group::open(0, file >= 0 ? file : Group::make(1, 4096));
    if (file >= 0) pto::host::end_with_launcher();
    if (group == nullptr || !group->join(static_cast<uint32_t>(number("PTO_RANK", 0)))) {
      std::fprintf(
          stderr,
          "[PTO-E2420] the ranks that PTO_RANKS_FILE names are gone: start the program with pto ranks\n");
      std::exit(1);
    }
    return group;
  }();
  return found;
}

/// Return the bytes of an element: MPICH handles have the size in their second byte.
size_t size_of(int type) { return static_cast<size_t>(type >> 8 & 0xff); }

}  // namespace

PTO_EXPORT int MPI_Init(int*, char***) {
  world()->meet();
  return 0;
}
PTO_EXPORT int MPI_Initialized(int* flag) {
  *flag = 1;
  return 0;
}
PTO_EXPORT int MPI_Finalize() {
  world()->meet();
  return 0;
}
PTO_EXPORT int MPI_Comm_size(int, int* size) {
  *size = static_cast<int>(world()->ranks());
  return 0;
}
PTO_EXPORT int MPI_Comm_rank(int, int* rank) {
  *rank = static_cast<int>(world()->rank());
  return 0;
}
PTO_EXPORT int MPI_Barrier(int) {
  world()->meet();
  return 0;
}
PTO_EXPORT int MPI_Bcast(void* bytes, int count, int type, int root, int) {
  world()->tell(static_cast<uint32_t>(root), bytes, static_cast<size_t>(count) * size_of(type));
  return 0;
}
PTO_EXPORT int MPI_Allgather(const void* mine, int count, int type, void* all, int each, int into, int) {
  const size_t size = static_cast<size_t>(each) * size_of(into);
  auto* at = static_cast<char*>(all);
  if (reinterpret_cast<intptr_t>(mine) != -1)  // not MPI_IN_PLACE
    std::memcpy(at + world()->rank() * size, mine, static_cast<size_t>(count) * size_of(type));
  for (uint32_t r = 0; r < world()->ranks(); ++r) world()->tell(r, at + r * size, size);
  return 0;
}
PTO_EXPORT int MPI_Gather(const void* mine, int count, int type, void* all, int each, int into, int root,
                          int) {
  const bool here = world()->rank() == static_cast<uint32_t>(root);
  const size_t size = static_cast<size_t>(count) * size_of(type),
               step = static_cast<size_t>(each) * size_of(into);
  const bool in_place = reinterpret_cast<intptr_t>(mine) == -1;
  for (uint32_t r = 0; r < world()->ranks(); ++r) {
    std::vector<char> part(here ? step : size);
    if (r == world()->rank())
      std::memcpy(part.data(), in_place ? static_cast<char*>(all) + r * step : mine, part.size());
    world()->tell(r, part.data(), part.size());
    if (here) std::memcpy(static_cast<char*>(all) + r * step, part.data(), step);
  }
  return 0;
}
PTO_EXPORT int MPI_Abort(int, int status) {
  std::fflush(nullptr);
  _exit(status != 0 ? status : 1);
}
