// The communication library (hccl/hccl.h). Members of a group receive process and file of the first member.
#include "hccl.hpp"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "group.hpp"
#include "hccl/hccl.h"
#include "trace.hpp"

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using pto::host::Group;
using pto::host::kMostRanks;

/// The message of the root to the other members. Windows are allocated for the largest number of ranks,
/// because the actual number is unknown.
struct Root {
  char magic[8];
  int32_t process, file;
  uint64_t token;  // detects that the process has ended and another has its number
};
constexpr char kRoot[8] = "pto-hcc";

/// The communication context that kernels receive.
struct Context {
  uint64_t work_space, work_space_size;
  uint32_t rank, ranks;
  uint64_t window;
  uint64_t windows_in[kMostRanks], windows_out[kMostRanks];
};
static_assert(sizeof(Context) == 1056);

struct Comm {
  Group* group;
  uint32_t rank, ranks;
  Context* context = nullptr;
  std::vector<std::string> names;
};

std::mutex comms_lock;
std::vector<Comm*> comms;

uint64_t window_size() {
  const char* text = std::getenv("HCCL_BUFFSIZE");
  const long megabytes = text != nullptr ? std::strtol(text, nullptr, 10) : 200;
  constexpr long kMost = 1L << 26;  // a bound: the system refuses such sizes, and their sums do not overflow
  return static_cast<uint64_t>(megabytes > 0 ? std::min(megabytes, kMost) : 200) << 20;
}

Comm* comm_of(void* given) {
  const std::lock_guard<std::mutex> held(comms_lock);
  for (Comm* comm : comms)
    if (comm == given) return comm;
  return nullptr;
}

}  // namespace

int32_t pto::host::windows(pto_array* into, int32_t room) {
  const std::lock_guard<std::mutex> held(comms_lock);
  int32_t count = 0;
  const auto add = [&](void* at, uint64_t size, const char* name) {
    if (count < room && into != nullptr) into[count] = {at, size, name, 0};
    ++count;
  };
  for (Comm* comm : comms) {
    if (comm->context == nullptr) continue;
    add(comm->context, sizeof(Context), "the context of a group");
    for (uint32_t r = 0; r < comm->ranks; ++r)
      add(comm->group->window_of(r), comm->group->window(), comm->names[r].c_str());
  }
  return count;
}

pto::host::WindowPlace pto::host::window_at(const void* address) {
  const std::lock_guard<std::mutex> held(comms_lock);
  for (const Comm* comm : comms) {
    const Group& group = *comm->group;
    const uint64_t from = static_cast<uint64_t>(static_cast<const char*>(address) - group.window_of(0));
    const uint64_t rank = from / group.window();
    if (rank < comm->ranks) return {group.board().token, rank, from % group.window(), rank == comm->rank};
  }
  return {};
}

PTO_EXPORT HcclResult HcclGetRootInfo(HcclRootInfo* root) {
  if (root == nullptr) return HCCL_E_PTR;
  Root told{};
  if (getrandom(&told.token, sizeof told.token, 0) != sizeof told.token) return HCCL_E_INTERNAL;
  const int file = Group::make(kMostRanks, window_size(), told.token);
  if (file < 0) return HCCL_E_MEMORY;
  std::memcpy(told.magic, kRoot, sizeof kRoot);
  told.process = getpid(), told.file = file;
  std::memset(root, 0, sizeof *root);
  std::memcpy(root->internal, &told, sizeof told);
  return HCCL_SUCCESS;
}

