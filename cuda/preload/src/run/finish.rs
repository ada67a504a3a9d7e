// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a region into the recording.

use gpureplay_cuda_launch::recording::{
    self as recording, FORMAT, Memory, Operation, Port, Range, Run, RunImage, RunVariable, Store,
};

use super::log::{Log, Outcome, Result, idle};
use crate::memory::{Kind, Piece};
use crate::real::driver;
use crate::record::{self, Held, HeldVariable, because};
use crate::settings::{Record, Region};
use crate::state::limits;

impl Log {
    /// Takes results that are still being copied. The gate is closed.
    pub(super) fn outputs_read(mut self, settings: &Record) -> Result<Self> {
        idle(settings)?;
        for outcome in &mut self.outputs {
            if let Outcome::Coming(buffer, size) = *outcome {
                *outcome = Outcome::Bytes(super::host_bytes(buffer as u64, size));
                let driver = driver().map_err(because("no driver"))?;
                // SAFETY: our buffer; the copy into it has ended. A failure leaves memory that the process gives back.
                let _ = unsafe { driver.cuMemFreeHost(buffer as *mut _) };
            }
        }
        match self.refusal.take() {
            Some(reason) => Err(reason),
            None if self.outputs.is_empty() => {
                Err("nothing is copied to the host in the region, so nothing would show that a replay is right".into())
            }
            None => Ok(self),
        }
    }

    fn reached(&self, settings: &Record, others: &[Operation]) -> Result<Vec<Piece>> {
        let mut reach = self.memory.snapshot();
        for operation in self.operations.iter().chain(others) {
            reach.scan(&operation.host_bytes());
        }
        for input in &self.inputs {
            reach.scan(input);
        }
        for (_, variable) in &self.variables {
            reach.scan(&variable.held.before);
        }
        if settings.all_memory {
            reach.reach_all();
        }
        let mut found = Vec::new();
        while let Some(piece) = reach.next() {
            record::may_hold(&piece, &self.device)?;
            // Launches that reach host memory were refused: here it is no address.
            if piece.kind == Kind::Host {
                continue;
            }
            for (_, bytes) in self.held(piece.address, piece.size) {
                reach.scan(bytes);
            }
            found.push(piece);
        }
        found.sort_unstable_by_key(|piece| piece.address);
        Ok(found)
    }

    /// Contents at the region's beginning, ascending.
    fn held(&self, address: u64, size: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let end = address + size;
        let first = self
            .before
            .partition_point(|(start, bytes)| start + bytes.len() as u64 <= address);
        let inside = self.before[first..]
            .iter()
            .take_while(move |(start, _)| *start < end);
        inside.map(|(start, bytes)| (*start, bytes.as_slice()))
    }

    /// Takes variables of images without launches, such as constants of another library's kernels.
    fn take_variables(&mut self, reached: &[Piece]) -> Result<()> {
        for piece in reached.iter().filter(|piece| piece.kind == Kind::Variable) {
            let mut known = self.variables.iter();
            if known.any(|(_, known)| known.held.address == piece.address) {
                continue;
            }
            let bytes = self.held(piece.address, piece.size).next();
            let (Some((_, bytes)), Some(asked)) = (bytes, self.asked.get(&piece.address)) else {
                return Err("it uses a variable that cannot be read".into());
            };
            let held = Held::of_device(piece.address, bytes.to_vec());
            let asked = asked.clone();
            let image = self.image(&asked.image)?;
            let name = asked.name;
            self.variables.push((image, HeldVariable { name, held }));
        }
        Ok(())
    }

    /// Later allocations have no contents.
    fn stored(&self, store: &Store, reached: &[Piece]) -> Result<Vec<Memory>> {
        let mut memory = Vec::new();
        let fresh = |address, end| Memory {
            address,
            size: end - address,
            contents: None,
        };
        for Piece {
            address,
            size,
            kind,
            ..
        } in reached.iter().copied()
        {
            if kind == Kind::Variable {
                continue;
            }
            let (mut at, end) = (address, address + size);
            for (start, bytes) in self.held(address, size) {
                if start > at {
                    memory.push(fresh(at, start));
                }
                let contents = Some(store.put(bytes).map_err(|error| error.to_string())?);
                memory.push(Memory {
                    address: start,
                    size: bytes.len() as u64,
                    contents,
                });
                at = start + bytes.len() as u64;
            }
            if at < end {
                memory.push(fresh(at, end));
            }
        }
        Ok(memory)
    }

    pub(super) fn run(
        mut self,
        store: &Store,
        settings: &Record,
        others: &[Operation],
    ) -> Result<Run> {
        let told = |error: recording::RecordingError| error.to_string();
        let reached = self.reached(settings, others)?;
        self.take_variables(&reached)?;
        let memory = self.stored(store, &reached)?;
        let mut images = Vec::new();
        for image in &self.images {
            images.push(RunImage {
                hash: store.put_image(&image.bytes).map_err(told)?,
                size: image.bytes.len() as u64,
                reduced: None,
            });
        }
        let mut variables = Vec::new();
        for (image, variable) in &self.variables {
            variables.push(RunVariable {
                image: *image,
                name: variable.name.clone(),
                address: variable.held.address,
                size: variable.held.before.len() as u64,
                contents: store.put(&variable.held.before).map_err(told)?,
            });
        }
        let port = |name: String, bytes: &[u8]| {
            let other = settings.names.iter().find(|(old, _)| *old == name);
            Ok::<_, String>(Port {
                name: other.map_or(name, |(_, new)| new.clone()),
                size: bytes.len() as u64,
                contents: store.put(bytes).map_err(told)?,
                form: None,
            })
        };
        let mut inputs = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            inputs.push(port(format!("in{number}"), input)?);
        }
        let mut outputs = Vec::new();
        for (number, output) in self.outputs.iter().enumerate() {
            if let Outcome::Bytes(bytes) = output {
                outputs.push(port(format!("out{number}"), bytes)?);
            }
        }
        Ok(Run {
            format: FORMAT,
            region_of: match &settings.run {
                Some(Region::Launches(first, end)) => format!("launches {first} to before {end}"),
                Some(Region::Turn) => "a turn that was found".into(),
                Some(Region::Nvtx(name)) => format!("the range {name}"),
                _ => "cuProfilerStart to cuProfilerStop".into(),
            },
            process: std::process::id(),
            rank: record::rank(),
            weights: None,
            device: self.device,
            limits: limits(),
            checked: None,
            sums: Vec::new(),
            streams: self.streams,
            images,
            kernels: self.kernels,
            memory,
            variables,
            inputs,
            outputs,
            numbers: Vec::new(),
            turns: Vec::new(),
            tensors: Vec::new(),
            ranges: self.ranges.into_iter().filter_map(Range::named).collect(),
            operations: self.operations,
        })
    }
}
