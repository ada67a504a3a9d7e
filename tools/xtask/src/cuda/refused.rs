// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be recorded is refused.

use super::{Bench, Found, programs::build_one_of_ours, replays::right};

const REFUSED: [(&str, &str); 6] = [
    ("from_texture", "it reads a texture object"),
    ("from_texture_inside", "it reads a texture object"),
    (
        "from_handle",
        "it reads a texture object by a handle in memory",
    ),
    ("to_surface", "it uses a surface object"),
    ("on_managed", "it reaches managed memory"),
    (
        "waits_for_host",
        "it does not end in 3 s: it may wait for the host",
    ),
];

pub(super) fn refused(bench: &Bench) -> Found {
    build_one_of_ours(bench, "refused.cu", "refused")?;
    let words = "record -v -o refused-recording --pick all --kernel ^(from_|to_|on_|waits_|ordinary) --time-limit 3 -- ./refused";
    let (ran, said) = bench.start(words)?;
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
    let (launches, right) = right(bench, "refused-recording")?;
    wrong += usize::from((launches, right) != (1, 1));
    text += &format!(
        "\nThe program's own answers are {}; of its other kernels, {} is recorded and {right} replays right.\n",
        if ran { "right" } else { "wrong" },
        launches
    );
    let (more, bad) = lacking(bench)?;
    text += &more;
    eprint!("{text}");
    Ok((text, wrong + bad))
}

/// The replay names unrecorded memory; memory behind an encoded pointer can be recorded.
fn lacking(bench: &Bench) -> Found {
    let mut wrong = 0;
    let mut text =
        String::from("\n| Kernel | Recorded | Command | It says |\n| --- | --- | --- | --- |\n");
    let tries = [
        (
            "through_heap",
            "",
            "run",
            "look like addresses of memory that the recording does not hold",
        ),
        ("through_code", "", "run", "--all-memory"),
        (
            "through_code",
            "",
            "analyse",
            "256 lanes reach memory that the recording does not hold",
        ),
        ("through_code", "--all-memory", "run", "right, bit for bit"),
    ];
    for (number, (kernel, option, command, mark)) in tries.into_iter().enumerate() {
        let is_right = !option.is_empty();
        let folder = format!("lacking-{number}");
        let words = format!("record -o {folder} {option} --kernel ^{kernel}$ -- ./refused");
        let (ran, said) = bench.start(&words)?;
        let (right, answer) = bench.start(&format!("{command} {folder}#0"))?;
        let line = answer.lines().find(|line| line.contains(mark));
        let is_good = ran && right == is_right && line.is_some();
        if !is_good {
            eprintln!("{kernel}: {said}{answer}");
        }
        wrong += usize::from(!is_good);
        text += &format!(
            "| {kernel} | {option} | {command} | {} |\n",
            line.unwrap_or("nothing").trim()
        );
    }
    Ok((text, wrong))
}
