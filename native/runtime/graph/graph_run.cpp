#include "graph_run.hpp"

#include <cstring>

#include "cycle.hpp"
#include "pto2/platform/common/task_graph.h"

namespace pto2 {

namespace {

constexpr int kFunctions = 64;
constexpr size_t kNamesOfCycle = 12;  // of a longer cycle, the first ten and the last two tasks are listed

ExecOptions sized(ExecOptions options) {
  options.queue = RUNTIME_MAX_TASKS;  // any number of tasks may be ready; pages are mapped on first access
  return options;
}

pto2::CoreType core_type(const Task& task) {
  return task.core_type == ::CoreType::AIC ? CoreType::Aic : CoreType::Aiv;
}

}  // namespace

GraphRun::GraphRun(const GraphOptions& options, const Kernels& kernels, Log& log)
    : options_(options),
      kernels_(kernels),
      log_(log),
      table_(std::make_shared<TaskTable>(kFunctions)),
      exec_(sized(options.exec), *this, kernels) {
  if (options.exec.record) records_ = std::make_unique<ZeroedArray<TaskRecord>>(RUNTIME_MAX_TASKS);
}

int GraphRun::tasks() const { return table_->get_task_count(); }

int64_t GraphRun::edge_count() const {
  int64_t count = 0;
  for (int id = 0; id < tasks(); ++id) count += table_->tasks[id].fanout_count;
  return count;
}

void GraphRun::run(const std::function<void()>& build) {
  const BuildScope scope(*this);
  exec_.run([&] {
    build();
    if (table_->get_error_count() > 0) {
      exec_.fail(ErrorCode::InvalidArgs, table_->get_first_error());
      throw Aborted();
    }
    if (!options_.concurrent) release_all();
  });
  if (!failure().failed()) check_all_ran();
  if (!failure().failed()) copy_back();
  if (records_) keep_records();
  memory_.clear();
}

// --- building ----------------------------------------------------------------------------------------------

int GraphRun::add_task(const uint64_t* args, int count, int func_id, CoreType type, const char* file,
                       int line) {
  exec_.throw_if_failed();
  const int id = table_->append(args, count, func_id,
                                type == CoreType::Aic ? ::CoreType::AIC : ::CoreType::AIV, file, line);
  exec_.pause().point();
  return id;
}

void GraphRun::add_array(uint64_t address, uint64_t begin, uint64_t bytes) {
  const std::unique_lock lock(adding_);
  arrays_[address] = {reinterpret_cast<void*>(begin), bytes, "its array", 0};
}

void GraphRun::add_edge(int from, int to) {
  exec_.throw_if_failed();
  if (options_.concurrent) exec_.spend(Phase::OrchFanin);
  table_->append_edge(from, to);
  exec_.pause().point();
}

void GraphRun::publish(int id) {
  exec_.throw_if_failed();
  if (options_.concurrent) {
    exec_.spend(&VirtualCosts::orchestration);
    exec_.spend(Phase::OrchAlloc);
    exec_.spend(Phase::OrchParams);
    exec_.spend(Phase::OrchFinalize);
    exec_.catch_up();
  }
  if (!table_->mark_published(id)) return;
  Task& task = table_->tasks[id];
  task.func_id = kernel_of(task);
  if (records_) (*records_)[static_cast<size_t>(id)].submit = exec_.now();
  if (!options_.concurrent) return;
  if (table_->satisfied(id)) {
    exec_.count(1);
    make_ready(id, -1);
    exec_.published();
  }
  exec_.pause().point();
}

/// Check that the complete graph can finish, then start it.
void GraphRun::release_all() {
  check_publishing();
  exec_.throw_if_failed();
  const std::vector<int> cycle = circle();
  if (!cycle.empty()) {
    exec_.fail(ErrorCode::Cycle, cycle_text(cycle));
    throw Aborted();
  }
  int found = 0;
  for (int id = 0; id < table_->get_task_count(); ++id) {
    if (table_->tasks[id].published.load() == 0 || !table_->satisfied(id)) continue;
    exec_.count(1);
    make_ready(id, -1);
    if (++found <= options_.exec.host_threads) exec_.published();
    exec_.pause().point();
  }
}

/// Return the number of the kernel of a task. A task may name its kernel by address.
int GraphRun::kernel_of(const Task& task) {
  int found = task.func_id;
  const auto address = [&](int id) { return reinterpret_cast<uint64_t>(kernels_.find(id)); };
  if (task.function_bin_addr != 0 && task.function_bin_addr != address(found)) {
    for (found = 0; found < kernels_.end() && address(found) != task.function_bin_addr;) ++found;
  }
  const Kernel* kernel = kernels_.find(found);
  std::string what;
  if (kernel == nullptr) {
    what = found == task.func_id ? "no kernel has func_id " + std::to_string(found)
                                 : "function_bin_addr is not the address of a kernel";
  } else if (kernel->core_type >= 0 && kernel->core_type != static_cast<int>(core_type(task))) {
    what = std::string("the kernel is for ") + (kernel->core_type == 0 ? "AIC" : "AIV") +
           " cores and was added for " + (kernel->core_type == 0 ? "AIV" : "AIC");
  }
  if (what.empty()) return found;
  exec_.fail(ErrorCode::InvalidArgs, task_text(task.task_id) + ": " + what);
  throw Aborted();
}

// --- running -----------------------------------------------------------------------------------------------

/// Queue a task that has been counted.
void GraphRun::make_ready(int id, int from) {
  if (records_) (*records_)[static_cast<size_t>(id)].ready = exec_.now();
  VirtualTime* virtual_time = exec_.virtual_time();
  if (virtual_time != nullptr && from >= 0) {
    virtual_time->ready(id, from);
  } else {
    hand_on(id, from);
  }
}

void GraphRun::hand_on(int64_t id, int from) {
  exec_.ready(id, core_type(table_->tasks[static_cast<int>(id)]), -1, from);
}

void GraphRun::fill(int64_t ticket, DispatchPayload& payload, int) {
  const Task& task = table_->tasks[static_cast<int>(ticket)];
  payload.task_id = ticket;
  payload.kernel_id = task.func_id;
  payload.function_bin_addr = task.function_bin_addr;
  payload.num_args = task.num_args;
  std::memcpy(payload.args, task.args, sizeof(uint64_t) * static_cast<size_t>(task.num_args));
  payload.block_idx = 0;
  payload.block_num = 1;
}

/// Return the allocations and arrays that arguments point to.
int GraphRun::memory(const DispatchPayload& payload, pto_array* out) const {
  const std::shared_lock lock(adding_);
  int count = 0;
  for (int i = 0; i < payload.num_args; ++i) {
    const auto address = static_cast<uint64_t>(payload.args[i]);
    if (memory_.block(address, out[count])) {
      ++count;
    } else if (auto at = arrays_.upper_bound(address); at != arrays_.begin()) {
      const pto_array& array = (--at)->second;
      const uint64_t offset = address - reinterpret_cast<uint64_t>(array.data);
      if (address == at->first || offset < array.bytes) out[count++] = array;
    }
  }
  return count;
}

/// Arguments are untyped words: the largest one that is not above the access is likely the address.
bool GraphRun::judge(const DispatchPayload& payload, UseRecord& use) const {
  uint64_t nearest = 0;
  for (int i = 0; i < payload.num_args; ++i) {
    const auto word = static_cast<uint64_t>(payload.args[i]);
    if (word < nearest || word > use.first || word < 4096) continue;
    nearest = word;
    use.arg = i;
  }
  return true;
}

bool GraphRun::completed(int64_t id, int scheduler) {
  completed_.fetch_add(1, std::memory_order_relaxed);
  if (exec_.virtual_time() != nullptr) {
    const int waiting = table_->tasks[static_cast<int>(id)].fanout.size();
    for (int n = 0; n < waiting; ++n) exec_.spend(&VirtualCosts::resolve);
  }
  table_->complete(static_cast<int>(id), [&](int next) {
    exec_.count(1);
    make_ready(next, scheduler);
  });
  exec_.pause().point();
  return true;
}

void GraphRun::set_callers(Callers callers) {
  callers_ = std::move(callers);
  table_->listener = this;
  table_->added = [](void* run) {
    auto& self = *static_cast<GraphRun*>(run);
    self.chains_.push_back(self.callers_());
  };
}

TaskRecord* GraphRun::record(int64_t id) {
  if (!records_) return nullptr;
  const Task& task = table_->tasks[static_cast<int>(id)];
  TaskRecord& record = (*records_)[static_cast<size_t>(id)];
  record.task_id = id;
  record.func_id = task.func_id;
  record.scope = record.cluster = record.block = -1;
  record.site = static_cast<int32_t>(id);
  return &record;
}

// --- ending ------------------------------------------------------------------------------------------------

/// Check that every task has run. A run without a failure has run every task that can run.
void GraphRun::check_all_ran() {
  if (!options_.concurrent || completed_tasks() == table_->get_task_count()) return;
  const std::vector<int> cycle = circle();
  if (!cycle.empty()) {
    exec_.fail(ErrorCode::Cycle, cycle_text(cycle));
    return;
  }
  check_publishing();
}

/// Check that no published task waits for an unpublished task.
void GraphRun::check_publishing() {
  int hidden = 0;
  for (int id = 0; id < table_->get_task_count(); ++id) {
    const Task& task = table_->tasks[id];
    if (task.published.load() != 0) continue;
    ++hidden;
    for (const int next : task.fanout) {
      if (table_->tasks[next].published.load() == 0) continue;
      exec_.fail(ErrorCode::Stuck,
                 task_text(next) + " waits for " + task_text(id) + ", which was never published");
      return;
    }
  }
  if (hidden == 0) return;
  log_(Level::Warn, "graph", "%d of %d tasks were never published and do not run", hidden,
       table_->get_task_count());
}

std::vector<int> GraphRun::circle() const {
  const TaskTable& table = *table_;
  return find_cycle(
      table.get_task_count(),
      [&](int id, const auto& visit) {
        for (const int next : table.tasks[id].fanout) visit(next);
      },
      [&](int id) { return table.tasks[id].completed.load() != 0 || table.tasks[id].published.load() == 0; });
}

void GraphRun::copy_back() {
  for (int i = 0; i < table_->get_tensor_pair_count(); ++i) {
    const TensorPair& pair = table_->get_tensor_pairs()[i];
    if (BuildScope::copy_from_device(pair.host_ptr, pair.dev_ptr, pair.size) != 0) {
      exec_.fail(ErrorCode::InvalidArgs, table_->get_first_error());
    }
  }
}

void GraphRun::keep_records() {
  for (int id = 0; id < table_->get_task_count(); ++id) {
    const Task& task = table_->tasks[id];
    sites_.push_back(task.site_file[0] == '\0' ? ""
                                               : task.site_file + (":" + std::to_string(task.site_line)));
    for (const int next : task.fanout) edges_.push_back({id, next, -1, 3});
  }
}

// --- texts -------------------------------------------------------------------------------------------------

std::string GraphRun::task_text(int id) const {
  const Task& task = table_->tasks[id];
  const Kernel* kernel = kernels_.find(task.func_id);
  std::string text = "task " + std::to_string(id) + " (" +
                     (kernel != nullptr ? kernel->name : "func_id " + std::to_string(task.func_id));
  if (task.site_file[0] != '\0')
    text += std::string(", added at ") + task.site_file + ":" + std::to_string(task.site_line);
  return text + ")";
}

std::string GraphRun::cycle_text(const std::vector<int>& cycle) const {
  std::string text = "the graph has a cycle of " + std::to_string(cycle.size()) + " tasks:\n";
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (i + 2 >= kNamesOfCycle && i + 2 < cycle.size()) {
      if (i + 2 == kNamesOfCycle) text += "  ...\n";
      continue;
    }
    text += "  " + task_text(cycle[i]) + " comes before\n";
  }
  return text + "  " + task_text(cycle[0]);
}

