"""Programs as images: flat lists of calls that the virtual machine executes.

`lower` makes images from programs, with `calls`. `format` defines the bytes of an image, `operands` the
operands of its instructions. `check` proves that an image is safe, `listing` prints and assembles images.
`container` reads and writes image files, with `elf` and `lines`. `pack` writes the C++ of calls, `every_call`
lists the calls of all instructions. See docs/image.md.
"""
