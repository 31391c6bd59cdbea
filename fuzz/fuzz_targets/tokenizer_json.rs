#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gguf_fuzz::vocabulary::json(bytes);
});
