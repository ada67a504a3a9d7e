// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Valhall's code says.

use std::ops::Range;

use mali_isa::valhall::{
    CONSERVATIVE, Code, Instruction, OFFSET, Op, Operand, Shader, Unit, WORD_BYTES,
};
use mali_jobs::walk::Words;

use super::{Flow, Taint, live, spread};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Load,
    Store,
    /// Loads what no job changes: a uniform buffer.
    Constant,
    Atomic,
    Barrier,
    /// Textures, attributes, buffers whose addresses are asked for.
    Other,
}

fn message(word: Instruction) -> Option<Message> {
    let row = word.row();
    let starts = |name| row.name.starts_with(name);
    row.is_message().then(|| match row.unit {
        Unit::Memory if starts("LOAD.") => Message::Load,
        Unit::Memory if starts("STORE.") => Message::Store,
        Unit::Memory if starts("LD_BUFFER.") => Message::Constant,
        Unit::Memory if starts("ATOM") => Message::Atomic,
        _ if word.op() == Op::Barrier => Message::Barrier,
        _ => Message::Other,
    })
}

fn special(source: Operand) -> Option<&'static str> {
    match source.code {
        Code::Special(special) => special.name(),
        _ => None,
    }
}

/// Straight from that pointer: code says the offset then.
fn reaches(word: Instruction, pointer: &str) -> bool {
    let straight = matches!(message(word), Some(Message::Load | Message::Store));
    straight
        && word
            .sources()
            .any(|source| special(source) == Some(pointer))
}

fn bits(first: u8, count: u8) -> u64 {
    (first..64)
        .take(count.into())
        .fold(0, |all, at| all | 1 << at)
}

fn of_source(source: Operand) -> u64 {
    let count = if source.kind.is_wide() { 2 } else { 1 };
    source.code.register().map_or(0, |first| bits(first, count))
}

fn staging(word: Instruction, written: bool) -> u64 {
    // A narrow load may be extended to a pair.
    let least = if written && goes_to(word, "d0") { 2 } else { 0 };
    let groups = word.staging().filter(|group| group.written == written);
    groups.fold(0, |all, group| {
        all | bits(group.first, group.count.max(least))
    })
}

/// `w0` is a register, `d0` a pair.
fn goes_to(word: Instruction, lane: &str) -> bool {
    let mut fields = word.row().modifiers.iter();
    fields.any(|field| field.name_in(word.word()) == Some(lane))
}

fn results(word: Instruction) -> (u64, bool) {
    let name = word.row().name;
    let Some(to) = word.destination() else {
        let narrow = [".i8", ".i16", ".i24", ".i48"]
            .iter()
            .any(|end| name.ends_with(end));
        let whole = !narrow || goes_to(word, "w0") || goes_to(word, "d0");
        return (staging(word, true), whole);
    };
    let count = if name.ends_with("64") { 2 } else { 1 };
    (bits(to.register, count), to.low && to.high)
}

fn uses(word: Instruction) -> (u64, u64) {
    let sources = word
        .sources()
        .fold(0, |all, source| all | of_source(source));
    let (results, whole) = results(word);
    (
        sources | staging(word, false),
        if whole { results } else { 0 },
    )
}

fn blocks(code: &[Instruction]) -> (Vec<Range<usize>>, Vec<Vec<usize>>) {
    let target = |at: usize| {
        let distance = code.get(at)?.branch()?;
        usize::try_from(i64::try_from(at).ok()?.checked_add(distance)?).ok()
    };
    let mut starts = vec![0];
    for (at, word) in code.iter().enumerate() {
        starts.extend(target(at));
        if word.branch().is_some() || word.leaves() {
            starts.push(at + 1);
        }
    }
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|start| *start < code.len());
    let ends = starts.iter().skip(1).copied().chain([code.len()]);
    let blocks: Vec<Range<usize>> = starts.iter().zip(ends).map(|(at, end)| *at..end).collect();
    let next = blocks.iter().map(|block| {
        let last = block.end.saturating_sub(1);
        let goes_on = code.get(last).is_some_and(|word| !word.leaves());
        let after = goes_on.then_some(block.end);
        let next = target(last).into_iter().chain(after);
        next.filter_map(|at| starts.binary_search(&at).ok())
            .collect()
    });
    let next = next.collect();
    (blocks, next)
}

