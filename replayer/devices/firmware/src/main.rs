// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bare-metal image: replays a recording, prints outputs.

#![no_std]
#![no_main]

mod board;
#[cfg(feature = "signature")]
mod counter;
mod cpu;
mod faults;
mod gic;
mod machine;
mod pci;
mod report;
#[cfg(feature = "signature")]
mod trust;
mod uart;

use core::arch::global_asm;

use gpureplay_bare::Device;
use mali_drive::verify;
use gpureplay_core::{Limits, Options, Session, Tensors, Workspace};
use gpureplay_format::layout::{TENSOR_EXTERNAL, TensorEntry};
use gpureplay_format::{Recording, TensorKind};

use crate::board::Board;
use crate::uart::{number, text};

global_asm!(include_str!("start.s"));
include!(concat!(env!("OUT_DIR"), "/linked.rs"));

/// The model's vendor id; the device id is the GPU's product id.
const PCI_VENDOR: u32 = 0x1234;
const OUTPUT_BYTES: usize = 64 << 10;
/// A single run needs no room and code for states.
const GOES_ON: bool = RUNS > 1 || FAULTS > 0;
const STATE_BYTES: usize = if GOES_ON { 256 << 10 } else { 0 };

unsafe extern "C" {
    static __stack_bottom: u8;
    static __stack_top: u8;
    static __image_end: u8;
}

static mut WORKSPACE: Workspace = Workspace::new();
static mut OUTPUT: [u8; OUTPUT_BYTES] = [0; OUTPUT_BYTES];
static mut STATES: [[u8; STATE_BYTES]; 2] = [[0; STATE_BYTES]; 2];

struct Linked<'a> {
    recording: &'a Recording<'a>,
    output: &'a mut [u8; OUTPUT_BYTES],
    /// Tensor and length in `output`.
    found: Option<(u32, usize)>,
    /// Of the last run and of the current one, tensor after tensor.
    states: [&'a mut [u8; STATE_BYTES]; 2],
    left: bool,
    /// The next run puts them back.
    lost: bool,
    runs: u32,
}

impl Linked<'_> {
    /// Range among all states; `None` for other tensors.
    fn state(&self, tensor: u32) -> Option<core::ops::Range<usize>> {
        if !GOES_ON {
            return None;
        }
        let bytes = |entry: &TensorEntry| match entry.kind == TensorKind::State.code() {
            true => self.recording.tensor_bytes(entry).unwrap_or(0) as usize,
            false => 0,
        };
        let tensors = self.recording.tensors();
        let before = tensors.get(..tensor as usize)?;
        let start = before.iter().map(bytes).fold(0, usize::wrapping_add);
        match bytes(tensors.get(tensor as usize)?) {
            0 => None,
            length => Some(start..start.wrapping_add(length)),
        }
    }

    fn keep(&mut self) {
        self.states.swap(0, 1);
        self.left = true;
        self.lost = false;
        self.runs = self.runs.wrapping_add(1);
    }

    fn restart(&mut self) {
        self.left = false;
        self.lost = false;
        self.runs = 0;
    }

    fn checksum(&self) -> u64 {
        // FNV-1a: 64 bits collide by chance only.
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        self.states[0].iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// Value of a tensor: one per run, cyclically.
    fn value(&self, tensor: u32) -> Option<&'static [u8]> {
        let all = *INPUTS.get(self.position(tensor)?)?;
        if !GOES_ON {
            return Some(all);
        }
        let entry = self.recording.tensors().get(tensor as usize)?;
        let bytes = self.recording.tensor_bytes(entry)? as usize;
        let values = all.len().checked_div(bytes)?;
        let first = (self.runs as usize)
            .checked_rem(values)?
            .wrapping_mul(bytes);
        all.get(first..)?.get(..bytes)
    }

    /// Among inputs, and weights not in the recording.
    fn position(&self, tensor: u32) -> Option<usize> {
        let tensors = self.recording.tensors();
        let needs = |entry: &TensorEntry| {
            entry.kind == TensorKind::Input.code() || entry.flags & TENSOR_EXTERNAL != 0
        };
        let before = tensors.get(..tensor as usize)?;
        needs(tensors.get(tensor as usize)?)
            .then(|| before.iter().filter(|&entry| needs(entry)).count())
    }
}

impl Tensors for Linked<'_> {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        if let Some(range) = self.state(tensor) {
            let kept = self.states[0].get(range);
            return kept.filter(|_| self.left && self.lost);
        }
        self.value(tensor)
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        if let Some(range) = self.state(tensor) {
            return self.states[1].get_mut(range);
        }
        let entry = self.recording.tensors().get(tensor as usize)?;
        if entry.kind != TensorKind::Output.code() {
            return None;
        }
        let bytes = self.recording.tensor_bytes(entry)? as usize;
        let room = self.output.get_mut(..bytes)?;
        self.found = Some((tensor, bytes));
        Some(room)
    }
}

/// Keeps the order of f32 values (not NaNs).
fn sortable(bits: u32) -> u32 {
    if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    }
}

fn print_character(linked: &Linked<'_>) {
    if let (Some((_, 1)), Some(character)) = (linked.found, linked.output.first()) {
        uart::byte(*character);
    }
}

fn print_output(linked: &Linked<'_>) {
    let Some((tensor, bytes)) = linked.found else {
        text("no output fits\n");
        return;
    };
    let Some(entry) = linked.recording.tensors().get(tensor as usize) else {
        return;
    };
    text("output ");
    text(linked.recording.name(entry.name.get()));
    text(" bits");
    let words = linked.output.get(..bytes).unwrap_or(&[]).chunks_exact(4);
    let mut largest = (0, 0);
    for (index, word) in words.enumerate() {
        let bits = word.try_into().map_or(0, u32::from_le_bytes);
        if index < 64 {
            text(" ");
            uart::hex(bits.into());
        }
        if index == 0 || sortable(bits) > largest.1 {
            largest = (index as u64, sortable(bits));
        }
    }
    text("\nanswer ");
    number(largest.0);
    text("\n");
}

