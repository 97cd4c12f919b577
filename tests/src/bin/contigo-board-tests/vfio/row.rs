//! The outcome of one board test of VFIO.

/// The outcome of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Jobs that ended as they should.
    pub(crate) jobs: u64,
    /// Bytes that were copied and compared.
    pub(crate) bytes: u64,
    /// Bytes of destinations that are not what they should be.
    pub(crate) mismatches: u64,
    /// Bytes beside destinations that changed.
    pub(crate) canary_hits: u64,
    /// It did not hold.
    pub(crate) failed: bool,
    /// It was not tried, and why.
    pub(crate) skipped: bool,
    /// The result, in words.
    pub(crate) detail: String,
}

impl Seen {
    /// The expected effect did not show.
    pub(crate) fn failed(detail: impl Into<String>) -> Self {
        Self { failed: true, detail: detail.into(), ..Self::default() }
    }

    /// This user or this kernel has not got what it needs.
    pub(crate) fn skipped(detail: impl Into<String>) -> Self {
        Self { skipped: true, detail: detail.into(), ..Self::default() }
    }

    /// It was shown.
    pub(crate) fn shown(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::default() }
    }
}
