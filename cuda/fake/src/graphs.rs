// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs; executable ones are copies.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpureplay_cuda_launch::abi::{Copy3d, Handle, KernelNode, MemsetNode, Status, attribute};

use crate::modules::modules;

#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) node: KernelNode,
    values: Vec<Vec<u8>>,
    pointers: Vec<usize>,
}

#[derive(Clone)]
pub(crate) enum Node {
    Kernel(Kernel),
    Copy(Copy3d),
    Set(MemsetNode),
    Empty,
    Event,
    Twice(Handle),
}

// SAFETY: the pointers are to values that the node owns, or are never followed.
unsafe impl Send for Node {}

impl Kernel {
    /// # Safety
    /// There is a pointer for each parameter of the kernel.
    pub(crate) unsafe fn new(node: KernelNode) -> Result<Self, Status> {
        let mut modules = modules();
        let parameters = &modules.function(node.function)?.kernel.parameters;
        let value = |(index, size): (usize, usize)| {
            // SAFETY: the caller's promise.
            unsafe {
                let value = (*node.parameters.add(index)).cast::<u8>();
                std::slice::from_raw_parts(value, size).to_vec()
            }
        };
        let sizes = parameters.iter().map(|parameter| parameter.size);
        let kernel = Self {
            node,
            values: sizes.enumerate().map(value).collect(),
            pointers: Vec::new(),
        };
        Ok(kernel)
    }

    /// Pointers are valid as long as `self`.
    pub(crate) fn parameters(&mut self) -> KernelNode {
        let addresses = self.values.iter().map(|value| value.as_ptr() as usize);
        self.pointers = addresses.collect();
        KernelNode {
            parameters: self.pointers.as_ptr().cast::<*const c_void>(),
            extra: std::ptr::null(),
            ..self.node
        }
    }
}

