// SPDX-License-Identifier: MIT OR Apache-2.0
//! `info` and `list` of a whole run.

use gpureplay_cuda_launch::recording::{Operation, Run};

use crate::command::check;
use crate::command::failure::Failure;
use crate::command::report::{bytes, gpu, say};
use crate::number::shown;

pub(crate) fn info(number: u32, run: &Run) -> Result<(), Failure> {
    say!("run         {number}, {}", run.region_of);
    say!("on          {}", gpu(&run.device));
    say!(
        "operations  {}: {} launches, in {} streams",
        run.operations.len(),
        run.launches(),
        run.streams.len()
    );
    let memory = run.memory.iter().map(|memory| memory.size);
    say!(
        "memory      {} in {} pieces, {} variables",
        bytes(memory.fold(0, u64::saturating_add)),
        run.memory.len(),
        run.variables.len()
    );
    say!("turns       {}", check::state(run));
    let layers = run.layers();
    if !layers.is_empty() {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        say!("layers      {}: {}", layers.len(), names.join(", "));
    }
    if let Some(file) = &run.weights {
        let (found, size) = run.found_tensors();
        say!(
            "weights     {found} of {} tensors of {file}, {}",
            run.tensors.len(),
            bytes(size)
        );
    }
    for (what, ports) in [("input ", &run.inputs), ("output", &run.outputs)] {
        for port in ports {
            say!("{what}      {}, {} bytes", port.name, port.size);
        }
    }
    for number in &run.numbers {
        say!(
            "number      {}, {} when recorded, in {} places",
            number.name,
            shown(run.number(number, None)),
            number.places.len()
        );
    }
    let mut counts = vec![0u64; run.kernels.len()];
    for operation in &run.operations {
        if let Operation::Launch { kernel, .. } = operation
            && let Some(count) = counts.get_mut(*kernel as usize)
        {
            *count += 1;
        }
    }
    for (kernel, count) in run.kernels.iter().zip(counts) {
        say!("kernel      {count} times {}", kernel.name);
    }
    Ok(())
}

pub(crate) fn line(number: u32, run: &Run) -> String {
    format!(
        "run{number:<3} {:>5} launches, {} inputs, {} outputs, {}",
        run.launches(),
        run.inputs.len(),
        run.outputs.len(),
        bytes(run.bytes())
    )
}
