"""Installers ``install.sh`` and ``install.ps1``, which know the digests of their archives."""

from __future__ import annotations

from declaration import Release
from formats.template import render

# Names that `uname -s -m` prints.
UNAME = {
    ("linux", "x64"): "Linux x86_64",
    ("linux", "arm64"): "Linux aarch64",
    ("macos", "x64"): "Darwin x86_64",
    ("macos", "arm64"): "Darwin arm64",
}


def files(release: Release, digests: dict[str, str]) -> dict[str, str]:
    """Both installers."""
    cases, windows = [], []
    for target in release.targets:
        name = release.archive(target)
        if target.os == "windows":
            windows.append(f"        {target.cpu.capitalize()} = @('{release.folder(target)}', '{digests[name]}')")
        else:
            uname = UNAME[target.os, target.cpu]
            cases.append(f'        "{uname}") folder={release.folder(target)} digest={digests[name]} ;;')
    values = {
        "VERSION": release.version,
        "COMMAND": release.command,
        "URL": release.url("")[:-1],
        "REPOSITORY": release.repository,
        "CASES": "\n".join(cases),
        "WINDOWS": "\n".join(windows),
    }
    return {name: render(name, values) for name in ("install.sh", "install.ps1")}
