"""Helper functions of orchestrations in C++, and reserved names."""

from __future__ import annotations

#: Helper functions by name; the text includes those that it uses.
HELPERS = {
    "create": """\
/// A tensor with memory of the scope at hand.
template <int N>
static Tensor create(DataType dtype, const int64_t (&shape)[N], bool manual_dep = false, uint64_t initial = 0,
                     bool has_initial = false) {
  TensorCreateInfo info(shape, N, dtype, manual_dep);
  if (has_initial) info.set_initial_value(initial);
  const TaskOutputTensors made = alloc_tensors(info);
  return made.get_ref(0);
}
""",
    "window": """\
/// A part of a tensor, as far as the tensor goes.
template <int N>
static Tensor window(const Tensor& x, const int64_t (&shape)[N], const int64_t (&offset)[N]) {
  uint64_t shapes[N], offsets[N];
  for (int d = 0; d < N; d++) {
    const uint64_t have = x.data().shapes[d];
    offsets[d] = static_cast<uint64_t>(offset[d]);
    const uint64_t left = offsets[d] < have ? have - offsets[d] : 0, asked = static_cast<uint64_t>(shape[d]);
    shapes[d] = asked < left ? asked : left;
  }
  return x.view(shapes, offsets);
}
""",
    "reshaped": """\
/// The same elements, one after the other, from where a tensor begins.
template <int N>
static Tensor reshaped(const Tensor& x, const int64_t (&shape)[N]) {
  uint64_t shapes[N];
  for (int d = 0; d < N; d++) shapes[d] = static_cast<uint64_t>(shape[d]);
  if (x.is_contiguous()) return x.reshape(shapes, N);
  Tensor made = x.copy();
  const TensorData& from = x.data();
  TensorData& to = made.data();
  to.init(reinterpret_cast<void*>(from.buffer.addr), from.buffer.size, shapes, shapes,
          pto2_detail::kNoOffsets, N, from.dtype, from.version);
  to.base_offset = to.start_offset = from.start_offset;
  to.owner_scope = from.owner_scope;
  to.manual_dep = from.manual_dep;
  to.owner_task = from.owner_task;
  return made;
}
""",
    "element": """\
/// An element, when the tasks that write it have run.
template <class T, int N>
static T element(const Tensor& x, const int64_t (&at)[N], const char* file, int line) {
  return get_tensor_data<T, int64_t>(x, N, at, file, line);
}
""",
    "set_element": """\
/// Set an element, when the tasks that write or read it have run.
template <class T, int N>
static void set_element(const Tensor& x, const int64_t (&at)[N], T value, const char* file, int line) {
  set_tensor_data<T, int64_t>(x, N, at, value, file, line);
}
""",
    "join": """\
/// A task that runs nothing and waits for others; none if there is no task to wait for.
static PTO2TaskId join(std::initializer_list<PTO2TaskId> tasks, const char* file, int line) {
  bool any = false;
  for (const PTO2TaskId& task : tasks) any = any || task.is_valid();
  if (!any) return PTO2TaskId::invalid();
  CoreTaskArgs args;
  args.set_dependencies(tasks.begin(), static_cast<uint32_t>(tasks.size()));
  return rt_submit_dummy_task(args, file, line).task_id();
}
""",
    "number": """\
/// A number as a task gets it: its bits, the low ones of a slot.
template <class T>
static PTOParam number(T value) {
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  return make_scalar_param(word);
}
""",
    "floor_div": """\
template <class T>
static T floor_div(T a, T b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "floor_mod": """\
template <class T>
static T floor_mod(T a, T b) {
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
""",
    "least": """\
template <class T>
static T least(T a, T b) {
  return b < a ? b : a;
}
""",
    "most": """\
template <class T>
static T most(T a, T b) {
  return a < b ? b : a;
}
""",
    "absolute": """\
template <class T>
static T absolute(T a) {
  return a < 0 ? -a : a;
}
""",
}  # fmt: skip

#: C++ keywords, and names that the text uses itself.
KEYWORDS = frozenset("""
    alignas alignof and asm auto bool break case catch char class compl const continue default delete do
    double else enum explicit export extern false float for friend goto if inline int long mutable namespace
    new not operator or private protected public register return short signed sizeof static struct switch
    template this throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor task asked runs_if params Tensor
""".split()) | HELPERS.keys()  # fmt: skip
