// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unexplained differences between two runs.

/// A difference that no tensor explains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// Different programs.
    #[error(
        "the two runs do not do the same work: {0}; a recording cannot replay a computation that depends on its input's values"
    )]
    Program(String),
    /// The app wrote different bytes.
    #[error("the two runs differ in {bytes} bytes that the app wrote and no bound tensor explains; if an input is among them, name its file with --reads; if the app's threads race, let one wait for the other, because a replay cannot depend on which of its threads is first: {}{}", list.join("; "), if *more { "; …" } else { "" })]
    Bytes {
        /// How many.
        bytes: u64,
        /// The first places.
        list: Vec<String>,
        /// More places than listed.
        more: bool,
    },
    /// A second-run tensor is not where the first run's was.
    #[error(
        "{what} '{name}' of the second run is not where the first run's was: element {element:?} differs"
    )]
    Tensor {
        /// Input, output or weight.
        what: &'static str,
        /// Its name.
        name: String,
        /// Of the first different element.
        element: Vec<u64>,
    },
}
