// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts files to a recording.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_format::{
    Access, Builder, ElementType, EncodeError, MAX_SUBMITTED_JOBS, Piece, RegionKind, SegmentKind,
    Tensor, TensorId, TensorKind,
};
use gpureplay_tensors::{Form, Names, Stated, StatedError};
use mali_facts::JobHeader;
use mali_facts::registers::gpu::{GPU_ID, SHADER_PRESENT_LO, THREAD_MAX_THREADS};

use crate::chains::storage;
use crate::description::fingerprint;
use crate::files::PAGE;
use crate::meeting::Meeting;
use crate::reach;
use crate::{
    Chain, Description, DescriptionError, Diagnosis, Image, MappedRun, Original, TensorEntry,
};

const CHAIN_TIMEOUT_US: u32 = 20_000_000;
/// Cache maintenance at start and end, MMU.
const CONFIG_KEPT: u32 = 0x3700;
const PRODUCT: u32 = 0xffff_0000;
const HEADER_WRITTEN: usize = 16;

/// Choices of the user.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names, layouts and segments.
    pub description: Option<Description>,
    /// Weights by name, in C order, little-endian.
    pub values: BTreeMap<String, Vec<u8>>,
    /// For undescribed ranges.
    pub stated: Stated,
    /// Leave out chains with lost descriptors.
    pub drop_lost: bool,
}

/// Why a conversion fails.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No chain was started.
    #[error("gr_io_history starts no job chain, so there is nothing to replay")]
    NoChains,
    /// Lost descriptors.
    #[error(
        "chain {chain} at {head:#x} cannot be replayed: its job descriptors are not in gr_mem_contents (leave such chains out with --drop-lost-chains)"
    )]
    Lost {
        /// Number.
        chain: usize,
        /// Address of its first header.
        head: u64,
    },
    /// Too many jobs.
    #[error(
        "with chain {chain} at {head:#x}, the chains of gr_io_history have more than the {MAX_SUBMITTED_JOBS} jobs in all that an import takes"
    )]
    TooManyJobs {
        /// Number.
        chain: usize,
        /// Address of its first header.
        head: u64,
    },
    /// The memory does not fit.
    #[error("gr_pgt and gr_mem_contents together map more than 4 GiB")]
    TooMuchMemory,
    /// GPU_ID was never read.
    #[error("gr_io_history never reads GPU_ID (register 0x0), so the GPU is not known")]
    NoGpu,
    /// Statements do not fit the ranges.
    #[error(transparent)]
    Stated(#[from] StatedError),
    /// The description does not fit the recording.
    #[error("description: {0}")]
    Description(#[from] DescriptionError),
    /// No described weight.
    #[error(
        "a value is given for {name:?}, which is no weight of the description (weights: {weights})"
    )]
    NoWeight {
        /// Name.
        name: String,
        /// Names of the weights.
        weights: String,
    },
    /// Wrong size.
    #[error("the value of {name:?} has {found} bytes; its shape needs {expected}")]
    ValueSize {
        /// Tensor.
        name: String,
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: u64,
    },
    /// Outside of mapped data.
    #[error("tensor {name:?} ({start:#x} to {end:#x}) does not lie in one mapped region of data")]
    TensorPlace {
        /// Tensor.
        name: String,
        /// First address.
        start: u64,
        /// End.
        end: u64,
    },
    /// The recording cannot be encoded.
    #[error("{0}")]
    Encode(EncodeError),
}

/// Converted recording.
#[derive(Debug)]
pub struct Imported {
    /// Recording.
    pub recording: Vec<u8>,
    /// Chains.
    pub chains: Vec<Chain>,
    /// Finds the description.
    pub fingerprint: u64,
    /// Of GPU memory.
    pub mapped_bytes: u64,
    /// Undescribed: kind, name, type and shape.
    pub ranges: Vec<(TensorKind, String, Form)>,
    /// Besides those of the files.
    pub diagnoses: Vec<Diagnosis>,
}

