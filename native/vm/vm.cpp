// The virtual machine: executes an image (src/pto/image/format.py, docs/image.md) on the cores of a launch.
// The frame of a core holds all its values. Instructions consist of words; most of them call functions that
// are compiled for values of any size. A core waits as in compiled kernels: the scheduler runs other cores.
#include "pto/vm/open.hpp"
//
#include "generic.hpp"
#include "pto/launch.hpp"
#include "quick.hpp"
#include "screen.hpp"
#include "time_limit.hpp"
#include "values.hpp"
#include "vm.hpp"

namespace pto::detail {
thread_local Core* current = nullptr;
}

namespace pto::vm {

namespace {

enum Opcode : uint32_t { kEnd, kJump, kUnless, kEnter, kNext, kCopy, kEqual, kCall = 16 };

int64_t integer(const char* frame, uint32_t at, uint32_t width) {
  int64_t value = 0;
  switch (width) {
    case 1: value = *reinterpret_cast<const int8_t*>(frame + at); break;
    case 2: value = *reinterpret_cast<const int16_t*>(frame + at); break;
    case 4: value = *reinterpret_cast<const int32_t*>(frame + at); break;
    default: value = *reinterpret_cast<const int64_t*>(frame + at);
  }
  return value;
}

/// Interpret a code. The mark of a core is the index of a word, with the number of the code from bit 28 on.
///
/// Every instruction ends with its own jump to the next one: processors predict such jumps better than one
/// shared jump. Calls for integer arithmetic are executed inline, according to `kinds`.
void interpret(const pto_code& code, int32_t base, const Function* functions, const uint8_t* kinds,
               char* frame, detail::Core& core, bool in_launch) {
#define PTO_LABEL_(name, T, ...) &&quick_##name##_##T,
  static const void* const labels[] = {
      &&end,     &&jump,    &&unless,  &&enter,   &&next,    &&copy,
      &&equal,   &&unknown, &&unknown, &&unknown, &&unknown, &&unknown,
      &&unknown, &&unknown, &&unknown, &&unknown, &&call,    PTO_VM_QUICK(PTO_LABEL_, PTO_LABEL_)};
#undef PTO_LABEL_
  const uint32_t* const words = code.words;
  const uint32_t* pc = words;
  TimeLimit time_limit;
  const auto to = [&](uint32_t target) {
    const uint32_t* there = words + target;
    if (there <= pc && in_launch) time_limit.tick(core, words, pc, base);
    pc = there;
  };
#define PTO_GO_ON_ goto* labels[kinds[*pc & 0xFFFFFF]]
  PTO_GO_ON_;
call:
  core.mark = base + static_cast<int32_t>(pc - words);
  functions[(*pc & 0xFFFFFF) - kCall](frame, pc + 1);
  pc += *pc >> 24;
  PTO_GO_ON_;
#define PTO_DO_TWO_(name, T, R, ...)            \
  quick_##name##_##T : {                        \
    T a1, a2;                                   \
    std::memcpy(&a1, frame + pc[2], sizeof a1); \
    std::memcpy(&a2, frame + pc[3], sizeof a2); \
    const R a0 = __VA_ARGS__;                   \
    std::memcpy(frame + pc[1], &a0, sizeof a0); \
    pc += 4;                                    \
    PTO_GO_ON_;                                 \
  }
#define PTO_DO_ONE_(name, T, R, ...)            \
  quick_##name##_##T : {                        \
    T a1;                                       \
    std::memcpy(&a1, frame + pc[2], sizeof a1); \
    const R a0 = __VA_ARGS__;                   \
    std::memcpy(frame + pc[1], &a0, sizeof a0); \
    pc += 3;                                    \
    PTO_GO_ON_;                                 \
  }
jump:
  to(pc[1]);
  PTO_GO_ON_;
unless:
  if (at<uint8_t>(frame, pc[1]) != 0) {
    pc += 3;
  } else {
    to(pc[2]);
  }
  PTO_GO_ON_;
enter:
  if (integer(frame, pc[2], pc[1]) < integer(frame, pc[3], pc[1])) {
    pc += 5;
  } else {
    to(pc[4]);
  }
  PTO_GO_ON_;
next:
  {
    const uint32_t width = pc[1];
    const int64_t step = integer(frame, pc[4], width);
    const int64_t sum = static_cast<int64_t>(static_cast<uint64_t>(integer(frame, pc[2], width)) +
                                             static_cast<uint64_t>(step));
    if (width == 8) [[likely]] {
      at<int64_t>(frame, pc[2]) = sum;
    } else {
      std::memcpy(frame + pc[2], &sum, width);
    }
    if (integer(frame, pc[2], width) < integer(frame, pc[3], width)) {
      to(pc[5]);
    } else {
      pc += 6;
    }
    PTO_GO_ON_;
  }
copy:
  if (pc[3] == 8) [[likely]] {
    std::memcpy(frame + pc[1], frame + pc[2], 8);
  } else {
    std::memcpy(frame + pc[1], frame + pc[2], pc[3]);
  }
  pc += 4;
  PTO_GO_ON_;
equal:
  if (integer(frame, pc[2], pc[1]) == integer(frame, pc[3], pc[1])) {
    to(pc[4]);
  } else {
    pc += 5;
  }
  PTO_GO_ON_;
unknown:
  detail::failf("[PTO-E2102] unknown instruction of the virtual machine: %u", *pc & 0xFFFFFF);
  PTO_VM_QUICK(PTO_DO_TWO_, PTO_DO_ONE_)
end:
  return;
#undef PTO_DO_TWO_
#undef PTO_DO_ONE_
#undef PTO_GO_ON_
}

