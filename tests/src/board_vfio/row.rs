//! What came of one board test of VFIO.

/// What came of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Jobs that ended as they should.
    pub jobs: u64,
    /// Bytes that were copied and compared.
    pub bytes: u64,
    /// Bytes of destinations that are not what they should be.
    pub mismatches: u64,
    /// Bytes beside destinations that changed.
    pub canary_hits: u64,
    /// It did not hold.
    pub failed: bool,
    /// It was not tried, and why.
    pub skipped: bool,
    /// What was seen, in words.
    pub detail: String,
}

impl Outcome {
    /// What was to be shown did not show.
    pub fn failed(detail: impl Into<String>) -> Self {
        Self { failed: true, detail: detail.into(), ..Self::default() }
    }

    /// This user or this kernel has not got what it needs.
    pub fn skipped(detail: impl Into<String>) -> Self {
        Self { skipped: true, detail: detail.into(), ..Self::default() }
    }

    /// It was shown.
    pub fn shown(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::default() }
    }
}
