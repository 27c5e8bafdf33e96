"""Package the extension of VS Code with its grammar: `python editors/vsix.py dist/pto.vsix`. Needs no npm."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from pto import __version__
from pto.lsp.grammar import textmate

FOLDER = Path(__file__).parent / "vscode"
_TYPES = """\
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".js" ContentType="application/javascript"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
"""
_MANIFEST = """\
<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
    <DisplayName>{title}</DisplayName>
    <Description xml:space="preserve">{description}</Description>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def write(path: Path) -> None:
    about = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    about["version"] = __version__.partition("+")[0]
    manifest = _MANIFEST.format(
        **{name: quoteattr(about[name]) for name in ("name", "version", "publisher")},
        title=about["displayName"],
        description=about["description"],
        engine=quoteattr(about["engines"]["vscode"]),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("[Content_Types].xml", _TYPES)
        out.writestr("extension.vsixmanifest", manifest)
        out.writestr("extension/package.json", json.dumps(about, indent=2))
        out.writestr("extension/pto.tmLanguage.json", textmate())
        for name in ("extension.js", "rpc.js", "language-configuration.json"):
            out.write(FOLDER / name, f"extension/{name}")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
