// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the library the driver's name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
