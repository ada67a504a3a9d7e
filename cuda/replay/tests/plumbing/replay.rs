// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts, limits, collisions, other images, damage.

use crate::stage::{ended, recorded};

#[test]
fn a_replay_is_right_and_a_null_replay_is_not() {
    let stage = recorded("scale");
    for launch in ["rec#0", "rec#1"] {
        stage
            .run(&format!("run {launch} --runs 3"))
            .gave(0)
            .says("right, bit for bit")
            .says("3 runs, warm caches: median 1.00 us");
        stage
            .run(&format!("run {launch} --null"))
            .gave(1)
            .says("null replay differs in");
    }
    stage.run("verify rec").gave(0);
    stage.run("diff rec#0 rec#0").gave(0);
    stage
        .run("diff rec#0 rec#1")
        .gave(1)
        .says("parameter 1: 3fc00000, 40000000");
    stage.run("run rec").gave(2);
}

#[test]
fn memory_is_restored_before_each_timed_run() {
    let stage = recorded("once");
    for cache in ["warm", "cold"] {
        let said = stage
            .run(&format!("run rec --runs 4 --cache {cache}"))
            .gave(0);
        let times = format!("4 runs, {cache} caches: median 1.00 us");
        assert!(said.out.contains(&times), "{said:?}");
    }
    stage
        .run("run rec --runs 1 --cold")
        .says("1 runs, cold caches");
    let tuned = stage.run("tune rec --runs 3 --registers 0,32 --blocks 16;64");
    assert_eq!(tuned.out.matches(",exact,").count(), 5, "{tuned:?}");
}

#[test]
fn addresses_of_memory_that_was_not_recorded_are_named() {
    let said = recorded("stray").run("run rec").gave(5);
    let stray = "1 words look like addresses of memory that the recording does not hold, such as the heap of kernels; the first is 0x210000008, at 0x";
    assert!(said.err.contains(stray), "{said:?}");
    assert!(said.err.contains("--all-memory"), "{said:?}");
    let differs = recorded("scale").run("run rec#0 --grid 1").gave(1);
    assert!(!differs.err.contains("look like addresses"), "{differs:?}");
}

#[test]
fn pointers_are_followed_and_variables_that_moved_are_found() {
    recorded("chase").run("run rec").gave(0);
    let stage = recorded("bump");
    stage
        .run("run rec")
        .gave(0)
        .warns("1 pointers to the image's variables rewritten");
}

#[test]
fn a_kernel_that_changes_nothing_is_inconclusive_and_noise_can_be_left_out() {
    let stage = recorded("others");
    stage.run("run rec#0").gave(1).says("inconclusive");
    stage.run("verify rec").says("idle changes no memory");
    stage.run("run rec#1").gave(1).says("differs in");
    let shown = stage.run("run rec#1 --show 1");
    assert_eq!(shown.out.matches(": recorded ").count(), 1, "{shown:?}");
    stage
        .run("run rec#1 --mask 2")
        .gave(0)
        .warns("differ between 3 runs");
    // A tolerance that doing nothing passes shows nothing.
    stage
        .run("run rec#1 --tolerance 1e300 --type i32")
        .says("inconclusive");
}

#[test]
fn what_differs_from_process_to_process_can_be_left_out() {
    let stage = recorded("place");
    // Equal in a process's runs, but not between processes.
    stage.run("run rec --mask 3").gave(1);
    stage
        .run("run rec --mask-processes 2")
        .gave(0)
        .warns("words differ between 3 processes that replay the recorded launch");
    let tuned = stage.run("tune rec --mask-processes 2 --runs 1").gave(0);
    assert_eq!(tuned.out.matches(",exact,").count(), 1, "{tuned:?}");
    // Doing nothing, and always wrong kernels, still show.
    stage.run("run rec --mask-processes 2 --null").gave(1);
    let stage = recorded("scale");
    stage.run("run rec#0 --mask-processes 2 --grid 2").gave(1);
    // One process's collision is its own affair.
    let mut command = stage.command("run rec#0 --mask-processes 2");
    ended(command.env("GPUREPLAY_FAKE_COLLIDE", "1")).gave(0);
}

