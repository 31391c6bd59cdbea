//! Conversion of QRWKV6: Qwen2 with time mixing of RWKV 6. Its token shift has the parts in the
//! order r, k, v, w, g, which the converter changes to that of RWKV 6.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::ssm::reshape;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, MappedTensor, Mapping, VocabularyKind, hparams,
};
use crate::rwkv6::convert::{CONTEXT, export_time_mix, map_time_mix};
use crate::schema::key;

/// Names of time-mixing matrices.
const TIME_MIX_NAMES: Table = &[
    ("model.layers.{}.self_attn.q_proj", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.self_attn.k_proj", "blk.{}.time_mix_key"),
    ("model.layers.{}.self_attn.v_proj", "blk.{}.time_mix_value"),
    ("model.layers.{}.self_attn.o_proj", "blk.{}.time_mix_output"),
    ("model.layers.{}.self_attn.gate", "blk.{}.time_mix_gate"),
];

const TIME_MIX: &str = "model.layers.{}.self_attn.";

/// Indexes in RWKV 6's order w, k, v, r, g of the parts in the order r, k, v, w, g.
const PART_INDEXES: [u32; 5] = [3, 1, 2, 0, 4];

pub(crate) struct Rwkv6Qwen2;

/// Description of [`Rwkv6Qwen2`].
pub(crate) static RWKV6_QWEN2: Description = Description {
    classes: &["RWKV6Qwen2ForCausalLM"],
    architecture: "rwkv6qwen2",
    model_type: "rwkv6qwen2",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    tensor_names: &[TIME_MIX_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::TIME_MIX_EXTRA_DIM, "lora_rank_tokenshift"),
        (key::TIME_DECAY_EXTRA_DIM, "lora_rank_decay"),
    ],
    ..Description::DECODER
};

impl Converter for Rwkv6Qwen2 {
    fn description(&self) -> &'static Description {
        &RWKV6_QWEN2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let heads = hparams::head_count(config)?.max(1);
        let [mix, decay] = lora_ranks(config)?;
        let epsilon = config.require_f32(&["rms_norm_eps"], "epsilon of the norms")?;
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::WKV_HEAD_SIZE, width / heads);
        keys.set(key::TIME_MIX_EXTRA_DIM, mix);
        keys.set(key::TIME_DECAY_EXTRA_DIM, decay);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.file_type();
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.set(key::TOKEN_SHIFT_COUNT, 1u32);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let mapping = map_time_mix(config, TIME_MIX, name)?;
        let Some(Mapping::Tensors(tensors)) = &mapping else { return Ok(mapping) };
        let [MappedTensor { name: gguf_name, .. }] = &tensors[..] else { return Ok(mapping) };
        let (rank, width) = (lora_ranks(config)?[0], hparams::width(config)?);
        let (steps_before, len) = if gguf_name.ends_with("time_mix_w1.weight") {
            (vec![Step::Transpose], rank)
        } else if gguf_name.ends_with("time_mix_w2.weight") {
            let rows = width.saturating_mul(5);
            (vec![Step::Transpose, reshape(&[rank, width, 5], &[rank, rows])], width)
        } else {
            return Ok(mapping);
        };
        let part = |(number, index): (u64, u32)| {
            let len = u64::from(len);
            let pick = Step::Pick { groups: 1, start: number * len, len };
            let steps = [&steps_before[..], &[pick]].concat();
            MappedTensor {
                name: gguf_name.clone(),
                steps,
                slot: Some(ExpertSlot { index, count: 5 }),
            }
        };
        Ok(Some(Mapping::Tensors((0..).zip(PART_INDEXES).map(part).collect())))
    }

    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        &["time_mix_w1.weight"]
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let heads =
            count(model, key::EMBEDDING_LENGTH)?.checked_div(count(model, key::WKV_HEAD_SIZE)?);
        let exported = export_time_mix(exported, TIME_MIX);
        Some(exported.without(&[key::ATTENTION_HEAD_COUNT]).set_some("num_attention_heads", heads))
    }
}

/// Returns the ranks of the token shift and the decay.
fn lora_ranks(config: &Config) -> Result<[u32; 2], Error> {
    let default = if hparams::width(config)? >= 4096 { [64, 128] } else { [32, 64] };
    let stated = [config.u32(&["lora_rank_tokenshift"])?, config.u32(&["lora_rank_decay"])?];
    Ok([stated[0].unwrap_or(default[0]), stated[1].unwrap_or(default[1])])
}
