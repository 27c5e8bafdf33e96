// A shared object that was compiled from users' code. Loaded for itself alone: nothing in it can be mistaken
// for something of ours or of another one.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace pto2 {

class SharedObject {
 public:
  explicit SharedObject(const std::string& path)
      : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(std::string("cannot load: ") + dlerror());
  }
  ~SharedObject() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  /// Null if it exports no such name.
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

 private:
  std::string path_;
  void* handle_;
};

}  // namespace pto2
