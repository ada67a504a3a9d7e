// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session in the secure world.

use std::collections::BTreeMap;

use gpureplay_format::{Opcode, SegmentKind};
use gpureplay_linux::optee::{Canceller, Client};
use gpureplay_sign::{RECORDING, SIGNATURE};
use mali_drive::names;

use super::{Session, State};
use crate::error::{Error, Result};
use crate::explain;
use crate::recording::Recording;
use crate::timing::Clock;

pub(super) struct Secure {
    client: Client,
    loaded: bool,
    /// Set-up has taken the weights.
    ran: bool,
}

impl Secure {
    pub(super) fn open() -> Result<Self> {
        let client = Client::open().map_err(|error| Error::Secure {
            text: error.to_string(),
            error,
        })?;
        Ok(Self {
            client,
            loaded: false,
            ran: false,
        })
    }

    /// Errors are ignored: a secure world that does not answer has nothing to forget.
    pub(super) fn unload(&mut self) {
        if std::mem::replace(&mut self.loaded, false) {
            let _ = self.client.unload();
        }
    }
}

impl Session {
    /// The trusted application has the GPU.
    ///
    /// # Errors
    /// There is no OP-TEE, or it lacks the application.
    pub fn in_secure_world(recording: Recording) -> Result<Self> {
        let state = State::Secure(Box::new(Secure::open()?));
        Ok(Self::with(recording, state, Clock::default()))
    }

    /// Canceller for other threads; secure world only.
    pub fn canceller(&self) -> Option<Canceller> {
        match &self.state {
            State::Secure(secure) => Some(secure.client.canceller()),
            _ => None,
        }
    }

    pub(super) fn is_secure(&self) -> bool {
        matches!(self.state, State::Secure(_))
    }

    /// `Mali-G52 r0p0, model`; in the secure world the recorded GPU, which it demands.
    pub fn description(&mut self) -> String {
        let id = self.recording.verified().recording().gpu_id();
        match self.is_secure() {
            true => format!("{}, OP-TEE", names::gpu(id)),
            false => self
                .device()
                .map_or_else(String::new, |device| device.description().to_owned()),
        }
    }

    pub(super) fn load_in_secure_world(&mut self) -> Result<()> {
        if matches!(&self.state, State::Secure(secure) if secure.loaded) {
            return Ok(());
        }
        if self.ignore_identity {
            return Err(Error::SecureWorld(
                "it replays on the GPU that was recorded only",
            ));
        }
        let files = self.recording.files();
        let mut contents = BTreeMap::from([(RECORDING.to_owned(), files.bytes.clone())]);
        let signature = files.signature()?;
        contents.extend(signature.map(|bytes| (SIGNATURE.to_owned(), bytes)));
        let pack = gpureplay_sign::pack(&contents).map_err(|error| Error::Package {
            path: files.path.clone(),
            reason: crate::trust::write_error(&error),
        })?;
        let State::Secure(secure) = &mut self.state else {
            return Ok(());
        };
        secure.ran = false;
        secure.client.load(&pack).map_err(explained)?;
        secure.loaded = true;
        Ok(())
    }

    pub(super) fn run_in_secure_world(&mut self) -> Result<()> {
        let State::Secure(secure) = &mut self.state else {
            return Ok(());
        };
        let (inputs, mut outputs) = self.bindings.handed_over(!secure.ran)?;
        let result = secure.client.run(&inputs, &mut outputs);
        drop(inputs);
        // An error clears everything in the secure world.
        (secure.loaded, secure.ran) = (result.is_ok(), result.is_ok());
        result.map_err(explained)?;
        self.bindings.took_back(outputs);
        self.clock.ran_in_secure_world(self.chains());
        Ok(())
    }

    fn chains(&self) -> u32 {
        let recording = self.recording.verified().recording();
        let segments = recording.segments().iter();
        segments
            .filter(|segment| segment.kind == SegmentKind::Run.code())
            .map(|segment| recording.count(segment, Opcode::Submit))
            .fold(0, u32::saturating_add)
    }
}

fn explained(error: gpureplay_linux::optee::Error) -> Error {
    Error::Secure {
        text: explain::secure(&error),
        error,
    }
}
