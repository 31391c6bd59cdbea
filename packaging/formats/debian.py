"""Debian packages, from archives. Requires ``dpkg-deb``."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from pathlib import Path

from declaration import Release, Target
from formats import archive

ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}
# Folders below /usr/share for completions, with the names of the files there.
COMPLETIONS = {
    "gguf.bash": "bash-completion/completions/gguf",
    "_gguf": "zsh/vendor-completions/_gguf",
    "gguf.fish": "fish/vendor_completions.d/gguf.fish",
}


def file_name(release: Release, target: Target) -> str:
    """File name of a package. Debian sorts 1.0~rc.1 before 1.0."""
    version = release.version.replace("-", "~")
    return f"{release.name}_{version}_{ARCHITECTURES[target.cpu]}.deb"


def compressed(source: Path, file: Path) -> None:
    """Writes a compressed copy without a time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def control(release: Release, target: Target, kilobytes: int) -> str:
    """Fields of a package. The binary is static: there are no dependencies."""
    lines = [
        f"Package: {release.name}",
        f"Version: {release.version.replace('-', '~')}",
        f"Architecture: {ARCHITECTURES[target.cpu]}",
        f"Maintainer: {release.author} <{release.email}>",
        f"Homepage: {release.repository}",
        "Section: science",
        "Priority: optional",
        f"Installed-Size: {kilobytes}",
        f"Description: {release.summary}",
        f" {release.description}",
    ]
    return "\n".join(lines) + "\n"


def write(release: Release, target: Target, dist: Path) -> Path:
    """Writes the package of a Linux target."""
    file = dist / file_name(release, target)
    with tempfile.TemporaryDirectory() as stage:
        archive.unpack(dist / release.archive(target), Path(stage))
        source = Path(stage) / release.folder(target)
        root = Path(stage) / "root"
        share = root / "usr/share"
        documents = share / "doc" / release.name
        (root / "usr/bin").mkdir(parents=True)
        shutil.copy(source / release.command, root / "usr/bin" / release.command)
        compressed(source / "CHANGELOG.md", documents / "NEWS.md.gz")
        compressed(source / "THIRD-PARTY.txt", documents / "THIRD-PARTY.txt.gz")
        shutil.copyfile(source / "README.md", documents / "README.md")
        (documents / "copyright").write_text(
            "Licensed under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0) or the license below,\n"
            "at your option. THIRD-PARTY.txt.gz has the licenses of other code in the binary.\n\n"
            + (source / "LICENSE-MIT").read_text(encoding="utf-8")
        )
        for page in (source / "man").iterdir():
            compressed(page, share / "man/man1" / f"{page.name}.gz")
        for name, place in COMPLETIONS.items():
            (share / place).parent.mkdir(parents=True)
            shutil.copyfile(source / "completions" / name, share / place)
        kilobytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control(release, target, kilobytes))
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, file], stdout=subprocess.DEVNULL, check=True)
    return file
