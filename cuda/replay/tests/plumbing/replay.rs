// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaying: verdicts, limits, collisions, other images, damage.

use crate::stage::recorded;

#[test]
fn a_replay_is_right_and_a_null_replay_is_not() {
    let stage = recorded("scale");
    for launch in ["rec#0", "rec#1"] {
        let said = stage.run(&format!("run {launch} --runs 3"));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("right, bit for bit"), "{said:?}");
        assert!(
            said.out.contains("3 runs, warm caches: median 1.00 us"),
            "{said:?}"
        );
        let null = stage.run(&format!("run {launch} --null"));
        assert_eq!(null.code, Some(1), "{null:?}");
        assert!(null.out.contains("null replay differs in"), "{null:?}");
    }
    assert_eq!(stage.run("verify rec").code, Some(0));
    assert_eq!(stage.run("diff rec#0 rec#0").code, Some(0));
    let diff = stage.run("diff rec#0 rec#1");
    assert_eq!(diff.code, Some(1));
    assert!(
        diff.out.contains("parameter 1: 3fc00000, 40000000"),
        "{diff:?}"
    );
    assert_eq!(stage.run("run rec").code, Some(2));
}

#[test]
fn memory_is_restored_before_each_timed_run() {
    let stage = recorded("once");
    for cache in ["warm", "cold"] {
        let said = stage.run(&format!("run rec --runs 4 --cache {cache}"));
        assert_eq!(said.code, Some(0), "{said:?}");
        let times = format!("4 runs, {cache} caches: median 1.00 us");
        assert!(said.out.contains(&times), "{said:?}");
    }
    // As it was called before.
    let cold = stage.run("run rec --runs 1 --cold");
    assert!(cold.out.contains("1 runs, cold caches"), "{cold:?}");
    // With an image that is loaded again, and from changed memory.
    let tuned = stage.run("tune rec --runs 3 --registers 0,32 --blocks 16;64");
    assert_eq!(tuned.out.matches(",exact,").count(), 5, "{tuned:?}");
}

#[test]
fn addresses_of_memory_that_was_not_recorded_are_named() {
    let said = recorded("stray").run("run rec");
    assert_eq!(said.code, Some(5), "{said:?}");
    let stray = "1 words look like addresses of memory that the recording does not hold, such as the heap of kernels; the first is 0x210000008, at 0x";
    assert!(said.err.contains(stray), "{said:?}");
    assert!(said.err.contains("--all-memory"), "{said:?}");
    // Where all is held, nothing is said.
    let differs = recorded("scale").run("run rec#0 --grid 1");
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(!differs.err.contains("look like addresses"), "{differs:?}");
}

#[test]
fn pointers_are_followed_and_variables_that_moved_are_found() {
    assert_eq!(recorded("chase").run("run rec").code, Some(0));
    let stage = recorded("bump");
    let said = stage.run("run rec");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.err
            .contains("1 pointers to the image's variables rewritten"),
        "{said:?}"
    );
}

#[test]
fn a_kernel_that_changes_nothing_is_inconclusive_and_noise_can_be_left_out() {
    let stage = recorded("others");
    let idle = stage.run("run rec#0");
    assert_eq!(idle.code, Some(1), "{idle:?}");
    assert!(idle.out.contains("inconclusive"), "{idle:?}");
    assert!(
        stage
            .run("verify rec")
            .out
            .contains("idle changes no memory")
    );
    let noise = stage.run("run rec#1");
    assert_eq!(noise.code, Some(1), "{noise:?}");
    assert!(noise.out.contains("differs in"), "{noise:?}");
    let shown = stage.run("run rec#1 --show 1");
    assert_eq!(shown.out.matches(": recorded ").count(), 1, "{shown:?}");
    let masked = stage.run("run rec#1 --mask 2");
    assert_eq!(masked.code, Some(0), "{masked:?}");
    assert!(masked.err.contains("differ between 3 runs"), "{masked:?}");
    // With a tolerance so wide that doing nothing passes, nothing is shown.
    let wide = stage.run("run rec#1 --tolerance 1e300 --type i32");
    assert!(wide.out.contains("inconclusive"), "{wide:?}");
}

