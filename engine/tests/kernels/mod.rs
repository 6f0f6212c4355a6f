//! The kernels that tests run on, one list for all tests. The module that includes this file has
//! [`Kernel`] in scope.

use super::Kernel;

/// The kernels that this machine can run. A missing one is printed as skipped; with
/// `ECHOLESS_REQUIRE_KERNELS=1` it is a failure.
pub(crate) fn kernels() -> Vec<Kernel> {
    let (available, missing): (Vec<_>, Vec<_>) = Kernel::ALL
        .iter()
        .copied()
        .partition(|kernel| kernel.is_available());
    let required = std::env::var_os("ECHOLESS_REQUIRE_KERNELS").is_some();
    assert!(
        !required || missing.is_empty(),
        "this CPU lacks {missing:?}"
    );
    for kernel in missing {
        eprintln!("skipped: this CPU cannot run the {kernel} kernel");
    }
    available
}
