// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches seen by hooks and CUPTI, to find missed ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use crate::guard;
use crate::say::tell;
use crate::settings::settings;

/// By hooks, by CUPTI.
static TALLY: Mutex<BTreeMap<Arc<str>, [u64; 2]>> = Mutex::new(BTreeMap::new());

pub(crate) fn is_on() -> bool {
    settings().strict.is_some()
}

fn add(name: &str, column: usize) {
    let mut tally = guard::lock(&TALLY);
    match tally.get_mut(name) {
        Some(row) => row[column] += 1,
        None => {
            let mut row = [0; 2];
            row[column] = 1;
            tally.insert(name.into(), row);
        }
    }
}

pub(crate) fn seen(name: &Arc<str>) {
    add(name, 0);
}

pub(crate) fn ran(name: &str) {
    if is_on() {
        add(name, 1);
    }
}

pub(crate) fn finish(has_cupti: bool) {
    let Some(folder) = &settings().strict else {
        return;
    };
    let mut text = String::new();
    if has_cupti {
        for (name, [hooks, cupti]) in &*guard::lock(&TALLY) {
            let _ = writeln!(text, "{}\t{hooks}\t{cupti}", name.replace('\t', " "));
        }
    } else {
        text.push_str("no CUPTI\n");
    }
    tell(folder, &text);
}
