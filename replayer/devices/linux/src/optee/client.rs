// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session of the trusted application.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::abi::{self, Parameter};
use super::application::{
    APPLICATION, LOAD, MOST_RECORDING_BYTES, MOST_TENSOR_BYTES, MOST_TENSORS, RUN, UNLOAD, answer,
};
use super::entries;
use super::error::{Error, answered, io};
use super::shared::Shared;

/// libteec tries as many device numbers.
const DEVICES: u32 = 10;
/// For secure memory or the GPU.
const PATIENCE: Duration = Duration::from_secs(60);
/// For OP-TEE to load the application.
const LOADING: Duration = Duration::from_secs(15);
/// Waits outside the secure world, which has few threads.
const STEP: Duration = Duration::from_millis(10);
const CANCEL_ID: u32 = 1;

/// A session; drop closes it: the secure world resets the GPU and clears memory.
#[derive(Debug)]
pub struct Client {
    tee: Arc<File>,
    session: u32,
    to: Option<Shared>,
    from: Option<Shared>,
}

/// Cancels a [`Client`]'s runs.
#[derive(Clone, Debug)]
pub struct Canceller {
    tee: Arc<File>,
    session: u32,
}

impl Canceller {
    /// Ends the current run, if any; checked between and during chains.
    pub fn cancel(&self) {
        let mut which = abi::Cancel {
            cancel_id: CANCEL_ID,
            session: self.session,
        };
        // SAFETY: open descriptor, argument of the request's size. Who asks too late has no run to cancel.
        let _ = unsafe { abi::cancel(self.tee.as_raw_fd(), &mut which) };
    }
}

fn patiently<T>(
    stands: impl Fn(&Error) -> bool,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if stands(&error) && Instant::now() < until => std::thread::sleep(STEP),
            result => return result,
        }
    }
}

