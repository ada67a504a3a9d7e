// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are written by hand but for sections between two marks.

/// The page with another text between the marks of `section`; `None` if the marks are not there.
pub(super) fn replaced(page: &str, section: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- begin {section} -->\n");
    let end = format!("<!-- end {section} -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{}\n{end}{after}", text.trim_end()))
}

/// The first line that differs, in words.
pub(super) fn first_difference(old: &str, new: &str) -> String {
    let mut lines = new.lines();
    for (number, line) in old.lines().enumerate() {
        let expected = lines.next().unwrap_or_default();
        if line != expected {
            return format!("line {} is {line:?}, not {expected:?}", number + 1);
        }
    }
    format!(
        "{:?} is missing at the end",
        lines.next().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_changes() {
        let page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        assert_eq!(
            replaced(page, "x", "new\n").as_deref(),
            Some("a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n")
        );
        assert_eq!(replaced(page, "y", "new"), None);
    }

    #[test]
    fn a_difference_names_its_line() {
        assert_eq!(
            first_difference("a\nb\n", "a\nc\n"),
            r#"line 2 is "b", not "c""#
        );
        assert_eq!(
            first_difference("a\n", "a\nb\n"),
            r#""b" is missing at the end"#
        );
    }
}
