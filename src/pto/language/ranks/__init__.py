"""Programs of several ranks: their split, the order of their tasks, and their runs."""
