// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded launch, back in memory.

use std::cell::OnceCell;
use std::ops::Range;
use std::time::Duration;

use gpureplay_cuda_launch::abi::JitOptions;
use gpureplay_cuda_launch::recording::{Launch, Recording};

use crate::compare::{Differing, differing};
use crate::poison::Piece;
use crate::relocate::{Move, Moves, undo};
use crate::sum::{PieceSum, Sum};
use crate::{Comparison, Gpu, Loaded, ReplayError, Sizes, Verdict, place};

mod backups;
mod events;
mod evidence;
mod expected;
mod hold;
mod noise;
mod second;
mod strays;
mod timed;
mod tools;

use backups::Backups;
use expected::Expected;
pub use noise::{Differences, Mask};
pub use second::{Second, Useless};
pub use strays::Strays;
use tools::Tools;

/// In bytes: whole elements of any type.
const PART: usize = 64 << 20;

struct Contents {
    /// A variable's is the recorded one.
    address: u64,
    kind: Kind,
    before: Vec<u8>,
    after: Option<Vec<u8>>,
    changed: Vec<Range<usize>>,
}

/// Memory after a replay.
pub struct Left<'a> {
    /// Address; of a variable, the recorded one.
    pub address: u64,
    /// Its name.
    pub variable: Option<&'a str>,
    /// By the launch.
    pub is_changed: bool,
    /// Contents.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Device,
    Host,
    Variable(usize),
}

/// Offsets and old values.
type Rewritten = Vec<(usize, u64)>;

/// A recorded launch in this process.
pub struct Session {
    gpu: Gpu,
    launch: Launch,
    image: Vec<u8>,
    parameters: Vec<u8>,
    contents: Vec<Contents>,
    time_limit: Duration,
    /// Address and bytes of memory that evicts all else from the second-level cache when read.
    evicting: Option<(u64, usize)>,
    tools: OnceCell<Tools>,
    /// Bytes of shared memory that each block fills before a launch.
    scratch: Option<u32>,
    backups: Backups,
    expected: Expected,
    rewritten: Vec<(Rewritten, Rewritten)>,
    rewritten_parameters: Rewritten,
    ignored: Vec<bool>,
}

impl Session {
    /// Maps and fills memory.
    ///
    /// # Errors
    /// The recording is damaged, an address is taken ([`ReplayError::Collision`]), or the driver refuses.
    pub fn open(
        gpu: Gpu,
        recording: &Recording,
        launch: Launch,
        time_limit: Duration,
    ) -> Result<Self, ReplayError> {
        // Before the context, which takes addresses.
        let spans = place::of_launch(&launch);
        let mut room = place::Room::reserve(&gpu, &spans)?;
        let store = recording.store();
        let image = store.image(launch.image.hash, launch.image.size)?;
        let mut contents = Vec::new();
        let held = |address, kind, size, before, after: Option<_>| {
            let bytes = store.get(before, size)?;
            let changed = match after {
                Some(after) => store.changed(after, before, size)?,
                None => Vec::new(),
            };
            let after = after.map(|after| store.get_changed(after, size, before, &bytes));
            Ok::<_, ReplayError>(Contents {
                address,
                kind,
                after: after.transpose()?,
                before: bytes,
                changed,
            })
        };
        for (region, on_device) in launch.regions.iter().zip(place::on_device(&spans)) {
            let kind = if on_device { Kind::Device } else { Kind::Host };
            let (size, before, after) = (region.size, region.before, region.after);
            contents.push(held(region.address, kind, size, before, after)?);
        }
        for (index, variable) in launch.variables.iter().enumerate() {
            let kind = Kind::Variable(index);
            let (size, before, after) = (variable.size, variable.before, variable.after);
            contents.push(held(variable.address, kind, size, before, after)?);
        }
        gpu.enter()?;
        gpu.limit(&launch.limits)?;
        room.map(&spans)?;
        // A hung kernel uses it until the process ends.
        room.leave();
        Ok(Self {
            rewritten: vec![Default::default(); contents.len()],
            ignored: vec![false; contents.len()],
            rewritten_parameters: Vec::new(),
            parameters: launch.parameters.clone(),
            gpu,
            launch,
            image,
            contents,
            time_limit,
            evicting: None,
            tools: OnceCell::new(),
            scratch: None,
            backups: Backups::default(),
            expected: Expected::default(),
        })
    }

