//! `--user`: a run that has opened its interfaces becomes an ordinary user.

use std::ffi::CString;
use std::io;

use echoless::SpecError;
use echoless_records::failure::Failure;
use nix::unistd::{self, initgroups, setgid, setuid};

/// A user that a run becomes.
#[derive(Debug)]
pub(crate) struct User {
    name: String,
    found: unistd::User,
}

impl User {
    /// The user of this name. Fails if there is none, or it is root.
    pub(crate) fn find(option: &'static str, name: &str) -> Result<Self, SpecError> {
        let allowed = "the name of a user other than root";
        let found = unistd::User::from_name(name).ok().flatten();
        let found = found.filter(|found| !found.uid.is_root());
        let found = found.ok_or_else(|| SpecError::new(option, name, allowed))?;
        let name = name.into();
        Ok(Self { name, found })
    }

    /// Has all threads of the process be this user's, with its groups. The kernel takes all
    /// capabilities from a process that was root and is no more. Fails without the permission, or
    /// if the process could become root again.
    pub(crate) fn drop_privileges(&self) -> Result<(), Failure> {
        let drop_privileges = || {
            initgroups(&CString::new(self.name.as_str())?, self.found.gid)?;
            setgid(self.found.gid)?;
            setuid(self.found.uid)?;
            match setuid(0.into()).is_ok() {
                true => Err(io::Error::other("the process can become root again")),
                false => Ok(()),
            }
        };
        drop_privileges().map_err(Failure::file(format!("--user {}", self.name)))
    }
}
