"""Compares conversion with llama.cpp's converter, for every class that it knows.

Usage: python coverage.py GGUF_BINARY LLAMA_CPP_DIR ZOO_DIR [--only CLASS,...] [--limit N] [--list]
                          [--results FILE] [--write DATA] [--keep DIR]

Reads the classes that llama.cpp's converter registers, and their architectures, from its sources, and the classes that gguf-kit
converts from its command line. For every class, tiny checkpoints with random weights are made: by hand (`converter.py`,
`converter_older.py`, `coverage_*.py`), or by `transformers` (`tiny_checkpoints.py`). Both converters write F32 and F16 files, and whole
files are compared; for classes with a vision or audio encoder also those of `--mmproj` (`tiny_encoders.py`).

`--list` prints the classes and makes no checkpoint, `--limit` takes the first N classes, `--results` keeps outcomes in a file and
reuses those of classes that `--only` does not name, `--write docs/models.json` records the outcomes and generates docs/models.md
again (`models_page.py`), `--keep` keeps checkpoints and files.

LLAMA_CPP_DIR is `vendor/llama.cpp` of the source package of llama-cpp-python on PyPI; ZOO_DIR the folder
with the tokenizers. Needs torch, transformers, sentencepiece, numpy.
"""

import argparse
import ast
import importlib
import io
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import converter
import models_page
import tiny_checkpoints
import tiny_encoders

