"""Integers and truth values with symbols, and the solver z3."""
