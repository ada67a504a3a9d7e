// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives a run's operations to the driver, to run or to capture.
//!
//! Streams begin after the main one and end before it. What the host waited for is an event for later operations;
//! replays themselves do not wait.

use std::cell::RefCell;
use std::collections::HashMap;

use gpureplay_cuda_launch::abi::{
    Copy3d, Handle, LaunchAttribute, LaunchConfiguration, MemsetNode, Status, attribute,
};
use gpureplay_cuda_launch::recording::{Operation, Run, Side, StreamKind};

use super::images::Images;
use super::ports::Ports;
use crate::error::driver;
use crate::{Gpu, ReplayError};

type Done = Result<(), ReplayError>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    All,
    NoLaunches,
    /// Operations by number: the first, and one past the last.
    Part(u32, u32),
}

struct Lane {
    stream: Handle,
    kind: StreamKind,
    begun: bool,
    waits: usize,
    default_must_wait: bool,
    must_wait_for_default: bool,
}

/// Kept from run to run: making streams and events is slow.
#[derive(Default)]
pub(super) struct Pool {
    streams: Vec<Handle>,
    events: Vec<Handle>,
}

impl Pool {
    pub(super) fn destroy(&mut self, gpu: &Gpu) {
        for stream in self.streams.drain(..) {
            // SAFETY: our idle stream.
            let _ = unsafe { gpu.driver.cuStreamDestroy_v2(stream) };
        }
        for event in self.events.drain(..) {
            // SAFETY: our event.
            let _ = unsafe { gpu.driver.cuEventDestroy_v2(event) };
        }
    }
}

pub(super) struct Issuer<'a> {
    gpu: &'a Gpu,
    run: &'a Run,
    images: &'a Images,
    ports: &'a Ports,
    main: Handle,
    pool: &'a RefCell<Pool>,
}

impl<'a> Issuer<'a> {
    pub(super) fn new(
        gpu: &'a Gpu,
        run: &'a Run,
        images: &'a Images,
        ports: &'a Ports,
        main: Handle,
        pool: &'a RefCell<Pool>,
    ) -> Result<Self, ReplayError> {
        let mut streams = pool.borrow_mut();
        while streams.streams.len() < run.streams.len() {
            let mut stream = 0;
            // SAFETY: a pointer to a local.
            let status = unsafe {
                gpu.driver
                    .cuStreamCreate(&raw mut stream, attribute::stream::NON_BLOCKING)
            };
            driver("cuStreamCreate", status)?;
            streams.streams.push(stream);
        }
        drop(streams);
        Ok(Self {
            gpu,
            run,
            images,
            ports,
            main,
            pool,
        })
    }

    pub(super) fn issue(&self, what: What) -> Done {
        let pool = &mut *self.pool.borrow_mut();
        let of = |(number, stream): (usize, &gpureplay_cuda_launch::recording::Stream)| Lane {
            stream: match stream.kind {
                StreamKind::Default => self.main,
                _ => pool.streams[number],
            },
            kind: stream.kind,
            begun: false,
            waits: 0,
            default_must_wait: false,
            must_wait_for_default: true,
        };
        let lanes = self.run.streams.iter().enumerate().map(of).collect();
        let mut turn = Turn {
            issuer: self,
            lanes,
            pool: &mut pool.events,
            used: 0,
            begin: 0,
            events: HashMap::new(),
            waits: Vec::new(),
        };
        turn.begin = turn.recorded(self.main)?;
        for (number, operation) in (0..).zip(&self.run.operations) {
            let is_wanted = match what {
                What::All => true,
                What::NoLaunches => !matches!(operation, Operation::Launch { .. }),
                What::Part(first, end) => (first..end).contains(&number),
            };
            if is_wanted {
                turn.operation(operation)?;
            }
        }
        turn.join_all()
    }

    fn check(&self, call: &'static str, status: Status) -> Done {
        driver(call, status)
    }

    fn moved(&self, address: u64) -> u64 {
        self.images.moves().moved(address).unwrap_or(address)
    }
}

struct Turn<'a> {
    issuer: &'a Issuer<'a>,
    lanes: Vec<Lane>,
    pool: &'a mut Vec<Handle>,
    used: usize,
    begin: Handle,
    events: HashMap<u32, Handle>,
    waits: Vec<Handle>,
}

