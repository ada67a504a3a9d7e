// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded run, back in memory.

mod crossing;
mod images;
mod issue;
mod memory;
mod ports;
mod source;
mod sums;
mod trim;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use gpureplay_cuda_launch::abi::{Handle, Status, attribute};
use gpureplay_cuda_launch::recording::{Operation, Recording, Run};

use crate::error::driver;
use crate::gpu::Context;
pub(crate) use crate::gpu::Entered;
use crate::place::{self, Room};
use crate::{Gpu, ReplayError, Times};
pub use crossing::{Crossing, Held, cross};
use images::Images;
use issue::{Issuer, Pool, What};
pub use memory::Range;
use ports::Ports;
use source::Source;
pub use source::{WeightBytes, Weights};
pub use trim::LeftOut;

/// How a run is given to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// As one graph, built once.
    Graph,
    /// Operation by operation.
    Launches,
}

/// A recorded run in this process.
pub struct RunSession {
    gpu: Gpu,
    run: Run,
    time_limit: Duration,
    images: Images,
    ports: Ports,
    source: Source,
    graph: Option<Handle>,
    main: Handle,
    pool: RefCell<Pool>,
    rewritten: usize,
    // Dropped last: all else lies in it.
    room: Room,
    context: Context,
}

impl RunSession {
    /// Maps, fills and loads, in a context that stays this thread's. Checks all bytes first; missing weights come
    /// from `weights`.
    ///
    /// # Errors
    /// The recording is damaged, an address is taken ([`ReplayError::Collision`]), or the driver refuses.
    pub fn open(
        gpu: Gpu,
        recording: &Recording,
        run: Run,
        weights: Option<Weights>,
        time_limit: Duration,
    ) -> Result<Self, ReplayError> {
        // Before the context, which takes addresses.
        let spans = place::of_run(&run);
        let mut room = Room::reserve(&gpu, &spans)?;
        let store = recording.store();
        let capability = gpu.info().capability;
        let recorded = ports::Recorded::read(store, &run)?;
        let (context, images) = std::thread::scope(|scope| {
            let images = scope.spawn(|| images::read(capability, store, &run));
            let context = Context::new(&gpu);
            let images = images.join();
            let images = images.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, ReplayError>((context?, images?))
        })?;
        std::mem::forget(context.enter()?);
        gpu.limit(&run.limits)?;
        room.map(&spans)?;
        let source = Source::new(store, weights);
        let (images, found) = std::thread::scope(|scope| {
            let load = || {
                let _entered = context.enter()?;
                Images::load(&gpu, &run, images)
            };
            let images = scope.spawn(load);
            let found = source.upload((&gpu, &run), || context.enter());
            let images = images.join();
            let images = images.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, ReplayError>((images?, found?))
        })?;
        let ports = Ports::new(&gpu, recorded)?;
        let mut main = 0;
        // SAFETY: a pointer to a local.
        let status = unsafe {
            gpu.driver
                .cuStreamCreate(&raw mut main, attribute::stream::NON_BLOCKING)
        };
        driver("cuStreamCreate", status)?;
        let mut session = Self {
            gpu,
            run,
            time_limit,
            images,
            ports,
            source,
            graph: None,
            main,
            pool: RefCell::default(),
            rewritten: 0,
            room,
            context,
        };
        session.rewritten = session.begin(&found)?;
        Ok(session)
    }

    /// What was recorded.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// GPU of the session.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Rewritten words that point at variables.
    #[must_use]
    pub fn rewritten(&self) -> usize {
        self.rewritten
    }

    pub(crate) fn enter(&self) -> Result<Entered, ReplayError> {
        self.context.enter()
    }

    pub(crate) fn set_weights(&mut self, weights: Weights) -> Result<(), ReplayError> {
        self.source.set_weights(weights);
        self.restore()
    }

