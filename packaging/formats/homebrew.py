"""Homebrew formula."""

from __future__ import annotations

from declaration import Release
from formats.template import render

SYSTEMS = {"macos": "on_macos", "linux": "on_linux"}
PROCESSORS = {"x64": "on_intel", "arm64": "on_arm"}


def license_expression(license: str) -> str:
    """License of an `A OR B` expression as the formula's language writes it."""
    names = ", ".join(f'"{name}"' for name in license.split(" OR "))
    return f"any_of: [{names}]" if " OR " in license else names


def files(release: Release, digests: dict[str, str]) -> dict[str, str]:
    """Formula of the release."""
    lines = []
    for system, block in SYSTEMS.items():
        lines.append(f"  {block} do")
        for target in release.targets:
            if target.os == system:
                name = release.archive(target)
                lines += [
                    f"    {PROCESSORS[target.cpu]} do",
                    f'      url "{release.url(name)}"',
                    f'      sha256 "{digests[name]}"',
                    "    end",
                ]
        lines += ["  end", ""]
    values = {
        "CLASS": "".join(word.capitalize() for word in release.name.split("-")),
        "SUMMARY": release.summary,
        "REPOSITORY": release.repository,
        "VERSION": release.version,
        "LICENSE": license_expression(release.license),
        "COMMAND": release.command,
        "SOURCES": "\n".join(lines).rstrip(),
    }
    return {f"homebrew/{release.name}.rb": render("formula.rb", values)}
