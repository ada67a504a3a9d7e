// SPDX-License-Identifier: MIT OR Apache-2.0
//! The raw trace's file, of the first process that has a job. Errors are said once and end the recording, not the
//! app.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{mem, process, ptr};

use gpureplay_trace::{Begin, Driver, ErrorCode, Writer};

const PIECE: usize = 1 << 20;
/// Lowest number of the file, out of the app's way.
const HIGH: RawFd = 500;

pub(crate) struct Log {
    writer: Writer<Sink>,
}

impl Log {
    pub(crate) fn begin(path: &Path, begin: &Begin<'_>, time_ns: u64) -> io::Result<Log> {
        let sink = Sink {
            path: path.to_path_buf(),
            buffer: Vec::new(),
            target: Target::Waiting,
        };
        let writer = Writer::begin_at(sink, begin, Some(time_ns))?;
        Ok(Log { writer })
    }

    pub(crate) fn put(
        &mut self,
        time_ns: u64,
        write: impl FnOnce(&mut Writer<Sink>) -> io::Result<()>,
    ) {
        self.writer.set_time(time_ns);
        // What becomes of it is the sink's affair.
        let _ = write(&mut self.writer);
        let sink = self.writer.stream_mut();
        if sink.buffer.len() >= PIECE {
            sink.write_out();
        }
    }

    pub(crate) fn claim(&mut self) {
        let sink = self.writer.stream_mut();
        if matches!(sink.target, Target::Waiting) {
            // BEGIN comes before what another process may add.
            sink.write_out();
        }
    }

    pub(crate) fn end(self, time_ns: u64) {
        let mut writer = self.writer;
        writer.set_time(time_ns);
        let waits = matches!(writer.stream_mut().target, Target::Waiting);
        if let (false, Ok(mut sink)) = (waits, writer.end()) {
            sink.write_out();
        }
    }
}

pub(crate) struct Sink {
    path: PathBuf,
    /// Whole records, when it is written out.
    buffer: Vec<u8>,
    target: Target,
}

enum Target {
    /// No job yet: another process may have the first.
    Waiting,
    /// With device and number: an app may close numbers that it does not know.
    Open(File, Identity),
    Lost,
}

type Identity = (u64, u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !matches!(self.target, Target::Lost) {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn claim(&mut self) {
        if !matches!(self.target, Target::Waiting) {
            return;
        }
        self.target = match open(&self.path) {
            Ok(Some((file, identity))) => Target::Open(file, identity),
            Ok(None) => {
                say(&format!(
                    "{}: another process records into it already; what this one does on the GPU is not recorded, and no recording is made",
                    self.path.display()
                ));
                if let Err(error) = add_foreign(&self.path) {
                    say(&format!("{}: {error}", self.path.display()));
                }
                self.lost()
            }
            Err(error) => {
                say(&format!(
                    "{}: {error}; nothing is recorded, the app continues",
                    self.path.display()
                ));
                self.lost()
            }
        };
    }

    fn lost(&mut self) -> Target {
        self.buffer = Vec::new();
        Target::Lost
    }

    fn write_out(&mut self) {
        self.claim();
        let Target::Open(file, identity) = &mut self.target else {
            return;
        };
        let bytes = mem::take(&mut self.buffer);
        let written = still_open(file, *identity, &self.path).and_then(|()| {
            let written = file.write_all(&bytes);
            written.inspect_err(drop_signal)
        });
        match written {
            Ok(()) => {
                self.buffer = bytes;
                self.buffer.clear();
            }
            Err(error) => {
                say(&format!(
                    "{}: {error}; the recording ends here and is not complete, the app continues",
                    self.path.display()
                ));
                self.target = self.lost();
            }
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // The trace has all of the GPU's memory: only its owner may read it.
    options.append(true).create(true).mode(0o600).open(path)
}

/// `None`: another process writes or has written it.
fn open(path: &Path) -> io::Result<Option<(File, Identity)>> {
    let file = append(path)?;
    // SAFETY: a lock on an open file. The error tells of another process that has it.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        };
    }
    let status = file.metadata()?;
    if status.len() != 0 {
        return Ok(None);
    }
    // SAFETY: a second number for this function's own open file.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    let file = match high {
        // A process may have few files.
        ..0 => file,
        // SAFETY: the number was made above.
        _ => unsafe { File::from_raw_fd(high) },
    };
    Ok(Some((file, (status.dev(), status.ino()))))
}

fn still_open(file: &mut File, identity: Identity, path: &Path) -> io::Result<()> {
    let is = |file: &File| {
        let status = file.metadata();
        status.is_ok_and(|status| (status.dev(), status.ino()) == identity)
    };
    if is(file) {
        return Ok(());
    }
    let again = append(path)?;
    if !is(&again) {
        return Err(io::Error::other("it is another file than before"));
    }
    // The number is the app's now, or unused.
    let _ = mem::replace(file, again).into_raw_fd();
    Ok(())
}

fn add_foreign(path: &Path) -> io::Result<()> {
    let begin = Begin {
        driver: Driver::Panfrost,
        coherent: false,
        in_app: true,
        driver_name: "",
        kernel_release: "",
    };
    let mut writer = Writer::begin_at(Vec::new(), &begin, Some(0))?;
    writer.stream_mut().clear();
    writer.error(ErrorCode::Process, u64::from(process::id()))?;
    append(path)?.write_all(writer.stream_mut())
}

/// A failed write comes with a signal that is not for the app.
fn drop_signal(error: &io::Error) {
    let signal = match error.raw_os_error() {
        Some(libc::EFBIG) => libc::SIGXFSZ,
        Some(libc::EPIPE) => libc::SIGPIPE,
        _ => return,
    };
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut set = mem::MaybeUninit::uninit();
    // SAFETY: the set is emptied before use. The signal waits: the lock's holder has blocked it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigtimedwait(set.as_ptr(), ptr::null_mut(), &at_once);
    }
}

pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "gpureplay: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_trace::{Check, Problem, Reader};

    fn log(path: &Path) -> Log {
        let begin = Begin {
            driver: Driver::Panfrost,
            coherent: true,
            in_app: true,
            driver_name: "panfrost",
            kernel_release: "6.12",
        };
        Log::begin(path, &begin, 5).unwrap()
    }

    fn problem(path: &Path) -> Result<(), Problem> {
        let trace = std::fs::read(path).unwrap();
        let mut reader = Reader::new(trace.as_slice());
        let mut check = Check::new();
        while let Some(record) = reader.next_record().unwrap() {
            check.observe(&record)?;
        }
        check.finish()
    }

    #[test]
    fn the_first_process_with_a_job_has_the_trace_and_another_spoils_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        log(&path).end(7);
        assert!(!path.exists());
        let mut first = log(&path);
        first.claim();
        first.put(8, |trace| trace.note("one"));
        first.end(9);
        assert_eq!(problem(&path), Ok(()));
        let mut second = log(&path);
        second.claim();
        second.put(8, |trace| trace.note("two"));
        second.end(9);
        let detail = u64::from(process::id());
        assert!(
            matches!(problem(&path), Err(Problem::Reported { code: ErrorCode::Process, detail: found, .. }) if found == detail)
        );
    }

    #[test]
    fn a_second_process_is_named_while_the_first_one_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut first = log(&path);
        first.claim();
        let mut second = log(&path);
        second.claim();
        first.put(8, |trace| trace.note("one"));
        first.end(9);
        let problem = problem(&path).unwrap_err().to_string();
        assert!(problem.contains("another process"), "{problem}");
    }

    #[test]
    fn a_trace_whose_number_the_app_took_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let theirs = folder.path().join("theirs");
        let mut log = log(&path);
        log.claim();
        let Target::Open(file, _) = &log.writer.stream_mut().target else {
            panic!("not claimed");
        };
        let number = file.as_raw_fd();
        let their_file = File::create(&theirs).unwrap();
        // SAFETY: what an app does that closes every number.
        unsafe { libc::dup2(their_file.as_raw_fd(), number) };
        log.end(6);
        assert_eq!(problem(&path), Ok(()));
        assert_eq!(std::fs::read(&theirs).unwrap(), b"");
    }

    #[test]
    fn a_full_disk_ends_the_recording_only() {
        let mut log = log(Path::new("/dev/full"));
        log.claim();
        for _ in 0..20 {
            log.put(8, |trace| {
                trace.page(0, gpureplay_trace::Phase::Before, 0, &[1; 4096])
            });
        }
        log.writer.stream_mut().write_out();
        assert!(matches!(log.writer.stream_mut().target, Target::Lost));
        log.put(8, |trace| trace.note("more"));
        assert!(log.writer.stream_mut().buffer.is_empty());
        log.end(9);
    }
}
