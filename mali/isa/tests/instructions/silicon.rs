// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders of Arm's compiler from a Mali-G71; operations that Mesa lacks occur as counted independently.

use mali_isa::{
    DecodeError, EvidenceSource, Op, Product, Shader, Unit, WORD_BYTES, decode_clause,
    encode_clause,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAGE: u64 = 4096;

struct Recording {
    pages: BTreeMap<u64, Vec<u8>>,
    heads: Vec<u64>,
}

impl Recording {
    fn load(folder: &Path) -> Recording {
        let contents = fs::read(folder.join("gr_mem_contents")).unwrap();
        let mut pages = BTreeMap::new();
        let mut at = 0;
        // Regions: start, end, pages (u64 each), flags (u32), stored (u8); then address, physical address, bytes.
        while let Some(region) = contents.get(at..at + 29) {
            let count = u64::from_le_bytes(region[16..24].try_into().unwrap());
            at += 29;
            if region[28] == 0 {
                continue;
            }
            for _ in 0..count {
                let Some(page) = contents.get(at..at + 16 + PAGE as usize) else {
                    break;
                };
                pages.insert(
                    u64::from_le_bytes(page[..8].try_into().unwrap()),
                    page[16..].to_vec(),
                );
                at += 16 + PAGE as usize;
            }
        }
        // Register history: time, R or W, offset, value; HEAD_NEXT is written in two halves.
        let (mut low, mut heads) = (0, Vec::new());
        for line in fs::read_to_string(folder.join("gr_io_history"))
            .unwrap()
            .lines()
        {
            let part: Vec<&str> = line.split(',').map(str::trim).collect();
            let number =
                |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            match (part[1], number(part[2])) {
                ("W", 0x18c0) => low = number(part[3]),
                ("W", 0x18c4) => heads.push(number(part[3]) << 32 | low),
                _ => {}
            }
        }
        Recording { pages, heads }
    }

    fn word(&self, address: u64) -> Option<[u8; WORD_BYTES]> {
        let page = self.pages.get(&(address & !(PAGE - 1)))?;
        let at = (address & (PAGE - 1)) as usize;
        page.get(at..at + WORD_BYTES)?.try_into().ok()
    }

    fn address(&self, at: u64) -> u64 {
        let word = self
            .word(at & !15)
            .expect("a descriptor that is not stored");
        u64::from_le_bytes(word[(at & 8) as usize..][..8].try_into().unwrap())
    }

    fn shader(&self, job: u64) -> (u64, Shader) {
        let state = self.address(job + 0x78);
        let code = self.address(state & !63) & !15;
        let shader = Shader::decode_with(|offset| {
            self.word(code + u64::from(offset))
                .ok_or(DecodeError::Truncated {
                    offset: offset as usize,
                })
        });
        (
            code,
            shader.unwrap_or_else(|e| panic!("shader {code:#x} of job {job:#x}: {e}")),
        )
    }
}

/// Operations known from these recordings only, as another tool counted them.
const SILICON: [(&str, usize, usize); 32] = [
    ("*F32_TO_S32", 0, 2),
    ("*FMAX.f32", 39, 99),
    ("*ICLAMP.s32", 26, 65),
    ("*ICMP.i32", 1, 6),
    ("*ICMP.s32", 2, 0),
    ("*ICMP.u32", 6, 4),
    ("*ICMP.v2i16", 0, 1),
    ("*ICMP.v2u16", 0, 4),
    ("*ICMP.v4i8", 0, 3),
    ("*ICMPI.i32", 3, 9),
    ("*IMAD.i32", 20, 53),
    ("*IMAD.i64", 82, 209),
    ("*IMAX3.s32", 3, 11),
    ("*IMIN3.s32", 20, 54),
    ("*IMIN3.u32", 4, 12),
    ("*IMSUB.i32", 3, 2),
    ("*LSHIFT_ADD.i32", 18, 48),
    ("*LSHIFT_RSUB.i32", 0, 2),
    ("*LSHIFT_SUB.i32", 0, 3),
    ("*MUX.i32", 16, 2),
    ("*S32_TO_F32", 0, 8),
    ("+AND.i32", 4, 3),
    ("+ARSHIFT.i32", 32, 50),
    ("+ARSHIFT_ADD.i32", 1, 0),
    ("+IMAD.i64", 82, 209),
    ("+LSHIFT.i32", 13, 34),
    ("+LSHIFT_ADD.i32", 4, 13),
    ("+LSHIFT_OR.i32", 3, 14),
    ("+LSHIFT_RSUB.i32", 0, 2),
    ("+OR.i32", 6, 5),
    ("+RSHIFT.i32", 0, 5),
    ("+RSHIFT_ADD.i32", 1, 17),
];

#[test]
fn every_silicon_shader_decodes() {
    let Some(folder) = crate::support::shared("gpureplay-recordings") else {
        return;
    };
    for (name, expected_jobs) in [("mnist", 23), ("alexnet", 61)] {
        let recording = Recording::load(&folder.join(name));
        let (mut jobs, mut instructions, mut distinct) = (0, 0, BTreeSet::new());
        let mut counts: BTreeMap<Op, usize> = BTreeMap::new();
        for head in &recording.heads {
            let mut job = *head;
            while job != 0 {
                jobs += 1;
                let (address, shader) = recording.shader(job);
                distinct.insert(address);
                instructions += shader.instructions();
                for placed in &shader.clauses {
                    // Arm's compiler writes another number, of the same meaning, for a lone constant's modifier.
                    let again = decode_clause(&encode_clause(&placed.clause).unwrap()).unwrap();
                    assert_eq!(
                        again,
                        (placed.clause.clone(), placed.size as usize),
                        "{name} {address:#x}"
                    );
                    for tuple in &placed.clause.tuples {
                        if job == *head {
                            *counts.entry(tuple.fma.op).or_default() += 1;
                            *counts.entry(tuple.add.op).or_default() += 1;
                        }
                    }
                }
                job = recording.address(job + 24);
            }
        }
        println!(
            "{name}: {jobs} jobs, {} shaders, {instructions} instructions",
            distinct.len()
        );
        assert_eq!(jobs, expected_jobs);
        assert_eq!(instructions, if name == "mnist" { 7_218 } else { 18_002 });
        for op in counts.keys() {
            let info = op.info();
            assert!(info.products.contains(Product::G71), "{}", info.name);
        }
        for (op, mnist, alexnet) in SILICON {
            let (mark, operation) = op.split_at(1);
            let unit = if mark == "*" { Unit::Fma } else { Unit::Add };
            let count = counts
                .remove(&Op::find(unit, operation).unwrap())
                .unwrap_or(0);
            assert_eq!(
                count,
                if name == "mnist" { mnist } else { alexnet },
                "{op} in {name}"
            );
        }
        let rest = counts
            .keys()
            .find(|op| op.info().evidence.source != EvidenceSource::Documented);
        assert_eq!(rest, None, "not counted above");
    }
}
