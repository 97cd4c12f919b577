//! The kernel that the runtime calls.

/// The type `Kernel`, and the running one of them, `RUNNING`: `$real`; with the feature `testkit`
/// also whatever a test puts in its place.
macro_rules! asked {
    ($real:ident as $kernel:ident) => {
        /// The kernel to call: the running one; in a test, the test's own.
        #[cfg(not(feature = "testkit"))]
        pub(super) type Kernel = $real;
        #[cfg(feature = "testkit")]
        pub(super) type Kernel = $crate::linux::os::seam::Asked<dyn $kernel>;

        #[cfg(not(feature = "testkit"))]
        pub(super) const RUNNING: Kernel = $real;
        #[cfg(feature = "testkit")]
        pub(super) const RUNNING: Kernel = Kernel::Running(&$real);
    };
}
pub(crate) use asked;
