// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hostile app on the model's node gets the same answers with the recorder.

#![allow(clippy::unwrap_used)]

mod app;
mod random;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gpureplay_trace::{ErrorCode, Event, Reader};

/// Names the file for what the app sees.
const APP: &str = "GPUREPLAY_TEST_APP";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn app() {
    let Some(out) = std::env::var_os(APP) else {
        return;
    };
    let part = std::env::var("GPUREPLAY_TEST_PART").unwrap();
    let (seen, jobs) = app::play(&part);
    fs::write(&out, seen.join("\n")).unwrap();
    fs::write(PathBuf::from(out).with_extension("jobs"), jobs.to_string()).unwrap();
}

fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let mut places = [folder, folder.parent().unwrap()]
        .map(|place| place.join(name))
        .into_iter();
    places.find(|place| place.exists()).unwrap()
}

fn gpu(part: &str) -> &'static str {
    match part.starts_with("streams") {
        true => "g610",
        false => "g52",
    }
}

fn run(part: &str, libraries: &[PathBuf], folder: &Path) -> Result<String, String> {
    let out = folder.join("seen");
    let _ = fs::remove_file(&out);
    let list: Vec<_> = libraries.iter().map(|path| path.as_os_str()).collect();
    let log = File::create(folder.join("log")).unwrap();
    let mut app = Command::new(std::env::current_exe().unwrap())
        .args(["app", "--exact", "--nocapture", "--test-threads=1"])
        .env("LD_PRELOAD", list.join(":".as_ref()))
        .env("GPUREPLAY_TRACE", folder.join("trace"))
        .env("GPUREPLAY_TEST_PART", part)
        .env("GPUREPLAY_NODE_GPU", gpu(part))
        .env(APP, &out)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        match app.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > LIMIT => {
                app.kill().unwrap();
                app.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let seen = fs::read_to_string(&out).unwrap_or_default();
    match status {
        Some(status) if status.success() => Ok(seen),
        status => Err(format!("{part}: {status:?} (none: it hung): {seen}\n{log}")),
    }
}

/// Errors, the last of which is the missing end, and jobs.
fn errors(trace: &Path) -> (Vec<String>, u32) {
    let mut reader = Reader::new(BufReader::new(File::open(trace).unwrap()));
    let (mut errors, mut ended, mut jobs) = (Vec::new(), false, 0);
    while let Some(record) = reader.next_record().unwrap() {
        match record.event {
            Event::Error {
                code: ErrorCode::Process,
                ..
            } => errors.push("Process".into()),
            Event::Error { code, detail } => errors.push(format!("{code:?} {detail:#x}")),
            Event::End { .. } => ended = true,
            Event::Submit { .. } => jobs += 1,
            _ => {}
        }
    }
    if !ended {
        errors.push("no end".into());
    }
    (errors, jobs)
}

/// A sanitizer's runtime must come first.
fn can_preload() -> bool {
    std::env::var_os(APP).is_none() && std::env::var_os("ASAN_OPTIONS").is_none()
}

/// The app sees the same with and without the recorder; the trace has these errors.
fn same(part: &str, expected: &[&str]) {
    if can_preload() {
        same_on(part, &[library("libgpureplay_node.so")], expected);
    }
}

fn same_on(part: &str, driver: &[PathBuf], expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(part, driver, folder.path()).unwrap();
    assert!(!folder.path().join("trace").exists());
    let all = [&[library("libgpureplay_recorder.so")], driver].concat();
    let recorded = run(part, &all, folder.path()).unwrap();
    assert_eq!(recorded, plain);
    assert!(plain.lines().count() > 2, "{plain}");
    let (mut found, jobs) = errors(&folder.path().join("trace"));
    // Jobs without lists: whether an audit sees their writes depends on the time.
    if part == "sizes" {
        found.retain(|error| !error.starts_with("Unseen"));
    }
    assert_eq!(found, expected);
    let lost = found.iter().filter(|error| error.starts_with("JobLost"));
    let made = fs::read_to_string(folder.path().join("seen.jobs")).unwrap();
    let told = jobs as usize + lost.count();
    assert_eq!(made, told.to_string(), "jobs in the trace");
}

#[test]
fn arguments_that_are_not_there() {
    same("arguments", &[]);
}

#[test]
fn requests_of_other_sizes() {
    same("sizes", &[]);
}

#[test]
fn names_of_nothing() {
    same("names", &[]);
}

#[test]
fn sync_objects_that_vanish() {
    same("syncs", &[]);
}

/// The node has no pending fence: this waits for a sync object made with a fence until the app signals it.
const LATE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

struct wait { const uint32_t *handles; int64_t until; uint32_t count; };
struct sync { uint32_t handle, flags; };

int ioctl(int fd, unsigned long request, ...)
{
	static uint32_t late;
	int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list list;
	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	struct wait *wait = argument;
	struct sync *sync = argument;
	if ((request >> 8 & 0xff) != 'd')
		return next(fd, request, argument);
	if ((request & 0xff) == 0xc3 && wait->count == 1 && late && *wait->handles == late) {
		struct timespec until = { wait->until / 1000000000, wait->until % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
		errno = ETIME;
		return -1;
	}
	int result = next(fd, request, argument);
	if ((request & 0xff) == 0xbf && !result && sync->flags)
		late = sync->handle;
	if ((request & 0xff) == 0xc5 && !result)
		late = 0;
	return result;
}
"#;

#[test]
fn a_fence_that_the_app_signals_later() {
    if !can_preload() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [source, late] = ["late.c", "late.so"].map(|name| folder.path().join(name));
    fs::write(&source, LATE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    let compiled = compiler.arg(&late).arg(&source).status();
    assert!(compiled.unwrap().success());
    let driver = [late, library("libgpureplay_node.so")];
    same_on("late", &driver, &["JobLost 0x2"]);
}

#[test]
fn forks_while_others_work() {
    same("forks", &["Process"; 20]);
}

#[test]
fn copies_of_a_number() {
    same("copies", &[]);
}

/// Or `GPUREPLAY_SEEDS`.
const SEEDS: u64 = 3;

/// Each job is in the trace or named as lost.
fn at_random(part: &str) {
    if !can_preload() {
        return;
    }
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("GPUREPLAY_FIRST_SEED").unwrap_or(0);
    for seed in first..first + number("GPUREPLAY_SEEDS").unwrap_or(SEEDS) {
        let part = format!("{part} {seed}");
        let folder = tempfile::tempdir().unwrap();
        let driver = [library("libgpureplay_node.so")];
        let plain = run(&part, &driver, folder.path()).unwrap();
        let all = [library("libgpureplay_recorder.so"), driver[0].clone()];
        let recorded = run(&part, &all, folder.path()).unwrap();
        for (line, (one, other)) in plain.lines().zip(recorded.lines()).enumerate() {
            assert_eq!(
                one, other,
                "{part}: line {line}, without and with the recorder"
            );
        }
        assert_eq!(plain.lines().count(), recorded.lines().count(), "{part}");
        if part.starts_with("streams") {
            continue;
        }
        let last = plain.lines().last().unwrap();
        assert_eq!(last, "in the end (0, 0, 2748)", "{part}");
        let (found, jobs) = errors(&folder.path().join("trace"));
        let lost = found.iter().filter(|error| error.starts_with("JobLost"));
        let made = fs::read_to_string(folder.path().join("seen.jobs")).unwrap();
        let told = jobs as usize + lost.count();
        assert_eq!(
            made,
            told.to_string(),
            "{part}: jobs in the trace; {found:?}"
        );
    }
}

#[test]
fn chains_at_random() {
    at_random("chains");
}

#[test]
fn streams_at_random() {
    at_random("streams");
}
