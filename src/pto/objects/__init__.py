"""Machine code for images: `scalars`, `debug` and `ir` generate LLVM IR, `machine_code` an object or assembly
from it, `shared` a shared object from an object, and `contents` reads objects of pto. See docs/objects.md."""
