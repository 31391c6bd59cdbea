#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gguf_kit_fuzz::graph::run(bytes);
});
