// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the interface version in the shared library's soname.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgpureplay.so.0");
}
