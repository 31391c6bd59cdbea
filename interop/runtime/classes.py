"""Compares the logits of all classes that `gguf convert` supports with llama.cpp and `transformers`.

Usage: python interop/runtime/classes.py GGUF_BINARY LIBLLAMA_DIR LLAMA_CPP_DIR ZOO_DIR [--only CLASS,...]
                                         [--architecture ARCHITECTURE,...] [--results FILE] [--write DATA] [--keep DIR]

Takes the tiny random checkpoints of a class (`interop/fixtures/`), doubles their matrices so that a wrong gate or sliding window
shows, converts them to F32 and runs them with `exact` precision. The logits of some dozens of tokens (the last hidden states of
models without an output matrix) are compared with those of llama.cpp for the same file (F32 KV cache, no flash attention) and of
`transformers` for the checkpoint, if it has the class. The greatest difference, in standard deviations of the reference, must be
below `TOLERANCE`, unless `REASONS` explains why the reference is off. Where neither has the model, `numpy_models.py` may have
an implementation.

LIBLLAMA_DIR has llama.cpp's libraries, which the Python package llama_cpp (installed with CMAKE_ARGS=-DLLAMA_BUILD=OFF) loads.
`--results` stores outcomes in a file and reuses those of other classes; `--write docs/models.json` records the differences and
regenerates docs/models.md. Other arguments are those of `interop/converter/compare.py`.
"""

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop import models_page
from interop.converter import compare as converter
from interop.fixtures import build, transformers_models
from interop.runtime import numpy_models

