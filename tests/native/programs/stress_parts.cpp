// Tests each part of the task runtime alone, against a simple model, on random sequences of operations. Parts
// that threads share are also tested under several threads.
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "exec/fiber.hpp"
#include "exec/mpmc_queue.hpp"
#include "exec/pause.hpp"
#include "stress.hpp"
#include "tensormap/clusters.hpp"
#include "tensormap/dep_pool.hpp"
#include "tensormap/hazards.hpp"
#include "tensormap/heap_ring.hpp"
#include "tensormap/tensor_map.hpp"

namespace {

using namespace pto2;
using stress::Random;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kScale = 1;
#else
constexpr int kScale = 4;
#endif

void with_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int k = 0; k < count; ++k) threads.emplace_back([&, k] { body(k); });
  for (std::thread& thread : threads) thread.join();
}

// --- MpmcQueue ---------------------------------------------------------------------------------------------

void queue_is_a_bounded_fifo() {
  for (const size_t asked : {1u, 2u, 3u, 4u, 7u, 16u}) {
    size_t capacity = 2;
    while (capacity < asked) capacity *= 2;
    MpmcQueue queue(asked);
    std::deque<int64_t> model;
    Random random{asked};
    for (int64_t n = 0; n < 3000 * kScale; ++n) {
      if (random.chance(n % 400 < 200 ? 60 : 40)) {
        const bool room = model.size() < capacity;
        CHECK(queue.push(n) == room);
        if (room) model.push_back(n);
      } else {
        int64_t value = -1;
        CHECK(queue.pop(value) == !model.empty());
        if (!model.empty()) {
          CHECK(value == model.front());
          model.pop_front();
        }
      }
      CHECK(queue.size() == model.size() && queue.empty() == model.empty());
    }
  }
}

/// Each value arrives once, and the values of one producer arrive in their order.
void queue_loses_and_doubles_nothing() {
  for (const size_t capacity : {2u, 8u, 1024u}) {
    constexpr int kProducers = 3, kConsumers = 3;
    constexpr int64_t kEach = 6000 * kScale;
    MpmcQueue queue(capacity);
    std::atomic<int64_t> taken{0};
    std::vector<std::vector<int64_t>> got(kConsumers);
    with_threads(kProducers + kConsumers, [&](int k) {
      if (k < kProducers) {
        for (int64_t i = 0; i < kEach; ++i) {
          while (!queue.push(k * kEach + i)) std::this_thread::yield();
        }
      } else {
        while (taken.load() < kProducers * kEach) {
          int64_t value;
          if (queue.pop(value)) {
            got[static_cast<size_t>(k - kProducers)].push_back(value);
            taken.fetch_add(1);
          } else {
            std::this_thread::yield();
          }
        }
      }
    });
    std::vector<int> seen(kProducers * kEach, 0);
    for (const auto& values : got) {
      std::vector<int64_t> last(kProducers, -1);
      for (const int64_t value : values) {
        ++seen[static_cast<size_t>(value)];
        int64_t& before = last[static_cast<size_t>(value / kEach)];
        CHECK(value % kEach > before);
        before = value % kEach;
      }
    }
    for (const int count : seen) CHECK(count == 1);
  }
}

/// Every thread has at most one value in the queue, so there is always room, whatever operations overlap.
void queue_refuses_only_when_it_is_full() {
  constexpr int kThreads = 2;
  MpmcQueue queue(kThreads);
  std::atomic<int> refused{0};
  with_threads(kThreads, [&](int k) {
    for (int i = 0; i < 200000 * kScale; ++i) {
      if (!queue.push(k)) {
        refused.fetch_add(1);
        continue;
      }
      int64_t value;
      while (!queue.pop(value)) std::this_thread::yield();
    }
  });
  CHECK(refused.load() == 0);
}

// --- SpinLock and Parking ----------------------------------------------------------------------------------

void spin_lock_lets_one_in() {
  const Pause pause;
  SpinLock lock;
  int64_t inside = 0, total = 0;  // not atomic: the lock must order the accesses
  with_threads(4, [&](int k) {
    for (int i = 0; i < 5000 * kScale; ++i) {
      if (k == 0 && i % 2 == 0) {
        if (!lock.try_lock()) continue;
      } else {
        lock.lock(pause);
      }
      CHECK(++inside == 1);
      ++total;
      --inside;
      lock.unlock();
    }
  });
  CHECK(total >= 3 * 5000 * kScale);
  CHECK(lock.try_lock() && !lock.try_lock());
}

