"""Twenty classes of coverage.py, without torch and llama.cpp: by digests of what its converter wrote.

Usage: python coverage_sample.py GGUF_BINARY ZOO_DIR                    compares
       python coverage_sample.py GGUF_BINARY ZOO_DIR LLAMA_CPP_DIR      writes the digests anew

Checkpoints are made of the same random numbers each time, and the classes are those where whole files are equal, so
that SHA-256 of llama.cpp's file is that of ours. `coverage_sample.json` has it for every checkpoint of a class in f32 and
f16. Comparing needs numpy of the version that stands there, since another may make other random numbers; writing needs what
coverage.py needs.
"""

import hashlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

import coverage

DIGESTS = Path(__file__).with_suffix(".json")
# From all modules of cases: dense, experts, latent attention, states, drafts, encoders of text, old classes.
SAMPLE = """ArcticForCausalLM BailingMoeV2ForCausalLM CodeShellForCausalLM DeepseekForCausalLM
DreamModel GPTRefactForCausalLM GroveMoeForCausalLM HunYuanDenseV1ForCausalLM HrmTextForCausalLM InternLM3ForCausalLM KimiLinearForCausalLM LLaDAModelLM
MiniMaxText01ForCausalLM NeoBERT OrionForCausalLM Plamo3ForCausalLM RWKV6Qwen2ForCausalLM
SmallThinkerForCausalLM TalkieForCausalLM XverseForCausalLM""".split()
OUTTYPES = ("f32", "f16")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files(name, by_hand, zoo, convert):
    """Digests of what `convert` makes of the checkpoints of a class."""
    made = {}
    with tempfile.TemporaryDirectory() as work:
        for folder, pre, label in coverage.checkpoints(name, by_hand, zoo, Path(work)):
            for outtype in OUTTYPES:
                out = folder.with_suffix(f".{outtype}.gguf")
                convert(folder, out, outtype, pre)
                made[f"{label} {outtype}"] = digest(out)
    return made


def by_ours(binary):
    def convert(folder, out, outtype, pre):
        command = [binary, "convert", str(folder), "-o", str(out), "--outtype", outtype]
        done = subprocess.run(command + (["--pre", pre] if pre else []), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{folder.name}: {done.stderr.strip()}")

    return convert


def by_theirs(name, by_hand, zoo, llama_cpp, made):
    coverage.import_official(llama_cpp)

    def convert(folder, out, outtype, pre):
        coverage.converter.official(llama_cpp, folder, out, outtype, pre, [])

    made[name] = files(name, by_hand, zoo, convert)


def write(cases, zoo, llama_cpp):
    with multiprocessing.Manager() as manager:
        made = manager.dict()
        for name in SAMPLE:
            # Its classes keep state from one to the next.
            process = multiprocessing.Process(target=by_theirs, args=(name, cases[name], zoo, llama_cpp, made))
            process.start()
            process.join()
        classes = {name: made[name] for name in SAMPLE}
    DIGESTS.write_text(json.dumps({"numpy": numpy.__version__, "classes": classes}, indent=1) + "\n")


def main():
    binary, zoo = sys.argv[1], Path(sys.argv[2])
    cases, _ = coverage.cases()
    if len(sys.argv) > 3:
        write(cases, zoo, Path(sys.argv[3]))
    known = json.loads(DIGESTS.read_text())
    if known["numpy"] != numpy.__version__:
        sys.exit(f"the digests are of random numbers of numpy {known['numpy']}, and this is {numpy.__version__}")
    wrong = 0
    for name, theirs in known["classes"].items():
        ours = files(name, cases[name], zoo, by_ours(binary))
        differing = sorted(label for label in theirs.keys() | ours.keys() if theirs.get(label) != ours.get(label))
        wrong += bool(differing)
        print(f"{name}: {', '.join(differing) + ' differ' if differing else 'equal'}", flush=True)
    print(f"{len(known['classes']) - wrong} of {len(known['classes'])} as llama.cpp's converter writes them")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
