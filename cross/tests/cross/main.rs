//! `cargo cross` on machines that have only what a test gives them.
#![allow(
    clippy::indexing_slicing,
    reason = "a JSON value answers an absent key with null, and an assertion then fails"
)]

mod build;
mod machine;
mod package;
mod setup;
mod sources;
