// SPDX-License-Identifier: MIT OR Apache-2.0
//! One queue's registers, calls and scoreboards, without memory: its caller gives words, and does what each
//! [`Effect`] asks.

mod saved;

use super::effect::{Compute, Condition, Effect, Fault, Sync, SyncKind, Transfer};
use super::field::*;
use super::instruction::{Instruction, WORD_BYTES};
use super::table::Op;

pub use self::saved::SAVED_WORDS;

/// Registers of a queue.
pub const REGISTERS: usize = 96;
/// Greatest depth of calls.
pub const CALLS: usize = 8;
/// Scoreboards of a queue.
pub const SCOREBOARDS: usize = 8;

const WORD: u64 = WORD_BYTES as u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frame {
    next: u64,
    start: u64,
    end: u64,
}

/// A queue's state, which outlives streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequencer {
    registers: [u32; REGISTERS],
    defined: u128,
    /// Registers awaiting a load, by scoreboard.
    pending: [u128; SCOREBOARDS],
    frames: [Frame; CALLS + 1],
    depth: usize,
    /// Scoreboards of endpoints and other operations.
    entries: [u8; 2],
}

impl Sequencer {
    /// All registers are 0.
    pub const fn new() -> Self {
        Self {
            defined: u128::MAX,
            ..Self::undefined()
        }
    }

    /// Registers are unknown.
    pub const fn undefined() -> Self {
        const NOWHERE: Frame = Frame {
            next: 0,
            start: 0,
            end: 0,
        };
        Self {
            registers: [0; REGISTERS],
            defined: 0,
            pending: [0; SCOREBOARDS],
            frames: [NOWHERE; CALLS + 1],
            depth: 0,
            entries: [0; 2],
        }
    }

    /// Begins a stream. Drops the stack of calls, keeps registers.
    ///
    /// # Errors
    /// Address or length are no multiples of an instruction.
    pub fn start(&mut self, address: u64, bytes: u32) -> Result<(), Fault> {
        self.depth = 0;
        self.pending = [0; SCOREBOARDS];
        self.enter(address, bytes)
    }

    /// As [`Sequencer::start`], from a driver's ring: one place of the stack is used, and the last four registers
    /// hold its operands.
    ///
    /// # Errors
    /// As for [`Sequencer::start`].
    pub fn call(&mut self, address: u64, bytes: u32) -> Result<(), Fault> {
        self.pending = [0; SCOREBOARDS];
        self.frames = Self::undefined().frames;
        self.depth = 1;
        self.set_pair(92, address)?;
        self.set_pair(94, bytes.into())?;
        self.enter(address, bytes)
    }

    /// Next address; `None` at the stream's end.
    pub fn address(&mut self) -> Option<u64> {
        loop {
            let frame = self.frames.get(self.depth)?;
            if frame.next < frame.end {
                return Some(frame.next);
            }
            self.depth = self.depth.checked_sub(1)?;
        }
    }