#[test]
fn results_that_were_there_already_are_changed_first() {
    let stage = recorded("again");
    stage.run("run rec#0 --no-poison").gave(0);
    stage.run("run rec#1 --no-poison").says("inconclusive");
    stage
        .run("run rec#1")
        .gave(0)
        .says("right, bit for bit")
        .says("800 bytes were changed before the launch, of 800");
    let json = stage.run("run rec#1 --json").fits("cuda-run");
    assert_eq!(json["verdict"], "exact");
    assert_eq!([&json["changed_bytes"], &json["written_bytes"]], [800, 800]);
    stage
        .run("run rec#1 --grid 3")
        .gave(1)
        .says("differs in 104 elements");
    let tuned = stage
        .run("tune rec#1 --blocks 16;64 --keep-grid --runs 1")
        .gave(0);
    assert_eq!(tuned.out.matches(",exact,").count(), 2, "{tuned:?}");
    assert_eq!(tuned.out.matches(",differs,").count(), 1, "{tuned:?}");
    // A kernel that only adds does not become right.
    stage.run("run rec#2").gave(1).says("inconclusive");
}

#[test]
fn limits_are_refused_with_their_values() {
    let stage = recorded("scale");
    for (words, reason) in [
        (
            "--block 1024",
            "block [1024, 1, 1] has 1024 threads; this kernel allows at most 512",
        ),
        (
            "--block 1,1,128",
            "block dimension z is 128; the GPU allows at most 64",
        ),
        (
            "--grid 1,70000",
            "grid dimension y is 70000; the GPU allows at most 65535",
        ),
        ("--grid 0", "grid [0, 1, 1] has a dimension of 0"),
        (
            "--shared 300000",
            "300000 bytes of dynamic shared memory; this kernel allows at most 232448",
        ),
    ] {
        stage
            .run(&format!("run rec#0 {words}"))
            .gave(4)
            .warns(&format!("refused: {reason}"));
    }
    stage.run("run rec#0 --block 256 --keep-total").gave(0);
    stage.run("run rec#0 --shared 100000").gave(0);
    // The recorded image is compiled for at most 512.
    stage
        .run("run rec#0 --max-threads 64 --min-blocks 4")
        .gave(4)
        .warns("block [128, 1, 1] has 128 threads; this kernel allows at most 64");
    stage
        .run("run rec#0 --max-threads 1024 --block 1024")
        .gave(0);
    stage.run("run rec#0 --min-blocks 4").gave(2);
    stage.run("run rec#0 --grid 2").gave(1);
}

#[test]
fn taken_addresses_are_had_in_another_process() {
    let stage = recorded("scale");
    for (collisions, code) in [(1, 0), (7, 0), (8, 5)] {
        let mut command = stage.command("run rec#0");
        let said = ended(command.env("GPUREPLAY_FAKE_COLLIDE", collisions.to_string()));
        let said = said.gave(code);
        let tried = said.err.matches("trying another process").count();
        assert_eq!(tried, collisions.min(7), "{said:?}");
    }
}

#[test]
fn memory_of_the_host_among_that_of_the_device_is_no_collision() {
    let stage = recorded("host");
    stage.run("info rec").says("400 B of host memory, changed");
    let said = stage.run("run rec").gave(0);
    assert!(!said.err.contains("another process"), "{said:?}");
    stage.run("run rec --null").gave(1);
}

#[test]
fn regions_are_left_out_by_address() {
    let stage = recorded("others");
    let region = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("region"));
        let word = line
            .and_then(|line| line.split_whitespace().nth(1))
            .unwrap();
        word.trim_end_matches(',').to_owned()
    };
    let address = region(&stage.run("info rec#1").out);
    stage.run("run rec#1").gave(1);
    stage
        .run(&format!("run rec#1 --ignore {address}"))
        .gave(1)
        .says("inconclusive");
    let stage = recorded("host");
    let info = stage.run("info rec").out;
    let host = info
        .lines()
        .find(|line| line.contains("of host memory"))
        .unwrap();
    stage
        .run(&format!("run rec --ignore {}", region(host)))
        .says("right, bit for bit");
    stage.run("run rec --ignore 0x10").gave(2);
    stage.run("run rec --ignore 10").gave(2);
}

