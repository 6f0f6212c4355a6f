//! Profiles: names for the fields of each type of record, and the key of each, from TOML.
//!
//! ```toml
//! [records.call]
//! tag = "0xA0"                           # of the record's element
//! key = ["reference", "sequence?"]       # a record may lack what ends in a question mark
//! [records.call.fields]
//! reference = "0x9F20"                   # a path from the content of the element
//! sequence = "0x9F21"
//! ```

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::element::Tag;
use crate::path::TagPath;
use crate::select::MAX_FIELDS;

/// The name of the profile of 3GPP TS 32.298, in the sources of this crate.
pub const TS32298: &str = "3gpp";

static TS32298_PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    toml::from_str(TS32298_TEXT).unwrap_or_else(|error| unreachable!("tested: {error}"))
});

/// The text of the profile of 3GPP TS 32.298: an example for other profiles.
pub const TS32298_TEXT: &str = include_str!("ts32298.toml");

/// Names of fields, and a key, for each type of record.
///
/// # Examples
/// ```
/// use echoless_ber::Profile;
///
/// let names: Vec<&str> = Profile::ts32298().types().map(|record| record.name()).collect();
/// assert!(names.contains(&"moCallRecord"));
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "ProfileText")]
pub struct Profile {
    types: Vec<RecordType>,
}

/// A type of record: those with one tag.
#[derive(Debug, Clone)]
pub struct RecordType {
    name: String,
    tag: Tag,
    key: Vec<KeyItem>,
    fields: BTreeMap<String, TagPath>,
}

/// A field of a type's own key.
#[derive(Debug, Clone)]
pub(crate) struct KeyItem {
    pub(crate) name: String,
    /// Whether a record may lack it.
    pub(crate) optional: bool,
}

/// A profile as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileText {
    records: BTreeMap<String, TypeText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeText {
    tag: TagPath,
    key: Vec<String>,
    fields: BTreeMap<String, TagPath>,
}

impl Profile {
    /// The profile of the call records of 3GPP TS 32.298.
    pub fn ts32298() -> &'static Self {
        &TS32298_PROFILE
    }

    /// The types, by name.
    pub fn types(&self) -> impl Iterator<Item = &RecordType> {
        self.types.iter()
    }

    /// The names of all types, for messages.
    pub(crate) fn type_names(&self) -> String {
        let names: Vec<&str> = self.types().map(RecordType::name).collect();
        names.join(", ")
    }
}

impl RecordType {
    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its fields, sorted.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    pub(crate) const fn tag(&self) -> Tag {
        self.tag
    }

    pub(crate) fn key(&self) -> &[KeyItem] {
        &self.key
    }

    /// The path of a field.
    pub(crate) fn path(&self, name: &str) -> Option<&TagPath> {
        self.fields.get(name)
    }
}

impl TryFrom<ProfileText> for Profile {
    type Error = String;

    fn try_from(text: ProfileText) -> Result<Self, String> {
        let mut types: Vec<RecordType> = Vec::new();
        for (name, record) in text.records {
            let [tag] = record.tag.tags[..] else {
                return Err(format!("invalid tag of {name}: expected one tag"));
            };
            if let Some(other) = types.iter().find(|other| other.tag == tag) {
                return Err(format!("{name} has the tag of {}", other.name));
            }
            let mut key = Vec::new();
            for item in record.key {
                let (field, optional) = match item.strip_suffix('?') {
                    Some(field) => (field, true),
                    None => (item.as_str(), false),
                };
                if !record.fields.contains_key(field) {
                    return Err(format!(
                        "the key of {name} has `{field}`, which is no field of it"
                    ));
                }
                key.push(KeyItem {
                    name: field.into(),
                    optional,
                });
            }
            if !(1..MAX_FIELDS).contains(&key.len()) {
                let most = MAX_FIELDS - 1;
                return Err(format!(
                    "invalid key of {name}: expected 1 to {most} fields"
                ));
            }
            types.push(RecordType {
                name,
                tag,
                key,
                fields: record.fields,
            });
        }
        Ok(Self { types })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_the_standard_is_valid() {
        let profile = Profile::ts32298();
        assert!(profile.types().count() > 10);
        for record in profile.types() {
            // The first field of every type distinguishes it from the others.
            assert_eq!(record.key()[0].name, "recordType", "{}", record.name);
            assert!(!record.key()[0].optional);
            assert_eq!(record.path("recordType"), "0x80".parse().ok().as_ref());
            let mut paths: Vec<String> =
                record.fields.values().map(|it| format!("{it:?}")).collect();
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), record.fields.len(), "{}", record.name);
        }
    }

    #[test]
    fn faulty_profiles_are_rejected() {
        let parse = |records: &str| toml::from_str::<Profile>(records).unwrap_err().to_string();
        let one = "[records.a]\ntag = \"0xA0\"\nkey = [\"x\"]\nfields = { x = \"0x80\" }\n";
        assert!(toml::from_str::<Profile>(one).is_ok());
        for (from, to, message) in [
            ("0xA0", "A0", "`A0` is no path"),
            ("0xA0", "0xA0/0x80", "invalid tag of a: expected one tag"),
            (
                "[\"x\"]",
                "[\"y?\"]",
                "the key of a has `y`, which is no field of it",
            ),
            ("[\"x\"]", "[]", "invalid key of a: expected 1 to 63 fields"),
            ("key", "keys", "unknown field `keys`"),
            ("0x80", "", "`` is no path"),
        ] {
            let error = parse(&one.replacen(from, to, 1));
            assert!(error.contains(message), "{error}");
        }
        let two = [one, &one.replace(".a]", ".b]").replace("A0", "80")].concat();
        assert!(parse(&two).contains("b has the tag of a"));
    }
}