TOKENS = 72
# More tokens for models that compress blocks of tokens.
MORE_TOKENS = {"DeepseekV4ForCausalLM": 330}
# Time limit of llama.cpp, which does not return from some models.
SECONDS = 60
# llama.cpp rounds more: it uses tables of sines and of activation functions.
TOLERANCE = {"llama.cpp": 1e-3, "transformers": 1e-4, "numpy": 1e-4}
REFERENCES = set(TOLERANCE)
# llama.cpp evaluates GELU with a table in F16.
TABLE = (2e-2, "GELU from an F16 table")
UNSCALED = (2e-1, "GELU from an F16 table, amplified by unscaled attention logits")
ANYTHING = float("inf")
# By architecture and reference: the greatest expected difference, and why the reference is off.
REASONS = {
    ("arwkv7", "llama.cpp"): (ANYTHING, "reads past heads that are not a multiple of its vector length"),
    ("gemma3", "llama.cpp"): TABLE,
    ("gemma4", "llama.cpp"): UNSCALED,
    ("granitehybrid", "llama.cpp"): (ANYTHING, "partial RoPE on the wrong pairs"),
    ("grok", "llama.cpp"): (ANYTHING, "normalizes expert weights, no soft cap of router logits; GELU from an F16 table"),
    ("grovemoe", "llama.cpp"): (ANYTHING, "group experts read the output of the routed experts"),
    ("hy_v4", "transformers"): (ANYTHING, "NeoX RoPE layout; llama.cpp and gguf-kit interleaved"),
    ("mellum", "llama.cpp"): (ANYTHING, "wrong RoPE base frequency in sliding-window layers"),
    ("minimax-01", "transformers"): (ANYTHING, "RoPE on whole heads"),
    ("minimax-m3", "llama.cpp"): (ANYTHING, "no block-sparse mask without flash attention"),
    ("modern-bert", "llama.cpp"): TABLE,
    ("phimoe", "llama.cpp"): (ANYTHING, "RMS norm and softmax routing instead of LayerNorm and SparseMixer"),
    ("qwen4exp", "llama.cpp"): (ANYTHING, "attends to part of one more block"),
    ("rwkv7", "llama.cpp"): (ANYTHING, "reads past heads that are not a multiple of its vector length"),
    ("smallthinker", "llama.cpp"): (ANYTHING, "sliding window of 4096, whatever the file states"),
    ("spark2_5", "llama.cpp"): TABLE,
}
# Labels of checkpoints on the page. The first checkpoint of a class has none.
LABELS = {
    "deci_block_configs": "block_configs", "deci_kv_heads_per_layer": "per-layer head counts", "deepseek4_no_hash_routing": "without hash routing",
    "jais_mup": "other multipliers", "plamo3_rope_scaling": "RoPE scaling", "qwen4_exp": "second checkpoint",
    "qwen4_exp_vision": "second checkpoint", "qwen4_exp_without_ngrams": "without n-grams",
    **dict.fromkeys(("deepseek4", "jais", "mistral4", "plamo3", "smallthinker"), ""),
}  # fmt: skip
INDEXER = {"index_n_heads": 16, "index_head_dim": 64}
BLOCK_INDEXER = {"indexer_n_heads": 16}
# Further fields of classes that `transformers` builds, so that errors show. With few heads an indexer often scores all tokens 0, so
# that any choice is right.
FIELDS = {
    "AfmoeForCausalLM": {"route_norm": True},
    "DeepseekV32ForCausalLM": INDEXER,
    "GlmMoeDsaForCausalLM": INDEXER,
    **dict.fromkeys(
        ("ModernBertForMaskedLM", "ModernBertForSequenceClassification", "ModernBertModel"), {"layer_norm_eps": 1e-5}
    ),
    "LagunaForCausalLM": {"layer_types": ["full_attention", "sliding_attention"]},
    "Qwen4ExpForCausalLM": BLOCK_INDEXER,
    "Qwen4ExpForConditionalGeneration": {"text_config": BLOCK_INDEXER},
    "MellumForCausalLM": {"layer_types": ["sliding_attention", "full_attention"]},
    "PaddleOCRVLForConditionalGeneration": {
        "text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}},
    },
}
SCALE = 3.5565588200778455
MINIMAX = {
    "model_type": "minimax", "layer_types": ["linear_attention"] * 7 + ["full_attention"], "mlp_alpha_factor": SCALE,
    "full_attn_alpha_factor": SCALE, "linear_attn_alpha_factor": SCALE,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7},
}
# Fields that `transformers` needs in checkpoints of `fixtures/models/`, by class.
FOR_TRANSFORMERS = {
    "ChameleonForConditionalGeneration": {"vocabulary_map": {"<image>": 8}},
    "KimiLinearForCausalLM": {"model_type": "kimi_linear", "pad_token_id": 0},
    **dict.fromkeys(("MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"), MINIMAX),
    "PhiMoEForCausalLM": {"model_type": "phimoe", "attention_bias": True, "lm_head_bias": True, "rope_scaling": dict.fromkeys(("short_mscale", "long_mscale"), 1.2535663410560174)},
    "Dots3NoteTextForCausalLM": {"num_key_value_heads": 4},
    "HYV4ForCausalLM": {"model_type": "hy_v4", "pad_token_id": 0},
    "Qwen4ExpForCausalLM": {"model_type": "qwen4_exp_text"},
    "Qwen4ExpForConditionalGeneration": {"model_type": "qwen4_exp", "text_config": {"model_type": "qwen4_exp_text"}},
}
# Parts of names of tensors that text models do not need.
NOT_NEEDED = ("vqmodel", "vision", "visual", "projector", "slope_rate", "_decay")
# Other fields of checkpoints of `fixtures/models/`, by class.
CHANGED = {
    "BambaForCausalLM": {"attn_rotary_emb": 8},
    "Glm5NextForConditionalGeneration": {"swiglu_limit": 0.1},
    "JAISLMHeadModel": {"n_head": 4},
}
# Variants of the checkpoints of a class: label and changed fields.
VARIANTS = {
    "MiniMaxText01ForCausalLM": {"full-head RoPE": {"rotary_dim": 16}},
    "Qwen4ExpForCausalLM": {"all blocks selected": {"indexer_budget": 128}},
    "SmallThinkerForCausalLM": {"sliding window 4096": {"sliding_window_size": 4096}},
}
# Names of classes in `transformers`.
TRANSFORMERS_CLASSES = {
    "ChameleonForCausalLM": "ChameleonForConditionalGeneration",
    "Gemma3nForConditionalGeneration": "Gemma3nForCausalLM",
    "MiniMaxM1ForCausalLM": "MiniMaxForCausalLM",
    "MiniMaxText01ForCausalLM": "MiniMaxForCausalLM",
    "PhiMoEForCausalLM": "PhimoeForCausalLM",
}
# Constant values of tensors, by class and the end of the name.
CONSTANTS = {"ApertusForCausalLM": {"act_fn.eps": -1e-6}}
# Factor of the matrices of a class, if not 2.
GAINS = {"PlamoForCausalLM": 0.25}


