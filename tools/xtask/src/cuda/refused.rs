// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be recorded is refused by name, and the program runs on.

use super::{
    Bench,
    programs::build_one_of_ours,
    replays::{launches, start},
};
use crate::error::Result;

/// Kernels of refused.cu, and what is said of each.
const REFUSED: [(&str, &str); 5] = [
    ("from_texture", "it reads a texture object"),
    ("from_texture_inside", "it reads a texture object"),
    ("to_surface", "it uses a surface object"),
    ("on_managed", "it reaches managed memory"),
    (
        "waits_for_host",
        "it does not end in 3 s: it may wait for the host",
    ),
];

/// Records a program of such kernels. Its own check of its answers decides whether it ran as it would alone.
pub(super) fn refused(bench: &Bench) -> Result<(String, usize)> {
    build_one_of_ours(bench, "refused.cu", "refused")?;
    let words = "record -v -o refused-recording --pick all --time-limit 3 -- ./refused";
    let (ran, said) = start(&mut bench.gpureplay(words))?;
    let mut wrong = usize::from(!ran);
    if !ran {
        eprintln!("{said}");
    }
    let mut text = String::from("| Kernel of `refused.cu` | Said |\n| --- | --- |\n");
    for (kernel, reason) in REFUSED {
        let head = format!("[gpureplay] {kernel} is not recorded: ");
        let reasons: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix(head.as_str()))
            .collect();
        wrong += usize::from(reasons != [reason]);
        text += &format!("| {kernel} | {} |\n", reasons.join("; "));
    }
    let (names, _) = launches(bench, "refused-recording")?;
    let mut right = 0;
    for name in &names {
        right += usize::from(start(&mut bench.gpureplay(&format!("run {name}")))?.0);
    }
    wrong += usize::from(names.len() != 1 || right != 1);
    text += &format!(
        "\nThe program's own answers are {}; of its other kernels, {} is recorded and {right} replays right.\n",
        if ran { "right" } else { "wrong" },
        names.len()
    );
    eprint!("{text}");
    Ok((text, wrong))
}
