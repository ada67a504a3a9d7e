// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two recorded runs must differ in what depends on the input, and in nothing else.

use crate::app::*;
use crate::driver::Driver;

const BOUND: &[&str] = &["a", "out"];

#[test]
fn they_differ_in_their_inputs_only() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let (first, second) = (
        App::default().record(&a, &b),
        App::default().record(&a2, &b),
    );
    let agreement = compare(&first, &second, BOUND).unwrap();
    assert_eq!(agreement.tensors, 2);
    assert!(agreement.explained_bytes > 3000 && agreement.same_bytes > 4096);

    // Without the input bound, its bytes are not explained.
    let error = compare(&first, &second, &["out"]).unwrap_err().to_string();
    assert!(
        error.contains("before job 0") && error.contains("0x3000000"),
        "{error}"
    );

    // A weight that changed with the input is not explained either.
    let third = App::default().record(&a2, &tags(6));
    let error = compare(&first, &third, &["a"]).unwrap_err().to_string();
    assert!(error.contains("0x3100000"), "{error}");
}

#[test]
fn buffers_may_lie_elsewhere_in_the_second_run() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let first = App::default().record(&a, &b);
    let sum_elsewhere = App {
        sum: 0x328_0000,
        ..App::default()
    };
    let second = sum_elsewhere.record(&a2, &b);
    let agreement = compare(&first, &second, BOUND).unwrap();
    assert_eq!(agreement.renamed_addresses, 2);

    // The app fills this one before the first job, and the second job is the first to name it.
    const ELSEWHERE: u64 = 0x338_0000;
    let total_elsewhere = App {
        total: ELSEWHERE,
        ..App::default()
    };
    let third = total_elsewhere.record(&a2, &b);
    compare(&first, &third, BOUND).unwrap();

    // Other values in it are a difference.
    let other = total_elsewhere.record_with(&a2, &b, |app| app.store(ELSEWHERE + 8, &[1; 8]));
    let error = compare(&first, &other, BOUND).unwrap_err().to_string();
    assert!(error.contains("differ in 8 bytes"), "{error}");
}

#[test]
fn a_place_that_depends_on_the_input_is_refused() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    // Both runs have both places, and write the same into one of them.
    let run = |a, place| App::default().record_with(a, &b, |app| app.store(place, &[7; 8]));
    let (first, second) = (run(&a, POOL + 0x1000), run(&a2, POOL + 0x2000));
    let error = compare(&first, &second, BOUND).unwrap_err().to_string();
    assert!(error.contains("differ in 16 bytes"), "{error}");
}

#[test]
fn new_memory_and_memory_that_is_used_again_are_alike() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let first = App::default().record(&a, &b);
    let compare = |between: &dyn Fn(&mut Driver)| {
        let second = App::default().record_with(&a2, &b, between);
        compare(&first, &second, BOUND).map_err(|error| error.to_string())
    };
    // The second run's buffer was mapped anew; the first one's still holds what the GPU wrote before.
    compare(&|app| app.renew(SUM, 1)).unwrap();
    // An app that writes something is another matter, into new memory or not.
    let error = compare(&|app| app.store(SUM, &[0; 4096])).unwrap_err();
    assert!(error.contains("before job 2"), "{error}");
    let error = compare(&|app| {
        app.renew(SUM, 1);
        app.store(SUM + 8, &[1; 8]);
    });
    let error = error.unwrap_err();
    assert!(
        error.contains("differ in 8 bytes") && error.contains("0x3200008"),
        "{error}"
    );
}

#[test]
fn work_that_depends_on_the_input_is_refused() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let first = App::default().record(&a, &b);
    // Another number of jobs.
    let longer = App::default().record_with(&a2, &b, |app| app.submit(POOL));
    // The same jobs, but one has less to do: its shape is a value that the app computed from the input.
    let smaller = App {
        items: COUNT / 2,
        ..App::default()
    };
    for (second, difference) in [
        (longer, "3 and 4 jobs"),
        (
            smaller.record(&a2, &b),
            "job 1 computes 1024 x 1 x 1 and 512 x 1 x 1 work-items",
        ),
    ] {
        let error = compare(&first, &second, BOUND).unwrap_err().to_string();
        assert!(error.contains(difference), "{error}");
        assert!(error.contains("depends on its input's values"), "{error}");
    }
}
