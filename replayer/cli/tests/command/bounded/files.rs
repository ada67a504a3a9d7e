// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other files: sizes are checked before contents.

use super::*;

#[test]
fn a_long_recording_is_not_read_to_say_that_it_has_grown() {
    let file = File::new(&named("a", 1));
    let recording = std::fs::File::options()
        .write(true)
        .open(file.at("recording.gpr"));
    recording.unwrap().set_len(5 << 30).unwrap();
    for command in ["info", "dump", "verify", "disasm", "run", "bench"] {
        file.ran(&[command]).ended(3, "truncated or has grown");
    }
}

#[test]
fn a_long_value_is_not_read_to_say_that_it_does_not_fit() {
    let file = File::new(&named("a", 1));
    let path = file.at("x.npy");
    let input = format!("a={}", path.display());
    for (shape, reason) in [("(16,)", "has more"), ("(5368709120,)", "u8[5368709120]")] {
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
        let head = [
            b"\x93NUMPY\x01\x00",
            &(text.len() as u16).to_le_bytes()[..],
            text.as_bytes(),
        ];
        std::fs::write(&path, head.concat()).unwrap();
        let value = std::fs::File::options().write(true).open(&path).unwrap();
        value.set_len((5 << 30) + 10 + text.len() as u64).unwrap();
        let arguments = ["run", "--threads", "1", "--input", &input];
        ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments).ended(4, reason);
    }
}

#[test]
fn of_a_long_file_of_many_tensors_only_the_header_and_what_is_wanted_is_read() {
    let file = File::new(&named("a", 1));
    let archive = |header: &str, length: u64| {
        let path = file.at("x.safetensors");
        let head = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        std::fs::write(&path, &head).unwrap();
        let sparse = std::fs::File::options().write(true).open(&path).unwrap();
        sparse.set_len(head.len() as u64 + length).unwrap();
        path
    };
    let big = 5u64 << 30;
    let both = format!(
        r#"{{"b":{{"dtype":"U8","shape":[{big}],"data_offsets":[0,{big}]}},"a":{{"dtype":"U8","shape":[16],"data_offsets":[{big},{}]}}}}"#,
        big + 16
    );
    let ran = |path: &Path, name: &str| {
        let input = format!("a={}#{name}", path.display());
        let arguments = ["run", "--threads", "1", "--input", &input];
        ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments)
    };
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
    let folder = tempfile::tempdir().unwrap();
    let sparse = |name: &str, head: &[u8], length: u64| {
        let path = folder.path().join(name);
        std::fs::write(&path, head).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(head.len() as u64 + length).unwrap();
        path.display().to_string()
    };
    let npy = |dtype: &str, shape: &str| {
        let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (text.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat()
    };
    // More than allowed, and than 4 GiB hold.
    let many = sparse("many.npy", &npy("<f4", "(16777217, 8, 8)"), (4 << 30) + 256);
    let other = sparse("other.npy", &npy("<f8", "(2, 8, 8)"), 5 << 30);
    for (path, reason) in [(&many, "16777217 inputs"), (&other, "f64[2,8,8]")] {
        let arguments = ["run", "--threads", "1", "--inputs", path];
        ran_in(MEMORY_WITH_MODEL, &digits, &arguments).ended(4, reason);
    }
    let two = [npy("<f4", "(2, 8, 8)"), vec![0; 512]].concat();
    let two = sparse("two.npy", &two, 0);
    let judged = |path: &str| {
        let arguments = ["run", "--threads", "1", "--inputs", &two, "--truth", path];
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, &digits, &arguments);
        (code, error)
    };
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

/// Of 8 x 8 pixels.
fn of_pictures() -> File {
    let mut builder = builder();
    let shape = [1, 8, 8, 3];
    let tensor = Tensor::dense("x", TensorKind::Input, ElementType::F32, &shape, DATA);
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(tensor);
    null_chain(&mut builder, JOBS);
    let file = File::new(&builder.finish().unwrap());
    let manifest = "version = 1\nname = \"x\"\n[images.x]\nlayout = \"NHWC\"\nresize = \"crop\"\n";
    std::fs::write(file.at("manifest.toml"), manifest).unwrap();
    file
}

