// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that finds the driver by `cuGetProcAddress` (as the CUDA runtime), `dlsym`, or linked symbols.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use gpureplay_cuda_launch::abi::{
    Copy3d, KernelNode, LaunchParameter, MemsetNode, NodeParameters, Status,
};

pub(crate) const VARIABLE: &str = "PLUMBING_TASK";
/// proc, dlsym or linked.
pub(crate) const RESOLVE: &str = "PLUMBING_RESOLVE";
pub(crate) const ARGUMENTS: [&str; 4] =
    ["app::program", "--exact", "--nocapture", "--test-threads=1"];

pub(crate) const PTX: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 hits;
.visible .global .align 8 .u64 target;
.visible .global .align 4 .u32 total;
.visible .entry scale(.param .u64 p, .param .f32 factor, .param .u32 n) .maxntid 512 { ret; }
.visible .entry chase(.param .u64 head) { ret; }
.visible .entry bump(.param .u64 unused) { ret; }
.visible .entry idle(.param .u64 p) { ret; }
.visible .entry noise(.param .u64 p) { ret; }
.visible .entry constant(.param .u64 p, .param .u32 n) { ret; }
.visible .entry accumulate(.param .u64 p) { ret; }
.visible .entry heap(.param .u64 p) { ret; }
.visible .entry fragile(.param .u64 index, .param .u64 p) { ret; }
.visible .entry check(.param .u64 a, .param .u64 b, .param .u64 wrong) { ret; }
.visible .entry once(.param .u64 word) { ret; }
.visible .entry fail(.param .u64 p) { ret; }
.visible .entry stray(.param .u64 p) { ret; }
.visible .entry textured(.param .u64 p) { tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}]; ret; }
.visible .entry patient(.param .u64 words) { ret; }
.visible .entry place(.param .u64 p) { ret; }
";

/// Without variables.
const SHAPES: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry plane(.param .u64 p, .param .u32 width, .param .u32 height) { ret; }
.visible .entry stride(.param .u64 p, .param .u32 n) { ret; }
";

const TABLES: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 table[256];
.visible .entry nothing(.param .u64 p) { ret; }
";

unsafe extern "C" {
    fn dlopen(name: *const i8, flags: i32) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const i8) -> *mut c_void;
}

struct Driver {
    library: *mut c_void,
    by_proc_address: bool,
}

impl Driver {
    fn open() -> Self {
        let resolve = std::env::var(RESOLVE).expect("works");
        const NOW: i32 = 2;
        const GLOBAL: i32 = 0x100;
        // SAFETY: a C string and flags.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), NOW | GLOBAL) };
        assert!(!library.is_null(), "libcuda.so.1 is there");
        let library = if resolve == "linked" {
            null_mut()
        } else {
            library
        };
        Self {
            library,
            by_proc_address: resolve == "proc",
        }
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("a name");
        // SAFETY: a handle and a C string.
        let address = unsafe { dlsym(self.library, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?} is there");
        address
    }

    fn function(&self, name: &str) -> *mut c_void {
        if !self.by_proc_address {
            return self.symbol(name);
        }
        type GetProcAddress =
            unsafe extern "C" fn(*const i8, *mut *mut c_void, i32, u64, *mut i32) -> Status;
        // SAFETY: cuda.h's signature.
        let get = unsafe {
            std::mem::transmute::<*mut c_void, GetProcAddress>(self.symbol("cuGetProcAddress_v2"))
        };
        let plain = CString::new(name.trim_end_matches("_v2")).expect("works");
        let mut address = null_mut();
        // SAFETY: a C string and pointers to locals.
        let status = unsafe { get(plain.as_ptr(), &raw mut address, 13000, 0, null_mut()) };
        assert_eq!(status, Status::SUCCESS, "{name}");
        address
    }
}

macro_rules! call {
    ($driver:expr, $name:ident ( $($argument:expr => $kind:ty),* )) => {{
        let address = $driver.function(stringify!($name));
        // SAFETY: cuda.h's signature; arguments are valid.
        let status = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> Status>(address)($($argument),*)
        };
        if let Err(status) = status.check() {
            println!("{} fails: {status}", stringify!($name));
            std::process::exit(1);
        }
    }};
}

mod nvtx;
pub(crate) mod region;
pub(crate) mod turns;

struct Program {
    driver: Driver,
    module: u64,
}