// --- functions for values of every type --------------------------------------------------------------------

static_assert(sizeof(PrefetchAsyncContext) <= 64 && sizeof(comm::AsyncEvent) <= 64 &&
              sizeof(comm::AsyncSession) <= 64);
static_assert(sizeof(vector_f32) == 256 && sizeof(vector_bool) == 32 && sizeof(vector_align) <= 64);

void make_view(char* frame, const uint32_t* s) {  // result, pointer, rank, sizes, strides
  const int rank = static_cast<int>(s[2]);
  ViewFields view;
  view.data = at<char*>(frame, s[1]);
  for (int d = 0; d < rank; ++d) {
    view.shape[5 - rank + d] = at<int64_t>(frame, s[3 + d]);
    view.stride[5 - rank + d] = at<int64_t>(frame, s[3 + rank + d]);
  }
  fill_up(view, rank);
  at<ViewFields>(frame, s[0]) = view;
}

void part_view(char* frame, const uint32_t* s) {  // result, source, bits, rank, offsets, sizes
  const ViewFields& source = at<ViewFields>(frame, s[1]);
  const int rank = static_cast<int>(s[3]);
  ViewFields view = source;
  int64_t offset = 0;
  for (int d = 0; d < rank; ++d) {
    offset += at<int64_t>(frame, s[4 + d]) * source.stride[5 - rank + d];
    view.shape[5 - rank + d] = at<int64_t>(frame, s[4 + rank + d]);
  }
  view.data += offset * static_cast<int64_t>(s[2]) / 8;
  fill_up(view, rank);
  at<ViewFields>(frame, s[0]) = view;
}

void view_dim(char* frame, const uint32_t* s) {  // result, view, rank, dimension
  const int64_t d = at<int64_t>(frame, s[3]);
  if (d < 0 || d >= s[2])
    detail::failf("[PTO-E2102] dimension %lld of a view of %u", static_cast<long long>(d), s[2]);
  at<int64_t>(frame, s[0]) = at<ViewFields>(frame, s[1]).shape[5 - s[2] + d];
}
void view_stride(char* frame, const uint32_t* s) {
  const int64_t d = at<int64_t>(frame, s[3]);
  if (d < 0 || d >= s[2])
    detail::failf("[PTO-E2102] dimension %lld of a view of %u", static_cast<long long>(d), s[2]);
  at<int64_t>(frame, s[0]) = at<ViewFields>(frame, s[1]).stride[5 - s[2] + d];
}

