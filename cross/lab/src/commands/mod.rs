//! The subcommands.

pub(crate) mod kernel;
pub(crate) mod list;
pub(crate) mod setup;
pub(crate) mod shell;
pub(crate) mod test;
