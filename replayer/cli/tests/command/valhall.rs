// SPDX-License-Identifier: MIT OR Apache-2.0
//! `disasm` and `patch` of Valhall.

use std::fs;
use std::path::Path;

use crate::start::{Ended, Folder, Says, repository, said as code, shipped};

#[test]
fn a_file_with_valhall_code_is_printed_for_its_gpu() {
    let golden = repository().join("mali/isa/tests/golden");
    let file = golden.join("loop_with_exits.bin").display().to_string();
    let lines = fs::read_to_string(golden.join("loop_with_exits.txt")).unwrap();
    let text =
        code(&format!("disasm {file} --gpu Mali-G57")).ended(0, "464 bytes, 58 instructions");
    assert!(text.ends_with(&lines), "{text}");
    // Bifrost's decoder refuses it.
    assert_ne!(code(&format!("disasm {file}")).0, 0);
    let folder = Folder::default();
    let cut = folder.at("cut.bin");
    let whole = fs::read(golden.join("loop_with_exits.bin")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 8]).unwrap();
    code(&format!("disasm {} --gpu g57", cut.display())).failed("ends at word 57");
    code("disasm saxpy-g52 --gpu g57").gave(2);
    code(&format!("disasm {file} --gpu g99")).gave(2);
}

#[test]
fn a_file_with_a_command_stream_is_printed() {
    let golden = repository().join("mali/isa/tests/golden");
    let file = golden.join("dispatch.bin").display().to_string();
    let (done, text) = code(&format!("disasm {file} --streams"));
    let line = "   78  0400000000008001  RUN_COMPUTE Task increment=0x1 Task axis=Z";
    assert!(done == 0 && text.lines().any(|it| it == line), "{text}");
    assert_eq!(text.lines().count(), 20);
    for wrong in ["--json", "--gpu=g57", "--job=1"] {
        assert_eq!(
            code(&format!("disasm {file} --streams {wrong}")).0,
            2,
            "{wrong}"
        );
    }
    code("disasm saxpy-g52 --streams").gave(2);
}

#[test]
fn findings_name_words_and_stand_beside_blocks() {
    let recording = saxpy();
    let folder = recording.path().to_str().unwrap();
    code(&format!("disasm {folder}")).ended(0, "20 instructions");
    let json = code(&format!("analyse {folder} --json")).gave(0);
    let path = recording.at("found.json");
    fs::write(&path, &json).unwrap();
    let path = path.display().to_string();
    let text = code(&format!("disasm {folder} --annotate {path}")).gave(0);
    // 125 groups of 8 threads are as many warps; the block from word 16 on has the store.
    let lines: Vec<&str> = text.lines().collect();
    let at = |wanted: &str| lines.iter().position(|line| line.contains(wanted));
    let first = at("# 125 warps, 1000 lanes").unwrap();
    assert!(lines[first + 2].starts_with("    0  "), "{text}");
    let [before, store] = ["   15  ", "   16  "].map(|word| at(word).unwrap());
    assert!(lines[before + 1].is_empty(), "{text}");
    assert!(lines[store - 1].contains("4000 B written"), "{text}");
    assert!(lines[store - 2].starts_with("# 125 warps"), "{text}");
}

#[test]
fn sizes_of_a_job_are_changed_and_compared() {
    let new = Folder::default();
    let new = new.text("tuned");
    let folder = saxpy();
    let folder = folder.path().to_str().unwrap();
    // 1000 threads, warps of 16: groups of 8 leave half of each idle.
    let patch = format!("patch {folder} --jobs 0");
    code(&format!("{patch} --local 40x1x1 -o {new}"))
        .ended(0, "job 0: proven")
        .says("writes the same bytes for 3 inputs");
    code(&format!("jobs {new}")).ended(0, "1000x1x1  40x1x1");
    code(&format!("verify {new} --deep")).gave(0);
    for (global, local, said) in [
        ("504x1x1", "8x1x1", "computes something else"),
        ("1000x1x1", "1000x1x1", "runs at most 512"),
        ("1000x1x1", "7x1x1", "no whole number of work groups"),
    ] {
        code(&format!("{patch} --global {global} --local {local}")).failed(said);
    }
    code(&format!("tune {folder} --jobs 0 --local 40,20")).ended(0, "local 40x1x1");
}

