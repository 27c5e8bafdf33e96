"""Run a program: elements and tile storage as arrays, and the engines built on them."""
