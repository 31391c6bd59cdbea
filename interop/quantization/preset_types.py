"""The types that mixes give the tensors of every architecture, beside llama.cpp's.

Usage: python mix_plans.py GGUF_BINARY LLAMA_QUANTIZE LLAMA_CPP_DIR FOLDER [--layers N]

FOLDER has GGUF files, as `coverage.py --keep FOLDER` leaves them: files named `*.ours.gguf` if there are any, else
all. Of the first file of each architecture that the other program
takes a header is made with the same keys and tensors, but rows of whole
super-blocks, and layers again until there are N (16), so that rules of places in the model come to be. Its data is
a hole. Both programs say for all mixes what they would do (`--dry-run`), once with these tensors and once with
those of the file as it is, whose rows are too short for most types. Needs numpy.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SUPER_BLOCK = 256
LINE = re.compile(r"\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], type = +(\S+), size = .*?(?:-> .*\((\S+)\))?$")
MIX = re.compile(r"^ *\d+ +or +(\S+) +:")
PLAIN = {"F32", "F16", "BF16", "COPY"}
# Keys that tiny checkpoints do without and the other program does not.
LACKING = {
    "dots1": {"expert_used_count": 2},
    "exaone-moe": {"expert_gating_func": 2},
    "modern-bert": {"attention.layer_norm_epsilon": 1e-5},
    "qwen3vl": {"rope.dimension_sections": [8, 8, 8, 0]},
}


def headers(folder):
    """The files of each architecture; of encoders, of each class."""
    files = sorted(folder.rglob("*.ours.gguf")) or sorted(folder.rglob("*.gguf"))
    found = {}
    for file in files:
        try:
            reader = gguf.GGUFReader(file)
        except Exception as fault:
            print(f"not read: {file.name}: {fault}", file=sys.stderr)
            continue
        architecture = reader.get_field("general.architecture").contents()
        name = f"{architecture} of {file.parent.stem}" if architecture == "clip" else architecture
        found.setdefault(name, []).append(reader)
    return dict(sorted(found.items()))


def write(reader, architecture, layers, widen, path):
    """Keys and tensors with a hole for data. Vocabularies are left out: no rule reads them."""
    keys = {
        name: field
        for name, field in reader.fields.items()
        if not name.startswith(("GGUF.", "tokenizer.")) and name != "general.architecture"
    }
    count = keys.get(f"{architecture}.block_count")
    count = int(count.contents()) if count else 0
    times = max(1, layers // count) if widen and count else 1
    writer = gguf.GGUFWriter(path, architecture, use_temp_file=False)
    for name, field in keys.items():
        value, kind = field.contents(), field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        if name == f"{architecture}.block_count":
            value *= times
        elif inner is not None and len(value) == count and not name.endswith("sections"):
            value = list(value) * times
        writer.add_key_value(name, value, kind, sub_type=inner)
    for name, value in LACKING.get(architecture, {}).items():
        kind = gguf.GGUFValueType.FLOAT32 if isinstance(value, float) else gguf.GGUFValueType.UINT32
        if isinstance(value, list):
            writer.add_array(f"{architecture}.{name}", value)
        elif f"{architecture}.{name}" not in keys:
            writer.add_key_value(f"{architecture}.{name}", value, kind)
    size = 0
    for tensor in reader.tensors:
        shape = [int(n) for n in tensor.shape]
        if widen and len(shape) > 1:
            shape[0] = -(-shape[0] // SUPER_BLOCK) * SUPER_BLOCK
        layer = re.match(r"blk\.(\d+)\.(.*)", tensor.name)
        for again in range(times if layer else 1):
            name = f"blk.{int(layer[1]) + again * count}.{layer[2]}" if layer else tensor.name
            bytes = 4
            for n in shape:
                bytes *= n
            writer.add_tensor_info(name, shape[::-1], numpy.dtype(numpy.float32), bytes)
            size += -(-bytes // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        file.truncate(-(-path.stat().st_size // 32) * 32 + size)


def theirs(program, path, mix):
    done = subprocess.run(
        [program, "--dry-run", path, mix], capture_output=True, text=True, env={**os.environ, "GGML_NO_BACKTRACE": "1"}
    )
    if done.returncode < 0:
        return None
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line or "fail" in line]
        return lines[0].strip() if lines else f"exit code {done.returncode}"
    found = {}
    for line in (done.stdout + done.stderr).splitlines():
        if match := LINE.search(line):
            found[match[1]] = (match[3] or match[2]).lower()
    return found


def ours(program, path, mixes):
    """All mixes at once, or else one by one: who is refused shows what is said."""
    command = [program, "quantize", "--dry-run", "--json", "--imatrix-missing", "uniform", path, ",".join(mixes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        made = json.loads(done.stdout)
        outputs = made.get("outputs", [made])
        return [{tensor["name"]: tensor["to"].lower() for tensor in output["tensors"]} for output in outputs]
    if len(mixes) == 1:
        return [done.stderr.strip().splitlines()[0]]
    return [ours(program, path, [mix])[0] for mix in mixes]


def compare(options, path, mixes):
    """Mixes that differ, and how; nothing where the other program dies. What both refuse is the same."""
    for mix, mine in zip(mixes, ours(options.gguf, path, mixes), strict=True):
        other = theirs(options.llama_quantize, path, mix)
        if other is None:
            yield mix, None
        elif isinstance(mine, str) and isinstance(other, str):
            continue
        elif isinstance(mine, str):
            yield mix, f"ours refuses: {mine}"
        elif isinstance(other, str):
            yield mix, f"the other program fails: {other}"
        elif mine.keys() != other.keys():
            yield mix, f"other tensors: {sorted(mine.keys() ^ other.keys())[:3]}"
        elif wrong := [name for name in mine if mine[name] != other[name]]:
            name = wrong[0]
            yield mix, f"{len(wrong)} tensors, {name}: {mine[name]}, the other program {other[name]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("llama_quantize")
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=16)
    options = parser.parse_args()
    global gguf, numpy
    sys.path.insert(0, str(options.llama_cpp / "gguf-py"))
    import gguf
    import numpy

    helped = subprocess.run([options.llama_quantize, "--help"], capture_output=True, text=True)
    named = (MIX.match(line) for line in (helped.stdout + helped.stderr).splitlines())
    mixes = [match[1] for match in named if match and match[1] not in PLAIN]
    models = headers(options.folder)
    different, compared, refused, dies = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.gguf"
        for name, readers in models.items():
            architecture = name.split()[0]
            for widen in (True, False):
                # Where lists are longer or shorter than layers are many, no layer comes again.
                for reader, layers in ((reader, layers) for reader in readers for layers in (options.layers, 1)):
                    write(reader, architecture, layers, widen, path)
                    taken = theirs(options.llama_quantize, path, "Q8_0")
                    if isinstance(taken, dict):
                        break
                else:
                    refused += 1
                    print(f"{name}: not compared, the other program fails: {taken}", flush=True)
                    continue
                every = list(compare(options, path, mixes))
                found = [(mix, what) for mix, what in every if what is not None]
                different += len(found)
                dies += len(every) - len(found)
                compared += len(mixes) - len(every) + len(found)
                said = {}
                for mix, what in found:
                    said.setdefault(what, []).append(mix)
                for what, of in said.items():
                    print(f"{name}{'' if widen else ' (short rows)'}: {', '.join(of)}: {what}", flush=True)
    print(f"{len(models)} kinds of models, {len(mixes)} mixes, {compared} plans compared: {different} differ")
    print(f"the other program refuses {refused} files, and dies of {dies} plans")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
