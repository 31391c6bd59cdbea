//! Conversion and export of each model family.

mod afmoe;
mod apertus;
mod arctic;
mod baichuan;
mod bailing;
mod bert;
mod bitnet;
mod chameleon;
mod codeshell;
mod cohere;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek4;
mod dflash;
mod dots;
mod dream;
mod eagle3;
mod ernie;
mod exaone;
mod falcon;
mod falcon_h1;
mod gemma;
mod gemma4;
mod gemma_embedding;
mod glm;
mod gpt2;
mod gpt_neox;
mod gpt_oss;
mod granite;
mod grok;
mod grove_moe;
mod hrm_text;
mod hunyuan;
mod internlm2;
mod jais;
mod jamba;
mod kimi;
mod laguna;
mod lfm2;
mod llada;
mod llama;
mod llama4;
mod mamba;
mod mellum;
mod mimo;
mod minicpm;
mod minimax;
mod mistral;
mod mistral_native;
mod mpt;
mod muse_glimmer;
mod nemotron;
mod nomic_bert;
mod olmo;
mod openelm;
mod orion;
mod paddle_ocr;
mod phi;
mod pixtral;
mod plamo;
mod pocket_tts;
mod qwen;
mod qwen3_next;
mod qwen3_tts;
mod qwen4_exp;
mod qwen_vl;
mod refact;
mod rwkv;
mod smallthinker;
mod smollm3;
mod spark;
mod stablelm;
mod starcoder;
mod step;
mod t5;
mod talkie;
mod wavtokenizer;
mod whisper;
mod xverse;

use gguf_models::convert::{converters, find};

