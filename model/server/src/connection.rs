// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket for QEMU, its only client.

use std::fs;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::protocol::{HEADER_SIZE, Header, MAXIMUM_MESSAGE};

/// Per message.
const MAXIMUM_FDS: usize = 16;
const BACKLOG: i32 = 1;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("cannot make the directory {path}: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "other users may replace files in {path} (mode {mode:o}), and so take over the guest: \
         use a directory of mode 700"
    )]
    Public { path: PathBuf, mode: u32 },
    #[error("{path} exists and is not a socket: choose another path")]
    NotSocket { path: PathBuf },
    #[error("another server listens on {path}")]
    InUse { path: PathBuf },
    #[error("cannot listen on {path}: {source}")]
    Listen { path: PathBuf, source: io::Error },
}

/// Its path disappears with it.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// The path's directory must keep other users out: the protocol hands out guest memory.
    pub(crate) fn new(path: &Path) -> Result<Socket, SocketError> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .and_then(|()| fs::metadata(directory))
            .map_err(|source| SocketError::Directory {
                path: directory.into(),
                source,
            })
            .and_then(|metadata| {
                // The sticky bit does not help: others could connect.
                let mode = metadata.mode() & 0o777;
                match mode & 0o022 {
                    0 => Ok(()),
                    _ => Err(SocketError::Public {
                        path: directory.into(),
                        mode,
                    }),
                }
            })?;
        remove_stale(path)?;
        let listener = listen(path).map_err(|source| SocketError::Listen {
            path: path.into(),
            source,
        })?;
        Ok(Socket {
            listener,
            path: path.into(),
        })
    }

    pub(crate) fn accept(&self) -> io::Result<Connection> {
        let (stream, _) = self.listener.accept()?;
        Ok(Connection { stream })
    }
}

/// For the user only. The mode is set before, not by the umask, which threads share.
fn listen(path: &Path) -> io::Result<UnixListener> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(0o600))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotSocket { path: path.into() });
    }
    if UnixStream::connect(path).is_ok() {
        return Err(SocketError::InUse { path: path.into() });
    }
    fs::remove_file(path).map_err(|source| SocketError::Listen {
        path: path.into(),
        source,
    })
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) body: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("the client said a message has {0} bytes, which no message can have")]
    Size(u32),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
}

pub(crate) struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// `None`: the client has gone.
    pub(crate) fn receive(&mut self) -> Result<Option<Message>, ConnectionError> {
        let mut bytes = [0; HEADER_SIZE];
        let mut fds = Vec::new();
        let mut done = 0;
        while done < HEADER_SIZE {
            match self.receive_some(&mut bytes[done..], &mut fds)? {
                0 if done == 0 => return Ok(None),
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => done += count,
            }
        }
        let header = Header::from_bytes(&bytes);
        let size = header.size as usize;
        if !(HEADER_SIZE..=MAXIMUM_MESSAGE).contains(&size) {
            return Err(ConnectionError::Size(header.size));
        }
        let mut body = vec![0; size - HEADER_SIZE];
        self.stream.read_exact(&mut body)?;
        Ok(Some(Message { header, body, fds }))
    }

    fn receive_some(&self, to: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAXIMUM_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut vectors = [IoSliceMut::new(to)];
            match rustix::net::recvmsg(
                &self.stream,
                &mut vectors,
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Ok(received) => break received,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        Ok(received.bytes)
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("mali-vfio-user-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn the_socket_is_private_and_goes_away() {
        let directory = scratch("private");
        let path = directory.join("deep/gpu.sock");
        let socket = Socket::new(&path).unwrap();
        assert_eq!(
            fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777,
            0o700
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Socket::new(&path), Err(SocketError::InUse { .. })));
        drop(socket);
        assert!(!path.exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn stale_sockets_are_replaced_but_files_are_kept() {
        let directory = scratch("stale");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let path = directory.join("gpu.sock");
        drop(UnixListener::bind(&path).unwrap());
        drop(Socket::new(&path).unwrap());
        fs::write(&path, "precious").unwrap();
        assert!(matches!(
            Socket::new(&path),
            Err(SocketError::NotSocket { .. })
        ));
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            Socket::new(&path),
            Err(SocketError::Public { .. })
        ));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn messages_are_whole_or_refused() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let mut connection = Connection { stream: server };
        let mut header = [0; HEADER_SIZE];
        header[2] = 13;
        header[4] = 20;
        client.write_all(&header).unwrap();
        client.write_all(&[1, 2, 3, 4]).unwrap();
        let message = connection.receive().unwrap().unwrap();
        assert_eq!(
            (message.header.command, message.body),
            (13, vec![1, 2, 3, 4])
        );
        header[4] = 15;
        client.write_all(&header).unwrap();
        assert!(matches!(
            connection.receive(),
            Err(ConnectionError::Size(15))
        ));
        client.write_all(&header[..3]).unwrap();
        drop(client);
        assert!(matches!(
            connection.receive(),
            Err(ConnectionError::Broken(_))
        ));
        assert!(connection.receive().unwrap().is_none());
    }
}