void size_tile(AnyTile& tile, uint32_t rows, uint32_t cols, int64_t valid_rows, int64_t valid_cols) {
  if (valid_rows < 0 || valid_cols < 0 || valid_rows > rows || valid_cols > cols) [[unlikely]]
    detail::failf("[PTO-E2102] valid region %lld x %lld does not fit a %u x %u tile",
                  static_cast<long long>(valid_rows), static_cast<long long>(valid_cols), rows, cols);
  tile.Rows = static_cast<int>(rows);
  tile.Cols = static_cast<int>(cols);
  tile.Numel = static_cast<int>(rows * cols);
  tile.RowMaskInternal = static_cast<unsigned>(valid_rows);
  tile.ColMaskInternal = static_cast<unsigned>(valid_cols);
}

/// The layout of a tile, from words: space, form, rows and columns of a box, bits, compact mode.
struct Lie {
  const uint32_t* s;
  int space() const { return static_cast<int>(s[0]); }
  size_t bits() const { return s[4]; }
  /// Return true if boxes, or elements of a tile without boxes, are stored column by column.
  bool by_columns() const {
    const auto form = static_cast<detail::Form>(s[1]);
    return form == detail::Form::DN || form == detail::Form::NZ || form == detail::Form::NN;
  }

  /// Return the byte where element (r, c) begins.
  size_t byte(const AnyTile& tile, ptrdiff_t r, ptrdiff_t c) const {
    return static_cast<size_t>(element(tile, r, c)) * bits() / 8;
  }
  ptrdiff_t element(const AnyTile& tile, ptrdiff_t r, ptrdiff_t c) const {
    const auto form = static_cast<detail::Form>(s[1]);
    const ptrdiff_t cols = tile.Cols, ir = s[2], ic = s[3];
    const ptrdiff_t pitch =
        detail::pitch_of(static_cast<CompactMode>(s[5]), tile.Rows, static_cast<int>(tile.RowMaskInternal),
                         form == detail::Form::NN ? static_cast<int>(ir) : 16);
    if (form == detail::Form::ND) return r * cols + c;
    if (form == detail::Form::DN) return c * pitch + r;
    const ptrdiff_t br = r / ir, pr = r % ir, bc = c / ic, pc = c % ic;
    const bool inner_rows = form == detail::Form::NZ || form == detail::Form::ZZ;
    return (by_columns() ? bc * pitch * ic + br * ir * ic : br * cols * ir + bc * ir * ic) +
           (inner_rows ? pr * ic + pc : pc * ir + pr);
  }
};

void assign_tile(char* frame, const uint32_t* s) {  // tile, address, its width, layout of the tile
  AnyTile& tile = at<AnyTile>(frame, s[0]);
  const Lie lie{s + 3};
  const ptrdiff_t rows = tile.RowMaskInternal, cols = tile.ColMaskInternal;
  const size_t used =
      rows == 0 || cols == 0
          ? 0
          : (static_cast<size_t>(lie.element(tile, rows - 1, cols - 1) + 1) * lie.bits() + 7) / 8;
  const auto address = static_cast<uint64_t>(integer(frame, s[1], s[2]));
  char* found = detail::resolve(lie.space(), address, used);
  const char* base = detail::core().space[lie.space()];
  if (found < base || found + used > base + detail::room(lie.space())) [[unlikely]]
    detail::failf("[PTO-E2101] a tile of %zu bytes at address 0x%zx is outside %s", used,
                  static_cast<size_t>(address), detail::kSpaceNames[lie.space()]);
  // Later writes may reach beyond the present valid region.
  const size_t whole = (static_cast<size_t>(tile.Numel) * lie.bits() + 7) / 8;
  detail::use_space(detail::core(), lie.space(), static_cast<size_t>(found - base) + whole);
  detail::bind(tile, found);
}

