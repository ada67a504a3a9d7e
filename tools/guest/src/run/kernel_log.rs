// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in the guest's kernel log.

/// Errors and warnings of panfrost and panthor.
const GPU_FAULTS: [&str; 29] = [
    "js fault",
    "gpu sched timeout",
    "Unhandled Page fault",
    "GPU Fault",
    "multiple GPU faults",
    "AS_ACTIVE bit stuck",
    "Soft-stop failed",
    "soft reset timed out",
    "hard reset timed out",
    "error powering",
    "power transition timeout",
    "matching BO is not heap type",
    "Fatal error during GPU init",
    "failed to request",
    "failed to allocate devcoredump",
    "Panfrost Dump",
    "interrupt latency",
    "No GPU",
    "Couldn't",
    "clk init failed",
    "get clock failed",
    "exception type",
    "[drm] *ERROR*",
    "probe with driver pan",
    "CS_FATAL.EXCEPTION_TYPE",
    "CS_FAULT.EXCEPTION_TYPE",
    "progress timeout",
    "job timeout",
    "cleanly suspend MCU",
];

const KERNEL_FAULTS: [&str; 15] = [
    "Kernel panic",
    "Internal error:",
    "Oops",
    "BUG:",
    "WARNING:",
    "Call trace:",
    "Unable to handle kernel",
    "SError Interrupt",
    "detected stall",
    "blocked for more than",
    "soft lockup",
    "nobody cared",
    // What slub_debug and page_poison find.
    "overwritten",
    "already free",
    "pagealloc: ",
];

/// Those of [`GPU_FAULTS`] about one job.
const JOB_FAULTS: [&str; 10] = [
    "js fault",
    "gpu sched timeout",
    // The model never stops in a job, so the driver resets it.
    "Soft-stop failed",
    "soft reset timed out",
    "Unhandled Page fault",
    "exception type",
    "CS_FATAL.EXCEPTION_TYPE",
    "CS_FAULT.EXCEPTION_TYPE",
    "progress timeout",
    "job timeout",
];

pub(crate) fn is_of_job(line: &str) -> bool {
    JOB_FAULTS.iter().any(|text| line.contains(text))
}

pub(crate) fn is_fault(line: &str) -> bool {
    let ours = [
        "panfrost",
        "gpu@",
        ".gpu",
        "gpureplay",
        "drm",
        "EXCEPTION_TYPE",
    ]
    .iter()
    .any(|word| line.contains(word));
    (ours && GPU_FAULTS.iter().any(|text| line.contains(text)))
        || KERNEL_FAULTS.iter().any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healthy_probe_is_silent() {
        let log = "\
[    3.01] panfrost 10000000.gpu: clock rate = 800000000
[    3.01] panfrost 10000000.gpu: error -ENODEV: _opp_set_regulators: no regulator (mali) found
[    3.01] panfrost 10000000.gpu: supply mali not found, using dummy regulator
[    2.90] gpureplay_recorder: module verification failed: signature and/or required key missing - tainting kernel
[   72.77] hrtimer: interrupt took 264906784 ns
[    3.02] panfrost 10000000.gpu: mali-g52 id 0x7212 major 0x0 minor 0x0 status 0x0
[    3.02] panfrost 10000000.gpu: features: 00000000,00000cf7, issues: 00000000,00000400
[    3.02] panfrost 10000000.gpu: Features: L2:0x07110206 Shader:0x00000002
[    3.03] [drm] Initialized panfrost 1.3.0 for 10000000.gpu on minor 0
[    0.00] Kernel command line: console=ttyAMA0 panic=-1 nokaslr
";
        let faults: Vec<&str> = log.lines().filter(|line| is_fault(line)).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn faults_are_seen() {
        for line in [
            "[ 9.1] panfrost 10000000.gpu: js fault, js=1, status=DATA_INVALID_FAULT, head=0x1, tail=0x1",
            "[ 9.1] panfrost 10000000.gpu: gpu sched timeout, js=1, config=0x7b00, status=0x8, head=0x0",
            "[ 9.1] panfrost 10000000.gpu: Unhandled Page fault in AS0 at VA 0x0000000000000000",
            "[ 9.1] Internal error: synchronous external abort: 0000000096000010 [#1] SMP",
            "[ 9.1] BUG kmalloc-64 (Tainted: G           O      ): Poison overwritten",
            "[ 9.1] irq 14: nobody cared (try booting with the \"irqpoll\" option)",
            "[ 9.1] Kernel panic - not syncing: Attempted to kill init!",
            "[ 9.1] CS_FATAL.EXCEPTION_TYPE: 0x49 (CS_INVALID_INSTRUCTION)",
            "[ 9.1] panthor 10000000.gpu: [drm] Failed to cleanly suspend MCU",
            "[ 9.1] BUG: KASAN: slab-use-after-free in nano_free+0x1c/0x60",
            "[ 9.1] WARNING: possible circular locking dependency detected",
            "[ 9.1] [ BUG: Invalid wait context ]",
            "[ 9.1] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:585",
        ] {
            assert!(is_fault(line), "{line}");
        }
    }
}
