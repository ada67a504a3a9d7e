// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a static program where no recording has memory: without this, code and heap would lie in the low gigabytes.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo:rustc-link-arg-bins=-Wl,-Ttext-segment=0x5500000000");
    }
}