/// Bind a part of a tile `offset` bytes after its begin. The part must begin in the memory of the tile: the
/// buffer of the core, or the elements of a borrowed tile.
void part_of_tile(AnyTile& part, const AnyTile& tile, int64_t offset, size_t bits) {
  detail::Core& core = detail::core();
  const auto* data = reinterpret_cast<const char*>(tile.data());
  const char *first = data, *end = data + static_cast<size_t>(tile.Numel) * bits / 8;
  int inside = -1;
  for (int space = 0; space < detail::kSpaces; ++space) {
    const char* base = core.space[space];
    if (data >= base && data < base + detail::room(space))
      first = base, end = base + detail::room(space), inside = space;
  }
  if (offset < first - data || offset > end - data) [[unlikely]]
    detail::failf("[PTO-E2101] begins at byte %lld of its tile, outside the memory of the tile",
                  static_cast<long long>(offset));
  detail::bind(part, tile.data() + offset);
  const auto lines = static_cast<size_t>(part.Rows) * static_cast<size_t>(std::max(part.Cols, part.Line));
  if (inside >= 0)
    detail::use_space(core, inside, static_cast<size_t>(data - first + offset) + (lines * bits + 7) / 8);
}

void window_of_tile(
    char* frame,
    const uint32_t* s) {  // window, tile, row, column, their width, length of a line, layout of the tile
  const AnyTile& tile = at<AnyTile>(frame, s[1]);
  const auto row = static_cast<uint16_t>(integer(frame, s[2], s[4]));
  const auto col = static_cast<uint16_t>(integer(frame, s[3], s[4]));
  const Lie lie{s + 6};
  AnyTile& window = at<AnyTile>(frame, s[0]);
  window.Line = static_cast<int>(s[5]);
  (lie.by_columns() ? window.Rows : window.Cols) = lie.by_columns() ? tile.Rows : tile.Cols;
  const int64_t all = int64_t{window.Rows} * window.Cols;
  if (all > INT32_MAX) [[unlikely]]
    detail::failf("[PTO-E2102] a window of %d x %d elements", window.Rows, window.Cols);
  window.Numel = static_cast<int>(all);
  part_of_tile(window, tile, static_cast<int64_t>(lie.byte(tile, row, col)), lie.bits());
}

/// Make a window with given steps. Its valid region is given, or follows from the valid region of its source.
void subset_of_tile(char* frame, const uint32_t* s) {
  // window, tile, shape, sizes, valid sizes (-1: none), row, column, their width, steps, bits, line length
  const AnyTile& tile = at<AnyTile>(frame, s[1]);
  const int64_t row = integer(frame, s[8], s[10]), col = integer(frame, s[9], s[10]);
  const auto open = [](int64_t given, int64_t size, int64_t valid, int64_t first) {
    if (given >= 0) return given;
    const int64_t left = valid == 0 ? 0 : valid - first % valid;
    return size < left ? size : left;
  };
  AnyTile window = tile;
  size_tile(window, s[2], s[3], open(at<int64_t>(frame, s[6]), s[4], tile.RowMaskInternal, row),
            open(at<int64_t>(frame, s[7]), s[5], tile.ColMaskInternal, col));
  window.Line = static_cast<int>(s[14]);
  const auto far = [](int64_t index, int64_t step) {
    int64_t found = 0;
    return __builtin_mul_overflow(index, step, &found) || found < -detail::kFar || found > detail::kFar
               ? detail::kFar
               : found;
  };
  part_of_tile(window, tile, (far(row, s[11]) + far(col, s[12])) * static_cast<int64_t>(s[13]) / 8, s[13]);
  at<AnyTile>(frame, s[0]) = window;
}

