// Tests the virtual machine without Python, for ASan, UBSan and TSan: images made by hand on many blocks and
// threads, values of every kind, launches that fail or take too long, and many launches at the same time.
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "check.hpp"
#include "vm.cpp"

#define EXPECT(condition) check::that(condition, #condition, __FILE__, __LINE__)

namespace {

using namespace pto;
using namespace pto::vm;

using Tile = OpenTile<TileType::Vec, float, BLayout::RowMajor, SLayout::NoneBox, 512, 0, CompactMode::Null>;
using View = OpenView<float, Layout::ND>;

// Functions as `pto.image.pack` writes them for packs.
void load(char* f, const uint32_t* s) { TLOAD(at<Tile>(f, s[0]), at<View>(f, s[1])); }
void add(char* f, const uint32_t* s) { TADD(at<Tile>(f, s[0]), at<Tile>(f, s[1]), at<Tile>(f, s[2])); }
void store(char* f, const uint32_t* s) { TSTORE(at<View>(f, s[0]), at<Tile>(f, s[1])); }
void read(char* f, const uint32_t* s) {
  at<float>(f, s[0]) = detail::element<detail::Use::read>(at<float*>(f, s[1]), at<int64_t>(f, s[2]));
}
void plus(char* f, const uint32_t* s) { at<int64_t>(f, s[0]) = at<int64_t>(f, s[1]) + at<int64_t>(f, s[2]); }

/// A writer of images.
struct Writer {
  std::vector<uint32_t> words, arguments;
  std::vector<char> frame;
  std::vector<void*> functions;
  std::vector<uint8_t> kinds = std::vector<uint8_t>(kCall);

