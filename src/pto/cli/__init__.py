"""The command line tools: `ptoas`, `ptobc`, `pto VERB`. Thin mains over the library."""