/// Access to elements in memory: of type T, or of four bits (Nibbles).
template <class T>
struct Elements {
  static T get(const uint8_t* at, size_t i) { return reinterpret_cast<const T*>(at)[i]; }
  static void put(uint8_t* at, size_t i, T value) { reinterpret_cast<T*>(at)[i] = value; }
};
struct Nibbles {
  static uint8_t get(const uint8_t* at, size_t i) { return i % 2 != 0 ? at[i / 2] >> 4 : at[i / 2] & 0xF; }
  static void put(uint8_t* at, size_t i, uint8_t value) {
    at[i / 2] =
        static_cast<uint8_t>(i % 2 != 0 ? (at[i / 2] & 0x0F) | value << 4 : (at[i / 2] & 0xF0) | value);
  }
};
template <class Work>
void with_elements(size_t bits, Work work) {
  switch (bits) {
    case 8: return work(Elements<uint8_t>{});
    case 16: return work(Elements<uint16_t>{});
    case 32: return work(Elements<uint32_t>{});
    case 64: return work(Elements<uint64_t>{});
    default: return work(Nibbles{});
  }
}

/// Return the number of elements of a column-major tile that a call may access. Instructions that write past
/// the valid region stay in the memory of the core. In other memory (a FIFO) only the valid region counts.
size_t reach(const AnyTile& tile, size_t bits) {
  const detail::Core& core = detail::core();
  const auto* data = reinterpret_cast<const char*>(tile.data());
  for (int space = 0; space < detail::kSpaces; ++space) {
    const char* end = core.space[space] + detail::room(space);
    if (data >= core.space[space] && data < end)
      return std::min(static_cast<size_t>(tile.Numel), static_cast<size_t>(end - data) * 8 / bits);
  }
  const size_t rows = tile.RowMaskInternal, cols = tile.ColMaskInternal;
  return rows == 0 || cols == 0 ? 0 : (cols - 1) * static_cast<size_t>(tile.Rows) + rows;
}

/// Return the size of a copy of such a tile in bytes, with some more bytes for wide accesses.
size_t turned_bytes(const AnyTile& tile, size_t bits) {
  return (static_cast<size_t>(tile.Numel) * bits / 8 + 128) / 64 * 64;
}

/// Call `move` for the first elements of such a tile: index in the tile, index in a row-major tile.
template <class Move>
void each_turned(const AnyTile& tile, size_t count, Move move) {
  const auto rows = static_cast<size_t>(tile.Rows), cols = static_cast<size_t>(tile.Cols);
  for (size_t first = 0, c = 0; first < count; first += rows, ++c)
    for (size_t r = 0; r < rows && first + r < count; ++r) move(first + r, r * cols + c);
}

void set_valid(char* frame, const uint32_t* s) {  // tile, rows, columns, valid rows, valid columns
  AnyTile &tile = at<AnyTile>(frame, s[0]), checked;
  size_tile(checked, std::min(s[1], static_cast<uint32_t>(tile.Rows)),
            std::min(s[2], static_cast<uint32_t>(tile.Cols)), at<int64_t>(frame, s[3]),
            at<int64_t>(frame, s[4]));
  tile.RowMaskInternal = checked.RowMaskInternal;
  tile.ColMaskInternal = checked.ColMaskInternal;
}

void make_tile(char* frame, const uint32_t* s) {  // result, rows, columns, valid rows, valid columns
  AnyTile tile;
  size_tile(tile, s[1], s[2], at<int64_t>(frame, s[3]), at<int64_t>(frame, s[4]));
  at<AnyTile>(frame, s[0]) = tile;
}

void same_tile(
    char* frame,
    const uint32_t* s) {  // result, source, rows, columns, valid ones (-1: not given), same valid region
  const AnyTile& source = at<AnyTile>(frame, s[1]);
  int64_t rows = at<int64_t>(frame, s[4]), cols = at<int64_t>(frame, s[5]);
  if (rows < 0) rows = s[6] != 0 ? source.RowMaskInternal : s[2];
  if (cols < 0) cols = s[6] != 0 ? source.ColMaskInternal : s[3];
  AnyTile tile = source;
  tile.Line = 0;
  size_tile(tile, s[2], s[3], rows, cols);
  at<AnyTile>(frame, s[0]) = tile;
}

