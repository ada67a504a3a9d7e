// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents whose shell blocks are tests.

/// All shell blocks, in order.
#[must_use]
pub fn shell_blocks(page: &str) -> String {
    blocks(page, "```sh")
}

/// All guest blocks, in order.
#[must_use]
pub fn guest_blocks(page: &str) -> String {
    blocks(page, "```sh guest")
}

fn blocks(page: &str, fence: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            line if line == fence => inside = true,
            "```" => inside = false,
            line if inside => {
                out.push_str(line);
                out.push('\n');
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{guest_blocks, shell_blocks};

    #[test]
    fn only_shell_blocks_run() {
        let page =
            "text\n```sh\na\nb\n```\n    c\n```c\nd\n```\n```sh guest\nf\n```\n```sh\ne\n```\n";
        assert_eq!(shell_blocks(page), "a\nb\ne\n");
        assert_eq!(guest_blocks(page), "f\n");
    }
}
