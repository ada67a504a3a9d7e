// SPDX-License-Identifier: MIT OR Apache-2.0
//! `disasm` of a file with Valhall code, which needs to be told the GPU.

use std::fs;
use std::path::Path;

use crate::start::said as code;

#[test]
fn a_file_with_valhall_code_is_printed_for_its_gpu() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mali/valhall/tests/golden");
    let file = golden.join("loop_with_exits.bin").display().to_string();
    let lines = fs::read_to_string(golden.join("loop_with_exits.txt")).unwrap();
    let (done, text) = code(&["disasm", &file, "--gpu", "Mali-G57"]);
    assert_eq!(done, 0, "{text}");
    assert!(text.contains("464 bytes, 58 instructions"), "{text}");
    assert!(text.ends_with(&lines), "{text}");
    // Bifrost's decoder refuses it, and Valhall's refuses a shader of Bifrost and one that is cut.
    assert_ne!(code(&["disasm", &file]).0, 0);
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.bin");
    let whole = fs::read(golden.join("loop_with_exits.bin")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 8]).unwrap();
    let (done, text) = code(&["disasm", &cut.display().to_string(), "--gpu", "g57"]);
    assert!(done != 0 && text.contains("ends at word 57"), "{text}");
    // A recording says itself what it is for, and only what is known has a name.
    assert_eq!(code(&["disasm", "saxpy-g52", "--gpu", "g57"]).0, 2);
    assert_eq!(code(&["disasm", &file, "--gpu", "g99"]).0, 2);
}
