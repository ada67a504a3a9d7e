// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stranger's file may cost: files made to be expensive are refused, or shown within a bound on memory and output.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{Platform, SECTIONS};
use gpureplay_format::{
    Access, Builder, ElementType, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};

use crate::null_job::{null_chain, null_job};

const GPU: u32 = 0x7212_0000;
const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
/// Address space that a command gets, in KiB: 1 GiB, of which the program itself is a small part.
const MEMORY: &str = "1048576";
/// The same for one that opens the model, which takes 8 GiB of address space for its memory.
const MEMORY_WITH_MODEL: &str = "10485760";
/// Output that a command may print, in bytes.
const PRINTED: usize = 2 << 20;

struct File(tempfile::TempDir);

impl File {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recording.gpr"), bytes).unwrap();
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code, standard output and standard error of a command on this recording that gets little memory.
    fn ran(&self, arguments: &[&str]) -> (i32, String, String) {
        ran(self.0.path(), arguments)
    }
}

fn ran(recording: &Path, arguments: &[&str]) -> (i32, String, String) {
    ran_in(MEMORY, recording, arguments)
}

fn ran_in(memory: &str, recording: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v $0 && exec \"$@\"", memory])
        .arg(env!("CARGO_BIN_EXE_gpureplay"))
        .args(arguments)
        .arg(recording)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A recording without tensors and without segments.
fn builder() -> Builder {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder
}

/// A recording whose only input has this name and is bound so many times.
fn named(name: &str, binds: u32) -> Vec<u8> {
    let mut builder = builder();
    let kind = TensorKind::Input;
    let tensor = Tensor::dense(name, kind, ElementType::U8, &[16], DATA);
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    for _ in 0..binds {
        builder.bind_input(tensor);
    }
    null_chain(&mut builder, JOBS);
    builder.finish().unwrap()
}

/// A file with other bytes in one of its sections.
fn with(file: &[u8], section: Section, bytes: &[u8]) -> Vec<u8> {
    let field = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let mut sections: [&[u8]; SECTIONS] = std::array::from_fn(|index| {
        let entry = 64 + 32 * index;
        &file[field(entry + 8)..][..field(entry + 16)]
    });
    sections[section.code() as usize - 1] = bytes;
    assemble(Platform::of(GPU), &sections)
}

