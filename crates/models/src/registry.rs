//! The registry: one row per architecture, sorted by name.
//!
//! A row names the schema, the converters of Hugging Face classes, and the function that builds the
//! computation graph. Architectures that only differ by a row share converters or graphs. A draft model
//! without a graph of its own, a text-to-speech model and `clip` (mmproj files) have none.

#[cfg(feature = "convert")]
use std::path::Path;

#[cfg(feature = "convert")]
use gguf::Error;
#[cfg(feature = "convert")]
use gguf_checkpoint::{Checkpoint, config::Config};

#[cfg(feature = "convert")]
use crate::convert::Converter;
use crate::schema::Architecture;
use crate::*;

/// Function that adds the operations of an architecture to a graph.
#[cfg(feature = "graph")]
pub(crate) type BuildGraph = fn(&mut graph::Builder<'_>) -> Result<(), gguf::Finding>;

/// Registry entry of an architecture.
pub struct Row {
    /// Metadata keys and tensors; its name is the value of `general.architecture`.
    pub schema: &'static Architecture,
    /// Converters of Hugging Face classes. Exports take the first whose `export` accepts the model.
    #[cfg(feature = "convert")]
    pub converters: &'static [&'static dyn Converter],
    /// Builder of the computation graph; `None` if the runtime cannot run the architecture.
    #[cfg(feature = "graph")]
    pub(crate) build_graph: Option<BuildGraph>,
}

macro_rules! rows {
    ($($name:literal: $schema:path, [$($converter:path),*] $(, $graph:path)?;)*) => {
        /// All architectures, sorted by name.
        pub static ROWS: &[Row] = &[
            $(Row {
                schema: &$schema,
                #[cfg(feature = "convert")]
                converters: &[$(&$converter),*],
                #[cfg(feature = "graph")]
                build_graph: rows!(@graph $($graph)?),
            },)*
        ];

        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];
    };
    (@graph) => { None };
    (@graph $graph:path) => { Some($graph) };
}

