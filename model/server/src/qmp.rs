// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's machine protocol: stop and continue.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const MAXIMUM_LINE: u64 = 1 << 20;

const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub(crate) enum QmpError {
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("QEMU closed the connection")]
    Closed,
    #[error("QEMU sent a line that is not JSON")]
    Syntax,
    #[error("QEMU refused {command}: {reason}")]
    Refused {
        command: &'static str,
        reason: String,
    },
}

pub(crate) struct Qmp {
    reader: BufReader<UnixStream>,
}

impl Qmp {
    pub(crate) fn connect(path: &Path) -> Result<Qmp, QmpError> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut qmp = Qmp {
            reader: BufReader::new(stream),
        };
        qmp.line()?;
        qmp.execute("qmp_capabilities")?;
        Ok(qmp)
    }

    /// Processors and clock.
    pub(crate) fn stop(&mut self) -> Result<(), QmpError> {
        self.execute("stop")
    }

    pub(crate) fn cont(&mut self) -> Result<(), QmpError> {
        self.execute("cont")
    }

    fn execute(&mut self, command: &'static str) -> Result<(), QmpError> {
        let request = format!("{{\"execute\":\"{command}\"}}\n");
        self.reader.get_mut().write_all(request.as_bytes())?;
        loop {
            let answer = self.line()?;
            if let Some(error) = answer.get("error") {
                let reason = error
                    .get("desc")
                    .and_then(|reason| reason.as_str())
                    .unwrap_or("?");
                return Err(QmpError::Refused {
                    command,
                    reason: reason.into(),
                });
            }
            // Events may come in between.
            if answer.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn line(&mut self) -> Result<serde_json::Value, QmpError> {
        let mut line = Vec::new();
        (&mut self.reader)
            .take(MAXIMUM_LINE)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(QmpError::Closed);
        }
        serde_json::from_slice(&line).map_err(|_| QmpError::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn events_are_skipped_and_refusals_named() {
        let path = std::env::temp_dir().join(format!("mali-qmp-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let qemu = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut commands = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut out = &stream;
            out.write_all(b"{\"QMP\":{}}\n").unwrap();
            for answers in [
                "{\"return\":{}}\n",
                "{\"event\":\"STOP\"}\n{\"return\":{}}\n",
                "{\"error\":{\"class\":\"GenericError\",\"desc\":\"no guest\"}}\n",
                "gibberish\n",
            ] {
                commands.next().unwrap().unwrap();
                out.write_all(answers.as_bytes()).unwrap();
            }
        });
        let mut qmp = Qmp::connect(&path).unwrap();
        qmp.stop().unwrap();
        assert_eq!(
            qmp.cont().unwrap_err().to_string(),
            "QEMU refused cont: no guest"
        );
        assert!(matches!(qmp.stop(), Err(QmpError::Syntax)));
        qemu.join().unwrap();
        assert!(qmp.cont().is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