/// Two threads pass a number to each other and sleep in between. After a lost wake-up both sleep forever.
void parking_ping_pong() {
  Parking parking;
  std::atomic<int> ball{0};
  const int rounds = 4000 * kScale;
  with_threads(2, [&](int k) {
    for (int n = k; n < 2 * rounds; n += 2) {
      while (ball.load(std::memory_order_relaxed) != n) {
        const uint64_t epoch = parking.prepare();
        if (ball.load(std::memory_order_relaxed) == n) {
          parking.cancel();
        } else {
          parking.sleep(epoch);
        }
      }
      ball.store(n + 1, std::memory_order_relaxed);
      parking.wake_one();
    }
  });
  CHECK(ball.load() == 2 * rounds);
  CHECK(parking.sleepers() == 0);
}

/// Either the second check of the sleeper sees the work, or the waker sees the sleeper and moves the epoch.
/// Both act at the same moment, thousands of times. The fence is needed on processors that may read before an
/// earlier write is visible.
void parking_loses_no_wake_up() {
  Parking parking;
  std::atomic<int> work{0}, arrived{0};
  std::atomic<bool> enough{false};
  int rounds = 0, seen = 0;
  uint64_t announced = 0;
  const auto meet = [&](int times) {  // wait until both threads are here
    arrived.fetch_add(1);
    for (int spins = 0; arrived.load() < 2 * times;) {
      if (++spins > 2000) std::this_thread::yield();
    }
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  with_threads(2, [&](int k) {
    for (int n = 0; !enough; ++n) {
      meet(3 * n + 1);
      if (k == 0) {
        work.store(1, std::memory_order_relaxed);
        parking.wake_one();
      } else {
        announced = parking.prepare();
        seen = work.load(std::memory_order_relaxed);
      }
      meet(3 * n + 2);
      if (k == 0) {
        parking.cancel();
        const uint64_t now = parking.prepare();
        parking.cancel();
        CHECK(seen == 1 || now != announced);
        work.store(0);
        rounds = n;
        enough = n >= 300000 * kScale || (n > 10 && std::chrono::steady_clock::now() > until);
      }
      meet(3 * n + 3);
    }
  });
  CHECK(rounds > 10 && parking.sleepers() == 0);
}

/// One thread wakes many, again and again. Each continues only after the number has increased.
void parking_wakes_all() {
  Parking parking;
  std::atomic<int> generation{0}, arrived{0};
  constexpr int kSleepers = 4;
  const int rounds = 600 * kScale;
  with_threads(kSleepers + 1, [&](int k) {
    for (int n = 0; n < rounds; ++n) {
      if (k == kSleepers) {
        while (arrived.load() != kSleepers * (n + 1)) std::this_thread::yield();
        generation.store(n + 1, std::memory_order_relaxed);
        parking.wake_all();
        continue;
      }
      arrived.fetch_add(1);
      while (generation.load(std::memory_order_relaxed) <= n) {
        const uint64_t epoch = parking.prepare();
        if (generation.load(std::memory_order_relaxed) > n) {
          parking.cancel();
        } else {
          parking.sleep(epoch);
        }
      }
    }
  });
  CHECK(parking.sleepers() == 0);
  const uint64_t epoch = parking.prepare();
  parking.sleep(epoch, 5);  // without a wake-up, it returns after 5 ms
  CHECK(parking.sleepers() == 0);
}

// --- rings and pools ---------------------------------------------------------------------------------------

/// The model marks lines of 64 bytes. A block begins where the last one ended, or at the start if it does not
/// fit there and everything up to the end is free; then the skipped part belongs to the block.
void heap_ring_against_marked_bytes() {
  for (const uint64_t lines : {1u, 2u, 5u, 16u, 64u}) {
    const uint64_t size = lines * 64;
    SharedMemory memory(4, size, 4);
    HeapRing ring(size, memory.header());
    struct Block {
      uint64_t from, bytes, skipped_from, end;
    };
    std::deque<Block> live;
    std::vector<char> used(lines, 0);
    uint64_t next = 0;  // line where the last block ended
    Random random{lines};
    for (int n = 0; n < 4000 * kScale; ++n) {
      if (!live.empty() && random.chance(48)) {
        const Block& block = live.front();
        for (uint64_t i = 0; i < block.bytes / 64; ++i) used[block.from / 64 + i] = 0;
        for (uint64_t i = block.skipped_from / 64; block.from == 0 && i < lines && block.skipped_from > 0;
             ++i)
          used[i] = 0;
        memory.header().heap_tail.store(block.end);  // as a scheduler does it
        live.pop_front();
        continue;
      }
      const auto bytes = static_cast<uint64_t>(
          1 + random.below(static_cast<int>(random.chance(80) ? size / 2 + 1 : size + 64)));
      const uint64_t wanted = (bytes + 63) / 64;
      const auto free = [&](uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; ++i) {
          if (used[i] != 0) return false;
        }
        return true;
      };
      bool fits = false;
      Block expected{};
      if (next + wanted <= lines && free(next, next + wanted)) {
        fits = true;
        expected = {next * 64, wanted * 64, 0, 0};
      } else if (next + wanted > lines && wanted <= lines && free(next, lines) && free(0, wanted)) {
        fits = true;
        expected = {0, wanted * 64, live.empty() ? 0 : next * 64, 0};  // an empty ring skips nothing
      }
      HeapBlock got;
      CHECK(ring.try_allocate(bytes, got) == fits);
      if (!fits) continue;
      CHECK(got.end - got.base == expected.bytes);
      CHECK(ring.address(got.base) - ring.address(0) == static_cast<std::ptrdiff_t>(expected.from));
      CHECK(ring.contains(reinterpret_cast<uint64_t>(ring.address(got.base))));
      CHECK(ring.used() <= ring.size() && ring.peak() >= ring.used() && ring.peak() <= ring.size());
      expected.end = got.end;
      for (uint64_t i = 0; i < wanted; ++i) used[expected.from / 64 + i] = 1;
      for (uint64_t i = expected.skipped_from / 64; expected.skipped_from > 0 && i < lines; ++i) used[i] = 1;
      next = (expected.from / 64 + wanted) % lines;
      live.push_back(expected);
    }
  }
}

