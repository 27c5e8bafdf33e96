"""Cube micro-instructions: products of L0A and L0B, the moves that feed them, the fix-pipe behind L0C."""
