// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs, launched node by node to record a kernel.
//!
//! Instantiating copies a graph, which the program may change or destroy. For a wanted kernel the copy's nodes run
//! in a permitted order in the launch's stream; else the program's graph does.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, RwLock};

use gpureplay_cuda_launch::abi::{
    Copy3d, Driver, Handle, HostNode, KernelNode, LaunchAttribute, LaunchConfiguration, MemsetNode,
    Status, attribute,
};

use crate::asked::{Launch, Sizes};
use crate::functions::{self, Function};
use crate::guard;
use crate::launch;
use crate::nodes::{because, nodes};
use crate::real::driver;
use crate::report::{GRAPH_KERNELS, GRAPHS, refuse};
use crate::say::say;
use crate::settings::{Mode, settings};
use crate::state::CAPTURES;
use crate::{cupti, durations, gate, tally};

const MAX_DEPTH: u32 = 16;

#[derive(Clone, Copy)]
pub(crate) enum Step {
    Kernel(Handle),
    Copy(Handle),
    Set(Handle),
    Host(Handle),
}

pub(crate) struct Plan {
    /// 0 if none.
    copy: Handle,
    /// In a permitted order, or why not.
    pub(crate) steps: Result<Vec<Step>, String>,
    kernels: u64,
    counted: Vec<Arc<str>>,
    decided: Vec<Arc<str>>,
}

#[derive(Default)]
struct Kernels {
    once: Vec<Handle>,
    /// Inside conditional nodes, which may run them never or often.
    decided: Vec<Handle>,
    /// A conditional node has unknown graphs.
    has_unknown: bool,
}

/// Graphs of conditional nodes; the driver keeps them as long as the node.
static DECIDED: LazyLock<Mutex<HashMap<Handle, Vec<Handle>>>> = LazyLock::new(Mutex::default);

pub(crate) fn decides(node: Handle, bodies: Vec<Handle>) {
    let mut decided = guard::lock(&DECIDED);
    decided.insert(node, bodies);
}

fn decided(driver: &Driver, node: Handle, depth: u32, kernels: &mut Kernels) {
    let bodies = guard::lock(&DECIDED).get(&node).cloned();
    let Some(bodies) = bodies.filter(|bodies| !bodies.is_empty()) else {
        kernels.has_unknown = true;
        return;
    };
    for body in bodies {
        let mut inner = Kernels::default();
        // Counting needs no runnable graph.
        if steps(driver, body, depth + 1, &mut inner).is_err()
            && inner.once.is_empty()
            && inner.decided.is_empty()
        {
            kernels.has_unknown = true;
        }
        kernels.has_unknown |= inner.has_unknown;
        kernels
            .decided
            .extend(inner.once.into_iter().chain(inner.decided));
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if let Ok(driver) = driver()
            && self.copy != 0
        {
            // SAFETY: our copy. A failure leaves memory that the process gives back.
            let _ = unsafe { driver.cuGraphDestroy(self.copy) };
        }
    }
}

type Plans = HashMap<Handle, Arc<Mutex<Plan>>>;
static PLANS: LazyLock<RwLock<Plans>> = LazyLock::new(RwLock::default);

fn plan(executable: Handle) -> Option<Arc<Mutex<Plan>>> {
    let plans = guard::read(&PLANS);
    plans.get(&executable).map(Arc::clone)
}

/// Counts kernels even of impossible graphs.
fn steps(
    driver: &Driver,
    graph: Handle,
    depth: u32,
    kernels: &mut Kernels,
) -> Result<Vec<Step>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("its graph has more than {MAX_DEPTH} levels"));
    }
    let mut steps = Vec::new();
    let mut impossible = None;
    for node in nodes(driver, graph)? {
        let mut kind = 0;
        // SAFETY: a live graph's node, a pointer to a local.
        unsafe { driver.cuGraphNodeGetType(node, &raw mut kind) }
            .check()
            .map_err(because("cuGraphNodeGetType"))?;
        match kind {
            attribute::node::KERNEL => {
                kernels.once.push(node);
                steps.push(Step::Kernel(node));
            }
            attribute::node::MEMCPY => steps.push(Step::Copy(node)),
            attribute::node::MEMSET => steps.push(Step::Set(node)),
            attribute::node::HOST => steps.push(Step::Host(node)),
            attribute::node::EMPTY => {}
            attribute::node::GRAPH => {
                let mut child = 0;
                // SAFETY: as above.
                unsafe { driver.cuGraphChildGraphNodeGetGraph(node, &raw mut child) }
                    .check()
                    .map_err(because("cuGraphChildGraphNodeGetGraph"))?;
                match self::steps(driver, child, depth + 1, kernels) {
                    Ok(inner) => steps.extend(inner),
                    Err(reason) => impossible = Some(reason),
                }
            }
            other => {
                if other == attribute::node::CONDITIONAL {
                    decided(driver, node, depth, kernels);
                }
                let what = attribute::node::name(other);
                impossible = Some(format!("a node of its graph {what}"));
            }
        }
    }
    impossible.map_or(Ok(steps), Err)
}