/// Converts an original recording.
///
/// # Errors
/// What cannot be converted.
pub fn convert(original: &Original, options: &Options) -> Result<Imported, ConvertError> {
    let mut diagnoses = Vec::new();
    let contents = &original.contents;
    let mut chains = Chain::all(&original.history, contents, &mut diagnoses)?;
    let fingerprint = fingerprint(&chains, &original.ranges);
    if let Some((chain, lost)) = chains.iter().enumerate().find(|(_, c)| c.jobs.is_empty()) {
        if !options.drop_lost {
            return Err(ConvertError::Lost {
                chain,
                head: lost.head,
            });
        }
        chains.retain(|chain| !chain.jobs.is_empty());
    }
    if chains.is_empty() {
        return Err(ConvertError::NoChains);
    }
    let image = Image::new(&original.tables, contents).ok_or(ConvertError::TooMuchMemory)?;
    let gpu = original.history.gpu_id().ok_or(ConvertError::NoGpu)?;
    let mut builder = Builder::new(gpu);
    identify(&mut builder, original, gpu);
    let regions = regions(original, &image, &chains);
    for (run, kind) in &regions {
        let access = match (run.execute, run.write) {
            (true, _) => Access::READ_EXECUTE,
            (false, true) => Access::READ_WRITE,
            (false, false) => Access::READ,
        };
        let pages = ((run.end - run.start) / PAGE) as u32;
        builder.region(run.start, pages, access, *kind);
    }
    let tensors = Tensors::new(&mut builder, original, options, &regions)?;
    let headers: BTreeSet<u64> = chains
        .iter()
        .flat_map(|c| c.jobs.iter().map(|job| job.address))
        .collect();
    builder.segment("memory", SegmentKind::Setup);
    upload_pages(&mut builder, original, &headers, &chains, &image);
    tensors.upload_values(&mut builder, options);
    match options
        .description
        .as_ref()
        .filter(|d| !d.segment.is_empty())
    {
        Some(description) => {
            description.check_chains(chains.len())?;
            let mut computed: Vec<TensorId> = Vec::new();
            for segment in &description.segment {
                builder.segment(&segment.name, segment.segment_kind()?);
                for name in &segment.inputs {
                    builder.bind_input(tensors.id(name));
                }
                // A caller may replace what the layer before computed.
                for id in computed.drain(..) {
                    builder.bind_input(id);
                }
                let [first, last] = segment.chains;
                for chain in chains.iter().take(last + 1).skip(first) {
                    submit(&mut builder, chain);
                }
                for name in &segment.outputs {
                    builder.bind_output(tensors.id(name));
                    if description.is_intermediate(name) {
                        computed.push(tensors.id(name));
                    }
                }
            }
        }
        None => {
            builder.segment("run", SegmentKind::Run);
            for &id in &tensors.inputs {
                builder.bind_input(id);
            }
            for chain in &chains {
                submit(&mut builder, chain);
            }
            for &id in &tensors.outputs {
                builder.bind_output(id);
            }
        }
    }
    let mapped_bytes = image.runs.iter().map(|run| run.end - run.start).sum();
    Ok(Imported {
        recording: builder.finish().map_err(ConvertError::Encode)?,
        chains,
        fingerprint,
        mapped_bytes,
        ranges: tensors.ranges,
        diagnoses,
    })
}

/// Cores and threads decide how much thread-local storage is used, and the recording fixes its size.
fn identify(builder: &mut Builder, original: &Original, gpu: u32) {
    builder.identity(GPU_ID, PRODUCT, gpu);
    for register in [SHADER_PRESENT_LO, THREAD_MAX_THREADS] {
        if let Some(value) = original.history.first_read(register) {
            builder.identity(register, u32::MAX, value);
        }
    }
}

