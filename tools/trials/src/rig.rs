// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model on a watched bus.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_core::{DeviceError, Family, Gpu, Lines, Tensors, Verified, Wrapper};
use gpureplay_format::ElementType;
use gpureplay_format::layout::TENSOR_EXTERNAL;
use gpureplay_memory::{Bus, PAGE_SIZE, Page, Ram};
use gpureplay_on_model::OnModel;
use mali_drive::reset;
use mali_facts::Product;
use mali_model::Options;

const PAGES: usize = 1 << 16;
/// Pages of others, between those of the replay.
const FOREIGN: usize = 64;
const MARK: u64 = 0x5a5a_a5a5_1234_8765;
/// Limit for all chains and launches.
const CLAUSES: u64 = 1 << 23;
/// Per register access.
const ACCESS_US: u64 = 20;

/// Counts accesses outside the replay's pages.
pub struct Watched {
    ram: Arc<Ram>,
    foreign: BTreeSet<u64>,
    strays: AtomicU64,
}

impl Bus for Watched {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let page = address - address % PAGE_SIZE as u64;
        if self.foreign.contains(&page) || !self.ram.is_allocated(page) {
            self.strays.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.ram.page(address)
    }
}

/// Model as a device: its clock moves with each action and never waits.
pub struct Rig {
    device: OnModel<Watched>,
    bus: Arc<Watched>,
    streams: bool,
    now_us: u64,
}

impl Rig {
    /// A rig and its model share one memory.
    ///
    /// # Errors
    /// The operating system has no address space left.
    pub fn new(model: impl Into<Product>) -> io::Result<Self> {
        let model = model.into();
        let streams = matches!(model, Product::Streams(_));
        let ram = Arc::new(Ram::new(PAGES)?);
        let all: Vec<u64> = (0..2 * FOREIGN).filter_map(|_| ram.allocate()).collect();
        let mut foreign = BTreeSet::new();
        for (index, page) in (0..).zip(all) {
            if index % 2 == 0 {
                ram.release(page);
                continue;
            }
            if let Some(contents) = ram.page(page) {
                contents.fill_u64(MARK);
            }
            foreign.insert(page);
        }
        let bus = Arc::new(Watched {
            ram: ram.clone(),
            foreign,
            strays: AtomicU64::new(0),
        });
        let options = Options {
            threads: 1,
            work_limit: Some(CLAUSES),
            ..Options::default()
        };
        Ok(Self {
            device: OnModel::on_bus(model, options, ram, bus.clone()),
            bus,
            streams,
            now_us: 0,
        })
    }

    /// The model.
    pub fn get_ref(&self) -> &OnModel<Watched> {
        &self.device
    }

    /// The model, without the rig's clock.
    pub fn get_mut(&mut self) -> &mut OnModel<Watched> {
        &mut self.device
    }

    /// Gives the model back.
    pub fn into_inner(self) -> OnModel<Watched> {
        self.device
    }

    /// GPU accesses outside the replay's pages.
    pub fn strays(&self) -> u64 {
        self.bus.strays.load(Ordering::Relaxed)
    }

    /// Replay pages still in use.
    pub fn pages(&self) -> usize {
        self.device.pages()
    }

    /// Changed bytes outside the replay's pages.
    pub fn spoilt(&self) -> usize {
        let pages = self
            .bus
            .foreign
            .iter()
            .filter_map(|&page| self.bus.ram.page(page));
        let changed = |page: Page<'_>| {
            (0..PAGE_SIZE)
                .step_by(8)
                .filter(|&at| page.load_u64(at) != MARK)
                .count()
                * 8
        };
        pages.map(changed).sum()
    }
}

impl Wrapper for Rig {
    type Inner = OnModel<Watched>;

    fn inner(&mut self) -> &mut OnModel<Watched> {
        &mut self.device
    }
    fn read32(&mut self, register: u32) -> u32 {
        self.now_us += ACCESS_US;
        self.device.read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        self.now_us += ACCESS_US;
        self.device.write32(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let raised = self.device.wait_irq(lines, 0);
        self.now_us += if raised == Lines::NONE {
            timeout_us.into()
        } else {
            ACCESS_US
        };
        raised
    }
    // Asking takes time: a wait without answers must end.
    fn now_us(&mut self) -> u64 {
        self.now_us += ACCESS_US;
        self.now_us
    }
    // Through the rig, for its clock.
    fn reset(&mut self) -> Result<(), DeviceError> {
        match self.streams {
            false => reset(self),
            true => self.device.reset(),
        }
    }
}

/// Values for inputs, room for outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    inputs: Vec<Option<Vec<u8>>>,
    /// Final states too; empty for others.
    pub outputs: Vec<Vec<u8>>,
}

impl Values {
    /// Small numbers, where a value is needed.
    pub fn new<F: Family>(verified: &Verified<'_, F>) -> Self {
        use gpureplay_format::TensorKind::{Input, Output, State};
        let recording = verified.recording();
        let bytes = |tensor: &gpureplay_format::layout::TensorEntry| {
            recording.tensor_bytes(tensor).unwrap_or(0) as usize
        };
        let input = |tensor: &gpureplay_format::layout::TensorEntry| {
            let needed = tensor.kind == Input.code() || tensor.flags & TENSOR_EXTERNAL != 0;
            let float = tensor.element == ElementType::F32.code();
            // Integers may be indices of classes or characters.
            let index = [ElementType::I32, ElementType::U32]
                .iter()
                .any(|integer| tensor.element == integer.code());
            needed.then(|| {
                let word = |at: usize| match (float, index) {
                    (true, _) => (((at % 17) as f32 - 8.0) / 8.0).to_le_bytes(),
                    (_, true) => ((at % 7) as u32).to_le_bytes(),
                    _ => [(at % 251) as u8; 4],
                };
                (0..bytes(tensor).div_ceil(4))
                    .flat_map(word)
                    .take(bytes(tensor))
                    .collect()
            })
        };
        let output = |tensor: &gpureplay_format::layout::TensorEntry| match tensor.kind {
            kind if kind == Output.code() || kind == State.code() => vec![0; bytes(tensor)],
            _ => Vec::new(),
        };
        let tensors = recording.tensors().iter();
        Self {
            inputs: tensors.clone().map(input).collect(),
            outputs: tensors.map(output).collect(),
        }
    }
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.inputs.get(tensor as usize)?.as_deref()
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        let buffer = self.outputs.get_mut(tensor as usize)?;
        (!buffer.is_empty()).then_some(buffer.as_mut_slice())
    }
}

/// The G52 for unknown products.
pub fn model(gpu_id: u32) -> Product {
    let model = Product::by_id(mali_facts::registers::GpuId(gpu_id));
    model.unwrap_or(Product::Chains(&mali_model::PROFILES[0]))
}
