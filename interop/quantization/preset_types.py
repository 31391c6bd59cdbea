"""Compares the types that presets assign to the tensors of all architectures with those of llama.cpp.

Usage: python interop/quantization/preset_types.py GGUF_BINARY LLAMA_QUANTIZE LLAMA_CPP_DIR FOLDER [--layers N]

FOLDER has GGUF files, as `interop/converter/compare.py --keep FOLDER` writes them: those named `*.ours.gguf` if there are any, else
all. For the first file of each architecture that llama-quantize accepts, the script writes a sparse file with the same keys and
tensors, but with rows of whole super-blocks, and with layers repeated up to N (16), because types depend on the layer. Both programs
plan all presets (`--dry-run`), once with these tensors and once with the original ones, whose rows are too short for most types.
Needs numpy.
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
PRESET = re.compile(r"^ *\d+ +or +(\S+) +:")
PLAIN = {"F32", "F16", "BF16", "COPY"}
# Keys that tiny checkpoints lack and llama.cpp needs.
MISSING_KEYS = {
    "dots1": {"expert_used_count": 2},
    "exaone-moe": {"expert_gating_func": 2},
    "modern-bert": {"attention.layer_norm_epsilon": 1e-5},
    "qwen3vl": {"rope.dimension_sections": [8, 8, 8, 0]},
}


def headers(folder):
    """Returns the files of each architecture; of encoders, of each class."""
    files = sorted(folder.rglob("*.ours.gguf")) or sorted(folder.rglob("*.gguf"))
    found = {}
    for file in files:
        try:
            reader = gguf.GGUFReader(file)
        except Exception as error:
            print(f"skipped: {file.name}: {error}", file=sys.stderr)
            continue
        architecture = reader.get_field("general.architecture").contents()
        name = f"{architecture} of {file.parent.stem}" if architecture == "clip" else architecture
        found.setdefault(name, []).append(reader)
    return dict(sorted(found.items()))


def write(reader, architecture, layers, widen, path):
    """Writes keys and tensors with sparse data. The vocabulary is omitted: types do not depend on it."""
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
    for name, value in MISSING_KEYS.get(architecture, {}).items():
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


def theirs(program, path, preset):
    done = subprocess.run(
        [program, "--dry-run", path, preset], capture_output=True, text=True, env={**os.environ, "GGML_NO_BACKTRACE": "1"}
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


def ours(program, path, presets):
    """Plans all presets at once; if that fails, each one, with its error message."""
    command = [program, "quantize", "--dry-run", "--json", "--imatrix-missing", "uniform", path, ",".join(presets)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        made = json.loads(done.stdout)
        outputs = made.get("outputs", [made])
        return [{tensor["name"]: tensor["to"].lower() for tensor in output["tensors"]} for output in outputs]
    if len(presets) == 1:
        return [done.stderr.strip().splitlines()[0]]
    return [ours(program, path, [preset])[0] for preset in presets]


def compare(options, path, presets):
    """Yields presets whose plans differ, with the difference (`None`: llama-quantize crashed). It is no difference if both fail."""
    for preset, mine in zip(presets, ours(options.gguf, path, presets), strict=True):
        other = theirs(options.llama_quantize, path, preset)
        if other is None:
            yield preset, None
        elif isinstance(mine, str) and isinstance(other, str):
            continue
        elif isinstance(mine, str):
            yield preset, f"gguf quantize fails: {mine}"
        elif isinstance(other, str):
            yield preset, f"llama-quantize fails: {other}"
        elif mine.keys() != other.keys():
            yield preset, f"other tensors: {sorted(mine.keys() ^ other.keys())[:3]}"
        elif different := [name for name in mine if mine[name] != other[name]]:
            name = different[0]
            yield preset, f"{len(different)} tensors, {name}: {mine[name]}, llama-quantize {other[name]}"


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
    named = (PRESET.match(line) for line in (helped.stdout + helped.stderr).splitlines())
    presets = [match[1] for match in named if match and match[1] not in PLAIN]
    models = headers(options.folder)
    different, compared, failed, crashed = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.gguf"
        for name, readers in models.items():
            architecture = name.split()[0]
            for widen in (True, False):
                # Layers are not repeated if an array has another length than the number of layers.
                for reader, layers in ((reader, layers) for reader in readers for layers in (options.layers, 1)):
                    write(reader, architecture, layers, widen, path)
                    plan = theirs(options.llama_quantize, path, "Q8_0")
                    if isinstance(plan, dict):
                        break
                else:
                    failed += 1
                    print(f"{name}: not compared, llama-quantize fails: {plan}", flush=True)
                    continue
                all_plans = list(compare(options, path, presets))
                found = [(preset, difference) for preset, difference in all_plans if difference is not None]
                different += len(found)
                crashed += len(all_plans) - len(found)
                compared += len(presets) - len(all_plans) + len(found)
                groups = {}
                for preset, difference in found:
                    groups.setdefault(difference, []).append(preset)
                for difference, names in groups.items():
                    print(f"{name}{'' if widen else ' (short rows)'}: {', '.join(names)}: {difference}", flush=True)
    print(f"{len(models)} models, {len(presets)} presets, {compared} plans compared: {different} differ")
    print(f"llama-quantize fails on {failed} files and crashes on {crashed} plans")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
