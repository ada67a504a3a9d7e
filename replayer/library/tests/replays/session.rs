// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions on the digits network.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gpureplay_core::middleware::{Call, Trace};
use gpureplay_format::Action;
use gpureplay_library::device::{Choice, Fault};
use gpureplay_library::{
    Class, Device, Files, Options, Phase, Recording, Session, Tensor, Trust, selection, values,
};
use gpureplay_on_model::OnModel;
use gpureplay_sign::{SecretKey, sign};
use mali_drive::middleware::FaultKind;
use mali_model::Profile;

#[path = "../../examples/layer_on_cpu.rs"]
#[allow(dead_code, unreachable_pub)]
mod layer_on_cpu;

fn digits() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../recordings/digits-g52")
}

fn expected(digit: usize) -> Tensor {
    values::read_any(&digits().join(format!("expected/{digit}.npy"))).unwrap()
}

fn image(digit: usize) -> PathBuf {
    digits().join(format!("inputs/{digit}.npy"))
}

/// One host thread: tests run in parallel already.
fn options() -> Options {
    let mut options = Options::default();
    options.model.threads = Some(1);
    options
}

fn session() -> Session {
    Recording::open(digits())
        .unwrap()
        .session(options())
        .unwrap()
}

fn answers(session: &mut Session, digit: usize) {
    session.run().unwrap();
    assert_eq!(session.read("probabilities").unwrap(), expected(digit));
}

