// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panfrost's requests.

use mali_uapi::panfrost::request as uapi;
use zerocopy::IntoBytes;

use super::{App, REQUESTS};

impl App<'_> {
    pub(crate) fn chains(&mut self) {
        for _ in 0..REQUESTS {
            match self.below(16) {
                0 | 1 => {
                    let mut made = uapi::CreateBo {
                        size: self.size() as u32,
                        flags: self.flags(),
                        ..Default::default()
                    };
                    if self.ask(uapi::CREATE_BO, &mut made) {
                        self.handles.push(made.handle);
                        self.addresses.push(made.va);
                    }
                }
                2 | 3 => {
                    let (handle, flags) = (self.handle(), self.pick(&[0, 0, 0, 1]));
                    let mut place = uapi::MmapBo {
                        handle,
                        flags,
                        ..Default::default()
                    };
                    if self.ask(uapi::MMAP_BO, &mut place) {
                        self.addresses.push(place.offset);
                    }
                }
                4 | 5 => self.map(),
                6 | 7 => self.fill(),
                8..=10 => {
                    let mut job = uapi::Submit {
                        head: self.address(),
                        in_syncs: self.sync_list(),
                        in_sync_count: self.pick(&[0, 0, 0, 1, 9]),
                        out_sync: match self.below(3) {
                            0 => self.sync(),
                            _ => 0,
                        },
                        handles: self.handles(),
                        handle_count: match self.below(3) {
                            0 => self.count(),
                            _ => 1,
                        },
                        requirements: self.pick(&[0, 0, 0, 1, 2, 4]),
                    };
                    let kinds = (
                        job.in_sync_count,
                        job.out_sync != 0,
                        job.handle_count,
                        job.requirements,
                    );
                    self.seen.push(format!("job at {:#x}, {kinds:?}", job.head));
                    self.ask(uapi::SUBMIT, &mut job);
                }
                11 => {
                    let (handle, advice) = (self.handle(), self.flags());
                    self.ask(
                        uapi::MADVISE,
                        &mut uapi::Madvise {
                            handle,
                            advice,
                            retained: 0,
                        },
                    );
                    let handle = self.handle();
                    self.ask(
                        uapi::WAIT_BO,
                        &mut uapi::WaitBo {
                            handle,
                            ..Default::default()
                        },
                    );
                }
                12 => {
                    let operations = [uapi::SyncOperation {
                        handle: self.handle(),
                        kind: self.flags(),
                        offset: self.size() as u32,
                        size: self.size() as u32,
                    }];
                    let (operations, count) = (self.list(operations.as_bytes()), self.count());
                    self.ask(
                        uapi::SYNC_BO,
                        &mut uapi::SyncBo {
                            operations,
                            count,
                            pad: 0,
                        },
                    );
                }
                _ => self.shared(),
            }
        }
    }
}
