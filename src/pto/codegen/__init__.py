"""Programs as code for other compilers: `cpp` (Flow A)."""
