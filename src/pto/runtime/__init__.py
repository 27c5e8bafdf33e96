"""The PTO2 task runtime from Python: graphs of kernels, their runs, and pictures of them."""
