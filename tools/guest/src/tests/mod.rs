// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest test`: the full-system tests.

mod around;
mod barriers;
mod caches;
mod cases;
mod complaints;
mod drivers;
mod gles;
mod itself;
mod kernels;
mod linked;
mod opencl;
mod page;
mod pairs;
mod panthor;
mod programs;
mod recorder;
mod runner;
mod state;
mod user;
mod valhall;

use std::process::ExitCode;

use clap::Args;

use self::{
    drivers::{
        copies, devices, lists, own_driver, panfrost, panfrost_elsewhere, panfrost_repaired,
        silence,
    },
    itself::{clinfo, exit_code, hang, panic},
    kernels::{kernels, own_kernels},
    programs::{record, record_on, stock},
    runner::{ALONE, TestFunction, Verdict, run_all},
};
use crate::{
    build::payload,
    conformance::{operators, piglit},
    error::{Error, Result},
    firmware::checks,
    folder::Folder,
    foreign, optee,
    run::driver::Driver,
};

/// Runs the full-system tests: the stock driver on the model, recording and replay, and failures of the guest.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest test\n  cargo xtask guest test record\n  cargo xtask guest test --full --jobs 2\n  \
                        cargo xtask guest test --list"
)]
pub(crate) struct Test {
    /// Only tests whose name contains this; one that takes long runs only if this is its whole name.
    filter: Option<String>,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    no_build: bool,
    /// Guests that run at the same time; tests that build in the same directories wait for each other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    jobs: u32,
    /// All but those that take long, also those that CI runs on the model's node
    #[arg(long)]
    full: bool,
    /// Print the tests' names.
    #[arg(long)]
    list: bool,
}

macro_rules! tests {
    ($($name:literal => $function:expr;)*) => {
        &[$(($name, |folder| $function(folder).map(Verdict::from))),*]
    };
}