void heap_ring_has_room_for_anything_when_empty() {
  const uint64_t size = 4096;
  SharedMemory memory(4, size, 4);
  HeapRing ring(size, memory.header());
  HeapBlock block;
  CHECK(ring.try_allocate(64, block));
  CHECK(!ring.try_allocate(size, block));
  memory.header().heap_tail.store(block.end);
  CHECK(ring.available() == size);
  CHECK(ring.try_allocate(size, block));
  CHECK(ring.address(block.base) == ring.address(0) && ring.used() == size);
  CHECK(!ring.try_allocate(1, block));
}

void dep_pool_against_a_queue() {
  for (const uint64_t size : {1u, 2u, 7u, 16u}) {
    DepPool pool(size);
    std::deque<std::pair<int32_t, uint64_t>> model;  // entry, position after it
    Random random{size};
    for (int n = 0; n < 3000 * kScale; ++n) {
      if (random.chance(55)) {
        CHECK(pool.has(1) == (model.size() < size));
        const int32_t entry = pool.take();
        CHECK((entry != 0) == (model.size() < size));
        if (entry == 0) continue;
        CHECK(entry >= 1 && static_cast<uint64_t>(entry) <= size);
        for (const auto& [other, position] : model) CHECK(other != entry);
        model.push_back({entry, pool.position()});
      } else if (!model.empty()) {
        const auto upto = static_cast<size_t>(1 + random.below(static_cast<int>(model.size())));
        pool.release_to(model[upto - 1].second);
        model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(upto));
      }
      CHECK(pool.used() == model.size() && pool.has(size - model.size()) && pool.peak() >= model.size());
    }
  }
}

// --- TensorMap and Hazards: regions of small matrices, compared element by element -------------------------

struct Regions {
  static constexpr uint64_t kRows = 5, kCols = 6;
  char memory[8][kRows * kCols] = {};

