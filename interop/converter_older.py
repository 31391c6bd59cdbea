"""Conversion beside llama.cpp's converter: first transformers, state spaces, encoders.

Usage: as converter.py, whose cases have more recent decoders.
"""

import io
import json

from converter import CASES, FF, HEAD, HEADS, KV, LAYERS, MISTAKES, VOCAB, WIDTH
from converter import attention, case, config, linear, main, norm

CASES.clear()
MISTAKES.clear()
# The pooler of a classifier is lost, and missing in the count of parameters.
MISTAKES["bert_classifier"] = {"cls.weight", "cls.bias", "general.size_label"}
# No mistake, but the exponential of the machine, which is off by a last bit here and there.
MISTAKES["falcon_mamba"] = {f"blk.{i}.ssm_a" for i in range(LAYERS)}
MISTAKES["mamba2"] = {"blk.0.ssm_a"}


def blocks(layer, prefix, layers=LAYERS):
    return {name: shape for i in range(layers) for name, shape in layer(f"{prefix}.{i}").items()}


# ---- first transformers


def gpt_block(p):
    return {
        **norm(f"{p}.ln_1", bias=True),
        **norm(f"{p}.ln_2", bias=True),
        f"{p}.attn.c_attn.weight": (WIDTH, 3 * WIDTH),
        f"{p}.attn.c_attn.bias": (3 * WIDTH,),
        f"{p}.attn.c_proj.weight": (WIDTH, WIDTH),
        f"{p}.attn.c_proj.bias": (WIDTH,),
        f"{p}.mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
        f"{p}.mlp.c_fc.bias": (4 * WIDTH,),
        f"{p}.mlp.c_proj.weight": (4 * WIDTH, WIDTH),
        f"{p}.mlp.c_proj.bias": (WIDTH,),
    }


def gpt_config(name, kind, **fields):
    made = {"architectures": [name], "model_type": kind, "n_embd": WIDTH, "n_head": HEADS}
    made |= {"n_layer": LAYERS, "n_positions": 256, "layer_norm_epsilon": 1e-5, "vocab_size": VOCAB}
    return made | {"bos_token_id": 1, "eos_token_id": 2} | fields


def gpt_outside(positions=True):
    tensors = {"transformer.wte.weight": (VOCAB, WIDTH)} | norm("transformer.ln_f", bias=True)
    return tensors | ({"transformer.wpe.weight": (256, WIDTH)} if positions else {})


@case
def gpt2_with_output():
    tensors = gpt_outside() | blocks(gpt_block, "transformer.h")
    tensors["lm_head.weight"] = (VOCAB, WIDTH)
    return gpt_config("GPT2LMHeadModel", "gpt2", n_ctx=256), tensors, "gpt2", "gpt-2"


@case
def starcoder():
    def layer(p):
        tensors = norm(f"{p}.ln_1", bias=True) | norm(f"{p}.ln_2", bias=True)
        tensors |= linear(f"{p}.attn.c_attn", WIDTH + 2 * HEAD, WIDTH, True)
        tensors |= linear(f"{p}.attn.c_proj", WIDTH, WIDTH, True)
        tensors |= linear(f"{p}.mlp.c_fc", 4 * WIDTH, WIDTH, True)
        return tensors | linear(f"{p}.mlp.c_proj", WIDTH, 4 * WIDTH, True)

    made = gpt_config("GPTBigCodeForCausalLM", "gpt_bigcode", multi_query=True)
    return made, gpt_outside() | blocks(layer, "transformer.h"), "gpt2", "gpt-2"


@case
def starcoder2():
    made = config("Starcoder2ForCausalLM", "starcoder2", norm_epsilon=1e-5, rope_theta=999999.4)

    def layer(p):
        tensors = norm(f"{p}.input_layernorm", bias=True) | norm(f"{p}.post_attention_layernorm", bias=True)
        tensors |= attention(f"{p}.self_attn", bias=True, out_bias=True)
        return tensors | linear(f"{p}.mlp.c_fc", FF, WIDTH, True) | linear(f"{p}.mlp.c_proj", WIDTH, FF, True)

    tensors = {"model.embed_tokens.weight": (VOCAB, WIDTH)} | norm("model.norm", bias=True)
    return made, tensors | blocks(layer, "model.layers"), "gpt2", "starcoder"


