#!/usr/bin/env python3
"""Makes every package of a release and installs each in a clean root, with `gguf --version` and `gguf demo` there.

Usage: packaging/tests/install.py BINARY [WHEEL]

BINARY is the static binary of this machine's Linux target, WHEEL a wheel of the Python extension. Archives of other targets
have a text file as their binary. A package whose tool is missing is skipped, loudly.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent))

import declaration  # noqa: E402
from declaration import Release, Target  # noqa: E402
from formats import archive, debian, npm  # noqa: E402
from server import Server  # noqa: E402


class Skip(Exception):
    """A tool is missing."""


def run(*words: object, code: int = 0, **options) -> str:
    """Runs a command, which must end with a code, and returns what it prints."""
    output = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert output.returncode == code, f"{words}: code {output.returncode}: {output.stdout}"
    return output.stdout


def tool(name: str) -> str:
    """Path of a tool."""
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


def package(*words: object, code: int = 0) -> str:
    """Runs ``package.py``."""
    return run(sys.executable, TESTS.parent / "package.py", *words, code=code)


class Root:
    """Folder that commands see as the root of the file system, empty but for BusyBox if `shell` is set."""

    def __init__(self, folder: Path, shell: bool = False) -> None:
        self.folder = folder
        for name in ("bin", "dev", "root", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "dev/null").touch()
        if shell:
            busybox = tool("busybox")
            assert not interpreter(Path(busybox)), "BusyBox must be static: install busybox-static"
            shutil.copy(busybox, folder / "bin/busybox")
            self.run("/bin/busybox", "--install", "-s", "/bin")

    def run(self, *words: object, code: int = 0, **environment: str) -> str:
        """Runs a command inside."""
        user = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
        environment = {"PATH": "/bin", "HOME": "/root", **environment}
        return run(*user, tool("chroot"), self.folder, *words, code=code, env=environment)


def interpreter(file: Path) -> bool:
    """Whether an executable needs a dynamic linker."""
    return b"ld-linux" in file.read_bytes()[:4096]


class Place:
    """Release under test: its files, and the server that has them."""

    def __init__(self, work: Path, binary: Path, wheel: Path | None) -> None:
        self.work, self.binary, self.wheel = work, binary, wheel
        self.dist = work / "dist"
        self.server = Server()
        self.release = declaration.at(declaration.read(), self.server.repository)
        cpu = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
        self.target = next(one for one in self.release.targets if (one.os, one.cpu) == ("linux", cpu))
        self.version = run(binary, "--version").strip()

    def package(self, *words: object) -> str:
        """Runs ``package.py`` for this release."""
        return package("--url", self.server.repository, "--dist", self.dist, *words)

    def check(self, run_command) -> None:
        """Checks an installed command; `run_command` runs it with words."""
        printed = run_command("--version").strip()
        assert printed == self.version, f"{printed!r} instead of {self.version!r}"
        run_command("demo")


def stand_in(release: Release, target: Target, dist: Path) -> None:
    """Writes an archive whose binary is a text file."""
    with tempfile.TemporaryDirectory() as stage:
        folder = Path(stage) / release.folder(target)
        folder.mkdir()
        for name in [release.command + target.executable, *npm.LICENSES]:
            (folder / name).write_text(f"stand-in for {target.rust}\n")
            (folder / name).chmod(0o755 if name.startswith(release.command) else 0o644)
        archive.pack(folder, dist / release.archive(target), 0)


def empty_url_is_refused(place: Place) -> None:
    """Without a URL nothing is made."""
    if declaration.read().repository:
        raise Skip("Cargo.toml has the URL of a repository")
    for words in (["plan"], ["archive", place.target.rust], ["deb", place.target.rust], ["manifests"]):
        printed = package("--dist", place.work / "none", *words, code=1)
        assert "set `repository`" in printed, printed
    assert not (place.work / "none").exists()
    printed = package("--url", "https://example.invalid/o/r", "plan", "--tag", "v9.9.9", code=1)
    assert "the tag is v9.9.9" in printed, printed


def archives(place: Place) -> None:
    """The archive is complete, and the same for the same commit; a release has all."""
    place.package("archive", place.target.rust, "--binary", place.binary)
    file = place.dist / place.release.archive(place.target)
    first = file.read_bytes()
    place.package("archive", place.target.rust, "--binary", place.binary)
    assert first == file.read_bytes(), "two archives of one commit differ"
    with tarfile.open(file) as content:
        names = {name.split("/", 1)[1] for name in content.getnames() if "/" in name}
        assert all(entry.uid == 0 and entry.mode in (0o755, 0o644) for entry in content)
    for name in ["gguf", "README.md", "LICENSE-MIT", "THIRD-PARTY.txt", "man/gguf.1", "man/gguf-quantize.1"]:
        assert name in names, f"{name} is missing"
    assert {f"completions/{name}" for name in archive.COMPLETIONS.values()} <= names
    root = Root(place.work / "archive")
    archive.unpack(file, root.folder)
    place.check(lambda *words: root.run(f"/{place.release.folder(place.target)}/gguf", *words))

    # Windows archives, packed from the same files.
    folder = root.folder / place.release.folder(place.target)
    archive.pack(folder, place.work / "a.zip", 0)
    with zipfile.ZipFile(place.work / "a.zip") as content:
        assert content.testzip() is None
        assert f"{folder.name}/man/gguf.1" in content.namelist()
    missing = package("--url", place.server.repository, "--dist", place.dist, "manifests", code=1)
    assert "is missing: a release has an archive for each target" in missing, missing


def manifests(place: Place) -> None:
    """Everything that needs all archives."""
    for target in place.release.targets:
        if target != place.target:
            stand_in(place.release, target, place.dist)
    place.package("deb", place.target.rust)
    place.package("manifests")
    sums = (place.dist / "SHA256SUMS").read_text()
    assert len(sums.splitlines()) == len(place.release.targets) + 3, sums
    run("sha256sum", "--check", "SHA256SUMS", cwd=place.dist)
    place.server.add_release(place.dist, place.release.version)


def debian_package(place: Place) -> None:
    """dpkg installs the package in an empty root, and removes all of it."""
    dpkg = tool("dpkg")
    root = Root(place.work / "debian")
    admin = root.folder / "var/lib/dpkg"
    for name in ("info", "updates", "triggers"):
        (admin / name).mkdir(parents=True)
    (admin / "status").touch()
    file = place.dist / debian.file_name(place.release, place.target)
    options = [f"--root={root.folder}", "--force-not-root", "--log=/dev/null"]
    run(dpkg, *options, "--install", file)
    place.check(lambda *words: root.run("/usr/bin/gguf", *words))
    listed = run(dpkg, *options, "--listfiles", place.release.name)
    for name in ["man/man1/gguf-check.1.gz", "bash-completion/completions/gguf", "doc/gguf-kit/copyright"]:
        assert f"/usr/share/{name}\n" in listed, f"{name} is missing"
    run(dpkg, *options, "--remove", place.release.name)
    assert not (root.folder / "usr/bin/gguf").exists()


def shell_installer(place: Place) -> None:
    """The installer works with BusyBox only, says what to add to PATH, and refuses what it must not install."""
    root = Root(place.work / "shell", shell=True)
    line = f"wget -q -O - {place.server.repository}/releases/latest/download/install.sh | sh"
    printed = root.run("/bin/sh", "-c", line)
    assert f"{place.version} is installed as /root/.local/bin/gguf" in printed, printed
    assert 'export PATH="/root/.local/bin:$PATH"' in printed, printed
    place.check(lambda *words: root.run("/root/.local/bin/gguf", *words))
    printed = root.run("/bin/sh", "-c", line, PATH="/root/.local/bin:/bin")
    assert "export PATH" not in printed, printed
    assert sorted(os.listdir(root.folder / "root/.local/bin")) == ["gguf"]
    assert not os.listdir(root.folder / "tmp"), "temporary files are left"

    # A different program of this name stays.
    foreign = root.folder / "opt/gguf"
    foreign.parent.mkdir()
    foreign.write_text("#!/bin/sh\necho another program\n")
    foreign.chmod(0o755)
    printed = root.run("/bin/sh", "-c", line, code=1, GGUF_INSTALL_DIR="/opt")
    assert "/opt/gguf exists and is another program" in printed, printed
    # So does everything if the archive is damaged, or missing.
    url = place.release.url(place.release.archive(place.target)).removeprefix(place.server.address)
    data = place.server.files.pop(url)
    printed = root.run("/bin/sh", "-c", line, code=1, GGUF_INSTALL_DIR="/new")
    assert "cannot download" in printed, printed
    place.server.files[url] = data[:-1] + bytes([data[-1] ^ 1])
    printed = root.run("/bin/sh", "-c", line, code=1, GGUF_INSTALL_DIR="/new")
    assert f"expected {hashlib.sha256(data).hexdigest()}" in printed, printed
    place.server.files[url] = data
    assert not os.listdir(root.folder / "new") and not os.listdir(root.folder / "tmp")


def shell_installer_with_curl(place: Place) -> None:
    """The installer works with curl and the tools of this machine; a download that stops early does nothing."""
    tool("curl")
    home = place.work / "home"
    home.mkdir()
    script = place.dist / "install.sh"
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    part = place.work / "part.sh"
    part.write_text(script.read_text().rpartition("main")[0])
    run("sh", part, env=environment)
    assert not os.listdir(home)
    run("sh", script, env=environment)
    place.check(lambda *words: run(home / ".local/bin/gguf", *words, cwd=home))

    # Systems without a binary.
    uname = home / "bin/uname"
    uname.parent.mkdir()
    uname.write_text('#!/bin/sh\n[ "$1" = -m ] && echo "$MACHINE" || echo "$SYSTEM"\n')
    uname.chmod(0o755)
    environment["PATH"] = f"{uname.parent}:{environment['PATH']}"
    for system, machine, message in [
        ("Linux", "riscv64", "there is no binary for Linux riscv64"),
        ("MINGW64_NT-10.0", "x86_64", "run install.ps1 in PowerShell"),
    ]:
        printed = run("sh", script, code=1, env={**environment, "SYSTEM": system, "MACHINE": machine})
        assert message in printed, printed


def shell_lint(place: Place) -> None:
    """ShellCheck has nothing to say."""
    run(tool("shellcheck"), place.dist / "install.sh")


def powershell_installer(place: Place) -> None:
    """The installer for Windows is PowerShell. The workflow runs it."""
    try:
        from tree_sitter import Language, Parser
        from tree_sitter_powershell import language
    except ImportError:
        raise Skip("the Python packages tree-sitter and tree-sitter-powershell are not installed") from None
    tree = Parser(Language(language())).parse((place.dist / "install.ps1").read_bytes())
    assert not tree.root_node.has_error


def homebrew_formula(place: Place) -> None:
    """Installs and tests the formula with the part of Homebrew's language that it uses."""
    prefix = place.work / "homebrew"
    run(tool("ruby"), TESTS / "homebrew.rb", place.dist / "homebrew/gguf-kit.rb", prefix)
    place.check(lambda *words: run(prefix / "bin/gguf", *words, cwd=prefix))
    for name in ["man/man1/gguf.1", "zsh/site-functions/_gguf", "fish/vendor_completions.d/gguf.fish"]:
        assert (prefix / "share" / name).is_file(), f"{name} is missing"


