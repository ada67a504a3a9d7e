// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a recording of consecutive jobs: uploads what they read, outputs what they write.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_core::{DeviceError, Wrapper};
use gpureplay_format::layout::{Region, TensorEntry};
use gpureplay_format::{
    Access, Axis, Builder, ElementType, Piece, Recording as View, RegionKind, SegmentKind,
    Tensor as Described, TensorKind,
};
use gpureplay_jobs::Jobs;
use gpureplay_library::manifest::{Case, Job as Named, Manifest, Output, Sizes, VERSION};
use gpureplay_library::{Bindings, Device, Recording, Session, Tensor};
use gpureplay_on_model::OnModel;

use crate::error::{EditError, Result};
use crate::footprint::{Bytes, PAGE};
use crate::provenance;
use crate::scene::{Memory, Outcome, Scene, Work, job, model};

/// Fills memory that jobs must not depend on.
const SOIL: u8 = 0xaa;
/// Output with every byte that the job writes.
pub(crate) const WRITTEN: &str = "written";
/// Per job. A network's job names some dozens.
const MOST_NAMED: usize = 1 << 16;
/// Bytes.
const LINE: usize = 64;
/// Elements compared per tensor.
const MAX_ELEMENTS: u64 = 1 << 24;

/// Jobs as a recording of their own.
#[derive(Debug)]
pub struct Extracted {
    /// Recording.
    pub bytes: Vec<u8>,
    /// Expected values: `expected/NAME.npy`.
    pub manifest: Manifest,
    /// Outputs by name.
    pub expected: BTreeMap<String, Tensor>,
    /// Bytes that the job writes.
    pub written: u64,
    /// Bytes of uploaded pages.
    pub uploaded: u64,
}

struct Step {
    scene: Scene,
    outcome: Outcome,
}

struct Steps {
    all: Vec<Step>,
    written: Bytes,
    pages: BTreeSet<u64>,
    left: Memory,
}

impl Steps {
    fn take(
        recording: &Recording,
        jobs: &Jobs,
        bindings: &Bindings,
        indices: &[usize],
        work_limit: Option<u64>,
    ) -> Result<Self> {
        let mut steps = Self {
            all: Vec::new(),
            written: Bytes::default(),
            pages: BTreeSet::new(),
            left: Memory::default(),
        };
        for &index in indices {
            let mut scene = Scene::take(recording, jobs, bindings, index, work_limit)?;
            for (address, page) in &mut scene.memory.0 {
                if let Some(known) = steps.left.0.get(address).filter(|it| *it == page) {
                    *page = known.clone();
                }
            }
            let outcome = scene.run("as it is", None)?;
            steps.written.union(&outcome.footprint.written);
            steps.pages.extend(&outcome.footprint.pages);
            steps.left.0.clone_from(&scene.memory.0);
            steps.left.0.extend(outcome.memory.0.clone());
            steps.all.push(Step { scene, outcome });
        }
        Ok(steps)
    }

    fn first(&self) -> Result<&Scene> {
        let first = self.all.first().map(|step| &step.scene);
        first.ok_or_else(|| EditError::NoInput("at least one job is extracted".into()))
    }

    /// `3`, or `3-7`.
    fn name(&self) -> String {
        match self.all.as_slice() {
            [first, .., last] => format!("{}-{}", first.scene.job, last.scene.job),
            [only] => only.scene.job.to_string(),
            [] => String::new(),
        }
    }
}

/// Extracts jobs as one run in ascending order. The result has run once in memory full of other bytes and gave the
/// same bytes. What the processor or a left-out job writes between two jobs is uploaded there. `work_limit`: see
/// [`Scene::take`].
///
/// # Errors
/// A job cannot run alone, all write nothing, or one reads something that the model does not tell of.
pub fn extract(
    recording: &Recording,
    jobs: &Jobs,
    bindings: &Bindings,
    indices: &[usize],
    work_limit: Option<u64>,
) -> Result<Extracted> {
    let steps = Steps::take(recording, jobs, bindings, indices, work_limit)?;
    let scene = steps.first()?;
    let (index, written) = (scene.job, &steps.written);
    if written.count() == 0 {
        return Err(EditError::WritesNothing { job: index });
    }
    for (address, length) in written.ranges() {
        let region = scene.regions.iter().find(|region| {
            address >= region.va.get() && address.saturating_add(length) <= region.end()
        });
        if region.is_none_or(|region| region.kind != RegionKind::Data.code()) {
            return Err(EditError::WritesElsewhere {
                job: index,
                address,
            });
        }
    }
    let view = recording.verified().recording();
    let (bytes, uploaded) = build(&steps, view, &own_tensors(recording, jobs, indices))?;
    let alone = Recording::from_bytes(bytes.clone())?;
    alone.verified().deep_only()?;
    let expected = reproduce(&steps, &alone)?;
    Ok(Extracted {
        manifest: manifest(
            (recording, jobs),
            (indices, &steps.name()),
            &bytes,
            &expected,
        )?,
        written: written.count(),
        uploaded,
        bytes,
        expected,
    })
}