@case
def bloom_with_prefix():
    made = {"architectures": ["BloomForCausalLM"], "model_type": "bloom", "hidden_size": WIDTH}
    made |= {"n_head": HEADS, "n_layer": LAYERS, "layer_norm_epsilon": 1e-5, "vocab_size": VOCAB}

    def layer(p):
        tensors = norm(f"{p}.input_layernorm", bias=True) | norm(f"{p}.post_attention_layernorm", bias=True)
        tensors |= linear(f"{p}.self_attention.query_key_value", 3 * WIDTH, WIDTH, True)
        tensors |= linear(f"{p}.self_attention.dense", WIDTH, WIDTH, True)
        tensors |= linear(f"{p}.mlp.dense_h_to_4h", 4 * WIDTH, WIDTH, True)
        return tensors | linear(f"{p}.mlp.dense_4h_to_h", WIDTH, 4 * WIDTH, True)

    tensors = {"transformer.word_embeddings.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    tensors |= norm("transformer.word_embeddings_layernorm", bias=True) | norm("transformer.ln_f", bias=True)
    return made, tensors | blocks(layer, "transformer.h"), "bloom", "bloom"


@case
def mpt_with_groups():
    attn = {"alibi": False, "clip_qkv": 6.0, "kv_n_heads": KV, "attn_impl": "torch"}
    made = {"architectures": ["MPTForCausalLM"], "model_type": "mpt", "d_model": WIDTH, "n_heads": HEADS}
    made |= {"n_layers": LAYERS, "max_seq_len": 256, "vocab_size": VOCAB, "attn_config": attn}

    def layer(p):
        tensors = norm(f"{p}.norm_1", bias=True) | norm(f"{p}.norm_2", bias=True)
        tensors |= linear(f"{p}.attn.Wqkv", WIDTH + 2 * KV * HEAD, WIDTH, True)
        tensors |= linear(f"{p}.attn.out_proj", WIDTH, WIDTH, True)
        tensors |= linear(f"{p}.ffn.up_proj", 4 * WIDTH, WIDTH, True)
        return tensors | linear(f"{p}.ffn.down_proj", WIDTH, 4 * WIDTH, True)

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "transformer.wpe.weight": (256, WIDTH)}
    tensors |= norm("transformer.norm_f", bias=True)
    return made, tensors | blocks(layer, "transformer.blocks"), "gpt_neox", "mpt"


