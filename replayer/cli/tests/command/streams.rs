// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams: as job chains, or the reason why not.

use std::fs;
use std::process::Command;

use crate::start::{Ended, Folder, GPUREPLAY, Says, recordings, said, well};

fn replayed(folder: &Folder, words: &str) -> String {
    let shipped = recordings().join("digits-g610");
    let input = shipped.join("inputs/3.npy");
    let run = format!("run {} --input {}", shipped.display(), input.display());
    folder.ran(GPUREPLAY, &format!("{run} {words}")).gave(0)
}

#[test]
fn layers_give_alone_what_they_give_among_all() {
    let folder = Folder::default();
    let text = replayed(&folder, "--until pool1 -o pool1=part.npy");
    text.says("layers 1 to 3 of 7");
    replayed(&folder, "-o pool1=whole.npy --trace lines.json");
    let read = |name: &str| fs::read(folder.at(name)).unwrap();
    assert_eq!(read("part.npy"), read("whole.npy"));
    let shipped = recordings().join("digits-g610");
    let bench = format!("bench {} --runs 2 --trace bench.json", shipped.display());
    folder.ran(GPUREPLAY, &bench).gave(0);
    for name in ["lines.json", "bench.json"] {
        let lines = String::from_utf8(read(name)).unwrap();
        for chain in 0..19 {
            let chain = format!("\"chain {chain}\"");
            lines.says(&chain);
        }
        assert!(!lines.contains("\"chain 19\""), "{name}");
    }
}

#[test]
fn a_dispatch_is_saved_and_given_other_work_groups() {
    let folder = Folder::default();
    let [saved, patched] = ["saved", "patched"].map(|name| folder.at(name).display().to_string());
    well(&format!("extract digits-g610 --jobs 11 -o {saved}"));
    let (code, text) = folder.ran(GPUREPLAY, &format!("run {saved}"));
    let same = "conv2 matches digits-g610 on the model bit for bit";
    assert!(code == 0 && text.contains(same), "{text}");
    let text = well(&format!(
        "patch digits-g610 --jobs 11 --local 4x4 -o {patched}"
    ));
    text.says("job 11: proven");
    folder
        .ran(GPUREPLAY, &format!("run {patched}"))
        .ended(0, "bit for bit");
}

#[test]
fn devices_are_compared_after_each_stream() {
    let diff = "diff digits-g610 --device model --against model";
    let text = well(diff);
    text.says("agree after each of 11 chains");
    said(&format!("{diff} --inject job-fault@10")).ended(1, "after 1 chains");
}

#[test]
fn what_is_about_chains_is_refused_by_name() {
    let folder = Folder::default();
    let to = folder.at("new").display().to_string();
    for (words, why) in [
        ("link digits-g610", "nothing to link"),
        (
            "retarget digits-g610 --gpu g57",
            "not converted for another GPU",
        ),
    ] {
        said(&format!("{words} -o {to}"))
            .failed("command streams")
            .says(why);
        assert!(!folder.at("new").exists());
    }
}

/// As panthor is to a group whose time was up just when a stream of it had ended well: a group takes no more after
/// its TIRED-th stream.
const FRONT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t streams, refused, tired;

int ioctl(int fd, unsigned long request, void *argument)
{
	static int (*next)(int, unsigned long, void *);
	uint32_t *group = argument;

	if (!next)
		next = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
	/* A new group, whose number may be an old one's. */
	if ((request & 0xffff) == 0x6447)
		tired = 0;
	if ((request & 0xffff) == 0x6449) {
		if (*group == tired) {
			refused++;
			errno = EINVAL;
			return -1;
		}
		streams++;
		if (streams % atoi(getenv("TIRED")) == 0)
			tired = *group;
	}
	return next(fd, request, argument);
}

__attribute__((destructor)) static void end(void)
{
	fprintf(stderr, "%u streams, %u refused\n", streams, refused);
}
"#;

#[test]
fn a_group_of_panthors_that_takes_no_more_is_replaced() {
    // A sanitizer's runtime must come first.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    let test = std::env::current_exe().unwrap();
    let mut places = test.ancestors().map(|it| it.join("libgpureplay_node.so"));
    let node = places.find(|place| place.exists()).unwrap();
    let folder = Folder::default();
    let [source, front] = ["front.c", "front.so"].map(|name| folder.at(name));
    fs::write(&source, FRONT).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    assert!(
        compiler
            .arg(&front)
            .arg(&source)
            .status()
            .unwrap()
            .success()
    );
    // The replay makes 19 streams.
    for (tired, refused) in [("5", 3), ("1", 18), ("100", 0)] {
        let output = Command::new(GPUREPLAY)
            .args(["run", "digits-g610", "--device", "panthor"])
            .current_dir(recordings())
            .env(
                "LD_PRELOAD",
                format!("{}:{}", front.display(), node.display()),
            )
            .env("GPUREPLAY_NODE_GPU", "g610")
            .env("TIRED", tired)
            .output()
            .unwrap();
        let [out, said] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        let text = out + &said;
        let told = format!("19 streams, {refused} refused");
        let right = text.contains("bit for bit") && text.contains(&told);
        assert!(output.status.success() && right, "{text}");
    }
}

#[test]
fn a_shader_that_was_saved_is_printed_as_it_is_in_the_recording() {
    let folder = Folder::default();
    let saved = folder.at("code");
    let shown = well(&format!(
        "disasm digits-g610 --jobs 11 --save {}",
        saved.display()
    ));
    let mut files = fs::read_dir(&saved)
        .unwrap()
        .map(|file| file.unwrap().path());
    let file = files.find(|file| file.extension().is_some_and(|end| end == "bin"));
    let file = file.unwrap();
    let code = |text: &str| text.split_once("\n    0  ").unwrap().1.to_owned();
    // Without the file beside it, the user says the GPU.
    let disasm = format!("disasm {}", file.display());
    let text = well(&disasm);
    text.says("g610: 1 shader");
    assert_eq!(code(&text), code(&shown));
    fs::remove_file(file.with_extension("toml")).unwrap();
    let text = well(&format!("{disasm} --gpu rk3588"));
    assert_eq!(code(&text), code(&shown));
}
