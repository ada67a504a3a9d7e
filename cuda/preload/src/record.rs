// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots around a launch.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex};

use gpureplay_cuda_launch::abi::{Handle, Status, attribute};
use gpureplay_cuda_launch::recording;
use gpureplay_cuda_launch::recording::{
    Device, FORMAT, ImageReference, Origin, RegionKind, Writer,
};

use crate::asked::Launch;
use crate::copy;
use crate::functions::{Function, Layout};
use crate::guard;
use crate::memory::{Kind, Piece};
use crate::parameters::{Reason, pack, refuse_handles, refuse_hidden_handles};
use crate::real::{current_device, driver, idle_within};
use crate::settings::{Record, settings};
use crate::state::{Image, limits, memory, unrecordable};

pub(crate) fn because(what: &'static str) -> impl Fn(Status) -> Reason {
    move |status| format!("{what}: {status}")
}

pub(crate) struct Held {
    pub(crate) address: u64,
    kind: RegionKind,
    pub(crate) before: Vec<u8>,
    after: Option<Vec<u8>>,
}

impl Held {
    pub(crate) fn of_device(address: u64, before: Vec<u8>) -> Self {
        Self {
            address,
            kind: RegionKind::Device,
            before,
            after: None,
        }
    }
}

pub(crate) struct HeldVariable {
    pub(crate) name: String,
    pub(crate) held: Held,
}

pub(crate) struct Snapshot {
    image: Arc<Image>,
    parameters: Vec<u8>,
    layout: Layout,
    device: Device,
    regions: Vec<Held>,
    variables: Vec<HeldVariable>,
}

pub(crate) fn before(
    settings: &Record,
    launch: &Launch,
    function: &Function,
) -> Result<Snapshot, Reason> {
    let image = function
        .image
        .clone()
        .ok_or("its image was loaded in a way that is not known")?;
    if !idle_within(settings.time_limit).map_err(because("the GPU is not idle"))? {
        function.counts.hopeless.store(true, Ordering::Relaxed);
        return Err(busy(settings));
    }
    if let Some(kind) = unrecordable().references.get(&function.owner) {
        return Err(format!("its image has a reference to a {kind}"));
    }
    let layout = function
        .layout(launch.function)
        .map_err(because("the layout of its parameters"))?;
    let parameters = pack(launch, &layout)?;
    refuse_handles(&parameters, &layout)?;
    let device = device()?;
    refuse_hidden_handles(&image, &function.name, &device)?;
    let variables = variables(launch.function, function, &image, &device)?;

    let mut reach = memory().snapshot();
    reach.scan(&parameters);
    for variable in &variables {
        reach.scan(&variable.held.before);
    }
    if settings.all_memory {
        reach.reach_all();
    }
    let mut regions = Vec::new();
    let mut total = 0u64;
    while let Some(piece) = reach.next() {
        may_hold(&piece, &device)?;
        let kind = match piece.kind {
            Kind::Host => RegionKind::Host,
            // The kernel's own variables were copied.
            Kind::Variable => continue,
            _ => RegionKind::Device,
        };
        total = total.saturating_add(piece.size);
        if total > settings.most_bytes {
            return Err(format!(
                "it reaches more than {} bytes",
                settings.most_bytes
            ));
        }
        let size = usize::try_from(piece.size).map_err(|_| "a region is too large")?;
        let before = read(piece.address, size, kind)?;
        reach.scan(&before);
        regions.push(Held {
            address: piece.address,
            kind,
            before,
            after: None,
        });
    }
    regions.sort_by_key(|region| region.address);
    Ok(Snapshot {
        image,
        parameters,
        layout,
        device,
        regions,
        variables,
    })
}

pub(crate) fn may_hold(piece: &Piece, device: &Device) -> Result<(), Reason> {
    if let Some(what) = piece.kind.lacked() {
        return Err(format!("it reaches {what}"));
    }
    if matches!(piece.kind, Kind::Device | Kind::Mapped) {
        let gpu = gpu_of(piece.address).unwrap_or(piece.device);
        if gpu != device.ordinal {
            return Err(format!("it reaches memory of GPU {gpu}"));
        }
    }
    Ok(())
}

pub(crate) fn busy(settings: &Record) -> Reason {
    format!(
        "the GPU is not idle after {} s: what runs may wait for the host",
        settings.time_limit.as_secs()
    )
}