  void random(Random& random, int buffers, TensorData& made) {
    const uint64_t whole[2] = {kRows, kCols}, zero[2] = {0, 0};
    made.init(memory[random.below(buffers)], kRows * kCols, whole, whole, zero, 2, DataType::INT8, 0);
    if (random.chance(20)) return;
    const auto row = static_cast<uint64_t>(random.below(kRows)),
               col = static_cast<uint64_t>(random.below(kCols));
    const uint64_t offsets[2] = {row, col};
    const uint64_t shape[2] = {1 + static_cast<uint64_t>(random.below(static_cast<int>(kRows - row))),
                               1 + static_cast<uint64_t>(random.below(static_cast<int>(kCols - col)))};
    made.view(shape, offsets);
  }
  static std::set<uint64_t> elements(const TensorData& t) {
    std::set<uint64_t> all;
    for (uint64_t r = 0; r < t.shapes[0]; ++r) {
      for (uint64_t c = 0; c < t.shapes[1]; ++c) {
        all.insert(t.buffer.addr + (t.offsets[0] + r) * kCols + t.offsets[1] + c);
      }
    }
    return all;
  }
  static OverlapStatus overlap(const std::set<uint64_t>& access, const std::set<uint64_t>& earlier) {
    size_t common = 0;
    for (const uint64_t element : earlier) common += access.count(element);
    return common == 0                ? OverlapStatus::NO_OVERLAP
           : common == earlier.size() ? OverlapStatus::COVERED
                                      : OverlapStatus::OTHER;
  }
};

void tensor_map_against_a_list() {
  for (int seed = 0; seed < 15 * kScale; ++seed) {
    Random random{static_cast<uint64_t>(seed)};
    Regions regions;
    const uint64_t window = uint64_t{4} << random.below(4),
                   pool = 4 + static_cast<uint64_t>(random.below(40));
    TensorMap map(pool, uint64_t{1} << random.below(4), window);
    struct Entry {
      int64_t producer;
      std::set<uint64_t> elements;
      bool with_alloc, dropped;
    };
    std::vector<Entry> model;
    std::map<int64_t, std::vector<std::unique_ptr<TensorData>>> descriptors;
    int64_t next = 0, alive = 0, seen = 0;
    const auto cleanup = [&] {
      map.cleanup_retired(alive);
      std::erase_if(model, [&](const Entry& entry) { return entry.producer < alive; });
      descriptors.erase(descriptors.begin(), descriptors.lower_bound(alive));  // ASan reports later reads
    };
    for (int n = 0; n < 200; ++n) {
      if (random.chance(40) && alive < next) alive += 1 + random.below(static_cast<int>(next - alive));
      if (random.chance(20) || static_cast<uint64_t>(next - map.cleaned()) >= window - 1) cleanup();
      if (static_cast<uint64_t>(next - map.cleaned()) >= window - 1) continue;
      if (random.chance(50)) seen = alive;  // the orchestrator may see an older value than the schedulers
      if (seen < map.cleaned()) seen = map.cleaned();
      const int64_t id = next++;
      const int params = 1 + random.below(3);
      for (int i = 0; i < params; ++i) {
        auto tensor = std::make_unique<TensorData>();
        regions.random(random, 3, *tensor);
        const bool reads = random.chance(60), writes = random.chance(60);
        const std::set<uint64_t> mine = Regions::elements(*tensor);
        if (reads) {
          std::multiset<std::pair<int64_t, OverlapStatus>> expected, got;
          for (Entry& entry : model) {
            if (entry.dropped || entry.producer < seen) continue;
            const OverlapStatus status = Regions::overlap(mine, entry.elements);
            if (status == OverlapStatus::NO_OVERLAP) continue;
            expected.insert({entry.producer, status});
            if (writes && status == OverlapStatus::COVERED && !entry.with_alloc) entry.dropped = true;
          }
          map.lookup(*tensor, writes, seen,
                     [&](int64_t p, OverlapStatus status) { got.insert({p, status}); });
          CHECK(got == expected);
        }
        CHECK(map.has(1) == (model.size() < pool));
        if (writes && map.has(1)) {
          map.insert(*tensor, id, !reads);
          model.push_back({id, mine, !reads, false});
          descriptors[id].push_back(std::move(tensor));
        }
        CHECK(map.used() == model.size() && map.peak() >= map.used());
      }
    }
  }
}

