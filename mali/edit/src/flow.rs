// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shader's code reads, and what loads decide.

mod words;

use std::collections::BTreeSet;

use mali_isa::{
    Clause, Destination, Fau, Message, Operand, Part, Segment, Shader, StagingCount, Target, Tuple,
    Unit,
};

/// What a shader does, by its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Registers whose first value may be read.
    pub initial: u64,
    /// Mask of named registers.
    pub named: u64,
    /// Highest push uniform slot read (64 bits each), plus one.
    pub uniform_slots: u32,
    /// Waits for its work group.
    pub barrier: bool,
    /// Uses a work group's storage.
    pub group_storage: bool,
    /// Uses its thread's storage.
    pub thread_storage: bool,
    /// Depends on other lanes, or on numbers of lanes, warps or cores.
    pub sees_warp: bool,
    /// Reads a clock.
    pub clock: bool,
    /// Has atomic operations.
    pub atomics: bool,
    /// Uses textures, images or attributes.
    pub textures: bool,
    /// Names descriptors in Valhall's resource tables.
    pub tables: bool,
    /// Some branch's target is unknown.
    pub dynamic: bool,
    /// Offset of the first clause whose address depends on a load.
    pub address_from_memory: Option<u32>,
    /// Offset of the first clause whose branch depends on a load.
    pub branch_from_memory: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Taint {
    /// May hold something loaded.
    registers: u64,
    /// Words of the thread's storage that may, by offset in words.
    stack: BTreeSet<u32>,
    all_stack: bool,
}

/// Per clause; compilers keep far fewer values there.
const MAX_WORDS: usize = 256;

impl Taint {
    fn join(&mut self, other: &Self) {
        self.registers |= other.registers;
        self.stack.extend(&other.stack);
        self.all_stack |= other.all_stack;
        self.bound();
    }

    /// Beyond the limit, every word may hold something loaded.
    fn bound(&mut self) {
        self.all_stack |= self.stack.len() > MAX_WORDS;
        if self.all_stack {
            self.stack.clear();
        }
    }

    /// `place`: `None` if the code does not say it.
    fn store(&mut self, place: Option<u32>, first: u8, registers: u64, whole: bool) {
        let Some(place) = place else {
            self.all_stack |= self.registers & registers != 0;
            return;
        };
        for word in 0..registers.count_ones() {
            let tainted = self.registers >> (u32::from(first) + word).min(63) & 1 == 1;
            let at = place.saturating_add(word);
            match (tainted, whole) {
                (true, _) => drop(self.stack.insert(at)),
                (false, true) => drop(self.stack.remove(&at)),
                (false, false) => {}
            }
        }
        self.bound();
    }

    fn load(&self, place: Option<u32>, first: u8, registers: u64) -> u64 {
        let Some(place) = place.filter(|_| !self.all_stack) else {
            let any = self.all_stack || !self.stack.is_empty();
            return if any { registers } else { 0 };
        };
        (0..registers.count_ones())
            .filter(|word| self.stack.contains(&place.saturating_add(*word)))
            .fold(0, |all, word| all | 1 << (u32::from(first) + word).min(63))
    }
}

impl Flow {
    /// Looks at all clauses that control flow can reach.
    pub fn of(shader: &Shader) -> Self {
        let mut flow = Self {
            named: gpureplay_jobs::registers::named(shader),
            dynamic: shader.dynamic,
            ..Self::default()
        };
        for placed in &shader.clauses {
            for tuple in &placed.clause.tuples {
                for unit in [Unit::Fma, Unit::Add] {
                    flow.look(tuple, unit);
                }
            }
        }
        let clauses = shader.clauses.iter();
        let uses: Vec<(u64, u64)> = clauses.map(|placed| uses(&placed.clause)).collect();
        let next: Vec<Vec<usize>> = (0..uses.len()).map(|at| successors(shader, at)).collect();
        flow.initial = live(&uses, &next);
        spread(&next, Taint::default(), |at, now| {
            match shader.clauses.get(at) {
                Some(placed) => flow.clause(&placed.clause, placed.offset, now),
                None => now,
            }
        });
        flow
    }

