"""Reads the declaration of a release: ``release.toml``, and the package fields of the workspace's ``Cargo.toml``."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"


@dataclass(frozen=True)
class Target:
    """Platform for which a binary is built."""

    rust: str
    os: str
    cpu: str
    runner: str
    wheels: tuple[str, ...]

    @property
    def executable(self) -> str:
        """Ending of executable files."""
        return ".exe" if self.os == "windows" else ""

    @property
    def archive_ending(self) -> str:
        """Ending of archives."""
        return ".zip" if self.os == "windows" else ".tar.gz"


@dataclass(frozen=True)
class Release:
    """Names, texts, URLs and targets of a release."""

    name: str
    command: str
    summary: str
    description: str
    tags: tuple[str, ...]
    download: str
    winget: str
    version: str
    license: str
    author: str
    email: str
    repository: str
    targets: tuple[Target, ...]

    def folder(self, target: Target) -> str:
        """Name of the folder in an archive."""
        return f"{self.command}-{self.version}-{target.rust}"

    def archive(self, target: Target) -> str:
        """File name of an archive."""
        return self.folder(target) + target.archive_ending

    def url(self, file: str) -> str:
        """URL of a file of this release."""
        base = self.download.format(repository=self.repository, version=self.version)
        return f"{base}/{file}"

    def target(self, rust: str) -> Target:
        """Target by the name that Rust uses."""
        for target in self.targets:
            if target.rust == rust:
                return target
        names = ", ".join(target.rust for target in self.targets)
        sys.exit(f"{rust} is not a target of packaging/release.toml; the targets are: {names}")


def read() -> Release:
    """Reads both files."""
    fields = tomllib.loads((PACKAGING / "release.toml").read_text(encoding="utf-8"))
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    # "Name <address>", as Cargo writes it.
    author, _, email = package["authors"][0].partition(" <")
    targets = tuple(
        Target(**{**row, "wheels": tuple(row["wheels"])}) for row in fields.pop("target")
    )
    fields["tags"] = tuple(fields["tags"])
    return Release(
        **fields,
        version=package["version"],
        license=package["license"],
        author=author,
        email=email.removesuffix(">") or "nobody@localhost",
        repository=package["repository"],
        targets=targets,
    )


def at(release: Release, url: str | None) -> Release:
    """Release at a URL: the given one, or that of ``Cargo.toml``, which must not be empty."""
    url = (url or release.repository).rstrip("/")
    if not re.fullmatch(r"https?://[^\s/]+(/\S+)?", url):
        sys.exit(
            f"the URL of the repository is {url!r}: set `repository` in [workspace.package] of Cargo.toml,"
            " or pass --url for a test"
        )
    return replace(release, repository=url)