/// Compare with all pairs of tasks and all paths. A pair may be missing only if a reported task is ordered
/// after the earlier task of the pair.
void hazards_against_all_pairs() {
  for (int seed = 0; seed < 60 * kScale; ++seed) {
    Random random{static_cast<uint64_t>(seed)};
    Regions regions;
    const bool order = random.chance(30);
    const int buffers = 1 + random.below(3), tasks = 2 + random.below(25);
    Hazards hazards;
    struct Access {
      bool writes;
      std::set<uint64_t> elements;
    };
    std::vector<std::vector<Access>> accesses;
    std::vector<std::vector<char>> before(static_cast<size_t>(tasks),
                                          std::vector<char>(static_cast<size_t>(tasks), 0));
    for (int id = 0; id < tasks; ++id) {
      const auto at = static_cast<size_t>(id);
      std::vector<int64_t> producers;
      const auto join = [&](size_t p) {  // p, and all tasks before p, happen before this task
        before[p][at] = 1;
        for (size_t e = 0; e < p; ++e) before[e][at] |= before[e][p];
      };
      for (int p = 0; p < id; ++p) {
        if (!random.chance(12)) continue;
        producers.push_back(p);
        join(static_cast<size_t>(p));
      }
      const int count = 1 + random.below(3);
      PTOParamType types[3];
      TensorData tensors[3];
      const TensorData* pointers[3];
      accesses.emplace_back();
      for (int i = 0; i < count; ++i) {
        const int kind = random.below(7);
        types[i] = kind < 3   ? PTOParamType::INPUT
                   : kind < 5 ? PTOParamType::INOUT
                   : kind < 6 ? PTOParamType::OUTPUT
                              : PTOParamType::SCALAR;
        regions.random(random, buffers, tensors[i]);
        pointers[i] = &tensors[i];
        if (types[i] != PTOParamType::SCALAR) {
          accesses.back().push_back({types[i] != PTOParamType::INPUT, Regions::elements(tensors[i])});
        }
        if (types[i] != PTOParamType::INPUT && types[i] != PTOParamType::INOUT) continue;
        for (size_t e = 0; e < at; ++e) {  // a reader waits for every earlier writer, also without an edge
          for (const Access& other : accesses[e]) {
            const OverlapStatus status = Regions::overlap(Regions::elements(tensors[i]), other.elements);
            if (other.writes && status != OverlapStatus::NO_OVERLAP) join(e);
          }
        }
      }
      std::set<size_t> expected, got;
      for (size_t e = 0; e < at; ++e) {
        if (before[e][at] != 0) continue;
        for (const Access& mine : accesses[at]) {
          for (const Access& other : accesses[e]) {
            if (mine.writes && Regions::overlap(mine.elements, other.elements) != OverlapStatus::NO_OVERLAP)
              expected.insert(e);
          }
        }
      }
      for (const Hazard& hazard :
           hazards.submit(id, types, pointers, count, producers, order, Hazards::Tracked().set())) {
        CHECK(hazard.later == id && (hazard.kind == 1 || hazard.kind == 2));
        CHECK(got.insert(static_cast<size_t>(hazard.earlier)).second);
      }
      for (const size_t e : got) CHECK(expected.count(e) == 1);
      for (const size_t e : expected) {
        bool stands = got.count(e) != 0;
        for (const size_t m : got) stands |= before[e][m] != 0;
        CHECK(stands);
      }
      if (order) {
        for (const size_t e : got) join(e);
      }
    }
  }
}

// --- Clusters ----------------------------------------------------------------------------------------------

