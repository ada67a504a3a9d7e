// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases tried per command, and their highest costs.

use serde_json::{Value, json};

use crate::commands::{COMMANDS, Command};
use crate::count::{Cost, counts_steps};

#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) inputs: u64,
    /// Processor time.
    pub(crate) seconds: f64,
    pub(crate) findings: u64,
    /// Of heap, allocations, steps, bytes written.
    pub(crate) shares: [f64; 4],
    /// Per byte, without the fixed part.
    pub(crate) ratios: [f64; 4],
    pub(crate) most: [u64; 4],
}

impl Row {
    pub(crate) fn add(
        &mut self,
        command: &Command,
        cost: &Cost,
        bytes: u64,
        declared: u64,
    ) -> bool {
        let memory = command.memory.saturating_mul(declared);
        let values = [cost.held, cost.calls, cost.steps, cost.written];
        let budgets = [command.held, command.calls, command.steps, command.written];
        let with_memory = [memory, 0, memory, memory];
        let mut more = false;
        for (index, (value, budget)) in values.into_iter().zip(budgets).enumerate() {
            let memory = with_memory[index];
            let share = value as f64 / budget.of(bytes).saturating_add(memory).max(1) as f64;
            more |= share > self.shares[index];
            self.shares[index] = self.shares[index].max(share);
            let beyond = value.saturating_sub(budget.fixed.saturating_add(memory));
            self.ratios[index] = self.ratios[index].max(beyond as f64 / bytes.max(1) as f64);
            self.most[index] = self.most[index].max(value);
        }
        more
    }
}

pub(crate) fn report(rows: &[Row], next_seed: u64) -> (String, String) {
    let mut text = String::new();
    let mut all = serde_json::Map::new();
    for (command, row) in COMMANDS.iter().zip(rows) {
        if row.inputs == 0 {
            continue;
        }
        text.push_str(&format!(
            "{:20} {:7} inputs {:6.0} s {} findings; of the budget {:.2?}; for each byte {:.1?}; at most {:?}\n",
            command.name, row.inputs, row.seconds, row.findings, row.shares, row.ratios, row.most
        ));
        let budgets = [command.held, command.calls, command.steps, command.written];
        let budgets = budgets.map(|budget| [budget.fixed, budget.rate]);
        let value = json!({
            "inputs": row.inputs, "seconds": row.seconds, "findings": row.findings,
            "shares": row.shares, "ratios": row.ratios, "most": row.most, "memory": command.memory,
            "budgets": budgets,
        });
        all.insert(command.name.into(), value);
    }
    let report: Value = json!({
        "steps": counts_steps(), "next_seed": next_seed, "commands": all,
    });
    (text, format!("{report:#}\n"))
}
