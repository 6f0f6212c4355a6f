//! JSON (RFC 8259) in records of one value: where the values on given paths are, and which values
//! are equal.
//!
//! [`path`] parses the paths of the key, [`find`] finds the values on them by the tokens of
//! [`scan`], [`value`] turns each into bytes that are equal exactly if the values are, with
//! [`number`] for numbers. [`lists`] finds arrays that hold records. [`framing`] finds where values
//! end that are not one in each line. A parser of whole values would allocate for every member; of
//! most members only the syntax matters here.

pub(super) mod find;
pub(super) mod framing;
pub(super) mod lists;
mod number;
pub(super) mod path;
pub(super) mod scan;
pub(super) mod value;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// JSON with few names and values, so that paths and whole texts are often equal.
    pub(super) fn text() -> impl Strategy<Value = String> {
        let scalar = prop::sample::select(vec![
            "0",
            "-0",
            "0.0",
            "1",
            "1.0",
            "1e0",
            "10e-1",
            "10",
            "1e1",
            "-2.5",
            "-25e-1",
            "true",
            "false",
            "null",
            "\"\"",
            "\"a\"",
            "\"\\u0061\"",
            "\"1\"",
            "\"longer than one block\"",
            "\"longer than one \\u0062lock\"",
            "\"é\"",
            "\"\\u00e9\"",
        ]);
        let space = || prop::sample::select(vec!["", "", "", " ", "\t", " \r\n "]);
        let name = prop::sample::select(vec!["a", "b", "\\u0061", "a.b", "", "é"]);
        scalar
            .prop_map(str::to_owned)
            .prop_recursive(4, 24, 4, move |inner| {
                let joined = |items: Vec<String>, (open, close), space: &str| {
                    format!(
                        "{space}{open}{space}{}{space}{close}{space}",
                        items.join(",")
                    )
                };
                let member =
                    (name.clone(), space(), inner.clone()).prop_map(|(name, space, value)| {
                        format!("{space}\"{name}\"{space}:{space}{value}")
                    });
                prop_oneof![
                    (vec(inner, 0..4), space()).prop_map(move |(items, space)| joined(
                        items,
                        ('[', ']'),
                        space
                    )),
                    (vec(member, 0..4), space()).prop_map(move |(items, space)| joined(
                        items,
                        ('{', '}'),
                        space
                    )),
                ]
            })
    }
}