#[test]
fn what_differs_from_process_to_process_can_be_left_out() {
    let stage = recorded("place");
    // The same in each run of one process, and another address in each process.
    let said = stage.run("run rec --mask 3");
    assert_eq!(said.code, Some(1), "{said:?}");
    let said = stage.run("run rec --mask-processes 2");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.err
            .contains("words differ between 3 processes that replay the recorded launch"),
        "{said:?}"
    );
    let tuned = stage.run("tune rec --mask-processes 2 --runs 1");
    assert_eq!(tuned.code, Some(0), "{tuned:?}");
    assert_eq!(tuned.out.matches(",exact,").count(), 1, "{tuned:?}");
    // Nothing launched is still told from the kernel, and so is a kernel that is wrong in every process.
    let null = stage.run("run rec --mask-processes 2 --null");
    assert_eq!(null.code, Some(1), "{null:?}");
    let stage = recorded("scale");
    let wrong = stage.run("run rec#0 --mask-processes 2 --grid 2");
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    // A collision in one of the processes is that one's affair.
    let mut command = stage.command("run rec#0 --mask-processes 2");
    let said = command.env("GPUREPLAY_FAKE_COLLIDE", "1").output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{said:?}");
}

#[test]
fn results_that_were_there_already_are_changed_first() {
    let stage = recorded("again");
    // The first launch changes memory; the second finds its results there.
    assert_eq!(stage.run("run rec#0 --no-poison").code, Some(0));
    let as_it_is = stage.run("run rec#1 --no-poison");
    assert!(as_it_is.out.contains("inconclusive"), "{as_it_is:?}");
    let said = stage.run("run rec#1");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("right, bit for bit"), "{said:?}");
    assert!(
        said.out
            .contains("800 bytes were changed before the launch, of 800"),
        "{said:?}"
    );
    let json = stage.run("run rec#1 --json");
    crate::schema_check::assert_fits("cuda-run", &json.out);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["verdict"], "exact");
    assert_eq!([&json["changed_bytes"], &json["written_bytes"]], [800, 800]);
    // Half of the threads write half.
    let half = stage.run("run rec#1 --grid 3");
    assert_eq!(half.code, Some(1), "{half:?}");
    assert!(half.out.contains("differs in 104 elements"), "{half:?}");
    let tuned = stage.run("tune rec#1 --blocks 16;64 --keep-grid --runs 1");
    assert_eq!(tuned.code, Some(0), "{tuned:?}");
    assert_eq!(tuned.out.matches(",exact,").count(), 2, "{tuned:?}");
    assert_eq!(tuned.out.matches(",differs,").count(), 1, "{tuned:?}");
    // What only adds to its output does not become right.
    let accumulated = stage.run("run rec#2");
    assert_eq!(accumulated.code, Some(1), "{accumulated:?}");
    assert!(accumulated.out.contains("inconclusive"), "{accumulated:?}");
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
        let said = stage.run(&format!("run rec#0 {words}"));
        assert_eq!(said.code, Some(4), "{words}: {said:?}");
        assert!(
            said.err.contains(&format!("refused: {reason}")),
            "{words}: {said:?}"
        );
    }
    assert_eq!(
        stage.run("run rec#0 --block 256 --keep-total").code,
        Some(0)
    );
    assert_eq!(stage.run("run rec#0 --shared 100000").code, Some(0));
    // Launch bounds of one's own: the recorded ones are 512.
    let bounded = stage.run("run rec#0 --max-threads 64 --min-blocks 4");
    assert_eq!(bounded.code, Some(4), "{bounded:?}");
    assert!(
        bounded
            .err
            .contains("block [128, 1, 1] has 128 threads; this kernel allows at most 64"),
        "{bounded:?}"
    );
    let wider = stage.run("run rec#0 --max-threads 1024 --block 1024");
    assert_eq!(wider.code, Some(0), "{wider:?}");
    assert_eq!(stage.run("run rec#0 --min-blocks 4").code, Some(2));
    // A quarter of the threads leaves elements as they were.
    assert_eq!(stage.run("run rec#0 --grid 2").code, Some(1));
}

#[test]
fn taken_addresses_are_had_in_another_process() {
    let stage = recorded("scale");
    for (collisions, code) in [(1, 0), (7, 0), (8, 5)] {
        let mut command = stage.command("run rec#0");
        let said = command
            .env("GPUREPLAY_FAKE_COLLIDE", collisions.to_string())
            .output()
            .unwrap();
        assert_eq!(said.status.code(), Some(code), "{collisions}: {said:?}");
        let tried = String::from_utf8_lossy(&said.stderr)
            .matches("trying another process")
            .count();
        assert_eq!(tried, collisions.min(7), "{said:?}");
    }
}