  Writer() { std::iota(kinds.begin(), kinds.end(), uint8_t{0}); }
  uint32_t room(size_t size) {
    const size_t place = (frame.size() + 63) / 64 * 64;
    frame.resize(place + size);
    return static_cast<uint32_t>(place);
  }
  uint32_t number(int64_t value) {
    const uint32_t place = room(8);
    std::memcpy(frame.data() + place, &value, 8);
    return place;
  }
  uint32_t argument() {
    const uint32_t place = room(8);
    arguments.insert(arguments.end(), {place, 0});
    return place;
  }
  uint32_t here() const { return static_cast<uint32_t>(words.size()); }
  uint32_t emit(uint32_t opcode, std::vector<uint32_t> operands) {
    const uint32_t place = here();
    words.push_back(opcode | static_cast<uint32_t>(operands.size() + 1) << 24);
    words.insert(words.end(), operands.begin(), operands.end());
    return place;
  }
  void call(void* function, std::vector<uint32_t> operands, const char* name = "") {
    functions.push_back(function);
    kinds.push_back(static_cast<uint8_t>(pto_vm_kind(name)));
    emit(kCall + static_cast<uint32_t>(functions.size()) - 1, std::move(operands));
  }
  void call(Function function, std::vector<uint32_t> operands) {
    call(reinterpret_cast<void*>(function), std::move(operands));
  }
  void own(const char* name, std::vector<uint32_t> operands) {
    void* function = pto_vm_own(name);
    EXPECT(function != nullptr);
    call(function, std::move(operands), name);
  }
};

struct Result {
  int status;
  char text[512];
};

Result launch(const Writer& image, std::vector<uint64_t> words, pto_array array, int blocks = 1,
              int threads = 1, uint64_t limit = 0, uint64_t steps = 0) {
  const pto_code code{image.words.data(),
                      image.frame.data(),
                      image.arguments.data(),
                      static_cast<uint32_t>(image.frame.size()),
                      static_cast<uint32_t>(image.arguments.size() / 2),
                      0,
                      0};
  pto_program program{};
  program.target.isa = 1;
  for (size_t space = 0; space < pto::detail::kSpaces; ++space)
    program.target.capacity[space] = pto::detail::kCapacity[space];
  program.functions = image.functions.data();
  program.codes = &code;
  program.code_count = 1;
  program.kinds = image.kinds.data();
  std::vector<uint8_t> special(words.size());
  if (words.size() > 1) special[1] = 1;  // the number of the block
  Result result{};
  pto_launch given{};
  given.size = sizeof given;
  given.argc = static_cast<int32_t>(words.size());
  given.args = words.data();
  given.special = special.data();
  given.blocks = blocks;
  given.subblocks = 1;
  given.threads = threads;
  given.error = result.text;
  given.error_size = sizeof result.text;
  given.arrays = &array;
  given.array_count = 1;
  given.program = &program;
  given.limit = limit;
  given.steps = steps;
  result.status = pto_launch_image(&given);
  return result;
}

bool says(const Result& result, const char* text) {
  const bool found = result.status == 1 && std::strstr(result.text, text) != nullptr;
  if (!found) std::printf("status %d: %s, expected %s\n", result.status, result.text, text);
  return found;
}

constexpr int64_t kRows = 4, kCols = 16, kBlocks = 24;

/// Return an image in which every block doubles its own rows three times.
Writer doubling() {
  Writer w;
  const uint32_t data = w.argument(), block = w.argument();
  const uint32_t zero = w.number(0), one = w.number(1), rows = w.number(kRows), cols = w.number(kCols);
  const uint32_t all = w.number(kRows * kBlocks), times = w.number(3), counter = w.room(8), first = w.room(8);
  const uint32_t whole = w.room(88), part = w.room(88), tile = w.room(40);
  w.own("vm.view", {whole, data, 2, all, cols, cols, one});
  w.emit(kCopy, {first, zero, 8});
  for (int i = 0; i < kRows; ++i) w.call(plus, {first, first, block});
  w.own("vm.part", {part, whole, 32, 2, first, zero, rows, cols});
  w.own("vm.tile", {tile, kRows, kCols, rows, cols});
  w.own("vm.assign", {tile, zero, 8, 0, 0, 1, 1, 32, 0});
  w.emit(kCopy, {counter, zero, 8});
  const uint32_t enter = w.emit(kEnter, {8, counter, times, 0});
  const uint32_t inside = w.here();
  w.call(load, {tile, part});
  w.call(add, {tile, tile, tile});
  w.call(store, {part, tile});
  w.emit(kNext, {8, counter, times, one, inside});
  w.words[enter + 4] = w.here();
  w.emit(kEnd, {});
  return w;
}

void doubled(int threads) {
  static const Writer image = doubling();
  std::vector<float> values(kRows * kBlocks * kCols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const pto_array array{values.data(), values.size() * 4, "x", 0};
  const Result result =
      launch(image, {reinterpret_cast<uint64_t>(values.data()), 0}, array, kBlocks, threads);
  EXPECT(result.status == 0);
  bool right = true;
  for (size_t i = 0; i < values.size(); ++i) right &= values[i] == static_cast<float>(i) * 8;
  EXPECT(right);
}

void values_of_every_kind() {
  float numbers[40];
  for (int i = 0; i < 40; ++i) numbers[i] = static_cast<float>(i);
  const pto_array array{numbers, sizeof numbers, "x", 0};
  const std::vector<uint64_t> words = {reinterpret_cast<uint64_t>(numbers), 0};
  const auto body = [](int64_t row, int64_t element, int64_t far) {
    Writer w;
    const uint32_t data = w.argument();
    w.argument();
    const uint32_t zero = w.number(0), one = w.number(1), two = w.number(2), four = w.number(4),
                   eight = w.number(8);
    const uint32_t whole = w.room(88), part = w.room(88), index = w.room(8), value = w.room(8),
                   array = w.room(24);
    w.own("vm.view", {whole, data, 2, four, eight, eight, one});
    w.own("vm.cut", {part, whole, 32, 2, 3, one, zero, two, four, two, two});
    w.own("vm.element", {index, part, 2, w.number(row), one});
    w.call(read, {value, part, index});
    w.own("vm.dim", {index, part, 2, one});
    w.own("vm.set", {value, array, 4, 2, 3, 2, one, w.number(element)});
    w.own("vm.get", {value, array, 4, 2, 3, 2, one, w.number(element)});
    w.call(read, {value, data, w.number(far)});
    w.emit(kEnd, {});
    return w;
  };
  EXPECT(launch(body(1, 1, 39), words, array).status == 0);
  EXPECT(says(launch(body(2, 1, 39), words, array), "index [2, 1] is outside the sizes [2, 4]"));
  EXPECT(says(launch(body(-1, 1, 39), words, array), "index [-1, 1]"));
  EXPECT(says(launch(body(1, 2, 39), words, array), "element [1, 2] of an array of 3x2 elements"));
  EXPECT(says(launch(body(1, 1, 40), words, array, 3, 2), "PTO-E2101"));
}

void loops_that_never_end() {
  Writer w;
  w.argument();
  w.emit(kJump, {0});
  const pto_array none{nullptr, 0, "", 0};
  EXPECT(says(launch(w, {0}, none, 1, 1, 0, 1000), "still running after 1000 repetitions"));
  EXPECT(says(launch(w, {0}, none, 5, 3, 20'000'000), "still running after 0.02 s"));
}

void a_valid_region_that_is_none() {
  Writer w;
  w.argument();
  const uint32_t tile = w.room(40), one = w.number(1);
  w.own("vm.tile", {tile, kRows, kCols, one, one});
  w.own("vm.valid", {tile, kRows, kCols, one, w.number(kCols + 1)});
  w.emit(kEnd, {});
  EXPECT(says(launch(w, {0}, {nullptr, 0, "", 0}), "valid region 1 x 17 does not fit a 4 x 16 tile"));
}

}  // namespace

int main() {
  for (const int threads : {1, 2, 5}) doubled(threads);
  values_of_every_kind();
  a_valid_region_that_is_none();
  loops_that_never_end();
  std::vector<std::thread> callers;
  for (int n = 0; n < 4; ++n)
    callers.emplace_back([n] {
      for (int i = 0; i < 50; ++i) {
        doubled(1 + (n + i) % 2);
        if (n == 0) loops_that_never_end();
      }
    });
  for (std::thread& caller : callers) caller.join();
  std::printf("vm: %s\n", check::failures == 0 ? "ok" : "failed");
  return check::failures != 0;
}
