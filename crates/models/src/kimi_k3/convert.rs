//! Conversion of Kimi K3: as Kimi Linear, and the norm and projection that score residual streams
//! are multiplied to one vector.

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, Values, VocabularyKind, hparams};
use crate::deepseek2::convert::MLA_NAMES;
use crate::kimi_linear;
use crate::kimi_linear::convert::A_LOG;
use crate::schema::{HyperParameters, key};

/// Projections and norm of the latent space of routed experts.
const NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.routed_expert_down_proj", "blk.{}.ffn_routed_down"),
    ("model.layers.{}.block_sparse_moe.routed_expert_up_proj", "blk.{}.ffn_routed_up"),
    ("model.layers.{}.block_sparse_moe.routed_expert_norm", "blk.{}.ffn_routed_norm"),
];

/// Modules that score residual streams, and the GGUF name of the product of their norm and
/// projection.
const SCORES: [(&str, &str); 3] = [
    ("model.layers.{}.self_attention_res", "blk.{}.attn_res_score.weight"),
    ("model.layers.{}.mlp_res", "blk.{}.ffn_res_score.weight"),
    ("model.output_attn_res", "output_res_score.weight"),
];

/// Norm weights of a score module.
const SCORE_NORM: &str = "_norm.weight";

/// Projection of a score module, one row.
const SCORE_PROJECTION: &str = "_proj.weight";

/// Field for the products by their GGUF names, set by [`KimiK3::infer_from_values`].
const PRODUCTS: &str = "residual_scores";

/// Output gate of KDA or MLA.
const GATE: &str = "model.layers.{}.self_attn.g_proj.weight";

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u32 = 2;

pub(crate) struct KimiK3;

/// Description of [`KimiK3`].
pub(crate) static KIMI_K3: Description = Description {
    classes: &["KimiK3ForConditionalGeneration"],
    architecture: "kimi-k3",
    model_type: "kimi_k3",
    vocabulary: VocabularyKind::BpeWithEnd,
    tensor_names: &[NAMES, kimi_linear::convert::NAMES, MLA_NAMES, LLAMA_LIKE],
    required_flags: &[("mla_use_nope", true)],
    ..kimi_linear::convert::KIMI_LINEAR
};

