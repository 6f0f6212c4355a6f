//! Paths to values in JSON: `user.name`, `items[0]`, `"a.b".c`, and `.` for the whole record.

use echoless::SpecError;

use super::scan::{DEEPEST, Scan, unescape};

/// A step from a value to one in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    /// To the member with this name, without escapes.
    Member(Vec<u8>),
    /// To the element with this index, from 0.
    Element(usize),
}

/// A path, and how it was typed.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(super) steps: Vec<PathStep>,
    pub(crate) text: String,
}

impl Path {
    /// The path to a member of the whole record.
    pub(crate) fn member(name: &str) -> Self {
        Self {
            steps: vec![PathStep::Member(name.as_bytes().to_vec())],
            text: name.into(),
        }
    }

    /// The steps from the value on the path `whole` to the one on this path, if it is in that one.
    pub(crate) fn below(&self, whole: &Self) -> Option<Self> {
        let steps = self.steps.strip_prefix(&whole.steps[..])?;
        (!steps.is_empty()).then(|| Self {
            steps: steps.into(),
            text: self.text.clone(),
        })
    }
}

/// Parses a list of paths for the option `option`: in the order of their steps, each once.
pub(crate) fn parse_paths(option: &'static str, text: &str) -> Result<Vec<Path>, SpecError> {
    let mut parser = Parser::new(option, text);
    let mut paths = vec![parser.path()?];
    while parser.skip(b',') {
        paths.push(parser.path()?);
    }
    if parser.at < text.len() {
        return Err(parser.invalid());
    }
    Ok(distinct(paths))
}

/// The paths of a key. Without any that is compared, `excluded` ones are left out of the whole
/// record.
#[derive(Debug, Clone)]
pub(crate) struct KeyPaths {
    pub(crate) compared: Vec<Path>,
    /// The paths behind `!`. Each leads from a compared value to one in it.
    pub(crate) excluded: Vec<Path>,
}

impl KeyPaths {
    /// Parses the paths of `--key`. Fails if one behind `!` leads to no value in a compared one.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parser = Parser::new("--key", text);
        let (mut compared, mut excluded) = (Vec::new(), Vec::new());
        loop {
            if parser.skip(b'!') {
                excluded.push(parser.path()?);
            } else {
                compared.push(parser.path()?);
            }
            if !parser.skip(b',') {
                break;
            }
        }
        if parser.at < text.len() {
            return Err(parser.invalid());
        }
        if compared.is_empty() {
            compared.push(Path {
                steps: Vec::new(),
                text: ".".into(),
            });
        }
        for path in &excluded {
            if !compared.iter().any(|whole| path.below(whole).is_some()) {
                let allowed = "a path to a value in one that is compared, such as user,!user.seen";
                return Err(SpecError::new(
                    "--key",
                    format!("`!{}`", path.text),
                    allowed,
                ));
            }
        }
        Ok(Self {
            compared: distinct(compared),
            excluded: distinct(excluded),
        })
    }
}

/// Paths in the order of their steps, each once.
fn distinct(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_by(|one, other| one.steps.cmp(&other.steps));
    paths.dedup_by(|one, other| one.steps == other.steps);
    paths
}