@case
def falcon_second():
    made = {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": WIDTH}
    made |= {"num_attention_heads": HEADS, "num_kv_heads": KV, "new_decoder_architecture": True}
    made |= {"num_hidden_layers": LAYERS, "layer_norm_epsilon": 1e-5, "vocab_size": VOCAB}
    made |= {"bias": False, "alibi": False, "parallel_attn": True}

    def layer(p):
        tensors = norm(f"{p}.ln_attn", bias=True) | norm(f"{p}.ln_mlp", bias=True)
        tensors |= linear(f"{p}.self_attention.query_key_value", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{p}.self_attention.dense", WIDTH, WIDTH)
        tensors |= linear(f"{p}.mlp.dense_h_to_4h", 4 * WIDTH, WIDTH)
        return tensors | linear(f"{p}.mlp.dense_4h_to_h", WIDTH, 4 * WIDTH)

    tensors = {"transformer.word_embeddings.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    tensors |= norm("transformer.ln_f", bias=True)
    return made, tensors | blocks(layer, "transformer.h"), "falcon", "falcon"


# ---- state spaces


@case
def mamba2():
    groups, state, inner, heads = 2, 8, 2 * WIDTH, 8
    made = {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_size": WIDTH}
    made |= {"expand": 2, "head_dim": inner // heads, "num_heads": heads, "n_groups": groups}
    made |= {"state_size": state, "conv_kernel": 4, "num_hidden_layers": LAYERS, "vocab_size": VOCAB}
    made |= {"layer_norm_epsilon": 1e-5, "bos_token_id": 0, "eos_token_id": 0}
    channels = inner + 2 * groups * state

    def layer(p):
        m = f"{p}.mixer"
        return {
            **norm(f"{p}.norm"),
            f"{m}.A_log": (heads,),
            f"{m}.D": (heads,),
            f"{m}.dt_bias": (heads,),
            f"{m}.conv1d.weight": (channels, 1, 4),
            f"{m}.conv1d.bias": (channels,),
            f"{m}.norm.weight": (inner,),
            **linear(f"{m}.in_proj", inner + channels + heads, WIDTH),
            **linear(f"{m}.out_proj", WIDTH, inner),
        }

    tensors = {"backbone.embeddings.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    return made, tensors | norm("backbone.norm_f") | blocks(layer, "backbone.layers"), "mamba", "gpt-2"


@case
def falcon_mamba():
    inner, state, rank = 2 * WIDTH, 16, 4
    made = {"architectures": ["FalconMambaForCausalLM"], "model_type": "falcon_mamba"}
    made |= {"hidden_size": WIDTH, "intermediate_size": inner, "state_size": state, "conv_kernel": 4}
    made |= {"time_step_rank": rank, "num_hidden_layers": LAYERS, "vocab_size": VOCAB}
    made |= {"layer_norm_epsilon": 1e-5, "tie_word_embeddings": False}

    def layer(p):
        m = f"{p}.mixer"
        return {
            **norm(f"{p}.norm"),
            f"{m}.A_log": (inner, state),
            f"{m}.D": (inner,),
            f"{m}.conv1d.weight": (inner, 1, 4),
            f"{m}.conv1d.bias": (inner,),
            **linear(f"{m}.in_proj", 2 * inner, WIDTH),
            **linear(f"{m}.x_proj", rank + 2 * state, inner),
            **linear(f"{m}.dt_proj", inner, rank, True),
            **linear(f"{m}.out_proj", WIDTH, inner),
        }

    tensors = {"backbone.embeddings.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    return made, tensors | norm("backbone.norm_f") | blocks(layer, "backbone.layers"), "mamba", "gpt-2"


# ---- encoders


def bert_block(p):
    return {
        **linear(f"{p}.attention.self.query", WIDTH, WIDTH, True),
        **linear(f"{p}.attention.self.key", WIDTH, WIDTH, True),
        **linear(f"{p}.attention.self.value", WIDTH, WIDTH, True),
        **linear(f"{p}.attention.output.dense", WIDTH, WIDTH, True),
        **norm(f"{p}.attention.output.LayerNorm", bias=True),
        **linear(f"{p}.intermediate.dense", FF, WIDTH, True),
        **linear(f"{p}.output.dense", WIDTH, FF, True),
        **norm(f"{p}.output.LayerNorm", bias=True),
    }


def bert(prefix, positions, types, vocab):
    e = f"{prefix}embeddings"
    tensors = {f"{e}.word_embeddings.weight": (vocab, WIDTH)}
    tensors |= {f"{e}.position_embeddings.weight": (positions, WIDTH)}
    tensors |= {f"{e}.token_type_embeddings.weight": (types, WIDTH)} | norm(f"{e}.LayerNorm", bias=True)
    return tensors | blocks(bert_block, f"{prefix}encoder.layer")


def bert_config(name, kind, **fields):
    made = config(name, kind, layer_norm_eps=1e-12, type_vocab_size=2)
    for field in ("num_key_value_heads", "bos_token_id", "eos_token_id"):
        del made[field]
    return made | fields


PIECES = 768


@case
def bert_masked():
    made = bert_config("BertForMaskedLM", "bert", vocab_size=PIECES)
    tensors = bert("bert.", 256, 2, PIECES) | {"cls.predictions.bias": (PIECES,)}
    return made, tensors, "bert", "bert-bge"


@case
def bert_classifier():
    made = bert_config("BertForSequenceClassification", "bert", vocab_size=PIECES)
    made |= {"id2label": {"0": "no", "1": "yes", "2": "perhaps"}, "label2id": {"no": 0, "yes": 1, "perhaps": 2}}
    tensors = bert("bert.", 256, 2, PIECES) | linear("bert.pooler.dense", WIDTH, WIDTH, True)
    return made, tensors | linear("classifier", 3, WIDTH, True), "bert", "bert-bge"


@case
def roberta_classifier():
    made = bert_config("RobertaForSequenceClassification", "roberta", type_vocab_size=1, pad_token_id=1)
    made |= {"id2label": {"0": "no", "1": "yes", "2": "perhaps"}, "label2id": {"no": 0, "yes": 1, "perhaps": 2}}
    tensors = bert("roberta.", 256, 1, VOCAB) | linear("classifier.dense", WIDTH, WIDTH, True)
    return made, tensors | linear("classifier.out_proj", 3, WIDTH, True), "gpt2", "roberta-bpe"


@case
def nomic_bert():
    made = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert_of_old", "n_embd": WIDTH}
    made |= {"n_head": HEADS, "n_layer": LAYERS, "n_inner": FF, "n_positions": 8192, "vocab_size": PIECES}
    made |= {"activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000}
    made |= {"rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None}
    made |= dict.fromkeys(("causal", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm"), False)
    made |= {"type_vocab_size": 2}

    def layer(p):
        tensors = norm(f"{p}.norm1", bias=True) | norm(f"{p}.norm2", bias=True)
        tensors |= linear(f"{p}.attn.Wqkv", 3 * WIDTH, WIDTH) | linear(f"{p}.attn.out_proj", WIDTH, WIDTH)
        tensors |= linear(f"{p}.mlp.fc11", FF, WIDTH) | linear(f"{p}.mlp.fc12", FF, WIDTH)
        return tensors | linear(f"{p}.mlp.fc2", WIDTH, FF)

    tensors = {"embeddings.word_embeddings.weight": (PIECES, WIDTH)} | norm("emb_ln", bias=True)
    tensors |= {"embeddings.token_type_embeddings.weight": (2, WIDTH)}
    return made, tensors | blocks(layer, "encoder.layers"), "bert", "bert-bge"


# ---- vocabularies of most probable pieces


TEXT = "in the beginning was the word and the word was with god and the word was god".split()


def train(**options):
    """A SentencePiece model of some words."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    lines = [" ".join(TEXT[i:] + TEXT[:i]) for i in range(len(TEXT))] * 8
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="unigram", vocab_size=60,
        hard_vocab_limit=False, minloglevel=2, **options,
    )
    return model.getvalue()


def spiece(folder):
    (folder / "spiece.model").write_bytes(train(pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    tokens = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "tokenizer_class": "T5Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    (folder / "added_tokens.json").write_text(json.dumps({"<extra_id_0>": VOCAB - 1, "<beyond>": VOCAB}))


ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
ROBERTA |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
ROBERTA |= {"tokenizer_class": "XLMRobertaTokenizer", "clean_up_tokenization_spaces": True}


def sentencepiece_bpe(folder):
    (folder / "sentencepiece.bpe.model").write_bytes(train())
    (folder / "tokenizer_config.json").write_text(json.dumps(ROBERTA))


def unigram_json(folder):
    """What `transformers` makes of the model above."""
    import tokenizers
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(train())
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocab = first + [(p.piece, p.score) for p in model.pieces[3:]] + [("<mask>", 0.0)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, unk_id=3, byte_fallback=False))
    made.normalizer = tokenizers.normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always")
    made.add_special_tokens([text for text, _ in first] + ["<mask>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(ROBERTA))


def xlm_roberta(tokenizer):
    made = bert_config("XLMRobertaModel", "xlm-roberta", type_vocab_size=1, pad_token_id=1)
    return made, bert("", 256, 1, VOCAB), tokenizer, None


@case
def xlm_roberta_model():
    return xlm_roberta(sentencepiece_bpe)


@case
def xlm_roberta_json():
    return xlm_roberta(unigram_json)


def t5_block(p, decoder, gated, bias):
    tensors, parts = {}, ["SelfAttention", "EncDecAttention"] if decoder else ["SelfAttention"]
    for i, part in enumerate(parts):
        a = f"{p}.layer.{i}.{part}"
        for name in "qkv":
            tensors[f"{a}.{name}.weight"] = (HEADS * HEAD, WIDTH)
        tensors[f"{a}.o.weight"] = (WIDTH, HEADS * HEAD)
        tensors |= norm(f"{p}.layer.{i}.layer_norm")
    if bias:
        tensors[f"{p}.layer.0.SelfAttention.relative_attention_bias.weight"] = (32, HEADS)
    f = f"{p}.layer.{len(parts)}"
    for name in ["wi_0", "wi_1"] if gated else ["wi"]:
        tensors |= linear(f"{f}.DenseReluDense.{name}", FF, WIDTH)
    return tensors | linear(f"{f}.DenseReluDense.wo", WIDTH, FF) | norm(f"{f}.layer_norm")


def t5(name, kind, gated, halves=("encoder", "decoder"), bias_everywhere=False):
    made = {"architectures": [name], "model_type": kind, "d_model": WIDTH, "d_kv": HEAD, "d_ff": FF}
    made |= {"num_heads": HEADS, "num_layers": LAYERS, "num_decoder_layers": LAYERS}
    made |= {"relative_attention_num_buckets": 32, "layer_norm_epsilon": 1e-6, "vocab_size": VOCAB}
    made |= {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    tensors = {"shared.weight": (VOCAB, WIDTH), "encoder.embed_tokens.weight": (VOCAB, WIDTH)}
    for half in halves:
        decoder = half == "decoder"
        tensors |= norm(f"{half}.final_layer_norm")
        for i in range(LAYERS):
            tensors |= t5_block(f"{half}.block.{i}", decoder, gated, i == 0 or bias_everywhere)
    return made, tensors, spiece, None


@case
def t5_first():
    return t5("T5ForConditionalGeneration", "t5", False)


@case
def t5_gated():
    made, tensors, *rest = t5("T5ForConditionalGeneration", "t5", True)
    made["n_positions"] = 128
    return made, tensors | {"lm_head.weight": (VOCAB, WIDTH)}, *rest


@case
def umt5():
    return t5("UMT5ForConditionalGeneration", "umt5", True, bias_everywhere=True)


@case
def t5_encoder():
    return t5("T5EncoderModel", "t5", True, halves=["encoder"])


if __name__ == "__main__":
    main()
