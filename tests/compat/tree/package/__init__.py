"""A package with a script in it."""
