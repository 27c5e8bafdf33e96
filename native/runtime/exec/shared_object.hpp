// A shared object compiled from user code. It is loaded with local symbols, so its symbols cannot be confused
// with those of this library or of another shared object.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "fault.hpp"

namespace pto2 {

/// Return the executable segment that contains `function`; empty if unknown.
inline Text text_around(uint64_t function) {
  struct Search {
    uint64_t function;
    Text found;
  } search{function, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const uint64_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          if (s.function < begin || s.function >= begin + part.p_memsz) continue;
          s.found.begin = begin;
          s.found.end = begin + part.p_memsz;
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

/// Return the file behind a name: a descriptor, /proc/PID/fd/N, is a link to its file.
inline std::string file_of(const std::string& name) {
  char target[4096];
  const ssize_t size = name.starts_with("/proc/") ? readlink(name.c_str(), target, sizeof target) : -1;
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : name;
}

class SharedObject {
 public:
  explicit SharedObject(const std::string& name)
      : path_(file_of(name)), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      std::string why = dlerror();
      if (why.starts_with(name)) why.replace(0, name.size(), path_);
      throw std::runtime_error("cannot load: " + why);
    }
    // Show debuggers and dladdr the name of the file, because the descriptor will be closed.
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map_) != 0 || map_->l_name != name) map_ = nullptr;
    if (map_ != nullptr) name_ = std::exchange(map_->l_name, path_.data());
  }
  ~SharedObject() {
    if (map_ != nullptr) map_->l_name = name_;
    if (handle_ != nullptr) dlclose(handle_);
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  /// Return the exported symbol, or null if there is none.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  template <class Function>
  Function* get(const char* name) const {
    auto* found = find<Function>(name);
    if (found == nullptr) throw std::runtime_error(path_ + " does not export '" + name + "'");
    return found;
  }

  /// Return the load address; 0 if unknown.
  uint64_t base() const {
    link_map* map = nullptr;
    return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_addr : 0;
  }

  /// Return the address range of the code; empty if unknown.
  Text text() const {
    struct Search {
      uint64_t base;
      Text found;
    } search{};
    search.base = base();
    if (search.base == 0) return {};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
          auto& s = *static_cast<Search*>(data);
          if (info->dlpi_addr != s.base) return 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
            s.found.begin = info->dlpi_addr + part.p_vaddr;
            s.found.end = s.found.begin + part.p_memsz;
          }
          return 1;
        },
        &search);
    return search.found;
  }

 private:
  std::string path_;
  void* handle_;
  link_map* map_ = nullptr;  // set if we replaced its name, which the destructor restores
  char* name_ = nullptr;     // the name that dlopen allocated
};

}  // namespace pto2
