// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest run, with model server and QEMU.

use std::{
    borrow::Cow,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use nix::{time::clock_getcpuclockid, unistd::Pid};
use tempfile::TempDir;

use crate::{
    build::{payload, step::last_lines},
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        board::Board,
        driver::Driver,
        kernel_log,
        machine::{self, CHANNELS, Machine},
        secure_log::SecureLog,
        shader_cache,
    },
};

const KEPT_RUNS: usize = 80;
const MODEL_START: Duration = Duration::from_secs(10);

pub(crate) const SECURE_LOG: &str = "secure.log";

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) gpu: String,
    pub(crate) driver: Driver,
    pub(crate) cpu: String,
    pub(crate) memory: u32,
    /// Times do not depend on the host's load.
    pub(crate) counted: bool,
    pub(crate) timeout: Duration,
    /// An empty temporary directory if `None`.
    pub(crate) share: Option<PathBuf>,
    /// Mountable by the 9p tag `extra`, read-only.
    pub(crate) extra: Option<PathBuf>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) model_options: Vec<String>,
    pub(crate) kernel_options: Vec<String>,
    /// A new directory below `target/guest/runs` if `None`.
    pub(crate) logs: Option<PathBuf>,
    pub(crate) stream: bool,
    pub(crate) warm: bool,
    pub(crate) firmware: Option<PathBuf>,
    /// A complaint of the secure world ends the run.
    pub(crate) quiet_secure_world: bool,
    pub(crate) board: Board,
}

impl Options {
    pub(crate) fn sharing(driver: Driver, share: &Path) -> Self {
        Self {
            driver,
            share: Some(share.to_path_buf()),
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            gpu: "g52".into(),
            driver: Driver::Stock,
            cpu: machine::CPUS[0].into(),
            memory: machine::MEMORY,
            counted: false,
            timeout: Duration::from_secs(300),
            share: None,
            extra: None,
            environment: Vec::new(),
            model_options: Vec::new(),
            kernel_options: Vec::new(),
            logs: None,
            stream: false,
            warm: true,
            firmware: None,
            quiet_secure_world: false,
            board: Board::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    Timeout,
    /// Panic, power-off, or QEMU's death.
    GuestDied,
    ModelDied,
    NoDriver(String),
    SecureWorld(String),
}

pub(crate) type Checked = std::result::Result<(), String>;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) stdout: Vec<u8>,
    /// Per arrival of output: its bytes so far, and QEMU's processor time.
    pub(crate) pace: Vec<(usize, Duration)>,
    /// With kernel.log, model.log, stdout, stderr, qemu.log and secure.log.
    pub(crate) logs: PathBuf,
    pub(crate) faults: Vec<String>,
    /// Host seconds until the command's start.
    pub(crate) boot: Option<f64>,
    /// Host seconds in all.
    pub(crate) total: f64,
}

impl Outcome {
    /// Exit code 0, no faults in the kernel log.
    pub(crate) fn clean(&self) -> Checked {
        self.clean_but_for(|_| false)
    }

    pub(crate) fn clean_but_for(&self, known: impl Fn(&str) -> bool) -> Checked {
        let logs = self.logs.display();
        let mut faults = self.faults.iter().filter(|line| !known(line));
        match (&self.end, faults.next()) {
            (End::Exit(0), None) => Ok(()),
            (End::Exit(0), Some(fault)) => Err(format!("{fault}, logs: {logs}")),
            (end, _) => {
                let said = self.said();
                let last = said.lines().next_back().unwrap_or_default();
                Err(format!("{end:?} after `{last}`, logs: {logs}"))
            }
        }
    }