impl Flow {
    /// Looks at all words of a Valhall shader.
    pub fn of_words(words: &Words) -> Self {
        let mut flow = Self {
            named: words.registers,
            ..Self::default()
        };
        let Ok(shader) = Shader::decode(&words.bytes) else {
            flow.dynamic = true;
            return flow;
        };
        flow.dynamic = shader.is_dynamic();
        let code: Vec<Instruction> = shader.instructions().collect();
        // Computing with the pointer to thread storage hides which words are reached.
        let mut computed = false;
        for word in &code {
            flow.look_at(*word);
            let pointer = |source| special(source) == Some("thread_local_pointer");
            computed |= word.sources().any(pointer) && !reaches(*word, "thread_local_pointer");
        }
        let (blocks, next) = blocks(&code);
        let all = |block: &Range<usize>| code.get(block.clone()).unwrap_or_default();
        let sums = blocks.iter().map(|block| {
            all(block).iter().fold((0, 0), |(read, written), word| {
                let (reads, writes) = uses(*word);
                (read | reads & !written, written | writes)
            })
        });
        flow.initial = live(&sums.collect::<Vec<_>>(), &next);
        let first = Taint {
            all_stack: computed,
            ..Taint::default()
        };
        spread(&next, first, |at, mut now| {
            let Some(block) = blocks.get(at) else {
                return now;
            };
            for (word, at) in all(block).iter().zip(block.clone()) {
                flow.step(*word, at, &mut now);
            }
            now
        });
        flow
    }

    fn look_at(&mut self, word: Instruction) {
        for source in word.sources() {
            if let Code::Uniform(index) = source.code {
                let last = index.saturating_add(source.kind.is_wide().into());
                self.uniform_slots = self.uniform_slots.max(u32::from(last) / 2 + 1);
            }
            match special(source) {
                Some("warp_id" | "lane_id" | "core_id") => self.sees_warp = true,
                Some("thread_local_pointer") => self.thread_storage = true,
                Some("workgroup_local_pointer") => self.group_storage = true,
                _ => {}
            }
        }
        let name = word.row().name;
        self.sees_warp |= name.starts_with("CLPER") || name.starts_with("WMASK");
        // What conservative branches ask of the warp is unknown.
        self.sees_warp |= word.value(&CONSERVATIVE) == Some(1);
        match message(word) {
            Some(Message::Barrier) => self.barrier = true,
            Some(Message::Atomic) => self.atomics = true,
            Some(Message::Other) => (self.textures, self.tables) = (true, true),
            Some(Message::Constant) => self.tables = true,
            Some(Message::Load | Message::Store) | None => {}
        }
    }

    fn step(&mut self, word: Instruction, at: usize, now: &mut Taint) {
        let offset = u32::try_from(at * WORD_BYTES).unwrap_or(u32::MAX);
        let sources = word
            .sources()
            .fold(0, |all, source| all | of_source(source));
        let mut carries = sources & now.registers != 0;
        if matches!(word.op(), Op::Branchz | Op::Branchzi) && carries {
            self.branch_from_memory.get_or_insert(offset);
        }
        let (results, whole) = results(word);
        let mut loaded = 0;
        if let Some(message) = message(word) {
            if carries {
                self.address_from_memory.get_or_insert(offset);
            }
            let in_storage = reaches(word, "thread_local_pointer");
            let place = word.value(&OFFSET).and_then(|it| u32::try_from(it).ok());
            let place = place.filter(|it| it.is_multiple_of(4)).map(|it| it / 4);
            let first = word.staging().next().map_or(0, |group| group.first);
            loaded = match message {
                Message::Load if in_storage => now.load(place, first, results),
                Message::Constant => 0,
                _ => results,
            };
            if message == Message::Store && in_storage {
                now.store(place, first, staging(word, false), whole);
            }
            carries = false;
        }
        let tainted = if carries { results } else { loaded };
        if whole {
            now.registers &= !results;
        }
        now.registers |= tainted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: &[u8]) -> Flow {
        Flow::of_words(&crate::words::decoded(bytes).unwrap())
    }

