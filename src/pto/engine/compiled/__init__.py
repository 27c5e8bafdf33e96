"""What every engine needs that runs machine code: `arguments` (arrays and numbers as words), `library` (the C
interface of a built kernel), `kernel` (a launch, and what it came to), `bounds` (an access outside an array).
"""
