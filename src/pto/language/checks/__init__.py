"""Checks of programs and runs: likely mistakes, counted padding, and the memory that tasks touch."""
