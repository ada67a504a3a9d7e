// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording: ways to find the driver, what is picked and refused.

use crate::app::RESOLVE;
use crate::stage::{Stage, ended};

#[test]
fn every_way_to_find_the_driver_is_seen() {
    for resolve in ["proc", "dlsym", "linked"] {
        let stage = Stage::new();
        let mut command = stage.with_app("record -o rec --pick all", "scale");
        ended(command.env(RESOLVE, resolve))
            .gave(0)
            .says("answer 30");
        let list = stage.run("list rec");
        assert_eq!(list.out.lines().count(), 2, "{resolve}: {list:?}");
        assert!(
            list.out.lines().all(|line| line.ends_with("scale")),
            "{list:?}"
        );
    }
}

#[test]
fn launches_are_picked_by_name_and_number() {
    for (words, count) in [
        ("", 1),
        ("--pick all", 2),
        ("--pick 1", 1),
        ("--pick 2", 0),
        ("--pick all --max-per-kernel 1", 1),
        ("--pick all --kernel ^sc.*e$", 2),
        ("--pick all --kernel nothing", 0),
        ("--pick all --rank 3", 0),
    ] {
        let stage = Stage::new();
        let said = stage.record(words, "scale").gave(0);
        assert_eq!(
            stage.run("list rec").out.lines().count(),
            count,
            "{words}: {said:?}"
        );
    }
    let stage = Stage::new();
    stage.record("--pick 1", "scale");
    stage.run("info rec").says("after 1 others of this kernel");
    stage.record("--pick last", "scale").gave(2);
    stage.record("--kernel (", "scale").gave(2);
}

#[test]
fn only_reachable_memory_is_kept_unless_all_is_wanted() {
    let stage = Stage::new();
    stage.record("", "chase").gave(0);
    let info = stage.run("info rec#0").out;
    assert_eq!(info.matches("region ").count(), 6, "{info}");
    assert_eq!(info.matches(", changed").count(), 3, "{info}");
    stage.record("--all-memory", "chase").gave(0);
    assert_eq!(stage.run("info rec#1").out.matches("region ").count(), 7);
    stage
        .record("--max-bytes 100", "chase")
        .warns("chase is not recorded: it reaches more than 100 bytes");
}

#[test]
fn what_cannot_be_recorded_is_named_and_the_program_goes_on() {
    let stage = Stage::new();
    let alone = stage.alone("refused");
    let said = stage.record("", "refused").answers_as(&alone);
    for reason in [
        "scale is not recorded: it reaches managed memory",
        "idle is not recorded: it reads a texture object",
    ] {
        assert!(said.err.contains(reason), "{said:?}");
    }
    assert!(
        said.err.contains("2 launches, 0 of them in 0 graph launches, 1 into a capture, 0 recorded, 2 wanted but not recorded"),
        "{said:?}"
    );
}

#[test]
fn memory_of_others_is_named() {
    let stage = Stage::new();
    let alone = stage.alone("far");
    let said = stage.record("", "far").answers_as(&alone);
    for reason in [
        "idle is not recorded: it reaches memory of GPU 1",
        "accumulate is not recorded: it reaches a multicast object",
        "noise is not recorded: it reaches memory of another process",
        "heap is not recorded: its image has a reference to a texture",
    ] {
        assert!(said.err.contains(reason), "{reason}: {said:?}");
    }
}

#[test]
fn a_kernel_that_waits_for_the_host_is_named_and_the_program_goes_on() {
    let stage = Stage::new();
    let alone = stage.alone("patient").says("answer 7 6");
    stage
        .record("--timeout 1 --pick all", "patient")
        .answers_as(&alone)
        .warns("patient is not recorded: it does not end in 1 s: it may wait for the host");
    // The host wrote it before the next launch.
    let list = stage.run("list rec").out;
    assert!(
        list.trim_end().ends_with("scale") && list.lines().count() == 1,
        "{list}"
    );
    stage.run("run rec").gave(0);
}

#[test]
fn a_kernel_that_fails_is_not_recorded_and_fails_as_it_would_alone() {
    let stage = Stage::new();
    let (alone, said) = (stage.alone("fail"), stage.record("", "fail"));
    assert_eq!((alone.code, &alone.out), (Some(1), &said.out));
    assert_eq!(said.code, Some(1));
    assert!(
        said.err
            .contains("fail is not recorded: the kernel fails: CUDA_ERROR_LAUNCH_FAILED"),
        "{said:?}"
    );
    assert_eq!(stage.run("list rec").out, "");
}

#[test]
fn durations_count_every_launch() {
    let stage = Stage::new();
    stage
        .app("durations --csv --events", "scale")
        .says("\nscale,8x1x1,128x1x1,2,");
    let said = stage.app("durations --json --events", "scale");
    crate::schema_check::assert_fits("cuda-durations", said.out.lines().last().unwrap());
}

#[test]
fn a_program_without_cuda_is_told() {
    let stage = Stage::new();
    for words in ["", "--run"] {
        stage
            .run(&format!("record {words} -o rec -- /bin/true"))
            .gave(0)
            .warns("rec: nothing is recorded");
    }
    let said = stage.record("", "scale");
    assert!(!said.err.contains("nothing is recorded"), "{said:?}");
}

#[test]
fn a_texture_whose_handle_is_in_memory_is_refused_by_name() {
    let stage = Stage::new();
    let said = stage.record("--pick all", "textured").gave(0);
    let refused = "textured is not recorded: it reads a texture object by a handle in memory";
    assert_eq!(said.err.matches(refused).count(), 1, "{said:?}");
    let list = stage.run("list rec").out;
    assert_eq!(
        list.lines().count(),
        2,
        "without a texture, and without reading one: {list}"
    );
}
