// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sequencer and walk compute and refuse.

use mali_isa::valhall::streams::{CALLS, Effect, Fault, Op, Sequencer, WalkError};

use crate::streams::walked;

fn run(words: &[u64]) -> (Sequencer, Option<Fault>) {
    let mut queue = Sequencer::new();
    let started = queue.start(0, 8 * words.len() as u32);
    let fault = started.err().or_else(|| continued(&mut queue, words));
    (queue, fault)
}

fn continued(queue: &mut Sequencer, words: &[u64]) -> Option<Fault> {
    for _ in 0..1000 {
        let at = queue.address()?;
        if let Err(fault) = queue.step(words[at as usize / 8]) {
            return Some(fault);
        }
    }
    panic!("no end");
}

#[test]
fn registers_compute() {
    let (queue, fault) = run(&[
        0x0110_ffff_ffff_ffff, // d16 = 48 ones
        0x1112_1000_0000_0001, // d18 = d16 + 1
        0x1114_1200_ffff_fffe, // d20 = d18 - 2
        0x0216_0000_8000_0000, // r22
        0x1017_1600_ffff_ffff, // r23 = r22 - 1
        0x1218_1716_0000_0000, // r24 = min(r22, r23)
    ]);
    assert_eq!(fault, None);
    assert_eq!(queue.pair(16), Ok(0xffff_ffff_ffff));
    assert_eq!(queue.pair(18), Ok(1 << 48));
    assert_eq!(queue.pair(20), Ok(0xffff_ffff_fffe));
    assert_eq!(queue.get(23), Ok(0x7fff_ffff));
    assert_eq!(queue.get(24), Ok(0x7fff_ffff));
    assert_eq!(queue.pair(17), Err(Fault::Register(17)));
    assert_eq!(queue.get(96), Err(Fault::Register(96)));
}

#[test]
fn branches_compare_with_zero() {
    // `r2 = 1` is skipped if the condition holds.
    let taken = |condition: u64, value: u32| {
        let (queue, fault) = run(&[
            0x0201_0000_0000_0000 | u64::from(value),
            0x1600_0100_0000_0001 | condition << 28,
            0x0202_0000_0000_0001,
        ]);
        assert_eq!(fault, None);
        queue.get(2) == Ok(0)
    };
    let minus = -5i32 as u32;
    for (condition, expected) in [
        (0, [true, true, false]),
        (1, [false, false, true]),
        (2, [false, true, false]),
        (3, [true, false, true]),
        (4, [true, false, false]),
        (5, [false, true, true]),
        (6, [true, true, true]),
    ] {
        let found = [minus, 0, 5].map(|value| taken(condition, value));
        assert_eq!(found, expected, "{condition}");
    }
    let (queue, fault) = run(&[
        0x0201_0000_0000_0003,
        0x1002_0200_0000_0002,
        0x1001_0100_ffff_ffff,
        0x1600_0100_1000_fffd,
    ]);
    assert_eq!((queue.get(2), fault), (Ok(6), None));
    let (_, fault) = run(&[0x1600_0000_6000_0001]);
    assert_eq!(fault, Some(Fault::Branch(16)));
    let (_, fault) = run(&[0x1600_0000_6000_fffe]);
    assert_eq!(fault, Some(Fault::Branch(u64::MAX - 7)));
}

#[test]
fn calls_come_back_and_jumps_do_not() {
    // 0: d2 = 40, r4 = 16, CALL, r5 = 1, end. 40: r6 = 1, d2 = 64; 56: nothing.
    let words = [
        0x0102_0000_0000_0028,
        0x0204_0000_0000_0010,
        0x2000_0204_0000_0000,
        0x0205_0000_0000_0001,
        0,
        0x0206_0000_0000_0001,
        0,
        0x0207_0000_0000_0001,
    ];
    let of = |words: &[u64]| {
        let mut queue = Sequencer::new();
        queue.start(0, 40).unwrap();
        let fault = continued(&mut queue, words);
        (
            fault,
            [5, 6, 7].map(|register| queue.get(register).unwrap()),
        )
    };
    assert_eq!(of(&words), (None, [1, 1, 0]));
    let mut jumps = words;
    jumps[2] = 0x2100_0204_0000_0000;
    assert_eq!(of(&jumps), (None, [0, 1, 0]));
    let mut depth = 0;
    let mut queue = Sequencer::new();
    queue.start(0, 24).unwrap();
    let own = [0x0102_0000_0000_0000, 0x0204_0000_0000_0018, words[2]];
    let fault = loop {
        let at = queue.address().unwrap();
        match queue.step(own[at as usize / 8]) {
            Ok(_) => depth += usize::from(at == 16),
            Err(fault) => break fault,
        }
    };
    assert_eq!((fault, depth), (Fault::CallDepth, CALLS));
    for (address, bytes) in [(4, 8), (8, 4), (u64::MAX - 7, 8)] {
        let started = queue.start(address, bytes);
        assert!(matches!(started, Err(Fault::Alignment(_))), "{address:#x}");
    }
}

