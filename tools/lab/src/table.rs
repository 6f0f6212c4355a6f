//! Tables of text, aligned for the terminal.

/// The rows, with two spaces between columns. Columns are as wide as their widest cell, counted in
/// characters; those for which `is_left` holds are aligned to the left, the others to the right.
///
/// # Examples
/// ```
/// let rows = [["name", "keys"], ["fifo", "100"], ["lru", "7"]];
/// let rows = rows.map(|row| row.map(String::from).to_vec());
/// let text = echoless_lab::table::aligned(&rows, |column| column == 0);
/// assert_eq!(text, "name  keys\nfifo   100\nlru      7\n");
/// ```
#[must_use]
pub fn aligned(rows: &[Vec<String>], is_left: impl Fn(usize) -> bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            line += &if is_left(column) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let rows = [row(["name", "a", "long"]), row(["x", "100", "é"])];
        let text = aligned(&rows, |column| column == 0);
        assert_eq!(text, "name    a  long\nx     100     é\n");
        let text = aligned(&rows, |column| column == 2);
        assert_eq!(text, "name    a  long\n   x  100  é\n");
        assert_eq!(aligned(&[], |_| true), "");
    }
}
