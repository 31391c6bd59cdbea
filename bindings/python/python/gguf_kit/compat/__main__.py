"""``python -m gguf_kit.compat install``: this package under the name ``gguf``."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path

_SHIM = '''\
"""gguf-kit in the place of the official package; made by `python -m gguf_kit.compat install`."""

import importlib
import sys

_ours = importlib.import_module("gguf_kit.compat")
for _name in {modules!r}:
    sys.modules[f"gguf.{{_name}}"] = importlib.import_module(f"gguf_kit.compat.{{_name}}")
    setattr(_ours, _name, sys.modules[f"gguf.{{_name}}"])
sys.modules[__name__] = _ours
'''
_MODULES = "constants gguf_reader gguf_writer lazy metadata quants scripts tensor_mapping utility vocab".split()
_MARK = "gguf-kit in the place of the official package"


def main() -> int:
    """Installs or removes the package ``gguf``."""
    parser = argparse.ArgumentParser(prog="python -m gguf_kit.compat", description=__doc__)
    parser.add_argument("action", choices=["install", "remove"])
    default = sysconfig.get_path("purelib")
    parser.add_argument("directory", nargs="?", type=Path, default=Path(default), help=f"default: {default}")
    args = parser.parse_args()
    package = args.directory / "gguf"
    init = package / "__init__.py"
    ours = init.is_file() and _MARK in init.read_text(encoding="utf-8")
    if package.exists() and not ours:
        print(f"{package} is there and is not ours: remove it first (pip uninstall gguf)", file=sys.stderr)
        return 2
    if args.action == "remove":
        shutil.rmtree(package, ignore_errors=True)
        return 0
    package.mkdir(parents=True, exist_ok=True)
    init.write_text(_SHIM.format(modules=_MODULES), encoding="utf-8")
    print(f"made {init}")
    found = importlib.util.find_spec("gguf")
    if found is not None and found.origin is not None and Path(found.origin) != init:
        print(f"note: {found.origin} comes before it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
