"""Compares conversion with llama.cpp's converter, for all classes that it knows.

Usage: python interop/converter/compare.py GGUF_BINARY LLAMA_CPP_DIR ZOO_DIR [--only CLASS,...] [--limit N] [--list]
                                           [--results FILE] [--write DATA] [--keep DIR]

Reads the classes that llama.cpp's converter registers, and their architectures, from its sources, and the classes that gguf-kit
converts from its command line. Both converters convert the tiny checkpoints of each class (`interop/fixtures/`) to F32 and F16, and
whole files are compared; for classes with a vision or audio encoder also those of `--mmproj`.

`--list` prints the classes without a comparison, `--limit` takes the first N classes, `--results` stores outcomes in a file and
reuses those of classes that `--only` does not name, `--write docs/models.json` records the outcomes and regenerates docs/models.md,
`--keep` keeps checkpoints and files.

LLAMA_CPP_DIR is `vendor/llama.cpp` of the source package of llama-cpp-python on PyPI; ZOO_DIR the folder with the tokenizers.
Needs torch, transformers, sentencepiece, numpy.
"""

import argparse
import ast
import io
import json
import multiprocessing
import queue
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop import models_page
from interop.converter import known_differences, reference
from interop.fixtures import build

# Time limit for the checkpoints of a class.
SECONDS = 120
# Classes whose tensors keep their types, whatever type llama.cpp's converter gets.
AS_STORED = {"DeepseekV4ForCausalLM", "DeepseekV4DSparkModel"}
# Why a class is not converted, unless it is just not supported.
REASONS = {"UltravoxModel": "an encoder only: the text model is another checkpoint"}


# ---- classes of llama.cpp's converter


def registered(llama_cpp):
    """Returns the architecture of the text model of each class, and whether it has a vision or audio encoder."""
    bodies, names = {}, []
    for path in sorted((llama_cpp / "conversion").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bodies.setdefault(node.name, node)
                names += [(node, name) for name in registrations(node)]
    sys.path.insert(1, str(llama_cpp / "gguf-py"))
    import gguf

    found = {}
    for node, name in names:
        arch = architecture(node, bodies)
        row = found.setdefault(name, {"architecture": None, "encoder": False})
        if arch == "MMPROJ":
            row["encoder"] = True
        else:
            row["architecture"] = gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH[arch]]
    return dict(sorted(found.items()))


def registrations(node):
    """Yields the names under which a class is registered."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "ModelBase.register":
            yield from (argument.value for argument in decorator.args)


def architecture(node, bodies):
    """Returns `model_arch` of a class or of its first base class that sets it."""
    for line in node.body:
        target = getattr(line, "targets", [getattr(line, "target", None)])[0]
        if getattr(target, "id", None) == "model_arch" and line.value is not None:
            return line.value.attr
    for base in node.bases:
        base = bodies.get(ast.unparse(base).split(".")[-1])
        if base is not None and (arch := architecture(base, bodies)):
            return arch
    return "MMPROJ" if any("Mmproj" in ast.unparse(base) for base in node.bases) else None


# ---- comparing


def compare(binary, llama_cpp, folder, pre, known, known_in_f16, flags=(), outtypes=("f32", "f16")):
    """Converts a checkpoint with both converters and returns a line for each difference; the first word is the outcome."""
    for outtype in outtypes:
        theirs, ours = (folder.with_suffix(f".{name}.gguf") for name in ("theirs", "ours"))
        output = io.StringIO()
        try:
            with redirect_stderr(output), redirect_stdout(output):
                reference.convert(llama_cpp, folder, theirs, outtype, pre, flags)
        except (Exception, SystemExit) as error:
            return [f"fails {type(error).__name__}: {error}"]
        command = [binary, "convert", "--force", str(folder), "-o", str(ours), "--outtype", outtype, *flags]
        done = subprocess.run(command + (["--pre", pre] if pre else []), capture_output=True, text=True)
        if done.returncode != 0:
            return [f"refused {done.stderr.strip()}"]
        known = known | (known_in_f16 if outtype == "f16" else set())
        # The reader of the Python package is slow: it runs only if bytes differ.
        if not known and theirs.read_bytes() == ours.read_bytes():
            continue
        found = list(reference.differences(theirs, ours, known))
        if not found and not known:
            found = ["the layout differs"]
        if found:
            return [f"differs {outtype}: {line}" for line in found]
    return []


def compare_mmproj(name, options, results):
    """Compares all checkpoints of the encoder of a class; runs in its own process."""
    reference.load(options.llama_cpp)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / f"{name}.encoder"
        work.mkdir(parents=True)
        try:
            folders = list(build.mmproj_checkpoints(name, options.zoo, work))
        except Exception as error:
            results.put([f"checkpoint {type(error).__name__}: {error}"])
            return
        known = known_differences.BY_ENCODER.get(name, set())
        types = ("f32", "f16", "q8_0", "auto")
        for folder in folders:
            found = compare(options.gguf, options.llama_cpp, folder, None, known, set(), flags=["--mmproj"], outtypes=types)
            if found:
                results.put(found)
                return
    results.put(["none"] if not folders else ["known"] if known else ["equal"])


def compare_text(name, options, functions, results):
    """Compares all checkpoints of a class; runs in its own process, because classes of llama.cpp's converter share state."""
    reference.load(options.llama_cpp)
    count, with_known = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / name
        work.mkdir(parents=True)
        try:
            for folder, pre, label in build.text_checkpoints(name, functions, options.zoo, work):
                count += 1
                known = known_differences.BY_CHECKPOINT.get(label, set()) | known_differences.BY_CLASS.get(name, set())
                in_f16 = known_differences.BY_CLASS_IN_F16.get(name, set())
                target = folder / build.TARGET
                draft = ["--target-model-dir", str(target)] if target.is_dir() else []
                types = ("auto",) if name in AS_STORED else ("f32", "f16")
                found = compare(options.gguf, options.llama_cpp, folder, pre, known, in_f16, draft, types)
                if found:
                    results.put([f"{line} ({label})" if label != name else line for line in found])
                    return
                with_known += bool(known or in_f16)
        except Exception as error:
            results.put([f"checkpoint {type(error).__name__}: {error}"])
            return
    results.put(["none"] if count == 0 else ["known"] if with_known else ["equal"])


