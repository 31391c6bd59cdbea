//! The graphs of architectures, one file per family.

mod baichuan;
mod bert;
mod command_r;
mod dbrx;
mod deci;
mod deepseek;
mod exaone;
mod falcon;
mod gemma;
mod gemma3n;
mod gemma4;
mod glm;
mod gpt;
mod gpt_oss;
mod granite;
mod grok;
mod grove;
mod hunyuan4;
mod hybrid;
mod indexed;
mod kimi;
mod lfm2;
mod llama;
mod llama4;
mod mamba;
mod minimax;
mod minimax_01;
mod mistral;
mod olmo;
mod phi;
mod plamo2;
mod qwen;
mod qwen4_exp;
mod qwen_next;
mod routed_before;
mod rwkv;
mod rwkv_qwen;
mod singular;
mod smollm3;
mod squared;
mod stablelm;
mod t5;
mod turned_first;
mod whisper;
mod windowed;

use gguf::Finding;

use crate::build::Builder;

/// What puts the operations of an architecture together.
type Family = fn(&mut Builder<'_>) -> Result<(), Finding>;

/// All architectures that a graph can be built for, and how.
const FAMILIES: &[(&str, Family)] = &[
    ("llama", llama::llama),
    ("llama4", llama4::llama4),
    ("smollm3", smollm3::smollm3),
    ("granite", granite::granite),
    ("granitemoe", granite::granite),
    ("minicpm", granite::minicpm),
    ("internlm2", llama::llama),
    ("baichuan", baichuan::baichuan),
    ("gpt2", gpt::gpt2),
    ("gptj", gpt::gptj),
    ("gptneox", gpt::gptneox),
    ("bloom", gpt::gpt2),
    ("mpt", gpt::mpt),
    ("starcoder", gpt::gpt2),
    ("starcoder2", gpt::starcoder2),
    ("gpt-oss", gpt_oss::gpt_oss),
    ("falcon", falcon::falcon),
    ("stablelm", stablelm::stablelm),
    ("phi2", phi::phi2),
    ("phi3", phi::phi3),
    ("qwen2", qwen::qwen),
    ("qwen2moe", qwen::qwen2moe),
    ("qwen3", qwen::qwen),
    ("qwen3moe", qwen::qwen),
    ("gemma", gemma::gemma),
    ("gemma2", gemma::gemma2),
    ("gemma3", gemma::gemma3),
    ("gemma-embedding", gemma::embedding),
    ("olmo", olmo::olmo),
    ("olmo2", olmo::olmo2),
    ("command-r", command_r::command_r),
    ("cohere2", command_r::cohere2),
    ("chatglm", llama::llama),
    ("glm4", glm::glm4),
    ("deepseek2", deepseek::deepseek2),
    ("mistral4", deepseek::deepseek2),
    ("mamba", mamba::mamba),
    ("mamba2", mamba::mamba2),
    ("rwkv", rwkv::rwkv4),
    ("rwkv6", rwkv::rwkv6),
    ("rwkv7", rwkv::rwkv7),
    ("whisper", whisper::whisper),
    ("bert", bert::bert),
    ("nomic-bert", bert::nomic),
    ("nomic-bert-moe", bert::plain_rotated),
    ("jina-bert-v2", bert::jina2),
    ("jina-bert-v3", bert::plain_rotated),
    ("llama-embed", llama::embed),
    ("mistral3", mistral::mistral3),
    ("ernie4_5", llama::llama),
    ("ernie4_5-moe", llama::llama),
    ("deepseek", llama::deepseek),
    ("bailingmoe", llama::llama),
    ("bailingmoe2", qwen::qwen),
    ("arcee", squared::arcee),
    ("jais2", squared::with_variance),
    ("nemotron", squared::with_variance),
    ("plm", deepseek::plm),
    ("maincoder", turned_first::maincoder),
    ("hunyuan-dense", turned_first::hunyuan),
    ("orion", gpt::orion),
    ("codeshell", gpt::starcoder2),
    ("seed_oss", qwen::norm_after_attention),
    ("qwen2vl", qwen::qwen),
    ("qwen3vl", qwen::qwen),
    ("qwen3vlmoe", qwen::qwen),
    ("dream", qwen::qwen),
    ("rnd1", qwen::qwen),
    ("llada-moe", qwen::qwen2moe),
    ("olmoe", qwen::qwen2moe),
    ("dots1", qwen::sigmoid_experts),
    ("minimax-m2", qwen::sigmoid_experts),
    ("exaone", qwen::qwen),
    ("exaone4", exaone::exaone4),
    ("exaone-moe", exaone::k_exaone),
    ("glm4moe", qwen::norm_after_attention),
    ("openelm", qwen::qwen),
    ("pangu-embedded", qwen::qwen),
    ("dbrx", dbrx::dbrx),
    ("lfm2", lfm2::lfm2),
    ("lfm2moe", lfm2::lfm2),
    ("qwen3next", qwen_next::qwen_next),
    ("qwen35", qwen_next::qwen_next),
    ("qwen35moe", qwen_next::qwen_next),
    ("qwen4exp", qwen4_exp::qwen4_exp),
    ("nemotron_h", hybrid::nemotron_h),
    ("nemotron_h_moe", hybrid::nemotron_h),
    ("granitehybrid", hybrid::granite),
    ("jamba", hybrid::jamba),
    ("falcon-h1", hybrid::falcon_h1),
    ("plamo2", plamo2::plamo2),
    ("kimi-linear", kimi::kimi_linear),
    ("kimi-k3", kimi::kimi_k3),
    ("bailingmoe3", kimi::ling3),
    ("rwkv6qwen2", rwkv_qwen::rwkv6),
    ("arwkv7", rwkv_qwen::rwkv7),
    ("minimax-01", minimax_01::minimax_01),
    ("eurobert", bert::euro),
    ("modern-bert", bert::modern),
    ("neo-bert", bert::neo),
    ("gemma3n", gemma3n::gemma3n),
    ("gemma4", gemma4::gemma4),
    ("phimoe", phi::phimoe),
    ("afmoe", windowed::afmoe),
    ("mellum", windowed::mellum),
    ("maple", windowed::maple),
    ("spark2_5", windowed::spark),
    ("plamo3", windowed::plamo3),
    ("mimo2", windowed::mimo2),
    ("step35", windowed::step35),
    ("laguna", windowed::laguna),
    ("muse-glimmer", windowed::muse_glimmer),
    ("smallthinker", routed_before::smallthinker),
    ("arctic", routed_before::arctic),
    ("minicpm3", deepseek::minicpm3),
    ("hunyuan-moe", turned_first::hunyuan),
    ("hunyuan_vl", turned_first::hunyuan_seeing),
    ("hy_v3", qwen::sigmoid_experts),
    ("hy_v4", hunyuan4::hunyuan4),
    ("deepseek32", indexed::deepseek32),
    ("glm-dsa", indexed::glm_dsa),
    ("dots3note", indexed::dots3),
    ("minimax-m3", minimax::minimax_m3),
    ("grok", grok::grok),
    ("grovemoe", grove::grove),
    ("deci", deci::deci),
    ("llada", llama::embed),
    ("cohere2moe", command_r::cohere2moe),
    ("granite_swa", granite::windowed),
    ("apertus", singular::apertus),
    ("refact", singular::refact),
    ("jais", singular::jais),
    ("chameleon", singular::chameleon),
    ("talkie", singular::talkie),
    ("nanbeige", singular::nanbeige),
    ("hrm_text", singular::hrm),
    ("bitnet", qwen::qwen),
    ("qwen", qwen::qwen),
    ("paddleocr", qwen::qwen),
    ("cogvlm", qwen::qwen),
    ("xverse", llama::llama),
    ("deepseek2-ocr", llama::deepseek_ocr),
    ("plamo", gpt::plamo),
    ("t5", t5::t5),
    ("t5encoder", t5::encoder),
];

/// The family of an architecture.
pub(crate) fn of(architecture: &str) -> Option<Family> {
    FAMILIES.iter().find(|(name, _)| *name == architecture).map(|(_, family)| *family)
}

/// The architectures that a graph can be built for.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name)
}
