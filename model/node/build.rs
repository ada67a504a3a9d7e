// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library's own calls of functions that it exports reach its own functions, never those of a library preloaded before it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
