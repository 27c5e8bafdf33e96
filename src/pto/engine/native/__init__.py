"""Engine `native`: images on the virtual machine of the package. `packs` are the libraries of functions that
it calls, `machine` its C interface, `kernel` a kernel; `objects` writes objects, `object_kernel` runs one."""
