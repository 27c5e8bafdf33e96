"""Parts of `plan_memory`: strategies, packing, spreading, results in place, reports."""