impl Node {
    pub(crate) fn kind(&self) -> i32 {
        match self {
            Self::Kernel(_) => attribute::node::KERNEL,
            Self::Copy(_) => attribute::node::MEMCPY,
            Self::Set(_) => attribute::node::MEMSET,
            Self::Empty => attribute::node::EMPTY,
            Self::Event => 7,
            Self::Twice(_) => attribute::node::CONDITIONAL,
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Handle>,
    pub(crate) edges: Vec<(Handle, Handle)>,
    /// Nodes of a copy, by original node.
    copies: BTreeMap<Handle, Handle>,
}

#[derive(Default)]
pub(crate) struct Graphs {
    last: Handle,
    graphs: BTreeMap<Handle, Graph>,
    nodes: BTreeMap<Handle, Node>,
    /// By captured stream.
    pub(crate) captures: BTreeMap<Handle, Handle>,
    /// What a captured stream's next node comes after.
    tails: BTreeMap<Handle, Vec<Handle>>,
    /// Recorded in a capture: graph, and the nodes before it.
    events: BTreeMap<Handle, (Handle, Vec<Handle>)>,
    /// Flags.
    pub(crate) streams: BTreeMap<Handle, u32>,
}

pub(crate) fn graphs() -> MutexGuard<'static, Graphs> {
    static GRAPHS: LazyLock<Mutex<Graphs>> = LazyLock::new(Mutex::default);
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Graphs {
    fn handle(&mut self) -> Handle {
        self.last += 0x10;
        0x6000_0000_0000 + self.last
    }

    pub(crate) fn create(&mut self) -> Handle {
        let handle = self.handle();
        self.graphs.insert(handle, Graph::default());
        handle
    }

    pub(crate) fn graph(&self, graph: Handle) -> Result<&Graph, Status> {
        self.graphs.get(&graph).ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn node(&mut self, node: Handle) -> Result<&mut Node, Status> {
        self.nodes.get_mut(&node).ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn add(
        &mut self,
        graph: Handle,
        after: &[Handle],
        node: Node,
    ) -> Result<Handle, Status> {
        let handle = self.handle();
        let graph = self.graphs.get_mut(&graph).ok_or(Status::INVALID_HANDLE)?;
        // In reverse: a list's order is no order to run in.
        graph.nodes.insert(0, handle);
        graph
            .edges
            .extend(after.iter().map(|before| (*before, handle)));
        self.nodes.insert(handle, node);
        Ok(handle)
    }

    pub(crate) fn stream(&mut self, flags: u32) -> Handle {
        let stream = self.handle();
        self.streams.insert(stream, flags);
        stream
    }

    pub(crate) fn begin(&mut self, stream: Handle) {
        let graph = self.create();
        self.captures.insert(stream, graph);
        self.tails.insert(stream, Vec::new());
    }

    pub(crate) fn end(&mut self, stream: Handle) -> Result<Handle, Status> {
        let graph = *self.captures.get(&stream).ok_or(Status::INVALID_VALUE)?;
        self.captures.retain(|_, other| *other != graph);
        self.events.retain(|_, (other, _)| *other != graph);
        Ok(graph)
    }

    pub(crate) fn capture(&mut self, stream: Handle, node: Node) -> Result<(), Status> {
        let graph = *self.captures.get(&stream).ok_or(Status::INVALID_HANDLE)?;
        let tail = self.tails.remove(&stream).unwrap_or_default();
        let node = self.add(graph, &tail, node)?;
        self.tails.insert(stream, vec![node]);
        Ok(())
    }

    pub(crate) fn record(&mut self, event: Handle, stream: Handle) {
        if let Some(graph) = self.captures.get(&stream) {
            let tail = self.tails.get(&stream).cloned().unwrap_or_default();
            self.events.insert(event, (*graph, tail));
        }
    }

    pub(crate) fn wait(&mut self, stream: Handle, event: Handle) {
        if let Some((graph, tail)) = self.events.get(&event) {
            self.captures.insert(stream, *graph);
            let own = self.tails.entry(stream).or_default();
            for node in tail {
                if !own.contains(node) {
                    own.push(*node);
                }
            }
        }
    }

    pub(crate) fn copy(&mut self, graph: Handle) -> Result<Handle, Status> {
        let original = self.graph(graph)?.clone();
        let copy = self.create();
        let mut copies = BTreeMap::new();
        for node in &original.nodes {
            let handle = self.handle();
            let node_copy = self.node(*node)?.clone();
            self.nodes.insert(handle, node_copy);
            copies.insert(*node, handle);
        }
        let of = |node: &Handle| copies.get(node).copied().unwrap_or(0);
        let graph = Graph {
            nodes: original.nodes.iter().map(of).collect(),
            edges: original.edges.iter().map(|(a, b)| (of(a), of(b))).collect(),
            copies: copies.clone(),
        };
        self.graphs.insert(copy, graph);
        Ok(copy)
    }

    pub(crate) fn update(&mut self, executable: Handle, graph: Handle) -> Result<(), Status> {
        let copy = self.copy(graph)?;
        let taken = self.graphs.remove(&copy).unwrap_or_default();
        self.graphs.insert(executable, taken);
        Ok(())
    }

    pub(crate) fn in_copy(&self, node: Handle, copy: Handle) -> Result<Handle, Status> {
        self.graph(copy)?
            .copies
            .get(&node)
            .copied()
            .ok_or(Status::INVALID_VALUE)
    }

    pub(crate) fn destroy(&mut self, graph: Handle) -> Result<(), Status> {
        let graph = self.graphs.remove(&graph).ok_or(Status::INVALID_HANDLE)?;
        for node in graph.nodes {
            self.nodes.remove(&node);
        }
        Ok(())
    }

    pub(crate) fn in_order(&self, graph: Handle) -> Result<Vec<Node>, Status> {
        let graph = self.graph(graph)?;
        let mut left = graph.nodes.clone();
        let mut ordered = Vec::new();
        while !left.is_empty() {
            let waits = |node: &Handle| {
                graph
                    .edges
                    .iter()
                    .any(|(from, to)| to == node && left.contains(from))
            };
            let next = left
                .iter()
                .position(|node| !waits(node))
                .ok_or(Status::INVALID_VALUE)?;
            let node = left.remove(next);
            ordered.push(
                self.nodes
                    .get(&node)
                    .cloned()
                    .ok_or(Status::INVALID_HANDLE)?,
            );
        }
        Ok(ordered)
    }
}