// --- calls of user code without a runtime argument ---------------------------------------------------------

namespace {
thread_local GraphRun* building = nullptr;
}

BuildScope::BuildScope(GraphRun& run) : previous_(building) {
  static const bool bound = (pto2_bind_log(&log_line), true);  // log lines of the code in task_graph.h
  (void)bound;
  building = &run;
}
BuildScope::~BuildScope() { building = previous_; }

GraphRun* BuildScope::current() { return building; }

void BuildScope::log_line(int level, const char* function, const char* text) {
  if (building != nullptr) building->log()(static_cast<Level>(level), function, "%s", text);
}

void* BuildScope::device_malloc(size_t size) {
  if (building == nullptr) return nullptr;
  void* memory = building->memory().allocate(size, building->options().poison);
  if (memory == nullptr) building->table().refuse("[Runtime] device_malloc: no memory for %zu bytes", size);
  return memory;
}

void BuildScope::device_free(void* pointer) {
  if (building == nullptr || pointer == nullptr || building->memory().release(pointer)) return;
  building->table().refuse("[Runtime] device_free: %p was not allocated by device_malloc, or freed before",
                           pointer);
}

int BuildScope::copy_to_device(void* device, const void* host, size_t size) {
  if (building == nullptr) return -1;
  if (size != 0 && (host == nullptr || !building->memory().holds(device, size))) {
    return building->table().refuse("[Runtime] copy_to_device: %zu bytes at %p are not inside an allocation",
                                    size, device);
  }
  if (size != 0) std::memcpy(device, host, size);
  return 0;
}

int BuildScope::copy_from_device(void* host, const void* device, size_t size) {
  if (building == nullptr) return -1;
  if (size != 0 && (host == nullptr || !building->memory().holds(device, size))) {
    return building->table().refuse(
        "[Runtime] copy_from_device: %zu bytes at %p are not inside an allocation", size, device);
  }
  if (size != 0) std::memcpy(host, device, size);
  return 0;
}

}  // namespace pto2
