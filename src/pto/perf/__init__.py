"""Analyses and drawings of finished runs: memory maps, traces, swimlanes, graphs."""