SECONDS = 120
# Where the model that a draft is for stands beside it.
TARGET = "target"
# Other names of classes, whose checkpoints are the same.
SAME_AS = {
    "BaiChuanForCausalLM": "BaichuanForCausalLM",
    "BertModel": "BertForMaskedLM",
    "BitnetForCausalLM": "BitNetForCausalLM",
    "CamembertModel": "XLMRobertaModel",
    "ChameleonForCausalLM": "ChameleonForConditionalGeneration",
    "ChatGLMForConditionalGeneration": "ChatGLMModel",
    "Dots3NoteForCausalLM": "Dots3NoteTextForCausalLM",
    "Dots3NoteForConditionalGeneration": "Dots3NoteTextForCausalLM",
    "Ernie4_5_ForCausalLM": "Ernie4_5ForCausalLM",
    "ExaoneMoEForCausalLM": "ExaoneMoeForCausalLM",
    "Gemma3nForConditionalGeneration": "Gemma3nForCausalLM",
    "Gemma4UnifiedAssistantForCausalLM": "Gemma4AssistantForCausalLM",
    "JinaBertForMaskedLM": "JinaBertModel",
    "JinaEmbeddingsV5Model": "EuroBertModel",
    "KimiK25ForConditionalGeneration": "DeepseekV3ForCausalLM",
    "KimiVLForConditionalGeneration": "DeepseekV3ForCausalLM",
    "KimiLinearModel": "KimiLinearForCausalLM",
    "LFM2ForCausalLM": "Lfm2ForCausalLM",
    "Lfm2BidirectionalModel": "Lfm2Model",
    "Phi4ForCausalLMV": "Phi3ForCausalLM",
    "StepVLForConditionalGeneration": "Qwen3ForCausalLM",
    "LLaDAMoEModel": "LLaDAMoEModelLM",
    "LLaMAForCausalLM": "LlamaForCausalLM",
    "LlavaStableLMEpochForCausalLM": "StableLmForCausalLM",
    "MT5ForConditionalGeneration": "T5ForConditionalGeneration",
    "MambaLMHeadModel": "MambaForCausalLM",
    "OLMoForCausalLM": "OlmoForCausalLM",
    "PLaMo2ForCausalLM": "Plamo2ForCausalLM",
    "PLaMo3ForCausalLM": "Plamo3ForCausalLM",
    "RWForCausalLM": "FalconForCausalLM",
    "StableLMEpochForCausalLM": "StableLmForCausalLM",
    "T5WithLMHeadModel": "T5ForConditionalGeneration",
    "UMT5Model": "UMT5ForConditionalGeneration",
    "YoutuVLForConditionalGeneration": "YoutuForCausalLM",
    "modeling_grove_moe.GroveMoeForCausalLM": "GroveMoeForCausalLM",
    "modeling_sarvam_moe.SarvamMoEForCausalLM": "SarvamMoEForCausalLM",
}
# Of which `transformers` makes one model, and another is made by hand.
TWICE = {"Mistral3ForConditionalGeneration", "Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration"}
# Whose tensors keep their types, whatever the other converter is asked for.
AS_STORED = {"DeepseekV4ForCausalLM", "DeepseekV4DSparkModel"}
# Of those whose configuration `transformers` does not complete.
MODEL_TYPES = {"LlavaStableLMEpochForCausalLM": "llava_stablelm", "StableLMEpochForCausalLM": "stablelm_epoch"}
# Keys and tensors of single classes in which llama.cpp's converter is mistaken: docs/models.md says how.
KNOWN = {
    "CamembertModel": {"bert.context_length", "position_embd.weight"},
    "DeepseekV32ForCausalLM": {"deepseek32.expert_gating_func"},
    "ExaoneForCausalLM": {"exaone.attention.layer_norm_rms_epsilon"},
    "Glm4MoeLiteForCausalLM": {"deepseek2.expert_gating_func"},
    # Programs want the epsilon under another name.
    "QWenLMHeadModel": {"qwen.attention.layer_norm_rms_epsilon"},
    # The exponential of the machine, which is off by a last bit here and there.
    "MambaForCausalLM": {"blk.0.ssm_a", "blk.1.ssm_a"},
    "JambaForCausalLM": {"blk.0.ssm_a"},
    "Plamo2ForCausalLM": {"blk.0.ssm_a"},
    "PLaMo2ForCausalLM": {"blk.0.ssm_a"},
    # It takes the mean in the 16 bits that it is stored in.
    "SarvamMoEForCausalLM": {"blk.1.exp_probs_b.bias"},
    "modeling_sarvam_moe.SarvamMoEForCausalLM": {"blk.1.exp_probs_b.bias"},
    "MambaLMHeadModel": {"blk.0.ssm_a", "blk.1.ssm_a"},
    "Qwen3MoeForCausalLM": {"qwen3moe.expert_weights_norm"},
}
# The same of files in half precision: it stores matrices so that programs want in F32.
KNOWN_IN_HALF = {"DbrxForCausalLM": {f"blk.{i}.ffn_gate_inp.weight" for i in range(2)}}
# Of encoders. Square roots, logarithms, sines and cosines of the machine are off by a last bit here and there.
LAYERS = range(tiny_encoders.LAYERS)
NORMS = {f"a.blk.{i}.conv_norm.{end}" for i in LAYERS for end in ("weight", "bias")}
POSITIONS = {"a.position_embd.weight"}
KNOWN_ENCODERS = {
    # Tokens of the text model that stand between rows of an image: it looks for them among tensors that it has
    # left out, and programs refuse the file.
    "LlavaForConditionalGeneration": {"v.token_embd.img_break"},
    "Mistral3ForConditionalGeneration": {"v.token_embd.img_break"},
    "Gemma4ForConditionalGeneration": {f"a.blk.{i}.per_dim_scale.weight" for i in LAYERS},
    "Lfm2AudioForConditionalGeneration": NORMS,
    # It gives these the name of a norm that Gemma 4 has and Llama 4 has not.
    "Llama4ForConditionalGeneration": {
        f"v.blk.{i}.{norm}.{end}" for i in LAYERS for norm in ("ln2", "attn_post_norm") for end in ("weight", "bias")
    },
    "Qwen2_5OmniModel": POSITIONS,
    "Qwen3ASRForConditionalGeneration": POSITIONS,
    "Qwen3OmniMoeForConditionalGeneration": POSITIONS,
    # It gives these a name under which its own program does not look for them.
    **dict.fromkeys(
        ("GraniteSpeechForConditionalGeneration", "GraniteSpeechPlusForConditionalGeneration"),
        NORMS | {name.replace("conv_norm", "conv_norm_var") for name in NORMS},
    ),
}
# Why classes are refused, where it is more than that nobody wrote them down: the text model of this one is another checkpoint.
REASONS = {
    "UltravoxModel": "an encoder only",
}


# ---- what llama.cpp's converter registers


def registered(llama_cpp):
    """Class to architecture of the text model, and whether there is a vision or audio encoder."""
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
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "ModelBase.register":
            yield from (argument.value for argument in decorator.args)


def architecture(node, bodies):
    """`model_arch` of a class, or of the first class that it is derived from which has one."""
    for line in node.body:
        target = getattr(line, "targets", [getattr(line, "target", None)])[0]
        if getattr(target, "id", None) == "model_arch" and line.value is not None:
            return line.value.attr
    for base in node.bases:
        base = bodies.get(ast.unparse(base).split(".")[-1])
        if base is not None and (arch := architecture(base, bodies)):
            return arch
    return "MMPROJ" if any("Mmproj" in ast.unparse(base) for base in node.bases) else None