    fn look(&mut self, tuple: &Tuple, unit: Unit) {
        let instruction = tuple.instruction(unit);
        let info = instruction.op.info();
        for operand in tuple.operands(unit) {
            let (Operand::FauLow(fau) | Operand::FauHigh(fau) | Operand::FauWide(fau)) = operand
            else {
                continue;
            };
            match fau {
                Fau::Uniform(slot) => {
                    self.uniform_slots = self.uniform_slots.max(u32::from(slot) + 1)
                }
                Fau::LaneId | Fau::WarpId | Fau::CoreId => self.sees_warp = true,
                _ => {}
            }
        }
        let warp = [
            "CLPER",
            "WMASK",
            "BRANCHC",
            "BRANCH_DIVERG",
            "BRANCH_NO_DIVERG",
        ];
        self.sees_warp |= warp.iter().any(|name| info.name.starts_with(name));
        self.clock |= info.name.starts_with("LD_GCLK");
        match info.message {
            Some(Message::Barrier) => self.barrier = true,
            Some(Message::Atomic) => self.atomics = true,
            Some(Message::Load | Message::Store) => {}
            Some(_) => self.textures = true,
            None => {}
        }
        let segmented = info.name.starts_with("LOAD.")
            || info.name.starts_with("STORE.")
            || info.name.starts_with("SEG_");
        if segmented {
            match instruction.segment() {
                Segment::Wls => self.group_storage = true,
                Segment::Tl => self.thread_storage = true,
                _ => {}
            }
        }
    }

    fn clause(&mut self, clause: &Clause, offset: u32, before: Taint) -> Taint {
        let mut now = before;
        let (mut t0, mut t1) = (false, false);
        // The next tuple may still read what one overwrites.
        let mut overwritten = 0;
        for tuple in &clause.tuples {
            let mut stage = false;
            let known = now.registers;
            let carries = |operand: Operand, stage: bool| match operand {
                Operand::Register(register) => known >> (register & 63) & 1 == 1,
                Operand::Pair(register) => known >> (register & 63) & 3 != 0,
                Operand::Stage => stage,
                Operand::T0 => t0,
                Operand::T1 => t1,
                Operand::Zero | Operand::FauLow(_) | Operand::FauHigh(_) | Operand::FauWide(_) => {
                    false
                }
            };
            let any = |unit: Unit, stage: bool| {
                tuple.operands(unit).any(|operand| carries(operand, stage))
            };
            stage |= any(Unit::Fma, stage);
            let mut result = any(Unit::Add, stage);
            let branches = clause.branch().is_some();
            let add = tuple.add.op.info();
            let is_branch = add.name.starts_with("BRANCH") || add.name.starts_with("JUMP");
            if branches && is_branch && result {
                self.branch_from_memory.get_or_insert(offset);
            }
            let (mut tainted, mut clean) = (0, 0);
            for (unit, info) in [(Unit::Fma, tuple.fma.op.info()), (Unit::Add, add)] {
                let Some(message) = info.message else {
                    continue;
                };
                let instruction = tuple.instruction(unit);
                // The message completes an address that the FMA unit began.
                let begun = tuple.fma.op.info().name.starts_with("SHADDX") && stage;
                if any(unit, stage) || begun {
                    self.address_from_memory.get_or_insert(offset);
                }
                let registers = staging(clause, info.staging.map(|it| it.count));
                let segmented = info.name.starts_with("LOAD.") || info.name.starts_with("STORE.");
                let segment = if segmented {
                    instruction.segment()
                } else {
                    Segment::None
                };
                let first = clause.header.staging_register;
                let place = place(tuple, unit);
                let loaded = match (message, segment) {
                    (Message::Load, Segment::Ubo) => 0,
                    (Message::Load, Segment::Tl) => now.load(place, first, registers),
                    _ => registers,
                };
                if message == Message::Store && segment == Segment::Tl {
                    let whole = !info.name.ends_with(".i8") && !info.name.ends_with(".i16");
                    now.store(place, first, registers, whole);
                }
                if info.staging.is_some_and(|it| it.write) {
                    tainted |= loaded;
                    clean |= registers & !loaded;
                }
                let loaded = loaded != 0 || registers == 0;
                if info.result && message != Message::Store {
                    result |= loaded;
                }
            }
            now.registers &= !overwritten;
            overwritten = clean;
            for (destination, carried) in [
                (tuple.fma_destination, stage),
                (tuple.add_destination, result),
            ] {
                let Some(Destination { register, part }) = destination else {
                    continue;
                };
                let bits = match part {
                    Part::Pair => 3,
                    _ => 1,
                } << (register & 63);
                match (carried, part) {
                    (true, _) => tainted |= bits,
                    (false, Part::Full | Part::Pair) => overwritten |= bits,
                    (false, Part::Low | Part::High) => {}
                }
            }
            now.registers |= tainted;
            overwritten &= !tainted;
            (t0, t1) = (stage, result);
        }
        now.registers &= !overwritten;
        now
    }
}

