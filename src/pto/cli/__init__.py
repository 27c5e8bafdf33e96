"""Command line tools: `ptoas`, `ptobc` and `pto VERB`. Each tool is a thin main over the library."""
