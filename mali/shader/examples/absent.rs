// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints operations that the model does not execute, for `docs/reference/isa.md` (`cargo xtask docs`).

use std::collections::BTreeMap;

use mali_isa::Op;
use mali_shader::{Absence, absence};

fn main() {
    let mut rows: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for op in Op::ALL {
        let why = match absence(op.mnemonic()) {
            None => continue,
            Some(Absence::Stage(what)) => ("of another stage", what),
            Some(Absence::Unknown(what)) => ("not public", what),
        };
        let info = op.info();
        let name = format!("`{}{}`", info.unit.mark(), info.name);
        rows.entry(why).or_default().push(name);
    }
    println!("<!-- table: absent -->\n| Operations | Why |\n| --- | --- |");
    for ((kind, what), names) in rows {
        println!("| {} | {kind}: {what} |", names.join(", "));
    }
}