rows! {
    "afmoe": afmoe::schema::SCHEMA, [afmoe::convert::Afmoe], afmoe::graph::build;
    "apertus": apertus::schema::SCHEMA, [apertus::convert::Apertus], apertus::graph::build;
    "arcee": arcee::schema::SCHEMA, [arcee::convert::Arcee], arcee::graph::build;
    "arctic": arctic::schema::SCHEMA, [arctic::convert::Arctic], arctic::graph::build;
    "arwkv7": arwkv7::schema::SCHEMA, [arwkv7::convert::Arwkv7], arwkv7::graph::build;
    "baichuan": baichuan::schema::SCHEMA, [baichuan::convert::Baichuan], baichuan::graph::build;
    "bailingmoe": bailingmoe::schema::SCHEMA, [bailingmoe::convert::BailingMoe], llama::graph::build;
    "bailingmoe2": bailingmoe2::schema::SCHEMA, [bailingmoe2::convert::BailingMoe2, bailingmoe2::convert::Sarvam], qwen::graph::build;
    "bailingmoe3": bailingmoe3::schema::SCHEMA, [bailingmoe3::convert::BailingMoe3], bailingmoe3::graph::build;
    "bert": bert::schema::SCHEMA, [bert::convert::Bert, bert::convert::Roberta, bert::distilbert::Distilbert], bert::graph::build;
    "bitnet": bitnet::schema::SCHEMA, [bitnet::convert::Bitnet], qwen::graph::build;
    "bloom": bloom::schema::SCHEMA, [bloom::convert::Bloom], gpt2::graph::build;
    "chameleon": chameleon::schema::SCHEMA, [chameleon::convert::Chameleon], chameleon::graph::build;
    "chatglm": chatglm::schema::SCHEMA, [chatglm::convert::Chatglm], llama::graph::build;
    "clip": clip::schema::SCHEMA, [];
    "codeshell": codeshell::schema::SCHEMA, [codeshell::convert::Codeshell], starcoder2::graph::build;
    "cogvlm": cogvlm::schema::SCHEMA, [cogvlm::convert::Cogvlm], qwen::graph::build;
    "cohere2": cohere2::schema::SCHEMA, [cohere2::convert::Cohere2], cohere2::graph::build;
    "cohere2moe": cohere2moe::schema::SCHEMA, [cohere2moe::convert::Cohere2Moe], cohere2moe::graph::build;
    "command-r": command_r::schema::SCHEMA, [command_r::convert::Cohere], command_r::graph::build;
    "dbrx": dbrx::schema::SCHEMA, [dbrx::convert::Dbrx], dbrx::graph::build;
    "deci": deci::schema::SCHEMA, [deci::convert::Deci], deci::graph::build;
    "deepseek": deepseek::schema::SCHEMA, [deepseek::convert::Deepseek], deepseek::graph::build;
    "deepseek2": deepseek2::schema::SCHEMA, [deepseek2::convert::Deepseek2, deepseek2::convert::Glm4MoeLite], deepseek2::graph::build;
    "deepseek2-ocr": deepseek2_ocr::schema::SCHEMA, [deepseek2_ocr::convert::Deepseek2Ocr], deepseek2_ocr::graph::build;
    "deepseek32": deepseek32::schema::SCHEMA, [deepseek32::convert::Deepseek32], deepseek32::graph::build;
    "deepseek4": deepseek4::schema::SCHEMA, [deepseek4::convert::Deepseek4], deepseek4::graph::build;
    "dflash": dflash::schema::SCHEMA, [dflash::convert::Dflash, dflash::convert::Dspark, dflash::deepseek4::Dspark, dflash::muse_glimmer::Assistant, dflash::gemma4::Dspark], dflash::graph::build;
    "dots1": dots1::schema::SCHEMA, [dots1::convert::Dots1], dots1::graph::build;
    "dots3note": dots3note::schema::SCHEMA, [dots3note::convert::Dots3Note], dots3note::graph::build;
    "dream": dream::schema::SCHEMA, [dream::convert::Dream], qwen::graph::build;
    "eagle3": eagle3::schema::SCHEMA, [eagle3::convert::Eagle3], eagle3::graph::build;
    "ernie4_5": ernie4_5::schema::SCHEMA, [ernie4_5::convert::Ernie45], llama::graph::build;
    "ernie4_5-moe": ernie4_5_moe::schema::SCHEMA, [ernie4_5_moe::convert::Ernie45Moe], llama::graph::build;
    "eurobert": eurobert::schema::SCHEMA, [eurobert::convert::Eurobert], eurobert::graph::build;
    "exaone": exaone::schema::SCHEMA, [exaone::convert::Exaone], qwen::graph::build;
    "exaone-moe": exaone_moe::schema::SCHEMA, [exaone_moe::convert::ExaoneMoe], exaone_moe::graph::build;
    "exaone4": exaone4::schema::SCHEMA, [exaone4::convert::Exaone4], exaone4::graph::build;
    "falcon": falcon::schema::SCHEMA, [falcon::convert::Falcon], falcon::graph::build;
    "falcon-h1": falcon_h1::schema::SCHEMA, [falcon_h1::convert::FalconH1], falcon_h1::graph::build;
    "gemma": gemma::schema::SCHEMA, [gemma::convert::Gemma], gemma::graph::build;
    "gemma-embedding": gemma_embedding::schema::SCHEMA, [gemma_embedding::convert::GemmaEmbedding], gemma_embedding::graph::build;
    "gemma2": gemma2::schema::SCHEMA, [gemma2::convert::Gemma2], gemma2::graph::build;
    "gemma3": gemma3::schema::SCHEMA, [gemma3::convert::Gemma3], gemma3::graph::build;
    "gemma3n": gemma3n::schema::SCHEMA, [gemma3n::convert::Gemma3n], gemma3n::graph::build;
    "gemma4": gemma4::schema::SCHEMA, [gemma4::convert::Gemma4], gemma4::graph::build;
    "gemma4-assistant": gemma4_assistant::schema::SCHEMA, [gemma4_assistant::convert::Assistant];
    "glm-dsa": glm_dsa::schema::SCHEMA, [glm_dsa::convert::GlmDsa], glm_dsa::graph::build;
    "glm4": glm4::schema::SCHEMA, [glm4::convert::Glm4], glm4::graph::build;
    "glm4moe": glm4moe::schema::SCHEMA, [glm4moe::convert::Glm4Moe, glm4moe::convert::SolarOpen], seed_oss::graph::build;
    "glm5-next": glm5_next::schema::SCHEMA, [glm5_next::convert::Glm5Next], glm5_next::graph::build;
    "gpt-oss": gpt_oss::schema::SCHEMA, [gpt_oss::convert::GptOss], gpt_oss::graph::build;
    "gpt2": gpt2::schema::SCHEMA, [gpt2::convert::Gpt2, gpt2::convert::Rugpt3xl], gpt2::graph::build;
    "gptj": gptj::schema::SCHEMA, [gptj::convert::Gptj], gptj::graph::build;
    "gptneox": gptneox::schema::SCHEMA, [gptneox::convert::Gptneox], gptneox::graph::build;
    "granite": granite::schema::SCHEMA, [granite::convert::Granite], granite::graph::build;
    "granite_swa": granite_swa::schema::SCHEMA, [granite_swa::convert::GraniteSwa], granite_swa::graph::build;
    "granitehybrid": granitehybrid::schema::SCHEMA, [granitehybrid::convert::GraniteHybrid], granitehybrid::graph::build;
    "granitemoe": granitemoe::schema::SCHEMA, [granitemoe::convert::GraniteMoe], granite::graph::build;
    "graniteswitch": graniteswitch::schema::SCHEMA, [graniteswitch::convert::GraniteSwitch], graniteswitch::graph::build;
    "grok": grok::schema::SCHEMA, [grok::convert::Grok], grok::graph::build;
    "grovemoe": grovemoe::schema::SCHEMA, [grovemoe::convert::GroveMoe], grovemoe::graph::build;
    "hrm_text": hrm_text::schema::SCHEMA, [hrm_text::convert::HrmText], hrm_text::graph::build;
    "hunyuan-dense": hunyuan_dense::schema::SCHEMA, [hunyuan_dense::convert::HunyuanDense], hunyuan_dense::graph::build;
    "hunyuan-moe": hunyuan_moe::schema::SCHEMA, [hunyuan_moe::convert::HunyuanMoe], hunyuan_dense::graph::build;
    "hunyuan_vl": hunyuan_vl::schema::SCHEMA, [hunyuan_vl::convert::HunyuanVl], hunyuan_vl::graph::build;
    "hy_v3": hy_v3::schema::SCHEMA, [hy_v3::convert::HyV3], dots1::graph::build;
    "hy_v4": hy_v4::schema::SCHEMA, [hy_v4::convert::HyV4], hy_v4::graph::build;
    "internlm2": internlm2::schema::SCHEMA, [internlm2::convert::Internlm2], llama::graph::build;
    "jais": jais::schema::SCHEMA, [jais::convert::Jais], jais::graph::build;
    "jais2": jais2::schema::SCHEMA, [jais2::convert::Jais2], jais2::graph::build;
    "jamba": jamba::schema::SCHEMA, [jamba::convert::Jamba], jamba::graph::build;
    "jina-bert-v2": jina_bert_v2::schema::SCHEMA, [jina_bert_v2::convert::JinaBert], jina_bert_v2::graph::build;
    "jina-bert-v3": jina_bert_v3::schema::SCHEMA, [], nomic_bert_moe::graph::build;
    "kimi-k3": kimi_k3::schema::SCHEMA, [kimi_k3::convert::KimiK3], kimi_k3::graph::build;
    "kimi-linear": kimi_linear::schema::SCHEMA, [kimi_linear::convert::KimiLinear], kimi_linear::graph::build;
    "laguna": laguna::schema::SCHEMA, [laguna::convert::Laguna], laguna::graph::build;
    "lfm2": lfm2::schema::SCHEMA, [lfm2::convert::Lfm2, lfm2::convert::Lfm25Tokenizer], lfm2::graph::build;
    "lfm2moe": lfm2moe::schema::SCHEMA, [lfm2moe::convert::Lfm2Moe], lfm2::graph::build;
    "llada": llada::schema::SCHEMA, [llada::convert::Llada], llama_embed::graph::build;
    "llada-moe": llada_moe::schema::SCHEMA, [llada_moe::convert::LladaMoe], qwen2moe::graph::build;
    "llama": llama::schema::SCHEMA, [llama::convert::Llama, llama::internlm3::Internlm3], llama::graph::build;
    "llama-embed": llama_embed::schema::SCHEMA, [llama_embed::convert::LlamaEmbed], llama_embed::graph::build;
    "llama4": llama4::schema::SCHEMA, [llama4::convert::Llama4], llama4::graph::build;
    "maincoder": maincoder::schema::SCHEMA, [maincoder::convert::Maincoder], maincoder::graph::build;
    "mamba": mamba::schema::SCHEMA, [mamba::convert::Mamba], mamba::graph::build;
    "mamba2": mamba2::schema::SCHEMA, [mamba2::convert::Mamba2], mamba2::graph::build;
    "maple": maple::schema::SCHEMA, [maple::convert::Maple], maple::graph::build;
    "mellum": mellum::schema::SCHEMA, [mellum::convert::Mellum], mellum::graph::build;
    "mimo2": mimo2::schema::SCHEMA, [mimo2::convert::Mimo2], mimo2::graph::build;
    "minicpm": minicpm::schema::SCHEMA, [minicpm::convert::Minicpm], minicpm::graph::build;
    "minicpm3": minicpm3::schema::SCHEMA, [minicpm3::convert::Minicpm3], minicpm3::graph::build;
    "minimax-01": minimax_01::schema::SCHEMA, [minimax_01::convert::Minimax01], minimax_01::graph::build;
    "minimax-m2": minimax_m2::schema::SCHEMA, [minimax_m2::convert::MinimaxM2], dots1::graph::build;
    "minimax-m3": minimax_m3::schema::SCHEMA, [minimax_m3::convert::MinimaxM3], minimax_m3::graph::build;
    "mistral3": mistral3::schema::SCHEMA, [mistral3::convert::Mistral3], mistral3::graph::build;
    "mistral4": mistral4::schema::SCHEMA, [mistral4::convert::Mistral4], deepseek2::graph::build;
    "modern-bert": modern_bert::schema::SCHEMA, [modern_bert::convert::ModernBert], modern_bert::graph::build;
    "mpt": mpt::schema::SCHEMA, [mpt::convert::Mpt], mpt::graph::build;
    "muse-glimmer": muse_glimmer::schema::SCHEMA, [muse_glimmer::convert::MuseGlimmer], muse_glimmer::graph::build;
    "nanbeige": nanbeige::schema::SCHEMA, [nanbeige::convert::Nanbeige], nanbeige::graph::build;
    "nemotron": nemotron::schema::SCHEMA, [nemotron::convert::Nemotron], jais2::graph::build;
    "nemotron_h": nemotron_h::schema::SCHEMA, [nemotron_h::convert::NemotronH], nemotron_h::graph::build;
    "nemotron_h_moe": nemotron_h_moe::schema::SCHEMA, [nemotron_h_moe::convert::NemotronHMoe, nemotron_h_moe::convert::NemotronHPuzzle], nemotron_h::graph::build;
    "neo-bert": neo_bert::schema::SCHEMA, [neo_bert::convert::NeoBert], neo_bert::graph::build;
    "nomic-bert": nomic_bert::schema::SCHEMA, [nomic_bert::convert::NomicBert], nomic_bert::graph::build;
    "nomic-bert-moe": nomic_bert_moe::schema::SCHEMA, [], nomic_bert_moe::graph::build;
    "olmo": olmo::schema::SCHEMA, [olmo::convert::Olmo], olmo::graph::build;
    "olmo2": olmo2::schema::SCHEMA, [olmo2::convert::Olmo2], olmo2::graph::build;
    "olmoe": olmoe::schema::SCHEMA, [olmoe::convert::Olmoe], qwen2moe::graph::build;
    "openelm": openelm::schema::SCHEMA, [openelm::convert::Openelm], qwen::graph::build;
    "orion": orion::schema::SCHEMA, [orion::convert::Orion], orion::graph::build;
    "paddleocr": paddleocr::schema::SCHEMA, [paddleocr::convert::Paddleocr], qwen::graph::build;
    "pangu-embedded": pangu_embedded::schema::SCHEMA, [pangu_embedded::convert::PanguEmbedded], qwen::graph::build;
    "phi2": phi2::schema::SCHEMA, [phi2::convert::Phi2], phi2::graph::build;
    "phi3": phi3::schema::SCHEMA, [phi3::convert::Phi3], phi3::graph::build;
    "phimoe": phimoe::schema::SCHEMA, [phimoe::convert::Phimoe], phimoe::graph::build;
    "plamo": plamo::schema::SCHEMA, [plamo::convert::Plamo], plamo::graph::build;
    "plamo2": plamo2::schema::SCHEMA, [plamo2::convert::Plamo2], plamo2::graph::build;
    "plamo3": plamo3::schema::SCHEMA, [plamo3::convert::Plamo3], plamo3::graph::build;
    "plm": plm::schema::SCHEMA, [plm::convert::Plm], plm::graph::build;
    "pockettts": pockettts::schema::SCHEMA, [pockettts::convert::PocketTts];
    "qwen": qwen::schema::SCHEMA, [qwen::convert::Qwen], qwen::graph::build;
    "qwen2": qwen2::schema::SCHEMA, [qwen2::convert::Qwen2], qwen::graph::build;
    "qwen2moe": qwen2moe::schema::SCHEMA, [qwen2moe::convert::Qwen2moe], qwen2moe::graph::build;
    "qwen2vl": qwen2vl::schema::SCHEMA, [qwen2vl::convert::Qwen2vl], qwen::graph::build;
    "qwen3": qwen3::schema::SCHEMA, [qwen3::convert::Qwen3], qwen::graph::build;
    "qwen35": qwen35::schema::SCHEMA, [qwen35::convert::Qwen35], qwen3next::graph::build;
    "qwen35moe": qwen35moe::schema::SCHEMA, [qwen35moe::convert::Qwen35moe], qwen3next::graph::build;
    "qwen3moe": qwen3moe::schema::SCHEMA, [qwen3moe::convert::Qwen3moe], qwen::graph::build;
    "qwen3next": qwen3next::schema::SCHEMA, [qwen3next::convert::Qwen3next], qwen3next::graph::build;
    "qwen3tts": qwen3tts::schema::SCHEMA, [qwen3tts::convert::Qwen3Tts];
    "qwen3vl": qwen3vl::schema::SCHEMA, [qwen3vl::convert::Qwen3vl, qwen3vl::convert::Qwen3asr], qwen::graph::build;
    "qwen3vlmoe": qwen3vlmoe::schema::SCHEMA, [qwen3vlmoe::convert::Qwen3vlmoe, qwen3vlmoe::convert::Qwen3omni], qwen::graph::build;
    "qwen4exp": qwen4exp::schema::SCHEMA, [qwen4exp::convert::Qwen4Exp], qwen4exp::graph::build;
    "refact": refact::schema::SCHEMA, [refact::convert::Refact], refact::graph::build;
    "rnd1": rnd1::schema::SCHEMA, [rnd1::convert::Rnd1], qwen::graph::build;
    "rwkv": rwkv::schema::SCHEMA, [rwkv::convert::Rwkv4], rwkv::graph::build;
    "rwkv6": rwkv6::schema::SCHEMA, [rwkv6::convert::Rwkv6], rwkv6::graph::build;
    "rwkv6qwen2": rwkv6qwen2::schema::SCHEMA, [rwkv6qwen2::convert::Rwkv6Qwen2], rwkv6qwen2::graph::build;
    "rwkv7": rwkv7::schema::SCHEMA, [rwkv7::convert::Rwkv7], rwkv7::graph::build;
    "seed_oss": seed_oss::schema::SCHEMA, [seed_oss::convert::SeedOss], seed_oss::graph::build;
    "smallthinker": smallthinker::schema::SCHEMA, [smallthinker::convert::Smallthinker], smallthinker::graph::build;
    "smollm3": smollm3::schema::SCHEMA, [smollm3::convert::Smollm3], smollm3::graph::build;
    "spark2_5": spark2_5::schema::SCHEMA, [spark2_5::convert::Spark25], spark2_5::graph::build;
    "stablelm": stablelm::schema::SCHEMA, [stablelm::convert::Stablelm], stablelm::graph::build;
    "starcoder": starcoder::schema::SCHEMA, [starcoder::convert::Starcoder], gpt2::graph::build;
    "starcoder2": starcoder2::schema::SCHEMA, [starcoder2::convert::Starcoder2], starcoder2::graph::build;
    "step35": step35::schema::SCHEMA, [step35::convert::Step35], step35::graph::build;
    "t5": t5::schema::SCHEMA, [t5::convert::T5], t5::graph::build;
    "t5encoder": t5encoder::schema::SCHEMA, [t5encoder::convert::T5Encoder], t5encoder::graph::build;
    "talkie": talkie::schema::SCHEMA, [talkie::convert::Talkie], talkie::graph::build;
    "wavtokenizer-dec": wavtokenizer_dec::schema::SCHEMA, [wavtokenizer_dec::convert::Wavtokenizer];
    "whisper": whisper::schema::SCHEMA, [whisper::convert::Whisper], whisper::graph::build;
    "xverse": xverse::schema::SCHEMA, [xverse::convert::Xverse], llama::graph::build;
}

