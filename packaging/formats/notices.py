"""License texts of third-party code: crates of the binary or the WebAssembly module, and the JavaScript of the viewer's page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from declaration import ROOT

# Libraries under the MIT license that are no crates, with the holders of the copyright.
RUNTIME = {
    "Rust standard library": "Copyright (c) The Rust Project Contributors",
    "musl libc": "Copyright (c) 2005-2020 Rich Felker and other contributors",
}
BEGINNINGS = ("license", "licence", "copying", "notice", "unlicense", "copyright")


def linked(rust: str, name: str) -> list[dict]:
    """Crates that a package is linked from for a target, without those of the workspace."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", rust]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    metadata = json.loads(output)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: set[str] = set()
    queue = [one for one, package in packages.items() if package["name"] == name]
    while queue:
        one = queue.pop()
        if one not in found:
            found.add(one)
            # Without dependencies of tests and build scripts.
            links = (link for link in nodes[one]["deps"] if any(k["kind"] is None for k in link["dep_kinds"]))
            queue.extend(link["pkg"] for link in links)
    crates = [packages[one] for one in found if packages[one]["source"]]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def texts(crate: dict) -> list[str]:
    """License files of a crate."""
    folder = Path(crate["manifest_path"]).parent
    files = [file for file in folder.iterdir() if file.name.lower().startswith(BEGINNINGS) and file.is_file()]
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in sorted(files)]


def runtime(rust: str) -> list[str]:
    """Notices of the libraries that the compiler adds."""
    text = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8").strip()
    own = next(line for line in text.splitlines() if line.startswith("Copyright"))
    found = {name: holder for name, holder in RUNTIME.items() if "musl" not in name or "musl" in rust}
    return [f"{name} (MIT)\n\n{text.replace(own, holder)}" for name, holder in found.items()]


def by_text(crates: list[dict]) -> list[str]:
    """Crates by license text. A crate without a license file gets the text of another crate with its expression."""
    by_expression: dict[str, list[str]] = {}
    groups: dict[str, tuple[str, list[str]]] = {}
    rows = [(crate, texts(crate)) for crate in crates]
    for crate, found in rows:
        if found:
            by_expression.setdefault(crate["license"], found)
    for crate, found in rows:
        name = f"{crate['name']} {crate['version']} ({crate['license']})"
        if not found:
            name += f", by {', '.join(crate['authors']) or 'its authors'}; text of the license:"
            found = by_expression.get(crate["license"], [])
            if not found:
                raise SystemExit(f"{name} no crate has a text of this license")
        for text in found:
            groups.setdefault(" ".join(text.split()), (text, []))[1].append(name)
    return ["\n".join(names) + "\n\n" + text for text, names in groups.values()]


def joined(parts: list[str]) -> str:
    """File of these parts."""
    return ("\n\n" + "=" * 80 + "\n\n").join(parts) + "\n"


def notices(rust: str) -> str:
    """Notices of the binary for a target."""
    crates = linked(rust, "gguf-cli")
    about = (
        f"Third-party code in the binary for {rust}: {len(crates)} crates, and the scripts of the viewer's page.\n"
        "Crates with the same license text are listed together."
    )
    page = (ROOT / "crates/viewer/dist/licences.txt").read_text(encoding="utf-8").strip()
    return joined([about, *runtime(rust), *by_text(crates), "Scripts of the viewer's page\n\n" + page])


def module_notices() -> str:
    """Notices of the WebAssembly module."""
    rust = "wasm32-unknown-unknown"
    # Features of other packages of the workspace add no dependencies here.
    command = ["cargo", "tree", "--locked", "--package", "gguf-wasm", "--target", rust, "--edges", "normal,no-proc-macro"]
    tree = subprocess.run([*command, "--prefix", "none"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {tuple(line.split()[:2]) for line in tree.splitlines()}
    crates = [crate for crate in linked(rust, "gguf-wasm") if (crate["name"], f"v{crate['version']}") in names]
    about = (
        f"Third-party code in the WebAssembly module: {len(crates)} crates.\n"
        "Crates with the same license text are listed together."
    )
    return joined([about, *runtime(rust), *by_text(crates)])