    pub(crate) fn said(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    pub(crate) fn print_logs(&self) {
        for (name, lines) in [
            ("kernel.log", 40),
            ("model.log", 20),
            ("qemu.log", 10),
            ("model.err", 10),
        ] {
            let text = last_lines(&self.logs.join(name), lines);
            if !text.is_empty() {
                eprintln!("--- last lines of {name}\n{text}");
            }
        }
        eprintln!("--- all logs: {}", self.logs.display());
    }
}

enum Event {
    Bytes(&'static str, Vec<u8>),
    Line(&'static str, String),
    Closed,
}

pub(crate) fn script(folder: &Folder, options: &Options, text: &str) -> Result<Outcome> {
    run(
        folder,
        options,
        Some(&["bash", "-c", text].map(String::from)),
    )
}

pub(crate) fn run(
    folder: &Folder,
    options: &Options,
    command: Option<&[String]>,
) -> Result<Outcome> {
    folder.require_built()?;
    let server = payload::model_server(folder)?;
    let logs = log_dir(folder, options)?;
    let private = tempfile::Builder::new()
        .prefix("gpureplay-")
        .tempdir()
        .map_err(Error::io("create", std::env::temp_dir()))?;
    let host = private.path().join("host");
    write_init_files(&host, options, command)?;
    let board = options.board.with_gpu(&options.gpu);
    board.files(folder, &host)?;
    if options.warm && options.driver != Driver::None {
        shader_cache::provide(folder, &options.gpu, &host)?;
    }
    let empty = private.path().join("share");
    files::create_dir(&empty)?;
    files::create_dir(folder.payload())?;
    let share = options.share.clone().unwrap_or(empty);

    let tree = board.tree(folder, &options.cpu, private.path())?;

    let (sender, events) = channel();
    listen(private.path(), &sender)?;
    let mut run = Running {
        model: start_model(&server, options, private.path(), &logs)?,
        qemu: None,
        start: Instant::now(),
        logs,
        stream: options.stream,
        stdout: Vec::new(),
        pace: Vec::new(),
        boot: None,
        exit: None,
        no_driver: None,
        faults: Vec::new(),
        _private: private,
    };
    let private = run._private.path().to_path_buf();
    run.wait_for_socket(&machine::socket(&private, "gpu"))?;
    let secure_log = run.logs.join(SECURE_LOG);
    let machine = Machine {
        folder,
        cpu: &options.cpu,
        memory: options.memory,
        counted: options.counted,
        private: &private,
        host: &host,
        payload: &folder.payload(),
        share: &share,
        extra: options.extra.as_deref(),
        kernel_options: &options.kernel_options,
        interactive: command.is_none(),
        tree: tree.as_deref(),
        firmware: options.firmware.as_deref(),
        secure_log: options.firmware.is_some().then_some(secure_log.as_path()),
    };
    run.start_qemu(machine.command(), command.is_none())?;
    drop(sender);
    let watched = options.firmware.is_some() && options.quiet_secure_world;
    let watched = watched.then(|| SecureLog::new(secure_log));
    run.watch(&events, options.timeout, watched)
}

struct Running {
    model: Child,
    qemu: Option<Child>,
    start: Instant,
    logs: PathBuf,
    stream: bool,
    stdout: Vec<u8>,
    pace: Vec<(usize, Duration)>,
    boot: Option<f64>,
    exit: Option<i32>,
    no_driver: Option<String>,
    faults: Vec<String>,
    _private: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.qemu.iter_mut().chain([&mut self.model]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    fn wait_for_socket(&mut self, socket: &Path) -> Result<()> {
        let begin = Instant::now();
        while !socket.exists() {
            let ended = self.model.try_wait().is_ok_and(|status| status.is_some());
            if ended || begin.elapsed() > MODEL_START {
                let log = last_lines(&self.logs.join("model.err"), 20);
                return Err(Error::Model(log));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn start_qemu(&mut self, mut command: Command, interactive: bool) -> Result<()> {
        let path = self.logs.join("qemu.log");
        let log = fs::File::create(&path).map_err(Error::io("create", &path))?;
        if interactive {
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        } else {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let child = command
            .stderr(log)
            .spawn()
            .map_err(Error::start("setpriv"))?;
        self.qemu = Some(child);
        Ok(())
    }

    fn watch(
        mut self,
        events: &Receiver<Event>,
        timeout: Duration,
        mut secure: Option<SecureLog>,
    ) -> Result<Outcome> {
        let mut files = LogFiles::create(&self.logs)?;
        let mut closed = 0;
        let mut end = None;
        let mut last_look: Option<Instant> = None;
        while closed < CHANNELS.len() {
            match events.recv_timeout(Duration::from_millis(50)) {
                Ok(Event::Closed) => closed += 1,
                Ok(event) => self.take(event, &mut files)?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if end.is_none() && self.start.elapsed() > timeout {
                end = Some(End::Timeout);
                self.kill_qemu();
            }
            if last_look.is_some_and(|look| look.elapsed() < Duration::from_millis(50)) {
                continue;
            }
            last_look = Some(Instant::now());
            // After the power-off TF-A may complain while QEMU still runs.
            let running = end.is_none() && self.exit.is_none();
            if let Some(log) = secure.as_mut().filter(|_| running)
                && !log.look().is_empty()
            {
                std::thread::sleep(Duration::from_millis(200));
                end = Some(End::SecureWorld(log.look().join("\n")));
                self.kill_qemu();
            }
            let model_ended = matches!(self.model.try_wait(), Ok(Some(_)));
            let qemu_ended = match self.qemu.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => false,
                Some(_) | None => true,
            };
            if model_ended && !qemu_ended && self.exit.is_none() && end.is_none() {
                // QEMU disconnects from the model before it ends.
                std::thread::sleep(Duration::from_millis(200));
                if matches!(self.qemu.as_mut().map(Child::try_wait), Some(Ok(None))) {
                    end = Some(End::ModelDied);
                    self.kill_qemu();
                }
            }
            if qemu_ended {
                // A channel that QEMU never opened stays silent.
                while let Ok(event) = events.recv_timeout(Duration::from_millis(200)) {
                    self.take(event, &mut files)?;
                }
                break;
            }
        }
        self.finish(end)
    }

    fn take(&mut self, event: Event, files: &mut LogFiles) -> Result<()> {
        match event {
            Event::Bytes("out", bytes) => {
                files.write("out", &bytes)?;
                if self.stream {
                    let mut out = io::stdout().lock();
                    let _ = out.write_all(&bytes).and_then(|()| out.flush());
                }
                self.stdout.extend_from_slice(&bytes);
                let used = self.processor_time().unwrap_or_default();
                self.pace.push((self.stdout.len(), used));
            }
            Event::Bytes(name, bytes) => {
                files.write(name, &bytes)?;
                if self.stream {
                    let _ = io::stderr().write_all(&bytes);
                }
            }
            Event::Line("console", line) => {
                files.write("console", format!("{line}\n").as_bytes())?;
                if kernel_log::is_fault(&line) {
                    self.faults.push(line);
                }
            }
            Event::Line(_, line) => self.control(&line),
            Event::Closed => {}
        }
        Ok(())
    }

    fn control(&mut self, line: &str) {
        if let Some(code) = line.strip_prefix("exit ") {
            self.exit = code.trim().parse().ok();
        } else if let Some(reason) = line.strip_prefix("no-driver ") {
            self.no_driver = Some(reason.to_owned());
        } else if line.starts_with("driver ") {
            self.boot = Some(self.start.elapsed().as_secs_f64());
        }
    }

    fn processor_time(&self) -> Option<Duration> {
        let pid = i32::try_from(self.qemu.as_ref()?.id()).ok()?;
        let clock = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
        Some(clock.now().ok()?.into())
    }

    fn kill_qemu(&mut self) {
        if let Some(qemu) = &mut self.qemu {
            let _ = qemu.kill();
        }
    }

    fn finish(mut self, end: Option<End>) -> Result<Outcome> {
        if let Some(qemu) = &mut self.qemu {
            let _ = qemu.wait();
        }
        // The model ends when QEMU disconnects, and may still write its log.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(2) && matches!(self.model.try_wait(), Ok(None))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let end = end.unwrap_or(match (self.exit, self.no_driver.take()) {
            (Some(code), _) => End::Exit(code),
            (None, Some(reason)) => End::NoDriver(reason),
            (None, None) => End::GuestDied,
        });
        Ok(Outcome {
            end,
            stdout: std::mem::take(&mut self.stdout),
            pace: std::mem::take(&mut self.pace),
            logs: self.logs.clone(),
            faults: std::mem::take(&mut self.faults),
            boot: self.boot,
            total: self.start.elapsed().as_secs_f64(),
        })
    }
}

struct LogFiles {
    console: fs::File,
    out: fs::File,
    err: fs::File,
}

impl LogFiles {
    fn create(dir: &Path) -> Result<LogFiles> {
        let create = |name: &str| {
            let path = dir.join(name);
            fs::File::create(&path).map_err(Error::io("create", path))
        };
        Ok(LogFiles {
            console: create("kernel.log")?,
            out: create("stdout")?,
            err: create("stderr")?,
        })
    }

    fn write(&mut self, channel: &str, bytes: &[u8]) -> Result<()> {
        let file = match channel {
            "console" => &mut self.console,
            "out" => &mut self.out,
            _ => &mut self.err,
        };
        file.write_all(bytes).map_err(Error::io("write", channel))
    }
}

fn listen(private: &Path, sender: &Sender<Event>) -> Result<()> {
    for name in CHANNELS {
        let path = machine::socket(private, name);
        let listener = UnixListener::bind(&path).map_err(Error::io("create", &path))?;
        let sender = sender.clone();
        std::thread::spawn(move || {
            if let Ok((stream, _)) = listener.accept() {
                if matches!(name, "console" | "control") {
                    read_lines(name, stream, &sender);
                } else {
                    read_bytes(name, stream, &sender);
                }
            }
            let _ = sender.send(Event::Closed);
        });
    }
    Ok(())
}

fn read_lines(name: &'static str, stream: impl Read, sender: &Sender<Event>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if sender.send(Event::Line(name, text)).is_err() {
            return;
        }
    }
}

fn read_bytes(name: &'static str, mut stream: impl Read, sender: &Sender<Event>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if sender
            .send(Event::Bytes(name, buffer[..count].to_vec()))
            .is_err()
        {
            return;
        }
    }
}

/// Mesa refuses the recorded G71's product id: drivers get Mesa's profile, direct register access silicon's.
fn profile(options: &Options) -> &str {
    match (options.gpu.as_str(), options.driver) {
        ("g71", Driver::Stock | Driver::Patched) => "g71-mesa",
        (gpu, _) => gpu,
    }
}

fn start_model(server: &Path, options: &Options, private: &Path, logs: &Path) -> Result<Child> {
    let path = logs.join("model.err");
    let error = fs::File::create(&path).map_err(Error::io("create", &path))?;
    let output = error.try_clone().map_err(Error::io("open", &path))?;
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(server)
        .args(["--gpu", profile(options), "--socket"])
        .arg(machine::socket(private, "gpu"))
        .arg("--qmp")
        .arg(machine::socket(private, "qmp"))
        .arg("--log")
        .arg(logs.join("model.log"))
        .args(options.board.model_options())
        .args(&options.model_options)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(error)
        .spawn()
        .map_err(Error::start("setpriv"))
}

fn write_init_files(host: &Path, options: &Options, command: Option<&[String]>) -> Result<()> {
    files::create_dir(host)?;
    let write = |name: &str, bytes: Vec<u8>| files::write(host.join(name), bytes);
    let first = options.board.with_gpu(&options.gpu).start(options.driver);
    let driver = match first {
        Some(_) => Driver::None,
        None => options.driver,
    };
    if let Some(command) = command {
        let words = first.iter().flatten().chain(command);
        let words = words.flat_map(|word| [word.as_bytes(), b"\0"]);
        write("command", words.flatten().copied().collect())?;
    }
    let environment: String = options
        .environment
        .iter()
        .map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''")))
        .collect();
    write("environment", environment.into_bytes())?;
    write("driver", driver.name().into())
}

fn log_dir(folder: &Folder, options: &Options) -> Result<PathBuf> {
    if let Some(logs) = &options.logs {
        files::create_dir(logs)?;
        return Ok(logs.clone());
    }
    let runs = folder.local.join("runs");
    files::create_dir(&runs)?;
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let logs = runs.join(format!("{seconds}-{}-{number}", std::process::id()));
    files::create_dir(&logs)?;
    let old = files::entries(&runs)?;
    let surplus = old.len().saturating_sub(KEPT_RUNS);
    for dir in old.iter().take(surplus) {
        let _ = fs::remove_dir_all(dir);
    }
    Ok(logs)
}
