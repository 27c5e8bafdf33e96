// Machines for programs in C (pto/object.h). A machine resolves the calls of kernels in machine code, and
// launches the kernels.
#include "pto/object.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "vm.hpp"

namespace {

using Find = void* (*)(uint64_t key);

/// A kernel whose calls are resolved. The key of its image and the address of its code identify it, because
/// another library may be loaded in the place of an unloaded one.
struct Ready {
  uint64_t key;
  pto_program program;
  pto_code codes[2];
  Ready* next;
  void* functions[1];  // call_count of them
};

int failed(pto_launch* launch, const char* what, const char* name) {
  launch->status = 1;
  if (launch->error_size > 0) std::snprintf(launch->error, launch->error_size, "%s%s", what, name);
  return 1;
}

}  // namespace

struct pto_machine {
  int (*run)(pto_launch* launch, const pto_object* object,
             const pto_machine* machine);  // must be first: entries call it
  mutable pthread_mutex_t lock;
  mutable Ready* ready;
  int count;
  void* libraries[1];  // `count` of them
};

namespace {

/// Resolve the calls of a kernel. Return null without memory, or if a call is missing: `missing` is its name.
Ready* made_ready(const pto_object& object, const pto_machine& machine, const char*& missing) {
  auto* ready = static_cast<Ready*>(std::malloc(sizeof(Ready) + object.call_count * sizeof(void*)));
  if (ready == nullptr) return nullptr;
  const char* name = object.names;
  for (uint32_t i = 0; i < object.call_count; ++i, name += std::strlen(name) + 1) {
    void* found = pto_vm_own(name);
    for (int n = 0; n < machine.count && found == nullptr; ++n) {
      const auto find = reinterpret_cast<Find>(dlsym(machine.libraries[n], "pto_pack_find"));
      found = find(object.keys[i]);
    }
    if (found == nullptr) {
      missing = name;
      std::free(ready);
      return nullptr;
    }
    ready->functions[i] = found;
  }
  ready->key = object.key;
  std::memcpy(ready->codes, object.codes, object.code_count * sizeof(pto_code));
  ready->program = {*object.target, ready->functions, ready->codes, object.code_count,
                    nullptr};  // `kinds` is for the interpreter only
  return ready;
}

int run_object(pto_launch* launch, const pto_object* object, const pto_machine* machine) {
  if (object->version != pto::vm::kObjectVersion)
    return failed(launch, "[PTO-E2405] the kernel is of another release: make its object again", "");
  const char* missing = nullptr;
  pthread_mutex_lock(&machine->lock);
  Ready* ready = machine->ready;
  while (ready != nullptr && (ready->key != object->key || ready->codes[0].run != object->codes[0].run))
    ready = ready->next;
  if (ready == nullptr) {
    ready = made_ready(*object, *machine, missing);
    if (ready != nullptr) {
      ready->next = machine->ready;
      machine->ready = ready;
    }
  }
  pthread_mutex_unlock(&machine->lock);
  if (ready == nullptr)
    return missing != nullptr ? failed(launch, "[PTO-E2401] missing in all packs of the machine: ", missing)
                              : failed(launch, "no memory for the kernel", "");
  const void* given = launch->program;
  launch->program = &ready->program;
  const int status = pto_launch_image(launch);
  launch->program = given;
  return status;
}

/// Load a pack. Return null, or the reason why it cannot be used. `libraries` has room for one pack more than
/// the caller names. The path is made absolute, because dlopen searches LD_LIBRARY_PATH for a plain name.
const char* add_pack(pto_machine& machine, const char* path) {
  char* whole = realpath(path, nullptr);
  if (whole == nullptr) return std::strerror(errno);
  void* library = dlopen(whole, RTLD_NOW);
  std::free(whole);
  if (library == nullptr) return dlerror();
  if (dlsym(library, "pto_pack_find") == nullptr) {
    dlclose(library);
    return "no library of calls; 'pto build k.o -o calls.so' makes one";
  }
  machine.libraries[machine.count++] = library;
  return nullptr;
}

/// Make the path of libpto_pack_LEVEL.so, which may exist beside libpto_vm_LEVEL.so.
bool pack_of_package(char* path, size_t size) {
  constexpr char kOwn[] = "libpto_vm_", kPack[] = "libpto_pack_";
  Dl_info found;
  if (dladdr(reinterpret_cast<void*>(&pto_launch_image), &found) == 0) return false;
  const char* last = std::strrchr(found.dli_fname, '/');
  const char* name = last != nullptr ? last + 1 : found.dli_fname;
  if (std::strncmp(name, kOwn, sizeof kOwn - 1) != 0) return false;
  const int length = std::snprintf(path, size, "%.*s%s%s", static_cast<int>(name - found.dli_fname),
                                   found.dli_fname, kPack, name + sizeof kOwn - 1);
  return length > 0 && static_cast<size_t>(length) < size;
}

}  // namespace

#define PTO_EXPORT extern "C" __attribute__((visibility("default")))

PTO_EXPORT pto_machine* pto_machine_open(const char* const* packs, int count, char* error,
                                         size_t error_size) {
  const size_t most = count < 0 ? 0 : static_cast<size_t>(count);
  auto* machine = static_cast<pto_machine*>(std::calloc(1, sizeof(pto_machine) + most * sizeof(void*)));
  if (machine == nullptr) return nullptr;
  machine->run = run_object;
  pthread_mutex_init(&machine->lock, nullptr);
  for (int n = 0; n < count; ++n) {
    const char* why = add_pack(*machine, packs[n]);
    if (why == nullptr) continue;
    if (error_size > 0) std::snprintf(error, error_size, "%s: %s", packs[n], why);
    pto_machine_close(machine);
    return nullptr;
  }
  char path[4096];
  if (pack_of_package(path, sizeof path)) add_pack(*machine, path);
  return machine;
}

PTO_EXPORT void pto_machine_close(pto_machine* machine) {
  if (machine == nullptr) return;
  while (machine->ready != nullptr) {
    Ready* ready = machine->ready;
    machine->ready = ready->next;
    std::free(ready);
  }
  for (int n = 0; n < machine->count; ++n) dlclose(machine->libraries[n]);
  pthread_mutex_destroy(&machine->lock);
  std::free(machine);
}

/// Copy the description of a kernel to the program of a launch. Used as `run` of a machine by callers that
/// resolve the calls themselves.
PTO_EXPORT int pto_object_describe(pto_launch* launch, const pto_object* object, const pto_machine*) {
  auto* into = static_cast<char*>(const_cast<void*>(launch->program));
  if (object->version != pto::vm::kObjectVersion) return 1;
  std::memcpy(into, object, offsetof(pto_object, codes) + object->code_count * sizeof(pto_code));
  return 0;
}