/// A class of each converter, and the test of its round trip. For a model without an export it is the test of its
/// conversion.
const ROUND_TRIPS: &[(&str, fn())] = &[
    ("AfmoeForCausalLM", afmoe::afmoe_round_trip),
    ("ApertusForCausalLM", apertus::apertus_round_trip),
    ("ArceeForCausalLM", llama::arcee_round_trip),
    ("ArcticForCausalLM", arctic::arctic_round_trip_with_residual_ffn),
    ("BaichuanForCausalLM", baichuan::baichuan_round_trip),
    ("BailingMoeForCausalLM", bailing::bailing_moe_and_v2_round_trip),
    ("BailingMoeV2ForCausalLM", bailing::bailing_moe_and_v2_round_trip),
    ("BailingMoeV3ForCausalLM", bailing::bailing_moe_v3_round_trip),
    ("BertModel", bert::bert_round_trip_with_pooling),
    ("BitnetForCausalLM", bitnet::bitnet_weights_are_ternary),
    ("ChameleonForConditionalGeneration", chameleon::chameleon_and_cogvlm_round_trip),
    ("ChatGLMModel", glm::chatglm_round_trip),
    ("CodeShellForCausalLM", codeshell::codeshell_round_trip),
    ("CogVLMForCausalLM", chameleon::chameleon_and_cogvlm_round_trip),
    ("Cohere2ForCausalLM", cohere::cohere_and_cohere2_round_trip),
    ("Cohere2MoeForCausalLM", cohere::cohere2_moe_round_trip),
    ("CohereForCausalLM", cohere::cohere_and_cohere2_round_trip),
    ("DFlashDraftModel", dflash::dflash_round_trip),
    ("DbrxForCausalLM", dbrx::dbrx_round_trip),
    ("DeciLMForCausalLM", deci::deci_round_trip),
    ("DeepseekForCausalLM", deepseek::deepseek_round_trip),
    ("DeepseekOCRForCausalLM", deepseek::deepseek_ocr_round_trip),
    ("DeepseekV2ForCausalLM", deepseek::deepseek_v2_round_trip),
    ("DeepseekV32ForCausalLM", deepseek::mla_models_with_mtp_layer_round_trip),
    ("DeepseekV4DSparkModel", deepseek4::dspark_draft_round_trip),
    ("DeepseekV4ForCausalLM", deepseek4::deepseek4_round_trip),
    ("DistilBertModel", bert::distilbert_round_trip),
    ("Dots1ForCausalLM", dots::dots1_round_trip),
    ("Dots3NoteTextForCausalLM", dots::dots3_note_round_trip),
    ("DreamModel", dream::dream_and_rnd1_round_trip_with_mask_token),
    ("Ernie4_5ForCausalLM", ernie::ernie4_5_round_trip),
    ("Ernie4_5_MoeForCausalLM", ernie::ernie4_5_moe_round_trip),
    ("EuroBertModel", bert::eurobert_and_modernbert_round_trip),
    ("Exaone4ForCausalLM", exaone::exaone4_round_trip),
    ("ExaoneForCausalLM", exaone::exaone_round_trip),
    ("ExaoneMoEForCausalLM", exaone::exaone_moe_and_4_5_mtp_layer_round_trip),
    ("FalconForCausalLM", falcon::falcon_round_trip_in_every_layout),
    ("FalconH1ForCausalLM", falcon_h1::falcon_h1_round_trip),
    (
        "GPTBigCodeForCausalLM",
        starcoder::starcoder_round_trip_with_multi_query_and_multi_head_attention,
    ),
    ("GPTNeoXForCausalLM", gpt_neox::gpt_neox_round_trip),
    ("GPTRefactForCausalLM", refact::refact_round_trip),
    ("Gemma2ForCausalLM", gemma::gemma_gemma2_and_gemma3_round_trip),
    ("Gemma3ForCausalLM", gemma::gemma_gemma2_and_gemma3_round_trip),
    ("Gemma3TextModel", gemma_embedding::dense_modules_round_trip),
    ("Gemma3nForCausalLM", gemma::gemma3n_round_trip),
    ("Gemma4AssistantForCausalLM", gemma4::gemma4_assistant_exports_its_tensors),
    ("Gemma4DSparkModel", dflash::dspark_gemma4_has_no_export),
    ("Gemma4ForCausalLM", gemma4::gemma4_exports_its_tensors),
    ("GemmaForCausalLM", gemma::gemma_gemma2_and_gemma3_round_trip),
    ("Glm4ForCausalLM", glm::glm4_round_trip),
    ("Glm4MoeForCausalLM", glm::glm4_moe_round_trip),
    ("Glm4MoeLiteForCausalLM", deepseek::mla_models_with_mtp_layer_round_trip),
    ("Glm5NextForConditionalGeneration", glm::glm5_next_round_trip),
    ("GlmMoeDsaForCausalLM", deepseek::mla_models_with_mtp_layer_round_trip),
    ("GptOssForCausalLM", gpt_oss::gpt_oss_round_trip),
    ("GraniteForCausalLM", granite::granite_and_granite_moe_round_trip),
    ("GraniteMoeForCausalLM", granite::granite_and_granite_moe_round_trip),
    ("GraniteMoeHybridForCausalLM", granite::granite_hybrid_and_bamba_round_trip),
    ("GraniteSWAForCausalLM", granite::granite_swa_round_trip),
    ("GraniteSwitchForCausalLM", granite::granite_switch_round_trip),
    ("Grok1ForCausalLM", grok::grok1_and_grok2_round_trip),
    ("GroveMoeForCausalLM", grove_moe::grove_moe_round_trip),
    ("HYV3ForCausalLM", hunyuan::hy_v3_round_trip),
    ("HYV4ForCausalLM", hunyuan::hy_v4_round_trip),
    ("HrmTextForCausalLM", hrm_text::hrm_text_round_trip),
    ("HunYuanDenseV1ForCausalLM", hunyuan::hunyuan_dense_round_trip_with_dynamic_rope_scaling),
    ("HunYuanMoEV1ForCausalLM", hunyuan::hunyuan_moe_round_trip_with_expert_counts_per_layer),
    (
        "HunYuanVLForConditionalGeneration",
        paddle_ocr::paddle_ocr_and_hunyuan_vl_round_trip_with_rope_sections,
    ),
    ("InternLM2ForCausalLM", internlm2::internlm2_round_trip),
    ("InternLM3ForCausalLM", llama::nanbeige_internlm3_and_pangu_round_trip),
    ("JAISLMHeadModel", jais::jais_round_trip_with_alibi_slopes),
    ("Jais2ForCausalLM", jais::jais2_round_trip),
    ("JambaForCausalLM", jamba::jamba_round_trip),
    ("JinaBertModel", bert::neobert_and_jina_bert_round_trip),
    ("KimiK3ForConditionalGeneration", kimi::kimi_k3_folds_residual_norm_into_score),
    ("KimiLinearForCausalLM", kimi::kimi_linear_round_trip),
    ("LLaDAMoEModelLM", llada::llada_moe_round_trip),
    ("LLaDAModelLM", llada::llada_round_trip),
    ("LagunaForCausalLM", laguna::laguna_round_trip),
    ("Lfm25AudioTokenizer", lfm2::lfm2_5_audio_tokenizer_round_trip),
    ("Lfm2ForCausalLM", lfm2::lfm2_and_lfm2_moe_round_trip),
    ("Lfm2MoeForCausalLM", lfm2::lfm2_and_lfm2_moe_round_trip),
    ("Llama4ForCausalLM", llama4::llama4_round_trip),
    ("LlamaBidirectionalModel", llama::llama_bidirectional_seed_oss_and_maincoder_round_trip),
    ("LlamaForCausalLM", llama::llama_round_trip_with_biases_and_head_dim),
    ("LlamaForCausalLMEagle3", eagle3::eagle3_round_trip),
    ("MPTForCausalLM", mpt::mpt_round_trip),
    ("MaincoderForCausalLM", llama::llama_bidirectional_seed_oss_and_maincoder_round_trip),
    ("Mamba2ForCausalLM", mamba::mamba2_round_trip),
    ("MambaForCausalLM", mamba::mamba_and_falcon_mamba_round_trip),
    ("MapleForCausalLM", mellum::mellum_and_maple_round_trip),
    ("MellumForCausalLM", mellum::mellum_and_maple_round_trip),
    ("MiMoV2FlashForCausalLM", mimo::mimo_v2_flash_round_trip),
    ("MiniCPM3ForCausalLM", minicpm::minicpm3_and_plm_round_trip),
    ("MiniCPMForCausalLM", minicpm::minicpm_round_trip),
    ("MiniMaxM2ForCausalLM", minimax::minimax_m2_round_trip_with_partial_rope),
    ("MiniMaxM3SparseForCausalLM", minimax::minimax_m3_round_trip),
    ("MiniMaxText01ForCausalLM", minimax::minimax_text_01_round_trip),
    ("Ministral3ForCausalLM", mistral::ministral3_round_trip_with_attention_temperature),
    ("Mistral3ForConditionalGeneration", mistral::ministral3_round_trip_with_attention_temperature),
    ("ModernBertModel", bert::eurobert_and_modernbert_round_trip),
    ("MuseGlimmerAssistantModel", dflash::muse_glimmer_assistant_exports_as_dflash),
    ("MuseGlimmerForConditionalGeneration", muse_glimmer::muse_glimmer_round_trip),
    ("NanbeigeForCausalLM", llama::nanbeige_internlm3_and_pangu_round_trip),
    ("NemotronForCausalLM", nemotron::nemotron_round_trip),
    ("NemotronHForCausalLM", nemotron::nemotron_h_round_trip),
    ("NemotronHPuzzleForCausalLM", nemotron::nemotron_h_puzzle_round_trip),
    ("NeoBERT", bert::neobert_and_jina_bert_round_trip),
    ("NomicBertModel", nomic_bert::nomic_bert_round_trip),
    ("Olmo2ForCausalLM", olmo::olmo_olmo2_and_olmo3_round_trip),
    ("OlmoForCausalLM", olmo::olmo_olmo2_and_olmo3_round_trip),
    ("OlmoeForCausalLM", olmo::olmoe_round_trip),
    ("OpenELMForCausalLM", openelm::openelm_round_trip),
    ("OrionForCausalLM", orion::orion_round_trip),
    ("PLMForCausalLM", minicpm::minicpm3_and_plm_round_trip),
    (
        "PaddleOCRVLForConditionalGeneration",
        paddle_ocr::paddle_ocr_and_hunyuan_vl_round_trip_with_rope_sections,
    ),
    ("PanguEmbeddedForCausalLM", llama::nanbeige_internlm3_and_pangu_round_trip),
    ("Phi3ForCausalLM", phi::phi3_round_trip_with_longrope),
    ("PhiForCausalLM", phi::phi2_round_trip),
    ("PhiMoEForCausalLM", phi::phi_moe_round_trip),
    ("Plamo2ForCausalLM", plamo::plamo2_round_trip),
    ("Plamo3ForCausalLM", plamo::plamo3_round_trip),
    ("PlamoForCausalLM", plamo::plamo_round_trip),
    ("PocketTTSModel", pocket_tts::flow_lm_converts_without_export),
    ("QWenLMHeadModel", qwen::qwen_counts_gate_and_up_in_intermediate_size),
    ("Qwen2ForCausalLM", llama::rope_scaling_types_round_trip),
    ("Qwen2MoeForCausalLM", qwen::qwen2_moe_and_qwen3_moe_round_trip),
    ("Qwen2VLForConditionalGeneration", qwen_vl::qwen2_vl_round_trip_with_mrope_sections),
    ("Qwen3ASRForConditionalGeneration", qwen_vl::qwen3_asr_and_omni_export_as_qwen3_vl),
    ("Qwen3DSparkModel", dflash::dspark_qwen3_round_trip),
    ("Qwen3ForCausalLM", qwen::qwen3_round_trip),
    ("Qwen3MoeForCausalLM", qwen::qwen2_moe_and_qwen3_moe_round_trip),
    ("Qwen3NextForCausalLM", qwen3_next::qwen3_next_and_qwen3_5_round_trip),
    ("Qwen3OmniMoeForConditionalGeneration", qwen_vl::qwen3_asr_and_omni_export_as_qwen3_vl),
    ("Qwen3TTSForConditionalGeneration", qwen3_tts::talker_embeds_projected_text_and_codec_tokens),
    ("Qwen3VLForConditionalGeneration", qwen_vl::qwen3_vl_and_qwen3_vl_moe_round_trip),
    ("Qwen3VLMoeForConditionalGeneration", qwen_vl::qwen3_vl_and_qwen3_vl_moe_round_trip),
    ("Qwen3_5ForCausalLM", qwen3_next::qwen3_next_and_qwen3_5_round_trip),
    ("Qwen3_5MoeForCausalLM", qwen3_next::qwen3_next_and_qwen3_5_round_trip),
    ("Qwen4ExpForCausalLM", qwen4_exp::hyper_connections_and_ngram_embedding_round_trip),
    ("RND1", dream::dream_and_rnd1_round_trip_with_mask_token),
    ("RWKV6Qwen2ForCausalLM", rwkv::rwkv6_qwen2_round_trip),
    ("RWKV7ForCausalLM", rwkv::rwkv7_round_trip),
    ("RobertaModel", bert::roberta_round_trip_restores_position_offset),
    ("RuGPT3XLForCausalLM", gpt2::rugpt3xl_fuses_query_key_and_value),
    ("Rwkv6ForCausalLM", rwkv::rwkv6_round_trip),
    ("RwkvForCausalLM", rwkv::rwkv4_round_trip),
    ("RwkvHybridForCausalLM", rwkv::rwkv_hybrid_round_trip_with_and_without_gate),
    ("SarvamMoEForCausalLM", bailing::sarvam_moe_centers_router_bias),
    ("SeedOssForCausalLM", llama::llama_bidirectional_seed_oss_and_maincoder_round_trip),
    ("SmallThinkerForCausalLM", smallthinker::smallthinker_round_trip),
    ("SmolLM3ForCausalLM", smollm3::smollm3_round_trip),
    ("SolarOpenForCausalLM", glm::solar_open_exports_as_glm4_moe),
    ("Spark2_5ForCausalLM", spark::spark2_5_round_trip),
    ("StableLmForCausalLM", stablelm::stablelm_round_trip_with_norms_per_head),
    ("Starcoder2ForCausalLM", starcoder::starcoder2_round_trip),
    ("Step3p5ForCausalLM", step::step3_5_round_trip),
    ("T5EncoderModel", t5::t5_encoder_round_trip),
    ("T5ForConditionalGeneration", t5::t5_round_trip_with_plain_and_gated_ffn),
    ("TalkieForCausalLM", talkie::talkie_round_trip),
    ("WavTokenizerDec", wavtokenizer::wavtokenizer_round_trip),
    (
        "WhisperForConditionalGeneration",
        whisper::whisper_round_trip_with_different_encoder_and_decoder,
    ),
    ("XverseForCausalLM", xverse::xverse_round_trip_without_token_scores),
];

/// Classes whose round trip `reference_round_trips.rs` tests with checkpoints of the reference data.
const REFERENCE_ROUND_TRIPS: [&str; 3] = ["BloomForCausalLM", "GPT2LMHeadModel", "GPTJForCausalLM"];

#[test]
fn every_converter_has_a_round_trip_test() {
    let tested: Vec<_> =
        ROUND_TRIPS.iter().map(|(class, _)| *class).chain(REFERENCE_ROUND_TRIPS).collect();
    let unknown: Vec<_> = tested.iter().filter(|class| find(class).is_none()).collect();
    assert_eq!(unknown, [&""; 0], "no converter has these classes");
    let untested: Vec<_> = converters()
        .map(|converter| converter.description().classes)
        .filter(|classes| !classes.is_empty() && !classes.iter().any(|c| tested.contains(c)))
        .collect();
    assert_eq!(untested, [&[""; 0]; 0], "add a test to ROUND_TRIPS");
}
