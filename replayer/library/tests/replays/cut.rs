// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that ends long chains gets equivalent ones.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gpureplay_core::{Chain, DeviceError, Gpu, Wrapper};
use gpureplay_library::values::read_any;
use gpureplay_library::{Device, Recording, Session};
use gpureplay_linux::panfrost::TOO_LONG;
use gpureplay_on_model::OnModel;
use mali_facts::follow;
use mali_model::Profile;

fn recordings() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../recordings")
}

struct Impatient {
    model: OnModel,
    most_jobs: u32,
    refused: Arc<AtomicU32>,
    ran: Arc<AtomicU32>,
}

impl Wrapper for Impatient {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.model
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        let model = RefCell::new(&mut self.model);
        let memory = |va: u64, to: &mut [u8]| model.borrow_mut().read_memory(va, to).is_ok();
        if follow(&memory, chain.head).length > self.most_jobs {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(DeviceError::Refused(TOO_LONG));
        }
        self.ran.fetch_add(1, Ordering::Relaxed);
        self.model.before_chain(chain)
    }
}

/// Refused chains, run chains, the output's bytes, all states' bytes.
type Found = (u32, u32, Vec<u8>, Vec<Vec<u8>>);

fn run_twice(name: &str, inputs: &[(&str, &str)], most_jobs: u32) -> Result<Found, String> {
    let (refused, ran) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let device = Impatient {
        model: OnModel::new(Profile::by_name("g52").unwrap(), Default::default()).unwrap(),
        most_jobs,
        refused: refused.clone(),
        ran: ran.clone(),
    };
    let path = recordings().join(name);
    let recording = Recording::open(&path).unwrap();
    let mut session = Session::on(recording, Device::custom(Box::new(device), "test"));
    for (input, file) in inputs {
        session.bind_file(input, path.join(file)).unwrap();
    }
    for _ in 0..2 {
        session.run().map_err(|error| error.to_string())?;
    }
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let (refused, ran) = (count(&refused), count(&ran));
    let output = session.outputs().remove(0).1.bytes().to_vec();
    let states = session.states().unwrap();
    let states = states.iter().map(|(_, value)| value.bytes().to_vec());
    Ok((refused, ran, output, states.collect()))
}

#[test]
fn a_chain_that_takes_too_long_is_cut_once() {
    let run = |most_jobs| {
        let (refused, ran, output, _) =
            run_twice("digits-g52", &[("input", "inputs/3.npy")], most_jobs)?;
        let expected = read_any(&recordings().join("digits-g52/expected/3.npy")).unwrap();
        assert_eq!(output, expected.bytes(), "{most_jobs}");
        Ok::<_, String>((refused, ran))
    };
    // Set-up has 8 jobs; 7 layers have 12 jobs in one chain at first. Each form is loaded once.
    assert_eq!(run(12), Ok((0, 1 + 2)));
    assert_eq!(run(8), Ok((1, 1 + 1 + 2 * 7)));
    assert_eq!(run(1), Ok((2, 8 + 2 * 12)));
    let error = run(0).unwrap_err();
    assert!(error.contains("ran too long (panfrost: 500 ms"), "{error}");
}

#[test]
fn states_go_on_from_where_they_were_before_the_cut() {
    let inputs = [
        ("images", "inputs/images.npy"),
        ("labels", "inputs/labels.npy"),
        ("rate", "inputs/rate.npy"),
    ];
    let run = |most_jobs| run_twice("train-perceptron-g52", &inputs, most_jobs).unwrap();
    let (refused, _, loss, states) = run(u32::MAX);
    assert_eq!((refused, states.is_empty()), (0, false));
    for most_jobs in [2, 1] {
        let (refused, _, cut_loss, cut_states) = run(most_jobs);
        assert!(refused > 0, "{most_jobs}");
        assert_eq!((&cut_loss, &cut_states), (&loss, &states), "{most_jobs}");
    }
}
