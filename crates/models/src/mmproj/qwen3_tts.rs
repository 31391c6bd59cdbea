//! Qwen3-TTS: the speaker encoder, the code predictor, and the audio decoder, which has its own folder.

use gguf::{Error, Shape};

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::hparams;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{ExpertSlot, Mapping};
use crate::schema::key;

const FOLDER: &str = "speech_tokenizer";
/// Number of codes of a frame behind the first.
const CODES: u32 = 15;
const EMBEDDING: &str = "talker.code_predictor.model.codec_embedding.{}.weight";
const OUTPUT: &str = "talker.code_predictor.lm_head.{}.weight";
/// Epsilon of divisors.
const SNAKE_EPSILON: f32 = 1e-9;
/// Minimum usage count of a code.
const LEAST_USED: f32 = 1e-5;
/// Number of upsampling blocks of the decoder.
const BLOCKS: usize = 4;

pub static QWEN3_TTS: Encoder = Encoder {
    classes: &["Qwen3TTSForConditionalGeneration"],
    audio: &["speaker_encoder_config"],
    folder: Some(FOLDER),
    wanted,
    complete: |parts| {
        let talker = parts.model.part("talker_config");
        let width =
            EncoderConfigs::number(&talker, &["hidden_size"], "the embedding size of the talker")?;
        parts.text.set("hidden_size", width);
        Ok(())
    },
    keys,
    places: &[
        ("speaker_encoder.", VOICE),
        ("talker.model.codec_embedding", &[("", "a.gen.code.out_embd")]),
        ("talker.code_predictor.", PREDICTOR),
        ("speech_tokenizer/decoder.", DECODER),
    ],
    special,
    steps: |_, name, shape| {
        Ok(match *shape {
            [1, inputs, outputs] if name.starts_with("a.gen.wav.quant.") => {
                reshaped(shape, &[inputs, outputs])
            }
            _ => Vec::new(),
        })
    },
    kept: &[
        ("a.gen.wav.pre_conv.", TypeOverride::F16),
        ("a.gen.wav.dac.entry.", TypeOverride::F16),
        ("a.gen.wav.dac.post_conv.", TypeOverride::F16),
        ("a.gen.wav.up.blk.*.dwconv.", TypeOverride::F16),
        ("a.gen.wav.dac.blk.*.conv1.", TypeOverride::F16),
        ("a.gen.wav.dac.blk.*.conv2.", TypeOverride::F16),
        ("a.gen.wav.up.blk.*.conv.", TypeOverride::F32),
        ("a.gen.wav.dac.blk.*.conv.", TypeOverride::F32),
        ("a.gen.code.blk.*.ffn_down.", TypeOverride::F32),
    ],
    ..Encoder::AUDIO
};

const VOICE: Table = &[
    ("blocks.{}.conv", "a.conv1d.{}"),
    ("blocks.{}.tdnn1.conv", "a.blk.{}.conv_pw1"),
    ("blocks.{}.tdnn2.conv", "a.blk.{}.conv_pw2"),
    ("blocks.{}.se_block.conv1", "a.blk.{}.se_conv1"),
    ("blocks.{}.se_block.conv2", "a.blk.{}.se_conv2"),
    ("blocks.{}.res2net_block.blocks.{}.conv", "a.blk.{}.res2.{}"),
    ("mfa.conv", "a.conv_out"),
    ("asp.conv", "a.asp_attn"),
    ("asp.tdnn.conv", "a.asp_tdnn"),
    ("fc", "mm.a.fc"),
];

const PREDICTOR: Table = &[
    ("small_to_mtp_projection", "a.gen.code.proj_in"),
    ("model.norm", "a.gen.code.output_norm"),
    ("model.layers.{}.input_layernorm", "a.gen.code.blk.{}.ln1"),
    ("model.layers.{}.self_attn.q_proj", "a.gen.code.blk.{}.attn_q"),
    ("model.layers.{}.self_attn.q_norm", "a.gen.code.blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.k_proj", "a.gen.code.blk.{}.attn_k"),
    ("model.layers.{}.self_attn.k_norm", "a.gen.code.blk.{}.attn_k_norm"),
    ("model.layers.{}.self_attn.v_proj", "a.gen.code.blk.{}.attn_v"),
    ("model.layers.{}.self_attn.o_proj", "a.gen.code.blk.{}.attn_out"),
    ("model.layers.{}.post_attention_layernorm", "a.gen.code.blk.{}.ln2"),
    ("model.layers.{}.mlp.gate_proj", "a.gen.code.blk.{}.ffn_gate"),
    ("model.layers.{}.mlp.up_proj", "a.gen.code.blk.{}.ffn_up"),
    ("model.layers.{}.mlp.down_proj", "a.gen.code.blk.{}.ffn_down"),
];

