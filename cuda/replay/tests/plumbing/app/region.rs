// SPDX-License-Identifier: MIT OR Apache-2.0
//! The region recorded as a whole.

use std::ffi::c_void;
use std::ptr::null;

use gpureplay_cuda_launch::abi::{Copy3d, KernelNode, Status};

use super::{Program, floats, pointers};

/// The inputs' first number.
pub(crate) const INPUT: &str = "PLUMBING_INPUT";
const COUNT: usize = 256;

impl Program {
    fn stream(&self) -> u64 {
        let mut stream = 0;
        call!(self.driver, cuStreamCreate(&raw mut stream => *mut u64, 1 => u32));
        stream
    }

    fn event(&self) -> u64 {
        let mut event = 0;
        call!(self.driver, cuEventCreate(&raw mut event => *mut u64, 2 => u32));
        event
    }

    fn after(&self, to: u64, from: u64) {
        let event = self.event();
        call!(self.driver, cuEventRecord(event => u64, from => u64));
        call!(self.driver, cuStreamWaitEvent(to => u64, event => u64, 0 => u32));
    }

    fn scale_in(&self, stream: u64, p: u64, factor: f32) {
        self.launch(
            "scale",
            128,
            stream,
            &pointers(&p, &factor, &(COUNT as u32)),
        );
    }

    fn send(&self, to: u64, bytes: &[u8], stream: u64) {
        call!(self.driver, cuMemcpyHtoDAsync_v2(to => u64, bytes.as_ptr().cast() => *const c_void, bytes.len() => usize, stream => u64));
    }

