//! `--user`: a run that has opened its interfaces becomes an ordinary user.

use echoless::SpecError;
use echoless_records::failure::Failure;

/// A user that a run becomes.
#[derive(Debug)]
pub(crate) struct User {
    name: String,
    #[cfg(unix)]
    found: nix::unistd::User,
}

impl User {
    /// The user of this name. Fails if there is none, or it is root.
    #[cfg(unix)]
    pub(crate) fn find(option: &'static str, name: &str) -> Result<Self, SpecError> {
        let allowed = "the name of a user other than root";
        let found = nix::unistd::User::from_name(name).ok().flatten();
        let found = found.filter(|found| !found.uid.is_root());
        let found = found.ok_or_else(|| SpecError::new(option, name, allowed))?;
        let name = name.into();
        Ok(Self { name, found })
    }

    /// There are no such users.
    #[cfg(not(unix))]
    pub(crate) fn find(option: &'static str, name: &str) -> Result<Self, SpecError> {
        Err(SpecError::new(option, name, "a system with users"))
    }

    /// Has all threads of the process be this user's, with its groups. The kernel takes all
    /// capabilities from a process that was root and is no more. Fails without the permission, or
    /// if the process could become root again.
    #[cfg(unix)]
    pub(crate) fn drop_privileges(&self) -> Result<(), Failure> {
        use std::ffi::CString;
        use std::io;

        use nix::unistd::{initgroups, setgid, setuid};

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

    /// There is no such user.
    #[cfg(not(unix))]
    pub(crate) fn drop_privileges(&self) -> Result<(), Failure> {
        Err(Failure::option("--user", &self.name))
    }
}