PTO_EXPORT HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                                           HcclComm* into) {
  Root told;
  if (root == nullptr || into == nullptr) return HCCL_E_PTR;
  std::memcpy(&told, root->internal, sizeof told);
  if (std::memcmp(told.magic, kRoot, sizeof kRoot) != 0 || told.process <= 0 || rank >= ranks ||
      ranks > kMostRanks) {
    std::fprintf(
        stderr,
        "[PTO-E2420] HcclCommInitRootInfo: rank %u of %u, or a root info that HcclGetRootInfo did not make\n",
        rank, ranks);
    return HCCL_E_PARA;
  }
  Group* group = Group::open(told.process, told.file, told.token);
  if (group == nullptr || !group->join(rank, ranks)) {  // every member passes the same number of ranks
    std::fprintf(stderr, "[PTO-E2420] HcclCommInitRootInfo: the process of the root is gone\n");
    return HCCL_E_INTERNAL;
  }
  auto* comm = new Comm{group, rank, ranks, nullptr, {}};
  for (uint32_t r = 0; r < ranks; ++r) comm->names.push_back("the window of rank " + std::to_string(r));
  {
    const std::lock_guard<std::mutex> held(comms_lock);
    comms.push_back(comm);
  }
  *into = comm;
  group->meet();
  return HCCL_SUCCESS;
}

PTO_EXPORT HcclResult HcclCommDestroy(HcclComm given) {
  Comm* comm = comm_of(given);
  if (comm == nullptr) return HCCL_E_PARA;
  const std::lock_guard<std::mutex> held(comms_lock);
  std::erase(comms, comm);
  comm->group->leave();
  std::free(comm->context);
  delete comm;
  return HCCL_SUCCESS;
}

PTO_EXPORT HcclResult HcclGetCommName(HcclComm given, char* name) {
  if (comm_of(given) == nullptr || name == nullptr) return HCCL_E_PARA;
  std::snprintf(name, 128, "pto-%p", given);
  return HCCL_SUCCESS;
}
PTO_EXPORT HcclResult HcclGetRankSize(HcclComm given, uint32_t* ranks) {
  Comm* comm = comm_of(given);
  if (comm == nullptr) return HCCL_E_PARA;
  *ranks = comm->ranks;
  return HCCL_SUCCESS;
}
PTO_EXPORT HcclResult HcclGetRankId(HcclComm given, uint32_t* rank) {
  Comm* comm = comm_of(given);
  if (comm == nullptr) return HCCL_E_PARA;
  *rank = comm->rank;
  return HCCL_SUCCESS;
}
PTO_EXPORT HcclResult HcclBarrier(HcclComm given, aclrtStream) {
  Comm* comm = comm_of(given);
  if (comm == nullptr) return HCCL_E_PARA;
  comm->group->meet();
  return HCCL_SUCCESS;
}

// Calls of the layer below, which programs declare themselves.
PTO_EXPORT HcclResult HcomGetCommHandleByGroup(const char* name, HcclComm* into) {
  void* found = nullptr;
  if (std::sscanf(name, "pto-%p", &found) != 1 || comm_of(found) == nullptr) return HCCL_E_PARA;
  *into = found;
  return HCCL_SUCCESS;
}
/// Return 1, a mesh: the next call then returns the context structure that kernels expect.
PTO_EXPORT HcclResult HcomGetL0TopoTypeEx(const char*, uint32_t* topology, uint32_t) {
  *topology = 1;
  return HCCL_SUCCESS;
}
PTO_EXPORT HcclResult HcclAllocComResourceByTiling(HcclComm given, void*, void*, void** context) {
  Comm* comm = comm_of(given);
  if (comm == nullptr || context == nullptr) return HCCL_E_PARA;
  if (comm->context == nullptr) {
    auto* made = static_cast<Context*>(std::calloc(1, sizeof(Context)));
    if (made == nullptr) return HCCL_E_MEMORY;
    made->rank = comm->rank, made->ranks = comm->ranks;
    made->window = comm->group->window();
    for (uint32_t r = 0; r < comm->ranks; ++r)
      made->windows_in[r] = made->windows_out[r] = reinterpret_cast<uint64_t>(comm->group->window_of(r));
    const std::lock_guard<std::mutex> held(comms_lock);
    comm->context = made;
  }
  *context = comm->context;
  return HCCL_SUCCESS;
}