    fn of(lines: &[&str]) -> Flow {
        let words = lines.iter().flat_map(|line| {
            let word = mali_isa::valhall::assemble(line);
            word.unwrap_or_else(|error| panic!("{line}: {error}"))
                .to_le_bytes()
        });
        flow(&words.collect::<Vec<_>>())
    }

    #[test]
    fn compiled_code_is_followed() {
        let file = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mali/isa/tests/golden");
            flow(&std::fs::read(format!("{folder}/{name}.bin")).unwrap())
        };
        // The loop is as long as a loaded value says; ids of the thread in its group (r55) and of the group (r57).
        let found = file("loop_with_exits");
        assert_eq!(found.initial, 1 << 55 | 1 << 57);
        assert_eq!(found.branch_from_memory, Some(22 * 8));
        assert!(!found.dynamic && !found.sees_warp && !found.barrier && !found.textures);
        let found = file("scale_add");
        assert_eq!(
            (found.address_from_memory, found.branch_from_memory),
            (None, None)
        );
    }

    #[test]
    fn what_is_loaded_is_followed_to_addresses_and_branches() {
        let load = "LOAD.i32.unsigned.slot0.wait0 @r2, r0, offset:0";
        let store = "STORE.i32.slot0.end @r2, r4, offset:0";
        assert_eq!(of(&[load, store]).address_from_memory, None);
        let through = |line| of(&[load, line, store]).address_from_memory;
        assert_eq!(through("MOV.i32 r5, r2"), Some(16));
        assert_eq!(through("MOV.i32 r5, r3"), None);
        // 64-bit results are pairs; half a result leaves the other half.
        assert_eq!(through("IADD.u64 r4, r2, r8"), Some(16));
        assert_eq!(
            of(&[load, "IADD.u64 r2, r8, r8", "MOV.i32 r5, r2", store]).address_from_memory,
            None
        );
        let taken = of(&[load, "BRANCHZ.eq.reconverge r2.h0, offset:0", store]);
        assert_eq!(taken.branch_from_memory, Some(8));
    }

    #[test]
    fn storage_of_a_thread_holds_what_was_put_there() {
        let at = |verb: &str, offset| {
            let kind = if verb == "LOAD" { ".unsigned" } else { "" };
            format!("{verb}.i32{kind}.slot0.wait0 @r2, thread_local_pointer.w0, offset:{offset}")
        };
        let load = "LOAD.i32.unsigned.slot0.wait0 @r2, r0, offset:0";
        let end = "STORE.i32.slot0.end @r3, r4, offset:0";
        let (clean, put, get) = ("MOV.i32 r2, r6", at("STORE", 8), at("LOAD", 8));
        let found = |lines: &[&str]| of(lines).address_from_memory;
        let to = "MOV.i32 r5, r2";
        assert_eq!(found(&[load, &put, clean, &get, to, end]), Some(40));
        assert_eq!(found(&[load, &put, clean, &at("LOAD", 12), to, end]), None);
        assert_eq!(found(&[load, &put, clean, &put, &get, to, end]), None);
        let computed = "MOV.i32 r7, thread_local_pointer.w0";
        assert_eq!(found(&[computed, clean, &put, &get, to, end]), Some(40));
        assert!(of(&[&get, end]).thread_storage);
    }

    #[test]
    fn ids_uniforms_and_other_lanes_are_seen() {
        let end = "STORE.i32.slot0.end @r3, r4, offset:0";
        let first = of(&["MOV.i32 r9, r58", "MOV.i32 r3, u7", end]);
        assert_eq!(first.initial, 1 << 58 | 3 << 4);
        assert_eq!(first.uniform_slots, 4);
        assert!(of(&["MOV.i32 r9, lane_id.w0", end]).sees_warp);
        assert!(of(&["BARRIER.slot7.wait", end]).barrier);
    }
}
