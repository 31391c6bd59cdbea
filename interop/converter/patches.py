"""Patches of llama.cpp's converter for classes on which it stops or does not end."""

import base64
import functools
import re
from pathlib import Path

# Files of token ranks, with the special tokens that the tokenizer's code appends to them.
TIKTOKEN_FILES = {
    "qwen.tiktoken": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "hy.tiktoken": ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"],
}


def apply():
    for patch in (baichuan, deepseek, gemma3n, jais, minicpm, rwkv, stablelm, tiktoken):
        patch()


def baichuan():
    """`modify_tensors` calls itself endlessly for all tensors except the fused one."""
    from conversion.baichuan import BaichuanModel

    original = BaichuanModel.modify_tensors

    def modify(self, data, name, bid):
        if "W_pack" in name:
            yield from original(self, data, name, bid)
        else:
            yield self.map_tensor_name(name), data

    BaichuanModel.modify_tensors = modify


def deepseek():
    """DeepSeek 3.2 needs an attribute that tokenizers of newer versions of `transformers` lack."""
    from conversion import deepseek

    deepseek.DeepseekV32Model.set_vocab = lambda self: self._set_vocab_gpt2()


def gemma3n():
    """The norms after convolutions of Gemma 3n's audio encoder have no GGUF name."""
    from conversion.gemma import Gemma3nVisionAudioModel

    original = Gemma3nVisionAudioModel.modify_tensors

    def modify(self, data, name, bid):
        if found := re.fullmatch(r"model\.audio_tower\.subsample_conv_projection\.conv_(\d)\.norm\.weight", name):
            return [(f"a.conv1d.{found[1]}.norm.weight", data)]
        return original(self, data, name, bid)

    Gemma3nVisionAudioModel.modify_tensors = modify


def jais():
    """Jais 1 reads an ALiBi slope of a tensor that is not loaded yet."""
    from conversion.base import LazyTorchTensor
    from conversion.jais import JaisModel

    original = JaisModel.modify_tensors

    def modify(self, data, name, bid):
        yield from original(self, LazyTorchTensor.to_eager(data) if name.endswith("slopes") else data, name, bid)

    JaisModel.modify_tensors = modify


def minicpm():
    """MiniCPM-V 4.6 drops MTP layers, and stops on checkpoints without them."""
    from conversion.minicpm import MiniCPMV4_6TextModel

    MiniCPMV4_6TextModel.no_mtp = True


def rwkv():
    """RWKV 6 and 7 keep parts of tensors in the class, from one model to the next."""
    from conversion.rwkv import Rwkv6Model, Rwkv7Model

    for model in (Rwkv6Model, Rwkv7Model):

        def init(self, *arguments, original=model.__init__, **options):
            self.lerp_weights = {}
            original(self, *arguments, **options)

        model.__init__ = init


def stablelm():
    """Per-head Q/K norms are lost, and the converter stops."""
    from conversion.stablelm import StableLMModel

    original = StableLMModel.modify_tensors

    def modify(self, data, name, bid):
        for x, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
            if f"{x}_layernorm.norms" in name:
                norms = self.__dict__.setdefault("found_norms", {}).setdefault((bid, x), {})
                norms[name] = data
                if len(norms) == (count := self.hparams[heads]):
                    yield from self._stack_qk_norm(bid, count, norms, f"{x}_layernorm")
                return
        yield from original(self, data, name, bid)

    StableLMModel.modify_tensors = modify


class TiktokenTokenizer:
    """The attributes of a tokenizer with custom code that llama.cpp's converter reads."""

    def __init__(self, path):
        lines = [line.split() for line in path.read_text().splitlines()]
        self.mergeable_ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        special = TIKTOKEN_FILES[path.name] + [f"<|extra_{i}|>" for i in range(205)]
        self.special_tokens = {text: len(lines) + i for i, text in enumerate(special)}
        self.vocab_size = len(lines) + len(special)

    def get_vocab(self):
        return self.mergeable_ranks | self.special_tokens


def tiktoken():
    """Tokenizers with custom code are loaded without it; the table of byte characters is built once, not for every token."""
    from transformers import AutoTokenizer, convert_slow_tokenizer

    convert_slow_tokenizer.bytes_to_unicode = functools.cache(convert_slow_tokenizer.bytes_to_unicode)
    original = AutoTokenizer.from_pretrained

    def load(folder, *arguments, **options):
        files = [Path(folder) / name for name in TIKTOKEN_FILES]
        found = [TiktokenTokenizer(file) for file in files if file.is_file()]
        return found[0] if found else original(folder, *arguments, **options)

    AutoTokenizer.from_pretrained = load