void clusters_against_a_table() {
  const Pause pause;
  for (const int count : {1, 2, 24}) {
    Clusters clusters(count, pause);
    struct Cluster {
      bool taken = false, freed = false;
      int unfinished = 0, scope = 0, group = -1;
    };
    std::vector<Cluster> model(static_cast<size_t>(count));
    Random random{static_cast<uint64_t>(count)};
    std::set<int> groups;
    int scope = 0;
    const auto settle = [](Cluster& it) {
      if (!it.taken || !it.freed || it.unfinished > 0) return false;
      it.taken = false;
      return true;
    };
    for (int n = 0; n < 4000 * kScale; ++n) {
      const int c = random.below(count);
      Cluster& it = model[static_cast<size_t>(c)];
      const bool usable = it.taken && !it.freed;
      CHECK(clusters.allocated(c) == usable);
      switch (random.below(6)) {
        case 0: {
          const int got = clusters.try_allocate(scope);
          int free = 0;
          for (const Cluster& one : model) free += one.taken ? 0 : 1;
          CHECK((got >= 0) == (free > 0));
          if (got < 0) break;
          CHECK(!model[static_cast<size_t>(got)].taken);
          model[static_cast<size_t>(got)] = {true, false, 0, scope, clusters.group(got)};
          CHECK(groups.insert(clusters.group(got)).second);  // a group number is never used again
          break;
        }
        case 1:
          if (!usable) break;
          clusters.submitted(c);
          ++it.unfinished;
          break;
        case 2:
        case 3:
          if (!it.taken || it.unfinished == 0) break;
          --it.unfinished;
          CHECK(clusters.completed(c) == settle(it));
          break;
        case 4:
          if (!usable) break;
          it.freed = true;
          CHECK(clusters.free(c) == settle(it));
          break;
        default: {
          if (!random.chance(20)) break;
          bool any = false;
          for (Cluster& one : model) {
            if (!one.taken || one.freed || one.scope != scope) continue;
            one.freed = true;
            any |= settle(one);
          }
          CHECK(clusters.end_scope(scope) == any);
          scope = random.below(3);
        }
      }
      int free = 0;
      for (const Cluster& one : model) free += one.taken ? 0 : 1;
      CHECK(clusters.count() - clusters.used() == free);
    }
    CHECK(!clusters.allocated(-1) && !clusters.allocated(count));
  }
}

/// One thread allocates and frees while others complete. Every cluster is returned, none twice.
void clusters_come_back() {
  const Pause pause;
  Clusters clusters(3, pause);
  MpmcQueue submitted(64);
  std::atomic<bool> over{false};
  std::atomic<int> completed{0};
  int tasks = 0;
  with_threads(3, [&](int k) {
    if (k == 0) {
      for (int n = 0; n < 1500 * kScale;) {
        const int cluster = clusters.try_allocate(0);
        if (cluster < 0) {
          std::this_thread::yield();
          continue;
        }
        for (int i = 0; i < n % 3; ++i, ++tasks) {
          clusters.submitted(cluster);
          while (!submitted.push(cluster)) std::this_thread::yield();
        }
        clusters.free(cluster);
        ++n;
      }
      over = true;
      return;
    }
    int64_t cluster;
    while (!over || !submitted.empty()) {
      if (!submitted.pop(cluster)) {
        std::this_thread::yield();
        continue;
      }
      clusters.completed(static_cast<int>(cluster));
      completed.fetch_add(1);
    }
  });
  CHECK(completed.load() == tasks);
  CHECK(clusters.used() == clusters.count() - 3);
}

// --- Fiber -------------------------------------------------------------------------------------------------

struct Body {
  Fiber fiber;
  std::function<void(Fiber&)> run;
  explicit Body(std::function<void(Fiber&)> function) : run(std::move(function)) { start(); }
  void start() {
    fiber.start([](void* self) { static_cast<Body*>(self)->run(static_cast<Body*>(self)->fiber); }, this);
  }
};