/// Memory is used again: another layer's tensor may lie in what they write.
fn own_tensors(recording: &Recording, jobs: &Jobs, indices: &[usize]) -> Vec<bool> {
    let mine: BTreeSet<&str> = indices
        .iter()
        .filter_map(|index| jobs.layer(jobs.jobs.get(*index)?))
        .map(|layer| layer.name.as_str())
        .collect();
    let layers = recording.layers();
    let of = |tensor: u32| {
        let mut giving = layers
            .iter()
            .filter(|layer| layer.outputs.contains(&tensor))
            .peekable();
        giving.peek().is_none() || giving.any(|layer| mine.contains(layer.name.as_str()))
    };
    (0..recording.tensors().len() as u32).map(of).collect()
}

fn build(steps: &Steps, view: &View<'_>, own: &[bool]) -> Result<(Vec<u8>, u64)> {
    let scene = steps.first()?;
    let region_of = |address: u64| {
        let regions = scene.regions.iter();
        regions
            .clone()
            .find(|region| (region.va.get()..region.end()).contains(&address))
    };
    let mut builder = Builder::new(scene.platform.gpu_id);
    // Regions stay whole: descriptors say how long things are.
    let mut named = Vec::new();
    for step in &steps.all {
        named.extend(pointers(&step.scene)?);
    }
    let reached: BTreeSet<u64> = steps
        .pages
        .iter()
        .copied()
        .chain(steps.written.pages())
        .chain(named)
        .filter_map(region_of)
        .map(|region| region.va.get())
        .collect();
    let mut regions = scene.regions.clone();
    regions.retain(|region| reached.contains(&region.va.get()));
    scene.describe(&mut builder, &regions);
    let kind = |address: u64| {
        let region: Option<&Region> = region_of(address);
        region.and_then(|region| RegionKind::from_code(region.kind.into()))
    };
    let page = |address: u64| scene.memory.bytes(address, PAGE as usize);
    let of = |wanted: &dyn Fn(RegionKind) -> bool| -> Vec<u64> {
        let pages = steps.pages.iter().copied();
        pages
            .filter(|address| kind(*address).is_some_and(wanted))
            .collect()
    };
    if scene.settings.is_empty() {
        builder.segment("setup", SegmentKind::Setup);
    }
    let code = of(&|kind| kind == RegionKind::Code);
    for &address in &code {
        // Set-up leaves zeros out, and nothing may depend on what was there.
        builder.fill(address, PAGE as u32, 0);
        builder.upload(address, &page(address));
    }
    let name = format!("job{}", steps.name());
    builder.segment(&name, SegmentKind::Run);
    let data = of(&|kind| matches!(kind, RegionKind::Data | RegionKind::Descriptors));
    for &address in &data {
        builder.upload(address, &page(address));
    }
    let mut uploaded = (code.len() + data.len()) as u64 * PAGE;
    let mut before: Option<&Step> = None;
    for step in &steps.all {
        if let Some(before) = before {
            uploaded += upload_changed_lines(&mut builder, before, step, &steps.pages);
        }
        step.scene.submit(&mut builder);
        before = Some(step);
    }
    let all = builder.tensor(everything(&steps.written)?);
    builder.bind_output(all);
    for (entry, own) in view.tensors().iter().zip(own) {
        let written = *own && is_written(view, entry, &steps.written);
        let name = view.name(entry.name.get());
        if written && name != WRITTEN {
            let tensor = builder.tensor(output(view, entry));
            builder.bind_output(tensor);
        }
    }
    Ok((builder.finish()?, uploaded))
}