#[test]
fn threads_have_a_session_each_and_share_the_recording() {
    let recording = Recording::open(digits()).unwrap();
    let answers: Vec<Tensor> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|digit| {
                let recording = recording.clone();
                scope.spawn(move || {
                    let mut session = recording.session(options()).unwrap();
                    session.bind_file("input", image(digit)).unwrap();
                    session.run().unwrap();
                    session.read("probabilities").unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (digit, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, expected(digit), "digit {digit}");
    }
}

#[test]
fn a_layer_on_the_cpu_gives_the_same_answer() {
    layer_on_cpu::main().unwrap();
}

#[test]
fn layers_run_one_by_one_and_are_skipped_where_their_value_is_given() {
    let mut session = session();
    let layers = session.recording().layers().iter();
    let names: Vec<&str> = layers.map(|layer| layer.name.as_str()).collect();
    let all = "conv1 conv2 pool1 conv3 pool2 fc probabilities";
    assert_eq!(names.join(" "), all);
    let count = names.len();
    session.bind_file("input", image(3)).unwrap();
    for layer in 0..count {
        session.run_layers(layer..layer + 1).unwrap();
    }
    assert_eq!(session.read("probabilities").unwrap(), expected(3));

    session.keep("conv3").unwrap();
    session.run_layers(0..4).unwrap();
    let conv3 = session.read("conv3").unwrap();
    // From pool2 on only conv3 counts.
    let mut other = self::session();
    other.bind("conv3", conv3).unwrap();
    other.run_layers(4..7).unwrap();
    assert_eq!(other.read("probabilities").unwrap(), expected(3));
    let error = other.run().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("input input f32[8,8] has no value"),
        "{error}"
    );
    assert_eq!(other.run_layers(5..9).unwrap_err().class(), Class::Usage);
}

#[test]
fn layers_do_not_compute_with_values_that_nobody_gave() {
    let mut session = session();
    session.bind_file("input", image(3)).unwrap();
    let error = session.run_layers(4..7).unwrap_err();
    assert_eq!(error.class(), Class::Input);
    assert!(
        error.to_string().contains(
            "layers 5 to 7 read conv3 f32[4,4,32], which layers before them compute; give it"
        ),
        "{error}"
    );
    session.run_layers(0..3).unwrap();
    let error = session.run_layers(4..7).unwrap_err();
    assert!(error.to_string().contains("read conv3"), "{error}");
    session.use_recorded_values(true);
    session.run_layers(4..7).unwrap();
    assert_ne!(session.read("probabilities").unwrap(), expected(3));
    answers(&mut session, 3);
}

#[test]
fn weights_are_replaced_and_come_back() {
    let mut session = session();
    session.bind_file("input", image(3)).unwrap();
    session.run().unwrap();
    let bias: Vec<f32> = (0..10)
        .map(|digit| if digit == 7 { 100.0 } else { 0.0 })
        .collect();
    session
        .bind("fc.bias", Tensor::from_f32(&[10], &bias).unwrap())
        .unwrap();
    session.run().unwrap();
    assert_eq!(session.read("probabilities").unwrap().value(7), 1.0);
    session.unbind("fc.bias").unwrap();
    answers(&mut session, 3);
}

#[test]
fn wrong_use_is_named() {
    let mut session = session();
    let text = |error: gpureplay_library::Error| error.to_string();
    assert!(text(session.read("probabilities").unwrap_err()).contains("has run yet"));
    let small = Tensor::from_f32(&[2], &[0.0; 2]).unwrap();
    let error = text(session.bind("input", small.clone()).unwrap_err());
    assert!(
        error.contains("f32[2]") && error.contains("f32[8,8]"),
        "{error}"
    );
    let error = text(session.bind("inputs", small.clone()).unwrap_err());
    assert!(
        error.contains("no tensor inputs; its only input is input f32[8,8]"),
        "{error}"
    );
    let error = session.bind("probabilities", small).unwrap_err();
    assert_eq!(error.class(), Class::Input, "{error}");
    assert_eq!(session.missing(), ["input"]);
    let error = Recording::open(digits().join("inputs")).unwrap_err();
    assert_eq!(error.class(), Class::Recording, "{error}");
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    maps: u64,
    activations: u64,
    resets: u64,
    stored: u64,
    loaded: u64,
}

#[test]
fn runs_after_the_first_restore_what_a_run_changes_and_nothing_else() {
    let recording = Recording::open(digits()).unwrap().apart().unwrap();
    let counts = Arc::new(Mutex::new(Counts::default()));
    let sink = {
        let counts = counts.clone();
        move |call| {
            let mut counts = counts.lock().unwrap();
            match call {
                Call::Map(..) => counts.maps += 1,
                Call::Activate => counts.activations += 1,
                Call::Reset => counts.resets += 1,
                Call::Store(_, bytes) | Call::Fill(_, bytes, _) => counts.stored += bytes,
                Call::Load(_, bytes) => counts.loaded += bytes,
                _ => {}
            }
        }
    };
    let model = mali_model::Options {
        threads: 1,
        ..Default::default()
    };
    let gpu = OnModel::new(Profile::by_name("g52").unwrap(), model).unwrap();
    let device = Device::custom(Box::new(Trace::new(gpu, sink)), "model");
    let mut session = Session::on(recording.clone(), device);
    let take = || std::mem::take(&mut *counts.lock().unwrap());
    session.bind_file("input", image(0)).unwrap();
    session.run().unwrap();
    let first = take();
    let view = recording.verified().recording();
    assert_eq!(first.maps, view.regions().len() as u64);
    assert_eq!((first.activations, first.resets), (1, 1));

    // Uploads, rearmed headers (16 bytes, and a status of 4 that is read), tensors.
    let mut by_the_file = Counts::default();
    let runs = recording
        .layers()
        .iter()
        .map(|layer| layer.segment as usize);
    for action in runs.flat_map(|s| view.segment_actions(&view.segments()[s])) {
        let size = |tensor: u32| recording.tensors()[tensor as usize].bytes as u64;
        let name = |tensor: u32| recording.tensors()[tensor as usize].name.as_str();
        match action.unwrap() {
            Action::Upload { length, .. } | Action::Fill { length, .. } => {
                by_the_file.stored += u64::from(length);
            }
            Action::Rearm { .. } => {
                by_the_file.stored += 16;
                by_the_file.loaded += 4;
            }
            Action::BindInput { tensor } if name(tensor) == "input" => {
                by_the_file.stored += size(tensor);
            }
            Action::BindOutput { tensor } if name(tensor) == "probabilities" => {
                by_the_file.loaded += size(tensor);
            }
            _ => {}
        }
    }
    for digit in [3, 8, 3] {
        session.bind_file("input", image(digit)).unwrap();
        answers(&mut session, digit);
        assert_eq!(take(), by_the_file);
    }
    assert!(
        by_the_file.stored * 2 < first.stored,
        "{by_the_file:?} {first:?}"
    );
}

#[test]
fn a_run_is_tried_again_from_the_last_boundary() {
    let recording = Recording::open(digits()).unwrap();
    let id = recording.verified().recording().gpu_id();
    let fails_at = |call| {
        let device = Device::open(&Choice::Model(None), id, options().model).unwrap();
        device.with_fault(Fault::At(FaultKind::FailedJob, call))
    };
    let mut session = Session::on(recording.clone(), fails_at(150));
    session.bind_file("input", image(3)).unwrap();
    let error = session.run().unwrap_err();
    assert_eq!(error.class(), Class::Device, "{error}");
    answers(&mut session, 3);

    // One of the last layers fails.
    let mut session = Session::on(recording.clone(), fails_at(250));
    session.set_retries(1);
    session.bind_file("input", image(3)).unwrap();
    answers(&mut session, 3);
    let timing = *session.timing();
    assert_eq!(timing.retries, 1);
    assert_eq!(
        session.device().unwrap().fault().map(|(_, fired)| fired),
        Some(true)
    );
    // The second attempt began at a boundary.
    session.run().unwrap();
    let whole = session.timing().chains;
    assert_eq!(session.timing().retries, 0);
    assert!(
        whole < timing.chains && timing.chains < 2 * whole,
        "{timing:?} {whole}"
    );
}

#[test]
fn a_run_says_where_its_time_went() {
    let mut session = session();
    session.bind_file("input", image(3)).unwrap();
    session.run().unwrap();
    let first = *session.timing();
    session.run().unwrap();
    let second = *session.timing();
    assert!(!first.load.is_zero());
    assert_eq!(first.chains, second.chains);
    assert!(second.registers > 0 && second.interrupts > 0 && second.bytes > 0);
    let phases: Duration = Phase::ALL.iter().map(|phase| second.phase(*phase)).sum();
    assert!(phases <= second.run, "{second:?}");
    assert!(!second.phase(Phase::Device).is_zero());
}

#[test]
fn recordings_come_from_packs_and_from_memory() {
    let files = Files::read(&digits()).unwrap();
    let mut contents = files.beside().unwrap();
    contents.insert("recording.gpr".into(), files.bytes.clone());
    let pack = gpureplay_sign::pack(&contents).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.gprpack");
    std::fs::write(&path, &pack).unwrap();
    let plain = Recording::from_bytes(files.bytes.clone()).unwrap();
    assert!(plain.manifest().is_none());
    for recording in [
        Recording::open(&path).unwrap(),
        Recording::from_bytes(pack.clone()).unwrap(),
    ] {
        assert_eq!(recording.name(), "digits-g52");
        let mut session = recording.session(options()).unwrap();
        let case = recording.files().case().unwrap();
        let input = recording.files().directory.join(&case.inputs["input"]);
        session.bind_file("input", input).unwrap();
        answers(&mut session, 0);
    }
    let mut cut = pack;
    cut.pop();
    assert_eq!(
        Recording::from_bytes(cut).unwrap_err().class(),
        Class::Recording
    );
}

#[test]
fn only_what_is_signed_is_opened_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg("-r").arg(digits()).arg(folder.path()).status();
    assert!(copied.unwrap().success());
    let path = folder.path().join("digits-g52");
    let secret = SecretKey::from_seed([7; 32]).unwrap();
    let trust = Trust::with_key(&secret.public().to_pem()).unwrap();
    let refused = |trust: &Trust| {
        Recording::open_trusted(&path, trust)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&trust).contains("a signature is required"));
    let files = Files::read(&path).unwrap();
    let signature = sign(&secret, 3, &files.bytes, &files.beside().unwrap()).unwrap();
    std::fs::write(path.join("recording.sig"), signature).unwrap();
    assert!(Recording::open_trusted(&path, &trust).is_ok());
    let newer = Trust {
        minimum_counter: 4,
        ..trust.clone()
    };
    assert!(refused(&newer).contains("its counter is 3"));
    std::fs::write(path.join("inputs/0.npy"), "changed").unwrap();
    assert!(refused(&trust).contains("not the file that was signed"));
}

