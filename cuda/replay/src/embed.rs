// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded CUDA run as a recording of the library.
//!
//! Loads at a session's first run; states stay on the GPU. Host numbers are tensors of kind input.

mod session;

use std::ops::Range;
use std::path::Path;

use gpureplay_cuda_launch::recording::{Checked, Part, Port, Recording, Run};
use gpureplay_library::device::Choice;
use gpureplay_library::{
    Class, ElementType, Error, Layer, Options, Recorded, Replay, Result, TensorInfo, TensorKind,
    Trust,
};
use gpureplay_tensors::Form;

use crate::Gpu;
use crate::failure::Failure;
use crate::layers::{layers, parts};
use crate::number::shown;
use crate::signature::signed;
use crate::target::Target;
use session::CudaSession;

/// Opens any GPU's recording: a CUDA run (`DIR`, `DIR#runK`), a pack, or as
/// [`gpureplay_library::Recording::open_trusted`].
///
/// # Errors
/// Missing, damaged, breaks a rule, or not signed as demanded.
pub fn open(path: &Path, trust: &Trust) -> Result<Box<dyn Recorded>> {
    if let Some(run) = CudaRun::open(path, trust)? {
        return Ok(Box::new(run));
    }
    Ok(Box::new(match trust.key {
        None => gpureplay_library::Recording::open(path)?,
        Some(_) => gpureplay_library::Recording::open_trusted(path, trust)?,
    }))
}

/// Opens a recording from memory.
///
/// # Errors
/// Damaged, or breaks a rule.
pub fn from_bytes(bytes: Vec<u8>) -> Result<Box<dyn Recorded>> {
    if let Some(recording) = Recording::of_pack(&bytes) {
        return Ok(Box::new(CudaRun::of(recording, 0, &Trust::default())?));
    }
    Ok(Box::new(gpureplay_library::Recording::from_bytes(bytes)?))
}

fn other(failure: impl Into<Failure>) -> Error {
    let failure = failure.into();
    let class = match failure.exit_code() {
        2 => Class::Usage,
        3 => Class::Recording,
        4 => Class::Input,
        5 => Class::Device,
        _ => Class::Output,
    };
    Error::Other {
        class,
        source: Box::new(failure),
    }
}

/// A checked run of a recording.
#[derive(Clone)]
pub struct CudaRun {
    recording: Recording,
    run: Run,
    tensors: Vec<TensorInfo>,
    layers: Vec<Layer>,
    /// Operations of each layer.
    parts: Vec<Range<u32>>,
}

impl CudaRun {
    /// `None` without a CUDA recording.
    ///
    /// # Errors
    /// No run, or several unnamed; damaged, breaks a rule, or not signed as demanded.
    pub fn open(path: &Path, trust: &Trust) -> Result<Option<Self>> {
        let Some(Ok(target)) = path.to_str().map(str::parse::<Target>) else {
            return Ok(None);
        };
        let has = |part: &str| target.folder.join(part).is_dir();
        let is_folder = has("runs") && has("objects");
        let recording = match (is_folder, target.packed()) {
            (true, _) => target.recording().map_err(other)?,
            (false, Some(packed)) => packed,
            (false, None) => return Ok(None),
        };
        let number = target.run(&recording).map_err(other)?.ok_or_else(|| {
            let text = format!(
                "{}: names no whole run; single launches are for `gpureplay cuda run`",
                path.display()
            );
            other(Failure::Usage(text))
        })?;
        Self::of(recording, number, trust).map(Some)
    }

    fn of(recording: Recording, number: u32, trust: &Trust) -> Result<Self> {
        let run = match &trust.key {
            None => recording.run(number).map_err(other)?,
            Some(key) => {
                let minimum = trust.minimum_counter;
                let manifest = signed(&recording, (Part::Run, number), key, minimum);
                Run::parse(&manifest.map_err(other)?).map_err(other)?
            }
        };
        Ok(Self {
            tensors: tensors(&run)?,
            layers: layers(&run),
            parts: parts(&run),
            recording,
            run,
        })
    }
}

/// Inputs, host numbers, outputs.
fn tensors(run: &Run) -> Result<Vec<TensorInfo>> {
    let ports = [
        (TensorKind::Input, &run.inputs),
        (TensorKind::Output, &run.outputs),
    ];
    let [inputs, outputs] = ports.map(|(kind, ports)| {
        let ports = ports.iter().map(|port| of_port(kind, port));
        ports.collect::<Result<Vec<_>>>()
    });
    let numbers = run.numbers.iter().map(|number| TensorInfo {
        name: number.name.clone(),
        kind: TensorKind::Input,
        dtype: match shown(run.number(number, None)).contains(['.', 'e']) {
            true => ElementType::F32,
            false => ElementType::I32,
        },
        shape: Vec::new(),
        external: true,
        bytes: 4,
    });
    let mut all = inputs?;
    all.extend(numbers);
    all.extend(outputs?);
    Ok(all)
}

/// Bytes if the type is unknown.
fn of_port(kind: TensorKind, port: &Port) -> Result<TensorInfo> {
    let form = port.form.as_deref().map(str::parse::<Form>).transpose();
    let form = form.map_err(|error| other(Failure::Usage(error)))?;
    let (dtype, shape) = match form.filter(|form| form.bytes() == Some(port.size)) {
        Some(form) => {
            let shape = form.shape.iter().map(|extent| u64::from(*extent));
            (form.dtype, shape.collect())
        }
        None => (ElementType::U8, vec![port.size]),
    };
    Ok(TensorInfo {
        name: port.name.clone(),
        kind,
        dtype,
        shape,
        external: false,
        bytes: usize::try_from(port.size).unwrap_or(usize::MAX),
    })
}

impl Recorded for CudaRun {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn replay(&self, options: Options) -> Result<Box<dyn Replay>> {
        let refused = |text: String| Err(other(Failure::Usage(text)));
        if options.device != Choice::Best {
            return refused(
                "the recording is of CUDA and runs on an NVIDIA GPU; name no device".into(),
            );
        }
        if let Some(Checked {
            fault: Some(fault), ..
        }) = &self.run.checked
        {
            return refused(format!("the run does not hold for other inputs: {fault}"));
        }
        let gpu = Gpu::open(0).map_err(other)?;
        let found = gpu.info().capability;
        if found != self.run.device.capability {
            let [[old, of], [new, now]] = [self.run.device.capability, found];
            let text = format!(
                "recorded on {} (sm_{old}{of}), but this GPU is {} (sm_{new}{now})",
                self.run.device.name,
                gpu.info().name
            );
            return Err(Error::NoDevice(text));
        }
        Ok(Box::new(CudaSession::new(self.clone(), gpu)))
    }
}