const TESTS: &[(&str, TestFunction)] = tests! {
    "exit code and output of a command arrive" => exit_code;
    "a panic is seen" => panic;
    "a hang is ended" => hang;
    "clinfo names the GPU" => clinfo;
    "kernels give the right values" => own_kernels;
    "kernels give the right values on a G71" => |folder| kernels(folder, "g71", "kernels", None);
    "kernels give the right values on a G57" => |folder| kernels(folder, "g57", "kernels", None);
    "kernels give the right values on a G610" =>
        |folder| kernels(folder, "g610", "kernels", None);
    "what kernels print arrives" => |folder| kernels(folder, "g52", "kernel_printf", None);
    "OpenGL ES compute is right on a G52" => |folder| kernels(folder, "g52", "gles_compute", None);
    "OpenGL ES compute is right on a G72" => |folder| kernels(folder, "g72", "gles_compute", None);
    "images of all formats are read and written" =>
        |folder| kernels(folder, "g52", "image_formats", None);
    "filled images hold the colour on a G52" => |folder| kernels(folder, "g52", "image_fill", None);
    "image samplers of every kind" => |folder| kernels(folder, "g52", "image_samplers", None);
    "a sample of piglit's OpenCL tests, one in ten" =>
        |folder| piglit::run_subset(folder, "g52", 10);
    "a sample of Arm Compute Library's operators is right" =>
        |folder| operators::run_subset(folder, "g52");
    "saxpy is right on the stock driver" => |folder| stock(folder, "saxpy");
    "acl-gemm is right on the stock driver" => |folder| stock(folder, "acl-gemm");
    "acl-conv is right on the stock driver" => |folder| stock(folder, "acl-conv");
    "record and replay saxpy" => |folder| record(folder, "saxpy");
    "record and replay acl-gemm" => |folder| record(folder, "acl-gemm");
    "record and replay acl-conv" => |folder| record(folder, "acl-conv");
    "record and replay digits" => |folder| record(folder, "digits");
    "record and replay lenet" => |folder| record(folder, "lenet");
    "record and replay decode" => |folder| record(folder, "decode");
    "record and replay saxpy on a G57" => |folder| record_on(folder, "saxpy", "g57", false);
    "saxpy is recorded on the stock driver by an ordinary user" =>
        |folder| user::stock(folder, "g52", "saxpy");
    "the recorder in user space: signals, imports, faults, forks, full disks" => user::cases;
    "both recorders say the same of digits" => |folder| user::both(folder, "g52", "digits");
    "both recorders say the same of saxpy on a G57" =>
        |folder| user::both(folder, "g57", "saxpy");
    "launches that depend on the step are named" => state::names_launches;
    "OpenCL calls name LeNet's kernels and tensors, and change nothing" => opencl::names;
    "a page that changes behind the recorder's back fails the recording" => recorder::notices;
    "what the app writes during a job is no change by the job" => recorder::leaves;
    "the recorder blocks no other device, waits for no fence, and records a binary driver twice" => recorder::holds;
    "hard cases of OpenCL, some of them, are recorded or refused" => cases::some;
    "an app for OpenGL ES is recorded by two traces and replayed with a third picture" => gles::unnoted;
    "the page about your own app does what it says" => page::own_app;
    "two replaced kernels are the re-recorded ones" =>
        |folder| pairs::replaced(folder, pairs::SAMPLE, false);
    "the nano driver compiles for three kernels without a complaint" =>
        |folder| silence(&complaints::nano(folder)?);
    "the nano driver is not built without what it needs of the kernel" =>
        |folder| silence(&complaints::unneeded(folder)?);
    "recorder and probes compile for three kernels without a complaint" =>
        |folder| silence(&complaints::recorder(folder)?);
    "replays, kills and a hostile client on the nano driver and /dev/mem, then panfrost again" =>
        devices;
    "replays, kills and wrong chains on the kernel's own driver" => panfrost;
    "a G57 on the kernel's own driver and on the nano driver replays as the model does" => valhall::devices;
    "panthor probes, sleeps, wakes, and runs several apps" =>
        |folder| panthor::awake(folder, "stock", (0, 0));
    "panthor replays as the model does, and survives kills and wrong streams" =>
        |folder| panthor::replays(folder, "stock", 2);
    "fills of images are refused by name on panthor, which goes on" => panthor::fills;
    "panthor's calls fail, some of them, and the next run is right" =>
        |folder| panthor::faults(folder, SOME_CALLS);
    "pages that a coherent GPU would see as copies are refused" => copies;
    "bad lists of accesses, on a kernel that would free an error" => lists;
    "linked chains are one submission on the nano driver, /dev/mem and bare metal" => linked::one_submission;
    "non-coherent caches: panfrost computes, saxpy is recorded and replays" => caches::panfrost;
    "the nano driver has a barrier at every access to a register" => barriers::nano;
    "a job on Arm's own driver is recorded and replays" => own_driver;
    "firmware answers" => checks::answers;
    "firmware writes a thousand characters from its own state" => checks::writes;
    "firmware keeps its state after faults at some calls" =>
        |folder| checks::recovers(folder, SOME_CALLS);
    "firmware refuses what is damaged or foreign" => checks::refuses;
    "firmware of others embeds the replayer" => checks::embedding;
    "firmware takes signed recordings only" => checks::signature;
    "a secure world replays what is signed" => optee::checks::short;
};

/// They add nothing about the driver to [`TESTS`]; `cargo xtask node` runs them too.
const ON_NODE: &[(&str, TestFunction)] = tests! {
    "kernels give the right values on a G31" => |folder| kernels(folder, "g31", "kernels", None);
    "kernels give the right values on a G76" => |folder| kernels(folder, "g76", "kernels", None);
    "kernels give the right values on a G72" => |folder| kernels(folder, "g72", "kernels", None);
    "images of all formats on a G72" => |folder| kernels(folder, "g72", "image_formats", None);
    "filled images hold the colour on a G72" => |folder| kernels(folder, "g72", "image_fill", None);
    "image samplers of every kind on a G72" =>
        |folder| kernels(folder, "g72", "image_samplers", None);
    "a sample of piglit's OpenCL tests passes" =>
        |folder| piglit::run_subset(folder, "g52", 1);
    "hard cases of OpenCL, all of them, are recorded with the right tensors or refused" =>
        |folder| cases::all(folder, "g52");
};