/// Pools and handles may belong to another GPU than the current one.
pub(crate) fn gpu_of(address: u64) -> Option<i32> {
    let mut ordinal = 0i32;
    let place = (&raw mut ordinal).cast();
    // SAFETY: the answer to this question is one integer.
    let status = unsafe {
        driver()
            .ok()?
            .cuPointerGetAttribute(place, attribute::pointer::DEVICE_ORDINAL, address)
    };
    (status == Status::SUCCESS && ordinal >= 0).then_some(ordinal)
}

pub(crate) fn device() -> Result<Device, Reason> {
    static KNOWN: LazyLock<Mutex<HashMap<i32, Device>>> = LazyLock::new(Mutex::default);
    let ordinal = current_device().map_err(because("no current GPU"))?;
    let mut known = guard::lock(&KNOWN);
    if let Some(device) = known.get(&ordinal) {
        return Ok(device.clone());
    }
    let driver = driver().map_err(because("no driver"))?;
    let (mut version, mut major, mut minor) = (0, 0, 0);
    let mut name = [0; 256];
    // SAFETY: pointers to locals of the sizes that are passed.
    unsafe {
        driver
            .cuDriverGetVersion(&raw mut version)
            .check()
            .map_err(because("the driver's version"))?;
        driver
            .cuDeviceGetName(name.as_mut_ptr(), 256, ordinal)
            .check()
            .map_err(because("the name of the GPU"))?;
        for (value, number) in [
            (&raw mut major, attribute::device::CAPABILITY_MAJOR),
            (&raw mut minor, attribute::device::CAPABILITY_MINOR),
        ] {
            driver
                .cuDeviceGetAttribute(value, number, ordinal)
                .check()
                .map_err(because("the capability of the GPU"))?;
        }
    }
    // SAFETY: the driver ends the name with a zero byte; the array was zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }
        .to_string_lossy()
        .into_owned();
    let device = Device {
        name,
        capability: [major, minor],
        driver: version,
        ordinal,
    };
    known.insert(ordinal, device.clone());
    Ok(device)
}

pub(crate) fn variables(
    launched: Handle,
    function: &Function,
    image: &Image,
    device: &Device,
) -> Result<Vec<HeldVariable>, Reason> {
    let part = gpureplay_cuda_launch::image::select(&image.bytes, &function.name, device.sm())
        .map_err(|error| format!("its image: {error}"))?
        .ok_or("its image holds no kernel of that name for this GPU")?;
    let driver = driver().map_err(because("no driver"))?;
    let mut found = Vec::new();
    for variable in part.variables {
        let name = CString::new(variable.name.clone()).map_err(|_| "a variable has no name")?;
        let (mut address, mut size) = (0, 0);
        // SAFETY: pointers to locals and a C string; the owner is alive, since the program launches its kernel.
        let status = unsafe {
            if function.is_kernel {
                let status = driver.cuLibraryGetGlobal(
                    &raw mut address,
                    &raw mut size,
                    function.owner,
                    name.as_ptr(),
                );
                if status == Status::SUCCESS {
                    status
                } else {
                    let module = module_of(launched);
                    module.map_or_else(
                        |status| status,
                        |module| {
                            driver.cuModuleGetGlobal_v2(
                                &raw mut address,
                                &raw mut size,
                                module,
                                name.as_ptr(),
                            )
                        },
                    )
                }
            } else {
                driver.cuModuleGetGlobal_v2(
                    &raw mut address,
                    &raw mut size,
                    function.owner,
                    name.as_ptr(),
                )
            }
        };
        // Linkers drop unused variables.
        if status == Status::NOT_FOUND || (status == Status::SUCCESS && size == 0) {
            continue;
        }
        status
            .check()
            .map_err(|status| format!("its variable {}: {status}", variable.name))?;
        found.push((address, size, variable.name));
    }
    // Variables of one name in two translation units are found twice.
    found.sort_by_key(|(address, size, _)| (*address, std::cmp::Reverse(*size)));
    let mut end = 0;
    let mut variables = Vec::new();
    for (address, size, name) in found {
        let last = address.saturating_add(size as u64);
        if last <= end {
            continue;
        }
        end = last;
        let before = read(address, size, RegionKind::Device)?;
        let held = Held::of_device(address, before);
        variables.push(HeldVariable { name, held });
    }
    Ok(variables)
}