const DECODER: Table = &[
    ("quantizer.rvq_first.input_proj", "a.gen.wav.quant.first.in_proj"),
    ("quantizer.rvq_first.output_proj", "a.gen.wav.quant.first.out_proj"),
    ("quantizer.rvq_rest.input_proj", "a.gen.wav.quant.rest.in_proj"),
    ("quantizer.rvq_rest.output_proj", "a.gen.wav.quant.rest.out_proj"),
    ("pre_conv.conv", "a.gen.wav.pre_conv"),
    ("pre_transformer.input_proj", "a.gen.wav.tfm.in_proj"),
    ("pre_transformer.output_proj", "a.gen.wav.tfm.out_proj"),
    ("pre_transformer.norm", "a.gen.wav.tfm.output_norm"),
    ("pre_transformer.layers.{}.input_layernorm", "a.gen.wav.tfm.blk.{}.ln1"),
    ("pre_transformer.layers.{}.self_attn.q_proj", "a.gen.wav.tfm.blk.{}.attn_q"),
    ("pre_transformer.layers.{}.self_attn.k_proj", "a.gen.wav.tfm.blk.{}.attn_k"),
    ("pre_transformer.layers.{}.self_attn.v_proj", "a.gen.wav.tfm.blk.{}.attn_v"),
    ("pre_transformer.layers.{}.self_attn.o_proj", "a.gen.wav.tfm.blk.{}.attn_out"),
    ("pre_transformer.layers.{}.self_attn_layer_scale.scale", "a.gen.wav.tfm.blk.{}.ls1.weight"),
    ("pre_transformer.layers.{}.post_attention_layernorm", "a.gen.wav.tfm.blk.{}.ln2"),
    ("pre_transformer.layers.{}.mlp.gate_proj", "a.gen.wav.tfm.blk.{}.ffn_gate"),
    ("pre_transformer.layers.{}.mlp.up_proj", "a.gen.wav.tfm.blk.{}.ffn_up"),
    ("pre_transformer.layers.{}.mlp.down_proj", "a.gen.wav.tfm.blk.{}.ffn_down"),
    ("pre_transformer.layers.{}.mlp_layer_scale.scale", "a.gen.wav.tfm.blk.{}.ls2.weight"),
    ("upsample.{}.0.conv", "a.gen.wav.up.blk.{}.conv"),
    ("upsample.{}.1.dwconv.conv", "a.gen.wav.up.blk.{}.dwconv"),
    ("upsample.{}.1.norm", "a.gen.wav.up.blk.{}.norm"),
    ("upsample.{}.1.pwconv1", "a.gen.wav.up.blk.{}.pw1"),
    ("upsample.{}.1.pwconv2", "a.gen.wav.up.blk.{}.pw2"),
    ("upsample.{}.1.gamma", "a.gen.wav.up.blk.{}.gamma"),
    ("decoder.0.conv", "a.gen.wav.dac.entry"),
    ("decoder.6.conv", "a.gen.wav.dac.post_conv"),
];

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let projected = parts.text_width()?;
    keys.file_type();
    keys.set(key::HAS_AUDIO_ENCODER, true);
    keys.set(key::AUDIO_PROJECTOR_TYPE, "qwen3tts_spkenc");
    keys.set(key::AUDIO_PROJECTION_DIM, projected);
    keys.set(key::AUDIO_NUM_MEL_BINS, 128u32);
    keys.set(key::AUDIO_BLOCK_COUNT, 3u32);
    // Runtimes require these keys, although the encoder has no attention.
    keys.set(key::AUDIO_EMBEDDING_LENGTH, 1536u32);
    keys.set(key::AUDIO_ATTENTION_HEAD_COUNT, 1u32);
    keys.set(key::AUDIO_FEED_FORWARD_LENGTH, 1536u32);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
    keys.set(key::HAS_GEN_AUDIO_ENCODER, true);
    keys.set(key::GEN_AUDIO_PROJECTOR_TYPE, "qwen3tts_gen");
    let predictor = parts.model.part("talker_config").part("code_predictor_config");
    let number =
        |field| EncoderConfigs::number(&predictor, &[field], "a size of the code predictor");
    keys.set(key::GEN_AUDIO_PROJECTION_DIM, projected);
    keys.set(key::GEN_AUDIO_EMBEDDING_LENGTH, number("hidden_size")?);
    keys.set(key::GEN_AUDIO_FEED_FORWARD_LENGTH, number("intermediate_size")?);
    keys.set(key::GEN_AUDIO_BLOCK_COUNT, number("num_hidden_layers")?);
    keys.set(key::GEN_AUDIO_ATTENTION_HEAD_COUNT, number("num_attention_heads")?);
    keys.set(key::GEN_AUDIO_ATTENTION_HEAD_COUNT_KV, number("num_key_value_heads")?);
    let epsilon = predictor.require_f32(&["rms_norm_eps"], "epsilon of the norms")?;
    keys.set(key::GEN_AUDIO_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}

