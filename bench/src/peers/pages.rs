//! Huge pages for the peers. Our filters request them from the system; if the peers did not have
//! them too, the table would compare page sizes.

use std::env;
use std::hint;
use std::process::Command;

use echoless::memory::huge_page_bytes;

use crate::failure::Failure;

/// The variable from which glibc reads its settings, and the setting with which its allocator
/// requests huge pages.
const VARIABLE: &str = "GLIBC_TUNABLES";
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// Counts the starts of this program: some versions of glibc misread the system's setting in about
/// every other process.
const ATTEMPT: &str = "ECHOLESS_BENCH_ATTEMPT";
const ATTEMPTS: u32 = 20;

/// Makes the allocator request huge pages.
///
/// The allocator reads its settings when a program starts. So this program replaces itself with a
/// new start until large blocks lie on huge pages, or, if the system or the allocator does not
/// provide them, until it has made [`ATTEMPTS`].
///
/// # Errors
/// If the program cannot be started.
pub(super) fn make_huge() -> Result<(), Failure> {
    let attempt = env::var(ATTEMPT).ok();
    let attempt: u32 = attempt.and_then(|count| count.parse().ok()).unwrap_or(0);
    if blocks_are_huge() || attempt >= ATTEMPTS {
        return Ok(());
    }
    let mut again = Command::new(env::current_exe()?);
    again
        .args(env::args_os().skip(1))
        .env(VARIABLE, HUGE_PAGES)
        .env(ATTEMPT, (attempt + 1).to_string());
    replace(&mut again)
}

/// Whether a block as large as those of the peers lies on huge pages.
fn blocks_are_huge() -> bool {
    let before = huge_page_bytes();
    let block = hint::black_box(vec![1u8; 64 << 20]);
    let after = huge_page_bytes();
    drop(block);
    let gained = after
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before));
    gained.is_some_and(|bytes| bytes > 32 << 20)
}

#[cfg(unix)]
fn replace(again: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    Err(again.exec().into())
}

#[cfg(not(unix))]
fn replace(_again: &mut Command) -> Result<(), Failure> {
    Ok(())
}