/// Make a row-major tile of a column-major one: the tile itself if it has one column, else a copy. Changes of
/// the copy are copied back after the call. Unchanged elements are not written, because tiles may share
/// memory; so the original elements are kept behind the copy. `k_aligned_` of the copy is not used.
void rows_of_tile(char* frame, const uint32_t* s) {  // result, tile, bits
  const AnyTile& tile = at<AnyTile>(frame, s[1]);
  AnyTile& rows = at<AnyTile>(frame, s[0]);
  rows = tile;
  if (tile.Cols == 1) return;
  const size_t bits = s[2], bytes = turned_bytes(tile, bits);
  auto* data = reinterpret_cast<uint8_t*>(detail::map_guarded(2 * bytes));
  if (data == nullptr) detail::failf("no memory for a tile of %zu bytes", bytes);
  detail::bind(rows, data);
  with_elements(bits, [&](auto elements) {
    each_turned(tile, reach(tile, bits), [&](size_t from, size_t to) {
      const auto element = elements.get(tile.data(), from);
      elements.put(data, to, element);
      elements.put(data + bytes, to, element);
    });
  });
}
void back_to_tile(char* frame, const uint32_t* s) {  // tile, result of rows_of_tile, bits
  AnyTile& tile = at<AnyTile>(frame, s[0]);
  AnyTile& rows = at<AnyTile>(frame, s[1]);
  if (rows.data() == tile.data()) return;
  const size_t bits = s[2];
  const uint8_t *now = rows.data(), *before = now + turned_bytes(tile, bits);
  with_elements(bits, [&](auto elements) {
    each_turned(tile, reach(tile, bits), [&](size_t to, size_t from) {
      const auto element = elements.get(now, from);
      if (element != elements.get(before, from)) elements.put(tile.data(), to, element);
    });
  });
  if (detail::DeferredCopies* deferred = detail::deferred_copies(); deferred != nullptr)
    detail::settle_deferred(*deferred, true);
  detail::unmap_guarded(rows.data());
}

void pointer_to(char* frame, const uint32_t* s) {  // result, address, its width, space
  at<char*>(frame, s[0]) =
      detail::pointer_at(static_cast<TileType>(s[3]), static_cast<uint64_t>(integer(frame, s[1], s[2])));
}
void add_to_pointer(char* frame, const uint32_t* s) {  // result, pointer, offset, its width, bits
  at<char*>(frame, s[0]) =
      at<char*>(frame, s[1]) + integer(frame, s[2], s[3]) * static_cast<int64_t>(s[4]) / 8;
}

/// result, pointer, buffers (2), flag, directions (1 C2V, 2 V2C), slot size, slots, local slots, no split
void make_pipe(char* frame, const uint32_t* s) {
  OpenPipe pipe;
  pipe.fifo = {at<void*>(frame, s[1]), at<uint32_t>(frame, s[2]), at<uint32_t>(frame, s[3])};
  pipe.flag = static_cast<int>(s[4]);
  pipe.is_c2v = (s[5] & 1) != 0;
  pipe.is_both = s[5] == 3;
  pipe.slot_size = s[6];
  pipe.slot_num = s[7];
  pipe.local_num = s[8];
  pipe.no_split = s[9] != 0;
  pipe.cons.direction = pipe.is_c2v ? 0 : 1;
  at<OpenPipe>(frame, s[0]) = pipe;
}
static_assert(sizeof(OpenPipe) <= 128, "_PIPE of image/lower.py");

/// Start or stop the recording of deferred copies on this core: see ops/deferred_copies.hpp.
void defer_copies(char*, const uint32_t* s) {
  detail::core().deferred->wanted = true;
  detail::core().deferred->notes = s[0] != 0;
}
/// Perform the deferred copies that read global memory, or all of them.
void settle_copies(char*, const uint32_t* s) { detail::settle_deferred(*detail::core().deferred, s[0] != 0); }
/// Drop deferred copies into a tile that is written before its next read: tile, its bytes.
void forget_tile(char* frame, const uint32_t* s) {
  const auto* data = reinterpret_cast<const char*>(at<AnyTile>(frame, s[0]).data());
  detail::forget_deferred(*detail::core().deferred, data, s[1]);
}