#[test]
fn loads_are_waited_for() {
    // LOAD_MULTIPLE r40..r42, on scoreboard 3; then r40 is read.
    let load = 0x1428_0200_0003_0008;
    let read = 0x1001_2800_0000_0000;
    let mut queue = Sequencer::new();
    queue.start(0, 0x100).unwrap();
    queue.step(0x1700_0000_0000_0030).unwrap();
    queue.step(0x0102_0000_0000_1000).unwrap();
    let Ok(Effect::Load(transfer)) = queue.step(load) else {
        panic!("a load");
    };
    let words: Vec<_> = transfer.words().collect();
    assert_eq!(words, [(40, 0x1008), (41, 0x100c)]);
    queue.load(40, 7);
    let pending = Fault::Pending {
        register: 40,
        scoreboard: 3,
    };
    assert_eq!(queue.step(read), Err(pending));
    queue.step(0x0300_0000_0007_0000).unwrap();
    assert_eq!(queue.step(read), Err(pending));
    queue.step(0x0300_0000_0008_0000).unwrap();
    assert_eq!(queue.step(read), Ok(Effect::None));
    assert_eq!(queue.get(1), Ok(7));
}

#[test]
fn what_cannot_run_is_a_fault_by_name() {
    let fault = |word: u64| run(&[word]).1.unwrap();
    assert_eq!(fault(0xff << 56), Fault::Unknown(0xff << 56));
    assert_eq!(
        fault(0x0200_0100_0000_0000).to_string(),
        "MOVE32 has bits without a meaning: 0x10000000000"
    );
    assert_eq!(fault(0x0160_0000_0000_0000), Fault::Register(96));
    assert_eq!(fault(0x0161_0000_0000_0000), Fault::Register(97));
    assert_eq!(fault(0x0101_0000_0000_0000), Fault::Register(1));
    assert_eq!(fault(0x1700_0000_0000_0080), Fault::Scoreboard(8));
    assert_eq!(
        fault(0x0400_0000_0000_c001).to_string(),
        "RUN_COMPUTE has a reserved value in Task axis"
    );
    assert_eq!(fault(0x145f_0200_0003_0000), Fault::Register(96));
    assert_eq!(fault(0x14ff_0200_0000_0000), Fault::Register(255));
    for op in [
        Op::RunFragment,
        Op::RunIdvs,
        Op::TracePoint,
        Op::ProgressLoad,
    ] {
        let word = u64::from(op.row().opcode) << 56;
        assert_eq!(fault(word), Fault::Absent(op));
        let name = fault(word).to_string();
        assert!(name.starts_with(op.row().name), "{name}");
        assert_eq!(name.contains("is part of a draw"), op.draws(), "{name}");
    }
}

#[test]
fn walks_refuse_what_memory_decides() {
    let dynamic = |op: Op| Err::<(), _>(WalkError::Dynamic { at: 8, op });
    let pair = 0x0102_0000_0000_0000; // d2 = 0
    for (word, op) in [
        (0x1404_0200_0001_0000, Op::LoadMultiple),
        (0x1502_0200_0001_0000, Op::StoreMultiple),
        (0x3300_0202_0000_0000, Op::SyncAdd64),
        (0x3500_0202_0000_0000, Op::SyncWait64),
        (0x2800_0200_0000_0000, Op::StoreState),
    ] {
        assert_eq!(walked(&[pair, word], 16).1, dynamic(op));
    }
    let [time, load] =
        [Op::StoreState, Op::LoadMultiple].map(|op| dynamic(op).unwrap_err().to_string());
    assert!(time.contains("STORE_STATE stores a time"), "{time}");
    assert!(load.ends_with("depends on memory"), "{load}");
    let fault = Fault::Undefined(2);
    let (_, end) = walked(&[0x1004_0200_0000_0000], 8);
    assert_eq!(end, Err(WalkError::Fault { at: 0, fault }));
    assert_eq!(walked(&[0], 16).1, Err(WalkError::Unreadable(8)));
    let (_, end) = walked(&[0x1600_0000_6000_ffff], 8);
    assert_eq!(end, Err(WalkError::TooLong(100)));
}

#[test]
fn random_streams_never_panic() {
    let mut source = fastrand::Rng::with_seed(0x10);
    let mut walks = 0;
    for _ in 0..20_000 {
        let words: Vec<u64> = (0..source.usize(1..12))
            .map(|_| {
                let op = Op::ALL[source.usize(..Op::ALL.len())].row();
                let small = source.u64(..) & 0x0707_0707_ffff_ffff;
                (u64::from(op.opcode) << 56 | small) & op.explained()
            })
            .collect();
        let (found, end) = walked(&words, 8 * words.len() as u32);
        let mut queue = Sequencer::new();
        queue.start(0, 8 * words.len() as u32).unwrap();
        let (mut dispatches, mut fault) = (0, None);
        for _ in 0..100 {
            let word = |at: u64| words.get(at as usize / 8).copied();
            let Some(word) = queue.address().and_then(word) else {
                break;
            };
            match queue.step(word) {
                Ok(Effect::Compute(_)) => dispatches += 1,
                Ok(Effect::Load(transfer)) => {
                    for (register, at) in transfer.words() {
                        queue.load(register, at as u32);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            }
        }
        if end.is_ok() {
            assert_eq!((dispatches, fault), (found.len(), None));
            walks += 1;
        }
    }
    assert!(walks > 100, "{walks}");
}
