"""Compares twenty classes with llama.cpp's converter by recorded digests, without torch and llama.cpp.

Usage: python interop/converter/digests.py GGUF_BINARY ZOO_DIR                    compares
       python interop/converter/digests.py GGUF_BINARY ZOO_DIR LLAMA_CPP_DIR      records the digests again

Checkpoints are built from the same random numbers each time, and the classes are some of those whose whole files are equal.
`digests.json` has the SHA-256 of llama.cpp's file for each checkpoint of a class in F32 and F16. Comparing needs the version of
numpy in that file, because other versions may generate other random numbers; recording needs what `compare.py` needs.
"""

import argparse
import hashlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.converter import reference
from interop.fixtures import build

DIGESTS = Path(__file__).with_suffix(".json")
SAMPLE = """ArcticForCausalLM BailingMoeV2ForCausalLM CodeShellForCausalLM DeepseekForCausalLM DreamModel GPTRefactForCausalLM
GroveMoeForCausalLM HunYuanDenseV1ForCausalLM HrmTextForCausalLM InternLM3ForCausalLM KimiLinearForCausalLM LLaDAModelLM
MiniMaxText01ForCausalLM NeoBERT OrionForCausalLM Plamo3ForCausalLM RWKV6Qwen2ForCausalLM SmallThinkerForCausalLM
TalkieForCausalLM XverseForCausalLM""".split()
OUTTYPES = ("f32", "f16")
# Folders of checkpoints whose digests were recorded under another name: both converters write it as `general.name`.
FOLDERS = {
    "bailing_moe_v2": "bailing_second",
    "deepseek": "deepseek_first",
    "hrm_text": "hrm_trained",
    "hunyuan_dense_rope_scaling": "hunyuan_dense_stretched",
    "plamo3_rope_scaling": "plamo3_stretched",
}


def digests(name, functions, zoo, convert):
    """Returns the digests of the files that `convert` writes for the checkpoints of a class."""
    found = {}
    with tempfile.TemporaryDirectory() as work:
        for folder, pre, label in build.text_checkpoints(name, functions, zoo, Path(work)):
            folder = folder.rename(folder.with_name(FOLDERS.get(label, label)))
            for outtype in OUTTYPES:
                out = folder.with_suffix(f".{outtype}.gguf")
                convert(folder, out, outtype, pre)
                found[f"{label} {outtype}"] = hashlib.sha256(out.read_bytes()).hexdigest()
    return found


def gguf_kit(binary):
    """Returns a function that converts with gguf-kit."""

    def convert(folder, out, outtype, pre):
        command = [binary, "convert", str(folder), "-o", str(out), "--outtype", outtype]
        done = subprocess.run(command + (["--pre", pre] if pre else []), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{folder.name}: {done.stderr.strip()}")

    return convert


def record_class(name, functions, zoo, llama_cpp, recorded):
    """Records the digests of llama.cpp's converter for a class."""
    reference.load(llama_cpp)

    def convert(folder, out, outtype, pre):
        reference.convert(llama_cpp, folder, out, outtype, pre)

    recorded[name] = digests(name, functions, zoo, convert)


def record(text_models, zoo, llama_cpp):
    with multiprocessing.Manager() as manager:
        recorded = manager.dict()
        for name in SAMPLE:
            # Classes of llama.cpp's converter share state: each gets a process.
            process = multiprocessing.Process(target=record_class, args=(name, text_models[name], zoo, llama_cpp, recorded))
            process.start()
            process.join()
        classes = {name: recorded[name] for name in SAMPLE}
    DIGESTS.write_text(json.dumps({"numpy": numpy.__version__, "classes": classes}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("zoo", type=Path)
    parser.add_argument("llama_cpp", type=Path, nargs="?")
    options = parser.parse_args()
    text_models = build.text_models()
    if options.llama_cpp:
        record(text_models, options.zoo, options.llama_cpp)
    recorded = json.loads(DIGESTS.read_text())
    if recorded["numpy"] != numpy.__version__:
        sys.exit(f"numpy is {numpy.__version__}; expected {recorded['numpy']}, whose random numbers the digests need")
    failed = 0
    for name, theirs in recorded["classes"].items():
        ours = digests(name, text_models[name], options.zoo, gguf_kit(options.gguf))
        differing = sorted(label for label in theirs.keys() | ours.keys() if theirs.get(label) != ours.get(label))
        failed += bool(differing)
        print(f"{name}: {', '.join(differing) + ' differ' if differing else 'equal'}", flush=True)
    print(f"{len(recorded['classes']) - failed} of {len(recorded['classes'])} equal to llama.cpp's converter")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
