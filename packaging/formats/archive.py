"""Archives: binary, licenses, manual pages and shell completions in one folder. The same commit gives the same bytes."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from declaration import ROOT, Release, Target
from formats.notices import notices

DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]
# File names that each shell expects.
COMPLETIONS = {"bash": "gguf.bash", "zsh": "_gguf", "fish": "gguf.fish", "powershell": "_gguf.ps1"}


def compile_binary(release: Release, target: Target) -> Path:
    """Builds the binary of a target."""
    command = ["cargo", "build", "--release", "--locked", "--target", target.rust, "-p", "gguf-cli"]
    subprocess.run(command, cwd=ROOT, check=True)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target.rust / "release" / (release.command + target.executable)


def fill(folder: Path, release: Release, target: Target, binary: Path) -> None:
    """Writes the files of an archive to a folder. The binary writes manual pages and completions, so it must run here."""
    for part in ("man", "completions"):
        (folder / part).mkdir(parents=True)
    command = folder / (release.command + target.executable)
    shutil.copyfile(binary, command)
    command.chmod(0o755)
    for name in DOCUMENTS:
        shutil.copyfile(ROOT / name, folder / name)
    (folder / "THIRD-PARTY.txt").write_text(notices(target.rust), encoding="utf-8", newline="\n")
    subprocess.run([command, "man", "--quiet", folder / "man"], check=True)
    for shell, name in COMPLETIONS.items():
        text = subprocess.run([command, "completions", shell], stdout=subprocess.PIPE, check=True).stdout
        (folder / "completions" / name).write_bytes(text)


def pack(folder: Path, file: Path, seconds: int) -> None:
    """Packs a folder, with its name, into a file whose ending says how. `seconds` is the time of all entries."""
    paths = [folder, *sorted(folder.rglob("*"))]
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in filter(Path.is_file, paths):
                name = path.relative_to(folder.parent).as_posix()
                entry = zipfile.ZipInfo(name, time.gmtime(max(seconds, 315532800))[:6])
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100000 | mode(path)) << 16
                archive.writestr(entry, path.read_bytes())
        return
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            entry = archive.gettarinfo(path, path.relative_to(folder.parent).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime, entry.mode = seconds, mode(path)
            if path.is_dir():
                archive.addfile(entry)
            else:
                with path.open("rb") as content:
                    archive.addfile(entry, content)
    with file.open("wb") as output, gzip.GzipFile("", "wb", 9, output, mtime=0) as compressed:
        compressed.write(data.getbuffer())


def mode(path: Path) -> int:
    """Permissions of a folder, an executable or another file. On Windows the ending decides what is executable."""
    return 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644


def unpack(file: Path, folder: Path) -> None:
    """Unpacks an archive that ``pack`` made."""
    if not file.is_file():
        sys.exit(f"{file} is missing: make the archive first")
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                path = Path(archive.extract(entry, folder))
                path.chmod(entry.external_attr >> 16 & 0o777)
    else:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")


def commit_time() -> int:
    """Time of the commit in seconds, or 0 outside of a repository."""
    output = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE)
    return int(output.stdout) if output.returncode == 0 else 0


def write(release: Release, target: Target, binary: Path, dist: Path) -> Path:
    """Writes the archive of a target."""
    file = dist / release.archive(target)
    with tempfile.TemporaryDirectory() as stage:
        folder = Path(stage) / release.folder(target)
        fill(folder, release, target, binary)
        pack(folder, file, commit_time())
    return file
