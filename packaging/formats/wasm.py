"""npm package of the WebAssembly module, which JavaScript imports: it runs on every platform."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from declaration import ROOT, Release
from formats.notices import module_notices

SOURCE = ROOT / "crates/wasm/npm"


def build() -> Path:
    """Builds the package, and returns its folder."""
    for words in (["ci", "--no-fund", "--no-audit"], ["run", "build"]):
        subprocess.run(["npm", "--prefix", SOURCE, *words], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "npm/gguf-kit-wasm"


def write(release: Release, built: Path, dist: Path) -> Path:
    """Copies a built package, and adds what only a release knows."""
    folder = dist / "npm" / f"{release.name}-wasm"
    shutil.copytree(built, folder, dirs_exist_ok=True)
    file = folder / "package.json"
    repository = {"type": "git", "url": f"git+{release.repository}.git"}
    fields = {**json.loads(file.read_text()), "repository": repository, "homepage": release.repository}
    file.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8", newline="\n")
    (folder / "THIRD-PARTY.txt").write_text(module_notices(), encoding="utf-8", newline="\n")
    return folder
