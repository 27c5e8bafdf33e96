"""Common parts of the engines that run machine code: `arguments` (arrays and numbers as words), `library`
(the C interface of a built kernel), `kernel` (a launch and its result), `bounds` (an access outside an
array).
"""
