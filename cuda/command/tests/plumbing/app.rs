// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program of the driver API that knows nothing of recording. It finds the driver as programs do: by `cuGetProcAddress`
//! (as the CUDA runtime does), by `dlsym` of a handle, or among the symbols of the process (as if it had linked to it).

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use gpureplay_cuda_abi::{LaunchParameter, Status};

/// The task of a process that is the program.
pub(crate) const VARIABLE: &str = "PLUMBING_TASK";
/// How it finds the driver: proc, dlsym or linked.
pub(crate) const RESOLVE: &str = "PLUMBING_RESOLVE";
/// Arguments that make this test binary the program.
pub(crate) const ARGUMENTS: [&str; 4] =
    ["app::program", "--exact", "--nocapture", "--test-threads=1"];

const PTX: &str = "\
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
.visible .entry fail(.param .u64 p) { ret; }
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

    /// The address of a function; the name has the suffix of its version.
    fn function(&self, name: &str) -> *mut c_void {
        if !self.by_proc_address {
            return self.symbol(name);
        }
        type GetProcAddress =
            unsafe extern "C" fn(*const i8, *mut *mut c_void, i32, u64, *mut i32) -> Status;
        // SAFETY: the signature is that of cuda.h.
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
        // SAFETY: the signature is that of cuda.h; arguments are valid.
        let status = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> Status>(address)($($argument),*)
        };
        if let Err(status) = status.check() {
            println!("{} fails: {status}", stringify!($name));
            std::process::exit(1);
        }
    }};
}

struct Program {
    driver: Driver,
    module: u64,
}

impl Program {
    fn start() -> Self {
        let driver = Driver::open();
        let (mut device, mut context, mut module) = (0i32, 0u64, 0u64);
        call!(driver, cuInit(0 => u32));
        call!(driver, cuDeviceGet(&raw mut device => *mut i32, 0 => i32));
        call!(driver, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, device => i32));
        call!(driver, cuCtxSetCurrent(context => u64));
        let image = CString::new(PTX).expect("works");
        call!(driver, cuModuleLoadData(&raw mut module => *mut u64, image.as_ptr().cast() => *const c_void));
        Self { driver, module }
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
        let bytes: Vec<u8> = (0..count)
            .flat_map(|index| (index as f32).to_le_bytes())
            .collect();
        self.memory(&bytes)
    }

    fn read(&self, address: u64, count: usize) -> Vec<f32> {
        let mut bytes = vec![0u8; count * 4];
        call!(self.driver, cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast() => *mut c_void, address => u64, bytes.len() => usize));
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| f32::from_le_bytes(*word))
            .collect()
    }

    fn kernel(&self, name: &str) -> u64 {
        let name = CString::new(name).expect("a name");
        let mut function = 0;
        call!(self.driver, cuModuleGetFunction(&raw mut function => *mut u64, self.module => u64, name.as_ptr() => *const i8));
        function
    }

    fn launch(&self, name: &str, block: u32, stream: u64, parameters: &[*const c_void]) {
        let f = self.kernel(name);
        call!(self.driver, cuLaunchKernel(
            f => u64, 8 => u32, 1 => u32, 1 => u32, block => u32, 1 => u32, 1 => u32, 0 => u32, stream => u64,
            parameters.as_ptr() => *const *const c_void, std::ptr::null() => *const *const c_void
        ));
    }

    fn scale(&self, p: u64, factor: f32, n: u32) {
        self.launch(
            "scale",
            128,
            0,
            &[
                (&raw const p).cast(),
                (&raw const factor).cast(),
                (&raw const n).cast(),
            ],
        );
    }

    /// The same through the other way to pass parameters: one buffer.
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

    fn synchronize(&self) {
        call!(self.driver, cuCtxSynchronize());
    }
}

/// The program. In the test's own process it does nothing.
#[test]
fn program() {
    let Ok(task) = std::env::var(VARIABLE) else {
        return;
    };
    let program = Program::start();
    match task.as_str() {
        "scale" => {
            let p = program.numbers(1000);
            program.scale(p, 1.5, 1000);
            program.scale_packed(p, 2.0, 1000);
            program.synchronize();
            println!("answer {}", program.read(p, 1000)[10]);
        }
        "chase" => {
            // A list of three nodes in allocations of their own, and memory that no kernel reaches.
            let _unreached = program.numbers(100_000);
            let mut next = 0u64;
            for count in [10u64, 20, 30] {
                let data = program.numbers(count as usize);
                let node: Vec<u8> = [next, data, count]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                next = program.memory(&node);
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
        "fail" => {
            let p = program.numbers(4);
            program.one("fail", p);
            program.synchronize();
        }
        "refused" => {
            let mut managed = 0u64;
            call!(program.driver, cuMemAllocManaged(&raw mut managed => *mut u64, 64 => usize, 1 => u32));
            program.scale(managed, 2.0, 16);
            let mut texture = 0u64;
            call!(program.driver, cuTexObjectCreate(&raw mut texture => *mut u64, null_mut() => *mut c_void, null_mut() => *mut c_void, null_mut() => *mut c_void));
            program.launch("idle", 32, 0, &[(&raw const texture).cast()]);
            let (stream, p) = (7u64, program.numbers(16));
            call!(program.driver, cuStreamBeginCapture_v2(stream => u64, 0 => i32));
            program.launch("chase", 32, stream, &[(&raw const p).cast()]);
            let mut graph = 0u64;
            call!(program.driver, cuStreamEndCapture(stream => u64, &raw mut graph => *mut u64));
            println!("answer {}", program.read(p, 16)[3]);
        }
        other => panic!("no task {other}"),
    }
    // The harness would say more.
    std::process::exit(0);
}

/// The data of a node.
fn program_data(program: &Program, node: u64) -> u64 {
    let words = program.read(node, 6);
    u64::from(words[2].to_bits()) | u64::from(words[3].to_bits()) << 32
}
