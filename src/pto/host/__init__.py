"""Whole programs in C++ that allocate, launch and communicate: built here, and started as ranks."""