/// High-water mark in bytes.
fn stack_used() -> u64 {
    const PAINT: u64 = 0x5354_414b_5354_414b;
    let (bottom, top) = (
        &raw const __stack_bottom as u64,
        &raw const __stack_top as u64,
    );
    let mut at = bottom;
    // SAFETY: the stack's own memory, read as words between the symbols of the linker script.
    while at < top && unsafe { (at as *const u64).read_volatile() } == PAINT {
        at += 8;
    }
    top - at
}

fn recording_bytes() -> &'static [u8] {
    if !LINKED.is_empty() {
        return &LINKED;
    }
    const LONGEST: u64 = 128 << 20;
    let start = machine::LOADED_RECORDING as *const u8;
    // SAFETY: RAM that nothing else uses; the header's length field is inside, and the length is bounded by RAM.
    unsafe {
        let length = start.add(16).cast::<u64>().read_unaligned().min(LONGEST);
        core::slice::from_raw_parts(start, length as usize)
    }
}

fn replay(start: u64) {
    let bytes = recording_bytes();
    #[cfg(feature = "signature")]
    let Some(trusted) = trust::recording(bytes) else {
        return;
    };
    #[cfg(feature = "signature")]
    let bytes = trusted.recording;
    let parsed = Recording::parse(bytes);
    let recording = match &parsed {
        Ok(recording) => recording,
        Err(error) => return report::damaged(error),
    };
    let verified = match verify(recording, &Limits::DEFAULT) {
        Ok(verified) => verified,
        Err(violation) => return report::refused(&violation),
    };
    let Some(gpu) = pci::find(PCI_VENDOR, 0xffff) else {
        return text("FAILED no GPU on the PCI bus\n");
    };
    let first = &raw const __image_end as usize;
    let board = Board::new(
        gpu.registers,
        gpu.interrupt,
        first,
        machine::LOADED_RECORDING,
    );
    // SAFETY: one thread of execution; the interrupt handler touches none of these. RAM after the image is nobody
    // else's.
    let (device, workspace, output, states) = unsafe {
        (
            Device::new(board),
            &mut *(&raw mut WORKSPACE),
            &mut *(&raw mut OUTPUT),
            &mut *(&raw mut STATES),
        )
    };
    let [kept, coming] = states;
    let mut linked = Linked {
        recording,
        output,
        found: None,
        states: [kept, coming],
        left: false,
        lost: false,
        runs: 0,
    };
    if FAULTS > 0 {
        let mut device = device;
        return faults::trials(&mut device, verified, workspace, &mut linked, FAULTS);
    }
    let opened = cpu::ticks();
    let mut session = Session::new(device, verified, workspace, Options::default());
    if let Err(error) = session.prepare(&mut linked) {
        return report::failed(&error);
    }
    let ready = cpu::ticks();
    if RUNS > 1 {
        text("text ");
    }
    let mut left = RUNS;
    while left > 0 {
        if let Err(error) = session.run(&mut linked) {
            // Once more, from the last run's states.
            if RUNS <= 1 || linked.lost {
                return report::failed(&error);
            }
            linked.lost = true;
            continue;
        }
        if RUNS > 1 {
            linked.keep();
            print_character(&linked);
        }
        left -= 1;
    }
    if RUNS > 1 {
        text("\n");
    }
    let done = cpu::ticks();
    let chains = session.submits();
    let interrupts = session.gpu().machine().interrupts;
    let memory = session.gpu().memory_used();
    print_output(&linked);
    if let Err(error) = session.close() {
        return report::failed(&error);
    }
    #[cfg(feature = "signature")]
    if !trusted.remember() {
        return;
    }
    text("start-up ");
    number(cpu::microseconds(opened - start));
    text(" us, open ");
    number(cpu::microseconds(ready - opened));
    text(" us, run ");
    number(cpu::microseconds(done - ready));
    text(" us, chains ");
    number(chains.into());
    text(", interrupts ");
    number(interrupts.into());
    text(", memory ");
    number(memory as u64);
    text(", stack ");
    number(stack_used());
    text("\nDONE\n");
}

/// Entry from `start.s`; `start` is the counter at reset.
#[unsafe(no_mangle)]
extern "C" fn firmware_main(start: u64) -> ! {
    cpu::start_mmu();
    gic::start();
    gic::enable(machine::TIMER_INTERRUPT);
    text("gpureplay firmware\n");
    replay(start);
    cpu::power_off()
}

#[unsafe(no_mangle)]
extern "C" fn firmware_interrupt() {
    board::interrupt();
}

/// For every other vector.
#[unsafe(no_mangle)]
extern "C" fn firmware_exception(syndrome: u64, address: u64, fault: u64) -> ! {
    text("EXCEPTION");
    report::field("syndrome", syndrome);
    report::field("at", address);
    report::field("fault address", fault);
    text("\n");
    cpu::power_off()
}

#[cfg(not(feature = "signature"))]
unsafe extern "C" {
    /// Defined nowhere: a panic does not link.
    safe fn a_panic_is_linked_in() -> !;
}

#[cfg(not(feature = "signature"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    a_panic_is_linked_in()
}

/// Signatures index arrays, with bounds checks.
#[cfg(feature = "signature")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    text("PANIC\n");
    cpu::power_off()
}