/// Parameters of `scale`.
fn pointers(p: &u64, factor: &f32, n: &u32) -> [*const c_void; 3] {
    let (p, factor, n) = (&raw const *p, &raw const *factor, &raw const *n);
    [p.cast(), factor.cast(), n.cast()]
}

fn floats(numbers: impl Iterator<Item = f32>) -> Vec<u8> {
    numbers.flat_map(f32::to_le_bytes).collect()
}

impl Program {
    fn start(image: &str) -> Self {
        let driver = Driver::open();
        let (mut device, mut context) = (0i32, 0u64);
        call!(driver, cuInit(0 => u32));
        call!(driver, cuDeviceGet(&raw mut device => *mut i32, 0 => i32));
        call!(driver, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, device => i32));
        call!(driver, cuCtxSetCurrent(context => u64));
        let mut program = Self { driver, module: 0 };
        program.module = program.loaded(image);
        program
    }

    fn loaded(&self, image: &str) -> u64 {
        let (image, mut module) = (CString::new(image).expect("works"), 0);
        call!(self.driver, cuModuleLoadData(&raw mut module => *mut u64, image.as_ptr().cast() => *const c_void));
        module
    }

    fn with(module: u64) -> Self {
        let driver = Driver::open();
        Self { driver, module }
    }

    fn pinned(&self, size: usize) -> u64 {
        let mut address = 0;
        call!(self.driver, cuMemHostAlloc(&raw mut address => *mut u64, size => usize, 0 => u32));
        address
    }

    fn managed(&self, size: usize) -> u64 {
        let mut address = 0;
        call!(self.driver, cuMemAllocManaged(&raw mut address => *mut u64, size => usize, 1 => u32));
        address
    }

    fn texture(&self) -> u64 {
        let (mut texture, none) = (0, null_mut());
        call!(self.driver, cuTexObjectCreate(&raw mut texture => *mut u64, none => *mut c_void, none => *mut c_void, none => *mut c_void));
        texture
    }

    fn new_graph(&self) -> u64 {
        let mut graph = 0;
        call!(self.driver, cuGraphCreate(&raw mut graph => *mut u64, 0 => u32));
        graph
    }

    fn capture(&self, stream: u64, work: impl FnOnce()) -> u64 {
        let mut graph = 0;
        call!(self.driver, cuStreamBeginCapture_v2(stream => u64, 0 => i32));
        work();
        call!(self.driver, cuStreamEndCapture(stream => u64, &raw mut graph => *mut u64));
        graph
    }

    fn memory(&self, bytes: &[u8]) -> u64 {
        let mut address = 0;
        call!(self.driver, cuMemAlloc_v2(&raw mut address => *mut u64, bytes.len() => usize));
        self.write(address, bytes);
        address
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        call!(self.driver, cuMemcpyHtoD_v2(address => u64, bytes.as_ptr().cast() => *const c_void, bytes.len() => usize));
    }

    fn numbers(&self, count: usize) -> u64 {
        self.memory(&floats((0..count).map(|index| index as f32)))
    }

    fn bytes(&self, address: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; size];
        call!(self.driver, cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast() => *mut c_void, address => u64, size => usize));
        bytes
    }

    fn read(&self, address: u64, count: usize) -> Vec<f32> {
        let bytes = self.bytes(address, count * 4);
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    }

    fn kernel(&self, name: &str) -> u64 {
        let name = CString::new(name).expect("a name");
        let mut function = 0;
        call!(self.driver, cuModuleGetFunction(&raw mut function => *mut u64, self.module => u64, name.as_ptr() => *const i8));
        function
    }

    fn launch(&self, name: &str, block: u32, stream: u64, parameters: &[*const c_void]) {
        self.launch_sized(name, [[8, 1], [block, 1]], stream, parameters);
    }

    fn launch_sized(
        &self,
        name: &str,
        [[gx, gy], [bx, by]]: [[u32; 2]; 2],
        stream: u64,
        parameters: &[*const c_void],
    ) {
        let f = self.kernel(name);
        call!(self.driver, cuLaunchKernel(
            f => u64, gx => u32, gy => u32, 1 => u32, bx => u32, by => u32, 1 => u32, 0 => u32, stream => u64,
            parameters.as_ptr() => *const *const c_void, std::ptr::null() => *const *const c_void
        ));
    }

    fn scale(&self, p: u64, factor: f32, n: u32) {
        self.launch("scale", 128, 0, &pointers(&p, &factor, &n));
    }

    fn scale_packed(&self, p: u64, factor: f32, n: u32) {
        let mut buffer = p.to_le_bytes().to_vec();
        buffer.extend(factor.to_le_bytes());
        buffer.extend(n.to_le_bytes());
        let size = buffer.len();
        let extra = [
            LaunchParameter::BufferPointer as usize as *const c_void,
            buffer.as_ptr().cast(),
            2usize as _,
            (&raw const size).cast(),
            std::ptr::null(),
        ];
        let f = self.kernel("scale");
        call!(self.driver, cuLaunchKernel(
            f => u64, 8 => u32, 1 => u32, 1 => u32, 128 => u32, 1 => u32, 1 => u32, 0 => u32, 0 => u64,
            std::ptr::null() => *const *const c_void, extra.as_ptr() => *const *const c_void
        ));
    }

    fn one(&self, name: &str, p: u64) {
        self.launch(name, 32, 0, &[(&raw const p).cast()]);
    }

    fn kernel_node(&self, graph: u64, after: &[u64], parameters: &KernelNode) -> u64 {
        let mut node = 0;
        call!(self.driver, cuGraphAddKernelNode_v2(
            &raw mut node => *mut u64, graph => u64, after.as_ptr() => *const u64, after.len() => usize,
            parameters => *const KernelNode
        ));
        node
    }

    fn scaling(&self, parameters: &[*const c_void; 3]) -> KernelNode {
        KernelNode {
            function: self.kernel("scale"),
            grid: [1, 1, 1],
            block: [32, 1, 1],
            parameters: parameters.as_ptr(),
            ..KernelNode::empty()
        }
    }

    fn instantiated(&self, graph: u64) -> u64 {
        let mut executable = 0;
        call!(self.driver, cuGraphInstantiateWithFlags(&raw mut executable => *mut u64, graph => u64, 0 => u64));
        executable
    }

    fn launch_graph(&self, executable: u64) {
        call!(self.driver, cuGraphLaunch(executable => u64, 0 => u64));
    }

    /// 16 numbers become 2, then 1.5 times twice, and are copied; launched, changed, launched.
    fn graph(&self) {
        let (p, q, n) = (self.numbers(16), self.numbers(16), 16u32);
        let (factor, other) = (1.5f32, 10f32);
        let (values, changed) = (pointers(&p, &factor, &n), pointers(&p, &other, &n));
        let parameters = self.scaling(&values);
        let two = MemsetNode {
            destination: p,
            pitch: 0,
            value: 2f32.to_bits(),
            element: 4,
            width: 16,
            height: 1,
        };
        let mut copy: Copy3d = [0; 25];
        (copy[6], copy[17], copy[22], copy[23], copy[24]) = (p, q, 64, 1, 1);
        let (graph, mut set, mut empty, mut last) = (self.new_graph(), 0u64, 0u64, 0u64);
        call!(self.driver, cuGraphAddMemsetNode(&raw mut set => *mut u64, graph => u64, std::ptr::null() => *const u64, 0 => usize, &raw const two => *const MemsetNode, 1 => u64));
        let first = self.kernel_node(graph, &[set], &parameters);
        call!(self.driver, cuGraphAddEmptyNode(&raw mut empty => *mut u64, graph => u64, &raw const first => *const u64, 1 => usize));
        let second = self.kernel_node(graph, &[empty], &parameters);
        call!(self.driver, cuGraphAddMemcpyNode(&raw mut last => *mut u64, graph => u64, &raw const second => *const u64, 1 => usize, &raw const copy => *const Copy3d, 1 => u64));
        let executable = self.instantiated(graph);
        self.launch_graph(executable);
        println!("first {}", self.read(q, 16)[10]);
        let parameters = KernelNode {
            parameters: changed.as_ptr(),
            ..parameters
        };
        call!(self.driver, cuGraphExecKernelNodeSetParams_v2(executable => u64, second => u64, &raw const parameters => *const KernelNode));
        // It outlives the graph.
        call!(self.driver, cuGraphDestroy(graph => u64));
        self.launch_graph(executable);
        println!("answer {}", self.read(q, 16)[10]);
        call!(self.driver, cuGraphExecDestroy(executable => u64));
    }

    fn captured(&self) {
        let (p, n, stream) = (self.numbers(16), 16u32, 7u64);
        let capture = |factor: f32| {
            self.capture(stream, || {
                for _ in 0..2 {
                    self.launch("scale", 32, stream, &pointers(&p, &factor, &n));
                }
            })
        };
        let executable = self.instantiated(capture(2.0));
        self.launch_graph(executable);
        call!(self.driver, cuGraphExecUpdate_v2(executable => u64, capture(3.0) => u64, null_mut() => *mut c_void));
        self.launch_graph(executable);
        println!("answer {}", self.read(p, 16)[1]);
    }

    /// A node that no launch stands for, and a changed graph.
    fn refused_graphs(&self) {
        let (p, n, factor) = (self.numbers(16), 16u32, 2f32);
        let values = pointers(&p, &factor, &n);
        let parameters = self.scaling(&values);
        for with_event in [true, false] {
            let (graph, mut event) = (self.new_graph(), 0u64);
            let node = self.kernel_node(graph, &[], &parameters);
            if with_event {
                call!(self.driver, cuGraphAddEventRecordNode(&raw mut event => *mut u64, graph => u64, &raw const node => *const u64, 1 => usize, 5 => u64));
            }
            let executable = self.instantiated(graph);
            if !with_event {
                call!(self.driver, cuGraphNodeSetEnabled(executable => u64, node => u64, 1 => u32));
            }
            self.launch_graph(executable);
        }
        println!("answer {}", self.read(p, 16)[1]);
    }

    fn conditional(&self) {
        let (p, n, factor) = (self.numbers(16), 16u32, 2f32);
        let values = pointers(&p, &factor, &n);
        let kernel = self.scaling(&values);
        self.scale(p, 2.0, 16);
        let none = std::ptr::null::<u64>();
        let (graph, mut node) = (self.new_graph(), 0u64);
        let mut deciding = NodeParameters::deciding(1);
        call!(self.driver, cuGraphAddNode_v2(
            &raw mut node => *mut u64, graph => u64, none => *const u64, none => *const u64, 0 => usize,
            &raw mut deciding => *mut NodeParameters
        ));
        // SAFETY: the driver wrote the place of the one graph's handle.
        let body = unsafe { *(deciding.decided().1 as *const u64) };
        self.kernel_node(body, &[], &kernel);
        self.launch_graph(self.instantiated(graph));
        println!("answer {}", self.read(p, 16)[1]);
    }

    fn linked(&self) {
        let (mut link, mut image, mut size, mut module) =
            (0u64, std::ptr::null::<c_void>(), 0usize, 0u64);
        let none = std::ptr::null::<c_void>();
        let text = CString::new(PTX).expect("works");
        let bytes = text.as_bytes_with_nul();
        call!(self.driver, cuLinkCreate_v2(0 => u32, none => *const c_void, none => *const c_void, &raw mut link => *mut u64));
        call!(self.driver, cuLinkAddData_v2(
            link => u64, 1 => i32, bytes.as_ptr().cast() => *const c_void, bytes.len() => usize, c"text".as_ptr() => *const i8,
            0 => u32, none => *const c_void, none => *const c_void
        ));
        call!(self.driver, cuLinkComplete(link => u64, &raw mut image => *mut *const c_void, &raw mut size => *mut usize));
        call!(self.driver, cuModuleLoadData(&raw mut module => *mut u64, image => *const c_void));
        call!(self.driver, cuLinkDestroy(link => u64));
        let p = self.numbers(16);
        Self::with(module).scale(p, 3.0, 16);
        println!("answer {}", self.read(p, 16)[10]);
    }

    fn synchronize(&self) {
        call!(self.driver, cuCtxSynchronize());
    }
}