# ---- checkpoints


def cases():
    """Made by hand: class to the functions that make configuration and tensors."""
    made, mistakes = {}, {}
    kinds = ("cases", "mixed", "drafts", "valued", "hybrid", "newest", "states", "speech")
    for module in ("converter", "converter_older", *(f"coverage_{kind}" for kind in kinds)):
        if module != "converter":
            importlib.import_module(module)
        for label, function in converter.CASES.items():
            name = function()[0]["architectures"][0]
            made.setdefault(name, []).append((label, function))
        mistakes |= converter.MISTAKES
        converter.CASES.clear()
    return made, mistakes


def checkpoints(name, by_hand, zoo, work):
    """Writes the checkpoints of a class; yields folder, pre-tokenizer, label."""
    if not by_hand or name in TWICE:
        made_as = SAME_AS.get(name, name)
        for folder in tiny_checkpoints.write(made_as, name, work, zoo):
            yield folder, tiny_checkpoints.pre_tokenizer(made_as), folder.name
    for label, function in by_hand:
        made, tensors, tokenizer, pre = function()
        made["architectures"] = [name]
        made["model_type"] = MODEL_TYPES.get(name, made["model_type"])
        tokenizer = tokenizer if callable(tokenizer) else zoo / tokenizer
        target, files = made.pop("target_model", None), made.pop("files", {})
        own = tokenizer if target is None else lambda folder: None
        converter.write_checkpoint(work / label, made, tensors, own, label in converter.STORED_AS_F16)
        tiny_checkpoints.add_tokens(work / label, tiny_checkpoints.TOKENS.get(name, []))
        fields = tiny_checkpoints.TOKENIZER_FIELDS.get(name, {})
        tiny_checkpoints.set_fields(work / label / "tokenizer_config.json", fields)
        for file, text in files.items():
            (work / label / file).write_text(text)
        if target is not None:
            converter.write_checkpoint(work / label / TARGET, target, {}, tokenizer, False)
        yield work / label, pre, label


# ---- comparing


def compare(binary, llama_cpp, folder, pre, mistakes, in_half, flags=(), outtypes=("f32", "f16")):
    """Differences of both files of one checkpoint, a line each; the first word says whose they are."""
    for outtype in outtypes:
        theirs, ours = (folder.with_suffix(f".{whose}.gguf") for whose in ("theirs", "ours"))
        told = io.StringIO()
        try:
            with redirect_stderr(told), redirect_stdout(told):
                converter.official(llama_cpp, folder, theirs, outtype, pre, flags)
        except (Exception, SystemExit) as fault:
            return [f"official {type(fault).__name__}: {fault}"]
        command = [binary, "convert", "--force", str(folder), "-o", str(ours), "--outtype", outtype, *flags]
        done = subprocess.run(command + (["--pre", pre] if pre else []), capture_output=True, text=True)
        if done.returncode != 0:
            return [f"refused {done.stderr.strip()}"]
        mistakes = mistakes | (in_half if outtype == "f16" else set())
        # The reader of the other side takes its time: it is asked only what differs.
        if not mistakes and theirs.read_bytes() == ours.read_bytes():
            continue
        found = list(converter.differences(theirs, ours, mistakes))
        if not found and not mistakes:
            found = ["the layout differs"]
        if found:
            return [f"differs {outtype}: {line}" for line in found]
    return []


def work_on_encoder(name, options, results):
    """All checkpoints of the encoder of a class, in a process of its own."""
    import_official(options.llama_cpp)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / f"{name}.encoder"
        work.mkdir(parents=True)
        try:
            folders = list(tiny_encoders.write(name, options.zoo, work))
        except Exception as fault:
            results.put([f"checkpoint {type(fault).__name__}: {fault}"])
            return
        expected = KNOWN_ENCODERS.get(name, set())
        types = ("f32", "f16", "q8_0", "auto")
        for folder in folders:
            found = compare(
                options.gguf, options.llama_cpp, folder, None, expected, set(), flags=["--mmproj"], outtypes=types
            )
            if found:
                results.put(found)
                return
    results.put(["none"] if not folders else ["known"] if expected else ["equal"])