/// Refused by `info` and `dump`; shown by them in bounded memory and bounded length when that is asked for.
fn is_refused_and_shown_within_bounds(file: &File, reason: &str) {
    for command in ["info", "dump"] {
        let (code, out, error) = file.ran(&[command]);
        assert_eq!((code, out.as_str()), (3, ""), "{command}: {error}");
        assert!(error.contains(reason), "{command}: {error}");
        let (code, out, error) = file.ran(&[command, "--unverified"]);
        assert_eq!(code, 0, "{command}: {error}");
        assert!(out.contains("not sound: "), "{command}: {out}");
        assert!(out.contains(reason), "{command}: {out}");
        assert!(out.len() < PRINTED, "{command}: {}", out.len());
    }
    let (code, out, error) = file.ran(&["info", "--unverified", "--json"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.len() < 4 * PRINTED, "{}", out.len());
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(shown["unsound"].as_str().unwrap().contains(reason));
    let output = file.at("out.pack");
    let (code, _, error) = file.ran(&["pack", "--output", output.to_str().unwrap()]);
    assert_eq!(code, 3, "{error}");
    assert!(!output.exists());
}

#[test]
fn a_long_name_is_not_copied_for_each_bind() {
    let file = File::new(&named(&"n".repeat(1 << 20), 4000));
    is_refused_and_shown_within_bounds(&file, "a name has 1048576 bytes");
}

#[test]
fn many_empty_layers_are_listed_in_one_pass() {
    let mut builder = builder();
    for _ in 0..200_000 {
        builder.segment("run", SegmentKind::Run);
    }
    let file = File::new(&builder.finish().unwrap());
    for command in ["info", "dump", "verify"] {
        let (code, _, error) = file.ran(&[command]);
        assert_eq!(code, 0, "{command}: {error}");
    }
}

#[test]
fn segments_that_share_all_actions_are_looked_at_within_a_bound() {
    let file = named("a", 10_000);
    let parsed = gpureplay_format::Recording::parse(&file).unwrap();
    let segments = parsed.segments()[0];
    let segments = vec![segments; 10_000];
    let segments = zerocopy::IntoBytes::as_bytes(segments.as_slice());
    let file = File::new(&with(&file, Section::Segments, segments));
    is_refused_and_shown_within_bounds(&file, "segment-table");
}

#[test]
fn a_sound_recording_is_shown_whole_either_way() {
    let recording = shipped("digits-g52");
    for command in ["info", "dump"] {
        let plain = ran(&recording, &[command]);
        assert_eq!(plain.0, 0);
        assert_eq!(ran(&recording, &[command, "--unverified"]), plain);
    }
}

#[test]
fn a_long_recording_is_not_read_to_say_that_it_has_grown() {
    let file = File::new(&named("a", 1));
    let recording = std::fs::File::options()
        .write(true)
        .open(file.at("recording.gpr"));
    recording.unwrap().set_len(5 << 30).unwrap();
    for command in ["info", "dump", "verify", "disasm", "run", "bench"] {
        let (code, _, error) = file.ran(&[command]);
        assert_eq!(code, 3, "{command}: {error}");
        assert!(
            error.contains("truncated or has grown"),
            "{command}: {error}"
        );
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
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
        assert_eq!(code, 4, "{error}");
        assert!(error.contains(reason), "{error}");
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
    let (code, _, error) = ran(&path, "a");
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = ran(&path, "b");
    assert_eq!(code, 4, "{error}");
    assert!(error.contains("u8[5368709120]"), "{error}");
    // A header as long as it may be, and one byte longer.
    let limit = 4 << 20;
    let header = |length: usize| {
        let one = r#"{"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]}}"#;
        one.to_owned() + &" ".repeat(length - one.len())
    };
    let (code, _, error) = ran(&archive(&header(limit), 16), "a");
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = ran(&archive(&header(limit + 1), 16), "a");
    assert_eq!(code, 4, "{error}");
    assert!(error.contains("a header of 4194305 bytes"), "{error}");
    // Tensors that overlap.
    let overlap = r#"{"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[16],"data_offsets":[8,24]}}"#;
    let (code, _, error) = ran(&archive(overlap, 24), "a");
    assert_eq!(code, 4, "{error}");
    assert!(error.contains("not a .safetensors file"), "{error}");
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
    // One input more than there may be, and than 4 GiB hold.
    let many = sparse("many.npy", &npy("<f4", "(16777217, 8, 8)"), (4 << 30) + 256);
    let other = sparse("other.npy", &npy("<f8", "(2, 8, 8)"), 5 << 30);
    for (path, reason) in [(&many, "16777217 inputs"), (&other, "f64[2,8,8]")] {
        let arguments = ["run", "--threads", "1", "--inputs", path];
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, &digits, &arguments);
        assert_eq!(code, 4, "{error}");
        assert!(error.contains(reason), "{error}");
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
        let (code, error) = judged(path);
        assert_eq!(code, 4, "{error}");
        assert!(error.contains(reason), "{error}");
    }
    // 1 KiB for each of the two classes, and a byte more.
    let text = |length: usize| sparse("long.txt", format!("1\n{:length$}", 2).as_bytes(), 0);
    let (code, error) = judged(&text(2046));
    assert_eq!(code, 0, "{error}");
    let (code, error) = judged(&text(2047));
    assert_eq!(code, 4, "{error}");
    assert!(error.contains("more than 2048 bytes"), "{error}");
}

/// A recording whose input may be a picture of 8 x 8 pixels.
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

/// Writes parts of a file with holes of so many bytes behind them.
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
    // A scan without an end, and chunks that change nothing.
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
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
        assert_eq!(code, 4, "{error}");
        assert!(error.contains("bytes; a picture of this format"), "{error}");
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
    let (code, _, error) = file.ran(&["sign", "--key", secret.to_str().unwrap()]);
    assert_eq!(code, 0, "{error}");
    let required = ["verify", "--require-signature", public.to_str().unwrap()];
    let (code, _, error) = file.ran(&required);
    assert_eq!(code, 0, "{error}");
    for name in ["recording.gpr", "manifest.toml", "a.bin", "recording.sig"] {
        let kept = std::fs::read(file.at(name)).unwrap();
        // As long as any file may be; a recording says so itself.
        let length: u64 = 4 << 30;
        let mut long = kept.clone();
        if name == "recording.gpr" {
            long[16..24].copy_from_slice(&length.to_le_bytes());
        }
        sparse(&file.at(name), &[(&long, length - long.len() as u64)]);
        let (code, _, error) = file.ran(&required);
        assert_eq!(code, 3, "{name}: {error}");
        assert!(error.contains("longer than"), "{name}: {error}");
        std::fs::write(file.at(name), kept).unwrap();
    }
    assert_eq!(file.ran(&required).0, 0);
}