fn place(tuple: &Tuple, unit: Unit) -> Option<u32> {
    let mut operands = tuple.operands(unit);
    let (low, high) = (operands.next()?.constant()?, operands.next()?.constant()?);
    (high == 0 && low.is_multiple_of(4)).then_some(low / 4)
}

fn staging(clause: &Clause, count: Option<StagingCount>) -> u64 {
    let count = match count {
        Some(StagingCount::Words(words)) => u32::from(words),
        Some(StagingCount::Format | StagingCount::Descriptor) => 4,
        None => 0,
    };
    let bits = (1u64 << count.min(63)) - 1;
    bits.checked_shl(clause.header.staging_register.into())
        .unwrap_or(0)
}

fn successors(shader: &Shader, at: usize) -> Vec<usize> {
    let Some(placed) = shader.clauses.get(at) else {
        return Vec::new();
    };
    let mut next = Vec::new();
    if let Some(Target::Relative(distance)) = placed.clause.branch().map(|branch| branch.target) {
        let target = i64::from(placed.offset) + i64::from(distance);
        next.extend(
            u32::try_from(target)
                .ok()
                .and_then(|target| shader.index_of(target)),
        );
    }
    if placed.clause.falls_through() {
        next.extend(shader.index_of(placed.offset.saturating_add(placed.size)));
    }
    next
}

/// Registers that may be read before they are written, and those surely written.
fn uses(clause: &Clause) -> (u64, u64) {
    let (mut read, mut written, mut late) = (0u64, 0u64, 0u64);
    for tuple in &clause.tuples {
        let width = if tuple.is_wide() { 3 } else { 1 };
        for unit in [Unit::Fma, Unit::Add] {
            for operand in tuple.operands(unit) {
                if let Operand::Register(register) | Operand::Pair(register) = operand {
                    read |= width << (register & 63) & !written;
                }
            }
            if let Some(it) = tuple
                .instruction(unit)
                .op
                .info()
                .staging
                .filter(|it| it.read)
            {
                read |= staging(clause, Some(it.count)) & !(written | late);
            }
        }
        written |= late;
        late = 0;
        for Destination { register, part } in [tuple.fma_destination, tuple.add_destination]
            .into_iter()
            .flatten()
        {
            match part {
                Part::Full => late |= 1 << (register & 63),
                Part::Pair => late |= 3 << (register & 63),
                Part::Low | Part::High => {}
            }
        }
        for unit in [Unit::Fma, Unit::Add] {
            let found = tuple
                .instruction(unit)
                .op
                .info()
                .staging
                .filter(|it| it.write);
            if let Some(StagingCount::Words(_)) = found.map(|it| it.count) {
                late |= staging(clause, found.map(|it| it.count));
            }
        }
    }
    (read, written | late)
}