struct Parser<'a> {
    option: &'static str,
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    const fn new(option: &'static str, text: &'a str) -> Self {
        Self {
            option,
            text,
            at: 0,
        }
    }

    fn path(&mut self) -> Result<Path, SpecError> {
        let start = self.at;
        let mut steps = Vec::new();
        let whole = self.skip(b'.');
        if !whole {
            if self.peek() != Some(b'[') {
                steps.push(self.name()?);
            }
            loop {
                if self.skip(b'.') {
                    steps.push(self.name()?);
                } else if self.skip(b'[') {
                    steps.push(self.index()?);
                } else {
                    break;
                }
            }
        }
        if steps.len() >= DEEPEST as usize || !matches!(self.peek(), None | Some(b',')) {
            return Err(self.invalid());
        }
        Ok(Path {
            steps,
            text: self.text[start..self.at].into(),
        })
    }

    fn name(&mut self) -> Result<PathStep, SpecError> {
        if self.skip(b'"') {
            let mut scan = Scan::new(self.text.as_bytes());
            let start = self.at;
            self.at = scan.string(start).map_err(|_| self.invalid())?;
            let mut name = Vec::new();
            unescape(&self.text.as_bytes()[start..self.at - 1], &mut name);
            return Ok(PathStep::Member(name));
        }
        let name = self.take_until(b".,[]\"");
        if name.is_empty() {
            return Err(self.invalid());
        }
        Ok(PathStep::Member(name.into()))
    }

    fn index(&mut self) -> Result<PathStep, SpecError> {
        let digits = self.take_until(b"]");
        let numeric = digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(index) if numeric && self.skip(b']') => Ok(PathStep::Element(index)),
            Ok(_) | Err(_) => Err(self.invalid()),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The text up to one of these bytes, all of which are ASCII.
    fn take_until(&mut self, ends: &[u8]) -> String {
        let rest = &self.text[self.at..];
        let len = rest.bytes().position(|byte| ends.contains(&byte));
        let taken = &rest[..len.unwrap_or(rest.len())];
        self.at += taken.len();
        taken.into()
    }

    fn invalid(&self) -> SpecError {
        let allowed = "paths such as id,user.name,items[0], names with . , [ ] or \" as JSON strings (\"a.b\".c), !at for all but that, or . for the whole record";
        SpecError::new(self.option, format!("`{}`", self.text), allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Vec<PathStep>> {
        let paths = parse_paths("--key", text).unwrap();
        paths.into_iter().map(|path| path.steps).collect()
    }

    fn member(name: &str) -> PathStep {
        PathStep::Member(name.as_bytes().to_vec())
    }

    #[test]
    fn names_and_indices() {
        assert_eq!(steps("id"), [[member("id")]]);
        assert_eq!(steps("user.name"), [[member("user"), member("name")]]);
        assert_eq!(
            steps("a[0][12].b"),
            [[
                member("a"),
                PathStep::Element(0),
                PathStep::Element(12),
                member("b")
            ]]
        );
        assert_eq!(
            steps("[3].x y-z"),
            [[PathStep::Element(3), member("x y-z")]]
        );
        assert_eq!(steps("."), [[]]);
        assert_eq!(steps("0"), [[member("0")]]);
    }

    #[test]
    fn quoted_names_hold_any_character() {
        assert_eq!(steps(r#""a.b".c"#), [[member("a.b"), member("c")]]);
        assert_eq!(steps(r#""\u0041,[\"]""#), [[member("A,[\"]")]]);
        assert_eq!(steps(r#"a."""#), [[member("a"), member("")]]);
        assert_eq!(steps("größe"), [[member("größe")]]);
    }

    #[test]
    fn order_and_repeats_do_not_matter() {
        assert_eq!(steps(r#"b,a,"b",a"#), [[member("a")], [member("b")]]);
        assert_eq!(steps("b,a"), steps("a,b"));
    }

    #[test]
    fn paths_behind_an_exclamation_mark_are_excluded() {
        let parse = |text| {
            let KeyPaths { compared, excluded } = KeyPaths::parse(text).unwrap();
            let steps = |paths: Vec<Path>| paths.into_iter().map(|path| path.steps).collect();
            [compared, excluded].map(steps) as [Vec<Vec<PathStep>>; 2]
        };
        assert_eq!(parse("!a"), [vec![vec![]], vec![vec![member("a")]]]);
        assert_eq!(
            parse("!b.c,!a,!b.c"),
            [
                vec![vec![]],
                vec![vec![member("a")], vec![member("b"), member("c")]]
            ]
        );
        assert_eq!(
            parse("b,!b[0]"),
            [
                vec![vec![member("b")]],
                vec![vec![member("b"), PathStep::Element(0)]]
            ]
        );
        assert_eq!(parse(r#""!b""#), [vec![vec![member("!b")]], vec![]]);
        for text in ["!", "!.", "b,!c", "b,!b", "b.c,!b", "!a,", "!!a\"", "! ,"] {
            let error = KeyPaths::parse(text).unwrap_err();
            assert_eq!(error.field, "--key", "{text}");
        }
    }

    #[test]
    fn other_text_is_invalid() {
        for text in [
            "",
            ",",
            "a,",
            "a..b",
            "a.",
            ".a",
            "..",
            "a[",
            "a[]",
            "a[-1]",
            "a[+1]",
            "a[1",
            "a]",
            "a[0]b",
            "a\"b\"",
            "\"a",
            "\"a\"b",
            "\"\\x\"",
            "a[99999999999999999999]",
            "[0]]",
        ] {
            let error = parse_paths("--time-field", text).unwrap_err();
            assert_eq!(error.field, "--time-field", "{text}");
        }
        let deep = vec!["a"; DEEPEST as usize].join(".");
        assert!(parse_paths("--key", &deep).is_err());
        assert!(parse_paths("--key", &deep[2..]).is_ok());
    }
}
