"""Images as machine code: `scalars`, `debug` and `ir` make LLVM IR of them, `machine_code` an object or
assembly of that, `shared` makes a shared object of an object, `contents` is what ours hold. See
docs/objects.md."""
