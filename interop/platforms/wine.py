"""Runs a Windows program under Wine, without a display, in a prefix of its own.

Usage: python3 interop/platforms/wine.py PREFIX

creates a prefix in which programs of this repository can start.
"""

import os
import subprocess
import sys
from pathlib import Path

# No messages of Wine on standard error, and no questions about components that a program without windows does not need.
SETTINGS = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}


class Wine:
    """A Wine prefix whose drive `Z:` is the root of this machine."""

    def __init__(self, prefix):
        self.prefix = Path(prefix).resolve()
        self.environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
        self.environment |= SETTINGS | {"WINEPREFIX": str(self.prefix)}
        if not (self.prefix / "system.reg").exists():
            self.prefix.mkdir(parents=True, exist_ok=True)
            self._call("wineboot", "-i")
        self.add_library("bcryptprimitives", "advapi32")
        # As long as one program runs, the services of Wine do too. Otherwise the next program would start them, and they
        # would keep its pipes open.
        self.keeper = subprocess.Popen(
            ["wine", "cmd"], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._call("wine", "cmd", "/c", "exit")

    def _call(self, *command):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, check=True, timeout=300, **quiet)

    def add_library(self, name, *libraries):
        """Compiles a library of Windows that this version of Wine does not have."""
        library = self.drive_c / "windows" / "system32" / f"{name}.dll"
        if not library.exists():
            source = Path(__file__).with_name(f"{name}.c")
            flags = [f"-l{word}" for word in libraries]
            subprocess.run(["x86_64-w64-mingw32-gcc", "-shared", "-O1", source, "-o", library, *flags], check=True)

    def close(self):
        """Ends the services of the prefix."""
        self.keeper.stdin.close()
        self.keeper.wait(60)

    def command(self, program, *words):
        return ["wine", str(program), *map(str, words)]

    def run(self, program, *words, cwd=None, stdin=b"", env=None, timeout=300):
        """Runs a program to its end; output is bytes."""
        return subprocess.run(
            self.command(program, *words),
            cwd=cwd, input=stdin, env=self.environment | (env or {}), capture_output=True, timeout=timeout,
        )

    def start(self, program, *words, cwd=None, **options):
        """Starts a program."""
        return subprocess.Popen(self.command(program, *words), cwd=cwd, env=self.environment, **options)

    @property
    def drive_c(self):
        return self.prefix / "drive_c"

    @staticmethod
    def path(path):
        """Returns the name of a file of this machine on drive `Z:`."""
        return "Z:" + str(Path(path).absolute()).replace("/", "\\")


if __name__ == "__main__":
    Wine(sys.argv[1]).close()
