"""Executors of the vector micro-instructions, one module per family; `lanes` has their common parts."""
