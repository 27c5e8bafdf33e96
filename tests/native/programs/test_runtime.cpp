// Tests the parts of the task runtime one by one: layouts, rings, pools, TensorMap, clusters, registers,
// queues. test_runtime_runs.cpp tests them in runs; it is compiled into the same program.
//
//   test_runtime            all checks
//   test_runtime NAME...    these checks
//   test_runtime --list     names, each with its topic of the runtime's description
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "check.hpp"
#include "exec/run_groups.hpp"
#include "pto2/platform/common/platform_config.h"
#include "pto2/tensormap_and_ringbuffer/pto_runtime2_types.h"
#include "tensormap/tensormap_graph.hpp"

namespace {

using namespace pto2;

uint64_t up64(uint64_t n) { return (n + 63) & ~uint64_t{63}; }

// --- shared memory -----------------------------------------------------------------------------------------

CHECKS(shared_memory_layout, "Shared memory layout") {
  for (const uint64_t window : {4, 16, 1024}) {
    for (const uint64_t pool : {16, 17, 1000}) {
      const SharedMemory memory(window, 4096, pool);
      const auto* start = reinterpret_cast<const char*>(&memory.header());
      const auto* tasks = reinterpret_cast<const char*>(&memory.task(0));
      const auto* entries = reinterpret_cast<const char*>(&memory.entry(0));
      EQUAL(tasks - start, up64(sizeof(SharedMemoryHeader)));
      EQUAL(entries - tasks, up64(window * sizeof(TaskDescriptor)));
      const uint64_t total = up64(sizeof(SharedMemoryHeader)) + up64(window * sizeof(TaskDescriptor)) +
                             up64((pool + 1) * sizeof(DepListEntry));
      EQUAL(memory.header().total_size, total);
      EQUAL(SharedMemory::size(window, pool), total);
      for (const char* part : {start, tasks, entries})
        EQUAL(reinterpret_cast<uint64_t>(part) % PTO2_ALIGN_SIZE, 0);
      CHECK(reinterpret_cast<const char*>(&memory.entry(static_cast<int32_t>(pool)) + 1) <= start + total);
      EQUAL(memory.header().task_window_size, window);
      EQUAL(memory.header().heap_size, 4096);
      EQUAL(memory.header().dep_list_pool_size, pool);
      EQUAL(memory.header().task_descriptors_offset, tasks - start);
      EQUAL(memory.header().dep_list_pool_offset, entries - start);
      EQUAL(memory.entry(0).producer, -1);  // entry 0 ends lists
      EQUAL(memory.entry(0).task_id, -1);
      EQUAL(memory.entry(0).next_fanout, 0);
      EQUAL(memory.entry(0).next_fanin, 0);
    }
  }
}

CHECKS(shared_memory_defaults, "Shared memory layout, constants") {
  const TensormapOptions defaults;
  EQUAL(defaults.task_window, 65536);
  EQUAL(defaults.heap, 1024 * 1024 * 1024);
  EQUAL(defaults.dep_pool, 65536);
  EQUAL(defaults.tensormap_pool, 65536);
  EQUAL(defaults.tensormap_buckets, 65536);
  EQUAL(defaults.exec.shards, 3);
  EQUAL(defaults.exec.schedulers, 3);
  EQUAL(defaults.exec.block_dim, 24);
  EQUAL(kAlign, PTO2_ALIGN_SIZE);
  EQUAL(kPackedOutputAlign, PTO2_PACKED_OUTPUT_ALIGN);
  EQUAL(kMaxScopeDepth, PTO2_MAX_SCOPE_DEPTH);
  EQUAL(kFewParams, PTO2_MAX_INPUTS);
  const SharedMemory memory(16, 4096, 16);
  EQUAL(memory.header().current_task_index.load(), 0);
  EQUAL(memory.header().last_task_alive.load(), 0);
  EQUAL(memory.header().heap_top.load(), 0);
  EQUAL(memory.header().heap_tail.load(), 0);
  EQUAL(memory.header().orchestrator_done.load(), 0);
}

CHECKS(constants_that_sources_may_name, "Platform constants, constants") {
  EQUAL(PLATFORM_MAX_BLOCKDIM, 24);
  EQUAL(PLATFORM_MAX_AICPU_THREADS, 4);
  EQUAL(PLATFORM_MAX_AIC_PER_THREAD, 24);
  EQUAL(PLATFORM_MAX_AIV_PER_THREAD, 48);
  EQUAL(PLATFORM_MAX_CORES, 72);
  EQUAL(PLATFORM_PROF_SYS_CNT_FREQ, 50'000'000);
  EQUAL(cycles_to_us(50), 1);
  EQUAL(PTO2_TASK_WINDOW_SIZE, 65536);
  EQUAL(PTO2_HEAP_SIZE, 1 << 30);
  EQUAL(PTO2_DEP_LIST_POOL_SIZE, 65536);
  EQUAL(PTO2_TENSORMAP_POOL_SIZE, 65536);
  EQUAL(PTO2_TENSORMAP_NUM_BUCKETS, 65536);
  EQUAL(PTO2_TENSORMAP_CLEANUP_INTERVAL, 64);
  EQUAL(PTO2_ALIGN_SIZE, 64);
  EQUAL(PTO2_PACKED_OUTPUT_ALIGN, 1024);
  EQUAL(PTO2_ALIGN_UP(1000, PTO2_ALIGN_SIZE), 1024);
  EQUAL(PTO2_MAX_SCOPE_DEPTH, 64);
  EQUAL(PTO2_MAX_INPUTS, 16);
  EQUAL(PTO2_BLOCK_NOTIFY_INTERVAL, 10000);
  EQUAL(PTO2_FLOW_CONTROL_SPIN_LIMIT, 100000);
  EQUAL(PTO2_HEAP_SPIN_LIMIT, 100000);
  EQUAL(kInitial, 0);  // task states
  EQUAL(kReady, 1);
  EQUAL(kCompleted, 2);
  EQUAL(kConsumed, 3);
}

CHECKS(slot_of_a_task, "Task ring") {
  const SharedMemory memory(16, 4096, 16);
  for (int64_t id = 0; id < 208; ++id) {
    EQUAL(memory.slot(id), id & 15);
    CHECK(&memory.task(id) == &memory.task(id % 16));
  }
  CHECK(&memory.task(207) != &memory.task(206));
}

// --- heap ring ---------------------------------------------------------------------------------------------

CHECKS(heap_ring_wraps_whole_blocks, "Heap ring") {
  SharedMemory memory(16, 4096, 16);
  HeapRing heap(4096, memory.header());
  HeapBlock a, b, c;
  CHECK(heap.try_allocate(1000, a));  // counted as 1024: blocks start at multiples of 64
  EQUAL(a.end - a.base, 1024);
  CHECK(heap.try_allocate(2048, b));
  EQUAL(b.base, 1024);
  EQUAL(heap.available(), 1024);
  CHECK(!heap.try_allocate(1025, c));  // fits neither after `b` nor, while `a` lives, at the start
  memory.header().heap_tail = a.end;
  EQUAL(heap.available(), 1024);
  CHECK(!heap.try_allocate(1088, c));  // 1024 at the end and 1024 at the start are not one block
  CHECK(heap.try_allocate(512, c));
  EQUAL(heap.address(c.base) - heap.address(0), 3072);
  CHECK(heap.try_allocate(1024, c));  // does not fit behind: starts again at 0, the rest is skipped
  EQUAL(heap.address(c.base) - heap.address(0), 0);
  EQUAL(heap.used(), 4096);
  EQUAL(heap.available(), 0);
  CHECK(!heap.try_allocate(64, c));
  memory.header().heap_tail = c.end;
  EQUAL(heap.used(), 0);
  CHECK(!heap.try_allocate(4097, c));  // larger than the heap
}

/// Compare with a list of the live blocks.
CHECKS(heap_ring_random, "Heap ring") {
  uint64_t state = 7;
  const auto below = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (const uint64_t size : {1024, 4096, 65536, 5000}) {
    SharedMemory memory(16, size, 16);
    HeapRing heap(size, memory.header());
    std::deque<HeapBlock> alive;
    int failed = 0, given = 0;
    for (int i = 0; i < 20000; ++i) {
      if (!alive.empty() && below(100) < 48) {
        memory.header().heap_tail = alive.front().end;
        alive.pop_front();
        continue;
      }
      const uint64_t bytes = up64(1 + below(size / 3));
      HeapBlock block;
      const uint64_t available = heap.available();
      const bool got = heap.try_allocate(bytes, block);
      CHECK(got == (bytes <= available));
      if (!got) {
        ++failed;
        continue;
      }
      ++given;
      const auto first = static_cast<uint64_t>(heap.address(block.base) - heap.address(0));
      CHECK(first + bytes <= size);  // in one piece
      EQUAL(first % 64, 0);
      for (const HeapBlock& other : alive) {
        const auto begin = static_cast<uint64_t>(heap.address(other.base) - heap.address(0));
        CHECK(first + bytes <= begin || begin + (other.end - other.base) <= first);
      }
      alive.push_back(block);
      CHECK(heap.used() <= size);
    }
    CHECK(failed > 100 && given > 100);
    CHECK(heap.peak() <= size && heap.peak() > size / 2);
  }
}

// --- dependency pool ---------------------------------------------------------------------------------------

CHECKS(dep_pool_never_gives_what_is_in_use, "Dependency pool") {
  DepPool pool(16);
  std::deque<std::pair<int32_t, uint64_t>> alive;  // offset, position after it was taken
  for (int round = 0; round < 10; ++round) {
    while (true) {
      CHECK(pool.has(16 - alive.size()) && !pool.has(17 - alive.size()));
      const int32_t offset = pool.take();
      if (offset == 0) break;
      CHECK(offset >= 1 && offset <= 16);  // 0 ends lists
      for (const auto& [other, position] : alive) CHECK(other != offset);
      alive.emplace_back(offset, pool.position());
    }
    EQUAL(alive.size(), 16);
    for (int k = 0; k < 5 + round; ++k) {
      pool.release_to(alive.front().second);
      alive.pop_front();
    }
    EQUAL(pool.used(), alive.size());
  }
  EQUAL(pool.peak(), 16);
}

// --- TensorMap ---------------------------------------------------------------------------------------------

/// Rows from `begin` up to but not including `end` of a buffer of 16 rows.
struct Rows {
  TensorData data{};
  Rows(uint64_t address, uint64_t begin, uint64_t end) {
    const uint64_t raw[2] = {16, 8}, shapes[2] = {end - begin, 8}, offsets[2] = {begin, 0};
    data.init(reinterpret_cast<void*>(address), 512, raw, shapes, offsets, 2, DataType::FLOAT32, 0);
  }
};

std::string found(TensorMap& map, const Rows& rows, bool writes, int64_t alive) {
  std::string out;
  map.lookup(rows.data, writes, alive, [&](int64_t producer, OverlapStatus status) {
    out += std::to_string(producer) + (status == OverlapStatus::COVERED ? "c " : "o ");
  });
  return out;
}

CHECKS(tensor_map_covered_and_other, "TensorMap") {
  TensorMap map(64, 16, 16);
  const Rows low(0x1000, 0, 4), middle(0x1000, 2, 10), whole(0x1000, 0, 16), high(0x1000, 12, 16);
  const Rows elsewhere(0x2000, 0, 16);
  map.insert(low.data, 0, true);
  map.insert(middle.data, 1, false);
  map.insert(elsewhere.data, 2, true);
  CHECK(found(map, whole, false, 0) == "1c 0c ");  // covers both; newest first
  CHECK(found(map, low, false, 0) == "1o 0c ");    // shares rows 2 and 3 with `middle`
  CHECK(found(map, middle, false, 0) == "1c 0o ");
  CHECK(found(map, high, false, 0).empty());  // same base, disjoint rows
  CHECK(found(map, elsewhere, false, 0) == "2c ");
  EQUAL(map.used(), 3);
}

CHECKS(tensor_map_inout_takes_over, "TensorMap") {
  TensorMap map(64, 16, 16);
  const Rows low(0x1000, 0, 4), whole(0x1000, 0, 16);
  map.insert(whole.data, 0, true);  // OUTPUT: stays, even if covered
  map.insert(low.data, 1, false);   // INOUT
  map.insert(whole.data, 2, false);
  CHECK(found(map, low, true, 0) == "2o 1c 0o ");  // drops only 1: `low` does not cover 2
  CHECK(found(map, whole, true, 0) == "2c 0c ");   // drops 2
  CHECK(found(map, whole, false, 0) == "0c ");     // a reader drops nothing
  CHECK(found(map, whole, false, 0) == "0c ");
  EQUAL(map.used(), 3);  // dropped entries belong to their tasks until these retire
  map.cleanup_retired(3);
  EQUAL(map.used(), 0);
}

CHECKS(tensor_map_truncates_stale_chains, "TensorMap, layer 1") {
  TensorMap map(256, 16, 256);
  const Rows rows(0x1000, 0, 16);
  for (int64_t id = 0; id < 100; ++id) map.insert(rows.data, id, true);
  uint64_t before = map.visited();
  CHECK(found(map, rows, false, 97) == "99c 98c 97c ");
  EQUAL(map.visited() - before, 3);  // valid entries only
  before = map.visited();
  CHECK(found(map, rows, false, 0) == "99c 98c 97c ");  // the tail has been cut off
  EQUAL(map.visited() - before, 3);
  EQUAL(map.used(), 100);  // the cleanup frees it
  map.cleanup_retired(97);
  EQUAL(map.used(), 3);
  EQUAL(map.cleaned(), 97);
  CHECK(found(map, rows, false, 97) == "99c 98c 97c ");
}

CHECKS(tensor_map_pool, "TensorMap, layers 2 and 3") {
  TensorMap map(8, 1, 16);  // one bucket: address and region decide the result
  const Rows a(0x1000, 0, 16), b(0x2000, 0, 16);
  for (int64_t id = 0; id < 4; ++id) {
    map.insert(a.data, id, true);
    map.insert(b.data, id, true);
  }
  CHECK(map.has(0) && !map.has(1));
  CHECK(found(map, b, false, 2) == "3c 2c ");
  map.cleanup_retired(2);
  CHECK(map.has(4) && !map.has(5));
  for (int64_t id = 4; id < 100; ++id) {  // entries and slots of tasks are reused
    map.insert(a.data, id, true);
    map.insert(b.data, id, true);
    CHECK(found(map, a, false, id - 1) == std::to_string(id) + "c " + std::to_string(id - 1) + "c ");
    map.cleanup_retired(id);
  }
  EQUAL(map.used(), 2);
  EQUAL(map.peak(), 8);
}

// --- machine and registers ---------------------------------------------------------------------------------

CHECKS(registers, "Handshake registers") {
  for (const int64_t id : {int64_t{0}, int64_t{1}, int64_t{207}, int64_t{65536}, int64_t{0x12345678}}) {
    EQUAL(dispatch_value(id), id + 1);
    EQUAL(ack_value(id), id);                 // bit 31: 0
    EQUAL(fin_value(id), 0x80000000ll | id);  // bit 31: 1
  }
  EQUAL(kExitSignal, 0x7FFFFFF0);
  EQUAL(kIdleValue, 0xFFFFFFFFll);  // FIN of task 0x7FFFFFFF
  for (const int64_t id : {int64_t{kExitSignal} - 1, (int64_t{1} << 31) - 1, (int64_t{1} << 40) - 1}) {
    CHECK(dispatch_value(id) != 0 && dispatch_value(id) != kExitSignal);  // never idle, never the exit signal
    CHECK((dispatch_value(id) & 0x80000000u) == 0);
  }
  EQUAL(sizeof(DispatchPayload::args) / sizeof(int64_t), 66);
  const VirtualCore core;
  EQUAL(core.data_main_base.load(), 0);
  EQUAL(core.cond.load(), kIdleValue);
}

CHECKS(machine_sizes, "Platform constants, clusters") {
  EQUAL(kMaxBlockDim, 24);
  EQUAL(kMaxCores, 72);
  EQUAL(cores_of(CoreType::Aic, 24), 24);
  EQUAL(cores_of(CoreType::Aiv, 24), 48);
  for (int c = 0; c < 24; ++c) {  // cluster c = {AIC c, AIV 2c, AIV 2c+1}
    EQUAL(cluster_of(CoreType::Aic, c), c);
    EQUAL(cluster_of(CoreType::Aiv, 2 * c), c);
    EQUAL(cluster_of(CoreType::Aiv, 2 * c + 1), c);
    EQUAL(worker_of(CoreType::Aic, c, 24), c);
    EQUAL(worker_of(CoreType::Aiv, c, 24), 24 + c);
  }
}

CHECKS(clusters_pool, "Clusters") {
  const Pause pause;
  Clusters clusters(3, pause);
  EQUAL(clusters.count() - clusters.used(), 3);
  EQUAL(clusters.try_allocate(0), 0);
  EQUAL(clusters.try_allocate(1), 1);
  EQUAL(clusters.try_allocate(1), 2);
  EQUAL(clusters.try_allocate(1), -1);
  CHECK(clusters.group(0) != clusters.group(1) && clusters.group(1) != clusters.group(2));
  const int32_t before = clusters.group(1);
  clusters.submitted(1);
  clusters.submitted(1);
  CHECK(!clusters.free(1));  // two tasks are unfinished: returned later
  CHECK(!clusters.allocated(1));
  EQUAL(clusters.try_allocate(1), -1);
  CHECK(!clusters.completed(1));
  CHECK(clusters.completed(1));
  EQUAL(clusters.try_allocate(2), 1);
  CHECK(clusters.group(1) != before);  // a new group for each allocation
  CHECK(clusters.end_scope(1));        // returns cluster 2; 0 and 1 belong to other scopes
  EQUAL(clusters.count() - clusters.used(), 1);
  CHECK(clusters.allocated(0) && clusters.allocated(1) && !clusters.allocated(2));
  CHECK(!clusters.allocated(-1) && !clusters.allocated(3));
}

CHECKS(run_groups, "Runs that wait for one another") {
  RunGroup group;
  const int a = group.join(), b = group.join();
  uint64_t tested = group.round();
  CHECK(!group.halts(a, tested));  // b may continue
  tested = group.round();
  group.leave(b);  // its last action may satisfy a condition that a tested before
  CHECK(!group.halts(a, tested));
  CHECK(group.halts(a, group.round()));
  const int c = group.join();
  CHECK(!group.halts(a, group.round()) && !group.halts(c, group.round()));
  CHECK(group.halts(a, group.round()));  // no member has acted since c halted
}

CHECKS(queue_is_first_in_first_out, "Ready queues") {
  MpmcQueue queue(5);  // rounded up to 8
  int64_t value = 0;
  CHECK(!queue.pop(value));
  for (int round = 0; round < 100; ++round) {
    for (int64_t k = 0; k < 8; ++k) CHECK(queue.push(round * 8 + k));
    CHECK(!queue.push(0));
    EQUAL(queue.size(), 8);
    for (int64_t k = 0; k < 8; ++k) {
      CHECK(queue.pop(value));
      EQUAL(value, round * 8 + k);
    }
    CHECK(!queue.pop(value) && queue.empty());
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool list = count == 2 && std::strcmp(arguments[1], "--list") == 0;
  int done = 0;
  for (const check::Check& it : check::all()) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted |= std::strcmp(arguments[i], it.name) == 0;
    if (list) std::printf("%s\t%s\n", it.name, it.topic);
    if (!wanted) continue;
    ++done;
    const int before = check::failures;
    it.run();
    std::printf("%s %s\n", check::failures == before ? "ok" : "FAILED", it.name);
    std::fflush(stdout);
  }
  if (!list && done < (count == 1 ? 1 : count - 1)) {
    std::printf("no such check; --list names them\n");
    return 2;
  }
  return check::failures == 0 ? 0 : 1;
}