def ids(name, folder):
    """Returns random tokens; with tokens that switch adapters, if the model has such, and with end-of-text tokens, two of them in a
    row, if the model has n-gram embeddings."""
    tokens = np.random.default_rng(11).integers(3, 600, MORE_TOKENS.get(name, TOKENS))
    config = json.loads((folder / "config.json").read_text())
    switching = config.get("adapter_token_ids")
    config = config.get("text_config", config)
    if config.get("ple_layer_ids"):
        tokens[[TOKENS // 4, TOKENS // 4 + 1, TOKENS // 4 + 3, TOKENS // 2]] = config["eos_token_id"]
    if switching:
        tokens[[TOKENS // 4, TOKENS // 2]] = switching[0], switching[2]
    return tokens


def enlarge(folder, gain, values):
    """Multiplies matrices with a power of 2, which is exact, and fills tensors with constants."""
    import torch
    from safetensors.torch import load_file, save_file

    for path in folder.rglob("*.safetensors"):
        tensors = load_file(path)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and tensor.dim() > 1 and tensor.dtype in (torch.bfloat16, torch.float16, torch.float32):
                tensors[name] = (tensor * gain).contiguous()
            for end, value in values.items():
                if name.endswith(end):
                    tensors[name] = torch.full_like(tensor, value)
        save_file(tensors, path)


def change(folder, fields):
    """Changes fields of config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(merged(json.loads(path.read_text()), fields)))


# ---- references


def run_llama_cpp(path, tokens, out, hidden):
    """Writes the logits of llama.cpp. Runs in a process of its own, because llama.cpp may abort."""
    import llama_cpp as lib

    silent = lib.llama_log_callback(lambda _level, text, _data: os.write(2, text))
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.n_gpu_layers = 0
    # Repacked weights need instruction sets that not every CPU has.
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model, "not loaded"
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.type_k = params.type_v = 0
    params.flash_attn_type = 0
    params.n_threads = params.n_threads_batch = 1
    if hidden:
        params.embeddings, params.pooling_type = True, 0
    context = lib.llama_init_from_model(model, params)
    assert context, "no context"
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
    assert lib.llama_decode(context, batch) == 0
    if hidden:
        size, get = lib.llama_model_n_embd(model), lib.llama_get_embeddings_ith
    else:
        size, get = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)), lib.llama_get_logits_ith
    rows = [np.ctypeslib.as_array(get(context, i), shape=(size,)).copy() for i in range(len(tokens))]
    np.save(out, np.array(rows))


# Text encoders, whose output is hidden states.
ENCODERS = {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert", "eurobert"}


def has_logits(path):
    return architecture(path) not in ENCODERS


def architecture(path):
    import gguf

    return gguf.GGUFReader(path).fields["general.architecture"].contents()


def transformers_logits(name, folder, tokens, hidden):
    """Returns the logits of `transformers` for the checkpoint."""
    import torch
    import transformers

    cls = getattr(transformers, TRANSFORMERS_CLASSES.get(name, name))
    fields = FOR_TRANSFORMERS.get(build.ALIASES.get(name, name))
    if fields:
        change(folder, fields)
    options = {"dtype": torch.float32, "attn_implementation": "eager", "ignore_mismatched_sizes": True}
    model, info = cls.from_pretrained(folder, output_loading_info=True, **options)
    missing = [*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])]
    missing = [name for name in missing if not any(part in name for part in NOT_NEEDED)]
    missing += [name for name in info["unexpected_keys"] if name.endswith("bias")]
    assert not missing, f"tensors are missing or have other names: {missing[:3]}"
    model = model.eval()
    with torch.no_grad():
        output = model(input_ids=torch.tensor(tokens)[None], use_cache=False, **({"output_hidden_states": True} if hidden else {}))
    if not hidden:
        return output.logits[0].float().numpy()
    last = output.last_hidden_state if "last_hidden_state" in output else output.hidden_states[-1]
    return last[0].float().numpy()


# ---- comparing


def compare(name, options, folder, pre):
    """Returns the architecture of a checkpoint and the differences of its logits."""
    path, out = folder.with_suffix(".gguf"), folder.with_suffix(".npy")
    target = folder / build.TARGET
    draft = ["--target-model-dir", target] if target.is_dir() else []
    run(options.gguf, "convert", "--force", folder, "-o", path, "--outtype", "f32", *draft, *(["--pre", pre] if pre else []))
    arch = architecture(path)
    tokens = [int(token) for token in ids(name, folder)]
    listed = " ".join(map(str, tokens))
    row = {"architecture": arch}
    try:
        flags = ["--precision", "exact", "--cache-type", "f32", "--force"]
        run(options.gguf, "logits", path, "--ids", listed, "-o", out, *flags)
    except RuntimeError as error:
        return row | {"error": str(error)}
    found = np.load(out)
    row["sensitivity"] = sensitivity(found)
    references = {
        "llama.cpp": lambda: llama_cpp_logits(options, path, listed),
        "transformers": lambda: transformers_logits(name, folder, tokens, not has_logits(path)),
        "numpy": lambda: numpy_models.logits(arch, path, tokens),
    }
    for reference, logits in references.items():
        try:
            expected = logits()
            if expected is not None:
                row[reference] = difference(found, expected)
        except Exception as error:
            row[f"{reference}: error"] = f"{type(error).__name__}: {error}"[-300:]
    return row


def sensitivity(found):
    """Returns the mean difference of consecutive rows: a model that predicts the same everywhere would hide errors."""
    return float(np.abs(np.diff(found, axis=0)).mean() / found.std())


def difference(found, expected):
    """Returns the greatest difference, in standard deviations of the expected logits."""
    if found.shape != expected.shape:
        # The embedding may have more rows than the vocabulary has tokens.
        assert found.shape[0] == expected.shape[0], f"{found.shape}; expected {expected.shape}"
        least = min(found.shape[1], expected.shape[1])
        found, expected = found[:, :least], expected[:, :least]
    return float(np.abs(found - expected).max() / expected.std())


def llama_cpp_logits(options, path, listed):
    out = path.with_suffix(".llama.npy")
    environment = os.environ | {"LLAMA_CPP_LIB_PATH": str(options.libllama)}
    command = [sys.executable, __file__, "--run-llama-cpp", path, listed, out, *([] if has_logits(path) else ["hidden"])]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=SECONDS)
    if done.returncode != 0:
        words = ("error", "ASSERT", "missing")
        lines = [line for line in done.stderr.splitlines() if any(word in line for word in words)]
        raise RuntimeError((lines or done.stderr.splitlines() or ["no message"])[0])
    return np.load(out)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def compare_class(name, options, functions, results):
    """Compares all checkpoints of a class; runs in its own process."""
    import torch

    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    original = build.ALIASES.get(name, name)
    fields = FIELDS.get(original)
    if fields:
        old = transformers_models.FIELDS.get(original, {})
        transformers_models.FIELDS[original] = merged(old, fields)
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / name
        work.mkdir(parents=True)
        try:
            for folder, pre, label in build.text_checkpoints(name, functions, options.zoo, work):
                if label.endswith("without head_dim"):
                    continue
                enlarge(folder, GAINS.get(original, 2.0), CONSTANTS.get(original, {}))
                change(folder, CHANGED.get(original, {}))
                for variant, fields in VARIANTS.get(original, {}).items():
                    other = folder.with_name(f"{folder.name} {variant}")
                    shutil.copytree(folder, other)
                    change(other, fields)
                    rows[f"{label}, {variant}"] = compare(name, options, other, pre)
                rows[label] = compare(name, options, folder, pre)
        except Exception as error:
            rows[name] = {"architecture": "", "error": f"{type(error).__name__}: {error}"[-600:]}
    results.put(rows)


def merged(old, new):
    inner = {key: old[key] | new[key] for key in old.keys() & new.keys() if isinstance(new[key], dict)}
    return old | new | inner


# ---- the results


def deviations(row):
    """Returns why references are off; `None` if a difference is greater than expected."""
    found = {}
    for reference in REFERENCES & row.keys():
        limit, reason = REASONS.get((row["architecture"], reference), (TOLERANCE[reference], ""))
        if not row[reference] < limit:
            return None
        if reason and row[reference] >= TOLERANCE[reference]:
            found[reference] = reason
    return found


def verdict(row):
    """Returns whether a row is right (`None`: no reference is exact), and a remark."""
    found = None if "error" in row else deviations(row)
    if found is None:
        return False, row.get("error", "WRONG")
    if not REFERENCES & row.keys() - found.keys():
        return None, "no exact reference"
    return True, "; ".join(f"{reference}: {reason}" for reference, reason in found.items())


def case_name(name, label, is_alone):
    """Returns the class, with the label of the checkpoint if there are several."""
    parts = [] if is_alone else [LABELS.get(part, part) for part in label.split(", ") if part != name]
    return ", ".join([name, *filter(None, parts)])


def write_into(path, results):
    """Records the differences of all classes, and writes the page."""
    data = models_page.load(path)
    for name, rows in results.items():
        for label, row in rows.items():
            if "error" not in row and (found := deviations(row)) is not None:
                case = case_name(name, label, len(rows) == 1)
                differences = {key: row[key] for key in ("llama.cpp", "transformers", "numpy") if key in row}
                models_page.record_logits(data, row["architecture"], case, differences, deviations=found)
    models_page.save(data, path)
    models_page.main([])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("libllama", type=Path)
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("zoo", type=Path)
    for name in ("--only", "--architecture"):
        parser.add_argument(name, type=lambda names: names.split(","))
    for name in ("--results", "--write", "--keep"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()

    import torch  # noqa: F401  Loaded before the fork, so that each process starts fast.
    import transformers

    converter.SECONDS = 900
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    registered = converter.registered(options.llama_cpp)
    listed = subprocess.run([options.gguf, "convert", "--print-supported-models"], capture_output=True, text=True)
    ours = dict(line.split() for line in listed.stdout.splitlines() if not line.endswith("clip"))
    text_models = build.text_models()
    names = options.only or [
        name for name in registered if name in ours and (options.architecture is None or ours[name] in options.architecture)
    ]
    results = json.loads(options.results.read_text()) if options.results and options.results.is_file() else {}
    failed = 0
    for name in names:
        if name in results and not (options.only or options.architecture):
            continue
        found = converter.outcome(compare_class, name, options, text_models.get(build.ALIASES.get(name, name), []))
        results[name] = found if isinstance(found, dict) else {name: {"architecture": "", "error": found[0]}}
        for label, row in results[name].items():
            right, remark = verdict(row)
            failed += right is not True
            numbers = {key: f"{value:.1e}" if isinstance(value, float) else value for key, value in row.items()}
            print(f"{'ok' if right else 'WRONG' if right is False else 'OPEN'} {label}: {numbers} {remark}", flush=True)
        if options.results:
            options.results.write_text(json.dumps(results, indent=1))
    if options.write:
        write_into(options.write, results)
    sys.exit(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run-llama-cpp"]:
        run_llama_cpp(Path(sys.argv[2]), [int(token) for token in sys.argv[3].split()], sys.argv[4], "hidden" in sys.argv[5:])
    else:
        main()
