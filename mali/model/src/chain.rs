// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains: reads headers, runs jobs, writes status.

use std::time::Instant;

use gpureplay_memory::Bus;
use gpureplay_shader::{Cores, JOB_COST, MmuFault};
use mali_facts::registers::{FaultStatus, JobConfig, JobConfigFlags, JobStatus};
use mali_facts::{JobHeader, JobType, WriteValue, job};

use crate::compute;
use crate::draw::{self, Job};
use crate::environment::{Environment, JobFault, RUN, STOP_AFTER_JOB};
use crate::log::log;
use crate::observer::{ComputeReport, JobReport};
use crate::order::Order;
use crate::space::{JobMemory, Stall, fault_status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) slot: u32,
    pub(crate) head: u64,
    pub(crate) config: JobConfig,
    pub(crate) affinity: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: JobStatus,
    /// Job that ended the chain, or where a stopped one resumes.
    pub(crate) tail: u64,
    pub(crate) mmu: Option<MmuFault>,
}

pub(crate) fn run<B: Bus>(environment: &Environment<B>, chain: &Chain) -> Outcome {
    let notify = environment.notify.as_deref();
    let notify = notify.map(|notify| move |begins| notify(begins));
    let memory = JobMemory {
        bus: &*environment.bus,
        space: &environment.space,
        stall: notify.as_ref().map(|notify| Stall {
            control: &environment.control.shader,
            notify,
        }),
        observer: environment
            .observer
            .as_deref()
            .filter(|observer| observer.wants_pages()),
    };
    let runner = Runner {
        environment,
        chain,
        memory,
    };
    runner.run()
}

struct Runner<'a, B: Bus> {
    environment: &'a Environment<B>,
    chain: &'a Chain,
    memory: JobMemory<'a, B>,
}

