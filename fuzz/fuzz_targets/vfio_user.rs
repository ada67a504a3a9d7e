// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages from a vfio-user client: decoded or refused.
#![no_main]

#[path = "../../model/server/src/protocol.rs"]
#[allow(dead_code, unreachable_pub)]
mod protocol;

use protocol::{Command, HEADER_SIZE, Header};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
        return;
    };
    let header = Header::from_bytes(header);
    match Command::decode(header.command, body) {
        Ok(Command::RegionWrite { data, .. }) => assert!(data.len() <= body.len()),
        Ok(Command::RegionRead { count, .. }) => assert!(count as usize <= protocol::MAXIMUM_DATA),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert_eq!(header.reply(body).len(), HEADER_SIZE + body.len());
    let _ = (header.is_command(), header.wants_reply(), header.error(22));
});