pub(crate) fn parameters(driver: &Driver, node: Handle) -> Result<KernelNode, Status> {
    let mut parameters = KernelNode::empty();
    // SAFETY: a live graph's kernel node, a pointer to a local.
    unsafe { driver.cuGraphKernelNodeGetParams_v2(node, &raw mut parameters) }.check()?;
    Ok(parameters)
}

fn handle(node: &KernelNode) -> Handle {
    if node.kernel == 0 {
        node.function
    } else {
        node.kernel
    }
}

fn goes_node_by_node() -> bool {
    match settings().mode {
        Mode::Record(_) => true,
        Mode::Durations(_) => !cupti::is_active(),
        Mode::Off | Mode::Replace(_) => false,
    }
}

impl Plan {
    fn new(driver: &Driver, graph: Handle) -> Self {
        let mut kernels = Kernels::default();
        let steps = steps(driver, graph, 0, &mut kernels);
        let mut plan = Self {
            copy: 0,
            steps,
            kernels: kernels.once.len() as u64,
            counted: Vec::new(),
            decided: Vec::new(),
        };
        if !goes_node_by_node() && !tally::is_on() {
            return plan;
        }
        plan.counted = wanted(driver, &kernels.once);
        plan.decided = wanted(driver, &kernels.decided);
        if kernels.has_unknown {
            plan.decided.push("a kernel of a graph".into());
        }
        let is_run = matches!(&settings().mode, Mode::Record(record) if record.run.is_some());
        if goes_node_by_node() && plan.steps.is_ok() && (is_run || !plan.counted.is_empty()) {
            // SAFETY: a pointer to a field; the graph is the program's.
            plan.steps = unsafe { driver.cuGraphClone(&raw mut plan.copy, graph) }
                .check()
                .map_err(because("cuGraphClone"))
                .and_then(|()| self::steps(driver, plan.copy, 0, &mut Kernels::default()));
        }
        plan
    }

    pub(crate) fn refusal(&self) -> Option<&str> {
        match &self.steps {
            Err(reason) => Some(reason),
            Ok(_) if CAPTURES.load(Ordering::SeqCst) > 0 => Some("a stream is being captured"),
            Ok(_) => None,
        }
    }
}

pub(crate) const UNKNOWN: &str = "it was instantiated in a way that is not known";

fn wanted(driver: &Driver, kernels: &[Handle]) -> Vec<Arc<str>> {
    let name = |node: &Handle| {
        let node = parameters(driver, *node).ok()?;
        let function = functions::get(handle(&node)).ok()?;
        function.wanted.then(|| Arc::clone(&function.name))
    };
    kernels.iter().filter_map(name).collect()
}

pub(crate) fn instantiated(executable: Handle, graph: Handle) {
    if matches!(settings().mode, Mode::Off) {
        return;
    }
    if let Ok(driver) = driver() {
        let plan = Arc::new(Mutex::new(Plan::new(driver, graph)));
        let mut plans = guard::write(&PLANS);
        plans.insert(executable, plan);
    }
}

pub(crate) fn destroyed(executable: Handle) {
    let mut plans = guard::write(&PLANS);
    plans.remove(&executable);
}

