// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings, and those of silicon, on other GPUs.

use std::path::{Path, PathBuf};

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::Platform;
use gpureplay_import::{built_in, convert, read_directory};
use gpureplay_library::{Device, Files, Recording, Session};
use gpureplay_retarget::{Effort, Options, TargetRule, compare, fits, retarget};
use mali_facts::Profile;
use mali_jobs::walk::check_for;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../recordings")
        .join(name)
}

fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).unwrap()
}

const SHIPPED: [&str; 6] = [
    "acl-conv-g52",
    "acl-gemm-g52",
    "digits-g52",
    "lenet-g52",
    "saxpy-g52",
    "saxpy-kbase-g52",
];

fn same_on_other_gpus(inputs: usize) {
    for name in SHIPPED {
        let read = || Files::read(&folder(name));
        let files = read().unwrap();
        let view = files.view().unwrap();
        let verified = *files.verify(&view).unwrap().chains().unwrap();
        for gpu in ["g31", "g76", "odroid-n2-plus", "rk3566", "g31-rzg2l"] {
            let what = format!("{name} on {gpu}");
            let made = retarget(&verified, profile(gpu), &Options::default());
            let made = made.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
            let grows = gpu == "g76" && !name.starts_with("saxpy");
            assert_eq!(!made.grown.is_empty(), grows, "{what}");
            let effort = Effort {
                inputs,
                ..Effort::default()
            };
            let compared = compare(read, &made, effort).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(compared.chains > 0 && compared.bytes > 0, "{what}");
            assert_eq!(compared.races, None, "{what}");
            println!("{what}: {compared:?}, {} jobs", made.jobs);
        }
    }
}

#[test]
fn shipped_recordings_compute_the_same_on_other_gpus() {
    same_on_other_gpus(2);
}

#[test]
#[ignore = "long: cargo test --release -p gpureplay-retarget -- --ignored"]
fn shipped_recordings_compute_the_same_for_ten_inputs() {
    same_on_other_gpus(10);
}

fn files_of(bytes: &[u8]) -> Files {
    Files::from_bytes(bytes.to_vec(), &gpureplay_library::Trust::default()).unwrap()
}

fn without_cores(bytes: &[u8], unused_cores: u32) -> Vec<u8> {
    let view = gpureplay_format::Recording::parse(bytes).unwrap();
    let platform = Platform {
        unused_cores,
        ..view.header().platform()
    };
    assemble(platform, &view.sections())
}

fn run_case(name: &str, bytes: &[u8]) -> Result<(), gpureplay_library::Error> {
    let recording = Recording::from_bytes(bytes.to_vec()).unwrap();
    run_on("model", name, recording)
}

fn run_on(choice: &str, name: &str, recording: Recording) -> Result<(), gpureplay_library::Error> {
    let shipped = Recording::open(folder(name)).unwrap();
    let case = shipped.manifest().unwrap().cases.first().unwrap().clone();
    let id = recording.verified().recording().gpu_id();
    let options = gpureplay_library::ModelOptions::default();
    let device = Device::open(&choice.parse().unwrap(), id, options).unwrap();
    let mut session = Session::on(recording, device);
    session.ignore_identity(choice != "model");
    for (tensor, file) in &case.inputs {
        session.bind_file(tensor, folder(name).join(file)).unwrap();
    }
    session.run()
}

#[test]
fn with_fewer_cores_no_storage_grows() {
    for name in ["digits-g52", "lenet-g52"] {
        let read = || Files::read(&folder(name));
        let files = read().unwrap();
        let view = files.view().unwrap();
        let verified = *files.verify(&view).unwrap().chains().unwrap();
        let options = Options {
            limit_cores: true,
            ..Options::default()
        };
        let made = retarget(&verified, profile("g76"), &options).unwrap();
        // A G52 has two cores, a G76 sixteen.
        assert_eq!((made.unused_cores, made.grown.len()), (0xfffc, 0), "{name}");
        let limited = files_of(&made.bytes);
        let view = limited.view().unwrap();
        let limited = *limited.verify(&view).unwrap().chains().unwrap();
        let header = limited.recording().header();
        assert_eq!((header.unused_cores.get(), header.minor.get()), (0xfffc, 2));
        let compared = compare(read, &made, Effort::default()).unwrap();
        assert!(compared.chains > 0 && compared.bytes > 0, "{name}");

        let all = without_cores(&made.bytes, 0);
        let grown = files_of(&all);
        let view = grown.view().unwrap();
        let grown = *grown.verify(&view).unwrap().chains().unwrap();
        let refusal = check_for(&grown, profile("g76")).unwrap_err();
        assert!(refusal.to_string().contains("buffer-region"), "{refusal}");
        run_case(name, &made.bytes).unwrap();
        let error = run_case(name, &all).unwrap_err().to_string();
        assert!(error.contains("fault"), "{error}");

        let none = without_cores(&made.bytes, u32::MAX);
        let error = run_case(name, &none).unwrap_err().to_string();
        assert!(error.contains("AFFINITY"), "{error}");

        let again = retarget(&limited, profile("odroid-n2-plus"), &Options::default());
        assert_eq!(again.unwrap().unused_cores, 0);
    }
}