fn saxpy() -> Folder {
    let recording = repository().join("mali/measure/tests/data/saxpy-g57.gpr");
    let folder = Folder::default();
    fs::copy(recording, folder.at("recording.gpr")).unwrap();
    let manifest =
        "version = 1\nname = \"saxpy\"\n[[case]]\n[case.inputs]\nx = \"x.npy\"\ny = \"y.npy\"\n";
    fs::write(folder.at("manifest.toml"), manifest).unwrap();
    for name in ["x.npy", "y.npy"] {
        let input = shipped("saxpy-g52").join("inputs").join(name);
        fs::copy(input, folder.at(name)).unwrap();
    }
    folder
}

#[test]
fn another_shader_takes_the_place_of_the_recorded_one() {
    let recording = saxpy();
    let folder = recording.path().to_str().unwrap();
    code(&format!(
        "disasm {folder} --save {}",
        recording.text("code")
    ))
    .gave(0);
    let saved = recording.at("code/d84f0a4703cc5cc7.bin");
    let mut words = fs::read(&saved).unwrap();
    // Nothing changes; the file beside it says the GPU, and what the job must give.
    code(&["disasm", saved.to_str().unwrap()]).ended(0, "g57: 1 shader");
    let own = [
        "patch",
        folder,
        "--jobs=0",
        "--shader",
        saved.to_str().unwrap(),
    ];
    let (done, text) = code(&own);
    let same = "writes the same bytes for 3 inputs";
    assert!(done == 0 && text.contains(same), "{text}");
    let beside = saved.with_extension("toml");
    let interface = fs::read_to_string(&beside).unwrap();
    for (from, to, said) in [
        ("gpu = \"g57\"", "gpu = \"g52\"", "product: "),
        ("hash = \"", "hash = \"0", "belongs to"),
        ("group_storage = 0", "group_storage = 8", "group storage: "),
        (
            "thread_storage = 0",
            "thread_storage = 64",
            "thread storage: ",
        ),
        (
            "uniforms = ",
            "uniforms = 9",
            "uniforms: it was compiled for",
        ),
    ] {
        interface.says(from);
        fs::write(&beside, interface.replacen(from, to, 1)).unwrap();
        code(&own).ended(4, said);
    }
    let file = recording.at("swapped.bin");
    let swapped = mali_isa::valhall::assemble("FMA.f32 r2, u6.neg, ^r2, ^r3").unwrap();
    words[8 * 14..8 * 15].copy_from_slice(&swapped.to_le_bytes());
    fs::write(&file, &words).unwrap();
    let file = file.display().to_string();
    let changed = recording.text("new");
    code(&format!(
        "patch {folder} --jobs 0 --shader {file} -o {changed}"
    ))
    .gave(0);
    code(&format!("verify {changed} --deep")).gave(0);
    let read = |name: &str| {
        let tensor = gpureplay_tensors::read_npy(Path::new(&recording.text(name))).unwrap();
        let words = tensor.bytes().as_chunks().0.iter();
        words
            .map(|word| f32::from_le_bytes(*word))
            .collect::<Vec<_>>()
    };
    let result = |replayed: &str, name: &str| {
        let [x, y, out] = ["x.npy", "y.npy", name].map(|name| recording.text(name));
        let values = format!("--input x={x} --input y={y} --output out={out}");
        code(&format!("run {replayed} {values}")).gave(0);
        read(name)
    };
    // y + a x, and y - a x.
    let (old, new) = (result(folder, "old.npy"), result(&changed, "new.npy"));
    let y = read("y.npy");
    assert!(old.iter().zip(&new).any(|(old, new)| old != new));
    for ((old, new), y) in old.iter().zip(&new).zip(&y) {
        assert!((old + new - 2.0 * y).abs() <= 1e-4, "{old} {new} {y}");
    }
    let [third, same] = ["third", "same"].map(|name| recording.text(name));
    for (from, output) in [(changed.as_str(), &third), (folder, &same)] {
        let from = format!("{from}:0");
        code(&format!(
            "patch {folder} --jobs=0 --from {from} -o {output}"
        ))
        .gave(0);
        code(&format!("verify {output} --deep")).gave(0);
    }
    let file = |folder: &str| fs::read(Path::new(folder).join("recording.gpr")).unwrap();
    assert_eq!(file(&same), file(folder));
    assert_ne!(file(&third), file(&changed));
    assert_eq!(result(&third, "third.npy"), new);
    let golden = repository().join("mali/isa/tests/golden");
    for (name, text, said) in [
        ("push", "MOV.i32 r2, u60", "slots of push uniforms"),
        ("first", "MOV.i32 r2, r50", "r50"),
        (
            "storage",
            "LOAD.i32.unsigned.slot0.wait0 @r2, thread_local_pointer.w0, offset:0",
            "has none",
        ),
        (
            "group",
            "LOAD.i32.unsigned.slot0.wait0 @r2, workgroup_local_pointer.w0, offset:0",
            "has none",
        ),
    ] {
        let mut other = words.clone();
        let word = mali_isa::valhall::assemble(text).expect(text);
        other[8 * 14..8 * 15].copy_from_slice(&word.to_le_bytes());
        let file = recording.text(name);
        fs::write(&file, &other).unwrap();
        code(&format!("patch {folder} --jobs 0 --shader {file}")).failed(said);
    }
    let loops = golden.join("loop_with_exits.bin").display().to_string();
    code(&format!("patch {folder} --jobs 0 --shader {loops}")).failed("initial registers");
}