def winget_manifests(place: Place) -> None:
    """The installer names a file of the archive; manifests have the schema of `GGUF_WINGET_SCHEMAS`."""
    text = (place.dist / f"winget/{place.release.winget}.installer.yaml").read_text()
    target = next(one for one in place.release.targets if one.os == "windows")
    file = place.dist / place.release.archive(target)
    assert hashlib.sha256(file.read_bytes()).hexdigest().upper() in text
    path = next(line for line in text.splitlines() if "RelativeFilePath" in line).split('"')[1]
    with zipfile.ZipFile(file) as content:
        assert path.replace("\\\\", "/") in content.namelist(), path
    folder = os.environ.get("GGUF_WINGET_SCHEMAS")
    if folder is None:
        raise Skip("GGUF_WINGET_SCHEMAS does not name a folder with manifest.installer.1.12.0.json and others")
    kinds = {"": "version", ".installer": "installer", ".locale.en-US": "defaultLocale"}
    for ending, kind in kinds.items():
        schema = Path(folder) / f"manifest.{kind}.1.12.0.json"
        manifest = place.dist / f"winget/{place.release.winget}{ending}.yaml"
        run(tool("check-jsonschema"), "--schemafile", schema, manifest)


def npm_packages(place: Place) -> None:
    """npm and npx install the package of this platform from a registry, and the launcher ends as the binary does."""
    command = tool("npm")
    stage = place.work / "npm"
    stage.mkdir()
    for folder in sorted((place.dist / "npm").iterdir()):
        place.server.add_npm_package(folder, stage)
    environment = {**os.environ, "npm_config_registry": place.server.registry, "npm_config_cache": str(stage / "cache")}
    prefix = stage / "prefix"
    prefix.mkdir()
    run(command, "install", "--prefix", prefix, place.release.name, env=environment)
    installed = sorted(name for name in os.listdir(prefix / "node_modules") if not name.startswith("."))
    assert installed == ["gguf-kit", npm.platform_package(place.release, place.target)], installed
    launcher = prefix / "node_modules/.bin/gguf"
    place.check(lambda *words: run(launcher, *words, cwd=prefix))
    run(launcher, "inspect", "missing.gguf", code=3, cwd=prefix)
    printed = run("npx", "--yes", place.release.name, "--version", env=environment, cwd=stage)
    assert printed.strip() == place.version, printed

    # A signal for the launcher ends the binary too.
    models = stage / "models"
    run(place.binary, "demo", "--keep", models)
    words = [launcher, "view", "--no-open", models / "Tiny-KJV-Llama-4M-Q8_0.gguf"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", line := server.stdout.readline())):
        assert line, "gguf view ends without an address"
    server.terminate()
    assert server.wait(60) in (-signal.SIGTERM, 0, 130, 143), server.returncode
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(found[1]))) != 0, "the binary is still running"

    # Without the package of the platform, the launcher says so.
    other = stage / "other"
    run(command, "install", "--prefix", other, "--omit=optional", place.release.name, env=environment)
    printed = run(other / "node_modules/.bin/gguf", "--version", code=1)
    assert "with the binary is not installed" in printed, printed


