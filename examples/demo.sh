#!/usr/bin/env bash
# A tour of the tools over the examples; run it with `make demo`, or steps of it by their names. Uses ptoas, pto
# and python from PATH. Fails if a legal example is refused, a result is wrong, or a planted mistake is not found.
# What needs a C++ compiler is left out where there is none.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$out"' EXIT

step=0
say() { step=$((step + 1)); printf '\n[%d/%d] %s\n' "$step" $((${#steps[@]} + 1)) "$*"; }
run() { printf '$ %s\n' "${*//$out\//}"; "$@"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }
# caught CODE COMMAND...: the command must fail, and name the code.
caught() {
  local code=$1
  shift
  if run "$@" 2>"$out/problems"; then fail "$code was not found"; fi
  sed "s,$out/,,g" "$out/problems"
  grep -q "error\[$code\]" "$out/problems" || fail "$code was not found"
}
# compiler WHAT: whether there is a C++ compiler; if not, says that WHAT is left out.
compiler() {
  python -c 'from pto.engine.cpp import compiler; compiler.find()' 2>"$out/problems" && return
  echo "No C++ compiler on this machine (pto doctor says why): $1 left out."
  return 1
}
compare() { # compare FILE EXPRESSION over a, b and c
  python - "$out" "$1" "$2" <<'PY'
import sys
import numpy as np
folder, name, expression = sys.argv[1:]
a, b, c = (np.load(f"{folder}/{n}.npy") for n in ("a", "b", name))
print(f"NumPy: {eval(expression)}")
PY
}

python - "$out" <<'PY'
import sys
import numpy as np
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 64, 128), dtype=np.float32)
np.save(f"{sys.argv[1]}/a.npy", a)
np.save(f"{sys.argv[1]}/b.npy", b)
np.save(f"{sys.argv[1]}/small.npy", rng.uniform(0, 0.01, (16, 128)).astype(np.float16))
PY

installed() {
  say 'What is installed'
  run ptoas --version
  run pto doctor
}

forms() {
  say 'One program, four text forms, the same meaning'
  for form in pto ssa asm generic; do
    printf '$ ptoas 01_vec_add.pto --emit=%s | grep tadd\n' "$form"
    ptoas 01_vec_add.pto --emit="$form" -o "$out/vec_add.$form"
    grep tadd "$out/vec_add.$form"
  done
  for form in pto asm generic; do
    ptoas "$out/vec_add.$form" --emit=ssa | cmp -s - "$out/vec_add.ssa" || fail "the $form form came back different"
  done
  echo 'All forms read back as the same program'
}

legal() {
  say 'Every example is legal for its target, but for two'
  echo '$ pto check 0*.pto* 1[1-4]_*.pto kernels/*.pto micro/*.pto'
  pto check 0*.pto* 1[1-4]_*.pto kernels/*.pto micro/*.pto
  if run pto check 10_wrong.pto 2>"$out/problems"; then fail '10_wrong.pto was accepted'; fi
  cat "$out/problems"
  [ "$(grep -c ' error\[' "$out/problems")" -eq 3 ] || fail '10_wrong.pto should have three errors'
  caught PTO-E2210 pto check 15_overlap.pto
}

kernel() {
  say 'Run a kernel: c = a + b'
  run pto run 02_manual_flags.pto --sanitize all -- "@$out/a.npy" "@$out/b.npy" "f32:64x128=$out/c.npy"
  compare c 'f"{np.count_nonzero(c == a + b)} of {c.size} elements are a + b"'
  echo '$ python 11_run.py'
  python 11_run.py | tee "$out/runs"
  if grep -q False "$out/runs"; then fail 'a kernel computes something else than NumPy'; fi
}

python_language() {
  say 'A graph in Python: relu(x @ w + bias), a cube and a vector task per 64 rows; and a mistake in one'
  grep -n -A7 '^@pl.jit$' python/04_graph.py
  run python python/04_graph.py | tee "$out/tasks"
  grep -q 'close to NumPy: True' "$out/tasks" || fail 'the graph computes something else than NumPy'
  sed 's/pl.matmul(x, w)/pl.matmul(x, x)/' python/04_graph.py >"$out/wrong.py"
  if python "$out/wrong.py" 2>"$out/problems"; then fail 'the mistake was not found'; fi
  echo '$ python wrong.py'
  sed -n "s,.*$out/,,; /PTO-E3005/,\$p" "$out/problems" | tee "$out/found"
  grep -q 'PTO-E3005' "$out/found" || fail 'PTO-E3005 was not found'
}

race() {
  say 'A race, planted: the same kernel without the flag from the loads to the addition'
  run pto check 12_race.pto
  run pto run 12_race.pto -- "@$out/a.npy" "@$out/b.npy" "f32:64x128=$out/c.npy"
  compare c 'f"{np.count_nonzero(c == a + b)} of {c.size} elements are a + b"'
  echo 'Legal, and right in program order. But nothing makes the addition wait:'
  caught PTO-E2201 pto run 12_race.pto --sanitize race -- "@$out/a.npy" "@$out/b.npy" f32:64x128
  echo 'In another order that the flags allow:'
  run pto run 12_race.pto --schedule seed=4 -- "@$out/a.npy" "@$out/b.npy" "f32:64x128=$out/late.npy"
  compare late 'f"{np.count_nonzero(c == a + b)} of {c.size} elements are a + b"'
}

values() {
  say 'Memory nobody wrote, and arithmetic that loses too much'
  caught PTO-E2203 pto run 13_undefined.pto --sanitize undef -- "@$out/a.npy" f32:16x128
  caught PTO-E2301 pto run 14_cancellation.pto --shadow f64 -- "@$out/small.npy" f16:16x128
}

micro() {
  say 'Below tiles: softmax in vector registers; and without the barrier between its stores and loads'
  run pto run micro/softmax.pto --sanitize all -- "@$out/a.npy" "f32:64x128=$out/c.npy" 64 128
  compare c 'f"softmax of every row, to {abs(c - (e := np.exp(a - a.max(1)[:, None])) / e.sum(1)[:, None]).max():.0e}"'
  printf "$ grep -v 'pto.mem_bar' micro/softmax.pto > no_barrier.pto\n"
  grep -v 'pto.mem_bar' micro/softmax.pto >"$out/no_barrier.pto"
  caught PTO-E2206 pto run "$out/no_barrier.pto" --sanitize race -- "@$out/a.npy" f32:64x128 64 128
}

memory() {
  say 'A picture of memory: two tiles on the same bytes'
  run pto run 15_overlap.pto --memory-map - -- "@$out/a.npy" "@$out/b.npy" f32:64x128 | tee "$out/map"
  grep -q 'overlap: %ta and %tb' "$out/map" || fail 'the overlap was not found'
}

emission() {
  say 'Without addresses and flags: place the tiles, insert the flags, emit C++; run it, without a compiler and with one'
  run ptoas 01_vec_add.pto --enable-insert-sync --explain-memory -o "$out/vec_add.cpp"
  grep -n 'T[A-Z]*(\|_flag(PIPE_MTE2\|_flag(PIPE_V' "$out/vec_add.cpp"
  run pto run 01_vec_add.pto -- "@$out/a.npy" "@$out/b.npy" "f32:64x128=$out/c.npy"
  compare c 'f"{np.count_nonzero(c == a + b)} of {c.size} elements are a + b"'
  if compiler 'the run of the C++ is'; then
    run pto run "$out/vec_add.cpp" -- "@$out/a.npy" "@$out/b.npy" "f32:64x128=$out/c.npy"
    compare c 'f"{np.count_nonzero(c == a + b)} of {c.size} elements are a + b"'
  fi
}

graphs() {
  say 'Graphs of tasks: a cube and a vector kernel in .pto; paged attention in C++ on 24 blocks of 1 cube and 2 vector cores'
  run python runtime/python/cluster_pipe.py | tee "$out/tasks"
  grep -q 'equal to NumPy: True' "$out/tasks" || fail 'the graph computes something else than NumPy'
  if compiler 'paged attention, whose kernels are C++, is'; then
    pictures=${PTO_DEMO:-../build/demo}
    mkdir -p "$pictures"
    run pto runtime run runtime/batch_paged_attention --case CaseBatch256 --block-dim 24 --summary \
      --trace "$pictures/trace.json" --swimlane "$pictures/swimlane.html" | tee "$out/tasks"
    grep -q '^208 tasks' "$out/tasks" || fail 'the graph should have 208 tasks'
    echo "Open $(cd "$pictures" && pwd)/swimlane.html in a browser, and trace.json beside it at ui.perfetto.dev"
  fi
}

steps=(installed forms legal kernel python_language race values micro memory emission graphs)
[ $# -eq 0 ] || steps=("$@")
# The last one compiles most of the time: it starts first, and is shown in its turn.
last=${steps[-1]}
(step=$((${#steps[@]} - 1)) && mkdir "$out/last" && cp "$out"/*.npy "$out/last" && out=$out/last && "$last") >"$out/shown" 2>&1 &
for name in "${steps[@]::${#steps[@]}-1}"; do "$name"; done
wait $! || { cat "$out/shown"; exit 1; }
cat "$out/shown"
step=${#steps[@]}

say 'Done'
echo 'docs/python.md goes from NumPy to a task graph; docs/tutorial.md is half an hour of kernels in PTO text;'
echo 'docs/kernels.md explains softmax, GEMM, attention and more;'
echo 'docs/micro.md draws what vector instructions do;'
echo 'docs/runtime.md has ten minutes of graphs of tasks; make docs builds the site, with a page per instruction and per diagnostic code.'