impl Turn<'_> {
    fn recorded(&mut self, stream: Handle) -> Result<Handle, ReplayError> {
        let driver_ = &self.issuer.gpu.driver;
        if self.used == self.pool.len() {
            let mut event = 0;
            // SAFETY: a pointer to a local.
            let status = unsafe { driver_.cuEventCreate(&raw mut event, NO_TIMES) };
            driver("cuEventCreate", status)?;
            self.pool.push(event);
        }
        let event = self.pool[self.used];
        self.used += 1;
        // SAFETY: our event and stream.
        driver("cuEventRecord", unsafe {
            driver_.cuEventRecord(event, stream)
        })?;
        Ok(event)
    }

    fn waits(&self, stream: Handle, event: Handle) -> Done {
        // SAFETY: our stream and event.
        let status = unsafe { self.issuer.gpu.driver.cuStreamWaitEvent(stream, event, 0) };
        self.issuer.check("cuStreamWaitEvent", status)
    }

    fn join(&mut self, from: Handle, to: Handle) -> Done {
        if from == to {
            return Ok(());
        }
        let event = self.recorded(from)?;
        self.waits(to, event)
    }

    /// Orders the stream after all that must precede its next operation.
    fn lane(&mut self, number: u32) -> Result<Handle, ReplayError> {
        let number = number as usize;
        let (stream, kind) = (self.lanes[number].stream, self.lanes[number].kind);
        if !self.lanes[number].begun {
            self.lanes[number].begun = true;
            if stream != self.main() {
                self.waits(stream, self.begin)?;
            }
        }
        for wait in self.lanes[number].waits..self.waits.len() {
            self.waits(stream, self.waits[wait])?;
        }
        self.lanes[number].waits = self.waits.len();
        match kind {
            StreamKind::Default => {
                for other in 0..self.lanes.len() {
                    let lane = &mut self.lanes[other];
                    if lane.kind == StreamKind::Blocking {
                        lane.must_wait_for_default = true;
                        if std::mem::take(&mut lane.default_must_wait) {
                            let from = lane.stream;
                            self.join(from, stream)?;
                        }
                    }
                }
            }
            StreamKind::Blocking => {
                self.lanes[number].default_must_wait = true;
                let has_default = self
                    .lanes
                    .iter()
                    .any(|lane| lane.kind == StreamKind::Default);
                if std::mem::take(&mut self.lanes[number].must_wait_for_default) && has_default {
                    self.join(self.main(), stream)?;
                }
            }
            StreamKind::Free => {}
        }
        Ok(stream)
    }

    fn main(&self) -> Handle {
        self.issuer.main
    }

    fn operation(&mut self, operation: &Operation) -> Done {
        let issuer = self.issuer;
        let driver_ = &issuer.gpu.driver;
        match operation {
            Operation::Launch { .. } => self.launch(operation),
            Operation::Set { .. } => self.set(operation),
            Operation::In {
                stream,
                address,
                input,
                rows,
            } => {
                let stream = self.lane(*stream)?;
                let (from, size) = issuer.ports.input_place(*input);
                let to = issuer.moved(*address);
                if let Some(rows) = rows {
                    let from = (Side::Host, from as u64);
                    return self.copy_rows(&rows.copy((Side::Device, to), from), stream);
                }
                // SAFETY: our pinned memory of as many bytes; the driver checks the address.
                let status = unsafe { driver_.cuMemcpyHtoDAsync_v2(to, from.cast(), size, stream) };
                issuer.check("cuMemcpyHtoDAsync_v2", status)
            }
            Operation::Out {
                stream,
                address,
                output,
                rows,
            } => {
                let stream = self.lane(*stream)?;
                let (to, size) = issuer.ports.output_place(*output);
                let from = issuer.moved(*address);
                if let Some(rows) = rows {
                    let to = (Side::Host, to as u64);
                    return self.copy_rows(&rows.copy(to, (Side::Device, from)), stream);
                }
                // SAFETY: as above.
                let status = unsafe { driver_.cuMemcpyDtoHAsync_v2(to.cast(), from, size, stream) };
                issuer.check("cuMemcpyDtoHAsync_v2", status)
            }
            Operation::Copy {
                stream,
                to,
                from,
                size,
                rows,
            } => {
                let stream = self.lane(*stream)?;
                let (to, from) = (issuer.moved(*to), issuer.moved(*from));
                if let Some(rows) = rows {
                    let [to, from] = [to, from].map(|address| (Side::Device, address));
                    return self.copy_rows(&rows.copy(to, from), stream);
                }
                let size = usize::try_from(*size)
                    .map_err(|_| ReplayError::Impossible("a copy is larger than memory"))?;
                // SAFETY: the driver checks the addresses.
                let status = unsafe { driver_.cuMemcpyDtoDAsync_v2(to, from, size, stream) };
                issuer.check("cuMemcpyDtoDAsync_v2", status)
            }
            Operation::Record { stream, event } => {
                let stream = self.lane(*stream)?;
                let recorded = self.recorded(stream)?;
                self.events.insert(*event, recorded);
                Ok(())
            }
            Operation::Wait { stream, event } => {
                let stream = self.lane(*stream)?;
                match self.events.get(event) {
                    Some(event) => self.waits(stream, *event),
                    None => Ok(()),
                }
            }
            _ if self.lanes.len() == 1 => Ok(()),
            Operation::HostStream { stream } => {
                let stream = self.lane(*stream)?;
                let wait = self.recorded(stream)?;
                self.waits.push(wait);
                Ok(())
            }
            Operation::HostEvent { event } => {
                self.waits.extend(self.events.get(event));
                Ok(())
            }
            Operation::HostAll {} => {
                for number in 0..self.lanes.len() {
                    if self.lanes[number].begun {
                        let wait = self.recorded(self.lanes[number].stream)?;
                        self.waits.push(wait);
                    }
                }
                Ok(())
            }
        }
    }

    fn copy_rows(&self, copy: &Copy3d, stream: Handle) -> Done {
        // SAFETY: rows on the host lie without gaps in our pinned memory of as many bytes; the driver checks addresses
        // on the device.
        let status = unsafe { self.issuer.gpu.driver.cuMemcpy3DAsync_v2(copy, stream) };
        self.issuer.check("cuMemcpy3DAsync_v2", status)
    }

    fn launch(&mut self, operation: &Operation) -> Done {
        let Operation::Launch {
            stream,
            kernel,
            grid,
            block,
            shared,
            parameters,
            attributes,
        } = operation
        else {
            return Ok(());
        };
        let stream = self.lane(*stream)?;
        let issuer = self.issuer;
        let mut parameters = parameters.clone();
        if !issuer.images.moves().is_empty() {
            issuer.images.moves().apply(&mut parameters);
        }
        let layout = &issuer.run.kernels[*kernel as usize].layout;
        let pointers: Vec<*const std::ffi::c_void> = layout
            .iter()
            .map(|[offset, _]| parameters[*offset..].as_ptr().cast())
            .collect();
        let attributes: &[LaunchAttribute] = attributes.as_chunks().0;
        let configuration = LaunchConfiguration {
            grid: *grid,
            block: *block,
            shared: *shared,
            stream,
            attributes: attributes.as_ptr(),
            attribute_count: u32::try_from(attributes.len()).unwrap_or(0),
        };
        // SAFETY: configuration, attributes and parameters live until the call returns; the driver copies them. Each
        // parameter that the driver knows has a pointer to as many bytes.
        let status = unsafe {
            issuer.gpu.driver.cuLaunchKernelEx(
                &raw const configuration,
                issuer.images.functions[*kernel as usize],
                pointers.as_ptr(),
                std::ptr::null(),
            )
        };
        issuer.check("cuLaunchKernelEx", status)
    }

    fn set(&mut self, operation: &Operation) -> Done {
        let Operation::Set {
            stream,
            address,
            pitch,
            value,
            element,
            width,
            height,
        } = operation
        else {
            return Ok(());
        };
        let stream = self.lane(*stream)?;
        let large = ReplayError::Impossible("a memset is larger than memory");
        let sizes = [*pitch, *width, *height].map(usize::try_from);
        let [Ok(pitch), Ok(width), Ok(height)] = sizes else {
            return Err(large);
        };
        let set = MemsetNode {
            destination: self.issuer.moved(*address),
            pitch,
            value: *value,
            element: *element,
            width,
            height,
        };
        // SAFETY: the driver checks the addresses.
        let status = unsafe { self.issuer.gpu.driver.memset(&set, stream) };
        self.issuer.check("a memset", status)
    }

    fn join_all(&mut self) -> Done {
        for number in 0..self.lanes.len() {
            if self.lanes[number].begun {
                self.join(self.lanes[number].stream, self.main())?;
            }
        }
        Ok(())
    }
}

/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMES: u32 = 2;
