"""Programs as images: flat lists of calls that the virtual machine executes.

`calls` says what an operation calls, `lower` makes the image of a program, `format` is what it consists of
and its bytes, `operands` what the operands of instructions are, `check` proves an image safe. `container` are
files of images, made of `elf` (it reads other ELF files, too) and `lines`; `listing` is their text. `pack` is
the C++ of calls, `every_call` are those of all instructions. See docs/image.md.
"""
