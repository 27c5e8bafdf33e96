# RUN: python %s
# RUN: ptobc decode k.ptobc
# EXIT: 1
# TWIN: PTO-E1202_version_ok.py
from pathlib import Path

FILE = [
    "50 54 4f 42 43 00  00 00 00 00  4a 00 00 00",  # PTOBC, version 0, flags, length
    "01 15 00 00 00  03 01 66 08 28 29 20 2d 3e 20 28 29 08 70 74 6f 2e 74 61 64 64",  # strings: f, () -> ()
    "02 04 00 00 00  01 00 01 01",  # types: () -> ()
    "03 01 00 00 00  00",  # attributes: none
    "04 01 00 00 00  00",  # constants: none
    "06 16 00 00 00  00 40 00 00 01 00 01 00 00 01 00 02 ff ff 00 02 00 00 00 01 60 00",  # one function with one block: return
]
Path("k.ptobc").write_bytes(bytes.fromhex("".join(FILE)))
# STDERR 2:
#| k.ptobc:1:79: error[PTO-E1214]: byte 78 (0x4e): tadd takes 3 operands, got 0
