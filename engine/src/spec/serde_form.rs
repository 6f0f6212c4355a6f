//! Specifications in files (serde): a table of `filter`, the options and `adapters` as in the text
//! form (`"horizontal:slices=8"`), or the whole text form as one string.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::filter::FilterSpec;
use crate::options::Options;

impl Serialize for FilterSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.options();
        let adapters = (!self.adapters.is_empty()).then(|| self.adapters.to_string());
        let entries = options.len() + 1 + usize::from(adapters.is_some());
        let mut map = serializer.serialize_map(Some(entries))?;
        if let Some(adapters) = adapters {
            map.serialize_entry("adapters", &adapters)?;
        }
        map.serialize_entry("filter", self.name())?;
        for (key, value) in options {
            // The table holds numbers as numbers, so that a file reads `k = 2` and not `k = "2"`.
            if let Ok(integer) = value.parse::<u64>() {
                map.serialize_entry(key, &integer)?;
            } else if let Ok(decimal) = value.parse::<f64>() {
                map.serialize_entry(key, &decimal)?;
            } else {
                map.serialize_entry(key, &value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for FilterSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpecVisitor)
    }
}

struct SpecVisitor;

impl<'de> Visitor<'de> for SpecVisitor {
    type Value = FilterSpec;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table with the key `filter`, or a string such as rlbsbf:k=2")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FilterSpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FilterSpec, A::Error> {
        let (mut name, mut adapters) = (None, None);
        let mut pairs = Vec::new();
        while let Some((key, OptionText(value))) = map.next_entry::<String, OptionText>()? {
            if key == "filter" {
                if name.replace(value).is_some() {
                    return Err(A::Error::duplicate_field("filter"));
                }
            } else if key == "adapters" {
                if adapters.replace(value).is_some() {
                    return Err(A::Error::duplicate_field("adapters"));
                }
            } else {
                pairs.push((key, value));
            }
        }
        let name = name.ok_or_else(|| A::Error::missing_field("filter"))?;
        let adapters = adapters.unwrap_or_default().parse();
        let adapters = adapters.map_err(A::Error::custom)?;
        FilterSpec::from_options(adapters, &name, Options::new(pairs)).map_err(A::Error::custom)
    }
}

/// A number, a string or a boolean, as the text that [`Options`] reads.
struct OptionText(String);

impl<'de> Deserialize<'de> for OptionText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OptionVisitor)
    }
}

struct OptionVisitor;

impl Visitor<'_> for OptionVisitor {
    type Value = OptionText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, a string or a boolean")
    }

    fn visit_str<E>(self, value: &str) -> Result<OptionText, E> {
        Ok(OptionText(value.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<OptionText, E> {
        Ok(OptionText(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<OptionText, E> {
        Ok(OptionText(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<OptionText, E> {
        Ok(OptionText(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<OptionText, E> {
        Ok(OptionText(value.to_string()))
    }
}