def outcome(work, *arguments):
    """Returns what `work` puts into its queue; it runs in a process of its own."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=work, args=(*arguments, results))
    process.start()
    try:
        return results.get(timeout=SECONDS)
    except queue.Empty:
        return ["checkpoint: timed out, or its process died"]
    finally:
        process.terminate()
        process.join()


# ---- the results


def recorded(found):
    """Returns the outcome of a class as docs/models.json stores it; `None` if nothing was compared."""
    word, _, rest = found[0].partition(" ")
    different = f"differs: {shorter(rest)}"
    return {
        "equal": "equal", "known": "known", "fails": f"fails: {shorter(rest)}", "differs": different, "refused": different,
    }.get(word)  # fmt: skip


def shorter(text):
    line = text.splitlines()[0].replace("`", "'") if text else ""
    return line if len(line) <= 90 else line[:87] + "..."


def write_into(path, results, architectures):
    """Records the outcomes of all compared classes, and writes the page."""
    data = models_page.load(path)
    for task, found in results.items():
        name, _, mmproj = task.partition(" ")
        outcome = recorded(found)
        if outcome is not None:
            field = "encoder_converter" if mmproj else "converter"
            models_page.record_class(data, name, architectures.get(name, "clip"), field, outcome)
    models_page.save(data, path)
    models_page.main([])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("zoo", type=Path)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()

    classes = registered(options.llama_cpp)
    listed = subprocess.run([options.gguf, "convert", "--print-supported-models"], capture_output=True, text=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    ours = {name for name, architecture in rows if architecture != "clip"}
    encoders = {name for name, architecture in rows if architecture == "clip"}
    text_models = build.text_models()
    names = [name for name in options.only or classes if options.only or name in ours | encoders][: options.limit]
    results = json.loads(options.results.read_text()) if options.results and options.results.is_file() else {}
    if not options.list:
        import torch  # noqa: F401  Loaded before the fork, so that each process starts fast.
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        for name in names:
            functions = text_models.get(build.ALIASES.get(name, name), [])
            tasks = {name: (compare_text, name, options, functions)} if name in ours else {}
            if name in encoders:
                tasks[f"{name} --mmproj"] = (compare_mmproj, name, options)
            for task, (work, *arguments) in tasks.items():
                if task in results and not options.only:
                    continue
                results[task] = outcome(work, *arguments)
                print(f"{task}: {results[task][0]}", flush=True)
                for line in results[task][1:]:
                    print(f"  {line}")
                if options.results:
                    options.results.write_text(json.dumps(results, indent=1))
    converted = [name for name in classes if name in ours]
    equal = [name for name in converted if results.get(name, [""])[0] in ("equal", "known")]
    with_encoder = [name for name, row in classes.items() if row["encoder"]]
    equal_encoders = [name for name in with_encoder if results.get(f"{name} --mmproj", [""])[0] in ("equal", "known")]
    count = (
        f"{len(converted)} of {sum(row['architecture'] is not None for row in classes.values())} classes of text models "
        f"converted, {len(equal)} of them with equal files; {len(encoders & classes.keys())} of {len(with_encoder)} classes "
        f"with an encoder converted, {len(equal_encoders)} of them with equal files."
    )
    if options.write:
        write_into(options.write, results, dict(row for row in rows if row[1] != "clip"))
    elif options.list:
        for name, row in classes.items():
            reason = REASONS.get(name, "not converted") if row["architecture"] and name not in ours else ""
            print(name, row["architecture"] or "", "clip" if row["encoder"] else "", reason)
    print(count)
    sys.exit(any(found[0].split()[0] in ("differs", "refused") for found in results.values()))


if __name__ == "__main__":
    main()
