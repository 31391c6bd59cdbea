#!/usr/bin/env python3
"""Makes the files of a release from ``release.toml``, in the folder ``dist``.

``plan``       prints the version and, as JSON, the matrices of the workflow
``archive``    builds the binary of a target and packs it
``deb``        makes the Debian package of a Linux target from its archive
``wasm``       builds the npm package of the WebAssembly module
``wheel``      adds the binary of a target's archive to a wheel of the Python extension
``manifests``  makes everything that needs the archives of all targets: installers, Homebrew formula, winget manifests, npm
               packages, SHA256SUMS
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import declaration
from declaration import ROOT, Release
from formats import archive, debian, homebrew, installers, npm, wasm, wheel, winget

# Modules whose `files` maps paths to texts.
TEXTS = [installers, homebrew, winget, npm]


def digest(file: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    if not file.is_file():
        sys.exit(f"{file} is missing: a release has an archive for each target of packaging/release.toml")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def texts(release: Release, digests: dict[str, str]) -> dict[str, str]:
    """Texts of a release by path; `digests` are those of the archives by file name."""
    return {path: text for module in TEXTS for path, text in module.files(release, digests).items()}


def plan(release: Release, tag: str | None) -> None:
    """Prints the outputs of the workflow's first job: version, targets, wheels."""
    if tag is not None and tag != f"v{release.version}":
        sys.exit(f"the tag is {tag}; the version in Cargo.toml is {release.version}: expected v{release.version}")
    wheels = [
        {
            "rust": target.rust,
            "runner": target.runner,
            # On Linux the platform decides between glibc and musl.
            "extension": target.rust.split("-")[0] if target.os == "linux" else target.rust,
            "platform": platform,
        }
        for target in release.targets
        for platform in target.wheels
    ]
    print(f"version={release.version}")
    print("targets=" + json.dumps([asdict(target) for target in release.targets]))
    print("wheels=" + json.dumps(wheels))


def manifests(release: Release, dist: Path) -> None:
    """Writes the texts, the npm packages and the digests of all files of the release."""
    names = [release.archive(target) for target in release.targets]
    digests = {name: digest(dist / name) for name in names}
    for path, text in texts(release, digests).items():
        file = dist / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    with tempfile.TemporaryDirectory() as stage:
        npm.add_binaries(release, dist, Path(stage))
    files = sorted(file for file in dist.iterdir() if file.is_file() and file.suffix in {".gz", ".zip", ".deb", ".sh", ".ps1"})
    (dist / "SHA256SUMS").write_text("".join(f"{digest(file)}  {file.name}\n" for file in files), newline="\n")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="URL of the repository instead of that in Cargo.toml, for tests")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder of the files; default: dist")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("plan")
    command.add_argument("--tag", help="fail unless this is the tag of the version")
    command = commands.add_parser("archive")
    command.add_argument("target")
    command.add_argument("--binary", type=Path, help="pack this binary instead of building one")
    commands.add_parser("deb").add_argument("target")
    commands.add_parser("wasm")
    command = commands.add_parser("wheel")
    command.add_argument("target")
    command.add_argument("wheel", type=Path)
    commands.add_parser("manifests")
    options = parser.parse_args()

    release = declaration.at(declaration.read(), options.url)
    dist = options.dist
    dist.mkdir(parents=True, exist_ok=True)
    if options.command == "plan":
        plan(release, options.tag)
    elif options.command == "manifests":
        manifests(release, dist)
    elif options.command == "wasm":
        print(wasm.write(release, wasm.build(), dist))
    else:
        target = release.target(options.target)
        if options.command == "archive":
            binary = options.binary or archive.compile_binary(release, target)
            print(archive.write(release, target, binary, dist))
        elif options.command == "deb":
            print(debian.write(release, target, dist))
        else:
            with tempfile.TemporaryDirectory() as stage:
                print(wheel.write(release, target, options.wheel, dist, Path(stage)))


if __name__ == "__main__":
    main()