/// What holds after a block joins what is known of the next.
fn spread(next: &[Vec<usize>], first: Taint, mut step: impl FnMut(usize, Taint) -> Taint) {
    let mut states: Vec<Option<Taint>> = vec![None; next.len()];
    let mut pending = vec![(0, first)];
    while let Some((at, mut joined)) = pending.pop() {
        let (Some(next), Some(state)) = (next.get(at), states.get_mut(at)) else {
            continue;
        };
        if let Some(old) = &*state {
            joined.join(old);
        }
        if state.as_ref() == Some(&joined) {
            continue;
        }
        *state = Some(joined.clone());
        let after = step(at, joined);
        pending.extend(next.iter().map(|next| (*next, after.clone())));
    }
}

/// `uses`: what blocks read and surely write; `next`: what may follow.
fn live(uses: &[(u64, u64)], next: &[Vec<usize>]) -> u64 {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); uses.len()];
    for (at, next) in next.iter().enumerate() {
        for next in next {
            if let Some(before) = before.get_mut(*next) {
                before.push(at);
            }
        }
    }
    let mut live = vec![0u64; uses.len()];
    // A clause comes again when a later one reads more: at most once per register.
    let mut pending: Vec<usize> = (0..uses.len()).collect();
    while let Some(at) = pending.pop() {
        let out = next.get(at).into_iter().flatten();
        let out = out.filter_map(|next| live.get(*next));
        let out = out.fold(0, |all, next| all | next);
        let (Some((read, written)), Some(known)) = (uses.get(at), live.get_mut(at)) else {
            continue;
        };
        let new = read | out & !written;
        if new != *known {
            *known = new;
            pending.extend(before.get(at).into_iter().flatten());
        }
    }
    live.first().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jumps that many words of 16 bytes; two of them long.
    fn jump(words: i32) -> [u8; 32] {
        let mut clause = [0; 32];
        clause[..10].copy_from_slice(&[0x0b, 0x40, 0, 0, 0x44, 0x18, 0xcb, 0x80, 0xd3, 0xfd]);
        clause[10..12].copy_from_slice(&[3, 0xc0]);
        clause[16] = 0x70;
        clause[21..24].copy_from_slice(&words.to_le_bytes()[..3]);
        clause[24] = 4;
        clause
    }

    const END: [u8; 32] = [
        0x4b, 0, 0, 0, 8, 0x1c, 0xcb, 0x80, 7, 0x31, 0, 0xc0, 0xa8, 8, 0x40, 0x31, 0x4b, 0, 0, 0,
        0x44, 0x18, 0xcb, 0x80, 0xd3, 0xfc, 3, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn clauses_in_any_order_are_looked_at_a_bounded_number_of_times() {
        // The first clause jumps to the last, and each to the one before it: the worst order.
        let count = 30_000i32;
        let mut code = Vec::new();
        for at in 0..count {
            let to = match at {
                0 => count - 1,
                1 => count,
                _ => at - 1,
            };
            code.extend(jump(2 * (to - at)));
        }
        code.extend(END);
        let shader = Shader::decode(&code).unwrap();
        assert!(shader.clauses.len() > count as usize);
        let flow = Flow::of(&shader);
        assert!(flow.initial != 0 && !flow.dynamic, "{flow:?}");
    }

    #[test]
    fn storage_is_known_word_by_word_up_to_a_limit() {
        let mut taint = Taint {
            registers: 1,
            ..Taint::default()
        };
        for word in 0..MAX_WORDS as u32 {
            taint.store(Some(word), 0, 1, true);
        }
        assert_eq!(taint.stack.len(), MAX_WORDS);
        assert_eq!(taint.load(Some(MAX_WORDS as u32), 0, 1), 0);
        taint.store(Some(MAX_WORDS as u32), 0, 1, true);
        assert!(taint.all_stack && taint.stack.is_empty());
        assert_eq!(taint.load(Some(7777), 0, 1), 1);
    }
}
