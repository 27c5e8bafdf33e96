"""Graphs of tasks: their dependencies, and how orchestrations run, one by one or in parallel."""
