// SPDX-License-Identifier: MIT OR Apache-2.0
//! `-h`, `--help` and `help`.

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// In the order of a first day.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Replay", &["run", "bench", "diff"]),
    ("Record", &["record", "node", "compile", "import"]),
    ("Inspect", &["info", "jobs", "analyse", "disasm"]),
    ("Change", &["extract", "patch", "tune", "retarget", "link"]),
    ("Share", &["verify", "sign", "keygen", "pack", "unpack"]),
    ("More", &["doctor", "cuda"]),
];

/// Same-named commands hand on to them.
const HANDED_ON: [&str; 6] = ["info", "jobs", "verify", "sign", "bench", "doctor"];

/// Only in long help, under a heading.
const RARE: [(&str, &[&str]); 9] = [
    ("Trust", &["require_signature", "min_counter", "signature"]),
    (
        "The model",
        &["threads", "limit_work", "verbose", "mesa", "node_library"],
    ),
    (
        "Testing",
        &[
            "inject",
            "i_know_this_is_the_wrong_gpu",
            "wrong_gpu",
            "retry",
        ],
    ),
    (
        "Layers and cases",
        &["layers", "recorded_values", "output_layer", "labels"],
    ),
    (
        "Measuring",
        &[
            "gpu_counters",
            "per_job",
            "trace_lines",
            "peak_instructions",
            "peak_bytes",
        ],
    ),
    (
        "Comparing",
        &["mask", "mask_processes", "ignore", "no_poison"],
    ),
    (
        "Compiling PTX",
        &["max_registers", "optimisation", "max_threads", "min_blocks"],
    ),
    (
        "Making an input (--make-input)",
        &["shape", "dtype", "seed"],
    ),
    (
        "Details of the recording",
        &[
            "max_jobs",
            "provenance",
            "description",
            "intermediates",
            "fixed_weights",
            "granularity",
            "no_link",
            "timeout",
            "tolerance",
            "keep",
            "layer",
            "no_layer",
            "command",
        ],
    ),
];

const WIDTH: usize = 100;
const EXAMPLES: usize = 3;

pub(crate) const NO_COMMAND: &str = "\
gpureplay: record a GPU app once, replay it without the GPU stack

  gpureplay run RECORDING --input x.bin   replay with your input
  gpureplay info RECORDING                show what a recording holds
  gpureplay record -- ./app               record an app
  gpureplay doctor                        check this machine

Try it in a clone, without a GPU:
  gpureplay run recordings/digits-g52 --input recordings/digits-g52/inputs/3.npy

`gpureplay help` lists all commands; `gpureplay run -h` explains one.
";

pub(crate) fn shaped(command: Command) -> Command {
    let table = groups(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{table}\nOptions:\n{{options}}{{after-help}}"
    );
    let command = command
        .mut_args(one_line)
        .max_term_width(WIDTH)
        .override_usage("gpureplay [OPTIONS] <COMMAND>")
        .help_template(template);
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |inner| short("gpureplay", inner))
    });
    command.mut_subcommand("cuda", |cuda| {
        let hidden = |cuda: Command, name| cuda.mut_subcommand(name, |inner| inner.hide(true));
        HANDED_ON.into_iter().fold(cuda, hidden)
    })
}

fn groups(command: &Command) -> String {
    let mut table = String::new();
    for (group, names) in GROUPS {
        let mut heading = group;
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(StyledStr::to_string).unwrap_or_default();
            table += &format!("{heading:9} {name:12} {about}\n");
            heading = "";
        }
    }
    table
}

