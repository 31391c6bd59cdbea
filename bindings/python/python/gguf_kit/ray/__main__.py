"""``python -m gguf_kit.ray``: quantize, convert, evaluate and sweep on a Ray cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from .. import Recipe
from ..errors import Cancelled, GgufError
from . import convert, evaluate, quantize, sweep
from .results import to_json

#: Exit codes by fault, as of the `gguf` command.
_EXIT_CODES = {"input": 1, "request": 2, "environment": 3, "interrupted": 130}

_EXAMPLES = {
    "quantize": "python -m gguf_kit.ray quantize f16.gguf q4.gguf Q4_K_M --parts 16 --address auto",
    "convert": "python -m gguf_kit.ray convert Llama-3.2-1B/ llama.gguf q8_0 --parts 16 --address auto",
    "evaluate": "python -m gguf_kit.ray evaluate q4.gguf --reference f16.gguf -f text.txt --parts 8 --keep parts/",
    "sweep": "python -m gguf_kit.ray sweep f16.gguf Q4_K_M Q5_K_M mine=Q4_K_M:types.txt -f text.txt --keep sweep.jsonl",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gguf_kit.ray", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        example = f"example:\n  {_EXAMPLES[name]}"
        shape = argparse.RawDescriptionHelpFormatter
        return commands.add_parser(name, help=help, description=help, epilog=example, formatter_class=shape)

    quantizing = command("quantize", "quantize a model")
    quantizing.add_argument("source", help="model: a path that all nodes can access, s3://, hf:")
    quantizing.add_argument("out", help="output file, on storage that all nodes can access")
    quantizing.add_argument("type", help="quantization type, such as Q4_K_M")
    converting = command("convert", "convert a checkpoint")
    converting.add_argument("source", help="checkpoint directory, or hf:org/repo")
    converting.add_argument("out", help="output file, on storage that all nodes can access")
    converting.add_argument("type", nargs="?", help="quantization type (default: the types of the source)")
    for subparser in (quantizing, converting):
        subparser.add_argument("--no-merge", action="store_true", help="keep the parts as shards")
        subparser.add_argument("--no-resume", action="store_true", help="do not resume from existing parts")
        subparser.add_argument("--force", action="store_true", help="overwrite existing outputs")
    evaluating = command("evaluate", "measure perplexity, or KL divergence from a reference model")
    evaluating.add_argument("models", nargs="+", help="models that all nodes can access")
    evaluating.add_argument("--reference", help="reference model")
    evaluating.add_argument("--keep", metavar="DIR", help="directory for completed parts, to resume from")
    sweeping = command("sweep", "quantize a model with many recipes and measure the KL divergence of each")
    sweeping.add_argument("source", help="model: a path that all nodes can access, s3://, hf:")
    sweeping.add_argument("recipes", nargs="+", metavar="RECIPE", help="TYPE, or NAME=TYPE:FILE with the format of --tensor-type-file")
    sweeping.add_argument("--keep", metavar="FILE", help="file for results of completed recipes, to resume from")
    for subparser in (evaluating, sweeping):
        subparser.add_argument("-f", "--file", metavar="TEXT", required=True, help="local text file")
        subparser.add_argument("-c", "--ctx-size", type=int, default=512, metavar="N", help="context size of a chunk in tokens (512)")
        subparser.add_argument("--chunks", type=int, metavar="N", help="maximum number of chunks (all)")
        subparser.add_argument("--json", action="store_true", help="print JSON")
    for subparser in (quantizing, converting, sweeping):
        _add_recipe(subparser)
    for subparser in (quantizing, converting, evaluating):
        subparser.add_argument("--parts", type=int, default=8, metavar="N", help="number of parts (8)")
    for subparser in (quantizing, converting, evaluating, sweeping):
        subparser.add_argument("--address", help="cluster address: auto, ray://host:10001 (default: RAY_ADDRESS, or the local machine)")
        subparser.add_argument("--cpus", type=int, metavar="N", help="CPUs per part (default: use all nodes)")
        subparser.add_argument("--memory", type=int, metavar="BYTES", help="memory per part (default: estimated)")
        subparser.add_argument("--retries", type=int, default=10, metavar="N", help="retries after a worker is lost (10)")
    return parser


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--imatrix", metavar="FILE", help="importance matrix that all nodes can access")
    parser.add_argument("--calibrate", action="append", metavar="TEXT", help="calibrate with this text, which all nodes can access, or `bundled`; may be repeated")
    parser.add_argument("--pure", action="store_true", help="quantize all tensors to the default type")
    parser.add_argument("--leave-output-tensor", action="store_true", help="do not quantize output.weight")
    parser.add_argument("--output-tensor-type", metavar="TYPE", help="type of output.weight")
    parser.add_argument("--token-embedding-type", metavar="TYPE", help="type of the token embeddings")
    parser.add_argument("--tensor-type", action="append", default=[], metavar="REGEX=TYPE", help="override the type of matching tensors; may be repeated")
    parser.add_argument("--tensor-type-file", metavar="FILE", help="local file with one REGEX=TYPE per line")
    parser.add_argument("--allow-requantize", action="store_true", help="allow quantized input tensors")


def _recipe(args: argparse.Namespace, file: Optional[str] = None) -> Recipe:
    file = file or args.tensor_type_file
    return Recipe(
        pure=args.pure,
        leave_output_tensor=args.leave_output_tensor,
        output_tensor_type=args.output_tensor_type,
        token_embedding_type=args.token_embedding_type,
        tensor_types=args.tensor_type,
        recipe=None if file is None else Path(file).read_text(encoding="utf-8"),
        imatrix=args.imatrix,
        calibrate=args.calibrate,
        allow_requantize=args.allow_requantize,
    )


class _ProgressLine:
    """Progress on one line of a terminal; silent elsewhere."""

    def __init__(self) -> None:
        self._length = 0
        self._enabled = sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        share = done / total if total else 0.0
        self._print(f"{what} {share:4.0%}")

    def clear(self) -> None:
        """Clear the line."""
        self._print("")
        self._length = 0

    def _print(self, text: str) -> None:
        if self._enabled and (text or self._length):
            print(f"\r{text.ljust(self._length)}", end="" if text else "\r", file=sys.stderr, flush=True)
            self._length = len(text)


def _run(args: argparse.Namespace, line: _ProgressLine) -> List[str]:
    """Run a command and return the lines to print."""
    cluster: Dict[str, Any] = {
        "address": args.address,
        "cpus": args.cpus,
        "memory": args.memory,
        "retries": args.retries,
        "progress": line,
    }
    if args.command in ("quantize", "convert"):
        options: Dict[str, Any] = {
            "parts": args.parts,
            "recipe": _recipe(args),
            "merge": not args.no_merge,
            "resume": not args.no_resume,
            "force": args.force,
        }
        function: Any = quantize if args.command == "quantize" else convert
        result = function(args.source, args.out, args.type, **options, **cluster)
        line.clear()
        for note in result.notes:
            print(f"note: {note}", file=sys.stderr)
        print(f"wrote {result.written} parts, reused {result.reused}", file=sys.stderr)
        return [f"wrote {file}" for file in result.files]
    text = Path(args.file).read_text(encoding="utf-8")
    options = {"context": args.ctx_size, "chunks": args.chunks, "keep": args.keep}
    if args.command == "evaluate":
        results: List[Any] = []
        results += evaluate(args.models, text, reference=args.reference, parts=args.parts, **options, **cluster)
        line.clear()
        rows = [{"model": model, **to_json(result)} for model, result in zip(args.models, results)]
        if args.json:
            return [json.dumps(rows, indent=2)]
        return [f"{name:<22} {value}" for row in rows for name, value in row.items()]
    recipes = dict(_parse_recipe(word, args) for word in args.recipes)
    result = sweep(args.source, recipes, text, **options, **cluster)
    line.clear()
    if args.json:
        rows = [{**row._asdict(), "divergence": to_json(row.divergence)} for row in result.rows]
        return [json.dumps(rows, indent=2)]
    return [result.table()]


def _parse_recipe(word: str, args: argparse.Namespace) -> Any:
    name, is_named, rest = word.partition("=")
    kind, _, file = (rest if is_named else word).partition(":")
    return name, (kind, _recipe(args, file or None))


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run the command line and return the exit code."""
    args, line = _parser().parse_args(words), _ProgressLine()
    try:
        lines = _run(args, line)
    except (KeyboardInterrupt, Cancelled):
        line.clear()
        return 130
    except GgufError as error:
        line.clear()
        print(f"error: {error}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return _EXIT_CODES.get(error.fault, 1)
    except (OSError, UnicodeDecodeError) as error:
        line.clear()
        print(f"error: {error}", file=sys.stderr)
        return 3 if isinstance(error, OSError) else 1
    for text in lines:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
