//! Vision and audio encoders with their multimodal projectors.
//!
//! An mmproj file holds them under the architecture `clip`. Each kind of encoder is a table with functions for its
//! differences.

mod audio;
mod cogvlm;
mod configs;
mod consolidated;
mod deepseek4v;
mod deepseek_ocr;
mod dots3;
mod dots_ocr;
mod encoder;
mod gemma3;
mod gemma3n;
mod gemma4;
mod glm4v;
mod granite;
mod granite_speech;
mod hunyuan_vl;
mod idefics3;
mod internvl;
mod janus;
mod kimi;
mod lfm2;
mod lfm2_audio;
mod ling;
mod llama4;
mod mimo;
mod minicpm_v;
mod minimax;
mod muse_glimmer;
mod paddle_ocr;
mod phi4;
mod pixtral;
mod pocket_tts;
mod qwen2_vl;
mod qwen3_tts;
mod qwen3_vl;
mod radio;
mod step3;
mod tensor_names;
mod tensor_types;
mod whisper;
mod youtu;

pub use configs::EncoderConfigs;
pub use encoder::{Encoder, EncoderMapping};
use gguf_checkpoint::config::Config;

/// All encoders.
static ENCODERS: &[&Encoder] = &[
    &gemma3::GEMMA3,
    &gemma3n::GEMMA3N,
    &gemma4::GEMMA4,
    &gemma4::GEMMA4_UNIFIED,
    &qwen2_vl::QWEN2_VL,
    &qwen2_vl::SARASHINA2,
    &qwen2_vl::QWEN2_5_VL,
    &qwen2_vl::QWEN2_5_OMNI,
    &qwen2_vl::EXAONE4_5,
    &qwen3_vl::QWEN3_VL,
    &qwen3_vl::QWEN3_5,
    &qwen3_vl::QWEN3_OMNI,
    &qwen3_vl::QWEN3_ASR,
    &glm4v::GLM4V,
    &glm4v::GLM5_NEXT,
    &idefics3::IDEFICS3,
    &pixtral::PIXTRAL,
    &pixtral::LIGHT_ON_OCR,
    &internvl::INTERNVL,
    &kimi::KIMI_VL,
    &kimi::KIMI_K2_5,
    &kimi::GLM5_V,
    &lfm2::LFM2_VL,
    &llama4::LLAMA4,
    &whisper::QWEN2_AUDIO,
    &whisper::ULTRAVOX,
    &whisper::VOXTRAL,
    &whisper::AUDIO_FLAMINGO,
    &whisper::MERALION,
    &whisper::GLM_ASR,
    &cogvlm::COGVLM,
    &dots_ocr::DOTS_OCR,
    &dots3::DOTS3,
    &muse_glimmer::MUSE_GLIMMER,
    &radio::RADIO,
    &janus::JANUS,
    &youtu::YOUTU,
    &paddle_ocr::PADDLE_OCR,
    &hunyuan_vl::HUNYUAN_VL,
    &minimax::MINIMAX_M3,
    &mimo::MIMO,
    &qwen3_tts::QWEN3_TTS,
    &pocket_tts::POCKET_TTS,
    &deepseek_ocr::DEEPSEEK_OCR,
    &deepseek_ocr::UNLIMITED_OCR,
    &deepseek_ocr::DEEPSEEK_OCR_2,
    &deepseek4v::DEEPSEEK4V,
    &phi4::PHI4,
    &step3::STEP3_VL,
    &minicpm_v::MINICPM_V,
    &ling::LING3_VL,
    &lfm2_audio::LFM2_AUDIO,
    &granite::GRANITE4_VISION,
    &granite_speech::GRANITE_SPEECH,
    &granite_speech::GRANITE_SPEECH_PLUS,
];

/// Returns the encoder of a model in Mistral's own format; `None` for another configuration.
pub fn for_params_json(config: &Config) -> Option<&'static Encoder> {
    let has_one = config.is_params_json() && config.find(&["vision_encoder"]).is_some();
    has_one.then_some(&consolidated::NATIVE)
}

/// Returns the encoder of a class.
pub fn find(class: &str) -> Option<&'static Encoder> {
    ENCODERS.iter().copied().find(|encoder| encoder.classes.contains(&class))
}

/// Returns the class that determines the encoder: the encoder's own class, or else the model's.
pub fn class(config: &Config) -> Option<&str> {
    let own = config.json().get("vision_config").and_then(|part| part.get("architectures"));
    let stated = config.json().get("architectures");
    [own, stated]
        .into_iter()
        .flatten()
        .filter_map(|names| names.get(0)?.as_str())
        .find(|class| find(class).is_some())
}

/// Returns all classes with a known encoder, sorted.
pub fn encoder_classes() -> Vec<&'static str> {
    let mut classes: Vec<_> =
        ENCODERS.iter().flat_map(|encoder| encoder.classes).copied().collect();
    classes.sort_unstable();
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_knows_the_names_of_all_tensors() {
        let all = ENCODERS.iter().copied().chain([&consolidated::NATIVE]);
        let tables = all.flat_map(|encoder| encoder.places.iter());
        let names =
            tables.flat_map(|(_, table)| table.iter().map(|(_, ours)| ours.replace("{}", "0")));
        let unknown: Vec<_> =
            names.filter(|name| !crate::schema::projector::is_known(name)).collect();
        assert_eq!(unknown, [""; 0], "add them to `schema/projector.rs` of the crate `gguf`");
    }
}