fn regions(original: &Original, image: &Image, chains: &[Chain]) -> Vec<(MappedRun, RegionKind)> {
    let contents = &original.contents;
    let jobs = || chains.iter().flat_map(|c| &c.jobs);
    let descriptors: BTreeSet<u64> = jobs()
        .flat_map(|job| {
            let first = job.address - job.address % PAGE;
            let last = job.address + (JobHeader::SIZE as u64 - 1);
            [first, last - last % PAGE]
        })
        .collect();
    // The driver's whole region, unless the app shares it.
    let mut scratch = Vec::new();
    let named: BTreeSet<u64> = jobs()
        .filter_map(|job| storage(contents, job))
        .flatten()
        .collect();
    let shared: Meeting = original.ranges.all().collect();
    let all: Meeting = contents.regions.iter().map(|r| r.committed()).collect();
    for region in &contents.regions {
        let range = region.committed();
        if region.dumped || named.range(range.clone()).next().is_none() {
            continue;
        }
        if shared.count(&range) == 0 && all.count(&range) == 1 {
            scratch.push(range);
        }
    }
    scratch.sort_by_key(|r| r.start);
    let kind_of = |va: u64, run: &MappedRun| {
        if run.execute {
            return RegionKind::Code;
        }
        let next = scratch.partition_point(|r| r.end <= va);
        if scratch.get(next).is_some_and(|r| r.contains(&va)) {
            RegionKind::Scratch
        } else if run.write && descriptors.contains(&va) {
            RegionKind::Descriptors
        } else {
            RegionKind::Data
        }
    };
    let mut regions: Vec<(MappedRun, RegionKind)> = Vec::new();
    for run in &image.runs {
        for va in (run.start..run.end).step_by(PAGE as usize) {
            let kind = kind_of(va, run);
            match regions.last_mut() {
                Some((last, last_kind))
                    if last.end == va
                        && *last_kind == kind
                        && (last.write, last.execute) == (run.write, run.execute) =>
                {
                    last.end += PAGE;
                }
                _ => regions.push((
                    MappedRun {
                        start: va,
                        end: va + PAGE,
                        ..*run
                    },
                    kind,
                )),
            }
        }
    }
    regions
}

/// Job headers as before the jobs run.
fn upload_pages(
    builder: &mut Builder,
    original: &Original,
    headers: &BTreeSet<u64>,
    chains: &[Chain],
    image: &Image,
) {
    let reachable = reach::reachable(original, chains, image);
    for va in original.contents.page_addresses() {
        let Some(page) = original.contents.page(va) else {
            continue;
        };
        let mut page = page.to_vec();
        for header in headers.range(va..va + PAGE) {
            let offset = (header - va) as usize;
            if let Some(written) = page.get_mut(offset..offset + HEADER_WRITTEN) {
                written.fill(0);
            }
        }
        if let Some(ranges) = &reachable {
            reach::keep(va, &mut page, ranges);
        }
        builder.upload(va, &page);
    }
}

fn submit(builder: &mut Builder, chain: &Chain) {
    for job in &chain.jobs {
        builder.rearm(job.address);
    }
    let config = (chain.config & CONFIG_KEPT) as u16;
    builder.submit_with(chain.slot, config, chain.head, CHAIN_TIMEOUT_US);
}

struct Tensors<'a> {
    by_name: BTreeMap<&'a str, (TensorId, &'a TensorEntry)>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
    ranges: Vec<(TensorKind, String, Form)>,
}

impl<'a> Tensors<'a> {
    fn new(
        builder: &mut Builder,
        original: &Original,
        options: &'a Options,
        regions: &[(MappedRun, RegionKind)],
    ) -> Result<Tensors<'a>, ConvertError> {
        let mut tensors = Tensors {
            by_name: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            ranges: Vec::new(),
        };
        let entries: &[TensorEntry] = options.description.as_ref().map_or(&[], |d| &d.tensor);
        let in_data = |start: u64, end: u64| {
            let next = regions.partition_point(|(run, _)| run.end <= start);
            regions.get(next).is_some_and(|(run, kind)| {
                *kind == RegionKind::Data && run.start <= start && end <= run.end
            })
        };
        let mut places = Vec::new();
        for entry in entries {
            let (tensor, end) = tensor(entry, options)?;
            if !in_data(entry.address, end) {
                return Err(ConvertError::TensorPlace {
                    name: entry.name.clone(),
                    start: entry.address,
                    end,
                });
            }
            places.push(entry.address..end);
            let id = builder.tensor(tensor);
            tensors.by_name.insert(&entry.name, (id, entry));
        }
        for name in options.values.keys() {
            let weight = tensors.by_name.get(name.as_str());
            if weight.is_none_or(|(_, entry)| entry.kind != TensorKind::Weight.name()) {
                let weights = entries
                    .iter()
                    .filter(|e| e.kind == TensorKind::Weight.name());
                return Err(ConvertError::NoWeight {
                    name: name.clone(),
                    weights: weights
                        .map(|e| e.name.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                });
            }
        }
        let ranges = &original.ranges.ranges;
        let (mut names, mut found) = (Names::default(), Vec::new());
        for entry in entries {
            names.unique(entry.name.clone());
        }
        let places: Meeting = places.into_iter().collect();
        for (position, range) in ranges.iter().enumerate() {
            let touched = places.count(&(range.start..range.end)) > 0;
            if touched || !in_data(range.start, range.end) {
                continue;
            }
            let words = (range.end - range.start) % 4 == 0 && range.start % 4 == 0;
            let element = if words {
                ElementType::F32
            } else {
                ElementType::U8
            };
            let count = (range.end - range.start) / u64::from(element.size());
            let Ok(count) = u32::try_from(count) else {
                continue;
            };
            // The app reads what it synchronises last; dumped bytes need no value.
            let mut bytes = vec![0; 64.min((range.end - range.start) as usize)];
            let dumped = original.contents.read(range.start, &mut bytes).is_some();
            let kind = if dumped && bytes.iter().any(|&b| b != 0) {
                TensorKind::Weight
            } else if !entries.is_empty() {
                TensorKind::Intermediate
            } else if position + 1 == ranges.len() {
                TensorKind::Output
            } else {
                TensorKind::Input
            };
            let own = names.unique(kind.name().to_owned());
            let form = options.stated.form_of(&own, range.end - range.start)?;
            let form = form.cloned().unwrap_or(Form {
                dtype: element,
                shape: vec![count],
            });
            let name = options.stated.name(&own);
            let tensor = Tensor::dense(name, kind, form.dtype, &form.shape, range.start);
            tensors.ranges.push((kind, name.to_owned(), form));
            found.push(own);
            let id = builder.tensor(tensor);
            match kind {
                TensorKind::Input => tensors.inputs.push(id),
                TensorKind::Output => tensors.outputs.push(id),
                _ => {}
            }
        }
        options.stated.check(&found)?;
        Ok(tensors)
    }