fn short(parent: &str, command: Command) -> Command {
    let path = format!("{parent} {}", command.get_name());
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    let mut command = command.mut_args(one_line).next_line_help(false);
    for name in names {
        command = command.mut_subcommand(name, |inner| short(&path, inner));
    }
    let Some(after) = command.get_after_help().map(StyledStr::to_string) else {
        return command;
    };
    let mut first: Vec<&str> = Vec::new();
    let mut goes_on = false;
    for line in after.lines() {
        let line = line.split("     (").next().unwrap_or(line);
        let begins = line.trim_start().starts_with("gpureplay ") && first.len() < EXAMPLES;
        if (begins || goes_on) && line.chars().count() <= WIDTH {
            first.push(line);
            goes_on = line.ends_with('\\');
        }
    }
    let few = format!("{}\n\nMore: {path} --help", first.join("\n"));
    let all = match path.as_str() {
        "gpureplay run" => format!("{after}\n\n{}", crate::EXIT_CODES),
        _ => after,
    };
    command.after_long_help(all).after_help(few)
}

/// Short help is the beginning of long help.
fn one_line(arg: Arg) -> Arg {
    let id = arg.get_id().as_str().to_owned();
    let rare = RARE.iter().find(|(_, ids)| ids.contains(&id.as_str()));
    let arg = match rare {
        Some((heading, _)) => arg.help_heading(*heading).hide_short_help(true),
        None => arg,
    };
    let Some(help) = arg.get_help().map(StyledStr::to_string) else {
        return arg;
    };
    let beginning = beginning(&help);
    if beginning == help {
        return arg;
    }
    let long = arg.get_long_help().map_or(help, StyledStr::to_string);
    arg.help(beginning).long_help(long)
}

fn beginning(text: &str) -> String {
    let ends = [". ", "; ", ": ", " (", ", so that ", ", instead of "];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    text[..end.unwrap_or(text.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn command() -> Command {
        let mut command = crate::command();
        command.build();
        command
    }

    fn misfits(command: &mut Command, path: &str, found: &mut Vec<String>) {
        let help = command.render_help().to_string();
        let wide = help.lines().any(|line| line.chars().count() > WIDTH);
        let lines = help.lines().count();
        let examples = help.matches("\n  gpureplay ").count();
        // Its own examples lack a word, those of CUDA stand in docs/cuda.md.
        let without = path == "gpureplay" || path.starts_with("gpureplay cuda");
        if wide || lines > 40 || examples == 0 && !without {
            found.push(format!("{path}: {lines} lines, wide: {wide}\n{help}"));
        }
        let names: Vec<String> = command
            .get_subcommands()
            .map(|inner| inner.get_name().to_owned())
            .collect();
        for name in names.iter().filter(|name| *name != "help") {
            let inner = command.find_subcommand_mut(name).unwrap();
            misfits(inner, &format!("{path} {name}"), found);
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut found = Vec::new();
        misfits(&mut command(), "gpureplay", &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn summaries_are_short_and_imperative() {
        fn wrong(command: &Command, found: &mut Vec<String>) {
            for inner in command
                .get_subcommands()
                .filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
            {
                let about = inner
                    .get_about()
                    .map(StyledStr::to_string)
                    .unwrap_or_default();
                let verb = about.split(' ').next().unwrap_or_default();
                if about.chars().count() > 60 || verb.ends_with('s') || about.ends_with('.') {
                    found.push(format!("{}: {about}", inner.get_name()));
                }
                wrong(inner, found);
            }
        }
        let mut found = Vec::new();
        wrong(&command(), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn each_command_is_in_one_group() {
        let command = command();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
            .map(Command::get_name)
            .filter(|name| *name != "help")
            .collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn long_help_has_every_option() {
        let mut command = command();
        let run = command.find_subcommand_mut("run").unwrap();
        let help = run.render_long_help().to_string();
        let shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_action(), ArgAction::Help);
        for arg in run.get_arguments().filter(shown) {
            if let Some(long) = arg.get_long() {
                assert!(help.contains(&format!("--{long}")), "{long}");
            }
        }
        assert!(help.contains("Testing:"), "{help}");
    }

    #[test]
    fn a_thought_ends_at_its_sign() {
        assert_eq!(
            beginning("Run nothing: only what the file says"),
            "Run nothing"
        );
        assert_eq!(beginning("Print as JSON"), "Print as JSON");
    }
}
