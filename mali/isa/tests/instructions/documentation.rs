// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/isa.md` says what the table says.

#[path = "../../examples/table.rs"]
mod table;

#[test]
fn documentation_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/isa.md");
    let text = std::fs::read_to_string(path).expect("docs/isa.md");
    let renewed = table::renew(&text).expect("markers");
    assert!(
        text == renewed,
        "run `cargo run -p mali-isa --example table docs/isa.md`"
    );
}
