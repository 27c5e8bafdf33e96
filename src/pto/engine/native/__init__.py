"""Engine `native`: images on the virtual machine of the package. `machine` is its C interface, `kernel` a kernel."""
