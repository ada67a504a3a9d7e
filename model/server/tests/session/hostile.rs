// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hostile peer: the server answers on.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fastrand::Rng;
use mali_facts::registers::{gpu, job, job_slot};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::pipe;

use super::peer::*;

/// For the server to end after its peer.
const LIMIT: Duration = Duration::from_secs(20);

fn file_of(bytes: u64) -> File {
    let file = File::from(memfd_create("small", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(bytes).unwrap();
    file
}

fn ends(mut session: Session) {
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    leaves(&mut session);
}

fn leaves(session: &mut Session) {
    session.stream.shutdown(std::net::Shutdown::Both).unwrap();
    let start = Instant::now();
    loop {
        match session.server.try_wait().unwrap() {
            // Not by a signal or a panic.
            Some(status) => return assert!(matches!(status.code(), Some(0 | 1)), "{status}"),
            None => assert!(start.elapsed() < LIMIT, "the server does not end"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_that_is_shorter_than_the_peer_says_is_not_mapped() {
    let mut session = Session::start("short");
    for (bytes, offset) in [(0, 0u32), (4096, 0), (RAM_SIZE - 1, 0), (RAM_SIZE, 4096)] {
        let range = [32, 3, offset, 0, RAM as u32, 0, RAM_SIZE as u32, 0];
        let file = file_of(bytes);
        let mapped = session.words(DMA_MAP, &range, &[file.as_fd()]);
        assert!(mapped.is_err(), "{bytes} bytes from {offset}");
    }
    session.submit();
    session.wait_until(mali_facts::registers::mmu::MMU_INT_RAWSTAT, u32::MAX);
    ends(session);
}

#[test]
fn a_trigger_that_takes_nothing_stops_nobody() {
    let (_reader, writer) = pipe().unwrap();
    let full: OwnedFd = writer.try_clone().unwrap();
    let flags = rustix::fs::fcntl_getfl(&full).unwrap();
    rustix::fs::fcntl_setfl(&full, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&full, &[0; 4096]).is_ok() {}
    while rustix::io::write(&full, &[0]).is_ok() {}
    rustix::fs::fcntl_setfl(&full, flags).unwrap();

    let mut session = Session::start("full");
    session
        .words(SET_IRQS, &[20, 0x24, 0, 0, 1], &[writer.as_fd()])
        .unwrap();
    for _ in 0..3 {
        session.send(SET_IRQS, 0x10, &bytes(&[20, 0x21, 0, 0, 1]), &[]);
        session.send(SET_IRQS, 0x10, &bytes(&[20, 0x11, 0, 0, 1]), &[]);
    }
    ends(session);
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn a_chain_without_end_ends_with_the_peer() {
    let mut session = Session::start("endless");
    let memory = guest_memory();
    // The job is its own next one.
    memory
        .write_all_at(&0x8000u64.to_le_bytes(), 0x8018)
        .unwrap();
    session.map(&memory).unwrap();
    session.submit();
    std::thread::sleep(Duration::from_millis(200));
    ends(session);
}

fn word(random: &mut Rng) -> u32 {
    const KNOWN: [u32; 14] = [
        0,
        1,
        4,
        0x21,
        0x24,
        0x1000,
        RAM as u32,
        RAM_SIZE as u32,
        gpu::GPU_CMD,
        job::JOB_INT_MASK,
        0xf00c,
        0xffff,
        i32::MAX as u32,
        u32::MAX,
    ];
    match random.u8(..4) {
        0 => random.u32(..),
        1 => job_slot::offset(1, random.u32(..0x80) & !3),
        _ => KNOWN[random.usize(..KNOWN.len())],
    }
}

#[test]
fn any_messages_are_answered() {
    for (seed, options) in [(1, &[][..]), (2, &["--non-coherent", "--power-domain"])] {
        let mut session = Session::start_with(&format!("any-{seed}"), options);
        let mut random = Rng::with_seed(seed);
        let memory = guest_memory();
        session.map(&memory).unwrap();
        let (reader, writer) = pipe().unwrap();
        let (socket, _other) = UnixStream::pair().unwrap();
        let folder = File::open("/").unwrap();
        let null = File::open("/dev/zero").unwrap();
        let small = file_of(8192);
        let fds = [
            memory.as_fd(),
            reader.as_fd(),
            writer.as_fd(),
            socket.as_fd(),
            folder.as_fd(),
            null.as_fd(),
            small.as_fd(),
        ];
        for _ in 0..4000 {
            let command = [1, 2, 3, 4, 5, 7, 8, 9, 10, 10, 10, 13, 6, 99][random.usize(..14)];
            let mut words: Vec<u32> = (0..random.u8(..10)).map(|_| word(&mut random)).collect();
            let count = random.usize(..4);
            let start = random.usize(..4);
            // Other lengths have tests of their own.
            if command == 9 && words.len() > 3 {
                words[3] %= 65;
            }
            if command == 10 && words.len() > 4 {
                words[3] = 4 * (words.len() as u32 - 4);
            }
            let _ = session.words(command, &words, &fds[start..start + count]);
        }
        leaves(&mut session);
    }
}

#[test]
fn a_peer_that_reads_nothing_is_left_when_it_goes() {
    let mut session = Session::start("deaf");
    session.stream.set_nonblocking(true).unwrap();
    let mut message = Vec::from([1u8, 0, 9, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend(bytes(&[0, 0, 0, 0x1000]));
    let full = (0..100_000).any(|_| session.stream.write_all(&message).is_err());
    assert!(full, "the server takes all and answers nothing");
    session.stream.set_nonblocking(false).unwrap();
    let _ = session.stream.read(&mut [0; 16]);
    leaves(&mut session);
}