/// Holes follow the parts.
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
    let path = file.at("x.jpg");
    let input = format!("x={}", path.display());
    // Endless scan, useless chunks.
    let scan: &[u8] = b"\xff\xd8\xff\xda\x00\x04\x00\x00";
    let header: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x08\x08\0\0\0\0\xe1\x64\xe1\x57";
    let chunk: (&[u8], u64) = (b"\x7f\xff\xff\xfcabCd", (2 << 30) - 4 + 4);
    for parts in [
        vec![(scan, 6 << 30)],
        [vec![(header, 0)], vec![chunk; 20]].concat(),
    ] {
        sparse(&path, &parts);
        let arguments = ["run", "--threads", "1", "--input", &input];
        let began = std::time::Instant::now();
        ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments)
            .ended(4, "bytes; a picture of this format");
        assert!(began.elapsed().as_secs() < 10);
    }
}

#[test]
fn what_a_png_holds_beside_its_samples_takes_no_memory() {
    let file = of_pictures();
    let mut plain = Vec::new();
    let mut encoder = png::Encoder::new(&mut plain, 8, 8);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[7; 64]).unwrap();
    writer.finish().unwrap();
    let exif: (&[u8], u64) = (b"\x0c\0\0\0eXIf", (192 << 20) + 4);
    let (header, rest) = plain.split_at(33);
    let path = file.at("x.png");
    let input = format!("x={}", path.display());
    let taken = |parts: &[(&[u8], u64)]| {
        sparse(&path, parts);
        let recording = file.0.path().to_str().unwrap();
        peak(&["run", "--threads", "1", "--input", &input, recording])
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
    std::fs::write(file.at("manifest.toml"), manifest).unwrap();
    std::fs::write(file.at("a.bin"), [0; 16]).unwrap();
    let key = file.at("key");
    assert_eq!(ran(&key, &["keygen"]).0, 0);
    let [secret, public] = ["key.pem", "key.pub.pem"].map(|name| file.at(name));
    file.ran(&["sign", "--key", secret.to_str().unwrap()])
        .gave(0);
    let required = ["verify", "--require-signature", public.to_str().unwrap()];
    file.ran(&required).gave(0);
    for name in ["recording.gpr", "manifest.toml", "a.bin", "recording.sig"] {
        let kept = std::fs::read(file.at(name)).unwrap();
        // A recording says so itself.
        let length: u64 = 4 << 30;
        let mut long = kept.clone();
        if name == "recording.gpr" {
            long[16..24].copy_from_slice(&length.to_le_bytes());
        }
        sparse(&file.at(name), &[(&long, length - long.len() as u64)]);
        file.ran(&required).ended(3, "longer than");
        std::fs::write(file.at(name), kept).unwrap();
    }
    assert_eq!(file.ran(&required).0, 0);
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
    let pack = path.to_str().unwrap();
    for command in ["info", "verify", "dump"] {
        let most = (length as u64 >> 10) * 3 / 2;
        let taken = peak_with(&[command, pack], &[("TMPDIR", "/nonexistent")]);
        assert!(taken < most, "{command}: {taken} KiB, at most {most}");
    }
    let value = folder.path().join("a.bin");
    std::fs::write(&value, [0; 16]).unwrap();
    let input = format!("a={}", value.display());
    let arguments = ["run", "--threads", "1", "--input", &input];
    ran_in(MEMORY_WITH_MODEL, &path, &arguments).gave(0);
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
            let mut arguments = vec![command];
            if command == "unpack" {
                arguments.extend(["--output", made.to_str().unwrap()]);
            }
            let error = ran(&path, &arguments).ended(if refused { 3 } else { 0 }, "");
            assert_eq!(error.contains("more than 256 folders"), refused, "{error}");
            let _ = std::fs::remove_dir_all(&made);
        }
    }
}
