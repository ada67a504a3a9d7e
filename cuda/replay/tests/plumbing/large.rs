// SPDX-License-Identifier: MIT OR Apache-2.0
//! Large memory, on the GPU or, without room, the host.

use crate::app::PTX;
use crate::stage::{Said, Stage, ended, recorded};

fn say(stage: &Stage, words: &str, is_full: bool) -> Said {
    let mut command = stage.command(words);
    command
        .env("GPUREPLAY_FAKE_TRACE", "1")
        .env("GPUREPLAY_FAKE_FULL", u8::from(is_full).to_string());
    ended(&mut command)
}

#[test]
fn large_memory_is_compared_on_the_gpu_as_it_is_here() {
    let stage = recorded("large");
    let halves = format!("{PTX}.visible .global .align 4 .u32 halves;\n");
    stage.write("half.ptx", halves);
    stage.write("same.ptx", PTX);
    // Half of the numbers stay; a variable counts threads.
    for (launch, image, wrong) in [
        (0, "half", Some(2_500_003)),
        (1, "same", None),
        (1, "half", Some(1_250_049)),
    ] {
        let words = format!("judge rec#{launch} --image {image}.ptx --runs 2 --seed 1 --no-poison");
        let [there, here] = [false, true].map(|is_full| say(&stage, &words, is_full));
        for said in [&there, &here] {
            let report = said.json();
            let checks = report["checks"].as_array().unwrap();
            for what in ["recorded inputs", "after timing"] {
                let check = checks.iter().find(|check| check["what"] == what).unwrap();
                assert_eq!(check["elements"].as_u64(), wrong, "{words}: {said:?}");
                let first = &check["first"]["offset"];
                assert!(
                    wrong.is_none() || first.as_u64() > Some(4_999_999),
                    "{check}"
                );
            }
        }
        assert!(there.err.contains("gpureplay_shares"), "{words}: {there:?}");
        assert!(!here.err.contains("gpureplay_shares"), "{words}: {here:?}");
    }
    let timed = say(&stage, "run rec#1 --runs 2 --cache cold", false).says("right, bit for bit");
    // A single verdict needs no copy.
    assert!(!timed.err.contains("gpureplay_shares"), "{timed:?}");
    for kernel in ["gpureplay_copy", "gpureplay_read"] {
        assert!(timed.err.contains(kernel), "{kernel}: {timed:?}");
    }
    say(&stage, "run rec#0 --grid 39062", false).says("differs in 68 elements");
}