    /// What was recorded.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// GPU of the session.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The recorded sizes.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            grid: self.launch.grid,
            block: self.launch.block,
            shared: self.launch.shared,
        }
    }

    /// Leaves a region out of comparisons, such as stacks; false if there is none.
    pub fn ignore(&mut self, address: u64) -> bool {
        let mut found = false;
        for (contents, ignored) in self.contents.iter().zip(&mut self.ignored) {
            let offset = address.checked_sub(contents.address);
            if offset.is_some_and(|offset| offset < contents.before.len() as u64) {
                *ignored = true;
                found = true;
            }
        }
        found
    }

    /// A piece's bytes before launches (regions, then variables). Results are then not the recorded ones.
    ///
    /// # Errors
    /// No such piece, or another size.
    pub fn replace_memory(&mut self, piece: usize, bytes: Vec<u8>) -> Result<(), ReplayError> {
        let size = self.contents.get(piece).map(|piece| piece.before.len());
        if size != Some(bytes.len()) {
            return Err(ReplayError::Input {
                name: format!("memory {piece}"),
                found: bytes.len() as u64,
                size: size.unwrap_or_default() as u64,
            });
        }
        self.contents_are_new();
        let contents = &mut self.contents[piece];
        contents.changed.clear();
        contents.changed.push(0..bytes.len());
        contents.before = bytes;
        Ok(())
    }

    /// Loads an image (default: recorded) and rewrites pointers. Call [`Session::unload`] before another.
    ///
    /// # Errors
    /// No such kernel, other parameters or variables, or the driver refuses.
    pub fn load(
        &mut self,
        image: Option<&[u8]>,
        options: JitOptions,
    ) -> Result<Loaded, ReplayError> {
        let loaded = Loaded::new(
            &self.gpu,
            &self.launch,
            image.unwrap_or(&self.image),
            options,
        )?;
        let moves = self.launch.variables.iter().zip(&loaded.variables);
        let moves = Moves::new(
            moves
                .map(|(variable, to)| Move {
                    from: variable.address,
                    size: variable.size,
                    to: *to,
                })
                .collect(),
        );
        if !moves.is_empty() {
            self.contents_are_new();
            self.rewritten_parameters = moves.apply(&mut self.parameters);
            for (contents, rewritten) in self.contents.iter_mut().zip(&mut self.rewritten) {
                rewritten.0 = moves.apply(&mut contents.before);
                rewritten.1 = contents
                    .after
                    .as_mut()
                    .map(|after| moves.apply(after))
                    .unwrap_or_default();
            }
        }
        Ok(loaded)
    }

    /// What [`Session::load`] gives the driver: the image (default: recorded), or its PTX if options need it.
    ///
    /// # Errors
    /// Unreadable, or no PTX of the kernel.
    pub fn text(&self, image: Option<&[u8]>, options: JitOptions) -> Result<Vec<u8>, ReplayError> {
        crate::module::text(image.unwrap_or(&self.image), &self.launch.kernel, options)
    }

    /// Words rewritten for this image.
    #[must_use]
    pub fn rewritten(&self) -> usize {
        let before = self.rewritten.iter().map(|rewritten| rewritten.0.len());
        self.rewritten_parameters.len() + before.sum::<usize>()
    }

    /// Restores rewritten pointers, too.
    pub fn unload(&mut self, loaded: &Loaded) {
        if !self.launch.variables.is_empty() {
            self.contents_are_new();
        }
        undo(
            &mut self.parameters,
            &std::mem::take(&mut self.rewritten_parameters),
        );
        for (contents, rewritten) in self.contents.iter_mut().zip(&mut self.rewritten) {
            let (before, after) = std::mem::take(rewritten);
            undo(&mut contents.before, &before);
            if let Some(bytes) = &mut contents.after {
                undo(bytes, &after);
            }
        }
        loaded.unload(&self.gpu);
    }

    fn contents_are_new(&self) {
        self.backups.are_old();
        self.expected.are_old();
    }

    fn address(&self, loaded: &Loaded, contents: &Contents) -> u64 {
        match contents.kind {
            Kind::Device | Kind::Host => contents.address,
            Kind::Variable(index) => loaded.variables[index],
        }
    }

    /// Address, size and number, in this process.
    pub(crate) fn ranges(&self, loaded: &Loaded) -> Vec<[u64; 3]> {
        let pieces = self.contents.iter().enumerate();
        let range = |(number, contents): (usize, &Contents)| {
            let address = self.address(loaded, contents);
            [address, contents.before.len() as u64, number as u64]
        };
        pieces.map(range).collect()
    }

    fn restore(&self, loaded: &Loaded) -> Result<(), ReplayError> {
        for (number, contents) in self.contents.iter().enumerate() {
            self.put(loaded, contents, &contents.before)?;
            self.expect(loaded, number, true)?;
        }
        self.gpu.synchronize()
    }

    fn put(&self, loaded: &Loaded, contents: &Contents, bytes: &[u8]) -> Result<(), ReplayError> {
        let address = self.address(loaded, contents);
        let bytes = &bytes[..bytes.len().min(contents.before.len())];
        if contents.kind == Kind::Host {
            // SAFETY: `place` mapped the region, which has at least as many bytes; nothing runs that uses it.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
            }
            Ok(())
        } else {
            self.gpu.upload(address, bytes)
        }
    }

    fn put_all(&self, loaded: &Loaded, memory: &[Vec<u8>]) -> Result<(), ReplayError> {
        for (contents, bytes) in self.contents.iter().zip(memory) {
            self.put(loaded, contents, bytes)?;
        }
        self.gpu.synchronize()
    }

    fn read(&self, loaded: &Loaded, contents: &Contents) -> Result<Vec<u8>, ReplayError> {
        let mut bytes = vec![0; contents.before.len()];
        self.read_part(loaded, contents, 0, &mut bytes)?;
        Ok(bytes)
    }

    fn read_part(
        &self,
        loaded: &Loaded,
        contents: &Contents,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), ReplayError> {
        let room = contents.before.len().saturating_sub(start);
        let length = bytes.len().min(room);
        let bytes = &mut bytes[..length];
        let address = self.address(loaded, contents) + start as u64;
        if contents.kind != Kind::Host {
            return self.gpu.download(address, bytes);
        }
        // SAFETY: as in `restore`; the piece has so many bytes from there.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len());
        }
        Ok(())
    }

    /// Restores, launches once, and compares.
    ///
    /// # Errors
    /// A limit, a failed kernel, or no end in time.
    pub fn run(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Verdict, ReplayError> {
        self.launch_restored(loaded, sizes)?;
        self.compare(loaded, how, mask)
    }

    /// Restores, and launches once.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn launch_restored(&self, loaded: &Loaded, sizes: &Sizes) -> Result<(), ReplayError> {
        loaded.limits().check(sizes)?;
        self.restore(loaded)?;
        self.launch_once(loaded, sizes)
    }

    /// Regions by address, then variables.
    pub fn left<'a>(
        &'a self,
        loaded: &'a Loaded,
    ) -> impl Iterator<Item = Result<Left<'a>, ReplayError>> + 'a {
        self.contents.iter().map(|contents| {
            let bytes = self.read(loaded, contents)?;
            Ok(Left {
                address: contents.address,
                variable: match contents.kind {
                    Kind::Variable(index) => Some(&self.launch.variables[index].name),
                    Kind::Device | Kind::Host => None,
                },
                is_changed: bytes != contents.before,
                bytes,
            })
        })
    }

    /// Restores and compares without launching; should not be right.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn null(
        &self,
        loaded: &Loaded,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Verdict, ReplayError> {
        self.restore(loaded)?;
        Ok(self.found(loaded, how, mask)?.verdict())
    }

    /// Compares; call right after [`Session::launch_restored`].
    ///
    /// # Errors
    /// Memory cannot be read.
    pub fn compare(
        &self,
        loaded: &Loaded,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Verdict, ReplayError> {
        let verdict = self.found(loaded, how, mask)?.verdict();
        if !verdict.is_right() {
            return Ok(verdict);
        }
        let mut null = Sum::default();
        for (index, contents) in self.contents.iter().enumerate() {
            if let (Some(after), false) = (&contents.after, self.ignored[index]) {
                null.add_briefly(how, &contents.before, after, mask.piece(index));
            }
        }
        Ok(if null.verdict().is_right() {
            Verdict::Inconclusive
        } else {
            verdict
        })
    }

    fn found(&self, loaded: &Loaded, how: &Comparison, mask: &Mask) -> Result<Sum, ReplayError> {
        let mut sum = Sum::default();
        let mut room = Vec::new();
        for (index, contents) in self.contents.iter().enumerate() {
            if self.ignored[index] {
                continue;
            }
            let parts = self.parts_to_compare(loaded, index)?;
            if parts.is_empty() {
                continue;
            }
            let want = contents.after.as_ref().unwrap_or(&contents.before);
            let piece = PieceSum::new(how, contents.address, want, mask.piece(index));
            for part in parts {
                room.resize(room.len().max(part.len()), 0);
                let got = &mut room[..part.len()];
                self.read_part(loaded, contents, part.start, got)?;
                sum.join(&piece.compare(part.start, got));
            }
        }
        Ok(sum)
    }

    /// The first `most` differing words, right after [`Session::run`].
    ///
    /// # Errors
    /// Memory cannot be read.
    pub fn differing(&self, loaded: &Loaded, most: usize) -> Result<Vec<Differing>, ReplayError> {
        let mut found = Vec::new();
        for (contents, ignored) in self.contents.iter().zip(&self.ignored) {
            if found.len() < most && !ignored {
                let got = self.read(loaded, contents)?;
                let want = contents.after.as_ref().unwrap_or(&contents.before);
                differing(&mut found, most, contents.address, &got, want);
            }
        }
        Ok(found)
    }

    fn pieces(&self) -> Vec<Piece<'_>> {
        let pieces = self.contents.iter().map(|contents| Piece {
            before: &contents.before,
            after: contents.after.as_ref().unwrap_or(&contents.before),
        });
        pieces.collect()
    }

    fn verdict(&self, memory: &[Vec<u8>], how: &Comparison, mask: &Mask) -> Verdict {
        let mut sum = Sum::default();
        let pieces = self.contents.iter().zip(self.pieces()).zip(memory);
        for (index, ((contents, piece), got)) in pieces.enumerate() {
            if self.ignored[index] {
                continue;
            }
            let mask = mask.piece(index);
            sum.add(how, contents.address, got, piece.after, mask);
        }
        sum.verdict()
    }

    fn launch_from(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        memory: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, ReplayError> {
        self.put_all(loaded, memory)?;
        self.launch_once(loaded, sizes)?;
        let read = |contents| self.read(loaded, contents);
        self.contents.iter().map(read).collect()
    }
}
