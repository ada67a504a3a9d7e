// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement against kbase's search.

use super::*;

const LIMIT: u64 = 1 << 48;
const MIB: u64 = 1 << 20;

fn range(va: u64, bytes: u64, access: Access) -> Range {
    Range { va, bytes, access }
}

fn data(va: u64, bytes: u64) -> Range {
    range(va, bytes, Access::READ_WRITE)
}

fn code(va: u64, bytes: u64) -> Range {
    range(va, bytes, Access::READ_EXECUTE)
}

fn gaps(between: &[(u64, u64)]) -> Gaps {
    Gaps::of(between)
}

fn placed(step: &Step) -> Option<u64> {
    let (start, end) = step.room();
    let align = match step.executable() {
        true => CODE_ALIGNMENT,
        false if step.bytes() >= 2 * MIB => 2 * MIB,
        false => PAGE,
    };
    // `kbase_unmapped_area_topdown` takes a gap's upper end, and searches for the worst alignment.
    let long = step.bytes() + if align > PAGE { align - 1 } else { 0 };
    if end - start < long {
        return None;
    }
    let at = (end - step.bytes()) & !(align - 1);
    let edge = |at: u64| at.is_multiple_of(4 << 30);
    (at >= start && !(step.executable() && (edge(at) || edge(at + step.bytes())))).then_some(at)
}

/// Code and data alternate by page, as in panfrost's recordings.
fn mixed(start: u64) -> Vec<Range> {
    (0..8)
        .flat_map(|at| {
            let va = start + at * 2 * PAGE;
            [data(va, PAGE), code(va + PAGE, PAGE)]
        })
        .chain([data(start + 16 * PAGE, 5 * MIB + PAGE)])
        .collect()
}

fn moved(ranges: &[Range], moves: &BTreeMap<u64, u64>) -> Vec<Range> {
    let mut ranges = ranges.to_vec();
    for range in ranges.iter_mut().filter(|range| range.executable()) {
        let window = range.va & !(CODE_ALIGNMENT - 1);
        range.va = moves.get(&window).copied().unwrap_or(window) + (range.va - window);
    }
    ranges.sort_by_key(|range| range.va);
    ranges
}

#[test]
fn the_driver_puts_every_region_where_it_has_to_be() {
    let all = gaps(&[(LOWEST, LIMIT)]);
    // At a 4 GiB edge, code moves further up.
    for start in [32 * MIB, 0xa00_0000, 0xfc00_0000, 0xfd00_0000, 1 << 40] {
        let before = mixed(start);
        assert!(matches!(plan(&before, LIMIT), Err(Misfit::Code(_))));
        let moves = moves(&before, LIMIT, &all).unwrap();
        let after = moved(&before, &moves);
        let steps = plan(&after, LIMIT).unwrap();
        assert_eq!(free(&steps, &all), Ok(()));
        for step in &steps {
            assert_eq!(placed(step), Some(step.va), "{step:x?} of {start:#x}");
        }
        for range in &after {
            let mut at = range.va;
            while at < range.end() {
                let holds = |step: &&Step| step.va <= at && at < step.end();
                let found: Vec<&Step> = steps.iter().filter(holds).collect();
                let [step] = found[..] else {
                    panic!("{at:#x}: {found:x?}");
                };
                assert_eq!(step.executable(), range.executable());
                let writes = step.flags & flags::GPU_WRITE != 0;
                assert_eq!(writes, range.access.contains(Access::WRITE));
                at += PAGE;
            }
        }
        assert_eq!(super::moves(&after, LIMIT, &all), Ok(BTreeMap::new()));
        let low = |ranges: &[Range]| {
            let code = ranges.iter().filter(|range| range.executable());
            let mut low: Vec<u64> = code.map(|it| it.va & (CODE_ALIGNMENT - 1)).collect();
            low.sort_unstable();
            low
        };
        assert_eq!(low(&before), low(&after));
    }
}

#[test]
fn windows_of_code_keep_apart_and_out_of_the_processes_own() {
    let ranges = [
        data(0x200_0000, PAGE),
        code(0x2ff_f000, 2 * PAGE),
        code(0x500_0000, PAGE),
    ];
    let library = (0x600_0000, 0x1234_5000);
    let free = gaps(&[(LOWEST, library.0), (library.1, 1 << 40)]);
    let found = moves(&ranges, LIMIT, &free).unwrap();
    assert_eq!(found.len(), 3);
    let targets: Vec<u64> = found.values().copied().collect();
    assert!(targets.iter().all(|it| it - CODE_ALIGNMENT >= library.1));
    assert!(
        targets
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= 2 * CODE_ALIGNMENT)
    );
    let small = gaps(&[(LOWEST, library.0)]);
    assert_eq!(moves(&ranges, LIMIT, &small), Err(Misfit::NoRoom));
    assert_eq!(moves(&ranges, 0x600_0000, &free), Err(Misfit::NoRoom));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let all = gaps(&[(LOWEST, LIMIT)]);
    for (va, limit) in [
        (0x1f_f000, LIMIT),
        (1 << 33, 1 << 33),
        ((1 << 33) - PAGE, (1 << 33) - 1),
    ] {
        let out_of_range = Misfit::OutOfRange {
            va,
            first: LOWEST,
            end: limit,
        };
        let refused = plan(&[data(va, PAGE)], limit);
        assert_eq!(refused, Err(out_of_range));
        assert_eq!(moves(&[data(va, PAGE)], limit, &all), Err(out_of_range));
    }
    let wide = [data(LOWEST, LARGEST * (MOST_REGIONS as u64 + 1))];
    assert_eq!(
        plan(&wide, LIMIT),
        Err(Misfit::TooManyObjects(MOST_REGIONS))
    );
    let steps = plan(&[data(0x40_0000, 2 * PAGE)], LIMIT).unwrap();
    let taken = free(&steps, &gaps(&[(LOWEST, 0x40_1000)]));
    assert_eq!(taken, Err(Misfit::Taken(0x40_0000, 0x40_2000)));
    assert!(taken.unwrap_err().to_string().contains("setarch -R"));
}