void fibers_keep_their_place() {
  constexpr int kFibers = 20, kSteps = 50;
  std::vector<std::unique_ptr<Body>> fibers;
  std::vector<int> steps(kFibers, 0);
  for (int k = 0; k < kFibers; ++k) {
    fibers.push_back(std::make_unique<Body>([&, k](Fiber& self) {
      std::vector<int> mine;
      double scaled = k;
      for (int i = 0; i < kSteps + k; ++i) {
        mine.push_back(i * k);
        scaled += 0.5;
        ++steps[static_cast<size_t>(k)];
        self.suspend();
      }
      for (int i = 0; i < kSteps + k; ++i) CHECK(mine[static_cast<size_t>(i)] == i * k);
      CHECK(scaled == k + 0.5 * (kSteps + k));
    }));
  }
  Random random{1};
  std::vector<int> left(kFibers), resumed(kFibers, 0);
  for (int k = 0; k < kFibers; ++k) left[static_cast<size_t>(k)] = k;
  while (!left.empty()) {
    const auto pick = static_cast<size_t>(random.below(static_cast<int>(left.size())));
    const auto k = static_cast<size_t>(left[pick]);
    const bool ended = fibers[k]->fiber.resume();
    ++resumed[k];
    CHECK(ended == (resumed[k] == kSteps + static_cast<int>(k) + 1));
    if (ended) left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  for (int k = 0; k < kFibers; ++k) CHECK(steps[static_cast<size_t>(k)] == kSteps + k);
}

/// Fibers are in a handler at the same time and resume there in turns; each keeps its own exception.
void fibers_have_their_own_exceptions() {
  const auto body = [](int number) {
    return std::make_unique<Body>([number](Fiber& self) {
      try {
        throw std::runtime_error(std::to_string(number));
      } catch (const std::runtime_error&) {
        self.suspend();
        try {
          throw;  // rethrows what this fiber caught
        } catch (const std::runtime_error& error) {
          CHECK(error.what() == std::to_string(number));
        }
        self.suspend();
      }
      CHECK(std::current_exception() == nullptr);
    });
  };
  auto a = body(1), b = body(2);
  a->fiber.resume();
  b->fiber.resume();
  CHECK(std::current_exception() == nullptr);
  CHECK(!a->fiber.resume());
  CHECK(!b->fiber.resume());
  CHECK(a->fiber.resume());
  CHECK(b->fiber.resume());
  try {
    throw 1;
  } catch (int) {
    Body inner([](Fiber&) { CHECK(std::current_exception() == nullptr); });
    CHECK(inner.fiber.resume());
  }
}

[[gnu::noinline]] int deep(int depth) {
  volatile char page[4000];
  page[0] = static_cast<char>(depth);
  const int below = depth == 0 ? 0 : deep(depth - 1);
  return below + (page[0] == static_cast<char>(depth) ? 1 : 0);
}

/// A fiber that is abandoned or destroyed in the middle leaves a stack that can be reused.
void fibers_can_be_given_up() {
  for (int n = 0; n < 30 * kScale; ++n) {
    int reached = 0;
    Body body([&](Fiber& self) {
      char local[512];
      std::memset(local, n, sizeof local);
      ++reached;
      self.suspend();
      if (n % 2 == 0) self.abandon();
      CHECK(local[511] == static_cast<char>(n));
      Body nested([&](Fiber& inner) {
        CHECK(deep(20) == 21);
        inner.suspend();
        reached += 100;  // never: the fiber is destroyed before
      });
      CHECK(!nested.fiber.resume());
      ++reached;
    });
    CHECK(!body.fiber.resume());
    if (n % 3 == 0) continue;  // destroyed while it is suspended
    CHECK(body.fiber.resume());
    CHECK(reached == (n % 2 == 0 ? 1 : 2));
    body.run = [&](Fiber&) { reached = deep(150); };
    body.start();
    CHECK(body.fiber.resume() && reached == 151);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return stress::main_of(
      argc, argv,
      {{"queue_is_a_bounded_fifo", queue_is_a_bounded_fifo},
       {"queue_loses_and_doubles_nothing", queue_loses_and_doubles_nothing},
       {"queue_refuses_only_when_it_is_full", queue_refuses_only_when_it_is_full},
       {"spin_lock_lets_one_in", spin_lock_lets_one_in},
       {"parking_ping_pong", parking_ping_pong},
       {"parking_loses_no_wake_up", parking_loses_no_wake_up},
       {"parking_wakes_all", parking_wakes_all},
       {"heap_ring_against_marked_bytes", heap_ring_against_marked_bytes},
       {"heap_ring_has_room_for_anything_when_empty", heap_ring_has_room_for_anything_when_empty},
       {"dep_pool_against_a_queue", dep_pool_against_a_queue},
       {"tensor_map_against_a_list", tensor_map_against_a_list},
       {"hazards_against_all_pairs", hazards_against_all_pairs},
       {"clusters_against_a_table", clusters_against_a_table},
       {"clusters_come_back", clusters_come_back},
       {"fibers_keep_their_place", fibers_keep_their_place},
       {"fibers_have_their_own_exceptions", fibers_have_their_own_exceptions},
       {"fibers_can_be_given_up", fibers_can_be_given_up}},
      500);
}