fn module_of(kernel: Handle) -> Result<Handle, Status> {
    let driver = driver()?;
    let (mut function, mut module) = (0, 0);
    // SAFETY: pointers to locals; the kernel is the one that is launched.
    unsafe {
        driver
            .cuKernelGetFunction(&raw mut function, kernel)
            .check()?;
        driver.cuFuncGetModule(&raw mut module, function).check()?;
    }
    Ok(module)
}

fn no_room(size: usize) -> Reason {
    format!("no memory for a copy of {size} bytes")
}

fn unreadable(address: u64) -> impl Fn(Status) -> Reason {
    move |status| format!("its memory at {address:#x} cannot be read: {status}")
}

pub(crate) fn read(address: u64, size: usize, kind: RegionKind) -> Result<Vec<u8>, Reason> {
    match kind {
        RegionKind::Host => {
            let mut bytes: Vec<u8> = Vec::new();
            bytes.try_reserve_exact(size).map_err(|_| no_room(size))?;
            // SAFETY: the program allocated or registered the region and cannot free it while the gate is closed; there
            // is room for as many bytes. No reference to them is made: the program's threads may write meanwhile.
            unsafe {
                std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size);
                bytes.set_len(size);
            }
            Ok(bytes)
        }
        RegionKind::Device => copy::read(address, size)
            .map_err(unreadable(address))?
            .ok_or_else(|| no_room(size)),
    }
}

fn changed(held: &Held) -> Result<Option<Vec<u8>>, Reason> {
    match held.kind {
        RegionKind::Host => {
            let after = read(held.address, held.before.len(), held.kind)?;
            Ok((after != held.before).then_some(after))
        }
        RegionKind::Device => copy::changed(held.address, &held.before)
            .map_err(unreadable(held.address))?
            .ok_or_else(|| no_room(held.before.len())),
    }
}

impl Snapshot {
    pub(crate) fn after(mut self, settings: &Record, function: &Function) -> Result<Self, Reason> {
        if !idle_within(settings.time_limit).map_err(because("the kernel fails"))? {
            function.counts.hopeless.store(true, Ordering::Relaxed);
            return Err(format!(
                "it does not end in {} s: it may wait for the host",
                settings.time_limit.as_secs()
            ));
        }
        let variables = self.variables.iter_mut().map(|variable| &mut variable.held);
        for held in self.regions.iter_mut().chain(variables) {
            held.after = changed(held)?;
        }
        Ok(self)
    }

    pub(crate) fn write(
        self,
        settings: &Record,
        launch: &Launch,
        function: &Function,
        occurrence: u64,
    ) -> Result<u32, Reason> {
        self.add(settings, launch, function, occurrence)
            .map_err(|error| error.to_string())
    }

    fn add(
        self,
        settings: &Record,
        launch: &Launch,
        function: &Function,
        occurrence: u64,
    ) -> Result<u32, recording::RecordingError> {
        let writer = Writer::sharing(&settings.folder, settings.share.clone())?;
        let store = writer.store();
        let put = |held: &Held| {
            let before = store.put(&held.before)?;
            let after = held.after.as_ref().map(|after| store.put(after));
            let after = after.transpose()?;
            Ok::<_, recording::RecordingError>((before, after))
        };
        let mut regions = Vec::new();
        for held in &self.regions {
            let (before, after) = put(held)?;
            regions.push(recording::Region {
                address: held.address,
                size: held.before.len() as u64,
                kind: held.kind,
                before,
                after,
            });
        }
        let mut variables = Vec::new();
        for HeldVariable { name, held } in &self.variables {
            let (before, after) = put(held)?;
            variables.push(recording::Variable {
                name: name.clone(),
                address: held.address,
                size: held.before.len() as u64,
                before,
                after,
            });
        }
        writer.add(&recording::Launch {
            format: FORMAT,
            kernel: function.name.to_string(),
            origin: Origin {
                process: std::process::id(),
                rank: rank(),
                occurrence,
                entry: launch.entry.to_owned(),
            },
            device: self.device,
            grid: launch.sizes.grid,
            block: launch.sizes.block,
            shared: launch.sizes.shared,
            parameters: self.parameters,
            layout: self.layout,
            attributes: launch.attributes.concat(),
            function_attributes: function.attributes(),
            limits: limits(),
            image: ImageReference {
                hash: store.put_image(&self.image.bytes)?,
                size: self.image.bytes.len() as u64,
            },
            regions,
            variables,
        })
    }
}

pub(crate) fn rank() -> Option<u32> {
    settings().rank
}
