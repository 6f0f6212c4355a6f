//! The fields of a JSON object in the order in which they are added.

use std::collections::BTreeMap;

use echoless_records::failure::visible_json;
use serde::Serialize;

use super::ending::Ending;

/// The version of the JSON. It rises when a stable field changes its name, type or meaning.
const SCHEMA_VERSION: u32 = 1;

/// The fields of the statistics.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// A line for each, without the last newline.
    lines: String,
}

impl Fields {
    /// The fields that any statistics begin with.
    pub(crate) fn begin(ending: &Ending) -> Self {
        let mut fields = Self::default();
        fields.add("schema_version", SCHEMA_VERSION);
        fields.add("version", env!("CARGO_PKG_VERSION"));
        fields.add_all(ending);
        fields
    }

    pub(crate) fn add(&mut self, name: &str, value: impl Serialize) {
        self.add_all(&BTreeMap::from([(name, value)]));
    }

    /// Adds the fields of an object that has some.
    pub(crate) fn add_all(&mut self, object: &impl Serialize) {
        let json = serde_json::to_string_pretty(object)
            .unwrap_or_else(|error| unreachable!("numbers and names are always JSON: {error}"));
        let lines = json
            .strip_prefix("{\n")
            .and_then(|json| json.strip_suffix("\n}"));
        if !self.lines.is_empty() {
            self.lines.push_str(",\n");
        }
        self.lines.push_str(lines.unwrap_or_default());
    }

    /// The object, with a newline at its end.
    pub(crate) fn json(&self) -> String {
        visible_json(&format!("{{\n{}\n}}\n", self.lines))
    }
}
