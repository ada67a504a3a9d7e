// SPDX-License-Identifier: MIT OR Apache-2.0
//! A caller's tensor values.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use gpureplay_core::Tensors;
use gpureplay_format::{Action, Recording, TensorKind};
use gpureplay_host::{beneath, shown};
use gpureplay_tensors::Tensor;

use crate::error::{Error, Result};
use crate::files::Files;
use crate::manifest::Case;
use crate::states::States;
use crate::tensors::{Layer, TensorInfo, crossing, list, misfit};
use crate::values;
use crate::weights::{Reader, all_of};

#[derive(Clone, Debug, Default)]
struct Room {
    bytes: Vec<u8>,
    filled: bool,
}

/// Tensor index and bytes.
pub(crate) type In<'a> = (u32, &'a [u8]);
pub(crate) type Out = (u32, Vec<u8>);

/// Tensor values, and room for results.
#[derive(Clone, Debug)]
pub struct Bindings {
    path: PathBuf,
    tensors: Vec<TensorInfo>,
    names: HashMap<String, usize>,
    values: Vec<Option<Tensor>>,
    /// By tensor index: the recording has an action `BindInput`.
    taken: Vec<bool>,
    rooms: Vec<Option<Room>>,
    pub(crate) states: States,
}

impl Bindings {
    /// Nothing is bound. `path` is for errors.
    pub fn new(recording: &Recording<'_>, path: &Path) -> Self {
        let tensors = TensorInfo::all(recording);
        let room = |tensor: &TensorInfo| {
            (tensor.kind == TensorKind::Output).then(|| Room {
                bytes: vec![0; tensor.bytes],
                filled: false,
            })
        };
        let mut taken = vec![false; tensors.len()];
        let segments = recording.segments().iter();
        let actions = segments.flat_map(|segment| recording.segment_actions(segment).flatten());
        for action in actions {
            if let Action::BindInput { tensor } = action
                && let Some(taken) = taken.get_mut(tensor as usize)
            {
                *taken = true;
            }
        }
        Self {
            path: path.to_path_buf(),
            taken,
            values: tensors.iter().map(|_| None).collect(),
            rooms: tensors.iter().map(room).collect(),
            states: States::new(&tensors),
            names: tensors
                .iter()
                .enumerate()
                .rev()
                .map(|(index, tensor)| (tensor.name.clone(), index))
                .collect(),
            tensors,
        }
    }

    /// All tensors, in the recording's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// # Errors
    /// There is none.
    pub fn named(&self, name: &str) -> Result<(usize, &TensorInfo)> {
        let found = self.names.get(name).copied();
        let found = found.and_then(|index| Some((index, self.tensors.get(index)?)));
        found.ok_or_else(|| Error::NoTensor {
            name: name.to_owned(),
            known: list(&self.tensors, TensorKind::Input),
        })
    }

    /// Gives a tensor a value; `from` is its origin, for errors.
    ///
    /// # Errors
    /// No such tensor, an output, one that takes no value, or another type or shape.
    pub fn bind(&mut self, name: &str, value: Tensor, from: &str) -> Result<()> {
        let (index, info) = self.bindable(name)?;
        require(info, &value, from)?;
        if self.states.is_one(index) {
            self.states.set(index, Some(value.into_bytes()));
            return Ok(());
        }
        if let Some(slot) = self.values.get_mut(index) {
            *slot = Some(value);
        }
        Ok(())
    }

    /// The file's name gives its kind.
    ///
    /// # Errors
    /// As for [`Bindings::bind`], or the file cannot be read.
    pub fn bind_file(&mut self, files: &Files, name: &str, path: &Path) -> Result<()> {
        let (_, info) = self.bindable(name)?;
        let value = read(files, info, path)?;
        self.bind(name, value, &shown(path))
    }