impl Converter for KimiK3 {
    fn description(&self) -> &'static Description {
        &KIMI_K3
    }

    fn base(&self) -> &'static dyn Converter {
        &kimi_linear::convert::KimiLinear
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        for (field, supported) in
            [("hidden_act", "situ"), ("moe_router_activation_func", "sigmoid")]
        {
            match config.find(&[field]) {
                None => {
                    let expected = format!("`{supported}`, the only supported value");
                    return Err(config.missing(field, &expected));
                }
                Some((_, stated)) if stated == supported => {}
                Some((_, stated)) => return Err(hparams::not_computed(config, field, stated)),
            }
        }
        Ok(())
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
        let mut products = Map::new();
        let blocks: Vec<u32> = (0..blocks).collect();
        for (module, gguf_name) in SCORES {
            let layers: Vec<&[u32]> = match module.contains("{}") {
                true => blocks.chunks(1).collect(),
                false => vec![&[]],
            };
            for layer in layers {
                let vector = |suffix: &str| {
                    values.require(&(filled(module, layer) + suffix), "a score of residual streams")
                };
                let (norm, projection) = (vector(SCORE_NORM)?, vector(SCORE_PROJECTION)?);
                let product = norm.iter().zip(projection).map(|(a, b)| a * b);
                products.insert(filled(gguf_name, layer), product.collect());
            }
        }
        config.set(PRODUCTS, products);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let number =
            |field: &str| config.require_u32(&[field], "a size of attention or of the experts");
        let factor =
            |field: &str| config.require_f32(&[field], "a parameter of the SiTU activation");
        let mut mla = config.clone();
        mla.set("num_key_value_heads", 1);
        keys.stated(&mla)?;
        keys.vocab_size(config)?;
        keys.set(
            key::ATTENTION_HEAD_COUNT_KV,
            Array::from(&kimi_linear::convert::head_counts_kv(config)?[..]),
        );
        let linear = kimi_linear::convert::linear_config(config);
        let linear_size = |field: &str| linear.require_u32(&[field], "a size of linear attention");
        keys.set(key::SSM_CONV_KERNEL, linear_size("short_conv_kernel_size")?);
        keys.set(key::KDA_HEAD_DIM, linear_size("head_dim")?);
        keys.set_f32(key::KDA_GATE_LOWER_BOUND, linear.f32(&["gate_lower_bound"])?);
        let (rank, rotary_dims) = (number("kv_lora_rank")?, number("qk_rope_head_dim")?);
        keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
        keys.set(key::ATTENTION_KV_LORA_RANK, rank);
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        keys.set(key::ATTENTION_KEY_LENGTH, rank.saturating_add(rotary_dims));
        keys.set(key::ATTENTION_VALUE_LENGTH, rank);
        keys.set(
            key::ATTENTION_KEY_LENGTH_MLA,
            number("qk_nope_head_dim")?.saturating_add(rotary_dims),
        );
        keys.set(key::ATTENTION_VALUE_LENGTH_MLA, number("v_head_dim")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, number("moe_intermediate_size")?);
        keys.set(key::EXPERT_SHARED_COUNT, number("num_shared_experts")?);
        let dense = config.u32(&["first_k_dense_replace"])?;
        let dense = dense.ok_or_else(|| {
            config.missing("first_k_dense_replace", "the number of leading dense layers")
        })?;
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
        let scale =
            config.require_f32(&["routed_scaling_factor"], "the scale of the expert weights")?;
        keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("moe_renormalize")?.unwrap_or(false));
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        keys.set_u32(key::EXPERT_LATENT_LENGTH, config.u32(&["routed_expert_hidden_size"])?);
        keys.set(key::ACTIVATION_SITU_BETA, factor("activation_situ_beta")?);
        keys.set(key::ACTIVATION_SITU_LINEAR_BETA, factor("activation_situ_linear_beta")?);
        keys.set(key::ATTN_RES_BLOCK_SIZE, number("attn_res_block_size")?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (module, gguf_name) in SCORES {
            let numbers = |suffix: &str| captures(&format!("{module}{suffix}"), name);
            if numbers(SCORE_NORM).is_some() {
                return Ok(Some(Mapping::Dropped));
            }
            if let Some(numbers) = numbers(SCORE_PROJECTION) {
                let gguf_name = filled(gguf_name, &numbers);
                let product = config.part(PRODUCTS).f32s(&gguf_name)?.unwrap_or_default();
                return Ok(Some(Mapping::WithVectors(vec![(gguf_name, product)], Vec::new())));
            }
        }
        let block_of = |pattern| match captures(pattern, name).as_deref() {
            Some(&[block]) => Some(block),
            _ => None,
        };
        if let Some(block) = block_of(GATE) {
            let heads_kv = kimi_linear::convert::head_counts_kv(config)?;
            let gate = match heads_kv.get(block as usize) {
                Some(0) => "ssm_g",
                _ => "attn_gate",
            };
            return Ok(Some(Mapping::one(format!("blk.{block}.{gate}.weight"), [])));
        }
        if let Some(block) = block_of(A_LOG) {
            return kimi_linear::convert::map_a_log(config, block).map(Some);
        }
        kimi_linear::convert::map_special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let (class, model_type) = (exported.class, exported.model_type);
        let mut exported = kimi_linear::convert::export(model, exported)?
            .class(class, model_type)
            .patterns([GATE])
            .set("mla_use_nope", true)
            .set("hidden_act", "situ")
            .set("moe_router_activation_func", "sigmoid")
            .set("moe_renormalize", hyper.bool(key::EXPERT_WEIGHTS_NORM).unwrap_or(false))
            .set("activation_situ_beta", number(model, key::ACTIVATION_SITU_BETA)?)
            .set("activation_situ_linear_beta", number(model, key::ACTIVATION_SITU_LINEAR_BETA)?)
            .set("attn_res_block_size", count(model, key::ATTN_RES_BLOCK_SIZE)?)
            .set_some("routed_expert_hidden_size", count(model, key::EXPERT_LATENT_LENGTH));
        if let Some(bound) = number(model, key::KDA_GATE_LOWER_BOUND) {
            let linear = exported.config.get_mut(kimi_linear::convert::LINEAR_CONFIG)?;
            linear["gate_lower_bound"] = bound.into();
        }
        // The product becomes the norm; the projection is a row of ones.
        let mut products = Map::new();
        for tensor in model.tensors() {
            let name = &*tensor.info.name;
            let found = SCORES
                .iter()
                .find_map(|(module, gguf_name)| Some((*module, captures(gguf_name, name)?)));
            let Some((module, numbers)) = found else { continue };
            let mut bytes = vec![0; usize::try_from(tensor.info.byte_len()?).ok()?];
            tensor.read_at(&mut bytes, 0).ok()?;
            let product = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            let product: Vec<f32> = product.collect();
            let module = filled(module, &numbers);
            products.insert(name.to_owned(), Value::from(product.clone()));
            let row = Shape::new(&[product.len() as u64, 1])?;
            exported = exported.row_of_ones(format!("{module}{SCORE_PROJECTION}"), row);
            exported = exported.vector(format!("{module}{SCORE_NORM}"), product);
            exported.replaced.push(name.to_owned());
        }
        Some(exported.unwritten(PRODUCTS, products.into()))
    }
}