#[test]
fn memory_of_the_host_among_that_of_the_device_is_no_collision() {
    let stage = recorded("host");
    let info = stage.run("info rec").out;
    assert!(info.contains("400 B of host memory, changed"), "{info}");
    let said = stage.run("run rec");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("another process"), "{said:?}");
    assert_eq!(stage.run("run rec --null").code, Some(1));
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
    assert_eq!(stage.run("run rec#1").code, Some(1));
    // Nothing is left that a launch changes.
    let ignored = stage.run(&format!("run rec#1 --ignore {address}"));
    assert_eq!(ignored.code, Some(1), "{ignored:?}");
    assert!(ignored.out.contains("inconclusive"), "{ignored:?}");
    let stage = recorded("host");
    let info = stage.run("info rec").out;
    let host = info
        .lines()
        .find(|line| line.contains("of host memory"))
        .unwrap();
    let said = stage.run(&format!("run rec --ignore {}", region(host)));
    assert!(said.out.contains("right, bit for bit"), "{said:?}");
    assert_eq!(stage.run("run rec --ignore 0x10").code, Some(2));
    assert_eq!(stage.run("run rec --ignore 10").code, Some(2));
}

#[test]
fn a_kernel_that_only_checks_is_seen_to_react() {
    let stage = recorded("check");
    let bare = stage.run("run rec#0 --no-poison");
    assert!(bare.out.contains("inconclusive"), "{bare:?}");
    let said = stage.run("run rec#0");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .contains("256 bytes of its inputs were changed before another launch, upon which the recorded kernel writes 4"),
        "{said:?}"
    );
    let json = stage.run("run rec#0 --json");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&json["verdict"], &json["changed"]),
        (&"exact".into(), &"inputs".into())
    );
    assert_eq!(
        stage.run("run rec#0 --null").code,
        Some(0),
        "nothing is written"
    );
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let stage = recorded("scale");
    let write = |name: &str, text: &str| std::fs::write(stage.path(name), text).unwrap();
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
        let said = stage.run(&format!("run rec#0 --image {file}"));
        assert_eq!(said.code, Some(4), "{file}: {said:?}");
        assert!(said.err.contains(reason), "{file}: {said:?}");
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
            let said = stage.run(verb);
            assert_eq!(said.code, Some(3), "{from} → {to}, {verb}: {said:?}");
        }
    }
    assert_eq!(stage.run("verify rec#1").code, Some(0));
    assert_eq!(stage.run("verify absent").code, Some(3));
}

#[test]
fn without_a_driver_the_command_says_so() {
    let stage = recorded("scale");
    let said = stage
        .command("run rec#0")
        .env("LD_LIBRARY_PATH", "")
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(5), "{said:?}");
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("no CUDA driver"),
        "{said:?}"
    );
    assert_eq!(stage.run("doctor").code, Some(0));
}

#[test]
fn only_what_the_owner_of_a_key_signed_is_replayed() {
    let stage = recorded("scale");
    let seed = |byte| gpureplay_sign::SecretKey::from_seed([byte; 32]).unwrap();
    let (mine, other) = (seed(7), seed(8));
    let write = |name: &str, text: &str| std::fs::write(stage.path(name), text).unwrap();
    write("mine.pem", &mine.to_pem());
    write("mine.pub.pem", &mine.public().to_pem());
    write("other.pub.pem", &other.public().to_pem());
    let refused = |words: &str, reason: &str| {
        let said = stage.run(words);
        assert_eq!(said.code, Some(3), "{words}: {said:?}");
        assert!(said.err.contains(reason), "{words}: {said:?}");
    };
    let run = "run rec#0 --require-signature mine.pub.pem";
    refused(run, "0.sig: there is none");
    assert_eq!(stage.run("sign --key mine.pub.pem rec").code, Some(2));
    let signed = stage.run("sign --key mine.pem --counter 5 rec");
    assert_eq!(signed.code, Some(0), "{signed:?}");
    assert!(
        signed.out.contains("2 launches signed, counter 5"),
        "{signed:?}"
    );
    let again = stage.run("sign --key mine.pem rec#0");
    assert_eq!(again.code, Some(2), "{again:?}");
    for verb in ["run rec#1", "verify rec", "tune rec#0 --runs 1"] {
        let said = stage.run(&format!(
            "{verb} --require-signature mine.pub.pem --minimum-counter 5"
        ));
        assert_eq!(said.code, Some(0), "{verb}: {said:?}");
    }
    refused(
        &format!("{run} --minimum-counter 6"),
        "its counter is 5, but at least 6",
    );
    refused(
        "run rec#0 --require-signature other.pub.pem",
        "made with another key",
    );
    // A launch that another one's signature does not cover, and one that was changed.
    let launches = stage.path("rec/launches");
    std::fs::copy(launches.join("1.sig"), launches.join("0.sig")).unwrap();
    refused(run, "0.sig: does not fit what it signs");
    assert_eq!(stage.run("sign --key mine.pem --force rec#0").code, Some(0));
    assert_eq!(stage.run(run).code, Some(0));
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