    /// Restores memory and variables; later allocations become zeros.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn restore(&self) -> Result<(), ReplayError> {
        self.filled().map(drop)
    }

    fn filled(&self) -> Result<usize, ReplayError> {
        if !self.source.held().is_empty() {
            self.source.put_back(&self.gpu, &self.run)?;
            return self.begin(&[]);
        }
        let to = (&self.gpu, &self.run);
        let context = &self.context;
        let found = self.source.upload(to, || context.enter())?;
        self.begin(&found)
    }

    fn begin(&self, found: &[(u64, u64)]) -> Result<usize, ReplayError> {
        let moves = self.images.moves();
        let mut rewritten = 0;
        for (address, word) in found {
            if let Some(to) = moves.moved(*word) {
                self.gpu.upload(*address, &to.to_le_bytes())?;
                rewritten += 1;
            }
        }
        self.images.restore(&self.gpu)?;
        self.gpu.synchronize()?;
        Ok(rewritten)
    }

    /// Keeps first memory on the host, for faster restores.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn hold(&mut self) -> Result<(), ReplayError> {
        self.source.hold(&self.run, self.images.moves())
    }

    /// Replaces an input.
    ///
    /// # Errors
    /// Another size.
    pub fn set_input(&mut self, number: usize, bytes: &[u8]) -> Result<(), ReplayError> {
        self.ports.set_input(number, bytes)
    }

    /// Sets a number that the host computed; see [`Run::numbers`].
    pub fn set_number(&mut self, number: usize, value: u32) {
        self.run.set_number(number, value);
        self.forget_graph();
    }

    /// They have the same structure as the old ones.
    fn swap_operations(&mut self, operations: Vec<Operation>) -> Vec<Operation> {
        self.forget_graph();
        std::mem::replace(&mut self.run.operations, operations)
    }

    fn forget_graph(&mut self) {
        if let Some(graph) = self.graph.take() {
            // SAFETY: our graph, of which no run is under way.
            let _ = unsafe { self.gpu.driver.cuGraphExecDestroy(graph) };
        }
    }

    /// Whether all outputs are as recorded.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        (0..self.run.outputs.len()).all(|port| self.output(port) == self.recorded_output(port))
    }

    /// What the last run left in an output.
    #[must_use]
    pub fn output(&self, number: usize) -> &[u8] {
        self.ports.output(number)
    }

    /// The recorded output.
    #[must_use]
    pub fn recorded_output(&self, number: usize) -> &[u8] {
        self.ports.recorded_output(number)
    }

    /// Runs once, from memory as it is.
    ///
    /// # Errors
    /// The driver refuses, an operation fails, or takes too long.
    pub fn execute(&mut self, how: How) -> Result<(), ReplayError> {
        self.ports.clear_outputs();
        self.submit(how)?;
        self.wait()
    }

    /// Runs a range, from memory as it is.
    ///
    /// # Errors
    /// As [`RunSession::execute`].
    pub fn execute_part(&mut self, operations: std::ops::Range<u32>) -> Result<(), ReplayError> {
        let part = What::Part(operations.start, operations.end);
        self.issuer()?.issue(part)?;
        self.wait()
    }

    /// Runs without launches; if outputs are right, replays prove nothing. Restores memory.
    ///
    /// # Errors
    /// As [`RunSession::execute`].
    pub fn is_right_without_launches(&mut self) -> Result<bool, ReplayError> {
        self.ports.clear_outputs();
        self.issuer()?.issue(What::NoLaunches)?;
        self.wait()?;
        let right = self.is_as_recorded();
        self.restore()?;
        Ok(right)
    }

    /// Runs with copies of inputs and outputs, after untimed ones; in microseconds of the host.
    ///
    /// # Errors
    /// As [`RunSession::execute`].
    pub fn time(&mut self, how: How, runs: u32) -> Result<Times, ReplayError> {
        let mut times = Vec::new();
        for turn in 0..runs.saturating_add(WARM) {
            let began = Instant::now();
            self.ports.refresh();
            self.submit(how)?;
            // SAFETY: our stream.
            let status = unsafe { self.gpu.driver.cuStreamSynchronize(self.main) };
            driver("the run", status)?;
            if turn >= WARM {
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(Times::new(times))
    }

    fn issuer(&self) -> Result<Issuer<'_>, ReplayError> {
        Issuer::new(
            &self.gpu,
            &self.run,
            &self.images,
            &self.ports,
            self.main,
            &self.pool,
        )
    }

    fn submit(&mut self, how: How) -> Result<(), ReplayError> {
        if how == How::Launches {
            return self.issuer()?.issue(What::All);
        }
        let graph = match self.graph {
            Some(graph) => graph,
            None => *self.graph.insert(self.captured()?),
        };
        // SAFETY: our graph and stream.
        driver("cuGraphLaunch", unsafe {
            self.gpu.driver.cuGraphLaunch(graph, self.main)
        })
    }

    fn captured(&self) -> Result<Handle, ReplayError> {
        let driver_ = &self.gpu.driver;
        let issuer = self.issuer()?;
        let (mut graph, mut executable) = (0, 0);
        // SAFETY: our stream, which nobody else uses.
        driver("cuStreamBeginCapture_v2", unsafe {
            driver_.cuStreamBeginCapture_v2(self.main, attribute::stream::CAPTURE_OF_THREAD)
        })?;
        let issued = issuer.issue(What::All);
        // SAFETY: our stream, pointers to locals; the graph is ours.
        unsafe {
            let ended = driver_.cuStreamEndCapture(self.main, &raw mut graph);
            issued?;
            driver("cuStreamEndCapture", ended)?;
            let made = driver_.cuGraphInstantiateWithFlags(&raw mut executable, graph, 0);
            let _ = driver_.cuGraphDestroy(graph);
            driver("cuGraphInstantiateWithFlags", made)?;
        }
        Ok(executable)
    }

    fn wait(&self) -> Result<(), ReplayError> {
        let began = Instant::now();
        loop {
            // SAFETY: our stream.
            match unsafe { self.gpu.driver.cuStreamQuery(self.main) } {
                Status::NOT_READY => {}
                status => return driver("the run", status),
            }
            let elapsed = began.elapsed();
            if elapsed > self.time_limit {
                return Err(ReplayError::TimeLimit {
                    seconds: self.time_limit.as_secs(),
                });
            }
            if elapsed > Duration::from_millis(20) {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

impl Drop for RunSession {
    fn drop(&mut self) {
        // The context stays current: images and ports are dropped in it, too.
        let entered = self.enter().map(std::mem::forget);
        // SAFETY: our stream.
        let status = unsafe { self.gpu.driver.cuStreamQuery(self.main) };
        if entered.is_err() || status == Status::NOT_READY {
            // Work that hangs ends with the process, so what it uses stays.
            self.images.leave();
            self.ports.leave();
            self.room.leave();
            return;
        }
        self.forget_graph();
        self.pool.get_mut().destroy(&self.gpu);
        // SAFETY: our idle stream.
        let _ = unsafe { self.gpu.driver.cuStreamDestroy_v2(self.main) };
    }
}

const WARM: u32 = 5;