impl<B: Bus> Runner<'_, B> {
    fn run(&self) -> Outcome {
        match self.environment.seed {
            0 => self.run_in_order(),
            seed => self.run_in_any_order(seed),
        }
    }

    fn run_in_order(&self) -> Outcome {
        let mut address = self.chain.head;
        for _ in 0..self.environment.control.jobs {
            match self.environment.control.request() {
                RUN => {}
                STOP_AFTER_JOB => return ended(JobStatus::STOPPED, address, None),
                _ => return ended(JobStatus::TERMINATED, address, None),
            }
            match self.job(address) {
                Ok(0) => return ended(JobStatus::DONE, address, None),
                Ok(next) => address = next,
                Err(fault) => return self.failed(address, fault),
            }
        }
        self.endless(address)
    }

    fn run_in_any_order(&self, seed: u64) -> Outcome {
        let mut order = Order::new(self.chain.head, seed);
        for _ in 0..self.environment.control.jobs {
            let request = self.environment.control.request();
            match request {
                RUN => order.read(|address| self.header(address).ok()),
                // A resumed chain starts at a job before which all have ended.
                STOP_AFTER_JOB if !order.is_in_order() => {}
                STOP_AFTER_JOB => return ended(JobStatus::STOPPED, order.first(), None),
                _ => return ended(JobStatus::TERMINATED, order.first(), None),
            }
            let Some(address) = order.take(request == RUN) else {
                return ended(JobStatus::DONE, order.first(), None);
            };
            if let Err(fault) = self.job(address) {
                return self.failed(address, fault);
            }
        }
        self.endless(order.first())
    }

    fn failed(&self, address: u64, fault: JobFault) -> Outcome {
        let slot = self.chain.slot;
        if fault.status.is_fault() {
            log!(
                self.environment.log,
                Error,
                "slot {slot} job {address:#x}: {} {}",
                fault.status,
                fault.text
            );
        } else {
            log!(
                self.environment.log,
                Warning,
                "slot {slot} job {address:#x}: {} {}",
                fault.status,
                fault.text
            );
        }
        ended(fault.status, address, fault.mmu)
    }

    fn endless(&self, address: u64) -> Outcome {
        log!(
            self.environment.log,
            Error,
            "slot {}: chain {:#x} has no end",
            self.chain.slot,
            self.chain.head
        );
        ended(JobStatus::TERMINATED, address, None)
    }

    fn job(&self, address: u64) -> Result<u64, JobFault> {
        let started = Instant::now();
        self.charge(address)?;
        let header = self.header(address)?;
        let job_type = JobType::from_bits(header.job_type());
        let kind = job_type.map_or("RESERVED", JobType::name);
        let mut compute = None;
        let result = self.execute(address, &header, job_type, &mut compute);
        let status = match &result {
            Ok(()) => JobStatus::DONE,
            Err(fault) => fault.status,
        };
        let chain = self.chain;
        if let Some(observer) = &self.environment.observer {
            observer.job(&JobReport {
                slot: chain.slot,
                address_space: chain.config.address_space(),
                address,
                kind,
                status,
                duration: started.elapsed(),
                compute,
            });
        }
        log!(
            self.environment.log,
            Debug,
            "slot {} job {address:#x}: {kind} {status} in {:.3} ms",
            chain.slot,
            started.elapsed().as_secs_f64() * 1e3
        );
        self.write_back(address, result.as_ref().err())?;
        result.map(|()| header.next())
    }

    fn charge(&self, address: u64) -> Result<(), JobFault> {
        let control = &self.environment.control.shader;
        if control.charge(JOB_COST) {
            return Ok(());
        }
        let limit = control.work().limit();
        let text = format!("the limit of {limit} clauses for all work together is used up");
        Err(JobFault::new(JobStatus::TERMINATED, address, text))
    }

    fn header(&self, address: u64) -> Result<JobHeader, JobFault> {
        if !address.is_multiple_of(job::ALIGNMENT) {
            let text = "job descriptor is not aligned to 64 bytes";
            return Err(JobFault::new(JobStatus::JOB_CONFIG_FAULT, address, text));
        }
        let read = |fault| JobFault::descriptor(JobStatus::JOB_READ_FAULT, fault);
        Ok(JobHeader::from_bytes(
            &self.memory.bytes(address).map_err(read)?,
        ))
    }

    fn execute(
        &self,
        address: u64,
        header: &JobHeader,
        job_type: Option<JobType>,
        report: &mut Option<ComputeReport>,
    ) -> Result<(), JobFault> {
        let config = |text: String| JobFault::new(JobStatus::JOB_CONFIG_FAULT, address, text);
        let valhall = self.environment.profile.architecture.has_resource_tables();
        if header.is_64_bit() == 0 && !valhall {
            return Err(config(
                "32-bit job descriptors do not exist on Bifrost".into(),
            ));
        }
        let Some(job_type) = job_type else {
            return Err(config(format!(
                "job type {} does not exist",
                header.job_type()
            )));
        };
        let features = self.environment.profile.js_features;
        let supported = features.get(self.chain.slot as usize).copied().unwrap_or(0);
        // No public log has Valhall's slot features: it runs what Bifrost ran.
        let bit = match job_type {
            JobType::MallocVertex if valhall => JobType::IndexedVertex,
            other => other,
        };
        if supported >> bit as u32 & 1 == 0 {
            return Err(config(format!(
                "slot {} does not run {} jobs",
                self.chain.slot,
                job_type.name()
            )));
        }
        if !self.environment.l2_ready {
            let text = "the level-2 cache is off";
            return Err(JobFault::new(JobStatus::JOB_POWER_FAULT, address, text));
        }
        match job_type {
            JobType::Null | JobType::CacheFlush => Ok(()),
            JobType::WriteValue => self.write_value(address),
            JobType::Compute => {
                let usable = self.cores(address)?;
                let seed = self.environment.seed;
                let cores = Cores { usable, seed };
                let result;
                (*report, result) = compute::run(self.environment, &self.memory, address, cores);
                result
            }
            JobType::Fragment | JobType::MallocVertex | JobType::IndexedVertex
                if job_type != JobType::IndexedVertex || !valhall =>
            {
                self.cores(address)?;
                let job = Job {
                    environment: self.environment,
                    memory: &self.memory,
                    address,
                };
                match job_type {
                    JobType::Fragment => draw::fragment::run(&job),
                    JobType::MallocVertex => draw::valhall::run(&job),
                    _ => draw::vertex::run(&job),
                }
            }
            other => Err(config(format!("{} jobs are not modelled", other.name()))),
        }
    }

    fn cores(&self, address: u64) -> Result<u64, JobFault> {
        let chain = self.chain;
        let usable = chain.affinity & self.environment.profile.shader_present;
        if usable == 0 {
            let text = format!("affinity {:#x} contains no shader core", chain.affinity);
            return Err(JobFault::new(JobStatus::JOB_AFFINITY_FAULT, address, text));
        }
        let ready = usable & self.environment.cores_ready;
        if ready == 0 {
            let text = format!("the shader cores {usable:#x} are off");
            return Err(JobFault::new(JobStatus::JOB_POWER_FAULT, address, text));
        }
        Ok(ready)
    }

    fn write_value(&self, address: u64) -> Result<(), JobFault> {
        let read = |fault| JobFault::descriptor(JobStatus::JOB_READ_FAULT, fault);
        let payload =
            WriteValue::from_bytes(&self.memory.bytes(address + job::PAYLOAD).map_err(read)?);
        let value = match payload.value_type() {
            1 => self.environment.clock.cycles(),
            2 => self.environment.clock.timestamp(),
            3 => 0,
            4..=7 => payload.immediate(),
            other => {
                let text = format!("value type {other} does not exist");
                return Err(JobFault::new(JobStatus::JOB_CONFIG_FAULT, address, text));
            }
        };
        let size = payload.bytes() as usize;
        self.memory
            .write(payload.address(), &value.to_le_bytes()[..size])?;
        self.wrote(payload.address(), size);
        Ok(())
    }

    fn wrote(&self, va: u64, bytes: usize) {
        if let Some(observer) = &self.environment.observer {
            observer.wrote(va, bytes as u64);
        }
    }

    fn write_back(&self, address: u64, fault: Option<&JobFault>) -> Result<(), JobFault> {
        if self
            .chain
            .config
            .flags()
            .contains(JobConfigFlags::DISABLE_WRITE_BACK)
        {
            return Ok(());
        }
        self.wrote(address, if fault.is_none() { 4 } else { 16 });
        let result = match fault {
            None => self.memory.write(address, &JobStatus::DONE.0.to_le_bytes()),
            Some(fault) => {
                let access = fault.mmu.as_ref().map_or(FaultStatus(0), fault_status).0 & 0x300;
                let mut words = [0; 16];
                words[..4].copy_from_slice(&(fault.status.0 | access).to_le_bytes());
                words[8..].copy_from_slice(&fault.pointer.to_le_bytes());
                // Software that handled the fault expects the job's end.
                let memory = JobMemory {
                    stall: None,
                    ..self.memory
                };
                memory.write(address, &words)
            }
        };
        // The job's own fault is reported.
        match (result, fault) {
            (Err(error), None) => Err(JobFault::descriptor(JobStatus::JOB_WRITE_FAULT, error)),
            _ => Ok(()),
        }
    }
}

fn ended(status: JobStatus, tail: u64, mmu: Option<MmuFault>) -> Outcome {
    Outcome { status, tail, mmu }
}
