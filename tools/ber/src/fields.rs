//! The list of fields that a user gives, `0x80,0xA3/0x81?` or `recordType,servedIMSI`, resolved for
//! each type of record.

use thiserror::Error;

use crate::element::Tag;
use crate::path::{PathError, TagPath};
use crate::profile::Profile;
use crate::select::MAX_FIELDS;

/// A list of fields that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid field {text}: expected {allowed}")]
pub struct FieldError {
    /// Whether the item is that of the time.
    pub is_time: bool,
    /// The item.
    pub text: String,
    /// What is allowed.
    pub allowed: String,
}

/// A field in one type of record.
#[derive(Debug, Clone)]
pub(crate) struct FieldSpec {
    /// `None` if the profile has no such field in the type: it is always missing.
    pub(crate) path: Option<TagPath>,
    /// Whether a record may lack it.
    pub(crate) optional: bool,
}

/// The fields of all types of records.
#[derive(Debug)]
pub(crate) struct TypeFields {
    pub(crate) names: Vec<String>,
    /// The number of fields of the key; a field behind them is the time.
    pub(crate) keys: usize,
    /// The fields of the types of a profile; `None` is a field that the type has no use for.
    pub(crate) types: Vec<(Tag, Vec<Option<FieldSpec>>)>,
    /// The fields of all other records.
    pub(crate) other: Vec<Option<FieldSpec>>,
}

/// Resolves the fields of a key and of a time.
pub(crate) fn type_fields(
    profile: Option<&Profile>,
    key: Option<&str>,
    time: Option<&str>,
) -> Result<TypeFields, FieldError> {
    let mut fields = TypeFields {
        names: Vec::new(),
        keys: 0,
        types: Vec::new(),
        other: Vec::new(),
    };
    if let Some(profile) = profile {
        let tags = profile.types().map(|record| (record.tag(), Vec::new()));
        fields.types.extend(tags);
    }
    match (key, profile) {
        (Some(key), _) => {
            for item in key.split(',') {
                fields.add(profile, item, false)?;
            }
        }
        (None, Some(profile)) => fields.add_own_keys(profile),
        (None, None) => {}
    }
    fields.keys = fields.names.len();
    if let Some(time) = time {
        fields.add(profile, time, true)?;
    }
    if fields.names.len() > MAX_FIELDS {
        return Err(FieldError {
            is_time: false,
            text: format!("{} fields", fields.names.len()),
            allowed: format!("at most {MAX_FIELDS}, the time included"),
        });
    }
    Ok(fields)
}

impl TypeFields {
    /// Adds a path or a name; a question mark behind it means that a record may lack the field.
    fn add(
        &mut self,
        profile: Option<&Profile>,
        text: &str,
        is_time: bool,
    ) -> Result<(), FieldError> {
        let (name, optional) = match text.strip_suffix('?') {
            Some(name) if !is_time => (name, true),
            Some(_) | None => (text, false),
        };
        if let Ok(path) = name.parse::<TagPath>() {
            let spec = FieldSpec {
                path: Some(path),
                optional,
            };
            for (_, fields) in &mut self.types {
                fields.push(Some(spec.clone()));
            }
            self.other.push(Some(spec));
            self.names.push(name.into());
            return Ok(());
        }
        let known = |profile: &&Profile| profile.types().any(|it| it.path(name).is_some());
        let Some(profile) = profile.filter(known) else {
            let syntax = PathError::EXPECTED;
            let allowed = match profile {
                None => syntax.into(),
                Some(profile) => format!("{syntax}; or a field of {}", profile.type_names()),
            };
            return Err(FieldError {
                is_time,
                text: text.into(),
                allowed,
            });
        };
        for ((_, fields), record) in self.types.iter_mut().zip(profile.types()) {
            let path = record.path(name).cloned();
            fields.push(Some(FieldSpec { path, optional }));
        }
        self.other.push(Some(FieldSpec {
            path: None,
            optional,
        }));
        self.names.push(name.into());
        Ok(())
    }

    /// Adds the key that each type has in the profile. Field number `n` is the `n`-th of each, so
    /// that no record has more fields than its own key.
    fn add_own_keys(&mut self, profile: &Profile) {
        let longest = profile.types().map(|record| record.key().len()).max();
        for field in 0..longest.unwrap_or(0) {
            let mut names: Vec<&str> = Vec::new();
            for ((_, fields), record) in self.types.iter_mut().zip(profile.types()) {
                fields.push(record.key().get(field).map(|item| FieldSpec {
                    path: record.path(&item.name).cloned(),
                    optional: item.optional,
                }));
                if let Some(item) = record.key().get(field)
                    && !names.contains(&item.name.as_str())
                {
                    names.push(&item.name);
                }
            }
            self.other.push(Some(FieldSpec {
                path: None,
                optional: field > 0,
            }));
            self.names.push(names.join("` or `"));
        }
    }
}