/// Returns the row of an architecture; `None` if the name is not registered.
pub fn row(name: &str) -> Option<&'static Row> {
    let at = ROWS.binary_search_by(|row| row.schema.name.cmp(name)).ok()?;
    ROWS.get(at)
}

/// Returns the configuration of a Pocket TTS checkpoint, which has no config.json: its tensors determine
/// it. `None` for all other checkpoints.
///
/// # Errors
/// If a tensor that determines a size is missing.
#[cfg(feature = "convert")]
pub fn inferred_config(dir: &Path, checkpoint: &Checkpoint) -> Result<Option<Config>, Error> {
    pockettts::convert::configuration(dir, checkpoint)
}

/// Returns the converter of a checkpoint in Mistral's or Meta's format, `params.json` with
/// `consolidated.*`; `None` for other configurations.
///
/// # Errors
/// If the configuration has RoPE scaling without its factors, or an invalid field.
#[cfg(feature = "convert")]
pub fn consolidated_converter(config: &Config) -> Result<Option<&'static dyn Converter>, Error> {
    mistral3::consolidated::find(config)
}

/// Returns the first converter of an architecture.
#[cfg(feature = "convert")]
pub(crate) fn converter(architecture: &str) -> Option<&'static dyn Converter> {
    row(architecture)?.converters.first().copied()
}

/// Returns the architectures that have a computation graph, sorted by name.
#[cfg(feature = "graph")]
pub fn architectures_with_graph() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter(|row| row.build_graph.is_some()).map(|row| row.schema.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rows_are_sorted_and_named_as_their_schemas() {
        assert!(NAMES.is_sorted());
        let names: Vec<_> = ROWS.iter().map(|row| row.schema.name).collect();
        assert_eq!(names, NAMES);
        for name in NAMES {
            assert_eq!(row(name).unwrap().schema.name, *name);
        }
    }

    #[test]
    fn every_architecture_has_exactly_one_folder() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = std::fs::read_dir(source).unwrap().map(|entry| entry.unwrap());
        let mut folders: Vec<_> = folders
            .filter(|entry| entry.path().join("schema.rs").is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        folders.sort_unstable();
        let mut expected: Vec<_> = NAMES.iter().map(|name| name.replace(['-', '.'], "_")).collect();
        expected.sort_unstable();
        assert_eq!(folders, expected);
    }
}
