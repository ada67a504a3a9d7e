// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs may differ only by input.

use gpureplay_compile::notes::{Choices, propose_unnoted};
use gpureplay_compile::{Role, differential};
use gpureplay_tensors::Stated;

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

    let error = compare(&first, &second, &["out"]).unwrap_err().to_string();
    assert!(
        error.contains("before job 0") && error.contains("0x3000000"),
        "{error}"
    );

    let third = App::default().record(&a2, &tags(6));
    let error = compare(&first, &third, &["a"]).unwrap_err().to_string();
    assert!(error.contains("0x3100000"), "{error}");
}

fn stated(stated: Stated) -> Choices {
    Choices {
        stated,
        ..Choices::default()
    }
}

#[test]
fn without_notes_differences_are_tensors() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let read = Run::capture;
    let (one, two) = (
        App::default().record(&a, &b),
        App::default().record(&a2, &b),
    );
    let (first, second) = (read(&one), read(&two));
    let choices = stated(Stated {
        rename: [("input".to_owned(), "a".to_owned())].into(),
        forms: [("a".to_owned(), "f32[32,32]".parse().unwrap())].into(),
    });
    let found = propose_unnoted(&first, &second, &choices).unwrap();
    let places = found.tensors.iter().map(|t| {
        let address = t.layout.address_range().map(|(low, _)| low);
        (t.role, t.name.as_str(), address, t.tensor.shape().to_vec())
    });
    assert_eq!(
        places.collect::<Vec<_>>(),
        [
            (Role::Input, "a", Some(A), vec![32, 32]),
            (Role::Output, "output", Some(OUT), vec![COUNT as u64]),
        ]
    );
    assert_eq!(found.tensors[0].tensor.bytes(), a.bytes());
    assert_eq!(found.tensors[1].tensor.bytes(), one.out.bytes());
    differential::compare(&first, &found.tensors, &second, &found.second, &[]).unwrap();

    let same = propose_unnoted(&first, &first, &Choices::default()).unwrap();
    assert!(same.tensors.is_empty());
    assert!(same.remarks.iter().any(|text| text.starts_with("no input")));
    let longer = App::default().record_with(&a2, &b, |app| app.submit(POOL));
    let error = propose_unnoted(&first, &read(&longer), &Choices::default()).unwrap_err();
    assert!(error.to_string().contains("3 and 4 jobs"), "{error}");
    let large = stated(Stated {
        forms: [("input".to_owned(), "f32[4096]".parse().unwrap())].into(),
        ..Stated::default()
    });
    let error = propose_unnoted(&first, &second, &large).unwrap_err();
    assert!(error.to_string().contains("4096 bytes"), "{error}");
}

#[test]
fn what_threads_leave_in_their_storage_is_no_output() {
    for (storage, outputs) in [(0, 1), (OUT, 0)] {
        let app = App {
            storage,
            ..App::default()
        };
        let record = |seed| app.record(&tags(seed), &tags(2)).capture();
        let found = propose_unnoted(&record(1), &record(5), &Choices::default()).unwrap();
        let count = |role| found.tensors.iter().filter(|it| it.role == role).count();
        assert_eq!((count(Role::Input), count(Role::Output)), (1, outputs));
    }
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

    // The app fills it before the first job; only the second job names it.
    const ELSEWHERE: u64 = 0x338_0000;
    let total_elsewhere = App {
        total: ELSEWHERE,
        ..App::default()
    };
    let third = total_elsewhere.record(&a2, &b);
    compare(&first, &third, BOUND).unwrap();

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
    // A new mapping; the first run's buffer still holds earlier GPU results.
    compare(&|app| app.renew(SUM, 1)).unwrap();
    // App writes count, into new memory or not.
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
    let longer = App::default().record_with(&a2, &b, |app| app.submit(POOL));
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