/// The node is the original graph's.
///
/// # Safety
/// The driver has just accepted the parameters.
pub(crate) unsafe fn kernel_changed(executable: Handle, node: Handle, new: *const KernelNode) {
    let (Some(plan), Ok(driver)) = (plan(executable), driver()) else {
        return;
    };
    let mut plan = guard::lock(&plan);
    if plan.copy == 0 {
        return;
    }
    let mut copy = 0;
    // SAFETY: our copy; the driver accepted the parameters.
    let status = unsafe {
        match driver.cuGraphNodeFindInClone(&raw mut copy, node, plan.copy) {
            Status::SUCCESS => driver.cuGraphKernelNodeSetParams_v2(copy, new),
            failed => failed,
        }
    };
    if status != Status::SUCCESS {
        plan.steps = Err(format!(
            "a kernel of its graph was changed in a way that cannot be followed: {status}"
        ));
    }
}

pub(crate) fn changed(executable: Handle, call: &'static str) {
    if let Some(plan) = plan(executable) {
        guard::lock(&plan).steps = Err(format!("its graph was changed by {call}"));
    }
}

type Picked = (Arc<Function>, u64);

pub(crate) fn launch(
    entry: &'static str,
    executable: Handle,
    stream: Handle,
    call: impl FnOnce() -> Status,
) -> Status {
    let first = GRAPHS.fetch_add(1, Ordering::Relaxed) == 0;
    let known = plan(executable);
    if let Some(plan) = &known {
        GRAPH_KERNELS.fetch_add(guard::lock(plan).kernels, Ordering::Relaxed);
    }
    let status = launched(entry, known.as_ref(), first, stream, call);
    if let (Some(plan), true, Status::SUCCESS) = (known, tally::is_on(), status) {
        guard::lock(&plan).counted.iter().for_each(tally::seen);
    }
    status
}

