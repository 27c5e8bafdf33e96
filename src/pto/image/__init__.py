"""Programs as images: flat lists of calls that the virtual machine executes, without a compiler.

`calls` says what an operation calls, `lower` makes the image of a program, `format` is its bytes, `universe` are
the calls that the package has compiled. See docs/image.md.
"""
