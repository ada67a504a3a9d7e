// SPDX-License-Identifier: MIT OR Apache-2.0
//! Three jobs, recorded and replayed.

use gpureplay_compile::differential::{self, Agreement, Unexplained};
use gpureplay_compile::{Capture, Compiled, Options, Role, TensorFile, compile};
use gpureplay_core::Workspace;
use gpureplay_format::Recording;
use gpureplay_kit::{Values, model};
use gpureplay_on_model::OnModel;
use gpureplay_tensors::{ElementType, Tensor, tag_tensor};
use mali_drive::Session;

use crate::driver::{Driver, vector_add, vector_add_code};

pub(crate) const CODE: u64 = 0x200_0000;
pub(crate) const POOL: u64 = 0x210_0000;
const LATE_POOL: u64 = 0x220_0000;
pub(crate) const A: u64 = 0x300_0000;
pub(crate) const B: u64 = 0x310_0000;
pub(crate) const SUM: u64 = 0x320_0000;
pub(crate) const TOTAL: u64 = 0x330_0000;
pub(crate) const OUT: u64 = 0x340_0000;
pub(crate) const COUNT: usize = 1024;

/// Distinct values, so that they can be found.
pub(crate) fn tags(seed: u64) -> Tensor {
    tag_tensor(ElementType::F32, &[32, 32], seed).unwrap()
}

pub(crate) fn tensor(value: impl FnMut(usize) -> f64) -> Tensor {
    Tensor::from_fn(ElementType::F32, &[32, 32], value).unwrap()
}

pub(crate) fn added(terms: &[&Tensor]) -> Tensor {
    let value = |i| {
        terms[1..]
            .iter()
            .fold(terms[0].value(i) as f32, |sum, term| {
                sum + term.value(i) as f32
            })
    };
    tensor(|i| f64::from(value(i)))
}

/// `sum = a + b`, `total += sum`, `out = total + b`.
pub(crate) fn reference(a: &Tensor, b: &Tensor, total: f32) -> Tensor {
    added(&[&tensor(|_| total.into()), &added(&[a, b]), b])
}

pub(crate) fn driver(objects: &[u64], more: &[(u64, u32, bool)]) -> Driver {
    let objects = objects.iter().map(|va| (*va, 1, false));
    let start = [(CODE, 1, true), (POOL, 4, false)].into_iter();
    let all: Vec<_> = start.chain(objects).chain(more.iter().copied()).collect();
    Driver::probe(&all)
}

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) sum: u64,
    pub(crate) total: u64,
    pub(crate) items: usize,
    pub(crate) start: Option<Tensor>,
    /// What its last job names as storage of its threads; none if zero.
    pub(crate) storage: u64,
}

impl Default for App {
    fn default() -> App {
        App {
            sum: SUM,
            total: TOTAL,
            items: COUNT,
            start: None,
            storage: 0,
        }
    }
}

impl App {
    pub(crate) fn record(&self, a: &Tensor, b: &Tensor) -> Run {
        self.record_with(a, b, |_| {})
    }

    /// `between` runs before the last job.
    pub(crate) fn record_with(
        &self,
        a: &Tensor,
        b: &Tensor,
        between: impl FnOnce(&mut Driver),
    ) -> Run {
        let (sum, total) = (self.sum, self.total);
        let more = [(LATE_POOL, 1, false), (total, 2, false)];
        let mut app = driver(&[A, B, sum, OUT], &more);
        app.store(CODE + 0x80, &vector_add_code());
        app.store(A, a.bytes());
        app.store(B, b.bytes());
        match &self.start {
            Some(start) => app.store(total, start.bytes()),
            None => app.store_floats(total, [100.0; COUNT]),
        }
        let code = CODE + 0x80;
        app.run(POOL, &vector_add(POOL, code, A, B, sum));
        let mut second = vector_add(POOL, code, total, sum, total);
        let invocation = (self.items as u32 - 1).to_le_bytes();
        second[0x20..0x24].copy_from_slice(&invocation);
        app.run(POOL, &second);
        between(&mut app);
        let mut last = vector_add(LATE_POOL, code, total, B, OUT);
        last[0x150..0x158].copy_from_slice(&self.storage.to_le_bytes());
        app.run(LATE_POOL, &last);
        Run::finish(app, &[(Role::Input, "a", a), (Role::Weight, "b", b)])
    }
}

pub(crate) struct Run {
    pub(crate) trace: Vec<u8>,
    pub(crate) files: Vec<TensorFile>,
    pub(crate) out: Tensor,
}

impl Run {
    pub(crate) fn finish(mut app: Driver, given: &[(Role, &str, &Tensor)]) -> Run {
        let out = Tensor::new(ElementType::F32, &[32, 32], app.load(OUT, 4 * COUNT)).unwrap();
        let result = (Role::Output, "out", &out);
        let files = given.iter().chain([&result]);
        let files = files.map(|&(role, name, tensor)| file(role, name, tensor));
        Run {
            files: files.collect(),
            trace: app.finish(),
            out,
        }
    }

    pub(crate) fn capture(&self) -> Capture {
        Capture::read(self.trace.as_slice()).unwrap()
    }

    pub(crate) fn compiled(&self, options: &Options) -> Compiled {
        compile(&self.capture(), &self.files, options).unwrap()
    }

    pub(crate) fn refusal(&self, files: &[TensorFile]) -> String {
        let refused = compile(&self.capture(), files, &Options::default());
        refused.unwrap_err().to_string()
    }
}

pub(crate) fn compare(first: &Run, second: &Run, names: &[&str]) -> Result<Agreement, Unexplained> {
    let named = |run: &Run| -> Vec<TensorFile> {
        let bound = |file: &&TensorFile| names.contains(&file.name.as_str());
        run.files.iter().filter(bound).cloned().collect()
    };
    let capture = first.capture();
    let found = compile(&capture, &named(first), &Options::default())
        .unwrap()
        .tensors;
    let others: Vec<_> = named(second)
        .into_iter()
        .map(|file| (file.name, file.tensor))
        .collect();
    differential::compare(&capture, &found, &second.capture(), &others, &[])
}

pub(crate) fn file(role: Role, name: &str, tensor: &Tensor) -> TensorFile {
    TensorFile {
        role,
        name: name.into(),
        tensor: tensor.clone(),
    }
}

pub(crate) fn values(compiled: &Compiled, inputs: &[(&str, &Tensor)]) -> Values {
    let mut values = Values::of(&compiled.recording);
    for (name, tensor) in inputs {
        values.set(name, tensor.bytes());
    }
    values
}

pub(crate) fn out(values: &Values) -> Tensor {
    Tensor::new(ElementType::F32, &[32, 32], values.get("out").to_vec()).unwrap()
}

pub(crate) fn open<'r>(
    view: &'r Recording<'r>,
    workspace: &'r mut Workspace,
    values: &mut Values,
) -> Session<'r, 'r, OnModel> {
    gpureplay_kit::open(model("g52"), view, workspace, values)
}

/// One run per set of inputs, weights from the first.
pub(crate) fn replay(compiled: &Compiled, runs: &[&[(&str, &Tensor)]]) -> Vec<Tensor> {
    let mut workspace = Workspace::new();
    let mut weights = values(compiled, runs[0]);
    let view = gpureplay_kit::view(&compiled.recording);
    let mut session = open(&view, &mut workspace, &mut weights);
    runs.iter()
        .map(|inputs| {
            let mut values = values(compiled, inputs);
            session.run(&mut values).unwrap();
            out(&values)
        })
        .collect()
}