    /// Executes the word at [`Sequencer::address`].
    ///
    /// # Errors
    /// It cannot be executed; only the place has changed.
    pub fn step(&mut self, word: u64) -> Result<Effect, Fault> {
        if let Some(frame) = self.frames.get_mut(self.depth) {
            frame.next = frame.next.saturating_add(WORD);
        }
        let at = Instruction::decode(word).ok_or(Fault::Unknown(word))?;
        let op = at.op();
        if at.unexplained() != 0 {
            let bits = at.unexplained();
            return Err(Fault::Unexplained { op, bits });
        }
        if let Some(field) = at.reserved() {
            let field = field.name;
            return Err(Fault::Reserved { op, field });
        }
        let register = |field: &'static Field| at.get(field) as u8;
        match op {
            Op::Nop | Op::ReqResource | Op::ErrorBarrier => {}
            Op::Move => self.set_pair(register(&PAIR_DESTINATION), at.get(&IMMEDIATE))?,
            Op::Move32 => self.set(register(&DESTINATION), at.get(&IMMEDIATE_32) as u32)?,
            Op::Wait => self.wait(at.get(&AWAITED)),
            Op::RunCompute => return Ok(Effect::Compute(self.compute(at)?)),
            Op::AddImmediate32 => {
                let sum = self.get(register(&SOURCE))?;
                let sum = sum.wrapping_add(at.get(&ADDEND) as u32);
                self.set(register(&DESTINATION), sum)?;
            }
            Op::AddImmediate64 => {
                let sum = self.pair(register(&PAIR_SOURCE))?;
                let sum = sum.wrapping_add_signed(ADDEND.number(word));
                self.set_pair(register(&PAIR_DESTINATION), sum)?;
            }
            Op::Umin32 => {
                let [one, other] = [&SOURCE_1, &SOURCE_2].map(|field| self.get(register(field)));
                self.set(register(&DESTINATION), one?.min(other?))?;
            }
            Op::LoadMultiple => {
                let transfer = self.transfer(at)?;
                let scoreboard = usize::from(self.entries[1]);
                let slot = self.pending.get_mut(scoreboard);
                *slot.ok_or(Fault::Scoreboard(self.entries[1]))? |=
                    u128::from(transfer.mask) << transfer.base;
                return Ok(Effect::Load(transfer));
            }
            Op::StoreMultiple => {
                let transfer = self.transfer(at)?;
                for (register, _) in transfer.words() {
                    self.get(register)?;
                }
                return Ok(Effect::Store(transfer));
            }
            Op::Branch => self.branch(at)?,
            Op::SetSbEntry => {
                let entries = [at.get(&ENDPOINT_ENTRY), at.get(&OTHER_ENTRY)].map(|it| it as u8);
                if let Some(bad) = entries.iter().find(|it| usize::from(**it) >= SCOREBOARDS) {
                    return Err(Fault::Scoreboard(*bad));
                }
                self.entries = entries;
            }
            Op::Call | Op::Jump => {
                let address = self.pair(register(&ADDRESS))?;
                let bytes = self.get(register(&LENGTH))?;
                let depth = self.depth + usize::from(op == Op::Call);
                if depth > CALLS {
                    return Err(Fault::CallDepth);
                }
                check(address, bytes)?;
                self.depth = depth;
                self.enter(address, bytes)?;
            }
            // For rendering only.
            Op::SetExceptionHandler => {
                self.pair(register(&ADDRESS))?;
                self.get(register(&LENGTH))?;
            }
            Op::HeapSet => drop(self.pair(register(&ADDRESS))?),
            Op::FlushCache2 => {
                self.wait(at.get(&WAIT_MASK));
                self.get(register(&LATEST_FLUSH_ID))?;
                return Ok(Effect::Flush);
            }
            Op::SyncAdd32 | Op::SyncSet32 | Op::SyncWait32 => {
                let value = self.get(register(&DATA))?.into();
                return self.sync(at, value, false);
            }
            Op::SyncAdd64 | Op::SyncSet64 | Op::SyncWait64 => {
                let value = self.pair(register(&PAIR_DATA))?;
                return self.sync(at, value, true);
            }
            Op::StoreState => {
                self.wait(at.get(&WAIT_MASK));
                let address = self.pair(register(&ADDRESS))?;
                return Ok(Effect::StoreState {
                    address: address.wrapping_add_signed(OFFSET.number(word)),
                    state: at.get(&STATE) as u8,
                });
            }
            Op::RunTiling
            | Op::RunIdvs
            | Op::RunFragment
            | Op::RunFullscreen
            | Op::FinishTiling
            | Op::FinishFragment
            | Op::ProgressWait
            | Op::ProtRegion
            | Op::ProgressStore
            | Op::ProgressLoad
            | Op::RunComputeIndirect
            | Op::HeapOperation
            | Op::TracePoint => return Err(Fault::Absent(op)),
        }
        Ok(Effect::None)
    }

    /// Reads a register.
    ///
    /// # Errors
    /// It does not exist, has no value, or awaits a load.
    pub fn get(&self, register: u8) -> Result<u32, Fault> {
        let value = self.registers.get(usize::from(register));
        let value = *value.ok_or(Fault::Register(register))?;
        let bit = 1 << register;
        if let Some(scoreboard) = self.pending.iter().position(|it| it & bit != 0) {
            let scoreboard = scoreboard as u8;
            return Err(Fault::Pending {
                register,
                scoreboard,
            });
        }
        match self.defined & bit {
            0 => Err(Fault::Undefined(register)),
            _ => Ok(value),
        }
    }

