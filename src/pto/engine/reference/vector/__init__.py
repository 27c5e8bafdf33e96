"""Executors of the vector micro-instructions, one module per family; `lanes` is what they share."""
