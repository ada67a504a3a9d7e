// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trusted application's interface: `../pta/gpureplay_tee.h`, compared by a test.

/// UUID in the driver's byte order.
pub(crate) const APPLICATION: [u8; 16] = [
    0x3d, 0x6f, 0x5c, 0x1e, 0x7a, 0x42, 0x4c, 0x0b, 0x9e, 0x57, 0x21, 0x8d, 0xb4, 0x60, 0xfe, 0x13,
];

pub(crate) const LOAD: u32 = 0;
pub(crate) const RUN: u32 = 2;
pub(crate) const UNLOAD: u32 = 3;

/// Per run.
pub const MOST_TENSORS: usize = 32;
/// Of a pack.
pub const MOST_RECORDING_BYTES: usize = 2 << 20;
/// Of a run's inputs, and of its outputs, with 8 bytes of header for each tensor.
pub const MOST_TENSOR_BYTES: usize = 1 << 20;

/// GlobalPlatform's answers.
pub(crate) mod answer {
    pub(crate) const CANCELLED: u32 = 0xffff_0002;
    pub(crate) const ACCESS_DENIED: u32 = 0xffff_0001;
    pub(crate) const BAD_PARAMETERS: u32 = 0xffff_0006;
    pub(crate) const ITEM_NOT_FOUND: u32 = 0xffff_0008;
    pub(crate) const NO_DATA: u32 = 0xffff_000b;
    pub(crate) const OUT_OF_MEMORY: u32 = 0xffff_000c;
    pub(crate) const BUSY: u32 = 0xffff_000d;
    pub(crate) const COMMUNICATION: u32 = 0xffff_000e;
    pub(crate) const SECURITY: u32 = 0xffff_000f;
    pub(crate) const SIGNATURE_INVALID: u32 = 0xffff_3072;
    pub(crate) const UNSUPPORTED_VERSION: u32 = 0xf010_0005;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(header: &str, words: &str) -> u64 {
        let (_, after) = header.split_once(words).unwrap();
        let text: String = after
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .chars()
            .take_while(|c| c.is_ascii_hexdigit() || *c == 'x')
            .collect();
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    }

    #[test]
    fn the_header_says_the_same() {
        let header = include_str!("../../../optee/pta/gpureplay_tee.h");
        for (name, command) in [("LOAD", LOAD), ("RUN", RUN), ("UNLOAD", UNLOAD)] {
            let words = format!("\tGPUREPLAY_TEE_{name} = ");
            assert_eq!(number(header, &words), command.into(), "{name}");
        }
        assert_eq!(number(header, "GPUREPLAY_TEE_TENSORS"), MOST_TENSORS as u64);
        for (name, bytes) in [
            ("RECORDING", MOST_RECORDING_BYTES),
            ("TENSOR", MOST_TENSOR_BYTES),
        ] {
            let words = format!("GPUREPLAY_TEE_{name}_BYTES (");
            let shift = header.split_once(&words).unwrap().1;
            let value = number(header, &words) << number(shift, "<<");
            assert_eq!(value, bytes as u64, "{name}");
        }
        let identity = header.split_once("GPUREPLAY_TA_UUID").unwrap().1;
        let identity = identity.split_once("/*").unwrap().0;
        let digits: String = identity
            .split("0x")
            .skip(1)
            .fold(String::new(), |all, part| {
                let digits = part.chars().take_while(char::is_ascii_hexdigit);
                all + &digits.collect::<String>()
            });
        let ours: String = APPLICATION
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(digits, ours);
    }
}