#[test]
fn program() {
    let Ok(task) = std::env::var(VARIABLE) else {
        return;
    };
    let program = Program::start(if task == "shapes" { SHAPES } else { PTX });
    match task.as_str() {
        "scale" => {
            let p = program.numbers(1000);
            program.scale(p, 1.5, 1000);
            program.scale_packed(p, 2.0, 1000);
            program.synchronize();
            println!("answer {}", program.read(p, 1000)[10]);
        }
        "stray" => {
            // Unknown to the driver's queries, as the kernels' heap.
            let wanted = 0x2_1000_0000u64;
            let (both, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let flags = private | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: new memory where none is.
            let heap = unsafe { libc::mmap(wanted as *mut c_void, 4096, both, flags, -1, 0) };
            assert_eq!(heap as u64, wanted);
            let bytes = [wanted + 8, 0].map(u64::to_le_bytes).concat();
            program.one("stray", program.memory(&bytes));
        }
        "textured" => {
            let memory = program.memory(&[1; 64]);
            program.one("textured", memory);
            program.texture();
            program.one("textured", memory);
            program.one("idle", memory);
        }
        "large" => {
            // 20 MB: one launch changes all, the other half; the first is no multiple of 16 bytes.
            for (n, blocks) in [(5_000_003u32, 39_063), (5_000_000, 19_532)] {
                let (p, factor) = (program.numbers(n as usize), 1.5f32);
                program.launch_sized(
                    "scale",
                    [[blocks, 1], [128, 1]],
                    0,
                    &pointers(&p, &factor, &n),
                );
            }
        }
        "chase" => {
            let _unreached = program.numbers(100_000);
            let mut next = 0u64;
            for count in [10u64, 20, 30] {
                let data = program.numbers(count as usize);
                next = program.memory(&[next, data, count].map(u64::to_le_bytes).concat());
            }
            program.one("chase", next);
            println!(
                "answer {}",
                program.read(program_data(&program, next), 1)[0]
            );
        }
        "bump" => {
            let (mut target, mut total, mut size) = (0u64, 0u64, 0usize);
            for (name, address) in [(c"target", &raw mut target), (c"total", &raw mut total)] {
                call!(program.driver, cuModuleGetGlobal_v2(address => *mut u64, &raw mut size => *mut usize, program.module => u64, name.as_ptr() => *const i8));
            }
            program.write(target, &total.to_le_bytes());
            program.one("bump", 0);
            println!("answer {}", program.read(total, 1)[0].to_bits());
        }
        "others" => {
            let p = program.numbers(4);
            program.one("idle", p);
            program.one("noise", p);
            println!("answer {}", program.read(p, 4)[3]);
        }
        "again" => {
            let (p, n) = (program.numbers(200), 200u32);
            for _ in 0..2 {
                program.launch(
                    "constant",
                    32,
                    0,
                    &[(&raw const p).cast(), (&raw const n).cast()],
                );
            }
            program.one("accumulate", p);
            println!("answer {}", program.read(p, 200)[10]);
        }
        "once" => {
            let p = program.memory(&[0; 4]);
            program.one("once", p);
            println!("answer {}", program.read(p, 1)[0].to_bits());
        }
        "fail" => {
            let p = program.numbers(4);
            program.one("fail", p);
            program.synchronize();
        }
        "graph" => program.graph(),
        turns if turns.starts_with("turns") => {
            program.turns(turns.trim_start_matches("turns").trim());
        }
        region if region.starts_with("region") => {
            program.region(region.trim_start_matches("region").trim());
        }
        "captured" => program.captured(),
        "conditional" => program.conditional(),
        "refused graphs" => program.refused_graphs(),
        "linked" => program.linked(),
        "heap" => {
            let p = program.numbers(4);
            call!(program.driver, cuCtxSetLimit(2 => i32, 0x1234_0000 => usize));
            program.one("heap", p);
            println!("answer {:x}", program.read(p, 1)[0].to_bits());
        }
        "fragile" => {
            let (index, p) = (program.memory(&2u32.to_le_bytes()), program.numbers(4));
            for _ in 0..2 {
                program.launch(
                    "fragile",
                    32,
                    0,
                    &[(&raw const index).cast(), (&raw const p).cast()],
                );
            }
            println!("answer {}", program.read(p, 4)[2]);
        }
        "check" => {
            let (a, b, wrong) = (
                program.numbers(64),
                program.numbers(64),
                program.memory(&[0; 4]),
            );
            program.launch(
                "check",
                32,
                0,
                &[
                    (&raw const a).cast(),
                    (&raw const b).cast(),
                    (&raw const wrong).cast(),
                ],
            );
            println!("answer {}", program.read(wrong, 1)[0]);
        }
        "shapes" => {
            let (plane, line) = (program.numbers(96 * 40), program.numbers(5000));
            let (width, height, n) = (96u32, 40u32, 5000u32);
            program.launch_sized(
                "plane",
                [[3, 5], [32, 8]],
                0,
                &[
                    (&raw const plane).cast(),
                    (&raw const width).cast(),
                    (&raw const height).cast(),
                ],
            );
            for blocks in [8, 8, 4] {
                program.launch_sized(
                    "stride",
                    [[blocks, 1], [128, 1]],
                    0,
                    &[(&raw const line).cast(), (&raw const n).cast()],
                );
            }
            println!(
                "answer {} {}",
                program.read(plane, 96 * 40)[96 * 39 + 95],
                program.read(line, 5000)[10]
            );
        }
        "host" => {
            let (p, host) = (program.numbers(1000), program.pinned(400));
            program.write(host, &[0; 400]);
            let node = program.memory(&[0, host, 100].map(u64::to_le_bytes).concat());
            let second = [node, p, 1000].map(u64::to_le_bytes).concat();
            program.one("chase", program.memory(&second));
            println!(
                "answer {} {}",
                program.read(p, 11)[10],
                program.read(host, 100)[99]
            );
        }
        "many" => {
            let sizes = [40usize, 4096, 3 << 20, 100, 40 << 20, 8];
            let all: Vec<u64> = sizes
                .iter()
                .map(|size| program.memory(&vec![1; *size]))
                .collect();
            for index in [1, 3] {
                call!(program.driver, cuMemFree_v2(all[index] => u64));
            }
            let p = program.numbers(700);
            let (mut base, mut size) = (0u64, 0usize);
            call!(program.driver, cuMemGetAddressRange_v2(&raw mut base => *mut u64, &raw mut size => *mut usize, p + 100 => u64));
            program.scale(p, 2.0, 700);
            program.scale(all[4], 2.0, 1 << 20);
            let overlap = all
                .iter()
                .enumerate()
                .any(|(index, at)| !matches!(index, 1 | 3) && (p..p + 2800).contains(at));
            println!(
                "answer {} {} {overlap}",
                program.read(p, 700)[10],
                base == p && size >= 2800
            );
        }
        "place" => {
            let p = program.numbers(4);
            program.one("place", p);
            println!("answer {}", program.read(p, 4)[2].to_bits());
        }
        "patient" => {
            let (words, p) = (program.pinned(64), program.numbers(16));
            program.one("patient", words);
            // Memory of the host that the kernel reads: no call of the driver writes it.
            // SAFETY: 64 bytes that the driver handed out.
            unsafe { (words as *mut u32).write_volatile(1) };
            program.scale(p, 2.0, 16);
            program.synchronize();
            // SAFETY: as above; the kernel has ended.
            let written = unsafe { (words as *const u32).add(1).read_volatile() };
            println!("answer {written} {}", program.read(p, 16)[3]);
        }
        "far" => {
            // Unrecordable: another GPU's, another process's, multicast, a module's texture.
            const PAGE: usize = 2 << 20;
            let mut pooled = 0u64;
            call!(program.driver, cuMemAllocFromPoolAsync(&raw mut pooled => *mut u64, 64 => usize, 1 => u64, 0 => u64));
            program.one("idle", pooled);
            let (mut at, mut multicast, mut imported, mut reference) = (0u64, 0u64, 0u64, 0u64);
            call!(program.driver, cuMemAddressReserve(&raw mut at => *mut u64, 2 * PAGE => usize, 0 => usize, 0 => u64, 0 => u64));
            call!(program.driver, cuMulticastCreate(&raw mut multicast => *mut u64, null_mut() => *mut c_void));
            call!(program.driver, cuMemImportFromShareableHandle(&raw mut imported => *mut u64, null_mut() => *mut c_void, 1 => i32));
            for (index, handle) in [(0, multicast), (1, imported)] {
                call!(program.driver, cuMemMap(at + index * PAGE as u64 => u64, PAGE => usize, 0 => usize, handle => u64, 0 => u64));
                call!(program.driver, cuMemRelease(handle => u64));
            }
            call!(program.driver, cuMemSetAccess(at => u64, 2 * PAGE => usize, null_mut() => *mut c_void, 0 => usize));
            program.one("accumulate", at);
            program.one("noise", at + PAGE as u64);
            call!(program.driver, cuModuleGetTexRef(&raw mut reference => *mut u64, program.module => u64, c"t".as_ptr() => *const i8));
            program.one("heap", program.numbers(4));
            println!("answer 1");
        }
        "refused" => {
            program.scale(program.managed(64), 2.0, 16);
            program.one("idle", program.texture());
            let (stream, p) = (7u64, program.numbers(16));
            program.capture(stream, || {
                program.launch("chase", 32, stream, &[(&raw const p).cast()]);
            });
            println!("answer {}", program.read(p, 16)[3]);
        }
        other => panic!("no task {other}"),
    }
    std::process::exit(0);
}

fn program_data(program: &Program, node: u64) -> u64 {
    let words = program.read(node, 6);
    u64::from(words[2].to_bits()) | u64::from(words[3].to_bits()) << 32
}