/// Bind a tile to the memory of a view if the rows are contiguous there, as in the tile. Otherwise bind the
/// tile to its own memory (`home`) and set `missing`: the program then performs the load.
void lend_view(char* frame, const uint32_t* s) {  // missing, tile, home, view, bits
  AnyTile& tile = at<AnyTile>(frame, s[1]);
  tile = at<AnyTile>(frame, s[2]);
  const pto_view& view = at<pto_view>(frame, s[3]);
  bool dense = view.stride[4] == 1 && view.shape[4] == tile.Cols;
  int64_t rows = 1;
  for (int d = 3; d >= 0; --d) {
    dense = dense && (view.shape[d] == 1 || view.stride[d] == rows * tile.Cols);
    rows = view.shape[d] > tile.Rows ? 0 : rows * view.shape[d];
  }
  const size_t bytes = static_cast<size_t>(tile.Numel) * s[4] / 8;
  const bool lent = dense && rows == tile.Rows && detail::goes_on_behind(view.data, bytes);
  at<uint64_t>(frame, s[0]) = lent ? 0 : 1;
  if (!lent) return;
  detail::touch("TLOAD", view.data, 0, static_cast<int64_t>(bytes), detail::Use::read);
  detail::bind(tile, view.data);
}
void lend_entry(char*, const uint32_t*) { detail::core().lends = true; }
/// Replacements for the two above in untrusted images, which do not prove that such a tile is only read.
void lend_no_view(char* frame, const uint32_t* s) {
  at<AnyTile>(frame, s[1]) = at<AnyTile>(frame, s[2]);
  at<uint64_t>(frame, s[0]) = 1;
}
void lend_no_entry(char*, const uint32_t*) {}

void first_vector_core(char* frame, const uint32_t* s) {  // result
  at<uint8_t>(frame, s[0]) = get_subblockid() == 0;
}

void obey_tags(char* frame, const uint32_t* s) {  // result
  at<uint64_t>(frame, s[0]) = detail::core().ctrl;
  detail::core().ctrl &= ~(uint64_t{1} << 60);
}
void set_control(char* frame, const uint32_t* s) { detail::core().ctrl = at<uint64_t>(frame, s[0]); }

void check_step(char* frame, const uint32_t* s) {  // step, width
  detail::check_step(integer(frame, s[0], s[1]));
}

void check_divisor(char* frame, const uint32_t* s) {  // value
  const auto by = at<int64_t>(frame, s[0]);
  if (by <= 0)
    detail::failf("[PTO-E2102] a divisor of %lld, which must be positive", static_cast<long long>(by));
}

constexpr struct {
  const char* name;
  Function function;
} kOwn[] = {{"vm.view", make_view},
            {"vm.part", part_view},
            {"vm.dim", view_dim},
            {"vm.stride", view_stride},
            {"vm.tile", make_tile},
            {"vm.valid", set_valid},
            {"vm.same", same_tile},
            {"vm.step", check_step},
            {"vm.divisor", check_divisor},
            {"vm.assign", assign_tile},
            {"vm.window", window_of_tile},
            {"vm.obey", obey_tags},
            {"vm.control", set_control},
            {"vm.subset", subset_of_tile},
            {"vm.pointer", pointer_to},
            {"vm.add", add_to_pointer},
            {"vm.pipe", make_pipe},
            {"vm.first", first_vector_core},
            {"vm.owe", defer_copies},
            {"vm.settle", settle_copies},
            {"vm.forget", forget_tile},
            {"vm.lent", lend_view},
            {"vm.lend", lend_entry},
            {"vm.rows", rows_of_tile},
            {"vm.back", back_to_tile},
            {"vm.lent!", lend_no_view},
            {"vm.lend!", lend_no_entry},
            PTO_VM_VALUES,
            PTO_VM_SCREEN};