/// A pack of a recording with these files beside it.
fn packed(beside: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let recording = ("recording.gpr".to_owned(), named("a", 1));
    gpureplay_sign::pack(&beside.chain([recording]).collect()).unwrap()
}

#[test]
fn a_pack_is_looked_at_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    // Its name says nothing about a folder.
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
    let (code, _, error) = ran_in(MEMORY_WITH_MODEL, &path, &arguments);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn a_pack_has_as_many_folders_as_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pack");
    let name = |at: usize| format!("{at}/b/c/d/e/f/g/x");
    let files = |count| (0..count).map(|at| (name(at), Vec::new()));
    // Seven each.
    for (count, refused) in [(36, false), (37, true), (4000, true)] {
        std::fs::write(&path, packed(files(count))).unwrap();
        for command in ["verify", "unpack"] {
            let made = folder.path().join("made");
            let mut arguments = vec![command];
            if command == "unpack" {
                arguments.extend(["--output", made.to_str().unwrap()]);
            }
            let (code, _, error) = ran(&path, &arguments);
            assert_eq!(
                code,
                if refused { 3 } else { 0 },
                "{command} {count}: {error}"
            );
            assert_eq!(error.contains("more than 256 folders"), refused, "{error}");
            let _ = std::fs::remove_dir_all(&made);
        }
    }
}

