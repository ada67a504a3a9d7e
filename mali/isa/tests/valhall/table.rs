// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table contradicts itself nowhere.

use std::collections::BTreeMap;

use mali_isa::valhall::{Field, Op, Row, Secondary};

#[test]
fn names_and_encodings_are_unique() {
    let mut by_name = BTreeMap::new();
    let mut by_opcode: BTreeMap<u16, Vec<&Row>> = BTreeMap::new();
    for op in Op::ALL {
        let row = op.row();
        assert!(by_name.insert(row.name, op).is_none(), "{}", row.name);
        by_opcode.entry(row.opcode).or_default().push(row);
    }
    assert_eq!((by_name.len(), by_opcode.len()), (252, 99));
    for rows in by_opcode.values() {
        for (place, one) in rows.iter().enumerate() {
            let alone = one.secondary == Secondary::Alone;
            assert!(!alone || rows.len() == 1, "{}", one.name);
            for other in &rows[..place] {
                assert_eq!(one.secondary.mask(), other.secondary.mask());
                assert_ne!(one.secondary.value(), other.secondary.value());
            }
        }
    }
    let opcodes = Op::ALL.iter().map(|op| op.row().opcode);
    assert!(opcodes.is_sorted(), "the index needs them in order");
}

#[test]
fn fields_of_a_row_do_not_overlap() {
    for op in Op::ALL {
        let row = op.row();
        let mut taken = 0x1ff << 48 | 0xf << 59 | 3 << 57 | 1 << 63 | row.secondary.mask();
        for (byte, kind) in row.sources.iter().enumerate() {
            if *kind != mali_isa::valhall::Kind::GAP {
                take(row, &mut taken, 0xff << (8 * byte));
            }
        }
        let fields: Vec<&Field> = row
            .modifiers
            .iter()
            .chain(row.immediates)
            .copied()
            .collect();
        for field in fields {
            take(row, &mut taken, field.mask());
        }
    }
}

fn take(row: &Row, taken: &mut u64, bits: u64) {
    assert_eq!(*taken & bits, 0, "{}: {bits:#x} twice", row.name);
    *taken |= bits;
}
