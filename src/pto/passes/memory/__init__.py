"""What `plan_memory` is made of: a strategy, packing, spreading, results in place, what it tells."""
