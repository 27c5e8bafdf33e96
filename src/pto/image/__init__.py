"""Programs as images: flat lists of calls that the virtual machine executes.

`calls` makes the calls of operations, `lower` the image of a program. `format` has the parts of an image and
their bytes, `operands` the operands of instructions. `check` proves that an image is safe. `container` has
files of images, made of `elf` (which also reads other ELF files) and `lines`; `listing` is their text. `pack`
is the C++ of calls, `every_call` the calls of all instructions. See docs/image.md.
"""
