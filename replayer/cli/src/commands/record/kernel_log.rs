// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU driver complaints in the kernel log.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;

pub(super) struct KernelLog(File);

impl KernelLog {
    /// `None` if unreadable: then only the jobs' own status tells of faults.
    pub(super) fn open() -> Option<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open("/dev/kmsg")
            .ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    pub(super) fn first_fault(mut self) -> Option<String> {
        let mut record = [0; 8192];
        // An overwritten record is an error, and the next follows.
        for _ in 0..100_000 {
            match self.0.read(&mut record) {
                Ok(0) => return None,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let message = text.split_once(';').map_or(&*text, |(_, message)| message);
                    let message = message.lines().next().unwrap_or("");
                    if is_gpu_fault(message) {
                        return Some(message.to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return None,
            }
        }
        None
    }
}

fn is_gpu_fault(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let gpu = ["panfrost", "mali", "gpureplay", "kbase"]
        .iter()
        .any(|driver| line.contains(driver));
    let fault = ["fault", "timeout", "timed out", "error", "stuck", "warning"]
        .iter()
        .any(|word| line.contains(word));
    gpu && fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_from_other_lines() {
        assert!(is_gpu_fault(
            "panfrost 0000:00:02.0: js fault, js=1, status=DATA_INVALID_FAULT"
        ));
        assert!(is_gpu_fault(
            "panfrost fde60000.gpu: gpu sched timeout, js=1, config=0x7b00"
        ));
        assert!(is_gpu_fault(
            "panfrost fde60000.gpu: Unhandled Page fault in AS0 at VA 0x0"
        ));
        assert!(!is_gpu_fault(
            "panfrost fde60000.gpu: clock rate = 500000000"
        ));
        assert!(!is_gpu_fault(
            "usb 1-1: device descriptor read/64, error -71"
        ));
    }
}