#[test]
fn an_error_about_a_shape_of_a_million_dimensions_is_short() {
    let file = File::new(&named("a", 1));
    let ones = vec!["1"; 1_900_000].join(",");
    let header = format!(r#"{{"a":{{"dtype":"U8","shape":[{ones}],"data_offsets":[0,1]}}}}"#);
    let bytes = [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &[7],
    ]
    .concat();
    let path = file.at("x.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let input = format!("a={}#a", path.display());
    let arguments = ["run", "--threads", "1", "--input", &input];
    let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
    assert_eq!(code, 4, "{}", error.len());
    assert!(error.len() < 4096, "{}", error.len());
    assert!(error.contains("1900000 dimensions"), "{error}");
}

#[test]
fn manifests_that_nest_or_repeat_are_refused_in_little_memory() {
    let file = File::new(&named("a", 1));
    let path = file.at("manifest.toml");
    let deep = 1 << 18;
    let texts = [
        format!(
            "version = 1\nx = {}{}\n",
            "[".repeat(deep),
            "]".repeat(deep)
        ),
        format!(
            "version = 1\nx = {}1{}\n",
            "{a=".repeat(deep),
            "}".repeat(deep)
        ),
        format!("version = 1\n[{}]\n", vec!["a"; deep].join(".")),
        format!("version = 1\n{} = 1\n", vec!["a"; deep].join(".")),
        "version = 1\n".repeat(1 << 16),
    ];
    for text in texts {
        std::fs::write(&path, &text).unwrap();
        let (code, _, error) = file.ran(&["info"]);
        assert!((3..=4).contains(&code), "{code} {error}");
        assert!(error.len() < 1 << 16, "{}", error.len());
    }
}

#[test]
fn checkpoints_take_no_memory_for_what_is_not_used() {
    let mut builder = builder();
    let pages = (1 << 30) / 4096;
    builder.region(0x1_0000_0000, pages, Access::READ_WRITE, RegionKind::Data);
    for number in 0..20 {
        builder.segment("run", SegmentKind::Run);
        if number % 7 == 0 {
            builder.upload(JOBS, &null_job(0));
            builder.submit(1, JOBS, 1000);
        }
    }
    let file = File::new(&builder.finish().unwrap());
    let arguments = ["run", "--threads", "1", "--retry", "1"];
    let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn a_job_that_follows_itself_is_not_tried_again() {
    let mut builder = builder();
    builder.segment("run", SegmentKind::Run);
    builder.upload(JOBS, &null_job(JOBS));
    builder.submit(1, JOBS, 1000);
    let file = File::new(&builder.finish().unwrap());
    let path = file.0.path();
    // As often as it may be tried again, it does the work of one run.
    for limit in [&[][..], &["--limit-work", "100000"]] {
        let arguments = [&["run", "--threads", "1", "--retry", "1000000"], limit].concat();
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, path, &arguments);
        assert_eq!(code, 5, "{error}");
        assert!(error.contains("job 0x2000000 on slot 1"), "{error}");
        assert!(error.contains("needs more work than the limit"), "{error}");
    }
}

#[test]
fn layers_are_chosen_in_time_that_grows_with_the_file() {
    let mut builder = builder();
    let count = 20_000;
    for index in 0..count {
        let (name, va) = (format!("t{index}"), DATA);
        let tensor = Tensor::dense(&name, TensorKind::Intermediate, ElementType::U8, &[1], va);
        builder.tensor(tensor);
    }
    let output = Tensor::dense("y", TensorKind::Output, ElementType::U8, &[1], DATA);
    let output = builder.tensor(output);
    let tensors: Vec<_> = (0..count).map(gpureplay_format::TensorId).collect();
    for chunk in tensors.chunks(100) {
        builder.segment("run", SegmentKind::Run);
        for tensor in chunk {
            builder.bind_input(*tensor);
            builder.bind_output(*tensor);
        }
        null_chain(&mut builder, JOBS);
        builder.bind_output(output);
    }
    let file = File::new(&builder.finish().unwrap());
    let began = std::time::Instant::now();
    for range in ["200", "199..200", "100..150"] {
        let arguments = ["run", "--threads", "1", "--layers", range];
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
        assert!(code == 0 || code == 4, "{code} {error}");
    }
    assert!(began.elapsed().as_secs() < 60);
}

fn shipped(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    folder.join(name)
}

/// Exit code and standard error of a command on a recording with this limit of work.
fn limited(command: &str, recording: &Path, limit: u64) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .args([
            command,
            "--threads",
            "1",
            "--limit-work",
            &limit.to_string(),
        ])
        .arg(recording)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn work_on_the_model_has_a_limit_if_none_is_given() {
    for (binds, external) in [(1, false), (1000, false), (1, true)] {
        let mut builder = builder();
        let shape = [4000];
        let tensor = Tensor {
            external,
            ..Tensor::dense("x", TensorKind::Weight, ElementType::U8, &shape, DATA)
        };
        let tensor = builder.tensor(tensor);
        builder.segment("run", SegmentKind::Run);
        (0..binds).for_each(|_| builder.bind_input(tensor));
        builder.upload(JOBS, &null_job(JOBS));
        builder.submit(1, JOBS, 1000);
        let bytes = builder.finish().unwrap();
        // A weight beside the recording counts as one inside.
        let limit = (1 << 28) + 2 * (bytes.len() + if external { 4000 } else { 0 });
        let file = File::new(&bytes);
        let weight = file.at("x.bin");
        std::fs::write(&weight, [7; 4000]).unwrap();
        let weight = format!("x={}", weight.display());
        // A chain ends after 65,535 jobs, half of what a run may do; other attempts go on until the limit.
        let mut arguments = vec!["run", "--threads", "1", "--retry", "3"];
        if external {
            arguments.extend(["--input", &weight]);
        }
        let (code, _, error) = ran_in(MEMORY_WITH_MODEL, file.0.path(), &arguments);
        assert_eq!(code, 5, "{error}");
        let named = format!("the limit of {limit} clauses");
        assert!(error.contains(&named), "{named}: {error}");
    }
}

#[test]
fn work_on_the_model_ends_at_the_limit() {
    let saxpy = shipped("saxpy-g52");
    let enough = |limit: u64| limited("run", &saxpy, limit).0 == 0;
    // The limit that is just enough.
    let (mut less, mut more) = (1, 1 << 24);
    assert!(!enough(less) && enough(more));
    while more - less > 1 {
        let middle = less.midpoint(more);
        match enough(middle) {
            true => more = middle,
            false => less = middle,
        }
    }
    let (code, error) = limited("run", &saxpy, less);
    assert_eq!(code, 5, "{error}");
    for part in [
        "job 0x",
        " on slot 1 ",
        &format!("limit of {less} clauses"),
        "--limit-work N",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (code, error) = limited("bench", &saxpy, less);
    assert!(code == 5 && error.contains("--limit-work N"), "{error}");
}

#[test]
fn every_command_that_runs_a_recording_names_the_job_that_needs_too_much_work() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made.npy");
    for command in [
        "diff --against model",
        "retarget --gpu g31 -o MADE",
        "extract --job 0 -o MADE",
        "extract --tensor out -o MADE",
        "patch --job 0 --local 4",
        "tune --job 0 --local 4",
        "jobs",
        "analyse",
    ] {
        let words = command.split(' ').map(|word| match word {
            "MADE" => made.as_os_str(),
            _ => word.as_ref(),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
            .args(words)
            .args(["--limit-work", "1"])
            .arg(shipped("saxpy-g52"))
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && !made.exists(),
            "{command}: {error}"
        );
        for part in ["job 0x", "the limit of 1 clauses", "--limit-work N"] {
            assert!(error.contains(part), "{command}, {part}: {error}");
        }
    }
}

#[test]
fn rules_of_the_host_are_named() {
    let (code, text, _) = ran(Path::new("--rules"), &["verify"]);
    assert_eq!(code, 0);
    for rule in gpureplay_library::host_rules::HostRule::ALL {
        assert!(text.contains(rule.name()), "{}", rule.name());
    }
}

/// Most memory that a command holds at a time, in KiB: what the kernel says as long as it runs.
fn peak(arguments: &[&str]) -> u64 {
    peak_with(arguments, &[])
}

/// As [`peak`], with these variables set.
fn peak_with(arguments: &[&str], variables: &[(&str, &str)]) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .args(arguments)
        .envs(variables.iter().copied())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        most = most.max(number.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(ended.success(), "{arguments:?}");
    most
}

#[test]
fn finding_22_a_benchmark_takes_little_more_memory_than_a_run() {
    let lenet = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/lenet-g52");
    let lenet = lenet.to_str().unwrap();
    let run = peak(&["run", lenet]);
    let bench = peak(&["bench", lenet, "--runs", "3"]);
    assert!(run > 0 && bench < run + (100 << 10), "{run} {bench} KiB");
}

/// A raw trace of a chain that computes nothing, submitted so many times after these notes.
fn trace(notes: impl Iterator<Item = String>, jobs: usize) -> Vec<u8> {
    trace_of(notes.map(Some).chain((0..jobs).map(|_| None)))
}

/// A raw trace of these notes, and of a chain that computes nothing where there is none.
fn trace_of(steps: impl Iterator<Item = Option<String>>) -> Vec<u8> {
    use gpureplay_trace::{Driver, Phase, RegionFlags, Writer};
    let mut page = [0; 4096];
    page[16] = 1 | 4 << 1;
    let mut trace = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap();
    trace.reg_read(0, GPU).unwrap();
    trace.region(0, RegionFlags(3), JOBS, 1).unwrap();
    trace.page(0, Phase::Before, JOBS, &page).unwrap();
    trace.reg_write(0x18c0, JOBS as u32).unwrap();
    for step in steps {
        match step {
            Some(note) => trace.note(&note).unwrap(),
            None => {
                trace.submit(1, 0, JOBS).unwrap();
                trace.complete(1, 1).unwrap();
            }
        }
    }
    trace.end().unwrap()
}

/// Compiles a trace with little memory and in as many seconds of a processor as no sound algorithm needs.
fn compiled(trace: &[u8]) -> (i32, String) {
    compiled_from(trace, false)
}

/// The same; `twice`: with the trace as the second run's, too.
fn compiled_from(trace: &[u8], twice: bool) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, trace).unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -t 20 && ulimit -v $0 && exec \"$@\"", MEMORY])
        .arg(env!("CARGO_BIN_EXE_gpureplay"))
        .args(["compile", "--suggest"])
        .arg(&path)
        .args(twice.then_some("--second"))
        .args(twice.then_some(&path))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(text).unwrap(),
    )
}

