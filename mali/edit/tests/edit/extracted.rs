// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extracted jobs give the same bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Wrapper};
use gpureplay_edit::{EditError, extract};
use gpureplay_format::layout::Region;
use gpureplay_format::{Access, RegionKind};
use gpureplay_library::{Device, Recording, Session};
use gpureplay_on_model::OnModel;
use mali_model::{Options, Profile};

use crate::shipped;

type Snapshots = Arc<Mutex<Vec<Vec<u8>>>>;

struct Kept {
    inner: OnModel,
    fill: u8,
    regions: Vec<Region>,
    kept: Snapshots,
}

impl Kept {
    fn keep(&mut self) {
        let mut all = Vec::new();
        for region in self.regions.clone() {
            let mut bytes = vec![0; region.pages.get() as usize * 4096];
            self.inner.read_memory(region.va.get(), &mut bytes).unwrap();
            all.extend(bytes);
        }
        self.kept.lock().unwrap().push(all);
    }
}

impl Wrapper for Kept {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.inner
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.inner.map(va, pages, access)?;
        let bytes = u64::from(pages) * 4096;
        self.inner.fill_memory(va, bytes, self.fill)
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        self.keep();
        self.inner.before_chain(chain)
    }

    fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
        self.inner.after_chain(chain, result);
        self.keep();
    }
}

fn run(recording: &Recording, fill: u8, bind: impl Fn(&mut Session)) -> (Vec<Vec<u8>>, Session) {
    let kept = Snapshots::default();
    let view = recording.verified().recording();
    let device = Kept {
        inner: OnModel::new(Profile::by_name("g52").unwrap(), Options::default()).unwrap(),
        fill,
        regions: view.regions().to_vec(),
        kept: kept.clone(),
    };
    let device = Device::custom(Box::new(device), "model");
    let mut session = Session::on(recording.clone(), device);
    bind(&mut session);
    session.run().unwrap();
    let snapshots = std::mem::take(&mut *kept.lock().unwrap());
    (snapshots, session)
}

fn buffers<'b>(recording: &Recording, bytes: &'b [u8]) -> BTreeMap<u64, &'b [u8]> {
    let mut rest = bytes;
    let mut all = BTreeMap::new();
    for region in recording.verified().recording().regions() {
        let (these, others) = rest.split_at(region.pages.get() as usize * 4096);
        rest = others;
        if region.kind == RegionKind::Data.code() {
            all.insert(region.va.get(), these);
        }
    }
    all
}

#[test]
fn each_of_lenets_jobs_gives_every_byte_in_soiled_memory() {
    let (recording, jobs, bindings) = shipped("lenet-g52");
    let (whole, _) = run(&recording, 0, |session| session.bind_all(bindings.clone()));
    assert_eq!(whole.len(), 40);
    for index in 0..20 {
        let extracted = extract(&recording, &jobs, &bindings, &[index], None).unwrap();
        let alone = Recording::from_bytes(extracted.bytes).unwrap();
        let (soiled, mut session) = run(&alone, 0xaa, |_| {});
        assert_eq!(soiled.len(), 2, "{index}");
        // Found by an independent comparison of all memory.
        let (before, after) = (&whole[2 * index], &whole[2 * index + 1]);
        let (before, after) = (buffers(&recording, before), buffers(&recording, after));
        let (clean, found) = (buffers(&alone, &soiled[0]), buffers(&alone, &soiled[1]));
        let (mut changed, mut written) = (0, 0);
        for (va, after) in &after {
            let before = before[va];
            if before == *after {
                continue;
            }
            let found = found[va];
            for at in (0..after.len()).filter(|&at| before[at] != after[at]) {
                assert_eq!(found[at], after[at], "job {index} at {va:#x} + {at:#x}");
                changed += 1;
            }
        }
        assert!(changed > 0 && changed <= extracted.written, "{index}");
        for (va, found) in &found {
            let pairs = clean[va].iter().zip(*found);
            written += pairs.filter(|(clean, found)| clean != found).count() as u64;
        }
        assert!(written > 0 && written <= extracted.written, "{index}");
        let all = session.read("written").unwrap();
        assert_eq!(all.bytes().len() as u64, extracted.written);
        assert!(all.bytes() == extracted.expected["written"].bytes());
    }
}

#[test]
fn a_tensor_that_the_job_writes_is_an_output_under_its_name() {
    let (recording, jobs, bindings) = shipped("saxpy-g52");
    let extracted = extract(&recording, &jobs, &bindings, &[0], None).unwrap();
    assert_eq!(extracted.written, 4000);
    let out = &extracted.expected["out"];
    assert_eq!(out.shape(), [1000]);
    assert_eq!(out.bytes(), extracted.expected["written"].bytes());
    let manifest = &extracted.manifest;
    assert!(manifest.provenance["edited"].contains("job 0"));
    let source = &recording.manifest().unwrap().provenance["sha256"];
    assert!(manifest.provenance["edited"].contains(source));
    assert_ne!(&manifest.provenance["sha256"], source);
}

#[test]
fn what_is_no_job_cannot_be_extracted() {
    let (recording, jobs, bindings) = shipped("saxpy-g52");
    let error = extract(&recording, &jobs, &bindings, &[1], None).unwrap_err();
    assert!(matches!(error, EditError::NoJob { job: 1, .. }), "{error}");
}
