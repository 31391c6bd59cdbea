"""Compares recurrent models, encoder-decoder models, text encoders and classifiers with `transformers`.

Usage: python interop/runtime/recurrent_models_and_encoders.py GGUF_BINARY GGUF_TEST_DATA [--write DATA] [CASE ...]

Prints the greatest difference of each case for a tiny random checkpoint, in standard deviations of the reference;
`--write docs/models.json` records them and regenerates docs/models.md. RWKV 6 and 7 and some encoders, which `transformers` does not
have, are compared with their authors' formulas in NumPy. Needs torch, transformers and gguf.

With GGUF_REAL_MODELS, a folder with the published checkpoint of all-MiniLM-L6-v2, its embeddings of some sentences are compared too:
the greatest distance of a cosine similarity from 1 must be below 1e-5.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop import models_page

TOLERANCE = 1e-3
# Name, architecture, difference.
ROWS = []
# Cases whose reference is in NumPy.
IN_NUMPY = {"rwkv6", "rwkv7", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("data", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    for name, case in CASES.items():
        if options.cases and name not in options.cases:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(name, Model(options.gguf, options.data / "zoo", Path(folder)))
            except RuntimeError as fault:
                print(f"{name}: {fault}", flush=True)
                ROWS.append((name, None, float("inf")))
    if options.write:
        write_into(options.write)
    worst = max(difference for *_, difference in ROWS)
    print(f"worst: {worst:.1e}")
    sys.exit(0 if worst < TOLERANCE else 1)


def write_into(path):
    """Records the differences and writes the page."""
    data = models_page.load(path)
    for name, architecture, difference in ROWS:
        if name in CASES and difference < TOLERANCE:
            reference = "numpy" if name in IN_NUMPY else "transformers"
            models_page.record_logits(data, architecture, name, {reference: difference})
    models_page.save(data, path)
    models_page.main([])


class Model:
    """A checkpoint in a folder, and the commands that convert and run it."""

    def __init__(self, binary, data, folder):
        self.binary, self.data, self.folder = binary, data, folder
        self.file = folder / "model.gguf"

    def save(self, model, tokenizer):
        """Sets random weights, larger than usual so that errors show, and saves the checkpoint."""
        torch.manual_seed(7)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if any(part in name for part in ("A_log", "dt_bias", "dt_proj.bias")):
                    continue
                spread = 0.3 if parameter.ndim == 1 else 0.12
                middle = 1.0 if parameter.ndim == 1 and "bias" not in name else 0.0
                parameter.copy_(middle + spread * torch.randn_like(parameter))
        model.float().eval().save_pretrained(self.folder)
        if callable(tokenizer):
            tokenizer(self.folder)
        else:
            for file in (self.data / tokenizer).iterdir():
                if file.suffix in (".json", ".txt", ".model") and "config.json" != file.name:
                    if "manifest" not in file.name and "generation" not in file.name:
                        (self.folder / file.name).write_bytes(file.read_bytes())
        return model

    def convert(self):
        self.run("convert", self.folder, "-o", self.file, "--outtype", "f32")

    def run(self, *words):
        made = subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(made.stderr)
        return made.stdout

    def compare(self, name, reference, ids, *words):
        """Compares our logits or hidden states with the reference."""
        out = self.folder / "out.npy"
        ids = " ".join(map(str, ids))
        words = ("--ids", ids, "--precision", "exact", "--cache-type", "f32", "-o", out, *words)
        self.run("logits", self.file, *words)
        reference = np.asarray(reference, np.float32)
        found = np.load(out).reshape(reference.shape)
        self.record(name, np.abs(found - reference).max() / reference.std())

    def record(self, name, difference):
        architecture = gguf.GGUFReader(self.file).fields["general.architecture"].contents()
        ROWS.append((name, architecture, float(difference)))
        print(f"{name}: {architecture} {difference:.1e}", flush=True)

    def continues(self, name, net):
        """Compares greedy generation with `transformers`."""
        text = "abc de fghi"
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokens = [*tokenizer.encode(text).ids, 1]
        with torch.no_grad():
            made = net.generate(torch.tensor([tokens]), max_new_tokens=12, do_sample=False)
        words = ("--raw", "-p", text, "-n", "12", "--temperature", "0", "--cache-type", "f32", "--json")
        found = json.loads(self.run("generate", self.file, "--precision", "exact", *words))
        if found["ids"] != made[0, 1:].tolist():
            raise RuntimeError(f"{name} generates {found['ids']}; expected {made[0, 1:].tolist()}")

    def embed(self, file, texts, *words):
        """Returns the output of `gguf embed` for each text."""
        texts = [word for text in texts for word in ("-p", text)]
        return [json.loads(line) for line in self.run("embed", file, *texts, *words).splitlines()]


def ids(count, vocabulary=500):
    return [int(i) for i in np.random.default_rng(5).integers(5, vocabulary, count)]


def unigram(folder):
    """Writes a Unigram tokenizer, as T5 has it."""
    letters = [(chr(c), -5.0 - i / 100) for i, c in enumerate(range(97, 123))]
    more = [(f"{a}{b}", -8.0 - i / 100) for i, (a, _) in enumerate(letters) for b, _ in letters]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0), *letters, *more]
    tokenizer = Tokenizer(models.Unigram(pieces[:512], unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def logits(model, tokens, **more):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False, **more).logits[0].numpy()


def mamba2(groups):
    def case(name, model):
        config = hf.Mamba2Config(
            hidden_size=64, expand=2, head_dim=16, num_heads=8, n_groups=groups, state_size=16,
            conv_kernel=4, num_hidden_layers=3, vocab_size=560, chunk_size=8,
            tie_word_embeddings=False,
        )
        net = model.save(hf.Mamba2ForCausalLM(config), "mamba")
        if groups > 1:
            # The authors' code applies a group norm, `transformers` one norm.
            for block in net.backbone.layers:
                block.mixer.norm.forward = grouped(block.mixer.norm, groups)
        model.convert()
        tokens = ids(40)
        model.compare(name, logits(net, tokens), tokens)

    return case


def grouped(norm, groups):
    def forward(x, gate):
        x = x * torch.nn.functional.silu(gate)
        parts = x.reshape(*x.shape[:-1], groups, -1)
        root = torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
        return norm.weight * (parts * root).reshape(x.shape)

    return forward


def falcon_mamba(name, model):
    config = hf.FalconMambaConfig(
        hidden_size=64, state_size=16, num_hidden_layers=3, vocab_size=560, use_mambapy=False
    )
    net = model.save(hf.FalconMambaForCausalLM(config), "mamba")
    model.convert()
    tokens = ids(40)
    model.compare(name, logits(net, tokens), tokens)


def rwkv4(name, model):
    """Has enough layers for `rescale_every`."""
    config = hf.RwkvConfig(
        hidden_size=64, num_hidden_layers=7, vocab_size=560, context_length=128, rescale_every=2
    )
    net = model.save(hf.RwkvForCausalLM(config), "rwkv")
    model.convert()
    tokens = ids(40)
    model.compare(name, logits(net, tokens), tokens)


def t5(gate, tied, classes=(hf.T5Config, hf.T5ForConditionalGeneration), buckets=32):
    def case(name, model):
        config = classes[0](
            vocab_size=512, d_model=64, d_kv=16, d_ff=96, num_layers=3, num_decoder_layers=2,
            num_heads=4, feed_forward_proj="gated-gelu" if gate else "relu",
            tie_word_embeddings=tied, decoder_start_token_id=0,
            relative_attention_num_buckets=buckets,
        )
        net = classes[1](config)
        if not tied:
            # `transformers` ties the embeddings unless the checkpoint has the output matrix.
            net.config.tie_word_embeddings = False
            net.lm_head = torch.nn.Linear(64, 512, bias=False)
        model.save(net, unigram)
        model.convert()
        text, tokens = ids(150), [0, *ids(150)[::-1]]
        with torch.no_grad():
            made = net(input_ids=torch.tensor([text]), decoder_input_ids=torch.tensor([tokens]))
        words = " ".join(map(str, text))
        model.compare(name, made.logits[0].numpy(), tokens, "--encoder-ids", words)
        model.continues(name, net)

    return case


def t5_encoder(name, model):
    config = hf.T5Config(
        vocab_size=512, d_model=64, d_kv=16, d_ff=96, num_layers=3, num_heads=4,
        feed_forward_proj="gated-gelu", is_encoder_decoder=False,
    )
    net = model.save(hf.T5EncoderModel(config), unigram)
    model.convert()
    tokens = ids(200)
    with torch.no_grad():
        hidden = net(torch.tensor([tokens])).last_hidden_state[0].numpy()
    model.compare(name, hidden, tokens)


def main_hidden(config, build, tokenizer):
    def case(name, model):
        net = model.save(build(config), tokenizer)
        model.convert()
        tokens = ids(60)
        with torch.no_grad():
            hidden = net(torch.tensor([tokens])).last_hidden_state[0].numpy()
        model.compare(name, hidden, tokens)

    return case


def nomic_bert(name, model):
    config = hf.NomicBertConfig(
        vocab_size=768, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=128, type_vocab_size=2,
    )
    main_hidden(config, hf.NomicBertModel, "bert")(name, model)


def roberta(name, model):
    config = hf.RobertaConfig(
        vocab_size=768, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=130, type_vocab_size=1, pad_token_id=1,
    )
    main_hidden(config, lambda c: hf.RobertaModel(c, add_pooling_layer=False), "gpt2")(name, model)


TEXTS = [
    "In the beginning God created the heaven and the earth.",
    "A man is playing a guitar on the stage.",
    "The 3 quick, brown foxes jumped over 12 lazy dogs!",
    "ok",
]


def classifier(name, model):
    config = hf.BertConfig(
        vocab_size=768, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=128, num_labels=3,
        id2label={0: "no", 1: "maybe", 2: "yes"},
    )
    net = model.save(hf.BertForSequenceClassification(config), "bert")
    model.convert()
    tokenizer = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
    reference = np.array([logits_of_text(net, tokenizer.encode(text).ids) for text in TEXTS])
    classes = [made["classes"] for made in model.embed(model.file, TEXTS)]
    assert [made["label"] for made in classes[0]] == ["no", "maybe", "yes"]
    found = np.array([[made["score"] for made in line] for line in classes])
    model.record(name, np.abs(found - reference).max() / reference.std())


def logits_of_text(net, tokens):
    with torch.no_grad():
        return net(torch.tensor([tokens])).logits[0].numpy()


def last_token(name, model):
    """A decoder with last-token pooling."""
    config = hf.Qwen3Config(
        vocab_size=600, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, head_dim=16,
        num_key_value_heads=2, intermediate_size=96, max_position_embeddings=128,
    )
    net = model.save(hf.Qwen3Model(config), "qwen3")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "Transformer"}]
    modules += [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "Pooling"}]
    (model.folder / "modules.json").write_text(json.dumps(modules))
    (model.folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_lasttoken": True}
    (model.folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    model.convert()
    tokenizer = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
    rows = []
    for text in TEXTS:
        with torch.no_grad():
            rows.append(net(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0, -1])
    reference = np.array(rows)
    made = model.embed(model.file, TEXTS, "--no-normalize", "--cache-type", "f32")
    found = np.array([line["embedding"] for line in made])
    model.record(name, np.abs(found - reference).max() / reference.std())


def gemma_encoder(name, model):
    """Gemma with bidirectional attention, and two dense layers after pooling."""
    config = hf.Gemma3TextConfig(
        vocab_size=2000, hidden_size=64, num_hidden_layers=7, num_attention_heads=4, head_dim=16,
        num_key_value_heads=2, intermediate_size=96, max_position_embeddings=256,
        sliding_window=16, use_bidirectional_attention=True, query_pre_attn_scalar=16,
    )
    net = model.save(hf.Gemma3TextModel(config), "gemma3")
    # `transformers` writes half of the window that it gets.
    written = json.loads((model.folder / "config.json").read_text())
    written["sliding_window"] = 16
    (model.folder / "config.json").write_text(json.dumps(written))
    torch.manual_seed(8)
    dense = {"2_Dense": torch.nn.Linear(64, 96, bias=False)}
    dense["3_Dense"] = torch.nn.Linear(96, 64, bias=False)
    names = ["", "1_Pooling", *dense]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": (path or "0_Transformer")[2:]}
        for i, path in enumerate(names)
    ]
    (model.folder / "modules.json").write_text(json.dumps(modules))
    (model.folder / "1_Pooling").mkdir()
    (model.folder / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
    for folder, matrix in dense.items():
        fields = {"in_features": matrix.in_features, "out_features": matrix.out_features}
        fields |= {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
        (model.folder / folder).mkdir()
        (model.folder / folder / "config.json").write_text(json.dumps(fields))
        tensors = {"linear.weight": matrix.weight.detach()}
        save_file(tensors, model.folder / folder / "model.safetensors")
    model.convert()
    tokenizer = hf.AutoTokenizer.from_pretrained(model.folder)
    # Longer than a window.
    texts = [*TEXTS, " ".join(TEXTS * 2)]
    rows = []
    for text in texts:
        with torch.no_grad():
            x = net(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            for matrix in dense.values():
                x = matrix(x)
        rows.append(x.numpy())
    reference = np.array(rows)
    made = model.embed(model.file, texts, "--no-normalize")
    found = np.array([line["embedding"] for line in made])
    model.record(name, np.abs(found - reference).max() / reference.std())


def sentences(name, model):
    """A trained model with its own pooling."""
    folder = Path(os.environ["GGUF_REAL_MODELS"]) / "all-MiniLM-L6-v2"
    model.run("convert", folder, "-o", model.file, "--outtype", "f32")
    net = hf.AutoModel.from_pretrained(folder).float().eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    worst = 0
    for text, made in zip(TEXTS, model.embed(model.file, TEXTS)):
        with torch.no_grad():
            hidden = net(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        mean = hidden.mean(0).astype(np.float64)
        found = np.array(made["embedding"])
        assert abs(np.linalg.norm(found) - 1) < 1e-5
        worst = max(worst, 1 - mean @ found / np.linalg.norm(mean) / np.linalg.norm(found))
    # Scaled so that the tolerance of a cosine is 1e-5.
    model.record(f"{name}: 1 - cosine, times 100", worst * 100)


def random(rng, *shape, middle=0.0, spread=0.3):
    return (middle + spread * rng.standard_normal(shape)).astype(np.float32)


def writer(model, architecture, sizes, vocabulary):
    out = gguf.GGUFWriter(str(model.file), architecture)
    for key, value in sizes.items():
        add = out.add_float32 if isinstance(value, float) else out.add_uint32
        add(f"{architecture}.{key}", value)
    out.add_tokenizer_model("rwkv")
    out.add_token_list([b"<%d>" % i for i in range(vocabulary)])
    return out


def close(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def norm(x, w, b, epsilon=1e-5):
    return (x - x.mean()) / np.sqrt(x.var() + epsilon) * w + b


def heads_norm(x, w, b):
    return ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 64e-5)).ravel() * w + b


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rwkv(version):
    def case(name, model):
        width, inner, layers, head, vocabulary, rank = 64, 96, 3, 16, 100, 8
        rng = np.random.default_rng(3)
        sizes = {
            "context_length": 512, "embedding_length": width, "block_count": layers,
            "feed_forward_length": inner, "wkv.head_size": head,
            "attention.layer_norm_epsilon": 1e-5, "attention.head_count": 0,
        }
        if version == 6:
            sizes |= {"time_mix_extra_dim": rank, "time_decay_extra_dim": rank}
            sizes |= {"rescale_every_n_layers": 2}
        else:
            for part in ("decay", "iclr", "value_residual_mix", "gate"):
                sizes[f"attention.{part}_lora_rank"] = rank
        out = writer(model, f"rwkv{version}", sizes, vocabulary)
        tensors = {}

        def add(key, *shape, **more):
            tensors[key] = random(rng, *shape, **more)
            out.add_tensor(key, tensors[key])

        def add_norm(key):
            add(f"{key}.weight", width, middle=1.0)
            add(f"{key}.bias", width)

        add("token_embd.weight", vocabulary, width, spread=1.0)
        add_norm("token_embd_norm")
        add_norm("output_norm")
        add("output.weight", vocabulary, width)
        for i in range(layers):
            at = f"blk.{i}."
            add_norm(at + "attn_norm")
            add_norm(at + "attn_norm_2")
            add_norm(at + "time_mix_ln")
            for part in ("key", "value", "receptance", "output"):
                add(f"{at}time_mix_{part}.weight", width, width)
            add(at + "channel_mix_lerp_k.weight", width)
            add(at + "channel_mix_key.weight", inner, width)
            add(at + "channel_mix_value.weight", width, inner)
            if version == 6:
                add(at + "channel_mix_lerp_r.weight", width)
                add(at + "channel_mix_receptance.weight", width, width)
                add(at + "time_mix_gate.weight", width, width)
                add(at + "time_mix_w1.weight", 5 * rank, width)
                add(at + "time_mix_w2.weight", 5, width, rank)
                add(at + "time_mix_lerp_x.weight", width)
                # Files have these fused or as five tensors.
                if i == 0:
                    add(at + "time_mix_lerp_fused.weight", 5, 1, 1, width)
                else:
                    for letter in "wkvrg":
                        add(f"{at}time_mix_lerp_{letter}.weight", width)
                add(at + "time_mix_first.weight", width // head, head)
                add(at + "time_mix_decay.weight", width)
                add(at + "time_mix_decay_w1.weight", rank, width)
                add(at + "time_mix_decay_w2.weight", width, rank)
            else:
                for letter in "wav":
                    add(f"{at}time_mix_{letter}0.weight", width)
                for letter in "wavg":
                    add(f"{at}time_mix_{letter}1.weight", rank, width)
                    add(f"{at}time_mix_{letter}2.weight", width, rank)
                add(at + "time_mix_lerp_fused.weight", 6, 1, 1, width)
                for part in ("k_k", "k_a", "r_k"):
                    add(f"{at}time_mix_{part}.weight", width)
        close(out)
        tokens = ids(40, vocabulary)
        model.compare(name, rwkv_logits(tensors, version, tokens, layers, head), tokens)

    return case


def rwkv_logits(tensors, version, tokens, layers, head):
    """Returns the logits by the authors' formulas in double precision."""
    tensors = {key: value.astype(np.float64) for key, value in tensors.items()}
    w = lambda key: tensors[key + ".weight"]
    normed = lambda x, key: norm(x, w(key), tensors[key + ".bias"])
    width = w("token_embd").shape[1]
    states = [np.zeros((width // head, head, head)) for _ in range(layers)]
    before = np.zeros((layers, 2, width))
    rows = []
    for token in tokens:
        x = normed(w("token_embd")[token], "token_embd_norm")
        first = None
        for i in range(layers):
            part = lambda key, suffix="weight": tensors[f"blk.{i}.{key}.{suffix}"]
            y = normed(x, f"blk.{i}.attn_norm")
            mix = rwkv6_mix if version == 6 else rwkv7_mix
            made, gate, first = mix(part, y, before[i, 0] - y, states[i], first, head)
            before[i, 0] = y
            x = x + part("time_mix_output") @ (made * gate)
            y = normed(x, f"blk.{i}.attn_norm_2")
            shift = before[i, 1] - y
            before[i, 1] = y
            key = np.maximum(part("channel_mix_key") @ (y + shift * part("channel_mix_lerp_k")), 0)
            value = part("channel_mix_value") @ key**2
            if version == 6:
                gate = part("channel_mix_receptance") @ (y + shift * part("channel_mix_lerp_r"))
                value = sigmoid(gate) * value
            x = x + value
            if version == 6 and (i + 1) % 2 == 0:
                x = x / 2
        rows.append(w("output") @ normed(x, "output_norm"))
    return np.array(rows)


def rwkv6_mix(w, x, shift, state, _, head):
    shares = np.tanh(w("time_mix_w1") @ (x + shift * w("time_mix_lerp_x"))).reshape(5, -1)
    shares = np.einsum("gnr,gr->gn", w("time_mix_w2"), shares)
    try:
        shares = shares + w("time_mix_lerp_fused").reshape(5, -1)
    except KeyError:
        shares = shares + np.array([w(f"time_mix_lerp_{letter}") for letter in "wkvrg"])
    xw, xk, xv, xr, xg = x + shift * shares
    r, k, v = (w(f"time_mix_{n}") @ y for n, y in (("receptance", xr), ("key", xk), ("value", xv)))
    gate = w("time_mix_gate") @ xg
    gate = gate * sigmoid(gate)
    decay = w("time_mix_decay_w2") @ np.tanh(w("time_mix_decay_w1") @ xw) + w("time_mix_decay")
    decay = np.exp(-np.exp(decay))
    r, k, v, decay = (y.reshape(-1, head) for y in (r, k, v, decay))
    now = k[:, :, None] * v[:, None, :]
    y = np.einsum("hi,hij->hj", r, state + w("time_mix_first")[:, :, None] * now)
    state[:] = decay[:, :, None] * state + now
    return heads_norm(y, w("time_mix_ln"), w("time_mix_ln", "bias")), gate, None


def rwkv7_mix(w, x, shift, state, first, head):
    xr, xw, xk, xv, xa, xg = x + shift * w("time_mix_lerp_fused").reshape(6, -1)
    r, k, v = (w(f"time_mix_{n}") @ y for n, y in (("receptance", xr), ("key", xk), ("value", xv)))
    low = lambda letter, y: w(f"time_mix_{letter}2") @ y
    at = lambda letter, y: w(f"time_mix_{letter}1") @ y
    decay = low("w", np.tanh(at("w", xw))) + w("time_mix_w0")
    decay = np.exp(-sigmoid(decay) / np.e**0.5)
    if first is None:
        first = v
    else:
        v = v + (first - v) * sigmoid(low("v", at("v", xv)) + w("time_mix_v0"))
    a = sigmoid(low("a", at("a", xa)) + w("time_mix_a0"))
    gate = low("g", sigmoid(at("g", xg)))
    kk = k * w("time_mix_k_k")
    k = k + k * (a - 1) * w("time_mix_k_a")
    r, decay, k, v3, kk, a = (y.reshape(-1, head, 1) for y in (r, decay, k, v, kk, a))
    kk = kk / np.maximum(np.linalg.norm(kk, axis=1, keepdims=True), 1e-12)
    transposed = lambda y: y.transpose(0, 2, 1)
    state[:] = state * transposed(decay) - state @ kk * transposed(kk * a) + v3 * transposed(k)
    y = heads_norm((state @ r)[:, :, 0], w("time_mix_ln"), w("time_mix_ln", "bias"))
    own = (r * k * w("time_mix_r_k").reshape(r.shape)).sum(1, keepdims=True) * v3
    return y + own.ravel(), gate, first


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def encoder(architecture):
    """Encoders that the converter does not write, by their authors' formulas in double precision."""

    def case(name, model):
        width, inner, heads, vocabulary, experts = 64, 96, 4, 100, 4
        rng = np.random.default_rng(4)
        sizes = {
            "context_length": 128, "embedding_length": width, "block_count": 2,
            "feed_forward_length": inner, "attention.head_count": heads,
            "attention.layer_norm_epsilon": 1e-5,
        }
        has_rope, has_experts = architecture != "jina-bert-v2", architecture == "nomic-bert-moe"
        if has_rope:
            sizes["rope.freq_base"] = 1000.0
        if has_experts:
            sizes |= {"expert_count": experts, "expert_used_count": 2, "moe_every_n_layers": 2}
        out = writer(model, architecture, sizes, vocabulary)
        out.add_bool(f"{architecture}.attention.causal", False)
        tensors = {}

        def add(key, *shape, **more):
            value = random(rng, *shape, **more)
            out.add_tensor(key, value)
            tensors[key] = value.astype(np.float64)

        def add_layer(key, *shape, middle=0.0):
            add(f"{key}.weight", *shape, middle=middle)
            add(f"{key}.bias", shape[0], spread=0.1)

        add("token_embd.weight", vocabulary, width, spread=1.0)
        add("token_types.weight", 2, width)
        add_layer("token_embd_norm", width, middle=1.0)
        for i in range(2):
            at = f"blk.{i}."
            for part in ("q", "k", "v", "output"):
                add_layer(f"{at}attn_{part}", width, width)
            if not has_rope:
                add_layer(at + "attn_q_norm", width, middle=1.0)
                add_layer(at + "attn_k_norm", width, middle=1.0)
            add_layer(at + "attn_output_norm", width, middle=1.0)
            if has_experts and i == 1:
                add(at + "ffn_gate_inp.weight", experts, width)
                add(at + "ffn_up_exps.weight", experts, inner, width)
                add(at + "ffn_down_exps.weight", experts, width, inner)
            else:
                add(at + "ffn_up.weight", inner if has_rope else 2 * inner, width)
                add_layer(at + "ffn_down", width, inner)
            add_layer(at + "layer_output_norm", width, middle=1.0)
        close(out)
        tokens = ids(50, vocabulary)
        x = tensors["token_embd.weight"][tokens] + tensors["token_types.weight"][0]
        x = rows_normed(tensors, x, "token_embd_norm")
        for i in range(2):
            x = encoder_layer(tensors, x, f"blk.{i}.", heads, has_rope)
        model.compare(name, x, tokens)

    return case


def rows_normed(tensors, x, key):
    return np.array([norm(row, tensors[key + ".weight"], tensors[key + ".bias"]) for row in x])


def encoder_layer(tensors, x, at, heads, has_rope):
    count, width = x.shape
    len_ = width // heads
    affine = lambda x, key: x @ tensors[at + key + ".weight"].T + tensors[at + key + ".bias"]
    q, k, v = (affine(x, f"attn_{part}") for part in "qkv")
    distance = np.arange(count)[:, None] - np.arange(count)[None]
    if has_rope:
        q, k = rope(q, heads), rope(k, heads)
    else:
        q = rows_normed(tensors, q, at + "attn_q_norm")
        k = rows_normed(tensors, k, at + "attn_k_norm")
    made = []
    for h in range(heads):
        part = slice(h * len_, (h + 1) * len_)
        scores = q[:, part] @ k[:, part].T / np.sqrt(len_)
        if not has_rope:
            scores = scores - 2.0 ** (-8 * (h + 1) / heads) * np.abs(distance)
        made.append(softmax(scores) @ v[:, part])
    y = affine(np.concatenate(made, 1), "attn_output")
    y = rows_normed(tensors, x + y, at + "attn_output_norm")
    w = lambda key: tensors[f"{at}ffn_{key}.weight"]
    if at + "ffn_gate_inp.weight" in tensors:
        ffn = np.zeros_like(y)
        for t, shares in enumerate(softmax(y @ w("gate_inp").T)):
            for e in np.argsort(-shares)[:2]:
                ffn[t] += shares[e] * (w("down_exps")[e] @ gelu(w("up_exps")[e] @ y[t]))
    elif has_rope:
        ffn = affine(gelu(y @ w("up").T), "ffn_down")
    else:
        gate, up = np.split(y @ w("up").T, 2, axis=1)
        ffn = affine(gelu(gate) * up, "ffn_down")
    return rows_normed(tensors, y + ffn, at + "layer_output_norm")


def rope(x, heads):
    """RoPE in NeoX layout with base frequency 1000."""
    count, width = x.shape
    parts = x.reshape(count, heads, 2, -1)
    angles = np.arange(count)[:, None] * 1000.0 ** (-np.arange(parts.shape[3]) / parts.shape[3])
    sin, cos = np.sin(angles)[:, None], np.cos(angles)[:, None]
    a, b = parts[:, :, 0], parts[:, :, 1]
    return np.stack([a * cos - b * sin, b * cos + a * sin], 2).reshape(count, width)


CASES = {
    "mamba2": mamba2(1),
    "mamba2, 2 groups": mamba2(2),
    "falcon_mamba": falcon_mamba,
    "rwkv4, rescaled": rwkv4,
    "rwkv6": rwkv(6),
    "rwkv7": rwkv(7),
    "nomic-bert": nomic_bert,
    "roberta": roberta,
    "t5, tied": t5(False, True),
    "t5, gated": t5(True, False),
    "t5, 8 buckets": t5(True, False, buckets=8),
    "umt5": t5(True, False, (hf.UMT5Config, hf.UMT5ForConditionalGeneration)),
    "t5encoder": t5_encoder,
    "nomic-bert-moe": encoder("nomic-bert-moe"),
    "jina-bert-v2": encoder("jina-bert-v2"),
    "jina-bert-v3": encoder("jina-bert-v3"),
    "bert, classifier": classifier,
    "qwen3, last-token pooling": last_token,
    "gemma-embedding": gemma_encoder,
}
if "GGUF_REAL_MODELS" in os.environ:
    CASES["all-MiniLM-L6-v2"] = sentences

if __name__ == "__main__":
    main()
