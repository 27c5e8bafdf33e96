"""List operators: `python -m pto.language [WORD...]` prints those with a word in their name or
description."""

from __future__ import annotations

import os
import sys

from .catalogue import listing


def main(words: list[str]) -> int:
    found = listing(words)
    try:
        print(
            found or f"no operator has {' or '.join(map(repr, words))} in its name or description", flush=True
        )
    except OSError as e:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"cannot write to standard output: {(e.strerror or str(e)).lower()}", file=sys.stderr)
        return 1
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