/// Returns the tensors of the decoder in the order of llama.cpp's converter.
fn wanted(parts: &EncoderConfigs) -> Result<Vec<String>, Error> {
    let config = parts.of_folder(FOLDER)?.part("decoder_config");
    let layers = EncoderConfigs::number(
        &config,
        &["num_hidden_layers"],
        "the number of layers of the decoder",
    )?;
    let layers = hparams::possible(&config, "layers", layers)?;
    let list = |field: &str| {
        let list = config.u32s(field)?;
        list.ok_or_else(|| config.missing(field, "the upsampling factors of the decoder"))
    };
    let (before, after) = (list("upsampling_ratios")?, list("upsample_rates")?);
    if after.len() != BLOCKS {
        let expected = "four numbers, which runtimes support";
        return Err(config.wrong("upsample_rates", &after.into(), expected));
    }
    let mut names: Vec<String> = Vec::new();
    for (part, codebooks) in [("first", 1), ("rest", CODES)] {
        for end in ["input_proj.weight", "output_proj.weight"] {
            names.push(format!("quantizer.rvq_{part}.{end}"));
        }
        for i in 0..codebooks {
            for end in ["embedding_sum", "cluster_usage"] {
                names.push(format!("quantizer.rvq_{part}.vq.layers.{i}._codebook.{end}"));
            }
        }
    }
    let both = |stem: &str| ["weight", "bias"].map(|end| format!("{stem}.{end}"));
    names.extend(both("pre_conv.conv"));
    names.extend(both("pre_transformer.input_proj"));
    names.extend(both("pre_transformer.output_proj"));
    names.push("pre_transformer.norm.weight".into());
    for layer in 0..layers {
        for part in [
            "input_layernorm.weight",
            "self_attn.q_proj.weight",
            "self_attn.k_proj.weight",
            "self_attn.v_proj.weight",
            "self_attn.o_proj.weight",
            "self_attn_layer_scale.scale",
            "post_attention_layernorm.weight",
            "mlp.gate_proj.weight",
            "mlp.up_proj.weight",
            "mlp.down_proj.weight",
            "mlp_layer_scale.scale",
        ] {
            names.push(format!("pre_transformer.layers.{layer}.{part}"));
        }
    }
    for block in 0..before.len() {
        for part in ["0.conv", "1.dwconv.conv", "1.norm", "1.pwconv1", "1.pwconv2"] {
            names.extend(both(&format!("upsample.{block}.{part}")));
        }
        names.push(format!("upsample.{block}.1.gamma"));
    }
    let snake = |stem: &str| ["alpha", "beta"].map(|end| format!("{stem}.{end}"));
    names.extend(both("decoder.0.conv"));
    for block in 1..=BLOCKS {
        let stem = format!("decoder.{block}.block");
        names.extend(snake(&format!("{stem}.0")));
        names.extend(both(&format!("{stem}.1.conv")));
        for unit in 2..5 {
            for part in ["1", "2"] {
                names.extend(snake(&format!("{stem}.{unit}.act{part}")));
                names.extend(both(&format!("{stem}.{unit}.conv{part}.conv")));
            }
        }
    }
    names.extend(snake("decoder.5"));
    names.extend(both("decoder.6.conv"));
    Ok(names.into_iter().map(|name| format!("{FOLDER}/decoder.{name}")).collect())
}

