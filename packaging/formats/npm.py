"""npm packages: one with a launcher, and one per platform with the binary, of which npm installs the matching one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from declaration import Release, Target
from formats import archive
from formats.template import render

# Names that Node uses.
SYSTEMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}
LICENSES = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"]


def platform_package(release: Release, target: Target) -> str:
    """Name of the package with the binary of a target."""
    return f"{release.name}-{SYSTEMS[target.os]}-{target.cpu}"


def manifest(release: Release, name: str, fields: dict) -> str:
    """The file ``package.json``."""
    common = {
        "name": name,
        "version": release.version,
        "description": release.summary,
        "license": f"({release.license})",
        "repository": {"type": "git", "url": f"git+{release.repository}.git"},
        "homepage": release.repository,
    }
    return json.dumps({**common, **fields}, indent=2) + "\n"


def readme(release: Release, name: str, text: str) -> str:
    """README of a package, which the registry shows."""
    return f"# {name}\n\n{text}\n\n{release.description}\nSee {release.repository}.\n"


def files(release: Release, digests: dict[str, str]) -> dict[str, str]:
    """Texts of all packages."""
    del digests
    names = {platform_package(release, target): release.version for target in release.targets}
    launcher = {
        "bin": {release.command: f"{release.command}.js"},
        "files": [f"{release.command}.js"],
        "engines": {"node": ">=18"},
        "keywords": list(release.tags),
        "optionalDependencies": names,
    }
    values = {"NAME": release.name, "COMMAND": release.command, "REPOSITORY": release.repository}
    usage = f"`npx {release.name} --help` runs the command `{release.command}`; `npm install -g {release.name}` installs it."
    main = f"npm/{release.name}"
    found = {
        f"{main}/package.json": manifest(release, release.name, launcher),
        f"{main}/{release.command}.js": render("launcher.js", values),
        f"{main}/README.md": readme(release, release.name, usage),
    }
    for target in release.targets:
        name = platform_package(release, target)
        system = SYSTEMS[target.os]
        fields = {
            "os": [system],
            "cpu": [target.cpu],
            "files": [f"{release.command}{target.executable}", *LICENSES],
            "preferUnplugged": True,
        }
        text = f"Binary of `{release.name}` for {system} {target.cpu}."
        found[f"npm/{name}/package.json"] = manifest(release, name, fields)
        found[f"npm/{name}/README.md"] = readme(release, name, text)
    return found


def add_binaries(release: Release, dist: Path, stage: Path) -> None:
    """Copies the binaries and licenses of all archives to their packages. `stage` is an empty folder."""
    for target in release.targets:
        archive.unpack(dist / release.archive(target), stage)
        folder = dist / "npm" / platform_package(release, target)
        for name in [f"{release.command}{target.executable}", *LICENSES]:
            shutil.copy(stage / release.folder(target) / name, folder / name)
    for name in LICENSES[:2]:
        shutil.copy(stage / release.folder(release.targets[0]) / name, dist / "npm" / release.name / name)
