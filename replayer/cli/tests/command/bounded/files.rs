// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other files: sizes are checked before contents.

use super::*;

#[test]
fn a_long_recording_is_not_read_to_say_that_it_has_grown() {
    let file = File::new(&named("a", 1));
    sparse(&file.0.at("recording.gpr"), &[(&named("a", 1), 5 << 30)]);
    for command in ["info", "dump", "verify", "disasm", "run", "bench"] {
        file.ran(command).ended(3, "truncated or has grown");
    }
}

#[test]
fn a_long_value_is_not_read_to_say_that_it_does_not_fit() {
    let file = File::new(&named("a", 1));
    let path = file.0.at("x.npy");
    for (shape, reason) in [("(16,)", "has more"), ("(5368709120,)", "u8[5368709120]")] {
        sparse(&path, &[(&npy("|u1", shape), 5 << 30)]);
        file.run(&format!("--input a={}", path.display()))
            .ended(4, reason);
    }
}

#[test]
fn of_a_long_file_of_many_tensors_only_the_header_and_what_is_wanted_is_read() {
    let file = File::new(&named("a", 1));
    let archive = |header: &str, length: u64| {
        let path = file.0.at("x.safetensors");
        sparse(&path, &[(&safetensors(header), length)]);
        path
    };
    let big = 5u64 << 30;
    let both = format!(
        r#"{{"b":{{"dtype":"U8","shape":[{big}],"data_offsets":[0,{big}]}},"a":{{"dtype":"U8","shape":[16],"data_offsets":[{big},{}]}}}}"#,
        big + 16
    );
    let ran = |path: &Path, name: &str| file.run(&format!("--input a={}#{name}", path.display()));
    let path = archive(&both, big + 16);
    ran(&path, "a").gave(0);
    ran(&path, "b").ended(4, "u8[5368709120]");
    let limit = 4 << 20;
    let header = |length: usize| {
        let one = r#"{"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]}}"#;
        one.to_owned() + &" ".repeat(length - one.len())
    };
    ran(&archive(&header(limit), 16), "a").gave(0);
    ran(&archive(&header(limit + 1), 16), "a").ended(4, "a header of 4194305 bytes");
    let overlap = r#"{"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[16],"data_offsets":[8,24]}}"#;
    ran(&archive(overlap, 24), "a").ended(4, "not a .safetensors file");
}

#[test]
fn a_long_file_of_inputs_or_of_classes_is_not_read_to_say_that_it_does_not_fit() {
    let digits = shipped("digits-g52");
    let folder = Folder::default();
    let sparse = |name: &str, head: &[u8], length: u64| {
        sparse(&folder.at(name), &[(head, length)]);
        folder.text(name)
    };
    // More inputs than allowed, and more bytes than 4 GiB.
    let many = sparse("many.npy", &npy("<f4", "(16777217, 8, 8)"), (4 << 30) + 256);
    let other = sparse("other.npy", &npy("<f8", "(2, 8, 8)"), 5 << 30);
    for (path, reason) in [(&many, "16777217 inputs"), (&other, "f64[2,8,8]")] {
        run(&digits, &format!("--inputs {path}")).ended(4, reason);
    }
    let two = [npy("<f4", "(2, 8, 8)"), vec![0; 512]].concat();
    let two = sparse("two.npy", &two, 0);
    let judged = |path: &str| run(&digits, &format!("--inputs {two} --truth {path}"));
    let classes = sparse("classes.npy", &npy("<i8", "(5368709120,)"), 5 << 33);
    let lines = sparse("classes.txt", b"", 5 << 30);
    for (path, reason) in [
        (&classes, "5368709120 classes for 2 inputs"),
        (&lines, "more than 2048 bytes"),
    ] {
        judged(path).ended(4, reason);
    }
    // 1 KiB per class, and a byte more.
    let text = |length: usize| sparse("long.txt", format!("1\n{:length$}", 2).as_bytes(), 0);
    judged(&text(2046)).gave(0);
    judged(&text(2047)).ended(4, "more than 2048 bytes");
}

fn of_pictures() -> File {
    let mut builder = builder();
    let shape = [1, 8, 8, 3];
    let tensor = Tensor::dense("x", TensorKind::Input, ElementType::F32, &shape, DATA);
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(tensor);
    null_chain(&mut builder, JOBS);
    let file = File::of(builder);
    let manifest = "version = 1\nname = \"x\"\n[images.x]\nlayout = \"NHWC\"\nresize = \"crop\"\n";
    std::fs::write(file.0.at("manifest.toml"), manifest).unwrap();
    file
}

/// Each part is bytes, and the length of the hole after them.
fn sparse(path: &Path, parts: &[(&[u8], u64)]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(path).unwrap();
    let mut at = 0;
    for (bytes, hole) in parts {
        file.write_all_at(bytes, at).unwrap();
        at += bytes.len() as u64 + hole;
    }
    file.set_len(at).unwrap();
}

