// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two kernels of tools/guest/apps/kernels/basic.cl from Mesa 25.0.7 for Mali-G57.

use mali_isa::valhall::{Instruction, Shader, assemble};

const KERNELS: [(&str, &[u8], &str); 2] = [
    (
        "scale_add",
        include_bytes!("../golden/scale_add.bin"),
        include_str!("../golden/scale_add.txt"),
    ),
    (
        "loop_with_exits",
        include_bytes!("../golden/loop_with_exits.bin"),
        include_str!("../golden/loop_with_exits.txt"),
    ),
];

#[test]
fn kernels_have_their_text() {
    for (name, code, text) in KERNELS {
        let shader = Shader::decode(code).unwrap();
        assert_eq!(shader.bytes(), code, "{name}");
        assert!(!shader.is_dynamic());
        assert_eq!(shader.to_string(), text, "{name}");
        for instruction in shader.instructions() {
            assert_eq!(assemble(&instruction.to_string()), Ok(instruction.word()));
        }
    }
}

#[test]
fn a_kernel_of_any_length_that_is_cut_is_an_error() {
    let (_, code, _) = KERNELS[1];
    for length in 0..code.len() {
        assert!(Shader::decode(&code[..length]).is_err(), "{length}");
    }
}

#[test]
fn what_waits_names_its_slots() {
    let flow = |text: &str| Instruction::decode(assemble(text).unwrap()).unwrap().flow();
    assert_eq!(flow("NOP").waits(), 0);
    assert_eq!(flow("NOP.wait02").waits(), 0b101);
    assert_eq!(flow("NOP.wait0126").waits(), 0b100_0111);
    assert_eq!(flow("BARRIER.slot7.wait").waits(), 0xff);
    assert!(flow("NOP.reconverge").reconverges() && flow("NOP.end").ends());
}