#[test]
fn a_kernel_that_only_checks_is_seen_to_react() {
    let stage = recorded("check");
    stage.run("run rec#0 --no-poison").says("inconclusive");
    stage.run("run rec#0").gave(0).says("256 bytes of its inputs were changed before another launch, upon which the recorded kernel writes 4");
    let json = stage.run("run rec#0 --json").json();
    assert_eq!(
        (&json["verdict"], &json["changed"]),
        (&"exact".into(), &"inputs".into())
    );
    stage.run("run rec#0 --null").gave(0);
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let stage = recorded("scale");
    let write = |name: &str, text: &str| stage.write(name, text);
    let head = ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 hits, target, total;\n";
    write(
        "other.ptx",
        &format!("{head}.entry other(.param .u64 p) {{ ret; }}"),
    );
    write(
        "parameters.ptx",
        &format!("{head}.entry scale(.param .u64 p, .param .f64 f, .param .u32 n) {{ ret; }}"),
    );
    write("text", "no image");
    for (file, reason) in [
        ("other.ptx", "the image has no kernel scale"),
        (
            "parameters.ptx",
            "the kernel takes parameters (offset, size) [[0, 8], [8, 8], [16, 4]]",
        ),
        ("text", "neither a fatbin nor a cubin nor a PTX text"),
        ("absent", "No such file"),
    ] {
        stage
            .run(&format!("run rec#0 --image {file}"))
            .gave(4)
            .warns(reason);
    }
}

#[test]
fn a_damaged_recording_is_told_before_anything_runs() {
    let stage = recorded("scale");
    let path = stage.path("rec/launches/0.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    let address = good
        .lines()
        .find(|line| line.starts_with("address"))
        .unwrap()
        .to_owned();
    for (from, to) in [
        ("format = 1", "format = 9"),
        ("block = [128", "block = [0"),
        (address.as_str(), "address = 0"),
        (address.as_str(), "address = 18446744073709551615"),
        ("kernel = \"scale\"", "kernel = \"scal\\u0000e\""),
        ("shared = 0", "unknown = 0"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        std::fs::write(&path, bad).unwrap();
        for verb in ["verify rec#0", "run rec#0", "info rec#0"] {
            stage.run(verb).gave(3);
        }
    }
    stage.run("verify rec#1").gave(0);
    stage.run("verify absent").gave(3);
}

#[test]
fn without_a_driver_the_command_says_so() {
    let stage = recorded("scale");
    ended(stage.command("run rec#0").env("LD_LIBRARY_PATH", ""))
        .gave(5)
        .warns("no CUDA driver");
    stage.run("doctor").gave(0);
}

#[test]
fn only_what_the_owner_of_a_key_signed_is_replayed() {
    let stage = recorded("scale");
    let seed = |byte| gpureplay_sign::SecretKey::from_seed([byte; 32]).unwrap();
    let (mine, other) = (seed(7), seed(8));
    let write = |name: &str, text: &str| stage.write(name, text);
    write("mine.pem", &mine.to_pem());
    write("mine.pub.pem", &mine.public().to_pem());
    write("other.pub.pem", &other.public().to_pem());
    let refused = |words: &str, reason: &str| {
        stage.run(words).gave(3).warns(reason);
    };
    let run = "run rec#0 --require-signature mine.pub.pem";
    refused(run, "0.sig: there is none");
    stage.run("sign --key mine.pub.pem rec").gave(2);
    stage
        .run("sign --key mine.pem --counter 5 rec")
        .gave(0)
        .says("2 launches signed, counter 5");
    stage.run("sign --key mine.pem rec#0").gave(2);
    for verb in ["run rec#1", "verify rec", "tune rec#0 --runs 1"] {
        stage
            .run(&format!(
                "{verb} --require-signature mine.pub.pem --minimum-counter 5"
            ))
            .gave(0);
    }
    refused(
        &format!("{run} --minimum-counter 6"),
        "its counter is 5, but at least 6",
    );
    refused(
        "run rec#0 --require-signature other.pub.pem",
        "made with another key",
    );
    let launches = stage.path("rec/launches");
    std::fs::copy(launches.join("1.sig"), launches.join("0.sig")).unwrap();
    refused(run, "0.sig: does not fit what it signs");
    stage.run("sign --key mine.pem --force rec#0").gave(0);
    stage.run(run).gave(0);
    let manifest = std::fs::read_to_string(launches.join("0.toml")).unwrap();
    std::fs::write(
        launches.join("0.toml"),
        manifest.replace("occurrence = 0", "occurrence = 1"),
    )
    .unwrap();
    refused(run, "0.sig: does not fit what it signs");
    std::fs::write(launches.join("0.sig"), "nonsense").unwrap();
    refused(run, "0.sig: is no signature");
}
