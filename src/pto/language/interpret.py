"""Bodies executed as ordinary Python over arrays."""