    fn id(&self, name: &str) -> TensorId {
        self.by_name.get(name).map_or(TensorId(u32::MAX), |t| t.0)
    }

    fn upload_values(&self, builder: &mut Builder, options: &Options) {
        for (name, value) in &options.values {
            let Some((_, entry)) = self.by_name.get(name.as_str()) else {
                continue;
            };
            if entry.strides.is_none() {
                builder.upload(entry.address, value);
            } else {
                scatter(builder, entry, value);
            }
        }
    }
}

fn scatter(builder: &mut Builder, entry: &TensorEntry, value: &[u8]) {
    let strides = entry.strides.as_deref().unwrap_or(&[]);
    let size = entry.element().map_or(1, ElementType::size) as usize;
    let last_is_dense = strides.last() == Some(&(size as u32));
    let (outer, row) = match entry.shape.split_last() {
        Some((&inner, outer)) if last_is_dense => (outer, inner as usize * size),
        _ => (&entry.shape[..], size),
    };
    for (index, bytes) in value.chunks_exact(row.max(1)).enumerate() {
        let mut rest = index as u64;
        let mut va = entry.address;
        for (&extent, &stride) in outer.iter().zip(strides).rev() {
            va += rest % u64::from(extent.max(1)) * u64::from(stride);
            rest /= u64::from(extent.max(1));
        }
        builder.upload(va, bytes);
    }
}

fn tensor(entry: &TensorEntry, options: &Options) -> Result<(Tensor, u64), ConvertError> {
    let (kind, element) = (entry.tensor_kind()?, entry.element()?);
    let mut tensor = Tensor::dense(&entry.name, kind, element, &entry.shape, entry.address);
    let size = u64::from(element.size());
    let elements = entry.shape.iter().fold(1u64, |product, &extent| {
        product.saturating_mul(extent.into())
    });
    let mut length = elements.saturating_mul(size);
    let expected = length;
    if let Some(strides) = &entry.strides {
        tensor.pieces = vec![Piece::strided(&entry.shape, strides, entry.address)];
        length = entry
            .shape
            .iter()
            .zip(strides)
            .fold(size, |sum, (&extent, &stride)| {
                sum.saturating_add(
                    u64::from(extent.saturating_sub(1)).saturating_mul(stride.into()),
                )
            });
    }
    match options.values.get(&entry.name) {
        Some(value) if value.len() as u64 != expected => {
            return Err(ConvertError::ValueSize {
                name: entry.name.clone(),
                found: value.len(),
                expected,
            });
        }
        Some(_) => {}
        None => tensor.external = kind == TensorKind::Weight,
    }
    Ok((tensor, entry.address.saturating_add(length)))
}