const LONG: &[(&str, TestFunction)] = tests! {
    "record and replay train-perceptron" => |folder| record(folder, "train-perceptron");
    "a transformer with a cache writes a thousand characters" => state::decodes;
    "training live, by replay and by NumPy agrees for some steps" => state::learns_a_little;
    "states on the nano driver: runs without end, and faults at some calls" =>
        |folder| state::nano(folder, SOME_CALLS);
    "programs of others are recorded with two inputs and replayed with a third" =>
        |folder| foreign::run_sample(folder, "g52");
    "non-coherent caches: the nano driver is right, and wrong without any one of its calls" => caches::nano;
    "the nano driver with a power domain, little memory, locked down, asleep" => around::nano;
    "what no app should do with OpenCL is recorded or refused on the stock driver" => cases::misused;
    "long: digits is recorded on the stock driver by an ordinary user" =>
        |folder| user::stock(folder, "g52", "digits");
    "long: lenet is recorded on the stock driver by an ordinary user" =>
        |folder| user::stock(folder, "g52", "lenet");
    "long: squeezenet-1.1 is recorded on the stock driver by an ordinary user" =>
        |folder| user::stock(folder, "g52", "squeezenet-1.1");
    "long: mobilenet-v1 is recorded on the stock driver by an ordinary user" =>
        |folder| user::stock(folder, "g52", "mobilenet-v1");
    "long: hard cases of OpenCL on a G57, all of them" => |folder| cases::all(folder, "g57");
    "long: programs of others are recorded with two inputs on panthor" =>
        |folder| foreign::run_sample(folder, "g610");
    "long: hard cases of OpenCL on a Mali-G610, and what no app should do" => cases::on_panthor;
    "long: panthor pings its firmware" =>
        |folder| panthor::awake(folder, "stock", (40, 2));
    "long: panthor of Linux 7 pings its firmware, sleeps, wakes, and runs several apps" =>
        |folder| panthor::awake(folder, "new", (40, 2));
    "long: panthor of Linux 7 replays as the model does, and survives kills and wrong streams" =>
        |folder| panthor::replays(folder, "new", 2);
    "long: every one of panthor's calls fails, and the next run is right" =>
        |folder| panthor::faults(folder, 1);
    "long: panthor survives fifty kills" =>
        |folder| panthor::replays(folder, "stock", 50);
    "long: saxpy is recorded on panthor by an ordinary user" =>
        |folder| user::stock(folder, "g610", "saxpy");
    "long: digits is recorded on panthor by an ordinary user" =>
        |folder| user::stock(folder, "g610", "digits");
    "long: lenet is recorded on panthor by an ordinary user" =>
        |folder| user::stock(folder, "g610", "lenet");
    "long: squeezenet-1.1 is recorded on panthor by an ordinary user" =>
        |folder| user::stock(folder, "g610", "squeezenet-1.1");
    "long: mobilenet-v1 is recorded on panthor by an ordinary user" =>
        |folder| user::stock(folder, "g610", "mobilenet-v1");
    "long: digits is recorded on a stock driver without coherent caches" =>
        |folder| user::non_coherent(folder, "digits");
    "long: both recorders say the same of an import" =>
        |folder| user::both_of_case(folder, "import");
    "long: both recorders say the same of handles that are closed early" =>
        |folder| user::both_of_case(folder, "freed");
    "long: both recorders say the same of saxpy" => |folder| user::both(folder, "g52", "saxpy");
    "long: both recorders say the same of digits on a G57" =>
        |folder| user::both(folder, "g57", "digits");
    "long: both recorders say the same of lenet" => |folder| user::both(folder, "g52", "lenet");
    "long: both recorders say the same of squeezenet-1.1" =>
        |folder| user::both(folder, "g52", "squeezenet-1.1");
    "long: both recorders say the same of mobilenet-v1" =>
        |folder| user::both(folder, "g52", "mobilenet-v1");
    "long: both recorders say the same of a program for PyOpenCL" =>
        |folder| user::both_of_others(folder, "pyopencl");
    "long: both recorders say the same of a loop for PyOpenCL" =>
        |folder| user::both_of_others(folder, "pyopencl-loop");
    "long: the kernel's own driver of three kernels, and without coherent caches" =>
        panfrost_elsewhere;
    "long: the change for panfrost's maintainers lets each fault be seen at once" =>
        panfrost_repaired;
    "long: all pairs of replaced kernels, and binaries that do not fit" =>
        |folder| pairs::replaced(folder, usize::MAX, true);
    "long: training live, by replay and by NumPy agrees for all steps" => state::learns;
    "long: states on the nano driver: faults at every call" =>
        |folder| state::nano(folder, 1);
    "long: firmware keeps its state after faults at every call" =>
        |folder| checks::recovers(folder, 1);
    "record and replay train-clblast" => |folder| record(folder, "train-clblast");
};

