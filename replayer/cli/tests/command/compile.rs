// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tag`, `compile` and `run`, on a trace of the GPU model.

#[path = "../../../../mali/compile/tests/model/driver.rs"]
mod driver;

use std::fs;
use std::path::Path;

use gpureplay_tensors::{ElementType, Tensor, read_npy, write_npy};

use crate::start::{self, Ended, Says, ran_in};
use driver::{Driver, vector_add, vector_add_code};

const CODE: u64 = 0x200_0000;
const POOL: u64 = 0x210_0000;
const A: u64 = 0x300_0000;
const B: u64 = 0x310_0000;
const OUT: u64 = 0x320_0000;

struct Folder(start::Folder);

impl Folder {
    fn run(&self, line: &str) -> (i32, String, String) {
        ran_in(self.0.path(), line)
    }

    fn ok(&self, arguments: &str) -> String {
        self.run(arguments).gave(0)
    }

    fn fails(&self, arguments: &str, code: i32, text: &str) {
        let error = self.run(arguments).ended(code, text);
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    fn tensor(&self, name: &str) -> Tensor {
        read_npy(&self.0.at(name)).unwrap()
    }

    fn record(&self, a: &str, b: &str, out: &str, trace: &str) {
        let mut app = Driver::probe(&[
            (CODE, 1, true),
            (POOL, 1, false),
            (A, 1, false),
            (B, 1, false),
            (OUT, 1, false),
        ]);
        app.store(CODE, &vector_add_code());
        app.store(A, self.tensor(a).bytes());
        app.store(B, self.tensor(b).bytes());
        app.run(POOL, &vector_add(POOL, CODE, A, B, OUT));
        let result = Tensor::new(ElementType::F32, &[1024], app.load(OUT, 4096)).unwrap();
        write_npy(&self.0.at(out), &result).unwrap();
        fs::write(self.0.at(trace), app.finish()).unwrap();
    }
}

const TENSORS: &str = "--input a=a.npy --input b=b.npy --output out=out.npy";

fn recorded() -> Folder {
    let folder = Folder(start::Folder::default());
    for (file, seed) in [("a", 1), ("b", 2), ("a2", 3), ("b2", 4)] {
        folder.ok(&format!("tag --shape 1024 --seed {seed} {file}.npy"));
    }
    folder.record("a.npy", "b.npy", "out.npy", "trace");
    folder
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_trace_becomes_a_recording_that_runs_with_other_inputs() {
    let folder = recorded();
    folder.record("a2.npy", "b2.npy", "out2.npy", "trace2");
    let text = folder.ok(&format!(
        "compile trace {TENSORS} -o rec/add --second trace2 --second-input a=a2.npy \
         --second-input b=b2.npy --second-output out=out2.npy"
    ));
    text.says("input  a  f32[1024] at 0x3000000");
    text.says("same in a second run");
    assert_eq!(names(&folder.0.at("rec")), ["add"]);
    let files = names(&folder.0.at("rec/add"));
    assert_eq!(
        files,
        ["expected", "inputs", "manifest.toml", "recording.gpr"]
    );

    let next = text.lines().last().unwrap().trim();
    let next = next.strip_prefix("gpureplay ").unwrap();
    let next = next.replace("=FILE.npy", "=got.npy");
    folder.ok(&next
        .replace("a=FILE", "a=a2.npy")
        .replace("b=FILE", "b=b2.npy"));
    assert_eq!(folder.tensor("got.npy"), folder.tensor("out2.npy"));
    let text =
        folder.ok("run rec/add --input a=rec/add/inputs/a.npy --input b=rec/add/inputs/b.npy");
    assert!(!text.contains("nothing to compare"), "{text}");

    folder.fails(&format!("compile trace {TENSORS} -o rec/add"), 6, "--force");
    let json = folder.ok(&format!(
        "compile trace {TENSORS} -o rec/add --force --json"
    ));
    crate::schema_check::assert_fits("recorded", &json);
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = recorded();
    let records = folder.ok("info trace");
    assert_eq!(records, folder.ok("info trace --actions"));
    records.says("GPU_ID");
    folder.fails("info trace --json", 2, "a raw trace has no JSON");
    folder.fails("compile none -o rec/x", 4, "none");
    folder.fails("compile a.npy -o rec/x", 3, "not a raw trace");
    folder.fails("compile trace --input a=none.npy -o rec/x", 4, "none.npy");
    folder.fails(
        "compile trace --input a=a2.npy -o rec/x",
        3,
        "input 'a' (f32 [1024])",
    );
    let second = format!("compile trace {TENSORS} -o rec/x --second trace");
    folder.fails(&second, 2, "--second-input a=FILE");
    folder.fails(
        &format!("{second} --second-input a=a2.npy --second-input b=b.npy"),
        3,
        "input 'a' of the second run",
    );
    let trace = fs::read(folder.0.at("trace")).unwrap();
    fs::write(folder.0.at("cut"), &trace[..trace.len() / 2]).unwrap();
    folder.fails("compile cut -o rec/x", 3, "cut off");
    folder.fails(
        "record --recorder kernel --device nothing --raw raw -- true",
        5,
        "insmod",
    );
    folder.fails("tag --shape 4294967296,4 x.npy", 2, "4 GiB");
    assert!(!folder.0.at("rec").exists());
    let files = [
        "a.npy", "a2.npy", "b.npy", "b2.npy", "cut", "out.npy", "trace",
    ];
    assert_eq!(names(folder.0.path()), files);
}

#[test]
fn weights_outside_of_a_recording_are_found_and_checked() {
    let folder = recorded();
    folder.record("a.npy", "b2.npy", "other.npy", "unused");
    folder.ok(
        "compile trace --input a=a.npy --weight b=b.npy --output out=out.npy --external-weights -o rec/add",
    );
    let weight = folder.0.at("rec/add/weights/b.npy");
    let manifest = fs::read_to_string(folder.0.at("rec/add/manifest.toml")).unwrap();
    manifest.says("[external.b]").says("sha256 = ");
    let recording = fs::read(folder.0.at("rec/add/recording.gpr")).unwrap();
    let values = folder.tensor("b.npy");
    assert!(
        !recording
            .windows(16)
            .any(|bytes| bytes == &values.bytes()[..16])
    );

    // Files of weights are found relative to the recording.
    let text = folder.ok("run rec/add");
    text.says("bit for bit");
    folder.ok("run rec/add --input a=a.npy --bind b=b2.npy --output got.npy");
    assert_eq!(folder.tensor("got.npy"), folder.tensor("other.npy"));

    fs::copy(folder.0.at("b2.npy"), &weight).unwrap();
    folder.fails("run rec/add", 4, "weights/b.npy: its SHA-256 is ");
    folder.ok("run rec/add --input a=a.npy --bind b=b.npy --expect out=out.npy");
    fs::remove_file(&weight).unwrap();
    folder.fails("run rec/add", 4, "the manifest keeps weight b in it");
}

#[test]
fn outputs_are_written_as_their_names_say() {
    let folder = recorded();
    folder.ok(&format!("compile trace {TENSORS} -o rec/add"));
    folder.ok("run rec/add --output got.bin");
    assert_eq!(
        fs::read(folder.0.at("got.bin")).unwrap(),
        folder.tensor("out.npy").bytes()
    );
    folder.ok("run rec/add --output got.json");
    let json = fs::read(folder.0.at("got.json")).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["shape"], serde_json::json!([1024]));
    let first = value["data"][0].as_f64().unwrap();
    assert_eq!(first as f32, folder.tensor("out.npy").value(0) as f32);
    fs::write(folder.0.at("a.bin"), folder.tensor("a.npy").bytes()).unwrap();
    folder.ok("run rec/add --input a=a.bin --input b=b.npy --expect out=out.npy");
    folder.ok("run rec/add --input a=a.bin:f32[1024] --input b=b.npy --expect out=out.npy");
    folder.fails(
        "run rec/add --input a=a.bin:f32[32,32] --input b=b.npy",
        4,
        "--input a.bin: f32[32,32] is stated, a is f32[1024]",
    );
    let stated = "run rec/add --input a=a.bin --input b=b.npy --output out=new.bin:f32[1024]";
    folder.run(stated).ended(2, "leave :f32[1024] out");
    fs::write(folder.0.at("short.bin"), [0; 5]).unwrap();
    folder.fails(
        "run rec/add --input a=short.bin --input b=b.npy",
        4,
        "5 bytes, but a f32[1024] has 4096",
    );
}
