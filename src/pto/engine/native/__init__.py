"""Engine `native`: images on the virtual machine of the package. `packs` are the libraries of functions that
it calls, `machine` its C interface, `kernel` a kernel of a program; `images` makes files of images, `files`
are their kernels; `objects` writes objects, `object_kernel` runs one; `engine` chooses."""
