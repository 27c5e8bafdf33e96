"""Compatibility with other stacks: programs written for pypto and simpler run on this package unchanged."""
