"""Validates `gguf inspect --sbom` against the schema of CycloneDX 1.6.

Usage: python3 interop/scan/bill_of_materials.py GGUF_BINARY CHECKPOINT

Needs cyclonedx-python-lib[json-validation], which has the schema.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# Assignments of metadata, from nothing to everything that the document has.
METADATA = [
    [],
    ["general.license=apache-2.0", "general.author=An author", "general.url=https://example.org/a b"],
    ["general.license=llama3.2", "general.license.link=https://example.org/license", "general.url=https://example.org/m",
     "general.base_model.count=u32:2", "general.base_model.0.name=Base", "general.base_model.0.organization=Org",
     "general.base_model.0.repo_url=https://huggingface.co/org/base", "general.base_model.1.repo_url=not an address",
     "general.description=A \"description\"", "general.tags=arr:[str,a,b]", "quantize.imatrix.dataset=text.txt"],
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint", type=Path)
    arguments = parser.parse_args()
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model, shards = folder / "model.gguf", folder / "shards"
        run = lambda *words: subprocess.run([arguments.gguf, *map(str, words)], check=True, capture_output=True, text=True).stdout
        run("convert", arguments.checkpoint, "-o", model)
        run("split", model, folder / "m", "--split-max-tensors", "14")
        sources = [next(folder.glob("m-00001-of-*"))]
        for at, assignments in enumerate(METADATA):
            source = folder / f"{at}.gguf"
            flags = [word for one in assignments if "arr:" not in one for word in ("--set", one)]
            if flags:
                subprocess.run([arguments.gguf, "edit", model, *flags, "--force", "-o", source], check=False, capture_output=True)
            sources.append(source if source.exists() else model)
        for source in sources:
            text = run("inspect", source, "--sbom")
            fault = validator.validate_str(text)
            if fault:
                sys.exit(f"{source.name}: {fault}\n{text}")
            assert text == run("inspect", source, "--sbom"), "two runs differ"
            component = json.loads(text)["metadata"]["component"]
            assert component.get("hashes") or all(one["hashes"] for one in component["components"])
    print(f"{len(sources)} documents are valid")


if __name__ == "__main__":
    main()
