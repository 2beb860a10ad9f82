#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    holm_fuzz::flows(data);
});