fn special(_: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    for (pattern, ours) in
        [(EMBEDDING, "a.gen.code.embd.weight"), (OUTPUT, "a.gen.code.head.weight")]
    {
        if let Some(&[index]) = captures(pattern, tensor.name).as_deref() {
            let slot = ExpertSlot { index, count: CODES };
            return Ok(Some(EncoderMapping::Mapped(Mapping::slot(ours.to_owned(), slot))));
        }
    }
    let Some(name) = tensor.name.strip_prefix("speech_tokenizer/decoder.") else { return Ok(None) };
    if let Some(codebook) = name.strip_prefix("quantizer.rvq_").filter(|name| name.contains(".vq."))
    {
        return codebooks(tensor, codebook).map(Some);
    }
    let Some((stem, end)) = name.rsplit_once('.') else { return Ok(None) };
    let Some(ours) = finer(stem) else { return Ok(None) };
    let ours = format!("a.gen.wav.dac.{ours}.{end}");
    let function: fn(f32) -> f32 = match end {
        "alpha" => exponential,
        "beta" => |x| 1.0 / (exponential(x) + SNAKE_EPSILON),
        _ => return Ok(Some(EncoderMapping::one(ours, Vec::new()))),
    };
    let values = tensor.vector(tensor.name)?.into_iter().map(function).collect();
    let shape = Shape::new(tensor.shape);
    Ok(shape.map(|shape| EncoderMapping::Tensor(ours, shape, values)))
}

/// Rounded once.
fn exponential(x: f32) -> f32 {
    f64::from(x).exp() as f32
}

/// Maps a tensor of an upsampling block, and the activation behind all blocks.
fn finer(stem: &str) -> Option<String> {
    if stem == "decoder.5" {
        return Some("post_snake".into());
    }
    for (pattern, part) in [("decoder.{}.block.0", "snake"), ("decoder.{}.block.1.conv", "conv")] {
        if let Some(&[block]) = captures(pattern, stem).as_deref() {
            return Some(format!("blk.{}.{part}", block.checked_sub(1)?));
        }
    }
    let parts = [("decoder.{}.block.{}.act{}", "act"), ("decoder.{}.block.{}.conv{}.conv", "conv")];
    parts.into_iter().find_map(|(pattern, part)| match captures(pattern, stem)?[..] {
        [block, unit, which] => {
            let (block, unit) = (block.checked_sub(1)?, unit.checked_sub(2)?);
            Some(format!("blk.{block}.res.{unit}.{part}{which}"))
        }
        _ => None,
    })
}

/// Computes the codebooks of one kind when their last tensor arrives: sums of vectors divided by usage counts.
fn codebooks(tensor: &Foreign, name: &str) -> Result<EncoderMapping, Error> {
    let (kind, count) = match name.starts_with("first.") {
        true => ("first", 1),
        false => ("rest", CODES),
    };
    let of_codebook = |i: u32, part: &str| {
        format!("{FOLDER}/decoder.quantizer.rvq_{kind}.vq.layers.{i}._codebook.{part}")
    };
    if tensor.name != of_codebook(count - 1, "cluster_usage") {
        return Ok(EncoderMapping::DROPPED);
    }
    let (mut values, mut shape) = (Vec::new(), None);
    for i in 0..count {
        let sums = tensor.vector(&of_codebook(i, "embedding_sum"))?;
        let used = tensor.vector(&of_codebook(i, "cluster_usage"))?;
        let width = sums.len() / used.len().max(1);
        let stated = *shape.get_or_insert((width, used.len()));
        if width * used.len() != sums.len() || stated != (width, used.len()) || width == 0 {
            return Err(tensor.misfit("differs in shape from the other codebooks"));
        }
        let used = used.into_iter().map(|used| used.max(LEAST_USED));
        let codes = sums.chunks_exact(width).zip(used);
        values.extend(codes.flat_map(|(sums, used)| sums.iter().map(move |sum| sum / used)));
    }
    let (width, codes) = shape.unwrap_or_default();
    let dims = [width as u64, codes as u64, u64::from(count)];
    let shape = Shape::new(if count == 1 { &dims[..2] } else { &dims });
    let shape = shape.unwrap_or_else(|| unreachable!("three dimensions are no more than four"));
    Ok(EncoderMapping::Tensor(format!("a.gen.wav.quant.{kind}.codebook.weight"), shape, values))
}
