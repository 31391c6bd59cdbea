"""Wheels: adds the binary to a wheel of the Python extension, which replaces its entry point of the same name."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from declaration import Release, Target
from formats import archive

LICENSES = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"]


def without_entry_point(text: str, command: str) -> str:
    """Entry points without that of the command; empty if none is left."""
    lines = [line for line in text.splitlines() if line.split("=")[0].strip() != command]
    return "\n".join(lines) + "\n" if any("=" in line for line in lines) else ""


def record_row(name: str, data: bytes) -> str:
    """Row of RECORD: name, digest and size."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def write(release: Release, target: Target, extension: Path, dist: Path, stage: Path) -> Path:
    """Writes the wheel of the same name. `stage` is an empty folder for the files of the archive."""
    file = dist / extension.name
    archive.unpack(dist / release.archive(target), stage)
    source = stage / release.folder(target)
    with zipfile.ZipFile(extension) as wheel:
        entries = {entry.filename: wheel.read(entry) for entry in wheel.infolist() if not entry.is_dir()}
    record = next(name for name in entries if name.endswith(".dist-info/RECORD"))
    info = record.removesuffix("/RECORD")
    del entries[record]

    points = without_entry_point(entries.pop(f"{info}/entry_points.txt").decode(), release.command)
    if points:
        entries[f"{info}/entry_points.txt"] = points.encode()
    head, _, body = entries[f"{info}/METADATA"].decode().partition("\n\n")
    head += f"\nProject-URL: Repository, {release.repository}"
    for name in LICENSES:
        head += f"\nLicense-File: {name}"
        entries[f"{info}/licenses/{name}"] = (source / name).read_bytes()
    entries[f"{info}/METADATA"] = f"{head}\n\n{body}".encode()
    binary = info.removesuffix(".dist-info") + f".data/scripts/{release.command}{target.executable}"
    entries[binary] = (source / (release.command + target.executable)).read_bytes()

    rows = "".join(record_row(name, data) for name, data in entries.items())
    entries[record] = f"{rows}{record},,\n".encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name == binary else 0o100644) << 16
            wheel.writestr(entry, data)
    return file
