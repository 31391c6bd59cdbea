"""Manifests of winget, version 1.12 of its schema."""

from __future__ import annotations

import json

from declaration import Release

SCHEMA = "1.12.0"


def document(kind: str, fields: dict) -> str:
    """Manifest in YAML."""
    head = f"# yaml-language-server: $schema=https://aka.ms/winget-manifest.{kind}.{SCHEMA}.schema.json"
    fields = {**fields, "ManifestType": kind, "ManifestVersion": SCHEMA}
    return head + "\n" + "".join(yaml(name, value, "") for name, value in fields.items())


def yaml(name: str, value: object, indent: str) -> str:
    """Field in YAML. Strings are written as JSON strings, which YAML reads."""
    if not isinstance(value, list):
        return f"{indent}{name}: {json.dumps(value)}\n"
    items = ""
    for item in value:
        if isinstance(item, dict):
            text = "".join(yaml(key, part, indent + "    ") for key, part in item.items())
            items += f"{indent}  - {text.lstrip()}"
        else:
            items += f"{indent}  - {json.dumps(item)}\n"
    return f"{indent}{name}:\n{items}"


def files(release: Release, digests: dict[str, str]) -> dict[str, str]:
    """Manifests of version, installers and the English texts."""
    head = {"PackageIdentifier": release.winget, "PackageVersion": release.version}
    installers = []
    for target in release.targets:
        if target.os == "windows":
            name = release.archive(target)
            path = f"{release.folder(target)}\\{release.command}{target.executable}"
            installers.append(
                {
                    "Architecture": target.cpu,
                    "InstallerType": "zip",
                    "NestedInstallerType": "portable",
                    "NestedInstallerFiles": [
                        {"RelativeFilePath": path, "PortableCommandAlias": release.command}
                    ],
                    "InstallerUrl": release.url(name),
                    "InstallerSha256": digests[name].upper(),
                }
            )
    texts = {
        **head,
        "PackageLocale": "en-US",
        "Publisher": release.author,
        "PackageName": release.name,
        "PackageUrl": release.repository,
        "License": release.license,
        "ShortDescription": release.summary,
        "Description": release.description,
        "Moniker": release.command,
        "Tags": list(release.tags),
    }
    place = f"winget/{release.winget}"
    return {
        f"{place}.yaml": document("version", {**head, "DefaultLocale": "en-US"}),
        f"{place}.installer.yaml": document("installer", {**head, "Installers": installers}),
        f"{place}.locale.en-US.yaml": document("defaultLocale", texts),
    }