    /// Reads a pair by its first register.
    ///
    /// # Errors
    /// As [`Sequencer::get`]; or the register is odd.
    pub fn pair(&self, register: u8) -> Result<u64, Fault> {
        if !register.is_multiple_of(2) {
            return Err(Fault::Register(register));
        }
        let [low, high] = [self.get(register)?, self.get(register.saturating_add(1))?];
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// Takes a word of an [`Effect::Load`], readable after a wait.
    pub fn load(&mut self, register: u8, value: u32) {
        if let Some(word) = self.registers.get_mut(usize::from(register)) {
            *word = value;
            self.defined |= 1 << register;
        }
    }

    fn set(&mut self, register: u8, value: u32) -> Result<(), Fault> {
        let word = self.registers.get_mut(usize::from(register));
        *word.ok_or(Fault::Register(register))? = value;
        self.defined |= 1 << register;
        Ok(())
    }

    fn set_pair(&mut self, register: u8, value: u64) -> Result<(), Fault> {
        if !register.is_multiple_of(2) || usize::from(register) >= REGISTERS {
            return Err(Fault::Register(register));
        }
        self.set(register, value as u32)?;
        self.set(register + 1, (value >> 32) as u32)
    }

    fn wait(&mut self, mask: u64) {
        for (number, pending) in self.pending.iter_mut().enumerate() {
            if mask >> number & 1 != 0 {
                *pending = 0;
            }
        }
    }

    fn enter(&mut self, address: u64, bytes: u32) -> Result<(), Fault> {
        let end = check(address, bytes)?;
        if let Some(frame) = self.frames.get_mut(self.depth) {
            *frame = Frame {
                next: address,
                start: address,
                end,
            };
        }
        Ok(())
    }

    fn branch(&mut self, at: Instruction) -> Result<(), Fault> {
        // The operand of an unconditional branch (6) has no meaning.
        let condition = at.get(&CONDITION);
        let taken = match condition {
            6 => true,
            condition => {
                let value = self.get(at.get(&VALUE) as u8)? as i32;
                match condition {
                    0 => value <= 0,
                    1 => value > 0,
                    2 => value == 0,
                    3 => value != 0,
                    4 => value < 0,
                    _ => value >= 0,
                }
            }
        };
        let Some(frame) = self.frames.get_mut(self.depth).filter(|_| taken) else {
            return Ok(());
        };
        let offset = OFFSET.number(at.word()) * WORD as i64;
        let target = frame.next.wrapping_add_signed(offset);
        if target < frame.start || target > frame.end {
            return Err(Fault::Branch(target));
        }
        frame.next = target;
        Ok(())
    }

    fn transfer(&self, at: Instruction) -> Result<Transfer, Fault> {
        let transfer = Transfer {
            address: self
                .pair(at.get(&ADDRESS) as u8)?
                .wrapping_add_signed(OFFSET.number(at.word())),
            base: at.get(&BASE_REGISTER) as u8,
            mask: at.get(&MASK) as u16,
        };
        let last = transfer.words().last();
        let last = last.map_or(transfer.base, |(register, _)| register);
        match usize::from(last) < REGISTERS {
            true => Ok(transfer),
            false => Err(Fault::Register(last)),
        }
    }

    fn sync(&mut self, at: Instruction, value: u64, wide: bool) -> Result<Effect, Fault> {
        let op = at.op();
        let kind = match op {
            Op::SyncAdd32 | Op::SyncAdd64 => SyncKind::Add,
            Op::SyncSet32 | Op::SyncSet64 => SyncKind::Set,
            _ => SyncKind::Wait(match at.get(&SYNC_CONDITION) {
                0 => Condition::LessOrEqual,
                1 => Condition::Greater,
                _ => {
                    let field = SYNC_CONDITION.name;
                    return Err(Fault::Reserved { op, field });
                }
            }),
        };
        let address = self.pair(at.get(&ADDRESS) as u8)?;
        let error = match kind {
            SyncKind::Wait(_) => at.get(&ERROR_REJECT),
            _ => {
                self.wait(at.get(&WAIT_MASK));
                at.get(&ERROR_PROPAGATE)
            }
        };
        Ok(Effect::Sync(Sync {
            kind,
            wide,
            address,
            value,
            error: error != 0,
        }))
    }

    /// Each select field names one of four groups of registers.
    fn compute(&self, at: Instruction) -> Result<Compute, Fault> {
        let chosen =
            |first: u8, select: &'static Field| self.pair(first + 2 * at.get(select) as u8);
        let three = |first: u8| Ok([self.get(first)?, self.get(first + 1)?, self.get(first + 2)?]);
        Ok(Compute {
            resources: chosen(0, &SRT_SELECT)?,
            uniforms: chosen(8, &FAU_SELECT)?,
            program: chosen(16, &SPD_SELECT)?,
            storage: chosen(24, &TSD_SELECT)?,
            attribute_offset: self.get(32)?,
            size: self.get(33)?,
            tasks: (at.get(&TASK_INCREMENT) | at.get(&TASK_AXIS) << TASK_AXIS.at) as u32,
            offset: three(34)?,
            count: three(37)?,
        })
    }
}

impl Default for Sequencer {
    fn default() -> Self {
        Self::new()
    }
}

impl Transfer {
    /// Each register and its word's address.
    pub fn words(self) -> impl Iterator<Item = (u8, u64)> {
        let chosen = move |bit: &u8| self.mask >> bit & 1 != 0;
        (0..16).filter(chosen).map(move |bit| {
            let address = self.address.wrapping_add(4 * u64::from(bit));
            (self.base.saturating_add(bit), address)
        })
    }
}

fn check(address: u64, bytes: u32) -> Result<u64, Fault> {
    let end = address.checked_add(bytes.into());
    match end {
        Some(end) if (address | end).is_multiple_of(WORD) => Ok(end),
        _ => Err(Fault::Alignment(address | u64::from(bytes))),
    }
}