fn upload_changed_lines(
    builder: &mut Builder,
    before: &Step,
    step: &Step,
    pages: &BTreeSet<u64>,
) -> u64 {
    let mut uploaded = 0;
    for &page in pages {
        let found = step.scene.memory.bytes(page, PAGE as usize);
        let left = &before.outcome.memory;
        let left = match left.0.contains_key(&page) {
            true => left,
            false => &before.scene.memory,
        };
        let left = left.bytes(page, PAGE as usize);
        for (at, (found, left)) in found.chunks(LINE).zip(left.chunks(LINE)).enumerate() {
            if found != left {
                builder.upload(page + (at * LINE) as u64, found);
                uploaded += LINE as u64;
            }
        }
    }
    uploaded
}

/// Addresses that descriptors name, used or not.
///
/// # Errors
///
/// More than [`MOST_NAMED`].
fn pointers(scene: &Scene) -> Result<Vec<u64>> {
    struct Named(Vec<u64>);
    impl mali_facts::walk::Visitor for Named {
        fn wants_more(&self) -> bool {
            self.0.len() <= MOST_NAMED
        }

        fn memory(&mut self, memory: &mali_facts::walk::MemoryUse) {
            self.0.push(memory.address);
        }
    }
    let mut named = Named(Vec::new());
    let id = mali_facts::registers::GpuId(scene.platform.gpu_id);
    if let Some(profile) = mali_facts::Product::by_id(id).map(mali_facts::Product::profile) {
        match &scene.words[..] {
            [] => {
                mali_facts::walk::walk_chain(&scene.memory, profile, scene.address, &mut named);
            }
            words => mali_jobs::walk::walk_words(words, &scene.memory, profile, &mut named),
        }
    }
    if named.0.len() > MOST_NAMED {
        return Err(EditError::Size(format!(
            "the job at {:#x} names more than {MOST_NAMED} pieces of memory",
            scene.address
        )));
    }
    Ok(named.0)
}