fn find(directory: &Path) -> Result<File, Error> {
    let mut last = Error::NoDriver {
        path: directory.join("tee0"),
    };
    for number in 0..DEVICES {
        let path = directory.join(format!("tee{number}"));
        match open_device(&path) {
            Ok(file) => return Ok(file),
            Err(Error::NoDriver { .. }) => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn open_device(path: &Path) -> Result<File, Error> {
    let here = || PathBuf::from(path);
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::NoDriver { path: here() },
        ErrorKind::PermissionDenied => Error::Permission { path: here() },
        _ => io(&path.display().to_string())(error),
    })?;
    let mut version = abi::Version::default();
    // SAFETY: open descriptor, argument of the request's size.
    unsafe { abi::version(file.as_raw_fd(), &mut version) }
        .map_err(|errno| io(&path.display().to_string())(errno.into()))?;
    match version.implementation {
        abi::OPTEE => Ok(file),
        implementation => Err(Error::NotOptee {
            path: here(),
            implementation,
        }),
    }
}

fn open_session(tee: &File) -> Result<u32, Error> {
    let mut open = abi::Open {
        application: APPLICATION,
        login: abi::LOGIN_PUBLIC,
        count: abi::PARAMETERS,
        ..abi::Open::default()
    };
    let mut buffer = abi::Buffer {
        address: (&raw mut open) as u64,
        length: size_of_val(&open) as u64,
    };
    // SAFETY: the buffer names `open`, which lives until the call returns.
    unsafe { abi::open_session(tee.as_raw_fd(), &mut buffer) }
        .map_err(|errno| io("open the trusted application")(errno.into()))?;
    match open.result {
        0 => Ok(open.session),
        answer::ITEM_NOT_FOUND => Err(Error::NoApplication),
        answer::OUT_OF_MEMORY => Err(Error::OutOfMemory),
        result => Err(Error::Other {
            what: "open the trusted application",
            result,
            origin: open.origin,
        }),
    }
}

impl Client {
    /// Waits up to a minute for secure memory.
    ///
    /// # Errors
    /// No OP-TEE, no access, no answer, or no application.
    pub fn open() -> Result<Self, Error> {
        Self::open_within(PATIENCE + LOADING)
    }

    /// Opens within a time. Without tee-supplicant, which has the application's file, the kernel would wait
    /// forever.
    ///
    /// # Errors
    /// As for [`Client::open`].
    pub fn open_within(time: Duration) -> Result<Self, Error> {
        let (sender, receiver) = mpsc::channel();
        // A stuck call ends with the process, or by a supplicant; the session then closes unused.
        let opens = move || {
            let _ = sender.send(Self::open_at_last());
        };
        if std::thread::Builder::new().spawn(opens).is_err() {
            return Self::open_at_last();
        }
        receiver.recv_timeout(time).unwrap_or_else(|_| {
            Err(Error::NoAnswer {
                seconds: time.as_secs(),
            })
        })
    }

    fn open_at_last() -> Result<Self, Error> {
        let tee = Arc::new(find(Path::new("/dev"))?);
        let session = patiently(
            |error| matches!(error, Error::OutOfMemory),
            || open_session(&tee),
        )?;
        Ok(Self {
            tee,
            session,
            to: None,
            from: None,
        })
    }

    /// Replaces an earlier pack; waits up to a minute for the GPU.
    ///
    /// # Errors
    /// The secure world refuses it.
    pub fn load(&mut self, pack: &[u8]) -> Result<(), Error> {
        fits("the pack", pack.len(), MOST_RECORDING_BYTES)?;
        let shared = Shared::new(&self.tee, pack.len())?;
        shared.write(pack);
        let parameters = [
            shared.parameter(abi::MEMORY_INPUT, pack.len()),
            value(),
            Parameter::default(),
            Parameter::default(),
        ];
        let began = Instant::now();
        patiently(
            |error| matches!(error, Error::Busy { .. }),
            || {
                let (result, origin, parameters) = self.invoke(LOAD, 0, parameters)?;
                if result == answer::BUSY {
                    return Err(Error::Busy {
                        seconds: began.elapsed().as_secs(),
                    });
                }
                let [_, status, ..] = parameters;
                judged("load the recording", (result, origin), &status)
            },
        )
    }

    /// `inputs` and `outputs`: index and bytes; a tensor in both has its value in `outputs`.
    ///
    /// # Errors
    /// Too many or too large tensors, failure or cancellation: nothing comes out, nothing stays loaded.
    pub fn run(
        &mut self,
        inputs: &[(u32, &[u8])],
        outputs: &mut [(u32, Vec<u8>)],
    ) -> Result<(), Error> {
        let count = inputs.len() + outputs.len();
        if count > MOST_TENSORS {
            return Err(Error::TooManyTensors {
                count,
                most: MOST_TENSORS,
            });
        }
        let (to, from) = (
            entries::length(inputs.iter().map(|(_, bytes)| bytes.len())),
            entries::length(outputs.iter().map(|(_, bytes)| bytes.len())),
        );
        fits("the inputs of a run", to, MOST_TENSOR_BYTES)?;
        fits("the outputs of a run", from, MOST_TENSOR_BYTES)?;
        let given = outputs
            .iter()
            .map(|(index, bytes)| (*index, bytes.as_slice()));
        let (input, output) = (
            entries::block(inputs.iter().copied()),
            entries::block(given),
        );
        let tee = self.tee.clone();
        let shared = room(&tee, &mut self.to, to)?;
        shared.write(&input);
        let first = shared.parameter(abi::MEMORY_INPUT, to);
        let shared = room(&tee, &mut self.from, from)?;
        shared.write(&output);
        let second = shared.parameter(abi::MEMORY_INOUT, from);
        let parameters = [first, second, value(), Parameter::default()];
        let called = self.invoke(RUN, CANCEL_ID, parameters);
        let result = called.and_then(|(result, origin, [_, _, status, _])| {
            judged("the run", (result, origin), &status)
        });
        let mut found = vec![0; from];
        if let Some(shared) = &self.from {
            shared.read(&mut found);
            shared.clear();
        }
        if let Some(shared) = &self.to {
            shared.clear();
        }
        result?;
        entries::take(&found, outputs.iter_mut().map(|(_, bytes)| bytes));
        Ok(())
    }

    /// Resets the GPU, clears memory, and lets others use it.
    ///
    /// # Errors
    /// The secure world does not answer.
    pub fn unload(&mut self) -> Result<(), Error> {
        let (result, origin, _) = self.invoke(UNLOAD, 0, [Parameter::default(); 4])?;
        judged("give the GPU back", (result, origin), &Parameter::default())
    }

    /// Cancels runs of this session.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            tee: self.tee.clone(),
            session: self.session,
        }
    }

    fn invoke(
        &self,
        command: u32,
        cancel_id: u32,
        parameters: [Parameter; 4],
    ) -> Result<(u32, u32, [Parameter; 4]), Error> {
        let mut call = abi::Invoke {
            command,
            session: self.session,
            cancel_id,
            count: abi::PARAMETERS,
            parameters,
            ..abi::Invoke::default()
        };
        let mut buffer = abi::Buffer {
            address: (&raw mut call) as u64,
            length: size_of_val(&call) as u64,
        };
        // SAFETY: the buffer names `call`, which lives until the call returns; shared memory is named by number, its
        // owners live as long as this client.
        unsafe { abi::invoke(self.tee.as_raw_fd(), &mut buffer) }
            .map_err(|errno| io("call the trusted application")(errno.into()))?;
        Ok((call.result, call.origin, call.parameters))
    }
}

