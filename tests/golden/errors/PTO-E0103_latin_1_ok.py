# RUN: python %s
# RUN: pto check -q k.pto
from pathlib import Path

TEXT = '''
module {
  func.func @k() {  // größe
    return
  }
}
'''
Path("k.pto").write_text(TEXT, encoding="utf-8")
