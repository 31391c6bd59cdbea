#!/usr/bin/env python3
"""Compares the generated texts of a release with those in ``expected/``, and checks that `cargo binstall` finds the archives.

``--update`` writes ``expected/``. The release there has a fixed version and URL, so that a new version changes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "expected"
sys.path.insert(0, str(FOLDER.parent.parent))

import declaration  # noqa: E402
import package  # noqa: E402
from declaration import ROOT, Release, Target  # noqa: E402


def example() -> Release:
    """Release with a fixed version and URL."""
    release = replace(declaration.read(), version="1.2.3")
    return declaration.at(release, "https://example.invalid/owner/gguf-kit")


def generated(release: Release) -> dict[str, str]:
    """Texts by path, with digests of the names of the archives."""
    names = [release.archive(target) for target in release.targets]
    return package.texts(release, {name: hashlib.sha256(name.encode()).hexdigest() for name in names})


def binstall(release: Release, target: Target) -> tuple[str, str]:
    """URL and path of the binary in the archive, as `cargo binstall` computes them."""
    manifest = tomllib.loads((ROOT / "crates/cli/Cargo.toml").read_text(encoding="utf-8"))
    fields = manifest["package"]["metadata"]["binstall"]
    fields = {**fields, **fields["overrides"].get(target.rust, {})}
    values = {
        "repo": release.repository,
        "version": release.version,
        "target": target.rust,
        "binary-ext": target.executable,
    }
    url, path = fields["pkg-url"], fields["bin-dir"]
    for name, value in values.items():
        url, path = (text.replace(f"{{ {name} }}", value) for text in (url, path))
    return url, path


def main() -> None:
    """Compares, or updates."""
    release = example()
    texts = generated(release)
    if sys.argv[1:] == ["--update"]:
        shutil.rmtree(FOLDER, ignore_errors=True)
        for path, text in texts.items():
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / path).write_text(text, encoding="utf-8")
        return
    present = {
        path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*")
        if path.is_file()
    }
    different = sorted(path for path in {*texts, *present} if texts.get(path) != present.get(path))
    if different:
        sys.exit(f"packaging/tests/expected differs; run packaging/tests/expected.py --update: {', '.join(different)}")
    for target in release.targets:
        command = f"{release.folder(target)}/{release.command}{target.executable}"
        expected = (release.url(release.archive(target)), command)
        found = binstall(release, target)
        if found != expected:
            sys.exit(f"[package.metadata.binstall] of crates/cli/Cargo.toml gives {found}; expected {expected}")
    print(f"{len(texts)} generated files are as expected; cargo binstall finds {len(release.targets)} archives")


if __name__ == "__main__":
    main()
