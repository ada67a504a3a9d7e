// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans against the kernel's allocator.

use super::*;

/// `drm_mm` mode "best" with panfrost's rule for code. In pages.
struct Kernel {
    holes: Vec<(u64, u64)>,
}

impl Kernel {
    fn new() -> Self {
        Self {
            holes: vec![(FIRST / PAGE, END / PAGE)],
        }
    }

    /// `panfrost_drm_mm_color_adjust`: a hole's part for code.
    fn for_code((mut from, mut to): (u64, u64)) -> (u64, u64) {
        let (four_gigabytes, part) = (END / PAGE, SEGMENT / PAGE);
        from += u64::from(from.is_multiple_of(four_gigabytes));
        to -= u64::from(to.is_multiple_of(four_gigabytes));
        let next = from.next_multiple_of(four_gigabytes);
        if next - from <= part {
            from = next + 1;
        }
        (
            from,
            to.min(from.next_multiple_of(four_gigabytes).saturating_sub(1)),
        )
    }

    /// `panfrost_gem_open` and `drm_mm_insert_node_generic`.
    fn create(&mut self, bytes: u64, flags: u32) -> Option<u64> {
        let pages = match flags & HEAP {
            0 => bytes.div_ceil(PAGE),
            _ => bytes.next_multiple_of(BIG) / PAGE,
        };
        let alignment = match flags & NO_EXECUTE {
            0 => pages,
            _ if pages >= BIG / PAGE => BIG / PAGE,
            _ => 1,
        };
        let mut holes = self.holes.clone();
        holes.sort_by_key(|(from, to)| to - from);
        for hole in holes {
            let (from, to) = match flags & NO_EXECUTE {
                0 => Self::for_code(hole),
                _ => hole,
            };
            let at = from.next_multiple_of(alignment);
            if at + pages > to {
                continue;
            }
            self.holes.retain(|other| *other != hole);
            let rest = [(hole.0, at), (at + pages, hole.1)];
            self.holes
                .extend(rest.iter().filter(|(from, to)| from < to));
            self.holes.sort_unstable();
            return Some(at * PAGE);
        }
        None
    }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn ranges(numbers: &mut Numbers) -> Vec<Range> {
    let mut at = FIRST / PAGE;
    let mut ranges = Vec::new();
    for _ in 0..=numbers.below(24) {
        at += match numbers.below(4) {
            0 => 0,
            1 => numbers.below(8),
            2 => numbers.below(2000),
            _ => numbers.below(60_000),
        };
        let pages = 1 + match numbers.below(4) {
            0 => numbers.below(4000),
            1 => numbers.below(600),
            _ => numbers.below(20),
        };
        if (at + pages) * PAGE > END_OF_CODE {
            break;
        }
        ranges.push(Range {
            va: at * PAGE,
            bytes: pages * PAGE,
            executable: numbers.below(3) == 0,
        });
        at += pages;
    }
    ranges
}

#[test]
fn every_object_is_where_the_plan_says() {
    let (mut objects, mut planned) = (0, 0);
    for seed in 0..2000 {
        let ranges = ranges(&mut Numbers(seed));
        let Ok(steps) = plan(&ranges) else {
            continue;
        };
        planned += 1;
        let mut kernel = Kernel::new();
        for step in &steps {
            assert_eq!(
                kernel.create(step.bytes, step.flags),
                Some(step.va),
                "{seed} {step:x?}"
            );
            assert_eq!(
                step.bytes % PAGE + step.bytes / END,
                0,
                "the driver's size has 32 bits"
            );
        }
        objects += steps.len();
        for executable in [false, true] {
            let pages = |va: u64, bytes: u64| va / PAGE..(va + bytes) / PAGE;
            let wanted = ranges.iter().filter(|range| range.executable == executable);
            let wanted: Vec<u64> = wanted.flat_map(|it| pages(it.va, it.bytes)).collect();
            let made = steps
                .iter()
                .filter(|step| !step.filler && (step.flags & NO_EXECUTE == 0) == executable);
            let made: Vec<u64> = made.flat_map(|it| pages(it.va, it.bytes)).collect();
            assert_eq!(made, wanted, "{seed}");
        }
    }
    assert!(
        planned > 1900 && objects > 20_000,
        "{planned} plans, {objects} objects"
    );
}

#[test]
fn what_the_driver_has_no_address_for_is_refused() {
    let range = |va, bytes, executable| Range {
        va,
        bytes,
        executable,
    };
    let out_of_range = |va| Misfit::OutOfRange {
        va,
        first: FIRST,
        end: END,
    };
    let planned = |range| plan(&[range]).map(|steps| steps.len());
    let below = FIRST - PAGE;
    assert_eq!(planned(range(below, PAGE, false)), Err(out_of_range(below)));
    assert_eq!(planned(range(END, PAGE, false)), Err(out_of_range(END)));
    let last = END - PAGE;
    assert_eq!(
        planned(range(last, 2 * PAGE, false)),
        Err(out_of_range(last))
    );
    assert_eq!(
        planned(range(last, PAGE, true)),
        Err(Misfit::HighCode {
            va: last,
            end: END_OF_CODE
        })
    );
    assert_eq!(planned(range(FIRST, PAGE, false)), Ok(1));
    let mut kernel = Kernel::new();
    for step in plan(&[range(last, PAGE, false)]).unwrap() {
        assert_eq!(kernel.create(step.bytes, step.flags), Some(step.va));
    }
    let alternating: Vec<Range> = (0..5000)
        .map(|page| range(FIRST + page * PAGE, PAGE, page % 2 == 0))
        .collect();
    assert_eq!(
        plan(&alternating),
        Err(Misfit::TooManyObjects(MOST_OBJECTS))
    );
}

#[test]
fn code_that_the_kernel_keeps_from_the_end_is_refused_and_no_other() {
    // The kernel would put code at the end elsewhere.
    let mut kernel = Kernel::new();
    for step in plan(&[Range {
        va: END_OF_CODE,
        bytes: PAGE,
        executable: false,
    }])
    .unwrap()
    .iter()
    .filter(|step| step.filler)
    {
        assert_eq!(kernel.create(step.bytes, step.flags), Some(step.va));
    }
    assert_eq!(kernel.create(PAGE, 0), None);
    let code = Range {
        va: END_OF_CODE - PAGE,
        bytes: PAGE,
        executable: true,
    };
    let mut kernel = Kernel::new();
    for step in plan(&[code]).unwrap() {
        assert_eq!(kernel.create(step.bytes, step.flags), Some(step.va));
    }
}
