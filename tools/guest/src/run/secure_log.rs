// SPDX-License-Identifier: MIT OR Apache-2.0
//! The secure world's log.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

const LINES: usize = 40;

/// OP-TEE logs errors only (level 1). TF-A and OP-TEE word panics differently.
pub(crate) fn is_complaint(line: &str) -> bool {
    ["E/", "F/"].iter().any(|start| line.starts_with(start))
        || ["anic", "abort", "PANIC", "ASSERT"]
            .iter()
            .any(|word| line.contains(word))
}

/// TF-A says it if QEMU outlives the power-off.
pub(crate) const LATE_POWER_OFF: &str = "PANIC at PC";

pub(crate) struct SecureLog {
    path: PathBuf,
    read: u64,
    rest: String,
    found: Vec<String>,
}

impl SecureLog {
    pub(crate) fn new(path: PathBuf) -> SecureLog {
        SecureLog {
            path,
            read: 0,
            rest: String::new(),
            found: Vec::new(),
        }
    }

    pub(crate) fn look(&mut self) -> &[String] {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)
        });
        self.read += read.unwrap_or(0) as u64;
        self.take(&String::from_utf8_lossy(&bytes));
        &self.found
    }

    fn take(&mut self, text: &str) {
        self.rest.push_str(text);
        while let Some((line, rest)) = self.rest.split_once('\n') {
            let line = line.trim_end();
            let counts = !self.found.is_empty() || is_complaint(line);
            if counts && self.found.len() < LINES {
                self.found.push(line.to_owned());
            }
            self.rest = rest.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_seen_in_whole_lines() {
        let mut log = SecureLog::new(PathBuf::new());
        log.take("NOTICE:  BL31: v2.12.1\r\nE/T");
        assert!(log.found.is_empty());
        log.take("C:0 0 user TA data-abort at address 0x0\r\nregisters\r\n");
        assert_eq!(
            log.found,
            ["E/TC:0 0 user TA data-abort at address 0x0", "registers"]
        );
    }

    #[test]
    fn what_is_a_complaint() {
        for line in [
            "E/TC:? 0 TA panicked with code 0xffff0006",
            "E/LD:  Status of TA 3d6f5c1e",
            "E/TA:  something",
            "PANIC in EL3.",
            "ASSERT: lib/xlat_tables",
            "Core data-abort at address 0x8",
        ] {
            assert!(is_complaint(line), "{line}");
        }
        for line in [
            "NOTICE:  Booting Trusted Firmware",
            "NOTICE:  BL2: v2.12.1(release):2.12.1+dfsg-1",
            "I/TC: OP-TEE version: 4.10.0",
            "",
        ] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
