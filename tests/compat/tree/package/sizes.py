"""Module that the script imports."""

ROWS, COLS = 16, 64
