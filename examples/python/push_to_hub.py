#!/usr/bin/env python3
"""Quantizes a model to several types, writes a model card and uploads everything to the Hub.

    push_to_hub.py model.gguf me/Model-GGUF Q4_K_M Q8_0 [--endpoint URL] [--dry-run]

Requires `pip install gguf-kit huggingface_hub` and a token (`hf auth login`).
"""

import argparse
import tempfile
from pathlib import Path

import gguf_kit
from huggingface_hub import HfApi, ModelCard, ModelCardData

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("source")
parser.add_argument("repository")
parser.add_argument("types", nargs="+")
parser.add_argument("--endpoint")
parser.add_argument("--dry-run", action="store_true", help="do everything except the upload")
args = parser.parse_args()


def card(source, made):
    """Returns the model card: front matter from the metadata of the source, and a table of the new files."""
    metadata = source.metadata
    data = ModelCardData(
        license=metadata.get("general.license"),
        language=metadata.get("general.languages"),
        tags=["gguf", *dict.fromkeys(metadata.get("general.tags", []))],
        library_name="gguf",
    )
    rows = []
    for path in made.files:
        with gguf_kit.open(path) as model:
            digest = gguf_kit.hash(model, ["sha256"], tensors=False)[0].digest
            rows.append(f"| [{path.name}](./{path.name}) | {model.nbytes:,} | `{digest[:16]}` |")
    name = metadata.get("general.name", "Model")
    table = "\n".join(["| file | bytes | SHA-256 of the weights |", "|---|---|---|", *rows])
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n# {name}, quantized\n\n{table}\n")


with tempfile.TemporaryDirectory() as folder, gguf_kit.open(args.source) as source:
    stem = Path(args.source).stem
    outputs = {name: Path(folder) / f"{stem}-{name}.gguf" for name in args.types}
    made = gguf_kit.quantize(source, outputs, progress=lambda what, done, total: print(what, done, total, end="\r"))
    card(source, made).save(Path(folder) / "README.md")
    for path in sorted(Path(folder).iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")
    if args.dry_run:
        print((Path(folder) / "README.md").read_text())
    else:
        api = HfApi(endpoint=args.endpoint)
        api.create_repo(args.repository, exist_ok=True)
        api.upload_folder(repo_id=args.repository, folder_path=folder, commit_message="Quantize with gguf-kit")