fn launch(id: usize, queue: usize, items: u64) -> String {
    format!("cl2 launch id={id} queue={queue} kernel=k global={items},1,1 local=-")
}

#[test]
fn pages_may_come_in_descending_order() {
    use gpureplay_trace::{Driver, Phase, Writer};
    let mut trace = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap();
    for page in (1..700_000).rev() {
        trace
            .page(0, Phase::Before, page << 12, &[0; 4096])
            .unwrap();
    }
    let (code, text) = compiled(&trace.end().unwrap());
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("no GPU job"), "{text}");
}

#[test]
fn launches_of_many_small_chains_are_matched_in_bounded_time() {
    let launches = (0..4000).map(|id| launch(id, 1, 1 << 40));
    let (code, text) = compiled(&trace(launches, 4000));
    assert_eq!(code, 0, "{text}");
}

#[test]
fn launches_of_many_queues_are_matched_in_bounded_memory() {
    let launches = (0..1000).map(|id| launch(id, id + 1, 1));
    let (code, text) = compiled(&trace(launches, 1000));
    assert_eq!(code, 0, "{text}");
}

#[test]
fn launches_that_are_all_alike_are_no_loop_that_is_looked_for_without_end() {
    let launches = (0..30_000).map(|id| launch(id, 1, 1));
    let (code, text) = compiled(&trace(launches, 1));
    assert_eq!(code, 0, "{text}");
}

