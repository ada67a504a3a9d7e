// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manifests of whole CUDA runs: accepted ones keep the replay's rules.
#![no_main]

use gpureplay_cuda_launch::recording::{Operation, Run};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(run) = Run::parse(text) else {
        return;
    };
    assert!(!run.outputs.is_empty());
    let mut end = 0;
    for memory in &run.memory {
        assert!(memory.size > 0 && memory.address >= end);
        end = memory.address + memory.size;
        assert!(end <= 1 << 47);
    }
    let mut copied = (0, 0);
    for operation in &run.operations {
        if let Some(stream) = operation.stream() {
            assert!((stream as usize) < run.streams.len());
        }
        match operation {
            Operation::Launch {
                kernel, parameters, ..
            } => {
                let kernel = &run.kernels[*kernel as usize];
                assert!((kernel.image as usize) < run.images.len());
                for [offset, size] in &kernel.layout {
                    assert!(offset + size <= parameters.len());
                }
            }
            Operation::In { input, address, .. } => {
                copied.0 += 1;
                assert!(address + run.inputs[*input as usize].size <= 1 << 47);
            }
            Operation::Out {
                output, address, ..
            } => {
                copied.1 += 1;
                assert!(address + run.outputs[*output as usize].size <= 1 << 47);
            }
            _ => {}
        }
    }
    assert_eq!(copied, (run.inputs.len(), run.outputs.len()));
});