#[test]
fn a_long_picture_is_not_read_to_say_that_it_is_too_long() {
    let file = of_pictures();
    let path = file.0.at("x.jpg");
    let scan: &[u8] = b"\xff\xd8\xff\xda\x00\x04\x00\x00";
    let header: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x08\x08\0\0\0\0\xe1\x64\xe1\x57";
    let chunk: (&[u8], u64) = (b"\x7f\xff\xff\xfcabCd", (2 << 30) - 4 + 4);
    for parts in [
        vec![(scan, 1 << 40)],
        [vec![(header, 0)], vec![chunk; 512]].concat(),
    ] {
        sparse(&path, &parts);
        file.run(&format!("--input x={}", path.display()))
            .ended(4, "bytes; a picture of this format");
    }
}

#[test]
fn what_a_png_holds_beside_its_samples_takes_no_memory() {
    let file = of_pictures();
    let plain = png(8, 8, &[7; 64]);
    let exif: (&[u8], u64) = (b"\x0c\0\0\0eXIf", (192 << 20) + 4);
    let (header, rest) = plain.split_at(33);
    let path = file.0.at("x.png");
    let taken = |parts: &[(&[u8], u64)]| {
        sparse(&path, parts);
        let (input, recording) = (path.display(), file.0.path().display());
        peak(&format!("run --threads 1 --input x={input} {recording}"))
    };
    let without = taken(&[(&plain, 0)]);
    let with = taken(&[(header, 0), exif, (rest, 0)]);
    assert!(
        without > 0 && with < without + (64 << 10),
        "{without} {with} KiB"
    );
}

#[test]
fn no_more_is_read_than_was_signed() {
    let file = File::new(&named("a", 1));
    let manifest = "version = 1\nname = \"x\"\n[[case]]\ninputs = { a = \"a.bin\" }\n";
    std::fs::write(file.0.at("manifest.toml"), manifest).unwrap();
    std::fs::write(file.0.at("a.bin"), [0; 16]).unwrap();
    let key = file.0.at("key");
    ran(&key, "keygen").gave(0);
    let key = key.display();
    file.ran(&format!("sign --key {key}.pem")).gave(0);
    let required = format!("verify --require-signature {key}.pub.pem");
    file.ran(&required).gave(0);
    for name in ["recording.gpr", "manifest.toml", "a.bin", "recording.sig"] {
        let kept = std::fs::read(file.0.at(name)).unwrap();
        // A recording's header states its length.
        let length: u64 = 4 << 30;
        let mut long = kept.clone();
        if name == "recording.gpr" {
            long[16..24].copy_from_slice(&length.to_le_bytes());
        }
        sparse(&file.0.at(name), &[(&long, length - long.len() as u64)]);
        file.ran(&required).ended(3, "longer than");
        std::fs::write(file.0.at(name), kept).unwrap();
    }
    file.ran(&required).gave(0);
}

fn packed(beside: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let recording = ("recording.gpr".to_owned(), named("a", 1));
    gpureplay_sign::pack(&beside.chain([recording]).collect()).unwrap()
}

#[test]
fn a_pack_is_looked_at_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("..pack");
    let length = 96 << 20;
    std::fs::write(
        &path,
        packed([("x".to_owned(), vec![0; length])].into_iter()),
    )
    .unwrap();
    let pack = path.display();
    for command in ["info", "verify", "dump"] {
        let most = (length as u64 >> 10) * 3 / 2;
        let taken = peak_with(&format!("{command} {pack}"), &[("TMPDIR", "/nonexistent")]);
        assert!(taken < most, "{command}: {taken} KiB, at most {most}");
    }
    let value = folder.path().join("a.bin");
    std::fs::write(&value, [0; 16]).unwrap();
    run(&path, &format!("--input a={}", value.display())).gave(0);
}

#[test]
fn a_pack_has_as_many_folders_as_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pack");
    let name = |at: usize| format!("{at}/b/c/d/e/f/g/x");
    let files = |count| (0..count).map(|at| (name(at), Vec::new()));
    for (count, refused) in [(36, false), (37, true), (4000, true)] {
        std::fs::write(&path, packed(files(count))).unwrap();
        for command in ["verify", "unpack"] {
            let made = folder.path().join("made");
            let output = match command {
                "unpack" => format!("--output {}", made.display()),
                _ => String::new(),
            };
            let error =
                ran(&path, &format!("{command} {output}")).ended(if refused { 3 } else { 0 }, "");
            assert_eq!(error.contains("more than 256 folders"), refused, "{error}");
            let _ = std::fs::remove_dir_all(&made);
        }
    }
}
