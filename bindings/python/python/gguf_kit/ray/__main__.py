"""``python -m gguf_kit.ray``: quantize, convert, evaluate and sweep on a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from .. import Recipe
from ..errors import Cancelled, GgufError
from . import convert, evaluate, quantize, sweep

#: What a fault is to a shell, as with the command `gguf`.
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

    making = command("quantize", "a smaller model of a model")
    making.add_argument("source", help="the model: a path that all nodes see, s3://, hf:")
    making.add_argument("out", help="the file to write, where all nodes see it")
    making.add_argument("type", help="a mix or type, such as Q4_K_M")
    converting = command("convert", "a model of a checkpoint")
    converting.add_argument("source", help="the directory of the checkpoint, or hf:org/repo")
    converting.add_argument("out", help="the file to write, where all nodes see it")
    converting.add_argument("type", nargs="?", help="a mix or type (default: the types of the source)")
    for one in (making, converting):
        one.add_argument("--no-merge", action="store_true", help="leave the parts as shards")
        one.add_argument("--no-resume", action="store_true", help="do not go on with parts that are there")
        one.add_argument("--force", action="store_true", help="replace what exists")
    judging = command("evaluate", "perplexity, or divergence from a reference")
    judging.add_argument("models", nargs="+", help="models that all nodes see")
    judging.add_argument("--reference", help="the model that they were made of")
    judging.add_argument("--keep", metavar="DIR", help="a folder for parts that are done, to go on with")
    sweeping = command("sweep", "many recipes of one model, each measured by divergence")
    sweeping.add_argument("source", help="the model: a path that all nodes see, s3://, hf:")
    sweeping.add_argument("recipes", nargs="+", metavar="RECIPE", help="TYPE, or NAME=TYPE:FILE of --tensor-type-file")
    sweeping.add_argument("--keep", metavar="FILE", help="gets a line per recipe that is done, to go on with")
    for one in (judging, sweeping):
        one.add_argument("-f", "--file", metavar="TEXT", required=True, help="the file with the text, on this machine")
        one.add_argument("-c", "--ctx-size", type=int, default=512, metavar="N", help="tokens of a window (512)")
        one.add_argument("--chunks", type=int, metavar="N", help="windows at most (all)")
        one.add_argument("--json", action="store_true", help="print JSON")
    for one in (making, converting, sweeping):
        _add_recipe(one)
    for one in (making, converting, judging):
        one.add_argument("--parts", type=int, default=8, metavar="N", help="parts to divide the work into (8)")
    for one in (making, converting, judging, sweeping):
        one.add_argument("--address", help="the cluster: auto, ray://host:10001 (default: RAY_ADDRESS, or this machine)")
        one.add_argument("--cpus", type=int, metavar="N", help="CPUs for each part (default: all nodes busy)")
        one.add_argument("--memory", type=int, metavar="BYTES", help="memory for each part (default: what is needed)")
        one.add_argument("--retries", type=int, default=10, metavar="N", help="tries after a worker is lost (10)")
    return parser


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--imatrix", metavar="FILE", help="an importance matrix that all nodes see")
    parser.add_argument("--pure", action="store_true", help="give all tensors the default type")
    parser.add_argument("--leave-output-tensor", action="store_true", help="keep output.weight as it is")
    parser.add_argument("--output-tensor-type", metavar="TYPE", help="type of output.weight")
    parser.add_argument("--token-embedding-type", metavar="TYPE", help="type of the token embeddings")
    parser.add_argument("--tensor-type", action="append", default=[], metavar="REGEX=TYPE", help="may be repeated")
    parser.add_argument("--tensor-type-file", metavar="FILE", help="such lines, on this machine")
    parser.add_argument("--allow-requantize", action="store_true", help="also what is quantized already")


def _recipe(given: argparse.Namespace, file: Optional[str] = None) -> Recipe:
    file = file or given.tensor_type_file
    return Recipe(
        pure=given.pure,
        leave_output_tensor=given.leave_output_tensor,
        output_tensor_type=given.output_tensor_type,
        token_embedding_type=given.token_embedding_type,
        tensor_types=given.tensor_type,
        recipe=None if file is None else Path(file).read_text(encoding="utf-8"),
        imatrix=given.imatrix,
        allow_requantize=given.allow_requantize,
    )


class _Line:
    """How far the work is, on one line of a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._length = 0
        self._shown = sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        share = done / total if total else 0.0
        self._print(f"{what} {share:4.0%}")

    def clear(self) -> None:
        """Takes the line away."""
        self._print("")
        self._length = 0

    def _print(self, text: str) -> None:
        if self._shown and (text or self._length):
            print(f"\r{text.ljust(self._length)}", end="" if text else "\r", file=sys.stderr, flush=True)
            self._length = len(text)


def _run(given: argparse.Namespace, line: _Line) -> List[str]:
    """Does what is asked for; the lines to print."""
    cluster: Dict[str, Any] = {
        "address": given.address,
        "cpus": given.cpus,
        "memory": given.memory,
        "retries": given.retries,
        "progress": line,
    }
    if given.command in ("quantize", "convert"):
        how: Dict[str, Any] = {
            "parts": given.parts,
            "recipe": _recipe(given),
            "merge": not given.no_merge,
            "resume": not given.no_resume,
            "force": given.force,
        }
        make: Any = quantize if given.command == "quantize" else convert
        made = make(given.source, given.out, given.type, **how, **cluster)
        line.clear()
        for note in made.notes:
            print(f"note: {note}", file=sys.stderr)
        print(f"made {made.made} parts, {made.kept} were there", file=sys.stderr)
        return [f"wrote {file}" for file in made.files]
    text = Path(given.file).read_text(encoding="utf-8")
    cut: Dict[str, Any] = {"context": given.ctx_size, "windows": given.chunks, "keep": given.keep}
    if given.command == "evaluate":
        found: List[Any] = []
        found += evaluate(given.models, text, reference=given.reference, parts=given.parts, **cut, **cluster)
        line.clear()
        figures = [{"model": model, **one._asdict()} for model, one in zip(given.models, found)]
        if given.json:
            return [json.dumps(figures, indent=2)]
        return [f"{name:<22} {value}" for one in figures for name, value in one.items()]
    recipes = dict(_named(word, given) for word in given.recipes)
    swept = sweep(given.source, recipes, text, **cut, **cluster)
    line.clear()
    if given.json:
        rows = [{**row._asdict(), "divergence": row.divergence._asdict()} for row in swept.rows]
        return [json.dumps(rows, indent=2)]
    return [swept.table()]


def _named(word: str, given: argparse.Namespace) -> Any:
    name, is_named, rest = word.partition("=")
    kind, _, file = (rest if is_named else word).partition(":")
    return name, (kind, _recipe(given, file or None))


def main(words: Optional[Sequence[str]] = None) -> int:
    """Does what the command line says, and answers with the exit code."""
    given, line = _parser().parse_args(words), _Line()
    try:
        lines = _run(given, line)
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
    for one in lines:
        print(one)
    return 0


if __name__ == "__main__":
    sys.exit(main())
