// SPDX-License-Identifier: MIT OR Apache-2.0
//! `list`, `info`, `verify`, `diff`: recordings without a GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_launch::image::{Allowance, MemberKind};
use gpureplay_cuda_launch::recording::{Hash, Launch, Owner, Part, Recording, RegionKind};

use crate::command::durations::{self, RowReport};
use crate::command::failure::{Failure, Outcome};
use crate::command::report::{bytes, gpu, line, say, sizes};
use crate::command::sign::Trust;
use crate::command::sums::Against;
use crate::command::target::Target;
use crate::command::whole;

/// List launches and whole runs of a recording
#[derive(Args)]
pub(crate) struct List {
    /// The recording.
    #[arg(value_name = "DIR")]
    target: Target,
    /// Say of each launch its file, and how often and how long launches of its kernel and size ran: a table of durations --json -o.
    #[arg(long, value_name = "FILE.json")]
    durations: Option<PathBuf>,
}

fn ran(durations: &[RowReport<'_>], launch: &Launch) -> String {
    let (grid, block) = (sizes(launch.grid), sizes(launch.block));
    let is_same = |row: &&RowReport<'_>| {
        row.kernel == launch.kernel && row.grid == grid && row.block == block
    };
    match durations.iter().find(is_same) {
        Some(row) => format!(
            "{} launches, mean {:.2} us, total {:.2} us",
            row.occurrences,
            row.total_us / row.occurrences.max(1) as f64,
            row.total_us
        ),
        None => "not in the table of durations".to_owned(),
    }
}

