# RUN: python %s
# RUN: ptobc decode k.ptobc
# EXIT: 1
# TWIN: PTO-E1202_version_ok.py
from pathlib import Path

FILE = [
    "50 54 4f 42 43 00  00 00 00 00  3a 00 00 00",  # PTOBC, version 0, flags, length
    "01 0c 00 00 00  02 01 66 08 28 29 20 2d 3e 20 28 29",  # strings: f, () -> ()
    "02 04 00 00 00  01 00 01 01",  # types: () -> ()
    "03 01 00 00 00  00",  # attributes: none
    "04 01 00 00 00  00",  # constants: none
    "06 0f 00 00 00  00 40 00 00 01 00 01 00 00 01 00 01 07 10 00",  # one function with one block: return
]
Path("k.ptobc").write_bytes(bytes.fromhex("".join(FILE)))
# STDERR 2:
#| k.ptobc:1:73: error[PTO-E1205]: byte 72 (0x48): MODULE ends here: expected one more byte