def wheels(place: Place) -> None:
    """pip and uv install the wheel: the command is the binary, and the module is there."""
    if place.wheel is None:
        raise Skip("no wheel of the Python extension was named")
    place.package("wheel", place.target.rust, place.wheel)
    file = place.dist / place.wheel.name
    folder = place.work / "venv"
    venv.create(folder, with_pip=True)
    python, command = folder / "bin/python", folder / "bin/gguf"
    run(python, "-m", "pip", "install", "--quiet", file)
    assert command.read_bytes() == place.binary.read_bytes(), "the command is not the binary"
    assert command.stat().st_mode & stat.S_IXUSR
    place.check(lambda *words: run(command, *words, cwd=folder))
    shown = run(python, "-c", "import gguf_kit; print(gguf_kit.__file__)", cwd=folder)
    assert "site-packages/gguf_kit" in shown, shown
    run(python, "-m", "gguf_kit", "--version", cwd=folder)
    shown = run(python, "-m", "pip", "show", "--verbose", "--files", place.release.name)
    assert "THIRD-PARTY.txt" in shown and place.release.repository in shown, shown
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", place.release.name)
    assert not command.exists()

    run(python, "-m", "pip", "install", "--quiet", "uv", "twine")
    run(folder / "bin/twine", "check", "--strict", file)
    tools = place.work / "uv"
    environment = {**os.environ, "UV_TOOL_DIR": str(tools), "UV_TOOL_BIN_DIR": str(tools / "bin")}
    words = ["tool", "install", "--find-links", place.dist, "--python", python, place.release.name]
    run(folder / "bin/uv", *words, env=environment)
    place.check(lambda *words: run(tools / "bin/gguf", *words, cwd=tools))


PARTS = [
    empty_url_is_refused,
    archives,
    manifests,
    debian_package,
    shell_installer,
    shell_installer_with_curl,
    shell_lint,
    powershell_installer,
    homebrew_formula,
    winget_manifests,
    npm_packages,
    wheels,
]


def main() -> None:
    """Runs all parts in order; the first failure ends the run."""
    binary = Path(sys.argv[1]).resolve()
    wheel = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    if interpreter(binary):
        sys.exit(f"{binary} is not static: build it for a musl target")
    with tempfile.TemporaryDirectory() as work:
        place = Place(Path(work), binary, wheel)
        for part in PARTS:
            try:
                part(place)
                print(f"ok       {part.__name__}", flush=True)
            except Skip as reason:
                print(f"SKIPPED  {part.__name__}: {reason}", flush=True)


if __name__ == "__main__":
    main()