    /// The manifest's case with exactly these inputs.
    pub fn case<'a>(
        &self,
        files: &'a Files,
        inputs: &BTreeMap<String, PathBuf>,
    ) -> Option<&'a Case> {
        let mut read: HashMap<(&str, &Path), bool> = HashMap::new();
        let mut same = |(name, file): (&'a String, &'a PathBuf)| {
            let held = || self.holds(files, name, file);
            inputs.contains_key(name) && *read.entry((name, file)).or_insert_with(held)
        };
        files
            .manifest
            .as_ref()?
            .cases
            .iter()
            .find(|case| case.inputs.len() == inputs.len() && case.inputs.iter().all(&mut same))
    }

    fn holds(&self, files: &Files, name: &str, file: &Path) -> bool {
        let Ok((index, info)) = self.bindable(name) else {
            return false;
        };
        let Some(bound) = self.value(index) else {
            return false;
        };
        let opened = |file: &Path| beneath::open(&files.directory, file);
        let image = files.image(name);
        let value = values::read_with(opened, values::split(file), info, image);
        value.is_ok_and(|value| value == *bound)
    }

    /// Binds every weight from a `.safetensors` file, or a directory with a `NAME.npy` for each.
    ///
    /// # Errors
    /// No weights are taken, one is missing, or does not fit.
    pub fn bind_all_weights(&mut self, path: &Path) -> Result<()> {
        self.bind_all_of(TensorKind::Weight, path)
    }

    pub(crate) fn bind_all_of(&mut self, kind: TensorKind, path: &Path) -> Result<()> {
        let tensors = self.tensors.iter().zip(&self.taken);
        let weights = tensors.filter(|(tensor, taken)| tensor.kind == kind && **taken);
        let weights: Vec<TensorInfo> = weights.map(|(tensor, _)| tensor.clone()).collect();
        if weights.is_empty() {
            let reason = format!("the recording takes no {}s", kind.name());
            return Err(Error::file(path, reason));
        }
        for (info, (value, from)) in weights.iter().zip(all_of(path, &weights)?) {
            self.bind(&info.name, value, &from)?;
        }
        Ok(())
    }

    fn bindable(&self, name: &str) -> Result<(usize, &TensorInfo)> {
        let (index, info) = self.named(name)?;
        if info.kind == TensorKind::Output {
            return Err(Error::WrongKind {
                name: name.to_owned(),
                kind: info.kind.name(),
                known: list(&self.tensors, TensorKind::Input),
            });
        }
        if self.taken.get(index) != Some(&true) {
            return Err(Error::NotTaken {
                name: name.to_owned(),
                kind: info.kind.name(),
            });
        }
        Ok((index, info))
    }

    /// A state gets set-up's value again.
    ///
    /// # Errors
    /// No such tensor.
    pub fn unbind(&mut self, name: &str) -> Result<()> {
        let (index, _) = self.named(name)?;
        self.states.set(index, None);
        if let Some(slot) = self.values.get_mut(index) {
            *slot = None;
        }
        Ok(())
    }

    /// Whether the tensor has a value.
    pub fn is_bound(&self, index: usize) -> bool {
        self.values.get(index).is_some_and(Option::is_some)
    }

    pub(crate) fn is_wanted(&self, index: usize) -> bool {
        self.rooms.get(index).is_some_and(Option::is_some)
    }

    /// Binds the manifest's weight files to unbound weights, and checks hashes.
    ///
    /// # Errors
    /// A file is missing, has another hash, or does not fit.
    pub fn bind_weights(&mut self, files: &Files) -> Result<()> {
        let external = files.manifest.as_ref().map(|manifest| &manifest.external);
        let mut external: Vec<_> = external.into_iter().flatten().collect();
        // Neighbours share a file, which is then read once.
        external.sort_by_key(|(_, weight)| values::split(Path::new(&weight.file)).0);
        let mut reader = Reader::default();
        for (name, weight) in external {
            let (index, info) = self.named(name)?;
            if !self.is_bound(index) {
                let path = files.directory.join(&weight.file);
                let value = reader.read(files, &path, name, &weight.sha256, info)?;
                self.bind(name, value, &shown(&path))?;
            }
        }
        Ok(())
    }

    pub(crate) fn external_bytes(&self) -> usize {
        let tensors = self.tensors.iter().zip(&self.values);
        let external = tensors.filter(|(info, _)| info.external);
        external
            .flat_map(|(_, value)| value)
            .map(|value| value.bytes().len())
            .sum()
    }

    /// Requires all weights, and the inputs that `needed` names by index.
    ///
    /// # Errors
    /// The first tensor without a value.
    pub fn require(&self, needed: impl Fn(usize) -> bool) -> Result<()> {
        for (index, (info, value)) in self.tensors.iter().zip(&self.values).enumerate() {
            let needed = info.kind == TensorKind::Input && needed(index) || info.external;
            if needed && value.is_none() {
                let name = info.name.clone();
                return Err(Error::Unbound {
                    path: self.path.clone(),
                    kind: info.kind.name(),
                    name,
                    shape: info.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Requires all that `runs` read and skipped layers compute. Layers before `ran` have run; see [`crossing`].
    ///
    /// # Errors
    /// All that is missing.
    pub fn require_crossing(&self, layers: &[Layer], runs: Range<usize>, ran: usize) -> Result<()> {
        let (first, last) = (runs.start + 1, runs.end);
        let missing: Vec<String> = crossing(layers, runs, ran)
            .into_iter()
            .filter(|tensor| !self.is_bound(*tensor as usize))
            .filter_map(|tensor| self.tensors.get(tensor as usize))
            .map(|info| format!("{} {info}", info.name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Crossing {
            first,
            last,
            missing,
        })
    }

    /// Makes runs read a tensor that is not an output.
    ///
    /// # Errors
    /// No such tensor.
    pub fn want(&mut self, name: &str) -> Result<()> {
        let (index, info) = self.named(name)?;
        let bytes = info.bytes;
        if let Some(room) = self.rooms.get_mut(index) {
            room.get_or_insert_with(|| Room {
                bytes: vec![0; bytes],
                filled: false,
            });
        }
        Ok(())
    }

    /// Forgets earlier results.
    pub fn begin(&mut self) {
        for room in self.rooms.iter_mut().flatten() {
            room.filled = false;
        }
    }

    /// The last run's result. For a state, what the next run starts from; `None` if that is set-up's value before
    /// loading.
    pub fn found(&self, index: usize) -> Option<Tensor> {
        let info = self.tensors.get(index)?;
        if self.states.is_one(index) {
            let bytes = self.states.value(index)?.to_vec();
            return Tensor::new(info.dtype, &info.shape, bytes).ok();
        }
        let room = self.rooms.get(index)?.as_ref().filter(|room| room.filled)?;
        Tensor::new(info.dtype, &info.shape, room.bytes.clone()).ok()
    }

    /// Forgets instead of copying; not for states.
    pub fn take(&mut self, index: usize) -> Option<Tensor> {
        let info = self.tensors.get(index)?;
        let room = self.rooms.get_mut(index)?.as_mut();
        let room = room.filter(|room| room.filled)?;
        room.filled = false;
        Tensor::new(info.dtype, &info.shape, std::mem::take(&mut room.bytes)).ok()
    }

    /// Outputs of the last run by name, without states.
    pub fn outputs(&self) -> Vec<(String, Tensor)> {
        let found = self.tensors.iter().enumerate();
        found
            .filter(|(_, info)| info.kind != TensorKind::State)
            .filter_map(|(index, info)| Some((info.name.clone(), self.found(index)?)))
            .collect()
    }

    /// Bytes for a run in the secure world, and room for results, where states go both ways. Only the first run needs
    /// weights.
    pub(crate) fn handed_over(&self, weights: bool) -> Result<(Vec<In<'_>>, Vec<Out>)> {
        let (mut going, mut coming) = (Vec::new(), Vec::new());
        for (index, info) in self.tensors.iter().enumerate() {
            // A file has at most 2^32 tensors.
            let number = index as u32;
            let bound = self.value(index).map(Tensor::bytes);
            match info.kind {
                TensorKind::Output => coming.push((number, vec![0; info.bytes])),
                TensorKind::State => {
                    let value = self.states.value(index).ok_or_else(|| Error::Unbound {
                        path: self.path.clone(),
                        kind: info.kind.name(),
                        name: info.name.clone(),
                        shape: info.to_string(),
                    })?;
                    coming.push((number, value.to_vec()));
                }
                _ if self.rooms.get(index).is_some_and(Option::is_some) => {
                    return Err(Error::SecureWorld("it gives outputs and states only"));
                }
                TensorKind::Weight if !weights => {}
                _ => going.extend(bound.map(|bytes| (number, bytes))),
            }
        }
        Ok((going, coming))
    }

    pub(crate) fn took_back(&mut self, coming: Vec<Out>) {
        for (tensor, bytes) in coming {
            if let Some(room) = self.output(tensor).filter(|room| room.len() == bytes.len()) {
                room.copy_from_slice(&bytes);
            }
        }
    }

    /// A tensor's bound value.
    pub fn value(&self, index: usize) -> Option<&Tensor> {
        self.values.get(index)?.as_ref()
    }
}

impl Tensors for Bindings {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        if self.states.is_one(tensor as usize) {
            return self.states.going(tensor as usize);
        }
        self.value(tensor as usize).map(Tensor::bytes)
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        if self.states.is_one(tensor as usize) {
            return self.states.coming(tensor as usize);
        }
        let info = self.tensors.get(tensor as usize)?;
        let room = self.rooms.get_mut(tensor as usize)?.as_mut()?;
        room.filled = true;
        // `take` may have taken the bytes.
        room.bytes.resize(info.bytes, 0);
        Some(&mut room.bytes)
    }
}

fn read(files: &Files, info: &TensorInfo, path: &Path) -> Result<Tensor> {
    let image = files.image(&info.name);
    let (file, part) = files.split(path);
    values::read_with(|file| files.open_file(file), (&file, part), info, image)
}

/// See [`TensorInfo::takes`].
///
/// # Errors
/// It does not fit.
pub fn require(info: &TensorInfo, value: &Tensor, from: &str) -> Result<()> {
    match info.takes(value.dtype(), value.shape()) {
        true => Ok(()),
        false => Err(misfit(info, value.dtype(), value.shape(), from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Recording;

    fn bindings(name: &str) -> Bindings {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
        let recording = Recording::open(path.join(name)).unwrap();
        Bindings::new(recording.verified().recording(), &path)
    }

    fn zeros(bindings: &Bindings, name: &str) -> Tensor {
        let (_, info) = bindings.named(name).unwrap();
        Tensor::new(info.dtype, &info.shape, vec![0; info.bytes]).unwrap()
    }

    #[test]
    fn an_output_that_was_taken_comes_again() {
        let mut digits = bindings("digits-g52");
        let (index, info) = digits.named("probabilities").unwrap();
        let (index, bytes) = (index, info.bytes);
        assert!(digits.take(index).is_none());
        for value in [7, 9] {
            digits.begin();
            let room = digits.output(index as u32).unwrap();
            assert_eq!(room.len(), bytes);
            room.fill(value);
            let taken = digits.take(index).unwrap();
            assert_eq!(taken.bytes(), vec![value; bytes]);
            assert!(digits.take(index).is_none() && digits.found(index).is_none());
        }
    }

    #[test]
    fn a_value_for_what_is_only_read_is_refused() {
        let mut builder = gpureplay_format::Builder::new(0x7212_0000);
        let access = gpureplay_format::Access::READ_WRITE;
        builder.region(0x300_0000, 1, access, gpureplay_format::RegionKind::Data);
        let kinds = [TensorKind::Intermediate, TensorKind::Weight];
        let tensors = kinds.map(|kind| {
            let (dtype, name) = (gpureplay_format::ElementType::U8, kind.name());
            let dense = gpureplay_format::Tensor::dense(name, kind, dtype, &[4], 0x300_0000);
            builder.tensor(dense)
        });
        builder.segment("run", gpureplay_format::SegmentKind::Run);
        tensors
            .into_iter()
            .for_each(|tensor| builder.bind_output(tensor));
        let bytes = builder.finish().unwrap();
        let recording = gpureplay_format::Recording::parse(&bytes).unwrap();
        let mut bindings = Bindings::new(&recording, Path::new("x"));
        for kind in kinds {
            let value = zeros(&bindings, kind.name());
            let error = bindings.bind(kind.name(), value, "a.npy").unwrap_err();
            assert!(matches!(error, Error::NotTaken { .. }), "{error}");
        }
    }

    #[test]
    fn another_engine_gets_inputs_and_gives_outputs() {
        let mut digits = bindings("digits-g52");
        let (input, _) = digits.named("input").unwrap();
        let (output, info) = digits.named("probabilities").unwrap();
        let (room, weight) = (info.bytes, "conv1.weight");
        digits.bind("input", zeros(&digits, "input"), "").unwrap();
        digits.bind(weight, zeros(&digits, weight), "").unwrap();
        let indices = |given: &[In<'_>]| given.iter().map(|(index, _)| *index).collect::<Vec<_>>();
        let (going, coming) = digits.handed_over(true).unwrap();
        let (weight, _) = digits.named(weight).unwrap();
        let mut both = [input as u32, weight as u32];
        both.sort_unstable();
        assert_eq!(indices(&going), both);
        assert_eq!(coming, [(output as u32, vec![0; room])]);
        let (going, _) = digits.handed_over(false).unwrap();
        assert_eq!(indices(&going), [input as u32]);
        assert!(digits.found(output).is_none());
        digits.took_back(vec![(output as u32, vec![7; room])]);
        assert_eq!(digits.found(output).unwrap().bytes(), vec![7; room]);
        digits.want("conv2").unwrap();
        assert!(matches!(
            digits.handed_over(false),
            Err(Error::SecureWorld(_))
        ));
    }

    #[test]
    fn another_engine_gets_states_and_gives_them_back() {
        let mut song = bindings("generate-g52");
        let states: Vec<String> = song
            .tensors()
            .iter()
            .filter(|info| info.kind == TensorKind::State)
            .map(|info| info.name.clone())
            .collect();
        assert!(!states.is_empty());
        assert!(
            matches!(song.handed_over(true), Err(Error::Unbound { kind, .. }) if kind == "state")
        );
        for state in &states {
            song.bind(state, zeros(&song, state), "").unwrap();
        }
        song.states.begin();
        let (_, mut coming) = song.handed_over(true).unwrap();
        for (_, bytes) in &mut coming {
            bytes.fill(1);
        }
        song.took_back(coming);
        song.states.end();
        for state in &states {
            let (index, info) = song.named(state).unwrap();
            assert_eq!(song.found(index).unwrap().bytes(), vec![1; info.bytes]);
        }
    }
}
