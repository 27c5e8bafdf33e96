"""Engine `native`: images on the virtual machine of the package. `packs` has the libraries of functions that
the machine calls, `machine` its C interface, `kernel` the kernels of programs. `images` makes files of
images, and `files` has their kernels. `objects` writes objects, and `object_kernel` runs them. `engine`
selects."""