impl List {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        let durations = self.durations.as_deref().map(durations::read).transpose()?;
        for (number, launch) in self.target.launches(&recording)? {
            say!("{}", line(number, &launch));
            if let Some(durations) = &durations {
                say!("       launches/{number}.toml, {}", ran(durations, &launch));
            }
        }
        if self.target.number.is_none() {
            for number in recording.runs()? {
                say!("{}", whole::line(number, &recording.run(number)?));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Show a launch or a whole run
///
/// Of a launch: kernel, sizes, image, memory. Of a run: inputs, outputs, weights, kernels, and what was compared.
#[derive(Args)]
pub(crate) struct Info {
    /// The launch, DIR#K, or the whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
}

impl Info {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        if let Some(number) = self.target.run(&recording)? {
            whole::info(number, &recording.run(number)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let number = self.target.one(&recording)?;
        let launch = recording.launch(number)?;
        let Launch {
            kernel,
            origin,
            device,
            grid,
            block,
            shared,
            ..
        } = &launch;
        say!("kernel      {kernel}");
        say!(
            "launched    by {} in process {}{}, after {} others of this kernel",
            origin.entry,
            origin.process,
            origin
                .rank
                .map(|rank| format!(" of rank {rank}"))
                .unwrap_or_default(),
            origin.occurrence
        );
        say!("on          {}", gpu(device));
        say!(
            "sizes       grid {}, block {}, {shared} B dynamic shared memory",
            sizes(*grid),
            sizes(*block)
        );
        say!(
            "parameters  {} in {} bytes",
            launch.layout.len(),
            launch.parameters.len()
        );
        let image = recording
            .store()
            .image(launch.image.hash, launch.image.size)?;
        say!(
            "image       {}, {}",
            launch.image.hash,
            bytes(launch.image.size)
        );
        let damaged = |source| Failure::Image {
            path: self.target.folder.join("images"),
            source,
        };
        if let Some(kernel) =
            gpureplay_cuda_launch::image::kernel(&image, &launch.kernel).map_err(damaged)?
        {
            if let Some(registers) = kernel.registers {
                say!("registers   {registers}");
            }
            if let Some(most) = kernel.most_threads {
                say!(
                    "bounds      at most {} threads of a block",
                    // Three numbers of 32 bits have 96.
                    most.into_iter().map(u128::from).product::<u128>()
                );
            }
            if let Some(required) = kernel.required_threads {
                say!("bounds      block {} only", sizes(required));
            }
        }
        for piece in launch.pieces() {
            let (address, size) = (piece.address, bytes(piece.size));
            let changed = piece.after.map_or("", |_| ", changed");
            match piece.owner {
                Owner::Region(RegionKind::Host) => {
                    say!("region      {address:#x}, {size} of host memory{changed}");
                }
                Owner::Region(RegionKind::Device) => {
                    say!("region      {address:#x}, {size} of device memory{changed}");
                }
                Owner::Variable(name) => say!("variable    {name}, {size}{changed}"),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Check a recording without a GPU
///
/// Reads manifests and images, and compares every byte of memory with its hash.
#[derive(Args)]
pub(crate) struct Verify {
    /// The recording, or one launch of it.
    #[arg(value_name = "DIR")]
    target: Target,
    #[command(flatten)]
    trust: Trust,
}

impl Verify {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        let parts = self.target.parts(&recording)?;
        if parts.is_empty() && self.trust.is_demanded() {
            return Err(Failure::Untrusted {
                path: self.target.folder.clone(),
                reason: "holds no launches, so nothing in it is signed".into(),
            });
        }
        let (mut launches, mut runs) = (Vec::new(), Vec::new());
        for (part, number) in parts {
            match part {
                Part::Launch => launches.push((number, self.trust.launch(&recording, number)?)),
                Part::Run => runs.push(self.trust.run(&recording, number)?),
            }
        }
        self.images(&recording, &launches)?;
        let mut total = 0u64;
        let mut memory = recording.store().checker();
        for run in &runs {
            for (size, contents) in run.pieces() {
                memory.check(contents, size)?;
                total = total.saturating_add(size);
            }
            for image in &run.images {
                image.read(recording.store())?;
            }
        }
        for (number, launch) in &launches {
            for (size, contents) in launch.contents() {
                memory.check(contents, size)?;
                total = total.saturating_add(size);
            }
            if launch.changed() == 0 {
                say!(
                    "launch {number}: {} changes no memory; no replay of it can be told right",
                    launch.kernel
                );
            }
        }
        say!(
            "{} launches, {} of memory: as recorded",
            if runs.is_empty() {
                launches.len().to_string()
            } else {
                format!("{} whole runs, {}", runs.len(), launches.len())
            },
            bytes(total)
        );
        Ok(ExitCode::SUCCESS)
    }

    fn images(&self, recording: &Recording, launches: &[(u32, Launch)]) -> Result<(), Failure> {
        let mut wanted: BTreeMap<(Hash, u64), BTreeSet<&str>> = BTreeMap::new();
        for (_, launch) in launches {
            let image = (launch.image.hash, launch.image.size);
            wanted.entry(image).or_default().insert(&launch.kernel);
        }
        let damaged = |source| Failure::Image {
            path: self.target.folder.join("images"),
            source,
        };
        let mut allowance = Allowance::default();
        for ((hash, size), mut kernels) in wanted {
            let image = recording.store().image(hash, size)?;
            allowance.add_image(image.len());
            let mut parts = gpureplay_cuda_launch::image::parts(&image).map_err(damaged)?;
            parts.sort_by_key(|part| part.kind != MemberKind::Cubin);
            for part in parts {
                if kernels.is_empty() {
                    break;
                }
                let contents = part.contents_within(&mut allowance).map_err(damaged)?;
                for kernel in contents.kernels {
                    kernels.remove(&*kernel.name);
                }
            }
            if let Some(missing) = kernels.pop_first() {
                return Err(crate::ReplayError::NoKernel(missing.to_owned()).into());
            }
        }
        Ok(())
    }
}

/// Compare two launches, or a replay with the recorded run
///
/// Of a run, memory is compared after each operation, and the first that leaves it otherwise is named.
#[derive(Args)]
pub(crate) struct Diff {
    /// One launch; or a whole run, DIR#runK, with --against recorded.
    #[arg(value_name = "DIR#K")]
    one: Target,
    /// The other launch.
    #[arg(value_name = "DIR#K", required_unless_present = "against")]
    other: Option<Target>,
    #[command(flatten)]
    recorded: Against,
}

impl Diff {
    pub(crate) fn execute(&self) -> Outcome {
        let one = self.one.recording()?;
        let Some(other_target) = &self.other else {
            return self.recorded.execute(&self.one, &one);
        };
        let other = other_target.recording()?;
        let a = one.launch(self.one.one(&one)?)?;
        let b = other.launch(other_target.one(&other)?)?;
        let mut differences = Vec::new();
        let mut say = |what: &str, a: String, b: String| {
            if a != b {
                differences.push(format!("{what}: {a}, {b}"));
            }
        };
        say("kernel", a.kernel.clone(), b.kernel.clone());
        say("grid", sizes(a.grid), sizes(b.grid));
        say("block", sizes(a.block), sizes(b.block));
        say(
            "dynamic shared memory",
            a.shared.to_string(),
            b.shared.to_string(),
        );
        say("image", a.image.hash.to_string(), b.image.hash.to_string());
        say("GPU", a.device.name.clone(), b.device.name.clone());
        for (index, [offset, size]) in a.layout.iter().enumerate() {
            let value = |launch: &Launch| {
                let bytes = launch.parameters.get(*offset..offset + size).unwrap_or(&[]);
                bytes
                    .iter()
                    .rev()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            say(&format!("parameter {index}"), value(&a), value(&b));
        }
        say(
            "regions",
            a.regions.len().to_string(),
            b.regions.len().to_string(),
        );
        for (a, b) in a.regions.iter().zip(&b.regions) {
            let at = |what| format!("region {:#x} {what}", a.address);
            say(
                &at("address"),
                format!("{:#x}", a.address),
                format!("{:#x}", b.address),
            );
            say(&at("size"), a.size.to_string(), b.size.to_string());
            say(&at("before"), a.before.to_string(), b.before.to_string());
            let after = |after: Option<_>, before| after.unwrap_or(before);
            say(
                &at("after"),
                after(a.after, a.before).to_string(),
                after(b.after, b.before).to_string(),
            );
        }
        for (a, b) in a.variables.iter().zip(&b.variables) {
            say("variable", a.name.clone(), b.name.clone());
            say(
                &format!("variable {} before", a.name),
                a.before.to_string(),
                b.before.to_string(),
            );
        }
        if differences.is_empty() {
            say!("the launches are the same");
            return Ok(ExitCode::SUCCESS);
        }
        for difference in &differences {
            say!("{difference}");
        }
        Ok(ExitCode::from(1))
    }
}
