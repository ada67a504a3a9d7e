// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that another GPU lacks are not written to it.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use gpureplay_core::Wrapper;
use gpureplay_library::{Device, Recording, Session};
use gpureplay_on_model::OnModel;
use mali_facts::registers::gpu::{JM_CONFIG, SHADER_CONFIG};
use mali_model::{Options, Profile};

struct Watched {
    model: OnModel,
    settings: Arc<Mutex<Vec<(u32, u32)>>>,
}

impl Wrapper for Watched {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.model
    }

    fn write32(&mut self, register: u32, value: u32) {
        if [JM_CONFIG, SHADER_CONFIG].contains(&register) {
            self.settings.lock().unwrap().push((register, value));
        }
        gpureplay_core::Gpu::write32(&mut self.model, register, value);
    }
}

fn settings_on(gpu: &str, ignore_identity: bool) -> Vec<(u32, u32)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/saxpy-kbase-g52");
    let recording = Recording::open(&folder).unwrap();
    let settings = Arc::new(Mutex::new(Vec::new()));
    let watched = Watched {
        model: OnModel::new(Profile::by_name(gpu).unwrap(), Options::default()).unwrap(),
        settings: settings.clone(),
    };
    let mut session = Session::on(
        recording.clone(),
        Device::custom(Box::new(watched), "model"),
    );
    session.ignore_identity(ignore_identity);
    let case = recording.manifest().unwrap().cases[0].clone();
    for (name, file) in &case.inputs {
        session.bind_file(name, folder.join(file)).unwrap();
    }
    session.run().unwrap();
    drop(session);
    settings.lock().unwrap().clone()
}

#[test]
fn another_gpu_gets_the_settings_that_it_has() {
    let recorded = vec![(SHADER_CONFIG, 0x2_0000), (JM_CONFIG, 0xf_0000)];
    assert_eq!(settings_on("g52", false), recorded);
    assert_eq!(settings_on("g52", true), recorded);
    assert_eq!(settings_on("g76", true), recorded);
    // A G31 has only the first, a G72 none.
    assert_eq!(settings_on("g31", true), recorded[..1]);
    assert_eq!(settings_on("g72", true), []);
}