#[test]
fn another_gpu_is_refused_when_the_session_is_opened() {
    let recording = Recording::open(digits()).unwrap();
    let mut other = options();
    other.device = "model:g71".parse().unwrap();
    let error = recording.session(other.clone()).unwrap_err();
    assert_eq!(error.class(), Class::Device);
    assert!(error.to_string().contains("made on another GPU"), "{error}");
    other.ignore_identity = true;
    assert!(recording.session(other).is_ok());
}

#[test]
fn layers_are_chosen_by_what_is_given() {
    let mut session = session();
    let range = |text| selection::range(session.recording().layers(), text);
    assert_eq!(range("3..5").unwrap(), 2..5);
    assert_eq!(range("pool1..").unwrap(), 2..7);
    assert_eq!(range("conv1").unwrap(), 0..1);
    for wrong in ["", "5..3", "conv9", "0", "8"] {
        assert_eq!(range(wrong).unwrap_err().class(), Class::Usage, "{wrong}");
    }
    assert_eq!(session.select(3..7).unwrap().running(), 0..7);
    let pool1 = session.tensor("pool1").unwrap().clone();
    let zeros = Tensor::zeros(pool1.dtype, &pool1.shape).unwrap();
    session.bind("pool1", zeros).unwrap();
    let selection = session.select(5..7).unwrap();
    assert_eq!(selection.running(), 3..7);
    assert!(selection.text().contains("those from conv3 on ran first"));
    assert!(!selection.takes_recorded_values());
}
