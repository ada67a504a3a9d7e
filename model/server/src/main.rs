// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU model as a PCI device for QEMU over vfio-user.
//!
//! One process per guest: a thread answers QEMU, one runs chains, one stops the guest meanwhile. It ends with QEMU.

#![forbid(unsafe_code)]

mod config_space;
mod connection;
mod device;
mod intx;
mod logging;
mod outside;
mod protocol;
mod qmp;
mod warden;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use gpureplay_memory::Cached;
use mali_model::{FaultPolicy, Level, Log, Machine, Options, Product};

use crate::connection::{Connection, Socket};
use crate::device::Device;
use crate::logging::{Messages, RegisterLog};
use crate::warden::{Monitor, Warden};

const EXAMPLES: &str = "Examples:
  mali-vfio-user --gpu g52 --socket run/gpu.sock --qmp run/qmp.sock --log run/model.log

  and then, with guest memory that the model can map:

  qemu-system-aarch64 -M virt,gic-version=3,memory-backend=ram0 -cpu cortex-a57 -smp 2 -m 2G \\
    -object memory-backend-memfd,id=ram0,size=2G,share=on \\
    -qmp unix:run/qmp.sock,server=on,wait=off \\
    -device '{\"driver\":\"vfio-user-pci\",\"addr\":\"01.0\",
              \"socket\":{\"type\":\"unix\",\"path\":\"run/gpu.sock\"}}' ...

Exit codes: 0 the guest has ended, 1 something failed (it is named), 2 wrong usage.";

fn product(name: &str) -> Result<Product, String> {
    Product::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Product::names().collect();
        format!("no such GPU; there are {}", names.join(", "))
    })
}

/// A Mali GPU model as a PCI device for QEMU 10.1 or newer (vfio-user).
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    /// Socket to listen on for QEMU's vfio-user-pci device; its directory is made with mode 700 if missing
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,

    /// QEMU's QMP socket, for stopping the guest while a job runs; without it drivers may time out
    #[arg(long, value_name = "PATH")]
    qmp: Option<PathBuf>,

    /// GPU to model
    #[arg(long, default_value = "g52", value_parser = product)]
    gpu: Product,

    /// Host threads that run work groups [default: one for each processor]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,

    /// File for messages [default: standard error]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Least important messages to log
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,

    /// File for every register access in order: direction, offset, value, name
    #[arg(long, value_name = "FILE")]
    register_log: Option<PathBuf>,

    /// Milliseconds that a job may run before the guest is stopped
    #[arg(long, value_name = "MS", default_value_t = 20)]
    grace: u64,

    /// Seconds after which the guest continues although a job runs, so that its driver times out
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    job_limit: u64,

    /// GPU and processor do not see each other's caches until a module in the guest says what was cleaned and invalidated
    /// (tools/guest/modules)
    #[arg(long)]
    non_coherent: bool,

    /// A module in the guest may switch the GPU's power off (tools/guest/modules)
    #[arg(long)]
    power_domain: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogLevel {
    Error,
    Warning,
    Info,
    Debug,
}

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mali-vfio-user: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let level = match arguments.log_level {
        LogLevel::Error => Level::Error,
        LogLevel::Warning => Level::Warning,
        LogLevel::Info => Level::Info,
        LogLevel::Debug => Level::Debug,
    };
    let file = |path: &PathBuf, error| format!("cannot write {}: {error}", path.display());
    let log: Arc<dyn Log> = match &arguments.log {
        Some(path) => Arc::new(Messages::new(Some(path), level).map_err(|e| file(path, e))?),
        None => Arc::new(Messages::new(None, level)?),
    };
    let registers = match &arguments.register_log {
        Some(path) => Some(RegisterLog::new(path).map_err(|e| file(path, e))?),
        None => None,
    };
    let socket = Socket::new(&arguments.socket)?;
    log.write(
        Level::Info,
        format_args!(
            "{} on {}",
            arguments.gpu.profile().gpu_id,
            arguments.socket.display()
        ),
    );
    let warden = arguments.qmp.as_ref().map(|_| {
        Warden::new(
            Duration::from_millis(arguments.grace),
            Duration::from_secs(arguments.job_limit),
        )
    });
    let memory = match arguments.non_coherent {
        true => Cached::apart()?,
        false => Cached::coherent(),
    };
    let device = device(arguments, memory, registers, &log, warden.clone());
    let mut connection = socket.accept()?;
    let result = thread::scope(|scope| {
        scope.spawn(|| device.run_jobs());
        if let (Some(warden), Some(path)) = (&warden, &arguments.qmp) {
            let mut monitor = Monitor::new(path.clone(), log.clone());
            scope.spawn(move || warden.watch(&mut monitor));
        }
        let result = converse(&mut connection, &device, &*log);
        let totals = device.quit();
        if let Some(warden) = &warden {
            warden.quit();
        }
        log.write(
            Level::Info,
            format_args!(
                "the guest has ended: {} register reads, {} writes, {} interrupts",
                totals.reads, totals.writes, totals.interrupts
            ),
        );
        result
    });
    result.inspect_err(|error| log.write(Level::Error, format_args!("{error}")))
}

fn device(
    arguments: &Arguments,
    memory: Cached,
    registers: Option<RegisterLog>,
    log: &Arc<dyn Log>,
    warden: Option<Arc<Warden>>,
) -> Arc<Device> {
    // The model calls its owner back.
    let this: Arc<OnceLock<Weak<Device>>> = Arc::default();
    let stalled = {
        let this = this.clone();
        Arc::new(move |begins| {
            if let Some(device) = this.get().and_then(Weak::upgrade) {
                device.stalled(begins);
            }
        })
    };
    let options = Options {
        threads: arguments.threads,
        faults: FaultPolicy::Stall,
        log: log.clone(),
        stalled: Some(stalled),
        ..Options::default()
    };
    let gpu = Machine::new(arguments.gpu, Arc::new(memory), options);
    let outside = (arguments.non_coherent || arguments.power_domain).then(outside::Registers::new);
    let device = Arc::new(Device::new(gpu, registers, outside, log.clone(), warden));
    let _ = this.set(Arc::downgrade(&device));
    device
}

fn converse(
    connection: &mut Connection,
    device: &Device,
    log: &dyn Log,
) -> Result<(), Box<dyn Error>> {
    while let Some(message) = connection.receive()? {
        let header = message.header;
        if !header.is_command() {
            log.write(
                Level::Warning,
                format_args!("a reply to nothing: {header:?}"),
            );
            continue;
        }
        let result = device.handle(&header, &message.body, message.fds);
        if !header.wants_reply() {
            continue;
        }
        let reply = match result {
            Ok(body) => header.reply(&body),
            Err(errno) => {
                log.write(Level::Debug, format_args!("error {errno} for {header:?}"));
                header.error(errno)
            }
        };
        connection.send(&reply)?;
    }
    Ok(())
}
