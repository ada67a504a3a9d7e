// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals wait for the GPU's reset.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpureplay_core::{Chain, DeviceError, Gpu, Wrapper};
use gpureplay_library::{Device, Recording, Session};
use gpureplay_on_model::OnModel;
use mali_model::Profile;
use nix::sys::signal::{Signal, raise};

/// The child's environment: kind of device, and the file that marks its reset.
const KIND: &str = "GPUREPLAY_TEST_KIND";
const MARK: &str = "GPUREPLAY_TEST_MARK";

struct Raising {
    gpu: OnModel,
    mark: PathBuf,
    raised: bool,
}

impl Wrapper for Raising {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.gpu
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        if !self.raised {
            self.raised = true;
            raise(Signal::SIGTERM).unwrap();
        }
        Gpu::before_chain(&mut self.gpu, chain)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        let reset = Gpu::reset(&mut self.gpu);
        if self.raised {
            std::fs::write(&self.mark, "reset").unwrap();
        }
        reset
    }
}

/// Does nothing unless the test below runs it.
#[test]
fn child() {
    let Some(kind) = std::env::var_os(KIND) else {
        return;
    };
    let saxpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-g52");
    let recording = Recording::open(&saxpy).unwrap();
    let gpu = OnModel::new(Profile::by_name("g52").unwrap(), Default::default()).unwrap();
    let raising = Raising {
        gpu,
        mark: std::env::var_os(MARK).unwrap().into(),
        raised: false,
    };
    let mut device = Device::custom(Box::new(raising), "test");
    if kind == "in process" {
        device = device.that_writes_to_process();
    }
    let mut session = Session::on(recording, device);
    session.bind_file("x", saxpy.join("inputs/x.npy")).unwrap();
    session.bind_file("y", saxpy.join("inputs/y.npy")).unwrap();
    session.run().unwrap();
    unreachable!("the signal waits no longer than the call");
}

#[test]
fn a_signal_waits_until_the_gpu_is_reset() {
    let folder = tempfile::tempdir().unwrap();
    let ends = |kind: &str| {
        let mark = folder.path().join(kind);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "signals::child", "--test-threads", "1"]);
        let output = child.env(KIND, kind).env(MARK, &mark).output().unwrap();
        assert_eq!(
            output.status.signal(),
            Some(Signal::SIGTERM as i32),
            "{output:?}"
        );
        mark.exists()
    };
    assert!(ends("in process"));
    // The signal acts at once.
    assert!(!ends("driver"));
}
