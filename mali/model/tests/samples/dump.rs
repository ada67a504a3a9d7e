// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of sample kernels at Mesa's submission.

use std::path::Path;
use std::process::Command;

pub(crate) struct Dump {
    pub(crate) chain: u64,
    pub(crate) buffers: Vec<(u64, Vec<u8>)>,
}

impl Dump {
    /// Reads `NAME.trace.txt.xz`: a decoded chain, and hexadecimal dumps without repeated zeros.
    pub(crate) fn read(path: &Path) -> Dump {
        let output = Command::new("xz")
            .arg("-dc")
            .arg(path)
            .output()
            .expect("xz is installed");
        assert!(output.status.success(), "xz cannot read {}", path.display());
        let text = String::from_utf8_lossy(&output.stdout);
        let mut dump = Dump {
            chain: 0,
            buffers: Vec::new(),
        };
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("Job Header (") {
                if dump.chain == 0 {
                    dump.chain =
                        u64::from_str_radix(rest.trim_end_matches("):"), 16).expect("an address");
                }
            } else if let Some(rest) = line.strip_prefix("Buffer: ") {
                let (_, address) = rest.split_once(" gpu ").expect("an address");
                dump.buffers.push((
                    u64::from_str_radix(address.trim(), 16).expect("an address"),
                    Vec::new(),
                ));
            } else if let Some((_, bytes)) = dump.buffers.last_mut() {
                let mut words = line.split_whitespace();
                let Some(offset) = words
                    .next()
                    .and_then(|word| usize::from_str_radix(word, 16).ok())
                else {
                    continue;
                };
                bytes.resize(offset, 0);
                bytes.extend(words.map(|word| u8::from_str_radix(word, 16).expect("a byte")));
            }
        }
        dump.buffers.retain(|(_, bytes)| !bytes.is_empty());
        dump
    }
}