// --- launches ----------------------------------------------------------------------------------------------

void run_code(const pto_launch& launch, const detail::Core& const_core, const pto_code& code) {
  auto& core = const_cast<detail::Core&>(const_core);
  const auto& program = *static_cast<const pto_program*>(launch.program);
  core.target = reinterpret_cast<const detail::Target*>(&program.target);
  const Frame frame(code);
  // `special` of the launch has one entry per argument for each code.
  const auto special = static_cast<int>(&code - program.codes) * launch.argc;
  for (uint32_t i = 0; i < code.argc; ++i) {
    const uint64_t word = detail::word_of(launch, core, static_cast<int>(i), special);
    if (code.arguments[2 * i + 1] != 0) {
      std::memcpy(frame.at + code.arguments[2 * i], reinterpret_cast<const void*>(word), sizeof(pto_view));
    } else {
      std::memcpy(frame.at + code.arguments[2 * i], &word, sizeof word);
    }
  }
  execute(program, code, frame.at, core, true);
}

void first_code(const pto_launch& launch, const detail::Core& core) {
  run_code(launch, core, static_cast<const pto_program*>(launch.program)->codes[0]);
}
void second_code(const pto_launch& launch, const detail::Core& core) {
  run_code(launch, core, static_cast<const pto_program*>(launch.program)->codes[1]);
}

}  // namespace

void execute(const pto_program& program, const pto_code& code, char* frame, detail::Core& core,
             bool in_launch) {
  const struct Deferring {
    detail::Core& core;
    detail::DeferredCopies copies;
    explicit Deferring(detail::Core& of) : core(of) { core.deferred = &copies; }
    ~Deferring() { core.deferred = nullptr; }
  } deferring(core);
  if (code.run != nullptr) {
    Asked time_limit(core, in_launch);
    return code.run(frame, code.words, program.functions, &core.mark, &time_limit);
  }
  const auto base = static_cast<int32_t>((&code - program.codes) << 28);
  interpret(code, base, reinterpret_cast<const Function*>(program.functions), program.kinds, frame, core,
            in_launch);
}

}  // namespace pto::vm

/// Return the function of the machine with this name, or null.
PTO_EXPORT void* pto_vm_own(const char* name) {
  for (const auto& own : pto::vm::kOwn)
    if (std::strcmp(own.name, name) == 0) return reinterpret_cast<void*>(own.function);
  return nullptr;
}

/// Return the handling of a call of this name: kCall, or the kind of a call that is executed inline.
PTO_EXPORT int pto_vm_kind(const char* name) {
  int kind = pto::vm::kCall;
  for (const char* own : pto::vm::kQuick)
    if (++kind, std::strcmp(own, name) == 0) return kind;
  return pto::vm::kCall;
}

namespace {
int launch_image(pto_launch* launch) {
  using pto::detail::CoreKind;
  const auto& program = *static_cast<const pto_program*>(launch->program);
  const auto args = [&](uint32_t i) { return static_cast<int>(program.codes[i].argc); };
  if (program.code_count == 2) {
    const pto::detail::Role roles[] = {{CoreKind::Cube, 0, pto::vm::first_code},
                                       {CoreKind::Vector, 0, pto::vm::second_code},
                                       {CoreKind::Vector, 1, pto::vm::second_code}};
    return pto::detail::run_launch(launch, roles, 3, args(0) > args(1) ? args(0) : args(1));
  }
  const auto kind = static_cast<CoreKind>(program.codes[0].kind);
  const pto::detail::Role roles[] = {{kind, 0, pto::vm::first_code}};
  return pto::detail::run_launch(launch, roles, 1, args(0));
}
}  // namespace

PTO_EXPORT int pto_launch_image(pto_launch* launch) {
  pto::vm::Running running(*launch);
  const int status = launch_image(&running);
  *launch = running;
  return status;
}
