// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panthor's requests.

use mali_uapi::panthor as streams;

use super::{App, REQUESTS};

impl App<'_> {
    fn syncs(&mut self) -> streams::ObjectArray {
        let sync = streams::SyncOp {
            flags: self.pick(&[streams::SYNC_SIGNAL, 0, 1, 2]),
            handle: self.sync(),
            point: self.pick(&[0, 1, u64::MAX]),
        };
        match self.below(3) {
            0 => self.objects(&[sync]),
            _ => streams::ObjectArray::default(),
        }
    }

    pub(crate) fn streams(&mut self) {
        for _ in 0..REQUESTS {
            match self.below(20) {
                0 => {
                    let range = self.size();
                    let mut made = streams::VmCreate {
                        flags: self.pick(&[0, 0, 0, 1]),
                        id: 0,
                        user_range: self.pick(&[0, 0, 1 << 47, 1 << 40, range]),
                    };
                    if self.ask(streams::VM_CREATE, &mut made) {
                        self.handles.push(made.id);
                    }
                }
                1 | 2 => {
                    let mut made = streams::BoCreate {
                        size: self.size(),
                        flags: self.pick(&[0, 0, 0, 1, 2, 3]),
                        exclusive_vm: self.pick(&[0, 0, 1, 9]),
                        ..Default::default()
                    };
                    if self.ask(streams::BO_CREATE, &mut made) {
                        self.handles.push(made.handle);
                    }
                }
                3 => {
                    let handle = self.handle();
                    let mut place = streams::BoMmapOffset {
                        handle,
                        ..Default::default()
                    };
                    if self.ask(streams::BO_MMAP_OFFSET, &mut place) {
                        self.addresses.push(place.offset);
                    }
                }
                4..=6 => {
                    let va = self.pick(&[0x10_0000, 0x20_0000, 0x40_0000, 1 << 46, 0x10_0001]);
                    let operation = streams::VmBindOp {
                        flags: self.pick(&[0, 0, 0, 1, 2, 1 << 28, 2 << 28, 3 << 28, 0xff]),
                        handle: self.handle(),
                        offset: self.pick(&[0, 0, 0, 4096, 1]),
                        va,
                        size: self.size(),
                        syncs: self.syncs(),
                    };
                    self.addresses.push(va);
                    let mut bind = streams::VmBind {
                        vm: self.pick(&[1, 1, 1, 2, 0, 99]),
                        flags: self.pick(&[0, 0, 1, 2]),
                        operations: self.objects(&[operation]),
                    };
                    self.ask(streams::VM_BIND, &mut bind);
                }
                7 => {
                    let bytes = self.size() as u32;
                    let queue = streams::QueueCreate {
                        priority: self.pick(&[1, 1, 15, 16]),
                        pad: [0; 3],
                        ring_bytes: self.pick(&[4096, 0x1_0000, 0x1_0000, bytes]),
                    };
                    let queues = [queue; 2];
                    let mut made = streams::GroupCreate {
                        queues: self.objects(&queues),
                        compute_cores: self.pick(&[1, 1, 0, 64, 255]),
                        fragment_cores: self.pick(&[1, 1, 0, 255]),
                        tilers: self.pick(&[1, 1, 0, 2]),
                        priority: self.pick(&[1, 1, 0, 9]),
                        compute_mask: self.pick(&[0x5_0005, 1, 1, u64::MAX]),
                        fragment_mask: 1,
                        tiler_mask: 1,
                        vm: self.pick(&[1, 1, 1, 2, 0]),
                        ..Default::default()
                    };
                    if self.ask(streams::GROUP_CREATE, &mut made) {
                        self.handles.push(made.handle);
                    }
                }
                8..=11 => {
                    let submit = streams::QueueSubmit {
                        queue: self.pick(&[0, 0, 0, 1, 2, 31, u32::MAX]),
                        bytes: self.pick(&[64, 64, 8, 256, 0, 63, 0x1_0000, u32::MAX]),
                        address: self.address(),
                        latest_flush: self.random() as u32 & 1,
                        pad: 0,
                        syncs: self.syncs(),
                    };
                    let mut all = streams::GroupSubmit {
                        group: self.pick(&[1, 1, 1, 2, 3, 0]),
                        pad: 0,
                        submits: self.objects(&[submit]),
                    };
                    self.ask(streams::GROUP_SUBMIT, &mut all);
                }
                12 => {
                    let group = self.pick(&[1, 1, 2, 9]);
                    let mut state = streams::GroupGetState {
                        group,
                        ..Default::default()
                    };
                    self.ask(streams::GROUP_GET_STATE, &mut state);
                    let mut state = streams::VmGetState {
                        vm: group,
                        state: 0,
                    };
                    self.ask(streams::VM_GET_STATE, &mut state);
                }
                13 => {
                    let mut heap = streams::TilerHeapCreate {
                        vm: self.pick(&[1, 1, 2, 0]),
                        initial_chunks: self.count(),
                        chunk_bytes: self.size() as u32,
                        max_chunks: self.count(),
                        target_in_flight: self.count(),
                        ..Default::default()
                    };
                    if self.ask(streams::TILER_HEAP_CREATE, &mut heap) {
                        self.handles.push(heap.handle);
                    }
                }
                14 => {
                    let (handle, pad) = (self.handle(), 0);
                    match self.below(6) {
                        0 => self.ask(
                            streams::GROUP_DESTROY,
                            &mut streams::GroupDestroy { handle, pad },
                        ),
                        1 => self.ask(
                            streams::TILER_HEAP_DESTROY,
                            &mut streams::TilerHeapDestroy { handle, pad },
                        ),
                        2 => self.ask(
                            streams::VM_DESTROY,
                            &mut streams::VmDestroy { id: handle, pad },
                        ),
                        _ => {
                            let (kind, size) = (self.flags(), self.size() as u32);
                            let pointer = self.list(&[0; 256]);
                            self.ask(
                                streams::DEV_QUERY,
                                &mut streams::DevQuery {
                                    kind,
                                    size,
                                    pointer,
                                },
                            )
                        }
                    };
                }
                15 | 16 => self.map(),
                17 | 18 => self.fill(),
                _ => self.shared(),
            }
        }
    }
}
