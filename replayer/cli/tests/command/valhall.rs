// SPDX-License-Identifier: MIT OR Apache-2.0
//! `disasm` of Valhall's code: of a file, which needs to be told the GPU, and of a recording.

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

#[test]
fn a_file_with_a_command_stream_is_printed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mali/valhall/tests/golden");
    let file = golden.join("dispatch.bin").display().to_string();
    let (done, text) = code(&["disasm", &file, "--streams"]);
    let line = "   78  0400000000008001  RUN_COMPUTE Task increment=0x1 Task axis=Z";
    assert!(done == 0 && text.lines().any(|it| it == line), "{text}");
    assert_eq!(text.lines().count(), 20);
    for wrong in ["--json", "--gpu=g57", "--job=1"] {
        assert_eq!(code(&["disasm", &file, "--streams", wrong]).0, 2, "{wrong}");
    }
    assert_eq!(code(&["disasm", "saxpy-g52", "--streams"]).0, 2);
}

#[test]
fn words_have_no_clauses_to_stand_beside() {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../jobs/tests/data/saxpy-g57.gpr"
    );
    let (done, text) = code(&["disasm", recording]);
    assert!(done == 0 && text.contains("20 instructions"), "{text}");
    let (done, text) = code(&["disasm", recording, "--annotate", "none.json"]);
    assert!(done == 2 && text.contains("Mali-G57"), "{text}");
}

#[test]
fn sizes_of_a_job_are_changed_and_compared() {
    let new = tempfile::tempdir().unwrap();
    let new = new.path().join("tuned").display().to_string();
    let folder = saxpy();
    let folder = folder.path().to_str().unwrap();
    // 1000 threads in warps of 16: groups of 8 leave half of each warp idle.
    let words = ["--jobs", "0", "--local", "40x1x1", "-o", &new];
    let (done, text) = code(&[&["patch", folder][..], &words].concat());
    assert!(
        done == 0 && text.contains("the code of Valhall is not followed"),
        "{text}"
    );
    assert!(
        text.contains("writes the same bytes for 3 inputs"),
        "{text}"
    );
    let (done, text) = code(&["jobs", &new]);
    assert!(done == 0 && text.contains("1000x1x1  40x1x1"), "{text}");
    let (done, text) = code(&["verify", &new, "--deep"]);
    assert!(done == 0, "{text}");
    // Other threads compute something else, or reach other memory; groups have a most.
    for (global, local, said) in [
        ("504x1x1", "8x1x1", "computes something else"),
        ("1000x1x1", "1000x1x1", "runs at most 512"),
        ("1000x1x1", "7x1x1", "no whole number of work groups"),
    ] {
        let words = ["patch", folder, "--jobs", "0", "--global", global];
        let (done, text) = code(&[&words[..], &["--local", local]].concat());
        assert!(done != 0 && text.contains(said), "{global} {local}: {text}");
    }
    let (done, text) = code(&["tune", folder, "--jobs", "0", "--local", "40,20"]);
    assert!(done == 0 && text.contains("local 40x1x1"), "{text}");
}

/// The recording in a folder, with a case.
fn saxpy() -> tempfile::TempDir {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../jobs/tests/data/saxpy-g57.gpr"
    );
    let inputs = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../recordings/saxpy-g52/inputs"
    );
    let folder = tempfile::tempdir().unwrap();
    fs::copy(recording, folder.path().join("recording.gpr")).unwrap();
    let manifest =
        "version = 1\nname = \"saxpy\"\n[[case]]\n[case.inputs]\nx = \"x.npy\"\ny = \"y.npy\"\n";
    fs::write(folder.path().join("manifest.toml"), manifest).unwrap();
    for name in ["x.npy", "y.npy"] {
        fs::copy(Path::new(inputs).join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn what_is_not_done_with_valhall_is_said() {
    let folder = saxpy();
    let folder = folder.path().to_str().unwrap();
    let words = "../../mali/valhall/tests/golden/loop_with_exits.bin";
    let words = Path::new(env!("CARGO_MANIFEST_DIR")).join(words);
    let words = words.display().to_string();
    let (done, text) = code(&["patch", folder, "--jobs", "0", "--shader", &words]);
    assert!(
        done != 0 && text.contains("is a Valhall COMPUTE job"),
        "{text}"
    );
    let (done, text) = code(&["verify", folder, "--deep", "--for", "g52"]);
    assert!(
        done != 0 && text.contains("only recordings of Bifrost"),
        "{text}"
    );
}

#[test]
fn a_recording_fits_boards_with_its_own_gpu() {
    let recording = saxpy();
    let folder = recording.path().to_str().unwrap();
    let (done, text) = code(&["verify", folder, "--deep", "--for", "genio-700"]);
    assert!(done == 0, "{text}");
    let new = tempfile::tempdir().unwrap();
    let output = new.path().join("board").display().to_string();
    let (done, text) = code(&["retarget", folder, "--gpu", "genio-700", "-o", &output]);
    assert!(done == 0, "{text}");
    let read = |folder: &Path| fs::read(folder.join("recording.gpr")).unwrap();
    assert_eq!(read(Path::new(&output)), read(recording.path()));
}

#[test]
fn the_jobs_of_a_command_stream_are_listed_taken_out_and_changed() {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../library/tests/data/saxpy-g610.gpr"
    );
    let (done, text) = code(&["jobs", recording, "--static"]);
    assert!(done == 0 && text.contains("1024x1x1  256x1x1"), "{text}");
    let (done, text) = code(&["disasm", recording]);
    assert!(done == 0 && text.contains("21 instructions"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let ones = gpureplay_tensors::Tensor::from_f32(&[1024], &[1.5; 1024]).unwrap();
    fs::write(place("ones.npy"), gpureplay_tensors::encode_npy(&ones)).unwrap();
    let (ones, alone, changed) = (place("ones.npy"), place("alone"), place("changed"));
    let [x, y] = ["x", "y"].map(|name| format!("--input=saxpy.{name}={ones}"));
    let (done, text) = code(&["analyse", recording, &x, &y]);
    assert!(done == 0 && !text.contains("not looked into"), "{text}");
    let (done, text) = code(&["extract", recording, "--jobs", "0", &x, &y, "-o", &alone]);
    assert_eq!(done, 0, "{text}");
    let sizes = ["--jobs", "0", "--local", "128", "-o", &changed];
    let (done, text) = code(&[&["patch", &alone][..], &sizes].concat());
    assert!(done == 0 && text.contains("the same bytes"), "{text}");
    let (done, text) = code(&["jobs", &changed, "--static"]);
    assert!(done == 0 && text.contains("1024x1x1  128x1x1"), "{text}");
    let (done, text) = code(&["run", &changed]);
    assert!(done == 0 && text.contains("bit for bit"), "{text}");
    // Nothing is there to join.
    let (done, text) = code(&["link", recording, "-o", &place("linked")]);
    assert!(done != 0 && text.contains("command streams"), "{text}");
    assert!(!text.contains("rule"), "no rule is broken: {text}");
}