fn silicon(name: &str) -> Option<Vec<u8>> {
    let directory = gpureplay_kit::shared(&format!("gpureplay-recordings/{name}"))?;
    let original = read_directory(&directory).unwrap();
    let plain = convert(&original, &gpureplay_import::Options::default()).unwrap();
    let options = gpureplay_import::Options {
        description: built_in(plain.fingerprint).unwrap(),
        ..gpureplay_import::Options::default()
    };
    Some(convert(&original, &options).unwrap().recording)
}

fn silicon_on_g72(name: &str, inputs: usize) {
    let Some(bytes) = silicon(name) else { return };
    let read = || Files::from_bytes(bytes.clone(), &gpureplay_library::Trust::default());
    let files = read().unwrap();
    let view = files.view().unwrap();
    let verified = *files.verify(&view).unwrap().chains().unwrap();
    let made = retarget(&verified, profile("g72"), &Options::default());
    let made = made.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    let effort = Effort {
        inputs,
        work_limit: Some(1 << 40),
    };
    let compared = compare(read, &made, effort).unwrap_or_else(|error| panic!("{name}: {error}"));
    println!("{name}: {compared:?}, {} jobs", made.jobs);
    let mixed = Options {
        mix_versions: true,
        ..Options::default()
    };
    let refusal = retarget(&verified, profile("g52"), &mixed).unwrap_err();
    assert_eq!(refusal.rule, TargetRule::Instructions, "{refusal}");
}

#[test]
fn silicon_mnist_on_g72() {
    silicon_on_g72("mnist", 2);
}

#[test]
#[ignore = "long: cargo test --release -p gpureplay-retarget -- --ignored"]
fn silicon_mnist_on_g72_for_ten_inputs() {
    silicon_on_g72("mnist", 10);
}

/// Takes ten minutes on two cores.
#[test]
#[ignore = "long: cargo test --release -p gpureplay-retarget -- --ignored"]
fn silicon_alexnet_on_g72() {
    silicon_on_g72("alexnet", 10);
}

#[test]
fn an_instruction_that_g71_lacks_is_named_with_clause_and_job() {
    let files = Files::read(&folder("digits-g52")).unwrap();
    let view = files.view().unwrap();
    let verified = *files.verify(&view).unwrap().chains().unwrap();
    let plain = retarget(&verified, profile("g71"), &Options::default()).unwrap_err();
    assert_eq!(plain.rule, TargetRule::Version);
    let mixed = Options {
        mix_versions: true,
        ..Options::default()
    };
    let refusal = retarget(&verified, profile("g71"), &mixed).unwrap_err();
    assert_eq!(refusal.rule, TargetRule::Instructions);
    assert!(refusal.job.is_some());
    let text = refusal.to_string();
    for part in [
        "+FRCP.f32 in clause 0x",
        "of submission ",
        "Mali-G71 lacks it",
        "by job 0x",
    ] {
        assert!(text.contains(part), "{text}");
    }
    println!("{text}");
    let read = || Files::read(&folder("saxpy-g52"));
    let files = read().unwrap();
    let view = files.view().unwrap();
    let verified = *files.verify(&view).unwrap().chains().unwrap();
    let made = retarget(&verified, profile("g71"), &mixed).unwrap();
    assert!(!made.descriptors.is_empty() || made.source.architecture == made.target.architecture);
    compare(read, &made, Effort::default()).unwrap();
}

#[test]
fn a_recording_whose_storage_was_not_grown_is_refused_and_faults() {
    let name = "lenet-g52";
    let files = Files::read(&folder(name)).unwrap();
    let view = files.view().unwrap();
    let verified = *files.verify(&view).unwrap().chains().unwrap();
    let g76 = profile("g76");
    let refusal = fits(&verified, g76, &Options::default()).unwrap_err();
    assert_eq!(refusal.rule, TargetRule::Deep, "{refusal}");
    assert!(refusal.text.contains("buffer-region"), "{refusal}");
    assert!(check_for(&verified, profile("g31")).is_ok());
    let recording = Recording::open(folder(name)).unwrap();
    let error = run_on("model:g76", name, recording);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("fault"), "{error}");
}
