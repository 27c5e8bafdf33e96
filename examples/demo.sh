#!/usr/bin/env bash
# A tour of the tools over the examples; run it with `make demo`. Uses ptoas and pto from PATH.
# Fails if an example that should be legal is refused, or the wrong one is accepted.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

step=0
say() { step=$((step + 1)); printf '\n[%d/7] %s\n' "$step" "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

say 'What is installed'
run ptoas --version
run pto doctor

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

say 'Every example is legal for its target'
for example in *.pto *.pto.s; do
  [ "$example" = 10_wrong.pto ] || run pto check "$example"
done

say 'One that is not: 10_wrong.pto'
if run pto check 10_wrong.pto 2>"$out/problems"; then fail '10_wrong.pto was accepted'; fi
cat "$out/problems"
[ "$(grep -c ' error\[' "$out/problems")" -eq 3 ] || fail '10_wrong.pto should have three errors'

say 'What a code means'
run pto explain SA-0353

say 'What the table knows about an instruction'
run pto isa tadd

say 'Done'
echo 'The tutorial is docs/tutorial.md; `make docs` builds the site with a page per instruction.'