/// Arguments of a launch, each a memory object.
fn given(objects: impl Iterator<Item = usize>) -> String {
    objects.map(|object| format!(" ::o{object}")).collect()
}

fn written(object: usize, offset: usize, hash: u64) -> String {
    format!("cl2 write at={object}+{offset} size=4 hash={hash:x} queue=- complete=1")
}

#[test]
fn turns_of_launches_with_many_arguments_are_looked_for_in_bounded_time() {
    // Turns of any even length are alike but for an object at the very end.
    let steps = 8000;
    let step = |at: usize| match at % 2 {
        0 => written(0, 0, 7),
        _ => {
            let last = 300 + usize::from(at + 1 == steps);
            format!("{}{}", launch(at, 1, 1), given((1..255).chain([last])))
        }
    };
    let (code, text) = compiled(&trace((0..steps).map(step), 1));
    assert_eq!(code, 0, "{text}");
}

#[test]
fn what_launches_with_many_arguments_read_is_looked_for_in_bounded_time() {
    let parts = (0..255).map(|id| format!("cl2 object id={} kind=part of=0+{id} size=1", id + 1));
    let notes = ["cl2 object id=0 kind=buffer size=65536".to_owned()].into_iter();
    let notes = notes.chain(parts);
    let notes = notes.chain((0..12_000).map(|at| written(0, 1000 + 4 * at, at as u64)));
    let launches = (0..12_000).map(|at| launch(at, 1, 1) + &given(1..256));
    let (code, text) = compiled(&trace(notes.chain(launches), 1));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("takes too long"), "{text}");
}

#[test]
fn queues_that_are_idle_again_and_again_are_matched_in_bounded_time() {
    // Each of so many queues has a launch, and each chain may be any of them.
    let queues = 17;
    let notes = (0..5_000).flat_map(|_| {
        let launches = (0..queues).map(|at| Some(launch(at, at, 1)));
        let idle = (0..queues).map(|at| Some(format!("cl2 idle queue={at}")));
        launches.chain((0..queues).map(|_| None)).chain(idle)
    });
    let (code, text) = compiled(&trace_of(notes));
    assert_eq!(code, 0, "{text}");
}