fn everything(written: &Bytes) -> Result<Described> {
    let too_many = || EditError::Size("the job writes more than 4 GiB".into());
    let mut pieces: Vec<Piece> = Vec::new();
    let mut element = 0u32;
    let ranges = written.ranges();
    let mut rest = &ranges[..];
    while let [(va, length), more @ ..] = rest {
        let length = u32::try_from(*length).map_err(|_| too_many())?;
        let stride = more
            .first()
            .and_then(|next| u32::try_from(next.0.checked_sub(*va)?).ok());
        let alike = more.iter().enumerate().take_while(|(at, (next, bytes))| {
            let steps = *at as u64 + 1;
            stride.is_some_and(|stride| {
                *bytes == u64::from(length) && next.wrapping_sub(*va) == steps * u64::from(stride)
            })
        });
        let count = 1 + alike.count();
        let inner = Axis {
            extent: length,
            element_stride: 1,
            byte_stride: 1,
        };
        let outer = Axis {
            extent: count as u32,
            element_stride: length,
            byte_stride: stride.unwrap_or(1),
        };
        pieces.push(Piece {
            va: *va,
            element,
            axes: match count {
                1 => vec![inner],
                _ => vec![outer, inner],
            },
        });
        let all = (count as u32).checked_mul(length).ok_or_else(too_many)?;
        element = element.checked_add(all).ok_or_else(too_many)?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(Described {
        name: WRITTEN.into(),
        kind: TensorKind::Output,
        element: ElementType::U8,
        shape: vec![element],
        pieces,
        external: false,
    })
}

fn is_written(view: &View<'_>, entry: &TensorEntry, written: &Bytes) -> bool {
    let Some(element) = ElementType::from_code(entry.element.into()) else {
        return false;
    };
    let mut left = MAX_ELEMENTS;
    let size = u64::from(element.size());
    view.pieces(entry).unwrap_or_default().iter().all(|entry| {
        let piece = Piece::of(view, entry);
        let extents = piece.axes.iter().map(|axis| u64::from(axis.extent));
        let count = extents.fold(1, u64::saturating_mul);
        let Some(rest) = left.checked_sub(count) else {
            return false;
        };
        left = rest;
        (0..count).all(|number| {
            let (mut va, mut number) = (piece.va, number);
            for axis in piece.axes.iter().rev() {
                let extent = u64::from(axis.extent).max(1);
                va = va.wrapping_add(number % extent * u64::from(axis.byte_stride));
                number /= extent;
            }
            (va..va.saturating_add(size)).all(|at| written.contains(at))
        })
    })
}

fn output(view: &View<'_>, entry: &TensorEntry) -> Described {
    Described {
        name: view.name(entry.name.get()).to_owned(),
        kind: TensorKind::Output,
        element: ElementType::from_code(entry.element.into()).unwrap_or(ElementType::U8),
        shape: view
            .shape(entry)
            .iter()
            .map(|extent| extent.get())
            .collect(),
        pieces: view
            .pieces(entry)
            .unwrap_or_default()
            .iter()
            .map(|entry| Piece::of(view, entry))
            .collect(),
        external: false,
    }
}

struct Soiled {
    model: OnModel,
    work: Work,
}

impl Wrapper for Soiled {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.model
    }

    /// A job alone has the limit of its whole recording.
    fn expect_recording(&mut self, bytes: u64) {
        use gpureplay_core::Gpu;
        self.model.expect_recording(bytes.max(self.work.bytes));
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> std::result::Result<(), DeviceError> {
        use gpureplay_core::Gpu;
        self.model.map(va, pages, access)?;
        self.model.fill_memory(va, u64::from(pages) * PAGE, SOIL)
    }
}

fn reproduce(steps: &Steps, alone: &Recording) -> Result<BTreeMap<String, Tensor>> {
    let scene = steps.first()?;
    let soiled = Soiled {
        model: model(scene.platform.gpu_id, scene.work.limit, None)?,
        work: scene.work,
    };
    let device = Device::custom(Box::new(soiled), "model");
    let mut session = Session::on(alone.clone(), device);
    session.run()?;
    let outputs: BTreeMap<String, Tensor> = session.take_outputs().collect();
    drop(session);
    let written = outputs.get(WRITTEN).ok_or_else(|| EditError::Failed {
        job: scene.job,
        what: "alone",
        reason: "what it writes was not read".into(),
    })?;
    let mut rest = written.bytes();
    for (address, length) in steps.written.ranges() {
        let (these, others) = rest
            .split_at_checked(length as usize)
            .unwrap_or((rest, &[]));
        rest = others;
        let mut at = address;
        // A range may be as long as all of memory.
        for these in these.chunks(PAGE as usize) {
            let expected = steps.left.bytes(at, these.len());
            let mut pairs = (at..).zip(these.iter().zip(&expected));
            if let Some((address, (found, expected))) =
                pairs.find(|(_, (found, expected))| found != expected)
            {
                return Err(EditError::NotReproduced {
                    job: scene.job,
                    address,
                    expected: *expected,
                    found: *found,
                });
            }
            at = at.wrapping_add(these.len() as u64);
        }
    }
    Ok(outputs)
}

fn manifest(
    (recording, jobs): (&Recording, &Jobs),
    (indices, numbers): (&[usize], &str),
    bytes: &[u8],
    expected: &BTreeMap<String, Tensor>,
) -> Result<Manifest> {
    let mut named = Vec::new();
    let mut titles = Vec::new();
    for (submission, &index) in indices.iter().enumerate() {
        let job = job(jobs, index)?;
        titles.push(job.title());
        let known = job.name.as_deref().zip(job.launch);
        let known = known.zip(job.compute.as_ref());
        named.extend(known.map(|((kernel, launch), compute)| Named {
            submission,
            job: None,
            launch,
            kernel: kernel.to_owned(),
            global: Sizes(compute.global()),
            local: Some(Sizes(compute.local.map(u64::from))),
        }));
    }
    let (jobs, title) = match titles.as_slice() {
        [only] => ("job", only.clone()),
        many => ("jobs", format!("{} of them", many.len())),
    };
    let what = format!("{jobs} {numbers} ({title}) extracted");
    let file = |name: &String| format!("expected/{name}.npy").into();
    let list: Vec<String> = indices.iter().map(usize::to_string).collect();
    Ok(Manifest {
        version: VERSION,
        name: format!("{}-job{numbers}", recording.name()),
        description: format!(
            "{} {numbers} of {}: {title}",
            if indices.len() == 1 { "Job" } else { "Jobs" },
            recording.name()
        ),
        command: format!(
            "gpureplay extract {} --jobs {}",
            recording.name(),
            list.join(",")
        ),
        provenance: provenance::edited(recording, &what, bytes),
        outputs: expected
            .keys()
            .map(|name| {
                let output = Output {
                    tolerance: Some(0.0),
                    labels: Vec::new(),
                };
                (name.clone(), output)
            })
            .collect(),
        cases: vec![Case {
            inputs: BTreeMap::new(),
            expected: expected
                .keys()
                .map(|name| (name.clone(), file(name)))
                .collect(),
            reference: format!("{} on the model", recording.name()),
        }],
        jobs: named,
        ..Manifest::default()
    })
}