    fn receive(&self, from: u64, stream: u64) -> Vec<u8> {
        let mut bytes = vec![0u8; COUNT * 4];
        call!(self.driver, cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast() => *mut c_void, from => u64, bytes.len() => usize, stream => u64));
        bytes
    }

    fn turn(&self, [p, q, r]: [u64; 3], [a, b]: [u64; 2], inputs: [&[u8]; 2]) -> [Vec<u8>; 2] {
        self.send(p, inputs[0], a);
        self.send(r, inputs[1], b);
        self.scale_in(a, p, 2.0);
        self.after(b, a);
        let size = COUNT * 4;
        call!(self.driver, cuMemcpyDtoDAsync_v2(q => u64, p => u64, size => usize, b => u64));
        call!(self.driver, cuMemsetD32Async(r => u64, 7f32.to_bits() => u32, COUNT / 4 => usize, b => u64));
        self.scale_in(b, q, 3.0);
        self.scale_in(b, r, 5.0);
        self.after(a, b);
        self.scale_in(a, q, 0.5);
        [self.receive(q, a), self.receive(r, a)]
    }

    fn call(&self, stream: u64) {
        extern "C" fn nothing(_: usize) {}
        call!(self.driver, cuLaunchHostFunc(stream => u64, nothing => extern "C" fn(usize), 0 => usize));
    }

    fn plane(&self, p: u64, stream: u64) {
        let side = 16u32;
        let parameters = [
            (&raw const p).cast(),
            (&raw const side).cast(),
            (&raw const side).cast(),
        ];
        let shapes = Program::with(self.loaded(super::SHAPES));
        shapes.launch_sized("plane", [[2, 2], [8, 8]], stream, &parameters);
    }

    /// Every second input row; two layers of q; a column out.
    fn rows(&self, [p, q, _]: [u64; 3], stream: u64, input: &[u8]) -> [Vec<u8>; 2] {
        let [host, device] = [1u64, 2];
        let flat = |from: (u64, u64, u64), to: (u64, u64, u64), [width, height]: [u64; 2]| {
            let side = |(kind, address, pitch): (u64, u64, u64)| {
                let [on_host, on_device] = if kind == host {
                    [address, 0]
                } else {
                    [0, address]
                };
                [0, 0, kind, on_host, on_device, 0, pitch]
            };
            let words = [&side(from)[..], &side(to), &[width, height]].concat();
            call!(self.driver, cuMemcpy2DAsync_v2(words.as_ptr() => *const u64, stream => u64));
        };
        let bytes = input.as_ptr() as u64;
        flat((host, bytes, 128), (device, p, 96), [64, 8]);
        self.scale_in(stream, p, 2.0);
        let mut deep = [0u64; 25];
        // Four rows of two layers, 5 rows apart, 100 bytes each, from the second on.
        (deep[1], deep[4], deep[6], deep[9], deep[10]) = (1, device, p, 96, 4);
        (deep[15], deep[17], deep[20], deep[21]) = (device, q, 100, 5);
        (deep[22], deep[23], deep[24]) = (64, 3, 2);
        call!(self.driver, cuMemcpy3DAsync_v2(deep.as_ptr() => *const u64, stream => u64));
        self.scale_in(stream, q, 3.0);
        let mut results = [vec![0u8; 256], vec![0u8; 900]];
        flat(
            (device, q, 100),
            (host, results[0].as_mut_ptr() as u64, 32),
            [8, 8],
        );
        call!(self.driver, cuMemcpyDtoHAsync_v2(results[1].as_mut_ptr() => *mut u8, q => u64, 900 => usize, stream => u64));
        results
    }

    fn node(&self, graph: u64, after: &[u64], kernel: &str, parameters: &[*const c_void]) -> u64 {
        let node = KernelNode {
            function: self.kernel(kernel),
            grid: [2, 1, 1],
            block: [128, 1, 1],
            parameters: parameters.as_ptr(),
            ..KernelNode::empty()
        };
        self.kernel_node(graph, after, &node)
    }

    fn nodes(&self, p: u64, q: u64) -> u64 {
        let (graph, mut last, n) = (self.new_graph(), 0u64, COUNT as u32);
        let mut after = Vec::new();
        for factor in [2f32, 3.0] {
            after = vec![self.node(graph, &after, "scale", &pointers(&p, &factor, &n))];
        }
        let mut copy: Copy3d = [0; 25];
        (copy[6], copy[17], copy[22], copy[23], copy[24]) = (p, q, COUNT as u64 * 4, 1, 1);
        call!(self.driver, cuGraphAddMemcpyNode(&raw mut last => *mut u64, graph => u64, after.as_ptr() => *const u64, 1 => usize, &raw const copy => *const Copy3d, 1 => u64));
        self.instantiated(graph)
    }

    fn table(&self) -> u64 {
        let (module, mut table, mut size) = (self.loaded(super::TABLES), 0u64, 0usize);
        call!(self.driver, cuModuleGetGlobal_v2(&raw mut table => *mut u64, &raw mut size => *mut usize, module => u64, c"table".as_ptr() => *const i8));
        assert_eq!(size, COUNT * 4);
        self.write(table, &floats((0..COUNT).map(|index| index as f32 + 0.5)));
        table
    }

    fn constants(&self, p: u64, stream: u64) {
        let n = COUNT as u32;
        let parameters = [(&raw const p).cast(), (&raw const n).cast()];
        self.launch("constant", 128, stream, &parameters);
        call!(self.driver, cuProfilerStart());
        self.launch("constant", 128, stream, &parameters);
        self.receive(p, stream);
        call!(self.driver, cuProfilerStop());
    }

    pub(crate) fn region(&self, what: &str) {
        let begin: f32 = std::env::var(INPUT)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1.0);
        let memory = [0; 3].map(|_| self.numbers(COUNT));
        let streams = [self.stream(), self.stream()];
        let [one, two] = [begin, begin + 1000.0]
            .map(|begin| floats((0..COUNT).map(|index| begin + index as f32)));
        if what == "again" {
            return self.constants(memory[0], streams[0]);
        }
        let nodes = match what {
            "nodes" => self.nodes(memory[0], memory[1]),
            _ => 0,
        };
        let table = match what {
            "elsewhere" => self.table(),
            _ => 0,
        };
        let warm = vec![0; COUNT * 4];
        self.turn(memory, streams, [&warm, &warm]);
        call!(self.driver, cuProfilerStart());
        match what {
            "callback" => self.call(streams[0]),
            // The host may take a part's result early.
            "told" => {
                let pinned = self.pinned(64);
                self.scale_in(streams[0], memory[0], 2.0);
                call!(self.driver, cuMemcpyDtoHAsync_v2(pinned => u64, memory[0] => u64, 64 => usize, streams[0] => u64));
                self.call(streams[0]);
            }
            "array" => {
                let mut copy = [0u64; 25];
                (copy[4], copy[15]) = (2, 3);
                let function = self.driver.function("cuMemcpy3D_v2");
                // SAFETY: cuda.h's signature. The stand-in has no arrays, and copies nothing.
                let _ = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const u64) -> Status>(
                        function,
                    )(copy.as_ptr())
                };
            }
            "capture" => _ = self.capture(7, || ()),
            "graph" => {
                let (graph, n, p) = (self.new_graph(), COUNT as u32, memory[0]);
                let parameters: [*const c_void; 2] = [(&raw const p).cast(), (&raw const n).cast()];
                let node = self.node(graph, &[], "constant", &parameters);
                let executable = self.instantiated(graph);
                call!(self.driver, cuGraphNodeSetEnabled(executable => u64, node => u64, 1 => u32));
                self.launch_graph(executable);
            }
            "managed" => self.scale_in(streams[0], self.managed(COUNT * 4), 1.0),
            "texture" => self.one("idle", self.texture()),
            "external" => {
                let mut p = 0u64;
                call!(self.driver, cuExternalMemoryGetMappedBuffer(&raw mut p => *mut u64, 1 => u64, null() => *const c_void));
                self.scale_in(streams[0], p, 1.0);
            }
            "fresh" => {
                let p = self.memory(&one);
                self.scale_in(streams[0], p, 1.0);
                call!(self.driver, cuMemFree_v2(p => u64));
            }
            _ => {}
        }
        let results = match what {
            "nodes" => {
                self.send(memory[0], &one, 0);
                self.launch_graph(nodes);
                [self.receive(memory[1], 0), self.receive(memory[0], 0)]
            }
            "ranges" => {
                let nvtx = super::nvtx::Nvtx::injected();
                nvtx.range(c"outer", || {
                    nvtx.range(c"first", || {
                        self.send(memory[0], &one, 0);
                        nvtx.range(c"inner", || self.scale_in(0, memory[0], 2.0));
                    });
                    let name = ['w', '\0'].map(u32::from);
                    nvtx.range_with_wide_name(&name, || self.scale_in(0, memory[0], 3.0));
                    nvtx.push_in_domain(c"second");
                    self.scale_in(0, memory[0], 5.0);
                });
                nvtx.pop_in_domain();
                nvtx.range(c"last", || [self.receive(memory[0], 0), Vec::new()])
            }
            "elsewhere" => {
                self.send(memory[0], &one, streams[0]);
                self.scale_in(streams[0], table, 3.0);
                [
                    self.receive(table, streams[0]),
                    self.receive(memory[0], streams[0]),
                ]
            }
            "rows" => self.rows(memory, streams[0], &one),
            "accumulated" => {
                let mut p = 0u64;
                call!(self.driver, cuMemAlloc_v2(&raw mut p => *mut u64, COUNT * 4 => usize));
                self.send(memory[0], &one, streams[0]);
                self.plane(p, streams[0]);
                [
                    self.receive(p, streams[0]),
                    self.receive(memory[0], streams[0]),
                ]
            }
            "silent" => {
                self.scale_in(streams[0], memory[0], 2.0);
                [vec![0; 12], vec![0; 12]]
            }
            _ => self.turn(memory, streams, [&one, &two]),
        };
        if what == "turns" {
            self.turn(memory, streams, [&two, &one]);
        }
        if what == "late" {
            self.scale_in(streams[0], memory[0], results[0][0].into());
        }
        call!(self.driver, cuProfilerStop());
        if what == "ranges" {
            println!("answer {:?}", &results[0][..4]);
            return;
        }
        for (name, bytes) in ["one", "two"].iter().zip(&results) {
            if let Ok(folder) = std::env::var("PLUMBING_ANSWERS") {
                std::fs::write(format!("{folder}/{name}"), bytes).expect("written");
            }
        }
        let third = f32::from_le_bytes(results[0].as_chunks().0[2]);
        println!("answer {third}");
    }
}
