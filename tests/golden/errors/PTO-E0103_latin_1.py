# RUN: python %s
# RUN: pto check -q k.pto
# EXIT: 1
from pathlib import Path

TEXT = '''
module {
  func.func @k() {  // größe
    return
  }
}
'''
Path("k.pto").write_text(TEXT, encoding="latin-1")
# STDERR 2:
#| k.pto:3:26: error[PTO-E0103]: invalid UTF-8 byte 0xF6
#|     3 |   func.func @k() {  // gr��e
#|       |                          ^
#|   help: save the file as UTF-8