def import_official(llama_cpp):
    """The other converter, where it does not start or does not end mended."""
    import torch

    # Those of the process that this one was forked from are not here.
    torch.set_num_threads(1)
    # Progress and warnings of libraries.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.path.insert(0, str(llama_cpp))
    sys.path.insert(1, str(llama_cpp / "gguf-py"))
    converter.mend_baichuan()
    converter.mend_deepseek()
    converter.mend_gemma3n()
    converter.mend_jais()
    converter.mend_minicpm()
    converter.mend_rwkv()
    converter.mend_stablelm()
    converter.mend_tiktoken()


def work_on(name, options, by_hand, mistakes, results):
    """All checkpoints of a class, in a process of its own: classes keep state from one to the next."""
    import_official(options.llama_cpp)
    made, known = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / name
        work.mkdir(parents=True)
        try:
            for folder, pre, label in checkpoints(name, by_hand, options.zoo, work):
                made += 1
                expected = mistakes.get(label, set()) | KNOWN.get(name, set())
                in_half = KNOWN_IN_HALF.get(name, set())
                draft = ["--target-model-dir", str(folder / TARGET)] if (folder / TARGET).is_dir() else []
                types = ("auto",) if name in AS_STORED else ("f32", "f16")
                found = compare(options.gguf, options.llama_cpp, folder, pre, expected, in_half, draft, types)
                if found:
                    results.put([f"{line} ({label})" if label != name else line for line in found])
                    return
                known += bool(expected or in_half)
        except Exception as fault:
            results.put([f"checkpoint {type(fault).__name__}: {fault}"])
            return
    results.put(["none"] if made == 0 else ["known"] if known else ["equal"])


def outcome(work, *arguments):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=work, args=(*arguments, results))
    process.start()
    try:
        return results.get(timeout=SECONDS)
    except queue.Empty:
        return ["checkpoint took too long, or its process died"]
    finally:
        process.terminate()
        process.join()


# ---- the results


def recorded(found):
    """The outcome of a class as docs/models.json has it; `None` if nothing was compared."""
    word, _, rest = found[0].partition(" ")
    wrong = f"differs: {shorter(rest)}"
    return {
        "equal": "equal", "known": "known", "official": f"fails: {shorter(rest)}", "differs": wrong, "refused": wrong,
    }.get(word)  # fmt: skip


def shorter(text):
    line = text.splitlines()[0].replace("`", "'") if text else ""
    return line if len(line) <= 90 else line[:87] + "..."


def write_into(path, results, architectures):
    """Records the outcomes of all classes that were compared, and writes the page."""
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
    by_hand, mistakes = cases()
    wanted = [name for name in options.only or classes if options.only or name in ours | encoders][: options.limit]
    results = json.loads(options.results.read_text()) if options.results and options.results.is_file() else {}
    if not options.list:
        import torch  # noqa: F401  before the processes, so that each starts fast
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        for name in wanted:
            cases_of = by_hand.get(SAME_AS.get(name, name), [])
            tasks = {name: (work_on, name, options, cases_of, mistakes)} if name in ours else {}
            if name in encoders:
                tasks[f"{name} --mmproj"] = (work_on_encoder, name, options)
            for task, (work, *arguments) in tasks.items():
                if task in results and not options.only:
                    continue
                results[task] = outcome(work, *arguments)
                print(f"{task}: {results[task][0]}", flush=True)
                for line in results[task][1:]:
                    print(f"  {line}")
                if options.results:
                    options.results.write_text(json.dumps(results, indent=1))
    taken = [name for name in classes if name in ours]
    equal = [name for name in taken if results.get(name, [""])[0] in ("equal", "known")]
    encoding = [name for name, row in classes.items() if row["encoder"]]
    equal_encoders = [name for name in encoding if results.get(f"{name} --mmproj", [""])[0] in ("equal", "known")]
    count = (
        f"{len(taken)} of {sum(row['architecture'] is not None for row in classes.values())} classes of text models "
        f"converted, {len(equal)} of them equal as whole files; {len(encoders & classes.keys())} of {len(encoding)} classes "
        f"with an encoder converted, {len(equal_encoders)} of them equal as whole files."
    )
    if options.write:
        write_into(options.write, results, dict(row for row in rows if row[1] != "clip"))
    elif options.list:
        for name, row in classes.items():
            said = REASONS.get(name, "not converted") if row["architecture"] and name not in ours else ""
            print(name, row["architecture"] or "", "clip" if row["encoder"] else "", said)
    print(count)
    sys.exit(any(found[0].split()[0] in ("differs", "refused") for found in results.values()))


if __name__ == "__main__":
    main()