const SOME_CALLS: u32 = 40;

/// What a test has for itself, by a part of its name.
const USES: [(&str, u8); 9] = [
    ("firmware", FIRMWARE),
    ("secure world", FIRMWARE),
    ("bare metal", FIRMWARE),
    ("nano driver", MODULES),
    ("a coherent GPU", MODULES),
    ("bad lists", MODULES),
    // The driver gives the GPU's firmware 100 ms.
    ("panthor probes", ALONE),
    ("panthor replays", ALONE),
    ("panthor's calls", ALONE),
];
/// Directories of builds for bare metal.
const FIRMWARE: u8 = 1;
/// Directories of builds of the nano driver and its clients.
const MODULES: u8 = 2;

fn uses(name: &str) -> u8 {
    let used = USES.iter().filter(|(part, _)| name.contains(part));
    used.fold(0, |all, (_, one)| all | one)
}

impl Test {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let wanted = |name: &str| self.filter.as_ref().is_none_or(|part| name.contains(part));
        if self.list {
            for (name, _) in TESTS.iter().chain(ON_NODE).chain(LONG) {
                println!("{name}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        let long = LONG
            .iter()
            .filter(|(name, _)| self.filter.as_deref() == Some(*name));
        let on_node = match self.full || self.filter.is_some() {
            true => ON_NODE,
            false => &[],
        };
        let tests = TESTS.iter().chain(on_node);
        let tests = tests.filter(|(name, _)| wanted(name)).chain(long);
        let tests: Vec<_> = tests.map(|test| (uses(test.0), test)).collect();
        if tests.is_empty() {
            let part = self.filter.unwrap_or_default();
            let long: Vec<&str> = LONG.iter().map(|(name, _)| *name).collect();
            let long = long.into_iter().filter(|name| name.contains(&part));
            let named =
                long.map(|name| format!("; one that takes long is named in full: {name:?}"));
            let named = named.collect::<String>();
            return Err(Error::Usage(format!(
                "no test has {part:?} in its name (`guest test --list`){named}"
            )));
        }
        let folder = Folder::find()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
            payload::build_host_command(&folder)?;
        }
        let sum = run_all(&folder, tests, self.jobs);
        println!(
            "{} passed, {} failed, {} skipped",
            sum.passed, sum.failed, sum.skipped
        );
        Ok(ExitCode::from(u8::from(sum.failed > 0)))
    }
}

#[cfg(test)]
mod names {
    use super::*;

    #[test]
    fn every_part_of_a_name_is_of_a_test() {
        for (part, _) in USES {
            assert!(TESTS.iter().any(|(name, _)| name.contains(part)), "{part}");
        }
        assert_eq!(
            uses("linked on the nano driver and bare metal"),
            FIRMWARE | MODULES
        );
    }
}