/// A trace of a page of data, of which every four bytes are written into each of so many buffers; a launch is given them. A last buffer is
/// written and given to another launch. Then come so many jobs.
fn trace_of_writes(buffers: usize, jobs: usize) -> Vec<u8> {
    use gpureplay_trace::{Driver, Phase, RegionFlags, Writer};
    let mut page = [0; 4096];
    page[16] = 1 | 4 << 1;
    let data: [u8; 4096] = std::array::from_fn(|at| (at % 251) as u8 + 1);
    let write = |buffer: usize, at: usize| {
        let hash = gpureplay_trace::note::content_hash(&data[at..at + 4]);
        written(buffer, at, hash)
    };
    let mut trace = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap();
    trace.reg_read(0, GPU).unwrap();
    trace.region(0, RegionFlags(3), JOBS, 1).unwrap();
    trace.region(0, RegionFlags(3), DATA, 100).unwrap();
    trace.mapping(true, Some(0), 0, DATA, 4096).unwrap();
    trace.page(0, Phase::Before, JOBS, &page).unwrap();
    trace.page(0, Phase::Before, DATA, &data).unwrap();
    trace.reg_write(0x18c0, JOBS as u32).unwrap();
    for id in 0..=buffers {
        let object = format!("cl2 object id={id} kind=buffer size=4096");
        trace.note(&object).unwrap();
    }
    for (id, at) in (0..buffers).flat_map(|id| (0..1000).map(move |at| (id, 4 * at))) {
        trace.note(&write(id, at)).unwrap();
    }
    trace.note(&(launch(0, 1, 1) + &given(0..buffers))).unwrap();
    trace.note(&write(buffers, 4000)).unwrap();
    let last = launch(1, 1, 1) + &given(buffers..buffers + 1);
    trace.note(&last).unwrap();
    for _ in 0..jobs {
        trace.submit(1, 0, JOBS).unwrap();
        trace.complete(1, 1).unwrap();
    }
    trace.end().unwrap()
}

#[test]
fn weights_are_looked_for_among_what_the_app_loads_in_one_pass() {
    let (code, text) = compiled(&trace_of_writes(50, 100_000));
    assert_eq!(code, 0, "{}", text.len());
}

#[test]
fn values_of_a_second_run_are_looked_up() {
    let (code, text) = compiled_from(&trace_of_writes(150, 2), true);
    assert_eq!(code, 0, "{}", text.len());
}

/// A recording of so many chains of two null jobs, in pages from [`JOBS`] on; each chain shares a page with the one that is submitted before
/// it. A tensor lies just before the first page.
fn chains_that_share_pages(chains: u64) -> Vec<u8> {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    let access = Access::READ_WRITE;
    builder.region(JOBS - 4096, 1, access, RegionKind::Data);
    builder.region(JOBS, chains as u32 + 1, access, RegionKind::Descriptors);
    let tensor = Tensor::dense("x", TensorKind::Weight, ElementType::U8, &[16], JOBS - 16);
    let tensor = builder.tensor(tensor);
    builder.segment("setup", SegmentKind::Setup);
    let pages = || (0..chains).rev().map(|at| JOBS + 4096 * at);
    for page in pages() {
        builder.upload(page, &null_job(page + 4096 + 64));
        builder.upload(page + 4096 + 64, &null_job(0));
    }
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(tensor);
    for page in pages() {
        builder.rearm(page);
        builder.rearm(page + 4096 + 64);
        builder.submit(1, page, 1000);
    }
    builder.finish().unwrap()
}

/// Joins the chains of a recording with so much address space, in KiB, and few seconds of a processor.
fn linked(recording: &[u8], memory: &str) -> (i32, String) {
    let file = File::new(recording);
    let output = Command::new("sh")
        .args(["-c", "ulimit -t 20 && ulimit -v $0 && exec \"$@\"", memory])
        .arg(env!("CARGO_BIN_EXE_gpureplay"))
        .arg("link")
        .arg(file.0.path())
        .arg("-o")
        .arg(file.at("linked"))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let code = output.status.code().unwrap_or(-1);
    (code, String::from_utf8(text).unwrap())
}

#[test]
fn chains_that_share_pages_are_looked_at_once() {
    let (code, text) = linked(&chains_that_share_pages(30_000), MEMORY);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("30000 chains in place of 30000"), "{text}");
}

#[test]
fn chains_have_as_many_copies_as_they_may() {
    let submitted = |times: usize| {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(JOBS, &null_job(0));
        builder.segment("run", SegmentKind::Run);
        for _ in 0..times {
            builder.rearm(JOBS);
            builder.submit(1, JOBS, 1000);
        }
        builder.finish().unwrap()
    };
    // A quarter of the address space that other commands get.
    let memory = "262144";
    let (code, text) = linked(&submitted(1 << 14), memory);
    assert!(
        text.contains("256 chains in place of 16384"),
        "{code} {text}"
    );
    let (code, text) = linked(&submitted((1 << 14) + 1), memory);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("more than 16384 pages"), "{text}");
}