/// The kernel closes sessions with the file's last user, which may be a [`Canceller`].
impl Drop for Client {
    fn drop(&mut self) {
        let mut which = abi::Close {
            session: self.session,
        };
        // SAFETY: open descriptor, argument of the request's size. A session that the secure world has lost is closed
        // already.
        let _ = unsafe { abi::close_session(self.tee.as_raw_fd(), &mut which) };
    }
}

fn value() -> Parameter {
    Parameter {
        kind: abi::VALUE_OUTPUT,
        ..Parameter::default()
    }
}

fn judged(what: &'static str, answer: (u32, u32), status: &Parameter) -> Result<(), Error> {
    // The application's values have 32 bits.
    let value = (status.a as u32, status.b as u32);
    match answer {
        (0, _) => Ok(()),
        answer => Err(answered(what, answer, value)),
    }
}

fn fits(what: &'static str, bytes: usize, most: usize) -> Result<(), Error> {
    match bytes <= most {
        true => Ok(()),
        false => Err(Error::TooLarge { what, bytes, most }),
    }
}

fn room<'a>(tee: &File, place: &'a mut Option<Shared>, bytes: usize) -> Result<&'a Shared, Error> {
    let shared = match place.take().filter(|shared| shared.len() >= bytes) {
        Some(shared) => shared,
        None => Shared::new(tee, bytes)?,
    };
    Ok(place.insert(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_tee_says_so() {
        let empty = std::env::temp_dir().join("gpureplay-no-such-directory");
        let error = find(&empty).unwrap_err();
        assert!(matches!(&error, Error::NoDriver { path } if *path == empty.join("tee0")));
        assert!(
            error.to_string().contains("tee0: no such device"),
            "{error}"
        );
        let error = open_device(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }

    #[test]
    fn waiting_ends() {
        let mut left = 3;
        let attempts = patiently(
            |error| matches!(error, Error::OutOfMemory),
            || {
                left -= 1;
                if left > 0 {
                    Err(Error::OutOfMemory)
                } else {
                    Ok(left)
                }
            },
        );
        assert!(matches!(attempts, Ok(0)));
        let other = patiently(|_| false, || Err::<(), _>(Error::Forged));
        assert!(matches!(other, Err(Error::Forged)));
    }
}