fn launched(
    entry: &'static str,
    known: Option<&Arc<Mutex<Plan>>>,
    is_first: bool,
    stream: Handle,
    call: impl FnOnce() -> Status,
) -> Status {
    let record = match &settings().mode {
        Mode::Record(record) if record.run.is_some() => {
            return crate::run::graph(known, stream, call);
        }
        Mode::Record(record) => Some(record),
        Mode::Durations(_) if goes_node_by_node() => None,
        Mode::Replace(_) if is_first => {
            say(
                "kernels inside graphs are replaced only where they are captured, or added as nodes",
            );
            return call();
        }
        _ => return call(),
    };
    let Some(plan) = known else {
        refuse("a graph", UNKNOWN);
        let _pass = gate::enter();
        return call();
    };
    let plan = guard::lock(plan);
    let reason = plan.refusal();
    let steps = match (&plan.steps, reason, driver()) {
        (Ok(steps), None, Ok(driver)) if !plan.counted.is_empty() => match record {
            None => Some((driver, steps, vec![None; steps.len()])),
            Some(record) => {
                let picked = picked(driver, record, steps);
                let is_picked = picked.iter().any(Option::is_some);
                is_picked.then_some((driver, steps, picked))
            }
        },
        _ => None,
    };
    let Some((driver, steps, picked)) = steps else {
        let wanted = plan.counted.iter().chain(&plan.decided);
        for name in wanted.filter(|_| reason.is_some()) {
            refuse(name, reason.unwrap_or_default());
        }
        let _pass = gate::enter();
        return call();
    };
    let _closed = gate::close();
    for (step, picked) in steps.iter().zip(&picked) {
        let status = run(driver, record, entry, *step, stream, picked.as_ref());
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

/// Functions of wanted kernels by step; all count as launched.
fn picked(
    driver: &Driver,
    record: &crate::settings::Record,
    steps: &[Step],
) -> Vec<Option<Picked>> {
    let of = |step: &Step| match step {
        Step::Kernel(node) => {
            let node = parameters(driver, *node).ok()?;
            launch::wanted(record, handle(&node))
        }
        _ => None,
    };
    steps.iter().map(of).collect()
}

fn run(
    driver: &Driver,
    record: Option<&crate::settings::Record>,
    entry: &'static str,
    step: Step,
    stream: Handle,
    picked: Option<&Picked>,
) -> Status {
    // SAFETY: nodes of our copy, pointers to locals; the nodes hold what the program put there.
    unsafe {
        match step {
            Step::Kernel(node) => kernel(driver, record, entry, node, stream, picked),
            Step::Copy(node) => match copy_of(driver, node) {
                Ok(copy) => driver.cuMemcpy3DAsync_v2(&raw const copy, stream),
                Err(failed) => failed,
            },
            Step::Set(node) => match set_of(driver, node) {
                Ok(set) => driver.memset(&set, stream),
                Err(failed) => failed,
            },
            Step::Host(_) => host(driver, step, stream),
        }
    }
}

pub(crate) fn copy_of(driver: &Driver, node: Handle) -> Result<Copy3d, Status> {
    let mut copy: Copy3d = [0; 25];
    // SAFETY: a node of our copy, a pointer to a local.
    unsafe { driver.cuGraphMemcpyNodeGetParams(node, &raw mut copy) }.check()?;
    Ok(copy)
}

pub(crate) fn set_of(driver: &Driver, node: Handle) -> Result<MemsetNode, Status> {
    let mut set = MemsetNode::default();
    // SAFETY: as above.
    unsafe { driver.cuGraphMemsetNodeGetParams(node, &raw mut set) }.check()?;
    Ok(set)
}

pub(crate) fn host(driver: &Driver, step: Step, stream: Handle) -> Status {
    let Step::Host(node) = step else {
        return Status::SUCCESS;
    };
    let mut host = HostNode {
        function: 0,
        data: 0,
    };
    // SAFETY: a node of our copy, a pointer to a local; function and data are the program's.
    unsafe {
        match driver.cuGraphHostNodeGetParams(node, &raw mut host) {
            Status::SUCCESS => driver.cuLaunchHostFunc(stream, host.function, host.data),
            failed => failed,
        }
    }
}

fn attributes(driver: &Driver, node: Handle) -> Vec<LaunchAttribute> {
    let mut attributes = Vec::new();
    for number in attribute::launch::KEPT {
        let mut value = [0u64; 8];
        // SAFETY: a node of our copy, a pointer to a local of the size of an attribute's value.
        let status = unsafe {
            driver.cuGraphKernelNodeGetAttribute(node, i32::from(number), &raw mut value)
        };
        if status == Status::SUCCESS && value != [0; 8] {
            let mut attribute: LaunchAttribute = [0; 72];
            attribute[0] = number;
            for (place, word) in attribute[8..].chunks_exact_mut(8).zip(value) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            attributes.push(attribute);
        }
    }
    attributes
}

pub(crate) fn node_launch(
    driver: &Driver,
    entry: &'static str,
    node: Handle,
    stream: Handle,
) -> Result<Launch, Status> {
    let kernel = parameters(driver, node)?;
    Ok(Launch {
        entry,
        function: handle(&kernel),
        sizes: Sizes::new(kernel.grid, kernel.block, kernel.shared),
        stream,
        parameters: kernel.parameters,
        extra: kernel.extra,
        attributes: attributes(driver, node),
    })
}

pub(crate) fn node_call(driver: &Driver, launch: &Launch, function: Handle) -> Status {
    let configuration = LaunchConfiguration {
        grid: launch.sizes.grid,
        block: launch.sizes.block,
        shared: launch.sizes.shared,
        stream: launch.stream,
        attributes: launch.attributes.as_ptr(),
        attribute_count: u32::try_from(launch.attributes.len()).unwrap_or(0),
    };
    // SAFETY: the parameters are the node's own, which our copy keeps alive.
    unsafe {
        driver.cuLaunchKernelEx(
            &raw const configuration,
            function,
            launch.parameters,
            launch.extra,
        )
    }
}

fn kernel(
    driver: &Driver,
    record: Option<&crate::settings::Record>,
    entry: &'static str,
    node: Handle,
    stream: Handle,
    picked: Option<&Picked>,
) -> Status {
    let launch = match node_launch(driver, entry, node, stream) {
        Ok(launch) => launch,
        Err(status) => return status,
    };
    let call = |function| node_call(driver, &launch, function);
    let Some(record) = record else {
        return durations::launch(&launch, || call(launch.function));
    };
    let Some((function, occurrence)) = picked else {
        return call(launch.function);
    };
    let (status, snapshot) = launch::taken(record, &launch, function, *occurrence, call);
    if let Some(snapshot) = snapshot {
        launch::written(record, &launch, function, *occurrence, snapshot);
    }
    status
}