#[test]
fn what_is_not_done_with_valhall_is_said() {
    let folder = saxpy();
    let folder = folder.path().to_str().unwrap();
    code("patch digits-g610 --jobs=0 --from=digits-g610:0").failed("in a command stream");
    code(&format!("verify {folder} --deep --for g52")).failed("only recordings of Bifrost");
}

#[test]
fn a_recording_fits_boards_with_its_own_gpu() {
    let recording = saxpy();
    let folder = recording.path().to_str().unwrap();
    code(&format!("verify {folder} --deep --for genio-700")).gave(0);
    let new = Folder::default();
    let output = new.text("board");
    code(&format!("retarget {folder} --gpu genio-700 -o {output}")).gave(0);
    let read = |folder: &Path| fs::read(folder.join("recording.gpr")).unwrap();
    assert_eq!(read(Path::new(&output)), read(recording.path()));
}

#[test]
fn the_jobs_of_a_command_stream_are_listed_taken_out_and_changed() {
    let recording = repository().join("replayer/library/tests/data/saxpy-g610.gpr");
    let recording = recording.display();
    code(&format!("jobs {recording} --static")).ended(0, "1024x1x1  256x1x1");
    code(&format!("disasm {recording}")).ended(0, "21 instructions");
    let folder = Folder::default();
    let ones = gpureplay_tensors::Tensor::from_f32(&[1024], &[1.5; 1024]).unwrap();
    fs::write(
        folder.text("ones.npy"),
        gpureplay_tensors::encode_npy(&ones),
    )
    .unwrap();
    let (ones, alone, changed) = (
        folder.text("ones.npy"),
        folder.text("alone"),
        folder.text("changed"),
    );
    let [x, y] = ["x", "y"].map(|name| format!("--input=saxpy.{name}={ones}"));
    let (done, text) = code(&format!("analyse {recording} {x} {y}"));
    assert!(done == 0 && !text.contains("not looked into"), "{text}");
    code(&format!("extract {recording} --jobs 0 {x} {y} -o {alone}")).gave(0);
    code(&format!("patch {alone} --jobs 0 --local 128 -o {changed}")).ended(0, "the same bytes");
    code(&format!("jobs {changed} --static")).ended(0, "1024x1x1  128x1x1");
    code(&format!("run {changed}")).ended(0, "bit for bit");
    let text =
        code(&format!("link {recording} -o {}", folder.text("linked"))).failed("command streams");
    assert!(!text.contains("rule"), "no rule is broken: {text}");
}
